"""Candidates judged on rows that they have not seen, all of them on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import stdtrit

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.folds import Fold
from calibrant.fitting.registry import BEFORE, bare
from calibrant.metrics.intervals import PairedCells
from calibrant.metrics.point_measures import area, one_class
from calibrant.running import track


class Judged(NamedTuple):
    """How a candidate did on the rows held out.

    Attributes
    ----------
    log_loss, brier : arrays
        The loss on each cell of the sample.
    auc : float or None
        The share of pairs in the right order; of two classes within the folds, since the maps of
        different folds are not to be compared.
    certain : bool
        Whether it gave a probability of exactly 0 or 1. If such a row is wrong, the log loss is
        infinite.
    whole_auc : float or None
        Of the scores as they came: the share of all pairs in the right order.
    p : array or None
        Two classes: the probability of the positive class in each cell.
    """

    log_loss: Array
    brier: Array
    auc: float | None
    certain: bool
    whole_auc: float | None = None
    p: Array | None = None


@dataclass(frozen=True)
class CandidateTrial:
    """A candidate fitted to all rows, the seconds that this took, and its predictions out of fold.

    Of two classes ``map`` is a Map and ``oof`` a ScoreTable; of several classes they are a
    VectorMap and the distributions of the rows held out.
    """

    map: Any
    seconds: float
    judged: Judged
    oof: Any
    calibrator: Any = None


class Progress:
    """A bar on stderr that moves by one with each fit."""

    def __init__(self, steps: int, *, show: bool) -> None:
        self._bar = track(range(steps), steps, "calibrators", show=show)

    def fit_all(
        self, fit: Callable[[Any], Any], rests: Iterable[Any], whole: Any
    ) -> tuple[list[Any], Any, float]:
        """The maps of each fold's rest, the calibrator of the whole, and the seconds it took."""
        maps = []
        for rest in rests:
            next(self._bar)
            maps.append(fit(rest).map_)
        next(self._bar)
        start = time.perf_counter()
        fitted = fit(whole)
        return maps, fitted, time.perf_counter() - start

    def close(self) -> None:
        """End the bar."""
        for _ in self._bar:
            pass


def judge(
    named: Mapping[str, Any], table: ScoreTable, parts: list[Fold], *, progress: bool
) -> tuple[dict[str, CandidateTrial], Sample]:
    """Fit every candidate to each fold's rest and to the whole table; judge it on what is held.

    There must be at least one fold.
    """
    bar = Progress(len(named) * (len(parts) + 1), show=progress)
    rests = [part.rest for part in parts]
    trials = {}
    for name, one in named.items():
        maps, fitted, seconds = bar.fit_all(partial(_fit_table, one), rests, table)
        if name == BEFORE:  # how scores are read does not depend on the fold
            maps = [fitted.map_] * len(parts)
        judged, oof = judge_maps(maps, parts, ranks=name == BEFORE)
        trials[name] = CandidateTrial(fitted.map_, seconds, judged, oof, fitted)
    bar.close()
    return trials, sample_of(parts)


def _fit_table(calibrator: Any, table: ScoreTable) -> Any:
    return bare(calibrator).fit_table(table)


def judge_maps(
    maps: Sequence[Callable[[Array], Array]], parts: list[Fold], *, ranks: bool = False
) -> tuple[Judged, ScoreTable]:
    """The losses of a map for each fold, cell by cell, and the table of all its predictions.

    With ``ranks`` the AUC is that of the scores themselves: as probabilities some may be equal.
    """
    surprise, square, own, pairs, ordered = [], [], [], 0.0, 0.0
    outputs = []
    for fitted, part in zip(maps, parts, strict=True):
        p, held = fitted(part.scores), part.held
        zero, one = held.negative > 0, held.positive > 0
        with np.errstate(divide="ignore"):
            surprise += [-np.log1p(-p[zero]), -np.log(p[one])]
        square += [np.square(p[zero]), np.square(1.0 - p[one])]
        own += [p[zero], p[one]]
        outputs.append(p)
        n, right = pairs_in_order(ScoreTable.from_counts(part.scores if ranks else p, *held))
        pairs, ordered = pairs + n, ordered + right
    columns = [np.concatenate(c) for c in zip(*(part.held for part in parts), strict=True)]
    oof = ScoreTable.from_counts(np.concatenate(outputs), *columns)
    whole = None
    if ranks and not one_class(oof):
        scores = np.concatenate([part.scores for part in parts])
        whole = area(ScoreTable.from_counts(scores, *columns))
    auc = ordered / pairs if pairs else None
    losses = np.concatenate(surprise), np.concatenate(square)
    return Judged(*losses, auc, _holds_certain(oof), whole, np.concatenate(own)), oof


def told_certain(trial: CandidateTrial, whole: ScoreTable) -> CandidateTrial:
    """The trial, with exact 0 and 1 seen where they are among the probabilities of all rows."""
    return replace(trial, judged=trial.judged._replace(certain=_holds_certain(whole)))


def _holds_certain(table: ScoreTable) -> bool:
    """Whether a table of probabilities holds an exact 0 or 1."""
    return bool(table.scores[0] <= 0.0 or table.scores[-1] >= 1.0)


def pairs_of(judged: Mapping[str, Judged], parts: list[Fold]) -> dict[str, PairedCells]:
    """The predictions of each candidate beside the scores of the same cells."""
    sample = sample_of(parts)
    scores = [part.scores[some] for part, some, _, _ in _sides(parts)]
    is_positive = np.arange(len(scores)) % 2 == 1
    before, hit = np.concatenate(scores), np.repeat(is_positive, [len(one) for one in scores])
    rows = (hit, sample.weight, sample.square, sample.cluster)
    return {n: PairedCells(one.p, before, *rows) for n, one in judged.items() if one.p is not None}


def sample_of(parts: list[Fold]) -> Sample:
    """The weights of the cells, in the order of the losses."""
    sides = list(_sides(parts))
    weight, square = (np.concatenate([side[column] for side in sides]) for column in (2, 3))
    clusters = [part.cluster[some] for part, some, _, _ in sides if part.cluster is not None]
    return Sample(weight, square, np.concatenate(clusters) if clusters else None)


def _sides(parts: list[Fold]) -> Iterator[tuple[Fold, Flags, Array, Array]]:
    """The negatives of each fold, then its positives: the fold, which of its cells, Σw and Σw²."""
    for part in parts:
        held = part.held
        for w, q in ((held.negative, held.negative_sq), (held.positive, held.positive_sq)):
            some = w > 0
            yield part, some, w[some], q[some]


def pairs_in_order(table: ScoreTable) -> tuple[float, float]:
    """How many pairs of a negative and a positive there are, and how many are in order."""
    if one_class(table):
        return 0.0, 0.0
    pairs = table.total_negative * table.total_positive
    return pairs, pairs * area(table)


def standings(
    judged: Mapping[str, Judged],
    sample: Sample,
    *,
    level: float,
    chosen: str,
    tied: set[str],
    distinct: Mapping[str, int],
    seconds: Mapping[str, float],
) -> tuple[Standing, ...]:
    """A row for each candidate, the least log loss first; equal ones stay in the given order."""
    before = judged[BEFORE]
    rows = []
    for name, one in judged.items():
        gain, low, high = _gain(before.log_loss, one.log_loss, sample, level)
        auc, change = ranked_as(one, before)
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
                seconds[name],
                name in tied,
                name == chosen,
                one.certain,
            )
        )
    return tuple(sorted(rows, key=lambda row: row.log_loss))


def ranked_as(one: Judged, before: Judged) -> tuple[float | None, float | None]:
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


def _gain(before: Array, after: Array, sample: Sample, level: float) -> tuple[float, float, float]:
    """Mean loss before minus mean loss after, with the interval of the paired difference."""
    old, new = sample.mean(before), sample.mean(after)
    if np.isinf(new):
        return (0.0, 0.0, 0.0) if before is after else (-np.inf, -np.inf, -np.inf)
    if np.isinf(old):
        return np.inf, np.inf, np.inf
    difference = before - after
    mean = sample.mean(difference)
    return mean, *sample.interval(mean, sample.error(difference), level)


@dataclass(frozen=True)
class Standing:
    """One candidate, judged out of fold.

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


# --- Which of several candidates is taken, by their losses on rows that they have not seen --------


#: a candidate replaces our own method only if it is ahead by more standard errors than this
BENEFIT = 2.0
#: the scores are kept unless they are found wrong at this level; and the standard errors by which
#: noise alone is ahead in so many samples
LEVEL, ONE_SIDED = 0.05, 1.64
#: standard errors by which the best must be ahead of the scores of several classes
CLASS_ERRORS = 1.0
#: mean losses that differ by this part are equal but for rounding
ROUNDING = 1e-12


class HeldOutLosses(Protocol):
    """How a candidate did on the rows held out."""

    @property
    def log_loss(self) -> Array:
        """The loss on each cell of the sample."""

    @property
    def certain(self) -> bool:
        """Whether it gave a probability of exactly 0 or 1."""


def choose(
    judged: Mapping[str, HeldOutLosses],
    sample: Sample,
    *,
    right: float | None = None,
    errors: float = ONE_SIDED,
    demanding: Collection[str] = (),
) -> tuple[str, set[str]]:
    """The candidate that is taken, and those that are as good as the best.

    The first candidate is the scores as they came. They are kept unless the best is ahead of them
    by more than so many standard ``errors``, or is ahead at all and a test refutes the scores
    (``right`` is the p-value of the test that they are right; None without one).

    Otherwise the second candidate (our own method) is taken if it is ahead of the scores by the
    same rule, and at most two standard errors behind the best. In all other cases the best is
    taken. A candidate that gives an exact 0 or 1 is taken only if all do: if such rows were right
    so far, this does not show what a wrong one will cost.

    As good as the best is who is behind it by at most one standard error. Candidates that ask more
    of their users (``demanding``) are taken only if they are ahead by more than two standard errors
    of what would be taken without them.
    """
    plain = {name: one for name, one in judged.items() if name not in demanding}
    taken, tied = _choose(plain, sample, right, errors)
    for name in demanding:
        other, one = judged[taken], judged[name]
        if not np.isfinite(sample.mean(one.log_loss)):
            continue
        hopeless = not np.isfinite(sample.mean(other.log_loss))
        if hopeless or errors_behind(other, one, sample) > BENEFIT:
            taken, tied = name, {name}
    return taken, tied


def _choose(
    judged: Mapping[str, HeldOutLosses], sample: Sample, right: float | None, errors: float
) -> tuple[str, set[str]]:
    """The choice among candidates of which none asks more than the others."""
    finite = {n: j for n, j in judged.items() if np.isfinite(sample.mean(j.log_loss))}
    finite = {n: j for n, j in finite.items() if not j.certain} or finite
    first, second, *_ = judged
    if not finite:
        return first, set(judged)
    best = min(finite, key=lambda name: sample.mean(finite[name].log_loss))
    behind = {name: errors_behind(one, finite[best], sample) for name, one in finite.items()}
    tied = {name for name, count in behind.items() if count <= 1.0}

    def beats_the_scores(name: str) -> bool:
        if first not in finite:
            return True
        ahead = errors_behind(finite[first], finite[name], sample)
        refuted = right is not None and right <= LEVEL
        return ahead > (0.0 if refuted else errors)

    if not beats_the_scores(best):
        return first, tied
    own = behind.get(second, np.inf) <= BENEFIT and beats_the_scores(second)
    return (second if own else best), tied


def errors_behind(one: HeldOutLosses, other: HeldOutLosses, sample: Sample) -> float:
    """How many standard errors of the paired difference one is behind the other; at least 0."""
    difference = one.log_loss - other.log_loss
    mean, error = sample.mean(difference), sample.error(difference)
    if one is other or mean <= ROUNDING * abs(sample.mean(other.log_loss)):
        return 0.0
    return mean / error if error > 0 else np.inf


# --- Means over rows that were held out, and how sure they are ------------------------------------


@dataclass(frozen=True)
class Sample:
    """The weights of what every candidate was judged on: cells of equal rows, or single rows.

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
        """The number of independent units of equal weight that tell as much: (Σw)²/Σw² (Kish)."""
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
        apart = values - mean
        if self.cluster is None:
            squares = self.square @ np.square(apart)
        else:
            squares = np.square(np.bincount(self.cluster, self.weight * apart)).sum()
        return float(np.sqrt(squares / (1.0 - 1.0 / self.size))) / self.total

    def interval(self, mean: float, error: float, level: float) -> tuple[float, float]:
        """mean ± t · error, for the level and the number of units."""
        if not np.isfinite(mean):
            return mean, mean
        if not np.isfinite(error):
            return float("-inf"), float("inf")
        t = float(stdtrit(max(self.size - 1.0, 1.0), 0.5 + 0.5 * level))
        return mean - t * error, mean + t * error
