"""A drift for people: the table, the figures beside it, and two plain sentences."""

from __future__ import annotations

from collections.abc import Callable

from calibrant.metrics.first_look import LabelNames
from calibrant.monitor.drift_value import Drift
from calibrant.result_tables import aligned, shown_p, shown_percent, shown_value, sure_p

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
