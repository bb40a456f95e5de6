"""Candidates on rows that they have not seen: their losses, row for row the same rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.auto.folds import Fold
from calibrant.auto.held_out_means import Sample
from calibrant.auto.leaderboard import Standing
from calibrant.data.score_table import ScoreTable
from calibrant.estimators.named_methods import BEFORE, bare
from calibrant.estimators.table_folds import HeldOutCells
from calibrant.maps import Map
from calibrant.metrics.ranking import area, one_class
from calibrant.progress import track

__all__ = ["CandidateTrial", "Judged", "choose", "judge", "judge_maps", "standings"]

Array = NDArray[np.float64]

#: standard errors that a candidate must be ahead of our own method by
BENEFIT = 2.0


class Judged(NamedTuple):
    """A candidate's losses on the cells of the sample, its share of ordered pairs, and whether it
    is certain of anything: a probability of exactly 0 or 1, which costs all there is if wrong."""

    log_loss: Array
    brier: Array
    auc: float | None
    certain: bool


@dataclass(frozen=True)
class CandidateTrial:
    """What a candidate became: fitted to all rows, and its predictions out of fold."""

    calibrator: Any
    seconds: float
    judged: Judged | None
    oof: ScoreTable | None


def judge(
    named: Mapping[str, Any], table: ScoreTable, parts: list[Fold], *, progress: bool
) -> tuple[dict[str, CandidateTrial], Sample | None]:
    """Fit every candidate to each fold's rest and to the whole table; judge it on what is held."""
    steps = len(named) * (len(parts) + 1)
    bar = track(range(steps), steps, "calibrators", show=progress)
    trials = {}
    for name, calibrator in named.items():
        maps: list[Map] = []
        for part in parts:
            next(bar)
            maps.append(bare(calibrator).fit_table(part.rest).map_)
        next(bar)
        start = time.perf_counter()
        whole = bare(calibrator).fit_table(table)
        seconds = time.perf_counter() - start
        judged, oof = judge_maps(maps, parts, ranks=name == BEFORE) if parts else (None, None)
        trials[name] = CandidateTrial(whole, seconds, judged, oof)
    for _ in bar:  # the bar is closed
        pass
    return trials, _sample(parts) if parts else None


def judge_maps(
    maps: list[Map], parts: list[Fold], *, ranks: bool = False
) -> tuple[Judged, ScoreTable]:
    """Losses cell by cell; with ``ranks`` pairs are ordered by the scores, which σ may merge."""
    surprise, square, pairs, ordered = [], [], 0.0, 0.0
    outputs = []
    for fitted, part in zip(maps, parts, strict=True):
        p, held = fitted(part.scores), part.held
        zero, one = held.negative > 0, held.positive > 0
        with np.errstate(divide="ignore"):
            surprise += [-np.log1p(-p[zero]), -np.log(p[one])]
        square += [np.square(p[zero]), np.square(1.0 - p[one])]
        outputs.append(p)
        counted = ScoreTable.from_counts(part.scores if ranks else p, *held)
        if not one_class(counted):
            n = counted.total_negative * counted.total_positive
            pairs, ordered = pairs + n, ordered + n * area(counted)
    columns = (np.concatenate(c) for c in zip(*(part.held for part in parts), strict=True))
    oof = ScoreTable.from_counts(np.concatenate(outputs), *columns)
    auc = ordered / pairs if pairs else None
    certain = bool(oof.scores[0] <= 0.0 or oof.scores[-1] >= 1.0)
    return Judged(np.concatenate(surprise), np.concatenate(square), auc, certain), oof


def _sample(parts: list[Fold]) -> Sample:
    """The weights of the cells, in the order of the losses."""
    weight, square, cluster = [], [], []
    for part in parts:
        held: HeldOutCells = part.held
        for w, q in ((held.negative, held.negative_sq), (held.positive, held.positive_sq)):
            some = w > 0
            weight.append(w[some])
            square.append(q[some])
            if part.cluster is not None:
                cluster.append(part.cluster[some])
    together = np.concatenate(cluster) if cluster else None
    return Sample(np.concatenate(weight), np.concatenate(square), together)


def choose(judged: Mapping[str, Judged], sample: Sample) -> tuple[str, set[str]]:
    """The candidate that is taken, and all that the best is ahead of by one standard error at most.

    The first in line (the scores as they came) is taken if it is among these; else the second (our
    own method), if it is ahead of the first by more than one, too, and the best is ahead of it by
    two at most; else the best. A candidate that is certain of anything is taken only if all are:
    rows held out that happened to be right do not show what a wrong one will cost.
    """
    finite = {n: j for n, j in judged.items() if np.isfinite(sample.mean(j.log_loss))}
    finite = {n: j for n, j in finite.items() if not j.certain} or finite
    first, second, *_ = judged
    if not finite:
        return first, set(judged)
    best = min(finite, key=lambda name: sample.mean(finite[name].log_loss))
    ahead = {name: _behind(one, finite[best], sample) for name, one in finite.items()}
    tied = {name for name, errors in ahead.items() if errors <= 1.0}
    if first in tied:
        return first, tied
    if ahead.get(second, np.inf) > BENEFIT:
        return best, tied
    helps = first not in finite or _behind(finite[first], finite[second], sample) > 1.0
    return (second if helps else best), tied


def _behind(one: Judged, other: Judged, sample: Sample) -> float:
    """By how many standard errors of the paired difference the other is ahead; 0 if it is not."""
    difference = one.log_loss - other.log_loss
    mean, error = sample.mean(difference), sample.error(difference)
    if one is other or mean <= 0.0:
        return 0.0
    return mean / error if error > 0 else np.inf


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
    """A row for each candidate, the least log loss first; among equals in the given order."""
    before = judged[BEFORE]
    rows = []
    for name, one in judged.items():
        gain, low, high = _gain(before.log_loss, one.log_loss, sample, level)
        change = None if one.auc is None or before.auc is None else one.auc - before.auc
        rows.append(
            Standing(
                name,
                sample.mean(one.log_loss),
                sample.error(one.log_loss),
                sample.mean(one.brier),
                sample.error(one.brier),
                *(gain, low, high),
                one.auc,
                change,
                distinct[name],
                seconds[name],
                name in tied,
                name == chosen,
                one.certain,
            )
        )
    return tuple(sorted(rows, key=lambda row: row.log_loss))


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
