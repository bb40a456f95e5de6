"""The page of a calibration: verdict, leaderboard, diagrams, measures, how to apply it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Index
from calibrant.data.attributes import read_attributes as read_features
from calibrant.data.door import Rows, check_lengths
from calibrant.data.score_table import ScoreTable
from calibrant.data.segments import read_segments, segment_titles
from calibrant.diagrams.curve import reliability_curve
from calibrant.errors import InputError
from calibrant.fitting.fitted import Fitted
from calibrant.methods.uncalibrated import Uncalibrated
from calibrant.metrics.evaluating import Evaluation, MulticlassEvaluation
from calibrant.metrics.formulas import clopper_pearson
from calibrant.metrics.groups import GroupError, Multicalibration, multicalibration_of_rows
from calibrant.reports.kit import (
    Column,
    Markup,
    PlotArea,
    Word,
    chart_text,
    element,
    explained,
    fact_section,
    figure,
    folded,
    forest,
    join,
    linear_axis,
    look,
    map_picture,
    page_section,
    page_table,
    picture,
    radio_buttons,
    recipe_section,
    reliability,
    signed,
    small,
    small_text,
    swatch,
    tile_row,
    told_points,
    verdict_section,
    whole_page,
)
from calibrant.reports.value import Method, Panel, Report
from calibrant.result_tables import counted, short_value, shown_percent, shown_value
from calibrant.rules.base import Map

#: figures at a glance
TILES = 3


def to_html(report: Report) -> str:
    """The page as text; whatever comes from data is escaped."""
    order = _looks(report.methods)
    sections = (
        verdict_section(report.verdict, _tiles(report), report.how),
        _advice(report),
        _leaderboard(report, order),
        _diagrams(report, order),
        _gallery(report, order),
        _measures(report),
        _panels(report),
        where_section(report.groups),
        recipe_section("How to apply it", report.recipes),
        fact_section(report.facts),
    )
    hide = "".join(
        f"body:has(#show-{i}:not(:checked)) .series-{i}{{display:none}}"
        for i in range(len(report.methods))
    )
    return whole_page(report.title, sections, report.to_dict(), caution=report.caution, style=hide)


def _looks(methods: Sequence[Method]) -> list[int]:
    """The look of each method: grey for the scores as they are, blue for the chosen one."""
    looks, following = [], 2
    for i, method in enumerate(methods):
        if i == 0 or method.chosen:
            looks.append(0 if i == 0 else 1)
        else:
            looks.append(following)
            following += 1
    return looks


def _tiles(report: Report) -> Markup:
    """A few figures at a glance, before and after."""
    e, new = report.evaluation, report.evaluation.intervals or {}
    cells: list[tuple[str, Any, str]] = []
    known = [m for m in e._measures.values() if m.headline and m.name in e.after]
    for measure in known[:TILES]:
        name, below = measure.name, ""
        value: Any = short_value(e.after[name])
        if e.before is not None and name in e.before:
            was = element("span", short_value(e.before[name]), class_="was")
            arrow = element("span", " → ", class_="to", aria_label="to")
            value = join((was, arrow, element("b", value, class_=e.verdict(name))))
        if name in new:
            low, high = map(short_value, new[name])
            below = f"{100 * report.level:g} %: {low} to {high}"
        cells.append((str(measure.headline), value, below))
    share = ""
    if isinstance(e, Evaluation):
        share = f"{shown_percent(e.positive_weight / e.weight)} positive"
    return tile_row([*cells, ("Rows (weight)", counted(e.weight), share)])


def _advice(report: Report) -> Markup:
    if not report.advice:
        return Markup()
    items = (element("li", line) for line in report.advice)
    return page_section("advice", "What deserves a look", element("ul", *items))


# --- leaderboard --------------------------------------------------------------------------------


def _leaderboard(report: Report, order: Sequence[int]) -> Markup:
    """All methods: losses with standard errors, the gain with its interval, what it costs."""
    methods, ends = report.methods, _gain_scale(report.methods)
    names = []
    for method, number in zip(methods, order, strict=True):
        mark = element("span", "chosen", class_="badge") if method.chosen else ""
        names.append(join((swatch(number), " ", method.name, " ", mark)))
    columns = (
        Column("method", names, ""),
        Column("log loss", [_with_error(m.log_loss, m.log_loss_se) for m in methods]),
        Column(f"gain, {100 * report.level:g} % interval", [_gain(m) for m in methods]),
        Column("", [forest(m, ends) for m in methods], "picture"),
        Column("Brier score", [_with_error(m.brier, m.brier_se) for m in methods]),
        Column("AUC", ["–" if m.auc is None else f"{m.auc:.4f}" for m in methods]),
        Column("change", [_moved(m.auc_change) for m in methods]),
        Column("values", ["–" if m.distinct is None else f"{m.distinct:,}" for m in methods]),
    )
    told = (
        "Smaller losses are better; ± are standard errors. The gain is the log loss of the "
        f"{report.raw.name} minus the method's own, on the same rows: right of the line is better. "
        "Values are the different probabilities that the scores become."
    )
    if not report.evaluation.praise:
        told += " A gain means little here: even one constant for all rows would have one."
    table = page_table("Leaderboard", columns, chosen=methods.index(report.chosen))
    return page_section("leaderboard", "Leaderboard", table, explained(told))


def _gain_scale(methods: Sequence[Method]) -> tuple[float, float]:
    """A common scale for all gains: the largest losses may run out of it."""
    best = [m.gain_high for m in methods if m.gain_high is not None and math.isfinite(m.gain_high)]
    worst = [m.gain_low for m in methods if m.gain_low is not None and math.isfinite(m.gain_low)]
    high = max([0.0, *best]) or 1e-6
    low = min([0.0, *worst])
    return max(low, -2.0 * high) * 1.05 - 0.02 * high, 1.05 * high


def _with_error(value: float, error: float | None) -> Markup:
    shown = shown_value(value)
    return join((shown,) if error is None else (shown, " ", small_text(f"± {short_value(error)}")))


def _gain(method: Method) -> str:
    if method.gain is None:
        return "–"
    if method.gain_low is None or method.gain_high is None or not math.isfinite(method.gain):
        return signed(method.gain)
    ends = f"{short_value(method.gain_low)} to {short_value(method.gain_high)}"
    return join((signed(method.gain), " ", small_text(ends)))


def _moved(change: float | None) -> str:
    if change is None:
        return "–"
    return "same" if abs(change) < 5e-5 else f"{change:+.4f}".replace("-", "−")


# --- diagrams -----------------------------------------------------------------------------------


def _diagrams(report: Report, order: Sequence[int]) -> Markup:
    several = isinstance(report.evaluation, MulticlassEvaluation)
    across = "confidence of the top label" if several else "predicted probability"
    up = "how often it was right" if several else "how often the event happened"
    plain, odds = (
        reliability(report.methods, order, (across, up), odds=odds) for odds in (False, True)
    )
    curves = figure(
        "large",
        "When 30 % is predicted, does it happen 30 % of the time?",
        _toggles(report.methods, order),
        radio_buttons("axes", "Axes", (("plain", "Probability"), ("odds", "Log-odds"))),
        element("div", plain, class_="axes-plain"),
        element("div", odds, class_="axes-odds"),
    )
    parts = [curves]
    if report.map_curve is not None:
        title = f"The map: {report.chosen.name}"
        parts.append(figure("large", title, map_picture(report.map_curve)))
    told = (
        "A calibrated model's points lie on the dashed diagonal. Each point is a tenth of the rows "
        f"(by weight), its band a {100 * report.level:g} % interval; below it, how "
        "predictions are spread."
    )
    table = folded("The points in numbers", _points(report.methods))
    both = element("div", *parts, class_="pair")
    return page_section("diagrams", "Before and after", both, explained(told), table)


def _toggles(methods: Sequence[Method], order: Sequence[int]) -> Markup:
    """A box for each method: it hides and shows the method, also where no script runs."""
    boxes = []
    for i, (method, number) in enumerate(zip(methods, order, strict=True)):
        box = element("input", type="checkbox", id=f"show-{i}", checked=number < 2)
        label = element("label", swatch(number), " ", method.name, for_=f"show-{i}")
        boxes.append(element("span", box, label, class_="toggle"))
    if len(methods) > 2:
        for word, title in (("all", "All"), ("pair", "Before and after")):
            options = {"type": "button", "class_": "scripted", "data_show": word}
            boxes.append(element("button", title, **options))
    return element("fieldset", element("legend", "Methods"), *boxes, class_="toggles")


def _points(methods: Sequence[Method]) -> Markup:
    """The points of the diagram in numbers, for those who do not see it."""
    points = [(m.name, m.curve, i) for m in methods for i in range(len(m.curve))]
    columns = (
        Column("method", [name for name, _, _ in points], ""),
        Column("predicted", [shown_value(float(c.mean_p[i])) for _, c, i in points]),
        Column("observed", [shown_value(float(c.fraction[i])) for _, c, i in points]),
        Column(
            "interval",
            [
                "–" if c.lower is None or c.upper is None else _between(c.lower[i], c.upper[i])
                for _, c, i in points
            ],
        ),
        Column("weight", [counted(float(c.weight[i])) for _, c, i in points]),
    )
    return page_table("The points of the diagram", columns)


def _between(low: float, high: float) -> str:
    return f"{shown_value(float(low))} to {shown_value(float(high))}"


def _gallery(report: Report, order: Sequence[int]) -> Markup:
    """Every method in a picture of its own: nothing is hidden, on paper either."""
    if len(report.methods) < 3:
        return Markup()
    figures = (
        figure("few", method.name, small([(method.curve, look)], f"Reliability of {method.name}"))
        for method, look in zip(report.methods, order, strict=True)
    )
    return page_section("gallery", "Every method", element("div", *figures, class_="grid"))


# --- measures -----------------------------------------------------------------------------------


def _measures(report: Report) -> Markup:
    """All measures before and after, with intervals where there are any."""
    e = report.evaluation
    new, old = e.intervals or {}, e.intervals_before or {}
    known = [measure for measure in e._measures.values() if measure.name in e.after]
    titles = [join((m.label, element("br"), small_text(m.meaning))) for m in known]
    after = [_with_span(e.after[m.name], new.get(m.name)) for m in known]
    columns = [Column("measure", titles, ""), Column("good is", [m.good for m in known], "")]
    if e.before is None:
        columns.append(Column("value", after))
    else:
        before, words = [], []
        for name in (measure.name for measure in known):
            was = name in e.before
            before.append(_with_span(e.before[name], old.get(name)) if was else "–")
            words.append(Word(e.verdict(name), e.verdict(name)) if was else "")
        columns += [Column("before", before), Column("after", after), Column("", words, "")]
    told = f", with {100 * e.level:g} % intervals" if e.level is not None and new else ""
    notes = [element("li", note) for note in e.notes]
    below = element("ul", *notes, class_="how") if notes else Markup()
    return page_section("measures", "Measures", page_table(f"Measures{told}", columns), below)


def _with_span(value: float, span: tuple[float, float] | None) -> Markup:
    """A value, and its interval below where there is one."""
    below = Markup() if span is None else small_text(_between(*span))
    return join((shown_value(value), element("br"), below))


# --- segments or classes ------------------------------------------------------------------------


def _panels(report: Report) -> Markup:
    """How often the event came in each segment or class, and how often it was predicted."""
    if not report.panels:
        return Markup()
    kind, panels = report.panel_kind, report.panels
    title, told = {
        "segment": (
            "Segments",
            "Segments are judged with the final map, on the rows it was fitted to. One that "
            "is too low or too high after calibration needs a map of its own.",
        ),
        "class": (
            "Classes",
            "Each class against the rest, out of fold: grey before, blue after.",
        ),
    }[kind]
    found = [panel.figures for panel in panels]
    came = [
        join((shown_value(f["observed"]), " ", small_text(_between(f["low"], f["high"]))))
        for f in found
    ]
    columns = (
        Column(kind, [panel.name for panel in panels], ""),
        Column("weight", [counted(f["weight"]) for f in found]),
        Column(f"observed, {100 * report.level:g} % interval", came),
        Column("predicted before", [shown_value(f["before"]) for f in found]),
        Column("predicted after", [shown_value(f["after"]) for f in found]),
        Column("", [_fit_word(f["after"], f["low"], f["high"]) for f in found], ""),
    )
    figures = []
    for panel in panels:
        name = f"Reliability of {kind} {panel.name}, before and after"
        figures.append(
            figure("few", panel.name, small(((panel.before, 0), (panel.after, 1)), name))
        )
    return page_section(
        "panels",
        title,
        page_table(f"One map, {len(panels)} {title.lower()}", columns),
        explained(told),
        element("div", *figures, class_="grid"),
    )


def _fit_word(predicted: float, low: float, high: float) -> Word:
    """How a prediction lies to the interval of what came."""
    if low <= predicted <= high:
        return Word("fits", "better")
    return Word("too low" if predicted < low else "too high", "worse")


# --- The section of a page that tells in which groups of rows predictions are wrong ---------------


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


# --- The panels of a page: curves before and after, for each segment of the rows or each class ----


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
    names, codes = _with_small_joined(np.array(segment_titles(values), dtype=object), codes, rows)
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
