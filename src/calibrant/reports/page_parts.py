"""What pages are made of: their frame, sections, tables, figures at a glance and recipes."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from calibrant.reports.markup import Markup, element, script_json
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
        element("header", element("h1", title), radio_buttons("theme", "Colours", THEMES)),
        element("main", *sections),
        element("div", id="tip", role="status", hidden=True),
        element("script", script_json(document), type="application/json", id="data"),
        element("script", script),
        class_="caution" if caution else None,
    )
    page = element("html", _head(title, style, script), body, lang="en")
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
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", _resource("page.css"), Markup(style)),
    )


def page_section(name: str, title: str, *content: Any) -> Markup:
    """A section under a heading."""
    head = element("h2", title, id=f"{name}-title")
    return element("section", head, *content, id=name, aria_labelledby=f"{name}-title")


def figure(kind: str, title: str, *content: Any) -> Markup:
    """Pictures under a title; ``kind`` is "large", or "few" for one among several."""
    return element("figure", element("figcaption", title), *content, class_=kind)


def explained(text: str) -> Markup:
    """A paragraph that says how to read what stands beside it."""
    return element("p", text, class_="how")


def folded(title: str, content: Markup) -> Markup:
    """What is shown when the reader asks for it."""
    return element("details", element("summary", title), content)


def radio_buttons(name: str, title: str, words: Sequence[tuple[str, str]]) -> Markup:
    """A choice of one among some; the first is chosen."""
    buttons = []
    for place, (value, label) in enumerate(words):
        own = f"{name}-{value}"
        buttons.append(element("input", type="radio", name=name, id=own, checked=place == 0))
        buttons.append(element("label", label, for_=own))
    return element("fieldset", element("legend", title), *buttons, class_="choice")


# --- sections that all pages have -----------------------------------------------------------------


def verdict_section(verdict: tuple[str, str], tiles: Markup, how: str) -> Markup:
    """What to do, why, a few figures, and how they were obtained."""
    first, second = verdict
    return element(
        "section",
        element("p", first, class_="todo"),
        element("p", second, class_="why"),
        tiles,
        explained(how),
        id="verdict",
        aria_label="Verdict",
    )


def tile_row(cells: Iterable[tuple[str, Any, str]]) -> Markup:
    """Figures at a glance: of each a title, its value, and a line below, which may be empty."""
    tiles = []
    for title, value, below in cells:
        line = element("dd", below, class_="range") if below else Markup()
        tiles.append(element("div", element("dt", title), element("dd", value), line))
    return element("dl", *tiles, class_="tiles")


def recipe_section(title: str, recipes: Sequence[Recipe]) -> Markup:
    """Lines to copy; nothing where there are none."""
    if not recipes:
        return Markup()
    parts = []
    for i, recipe in enumerate(recipes):
        lines = [element("h3", recipe.title)]
        if recipe.code:
            own, words = f"code-{i}", f"{recipe.title} code"
            options = {"type": "button", "class_": "scripted", "data_copy": own}
            lines.append(element("button", "Copy", **options))
            code = element("pre", recipe.code, id=own, tabindex="0", aria_label=words)
            long = len(recipe.code) > LONG
            lines.append(
                folded(f"Show all {len(recipe.code):,} characters", code) if long else code
            )
        if recipe.note:
            lines.append(explained(recipe.note))
        parts.append(element("div", *lines, class_="recipe"))
    return page_section("apply", title, *parts)


def fact_section(facts: Mapping[str, str]) -> Markup:
    """Where a page comes from."""
    pairs = []
    for name, value in facts.items():
        pairs += [element("dt", name), element("dd", value)]
    return page_section("facts", "Where this comes from", element("dl", *pairs, class_="facts"))


# --- tables ---------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of a table: its title, its cells, and their class ("n" for numbers)."""

    title: str
    cells: Sequence[Any]
    kind: str = "n"


class Word(NamedTuple):
    """A cell that says whether something is good: its text, and "better", "worse" or "same"."""

    text: str
    sense: str


def page_table(
    caption: str, columns: Sequence[Column], *, most: int | None = None, chosen: int = -1
) -> Markup:
    """A table that scrolls sideways where it must, of all rows or so many of the first.

    The first column names the rows. The row of number ``chosen`` stands out.
    """
    titles = (element("th", c.title, scope="col", class_=c.kind or None) for c in columns)
    names, *others = columns
    lines = []
    for i, name in enumerate(names.cells[:most]):
        cells = (_cell(column.cells[i], column.kind) for column in others)
        look = "chosen" if i == chosen else None
        lines.append(element("tr", element("th", name, scope="row"), *cells, class_=look))
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *titles)),
        element("tbody", *lines),
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(cell: Any, kind: str) -> Markup:
    if isinstance(cell, Word):
        return element("td", cell.text, class_=f"word {cell.sense}")
    return element("td", cell, class_=kind or None)


def signed(value: float) -> str:
    """A number with its sign, also where it is above zero."""
    text = short_value(value)
    return f"+{text}" if value > 0 else text


def small_text(text: str) -> Markup:
    """A text that stands back."""
    return element("small", text)
