"""The page of a calibration: verdict, leaderboard, diagrams, measures, how to apply it."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.reports.charts import map_picture, reliability, small
from calibrant.reports.markup import Markup, element, join
from calibrant.reports.page_parts import (
    explained,
    fact_section,
    figure,
    page_section,
    radio_buttons,
    recipe_section,
    verdict_section,
    whole_page,
)
from calibrant.reports.page_tables import leaderboard, measures, panel_table, points, tiles
from calibrant.reports.report_value import Method, Report
from calibrant.reports.svg_parts import swatch
from calibrant.reports.where_wrong import where_section


def to_html(report: Report) -> str:
    """The page as text; whatever comes from data is escaped."""
    order = _looks(report.methods)
    sections = (
        verdict_section(report.verdict, tiles(report), report.how),
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


# --- sections -----------------------------------------------------------------------------------


def _advice(report: Report) -> Markup:
    if not report.advice:
        return Markup()
    items = (element("li", None, line) for line in report.advice)
    return page_section("advice", "What deserves a look", element("ul", None, *items))


def _leaderboard(report: Report, order: Sequence[int]) -> Markup:
    told = (
        "Smaller losses are better; ± are standard errors. The gain is the log loss of the "
        f"{report.raw.name} minus the method's own, on the same rows: right of the line is better. "
        "Values are the different probabilities that the scores become."
    )
    if not report.evaluation.praise:
        told += " A gain means little here: even one constant for all rows would have one."
    table = leaderboard(report, order)
    return page_section("leaderboard", "Leaderboard", table, explained(told))


def _diagrams(report: Report, order: Sequence[int]) -> Markup:
    several = getattr(report.evaluation, "by_class", None) is not None
    across = "confidence of the top label" if several else "predicted probability"
    up = "how often it was right" if several else "how often the event happened"
    words = (across, up, "weight")
    plain, odds = (reliability(report.methods, order, words, odds=odds) for odds in (False, True))
    curves = figure(
        "large",
        "When 30 % is predicted, does it happen 30 % of the time?",
        _toggles(report.methods, order),
        radio_buttons("axes", "Axes", (("plain", "Probability"), ("odds", "Log-odds"))),
        element("div", {"class": "axes-plain"}, plain),
        element("div", {"class": "axes-odds"}, odds),
    )
    parts = [curves]
    if report.map_curve is not None:
        chart = map_picture(report.map_curve, ("score", "calibrated probability"))
        parts.append(figure("large", f"The map: {report.chosen.name}", chart))
    told = (
        "A calibrated model's points lie on the dashed diagonal. Each point is a tenth of the rows "
        f"(by weight), its band a {100 * report.level:g} % interval; below it, how "
        "predictions are spread."
    )
    table = element(
        "details",
        None,
        element("summary", None, "The points in numbers"),
        points(report.methods),
    )
    both = element("div", {"class": "pair"}, *parts)
    return page_section("diagrams", "Before and after", both, explained(told), table)


def _toggles(methods: Sequence[Method], order: Sequence[int]) -> Markup:
    """A box for each method: it hides and shows the method, also where no script runs."""
    boxes = []
    for i, (method, number) in enumerate(zip(methods, order, strict=True)):
        options = {"type": "checkbox", "id": f"show-{i}", "checked": number < 2}
        label = element("label", {"for": f"show-{i}"}, swatch(number), " ", method.name)
        boxes.append(element("span", {"class": "toggle"}, element("input", options), label))
    buttons = Markup()
    if len(methods) > 2:
        buttons = join(
            element("button", {"type": "button", "class": "scripted", "data-show": word}, title)
            for word, title in (("all", "All"), ("pair", "Before and after"))
        )
    legend = element("legend", None, "Methods")
    return element("fieldset", {"class": "toggles"}, legend, *boxes, buttons)


def _gallery(report: Report, order: Sequence[int]) -> Markup:
    """Every method in a picture of its own: nothing is hidden, on paper either."""
    if len(report.methods) < 3:
        return Markup()
    figures = []
    for method, number in zip(report.methods, order, strict=True):
        picture = small([(method.curve, number)], f"Reliability of {method.name}")
        figures.append(figure("few", method.name, picture))
    return page_section("gallery", "Every method", element("div", {"class": "grid"}, *figures))


def _measures(report: Report) -> Markup:
    notes = [element("li", None, note) for note in report.evaluation.notes]
    below = element("ul", {"class": "how"}, *notes) if notes else Markup()
    return page_section("measures", "Measures", measures(report), below)


def _panels(report: Report) -> Markup:
    if not report.panels:
        return Markup()
    kind = report.panel_kind
    figures = []
    for panel in report.panels:
        name = f"Reliability of {kind} {panel.name}, before and after"
        picture = small([(panel.before, 0), (panel.after, 1)], name)
        figures.append(figure("few", panel.name, picture))
    told = {
        "segment": "Segments are judged with the final map, on the rows it was fitted to. One that "
        "is too low or too high after calibration needs a map of its own.",
        "class": "Each class against the rest, out of fold: grey before, blue after.",
    }[kind]
    title = {"segment": "Segments", "class": "Classes"}[kind]
    return page_section(
        "panels",
        title,
        panel_table(report.panels, kind, report.level),
        explained(told),
        element("div", {"class": "grid"}, *figures),
    )
