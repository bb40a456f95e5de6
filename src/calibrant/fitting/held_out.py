"""Cross-validation: candidates are fitted to a part of the rows, and judged on the rows held out.

`HeldOut` says what each fold learns from and what it holds out, `try_all` fits every candidate to
each fold once, and `choose` takes one of them by its losses.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.base import clone

from calibrant.array_types import Array, Flags, Index
from calibrant.data.door import Rows
from calibrant.data.score_matrix import ScoreMatrix, Scores
from calibrant.data.score_table import CellColumns, ScoreTable, table_in_rows, weight_in_rows
from calibrant.fitting.folds import (
    FEW_CLASSES,
    FOLDS,
    Pair,
    TableFolds,
    count_large_parts,
    deal_by_scores,
    deal_soft_labels,
    fold_pairs,
    is_fold_count,
    limit_folds,
    split_rows_with_weight,
)
from calibrant.fitting.registry import BEFORE, copy_for_tables
from calibrant.metrics.intervals import PairedCells
from calibrant.metrics.point_measures import area, one_class
from calibrant.metrics.tables import class_tables
from calibrant.rules.softmax import Softmax
from calibrant.running import track
from calibrant.tensors import on_host

#: learns from what a fold does not hold out; gives a calibrator, or a function of what it holds out
Fit = Callable[[Any], Any]
#: what a fold learns from, and what it is asked for
Part = tuple[Any, Any]
#: what moves where no bar is shown
WITHOUT_BAR: Iterator[Any] = repeat(None)
#: a table with more scores than this is pooled to so many cells before candidates are judged
MOST_CELLS = 200_000
POOLED_CELLS = 100_000
#: folds of a matrix hold out at most so many rows together; candidates are fitted to all rows
MOST_JUDGED = 50_000


@dataclass(frozen=True, eq=False)
class Trial:
    """The predictions of a candidate on rows held out, and its losses there.

    Attributes
    ----------
    p : array
        Its predictions, fold after fold: the probability of the positive class in each cell, or the
        distribution of each row.
    log_loss, brier : arrays
        The losses of each unit of the `Sample`.
    certain : bool
        Whether it gave a probability of exactly 0 or 1. If such a row is wrong, the log loss is
        infinite.
    auc : float or None
        The share of pairs in the right order, of two rows of one fold, since each fold has a map of
        its own. Several classes: the mean of all classes, each against the rest.
    whole_auc : float or None
        Of the scores as they came: the share of all pairs in the right order.
    map : Map or None
        Its map, fitted to all.
    fitted : calibrator or None
        The calibrator that made it.
    seconds : float
        The time of that fit.
    maps : tuple
        Its map in each fold, where these were kept.
    """

    p: NDArray[Any]
    log_loss: Array
    brier: Array
    certain: bool
    auc: float | None = None
    whole_auc: float | None = None
    map: Any = None
    fitted: Any = None
    seconds: float = 0.0
    maps: tuple[Any, ...] = ()


def try_all(
    fits: Mapping[str, Fit],
    held: HeldOut,
    whole: Any = None,
    *,
    by_rows: bool = False,
    keep_maps: bool = False,
    bar: Iterator[Any] = WITHOUT_BAR,
) -> dict[str, Trial]:
    """Fit each candidate without each fold, judge it on that fold, and fit it to ``whole``. Returns
    the trial of each.

    ``whole`` are all data (None: no such fit). With ``by_rows`` candidates get the numbers of rows
    to learn from and to predict. With ``keep_maps`` trials keep the map of each fold. ``bar`` moves
    by one with each fit.
    """
    trials = {}
    for name, fit in fits.items():
        maps: list[Any] = []
        outputs: list[Array] = []
        for rest, asked in held.pairs if by_rows else held.parts():
            next(bar)
            predict: Any = fit(rest)
            predict = getattr(predict, "map_", predict)  # the calibrator itself may be large
            outputs.append(predict(asked))
            maps += [predict] * keep_maps
        trial = replace(held.trial(np.concatenate(outputs)), maps=tuple(maps))
        if whole is not None:
            next(bar)
            start = time.perf_counter()
            fitted = fit(whole)
            seconds = time.perf_counter() - start
            trial = replace(trial, map=fitted.map_, fitted=fitted, seconds=seconds)
        trials[name] = trial
    return trials


def fit_copies(calibrator: Any, classes: NDArray[Any] | None = None) -> Fit:
    """A function that fits a copy of a calibrator to a table or a matrix.

    ``classes`` are those of a matrix's columns (None: 0, 1, 2, …).
    """

    def fit(data: ScoreTable | ScoreMatrix) -> Any:
        if isinstance(data, ScoreTable):
            return copy_for_tables(calibrator).fit_table(data)
        labels = np.arange(data.n_classes) if classes is None else classes
        one = clone(calibrator).set_params(classes=list(labels))
        with one._part_of(data.whole):
            return one.fit(data.scores, labels[data.codes], data.weight)

    return fit


def progress_bar(fits: int, *, show: bool) -> Iterator[int]:
    """A bar on stderr that moves by one with each fit."""
    return iter(track(range(fits), fits, "calibrators", show=show))


def held_out_path_losses(
    table: ScoreTable, folds: int, losses: Callable[[CellColumns, CellColumns], Array]
) -> Array:
    """The losses on rows held out of several candidates at once, such as numbers of bins.

    ``losses`` is called once for each fold, with the cells to learn from and the cells held out. It
    fits all candidates and gives the loss of each. These are summed over the folds. Whole weights
    are numbers of rows.
    """
    deal = TableFolds(table, folds, repetitions=True)
    held = (deal.held(fold) for fold in range(folds))
    return np.asarray(np.sum([losses(table.columns.minus(one), one) for one in held], axis=0))


# --- What is held out -----------------------------------------------------------------------------


class HeldOut(ABC):
    """Data in folds. Each fold has a part to learn from and a part held out, whose labels are
    known."""

    #: the numbers of the rows to learn from and to judge on, where there are rows
    pairs: Sequence[Pair]

    @property
    @abstractmethod
    def folds(self) -> int:
        """The number of folds."""

    @abstractmethod
    def parts(self) -> Iterable[Part]:
        """The data to learn from, and the scores to predict, of each fold."""

    @property
    @abstractmethod
    def sample(self) -> Sample:
        """The weights of the units that have a loss each: rows, or cells of equal rows."""

    @abstractmethod
    def trial(self, p: NDArray[Any], *, ranks: bool = False) -> Trial:
        """The trial of these predictions, which come fold after fold.

        With ``ranks`` they are the scores as they came. Then the AUC over all folds is found, too.
        """


@dataclass(frozen=True, eq=False)
class HeldOutCells(HeldOut):
    """Two classes: rows, or cells of equal rows, that are held out fold after fold.

    A unit of the sample is a cell's rows of one class.

    Parameters
    ----------
    scores : array of shape (m,)
    columns : CellColumns
        What happened at these scores.
    sizes : sequence of int
        How many of the cells each fold holds out.
    rests : sequence of ScoreTable
        The table that each fold learns from.
    cluster : array of shape (m,), optional
        Which cells belong together.
    pairs : see `HeldOut`
    notes : tuple of str
        What a reader of the figures should know.
    """

    scores: Array
    columns: CellColumns
    sizes: Sequence[int]
    rests: Sequence[ScoreTable] = ()
    cluster: Index | None = None
    pairs: Sequence[Pair] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, table: ScoreTable, folds: int, seed: int) -> HeldOutCells:
        """A table's rows, dealt into folds at random.

        There are fewer folds where a class has fewer rows, and none below two. A table of more than
        `MOST_CELLS` scores is pooled first.
        """
        folds = limit_folds(folds, table.rarest)
        notes: tuple[str, ...] = ()
        if folds and len(table) > MOST_CELLS:
            notes = (f"judged on {POOLED_CELLS:,} cells of {len(table):,} distinct scores",)
            table = table.pool(POOLED_CELLS)
        if not folds:
            return cls(table.scores[:0], table.columns.take(slice(0)), ())
        deal = TableFolds(table, folds, seed=seed)
        held, rests, filled = [], [], []
        for rest, columns in deal.parts():
            some = columns.filled
            if rest and some.any():
                held.append(columns.take(some))
                rests.append(rest)
                filled.append(table.scores[some])
        return cls(
            np.concatenate(filled),
            concatenate_columns(held),
            [len(scores) for scores in filled],
            rests,
            notes=notes,
        )

    @classmethod
    def of_rows(
        cls,
        rows: Rows,
        cv: Any,
        groups: Any,
        seed: Any,
        *,
        counts: bool = False,
    ) -> HeldOutCells:
        """Rows of positive weight, in the folds that a splitter, groups or a fraction give.

        Both halves of a row with a soft label are in one fold. They are one unit where errors are
        estimated (unless weights are ``counts``: then a row may be many). If ``cv`` is a number of
        folds and there are no groups, there may be fewer folds, or none, as in `of_table`.
        """
        rows = rows if rows.present is not None else rows.without_weightless()
        table = ScoreTable.from_rows(rows)
        if rows.share is not None and is_fold_count(cv) and groups is None:
            folds = limit_folds(FOLDS if cv is None else int(cv), table.rarest)
            if not folds:
                return cls(rows.scores[:0], table.columns.take(slice(0)), ())
            cv, rows = deal_soft_labels(rows, folds, seed), replace(rows, present=None)
        pairs, cluster = split_rows_with_weight(cv, rows, groups, seed)
        if cluster is None and rows.share is not None and not counts:
            cluster = np.arange(len(rows.scores))
        test = np.concatenate([test for _, test in pairs])
        weight = weight_held_out(test, rows.weight)
        share = (rows.positive if rows.share is None else rows.share)[test]
        zero, one = weight * (1.0 - share), weight * share
        squares = (zero, one) if counts else (zero * zero, one * one)

        rests = [ScoreTable.from_rows(rows.take(train)).part_of(table.scale) for train, _ in pairs]
        return cls(
            rows.scores[test],
            CellColumns(zero, one, *squares),
            [len(test) for _, test in pairs],
            [table_in_rows(rest, "counts") for rest in rests] if counts else rests,
            None if cluster is None else cluster[test],
            pairs,
        )

    @classmethod
    def of_all(cls, scores: Array, columns: CellColumns) -> HeldOutCells:
        """All cells in a single fold, to judge predictions that exist already."""
        return cls(scores, columns, [len(scores)])

    @property
    def folds(self) -> int:
        return len(self.sizes)

    def parts(self) -> Iterable[Part]:
        return [
            (rest, self.scores[here]) for rest, here in zip(self.rests, self.cells, strict=True)
        ]

    @cached_property
    def cells(self) -> list[slice]:
        """The slice of the cells of each fold."""
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    @cached_property
    def units(self) -> tuple[Index, Flags]:
        """The cell of each unit, and whether the unit is of the positive class.

        If there are rows, units are in their order. Otherwise they are in the order of folds, and
        in each fold the negatives of all cells come before the positives.
        """
        some = np.array([self.columns.negative > 0.0, self.columns.positive > 0.0])
        if self.pairs:
            cell, label = np.nonzero(some.T)
            return cell, label == 1
        parts = [np.nonzero(some[:, here]) for here in self.cells]
        cells = [here.start + cell for here, (_, cell) in zip(self.cells, parts, strict=True)]
        return np.concatenate(cells), np.concatenate([label for label, _ in parts]) == 1

    @cached_property
    def sample(self) -> Sample:
        (cell, positive), (n0, n1, q0, q1) = self.units, self.columns
        weight, square = (
            np.where(positive, one[cell], zero[cell]) for zero, one in ((n0, n1), (q0, q1))
        )
        return Sample(weight, square, None if self.cluster is None else self.cluster[cell])

    def trial(self, p: NDArray[Any], *, ranks: bool = False) -> Trial:
        """The trial of these predictions.

        With ``ranks`` AUC is that of the scores themselves, since some scores may be equal as
        probabilities.
        """
        cell, positive = self.units
        q = p[cell]
        surprise, square = losses_of_units(q, positive)
        certain = bool(q.min(initial=1.0) <= 0.0 or q.max(initial=0.0) >= 1.0)
        order = self.scores if ranks else p
        tables = [self._table(order[here], here) for here in self.cells]
        pairs, ordered = np.sum([pairs_in_order(table) for table in tables], axis=0)
        whole = None
        if ranks:
            everything = self._table(order, slice(None))
            whole = None if one_class(everything) else area(everything)
        return Trial(p, surprise, square, certain, ordered / pairs if pairs else None, whole)

    def _table(self, values: Array, cells: slice) -> ScoreTable:
        """The table of some cells with other scores."""
        return ScoreTable.from_counts(values, *self.columns.take(cells))

    def predictions(self, trial: Trial) -> ScoreTable:
        """The predictions of a candidate on the rows held out, with their labels."""
        return self._table(trial.p, slice(None))

    def paired(self, trial: Trial) -> PairedCells:
        """The predictions of a candidate side by side with the scores, unit by unit."""
        (cell, positive), sample = self.units, self.sample
        rows = (positive, sample.weight, sample.square, sample.cluster)
        return PairedCells(trial.p[cell], self.scores[cell], *rows)


def weight_held_out(test: Index, weight: Array | None) -> Array:
    """The weight of each row held out. A row that is held out r times counts 1/r each time."""
    share = 1.0 / np.bincount(test)[test]
    return share if weight is None else weight[test] * share


def losses_of_units(p: Array, positive: Flags) -> tuple[Array, Array]:
    """The log loss and the Brier score of the probability of the positive class in each unit."""
    surprise = np.empty(len(p))
    with np.errstate(divide="ignore"):
        surprise[positive], surprise[~positive] = -np.log(p[positive]), -np.log1p(-p[~positive])
    return surprise, np.square(np.where(positive, 1.0 - p, p))


def concatenate_columns(parts: Sequence[CellColumns]) -> CellColumns:
    """The columns of several folds as one."""
    return CellColumns(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def pairs_in_order(table: ScoreTable) -> tuple[float, float]:
    """The number of pairs of a negative and a positive, and the number of those in which the
    positive has the higher score.

    Of pairs with equal scores, half count.
    """
    if one_class(table):
        return 0.0, 0.0
    pairs = table.total_negative * table.total_positive
    return pairs, pairs * area(table)


@dataclass(frozen=True, eq=False)
class HeldOutMatrix(HeldOut):
    """Several classes: the rows of a matrix that are held out, fold after fold.

    A row that is held out r times counts 1/r each time. ``weights`` says whether weights are counts
    (see `Calibrator`), and ``groups`` which rows of the matrix belong together.
    """

    matrix: ScoreMatrix
    pairs: Sequence[Pair]
    groups: Index | None = None
    weights: str = "importance"

    @classmethod
    def of_matrix(
        cls,
        matrix: ScoreMatrix,
        classes: NDArray[Any],
        cv: Any,
        groups: Any = None,
        seed: Any = 0,
        weights: str = "importance",
        present: Flags | None = None,
    ) -> HeldOutMatrix:
        """The rows of a matrix, in the folds that a splitter, groups or a fraction give.

        For a number of folds, rows are dealt in the order of their scores, at most `MOST_JUDGED` of
        them. Of large matrices with many classes a single part is held out. ``present`` flags the
        rows of the matrix among all rows, of which ``groups`` and splits are.
        """
        cv = FOLDS if cv is None else cv
        if not isinstance(cv, (int, np.integer)) or groups is not None:
            rows = Rows.unscored(matrix.scores, matrix.codes, matrix.weight, classes)
            rows = replace(rows, present=present)
            return cls(matrix, *split_rows_with_weight(cv, rows, groups, seed), weights)
        count = min(int(cv), len(matrix))
        if parts := count_large_parts(matrix, count):
            fold = deal_by_scores(matrix, parts)
            return cls(matrix, [(np.flatnonzero(fold), np.flatnonzero(fold == 0))], None, weights)
        step = -(-len(matrix) // MOST_JUDGED)
        pairs = fold_pairs(deal_by_scores(matrix, count * step), count)
        return cls(matrix, pairs, None, weights)

    @property
    def folds(self) -> int:
        return len(self.pairs)

    def parts(self) -> Iterable[Part]:
        # a single part is taken once for all candidates, since it may be large
        if len(self.pairs) == 1:
            return [self._single]
        return ((self._scaled.take(train), self._scores(test)) for train, test in self.pairs)

    def _scores(self, rows: Index) -> Scores:
        """The scores of some rows; those of a tensor leave its device."""
        scores: Scores = on_host(self.matrix.take(rows).scores)
        return scores

    @cached_property
    def _scaled(self) -> ScoreMatrix:
        """The matrix with its scale kept, so that parts of it have it, too."""
        return self.matrix.scaled()

    @cached_property
    def _single(self) -> Part:
        """The part of a single fold."""
        ((train, test),) = self.pairs
        return self._scaled.take(train), self._scores(test)

    @cached_property
    def rows(self) -> Index:
        """The numbers of the rows held out."""
        return np.concatenate([test for _, test in self.pairs])

    @cached_property
    def fold(self) -> Index:
        """The fold of each row held out."""
        return np.repeat(np.arange(self.folds), [len(test) for _, test in self.pairs])

    @cached_property
    def codes(self) -> Index:
        """The class of each row held out."""
        return self.matrix.codes[self.rows]

    @cached_property
    def size(self) -> Array:
        """The weight of each row held out, in units of rows."""
        return weight_held_out(self.rows, weight_in_rows(self.matrix.weight, self.weights))

    @cached_property
    def sample(self) -> Sample:
        weight = weight_held_out(self.rows, self.matrix.weight)
        square = weight if self.weights == "counts" else weight**2
        return Sample(weight, square, None if self.groups is None else self.groups[self.rows])

    def unchanged(self) -> Trial:
        """The trial of the scores as they came: distributions, or the softmax of logits."""
        before, scores = unchanged(self.matrix), self._scores(self.rows)
        p = before(scores)
        if before.input == "probability":
            p[scores == 0] = 0.0  # the map gives 5e-324, but a wrong zero has an infinite loss
        return replace(self.trial(p, ranks=True), map=before)

    def trial(self, p: NDArray[Any], *, ranks: bool = False) -> Trial:
        own = p[np.arange(len(p)), self.codes]
        with np.errstate(divide="ignore"):
            surprise = -np.log(own)
        square = np.square(p).sum(axis=1) - 2.0 * own + 1.0
        folds = [self.fold == f for f in range(self.folds)]
        whole = self._area(p, [slice(None)]) if ranks else None
        # of many classes float32 is kept, to save memory
        kept = p if p.shape[1] <= FEW_CLASSES else p.astype(np.float32)
        certain = bool(p.min(initial=1.0) <= 0.0)
        return Trial(kept, surprise, square, certain, self._area(p, folds), whole)

    def _area(self, p: Array, parts: list[Any]) -> float | None:
        """The AUC within parts, as a mean over the classes. None if there are many classes."""
        if p.shape[1] > FEW_CLASSES:
            return None
        pairs, ordered = np.zeros((2, p.shape[1]))
        for here in parts:
            part = ScoreMatrix(p[here], self.codes[here], self.sample.weight[here])
            for column, table in enumerate(class_tables(part) if len(part) else ()):
                n, right = pairs_in_order(table)
                pairs[column] += n
                ordered[column] += right
        some = pairs > 0
        return float(np.mean(ordered[some] / pairs[some])) if some.any() else None

    def predictions(self, trial: Trial) -> ScoreMatrix:
        """The predictions of a candidate on the rows held out, with their labels."""
        weight = self.matrix.weight
        return ScoreMatrix(trial.p, self.codes, None if weight is None else weight[self.rows])


def unchanged(matrix: ScoreMatrix) -> Softmax:
    """The map that leaves distributions unchanged, and gives the softmax of logits."""
    return Softmax.unchanged(matrix.n_classes, matrix.kind())


# --- Which of several candidates is taken, by their losses on what was held out -------------------


#: a candidate replaces our own method only if it is ahead by more standard errors than this
ERRORS_OVER_OWN = 2.0
#: the level of the test that the scores are wrong
LEVEL = 0.05
#: without that test the best must be ahead of the scores by more standard errors than this, which
#: noise alone is in 5 % of samples
ERRORS_AHEAD = 1.64
#: standard errors by which the best must be ahead of the scores of several classes
ERRORS_AHEAD_OF_CLASSES = 1.0
#: mean losses that differ by this part are equal but for rounding
ROUNDING = 1e-12


def choose(
    trials: Mapping[str, Trial],
    sample: Sample,
    *,
    p_value: float | None = None,
    errors: float = ERRORS_AHEAD,
    demanding: Collection[str] = (),
    by: str = "log_loss",
) -> tuple[str, set[str]]:
    """The candidate that is taken, and those that are as good as the best.

    The first candidate is the scores as they came. They are kept unless the best is ahead of them
    by more than so many standard ``errors``, or is ahead at all and a test refutes the scores
    (``p_value`` is that of the test that they are right; None without one).

    Otherwise the second candidate (our own method) is taken if it is ahead of the scores by the
    same rule, and at most two standard errors behind the best. In all other cases the best is
    taken. A candidate that gives an exact 0 or 1 is taken only if all do: if such rows were right
    so far, this does not show what a wrong one will cost.

    As good as the best is who is behind it by at most one standard error. Candidates that ask more
    of their users (``demanding``) are taken only if they are ahead by more than two standard errors
    of what would be taken without them. ``by`` is the loss: "log_loss", or "brier", which no wrong
    0 or 1 makes infinite, so that these are as good as any probability.
    """
    losses: dict[str, Array] = {name: getattr(trial, by) for name, trial in trials.items()}
    finite = {name for name, loss in losses.items() if np.isfinite(sample.mean(loss))}
    usual = [name for name in losses if name not in demanding]
    certain = {name for name, trial in trials.items() if trial.certain and by == "log_loss"}
    good = [name for name in usual if name in finite]
    good = [name for name in good if name not in certain] or good
    first, second, *_ = usual
    taken, tied = first, set(usual)
    if good:
        best = min(good, key=lambda name: sample.mean(losses[name]))
        behind = {name: standard_errors_behind(losses[name], losses[best], sample) for name in good}
        tied = {name for name, count in behind.items() if count <= 1.0}
        needed = 0.0 if p_value is not None and p_value <= LEVEL else errors

        def beats_the_scores(name: str) -> bool:
            if first not in good:
                return True
            return standard_errors_behind(losses[first], losses[name], sample) > needed

        if beats_the_scores(best):
            own = behind.get(second, np.inf) <= ERRORS_OVER_OWN and beats_the_scores(second)
            taken = second if own else best
    for name in demanding:
        if name not in finite:
            continue
        hopeless = taken not in finite
        if (
            hopeless
            or standard_errors_behind(losses[taken], losses[name], sample) > ERRORS_OVER_OWN
        ):
            taken, tied = name, {name}
    return taken, tied


def standard_errors_behind(one: Array, other: Array, sample: Sample) -> float:
    """How far one loss is above another, in standard errors of the mean difference; 0 if it is
    below."""
    difference = one - other
    mean, error = sample.mean(difference), sample.error(difference)
    if one is other or mean <= ROUNDING * abs(sample.mean(other)):
        return 0.0
    return mean / error if error > 0 else np.inf


# --- How the candidates did, side by side ---------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """The figures of one candidate on rows held out, as a leaderboard shows them.

    Attributes
    ----------
    name : str
    log_loss, log_loss_se, brier, brier_se : float
        Means over the rows held out, and their standard errors. Smaller is better.
    gain, gain_low, gain_high : float
        Log loss of the scores as they came minus its own, on the same rows, with an interval;
        above 0 is better.
    auc, auc_change : float or None
        The share of pairs in the right order, and what that gained over the scores as they came;
        None with one class. The gain is counted within the folds, and added to the AUC that the
        scores have over all pairs. One rate for all rows has an AUC of ½.
    distinct : int
        How many different probabilities (with several classes: distributions) the scores become.
        If these are fewer than the scores, the map makes ties.
    seconds : float
        The time of a fit to all rows.
    tied : bool
        Whether the best is ahead by at most one standard error of the difference.
    chosen : bool
    certain : bool
        Whether it gave exactly 0 or 1 to rows held out. If such a row is wrong, the log loss is
        infinite, so such a candidate is taken only if there is no other.
    """

    name: str
    log_loss: float
    log_loss_se: float
    brier: float
    brier_se: float
    gain: float
    gain_low: float
    gain_high: float
    auc: float | None
    auc_change: float | None
    distinct: int
    seconds: float
    tied: bool = False
    chosen: bool = False
    certain: bool = False

    @property
    def scores_auc(self) -> float | None:
        """The AUC of the scores as they came."""
        if self.auc is None or self.auc_change is None:
            return None
        return self.auc - self.auc_change


def standings(
    trials: Mapping[str, Trial],
    sample: Sample,
    *,
    level: float,
    chosen: str,
    tied: set[str],
    distinct: Mapping[str, int],
) -> tuple[Standing, ...]:
    """The standing of each candidate, the least log loss first."""
    before = trials[BEFORE]
    rows = []
    for name, one in trials.items():
        gain, low, high = sample.gain(before.log_loss, one.log_loss, level)
        auc, change = auc_and_gain(one, before)
        if auc is not None and change is not None and distinct[name] == 1:
            auc, change = 0.5, change + (0.5 - auc)  # one rate for all rows ranks nothing
        rows.append(
            Standing(
                name,
                sample.mean(one.log_loss),
                sample.error(one.log_loss),
                sample.mean(one.brier),
                sample.error(one.brier),
                *(gain, low, high),
                auc,
                change,
                distinct[name],
                one.seconds,
                name in tied,
                name == chosen,
                one.certain,
            )
        )
    return tuple(sorted(rows, key=lambda row: row.log_loss))


def auc_and_gain(one: Trial, before: Trial) -> tuple[float | None, float | None]:
    """The AUC of a candidate, and what it gains over the scores as they came.

    The gain is counted within the folds, and added to the AUC of the scores over all pairs. So the
    AUC of the scores is the one that anyone else computes, and a map that keeps their order has the
    same.
    """
    if one.auc is None or before.auc is None:
        return one.auc, None
    change = one.auc - before.auc
    if before.whole_auc is None:
        return one.auc, change
    return min(max(before.whole_auc + change, 0.0), 1.0), change


# --- Means over what was held out, and how sure they are ------------------------------------------


@dataclass(frozen=True)
class Sample:
    """The weights of the units that candidates are judged on; means over them, and their errors.

    A unit is a row, or a cell of equal rows.

    Parameters
    ----------
    weight, square : arrays of shape (m,)
        Σw and Σw² of each cell. All rows of a cell have the same loss.
    cluster : array of shape (m,), optional
        Which cells belong together: groups, or the repeated judgements of one row.

    Examples
    --------
    >>> s = Sample(np.ones(4), np.ones(4))
    >>> s.mean(np.array([1.0, 2.0, 3.0, 4.0])), round(s.error(np.array([1.0, 2.0, 3.0, 4.0])), 4)
    (2.5, 0.6455)
    """

    weight: Array
    square: Array
    cluster: Index | None = None

    @cached_property
    def total(self) -> float:
        """Σw."""
        return float(self.weight.sum())

    @cached_property
    def size(self) -> float:
        """The effective number of independent units: (Σw)²/Σw² (Kish)."""
        squares = self.square.sum()
        if self.cluster is not None:
            squares = np.square(np.bincount(self.cluster, self.weight)).sum()
        return self.total**2 / float(squares)

    def mean(self, values: Array) -> float:
        """Σwv / Σw; infinite where any value is."""
        return float(self.weight @ values) / self.total

    def error(self, values: Array) -> float:
        """The standard error of the mean; infinite if the mean is, or if there is only one unit."""
        mean = self.mean(values)
        if not np.isfinite(mean) or self.size <= 1.0 + 1e-9:
            return float("inf")
        centred = values - mean
        if self.cluster is None:
            squares = self.square @ np.square(centred)
        else:
            squares = np.square(np.bincount(self.cluster, self.weight * centred)).sum()
        return float(np.sqrt(squares / (1.0 - 1.0 / self.size))) / self.total

    def interval(self, mean: float, error: float, level: float) -> tuple[float, float]:
        """mean ± t · error, for the level and the number of units."""
        if not np.isfinite(mean):
            return mean, mean
        if not np.isfinite(error):
            return float("-inf"), float("inf")
        t = float(stdtrit(max(self.size - 1.0, 1.0), 0.5 + 0.5 * level))
        return mean - t * error, mean + t * error

    def gain(self, before: Array, after: Array, level: float) -> tuple[float, float, float]:
        """Mean loss before minus mean loss after, with the interval of the paired difference."""
        old, new = self.mean(before), self.mean(after)
        if np.isinf(new):
            return (0.0, 0.0, 0.0) if before is after else (-np.inf, -np.inf, -np.inf)
        if np.isinf(old):
            return np.inf, np.inf, np.inf
        difference = before - after
        mean = self.mean(difference)
        return mean, *self.interval(mean, self.error(difference), level)
