"""The panels of a page: curves before and after, for each segment of the rows or each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Index
from calibrant.calibrators.uncalibrated import Uncalibrated
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_column import read_segments, segment_names
from calibrant.data.validation import Rows, check_lengths
from calibrant.diagrams.curves import reliability_curve
from calibrant.maps import Map
from calibrant.metrics.interval_formulas import clopper_pearson
from calibrant.reports.report_value import Panel

#: of more segments the smallest are put together; of more classes the rarest are left out
MOST_PANELS = 24
OTHERS = "all others"


def panel_of(name: str, before: ScoreTable, after: ScoreTable, *, bins: int, level: float) -> Panel:
    """The curves of tables of probabilities, how often the event came, and the mean predictions."""
    share = np.array([after.total_positive / after.total])
    size = np.array([after.effective_size])
    low, high = clopper_pearson(size, share, (1.0 - level) / 2)
    figures = {
        "weight": after.total,
        "events": after.total_positive,
        "observed": float(share[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        "before": _mean(before),
        "after": _mean(after),
    }
    first, second = (
        reliability_curve(table, bins=bins, binning="mass", level=level)
        for table in (before, after)
    )
    return Panel(name, first, second, figures)


def _mean(table: ScoreTable) -> float:
    return float(table.weight @ table.scores) / table.total


def segment_panels(
    table: ScoreTable, rows: Rows, segments: Any, fitted_map: Map, level: float
) -> tuple[Panel, ...]:
    """A panel for each segment under one map, the heaviest first."""
    values, codes = read_segments(segments)
    check_lengths(scores=len(rows.scores), segments=len(codes))
    names, codes = _with_small_joined(np.array(segment_names(values), dtype=object), codes, rows)
    unchanged = Uncalibrated().fit_table(table).map_
    panels = []
    for code, name in enumerate(names):
        own = ScoreTable.from_rows(rows.take(codes == code))
        if own:
            before, after = own.through(unchanged), own.through(fitted_map)
            panels.append(panel_of(name, before, after, bins=5, level=level))
    return tuple(sorted(panels, key=lambda panel: -panel.figures["weight"]))


def _with_small_joined(names: NDArray[Any], codes: Index, rows: Rows) -> tuple[list[str], Index]:
    """The segments, the smallest of too many joined to one."""
    if len(names) <= MOST_PANELS:
        return list(names), codes
    weight = np.bincount(codes, rows.weight)
    order = np.argsort(-weight, kind="stable")
    place = np.empty(len(names), dtype=np.intp)
    place[order] = np.minimum(np.arange(len(names)), MOST_PANELS - 1)
    return [*names[order[: MOST_PANELS - 1]], OTHERS], place[codes]
