"""Scores that a calibrator is not for, counted and moved where the rows are."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from calibrant.data.score_range import (
    FEW,
    ScoreRange,
    check_on_range,
    outside_words,
    warn_of_most,
)
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

    def flags(self, score: nw.Expr) -> dict[str, nw.Expr]:
        """What is counted: scores outside [0, 1], and scores below and above those of the fit."""
        if self.known is None:
            return {}
        usable = score.is_finite()
        outside = usable & ((score < 0.0) | (score > 1.0))
        return {
            "outside": outside,
            "below": usable & (score < self.known.low),
            "above": usable & (score > self.known.high),
        }

    def judge(self, counts: dict[str, int], rows: int, column: str) -> None:
        """Refuse or warn by what was counted."""
        if self.known is None:
            return
        name = f"score column {column!r}"
        if self.refuses and counts["outside"]:
            raise InputError(outside_words(self.known, name, counts["outside"], rows))
        self.warn(counts["below"], counts["above"], rows, column)

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
