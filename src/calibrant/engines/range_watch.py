"""Scores that a calibrator is not for, counted and moved where the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from calibrant.data.doubles import is_finite
from calibrant.data.score_range import (
    FEW,
    ScoreRange,
    check_on_range,
    outside_words,
    warn_of_most,
)
from calibrant.engines.apply_options import ApplyOptions
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted

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
        check_on_range(on_range)
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
            raise InputError(outside_words(self.known, options.said, counts["outside"], rows))
        if isinstance(options.score, str):
            self.warn(counts["below"], counts["above"], rows, options.score)

    def warn(self, below: int, above: int, rows: int, column: str) -> None:
        """Warn if most scores lie beyond those of the fit; a few may well do so."""
        if self.known is not None and rows >= FEW:
            warn_of_most(self.known, below, above, rows, name=f"scores of column {column!r}")

    def moved(self, score: nw.Expr) -> nw.Expr:
        """The score as the map gets it."""
        if self.on_range != "clip" or self.known is None or not self.known.probabilities:
            return score
        inside = nw.when(score > 1.0).then(nw.lit(1.0)).otherwise(score)
        return nw.when(score < 0.0).then(nw.lit(0.0)).otherwise(inside)
