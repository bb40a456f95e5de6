"""The page's tables: leaderboard, measures, points, segments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from calibrant.metrics import Evaluation
from calibrant.reports.charts import forest, swatch
from calibrant.reports.markup import Markup, element, join
from calibrant.reports.report_value import Method, Panel, Report
from calibrant.result_tables import counted, short_value, shown_percent, shown_value

__all__ = ["leaderboard", "measures", "panel_table", "points", "tiles"]


#: a column: its title, and the class of its cells ("n" for numbers)
Column = tuple[str, str]


class Word(NamedTuple):
    """A cell that says whether something is good: its text, and "better", "worse" or "same"."""

    text: str
    sense: str


def _table(
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


def _signed(value: float | None) -> str:
    if value is None:
        return "–"
    text = short_value(value)
    return f"+{text}" if value > 0 else text


def _small(text: str) -> Markup:
    return element("small", None, text)


# --- leaderboard --------------------------------------------------------------------------------


def leaderboard(report: Report, order: Sequence[int]) -> Markup:
    """All methods: losses with standard errors, the gain with its interval, what it costs."""
    ends = _ends(report.methods)
    columns = [
        ("method", ""),
        ("log loss", "n"),
        (f"gain, {100 * report.level:g} % interval", "n"),
        ("", "picture"),
        ("Brier score", "n"),
        ("AUC", "n"),
        ("change", "n"),
        ("values", "n"),
    ]
    rows = []
    for method, number in zip(report.methods, order, strict=True):
        mark = element("span", {"class": "badge"}, "chosen") if method.chosen else ""
        rows.append(
            (
                join((swatch(number), " ", method.name, " ", mark)),
                _with_error(method.log_loss, method.log_loss_se),
                _gain(method),
                forest(method, ends),
                _with_error(method.brier, method.brier_se),
                "–" if method.auc is None else f"{method.auc:.4f}",
                _moved(method.auc_change),
                "–" if method.distinct is None else f"{method.distinct:,}",
            )
        )
    chosen = report.methods.index(report.chosen)
    return _table(columns, rows, "Leaderboard", chosen)


def _ends(methods: Sequence[Method]) -> tuple[float, float]:
    """A common scale for all gains: the largest losses may run out of it."""
    best = [m.gain_high for m in methods if m.gain_high is not None and math.isfinite(m.gain_high)]
    worst = [m.gain_low for m in methods if m.gain_low is not None and math.isfinite(m.gain_low)]
    high = max([0.0, *best]) or 1e-6
    low = min([0.0, *worst])
    return max(low, -2.0 * high) * 1.05 - 0.02 * high, 1.05 * high


def _with_error(value: float, error: float | None) -> Markup:
    if error is None:
        return join((shown_value(value),))
    return join((shown_value(value), " ", _small(f"± {short_value(error)}")))


def _gain(method: Method) -> Markup:
    if method.gain is None:
        return join(("–",))
    if method.gain_low is None or method.gain_high is None or not math.isfinite(method.gain):
        return join((_signed(method.gain),))
    ends = f"{short_value(method.gain_low)} to {short_value(method.gain_high)}"
    return join((_signed(method.gain), " ", _small(ends)))


def _moved(change: float | None) -> str:
    if change is None:
        return "–"
    return "same" if abs(change) < 5e-5 else f"{change:+.4f}".replace("-", "−")


# --- measures -----------------------------------------------------------------------------------


def _intervals(report: Report, name: str) -> Mapping[str, tuple[float, float]]:
    return getattr(report.evaluation, name, None) or {}


def _with_span(value: float, span: tuple[float, float] | None) -> Markup:
    """A value, and its interval below where there is one."""
    below = Markup() if span is None else _small(_between(*span))
    return join((shown_value(value), element("br"), below))


def _between(low: float, high: float) -> str:
    return f"{shown_value(low)} to {shown_value(high)}"


def measures(report: Report) -> Markup:
    """All measures before and after, with intervals where there are any."""
    e = report.evaluation
    after, before = e.after, e.before
    new, old = _intervals(report, "intervals"), _intervals(report, "intervals_before")
    columns = [("measure", ""), ("good is", "")]
    columns += [("value", "n")] if before is None else [("before", "n"), ("after", "n"), ("", "")]
    rows = []
    for name, measure in e._measures.items():
        if name not in after:
            continue
        title = join((measure.label, element("br"), _small(measure.meaning)))
        cells: list[Any] = [title, measure.better]
        if before is None:
            cells.append(_with_span(after[name], new.get(name)))
        elif name not in before:
            cells += ["–", _with_span(after[name], new.get(name)), ""]
        else:
            word = e.verdict(name)
            was = _with_span(before[name], old.get(name))
            cells += [was, _with_span(after[name], new.get(name)), Word(word, word)]
        rows.append(cells)
    level = getattr(e, "level", None)
    told = f", with {100 * level:g} % intervals" if level is not None and new else ""
    return _table(columns, rows, f"Measures{told}")


#: figures at a glance
TILES = 3


def tiles(report: Report) -> Markup:
    """A few figures at a glance, before and after."""
    e = report.evaluation
    after, before = e.after, e.before
    new = _intervals(report, "intervals")
    cells = []
    known = [m for m in e._measures.values() if m.headline and m.name in after]
    for measure in known[:TILES]:
        name = measure.name
        parts: list[Any] = [element("dt", None, measure.headline)]
        if before is None or name not in before:
            value: Any = short_value(after[name])
        else:
            was = element("span", {"class": "was"}, short_value(before[name]))
            word = e.verdict(name)
            arrow = element("span", {"class": "to", "aria-label": "to"}, " → ")
            value = join((was, arrow, element("b", {"class": word}, short_value(after[name]))))
        parts.append(element("dd", None, value))
        if name in new:
            low, high = map(short_value, new[name])
            span = f"{100 * report.level:g} %: {low} to {high}"
            parts.append(element("dd", {"class": "range"}, span))
        cells.append(element("div", None, *parts))
    parts = [element("dt", None, "Rows (weight)"), element("dd", None, counted(e.weight))]
    if isinstance(e, Evaluation):
        share = shown_percent(e.positive_weight / e.weight)
        parts.append(element("dd", {"class": "range"}, f"{share} positive"))
    cells.append(element("div", None, *parts))
    return element("dl", {"class": "tiles"}, *cells)


# --- points and panels --------------------------------------------------------------------------


def points(methods: Sequence[Method]) -> Markup:
    """The points of the diagram in numbers, for those who do not see it."""
    columns = [
        ("method", ""),
        ("predicted", "n"),
        ("came", "n"),
        ("interval", "n"),
        ("weight", "n"),
    ]
    rows = []
    for method in methods:
        c = method.curve
        for i in range(len(c)):
            ends = "–"
            if c.lower is not None and c.upper is not None:
                ends = _between(float(c.lower[i]), float(c.upper[i]))
            predicted, came = shown_value(float(c.mean_p[i])), shown_value(float(c.fraction[i]))
            rows.append((method.name, predicted, came, ends, counted(float(c.weight[i]))))
    return _table(columns, rows, "The points of the diagram")


def panel_table(panels: Sequence[Panel], kind: str, level: float) -> Markup:
    """How often the event came in each segment or class, and how often it was predicted."""
    columns = [
        (kind, ""),
        ("weight", "n"),
        (f"came, {100 * level:g} % interval", "n"),
        ("predicted before", "n"),
        ("predicted after", "n"),
        ("", ""),
    ]
    rows = []
    for panel in panels:
        f = panel.figures
        low, high, after = f["low"], f["high"], f["after"]
        inside = low <= after <= high
        word = "fits" if inside else "too low" if after < low else "too high"
        rows.append(
            (
                panel.name,
                counted(f["weight"]),
                join((shown_value(f["observed"]), " ", _small(_between(low, high)))),
                shown_value(f["before"]),
                shown_value(after),
                Word(word, "better" if inside else "worse"),
            )
        )
    plural = "classes" if kind == "class" else f"{kind}s"
    return _table(columns, rows, f"One map, {len(panels)} {plural}")
