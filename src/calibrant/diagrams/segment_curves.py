"""Reliability curves of parts of the rows: is each region, product or year calibrated by itself?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.data.frozen import Frozen
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_column import read_segments, segment_names
from calibrant.data.validation import check_lengths
from calibrant.diagrams.axes_view import frame_of, span_of
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.panels import Panels, panels_of
from calibrant.diagrams.predictions import rows_by_name
from calibrant.errors import InputError
from calibrant.metrics.bin_sweep import Bins
from calibrant.other_words import in_our_words

#: the most segments that one picture can show
MOST = 24


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Frozen):
    """Reliability curves of each segment, of one or several predictions, on common cells.

    Attributes
    ----------
    names : tuple of str
        The segments, sorted.
    panels : tuple of Panels
        The curves of each segment, one per prediction.

    Examples
    --------
    >>> found = reliability_segments([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4], ["n", "n", "s", "s"])
    >>> found
    Segments(n, s; predictions)
    >>> found["s"].fraction.tolist()
    [0.0, 1.0]
    """

    names: tuple[str, ...]
    panels: tuple[Panels, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Curve:
        """The curve of that segment, for the first prediction."""
        return self.overlaid[name]

    @property
    def predictions(self) -> tuple[str, ...]:
        """The names of the predictions."""
        return self.panels[0].names

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The curves of all predictions, segment by segment."""
        return tuple(curve for panels in self.panels for curve in panels.curves)

    @property
    def frame(self) -> tuple[float, float]:
        """The part of [0, 1] that holds all points, all bands and nearly all predictions."""
        frame = frame_of(self.curves)
        return frame.low, frame.high

    @property
    def overlaid(self) -> Panels:
        """The segments as curves of one panel, for the first prediction."""
        return Panels(self.names, tuple(panels.curves[0] for panels in self.panels))

    def to_dict(self) -> dict[str, Any]:
        """The panels of each segment, by name, ready for JSON."""
        pairs = zip(self.names, self.panels, strict=True)
        return {name: panels.to_dict() for name, panels in pairs}

    def __repr__(self) -> str:
        return f"Segments({', '.join(self.names)}; {', '.join(self.predictions)})"

    def __str__(self) -> str:
        pairs = zip(self.names, self.panels, strict=True)
        return "\n\n".join(f"{name}: {panels}" for name, panels in pairs)


@in_our_words
def reliability_segments(
    y: Any,
    p: Any,
    segments: Any,
    *,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "width",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sigma: float | None = None,
    axes: str = "probability",
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Segments:
    """Reliability curves of each segment: a map that is right on the whole may be wrong in parts.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, any two values.
    p : array-like of shape (n,), (n, 1) or (n, 2), or dict of name to such
        Predicted probabilities, or several of them by name.
    segments : array-like of shape (n,), or several columns
        The segment of each row: strings, numbers or anything else that can be told apart, with
        at most 24 different values.
    curve, bins, binning, band, bands, level, sigma, axes, replicates, random_state
    sample_weight, pos_label
        As in `reliability_curve`.

    Returns
    -------
    Segments
        `panel_diagram` draws it, a panel for each segment.

    Notes
    -----
    The curve of a segment is that of its rows alone; a segment without weight is left out.
    O(n log n).

    Examples
    --------
    >>> found = reliability_segments([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4], [2025, 2026, 2025, 2026])
    >>> found.names
    ('2025', '2026')
    """
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    return segments_by(rule, y, p, segments, sample_weight, pos_label)


def segments_by(
    rule: CurveOptions, y: Any, p: Any, segments: Any, sample_weight: Any, pos_label: Any
) -> Segments:
    """The curves of each segment, with these options."""
    if isinstance(y, ScoreTable) or (isinstance(p, Mapping) and not p):
        came = "a ScoreTable" if isinstance(y, ScoreTable) else "no prediction"
        raise InputError(
            f"labels y and predictions p of rows must come with segments, but {came} came."
        )
    values, codes = read_segments(segments)
    if len(values) > MOST:
        raise InputError(
            f"segments must have at most {MOST} different values, but {len(values)} came. Group "
            "rare ones together, or cut numbers into ranges."
        )
    predictions = rows_by_name(y, p, sample_weight, pos_label)
    for rows in predictions.values():
        check_lengths(segments=len(codes), y=len(rows.positive))
    tables = {}
    for code, name in enumerate(segment_names(values)):
        here = codes == code
        own = {called: ScoreTable.from_rows(r.take(here)) for called, r in predictions.items()}
        if all(own.values()):  # a segment without weight is left out
            tables[name] = own
    span = span_of([table for own in tables.values() for table in own.values()], rule.axes)
    panels = tuple(panels_of(own, rule, span=span) for own in tables.values())
    return Segments(tuple(tables), panels)
