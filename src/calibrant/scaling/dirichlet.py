"""Dirichlet calibration: a full matrix and offsets on log-probabilities (ODIR)."""

from __future__ import annotations

from typing import ClassVar

from calibrant.scaling.affine import RidgeCalibrator


class Dirichlet(RidgeCalibrator):
    """P = softmax(W·ln p + b), off-diagonal of W and b shrunk to zero (ODIR).

    Parameters
    ----------
    lambda_ : float or "auto", default="auto"
        Strength λ of the ridge on the off-diagonal of W; ``"auto"``: the one with the least log
        loss on rows held out, among half decades from 1000 to 1e-6.
    mu : float, optional
        Strength μ of the ridge on b; None: as λ.
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits; ``"logit"``: they are probabilities, read by their logarithm;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    gate : bool, default=True
        Fall back to a temperature alone where that loses less on rows held out, and to the scores
        as they are unless the gain over them exceeds its standard error.
    weights, classes : see `VectorCalibrator`

    Attributes
    ----------
    matrix_ : ndarray of shape (k, k)
    offsets_ : ndarray of shape (k,)
        W and b of the map that was kept.
    lambda_used_, mu_used_ : float
        λ and μ of the fit.
    held_out_ : dict of float to float
        With ``lambda_="auto"``: log loss per row on rows held out, for each λ that was tried.
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.

    Notes
    -----
    The right map for scores p that are Dirichlet distributed within each class [1]_. Logits are
    normalised first, ln p = z − ln Σ exp z, so that a constant added to a row changes nothing.
    Minimises the mean log loss + λ/(k(k−1))·Σ_{i≠j} W²_ij + μ/k·Σ b². Convex; Newton's method,
    O(n·k⁴) per step up to 24 classes, conjugate gradients above. Zero probabilities are read as
    half the smallest positive one. n is the effective number of rows.

    To choose λ, and for the gate, rows are held out in five folds, dealt in the order of their
    scores: nothing is random. The folds are made of at most 20,000 rows (6,700 for 16 classes,
    1,400 for 24); a λ or μ chosen on a part of the rows shrinks with the number of all. Above 24
    classes this would take too long: ``"auto"`` is then λ = (k(k−1))²/n and μ = k²/n. Where five
    folds cannot hold enough rows, the gate holds out a single part, a fifth and at most 5,000 of
    the rows, and judges a fit to all the others.

    References
    ----------
    .. [1] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       temperature scaling: obtaining well-calibrated multiclass probabilities with Dirichlet
       calibration", 2019, doi:10.48550/arXiv.1910.12656.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 3000)
    >>> p = rng.dirichlet([1, 1, 1], 3000) * 0.5 + 0.5 * rng.dirichlet([4, 1, 1], 3000)
    >>> p = np.array([np.roll(row, k) for row, k in zip(p, y)])
    >>> c = Dirichlet().fit(p, y)
    >>> c.predict_proba([[0.6, 0.3, 0.1]]).round(2).tolist()
    [[0.85, 0.14, 0.01]]
    """

    _inner: ClassVar[float | None] = 1.0
