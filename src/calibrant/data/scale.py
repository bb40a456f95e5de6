"""The scale of scores (probabilities, percentages, margins, points), and the range of a fit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.documents import brief
from calibrant.data.door import check_word, finite_float
from calibrant.data.frozen import Frozen
from calibrant.errors import InputError, RangeWarning, caller_level, counts_in_words
from calibrant.losses import SMALLEST

Kind = Literal["probabilities", "percentages", "margins", "points"]

#: scores that are never negative, and whose largest is above the first number and at most the
#: second, look like percentages
PERCENT = (10.0, 100.0)
#: no margin is a log-odds further from 0 than this
FURTHEST = 100.0
#: how scores are read as probabilities, in a legend
IN_SHORT: dict[Kind, str] = {
    "probabilities": "",
    "margins": "through σ",
    "percentages": "divided by 100",
    "points": "one rate for all rows",
}


class ScoreScale(NamedTuple):
    """The scale of scores, found from the smallest and the largest of all scores of a fit.

    It is decided once, for the whole, and folds, segments and other parts are read alike. For
    scores of several classes ``rows`` is "probability" where every row is a distribution, else
    "logit"; it is empty where that is not known.
    """

    low: float
    high: float
    rows: str = ""

    @classmethod
    def of_parts(cls, scales: Iterable[ScoreScale]) -> ScoreScale:
        """The scale of all scores of several parts."""
        lows, highs, _ = zip(*scales, strict=True)
        return cls(min(lows), max(highs))

    @property
    def probabilities(self) -> bool:
        """Whether all scores lie in [0, 1]."""
        return self.low >= 0.0 and self.high <= 1.0

    @property
    def kind(self) -> Kind:
        """The kind of the scores.

        In [0, 1]: probabilities. From 0 to more than 10 and at most 100: percentages. Further from
        0 than 100: points, which no formula turns into probabilities. All others: margins.

        >>> [ScoreScale(*ends).kind for ends in ((0.1, 0.9), (0, 97), (-3, 4), (300, 850))]
        ['probabilities', 'percentages', 'margins', 'points']
        """
        if self.probabilities:
            return "probabilities"
        if self.low >= 0.0 and PERCENT[0] < self.high <= PERCENT[1]:
            return "percentages"
        return "points" if max(-self.low, self.high) > FURTHEST else "margins"

    @property
    def centre(self) -> float:
        """The number from which reversed scores are subtracted: 1 for probabilities, 100 for
        percentages, 0 for all others.

        ``centre`` − s is of the same kind as s.
        """
        return {"probabilities": 1.0, "percentages": PERCENT[1]}.get(self.kind, 0.0)

    @property
    def turned(self) -> str:
        """How scores that run the other way are read, in words.

        >>> [ScoreScale(*ends).turned for ends in ((0.1, 0.9), (0, 97), (300, 850))]
        ['1 − score', '100 − score', '−score']
        """
        return f"{self.centre:g} − score" if self.centre else "−score"

    @property
    def mirrored(self) -> ScoreScale:
        """The scale of reversed scores (see `centre`).

        >>> all_ends = (0.1, 0.9), (91, 97), (-1, 0), (300, 850)
        >>> [ScoreScale(*ends).mirrored.kind for ends in all_ends]
        ['probabilities', 'percentages', 'margins', 'points']
        """
        if self.kind == "percentages":
            return ScoreScale(0.0, PERCENT[1])
        low, high = self.centre - self.high, self.centre - self.low
        # margins from −1 to 0 do not become probabilities
        return ScoreScale(low if self.probabilities else min(low, -SMALLEST), high)

    def words(self) -> str:
        """A phrase on how the scores are read as probabilities; empty where they are such.

        >>> ScoreScale(0, 97).words()
        'go from 0 to 97, look like percentages and were divided by 100'
        """
        ends = f"from {self.low:.4g} to {self.high:.4g}"
        return {
            "probabilities": "",
            "percentages": f"go {ends}, look like percentages and were divided by 100",
            "margins": "lie outside [0, 1] and were read as margins, through the sigmoid",
            "points": "are points, not probabilities, so that only their order is judged",
        }[self.kind]


def percent_ends(least: float, most: float) -> tuple[float, float]:
    """The limits that percentages are clipped to before they are divided by 100.

    A percentage of 0 or 100 was mostly rounded, and is no certainty: the limits are halfway
    between 0 and the ``least`` score above it, and between 100 and the ``most`` below.

    >>> percent_ends(1, 97)
    (0.5, 98.5)
    """
    return 0.5 * least, 50.0 + 0.5 * most


# --- Which scores a calibrator is for -------------------------------------------------------------


AnyArray = NDArray[Any]
OnRange = Literal["error", "clip", "allow"]

#: what to do with scores that cannot be of the kind that a calibrator was fitted on
ON_RANGE = ("error", "clip", "allow")
KINDS = ("probability", "number")
#: fewer scores than this may well lie beyond those of the fit; of so few, only far ones count
FEW = 10
#: what `on_range` is for, at the end of an error
WHAT_TO_DO = (
    "Divide percentages by 100, and give a calibrator of probabilities no margins or logits. To "
    'move them to the nearest of 0 and 1, say on_range="clip"; if they are right, since the fit '
    'only happened to have none outside [0, 1], on_range="allow".'
)


@dataclass(frozen=True, eq=False)
class ScoreRange(Frozen):
    """The scores that a calibrator was fitted on: of which kind, and from where to where.

    Parameters
    ----------
    kind : {"probability", "number"}
        Whether all of them lay in [0, 1], so that new ones must lie there too; or not.
    low, high : float
        From where to where they went; of several columns, over all of them. `between` rounds
        outwards to three digits of their distance. A least or largest score of so few digits
        stays as it is.

    Examples
    --------
    >>> ScoreRange.between(0.0217, 0.97132)
    ScoreRange(kind='probability', low=0.021, high=0.972)
    >>> ScoreRange.between(-3.1, 2.9).words()
    'numbers (it was fitted on -3.1 to 2.9)'
    """

    kind: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(
                f"the kind of a score range must be one of {KINDS}, but {brief(self.kind)} came."
            )
        for name in ("low", "high"):
            number = finite_float(getattr(self, name), f"{name} of a score range")
            object.__setattr__(self, name, number)
        if self.low > self.high:
            raise InputError(
                "the lower end of a score range must not be above the upper one, but "
                f"{self.low:g} and {self.high:g} came."
            )
        if self.kind == "probability" and not (self.low >= 0.0 and self.high <= 1.0):
            raise InputError(
                f"a score range of probabilities must lie in [0, 1], but {self.low:g} to "
                f"{self.high:g} came."
            )

    @classmethod
    def between(cls, low: float, high: float, *, probabilities: bool = True) -> ScoreRange:
        """The range of scores with these ends, rounded outwards.

        They are probabilities if both ends lie in [0, 1], unless ``probabilities`` is False.
        """
        low, high = float(low), float(high)
        inside = probabilities and low >= 0.0 and high <= 1.0
        size = (high - low) or abs(low)
        if 0.0 < size < math.inf:
            digits = 2 - math.floor(math.log10(size))
            low, high = _round_outwards(low, digits, -1), _round_outwards(high, digits, 1)
        if inside:
            low, high = max(low, 0.0), min(high, 1.0)
        return cls("probability" if inside else "number", low, high)

    @property
    def probabilities(self) -> bool:
        """Whether scores must lie in [0, 1]."""
        return self.kind == "probability"

    def words(self) -> str:
        """A phrase for exports that says which scores the calibrator takes."""
        kind = "probabilities in [0, 1]" if self.probabilities else "numbers"
        return f"{kind} (it was fitted on {self.low:.6g} to {self.high:.6g})"

    def to_dict(self) -> dict[str, Any]:
        """The range as JSON can hold it."""
        return {"kind": self.kind, "low": self.low, "high": self.high}

    @staticmethod
    def from_dict(found: Any) -> ScoreRange | None:
        """The range that `to_dict` wrote; None for None."""
        if found is None:
            return None
        if not isinstance(found, Mapping) or set(found) != {"kind", "low", "high"}:
            raise InputError(
                "a score range must be an object of kind, low and high, or null, but "
                f"{brief(found)} came."
            )
        return ScoreRange(found["kind"], found["low"], found["high"])


def _round_outwards(value: float, digits: int, side: int) -> float:
    """The value rounded to so many decimals: never below it for side 1, never above it for side
    −1."""
    try:
        near = round(value, digits)
        if side * near < side * value:
            near = round(near + side * 10.0**-digits, digits)
    except OverflowError:  # among the largest floats
        return value
    return near if side * near >= side * value and math.isfinite(near) else value


def check_score_range(
    scores: AnyArray, known: ScoreRange | None, on_range: str, *, name: str = "scores"
) -> AnyArray:
    """New scores, checked against the range of the fit.

    Where the fit was on probabilities, scores outside [0, 1] are refused, or clipped with
    ``on_range="clip"``. If most scores are outside the range of the fit, a `RangeWarning` says so:
    there the map was never fitted.
    """
    check_word("on_range", on_range, ON_RANGE)
    if on_range == "allow" or known is None or not scores.size:
        return scores
    low, high = float(scores.min()), float(scores.max())
    if known.probabilities and (low < 0.0 or high > 1.0):
        if on_range == "error":
            outside = ((scores < 0.0) | (scores > 1.0)).reshape(len(scores), -1).any(axis=1)
            first = int(np.argmax(outside))
            row = np.atleast_1d(scores[first])
            value = row[(row < 0.0) | (row > 1.0)][0]
            said = f"row {first}: {value:g}"
            raise InputError(outside_message(known, name, int(outside.sum()), len(scores), said))
        scores = np.clip(scores, 0.0, 1.0)
        low, high = max(low, 0.0), min(high, 1.0)
    if low < known.low or high > known.high:
        # of few scores only those count that are farther out than that range is wide
        width = known.high - known.low if scores.size < FEW else 0.0
        below = int((scores < known.low - width).sum())
        above = int((scores > known.high + width).sum())
        warn_of_far_scores(known, below, above, scores.size, name=name)
    return scores


def outside_message(known: ScoreRange, name: str, count: int, total: int, first: str = "") -> str:
    """The error text for scores outside [0, 1] where the calibrator was fitted to probabilities."""
    example = f" (first at {first})" if first else ""
    what = counts_in_words({"not": count}, total)
    return f"{name} must {as_fitted(known)}: {what}{example}. {WHAT_TO_DO}"


def as_fitted(known: ScoreRange) -> str:
    """The end of an error: scores must be probabilities, as in the fit."""
    return (
        "be probabilities in [0, 1], as those are that the calibrator was fitted on "
        f"({known.low:.6g} to {known.high:.6g})"
    )


def warn_of_far_scores(known: ScoreRange, below: int, above: int, count: int, *, name: str) -> None:
    """Warn if more than half of ``count`` scores lie outside the range of the fit.

    ``below`` and ``above`` are the numbers of scores on each side of it.
    """
    if 2 * (below + above) <= count:
        return
    side = "below" if below > above else "above"
    warnings.warn(
        f"most {name} lie beyond those that the calibrator was fitted on "
        f"({known.low:.6g} to {known.high:.6g}): {below + above:,} of {count:,}, most of them "
        f"{side}. There a map has seen nothing, and only goes on as it ends. Make sure that they "
        'are scores of the same kind; if they are, say on_range="allow", or fit anew.',
        RangeWarning,
        stacklevel=caller_level(),
    )
