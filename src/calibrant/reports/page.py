"""The page of a calibration: verdict, leaderboard, diagrams, measures, how to apply it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from calibrant.metrics import Evaluation, MulticlassEvaluation
from calibrant.reports.charts import forest, map_picture, reliability, small
from calibrant.reports.markup import Markup, element, join
from calibrant.reports.page_parts import (
    Column,
    Word,
    explained,
    fact_section,
    figure,
    folded,
    page_section,
    page_table,
    radio_buttons,
    recipe_section,
    signed,
    small_text,
    tile_row,
    verdict_section,
    whole_page,
)
from calibrant.reports.report_value import Method, Report
from calibrant.reports.svg_parts import swatch
from calibrant.reports.where_wrong import where_section
from calibrant.result_tables import counted, short_value, shown_percent, shown_value

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
