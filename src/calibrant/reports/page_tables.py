"""The page's tables: leaderboard, measures, points, segments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from calibrant.metrics import Evaluation
from calibrant.metrics.evaluation_words import SAME_AUC
from calibrant.metrics.measure import Measure
from calibrant.reports.charts import forest, swatch
from calibrant.reports.markup import Markup, element, join
from calibrant.reports.report_value import Method, Panel, Report
from calibrant.result_tables import counted, short_value, shown_value

__all__ = ["leaderboard", "measures", "panel_table", "points", "tiles"]


def _table(head: Sequence[tuple[str, str]], rows: Iterable[Markup], caption: str) -> Markup:
    """A table in a box that scrolls sideways where it must; head: (title, class) of each column."""
    titles = [element("th", {"scope": "col", "class": kind or None}, t) for t, kind in head]
    table = element(
        "table",
        None,
        element("caption", None, caption),
        element("thead", None, element("tr", None, *titles)),
        element("tbody", None, *rows),
    )
    options = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption}
    return element("div", options, table)


def _row(cells: Sequence[tuple[Any, str]], **options: Any) -> Markup:
    """A row whose first cell is its name; cells: (content, class)."""
    (name, kind), *rest = cells
    first = element("th", {"scope": "row", "class": kind or None}, name)
    others = (element("td", {"class": kind or None}, cell) for cell, kind in rest)
    return element("tr", {k.rstrip("_"): v for k, v in options.items()}, first, *others)


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
    head = [
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
        name = join((swatch(number), " ", method.name, " ", mark))
        cells = [
            (name, "name"),
            (_with_error(method.log_loss, method.log_loss_se), "n"),
            (_gain(method), "n"),
            (forest(method, ends), "picture"),
            (_with_error(method.brier, method.brier_se), "n"),
            ("–" if method.auc is None else f"{method.auc:.4f}", "n"),
            (_moved(method.auc_change), "n"),
            ("–" if method.distinct is None else f"{method.distinct:,}", "n"),
        ]
        rows.append(_row(cells, class_="chosen" if method.chosen else None))
    return _table(head, rows, "Leaderboard")


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


def _between(ends: tuple[float, float] | None) -> Markup:
    if ends is None:
        return Markup()
    return _small(f"{shown_value(ends[0])} to {shown_value(ends[1])}")


def measures(report: Report) -> Markup:
    """All measures before and after, with intervals where there are any."""
    e = report.evaluation
    after, before = e.after, e.before
    new, old = _intervals(report, "intervals"), _intervals(report, "intervals_before")
    head = [("measure", ""), ("good is", "")]
    head += [("value", "n")] if before is None else [("before", "n"), ("after", "n"), ("", "")]
    rows = []
    for name, measure in e._measures.items():
        if name not in after:
            continue
        title = join((measure.label, element("br"), _small(measure.meaning)))
        cells: list[tuple[Any, str]] = [(title, ""), (measure.better, "")]
        value = join((shown_value(after[name]), element("br"), _between(new.get(name))))
        if before is None:
            cells.append((value, "n"))
        else:
            was = join((shown_value(before[name]), element("br"), _between(old.get(name))))
            word = _verdict(measure, before, after, shown_value)
            if measure.ranks and abs(report.chosen.auc_change or 0.0) < SAME_AUC:
                word = "same"  # within folds; maps of different folds are not to be compared
            cells += [(was, "n"), (value, "n"), (word, f"word {word}")]
        rows.append(_row(cells))
    level = getattr(e, "level", None)
    told = f", with {100 * level:g} % intervals" if level is not None and new else ""
    return _table(head, rows, f"Measures{told}")


def _verdict(
    measure: Measure,
    before: Mapping[str, float],
    after: Mapping[str, float],
    show: Callable[[float], str],
) -> str:
    """Better, worse, or the same where what is shown is, or the ranking is kept."""
    kept = SAME_AUC if measure.ranks else 0.0
    return measure.verdict(before[measure.name], after[measure.name], show=show, same_within=kept)


#: figures at a glance
TILES = 3


def tiles(report: Report) -> Markup:
    """A few figures at a glance, before and after."""
    e = report.evaluation
    after, before = dict(e.after), None if e.before is None else dict(e.before)
    new = _intervals(report, "intervals")
    if before is not None and report.raw.auc is not None and report.chosen.auc is not None:
        # within folds, as in the leaderboard: maps of different folds are not compared
        before["auc"], after["auc"] = report.raw.auc, report.chosen.auc
    cells = []
    known = [m for m in e._measures.values() if m.headline and m.name in after]
    for measure in known[:TILES]:
        name = measure.name
        parts: list[Any] = [element("dt", None, measure.headline)]
        if before is None:
            value: Any = short_value(after[name])
        else:
            was = element("span", {"class": "was"}, short_value(before[name]))
            word = _verdict(measure, before, after, short_value)
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
        share = 100 * e.positive_weight / e.weight
        parts.append(element("dd", {"class": "range"}, f"{share:.3g} % events"))
    cells.append(element("div", None, *parts))
    return element("dl", {"class": "tiles"}, *cells)


# --- points and panels --------------------------------------------------------------------------


def points(methods: Sequence[Method]) -> Markup:
    """The points of the diagram in numbers, for those who do not see it."""
    head = [
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
                ends = f"{shown_value(float(c.lower[i]))} to {shown_value(float(c.upper[i]))}"
            cells = [
                (method.name, ""),
                (shown_value(float(c.mean_p[i])), "n"),
                (shown_value(float(c.fraction[i])), "n"),
                (ends, "n"),
                (counted(float(c.weight[i])), "n"),
            ]
            rows.append(_row(cells))
    return _table(head, rows, "The points of the diagram")


def panel_table(panels: Sequence[Panel], kind: str, level: float) -> Markup:
    """How often the event came in each segment or class, and how often it was predicted."""
    head = [
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
        ends = _small(f"{shown_value(low)} to {shown_value(high)}")
        word = "fits" if inside else "too low" if after < low else "too high"
        cells = [
            (panel.name, ""),
            (counted(f["weight"]), "n"),
            (join((shown_value(f["observed"]), " ", ends)), "n"),
            (shown_value(f["before"]), "n"),
            (shown_value(after), "n"),
            (word, f"word {'better' if inside else 'worse'}"),
        ]
        rows.append(_row(cells))
    return _table(head, rows, f"One map, {len(panels)} {kind}{'s' if kind != 'class' else 'es'}")
