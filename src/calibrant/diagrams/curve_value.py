"""The frozen value of a reliability curve: all that a diagram or a page needs to show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen
from calibrant.result_tables import PlainFields, Side, aligned

#: what the groups of a curve are called
GROUPS = {
    "binned": "bin{} of equal {}",
    "isotonic": "isotonic block{}",
    "smooth": "point{} of a smooth line",
}

#: a printed table shows at most so many groups, unless they are bins
MOST_LINES = 20


@dataclass(frozen=True, eq=False, repr=False)
class Curve(PlainFields, Frozen):
    """A reliability curve: mean prediction against fraction of positives, group by group.

    The groups are bins, the blocks of an isotonic curve, or the neighbourhoods of a smooth one.

    Attributes
    ----------
    edges : array of shape (m, 2)
        Where each non-empty bin begins and ends: [begin, end), the last one closed. The smallest
        and the largest prediction of a block.
    mean_p, fraction : arrays of shape (m,)
        The weighted mean prediction and the weighted fraction of positives of each group.
    weight, effective : arrays of shape (m,)
        Σw of each group, and its effective sample size (Σw)²/Σw², the number of rows if all weigh
        the same. (Neighbourhoods overlap: their weight is that nearest to them, their effective
        size that of all rows under the kernel.)
    lower, upper : arrays of shape (l,), or None
        The band at ``x``; None without one.
    level : float or None
        How often the band is meant to hold what it is for.
    bands : {"simultaneous", "pointwise"} or None
        Whether it is meant to do so everywhere at once, or at each place.
    band : {"exact", "bootstrap", "consistency", "confidence"} or None
    binning : {"width", "mass"}
    total : float
        The weight of all rows.
    histogram_edges, histogram : arrays of shape (h + 1,) and (h,)
        Cells of the predictions, equal on the scale of the axes, and the weight in each.
    x, y : arrays of shape (l,)
        The line to draw: for bins the points (``mean_p``, ``fraction``) themselves.
    curve : {"binned", "isotonic", "smooth"}
    axes : {"probability", "logit"}
        The scale that the histogram's cells were made for.

    Examples
    --------
    >>> from calibrant.diagrams.curves import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.15, 0.15, 0.15, 0.7])
    >>> curve
    Curve(2 bins of equal width, weight 4, pointwise exact 95 % band)
    >>> print(curve)
    predictions   mean  fraction       95 % band  weight
    [0.1, 0.2)   0.150     0.333  0.008 to 0.906       3
    [0.7, 0.8)   0.700     1.000  0.025 to 1.000       1
    """

    edges: Array
    mean_p: Array
    fraction: Array
    weight: Array
    effective: Array
    lower: Array | None
    upper: Array | None
    level: float | None
    band: str | None
    binning: str
    total: float
    histogram_edges: Array
    histogram: Array
    x: Array
    y: Array
    curve: str = "binned"
    axes: str = "probability"
    bands: str | None = None

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.mean_p)

    @property
    def share(self) -> Array:
        """The part of all weight in each cell of the histogram."""
        return self.histogram / self.total

    @property
    def bulk(self) -> tuple[float, float]:
        """The ends of the cells between which all but 0.5 % of the weight at each end lies."""
        part = np.cumsum(self.share)
        first, last = np.searchsorted(part, (0.005, 0.995))
        end = min(int(last) + 1, len(part))
        return float(self.histogram_edges[first]), float(self.histogram_edges[end])

    @property
    def leaves_band(self) -> bool | None:
        """Whether the line leaves its band somewhere; None without a band.

        Of calibrated predictions it leaves a simultaneous consistency band in 1 − ``level`` of all
        samples: that is a test. Place by place it leaves a pointwise one far more often.
        """
        if self.lower is None or self.upper is None:
            return None
        slack = 1e-9  # of rounding
        return bool(((self.y < self.lower - slack) | (self.y > self.upper + slack)).any())

    def __repr__(self) -> str:
        plural = "s" if len(self) != 1 else ""
        band = "no band"
        if self.level is not None:
            band = f"{self.bands} {self.band} {100 * self.level:g} % band"
        groups = GROUPS[self.curve].format(plural, self.binning)
        return f"Curve({len(self)} {groups}, weight {self.total:g}, {band})"

    def __str__(self) -> str:
        span = self.histogram_edges[-1] - self.histogram_edges[0]
        places = 3 + math.ceil(-math.log10(span))
        columns = [["predictions", *self._names(places)]]
        columns.append(["mean", *(f"{value:.{places}f}" for value in self.mean_p)])
        columns.append(["fraction", *(f"{value:.{places}f}" for value in self.fraction)])
        if self.lower is not None and self.upper is not None and self.level is not None:
            ends = (np.interp(self.mean_p, self.x, end) for end in (self.lower, self.upper))
            band = (f"{a:.{places}f} to {b:.{places}f}" for a, b in zip(*ends, strict=True))
            columns.append([f"{100 * self.level:g} % band", *band])
        columns.append(["weight", *(f"{value:.10g}" for value in self.weight)])
        # all bins, or some of many other groups
        chosen = some_of(len(self), len(self) if self.curve == "binned" else MOST_LINES)
        lines = printed_columns([[head, *(cells[i] for i in chosen)] for head, *cells in columns])
        if len(chosen) < len(self):
            groups = GROUPS[self.curve].format("s", self.binning)
            lines.append(f"({len(chosen)} of {len(self)} {groups})")
        return "\n".join(lines)

    def _names(self, places: int) -> list[str]:
        if self.curve != "binned":
            return [f"{low:.{places}f} to {high:.{places}f}" for low, high in self.edges]
        names = [f"[{low:.4g}, {high:.4g})" for low, high in self.edges]
        if self.edges[-1, 1] == 1.0:
            names[-1] = names[-1][:-1] + "]"
        return names


def some_of(count: int, most: int) -> list[int]:
    """At most so many of the numbers from 0 to count − 1, evenly spread.

    >>> some_of(101, 3), some_of(2, 20)
    ([0, 50, 100], [0, 1])
    """
    return sorted({round(at) for at in np.linspace(0, count - 1, min(count, most))})


def printed_columns(columns: Sequence[Sequence[str]], first: Side = "left") -> list[str]:
    """Columns of cells as lines of text; all but the first stand to the right.

    >>> print("\\n".join(printed_columns([("name", "one"), ("value", "10")])))
    name  value
    one      10
    """
    others: list[Side] = ["right"] * (len(columns) - 1)
    return aligned(list(zip(*columns, strict=True)), [first, *others], rule=False)
