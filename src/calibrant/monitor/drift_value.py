"""What `check_drift` returns: a value that prints as a table and two sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from calibrant.data.frozen import Frozen
from calibrant.data.provenance import records
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.export.map_given import fitted_of, map_of
from calibrant.maps import Map, VectorMap
from calibrant.metrics.first_look import FirstLook, LabelNames
from calibrant.result_tables import aligned, json_ready, shown_p, shown_percent, shown_value, sure_p


class DriftTest(NamedTuple):
    """One of the three tests: intercept, slope given that, shape given both."""

    name: str
    statistic: float
    df: int
    p_value: float


class Remedy(NamedTuple):
    """What could be done: none, intercept, refit, new map.

    ``saves`` is the log loss, in nats per row, that it would save on further rows. Fitting to these
    rows makes it look better than it is; that is taken off, so ``saves`` can be below 0.
    ``leaves`` is the root mean square distance of its probabilities from those of the largest
    remedy that could be tested, without what chance adds to it.
    """

    name: str
    saves: float
    leaves: float


class Rates(NamedTuple):
    """Shares of positives.

    ``reference`` is that of the reference (None if not known), ``expected`` what the new table
    would have if only its scores had changed, and ``new`` what it has.
    """

    reference: float | None
    expected: float
    new: float


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Frozen):
    """Whether P(y | score) has changed, by how much, and what to do.

    Attributes
    ----------
    recommendation : {"none", "intercept", "refit", "new map"}
        Keep the map; add `shift` to its logit; correct its logit by a line; fit another map.
    p_value : float
        The chance of at least this evidence if nothing has changed: 1 − (1 − smallest p)³.
    tests : tuple of DriftTest
        Those of intercept, slope and shape that the data allow. Each raises the alarm at
        1 − (1 − level)^⅓.
    remedies : tuple of Remedy
        What each would save and leave.
    shift, shift_error : float
        What was added to the logit if nothing else changed, and its standard error.
    line : (float, float)
        What was added to the logit if the change is a line: a + b·z. Here z is the logit of what
        was compared (on the raw scale the score itself). b is 0 if the slope was not tested.
    rates : Rates
    distance : float, or None
        How far the scores themselves moved: the largest difference of the two distribution
        functions (Kolmogorov and Smirnov). It has no part in the tests.
    weights : (float or None, float)
        Total weight of the reference and of the new table.
    size : float
        How many rows of equal weight the new rows that were compared are worth.
    level, least : float
        As given to `check_drift`.
    scale : {"logit", "raw"}
    calibrated : bool
        Whether a calibrator's probabilities were compared; else whatever the tables hold.
    notes : tuple of str
        What deserves a look.
    look : FirstLook or None
        Which way the new scores run (or the calibrator's probabilities), and whether they say
        anything.
    """

    recommendation: str
    p_value: float
    tests: tuple[DriftTest, ...]
    remedies: tuple[Remedy, ...]
    shift: float
    shift_error: float
    line: tuple[float, float]
    rates: Rates
    distance: float | None
    weights: tuple[float | None, float]
    size: float
    level: float
    least: float
    scale: str
    calibrated: bool
    notes: tuple[str, ...] = ()
    look: FirstLook | None = None

    @property
    def wrong_way(self) -> bool:
        """Whether the new scores run the wrong way, or what mends them has a slope below 0."""
        turned = self.look is not None and self.look.found == "wrong way"
        falls = self.calibrated and self.recommendation == "refit" and self.line[1] <= -1.0
        return turned or falls

    @property
    def found(self) -> bool:
        """Whether a change was found, however small."""
        return self.p_value <= self.level

    @property
    def change(self) -> float:
        """The root mean square change of the probability over the new table's scores."""
        return self.remedies[0].leaves

    def update(self, calibrator: Any) -> Fitted:
        """The calibrator, changed as recommended: by ``"intercept"`` or ``"refit"``.

        Its map is followed by σ(a + b·logit p). If the map is a sigmoid of a line, a map of steps,
        or ends in an earlier update, its own numbers are changed instead. So a calibrator does not
        grow with its updates. It is saved and exported like any other.

        Parameters
        ----------
        calibrator : fitted calibrator, Fitted or Map
            The one that the check was about.

        Returns
        -------
        Fitted
            The calibrator as it came if nothing is to be done. ``provenance["updated"]`` keeps a
            record of this and all earlier updates: what was done, why, and on how much data.

        Notes
        -----
        An intercept is the same whatever was compared, so it can follow any calibrator that was
        right for the reference. A slope belongs to the logit that it was found on. So it is refused
        if the check did not know the calibrator (as the reference or as ``calibrator=``), and if
        it is not above 0. A new map cannot be made of these figures: fit one to new rows. O(1).

        Examples
        --------
        >>> import calibrant as cal
        >>> from calibrant.monitor import check_drift
        >>> from calibrant.maps import Identity
        >>> new = cal.ScoreTable.from_counts([0.2, 0.5, 0.8], [600, 300, 100], [400, 700, 900])
        >>> drift = check_drift(Identity(), new)
        >>> drift.recommendation
        'intercept'
        >>> drift.update(Identity()).calibrate([0.2, 0.5, 0.8]).round(1).tolist()
        [0.4, 0.7, 0.9]
        """
        map_ = map_of_one_score(calibrator)
        fitted = fitted_of(calibrator) or Fitted(map_, (0, 1), 1)
        added = {"intercept": (self.shift, 0.0), "refit": self.line, "none": None}
        if self.recommendation not in added:
            raise InputError(
                "the shape of P(y | score) has changed, which no shift or slope of the logit "
                "follows. Fit a calibrator to new rows, and save that."
            )
        if self.recommendation == "refit" and not self.calibrated:
            raise InputError(
                "a slope belongs to the logit that it was found on, and two tables do not say "
                "whether they hold this calibrator's probabilities. Check again with "
                "calibrator=..., or refit the calibrator to new rows."
            )
        line = added[self.recommendation]
        if line is None:
            return fitted
        if self.wrong_way:
            raise InputError(
                "the calibrator's probabilities must still rise with the truth, but the slope that "
                f"mends them is {1.0 + line[1]:.3g}: the scores run the wrong way, upside down. "
                "Find out why before anything is fitted."
            )
        facts = fitted.provenance
        note = {
            "remedy": self.recommendation,
            "intercept": line[0],
            "slope": 1.0 + line[1],
            "weight": self.weights[1],
            "effective_size": self.size,
            "rate": self.rates.new,
            "p_value": self.p_value,
            "after_adjustments": len(records(facts, "prior")),
        }
        return replace(
            fitted,
            map=map_.corrected(line[0], 1.0 + line[1]),
            provenance={**facts, "updated": [*records(facts, "updated"), note]},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "recommendation": self.recommendation,
            "found": self.found,
            "p_value": self.p_value,
            "level": self.level,
            "least": self.least,
            "change": self.change,
            "tests": [test._asdict() for test in self.tests],
            "remedies": [remedy._asdict() for remedy in self.remedies],
            "shift": self.shift,
            "shift_error": self.shift_error,
            "line": list(self.line),
            "rates": self.rates._asdict(),
            "distance": self.distance,
            "weights": dict(zip(("reference", "new"), self.weights, strict=True)),
            "size": self.size,
            "scale": self.scale,
            "calibrated": self.calibrated,
            "notes": list(self.notes),
            "look": None if self.look is None else json_ready(self.look),
            "wrong_way": self.wrong_way,
        }

    def __str__(self) -> str:
        return "\n".join((*table_of(self), *facts(self), *in_words(self)))

    __repr__ = __str__


def map_of_one_score(calibrator: Any) -> Map:
    """The map of a calibrator of one score; others are refused with a reason."""
    if not isinstance(calibrator, Map) and not hasattr(calibrator, "to_fitted"):
        raise InputError(
            "the calibrator must be fitted, what load returns, or a map, but "
            f"{type(calibrator).__name__} came."
        )
    map_ = map_of(calibrator)
    if map_.segments is not None:
        raise InputError(
            "a calibrator of segments has a map for each of them. Check each segment's table by "
            "itself, against its own map."
        )
    if isinstance(map_, VectorMap):
        raise InputError(
            "a calibrator of several classes has no table of one score. Use check_class_drift, "
            "which checks each class against the rest."
        )
    return map_


# --- words ----------------------------------------------------------------------------------------

HEAD = ("what changes", "statistic", "df", "p-value", "remedy", "saves (nats/row)", "leaves (RMS)")
LEFT = ("what changes", "remedy")


def table_of(drift: Drift) -> list[str]:
    """The lines of the table, each with a test and the remedy for what it finds."""
    rows = [HEAD, ("nothing", "", "", "", *_remedy(drift, 0))]
    for place, test in enumerate(drift.tests, start=1):
        figures = (f"{test.statistic:.2f}", str(test.df), shown_p(test.p_value))
        rows.append((test.name, *figures, *_remedy(drift, place)))
    return aligned(rows, ["left" if title in LEFT else "right" for title in HEAD])


def _remedy(drift: Drift, place: int) -> tuple[str, str, str]:
    name, saves, leaves = drift.remedies[place]
    return name, shown_value(saves), shown_value(leaves)


def facts(drift: Drift) -> list[str]:
    """Sizes, rates, how far the scores moved, and the notes."""
    old, new = drift.weights
    rates = drift.rates
    sizes = f"weight {new:,.10g}" if old is None else f"weight {old:,.10g} then, {new:,.10g} now"
    then = "" if rates.reference is None else f"{shown_percent(rates.reference)} then, "
    expected, came = shown_percent(rates.expected), shown_percent(rates.new)
    shares = f"positive: {then}{expected} expected now, {came} came"
    lines = [f"{sizes}; {shares}"]
    if drift.distance is not None:
        lines.append(
            f"the scores themselves moved by {drift.distance:.3f} (KS); no part of the test"
        )
    return lines + [f"note: {note}" for note in drift.notes]


def in_words(
    drift: Drift, doer: str = "drift.update(calibrator)", names: LabelNames | None = None
) -> tuple[str, str]:
    """What was found, and what to do; ``doer`` is what does it, ``names`` are those of the labels.

    Scores that run the wrong way, or say nothing, come first: nothing is to be fitted then.
    """
    found, todo = _WORDS[drift.recommendation](drift, doer)
    first = ""
    if drift.look is not None and drift.look.useless:
        first = drift.look.headline(names or LabelNames(face="check"))
    elif drift.wrong_way:
        first = (
            "These scores run the wrong way: the slope that would mend them is "
            f"{1.0 + drift.line[1]:.3g}."
        )
    if not first:
        return found, todo
    if drift.recommendation != "none":
        todo = "Find out why before anything is fitted or updated."
    return f"{first} {found}", todo


def _none(drift: Drift, doer: str) -> tuple[str, str]:
    if not drift.found:
        return (
            f"No change was found ({sure_p(drift.p_value)}): what differs is within chance.",
            "Keep the calibrator.",
        )
    return (
        f"A change was found ({sure_p(drift.p_value)}), but it is small: it moves probabilities by "
        f"{drift.change:.2g} (root mean square), less than the {drift.least:g} that matter here.",
        "Keep the calibrator.",
    )


def _intercept(drift: Drift, doer: str) -> tuple[str, str]:
    return (
        f"The log-odds of all rows have moved alike ({sure_p(drift.p_value)}), by "
        f"{drift.shift:+.3f} ± {2 * drift.shift_error:.3f}; probabilities by {drift.change:.2g}.",
        f"Add {drift.shift:.3f} to the logit: {doer} does, by following its map "
        f'with calibrant.maps.Logistic({drift.shift:.6g}, (("z", 1.0),)).',
    )


def _refit(drift: Drift, doer: str) -> tuple[str, str]:
    a, b = drift.line
    z = "logit(score)" if drift.scale == "logit" else "score"
    if drift.calibrated:
        todo = (
            f"Correct the logit by a line: {doer} does, by following its map with "
            f'calibrant.maps.Logistic({a:.6g}, (("z", {1 + b:.6g}),)).'
        )
        z = "logit(p)"
    else:
        todo = "Refit the calibrator to new rows; the same method will do."
    return (
        f"The log-odds have moved by {a:+.3f} {b:+.3f}·{z} ({sure_p(drift.p_value)}); "
        f"probabilities by {drift.change:.2g} (root mean square).",
        todo,
    )


def _new_map(drift: Drift, doer: str) -> tuple[str, str]:
    return (
        f"The shape of P(y | score) has changed ({sure_p(drift.p_value)}): probabilities by "
        f"{drift.change:.2g} (root mean square), and a line on the logit would leave "
        f"{drift.remedies[2].leaves:.2g}.",
        "Fit a calibrator anew to new rows; one that may bend, such as BLS or Spline.",
    )


_WORDS: dict[str, Callable[[Drift, str], tuple[str, str]]] = {
    "none": _none,
    "intercept": _intercept,
    "refit": _refit,
    "new map": _new_map,
}
