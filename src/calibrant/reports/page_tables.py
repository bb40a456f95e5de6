"""The page's tables: leaderboard, measures, points, segments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.metrics import Evaluation
from calibrant.reports.charts import forest
from calibrant.reports.markup import Markup, element, join
from calibrant.reports.page_parts import Word, page_table, signed, small_text, tile_row
from calibrant.reports.report_value import Method, Panel, Report
from calibrant.reports.svg_parts import swatch
from calibrant.result_tables import counted, short_value, shown_percent, shown_value

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
    return page_table(columns, rows, "Leaderboard", chosen)


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
    return join((shown_value(value), " ", small_text(f"± {short_value(error)}")))


def _gain(method: Method) -> Markup:
    if method.gain is None:
        return join(("–",))
    if method.gain_low is None or method.gain_high is None or not math.isfinite(method.gain):
        return join((signed(method.gain),))
    ends = f"{short_value(method.gain_low)} to {short_value(method.gain_high)}"
    return join((signed(method.gain), " ", small_text(ends)))


def _moved(change: float | None) -> str:
    if change is None:
        return "–"
    return "same" if abs(change) < 5e-5 else f"{change:+.4f}".replace("-", "−")


# --- measures -----------------------------------------------------------------------------------


def _intervals(report: Report, name: str) -> Mapping[str, tuple[float, float]]:
    return getattr(report.evaluation, name, None) or {}


def _with_span(value: float, span: tuple[float, float] | None) -> Markup:
    """A value, and its interval below where there is one."""
    below = Markup() if span is None else small_text(_between(*span))
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
        title = join((measure.label, element("br"), small_text(measure.meaning)))
        cells: list[Any] = [title, measure.good]
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
    return page_table(columns, rows, f"Measures{told}")


#: figures at a glance
TILES = 3


def tiles(report: Report) -> Markup:
    """A few figures at a glance, before and after."""
    e = report.evaluation
    after, before = e.after, e.before
    new = _intervals(report, "intervals")
    cells: list[tuple[str, Any, str]] = []
    known = [m for m in e._measures.values() if m.headline and m.name in after]
    for measure in known[:TILES]:
        name, below = measure.name, ""
        value: Any = short_value(after[name])
        if before is not None and name in before:
            was = element("span", {"class": "was"}, short_value(before[name]))
            word = e.verdict(name)
            arrow = element("span", {"class": "to", "aria-label": "to"}, " → ")
            value = join((was, arrow, element("b", {"class": word}, short_value(after[name]))))
        if name in new:
            low, high = map(short_value, new[name])
            below = f"{100 * report.level:g} %: {low} to {high}"
        cells.append((str(measure.headline), value, below))
    share = ""
    if isinstance(e, Evaluation):
        share = f"{shown_percent(e.positive_weight / e.weight)} positive"
    return tile_row([*cells, ("Rows (weight)", counted(e.weight), share)])


# --- points and panels --------------------------------------------------------------------------


def points(methods: Sequence[Method]) -> Markup:
    """The points of the diagram in numbers, for those who do not see it."""
    columns = [
        ("method", ""),
        ("predicted", "n"),
        ("observed", "n"),
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
    return page_table(columns, rows, "The points of the diagram")


def panel_table(panels: Sequence[Panel], kind: str, level: float) -> Markup:
    """How often the event came in each segment or class, and how often it was predicted."""
    columns = [
        (kind, ""),
        ("weight", "n"),
        (f"observed, {100 * level:g} % interval", "n"),
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
                join((shown_value(f["observed"]), " ", small_text(_between(low, high)))),
                shown_value(f["before"]),
                shown_value(after),
                Word(word, "better" if inside else "worse"),
            )
        )
    plural = "classes" if kind == "class" else f"{kind}s"
    return page_table(columns, rows, f"One map, {len(panels)} {plural}")
