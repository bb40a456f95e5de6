"""Vector scaling: a factor and an offset for each class's logit."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.maps import VectorMap
from calibrant.scaling.affine import AffineCalibrator
from calibrant.scaling.affine_family import Family
from calibrant.scaling.base import reading


class VectorScaling(AffineCalibrator):
    """P = softmax(v·z + b), a factor and an offset per class, by maximum likelihood.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits z; ``"logit"``: they are probabilities and z = ln p;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    gate : bool, default=True
        Fall back to a temperature alone where that loses less on rows held out, and to the scores
        as they are unless the gain over them exceeds its standard error.
    classes : see `VectorCalibrator`

    Attributes
    ----------
    factors_, offsets_ : ndarray of shape (k,)
        v and b of the map that was kept.
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.

    Notes
    -----
    Convex in v and b; Newton's method, O(n·k²) per step up to 40 classes, conjugate gradients
    above. A ridge of 1e-7·Σw towards the identity keeps the fit finite where classes separate or y
    lacks one. Only ratios of weights matter. Zero probabilities are read as half the smallest
    positive one. On logits the map changes if a constant is added to all logits of a row, as
    published; `StructuredScaling` does not change.

    The gate holds rows out in five folds, made of at most 20,000 rows and dealt in the order of
    their scores: nothing is random. Where this would take too long (6,700 rows of 300 classes), it
    holds out a single part, a fifth and at most 5,000 of the rows, and judges a fit to all the
    others.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017, doi:10.48550/arXiv.1706.04599.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(3000, 3))
    >>> y = (z * [1, 2, 1] + [0, 0, 1] + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> c = VectorScaling().fit(3 * z, y)
    >>> (3 * c.factors_).round(1).tolist()
    [1.0, 2.1, 1.0]
    """

    def __init__(
        self,
        *,
        scale: str = "auto",
        label_smoothing: float = 0.0,
        gate: bool = True,
        classes: Any = None,
    ) -> None:
        self.scale = scale
        self.label_smoothing = label_smoothing
        self.gate = gate
        self.classes = classes

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read = reading(matrix, self.scale)
        family = Family(read, full=False, smoothing=self.label_smoothing)
        free = family.strength(diagonal=0.0, off_diagonal=0.0, intercept=0.0)
        fitted = self._fit_and_settle(family, lambda total: free)
        self.factors_, self.offsets_ = np.diag(fitted.weights), fitted.bias
        return fitted
