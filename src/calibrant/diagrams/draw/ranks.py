"""Mean ranks of methods over datasets, drawn: the critical-difference diagram."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from calibrant.compare import Comparison, CriticalDifference
from calibrant.compare.nemenyi_test import stacked_levels
from calibrant.diagrams.draw.figures import (
    BLACK,
    BLUE,
    GREY,
    TINY,
    new_figure,
    one_panel,
    plain_words,
    refuse_other_axes,
)
from calibrant.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: inches: the length of the axis, more for each rank beyond eight, a letter, the rows of names
SCALE, STRETCH, LETTER, LINE = 3.0, 0.2, 0.064, 0.165
#: inches: the bar of the critical difference, the axis, the bars of groups and what is below
MARK, AXIS, FIRST, BAR, BELOW = 0.16, 0.5, 0.12, 0.085, 0.38
#: how far a group's bar reaches beyond its ranks; how far from the axis a name's line ends, the
#: gap between them, and what is left free at the edge
REACH, SIDE, GAP, EDGE = 0.035, 0.12, 0.04, 0.06
LONGEST = 30


class _Sheet:
    """Where things stand, in inches from the upper left; x grows with the rank."""

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
        self.height = self.names + LINE * half + BELOW

    def _room(self, columns: list[int]) -> float:
        """Inches for the widest of some names, as they are drawn."""
        paper = new_figure(1.0, 1.0)
        texts = (paper.text(0.0, 0.0, "  ".join(self.labels[c]), fontsize=TINY) for c in columns)
        return SIDE + GAP + EDGE + max(t.get_window_extent().width for t in texts) / paper.dpi

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
    sheet = _Sheet(critical)
    return one_panel(
        "ranks",
        (0.0, 0.0, sheet.width, sheet.height),
        lambda axes: _panel(axes, critical, sheet),
        ax,
        title,
        width=sheet.width,
        top=0.0,
        letters=int(sheet.width / LETTER),
    )


def _panel(ax: Axes, critical: CriticalDifference, sheet: _Sheet) -> None:
    ax.set_xlim(0.0, sheet.width)
    ax.set_ylim(sheet.height, 0.0)
    ax.set_axis_off()
    _scale(ax, critical, sheet)
    _methods(ax, critical, sheet)
    for (low, high), level in zip(sheet.spans, sheet.levels, strict=True):
        y = AXIS + FIRST + BAR * level
        ends = [low - REACH, high + REACH]
        ax.plot(ends, [y, y], color=BLUE, lw=3, solid_capstyle="butt", zorder=3, label="_group")


def _scale(ax: Axes, critical: CriticalDifference, sheet: _Sheet) -> None:
    """The axis of ranks, and the critical difference above it."""
    k = len(critical.names)
    length = sheet.step * critical.critical_difference
    ends = [sheet.begin, sheet.begin + length]
    style: dict[str, Any] = {"color": BLUE, "lw": 1.2, "marker": "|", "ms": 5, "clip_on": False}
    words = f"critical difference {critical.critical_difference:.2f}"
    if length <= sheet.scale:
        ax.plot(ends, [MARK, MARK], label="_difference", **style)
        ax.text(ends[1] + 0.06, MARK, words, fontsize=TINY, va="center", color=BLUE)
    else:  # longer than the axis: nothing can differ
        ax.text(ends[0], MARK, words, fontsize=TINY, va="center", color=BLUE)
    ax.plot([sheet.begin, sheet.end], [AXIS, AXIS], color=BLACK, lw=0.9, label="_axis")
    every = 1 + (k - 1) // 16
    for rank in range(1, k + 1):
        x = sheet.x(rank)
        ax.plot([x, x], [AXIS - 0.05, AXIS], color=BLACK, lw=0.9, label="_tick")
        if (rank - 1) % every == 0:
            ax.text(x, AXIS - 0.07, str(rank), fontsize=TINY, ha="center", va="bottom")


def _methods(ax: Axes, critical: CriticalDifference, sheet: _Sheet) -> None:
    """A line from each mean rank down and out to its name, and what it all means below."""
    sides = (
        (sheet.left, sheet.begin - SIDE, "right", "{name}  {rank}"),
        (sheet.right, sheet.end + SIDE, "left", "{rank}  {name}"),
    )
    for columns, out, side, words in sides:
        for row, column in enumerate(columns):
            x, y = sheet.x(critical.ranks[column]), sheet.names + LINE * row
            ax.plot([x, x, out], [AXIS, y, y], color=GREY, lw=0.7, zorder=1, label="_method")
            name, rank = sheet.labels[column]
            at = out - GAP if side == "right" else out + GAP
            ax.text(at, y, words.format(name=name, rank=rank), fontsize=TINY, ha=side, va="center")
    better = "larger" if critical.larger_is_better else "smaller"
    words = (
        f"mean rank over {critical.datasets} datasets, 1 is the best ({better} is better)\n"
        f"joined: no difference shown (Nemenyi, {100 * critical.level:g} %)"
    )
    middle = (sheet.begin + sheet.end) / 2.0
    ax.text(middle, sheet.height - 0.04, words, fontsize=TINY, ha="center", va="bottom", color=GREY)
