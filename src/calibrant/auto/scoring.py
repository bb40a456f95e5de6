"""Candidates judged on rows that they have not seen, all of them on the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array, Flags
from calibrant.auto.folds import Fold
from calibrant.auto.leaderboard import Standing
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.held_out_means import Sample
from calibrant.estimators.named_methods import BEFORE, bare
from calibrant.metrics.change_intervals import PairedCells
from calibrant.metrics.ranking import area, one_class
from calibrant.progress import track


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
