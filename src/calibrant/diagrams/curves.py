"""What a reliability diagram shows, computed: its points, their bands, and the histogram."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.door import (
    Rows,
    check_lengths,
    read_labels,
    read_probabilities,
    read_scores,
    read_weight,
)
from calibrant.data.frozen import Frozen
from calibrant.data.table import ScoreTable
from calibrant.diagrams.bins import (
    Rule,
    Sums,
    band_of,
    bins_of,
    histogram_of,
    means_of,
    window,
)
from calibrant.errors import InputError
from calibrant.losses import sigmoid

__all__ = ["Comparison", "Curve", "compare_curves", "reliability_curve"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Frozen):
    """A reliability curve: mean prediction against fraction of positives, bin by bin.

    Attributes
    ----------
    edges : array of shape (m, 2)
        Where each non-empty bin begins and ends: [begin, end), the last one closed.
    mean_p, fraction : arrays of shape (m,)
        The weighted mean prediction and the weighted fraction of positives of each bin: the points.
    weight, effective : arrays of shape (m,)
        Σw of each bin, and its effective sample size (Σw)²/Σw², the number of rows if all weigh
        the same.
    lower, upper : arrays of shape (m,), or None
        The band of ``fraction``; None without one.
    level : float or None
        How often the band is meant to hold the truth, bin by bin.
    band : {"exact", "bootstrap"} or None
    kind : {"width", "mass"}
    total : float
        The weight of all rows.
    histogram_edges, histogram : arrays of shape (h + 1,) and (h,)
        Equal cells of the predictions, and the weight in each.

    Examples
    --------
    >>> curve = reliability_curve([0, 0, 1, 1], [0.15, 0.15, 0.15, 0.7])
    >>> curve
    Curve(2 bins of equal width, weight 4, exact 95 % band)
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
    kind: str
    total: float
    histogram_edges: Array
    histogram: Array

    def __len__(self) -> int:
        """The number of bins that hold predictions."""
        return len(self.mean_p)

    @property
    def share(self) -> Array:
        """The part of all weight in each cell of the histogram."""
        return self.histogram / self.total

    @property
    def bulk(self) -> tuple[float, float]:
        """From where to where the histogram holds all but 0.5 % of the weight at either end."""
        part = np.cumsum(self.share)
        first, last = np.searchsorted(part, (0.005, 0.995))
        end = min(int(last) + 1, len(part))
        return float(self.histogram_edges[first]), float(self.histogram_edges[end])

    def to_dict(self) -> dict[str, Any]:
        """The attributes as plain lists and numbers, ready for JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._items()
        }

    def __repr__(self) -> str:
        plural = "s" if len(self) != 1 else ""
        band = "no band" if self.level is None else f"{self.band} {100 * self.level:g} % band"
        return f"Curve({len(self)} bin{plural} of equal {self.kind}, weight {self.total:g}, {band})"

    def __str__(self) -> str:
        names = [f"[{low:.4g}, {high:.4g})" for low, high in self.edges]
        if self.edges[-1, 1] == 1.0:
            names[-1] = names[-1][:-1] + "]"
        span = self.histogram_edges[-1] - self.histogram_edges[0]
        places = 3 + math.ceil(-math.log10(span))
        columns = [["predictions", *names]]
        columns.append(["mean", *(f"{value:.{places}f}" for value in self.mean_p)])
        columns.append(["fraction", *(f"{value:.{places}f}" for value in self.fraction)])
        if self.lower is not None and self.upper is not None and self.level is not None:
            ends = zip(self.lower, self.upper, strict=True)
            band = (f"{low:.{places}f} to {high:.{places}f}" for low, high in ends)
            columns.append([f"{100 * self.level:g} % band", *band])
        columns.append(["weight", *(f"{value:.10g}" for value in self.weight)])
        wide = [max(len(cell) for cell in column) for column in columns]
        rows = zip(*columns, strict=True)
        lines = (
            "  ".join(
                [row[0].ljust(wide[0])]
                + [c.rjust(w) for c, w in zip(row[1:], wide[1:], strict=True)]
            )
            for row in rows
        )
        return "\n".join(lines)


def reliability_curve(
    y: Any,
    p: Any = None,
    *,
    bins: int = 10,
    kind: str = "width",
    band: str | None = "exact",
    level: float = 0.95,
    n_boot: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Curve:
    """The points of a reliability diagram, with a band for each.

    A calibrated model's points lie on the diagonal: of the cases it gives 0.3, 30 % are positive.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then no ``p``).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities, or a binary predict_proba (then pos_label's column is used).
    bins : int, default=10
        How many bins; those without predictions vanish.
    kind : {"width", "mass"}, default="width"
        Bins of equal width on [0, 1], or of equal weight.
    band : {"exact", "bootstrap"} or None, default="exact"
        How the band of each bin's fraction is found; None for no band.
    level : float, default=0.95
        How often each bin's band is meant to hold the true fraction.
    n_boot : int, default=1000
        Number of replicates of ``"bootstrap"``.
    random_state : int, Generator or None, default=0
        Seed of ``"bootstrap"``.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, default: the larger class
        The class whose probability ``p`` is.

    Returns
    -------
    Curve

    Notes
    -----
    Bins of equal width are [0, 1/B), …, [1 − 1/B, 1], ten of them in [1]_; bin k of equal mass ends
    after k·W/B of the total weight W, cut halfway between neighbouring predictions. Equal
    predictions are never split: a cut inside a tie moves to its end.

    ``"exact"`` is the Clopper–Pearson interval [2]_ of each bin with its effective sample size
    n = (Σw)²/Σw² and n·fraction successes: B(α/2; k, n − k + 1) to B(1 − α/2; k + 1, n − k), B the
    quantile of the beta distribution. Without weights it holds the bin's mean true probability at
    least ``level`` of the time, usually more. Multiplying all weights by a constant changes
    nothing; a table from `ScoreTable.from_counts` counts rows.

    ``"bootstrap"`` draws, for either class of each bin, the weight that a Poisson bootstrap of its
    rows would give, c·Poisson(Σw/c) with c = Σw²/Σw (the right mean and variance; exactly that
    bootstrap where a class's rows in a bin weigh the same), and takes percentiles of the fraction.
    A replicate without any weight in a bin counts with the observed fraction. It has no width in a
    bin of a single class, where ``"exact"`` has.

    Bands hold bin by bin, not for all bins at once. O(D) after the table, plus O(B·n_boot) for
    ``"bootstrap"``.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.
    .. [2] C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case
       of the binomial", 1934, doi:10.1093/biomet/26.4.404.
    .. [3] M. DeGroot, S. Fienberg, "The comparison and evaluation of forecasters", 1983,
       doi:10.2307/2987588.

    Examples
    --------
    >>> curve = reliability_curve(["no", "yes", "yes"], [0.2, 0.8, 0.8], bins=2, band=None)
    >>> curve.mean_p.tolist(), curve.fraction.tolist(), curve.weight.tolist()
    ([0.2, 0.8], [0.0, 1.0], [1.0, 2.0])
    """
    rule = Rule(bins, kind, band, level, n_boot, random_state)
    table = _read_table(y, p, sample_weight, pos_label)
    return _curve(table, rule, window(table.scores[0], table.scores[-1]))


def _curve(table: ScoreTable, rule: Rule, shown: tuple[float, float]) -> Curve:
    starts, edges = bins_of(table, rule)
    sums = Sums.of(table, starts)
    lower, upper = band_of(sums, rule)
    cells = shown[0] + (shown[1] - shown[0]) * (np.arange(rule.cells + 1) / rule.cells)
    return Curve(
        edges=edges,
        mean_p=means_of(table, starts),
        fraction=sums.fraction,
        weight=sums.weight,
        effective=sums.effective,
        lower=lower,
        upper=upper,
        level=None if rule.band is None else float(rule.level),
        band=rule.band,
        kind=rule.kind,
        total=table.total,
        histogram_edges=cells,
        histogram=histogram_of(table, cells),
    )


@dataclass(frozen=True, eq=False)
class Comparison(Frozen):
    """The curves of one diagram, on common histogram cells.

    Attributes
    ----------
    after : Curve
    before : Curve or None
    linked : bool
        Whether the scores before were margins, read through σ.
    raw_range : tuple of two floats, or None
        The smallest and the largest score before, as they came.
    """

    after: Curve
    before: Curve | None = None
    linked: bool = False
    raw_range: tuple[float, float] | None = None

    @property
    def curves(self) -> tuple[Curve, ...]:
        return (self.after,) if self.before is None else (self.after, self.before)

    @property
    def frame(self) -> tuple[float, float]:
        """The part of [0, 1] that holds all points, all bands and nearly all predictions."""
        columns = [
            column
            for c in self.curves
            for column in (c.bulk, c.mean_p, c.fraction, c.lower, c.upper)
            if column is not None
        ]
        return window(min(map(min, columns)), max(map(max, columns)))


def compare_curves(
    y: Any,
    p: Any = None,
    *,
    raw: Any = None,
    bins: int = 10,
    kind: str = "width",
    band: str | None = "exact",
    level: float = 0.95,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Comparison:
    """The reliability curves after and, where ``raw`` is given, before calibration.

    >>> both = compare_curves([0, 1, 1], [0.4, 0.6, 0.6], raw=[-2.0, 0.5, 3.0])
    >>> both.linked, both.before.mean_p.round(2).tolist()
    (True, [0.12, 0.62, 0.95])
    """
    rule = Rule(bins, kind, band, level)
    after = _read_table(y, p, sample_weight, pos_label)
    if raw is None:
        return Comparison(_curve(after, rule, window(after.scores[0], after.scores[-1])))
    before = _read_raw(y, raw, sample_weight, pos_label)
    ends = float(before.scores[0]), float(before.scores[-1])
    linked = not before.looks_like_probabilities
    if linked:
        columns = (before.negative, before.positive, before.negative_sq, before.positive_sq)
        before = ScoreTable.from_counts(sigmoid(before.scores), *columns)
    common = window(
        min(after.scores[0], before.scores[0]), max(after.scores[-1], before.scores[-1])
    )
    return Comparison(_curve(after, rule, common), _curve(before, rule, common), linked, ends)


# --- reading ------------------------------------------------------------------------------------


def _read_table(y: Any, p: Any, sample_weight: Any, pos_label: Any) -> ScoreTable:
    """The table of labels and probabilities, in either form."""
    if isinstance(y, ScoreTable):
        _refuse_beside_table(p=p, sample_weight=sample_weight, pos_label=pos_label)
        _refuse_empty(y)
        read_probabilities(y.scores, name="the scores of the table")
        return y
    if p is None:
        raise InputError(
            "p must be given beside labels y. Only a ScoreTable holds labels and probabilities."
        )
    return _table(y, p, sample_weight, pos_label, read=read_probabilities, name="p")


def _read_raw(y: Any, raw: Any, sample_weight: Any, pos_label: Any) -> ScoreTable:
    if isinstance(raw, ScoreTable):
        _refuse_empty(raw)
        return raw
    if isinstance(y, ScoreTable):
        raise InputError(
            "raw must be a ScoreTable where y is one, since a table has no rows to pair it with, "
            f"but {type(raw).__name__} came. Build it with ScoreTable.from_arrays(raw, labels)."
        )
    return _table(y, raw, sample_weight, pos_label, read=read_scores, name="raw")


def _table(
    y: Any,
    scores: Any,
    sample_weight: Any,
    pos_label: Any,
    *,
    read: Callable[..., Array],
    name: str,
) -> ScoreTable:
    labels = read_labels(y, pos_label=pos_label)
    clean = read(scores, positive_column=labels.positive_column, name=name)
    check_lengths(**{name: len(clean), "y": len(labels.positive)})
    weight = read_weight(sample_weight, len(clean))
    rows = Rows(clean, labels.positive, weight, labels.classes, labels.pos_label)
    return ScoreTable.from_rows(rows)


def _refuse_beside_table(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} must not be given where y is a ScoreTable: the table already holds "
                "predictions, labels and weights."
            )


def _refuse_empty(table: ScoreTable) -> None:
    if not table:
        raise InputError("the table must hold at least one score, but it is empty.")
