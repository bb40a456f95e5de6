"""Maps, decisions, groups, learning curves, monitors and mean ranks, drawn."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.compare.summary import Comparison
from calibrant.compare.tests import CriticalDifference, stacked_levels
from calibrant.diagrams.curve import MapCurve, map_curve
from calibrant.diagrams.decision import DecisionCurve
from calibrant.diagrams.draw.figures import (
    BLACK,
    BLUE,
    BOTTOM,
    CLOSE,
    DIGITS,
    GREEN,
    GREY,
    LARGE_PANEL,
    LEFT,
    ORANGE,
    PANEL,
    ROW,
    SMALL,
    TINY,
    VERMILION,
    WIDTH,
    axes_at,
    draw_axes,
    label_axes,
    legend_below,
    line_style,
    new_figure,
    one_panel,
    panel_with_legend,
    plain_ticks,
    plain_words,
    refuse_other,
    refuse_other_axes,
    round_ticks,
    set_scale,
    set_title,
    titled_figure,
)
from calibrant.diagrams.learning import LearningCurve, in_short
from calibrant.diagrams.monitor_curve import MonitorCurve, monitor_curve
from calibrant.errors import InputError, import_extra
from calibrant.metrics.groups import Multicalibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.monitor.master_scale import GradeChecks
    from calibrant.monitor.monitor import Monitor


#: inches: the length of the axis, more for each rank beyond eight, a letter, the rows of names
SCALE, STRETCH, LETTER, RANKS_LINE = 3.0, 0.2, 0.064, 0.165
#: inches: the bar of the critical difference, the axis, the bars of groups and what is below
MARK, AXIS, FIRST, BAR, RANKS_BELOW = 0.16, 0.5, 0.12, 0.085, 0.38
#: how far a group's bar reaches beyond its ranks; how far from the axis a name's line ends, the
#: gap between them, and what is left free at the edge
REACH, RANKS_SIDE, RANKS_GAP, EDGE = 0.035, 0.12, 0.04, 0.06
LONGEST = 30


class _RankLayout:
    """Where names, axis and bars of mean ranks stand, in inches from the upper left."""

    def __init__(self, critical: CriticalDifference) -> None:
        k = len(critical.names)
        order = sorted(range(k), key=critical.ranks.__getitem__)
        half = (k + 1) // 2
        self.labels = [
            (plain_words(name, LONGEST), f"{rank:.2f}")
            for name, rank in zip(critical.names, critical.ranks, strict=True)
        ]
        #: the best half on the left from the top, the others on the right from the bottom
        self.left, self.right = order[:half], order[half:][::-1]
        self.scale = SCALE + STRETCH * max(0, k - 8)
        self.step = self.scale / (k - 1)
        self.begin = self._room(self.left)
        self.end = self.begin + self.scale
        self.width = self.end + self._room(self.right)
        self.spans = [(self.x(low), self.x(high)) for low, high in critical.spans()]
        self.levels = stacked_levels(self.spans, gap=3 * REACH)
        bars = max(self.levels, default=-1) + 1
        self.names = AXIS + FIRST + BAR * bars + 0.1
        self.height = self.names + RANKS_LINE * half + RANKS_BELOW

    def _room(self, columns: list[int]) -> float:
        """Inches for the widest of some names, as they are drawn."""
        paper = new_figure(1.0, 1.0)
        texts = (paper.text(0.0, 0.0, "  ".join(self.labels[c]), fontsize=TINY) for c in columns)
        return (
            RANKS_SIDE
            + RANKS_GAP
            + EDGE
            + max(t.get_window_extent().width for t in texts) / paper.dpi
        )

    def x(self, rank: float) -> float:
        return self.begin + self.step * (rank - 1.0)


def critical_difference_diagram(
    critical: CriticalDifference | Comparison, *, ax: Any = None, title: str | None = None
) -> Figure:
    """Mean ranks along a line, the best on the left; a bar joins methods that do not differ.

    Parameters
    ----------
    critical : CriticalDifference or Comparison
        From `calibrant.compare.nemenyi`, or from `calibrant.compare.compare`; the latter joins all
        methods where F_F does not reject that they are alike.
    ax : matplotlib Axes, optional
        Draw into these axes; give them room, for names keep their size.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        Save it with ``savefig``; a notebook shows it. With ``ax``, the figure of those axes.

    Notes
    -----
    The bar at the top is as long as the critical difference of Nemenyi's test. A method that no bar
    touches differs from all others. Bars show what the test could not tell apart, which is no proof
    of being alike. The figure grows with the names and the number of methods; names beyond 30
    letters are cut. Needs matplotlib: ``pip install 'calibrant[cli]'``. O(k²).

    References
    ----------
    .. [1] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006.

    Examples
    --------
    >>> import calibrant as cal
    >>> loss = {"a": [0.1, 0.2, 0.1, 0.3] * 3, "b": [0.3, 0.1, 0.2, 0.4] * 3, "c": [0.5] * 12}
    >>> figure = critical_difference_diagram(cal.compare.nemenyi(loss, larger_is_better=False))
    >>> [text.get_text() for text in figure.axes[0].texts][:3]
    ['critical difference 0.96', '1', '2']
    """
    refuse_other_axes(ax)
    if isinstance(critical, Comparison):
        critical = dataclasses.replace(critical.critical, groups=critical.groups)
    if not isinstance(critical, CriticalDifference):
        raise InputError(
            "a CriticalDifference or a Comparison must come, but "
            f"{type(critical).__name__} came. Make one with calibrant.compare.nemenyi."
        )
    layout = _RankLayout(critical)
    place = (0.0, 0.0, layout.width, layout.height)
    room: dict[str, Any] = {"top": 0.0, "letters": int(layout.width / LETTER)}
    with one_panel("ranks", place, ax, title, width=layout.width, **room) as (figure, panel):
        panel.set_xlim(0.0, layout.width)
        panel.set_ylim(layout.height, 0.0)
        panel.set_axis_off()
        _draw_rank_axis(panel, critical, layout)
        _draw_methods(panel, critical, layout)
        style: dict[str, Any] = {"lw": 3, "solid_capstyle": "butt", "zorder": 3, "label": "_group"}
        for (low, high), level in zip(layout.spans, layout.levels, strict=True):
            y = AXIS + FIRST + BAR * level
            panel.plot([low - REACH, high + REACH], [y, y], color=BLUE, **style)
    return figure


def _draw_rank_axis(ax: Axes, critical: CriticalDifference, layout: _RankLayout) -> None:
    """The axis of ranks, and the critical difference above it."""
    k = len(critical.names)
    length = layout.step * critical.critical_difference
    ends = [layout.begin, layout.begin + length]
    style: dict[str, Any] = {"color": BLUE, "lw": 1.2, "marker": "|", "ms": 5, "clip_on": False}
    words = f"critical difference {critical.critical_difference:.2f}"
    if length <= layout.scale:
        ax.plot(ends, [MARK, MARK], label="_difference", **style)
        ax.text(ends[1] + 0.06, MARK, words, fontsize=TINY, va="center", color=BLUE)
    else:  # longer than the axis: nothing can differ
        ax.text(ends[0], MARK, words, fontsize=TINY, va="center", color=BLUE)
    ax.plot([layout.begin, layout.end], [AXIS, AXIS], color=BLACK, lw=0.9, label="_axis")
    every = 1 + (k - 1) // 16
    for rank in range(1, k + 1):
        x = layout.x(rank)
        ax.plot([x, x], [AXIS - 0.05, AXIS], color=BLACK, lw=0.9, label="_tick")
        if (rank - 1) % every == 0:
            ax.text(x, AXIS - 0.07, str(rank), fontsize=TINY, ha="center", va="bottom")


def _draw_methods(ax: Axes, critical: CriticalDifference, layout: _RankLayout) -> None:
    """A line from each mean rank down and out to its name, and what it all means below."""
    sides = (
        (layout.left, layout.begin - RANKS_SIDE, "right", "{name}  {rank}"),
        (layout.right, layout.end + RANKS_SIDE, "left", "{rank}  {name}"),
    )
    for columns, out, side, words in sides:
        for row, column in enumerate(columns):
            x, y = layout.x(critical.ranks[column]), layout.names + RANKS_LINE * row
            ax.plot([x, x, out], [AXIS, y, y], color=GREY, lw=0.7, zorder=1, label="_method")
            name, rank = layout.labels[column]
            at = out - RANKS_GAP if side == "right" else out + RANKS_GAP
            ax.text(at, y, words.format(name=name, rank=rank), fontsize=TINY, ha=side, va="center")
    better = "larger" if critical.larger_is_better else "smaller"
    words = (
        f"mean rank over {critical.datasets} datasets, 1 is the best ({better} is better)\n"
        f"joined: no difference shown (Nemenyi, {100 * critical.level:g} %)"
    )
    middle = (layout.begin + layout.end) / 2.0
    ax.text(
        middle, layout.height - 0.04, words, fontsize=TINY, ha="center", va="bottom", color=GREY
    )


# --- A monitor over time, drawn: what came beside what was expected, and the evidence below it ----


#: inches
RATES, EVIDENCE, MONITOR_GAP = 1.7, 1.2, 0.16


def monitor_diagram(monitor: Monitor, *, title: str | None = None) -> Figure:
    """What came in each window of time, beside what was expected; and the evidence that adds up.

    The band is where 95 of 100 windows lie if the probabilities are right, one window at a time: it
    is left now and then. The evidence below it is what the alarm is about.

    Parameters
    ----------
    monitor : Monitor
        With at least one batch.
    title : str, optional

    Returns
    -------
    matplotlib Figure

    Notes
    -----
    Windows are batches, and older ones joined. Each has Σwy/Σw, Σwp/Σw, and the deviation
    √Σwp(1 − p)/Σw of rows of one weight. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    Examples
    --------
    >>> from calibrant.monitor import Monitor
    >>> monitor = Monitor()
    >>> _ = monitor.update([0, 1, 0, 1], [0.2, 0.6, 0.4, 0.7])
    >>> [axes.get_ylabel() for axes in monitor_diagram(monitor).axes]
    ['evidence', 'share of positives']
    """
    curve = monitor_curve(monitor)
    entries = 5 if curve.alarm is None else 7
    below = BOTTOM + ROW * -(-entries // 2)
    figure, title = titled_figure(title, WIDTH, RATES, MONITOR_GAP, EVIDENCE, below)
    evidence = axes_at(figure, (LEFT, below, PANEL, EVIDENCE), "evidence")
    rates = axes_at(figure, (LEFT, below + EVIDENCE + MONITOR_GAP, PANEL, RATES), "rates")
    _draw_rates(rates, curve)
    _draw_evidence(evidence, curve)
    rates.set_xlim(evidence.get_xlim())
    rates.tick_params(labelbottom=False)
    figure.align_ylabels([rates, evidence])
    named = {
        label: handle
        for axes in (rates, evidence)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    legend_below(figure, list(named.values()), 2)
    set_title(rates, title)
    return figure


def _draw_rates(ax: Axes, curve: MonitorCurve) -> None:
    """What came in each window, beside what was expected with its band."""
    low, high = (np.append(end, end[-1]) for end in (curve.low, curve.high))
    ax.fill_between(
        curve.edges,
        low,
        high,
        step="post",
        color=GREY,
        alpha=0.35,
        lw=0,
        label="95 % of windows",
    )
    ax.stairs(curve.expected, curve.edges, baseline=None, color=GREY, lw=1.1, label="expected")
    ax.plot(curve.middle, curve.came, "o", color=BLUE, ms=2.6, zorder=3, label="observed")
    label_axes(ax, "", "share of positives")
    ax.set_ylim(max(0.0, ax.get_ylim()[0]), min(1.0, ax.get_ylim()[1]))
    ticker = import_extra("matplotlib.ticker", extra="cli")
    ax.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, symbol=" %"))
    _mark_alarm(ax, curve)
    plain_ticks(ax)


def _draw_evidence(ax: Axes, curve: MonitorCurve) -> None:
    """The evidence after each window, and the line at which the alarm is raised."""
    value, enough = curve.drawn_evidence, curve.enough
    ends = [curve.edges[0], *curve.last]
    ax.plot(ends, [1.0, *value], color=BLUE, lw=1.1, label="evidence of a change")
    name = f"alarm at evidence {enough:g}"
    ax.axhline(enough, color=VERMILION, lw=1.0, ls="--", label=name)
    ax.set_yscale("log")
    ax.set_ylim(min(*value, 0.1) / 2.0, max(*value, enough) * 4.0)
    ax.set_xlim(curve.edges[0], curve.edges[-1])
    ax.xaxis.set_major_locator(
        import_extra("matplotlib.ticker", extra="cli").MaxNLocator(nbins=8, integer=True)
    )
    time = f"({curve.whole_time})" if curve.whole_time else ""
    label_axes(ax, f"batch {time}".strip(), "evidence")
    _mark_alarm(ax, curve)
    plain_ticks(ax)


def _mark_alarm(ax: Any, curve: MonitorCurve) -> None:
    """A line where the alarm came, and one where the change probably began."""
    if curve.alarm is None or curve.change is None:
        return
    ax.axvline(curve.alarm, color=VERMILION, lw=1.0, label="alarm raised")
    ax.axvline(curve.change - 0.5, color=VERMILION, lw=0.9, ls=":", label="probable change")


# --- Learning curves, drawn: the mean over draws with its band, against the number of rows --------


#: inches
LEARNING_HEIGHT = 1.9


def learning_diagram(curve: LearningCurve, *, ax: Any = None, title: str | None = None) -> Figure:
    """A measure against the number of calibration rows: how much calibration data is enough?

    The shaded bands are those of the means; the dashed line is the model before calibration, level
    but for the change of the test rows. The legend gives the values at the largest size.

    Parameters
    ----------
    curve : LearningCurve
        From `learning_curve`.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    A size at which a mean is infinite has no point. Needs matplotlib:
    ``pip install 'calibrant[cli]'``.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.diagrams.learning import learning_curve
    >>> scores, y = [0.2, 0.4, 0.6, 0.8] * 25, [0, 1, 0, 1] * 25
    >>> curve = learning_curve(cal.Platt(), scores, y, sizes=[16, 32])
    >>> learning_diagram(curve).axes[0].get_ylabel()
    'Brier score (smaller is better)'
    """
    refuse_other(curve, LearningCurve, "learning_curve", ax)
    before, *names = curve.names
    called = [f"{before}, {curve.reading}" if curve.linked else before, *names]
    ends = zip(map(plain_words, called), curve.mean, strict=True)
    labels = [f"{name}: {in_short(mean[-1])}" for name, mean in ends]  # at the largest size
    band = f"{100 * curve.level:g} % band of the mean"
    # infinite values are gaps
    mean, low, high = (
        np.where(np.isfinite(value), value, np.nan) for value in (curve.mean, curve.low, curve.high)
    )
    room: dict[str, Any] = {"entries": len(labels) + 1, "longest": max(map(len, [*labels, band]))}
    if (high < 0.01).all():
        room["digits"] = DIGITS
    with panel_with_legend("learning", LEARNING_HEIGHT, ax, title, **room) as (figure, panel):
        for number, (label, middle, *span) in enumerate(zip(labels, mean, low, high, strict=True)):
            # the first is the scores as they came
            color, marker, dashes = line_style(number - 1) if number else (GREY, "", "--")
            style: dict[str, Any] = {"marker": marker, "ms": 3.5, "lw": 1.1, "ls": dashes}
            panel.fill_between(curve.sizes, *span, color=color, alpha=0.2, lw=0, zorder=2)
            if len(curve.sizes) == 1:  # a line of one point would not be seen
                style["marker"] = marker or "_"
                panel.vlines(curve.sizes, *span, color=color, alpha=0.4, lw=3, zorder=2)
            panel.plot(curve.sizes, middle, color=color, zorder=3, label=label, **style)
        panel.fill_between([], [], [], color=GREY, alpha=0.35, lw=0, label=band)
        panel.set_xscale("log", base=2)
        ticker = import_extra("matplotlib.ticker", extra="cli")
        panel.xaxis.set_major_locator(ticker.LogLocator(base=2, numticks=7))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_locator(ticker.LogLocator(base=2, numticks=99))
        panel.xaxis.set_minor_formatter(ticker.NullFormatter())
        round_ticks(panel.yaxis, 7, (1, 2, 2.5, 5, 10))
        label_axes(panel, "calibration rows", f"{curve.measure} ({curve.better} is better)")
        plain_ticks(panel)
    return figure


# --- Groups of rows where predictions are wrong, drawn: each difference with its interval ---------


#: inches: a group, what is left free at either side, and a second line under the axis
EACH, GROUP_SIDE, GROUP_LINE = 0.3, 0.15, 0.14
#: letters of a name that fit a column
LETTERS = 52


def group_diagram(found: Multicalibration, *, ax: Any = None, title: str | None = None) -> Figure:
    """Where predictions are wrong: observed − predicted in the worst groups, with intervals.

    Right of the line predictions are too low, left of it too high. Groups that are off beyond
    chance are blue, others grey.

    Parameters
    ----------
    found : Multicalibration
        From `calibrant.metrics.multicalibration`, or ``evaluate(..., features=frame).groups``.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    The groups are those of the printed table, in its order. The intervals hold together at the
    level of the result. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import multicalibration
    >>> rng = np.random.default_rng(0)
    >>> city, p = rng.choice(["Bonn", "Rome"], (500, 1)), rng.random(500)
    >>> found = multicalibration(rng.random(500) < p, p, features=city)
    >>> group_diagram(found).axes[0].get_xlabel()
    'observed − predicted (95 % intervals)\\nleft of 0: predicted too high, right: too low'
    """
    refuse_other(found, Multicalibration, "metrics.multicalibration", ax)
    groups = found.shown
    low, high = min(0.0, *(g.low for g in groups)), max(0.0, *(g.high for g in groups))
    room = 0.04 * ((high - low) or 1.0)
    size = WIDTH - 2 * GROUP_SIDE, EACH * len(groups) + 0.05
    place = (GROUP_SIDE, BOTTOM + GROUP_LINE, *size)
    with one_panel("groups", place, ax, title) as (figure, panel):
        name: dict[str, Any] = {"fontsize": TINY, "va": "bottom", "ha": "left", "zorder": 4}
        for y, one in enumerate(groups):
            color = BLUE if one.wrong else GREY
            zero: dict[str, Any] = {"color": BLACK, "lw": 0.8, "zorder": 1, "label": "_zero"}
            panel.plot([0.0, 0.0], [y - 0.24, y + 0.24], **zero)
            panel.plot([one.low, one.high], [y, y], color=color, lw=1.4, zorder=2)
            panel.plot([one.difference], [y], color=color, marker="o", ms=4, ls="", zorder=3)
            panel.text(low - room, y - 0.28, plain_words(one.name, LETTERS), **name)
        panel.set_xlim(low - room, high + room)
        panel.set_ylim(len(groups) - 0.6, -0.95)
        panel.set_yticks([])
        round_ticks(panel.xaxis, 6)
        words = f"observed − predicted ({100 * found.level:g} % intervals)"
        panel.set_xlabel(f"{words}\nleft of 0: predicted too high, right: too low", fontsize=SMALL)
        plain_ticks(panel)
        panel.spines["left"].set_visible(False)
    return figure


# --- Grades of risk, drawn: the rate of each with its intervals, beside what was predicted --------


#: colour and marker of each light
LIGHTS = {"green": (GREEN, "o"), "amber": (ORANGE, "D"), "red": (VERMILION, "s")}
#: letters of a grade's name that fit beside the axis
SHORT = 8


def grade_diagram(checks: GradeChecks, *, ax: Any = None, title: str | None = None) -> Figure:
    """The rate of each grade of risk beside what was predicted, with intervals and its light.

    A black stroke is the mean prediction; where it lies left of the interval, more positives came
    than was predicted.

    Parameters
    ----------
    checks : GradeChecks
        From `MasterScale.check`.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    Thick lines are Jeffreys's intervals, thin ones Clopper and Pearson's. Rates of 0, and ends of
    intervals there, are drawn at the left edge. Grades without rows are left out. Needs
    matplotlib: ``pip install 'calibrant[cli]'``.

    Examples
    --------
    >>> from calibrant.monitor import MasterScale
    >>> scale = MasterScale.of(boundaries=[0.1])
    >>> checks = scale.check([0] * 95 + [1] * 5 + [1, 0] * 50, [0.05] * 100 + [0.4] * 100)
    >>> grade_diagram(checks).axes[0].get_xlabel()
    'rate of positives (90 % intervals; black: predicted)'
    """
    from calibrant.monitor.master_scale import GradeChecks

    refuse_other(checks, GradeChecks, "MasterScale.check", ax)
    rows = [row for row in checks.rows if row.rows]
    seen = [(row.predicted, row.rate, *row.jeffreys_interval, *row.clopper_pearson) for row in rows]
    low = min((value for values in seen for value in values if value > 0.0), default=0.01) / 1.5
    height = EACH * len(rows) + 0.05
    with panel_with_legend("grades", height, ax, title, entries=3, longest=5) as (figure, panel):
        for y, row in enumerate(rows):
            color, marker = LIGHTS[row.light]
            for ends, width in ((row.clopper_pearson, 1.0), (row.jeffreys_interval, 3.5)):
                panel.plot(np.maximum(ends, low), [y, y], color=color, lw=width, zorder=2)
            dot: dict[str, Any] = {"marker": marker, "ms": 5, "mec": "white", "mew": 0.6}
            at = [max(row.rate, low)]
            panel.plot(at, [y], color=color, ls="", zorder=3, clip_on=False, **dot)
            stroke = max(row.predicted, low)
            panel.plot([stroke, stroke], [y - 0.32, y + 0.32], color=BLACK, lw=1.4, zorder=4)
        for name, (color, marker) in LIGHTS.items():
            panel.plot([], [], color=color, marker=marker, ms=4, lw=2.0, label=name)
        panel.set_xscale("log")
        panel.set_xlim(low, 1.0)
        panel.set_ylim(len(rows) - 0.4, -0.6)
        panel.set_yticks(range(len(rows)), [plain_words(row.name, SHORT) for row in rows])
        panel.xaxis.set_major_formatter("{x:g}")
        words = f"rate of positives ({100 * checks.confidence:g} % intervals; black: predicted)"
        label_axes(panel, words, "grade")
        plain_ticks(panel)
    return figure


# --- Decision curves, drawn: the net benefit of each model between treating all and none ----------


#: inches
DECISION_HEIGHT = 2.1
#: the part of the axis below 0, where no model should be
DECISION_BELOW = 0.25


def decision_diagram(curve: DecisionCurve, *, ax: Any = None, title: str | None = None) -> Figure:
    """Net benefit against the threshold: where is acting on a model of use?

    A model is of use where its line is above both others: treating all (grey) and none (black).

    Parameters
    ----------
    curve : DecisionCurve
        From `decision_curve`.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    The axis ends a little below 0: how bad acting on all is at thresholds where nobody would is
    not shown. Needs matplotlib: ``pip install 'calibrant[cli]'``.

    References
    ----------
    .. [1] A. Vickers, E. Elkin, "Decision curve analysis: a novel method for evaluating prediction
       models", 2006, doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> from calibrant.diagrams.decision import decision_curve
    >>> curve = decision_curve([0, 0, 1, 1] * 25, [0.2, 0.4, 0.6, 0.8] * 25)
    >>> decision_diagram(curve).axes[0].get_xlabel()
    'threshold'
    """
    refuse_other(curve, DecisionCurve, "decision_curve", ax)
    names, x = list(map(plain_words, curve.names)), curve.thresholds
    room: dict[str, Any] = {"longest": max(map(len, names))}
    room["entries"] = len(names) + 2 + (curve.level is not None)
    style: dict[str, Any] = {"marker": "o" if len(x) == 1 else ""}  # a line would not be seen
    with panel_with_legend("decision", DECISION_HEIGHT, ax, title, **room) as (figure, panel):
        for number, name in enumerate(names):
            color, _, dashes = line_style(number)
            if curve.lower is not None and curve.upper is not None:
                ends = curve.lower[number], curve.upper[number]
                panel.fill_between(x, *ends, color=color, alpha=0.18, lw=0, zorder=2)
            own: dict[str, Any] = {"color": color, "ls": dashes, "lw": 1.3, "ms": 3.5, **style}
            panel.plot(x, curve.net_benefit[number], zorder=4, label=name, **own)
        style |= {"zorder": 3, "ms": 2.5}
        panel.plot(x, curve.treat_all, color=GREY, lw=1.0, ls="--", label="treat all", **style)
        panel.plot(x, 0.0 * x, color=BLACK, lw=0.8, label="treat none", **style)
        if curve.level is not None:
            label = f"{100 * curve.level:g} % band, at each threshold"
            panel.fill_between([], [], [], color=GREY, alpha=0.35, lw=0, label=label)
        seen = [curve.net_benefit, curve.treat_all, *([] if curve.upper is None else [curve.upper])]
        top = max(1.05 * max(float(part.max()) for part in seen), 1e-9)
        panel.set_ylim(-DECISION_BELOW * top, top)
        round_ticks(panel.yaxis, 6)
        label_axes(panel, "threshold", "net benefit (larger is better)")
        plain_ticks(panel)
    return figure


# --- Fitted maps, drawn: which score becomes which probability ------------------------------------


#: more knots would only darken the line that they stand on
MOST_KNOTS = 100
MOST_DOTS = 40


def map_diagram(
    fitted: Any,
    *,
    lo: float | None = None,
    hi: float | None = None,
    n: int = 512,
    axes: str = "probability",
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """The fitted map: which score becomes which probability.

    Steps are drawn as jumps, knots as ticks along the bottom (a dot where the map bends there), and
    the band of an `Interval` map shaded.

    Parameters
    ----------
    fitted, lo, hi, n, axes
        As in `map_curve`. On ``"logit"`` axes a straight line of slope one half is a temperature
        of two; the axis of a map of margins stays as it is.
    ax : matplotlib Axes, optional
        Draw into these axes.
    title : str, optional

    Returns
    -------
    matplotlib Figure
        With ``ax``, the figure of those axes.

    Notes
    -----
    Needs matplotlib: ``pip install 'calibrant[cli]'``.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> map_diagram(Piecewise.step([0.5], [0.1, 0.8])).axes[0].get_xlabel()
    'score'
    """
    refuse_other_axes(ax)
    line = map_curve(fitted, lo=lo, hi=hi, n=n, axes=axes)
    with one_panel("map", (LEFT, BOTTOM, PANEL, PANEL), ax, title) as (figure, panel):
        draw_map(panel, line)
    return figure


def draw_map(ax: Axes, line: MapCurve) -> None:
    """A map's line, band and knots."""
    frame, square = line.frame, line.domain == "probability"
    inside = frame.inside
    x = inside(line.x) if square else line.x
    if square:
        ends = [frame.low, frame.high]
        ax.plot(ends, ends, color=GREY, lw=0.8, ls=":", zorder=1, label="no change")
    if line.lower is not None and line.upper is not None:
        name = "band" if line.level is None else f"{100 * line.level:g} % band"
        style: dict[str, Any] = {"color": GREEN, "alpha": 0.25, "lw": 0, "label": name}
        ax.fill_between(x, inside(line.lower), inside(line.upper), **style)
    ax.plot(x, inside(line.p), color=GREEN, lw=1.2, zorder=3, label="fitted map")
    if square and frame.is_logit:
        draw_axes(ax, frame, LARGE_PANEL)
    else:
        if frame.is_logit:
            set_scale(ax, frame, ("y",), LARGE_PANEL)
        room = LARGE_PANEL.room * (line.x[-1] - line.x[0])
        ax.set_xlim(line.x[0] - room, line.x[-1] + room)
        ax.set_ylim(*frame.ends(LARGE_PANEL.room))
        plain_ticks(ax)
    if 0 < len(line.knots) <= MOST_KNOTS:
        bottom = [frame.low] * len(line.knots)
        ax.plot(line.knots, bottom, "|", color=GREY, ms=5, mew=0.8, label="knots")
    if 0 < len(line.knots) <= MOST_DOTS:
        corners: dict[str, Any] = {"color": GREEN, "ls": "", "marker": "o", "ms": 2.6}
        at, p = line.corners
        ax.plot(at, inside(p), label="_corners", zorder=3.5, **corners)
    if line.lower is not None:
        ax.legend(fontsize=TINY, frameon=False, **CLOSE)
    label_axes(ax, "score", "calibrated probability")
