"""What pages are made of: their frame, sections, tables, figures at a glance and recipes."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import math
import os
import platform
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen
from calibrant.diagrams.curve import Curve, probability_window
from calibrant.errors import InputError, ParameterError
from calibrant.losses import logit, sigmoid
from calibrant.outputs import check_different_files, find_target, write_whole
from calibrant.result_tables import format_fact, short_value
from calibrant.version import __version__

#: code of more characters is folded away
LONG = 2000
THEMES = (("auto", "Auto"), ("light", "Light"), ("dark", "Dark"))


# --- A page as a value, and where it comes from: files, counts, versions --------------------------


@dataclass(frozen=True)
class Recipe:
    """How to apply the map somewhere: a title, the lines to copy, and what to know of them."""

    title: str
    code: str
    note: str = ""


class PageValue(Frozen):
    """A value that is shown as a page, with a verdict of two sentences at its top."""

    verdict: tuple[str, str]
    facts: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))
        super().__post_init__()

    @abstractmethod
    def to_html(self) -> str:
        """The page: one file that needs no other and no network."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all."""
        find_target(path)  # refused before the page is made
        write_whole(path, self.to_html())
        return Path(path)

    def _repr_html_(self) -> str:
        """The verdict, for notebooks."""
        first, second = (html.escape(sentence) for sentence in self.verdict)
        return f"<p><b>{first}</b> {second}</p>"

    def __str__(self) -> str:
        return " ".join(self.verdict)


def source_facts(source: Any) -> dict[str, str]:
    """What the caller says of the data: a name, several, or a mapping of words to values.

    >>> source_facts("scores.csv"), source_facts({"date": "2026-03-01"})
    ({'source': 'scores.csv'}, {'date': '2026-03-01'})
    """
    if source is None:
        return {}
    if isinstance(source, (str, os.PathLike)):
        return {"source": os.fspath(source)}
    if isinstance(source, Mapping):
        return {str(key): format_fact(value) for key, value in source.items() if value is not None}
    if isinstance(source, (list, tuple)):
        return {"source": format_fact(source)}
    raise InputError(
        "source must be a name, a list of names or a mapping of words to values, but "
        f"{type(source).__name__} came."
    )


def source_files(source: Any) -> list[str]:
    """The files among what the caller says of the data.

    >>> source_files({"files": ["no such file.csv"], "date": "2026-03-01"})
    []
    """
    if isinstance(source, Mapping):
        source = list(source.values())
    if isinstance(source, (list, tuple)):
        return [file for item in source for file in source_files(item)]
    named = isinstance(source, (str, os.PathLike)) and os.path.isfile(source)
    return [os.fspath(source)] if named else []


def check_texts(**texts: Any) -> None:
    """Refuse titles and names for the page that are no text."""
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ParameterError(f"{name} must be a str, but {type(value).__name__} came.")


def check_output(output: Any, *sources: Any) -> None:
    """Refuse, before anything is made, an output that is among the files of its sources."""
    if output is not None:
        find_target(output)
        check_different_files({"the output": output}, source_files(sources))


def version_facts() -> dict[str, str]:
    """The versions of what computed the page."""
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return {
        "calibrant": __version__,
        "with": f"Python {platform.python_version()}, {others}",
    }


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
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (  # nothing is loaded, and no script but ours runs
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", _resource("page.css"), Markup(style)),
    )
    body = element(
        "body",
        element("header", element("h1", title), radio_buttons("theme", "Colours", THEMES)),
        element("main", *sections),
        element("div", id="tip", role="status", hidden=True),
        element("script", script_json(document), type="application/json", id="data"),
        element("script", script),
        class_="caution" if caution else None,
    )
    page = element("html", head, body, lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


@functools.cache
def _resource(name: str) -> Markup:
    """A file of ours beside this one; nothing in it comes from data."""
    return Markup(files("calibrant.reports").joinpath(name).read_text(encoding="utf-8"))


def page_section(name: str, title: str, *content: Any) -> Markup:
    """A section under a heading."""
    head = element("h2", title, id=f"{name}-title")
    return element("section", head, *content, id=name, aria_labelledby=f"{name}-title")


def figure(kind: str, title: str, *content: Any) -> Markup:
    """Pictures under a title; ``kind`` is "large", or "few" for one among several."""
    return element("figure", element("figcaption", title), *content, class_=kind)


def explanation(text: str) -> Markup:
    """A paragraph that says how to read what stands beside it."""
    return element("p", text, class_="how")


def collapsed(title: str, content: Markup) -> Markup:
    """A part of the page that is folded away until the reader opens it."""
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
        explanation(how),
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
                collapsed(f"Show all {len(recipe.code):,} characters", code) if long else code
            )
        if recipe.note:
            lines.append(explanation(recipe.note))
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
        cells = []
        for column in others:
            cell, kind = column.cells[i], column.kind or None
            if isinstance(cell, Word):
                kind = f"word {cell.sense}"
            text = cell.text if isinstance(cell, Word) else cell
            cells.append(element("td", text, class_=kind))
        look = "chosen" if i == chosen else None
        lines.append(element("tr", element("th", name, scope="row"), *cells, class_=look))
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *titles)),
        element("tbody", *lines),
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def signed(value: float) -> str:
    """A number with its sign, also where it is above zero."""
    text = short_value(value)
    return f"+{text}" if value > 0 else text


def small_text(text: str) -> Markup:
    """A text in small letters."""
    return element("small", text)


# --- What pictures are drawn with: frames, words, lines, areas, and points that can be asked ------


#: colours and dashes by number: 0 is for the scores as they are, 1 for what was chosen
COLOURS, DASHES = 7, 4
#: outlines of the markers, around the origin
MARKS = (
    "M-4.2 0A4.2 4.2 0 1 1 4.2 0A4.2 4.2 0 1 1 -4.2 0Z",
    "M-3.8-3.8H3.8V3.8H-3.8Z",
    "M0-5L4.8 3.6H-4.8Z",
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 5L4.8-3.6H-4.8Z",
    "M-4.5-1.5H-1.5V-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5Z",
)


def series_class(number: int) -> str:
    """The classes of a series: its colour, and from the eighth on another dash."""
    if number < 2:
        return f"c{number} d0"
    turn, colour = divmod(number - 2, COLOURS - 2)
    return f"c{colour + 2} d{(turn + 1) % DASHES}"


def swatch(number: int) -> Markup:
    """A piece of a series' line with its marker, for legends."""
    line = element("path", class_="line", d="M1 8H31")
    mark = element("path", class_="mark", d=marker_outline(number), transform="translate(16 8)")
    kind = f"swatch {series_class(number)}"
    return element("svg", line, mark, class_=kind, viewBox="0 0 32 16", aria_hidden="true")


def marker_outline(number: int) -> str:
    """The outline of the marker of a series."""
    return MARKS[number % len(MARKS)]


def picture(
    kind: str, name: str, size: tuple[float, float], *parts: Markup, role: str = "group"
) -> Markup:
    """A picture of this width and height; ``name`` is what it is called where it is not seen."""
    box = f"0 0 {size[0]} {size[1]}"
    return element("svg", *parts, class_=kind, viewBox=box, role=role, aria_label=name)


def chart_frame(place: PlotArea, left: str = "") -> Markup:
    """The square: grid and diagonal, and, where the upright axis has a name, numbers along it."""
    bottom = place.top + place.height
    parts = []
    for value in place.x.ticks:
        at = float(place.across(value))
        parts.append(element("path", class_="grid", d=f"M{at:.1f} {place.top}v{place.height}"))
        if left:
            parts.append(chart_text(at, bottom + 18, place.x.tick_label(value), "middle"))
    for value in place.y.ticks:
        at = float(place.down(value))
        parts.append(element("path", class_="grid", d=f"M{place.left} {at:.1f}h{place.width}"))
        if left:
            parts.append(chart_text(place.left - 8, at + 4, place.y.tick_label(value), "end"))
    if place.x == place.y:
        ends = np.array([place.x.low, place.x.high])
        d = path_data(place.across(ends), place.down(ends))
        parts.append(element("path", class_="diagonal", d=d))
    size = {"width": place.width, "height": place.height}
    parts.append(element("rect", class_="box", x=place.left, y=place.top, **size))
    if left:
        parts.append(upright_text(round(place.top + place.height / 2), left))
    return element("g", *parts, aria_hidden="true")


def chart_text(x: float, y: float, words: str, anchor: str) -> Markup:
    """Words at a place of a picture."""
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def upright_text(y: float, words: str) -> Markup:
    """Words along the left side of a picture, read from below."""
    turned = f"translate(16 {y}) rotate(-90)"
    return element("text", words, transform=turned, text_anchor="middle")


def area_between(x: Array, lower: Array, upper: Array, place: PlotArea) -> Markup:
    """The area of a band: along its lower end, and back along the upper one."""
    across = place.across(np.concatenate((x, x[::-1])))
    d = path_data(across, place.down(np.concatenate((lower, upper[::-1]))), closed=True)
    return element("path", class_="band", d=d)


def line_through(x: Array, y: Array, place: PlotArea) -> Markup:
    """A line through points."""
    return element("path", class_="line", d=path_data(place.across(x), place.down(y)))


def labelled_points(x: Array, y: Array, words: Sequence[Sequence[str]], number: int) -> Markup:
    """Markers at places of a picture; each says its words under the mouse and to the keyboard."""
    points = []
    for across, down, lines in zip(x.tolist(), y.tolist(), words, strict=True):
        point = element(
            "g",
            element("title", "\n".join(lines)),
            element("circle", class_="reach", r="11"),
            element("path", class_="mark", d=marker_outline(number)),
            class_="point",
            transform=f"translate({across:.1f} {down:.1f})",
            tabindex="0",
            role="img",
            aria_label=", ".join(lines),
        )
        points.append(point)
    return join(points)


def small_chart(
    curves: Sequence[tuple[Curve, int]], name: str, axis: PageAxis | None = None
) -> Markup:
    """Curves in a small square, for one method, segment, class or time; by default on an axis of
    their own."""
    axis = axis or common_axis([curve for curve, _ in curves])
    place = PlotArea(34, 6, 160, 160, axis, axis)
    shown = PageAxis(axis.low, axis.high, (axis.low, axis.high))
    series = []
    for curve, number in curves:
        x, y = place.across(curve.mean_p), place.down(curve.fraction)
        marks = (
            element("path", class_="mark", d=marker_outline(number), transform=f"{at} scale(.7)")
            for at in (f"translate({a:.1f} {b:.1f})" for a, b in zip(x, y, strict=True))
        )
        line = line_through(curve.mean_p, curve.fraction, place)
        kind = f"series {series_class(number)}"
        series.append(element("g", curve_band(curve, place), line, *marks, class_=kind))
    return picture(
        "small",
        name,
        (208, 190),
        chart_frame(replace(place, x=shown, y=shown)),
        chart_text(30, 14, tick_text(axis.high), "end"),
        chart_text(30, 168, tick_text(axis.low), "end"),
        chart_text(194, 182, tick_text(axis.high), "end"),
        chart_text(34, 182, tick_text(axis.low), "start"),
        *series,
        role="img",
    )


def curve_band(curve: Curve, place: PlotArea) -> Markup:
    """The band of a curve: an area, or a line where there is one point; nothing without a band."""
    if curve.lower is None or curve.upper is None:
        return Markup()
    if len(curve) > 1:
        return area_between(curve.mean_p, curve.lower, curve.upper, place)
    ends = np.concatenate((curve.lower, curve.upper))
    d = path_data(place.across(np.repeat(curve.mean_p, 2)), place.down(ends))
    return element("path", class_="whisker", d=d)


# --- HTML and SVG as text, where whatever is not markup already is escaped ------------------------
# Names of columns, labels and files come from data: nothing of them may become a tag, an attribute,
# a script or a line that ends one.


#: control characters and halves of surrogate pairs, which no page may hold
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
#: elements that have no content
_VOID = frozenset({"br", "circle", "input", "line", "meta", "path", "polygon", "polyline", "rect"})
#: those of them that belong to SVG are closed in themselves
_CLOSED = _VOID - {"br", "input", "meta"}


class Markup(str):
    """Text that is markup: made by `element` and `join`, never from data."""

    __slots__ = ()


def cleaned(text: Any) -> str:
    """A text that a page may hold: what has no place in HTML becomes the replacement character.

    >>> cleaned("a" + chr(0) + "b").encode("unicode_escape")
    b'a\\\\ufffdb'
    """
    return _FORBIDDEN.sub("\ufffd", str(text))


def _escaped(child: Any) -> str:
    return child if isinstance(child, Markup) else html.escape(cleaned(child))


def join(parts: Iterable[Any], between: str = "") -> Markup:
    """Parts one after the other, each escaped unless it is markup.

    >>> join(["<", element("br")])
    '&lt;<br>'
    """
    return Markup(_escaped(between).join(_escaped(part) for part in parts))


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element with escaped children and attributes.

    An underscore in the name of an attribute stands for a hyphen, and one at its end for nothing:
    ``class_`` is class. An attribute of value None or False is left out, one of value True stands
    alone.

    >>> element("p", "a < b", title='"><script>', data_show="all", hidden=True, id=None)
    '<p title="&quot;&gt;&lt;script&gt;" data-show="all" hidden>a &lt; b</p>'
    """
    words = [name]
    for key, value in attributes.items():
        called = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(called)
        elif value is not None and value is not False:
            words.append(f'{called}="{html.escape(cleaned(value))}"')
    head = " ".join(words)
    if name in _VOID:
        return Markup(f"<{head}/>" if name in _CLOSED else f"<{head}>")
    return Markup(f"<{head}>{join(children)}</{name}>")


def script_json(document: Any) -> Markup:
    """JSON that can stand inside a script element: no ``<``, ``>`` or ``&`` is left in it.

    >>> script_json({"</script>": 1})
    '{"\\\\u003c/script\\\\u003e":1}'
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


# --- The axes of the page's pictures: where a probability stands, and which numbers are written ---


#: probabilities that may be ticks of a log-odds axis
LOGIT_TICKS = tuple(
    sorted(
        {float(f"1e-{k}") for k in range(2, 10)}
        | {0.1, 0.25, 0.5, 0.75, 0.9}
        | {1.0 - float(f"1e-{k}") for k in range(2, 10)}
    )
)
#: a log-odds axis goes from this probability to 1 − this at most
FURTHEST = 1e-9


@dataclass(frozen=True)
class PageAxis:
    """A scale from ``low`` to ``high``, either as they are or by their logit, with its ticks.

    ``words`` are what stands at the ticks, where that is not their number.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    logit: bool = False
    words: tuple[str, ...] = ()

    def tick_label(self, tick: float) -> str:
        """What stands at a tick."""
        return self.words[self.ticks.index(tick)] if self.words else tick_text(tick)

    def position(self, values: Array | float) -> Array:
        """How far along the axis values lie, from 0 to 1; what lies beyond is put at the end."""
        ends = np.array([self.low, self.high])
        at = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.logit:
            ends, at = logit(ends), logit(at)
        return np.asarray((at - ends[0]) / (ends[1] - ends[0]))


def tick_text(value: float) -> str:
    """A number without needless digits, and with a true minus.

    >>> tick_text(0.001), tick_text(0.2), tick_text(-1e-9)
    ('0.001', '0.2', '−1e−9')
    """
    if value == 0.0:
        return "0"
    text = f"{value:.10g}" if abs(value) >= 1e-4 else f"{value:.3g}"
    if "e" in text:
        digits, power = text.split("e")
        text = f"{digits}e{int(power)}"
    return text.replace("-", "−")


def ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Round numbers between low and high, about as many as asked for.

    >>> ticks(0.0, 1.0), ticks(-3.0, 9.0)
    ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (-2.0, 0.0, 2.0, 4.0, 6.0, 8.0))
    """
    wide = (high / count) - (low / count)
    if not wide > 0 or not math.isfinite(wide):
        return (low,)
    power = 10.0 ** math.floor(math.log10(wide))
    found = []
    for step in (power, 2 * power, 5 * power, 10 * power):
        multiples = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        places = max(0, 1 - math.floor(math.log10(step)))
        found.append(tuple(round(i * step, places) + 0.0 for i in multiples))
    return min(found, key=lambda some: abs(len(some) - 1 - count))


def linear_axis(low: float, high: float) -> PageAxis:
    """An axis of plain numbers."""
    return PageAxis(low, high, ticks(low, high))


def probability_axis(columns: Iterable[Array]) -> PageAxis:
    """[0, 1], or the corner of it that holds all of the values."""
    ends = [(float(np.min(c)), float(np.max(c))) for c in columns if len(c)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return linear_axis(*probability_window(low, high))


def logit_axis(columns: Iterable[Array]) -> PageAxis:
    """An axis of log-odds around all values inside (0, 1); 0 and 1 stand at its ends.

    >>> logit_axis([0.02, 0.4]).ticks
    (0.01, 0.1, 0.25, 0.5)
    """
    values = np.concatenate([np.atleast_1d(np.asarray(c, dtype=np.float64)) for c in columns])
    inside = values[(values > 0.0) & (values < 1.0)]
    low, high = (float(inside.min()), float(inside.max())) if len(inside) else (0.1, 0.9)
    z = logit(np.clip([low, high], FURTHEST, 1.0 - FURTHEST))
    reach = max(float(z[1] - z[0]), 1.0)
    outer = sigmoid(np.array([z[0] - 0.08 * reach, z[1] + 0.08 * reach]))
    below = [w for w in LOGIT_TICKS if w <= outer[0]]
    above = [w for w in LOGIT_TICKS if w >= outer[1]]
    # the axis ends at the next tick if that is near
    first = below[-1] if below and logit(np.array(below[-1])) > z[0] - 1.2 else float(outer[0])
    last = above[0] if above and logit(np.array(above[0])) < z[1] + 1.2 else float(outer[1])
    written = tuple(w for w in LOGIT_TICKS if first <= w <= last)
    if len(written) > 8:  # quarters make way for powers of ten
        written = tuple(w for w in written if w not in (0.25, 0.75))
    return PageAxis(first, last, written, logit=True)


def common_axis(curves: Iterable[Curve], *, odds: bool = False) -> PageAxis:
    """An axis of probabilities, or of log-odds, that holds the points of all curves."""
    columns = [column for curve in curves for column in (curve.mean_p, curve.fraction)]
    return logit_axis(columns) if odds else probability_axis(columns)


@dataclass(frozen=True)
class PlotArea:
    """A rectangle of a picture, in its units, with the axes along it."""

    left: float
    top: float
    width: float
    height: float
    x: PageAxis
    y: PageAxis

    def across(self, values: Array | float) -> Array:
        """How far from the left values stand."""
        return np.asarray(self.left + self.width * self.x.position(values))

    def down(self, values: Array | float) -> Array:
        """How far from the top values stand."""
        return np.asarray(self.top + self.height * (1.0 - self.y.position(values)))


def path_data(x: Array, y: Array, *, closed: bool = False) -> str:
    """The d of an SVG path through points, to a tenth of a unit, without points that add nothing.

    >>> path_data(np.array([0, 5, 5.01, 10]), np.array([0, 5, 5, 0.25]))
    'M0 0L5 5L10 .2'
    """
    first, *points = map(tuple, np.column_stack((x, y)).round(1).tolist())
    kept = [first]
    for now in points:
        if now == kept[-1]:
            continue
        (a, b), (p, q) = kept[-2] if len(kept) > 1 else (math.nan, math.nan), kept[-1]
        across = b == q == now[1] and min(a, now[0]) <= p <= max(a, now[0])
        upright = a == p == now[0] and min(b, now[1]) <= q <= max(b, now[1])
        if across or upright:  # the last point lies on the way
            kept[-1] = now
        else:
            kept.append(now)
    words = (f"{_short_number(a)} {_short_number(b)}" for a, b in kept)
    return f"M{'L'.join(words)}{'Z' if closed else ''}"


def _short_number(value: float) -> str:
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text.replace("0.", ".", 1) if text.startswith("0.") else text
