"""One calibrator for the confidence: is the most probable class the right one?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.calibrators.bls import BLS
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.estimators.base import SCALES, Calibrator
from calibrant.estimators.limits import Limit, OneOf
from calibrant.maps import Identity, TopLabel
from calibrant.multiclass.code_columns import column_calibrator, fit_column
from calibrant.scaling.base import VectorCalibrator, reading


class TopLabelCalibrator(VectorCalibrator):
    """Calibrate the largest probability of a row; the other classes share what is left.

    Rows are first brought to the best temperature, which sets the ratios of the other classes.

    Parameters
    ----------
    calibrator : Calibrator or name, such as "isotonic", default: `BLS`
        Of one score: the largest probability of a row.
    temperature : bool, default=True
        Bring rows to the best temperature first. If False, the other classes keep the ratios that
        they came with.
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits, read by their softmax; ``"logit"``: they are probabilities;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    classes : see `VectorCalibrator`

    Attributes
    ----------
    calibrator_ : Calibrator
        The fitted calibrator of the confidence.
    temperature_ : float
        T of the first step; 1 without it.

    Notes
    -----
    All rows answer one question, whether the class with the largest probability c is the right one
    (top-versus-all [1]_). So a thousand classes need no more rows than two. The top class gets
    q(c), and each other class p·(1 − q)/(1 − c). The order of the classes in a row never changes.
    If q would put the top class below the second, it stays ahead by a millionth, and is then more
    probable than q says. This is frequent in overconfident rows if no temperature softens them
    first, because the second class has most of what the top one leaves.
    If c = 1, the other classes share 1 − q evenly. Classes that tie for the top stay equal: each
    gets q. In the fit, a row with m such classes counts as 1/m right if its label is one of them.

    This does not correct a class that is too probable wherever it comes second, nor the ratios of
    the other classes. `StructuredScaling` does.

    Weights go to the calibrator, too. O(n·k) to find the largest, block by block, and one fit.

    References
    ----------
    .. [1] A. Le Coz, S. Herbin, F. Adjed, "Confidence calibration of classifiers with many
       classes", 2024, doi:10.48550/arXiv.2411.02988.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(3000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> c = TopLabelCalibrator().fit(3 * z, y)
    >>> c.predict_proba([[3, 0, 0]]).round(2).tolist()
    [[0.59, 0.21, 0.21]]
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "temperature": (OneOf((True, False)),),
        "scale": (SCALES,),
    }

    calibrator_: Calibrator

    def __init__(
        self,
        calibrator: Calibrator | str | None = None,
        *,
        temperature: bool = True,
        scale: str = "auto",
        classes: Any = None,
    ) -> None:
        self.calibrator = calibrator
        self.temperature = temperature
        self.scale = scale
        self.classes = classes

    def _fit(self, matrix: ScoreMatrix) -> TopLabel:
        binary = column_calibrator(BLS() if self.calibrator is None else self.calibrator)
        read = reading(matrix, self.scale)
        factor = read.temperature().factor if self.temperature else 1.0
        before = TopLabel(Identity(), matrix.n_classes, read.input, factor)
        one = fit_column(binary, *_answers(matrix, before))
        assert one is not None  # a matrix has rows, and all of them count
        self.calibrator_, self.temperature_ = one, 1.0 / factor
        return replace(before, map=one.map_)


def _answers(matrix: ScoreMatrix, before: TopLabel) -> tuple[Array, NDArray[np.int8], Array | None]:
    """The largest probability of each row, 1 where its class is right and −1 where not; weights.

    A row of m classes that are the largest together becomes a right one of weight 1/m, if one of
    them is right, and a wrong one of the rest.
    """
    largest, right = np.empty(len(matrix)), np.empty(len(matrix))
    start = 0
    for scores, codes, _ in matrix.blocks():
        rows = slice(start, start + len(codes))
        p = before.features(scores)
        top = p.max(axis=1)
        ties = (p == top[:, None]).sum(axis=1)
        largest[rows] = top
        right[rows] = (p[np.arange(len(p)), codes] == top) / ties
        start = rows.stop
    if not np.any((right > 0.0) & (right < 1.0)):
        return largest, np.where(right > 0.0, 1, -1).astype(np.int8), matrix.weight
    weight = np.ones(len(matrix)) if matrix.weight is None else matrix.weight
    signs = np.repeat(np.array([1, -1], dtype=np.int8), len(matrix))
    both = np.concatenate((right * weight, (1.0 - right) * weight))
    return np.tile(largest, 2), signs, both
