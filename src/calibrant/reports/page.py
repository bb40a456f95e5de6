"""The page of a calibration: verdict, leaderboard, diagrams, measures, how to apply it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen
from calibrant.diagrams.curve import Curve, MapCurve
from calibrant.diagrams.decision import DecisionCurve
from calibrant.errors import InputError, shell_quoted
from calibrant.export.sql import to_sql
from calibrant.fitting.fitted import Fitted
from calibrant.fitting.registry import describe_method
from calibrant.metrics.evaluating import Evaluation, MulticlassEvaluation, from_to
from calibrant.metrics.groups import GroupError, Multicalibration
from calibrant.metrics.measures import SAME_ORDER, Verdict
from calibrant.reports.kit import (
    Column,
    Markup,
    PageValue,
    PlotArea,
    Recipe,
    Word,
    area_between,
    chart_frame,
    chart_text,
    collapsed,
    common_axis,
    curve_band,
    element,
    explanation,
    fact_section,
    figure,
    join,
    labelled_points,
    line_through,
    linear_axis,
    page_section,
    page_table,
    path_data,
    picture,
    probability_axis,
    radio_buttons,
    recipe_section,
    series_class,
    signed,
    small_chart,
    small_text,
    swatch,
    ticks,
    tile_row,
    upright_text,
    verdict_section,
    whole_page,
)
from calibrant.result_tables import (
    format_count,
    json_ready,
    short_value,
    shown_p,
    shown_percent,
    shown_value,
)
from calibrant.rules.base import VectorMap
from calibrant.rules.sigmoids import Identity


@dataclass(frozen=True, eq=False, repr=False)
class Report(PageValue):
    """Everything that a report shows, as a value: the same data give the same page, byte for byte.

    Attributes
    ----------
    title : str
    verdict : pair of str
        What to do, and how much better it is.
    how : str
        How the figures were obtained.
    methods : tuple of Method
        The leaderboard: the scores as they are first, then the others, best first.
    evaluation : Evaluation or MulticlassEvaluation
        All measures of the chosen method, beside those of the scores as they are.
    map_curve : MapCurve or None
        The chosen map, if it is one of a single score.
    panels : tuple of Panel
        Segments of the rows, or the classes of a multiclass model.
    panel_kind : {"segment", "class"}
    decision : DecisionCurve or None
        Two classes: the net benefit of acting on the chosen probabilities, and on the scores.
    advice : tuple of str
        What deserves a look, in sentences.
    facts : mapping of str to str
        Where it comes from: rows, weights, files, fingerprint of the data, versions.
    recipes : tuple of Recipe
        How to apply the chosen map.
    fitted : Fitted or None
        The chosen map as a value: ``cal.save(report.fitted, "calibrator.json")``.
    level : float
        Of all intervals.
    caution : bool
        Whether the verdict is about the scores themselves (one class, their direction, that they
        say nothing, or too few rows): then nothing on the page is green.
    groups : Multicalibration or None
        Where the chosen map is wrong, if features were given: the worst groups of rows.
    """

    title: str
    verdict: tuple[str, str]
    how: str
    methods: tuple[Method, ...]
    evaluation: Evaluation | MulticlassEvaluation
    map_curve: MapCurve | None = None
    panels: tuple[Panel, ...] = ()
    panel_kind: str = "segment"
    decision: DecisionCurve | None = None
    advice: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    recipes: tuple[Recipe, ...] = ()
    fitted: Fitted | None = None
    level: float = 0.95
    caution: bool = False
    groups: Multicalibration | None = None

    def __post_init__(self) -> None:
        for name in ("methods", "panels", "advice", "recipes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        super().__post_init__()
        if not self.methods or sum(method.chosen for method in self.methods) != 1:
            raise InputError("a report needs methods, exactly one of which is the chosen one.")

    @property
    def raw(self) -> Method:
        """The scores as they are."""
        return self.methods[0]

    @property
    def chosen(self) -> Method:
        """What the verdict is about."""
        return next(method for method in self.methods if method.chosen)

    def to_html(self) -> str:
        """The page: one file that needs no other and no network."""
        order = _series_numbers(self.methods)
        sections = (
            verdict_section(self.verdict, _tiles(self), self.how),
            _advice(self),
            _leaderboard(self, order),
            _diagrams(self, order),
            _gallery(self, order),
            _decisions(self.decision),
            _measures(self),
            _panels(self),
            groups_section(self.groups),
            recipe_section("How to apply it", self.recipes),
            fact_section(self.facts),
        )
        hide = "".join(
            f"body:has(#show-{i}:not(:checked)) .series-{i}{{display:none}}"
            for i in range(len(self.methods))
        )
        return whole_page(self.title, sections, self.to_dict(), caution=self.caution, style=hide)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object; an infinite number is the string "inf" or "-inf"."""
        document = {
            name: json_ready(value)
            for name, value in self._items()
            if name not in ("evaluation", "fitted")
        }
        document["evaluation"] = self.evaluation.to_dict()
        document["fitted"] = None if self.fitted is None else self.fitted.to_dict()
        return document

    def _repr_html_(self) -> str:
        """The verdict and the measures, for notebooks."""
        return super()._repr_html_() + self.evaluation._repr_html_()

    def __repr__(self) -> str:
        count = len(self.methods) - 1
        plural = "s" if count != 1 else ""
        return f"Report({self.title!r}, {count} method{plural}, {self.chosen.name!r} chosen)"


@dataclass(frozen=True, eq=False)
class PredictionSpread(Frozen):
    """How predictions are spread: the share of all weight between neighbouring edges."""

    edges: Array
    share: Array


@dataclass(frozen=True, eq=False)
class Method(Frozen):
    """A line of the leaderboard, and its curve.

    Attributes
    ----------
    name : str
    log_loss, log_loss_se, brier, brier_se : float
        Mean loss out of fold, and its standard error (None if unknown).
    gain, gain_low, gain_high : float or None
        Log loss of the scores as they are minus its own: positive is better; with its interval.
    auc, auc_change : float or None
        The AUC, and what it gained over that of the scores; of these themselves only where they
        are points, of which one rate for all rows is kept.
    distinct : int or None
        Different predictions.
    curve : Curve
        Its reliability curve out of fold.
    spread, logit_spread : PredictionSpread
        Its predictions in cells of the axis, and of the axis of log-odds.
    chosen : bool
    """

    name: str
    log_loss: float
    brier: float
    curve: Curve
    spread: PredictionSpread
    logit_spread: PredictionSpread
    log_loss_se: float | None = None
    brier_se: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    auc: float | None = None
    auc_change: float | None = None
    distinct: int | None = None
    chosen: bool = False


@dataclass(frozen=True, eq=False)
class Panel(Frozen):
    """A segment of the rows, or a class against the rest: curves and a few figures.

    Attributes
    ----------
    name : str
    before, after : Curve
    figures : mapping of str to float
        ``weight``, ``events``, ``observed`` with ``low`` and ``high`` (its interval), and the mean
        prediction ``before`` and ``after``.
    """

    name: str
    before: Curve
    after: Curve
    figures: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", MappingProxyType(dict(self.figures)))


# --- the page as HTML ---------------------------------------------------------------------------


#: figures at a glance
TILES = 3


def _series_numbers(methods: Sequence[Method]) -> list[int]:
    """The number of each method's colour: 0 (grey) for the scores as they are, 1 for the chosen."""
    following = itertools.count(2)
    others = (1 if method.chosen else next(following) for method in methods[1:])
    return [0, *others]


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
    return tile_row([*cells, ("Rows (weight)", format_count(e.weight), share)])


def _advice(report: Report) -> Markup:
    """What deserves a look, as a list; nothing where there is no advice."""
    if not report.advice:
        return Markup()
    items = (element("li", line) for line in report.advice)
    return page_section("advice", "What deserves a look", element("ul", *items))


# --- leaderboard --------------------------------------------------------------------------------


def _leaderboard(report: Report, order: Sequence[int]) -> Markup:
    """All methods: losses with standard errors, the gain with its interval, what it costs."""
    methods, names, changes = report.methods, [], []
    # a common scale for all gains: the largest losses may run out of it
    gains = [m.gain_high for m in methods if m.gain_high is not None and math.isfinite(m.gain_high)]
    losses = [m.gain_low for m in methods if m.gain_low is not None and math.isfinite(m.gain_low)]
    best = max([0.0, *gains]) or 1e-6
    ends = max(min([0.0, *losses]), -2.0 * best) * 1.05 - 0.02 * best, 1.05 * best
    for method, number in zip(methods, order, strict=True):
        mark = element("span", "chosen", class_="badge") if method.chosen else ""
        names.append(join((swatch(number), " ", method.name, " ", mark)))
        change = method.auc_change
        same = "same" if change is not None and abs(change) < 5e-5 else ""
        changes.append("–" if change is None else same or f"{change:+.4f}".replace("-", "−"))
    columns = (
        Column("method", names, ""),
        Column("log loss", [_with_error(m.log_loss, m.log_loss_se) for m in methods]),
        Column(f"gain, {100 * report.level:g} % interval", [_gain_cell(m) for m in methods]),
        Column("", [forest_plot(m, ends) for m in methods], "picture"),
        Column("Brier score", [_with_error(m.brier, m.brier_se) for m in methods]),
        Column("AUC", ["–" if m.auc is None else f"{m.auc:.4f}" for m in methods]),
        Column("change", changes),
        Column("values", ["–" if m.distinct is None else f"{m.distinct:,}" for m in methods]),
    )
    text = (
        "Smaller losses are better; ± are standard errors. The gain is the log loss of the "
        f"{report.raw.name} minus the method's own, on the same rows: right of the line is better. "
        "Values are the different probabilities that the scores become."
    )
    if not report.evaluation.praise:
        text += " A gain means little here: even one constant for all rows would have one."
    table = page_table("Leaderboard", columns, chosen=methods.index(report.chosen))
    return page_section("leaderboard", "Leaderboard", table, explanation(text))


def _with_error(value: float, error: float | None) -> Markup:
    """A value, and its standard error where there is one."""
    shown = shown_value(value)
    return join((shown,) if error is None else (shown, " ", small_text(f"± {short_value(error)}")))


def _gain_cell(method: Method) -> str:
    """The gain of a method and its interval, a dash for the scores as they are."""
    if method.gain is None:
        return "–"
    if method.gain_low is None or method.gain_high is None or not math.isfinite(method.gain):
        return signed(method.gain)
    ends = f"{short_value(method.gain_low)} to {short_value(method.gain_high)}"
    return join((signed(method.gain), " ", small_text(ends)))


# --- diagrams -----------------------------------------------------------------------------------


def _diagrams(report: Report, order: Sequence[int]) -> Markup:
    """The reliability diagram of all methods on both kinds of axes, and the chosen map."""
    several = isinstance(report.evaluation, MulticlassEvaluation)
    across = "confidence of the top label" if several else "predicted probability"
    up = "how often it was right" if several else "how often the event happened"
    methods, boxes = report.methods, []
    plain, odds = (
        reliability_chart(methods, order, (across, up), odds=odds) for odds in (False, True)
    )
    # a box for each method hides and shows it, also where no script runs
    for i, (method, number) in enumerate(zip(methods, order, strict=True)):
        box = element("input", type="checkbox", id=f"show-{i}", checked=number < 2)
        label = element("label", swatch(number), " ", method.name, for_=f"show-{i}")
        boxes.append(element("span", box, label, class_="toggle"))
    if len(methods) > 2:
        for word, title in (("all", "All"), ("pair", "Before and after")):
            options = {"type": "button", "class_": "scripted", "data_show": word}
            boxes.append(element("button", title, **options))
    curves = figure(
        "large",
        "When 30 % is predicted, does it happen 30 % of the time?",
        element("fieldset", element("legend", "Methods"), *boxes, class_="toggles"),
        radio_buttons("axes", "Axes", (("plain", "Probability"), ("odds", "Log-odds"))),
        element("div", plain, class_="axes-plain"),
        element("div", odds, class_="axes-odds"),
    )
    parts = [curves]
    if report.map_curve is not None:
        title = f"The map: {report.chosen.name}"
        parts.append(figure("large", title, map_picture(report.map_curve)))
    text = (
        "A calibrated model's points lie on the dashed diagonal. Each point is a tenth of the rows "
        f"(by weight), its band a {100 * report.level:g} % interval; below it, how "
        "predictions are spread."
    )
    table = collapsed("The points in numbers", _points_in_numbers(methods))
    both = element("div", *parts, class_="pair")
    return page_section("diagrams", "Before and after", both, explanation(text), table)


def _points_in_numbers(methods: Sequence[Method]) -> Markup:
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
        Column("weight", [format_count(float(c.weight[i])) for _, c, i in points]),
    )
    return page_table("The points of the diagram", columns)


def _between(low: float, high: float) -> str:
    """Both ends of an interval, as cells of tables have them."""
    return f"{shown_value(float(low))} to {shown_value(float(high))}"


def _gallery(report: Report, order: Sequence[int]) -> Markup:
    """A small reliability diagram of each method, side by side, so that paper shows them all."""
    if len(report.methods) < 3:
        return Markup()
    figures = (
        figure(
            "few",
            method.name,
            small_chart([(method.curve, number)], f"Reliability of {method.name}"),
        )
        for method, number in zip(report.methods, order, strict=True)
    )
    return page_section("gallery", "Every method", element("div", *figures, class_="grid"))


# --- decisions ----------------------------------------------------------------------------------


#: about so many thresholds are in the table of decisions
THRESHOLDS = 10


def _decisions(curve: DecisionCurve | None) -> Markup:
    """The net benefit at each threshold, drawn and in numbers; nothing without a curve."""
    if curve is None:
        return Markup()
    numbers = range(2 - len(curve.names), 2)
    round_ones = ticks(0.0, float(curve.thresholds[-1]), THRESHOLDS)
    at = [int(np.abs(curve.thresholds - one).argmin()) for one in round_ones if one > 0.0]
    acted = (map(shown_percent, shares) for shares in curve.acted[:, at].T.tolist())
    worth = (map(shown_value, values) for values in curve.net_benefit[:, at].T.tolist())
    columns = (
        Column("threshold", [shown_percent(one) for one in curve.thresholds[at].tolist()], ""),
        Column("rows acted on", [" → ".join(shares) for shares in acted]),
        Column("net benefit", [" → ".join(values) for values in worth]),
        Column("acting on all", [shown_value(one) for one in curve.treat_all[at].tolist()]),
    )
    legend = [
        element("span", swatch(number), " ", name, class_="word")
        for name, number in zip(curve.names, numbers, strict=True)
    ]
    text = (
        "Who acts where the probability is 20 % or more says that a missed event costs as much as "
        "four actions in vain. The net benefit is the share of rows that are rightly acted on, "
        "minus what the actions in vain cost. A model is of use where it lies above both acting on "
        "all rows (dashed) and acting on none, which is 0."
    )
    drawn = figure(
        "large",
        "Net benefit, threshold by threshold",
        element("p", join(legend, " "), class_="how"),
        decision_chart(curve, numbers),
    )
    both = element("div", drawn, page_table("Net benefit in numbers", columns), class_="pair")
    return page_section("decisions", "What acting on them is worth", both, explanation(text))


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
    text = f", with {100 * e.level:g} % intervals" if e.level is not None and new else ""
    notes = [element("li", note) for note in e.notes]
    below = element("ul", *notes, class_="how") if notes else Markup()
    return page_section("measures", "Measures", page_table(f"Measures{text}", columns), below)


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
    title, text = {
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
    found, came, words = [panel.figures for panel in panels], [], []
    for f in found:
        low, high, after = f["low"], f["high"], f["after"]
        came.append(join((shown_value(f["observed"]), " ", small_text(_between(low, high)))))
        off = Word("too low" if after < low else "too high", "worse")
        words.append(Word("fits", "better") if low <= after <= high else off)
    columns = (
        Column(kind, [panel.name for panel in panels], ""),
        Column("weight", [format_count(f["weight"]) for f in found]),
        Column(f"observed, {100 * report.level:g} % interval", came),
        Column("predicted before", [shown_value(f["before"]) for f in found]),
        Column("predicted after", [shown_value(f["after"]) for f in found]),
        Column("", words, ""),
    )
    figures = []
    for panel in panels:
        name = f"Reliability of {kind} {panel.name}, before and after"
        figures.append(
            figure("few", panel.name, small_chart(((panel.before, 0), (panel.after, 1)), name))
        )
    return page_section(
        "panels",
        title,
        page_table(f"One map, {len(panels)} {title.lower()}", columns),
        explanation(text),
        element("div", *figures, class_="grid"),
    )


# --- The pictures of curves: SVG, whose colours come from the page's style sheet ------------------


#: the picture of reliability: its size, and where its square and its histogram are
WIDTH, SIDE, LEFT, TOP, HIST_TOP, HIST, HEIGHT = 560, 470, 66, 14, 524, 64, 616


def reliability_chart(
    methods: Sequence[Method], order: Sequence[int], words: tuple[str, str], *, odds: bool
) -> Markup:
    """Curves of all methods in one picture, each a group that can be hidden; histograms below.

    ``order`` gives the look of each method; ``words`` are the names of both axes.
    """
    axis = common_axis((method.curve for method in methods), odds=odds)
    place = PlotArea(LEFT, TOP, SIDE, SIDE, axis, axis)
    spreads = [m.logit_spread if odds else m.spread for m in methods]
    tallest = max(float(s.share.max(initial=0.0)) for s in spreads) or 1.0
    below = PlotArea(LEFT, HIST_TOP, SIDE, HIST, axis, linear_axis(0.0, tallest))
    series = []
    for place_of, (method, spread, number) in enumerate(zip(methods, spreads, order, strict=True)):
        curve = method.curve
        # the outline of the histogram goes from the ground up and down again
        edges, share = np.repeat(spread.edges, 2), np.repeat(spread.share, 2)
        heights = below.down(np.concatenate(([0.0], share, [0.0])))
        x, y = place.across(curve.mean_p), place.down(curve.fraction)
        points = [(method.name, *_point_words(curve, i)) for i in range(len(curve))]
        group = element(
            "g",
            element("path", class_="histogram", d=path_data(below.across(edges), heights)),
            curve_band(curve, place),
            line_through(curve.mean_p, curve.fraction, place),
            labelled_points(x, y, points, number),
            class_=f"series series-{place_of} {series_class(number)}",
            role="group",
            aria_label=f"{method.name}: {len(curve)} points",
        )
        series.append(group)
    # what was chosen lies on top
    series.sort(key=lambda group: "c1 d0" in group)
    return picture(
        "chart",
        f"Reliability diagram, {'log-odds axes' if odds else 'probability axes'}",
        (WIDTH, HEIGHT),
        chart_frame(place, words[1]),
        chart_text(LEFT + SIDE / 2, HEIGHT - 4, words[0], "middle"),
        upright_text(HIST_TOP + HIST / 2, "share"),
        element("path", class_="axis", d=f"M{LEFT} {HIST_TOP + HIST}h{SIDE}"),
        *series,
    )


def _point_words(curve: Curve, i: int) -> tuple[str, ...]:
    """What a point says."""
    places = 3 if curve.histogram_edges[-1] - curve.histogram_edges[0] > 0.2 else 5
    words = [
        f"predicted {curve.mean_p[i]:.{places}f}",
        f"observed {curve.fraction[i]:.{places}f}",
    ]
    if curve.lower is not None and curve.upper is not None and curve.level is not None:
        ends = f"{curve.lower[i]:.{places}f} to {curve.upper[i]:.{places}f}"
        words.append(f"{100 * curve.level:g} % interval {ends}")
    return (*words, f"weight {curve.weight[i]:,.10g}")


def forest_plot(method: Method, ends: tuple[float, float]) -> Markup:
    """The gain of a method with its interval, beside the line of no gain."""
    low, high = method.gain_low, method.gain_high
    if method.gain is None or low is None or high is None or not np.isfinite([low, high]).all():
        return Markup()
    axis = linear_axis(*ends)
    place = PlotArea(6, 4, 148, 12, axis, linear_axis(0.0, 1.0))
    zero, at = float(place.across(0.0)), float(place.across(method.gain))
    first, last = place.across(np.array([low, high]))
    kind = "good" if low > 0 else "bad" if high < 0 else "even"
    return element(
        "svg",
        element("path", class_="zero", d=f"M{zero:.1f} 0v20"),
        element("path", class_="line", d=f"M{first:.1f} 10H{last:.1f}"),
        element("circle", class_="dot", cx=f"{at:.1f}", cy="10", r="4"),
        class_=f"forest {kind}",
        viewBox="0 0 160 20",
        aria_hidden="true",
    )


def map_picture(curve: MapCurve) -> Markup:
    """The chosen map: from scores to probabilities, with its band and its knots if they are few."""
    low, high = float(curve.x[0]), float(curve.x[-1])
    across = linear_axis(low, high)
    columns = [c for c in (curve.p, curve.lower, curve.upper) if c is not None]
    up = probability_axis(columns)
    if curve.domain == "probability" and (low, high) == (0.0, 1.0):
        up = across
    place = PlotArea(LEFT, TOP, SIDE, SIDE, across, up)
    parts = []
    if curve.lower is not None and curve.upper is not None:
        parts.append(area_between(curve.x, curve.lower, curve.upper, place))
    parts.append(line_through(curve.x, curve.p, place))
    if 0 < len(curve.knots) <= 200:
        at = place.across(curve.knots)
        d = "".join(f"M{a:.1f} {TOP + SIDE}v-7" for a in at)
        parts.append(element("path", class_="knots", d=d))
    return picture(
        "chart",
        "The map from score to calibrated probability",
        (WIDTH, 532),
        chart_frame(place, "calibrated probability"),
        chart_text(LEFT + SIDE / 2, 526, "score", "middle"),
        element("g", *parts, class_=f"series {series_class(1)}"),
        role="img",
    )


def decision_chart(curve: DecisionCurve, numbers: Sequence[int]) -> Markup:
    """The net benefit of models at each threshold, beside that of acting on all rows, and on none.

    ``numbers`` give the looks of the models.
    """
    low = -0.2 * curve.rate
    place = PlotArea(
        LEFT,
        TOP,
        SIDE,
        SIDE * 0.7,
        linear_axis(0.0, float(curve.thresholds[-1])),
        linear_axis(low, 1.05 * curve.rate),
    )
    seen = curve.treat_all >= low
    x, y = curve.thresholds[seen], curve.treat_all[seen]
    zero = float(place.down(0.0))
    parts = [
        element("path", class_="axis", d=f"M{LEFT} {zero:.1f}h{SIDE}"),
        element("path", class_="diagonal", d=path_data(place.across(x), place.down(y))),
    ]
    for i, number in enumerate(numbers):
        shown = [line_through(curve.thresholds, curve.net_benefit[i], place)]
        if curve.lower is not None and curve.upper is not None:
            shown.insert(0, area_between(curve.thresholds, curve.lower[i], curve.upper[i], place))
        parts.append(element("g", *shown, class_=f"series {series_class(number)}"))
    return picture(
        "chart",
        "Decision curve: net benefit against the threshold of acting",
        (WIDTH, TOP + place.height + 48),
        chart_frame(place, "net benefit"),
        chart_text(LEFT + SIDE / 2, TOP + place.height + 42, "threshold", "middle"),
        *parts,
        role="img",
    )


# --- The section of a page that tells in which groups of rows predictions are wrong ---------------


#: groups that a page holds, of all that were looked at
MOST_GROUPS = 30
#: the picture: its width, what is free at the sides, the height of a group and of the axis
GROUP_WIDTH, GROUP_SIDE, GROUP, GROUP_AXIS = 420, 14, 44, 44
#: letters of a name that fit the picture
LETTERS = 52


def worst_groups(found: Multicalibration) -> Multicalibration:
    """The result with no more groups than a page holds."""
    return replace(found, groups=found.groups[:MOST_GROUPS])


def groups_section(found: Multicalibration | None) -> Markup:
    """What was found, a picture of the worst groups, and their table; nothing without features."""
    if found is None:
        return Markup()
    groups, differences = found.shown, []
    for one in groups:
        span = small_text(f"{signed(one.low)} to {signed(one.high)}")
        differences.append(element("span", signed(one.difference), " ", span))
    sense = {"fits": "better", "too low": "worse", "too high": "worse"}
    columns = (
        Column("group", [one.name for one in groups], ""),
        Column("rows", [format_count(one.rows) for one in groups]),
        Column("predicted", [shown_value(one.predicted) for one in groups]),
        Column("observed", [shown_value(one.observed) for one in groups]),
        Column(f"difference, {100 * found.level:g} % interval", differences),
        Column("p", [shown_p(one.p_value) for one in groups]),
        Column("", [Word(one.verdict, sense[one.verdict]) for one in groups], ""),
    )
    text = (
        "The final map, on the rows it was fitted to. Groups come from the columns, from ranges of "
        "the prediction, and from each two of these crossed. Their intervals hold together: they "
        "are wider than that of one group by itself. "
        f"The largest difference is {shown_value(found.largest)}, by chance alone it would be "
        f"about {shown_value(found.largest_expected)}."
    )
    if found.wrong:
        text += (
            " A map of the score cannot mend groups. FeatureCalibrator learns from the columns: in "
            "Python fit(scores, y, features=...), or calibrant fit with --features."
        )
    return page_section(
        "groups",
        "Where is it wrong?",
        element("p", found.verdict()),
        figure("large", "Observed − predicted, group by group", _group_picture(found)),
        page_table("Where predictions are wrong", columns),
        explanation(text),
        *(explanation(f"{note[:1].upper()}{note[1:]}.") for note in found.notes),
    )


def _group_picture(found: Multicalibration) -> Markup:
    """A line for each group: its name, and the difference with its interval."""
    groups = found.shown
    ends = [end for one in groups for end in (one.low, one.high)]
    axis = linear_axis(min(0.0, *ends), max(0.0, *ends))
    height = GROUP * len(groups)
    place = PlotArea(
        GROUP_SIDE, 0, GROUP_WIDTH - 2 * GROUP_SIDE, height, axis, linear_axis(0.0, 1.0)
    )
    zero = float(place.across(0.0))
    parts = [
        element("path", class_="axis", d=f"M{zero:.1f} 0V{height}"),
        element("path", class_="axis", d=f"M{GROUP_SIDE} {height}h{GROUP_WIDTH - 2 * GROUP_SIDE}"),
    ]
    for tick in axis.ticks:
        parts.append(
            chart_text(float(place.across(tick)), height + 17, axis.tick_label(tick), "middle")
        )
    words = "← predicted too high · predicted too low →"
    parts.append(chart_text(GROUP_WIDTH / 2, height + 37, words, "middle"))
    return picture(
        "dots",
        "Observed minus predicted in the worst groups, with intervals",
        (GROUP_WIDTH, height + GROUP_AXIS),
        element("g", *parts, aria_hidden="true"),
        *(_group_with_interval(one, GROUP * i, place, found.level) for i, one in enumerate(groups)),
    )


def _group_with_interval(one: GroupError, top: float, place: PlotArea, level: float) -> Markup:
    """The name of a group, and its difference with the interval below."""
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
        labelled_points(np.array([at]), np.array([down]), [words], number),
        class_=f"series {series_class(number)}",
    )


# --- What came of a calibration, in two sentences -------------------------------------------------


#: what the page calls the scores without a calibrator
AS_THEY_ARE = "scores as they are"
#: and where they are points, which stand for no probability
ONE_RATE = "points (one rate for all rows)"


def below_headline(
    headline: str, found: tuple[str, str], methods: tuple[Method, ...], *, useless: bool
) -> tuple[str, str]:
    """The verdict where a headline comes before it; of ``useless`` scores only the figures."""
    if not useless:
        return headline, " ".join(found)
    raw, chosen = methods[0], next(m for m in methods if m.chosen)
    if chosen is raw:
        return headline, f"The log loss of the {raw.name} is {short_value(raw.log_loss)}."
    losses = f"log loss {from_to(raw.log_loss, chosen.log_loss)}"
    return headline, f"All the same, {chosen.name} was fitted ({losses})."


def verdict_of(
    methods: tuple[Method, ...],
    *,
    level: float = 0.95,
    where: str = "On rows it had not seen",
    single: bool = True,
    word: Verdict | None = None,
) -> tuple[str, str]:
    """Two sentences on the chosen method against the scores as they are: what to do, and why.

    The first of the methods is the scores as they are. With ``single`` the chosen one stands there
    because nothing else was asked about; else it was preferred to them, and so is to be used.
    ``word`` is what the table of measures says of the log loss; without it the gain decides.
    """
    raw, chosen = methods[0], next(m for m in methods if m.chosen)
    if chosen is raw:
        return _verdict_to_keep(raw, methods[1:], level, where)
    over = "" if raw.name == AS_THEY_ARE else f", against {raw.name}"
    change = _change_in_words(raw.log_loss, chosen.log_loss)
    facts = f"log loss {change}{_gain_in_words(chosen, level)}{over}"
    certain = 0  # 1 if surely better than the scores as they are, −1 if surely worse
    if word is not None:
        certain = _CERTAIN.get(word, 0)
    elif chosen.gain is not None:
        low = chosen.gain if chosen.gain_low is None else chosen.gain_low
        high = chosen.gain if chosen.gain_high is None else chosen.gain_high
        certain = (low > 0) - (high < 0)
    to_do = _LIKELY if certain == 0 and not single else _TO_DO[certain]
    name = describe_method(chosen.name) if to_do.startswith("Calibrate") else chosen.name
    to_do = to_do.format(name, keep=_kept_in_words(raw))
    return to_do, f"{where}, {facts}; {_ranking_in_words(raw, chosen)}."


_CERTAIN = {"better": 1, "worse": -1}
_TO_DO = {
    1: "Calibrate these scores with {} before using them as probabilities.",
    0: "{keep}: {} shows no gain beyond noise.",
    -1: "{keep}: {} is worse.",
}
_LIKELY = "Calibrate these scores with {}, although the gain alone may be noise."


def _kept_in_words(raw: Method) -> str:
    """What to do where nothing is better than the scores without a calibrator."""
    if raw.name == ONE_RATE:
        return "Use one rate for all rows"
    as_they_are = raw.name.startswith(AS_THEY_ARE)
    return "Keep the scores as they are" if as_they_are else f"Use {raw.name}"


def _verdict_to_keep(
    raw: Method, rest: tuple[Method, ...], level: float, where: str
) -> tuple[str, str]:
    """The two sentences where the scores as they are stay, with what the best method had."""
    others = [m for m in rest if m.gain is not None]
    what = "them" if raw.name.startswith(AS_THEY_ARE) else "it"
    first = f"{_kept_in_words(raw)}: no method improves on {what} beyond noise."
    if not others:
        its = "Their" if what == "them" else "Its"
        return first, f"{its} log loss is {short_value(raw.log_loss)}."
    best = max(others, key=lambda m: m.gain if m.gain is not None else -math.inf)
    return first, (
        f"{where}, the best of them, {best.name}, had log loss {short_value(best.log_loss)} "
        f"against {short_value(raw.log_loss)}{_gain_in_words(best, level)}."
    )


def _change_in_words(old: float, new: float) -> str:
    """Which way a log loss went, and from where to where."""
    if short_value(old) == short_value(new):
        return f"stayed at {short_value(new)}"
    return f"{'fell' if new < old else 'rose'} {from_to(old, new)}"


def _gain_in_words(method: Method, level: float) -> str:
    """By how much a method is better or worse, with the interval; nothing if that is not known."""
    if method.gain is None or method.gain_low is None or method.gain_high is None:
        return ""
    if not math.isfinite(method.gain):
        return ", since a probability of 0 or 1 was wrong"
    better = method.gain >= 0
    ends = (method.gain_low, method.gain_high) if better else (-method.gain_high, -method.gain_low)
    return (
        f", {short_value(abs(method.gain))} {'better' if better else 'worse'} "
        f"({100 * level:g} % interval {short_value(ends[0])} to {short_value(ends[1])})"
    )


def _ranking_in_words(raw: Method, chosen: Method) -> str:
    """What became of the AUC."""
    if raw.auc is None or chosen.auc is None:
        return "the ranking cannot be judged"
    old = raw.auc - (raw.auc_change or 0.0)  # that of the scores, not of one rate for all rows
    if abs(old - chosen.auc) < SAME_ORDER:
        return f"the ranking is kept (AUC {chosen.auc:.3f})"
    return f"AUC moved {from_to(old, chosen.auc)}"


# --- How to apply a map elsewhere: lines to copy --------------------------------------------------


#: characters of a query that a page shows; a longer one is for a file
LONGEST = 6_000
#: the query of a map with more knots is longer for sure
MOST_KNOTS = 300


#: where a calibrator goes that is in no file yet
NEW_FILE = "calibrator.json"


def recipes_for(fitted: Fitted, score: str, saved_as: str | None = None) -> tuple[Recipe, ...]:
    """Python, the command line and SQL, as far as the map allows.

    ``score`` is the name of the column of scores and ``saved_as`` the calibrator's file, if it is
    in one. Both and the labels come from data: they are quoted as each language wants it.
    """
    if fitted.map == Identity():
        return (Recipe("Nothing to do", "", "The scores are the probabilities: use them so."),)
    file = NEW_FILE if saved_as is None else saved_as
    load = f"import calibrant as cal\n\ncalibrator = cal.load({file!r})\n"
    saved = f"The calibrator is the file {file}."
    if saved_as is None:
        saved = (
            f"The calibrator is in no file yet. In Python cal.save(report.fitted, {file!r}) writes "
            f"one; on the command line, calibrant report ... --save {file}"
        )
    if isinstance(fitted.map, VectorMap):
        columns = f"# one column for each of {list(fitted.classes)!r}"
        python = f"{load}p = calibrator.predict_proba(scores)  {columns}"
        apply = f"calibrant apply {shell_quoted(file)} NEW.csv -o OUT.csv"
        adds = (
            "Adds a column probability_CLASS for each class. Name the columns of scores by --score "
            "CLASS=COLUMN if the file does not know them."
        )
        export = f"calibrant export {shell_quoted(file)} --to sql --table TABLE"
        writes = "This command writes the query; --dialect names another database."
        return (
            Recipe("Python", python, saved),
            Recipe("Command line", apply, adds),
            Recipe("SQL", export, writes),
        )
    what = f"the probability of {fitted.pos_label!r}"
    python = f"{load}p = calibrator.calibrate(scores)  # {what}"
    shell = f"calibrant apply {shell_quoted(file)} NEW.csv -o OUT.csv --score {shell_quoted(score)}"
    return (
        Recipe("Python", python, saved),
        Recipe("Command line", shell, "Reads and writes CSV, JSON lines and Parquet of any size."),
        _sql_recipe(fitted, score, file, what),
    )


def _sql_recipe(fitted: Fitted, score: str, file: str, what: str) -> Recipe:
    """The query where it is short, or why there is none, and the command that writes it."""
    writes = f"calibrant export {shell_quoted(file)} --to sql --score {shell_quoted(score)}"
    columns = fitted.map.n_segment_columns
    for i in range(columns):
        writes += f" --segment {'SEGMENT' if columns == 1 else f'SEGMENT_{i + 1}'}"
    writes += " --dialect DIALECT"
    note = (
        f"Gives {what}, the same as Python to about twelve digits, and NULL where there is no "
        "finite score."
    )
    given = fitted.map
    short = given.segments is None and len(np.unique(given.knots(*given.span))) <= MOST_KNOTS
    if short:
        try:
            text = to_sql(fitted, column=score, form="expression")
        except InputError as refused:
            return Recipe("SQL", "", str(refused))
        if len(text) <= LONGEST:
            inner = text.replace("\n", "\n  ")
            query = f"SELECT *,\n  {inner} AS probability\nFROM scores"
            table = "Write the name of your table in place of scores."
            return Recipe("SQL", query, f"For DuckDB. {note} {table} For others: {writes}")
    others = "Put duckdb, postgres, spark, bigquery or another for DIALECT."
    return Recipe("SQL", writes, f"This command writes it. {note} {others}")
