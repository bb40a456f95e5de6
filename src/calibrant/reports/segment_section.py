"""Segments of the rows under one map: does it hold in each of them?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.uncalibrated import Uncalibrated
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_column import read_segments, segment_names
from calibrant.data.validation import Rows, check_lengths
from calibrant.diagrams.curves import reliability_curve
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import Map
from calibrant.metrics.interval_formulas import clopper_pearson
from calibrant.reports.contest import Data
from calibrant.reports.report_value import Panel

__all__ = ["MOST", "figures_of", "segment_panels"]

#: more segments than this are put together
MOST = 24
OTHERS = "all others"


def segment_panels(
    data: Data, segments: Any, fitted: Fitted | None, level: float
) -> tuple[Panel, ...]:
    """A panel for each segment, the heaviest first."""
    if segments is None:
        return ()
    if data.rows is None:
        raise InputError(
            "segments need the rows they belong to, but a ScoreTable came. Pass scores and y."
        )
    if fitted is None:
        raise InputError(
            "segments need a map of the score, but probabilities came. Pass a calibrator."
        )
    values, codes = read_segments(segments)
    names, codes = _few(np.array(segment_names(values), dtype=object), codes, data.rows)
    before = Uncalibrated().fit_table(data.table).map_
    panels = []
    for code, name in enumerate(names):
        table = ScoreTable.from_rows(_taken(data.rows, codes == code))
        if table:
            panels.append(_panel(name, table, before, fitted.map, level))
    return tuple(sorted(panels, key=lambda panel: -(panel.figures["weight"] or 0.0)))


def _few(
    names: NDArray[Any], codes: NDArray[np.intp], rows: Rows
) -> tuple[list[str], NDArray[np.intp]]:
    """Not too many segments: the smallest are put together."""
    check_lengths(scores=len(rows.scores), segments=len(codes))
    if len(names) <= MOST:
        return list(names), codes
    weight = np.bincount(codes, rows.weight)
    order = np.argsort(-weight, kind="stable")
    place = np.empty(len(names), dtype=np.intp)
    place[order] = np.minimum(np.arange(len(names)), MOST - 1)
    return [*names[order[: MOST - 1]], OTHERS], place[codes]


def _taken(rows: Rows, some: NDArray[np.bool_]) -> Rows:
    weight = None if rows.weight is None else rows.weight[some]
    return Rows(rows.scores[some], rows.positive[some], weight, rows.classes, rows.pos_label)


def _panel(name: str, table: ScoreTable, before: Map, after: Map, level: float) -> Panel:
    columns = (table.negative, table.positive, table.negative_sq, table.positive_sq)
    old = ScoreTable.from_counts(before(table.scores), *columns)
    new = ScoreTable.from_counts(after(table.scores), *columns)
    curves = [reliability_curve(t, bins=5, binning="mass", level=level) for t in (old, new)]
    return Panel(name, curves[0], curves[1], figures_of(old, new, level))


def figures_of(before: ScoreTable, after: ScoreTable, level: float) -> dict[str, float | None]:
    """How often the event came, with its interval, and how often it was predicted."""
    share = np.array([after.total_positive / after.total])
    size = np.array([after.effective_size])
    low, high = clopper_pearson(size, share, (1.0 - level) / 2)
    return {
        "weight": after.total,
        "events": after.total_positive,
        "observed": float(share[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        "before": _mean(before),
        "after": _mean(after),
    }


def _mean(table: ScoreTable) -> float:
    return float(table.weight @ table.scores) / table.total
