"""The intervals of an evaluation: which way each measure gets its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant.data.door import Rows
from calibrant.data.table import ScoreTable
from calibrant.errors import ParameterError
from calibrant.losses import sigmoid
from calibrant.metrics._input import check_number, check_whole, check_word
from calibrant.metrics.analytic import (
    Sample,
    Span,
    area_interval,
    brier_losses,
    gap_interval,
    largest_gap_interval,
    log_losses,
    mean_interval,
    moments,
    share_interval,
    weighing,
    width_bins,
)
from calibrant.metrics.bootstrap import DRAWN, FEWEST, Chance, chance_of, drawn_interval
from calibrant.metrics.change import Pairs, Side, change_intervals
from calibrant.metrics.printing import Changes

__all__ = ["Found", "How", "between", "changes", "found_intervals", "read_how", "weight_note"]

#: how far the total weight may be from the effective number of rows without a word
WORTH_SAYING = 1.25


class How(NamedTuple):
    """How intervals are wanted."""

    level: float
    replicates: int
    weights: str
    seed: int | None

    @property
    def rng(self) -> np.random.Generator:
        """The same numbers for every table."""
        return np.random.default_rng(self.seed)


def read_how(level: Any, replicates: Any, weights: Any, random_state: Any) -> How | None:
    """The options within their limits; None where no intervals are wanted."""
    check_word("weights", weights, weighing)
    replicates = check_whole("replicates", replicates, 100)
    seed = None if random_state is None else check_whole("random_state", random_state, 0)
    if level is None:
        return None
    if isinstance(level, str):
        raise ParameterError(f"level must be a number such as 0.95, or None, but {level!r} came.")
    return How(check_number("level", level, 0.0, 1.0), replicates, weights, seed)


class Found(NamedTuple):
    """The intervals of one side, and what those of a change need besides."""

    intervals: dict[str, Span]
    sample: Sample
    chance: dict[str, Chance]
    notes: list[str]


def found_intervals(
    table: ScoreTable, ranked: ScoreTable, values: dict[str, float], bins: int, how: How
) -> Found:
    """An interval for each measure that can have one, in the order of the values."""
    sample = weighing[how.weights](table)
    if sample.size < 2.0 - 1e-9:
        return Found({}, sample, {}, [f"no intervals: {sample.size:.3g} rows are too few"])
    notes, chance = [], {}
    reason = too_few(sample)
    if reason:
        without = ", ".join(name for name in DRAWN if name in values)
        notes.append(f"no interval for {without}: {reason}; the others may be too narrow")
    else:
        chance = chance_of(table, how.weights, how.level, how.replicates, how.rng)
    case = _Case(sample, table, ranked, values, bins, how, chance)
    found = {}
    for name, value in values.items():
        span = _INTERVALS[name](case, name) if math.isfinite(value) else None
        if span is not None:
            found[name] = (min(span[0], value), max(span[1], value))
    return Found(found, sample, chance, notes)


def too_few(sample: Sample) -> str:
    """Why curves and windows get no interval, or nothing."""
    for word, n, q in (
        ("positives", sample.positive, sample.positive_sq),
        ("negatives", sample.negative, sample.negative_sq),
    ):
        size = float(n.sum()) ** 2 / float(q.sum()) if n.any() else 0.0
        if size < FEWEST - 1e-9:
            return f"it takes {FEWEST:g} {word} or more, and {size:.3g} came"
    return ""


class _Case(NamedTuple):
    sample: Sample
    table: ScoreTable
    ranked: ScoreTable
    values: dict[str, float]
    bins: int
    how: How
    chance: dict[str, Chance]


def _log_loss(case: _Case, name: str) -> Span:
    low, high = mean_interval(moments(case.sample, log_losses(case.sample.p)), case.how.level)
    return max(low, 0.0), high


def _brier(case: _Case, name: str) -> Span:
    low, high = mean_interval(moments(case.sample, brier_losses(case.sample.p)), case.how.level)
    return max(low, 0.0), min(high, 1.0)


def _rmse(case: _Case, name: str) -> Span:
    low, high = _brier(case, name)
    return math.sqrt(low), math.sqrt(high)


def _ece(case: _Case, name: str) -> Span:
    return gap_interval(width_bins(case.table, case.sample, case.bins), case.how.level)


def _mce(case: _Case, name: str) -> Span:
    return largest_gap_interval(width_bins(case.table, case.sample, case.bins), case.how.level)


def _auc(case: _Case, name: str) -> Span:
    return area_interval(weighing[case.how.weights](case.ranked), case.how.level)


def _accuracy(case: _Case, name: str) -> Span:
    return share_interval(case.values[name], case.sample.size, case.how.level)


def _drawn(case: _Case, name: str) -> Span | None:
    if name not in case.chance:
        return None
    return drawn_interval(case.values[name], case.chance[name], _LARGEST.get(name, 1.0))


_LARGEST = {"discrimination": 0.25}  # the largest uncertainty there is
_INTERVALS: dict[str, Callable[[_Case, str], Span | None]] = {
    "log_loss": _log_loss,
    "brier": _brier,
    "ece": _ece,
    "mce": _mce,
    "rmse": _rmse,
    "auc": _auc,
    "accuracy": _accuracy,
    **dict.fromkeys(DRAWN, _drawn),
}


# --- before and after ---------------------------------------------------------------------------


def between(
    rows: tuple[Rows, Rows] | None,
    tables: tuple[ScoreTable, ScoreTable, ScoreTable],
    values: tuple[dict[str, float], dict[str, float]],
    found: tuple[Found, Found],
    bins: int,
    how: How,
) -> tuple[Changes, list[str]]:
    """After − before, with intervals if it is known which rows belong together.

    ``tables`` are the one after, the one before, and the raw scores as they came.
    """
    if rows is None:
        said = "the change has no intervals: two tables do not tell which rows belong together"
        return changes(values[0], values[1], {}), [said]
    if not found[0].intervals:  # too few rows, as a note says
        return changes(values[0], values[1], {}), []
    after, before = rows
    margins = tables[1] is not tables[2]
    old_p = sigmoid(before.scores) if margins else before.scores
    kept = slice(None) if after.weight is None else after.weight > 0
    hit = after.positive[kept]
    new = Side(
        after.scores[kept], after.scores[kept], hit, tables[0], tables[0], found[0].sample,
        values[0], found[0].chance,
    )  # fmt: skip
    old = Side(
        old_p[kept], before.scores[kept], hit, tables[1], tables[2], found[1].sample,
        values[1], found[1].chance,
    )  # fmt: skip
    weight = np.ones(len(hit)) if after.weight is None else after.weight[kept]
    if how.weights == "importance":  # their scale does not matter, and squares must stay in range
        weight = weight / weight.mean()
    squares = {"counts": weight, "importance": weight**2}[how.weights]
    spans = change_intervals(Pairs(new, old, weight, squares, bins, how.level))
    return changes(values[0], values[1], spans), []


def changes(new: dict[str, float], old: dict[str, float], spans: dict[str, Span]) -> Changes:
    """The difference of every measure that both have and that is finite, with its interval."""
    found: Changes = {}
    for name, value in new.items():
        difference = value - old.get(name, math.nan)
        if math.isfinite(difference):
            low, high = spans.get(name, (None, None))
            found[name] = (difference, low, high)
    return found


def weight_note(total: float, size: float, weights: str) -> list[str]:
    """A word where weights that are not repetitions would make intervals too narrow or wide."""
    if weights != "counts" or total / WORTH_SAYING <= size <= total * WORTH_SAYING:
        return []
    return [
        f"intervals take weights for numbers of rows, {total:.4g} in all; if each row is one "
        f'observation they are worth {size:.4g}: then pass weights="importance"'
    ]
