"""Calibrators of several classes and labels, made of one for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from calibrant.array_types import Array
from calibrant.data.columns import plain, refuse_unordered, score_column_facts, to_gappy_matrix
from calibrant.data.door import Limit, OneOf, check_lengths, read_class_labels, read_weight
from calibrant.data.scale import ScoreRange, ScoreScale
from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.data.score_table import weight_in_rows
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import (
    SCALES,
    Calibrator,
    ReadsClassScores,
    ScoreEstimator,
    ScoreTransformer,
    VectorCalibrator,
    count_columns,
    read_as,
    row_provenance,
)
from calibrant.fitting.fitted import read_column_scores
from calibrant.fitting.registry import to_calibrator
from calibrant.methods.codes.codes import NEEDS, Code, read_code
from calibrant.methods.splines.bls import BLS
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.combiners import Coded, Columns
from calibrant.rules.piecewise import Piecewise
from calibrant.rules.sigmoids import Identity
from calibrant.rules.softmax import TopLabel
from calibrant.solvers.block_arrays import ops_of

#: the words for ``combine``
COMBINE: tuple[str, ...] = ("auto", "normalize", "least_squares", "coupling", "pairwise")


class ColumnsCalibrator(ScoreEstimator):
    """A calibrator of several columns of scores, each of which has a binary calibrator."""

    multiclass: ClassVar[bool] = True
    _one_column: ClassVar[bool] = False

    map_: VectorMap


#: the map of a column whose classes are all absent
UNDECIDED = Piecewise.constant(0.5)


@dataclass(eq=False, repr=False)
class CodedCalibrator(ScoreTransformer, ColumnsCalibrator, ReadsClassScores):
    """Calibrates the scores of several binary questions and combines them into a distribution.

    Parameters
    ----------
    calibrator : Calibrator or name, such as "isotonic"
        Of one score; cloned for each column of the code.
    code : {"one_vs_rest", "all_pairs", "ecoc"}, Code or matrix, default="one_vs_rest"
        Which classes are the positives (1) and the negatives (−1) of each column of scores, rows in
        the order of the classes.
    combine : {"auto", "normalize", "least_squares", "coupling", "pairwise"}, default="auto"
        How the columns' probabilities become one distribution; see `calibrant.multiclass`.
        ``"auto"`` normalises one-vs-rest [1]_ and couples any other code.
    classes : labels, default: those found in y, sorted
        All classes, in the order of the code's rows; needed where y may lack some.

    Attributes
    ----------
    map_ : Coded
        The fitted function of the score matrix, a value.
    classes_ : ndarray of shape (k,)
        The labels, sorted or as ``classes`` names them; the columns of `predict_proba`.
    code_ : Code
        The code that was used.
    calibrators_ : list of fitted calibrators
        One per column; None for a column whose classes are all absent.

    Notes
    -----
    Column b is calibrated on the rows of its classes only, so r_b estimates the probability of its
    positives among them. Coupling weighs columns by the weight of these rows. A column without rows
    plays no part. Cost: one fit per column, O(n log n) each, and the combiner's per row.

    References
    ----------
    .. [1] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.

    Examples
    --------
    >>> import calibrant as cal
    >>> scores = [[0.9, 0.3, 0.1], [0.4, 0.7, 0.2], [0.2, 0.1, 0.6], [0.8, 0.6, 0.1]] * 5
    >>> c = CodedCalibrator(cal.Platt()).fit(scores, ["a", "b", "c", "b"] * 5)
    >>> c.predict_proba([[0.9, 0.3, 0.1]]).round(2).tolist()
    [[0.71, 0.26, 0.04]]
    """

    calibrator: Calibrator | str | None = None
    _: KW_ONLY
    code: Any = "one_vs_rest"
    combine: str = "auto"
    classes: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"combine": (OneOf(COMBINE),)}

    map_: Coded = field(init=False)

    def fit(
        self, scores: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit one map per column.

        Parameters
        ----------
        scores : array-like of shape (n, columns)
            A score for each column of the code, high for its positives; for one-vs-rest one for
            each class, in the order of ``classes_``.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        self._check_fit(scores, y)
        calibrator = column_calibrator(self.calibrator)
        own = isinstance(self.code, str) and self.code == "one_vs_rest"  # a column for each class
        columns = count_columns(scores) if own else 0
        classes, codes = read_class_labels(y, self.classes, columns or None)
        if len(classes) < 2:
            raise InputError(
                f"y must hold at least two classes, but only one class came: "
                f"{plain(classes[0])!r}. Name all of them: classes=[...]."
            )
        code = read_code(self.code, len(classes))
        combination_name(self.combine, code)  # a wrong pair is refused first
        matrix = read_column_scores(scores, len(code), classes)
        check_lengths(scores=len(matrix), y=len(codes))
        weight = read_weight(sample_weight, len(codes))
        signs = code.matrix[codes]
        ends = ends_of_scores(matrix, weight)
        scale = self._whole or ScoreScale(*ends)  # the scores of all columns are of one kind
        pairs = zip(matrix.T, signs.T, strict=True)
        fitted = [fit_column(calibrator, s, sides, weight, scale) for s, sides in pairs]
        maps = [UNDECIDED if one is None else one.map_ for one in fitted]
        counts = np.ones(len(codes)) if weight is None else weight
        totals = rows_per_column(signs, weight, calibrator)
        self.map_ = combine_column_maps(self.combine, code, maps, totals)
        self.code_, self.calibrators_, self.classes_ = code, fitted, classes
        self.score_range_ = ScoreRange.between(*ends)
        self._provenance = row_provenance(counts, codes, len(classes)) | score_column_facts(scores)
        return self


# --- Labels that do not exclude each other --------------------------------------------------------


@dataclass(eq=False, repr=False)
class MultiLabelCalibrator(ColumnsCalibrator):
    """One calibrator per label, where a row may have any number of labels.

    Parameters
    ----------
    calibrator : Calibrator or name, such as "isotonic"
        Of one score; cloned for each column.
    labels : names, default: those of the target's columns, else 0, 1, …
        What the columns are called.

    Attributes
    ----------
    map_ : Columns
        The fitted function of the score matrix, a value.
    labels_ : tuple
        What the columns are called.
    calibrators_ : list of fitted calibrators, one per column

    Notes
    -----
    Columns are calibrated one by one and never normalised: their probabilities need not sum to one.
    A label that is not known (NaN or None) is left out of its own column only, so rows may be
    partly labelled. A column needs at least one known label. Cost: one fit per column, O(n log n)
    each.

    Examples
    --------
    >>> import calibrant as cal, numpy as np
    >>> scores = np.array([[0.9, 0.2], [0.8, 0.7], [0.3, 0.6], [0.1, 0.1]] * 5)
    >>> Y = np.array([[1, 0], [0, 1], [0, np.nan], [0, 0]] * 5)
    >>> c = MultiLabelCalibrator(cal.Platt()).fit(scores, Y)
    >>> c.predict_proba([[0.9, 0.6]]).round(2).tolist()
    [[0.6, 0.73]]
    """

    calibrator: Calibrator | str | None = None
    _: KW_ONLY
    labels: Any = None

    def fit(self, scores: ArrayLike, Y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit one map per column.

        Parameters
        ----------
        scores : array-like of shape (n, k)
            A score for each label, high where the row has it.
        Y : array-like of shape (n, k)
            1 or True where the row has the label, 0 or False where not, NaN or None where unknown.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        calibrator = column_calibrator(self.calibrator)
        if Y is None:
            raise InputError(
                "this calibrator requires y to be passed, but the target y is None. Here it is Y, "
                "with a column for each label."
            )
        signs, column_names = read_targets(Y)
        names = self._names(column_names, signs.shape[1])
        matrix = read_column_scores(scores, signs.shape[1], names)
        check_lengths(scores=len(matrix), Y=len(signs))
        weight = read_weight(sample_weight, len(signs))
        counts = np.ones(len(signs)) if weight is None else weight
        unknown = np.flatnonzero(counts @ (signs != 0) == 0)
        if len(unknown):
            raise InputError(
                "every label must be known for some row of positive weight, but "
                f"{names[unknown[0]]!r} (column {unknown[0]}) is known for none. Drop the column."
            )
        pairs = zip(matrix.T, signs.T, strict=True)
        fits = [fit_column(calibrator, s, sides, weight) for s, sides in pairs]
        fitted = [one for one in fits if one is not None]  # none lacks rows
        self.map_ = Columns(tuple(one.map_ for one in fitted))
        self.calibrators_, self.labels_ = fitted, names
        self.score_range_ = ScoreRange.between(*ends_of_scores(matrix, weight))
        known = {"known_labels": int((signs != 0).sum()), **score_column_facts(scores)}
        self._provenance = row_provenance(counts) | known
        return self

    def _names(self, found: list[str] | None, k: int) -> tuple[Any, ...]:
        refuse_unordered(self.labels, "labels")
        names = found if self.labels is None else list(self.labels)
        if names is None:
            return tuple(range(k))
        if len(names) != k or len(set(names)) != k:
            raise ParameterError(
                f"labels must be {k} different names, one per column of the target, but {names!r} "
                "came."
            )
        return tuple(names)

    @property
    def _class_labels(self) -> tuple[Any, ...]:
        return self.labels_


def read_targets(Y: Any) -> tuple[NDArray[np.int8], list[str] | None]:
    """The targets as 1 (has the label), −1 (has not) and 0 (unknown), shape (n, k); and a frame's
    names of columns."""
    values, names = to_gappy_matrix(Y, "Y")
    if values.ndim != 2 or not values.size:
        raise InputError(
            "Y must have rows, and a column of 0 and 1 for each label, but its shape is "
            f"{values.shape}."
        )
    known = ~np.isnan(values)
    wrong = known & (values != 0.0) & (values != 1.0)
    if wrong.any():
        row, column = (int(v[0]) for v in np.nonzero(wrong))
        raise InputError(
            f"Y must hold 0, 1 and missing values (NaN), but {int(wrong.sum())} entries are others "
            f"(first at row {row}, column {column}: {values[row, column]:g})."
        )
    return np.where(known, np.where(values == 1.0, 1, -1), 0).astype(np.int8), names


# --- One calibrator for the confidence: is the most probable class the right one? -----------------


@dataclass(eq=False, repr=False)
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
    [[0.58, 0.21, 0.21]]
    """

    calibrator: Calibrator | str | None = None
    _: KW_ONLY
    temperature: bool = True
    scale: str = "auto"
    classes: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "temperature": (OneOf((True, False)),),
        "scale": (SCALES,),
    }

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        return read_matrix(scores, y, sample_weight, self.classes, on_device=True)

    def _fit(self, matrix: ScoreMatrix) -> TopLabel:
        binary = column_calibrator(BLS() if self.calibrator is None else self.calibrator)
        read = read_as(matrix, self.scale)
        factor = read.temperature() if self.temperature else 1.0
        before = TopLabel(Identity(), matrix.n_classes, read.input, factor)
        one = fit_column(binary, *_top_labels(matrix, before))
        assert one is not None  # a matrix has rows, and all of them count
        self.calibrator_, self.temperature_ = one, 1.0 / factor
        return replace(before, map=one.map_)


def _top_labels(
    matrix: ScoreMatrix, before: TopLabel
) -> tuple[Array, NDArray[np.int8], Array | None]:
    """For each row its largest probability, 1 or −1 for whether that class is right, and a weight.

    If m classes share the largest probability and one of them is right, the row becomes two: a
    right one of weight 1/m, and a wrong one of the rest.
    """
    largest, right = np.empty(len(matrix)), np.empty(len(matrix))
    start = 0
    for scores, codes, _ in matrix.blocks():
        rows = slice(start, start + len(codes))
        p = before.features(scores)
        ops = ops_of(p)
        top = ops.largest(p)
        largest[rows] = ops.host(top)
        right[rows] = ops.host(ops.own(p, codes) == top) / ops.host((p == top[:, None]).sum(1))
        start = rows.stop
    if not np.any((right > 0.0) & (right < 1.0)):
        return largest, np.where(right > 0.0, 1, -1).astype(np.int8), matrix.weight
    weight = np.ones(len(matrix)) if matrix.weight is None else matrix.weight
    signs = np.repeat(np.array([1, -1], dtype=np.int8), len(matrix))
    both = np.concatenate((right * weight, (1.0 - right) * weight))
    return np.tile(largest, 2), signs, both


# --- What is fitted to each column, and how columns are combined ----------------------------------


def combination_name(combine: str, code: Code) -> str:
    """The name of the rule that combines the columns of a code: ``combine``, or what "auto" stands
    for.

    "auto" is normalisation for one-vs-rest, and coupling for other codes.
    """
    matrix = code.matrix.astype(np.float64)
    if combine == "auto":
        return "normalize" if NEEDS["normalize"].fits(matrix) else "coupling"
    if combine in NEEDS and not NEEDS[combine].fits(matrix):
        raise ParameterError(
            f'combine="{combine}" must go with code="{NEEDS[combine].name}", but another code '
            'came. Use "coupling" or "least_squares".'
        )
    return combine


def combine_column_maps(combine: str, code: Code, maps: list[Map], totals: Array) -> Coded:
    """One map made of the maps of all columns. Coupling weighs each column by the rows that it was
    fitted to.

    A column without rows has no weight.
    """
    how = combination_name(combine, code)
    weights = None
    if how == "coupling" and np.ptp(totals) > 0:
        weights = totals
    elif how in ("least_squares", "pairwise") and not totals.all():
        weights = (totals > 0).astype(np.float64)
    return Coded(code.matrix.astype(np.float64), tuple(maps), how, weights)


def rows_per_column(signs: NDArray[Any], weight: Array | None, calibrator: Any) -> Array:
    """The number of rows that each column is fitted to. Weights are read as the calibrator reads
    them."""
    size = weight_in_rows(weight, getattr(calibrator, "weights", None) or "importance")
    counts = np.ones(len(signs)) if size is None else size
    return np.asarray(counts @ (signs != 0), dtype=np.float64)


def one_sided_map(signs: NDArray[Any], weight: Array | None, calibrator: Any) -> Map | None:
    """The constant map (n₊ + 1)/(n + 2) of a column without negatives or without positives; else
    None."""
    used = signs != 0
    weight = None if weight is None else weight[used]
    positive, negative = (
        float(rows_per_column(side[used], weight, calibrator)) for side in (signs > 0, signs < 0)
    )
    if positive > 0 and negative > 0:
        return None
    return Piecewise.constant((positive + 1.0) / (positive + negative + 2.0))


def column_calibrator(given: Any) -> Calibrator:
    """The calibrator of a column's scores, given as an instance or by name."""
    if given is None:
        raise ParameterError('calibrator must be given, such as Platt() or "isotonic".')
    calibrator = to_calibrator(given)
    if not isinstance(calibrator, Calibrator):
        raise ParameterError(
            "calibrator must be a Calibrator of one score, such as Platt() or Isotonic(), or its "
            f"name, but {calibrator!r} came."
        )
    for name in ("pos_label", "classes"):
        if (value := getattr(calibrator, name)) is not None:
            raise ParameterError(
                f"{name} of the calibrator must be None, since each column has its own two sides, "
                f"but {value!r} came."
            )
    return calibrator


def ends_of_scores(scores: NDArray[Any], weight: Array | None) -> tuple[float, float]:
    """The smallest and the largest score of the rows of positive weight."""
    used = scores if weight is None or weight.all() else scores[weight > 0]
    return float(used.min()), float(used.max())


def fit_column(
    calibrator: Calibrator,
    scores: Array,
    signs: NDArray[Any],
    weight: Array | None,
    scale: ScoreScale | None = None,
) -> Calibrator | None:
    """A calibrator fitted to a column's scores of the rows that count in it; None if there are no
    rows.

    ``scale`` is that of all columns' scores, if they are of one kind.
    """
    used = signs != 0
    if weight is not None:
        used &= weight > 0
    if not used.any():
        return None
    scores = np.asarray(scores, dtype=np.float64)
    one: Calibrator = clone(calibrator).set_params(classes=[False, True])
    scale = scale or ScoreScale(float(scores[used].min()), float(scores[used].max()))
    own = None if weight is None else weight[used]
    with one._part_of(scale):
        return one.fit(scores[used], signs[used] > 0, own)
