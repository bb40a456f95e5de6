"""Matrix scaling: a full matrix and offsets on the logits, ridges on what is off the diagonal."""

from __future__ import annotations

from calibrant.scaling.affine import RidgeCalibrator


class MatrixScaling(RidgeCalibrator):
    """P = softmax(W·z + b) of logits z, off-diagonal of W and b shrunk to zero.

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
    Minimises the mean log loss + λ/(k(k−1))·Σ_{i≠j} W²_ij + μ/k·Σ b² [2]_ (without ridges [1]_ the
    k² + k parameters overfit). Convex; Newton's method, O(n·k⁴) per step up to 24 classes,
    conjugate gradients above. Zero probabilities are read as half the smallest positive one. On
    logits the map changes if a constant is added to all logits of a row, as published; `Dirichlet`
    and `StructuredScaling` do not change. n is the effective number of rows.

    To choose λ, and for the gate, rows are held out in five folds, dealt in the order of their
    scores: nothing is random. The folds are made of at most 20,000 rows (6,700 for 16 classes,
    1,400 for 24); a λ or μ chosen on a part of the rows shrinks with the number of all. Above 24
    classes this would take too long: ``"auto"`` is then λ = (k(k−1))²/n and μ = k²/n, the strengths
    of `StructuredScaling`. Where five folds cannot hold enough rows, the gate holds out a single
    part, a fifth and at most 5,000 of the rows, and judges a fit to all the others.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017, doi:10.48550/arXiv.1706.04599.
    .. [2] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       temperature scaling", 2019, doi:10.48550/arXiv.1910.12656.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(3000, 3))
    >>> y = (z + z[:, [1, 0, 2]] / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> c = MatrixScaling().fit(3 * z, y)
    >>> (3 * (c.matrix_[:2] - c.matrix_[2])).round(1).tolist()
    [[1.0, 0.5, -1.5], [0.5, 1.1, -1.5]]
    """
