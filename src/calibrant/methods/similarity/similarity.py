"""Similarity-binning averaging: a bin of its own for every row, made of the rows most like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array, Flags, Index
from calibrant.data.attributes import MISSING, AttributeTable, Schema
from calibrant.data.columns import to_matrix
from calibrant.data.door import Limit, Number, OneOf, Rows, check_lengths
from calibrant.data.frozen import read_only
from calibrant.data.score_table import row_sizes
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import WEIGHTS, LocalCalibrator, ReadsFeatures
from calibrant.methods.similarity.neighbours import (
    METRICS,
    NEIGHBOUR_WEIGHTS,
    PAIRS,
    START_WEIGHT,
    TIE,
    NearestRows,
    Neighbours,
    distance_of_weight,
    search_points,
)
from calibrant.methods.uncalibrated import choose_by_gate, fit_score_map
from calibrant.rules.base import RowInputs

#: what ``kept_`` says where similar rows are used
NEIGHBOURS = "neighbours"


@dataclass(kw_only=True, eq=False, repr=False)
class SimilarityBinning(ReadsFeatures, LocalCalibrator):
    """The class frequencies among the k calibration rows most like a row, its score included.

    Other calibrators see a row's score and nothing else. This one (SBA) compares the row itself,
    so that rows of one score but of different kinds can get different probabilities. It helps where
    attributes say more than the model made of them, given some hundreds of calibration rows or
    more. Where the model has used its attributes well, or many of them are irrelevant, a calibrator
    of the score alone does better with the same rows. SBA is not monotone in the score.

    Parameters
    ----------
    k : int or "auto", default=10
        How many calibration rows (how much of their weight) make a bin. ``"auto"``: the k with the
        best leave-one-out Brier score.
    neighbour_weights : {"uniform", "distance"}, default="uniform"
        Whether neighbours count alike, or by 1/(d/√A + 0.001), A the number of attributes.
    attribute_weights : None, "mutual_info" or array, default=None
        None: all attributes count alike. ``"mutual_info"``: by what each says about the class. An
        array has weights ≥ 0: one per feature, beside which each score has weight 1; or one per
        feature and score column, and then only their ratios matter.
    metric : {"ibk", "manhattan"}, default="ibk"
        d = √(Σ w·diff²) as in WEKA's IBk, or d = Σ w·diff.
    smoothing : {"none", "ibk"}, default="none"
        ``"ibk"``: each class starts at 1/n, so that 0 and 1 are never returned.
    use_scores : bool, default=True
        Whether scores are attributes too. Without them this is plain k-nearest neighbours, the
        paper's reference "10-NN".
    nominal : list of names or positions, default=None
        Columns of numbers that are categories. A whole number is a position, unless columns are
        named by whole numbers.
    progress : bool, default=False
        Show a bar while neighbours are searched.
    gate : bool, default=True
        Whether neighbours are used only if they help. On rows held out (5 folds) their Brier score
        must be better than that of the scores, and than that of `BLS` (of several classes:
        `Temperature`), by more than two standard errors. Otherwise the scores, the curve of BLS or
        the temperature are kept. The paper's method is ``gate=False``.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    rule_ : Neighbours or Map
        The distinct calibration rows and the metric, a value; or the map of the scores that the
        gate keeps.
    kept_ : {"neighbours", "BLS", "temperature", "uncalibrated"}
        What `calibrate` uses; always ``"neighbours"`` without a gate.
    k_ : int
        The k given or chosen.
    k_losses_ : dict of int to float, or None
        With ``"auto"``: the leave-one-out Brier score, summed over classes, of every k tried.
    attribute_weights_ : ndarray
        The weight of each feature, then of each score column; their mean is 1.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Only if features came with names that are words.
    classes_ : ndarray of shape (c,)
    pos_label_ : label, or None with more than two classes

    Notes
    -----
    Differences of numbers are scaled by the range of the calibration rows: diff = |a − b| / range.
    It is 0 where the range is 0, and may exceed 1 for rows outside. Categories differ by 0 or 1. A
    missing number differs by 1 from another missing one, and by max(v, 1 − v) from a number that is
    v of the way from lowest to highest. A category that is missing, or was not seen in the
    calibration rows, differs by 1 from everything. The probabilities (or margins) of all classes
    are numeric attributes, so that the one score of two classes counts twice.

    Rows are taken in order of distance until their weights reach k. All rows tied with the last (to
    1e-12, relative) count too, so the order of rows never matters. Weights are in units of rows.
    Equal rows are kept once, with their weights. k may not exceed the sum of weights.

    Features are NumPy arrays, lists of rows, or frames (pandas, polars, Arrow). Words, booleans,
    categories and enums are nominal; NaN, None and null are missing. Dates are refused, since their
    zero and unit are yours to choose. Two frames are matched by column name, if the names of both
    are words or those of both are whole numbers. All else is matched by position.

    ``"mutual_info"`` is the plug-in mutual information of class and attribute with Miller and
    Madow's correction. Numbers are put into at most 10 bins of equal weight, and missing is a value
    of its own. ``k="auto"`` tries 10 and the powers of √2 up to 2√n: at least up to 10, at most up
    to 512, and below n. On ties it takes the larger k. A row that `CalibratedClassifier` scored
    several times is left out with all of its scores.

    Costs O(n·A·log n) to fit and O(n·A) per row to predict, by scikit-learn's neighbour search:
    brute force, or a k-d tree up to 7 columns. What it finds is measured again, so that results are
    exact. 10⁵ × 10⁵ rows of 20 attributes take about a minute of CPU time, and about two with
    missing values and categories. Many ties at the k-th distance, many hundreds of categories and
    Manhattan distances are slower. ``k="auto"`` predicts the calibration rows once, with larger k.
    Memory holds the calibration rows once more as numbers, and blocks of 2²¹ pairs of rows.

    References
    ----------
    .. [1] A. Bella, C. Ferri, J. Hernández-Orallo, M.J. Ramírez-Quintana, "Similarity-binning
       averaging: a generalisation of binning calibration", 2009,
       doi:10.1007/978-3-642-04394-9_42.
    .. [2] D. Aha, D. Kibler, M. Albert, "Instance-based learning algorithms", 1991,
       doi:10.1007/BF00153759.
    .. [3] G. Miller, "Note on the bias of information estimates", 1955.

    Examples
    --------
    The model says 0.5 of every row; the attribute knows better.

    >>> scores, y = [0.5] * 6, [0, 0, 0, 1, 1, 1]
    >>> colour = [["red"], ["red"], ["red"], ["red"], ["blue"], ["blue"]]
    >>> c = SimilarityBinning(k=2, gate=False).fit(scores, y, features=colour)
    >>> c.calibrate([0.5, 0.5], features=[["red"], ["blue"]]).tolist()
    [0.25, 1.0]
    """

    k: int | str = 10
    neighbour_weights: str = "uniform"
    attribute_weights: Any = None
    metric: str = "ibk"
    smoothing: str = "none"
    use_scores: bool = True
    nominal: Any = None
    progress: bool = False
    gate: bool = True
    weights: str = "importance"
    pos_label: Any = None
    classes: Any = None

    multiclass: ClassVar[bool] = True
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "k": (Number(1, whole=True), OneOf(("auto",))),
        "neighbour_weights": (OneOf(tuple(NEIGHBOUR_WEIGHTS)),),
        "weights": (WEIGHTS,),
        "metric": (OneOf(tuple(METRICS)),),
        "smoothing": (OneOf(tuple(START_WEIGHT)),),
        "use_scores": (OneOf((True, False)),),
        "progress": (OneOf((True, False)),),
        "gate": (OneOf((True, False)),),
    }

    def fit(
        self, scores: Any, y: Any = None, *, features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Keep the calibration rows.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2), or (n, c) for c classes
            Scores of any kind, or a predict_proba.
        y : array-like of shape (n,)
            Labels.
        features : array, list of rows, or frame, of n rows
            The attributes that rows are compared by.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        return self.fit_rows(scores, y, features, sample_weight)

    def fit_rows(
        self,
        scores: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        groups: Any = None,
        inputs: RowInputs | None = None,
    ) -> Self:
        """Fit on a model's scores of the rows X, which are the features.

        ``groups`` says which of them are one row that was scored several times: ``k="auto"``
        leaves these out together.
        """
        rows = self._read(scores, y, sample_weight)
        table, schema = self._read_features(X, rows, self.nominal)
        if not self.use_scores and not len(schema):
            raise InputError("features must have columns where scores are not used, but none came.")
        points = search_points(
            schema, schema.matrix(table), rows.scores if self.use_scores else None
        )
        gone, plain = np.isnan(points), points.shape[1] - int(schema.nominal.sum())
        category = np.where(gone, MISSING, points)[:, plain:].astype(np.int32)
        columns = np.where(gone, 0.0, points)[:, :plain], gone[:, :plain], category
        size = row_sizes(rows, self.weights)
        weight, times = self._attribute_weights(schema, columns, rows, size)
        cells, cell, counts = _distinct_rows(columns, rows, size)
        owner, n = None, len(rows.codes)
        if groups is not None:
            check_lengths(scores=len(rows.kept), groups=len(groups))
            owner = np.unique(np.asarray(groups)[rows.kept], return_inverse=True)[1]
            n = int(owner.max()) + 1
        rule = self._rule(schema, cells, counts, weight * times, n)
        left_out = LeaveOneOut.of_counts(rule)
        if owner is not None and n < len(owner):
            left_out = LeaveOneOut.of_rows(rule, cell, rows.codes, size, owner)
        rule, losses = self._choose_k(left_out, n)
        self.kept_ = self._choose_kept(rows, table, groups)
        kept = rule if self.kept_ == NEIGHBOURS else fit_score_map(self.kept_, rows, self.weights)
        self._keep(kept, rows)
        self.k_, self.k_losses_ = rule.k, losses
        self.attribute_weights_ = weight
        self._keep_names(schema)
        return self

    def _choose_kept(self, rows: Rows, table: AttributeTable, groups: Any) -> str:
        """The name of what is kept: neighbours, or a map of the scores that the gate prefers."""
        if not self.gate:
            return NEIGHBOURS
        size = row_sizes(rows, self.weights)

        def fit(train: Index) -> Callable[[Index], Array]:
            codes = list(range(len(rows.classes)))
            one = clone(self).set_params(gate=False, pos_label=None, classes=codes)
            if not isinstance(self.k, str):  # a fold's rest may have fewer rows than k
                one.set_params(k=max(1, min(int(self.k), int(size[train].sum()))))
            one.fit(
                rows.scores[train],
                rows.codes[train],
                features=table.take(train),
                sample_weight=rows.take(train).weight,
            )

            def probabilities_of(test: Index) -> Array:
                asked: dict[str, Any] = {"features": table.take(test), "on_range": "allow"}
                p: Array = one.predict_proba(rows.scores[test], **asked)
                return p if len(codes) > 2 else p[:, 1]

            return probabilities_of

        return choose_by_gate(rows, self.weights, NEIGHBOURS, fit, groups)

    def _attribute_weights(
        self, schema: Schema, columns: Columns, rows: Rows, size: Array
    ) -> tuple[Array, Array]:
        """Attribute weights of mean 1 (features, then scores), and for each column how often it
        counts."""
        scores = columns[0].shape[1] + columns[2].shape[1] - len(schema)
        times = np.ones(len(schema) + scores)
        if len(rows.classes) == 2:
            times[len(schema) :] = 2.0
        if self.attribute_weights is None:
            weight = np.ones(len(times))
        elif isinstance(self.attribute_weights, str):
            if self.attribute_weights != "mutual_info":
                raise ParameterError(
                    f"attribute_weights of {type(self).__name__} must be None, 'mutual_info' or "
                    f"an array of weights, but {self.attribute_weights!r} came."
                )
            numeric, absent, codes = columns
            nominal = np.append(schema.nominal, np.zeros(scores, dtype=bool))
            levels = [column.astype(np.intp) + 1 for column in codes.T]
            bins = [_equal_bins(*pair, size) for pair in zip(numeric.T, absent.T, strict=True)]
            weight = np.empty(len(times))
            weight[nominal] = [mutual_information(one, rows.codes, size) for one in levels]
            weight[~nominal] = [mutual_information(one, rows.codes, size) for one in bins]
            weight = weight if weight.any() else np.ones(len(times))
        else:
            weight = read_attribute_weights(self.attribute_weights, len(schema), scores)
        weight = weight / weight.max()
        return weight * (times.sum() / (weight @ times)), times

    def _rule(
        self, schema: Schema, cells: Columns, counts: Array, weight: Array, n: int
    ) -> Neighbours:
        """The rule made of distinct rows, for which ``n`` rows were given."""
        total = float(counts.sum())
        k = 1 if isinstance(self.k, str) else int(self.k)
        if k > total * (1 + TIE):
            raise InputError(
                f"k must be at most the number of calibration rows, but k is {k} and the {n} rows "
                f"with their weights count as {total:g}. Use a smaller k or more rows."
            )
        nominal = np.append(schema.nominal, np.zeros(len(weight) - len(schema), dtype=bool))
        numeric, absent, codes = map(read_only, cells)
        return Neighbours(
            schema=schema,
            numeric=numeric,
            absent=absent,
            codes=codes,
            counts=read_only(counts),
            numeric_weight=weight[~nominal],
            nominal_weight=weight[nominal],
            k=k,
            metric=self.metric,
            weights=self.neighbour_weights,
            smoothing=self.smoothing,
        )

    def _choose_k(
        self, left_out: LeaveOneOut, n: int
    ) -> tuple[Neighbours, dict[int, float] | None]:
        """The rule with its k, and the losses if it was chosen."""
        rule = left_out.rule
        if self.k != "auto":
            return rule, None
        total = float(rule.counts.sum())
        ks = ks_to_try(total)
        if len(ks) < 2 and n > 2:
            raise InputError(
                f'k="auto" needs at least 3 rows to choose from, but the {n} rows with their '
                f"weights count as {total:g}. Give k as a number."
            )
        losses = left_out.losses(ks, progress=self.progress)
        least = min(losses.values(), default=0.0)
        best = (k for k, loss in losses.items() if loss <= least * (1 + TIE))
        return replace(rule, k=max(best, default=1)), losses  # the largest of those that tie


#: the columns of rows: numbers (0 where absent), which of them are absent, and category numbers
Columns = tuple[Array, Flags, NDArray[np.int32]]


def _distinct_rows(columns: Columns, rows: Rows, size: Array) -> tuple[Columns, Index, Array]:
    """The distinct rows in order, for each row the number of its distinct row, and the weight of
    each class."""
    keys = [column for part in columns for column in part.T]
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for key in keys:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    cell = np.empty(len(order), dtype=np.intp)
    cell[order] = np.cumsum(new) - 1
    counts = np.zeros((int(new.sum()), len(rows.classes)))
    np.add.at(counts, (cell, rows.codes), size)
    numeric, absent, codes = columns
    first = order[new]
    return (numeric[first], absent[first], codes[first]), cell, counts


# --- How much an attribute says about the class: mutual information, and weights made of it -------


#: numeric attributes are cut into at most this many bins of equal weight
BINS = 10


def read_attribute_weights(weights: Any, features: int, scores: int) -> Array:
    """One weight per feature (scores get 1), or per feature and score column, checked."""
    array = to_matrix(weights, "attribute_weights")
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise InputError(
            "attribute_weights must be a list of numbers, one per feature, but "
            f"{array.dtype} of shape {array.shape} came."
        )
    w = array.astype(np.float64)
    if not np.isfinite(w).all() or (w < 0).any():
        raise InputError("attribute_weights must be finite and at least 0, but others came.")
    if len(w) == features:
        w = np.append(w, np.ones(scores))
    if len(w) != features + scores:
        more = f" or {features + scores} (with the scores)" if scores else ""
        raise InputError(
            f"attribute_weights must hold {features} weights, one per feature,{more} but "
            f"{len(w)} came."
        )
    if not w.any():
        raise InputError("attribute_weights must not all be 0: all rows would be equally near.")
    return w


def mutual_information(levels: Index, y: Index, weight: Array) -> float:
    """I = H(x) + H(y) − H(x, y) in nats, each with Miller and Madow's correction; at least 0.

    The correction adds (number of values that occur − 1) / 2n to each entropy, where n is the total
    weight. Without it, a column that says nothing would seem to say more the more values it has.
    """
    k = int(y.max()) + 1
    joint = np.bincount(levels * k + y, weights=weight, minlength=(int(levels.max()) + 1) * k)
    joint = joint.reshape(-1, k) / weight.sum()
    parts = (joint.sum(axis=1), joint.sum(axis=0), joint.ravel())
    entropies = [-float(p[p > 0] @ np.log(p[p > 0])) for p in parts]
    occurring = [int((p > 0).sum()) - 1 for p in parts]
    plug_in = entropies[0] + entropies[1] - entropies[2]
    correction = (occurring[0] + occurring[1] - occurring[2]) / (2 * float(weight.sum()))
    return max(0.0, plug_in + correction)


def _equal_bins(values: Array, absent: Flags, weight: Array) -> Index:
    """Bins of equal weight that never split equal values, counted from 1; 0 is absent."""
    result = np.zeros(len(values), dtype=np.intp)
    if absent.all():
        return result
    present = ~absent
    distinct, inverse = np.unique(values[present], return_inverse=True)
    mass = np.cumsum(np.bincount(inverse, weights=weight[present]))
    ends = np.searchsorted(mass, mass[-1] * np.arange(1, BINS) / BINS * (1 - 1e-12))
    place = np.searchsorted(np.unique(ends), np.arange(len(distinct)))
    result[present] = place[inverse] + 1
    return result


# --- How many neighbours to take: each k of a grid is judged by leaving out one row at a time -----


#: the largest k that is tried
LARGEST = 512
#: the paper's k, which is always tried
USUAL = 10


def ks_to_try(total: float) -> list[int]:
    """The k to try, for a total weight n: 10, and powers of √2.

    They go up to 2√n (or 10, if that is more), but not beyond 512, and stay below n.

    >>> ks_to_try(200.0)
    [1, 2, 3, 4, 6, 8, 10, 11, 16, 23]
    """
    most = min(max(2.0 * np.sqrt(total), USUAL), LARGEST, np.floor(total * (1 + TIE)) - 1)
    powers = {int(np.floor(2 ** (half / 2) + 0.5)) for half in range(20)}
    return sorted(k for k in powers | {USUAL} if k <= most)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The Brier score of the neighbours rule for each k, when one row at a time is left out.

    One unit of a row's weight is left out at a time (all of it if it is less), as if whole weights
    were repeated rows. Ranges and attribute weights stay those of all rows.

    The weight of the distinct rows is divided into shares, in the order of these rows. Each share
    has a class (``code``), a weight and an owner. All shares of an owner are left out together: a
    row that was scored several times owns shares of several distinct rows.
    """

    rule: Neighbours
    cell: Index
    code: Index
    weight: Array
    owner: Index

    @classmethod
    def of_counts(cls, rule: Neighbours) -> Self:
        """One share for each class of each distinct row; each share has its own owner."""
        cell, code = np.nonzero(rule.counts)
        return cls(rule, cell, code, rule.counts[cell, code], np.arange(len(cell)))

    @classmethod
    def of_rows(
        cls, rule: Neighbours, cell: Index, code: Index, weight: Array, owner: Index
    ) -> Self:
        """One share for each row, which is the distinct row ``cell``."""
        order = np.argsort(cell, kind="stable")
        return cls(rule, cell[order], code[order], weight[order], owner[order])

    def losses(self, ks: list[int], *, progress: bool) -> dict[int, float]:
        """The Brier score (summed over classes) of each k, by one search for all of them."""
        if not ks:
            return {}
        rule, total = self.rule, np.zeros(len(ks))
        most = int(np.bincount(self.owner).max())  # shares that an owner has
        for candidates in rule.search.find(rule.cells, max(ks) + 1.0, progress=progress):
            place, held = _places_of_values(self.cell, candidates.rows)
            height = max(1, PAIRS // (candidates.near.shape[1] * most))
            for start in range(0, len(held), height):
                some = slice(start, start + height)
                total += self._losses(candidates, place[some], held[some], ks)
        return dict(zip(ks, (total / rule.counts.sum()).tolist(), strict=True))

    @cached_property
    def _total(self) -> Array:
        """The weight of all shares that the owner of each share has."""
        return np.bincount(self.owner, weights=self.weight).astype(np.float64)[self.owner]

    @cached_property
    def _by_owner(self) -> Index:
        return np.argsort(self.owner, kind="stable")

    def _losses(self, candidates: NearestRows, rows: Index, held: Index, ks: list[int]) -> Array:
        """The sum of w·Brier over the shares ``held``, for each k. ``rows`` are their positions in
        ``candidates``."""
        rule, index, near = self.rule, candidates.index[rows], candidates.near[rows]
        # all shares of the owners of the shares held out
        which, run = _places_of_values(self.owner[self._by_owner], self.owner[held])
        sibling = self._by_owner[run]
        own = index[which] == self.cell[sibling][:, None]
        which, sibling, column = (a[own.any(axis=1)] for a in (which, sibling, own.argmax(axis=1)))
        out = self.weight[sibling] / np.maximum(self._total[sibling], 1.0)
        weight = rule.search.weight[index]
        np.subtract.at(weight, (which, column), out)
        mass = np.cumsum(np.maximum(weight, 0.0), axis=1)
        ends = [(near <= distance_of_weight(near, mass, k)[:, None]).sum(axis=1) - 1 for k in ks]
        last = np.column_stack(ends)
        pull = np.broadcast_to(rule.weight_by_distance(near), near.shape)
        sums = np.empty((*last.shape, rule.n_classes))
        for j, counts in enumerate(rule.counts.T):
            weight = counts[index]
            mine = self.code[sibling] == j
            np.subtract.at(weight, (which[mine], column[mine]), out[mine])
            cumulated = np.cumsum(pull * np.maximum(weight, 0.0), axis=1)
            sums[:, :, j] = np.take_along_axis(cumulated, last, axis=1)
        # what each class starts with, for the weight that is left
        total, unit = rule.counts.sum(), np.minimum(self._total[held], 1.0)
        sums += (rule.start * total / (total - unit))[:, None, None]
        sums /= sums.sum(axis=2, keepdims=True)
        sums[np.arange(len(held)), :, self.code[held]] -= 1.0
        return np.asarray(self.weight[held] @ np.square(sums).sum(axis=2))


def _places_of_values(ordered: Index, wanted: Index) -> tuple[Index, Index]:
    """All places of wanted values in an ordered array, as pairs: the index in ``wanted``, and the
    place."""
    first = np.searchsorted(ordered, wanted, side="left")
    many = np.searchsorted(ordered, wanted, side="right") - first
    place = np.repeat(np.arange(len(wanted)), many)
    before = np.cumsum(many) - many
    return place, np.arange(len(place)) + (first - before)[place]
