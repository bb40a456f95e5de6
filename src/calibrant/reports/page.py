"""The page itself: one HTML file that needs no other and no network."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from calibrant.reports.charts import map_picture, reliability, small, swatch
from calibrant.reports.markup import Markup, element, join, script_json
from calibrant.reports.page_tables import leaderboard, measures, panel_table, points, tiles
from calibrant.reports.report_value import Method, Report

__all__ = ["to_html"]

#: code of more characters is folded away
LONG = 2000
THEMES = (("auto", "Auto"), ("light", "Light"), ("dark", "Dark"))


def to_html(report: Report) -> str:
    """The page as text; whatever comes from data is escaped."""
    order = _looks(report.methods)
    sections = [
        _verdict(report),
        _advice(report),
        _leaderboard(report, order),
        _diagrams(report, order),
        _gallery(report, order),
        _measures(report),
        _panels(report),
        _recipes(report),
        _facts(report),
    ]
    script = _resource("page.js")
    body = element(
        "body",
        {"class": "caution" if report.caution else None},
        _header(report),
        element("main", None, *sections),
        element("div", {"id": "tip", "role": "status", "hidden": True}),
        element(
            "script", {"type": "application/json", "id": "data"}, script_json(report.to_dict())
        ),
        element("script", None, script),
    )
    page = element("html", {"lang": "en"}, _head(report, script), body)
    return f"<!DOCTYPE html>\n{page}\n"


@functools.cache
def _resource(name: str) -> Markup:
    """A file of ours beside this one; nothing in it comes from data."""
    return Markup(files("calibrant.reports").joinpath(name).read_text(encoding="utf-8"))


def _head(report: Report, script: Markup) -> Markup:
    """Title, style, and a policy: nothing is loaded, and no script but ours runs."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    hide = "".join(
        f"body:has(#show-{i}:not(:checked)) .series-{i}{{display:none}}"
        for i in range(len(report.methods))
    )
    return element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("title", None, report.title),
        element("style", None, _resource("page.css"), Markup(hide)),
    )


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


def _section(name: str, title: str, *content: Any) -> Markup:
    head = element("h2", {"id": f"{name}-title"}, title)
    return element("section", {"id": name, "aria-labelledby": f"{name}-title"}, head, *content)


def _radios(name: str, title: str, words: Sequence[tuple[str, str]]) -> Markup:
    buttons = [
        join(
            (
                element(
                    "input",
                    {
                        "type": "radio",
                        "name": name,
                        "id": f"{name}-{value}",
                        "checked": place == 0,
                    },
                ),
                element("label", {"for": f"{name}-{value}"}, label),
            )
        )
        for place, (value, label) in enumerate(words)
    ]
    return element("fieldset", {"class": "choice"}, element("legend", None, title), *buttons)


# --- sections -----------------------------------------------------------------------------------


def _header(report: Report) -> Markup:
    return element(
        "header",
        None,
        element("h1", None, report.title),
        _radios("theme", "Colours", THEMES),
    )


def _verdict(report: Report) -> Markup:
    first, second = report.verdict
    return element(
        "section",
        {"id": "verdict", "aria-label": "Verdict"},
        element("p", {"class": "todo"}, first),
        element("p", {"class": "why"}, second),
        tiles(report),
        element("p", {"class": "how"}, report.how),
    )


def _advice(report: Report) -> Markup:
    if not report.advice:
        return Markup()
    items = (element("li", None, line) for line in report.advice)
    return _section("advice", "What deserves a look", element("ul", None, *items))


def _leaderboard(report: Report, order: Sequence[int]) -> Markup:
    told = (
        "Smaller losses are better; ± are standard errors. The gain is the log loss of the "
        f"{report.raw.name} minus the method's own, on the same rows: right of the line is better. "
        "Values are the different probabilities that the scores become."
    )
    if not report.evaluation.praise:
        told += " A gain means little here: even one constant for all rows would have one."
    about = element("p", {"class": "how"}, told)
    return _section("leaderboard", "Leaderboard", leaderboard(report, order), about)


def _diagrams(report: Report, order: Sequence[int]) -> Markup:
    several = getattr(report.evaluation, "by_class", None) is not None
    across = "confidence of the top label" if several else "predicted probability"
    up = "how often it was right" if several else "how often the event came"
    words = (across, up, "weight")
    plain, odds = (reliability(report.methods, order, words, odds=odds) for odds in (False, True))
    figure = element(
        "figure",
        {"class": "large"},
        element("figcaption", None, "When 30 % is predicted, does it happen 30 % of the time?"),
        _toggles(report.methods, order),
        _radios("axes", "Axes", (("plain", "Probability"), ("odds", "Log-odds"))),
        element("div", {"class": "axes-plain"}, plain),
        element("div", {"class": "axes-odds"}, odds),
    )
    parts = [figure]
    if report.map_curve is not None:
        chart = map_picture(report.map_curve, ("score", "calibrated probability"))
        caption = element("figcaption", None, f"The map: {report.chosen.name}")
        parts.append(element("figure", {"class": "large"}, caption, chart))
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
    about = element("p", {"class": "how"}, told)
    return _section("diagrams", "Before and after", both, about, table)


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
        name = f"Reliability of {method.name}"
        picture = small([(method.curve, number)], name)
        caption = element("figcaption", None, method.name)
        figures.append(element("figure", {"class": "few"}, caption, picture))
    return _section("gallery", "Every method", element("div", {"class": "grid"}, *figures))


def _measures(report: Report) -> Markup:
    notes = [element("li", None, note) for note in report.evaluation.notes]
    below = element("ul", {"class": "how"}, *notes) if notes else Markup()
    return _section("measures", "Measures", measures(report), below)


def _panels(report: Report) -> Markup:
    if not report.panels:
        return Markup()
    kind = report.panel_kind
    figures = []
    for panel in report.panels:
        name = f"Reliability of {kind} {panel.name}, before and after"
        picture = small([(panel.before, 0), (panel.after, 1)], name)
        caption = element("figcaption", None, panel.name)
        figures.append(element("figure", {"class": "few"}, caption, picture))
    told = {
        "segment": "Segments are judged with the final map, on the rows it was fitted to. One that "
        "is too low or too high after calibration needs a map of its own.",
        "class": "Each class against the rest, out of fold: grey before, blue after.",
    }[kind]
    title = {"segment": "Segments", "class": "Classes"}[kind]
    return _section(
        "panels",
        title,
        panel_table(report.panels, kind, report.level),
        element("p", {"class": "how"}, told),
        element("div", {"class": "grid"}, *figures),
    )


def _recipes(report: Report) -> Markup:
    if not report.recipes:
        return Markup()
    parts = []
    for i, recipe in enumerate(report.recipes):
        code = Markup()
        if recipe.code:
            copy = element(
                "button", {"type": "button", "class": "scripted", "data-copy": f"code-{i}"}, "Copy"
            )
            options = {"id": f"code-{i}", "tabindex": "0", "aria-label": f"{recipe.title} code"}
            code = element("pre", options, recipe.code)
            if len(recipe.code) > LONG:
                lines = f"Show all {len(recipe.code):,} characters"
                code = element("details", None, element("summary", None, lines), code)
            code = join((copy, code))
        note = element("p", {"class": "how"}, recipe.note) if recipe.note else Markup()
        parts.append(
            element("div", {"class": "recipe"}, element("h3", None, recipe.title), code, note)
        )
    return _section("apply", "How to apply it", *parts)


def _facts(report: Report) -> Markup:
    pairs = (
        join((element("dt", None, name), element("dd", None, value)))
        for name, value in report.facts.items()
    )
    return _section("facts", "Where this comes from", element("dl", {"class": "facts"}, *pairs))
