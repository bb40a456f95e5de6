"""The section of a page that tells in which groups of rows predictions are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.attribute_table import read_table as read_features
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_lengths
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.metrics.group_errors import multicalibration_of_rows
from calibrant.metrics.group_results import GroupError, Multicalibration
from calibrant.reports.axes import PlotArea, linear_axis
from calibrant.reports.markup import Markup, element
from calibrant.reports.page_parts import (
    Column,
    Word,
    explained,
    figure,
    page_section,
    page_table,
    signed,
    small_text,
)
from calibrant.reports.svg_parts import chart_text, look, picture, told_points
from calibrant.result_tables import counted, short_value, shown_value

#: groups that a page holds, of all that were looked at
MOST_GROUPS = 30
#: the picture: its width, what is free at the sides, the height of a group and of the axis
WIDTH, SIDE, EACH, AXIS = 420, 14, 44, 44
#: letters of a name that fit the picture
LETTERS = 52


# --- from rows ------------------------------------------------------------------------------------


def check_features(scores: Any, features: Any, *, several: bool) -> None:
    """Refuse features that cannot be looked at, before anything is fitted."""
    if several:
        raise InputError("features are looked at for two classes, but several columns came.")
    if isinstance(scores, ScoreTable):
        raise InputError(
            "features belong to rows, but a ScoreTable came, which has none. Pass scores and y."
        )
    check_lengths(scores=len(scores), features=len(read_features(features)))


def groups_of(rows: Rows, features: Any, fitted: Fitted | None, level: float) -> Multicalibration:
    """Where the final map is wrong, on the rows that it was fitted to: the worst groups."""
    if fitted is None:
        raise InputError(
            "features need a map of the score, but probabilities came. Pass a calibrator, or use "
            "metrics.multicalibration."
        )
    predicted = replace(rows, scores=np.clip(fitted.map(rows.scores), 0.0, 1.0))
    return for_page(multicalibration_of_rows(predicted, features, level=level))


def for_page(found: Multicalibration) -> Multicalibration:
    """The same with as many groups as a page holds."""
    return replace(found, groups=found.groups[:MOST_GROUPS])


# --- on the page ----------------------------------------------------------------------------------


def where_section(found: Multicalibration | None) -> Markup:
    """What was found, a picture of the worst groups, and their table; nothing without features."""
    if found is None:
        return Markup()
    told = (
        "The final map, on the rows it was fitted to. Groups come from the columns, from ranges of "
        "the prediction, and from each two of these crossed. Their intervals hold together: they "
        "are wider than that of one group by itself. "
        f"The largest difference is {shown_value(found.largest)}, by chance alone it would be "
        f"about {shown_value(found.largest_expected)}."
    )
    if found.wrong:
        told += (
            " A map of the score cannot mend groups. FeatureCalibrator learns from the columns: in "
            "Python fit(scores, y, features=...), or calibrant fit with --features."
        )
    return page_section(
        "groups",
        "Where is it wrong?",
        element("p", found.verdict()),
        figure("large", "Observed − predicted, group by group", _picture(found)),
        _table(found),
        explained(told),
        *(explained(f"{note[:1].upper()}{note[1:]}.") for note in found.notes),
    )


def _picture(found: Multicalibration) -> Markup:
    """A line for each group: its name, and the difference with its interval."""
    groups = found.shown
    ends = [end for one in groups for end in (one.low, one.high)]
    axis = linear_axis(min(0.0, *ends), max(0.0, *ends))
    height = EACH * len(groups)
    place = PlotArea(SIDE, 0, WIDTH - 2 * SIDE, height, axis, linear_axis(0.0, 1.0))
    zero = float(place.across(0.0))
    parts = [
        element("path", class_="axis", d=f"M{zero:.1f} 0V{height}"),
        element("path", class_="axis", d=f"M{SIDE} {height}h{WIDTH - 2 * SIDE}"),
    ]
    for tick in axis.ticks:
        parts.append(chart_text(float(place.across(tick)), height + 17, axis.said(tick), "middle"))
    words = "← predicted too high · predicted too low →"
    parts.append(chart_text(WIDTH / 2, height + 37, words, "middle"))
    return picture(
        "dots",
        "Observed minus predicted in the worst groups, with intervals",
        (WIDTH, height + AXIS),
        element("g", *parts, aria_hidden="true"),
        *(_line(one, EACH * i, place, found.level) for i, one in enumerate(groups)),
    )


def _line(one: GroupError, top: float, place: PlotArea, level: float) -> Markup:
    number = 1 if one.wrong else 0
    low, at, high = place.across(np.array([one.low, one.difference, one.high]))
    down = top + 30
    name = one.name if len(one.name) <= LETTERS else f"{one.name[: LETTERS - 1]}…"
    words = (
        one.name,
        f"predicted {short_value(one.predicted)}",
        f"observed {short_value(one.observed)}",
        f"{100 * level:g} % interval of the difference "
        f"{short_value(one.low)} to {short_value(one.high)}",
        f"rows {one.rows:,}",
    )
    return element(
        "g",
        chart_text(place.left, top + 16, name, "start"),
        element("path", class_="line", d=f"M{low:.1f} {down:.1f}H{high:.1f}"),
        told_points(np.array([at]), np.array([down]), [words], number),
        class_=f"series {look(number)}",
    )


def _table(found: Multicalibration) -> Markup:
    groups = found.shown
    differences = []
    for one in groups:
        span = small_text(f"{signed(one.low)} to {signed(one.high)}")
        differences.append(element("span", signed(one.difference), " ", span))
    sense = {"fits": "better", "too low": "worse", "too high": "worse"}
    columns = (
        Column("group", [one.name for one in groups], ""),
        Column("rows", [counted(one.rows) for one in groups]),
        Column("predicted", [shown_value(one.predicted) for one in groups]),
        Column("observed", [shown_value(one.observed) for one in groups]),
        Column(f"difference, {100 * found.level:g} % interval", differences),
        Column("p", [short_value(one.p_value) for one in groups]),
        Column("", [Word(one.verdict, sense[one.verdict]) for one in groups], ""),
    )
    return page_table("Where predictions are wrong", columns)
