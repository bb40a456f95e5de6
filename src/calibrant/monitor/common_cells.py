"""Two tables on one axis: the cells that a test of drift looks at."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.frozen import own
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError
from calibrant.estimators.base import inner_interval
from calibrant.losses import logit
from calibrant.maps import Map
from calibrant.maps.checks import in_blocks
from calibrant.metrics.weighted_cells import NOT_WHOLE, take_cells
from calibrant.monitor.probability_input import effective_size
from calibrant.result_tables import shown_percent

#: cells that a larger table is pooled to
CELLS = 2000
#: there is no answer if more than this share of the new rows lies beyond the reference's scores
BEYOND = 0.5
#: a table is cut into parts, since weights may differ in size from one part to another: the most
#: parts, and the effective number of rows of the rarer class that each must have
PARTS, CASES = 16, 20.0


class Group(NamedTuple):
    """The cells of one table: z, and for each class Σw and Σw²/Σw (its spread).

    Weights are scaled so that their sum is the effective size (Σw)²/Σw². So tables whose weights
    have different scales can be compared.
    """

    z: Array
    negative: Array
    positive: Array
    spread_negative: Array
    spread_positive: Array

    @property
    def weight(self) -> Array:
        return self.negative + self.positive

    @property
    def rarer(self) -> float:
        """How many rows of equal weight the rarer class is worth."""
        classes = (
            (self.negative, self.spread_negative),
            (self.positive, self.spread_positive),
        )
        return min(float(w.sum()) ** 2 / (float(w @ spread) or 1.0) for w, spread in classes)

    @property
    def information(self) -> float:
        """n·rate·(1 − rate): what the rows tell of an intercept."""
        n, ones = float(self.weight.sum()), float(self.positive.sum())
        return ones * (n - ones) / n


def side_by_side(
    reference: ScoreTable, new: ScoreTable, by_logit: bool, weights: str
) -> tuple[Group, Group, list[str]]:
    """The cells of both tables in the range of scores that they share, and notes on the rest."""
    tables = [reference, new]
    if by_logit:
        clip = _clip(*tables)
        tables = [_on_axis(table, clip) for table in tables]
    low = max(float(table.scores[0]) for table in tables)
    high = min(float(table.scores[-1]) for table in tables)
    if low > high:
        ends = [f"{t.scores[0]:g} to {t.scores[-1]:g}" for t in (reference, new)]
        raise InputError(
            "the scores of both tables must overlap, but the reference has "
            f"{ends[0]} and the new table {ends[1]}: there is nothing to compare. Make sure that "
            "both hold scores of one kind."
        )
    inside = [take_cells(t, (t.scores >= low) & (t.scores <= high)) for t in tables]
    notes = []
    for name, whole, part in zip(("reference", "new"), tables, inside, strict=True):
        if not part:
            raise InputError(
                f"the scores of both tables must overlap, but no {name} row lies where the other "
                "table has scores: there is nothing to compare."
            )
        left_out = 1.0 - part.total / whole.total
        if name == "new" and left_out > BEYOND:
            raise InputError(
                f"most new scores must lie within the reference's, but {shown_percent(left_out)} "
                "lie beyond them, so that nothing can be said of most rows. Make sure that both "
                "tables hold scores of one kind, or take a reference that covers the new rows."
            )
        if left_out > 0.01:
            notes.append(
                f"{shown_percent(left_out)} of the {name} rows lie beyond the other table's "
                "scores, and are not compared."
            )
    first, second = (_group(part.pool(CELLS), weights) for part in inside)
    return first, second, notes


def against_map(new: ScoreTable, map_: Map, weights: str) -> tuple[Group, list[str]]:
    """The cells of a table, with the logits of a map as their z, and notes on rows left out."""
    table = new.through(map_)
    notes = []
    if map_.looks_like_probabilities and not new.looks_like_probabilities:
        notes.append(
            "the map seems to be one of scores in [0, 1], but some new scores are not in it: make "
            "sure that they are of its kind (percentages must be divided by 100)."
        )
    sure = (table.scores == 0.0) | (table.scores == 1.0)
    if sure.any():
        wrong = float(table.positive[table.scores == 0.0].sum())
        wrong += float(table.negative[table.scores == 1.0].sum())
        weight = float(table.weight[sure].sum())
        notes.append(
            f"to {shown_percent(weight / table.total)} of the new rows the map gives exactly 0 or "
            f"1, and {shown_percent(wrong / weight)} of them came otherwise: they are not "
            "compared, and no shift of the logit can mend them."
        )
        if sure.all():
            raise InputError(
                "the map must give some new row a probability between 0 and 1, but it gives all "
                "of them 0 or 1: there is nothing to compare. Fit a calibrator anew."
            )
    kept = _on_axis(take_cells(table, ~sure), (0.0, 1.0))
    return _group(kept.pool(CELLS), weights), notes


# --- tables -------------------------------------------------------------------------------------


def _clip(*tables: ScoreTable) -> tuple[float, float]:
    """The interval that scores are moved into before a logit is taken, the same for all tables."""
    ends = [inner_interval(table) or (0.0, 1.0) for table in tables]
    return min(end[0] for end in ends), max(end[1] for end in ends)


def _on_axis(table: ScoreTable, clip: tuple[float, float]) -> ScoreTable:
    """The table of the logits of its scores."""
    return replace(table, scores=own(in_blocks(lambda s: logit(np.clip(s, *clip)), table.scores)))


# --- weights ------------------------------------------------------------------------------------


def _group(table: ScoreTable, weights: str) -> Group:
    scale, spreads = (_counts if weights == "counts" else _importance)(table)
    n0, n1 = scale * table.negative, scale * table.positive
    return Group(table.scores, n0, n1, *(scale * spread for spread in spreads))


def _counts(table: ScoreTable) -> tuple[float, tuple[Array, Array]]:
    """The scale of the weights, and Σw²/Σw of negatives and positives: each row counts once."""
    if not table.is_whole:
        raise InputError(NOT_WHOLE)
    one = np.ones(len(table))
    return 1.0, (one, one)


def _importance(table: ScoreTable) -> tuple[float, tuple[Array, Array]]:
    """The scale of the weights, and Σw²/Σw of each class, in parts of equal weight.

    A part without rows of a class gets the figure of the whole class. A class without rows gets
    that of all rows.
    """
    usual = table.total / effective_size(table)
    upto = np.cumsum(table.weight)
    count = int(np.clip(table.rarest / CASES, 1, PARTS))
    part = np.minimum(upto / upto[-1] * count, count - 1).astype(np.intp)
    spreads = (
        _spread(table.negative, table.negative_sq, part, usual),
        _spread(table.positive, table.positive_sq, part, usual),
    )
    return 1.0 / usual, spreads


def _spread(weight: Array, square: Array, part: Index, usual: float) -> Array:
    total = float(weight.sum())
    whole = float(square.sum()) / total if total else usual
    top, bottom = np.bincount(part, square), np.bincount(part, weight)
    ratio: Array = np.divide(top, bottom, out=np.full(len(top), whole), where=bottom > 0.0)
    return ratio[part]
