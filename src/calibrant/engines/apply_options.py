"""What to do when calibrated probabilities are added to rows: the options, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from calibrant.data.columns import (
    check_segment_columns,
    class_column_names,
    is_finite,
    segment_columns_of,
)
from calibrant.data.door import check_word
from calibrant.data.scale import FEW, ON_RANGE, ScoreRange, outside_message, warn_of_far_scores
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.rules.base import Map, VectorMap

ON_MISSING = ("error", "null")


@dataclass(frozen=True)
class ApplyOptions:
    """How files are copied with one more column, the calibrated probability of ``pos_label``.

    With a calibrator of several classes there is a new column for each class.

    Parameters
    ----------
    score : str, or tuple of str
        The column of scores; of several classes one for each, in the order of the classes.
    into : str, default="probability"
        The new column. Of several classes: what the names of the new columns begin with, followed
        by ``_`` and the class.
    segment : str or tuple of str, optional
        The column of segments, needed where the calibrator has a map for each segment; several
        from coarse to fine, as in the fit. Segments are compared as text, so 1 and ``"1"`` are the
        same. Blanks around the text do not count. If all segments of the calibrator are whole
        numbers, 01 and 1.0 are the same as 1. Segments that the calibrator has not seen get the map
        of all rows, or of the coarser segment.
    on_missing : {"error", "null"}, default="error"
        What to do with rows that have no score, or no segment where one is needed. ``"null"``
        leaves their probability empty.
    on_range : {"error", "clip", "allow"}, default="error"
        What to do with scores outside [0, 1] where the calibrator was fitted on probabilities:
        refuse them, count them as 0 or 1, or take them as they are.
    overwrite_column : bool, default=False
        Allow ``into`` to replace a column of that name, in its place.
    force : bool, default=False
        Allow Spark to replace a folder of the output's name. DuckDB replaces a file as it is.
    """

    score: str | tuple[str, ...]
    into: str = "probability"
    segment: str | tuple[str, ...] | None = None
    on_missing: str = "error"
    on_range: str = "error"
    overwrite_column: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        check_word("on_missing", self.on_missing, ON_MISSING)
        check_word("on_range", self.on_range, ON_RANGE)
        segment_columns_of(self.segment)
        if not isinstance(self.into, str) or not self.into.strip():
            raise ParameterError(
                f"into must be the name of the new column, but {self.into!r} came."
            )

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [*self.scores, *self.segments]

    @property
    def segments(self) -> tuple[str, ...]:
        """The columns of segments: none, one or several."""
        return segment_columns_of(self.segment)

    @property
    def scores(self) -> tuple[str, ...]:
        """The columns of scores, one or several."""
        return (self.score,) if isinstance(self.score, str) else self.score

    @property
    def said(self) -> str:
        """The columns of scores in words."""
        names = self.scores
        if isinstance(self.score, str):
            return f"score column {self.score!r}"
        return f"score columns {', '.join(map(repr, names[:6]))}{', …' if len(names) > 6 else ''}"

    def takes_distributions(self, map_: Map) -> bool:
        """Whether the scores of a row must be probabilities that sum to one."""
        several = isinstance(map_, VectorMap) and map_.reads == "probability"
        return several and self.on_range != "allow"

    def new_columns(self, fitted: Fitted) -> list[str]:
        """The names of the new columns: one, or one for each of several classes."""
        if not isinstance(fitted.map, VectorMap):
            return [self.into]
        return class_column_names(self.into, fitted.classes)

    def check_fitted(self, fitted: Fitted) -> None:
        """Refuse a calibrator that these options do not fit."""
        wanted = fitted.map.n_columns if isinstance(fitted.map, VectorMap) else 1
        if len(self.scores) != wanted:
            need = "one column" if wanted == 1 else f"{wanted} columns"
            raise InputError(
                f"this calibrator reads {need} of scores, but {len(self.scores)} came: "
                f"{', '.join(map(repr, self.scores[:8]))}. Name as many as it reads."
            )
        check_segment(fitted.map, self.segments)

    def check_columns(self, new: Sequence[str], names: Sequence[str], file: str) -> None:
        """Refuse a file that has a new column already, unless it may be replaced."""
        there = [name for name in new if name in names]
        if there and not self.overwrite_column:
            raise InputError(
                f"{file} already has a column {there[0]!r}. Give the new one another name (into), "
                "or allow the old one to be replaced (overwrite-column)."
            )


def check_segment(fitted_map: Map, segments: Sequence[str]) -> None:
    """A calibrator of segments needs their columns, and no other can use one."""
    if fitted_map.segments is not None and not segments:
        raise InputError(
            "the calibrator has a map for each segment: name the column of segments (segment=)."
        )
    if fitted_map.segments is None and segments:
        raise InputError(
            f"the calibrator has one map for all rows, but a column of segments came: "
            f"{', '.join(map(repr, segments))}. Leave it out."
        )
    check_segment_columns(segments, fitted_map.n_segment_columns)


# --- Scores that a calibrator is not for, counted and moved where the rows are --------------------


#: what scores must be, where the calibrator was fitted on probabilities
AS_FITTED = "be probabilities in [0, 1], as those are that the calibrator was fitted on"


def expected_range(calibrator: Any) -> ScoreRange | None:
    """The scores that a calibrator of any form is for; a bare map is one of any number."""
    if isinstance(calibrator, Fitted):
        return calibrator.expects
    known = getattr(calibrator, "score_range_", None)
    return known if isinstance(known, ScoreRange) else None


def all_finite(columns: Sequence[nw.Expr]) -> nw.Expr:
    """Whether a row has a finite number in all of the columns."""
    finite = (~own.is_null() & is_finite(own) for own in columns)
    return nw.all_horizontal(*finite, ignore_nulls=False)


class RangeWatch:
    """Watches for scores that a calibrator is not for: counts, moves, refuses, or warns of them."""

    def __init__(self, known: ScoreRange | None, on_range: str) -> None:
        check_word("on_range", on_range, ON_RANGE)
        self.known = None if on_range == "allow" else known
        self.on_range = on_range

    @property
    def refuses(self) -> bool:
        """Whether some scores must be refused, so that they have to be counted first."""
        return self.known is not None and self.known.probabilities and self.on_range == "error"

    def flags(self, columns: Sequence[nw.Expr]) -> dict[str, nw.Expr]:
        """What is counted: rows with scores outside [0, 1]; and of a single column, with scores
        below and above those of the fit."""
        if self.known is None:
            return {}
        usable = all_finite(columns)
        outside = ((own < 0.0) | (own > 1.0) for own in columns)
        found = {"outside": usable & nw.any_horizontal(*outside, ignore_nulls=False)}
        if len(columns) == 1:
            found["below"] = usable & (columns[0] < self.known.low)
            found["above"] = usable & (columns[0] > self.known.high)
        return found

    def judge(self, counts: dict[str, int], rows: int, options: ApplyOptions) -> None:
        """Refuse or warn by what was counted."""
        if self.known is None:
            return
        if self.refuses and counts["outside"]:
            raise InputError(outside_message(self.known, options.said, counts["outside"], rows))
        if isinstance(options.score, str):
            self.warn(counts["below"], counts["above"], rows, options.score)

    def warn(self, below: int, above: int, rows: int, column: str) -> None:
        """Warn if most scores lie beyond those of the fit; a few may well do so."""
        if self.known is not None and rows >= FEW:
            warn_of_far_scores(self.known, below, above, rows, name=f"scores of column {column!r}")

    def moved(self, score: nw.Expr) -> nw.Expr:
        """The score as the map gets it."""
        if self.on_range != "clip" or self.known is None or not self.known.probabilities:
            return score
        inside = nw.when(score > 1.0).then(nw.lit(1.0)).otherwise(score)
        return nw.when(score < 0.0).then(nw.lit(0.0)).otherwise(inside)
