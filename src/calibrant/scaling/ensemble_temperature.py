"""Ensemble temperature scaling: a temperature, the scores as they are and even odds, mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_tensor import read_where_it_is
from calibrant.estimators.base import SCALES
from calibrant.estimators.limits import Limit
from calibrant.kernels.mixture_shares import mixture_weights
from calibrant.maps import VectorMap, VectorMixture
from calibrant.scaling.base import Reading, VectorCalibrator, reading

#: a member of less than this share is left out
LEAST_SHARE = 1e-9


class EnsembleTemperature(VectorCalibrator):
    """A temperature, mixed with the scores as they are and with equal probabilities (ETS).

    P = w₁·softmax(z / T) + w₂·softmax(z) + w₃/k for k classes, with shares w that sum to one.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits z; ``"logit"``: they are probabilities and z = ln p;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    classes : see `VectorCalibrator`

    Attributes
    ----------
    temperature_ : float
        T: above 1 softens over-confident scores, below 1 sharpens timid ones.
    shares_ : ndarray of shape (3,)
        w: of the scores at the temperature, of the scores as they are, and of the uniform
        distribution.

    Notes
    -----
    First T is fitted by maximum likelihood, as by `Temperature`; then, with T fixed, the shares
    [1]_. The log loss is convex in the shares. Newton's method finds its minimum, where a share may
    be zero. So the log loss on the rows of the fit is never above that of a temperature alone. No
    row changes the order of its classes, so the most probable class stays what it is. The uniform
    part w₃/k keeps all probabilities above zero. That helps where labels are sometimes wrong,
    however sure the model is.

    Only ratios of weights matter. Zero probabilities are read as half the smallest positive one.
    O(n·k) for each pass of the temperature, and one pass more; float32 scores and memory maps are
    read block by block and never copied as a whole.

    References
    ----------
    .. [1] J. Zhang, B. Kailkhura, T. Han, "Mix-n-match: ensemble and compositional methods for
       uncertainty calibration in deep learning", 2020, doi:10.48550/arXiv.2003.07329.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = 4 * rng.normal(size=(3000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> wrong = rng.random(3000) < 0.3
    >>> y[wrong] = rng.integers(0, 3, wrong.sum())
    >>> c = EnsembleTemperature().fit(z, y)
    >>> c.shares_.round(1).tolist(), c.predict_proba([[9, 0, 0]]).round(1).tolist()
    ([0.0, 0.7, 0.3], [[0.8, 0.1, 0.1]])
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"scale": (SCALES,)}

    def __init__(self, *, scale: str = "auto", classes: Any = None) -> None:
        self.scale = scale
        self.classes = classes

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        return read_where_it_is(scores, y, sample_weight, self.classes)

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read = reading(matrix, self.scale)
        factor = read.temperature().factor
        own = _own_probabilities(read, factor)
        weight = np.ones(len(matrix)) if matrix.weight is None else matrix.weight
        found = mixture_weights(own, weight / weight.mean(), 0.0)
        shares = np.where(found < LEAST_SHARE, 0.0, found)
        self.temperature_, self.shares_ = 1.0 / factor, shares / shares.sum()
        none = np.zeros(matrix.n_classes)
        used = [(w, f) for w, f in zip(self.shares_, (factor, 1.0, 0.0), strict=True) if w > 0.0]
        weights = np.array([w for w, _ in used])
        return VectorMixture(weights, tuple(read.map(f, none) for _, f in used))


def _own_probabilities(read: Reading, factor: float) -> Array:
    """The probability of each row's own class, by each of the three members, shape (n, 3)."""
    sums, even = read.sums(), np.full(len(read.matrix), 1.0 / read.matrix.n_classes)
    return np.column_stack((*(np.exp(-sums.own_losses(f)) for f in (factor, 1.0)), even))
