"""Folds of tables, rows and matrices: the part to learn from, and the part held out, of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import plain, to_column
from calibrant.data.documents import brief
from calibrant.data.door import Rows, check_lengths
from calibrant.data.frozen import read_only
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import CellColumns, ScoreTable
from calibrant.errors import CalibrationWarning, InputError, ParameterError, caller_level
from calibrant.fitting.model_scores import ModelFits, score_method

#: the rows to learn from, and the rows held out
Pair = tuple[Index, Index]

#: the number of folds that None stands for, as in scikit-learn
FOLDS = 5


def fold_pairs(fold: Index, k: int) -> list[Pair]:
    """The rows to learn from and the rows held out, for each of k folds.

    ``fold`` is the fold of each row; rows of fold k and above are left out.
    """
    return [(np.flatnonzero((fold != f) & (fold < k)), np.flatnonzero(fold == f)) for f in range(k)]


def deal_in_turn(order: Index, k: int) -> Index:
    """The fold of each row, if rows are dealt to k folds one by one in this order.

    >>> deal_in_turn(np.array([2, 0, 1]), 2).tolist()
    [1, 0, 0]
    """
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = np.arange(len(order)) % k
    return fold


# --- Tables dealt into folds ----------------------------------------------------------------------


#: the rows of a class in a cell are dealt one by one up to this number, beyond it by a single draw
MANY = 50
SMALLEST = np.finfo(np.float64).tiny


class TableFolds:
    """A table dealt into k folds at random, class by class.

    Rows are dealt whole, so that a row of weight 100 is in one fold, and independently, so that a
    fold's frequency at a score says nothing about the other folds. A table has no rows, but the
    number of rows of a cell follows from its weights: (Σw)²/Σw², which is exact if all have the
    same weight. So a weight of 2 and two rows of weight 1 are dealt differently, as they must be.
    With ``repetitions`` whole weights are taken as numbers of rows, for methods that promise to
    treat them so; a row of weight 2 may then be on both sides of a split. Where a cell holds less
    than one row of a class, its rows have soft labels: they are dealt with both their halves.

    >>> t = ScoreTable.from_counts([0.1, 0.5], [30, 10], [0, 20])
    >>> deal = TableFolds(t, 2)
    >>> [float(deal.held(fold).negative.sum()) for fold in range(2)]
    [20.0, 20.0]
    """

    def __init__(
        self, table: ScoreTable, k: int, *, repetitions: bool = False, seed: int = 0
    ) -> None:
        if k < 2:
            raise ParameterError(f"the number of folds must be at least 2, but {k} came.")
        self.table, self.k = table, k
        rng = np.random.default_rng(seed)
        weights = (table.negative, table.positive)
        squares = (table.negative_sq, table.positive_sq)
        self._whole = table.is_whole
        if repetitions and self._whole:
            squares = weights
        soft = soft_cells(weights, squares)
        self._classes = [
            _deal_rows(np.where(soft, 0.0, weight), square, k, rng)
            for weight, square in zip(weights, squares, strict=True)
        ]
        self._soft = None
        if soft.any():
            rows = np.where(soft, table.weight, 0.0)
            self._soft = _deal_rows(rows, squares[0] + squares[1], k, rng)

    def parts(self) -> Iterator[tuple[ScoreTable, CellColumns]]:
        """The table to learn from, and what is held out of each cell, fold after fold."""
        for fold in range(self.k):
            held = self.held(fold)
            left = self.table.columns.minus(held)
            n0, n1, q0, q1 = map(read_only, left.take(left.filled))
            rest = ScoreTable(read_only(self.table.scores[left.filled]), n0, n1, q0, q1)
            yield rest.part_of(self.table.scale), held

    def held(self, fold: int) -> CellColumns:
        """What a fold holds out of each cell of the table."""
        zero, one = (share_held(fold) for share_held in self._classes)
        if self._soft is not None:
            both = self._soft(fold)
            zero, one = zero + both, one + both
        n0, n1, q0, q1 = self.table.columns
        held = CellColumns(n0 * zero, n1 * one, q0 * zero, q1 * one)
        if not self._whole:
            return held
        # whole numbers, without the rounding errors of shares
        near = [np.rint(column) for column in held]
        pairs = zip(held, near, strict=True)
        return CellColumns(*(np.where(np.abs(c - r) < 1e-9 * (1.0 + r), r, c) for c, r in pairs))


def soft_cells(weights: tuple[Array, Array], squares: tuple[Array, Array]) -> Flags:
    """Flags of the cells whose rows have soft labels: cells with both classes, of which one has
    less than a whole row."""
    pairs = zip(weights, squares, strict=True)
    less = [(q > SMALLEST) & (n * n < q * (1.0 - 1e-9)) for n, q in pairs]
    return np.asarray((weights[0] > 0.0) & (weights[1] > 0.0) & (less[0] | less[1]))


def _deal_rows(
    weight: Array, square: Array, k: int, rng: np.random.Generator
) -> Callable[[int], Array]:
    """Rows of one class (or rows with soft labels) of a table, dealt into k folds.

    Returns a function: the share of each cell's rows that a fold holds out.
    """
    present = weight > 0
    rows = np.zeros(len(weight), dtype=np.int64)
    held = np.maximum(square[present], SMALLEST)  # 1e-200² is 0 and counts as one row
    known = np.rint(weight[present] ** 2 / held)
    rows[present] = np.clip(known, 1.0, 2.0**53)  # beyond, integers end and shares are the same
    many = np.flatnonzero(rows > MANY)
    drawn = rng.multinomial(rows[many], np.full(k, 1.0 / k))
    cell = np.repeat(np.arange(len(rows), dtype=np.int32), np.where(rows > MANY, 0, rows))
    dealt = (np.arange(len(cell)) % k).astype(np.min_scalar_type(k - 1))
    rng.shuffle(dealt)

    def share_held(fold: int) -> Array:
        count = np.bincount(cell[dealt == fold], minlength=len(rows))
        count[many] = drawn[:, fold]
        return np.asarray(count / np.maximum(rows, 1))

    return share_held


def is_fold_count(cv: Any) -> bool:
    """Whether ``cv`` is a number of folds (or None). Then a table is enough, without its rows."""
    return cv is None or isinstance(cv, Integral)


def limit_folds(wanted: int, rarest: float) -> int:
    """The number of folds wanted, but at most one for each row of the rarer class; 0 if that is 1.

    >>> limit_folds(5, 3.0), limit_folds(5, 1.0)
    (3, 0)
    """
    folds = min(wanted, int(rarest + 1e-6))
    return folds if folds >= 2 else 0


# --- Rows to learn from and rows held out, for every kind of cv -----------------------------------


#: the kinds of cv that pick rows by index
SPLITTING = ("folds", "fraction")
#: what to do where a fold lacks a class
LESS_RARE = "Use stratified or fewer folds, or drop a class this rare."


def split_rows_with_weight(
    cv: Any, rows: Rows, groups: Any, random_state: Any
) -> tuple[list[Pair], Index | None]:
    """Splits of the rows of positive weight, for any ``cv``, and the cluster of each row.

    Rows of one cluster are not independent. They are the rows of a group, or one row that is held
    out several times. The clusters are None if all rows are independent. ``rows`` are those of
    positive weight alone (see `Rows.without_weightless`). ``groups``, and ``cv`` if it is a list of
    splits, are of all rows. Splits without rows to learn from, or to judge on, are left out.
    """
    codes, present, cluster = rows.codes.astype(np.intp), rows.kept, None
    X = rows.scores if rows.X is None else rows.X
    data = Rows.unscored(X, codes, rows.weight, rows.classes)
    if groups is not None:
        column = to_column(groups, "groups")
        check_lengths(scores=len(present), groups=len(column))
        groups = column[present]
        cluster = np.unique(groups, return_inverse=True)[1].reshape(-1)
    splits = split_rows(
        _splits_without_weightless(cv, present), data, groups, random_state, complete=False
    )
    pairs = [(train, test) for train, test in splits if len(train) and len(test)]
    if not pairs:
        raise InputError(
            "cv must give at least one split with rows to learn from and rows to judge on, but "
            "none that came has both (rows of weight zero are as if absent). Use other splits."
        )
    if cluster is None and np.bincount(np.concatenate([test for _, test in pairs])).max() > 1:
        cluster = np.arange(len(codes))
    return pairs, cluster


def split_rows(
    cv: Any, rows: Rows, groups: Any, random_state: Any, *, complete: bool = True
) -> list[Any]:
    """The rows to train on and the rows to score in each split, for any ``cv``; None for all rows.

    A number of folds means stratified folds in the order of rows, as in scikit-learn, and with
    groups stratified folds that keep each group together. Rows with soft labels are dealt in the
    order of these. With ``complete`` every class must have as many rows as there are folds.
    """
    kind = cv_kind(cv)
    if kind not in SPLITTING:
        return [(None, None)]
    if groups is not None:
        groups = to_column(groups, "groups")
        check_lengths(groups=len(groups), y=len(rows.codes))
    if kind == "fraction":
        return _hold_out_fraction(float(cv), rows, groups, random_state, complete)
    cv = FOLDS if cv is None else cv
    if isinstance(cv, Integral):
        from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold

        k, strict = int(cv), complete and rows.share is None
        if complete:
            _check_rows_for_folds(k, rows)
        if groups is not None:
            _check_groups_for_folds(k, groups)
            by_class = strict or _rarest_label_count(rows) >= k
            cv = (StratifiedGroupKFold if by_class else GroupKFold)(k)
        else:
            cv = StratifiedKFold(k) if strict else _deal_by_label(k, rows)
    splits = cv.split(rows.X, rows.labels, groups) if hasattr(cv, "split") else cv
    pairs = _read_splits(splits, len(rows.codes))
    if not pairs:
        raise InputError("cv must give at least one split, but it gave none. Was it used up?")
    return pairs


def cv_kind(cv: Any, owner: str = "CalibratedClassifier") -> str:
    """The kind of a value of cv: "prefit", "train", "fraction" or "folds"."""
    kind = _kind_or_none(cv)
    if kind is None:
        raise ParameterError(
            f"cv of {owner} must be a number of folds of at least 2 (None: {FOLDS}), a fraction "
            'between 0 and 1 to hold out, "prefit", "train", a splitter or an iterable of splits, '
            f"but {cv!r} came."
        )
    return kind


def _kind_or_none(cv: Any) -> str | None:
    """The kind of a value of cv, see `cv_kind`; None for anything else."""
    if isinstance(cv, str):
        return cv if cv in ("prefit", "train") else None
    if isinstance(cv, (bool, np.bool_)):
        return None
    if isinstance(cv, Integral):
        return "folds" if int(cv) >= 2 else None
    if isinstance(cv, Real):
        return "fraction" if 0.0 < float(cv) < 1.0 else None
    splits = cv is None or hasattr(cv, "split") or isinstance(cv, Iterable)
    return "folds" if splits else None


class CvLimit:
    """The limit of a parameter ``cv``: a number of folds, a fraction, a splitter or splits."""

    def allows(self, value: Any) -> bool:
        """Whether the value is such a cv."""
        empty = isinstance(value, (list, tuple)) and not value
        return _kind_or_none(value) in SPLITTING and not empty

    def __str__(self) -> str:
        return (
            "a number of folds of at least 2, a fraction between 0 and 1 to hold out, a splitter "
            "or an iterable of splits"
        )


def _deal_by_label(k: int, rows: Rows) -> list[Pair]:
    """k folds, to which the rows of each class are dealt one after the other.

    A class may have fewer than k rows. Rows with soft labels are dealt in the order of their
    labels.
    """
    n = len(rows.codes)
    if n < k:
        raise InputError(f"{k} folds need at least {k} rows, but {n} came. Use fewer folds.")
    labels = rows.codes if rows.share is None else rows.share
    return fold_pairs(deal_in_turn(np.argsort(labels, kind="stable"), k), k)


def deal_soft_labels(rows: Rows, k: int, seed: int) -> list[Pair]:
    """k folds, to which rows with soft labels are dealt at random.

    Rows with labels of ½ and more are dealt separately from the others. The folds do not depend on
    the order of the rows.
    """
    keys = (rows.scores, rows.share, rows.weight, rows.positive)  # the last one goes first
    order = np.lexsort([key for key in keys if key is not None])
    fold = np.empty(len(order), dtype=np.intp)
    rng = np.random.default_rng(seed)
    low = int(np.count_nonzero(~rows.positive))
    for some in (order[:low], order[low:]):
        fold[some] = rng.permutation(np.arange(len(some)) % k)
    return fold_pairs(fold, k)


def _hold_out_fraction(
    fraction: float, rows: Rows, groups: NDArray[Any] | None, random_state: Any, complete: bool
) -> list[Pair]:
    """One split that holds out a fraction of the rows of each class, drawn at random.

    Groups are kept together; the fraction is then the nearest 1/k or 1 − 1/k. If the split need
    not be complete and a class is too small to be split, rows or groups are drawn whatever their
    class is.
    """
    from sklearn import model_selection as ms

    nothing = np.zeros(len(rows.codes))
    options = {"test_size": fraction, "random_state": random_state}
    k = 2 if groups is None else max(2, round(1.0 / min(fraction, 1.0 - fraction)))
    if (not complete or rows.share is not None) and _rarest_label_count(rows) < k:
        free = (ms.ShuffleSplit if groups is None else ms.GroupShuffleSplit)(1, **options)
        return list(free.split(nothing, groups=groups))
    if groups is None:
        try:
            return list(ms.StratifiedShuffleSplit(1, **options).split(nothing, rows.codes))
        except ValueError as wrong:
            raise InputError(
                f"cv={fraction:g} cannot hold out rows of each class: {wrong}"
            ) from wrong
    _check_rows_for_folds(k, rows)
    _check_groups_for_folds(k, groups)
    folds = ms.StratifiedGroupKFold(k, shuffle=True, random_state=random_state)
    train, test = next(iter(folds.split(nothing, rows.codes, groups)))
    return [(train, test) if fraction <= 0.5 else (test, train)]


def _splits_without_weightless(cv: Any, present: Flags) -> Any:
    """Splits with the rows of weight zero removed and the others renumbered; any other ``cv``
    unchanged."""
    if present.all() or cv is None or isinstance(cv, Real) or hasattr(cv, "split"):
        return cv
    position = np.cumsum(present) - 1
    pairs = _read_splits(cv, len(present))
    return [tuple(position[rows[present[rows]]] for rows in pair) for pair in pairs]


def _read_splits(splits: Iterable[Any], n: int) -> list[Pair]:
    """Splits that the user gave, by numbers of rows or by flags, as numbers of n rows."""
    every, pairs = np.arange(n), []
    for number, split in enumerate(splits, start=1):
        try:
            train, test = map(np.asarray, split)
        except (TypeError, ValueError) as wrong:
            raise InputError(
                "cv must give splits, each of them a pair of rows to learn from and rows to hold "
                f"out, but split {number} is {brief(split)}."
            ) from wrong
        for rows in (train, test):
            if not _are_valid_rows(rows, n):
                raise InputError(
                    f"cv must give the numbers of rows, from 0 to {n - 1}, or True or False for "
                    f"each of the {n} rows, but split {number} holds {brief(rows.tolist())}. Make "
                    "the splits of the rows that are fitted."
                )
        pairs.append((every[train if train.size else []], every[test if test.size else []]))
    return pairs


def _are_valid_rows(given: NDArray[Any], n: int) -> bool:
    """Whether these are numbers of n rows, or flags of them."""
    if given.ndim != 1 or given.dtype.kind == "b":
        return given.dtype.kind == "b" and given.shape == (n,)
    if not given.size:
        return True
    return given.dtype.kind in "iu" and bool(given.min() >= -n and given.max() < n)


def _rarest_label_count(rows: Rows) -> int:
    """The number of rows of the rarest class, by which stratified folds are limited."""
    soft = rows.share is not None
    counts = np.bincount(rows.codes, minlength=2) if soft else rows.class_counts()
    return int(counts.min())


def _check_rows_for_folds(k: int, rows: Rows) -> None:
    """Refuse more folds than a class has rows."""
    counts = rows.class_counts()
    rarest = int(np.argmin(counts))
    if counts[rarest] < k:
        raise InputError(
            f"{k} folds need at least {k} rows of each class, but class "
            f"{plain(rows.classes[rarest])!r} has {counts[rarest]}. Use fewer folds, or "
            'cv="train".'
        )


def _check_groups_for_folds(k: int, groups: NDArray[Any]) -> None:
    """Refuse more folds than there are groups."""
    if (count := len(np.unique(groups))) < k:
        raise InputError(f"{k} folds need at least {k} groups, but {count} came. Use fewer folds.")


def check_splits(pairs: list[Pair], rows: Rows, fits: ModelFits, *, ensemble: bool) -> None:
    """Refuse splits without rows to score, and splits that train on fewer than two classes. With
    ``ensemble`` also folds with rows of one class only, since a calibrator is fitted to each.

    Warn of folds that train without one of several classes: a model with predict_proba then gives
    it probability 0. Other models are refused once they are fitted.
    """
    lacking = []
    for number, (train, test) in enumerate(pairs, start=1):
        if not len(test):
            raise InputError(f"every fold must hold rows to score, but fold {number} holds none.")
        missing = rows.class_counts(train) == 0
        first = plain(rows.classes[int(np.argmax(missing))])
        lacks = f"the training rows of fold {number} of {len(pairs)} lack {first!r}"
        if missing.sum() > len(missing) - 2:
            raise InputError(
                f"every fold must train on two classes or more, but {lacks}. {LESS_RARE}"
            )
        lacking += [lacks] * int(missing.any())
    if lacking and score_method(fits.estimator, fits.method) == "predict_proba":
        for lacks in lacking:
            warnings.warn(
                f"{lacks}, so that its model gives that class a probability of 0. {LESS_RARE}",
                CalibrationWarning,
                stacklevel=caller_level(),
            )
    for number, (_, test) in enumerate(pairs, start=1):
        if ensemble and (rows.class_counts(test) > 0).sum() < 2:
            raise InputError(
                f"ensemble=True fits a calibrator to each fold, but fold {number} of {len(pairs)} "
                f"has {len(test)} row{'s' if len(test) > 1 else ''} of one class to fit it to. Use "
                "fewer or stratified folds, or ensemble=False, which pools the folds. As all "
                "classes should be present in test splits, LeaveOneOut cannot be used."
            )


# --- Rows of several classes, sorted by their scores and dealt in turn ----------------------------


#: up to so many classes, a calibrator may be fitted to each of them
FEW_CLASSES = 30
#: many classes: folds are made of at most so many scores; of more, a single part is held out
FOLDED_NUMBERS = 1 << 20
#: many classes: that part holds about so many scores at most, but no fewer rows than the next
HELD_NUMBERS, LEAST_HELD = 1 << 20, 2000
#: matrices of more numbers than this are sorted by their first two columns only
MOST_SORTED = 1 << 22


def count_large_parts(matrix: ScoreMatrix, count: int) -> int:
    """For a large matrix of many classes, the number of parts of which one is held out.

    0 if ``count`` folds are quick enough.
    """
    n, k = len(matrix), matrix.n_classes
    if k <= FEW_CLASSES or n * k <= FOLDED_NUMBERS or count < 2:
        return 0
    return max(count, n // max(HELD_NUMBERS // k, LEAST_HELD))


def deal_by_scores(matrix: ScoreMatrix, count: int) -> Index:
    """The fold of each row: rows are sorted by their scores and dealt one after the other.

    Nothing is random, and neither the order of the rows nor their labels matter (except among equal
    scores). The shares of the classes differ from fold to fold, as chance has it. With equal shares
    each fold would repeat the accidents of the sample, and a fit to those accidents would seem to
    gain. Large matrices are sorted by their first two columns only.
    """
    return deal_in_turn(rows_by_score(matrix), count)


def rows_by_score(matrix: ScoreMatrix) -> Index:
    """The rows in the order of their scores, then of class and weight."""
    columns = matrix.leading(matrix.n_classes if matrix.size <= MOST_SORTED else 2).T
    least = [] if matrix.weight is None else [matrix.weight]
    return np.lexsort((*least, matrix.codes, *columns))
