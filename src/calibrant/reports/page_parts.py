"""What pages are made of: their frame, sections, tables, figures at a glance and recipes."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from calibrant.reports.markup import Markup, element, join, script_json
from calibrant.reports.report_value import Recipe
from calibrant.result_tables import short_value

#: code of more characters is folded away
LONG = 2000
THEMES = (("auto", "Auto"), ("light", "Light"), ("dark", "Dark"))


# --- the frame ------------------------------------------------------------------------------------


def whole_page(
    title: str,
    sections: Iterable[Markup],
    document: Mapping[str, Any],
    *,
    caution: bool = False,
    style: str = "",
) -> str:
    """A page as text: one HTML file that needs no other and no network.

    Parameters
    ----------
    title : what the page calls itself
    sections : what it shows, from top to bottom
    document : the same as plain values, which the page carries for programs
    caution : whether nothing on the page is green
    style : more rules of style, of ours
    """
    script = _resource("page.js")
    body = element(
        "body",
        {"class": "caution" if caution else None},
        element(
            "header", None, element("h1", None, title), radio_buttons("theme", "Colours", THEMES)
        ),
        element("main", None, *sections),
        element("div", {"id": "tip", "role": "status", "hidden": True}),
        element("script", {"type": "application/json", "id": "data"}, script_json(document)),
        element("script", None, script),
    )
    page = element("html", {"lang": "en"}, _head(title, style, script), body)
    return f"<!DOCTYPE html>\n{page}\n"


@functools.cache
def _resource(name: str) -> Markup:
    """A file of ours beside this one; nothing in it comes from data."""
    return Markup(files("calibrant.reports").joinpath(name).read_text(encoding="utf-8"))


def _head(title: str, style: str, script: Markup) -> Markup:
    """Title, style, and a policy: nothing is loaded, and no script but ours runs."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("title", None, title),
        element("style", None, _resource("page.css"), Markup(style)),
    )


def page_section(name: str, title: str, *content: Any) -> Markup:
    """A section under a heading."""
    head = element("h2", {"id": f"{name}-title"}, title)
    return element("section", {"id": name, "aria-labelledby": f"{name}-title"}, head, *content)


def figure(kind: str, title: str, *content: Any) -> Markup:
    """Pictures under a title; ``kind`` is "large", or "few" for one among several."""
    return element("figure", {"class": kind}, element("figcaption", None, title), *content)


def explained(text: str) -> Markup:
    """A paragraph that says how to read what stands beside it."""
    return element("p", {"class": "how"}, text)


def radio_buttons(name: str, title: str, words: Sequence[tuple[str, str]]) -> Markup:
    """A choice of one among some; the first is chosen."""
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


# --- sections that all pages have -----------------------------------------------------------------


def verdict_section(verdict: tuple[str, str], tiles: Markup, how: str) -> Markup:
    """What to do, why, a few figures, and how they were obtained."""
    first, second = verdict
    return element(
        "section",
        {"id": "verdict", "aria-label": "Verdict"},
        element("p", {"class": "todo"}, first),
        element("p", {"class": "why"}, second),
        tiles,
        explained(how),
    )


def tile_row(cells: Iterable[tuple[str, Any, str]]) -> Markup:
    """Figures at a glance: of each a title, its value, and a line below, which may be empty."""
    tiles = []
    for title, value, below in cells:
        parts = [element("dt", None, title), element("dd", None, value)]
        parts += [element("dd", {"class": "range"}, below)] if below else []
        tiles.append(element("div", None, *parts))
    return element("dl", {"class": "tiles"}, *tiles)


def recipe_section(title: str, recipes: Sequence[Recipe]) -> Markup:
    """Lines to copy; nothing where there are none."""
    if not recipes:
        return Markup()
    parts = []
    for i, recipe in enumerate(recipes):
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
        note = explained(recipe.note) if recipe.note else Markup()
        parts.append(
            element("div", {"class": "recipe"}, element("h3", None, recipe.title), code, note)
        )
    return page_section("apply", title, *parts)


def fact_section(facts: Mapping[str, str]) -> Markup:
    """Where a page comes from."""
    pairs = (
        join((element("dt", None, name), element("dd", None, value)))
        for name, value in facts.items()
    )
    return page_section("facts", "Where this comes from", element("dl", {"class": "facts"}, *pairs))


# --- tables ---------------------------------------------------------------------------------------

#: a column: its title, and the class of its cells ("n" for numbers)
Column = tuple[str, str]


class Word(NamedTuple):
    """A cell that says whether something is good: its text, and "better", "worse" or "same"."""

    text: str
    sense: str


def page_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], caption: str, chosen: int = -1
) -> Markup:
    """A table that scrolls sideways where it must; the row of number ``chosen`` stands out."""
    titles = [element("th", {"scope": "col", "class": kind or None}, t) for t, kind in columns]
    lines = []
    for number, (name, *rest) in enumerate(rows):
        first = element("th", {"scope": "row"}, name)
        others = (_cell(cell, kind) for cell, (_, kind) in zip(rest, columns[1:], strict=True))
        options = {"class": "chosen" if number == chosen else None}
        lines.append(element("tr", options, first, *others))
    table = element(
        "table",
        None,
        element("caption", None, caption),
        element("thead", None, element("tr", None, *titles)),
        element("tbody", None, *lines),
    )
    options = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption}
    return element("div", options, table)


def _cell(cell: Any, kind: str) -> Markup:
    if isinstance(cell, Word):
        return element("td", {"class": f"word {cell.sense}"}, cell.text)
    return element("td", {"class": kind or None}, cell)


def signed(value: float) -> str:
    """A number with its sign, also where it is above zero."""
    text = short_value(value)
    return f"+{text}" if value > 0 else text


def small_text(text: str) -> Markup:
    """A text that stands back."""
    return element("small", None, text)
