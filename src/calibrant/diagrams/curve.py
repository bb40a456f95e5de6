"""What diagrams show, computed: points and lines, their bands, histograms, and fitted maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from calibrant.array_types import Array, Index
from calibrant.data.door import Rows, read_labels, read_scores, read_weight
from calibrant.data.frozen import Frozen, read_only
from calibrant.data.scale import IN_SHORT
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError, did_you_mean, refuse_foreign_names
from calibrant.fitting.fitted import Fitted
from calibrant.losses import logit, sigmoid
from calibrant.metrics.belt import Belt
from calibrant.metrics.chance import RisingBand, clopper_pearson
from calibrant.metrics.tables import (
    AUTO,
    BINNINGS,
    Bins,
    check_bin_count,
    check_number,
    check_whole,
    effective_rows,
    equal_mass_starts,
    last_cells,
    read_column,
    read_generator,
    read_rows,
    read_table,
    run_means,
    squares,
    starts_at,
    sweep_starts,
)
from calibrant.metrics.tests import inner_cells
from calibrant.result_tables import PlainFields, Side, aligned
from calibrant.rules.base import Map, Rule, VectorMap


@refuse_foreign_names
def reliability_curve(
    y: Any,
    p: Any = None,
    *,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "mass",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sigma: float | None = None,
    axes: str = "probability",
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Curve:
    """The points or the line of a reliability diagram, with a band.

    A calibrated model's curve lies on the diagonal: of the cases it gives 0.3, 30 % are positive.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoreTable
        Labels, any two values; or a table whose scores are the probabilities (then no ``p``).
    p : array-like of shape (n,), (n, 1) or (n, 2)
        Predicted probabilities, or a binary predict_proba (then pos_label's column is used).
    curve : {"binned", "isotonic", "smooth", "belt"}, default="binned"
        Predictions grouped in bins; the isotonic (CORP) curve, which needs no choice of bins;
        a moving average; or the calibration belt (GiViTI), a polynomial in log-odds.
    bins : int or "auto", default=10
        How many bins; those without predictions vanish. Only for ``"binned"``, like ``binning``.
        ``"auto"``: the bins of ``ece(bins="auto")``, of equal weight and as many as let fractions
        rise from bin to bin; ``binning`` plays no part then.
    binning : {"mass", "width"}, default="mass"
        Bins of equal weight, or of equal width on [0, 1].
    band : {"auto", "exact", "bootstrap", "consistency", "confidence"} or None, default="auto"
        ``"consistency"``: where the curve of a calibrated model would lie, around the diagonal.
        ``"confidence"``: where the truth may lie, around the curve; in bins that is ``"exact"``,
        and ``"bootstrap"`` is another way. ``"auto"`` is ``"exact"`` in bins and ``"consistency"``
        otherwise. None for no band.
    bands : {"auto", "simultaneous", "pointwise"}, default="auto"
        Where the band holds: everywhere at once, or at each place by itself. ``"auto"`` is
        ``"simultaneous"`` for consistency bands, since one looks whether the curve leaves them
        anywhere, and ``"pointwise"`` for the others.
    level : float, default=0.95
        How often the band is meant to hold what it is for.
    sigma : float, optional
        The standard deviation of the ``"smooth"`` curve's kernel, in log-odds; by default from the
        data.
    axes : {"probability", "logit"}, default="probability"
        The scale on which the histogram's cells are equal; ``"logit"`` for rare events.
    replicates : int, default=1000
        Number of replicates of bands that are drawn at random.
    random_state : int, Generator or None, default=0
        Their seed.
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

    ``"isotonic"`` is the weighted least-squares fit of a non-decreasing function to the labels
    [3]_: level over each block, straight between blocks. (Of more than 400 blocks the line, not
    the points, leaves some out.)

    ``"smooth"`` moves a Gaussian kernel along the log-odds of the predictions (of p kept in
    [1e-9, 1 − 1e-9]) and shows the mean label against the mean prediction under it, so that a
    calibrated model's line is the diagonal whatever the density. On the scale of probabilities a
    kernel would flatten what happens near 0 and 1, where predictions crowd. σ = 0.9·s·m^(−1/5)
    with m = 4n₀n₁/n effective rows and s the spread of the log-odds (standard deviation, or that
    of the middle 80 % if smaller).

    ``"belt"`` is the polynomial in log-odds of `calibrant.metrics.calibration_belt` [6]_, between
    the lowest and the highest prediction that is not 0 or 1. Its band holds the true curve, if
    that is such a polynomial, everywhere at once: the lowest and the highest of all polynomials
    whose likelihood ratio to the best one is not beyond the ``level`` quantile of the test. Where
    it leaves the diagonal, the test refuses at 1 − level. A band of 80 % comes with wider ones. It
    knows nothing of bends that the rows were too few to show, so that it is then too narrow.

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

    ``"consistency"`` draws labels with the predictions as probabilities and makes the curve of each
    draw. ``"confidence"`` of an isotonic curve does the same with
    probabilities that are linear between its blocks' means, (n₁ + 1)/(n + 2) at each: labels drawn
    from the steps themselves, or rows drawn again, give bands that are far too narrow at the ends
    [4]_. That of a smooth one is Clopper–Pearson's with the kernel's effective size; it does not
    know what the kernel flattens. Both use the effective size of weighted rows, and above 2000
    distinct predictions cells of neighbours: half of them of equal weight, half of equal width.

    A ``"pointwise"`` band takes percentiles at each place. A calibrated model's curve stays within
    it at 95 of 100 places, so that it leaves it somewhere in most samples: this says nothing. A
    ``"simultaneous"`` one is wider, and holds the whole curve: the median of the draws plus and
    minus c scales, the root mean square of the draws above or below it (in angles arcsin √y), c
    such that ``level`` of the drawn curves stay within. That of exact intervals
    shares 1 − level between the bins. That around an isotonic curve has no draws: each of 60 groups
    of equal weight, and each run of them, limits the probability at scores above it from below, and
    below it from above, by Clopper–Pearson's limits, which share 1 − level. It holds the true
    probability everywhere if that rises with the score, however it does so.

    O(D) after the table, plus O(B·replicates) for ``"bootstrap"`` and O(min(D, 2000)·replicates)
    for the others that are drawn.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.
    .. [2] C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case
       of the binomial", 1934, doi:10.1093/biomet/26.4.404.
    .. [3] T. Dimitriadis, T. Gneiting, A. Jordan, "Stable reliability diagrams for probabilistic
       classifiers", 2021, doi:10.1073/pnas.2016191118.
    .. [4] B. Sen, M. Banerjee, M. Woodroofe, "Inconsistency of bootstrap: the Grenander estimator",
       2010, doi:10.1214/09-AOS777.
    .. [5] J. Bröcker, L. Smith, "Increasing the reliability of reliability diagrams", 2007,
       doi:10.1175/WAF993.1.
    .. [6] G. Nattino, S. Finazzi, G. Bertolini, "A new calibration test and a reappraisal of the
       calibration belt for the assessment of prediction models based on dichotomous outcomes",
       2014, doi:10.1002/sim.6100.

    Examples
    --------
    >>> curve = reliability_curve(["no", "yes", "yes"], [0.2, 0.8, 0.8], bins=3, band=None)
    >>> curve.mean_p.tolist(), curve.fraction.tolist(), curve.weight.tolist()
    ([0.2, 0.8], [0.0, 1.0], [1.0, 2.0])
    >>> isotonic = reliability_curve([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8], curve="isotonic")
    >>> isotonic
    Curve(3 isotonic blocks, weight 4, simultaneous consistency 95 % band)
    >>> isotonic.x.tolist(), isotonic.y.tolist()
    ([0.1, 0.3, 0.4, 0.8], [0.0, 0.5, 0.5, 1.0])
    """
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    return curve_of(read_table(y, p, sample_weight, pos_label), rule)


def curve_of(
    table: ScoreTable, rule: CurveOptions, span: tuple[float, float] | None = None
) -> Curve:
    """The curve of a table; ``span`` is the part of the axis that its histogram covers."""
    shape = SHAPES[rule.curve](table, rule)
    span = span_of([table], rule.axes) if span is None else span
    cells = cell_edges(*span, rule.cells, odds=rule.axes == "logit")
    return Curve(
        **shape._asdict(),
        level=None if rule.band is None else float(rule.level),
        band=rule.band,
        binning=rule.binning,
        total=table.total,
        histogram_edges=cells,
        histogram=histogram_of(table, cells),
        curve=rule.curve,
        axes=rule.axes,
        bands=rule.bands,
    )


# --- Which part of the axes a diagram shows, on which scale, and where the ticks are --------------


#: the part of the weight at each end that a log-odds axis may leave out
BEYOND = 0.005
#: DECADES are the ticks of log-odds axes, STOPS the places where these axes may end
DECADES = tuple(float(f"1e-{k}") for k in range(9, 0, -1))
DECADES = (*DECADES, 0.5, *(1 - tick for tick in reversed(DECADES)))
HALVES = sorted(float(f"{digit}e-{k}") for k in range(1, 10) for digit in (1, 2, 5))
STOPS = (*HALVES, *(1 - stop for stop in reversed(HALVES[:-1])))
#: 1 − x is rounded, so ends and ticks are compared with this tolerance
SLACK = 1e-10
#: the most ticks along an axis
MOST_TICKS = 7
#: the most letters of a tick's figure, on average
LETTERS = 4.6


@dataclass(frozen=True)
class Frame:
    """A part of both axes, from ``low`` to ``high``, as probabilities or as their log-odds."""

    low: float
    high: float
    axes: str = "probability"

    def ends(self, room: float) -> tuple[float, float]:
        """The ends, moved outwards by ``room``, a part of the frame's length."""
        if self.is_logit:
            low, high = logit(np.array([self.low, self.high]))
            more = room * (high - low)
            wide = sigmoid(np.array([low - more, high + more]))
            return float(wide[0]), float(wide[1])
        more = room * (self.high - self.low)
        return self.low - more, self.high + more

    def inside(self, values: Array) -> Array:
        """The values; on log-odds axes those beyond the frame (such as 0 and 1) at its edge."""
        return np.clip(values, self.low, self.high) if self.is_logit else values

    def has_long_ticks(self, short: float) -> bool:
        """Whether ticks have many digits: on probability axes, if these are shorter."""
        if self.is_logit:
            return max(map(len, map(tick_words, self.ticks()))) > 5
        return self.high - self.low < short

    @property
    def is_logit(self) -> bool:
        return self.axes == "logit"

    def ticks(self, most: int = MOST_TICKS) -> list[float]:
        """The ticks of log-odds axes, at most so many.

        >>> Frame(0.001, 0.99, "logit").ticks()
        [0.001, 0.01, 0.1, 0.5, 0.9, 0.99]
        >>> Frame(0.001, 0.02, "logit").ticks()
        [0.001, 0.002, 0.005, 0.01, 0.02]
        """
        shown = self._ticks_inside(DECADES)
        shown = self._ticks_inside(STOPS) if len(shown) < 3 else shown
        middle = shown.index(0.5) if 0.5 in shown else 0
        for step in range(-(-len(shown) // most), len(shown) + 1):
            kept = [tick for place, tick in enumerate(shown) if (place - middle) % step == 0]
            if sum(len(tick_words(tick)) for tick in kept) <= LETTERS * most:
                return kept
        return shown[:1]

    def _ticks_inside(self, ticks: Sequence[float]) -> list[float]:
        return [t for t in ticks if self.low * (1 - SLACK) <= t <= self.high * (1 + SLACK)]


def tick_words(tick: float) -> str:
    """A tick's figure, as short as it can be.

    >>> [tick_words(t) for t in (2e-5, 0.001, 0.5, 0.99, 1 - 1e-4, 1 - 1e-8)]
    ['2e-5', '0.001', '0.5', '0.99', '0.9999', '1-1e-8']
    """
    if tick < 0.5:
        return f"{tick:g}" if tick > 9e-4 else f"{tick:.0e}".replace("e-0", "e-")
    return f"{tick:.5g}" if tick < 1 - 5e-5 else "1-" + tick_words(1.0 - tick)


def span_of(tables: Iterable[ScoreTable], axes: str) -> tuple[float, float]:
    """The part of the axis that the histogram of all these predictions covers."""
    ends = []
    for table in tables:
        first, last = 0, len(table) - 1
        if axes == "logit":  # without the least and the largest 0.5 % of the weight
            mass = np.cumsum(table.weight)
            first, end = np.searchsorted(mass, mass[-1] * np.array([BEYOND, 1 - BEYOND]))
            last = min(end, last)
        ends.append((float(table.scores[first]), float(table.scores[last])))
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return probability_window(low, high) if axes == "probability" else round_odds(low, high)


def cell_edges(low: float, high: float, count: int, *, odds: bool) -> Array:
    """The edges of cells from low to high, of equal width as they are or as log-odds."""
    part = np.arange(count + 1) / count
    if not odds:
        return low + (high - low) * part
    first, last = logit(np.array([low, high]))
    edges = sigmoid(first + (last - first) * part)
    edges[0], edges[-1] = low, high
    return np.asarray(edges)


def frame_of(curves: Sequence[Curve]) -> Frame:
    """The frame that holds all points, all bands and nearly all predictions."""
    first = curves[0]
    if first.axes == "probability":
        columns = [
            column
            for c in curves
            for column in (c.bulk, c.x, c.y, c.lower, c.upper)
            if column is not None
        ]
        return Frame(*probability_window(min(map(min, columns)), max(map(max, columns))))
    low = min(c.histogram_edges[0] for c in curves)
    high = max(c.histogram_edges[-1] for c in curves)
    for c in curves:  # of groups that hold at least half an effective row of each class
        sure = c.effective * np.minimum(c.fraction, 1 - c.fraction) >= 0.5
        low, high = c.fraction[sure].min(initial=low), c.fraction[sure].max(initial=high)
    return Frame(*round_odds(float(low), float(high)), "logit")


def round_odds(low: float, high: float) -> tuple[float, float]:
    """The ends moved outwards to 1, 2 or 5 times a power of ten, counted from 0 or from 1.

    >>> round_odds(0.0003, 0.13), round_odds(0.0, 0.93), round_odds(0.5, 0.5)
    ((0.0002, 0.2), (1e-09, 0.95), (0.2, 0.8))
    """
    start = int(np.searchsorted(STOPS, low * (1 + SLACK), side="right")) - 1
    end = int(np.searchsorted(STOPS, high * (1 - SLACK)))
    start, end = max(start, 0), min(end, len(STOPS) - 1)
    if end - start < 2:
        start, end = max(start - 1, 0), min(end + 1, len(STOPS) - 1)
    return float(STOPS[start]), float(STOPS[end])


# --------------------------------------------------------------------------------------------------
# How diagrams take labels and predictions: rows or tables, one prediction or several by name


#: the name of predictions that came without one
ONLY = "predictions"


def read_raw(y: Any, raw: Any, sample_weight: Any, pos_label: Any) -> ScoreTable:
    """The table of the scores before calibration, of any kind."""
    if isinstance(raw, ScoreTable):
        if not raw:
            raise InputError("the table must hold at least one score, but it is empty.")
        return raw
    if isinstance(y, ScoreTable):
        raise InputError(
            "raw must be a ScoreTable where y is one, since a table has no rows to pair it with, "
            f"but {type(raw).__name__} came. Build it with ScoreTable.from_arrays(raw, labels)."
        )
    rows = read_rows(y, raw, sample_weight, pos_label, name="raw", read=read_scores)
    return ScoreTable.from_rows(rows)


def read_several(
    y: Any, predictions: Mapping[str, Any], sample_weight: Any = None, pos_label: Any = None
) -> dict[str, ScoreTable]:
    """The table of each prediction of the same rows; with y None, of tables that came by name."""
    if not isinstance(predictions, Mapping) or not predictions:
        came = "none" if isinstance(predictions, Mapping) else type(predictions).__name__
        raise InputError(
            "predictions must be a dict of names to probabilities, with one entry or more, but "
            f"{came} came."
        )
    if y is not None:
        rows = rows_by_name(y, predictions, sample_weight, pos_label)
        return {name: ScoreTable.from_rows(one) for name, one in rows.items()}
    _refuse_same_names(predictions)
    for name, given in predictions.items():
        if not isinstance(given, ScoreTable):
            raise InputError(
                f"predictions[{name!r}] must be a ScoreTable where there are no labels y, but "
                f"{type(given).__name__} came. Pass y, or ScoreTable.from_arrays(p, y)."
            )
    return {
        str(name): read_table(given, None, sample_weight, pos_label)
        for name, given in predictions.items()
    }


def rows_by_name(y: Any, p: Any, sample_weight: Any, pos_label: Any) -> dict[str, Rows]:
    """The rows of each prediction: of a dict, or of one that has no name."""
    predictions = p if isinstance(p, Mapping) else {ONLY: p}
    _refuse_same_names(predictions)
    labels = read_labels(y, pos_label=pos_label)
    rows = replace(labels, weight=read_weight(sample_weight, len(labels.positive)))
    found = {}
    for name, given in predictions.items():
        called = f"predictions[{name!r}]" if isinstance(p, Mapping) else "p"
        found[str(name)] = replace(rows, scores=read_column(given, labels, name=called))
    return found


def _refuse_same_names(predictions: Mapping[Any, Any]) -> None:
    """Refuse names that differ as keys of a dict, such as 1 and "1", but not in a picture."""
    seen: set[str] = set()
    for name in predictions:
        if str(name) in seen:
            raise InputError(
                f"predictions must have different names, but two are called {str(name)!r}. "
                "Name one of them otherwise."
            )
        seen.add(str(name))


# --- The arithmetic of the three kinds of curve: in bins, isotonic, and smooth --------------------


Band = tuple[Array, Array]

#: a line is given at twice as many places, besides the ends of blocks
GRID = 100
#: the most ends of blocks at which an isotonic line is given
MOST_ENDS = 800
#: so many scores at either end of an isotonic curve are not merged with others
END_ROWS = 200
#: the factor of the kernel's width, see `kernel_width`
SPAN = 0.9
#: the log-odds of 0 and 1 are taken to be those of this and of 1 − this
CLIP = 1e-9
#: how many standard deviations the middle 80 % of a normal distribution span
MIDDLE = 2.5631
#: the level of the band inside that of a calibration belt
INSIDE = 0.8


class Shape(NamedTuple):
    """What a kind of curve computes: groups of rows, the line through them, and its band."""

    edges: Array
    mean_p: Array
    fraction: Array
    weight: Array
    effective: Array
    x: Array
    y: Array
    lower: Array | None
    upper: Array | None
    inner_lower: Array | None = None
    inner_upper: Array | None = None


# --- in bins ------------------------------------------------------------------------------------


def _binned_shape(table: ScoreTable, rule: CurveOptions) -> Shape:
    """A point for each bin: the mean prediction and the fraction of positives."""
    starts, edges = bins_of(table, rule)
    bins = grouped(table, starts)
    groups = (edges, bins.scores, bins.rate, bins.weight, effective(bins))
    return Shape(*groups, bins.scores, bins.rate, *band_of(table, starts, bins, rule))


# --- isotonic -----------------------------------------------------------------------------------


def _isotonic_shape(table: ScoreTable, rule: CurveOptions) -> Shape:
    """Pool adjacent violators: the line is level over each block and straight between blocks."""
    starts = isotonic_regression(table.rate, weights=table.weight).blocks[:-1].astype(np.intp)
    blocks = grouped(table, starts)
    last = table.scores[last_cells(starts, len(table))]
    edges = np.column_stack((table.scores[starts], last))
    ends, values = edges.ravel(), np.repeat(blocks.rate, 2)
    corners = ends[np.linspace(0, len(ends) - 1, min(len(ends), MOST_ENDS)).astype(np.intp)]
    x = np.unique(np.concatenate((corners, merged_cells(table, half=GRID).p)))
    y = np.interp(x, ends, values)
    size = effective(blocks)
    groups = (edges, blocks.scores, blocks.rate, blocks.weight, size)
    if rule.band is None:
        return Shape(*groups, x, y, None, None)
    if rule.band == "confidence" and rule.everywhere:
        _, low, high = RisingBand.of(table, 1.0 - rule.level).at(x)
        return Shape(*groups, x, y, np.minimum(low, y), np.maximum(high, y))
    # at its ends a curve varies row by row: no cells are made there
    few = np.arange(min(END_ROWS, len(table)))
    cells = merged_cells(table, keep=np.union1d(few, len(table) - 1 - few))
    probability = cells.p
    if rule.band == "confidence":  # blocks of a single class are not taken for certain
        smoothed = (size * blocks.rate + 1.0) / (size + 2.0)
        probability = np.interp(cells.p, blocks.scores, smoothed)
    lower, upper = _isotonic_band(cells, probability, x, rule)
    if rule.band == "confidence":  # it is the band of this line
        lower, upper = np.minimum(lower, y), np.maximum(upper, y)
    return Shape(*groups, x, y, lower, upper)


def _isotonic_band(cells: MergedCells, probability: Array, x: Array, rule: CurveOptions) -> Band:
    """The band of the isotonic curves of labels drawn with these probabilities."""
    drawn = cells.draw(probability, rule.replicates, read_generator(rule.random_state))
    # a drawn curve may be furthest out anywhere, not only at the corners of the data's line
    at = cells.p if rule.everywhere else x
    values = np.empty((rule.replicates, len(at)))
    for row, fraction in zip(values, drawn, strict=True):
        fitted = isotonic_regression(fraction, weights=cells.weight).x
        row[:] = np.interp(at, cells.p, fitted)
    lower, upper = band_of_drawn(values, rule.level, rule.everywhere)
    if rule.everywhere:  # a rising curve that is below an end anywhere is below it before, too
        lower = np.interp(x, at, np.maximum.accumulate(lower))
        upper = np.interp(x, at, np.minimum.accumulate(upper[::-1])[::-1])
    return lower, upper


# --- smooth -------------------------------------------------------------------------------------


def _smooth_shape(table: ScoreTable, rule: CurveOptions) -> Shape:
    """Means of predictions and labels under a kernel that moves along the log-odds."""
    cells = merged_cells(table)
    place = logit(np.clip(cells.p, CLIP, 1 - CLIP))
    sigma = kernel_width(table, place, cells.weight) if rule.sigma is None else float(rule.sigma)
    chosen = np.arange(len(place))
    if len(place) > 2 * GRID:  # the line is given at some, spread by weight and along the axis
        chosen = spread_places(place, cells.weight, GRID, chosen[-1:])
    near = kernel(place[chosen], place, sigma)
    weight = near @ cells.weight
    x = np.clip(near @ (cells.weight * cells.p) / weight, cells.p[0], cells.p[-1])
    rate = np.add.reduceat(table.positive, cells.starts) / cells.weight
    y = np.clip(near @ (cells.weight * rate) / weight, 0.0, 1.0)
    effective = effective_rows(weight, near**2 @ cells.square)
    grid = cells.p[chosen]
    borders = np.concatenate(([cells.p[0]], grid[:-1] / 2 + grid[1:] / 2, [cells.p[-1]]))
    edges = np.column_stack((borders[:-1], borders[1:]))
    groups = (edges, x, y, histogram_of(table, borders), effective)
    if rule.band is None:
        return Shape(*groups, x, y, None, None)
    if rule.band == "confidence":
        return Shape(*groups, x, y, *clopper_pearson(effective, y, rule.tail))
    drawn = cells.draw(cells.p, rule.replicates, read_generator(rule.random_state)) * cells.weight
    band = band_of_drawn(drawn @ near.T / weight, rule.level, rule.everywhere)
    return Shape(*groups, x, y, *band)


def kernel_width(table: ScoreTable, place: Array, weight: Array) -> float:
    """The kernel's standard deviation, 0.9·s·m^(−1/5), with m = 4n₀n₁/n of n effective rows.

    s is the standard deviation of the log-odds, or what the middle 80 % of them would have if they
    were normal, whichever is smaller.
    """
    share = weight / weight.sum()
    spread = math.sqrt(share @ (place - share @ place) ** 2)
    ends = np.searchsorted(np.cumsum(share), (0.1, 0.9))
    middle = float(np.diff(place[np.minimum(ends, len(place) - 1)])[0]) / MIDDLE
    both = 4 * (table.total_negative / table.total) * (table.total_positive / table.total)
    rows = max(table.effective_size * both, 1.0)
    return float(SPAN * (min(spread, middle) or spread or 1.0) * rows**-0.2)


def kernel(at: Array, places: Array, sigma: float) -> Array:
    """The Gaussian kernel, up to a constant: shape (at, places).

    >>> kernel(np.array([0.0]), np.array([0.0, 0.1]), 0.1).round(4).tolist()
    [[1.0, 0.6065]]
    """
    distance = np.subtract.outer(at, places) / sigma
    return np.asarray(np.exp(-0.5 * distance**2))


# --- the calibration belt -----------------------------------------------------------------------


def _belt_shape(table: ScoreTable, rule: CurveOptions) -> Shape:
    """The polynomial in log-odds between the least and the largest prediction, and its belts."""
    inner, _ = inner_cells(table)
    if not len(inner):
        raise InputError(
            "the belt needs predictions between 0 and 1, but all that came are 0 or 1. Take "
            'curve="binned".'
        )
    belt, part = Belt.of(inner), np.linspace(0.0, 1.0, GRID // 2)
    ends = inner.scores[[0, -1]]
    if rule.axes == "logit":  # these axes leave a few predictions out
        ends = np.clip(ends, *span_of([inner], rule.axes))
    low, high = logit(ends)
    even = ends[0] + (ends[1] - ends[0]) * part, sigmoid(low + (high - low) * part)
    x = np.unique(np.clip(np.concatenate((*even, ends)), *ends))
    y = belt.curve(x)
    borders = np.concatenate((x[:1], x[:-1] / 2 + x[1:] / 2, x[-1:]))
    edges = np.column_stack((borders[:-1], borders[1:]))
    size = np.full(len(x), inner.effective_size)
    groups = (edges, x, y, histogram_of(inner, borders), size)
    if rule.band is None:
        return Shape(*groups, x, y, None, None)
    inside = belt.band(x, INSIDE) if rule.level > INSIDE else (None, None)
    return Shape(*groups, x, y, *belt.band(x, rule.level), *inside)


SHAPES: dict[str, Callable[[ScoreTable, CurveOptions], Shape]] = {
    "binned": _binned_shape,
    "isotonic": _isotonic_shape,
    "smooth": _smooth_shape,
    "belt": _belt_shape,
}


# --- The arithmetic of reliability curves: bins that never split a tie, and their bands -----------


#: predictions that all lie this close to 0 or to 1 are shown enlarged
CORNER = 0.5
#: by a corner that is as large as one of these, times a power of ten
ROUND_DIGITS = (1, 1.5, 2, 3, 4, 5, 6, 8)
#: beyond this mean a Poisson count is all but constant, and NumPy's sampler would overflow
LARGEST_MEAN = 1e15
#: a long sum of weights is rounded, so bins of equal weight end with this tolerance
ROUNDING = 1e-12


# --- bins ---------------------------------------------------------------------------------------


def bins_of(table: ScoreTable, rule: CurveOptions) -> tuple[Index, Array]:
    """Where every non-empty bin begins in the table, and its edges, shape (m, 2).

    >>> table = ScoreTable.from_counts([0.1, 0.25, 0.3], [1, 1, 1], [1, 0, 0])
    >>> starts, edges = bins_of(table, CurveOptions(bins=10, binning="width"))
    >>> starts.tolist(), edges.tolist()
    ([0, 1, 2], [[0.1, 0.2], [0.2, 0.3], [0.3, 0.4]])
    >>> starts, edges = bins_of(table, CurveOptions(bins=2))
    >>> starts.tolist(), edges.tolist()
    ([0, 1], [[0.0, 0.175], [0.175, 1.0]])
    """
    if rule.binning == "width" and not isinstance(rule.bins, str):
        edges = np.arange(rule.bins + 1) / rule.bins
        upto = np.append(np.searchsorted(table.scores, edges[:-1]), len(table))
        some = np.flatnonzero(np.diff(upto))
        return upto[some], np.column_stack((edges[some], edges[some + 1]))
    if isinstance(rule.bins, str):
        starts = sweep_starts(table)
    else:
        starts = equal_mass_starts(np.cumsum(table.weight), rule.bins)
    # bins of equal mass end halfway between predictions
    cuts = np.concatenate(([0.0], table.cuts(starts[1:] - 1), [1.0]))
    return starts, np.column_stack((cuts[:-1], cuts[1:]))


def grouped(table: ScoreTable, starts: Index) -> ScoreTable:
    """The table with neighbouring scores taken together, each group at its mean score."""
    n0, n1, q0, q1 = (read_only(np.add.reduceat(column, starts)) for column in table.columns)
    return ScoreTable(read_only(run_means(table, starts)), n0, n1, q0, q1)


def effective(groups: ScoreTable) -> Array:
    """(Σw)²/Σw² of each group (Kish)."""
    return effective_rows(groups.weight, squares(groups))


def histogram_of(table: ScoreTable, edges: Array) -> Array:
    """The weight in each cell [edge, next edge); the outer cells take what lies beyond."""
    inner = np.searchsorted(table.scores, edges[1:-1])
    mass = np.append(0.0, np.cumsum(table.weight))
    return np.diff(mass[np.concatenate(([0], inner, [len(table)]))])


def probability_window(low: float, high: float) -> tuple[float, float]:
    """[0, 1], or a corner [0, u] or [1 − u, 1] with a round u ≤ 0.5, whichever holds low and high.

    >>> probability_window(0.001, 0.017), probability_window(0.1, 0.3)
    ((0.0, 0.02), (0.0, 0.3))
    """
    for reach, mirrored in ((high, False), (1.0 - low, True)):
        if 0.0 < reach <= CORNER:
            # next to 1, numbers have too many digits to tell smaller parts of the axis apart
            least = max(float(reach), 1e-3 if mirrored else 0.0)
            power = math.floor(math.log10(least))
            sizes = (float(f"{digit}e{power + up}") for up in (0, 1) for digit in ROUND_DIGITS)
            size = next(size for size in sizes if size >= least * (1 - ROUNDING))
            return (1.0 - size, 1.0) if mirrored else (0.0, size)
    return 0.0, 1.0


# --- bands --------------------------------------------------------------------------------------


def band_of(
    table: ScoreTable, starts: Index, bins: ScoreTable, rule: CurveOptions
) -> Band | tuple[None, None]:
    """The lower and the upper end of each bin's fraction, or two Nones; ``bins`` are grouped.

    Exact: Clopper–Pearson with the effective sample size. Bootstrap: percentiles of the fraction
    over Poisson replicates of either class's weight. Consistency: the fractions of labels that are
    drawn with the predictions as probabilities.
    """
    if rule.band is None:
        return None, None
    if rule.band == "exact":  # everywhere at once each bin has its share
        share = len(starts) if rule.everywhere else 1
        return clopper_pearson(effective(bins), bins.rate, rule.tail / share)
    random = read_generator(rule.random_state)
    if rule.band == "bootstrap":
        negative = _bootstrap_weights(bins.negative, bins.negative_sq, rule.replicates, random)
        positive = _bootstrap_weights(bins.positive, bins.positive_sq, rule.replicates, random)
        total = negative + positive
        some = total > 0
        fraction = np.where(some, positive / np.where(some, total, 1.0), bins.rate)
        lower, upper = np.quantile(fraction, (rule.tail, 1 - rule.tail), axis=0)
        return lower, upper
    cells = merged_cells(table, keep=starts)
    drawn = cells.draw(cells.p, rule.replicates, random) * cells.weight
    inner = np.searchsorted(cells.starts, starts)
    fraction = np.add.reduceat(drawn, inner, axis=1) / bins.weight
    return band_of_drawn(fraction, rule.level, rule.everywhere)


def _bootstrap_weights(weight: Array, square: Array, n: int, random: np.random.Generator) -> Array:
    """n draws of each bin's weight in a Poisson bootstrap of its rows.

    A draw is unit·Poisson(mean), with unit and mean such that its mean is Σw and its variance Σw².
    """
    some = weight > 0
    mean = np.where(some, np.minimum(effective_rows(weight, square), LARGEST_MEAN), 0.0)
    unit = weight / np.where(some, mean, 1.0)
    return unit * random.poisson(mean, size=(n, len(mean)))


# --- Labels drawn at random from given probabilities, for the bands of curves ---------------------
# A table of many scores is merged to about two thousand cells first, so that a thousand draws for a
# million rows take a second.


#: cells of equal weight, and as many of equal width, that a larger table is merged to
HALF = 1000
#: no place has a scale below this part of the largest, or a rare curve there would widen all
LEAST_SCALE = 0.02
#: NumPy's samplers refuse larger numbers; the fraction of so many rows hardly varies anyway
LARGEST = 1e15


@dataclass(frozen=True)
class MergedCells:
    """Neighbouring scores taken together, without their labels.

    ``p`` is the mean score of each cell, ``weight`` and ``square`` its Σw and Σw², ``starts`` its
    first score's place in the table.
    """

    p: Array
    weight: Array
    square: Array
    starts: Index

    @property
    def effective(self) -> Array:
        """(Σw)²/Σw² (Kish)."""
        return effective_rows(self.weight, self.square)

    def draw(self, probability: Array, n: int, random: np.random.Generator) -> Array:
        """n draws of each cell's fraction of positives, shape (n, cells).

        A cell of effective size m draws Binomial(m)/m; an m that is no whole number is rounded
        up or down at random, in the right proportion.
        """
        size = np.minimum(self.effective, LARGEST)
        whole = np.floor(size * (1 + 1e-12))
        part = np.clip(size - whole, 0.0, 1.0)
        trials = np.broadcast_to(whole, (n, len(size)))
        if part.any():
            trials = whole + (random.random((n, len(size))) < part)
        hits = random.binomial(trials.astype(np.int64), np.clip(probability, 0.0, 1.0))
        return np.asarray(hits / trials, dtype=np.float64)


def merged_cells(table: ScoreTable, keep: Index | None = None, half: int = HALF) -> MergedCells:
    """At most 2·half cells, and those that begin in ``keep``; of few scores, a cell for each.

    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.9], [1, 0, 0], [0, 2, 1])
    >>> merged_cells(table).p.tolist(), merged_cells(table, half=1).p.round(3).tolist()
    ([0.1, 0.2, 0.9], [0.35])
    """
    starts = np.arange(len(table))
    if len(table) > 2 * half:
        kept = starts[:0] if keep is None else keep
        starts = spread_places(table.scores, table.weight, half, kept)
    weight = np.add.reduceat(table.weight, starts)
    square = np.add.reduceat(squares(table), starts)
    return MergedCells(run_means(table, starts), weight, square, starts)


def spread_places(x: Array, weight: Array, parts: int, also: Index) -> Index:
    """Places of the sorted x: the first, where parts of equal weight or width end, and others."""
    inner = np.arange(1, parts) / parts
    mass = np.cumsum(weight)
    by_mass = np.searchsorted(mass, mass[-1] * inner)
    by_width = np.searchsorted(x, x[0] * (1 - inner) + x[-1] * inner)
    return starts_at(np.concatenate((by_mass, by_width, also)), len(x))


def band_of_drawn(values: Array, level: float, everywhere: bool) -> Band:
    """The band that holds a share ``level`` of simulated curves, each a row of ``values``.

    Its ends are percentiles at each place. With ``everywhere`` the share is that of whole curves.
    Values then become angles arcsin √value, so that places near 0 and 1 are like others. Half of
    the curves give the spread above and below the median at each place. The band is widened in
    proportion to it until it holds ``level`` of the other half.

    >>> drawn = np.random.default_rng(0).random((1000, 20))
    >>> low, high = band_of_drawn(drawn, 0.9, True)
    >>> round(float(((drawn >= low) & (drawn <= high)).all(axis=1)[500:].mean()), 2)
    0.9
    """
    if not everywhere:
        tail = (1.0 - level) / 2.0
        lower, upper = np.quantile(values, (tail, 1.0 - tail), axis=0)
        return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    angle = np.arcsin(np.sqrt(np.clip(values, 0.0, 1.0)))
    # scales from one half and sizes from the other: to its own scales a curve is never far off
    first, second = np.array_split(angle, 2) if len(angle) > 1 else (angle, angle)
    middle = np.median(first, axis=0)
    ends, reach = [], np.zeros(len(second))
    for side in (-1.0, 1.0):
        scale = np.sqrt((np.maximum(side * (first - middle), 0.0) ** 2).mean(axis=0))
        scale = np.maximum(scale, LEAST_SCALE * scale.max())
        some = np.where(scale > 0.0, scale, 1.0)
        reach = np.maximum(reach, (side * (second - middle) / some).max(axis=1))
        ends.append(side * scale)
    # the data are one more curve of this kind, so that one more is held than the share says
    held = min(math.ceil(level * (len(reach) + 1)), len(reach))
    size = float(np.partition(reach, held - 1)[held - 1]) * (1.0 + 1e-12)
    lower, upper = (np.clip(middle + size * end, 0.0, np.pi / 2.0) for end in ends)
    return np.sin(lower) ** 2, np.sin(upper) ** 2


# --- The options of a reliability curve, checked when made ----------------------------------------


#: the histogram has at least this many cells
CELLS = 20
AXES = ("probability", "logit")
#: where a band may hold
BANDS_HOLD = ("simultaneous", "pointwise")
#: for each curve the bands by the names that a caller may use; the first is the default
CURVES: dict[str, dict[str, str]] = {
    "binned": {
        "exact": "exact",
        "bootstrap": "bootstrap",
        "consistency": "consistency",
        "confidence": "exact",
    },
    "isotonic": {"consistency": "consistency", "confidence": "confidence"},
    "smooth": {"consistency": "consistency", "confidence": "confidence"},
    "belt": {"confidence": "confidence"},
}
#: bands that hold place by place only, and what to do
ONLY_POINTWISE: dict[tuple[str, str | None], str] = {
    ("binned", "bootstrap"): "take band='exact'.",
    ("smooth", "confidence"): "it does not know what the kernel flattens. Take curve='isotonic'.",
}


@dataclass(frozen=True)
class CurveOptions:
    """The options of a curve. ``band`` is the one in use: "auto" and synonyms are resolved.

    ``bands`` is where it holds; "auto" is "simultaneous" for consistency bands. With
    ``bins="auto"``, ``binning`` is "mass".
    """

    bins: Bins = 10
    binning: str = "mass"
    band: str | None = "auto"
    level: float = 0.95
    replicates: int = 1000
    random_state: Any = 0
    curve: str = "binned"
    sigma: float | None = None
    axes: str = "probability"
    bands: str | None = "auto"

    def __post_init__(self) -> None:
        count = check_bin_count(self.bins)
        check_whole("replicates", self.replicates, 1)
        check_choice("binning", self.binning, BINNINGS)
        if count == AUTO:
            object.__setattr__(self, "binning", "mass")
        check_choice("curve", self.curve, tuple(CURVES))
        check_choice("axes", self.axes, AXES)
        bands = CURVES[self.curve]
        where = "" if self.curve == "binned" else f" where curve={self.curve!r}"
        check_choice("band", self.band, ("auto", *bands, None), where)
        if self.band is not None:
            object.__setattr__(self, "band", bands.get(self.band, next(iter(bands))))
        check_choice("bands", self.bands, ("auto", *BANDS_HOLD, None))
        known = ONLY_POINTWISE.get((self.curve, self.band))
        if self.bands == "simultaneous" and known:
            raise ParameterError(
                f"bands must be 'pointwise' where curve={self.curve!r} and band={self.band!r}, but "
                f"'simultaneous' came: {known}"
            )
        if self.bands == "pointwise" and self.curve == "belt":
            raise ParameterError(
                "bands must be 'simultaneous' where curve='belt', but 'pointwise' came: the belt "
                "holds everywhere at once. Take curve='smooth'."
            )
        whole = self.band == "consistency" or self.curve == "belt"
        hold = "simultaneous" if whole else "pointwise"
        chosen = self.bands if self.bands in BANDS_HOLD else hold
        object.__setattr__(self, "bands", None if self.band is None else chosen)
        check_number("level", self.level, 0.0, 1.0)
        sigma = self.sigma
        if sigma is None:
            return
        number = isinstance(sigma, Real) and not isinstance(sigma, bool)
        if not number or not 1e-6 <= sigma <= 20:
            raise ParameterError(
                f"sigma must be a number of log-odds from 1e-6 to 20, or None, but {sigma!r} came."
            )
        if self.curve != "smooth":
            raise ParameterError(
                f"sigma must be left out unless curve='smooth', but {sigma!r} came with "
                f"curve={self.curve!r}."
            )

    @property
    def everywhere(self) -> bool:
        """Whether the band holds everywhere at once."""
        return self.bands == "simultaneous"

    @property
    def cells(self) -> int:
        """How many cells the histogram has; a bin of equal width holds a whole number of them."""
        parts = self.curve == "binned" and self.binning == "width" and self.axes == "probability"
        whole = self.bins if parts and not isinstance(self.bins, str) else 1
        return whole * math.ceil(CELLS / whole)

    @property
    def tail(self) -> float:
        """The probability beyond the band at each end."""
        return (1 - self.level) / 2


def check_choice(name: str, value: Any, words: tuple[str | None, ...], where: str = "") -> None:
    """A word, or None, from a short list."""
    if not any(type(value) is type(word) and value == word for word in words):
        allowed = ", ".join(repr(word) for word in words)
        hint = did_you_mean(value, words)
        raise ParameterError(f"{name} must be one of {allowed}{where}, but {value!r} came.{hint}")


# --- The frozen value of a reliability curve: all that a diagram or a page needs to show it -------


#: what the groups of a curve are called
GROUPS = {
    "binned": "bin{} of equal {}",
    "isotonic": "isotonic block{}",
    "smooth": "point{} of a smooth line",
    "belt": "point{} of a calibration belt",
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
    curve : {"binned", "isotonic", "smooth", "belt"}
    axes : {"probability", "logit"}
        The scale that the histogram's cells were made for.
    inner_lower, inner_upper : arrays of shape (l,), or None
        The band of 80 % inside that of a calibration belt.

    Examples
    --------
    >>> from calibrant.diagrams.curve import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.15, 0.15, 0.15, 0.7], binning="width")
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
    inner_lower: Array | None = None
    inner_upper: Array | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them; the inner band only where there is one."""
        found = super().to_dict()
        if self.inner_lower is None:
            del found["inner_lower"], found["inner_upper"]
        return found

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
        columns = [["predictions", *self._group_names(places)]]
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

    def _group_names(self, places: int) -> list[str]:
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


# --- A fitted map as a line to draw: sampled between its knots, with its jumps as jumps -----------


#: log-odds axes show at least this
ODDS = (0.001, 0.999)
#: a smaller jump at a knot is only rounding
BEND = 1e-6
#: of more knots, which no picture could show, only every second, third, … is kept
MOST_KNOTS = 5000
#: the map is read on both sides of a knot, this part of the range away from it: closer values
#: may be the same after the rounding of a link
ASIDE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class MapCurve(PlainFields, Frozen):
    """A fitted map as a polygon over the axis of its scores.

    Attributes
    ----------
    x : array of shape (m,)
        Ascending scores; a knot stands twice, once for either side.
    p : array of shape (m,)
        The map there; at a jump first the value before, then the value after it.
    lower, upper : arrays of shape (m,), or None
        The band of an `Interval` map.
    level : float or None
        The level of that band, where it has one.
    knots : array of shape (k,)
        Where the pieces of a piecewise map meet, inside the range shown.
    domain : {"probability", "score"}
        Whether the map reads probabilities, or scores on an axis of their own.
    axes : {"probability", "logit"}
        The scale on which the points are spread evenly.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> line = map_curve(Piecewise.step([0.5], [0.25, 0.75]), n=2)
    >>> line
    MapCurve(probability from 0 to 1, 1 knot)
    >>> line.x.tolist(), line.p.tolist()
    ([0.0, 0.5, 0.5, 1.0], [0.25, 0.25, 0.75, 0.75])
    """

    x: Array
    p: Array
    lower: Array | None
    upper: Array | None
    level: float | None
    knots: Array
    domain: str
    axes: str = "probability"

    @property
    def frame(self) -> Frame:
        """The probabilities to show: all of them, or on log-odds axes the range of the map."""
        if self.axes == "probability":
            return Frame(0.0, 1.0)
        heights = self.p[(self.p > 0) & (self.p < 1)]
        ends = self.x[[0, -1]] if self.domain == "probability" else self.knots[:0]
        seen = np.concatenate((heights, ends))
        low, high = (seen.min(), seen.max()) if len(seen) else (0.5, 0.5)
        return Frame(*round_odds(float(low), float(high)), "logit")

    @property
    def corners(self) -> tuple[Array, Array]:
        """The knots where the map bends and does not jump, as points."""
        at = np.searchsorted(self.x, self.knots)
        bends = np.abs(self.p[at] - self.p[np.minimum(at + 1, len(self.p) - 1)]) <= BEND
        return self.knots[bends], self.p[at[bends]]

    def __repr__(self) -> str:
        plural = "s" if len(self.knots) != 1 else ""
        band = ", with a band" if self.lower is not None else ""
        return (
            f"MapCurve({self.domain} from {self.x[0]:g} to {self.x[-1]:g}, "
            f"{len(self.knots)} knot{plural}{band})"
        )


def map_curve(
    fitted: Any,
    *,
    lo: float | None = None,
    hi: float | None = None,
    n: int = 512,
    axes: str = "probability",
) -> MapCurve:
    """The line of a fitted map: what probability it gives to which score.

    Parameters
    ----------
    fitted : Map, Fitted, or anything with ``map_``
        A map of one score.
    lo, hi : float, optional
        The range of scores; by default [0, 1] for maps of probabilities, and where the map moves
        for others (the knots, or σ from −6 to 6).
    n : int, default=512
        Number of points besides the knots, closer together near the ends.
    axes : {"probability", "logit"}, default="probability"
        With ``"logit"`` the points of a map of probabilities are spread evenly over the log-odds,
        by default from 0.001 to 0.999, or further where there are knots.

    Returns
    -------
    MapCurve

    Notes
    -----
    A map is taken to read probabilities if it reads logits of its score or if its knots lie in
    [0, 1]; a bare sigmoid of the score is taken to read margins. ``lo`` and ``hi`` overrule the
    range. A `Segmented` map is shown by its default. Above 5000 knots only every second, third, …
    is kept. O((n + k)·c) for k knots and a cost of c per score.

    Examples
    --------
    >>> import calibrant as cal
    >>> c = cal.Isotonic().fit([-2.0, -1.0, 1.0, 2.0], [0, 1, 0, 1])
    >>> map_curve(c)
    MapCurve(score from -1.8 to 1.8, 2 knots)
    """
    check_choice("axes", axes, AXES)
    fitted_map = map_to_draw(fitted)
    start, end = fitted_map.span
    domain = "probability" if start >= 0.0 and end <= 1.0 else "score"
    odds = axes == "logit" and domain == "probability"
    if odds:
        knots = fitted_map.knots(0.0, 1.0)
        knots = knots[(knots > 0.0) & (knots < 1.0)]
        start, end = round_odds(knots.min(initial=ODDS[0]), knots.max(initial=ODDS[1]))
    low, high = start if lo is None else lo, end if hi is None else hi
    for name, value in (("lo", low), ("hi", high)):
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ParameterError(f"{name} must be a finite number or None, but {value!r} came.")
    if not low < high:
        raise ParameterError(f"lo must be below hi, but {low:g} and {high:g} came.")
    low, high, n = float(low), float(high), check_whole("n", n, 2)
    knots = np.unique(fitted_map.knots(low, high))
    knots = knots[(knots > low) & (knots < high)]
    knots = knots[:: len(knots) // MOST_KNOTS + 1]
    grid = _grid(low, high, n, odds=odds)
    # a knot stands twice in the line, and the map is read on both of its sides
    aside = np.maximum(8 * np.spacing(np.abs(knots)), ASIDE * (grid[-1] / 2 - grid[0] / 2))
    at = np.clip(np.concatenate((knots - aside, knots + aside, grid)), grid[0], grid[-1])
    x = np.concatenate((knots, knots, grid))
    order = np.argsort(x, kind="stable")
    lower = upper = level = None
    if fitted_map.band is not None:
        low_map, high_map, level = fitted_map.band
        lower, upper = low_map(at)[order], high_map(at)[order]
    return MapCurve(x[order], fitted_map(at)[order], lower, upper, level, knots, domain, axes)


def map_to_draw(fitted: Any) -> Map:
    """The map of one score of a Map, a Fitted or anything with ``map_``; others are refused."""
    inner = fitted.rule if isinstance(fitted, Fitted) else getattr(fitted, "map_", fitted)
    if isinstance(inner, VectorMap):
        raise InputError(
            f"only a map of one score can be drawn, but {type(inner).__name__} maps one score per "
            "class. Draw its members, or the reliability diagram of one class."
        )
    if hasattr(fitted, "rule_") or (isinstance(inner, Rule) and not isinstance(inner, Map)):
        raise InputError(
            f"only a map of one score can be drawn, but {type(fitted).__name__} looks at more than "
            "the score. Draw the reliability diagram of its probabilities."
        )
    if not isinstance(inner, Map):
        raise InputError(
            "a Map, a Fitted or a fitted calibrator (with map_) must come, but "
            f"{type(fitted).__name__} came. Fit it first."
        )
    return inner


def _grid(lo: float, hi: float, n: int, *, odds: bool) -> Array:
    """n points from lo to hi: evenly over their log-odds, or dense near both ends, where maps of
    logits are steep."""
    if not odds:
        part = (1 - np.cos(np.linspace(0.0, np.pi, n))) / 2
        return np.clip(lo * (1 - part) + hi * part, lo, hi)
    if not 0.0 < lo < hi < 1.0:
        raise ParameterError(
            f"lo and hi must lie between 0 and 1 on log-odds axes, but {lo:g} and {hi:g} came."
        )
    ends = logit(np.array([lo, hi]))
    grid = sigmoid(np.linspace(ends[0], ends[1], n))
    return np.clip(grid, lo, hi)


# --- Panels: curves of several predictions or groups of rows, with the maps that made them --------


@dataclass(frozen=True, eq=False, repr=False)
class Panels(Frozen):
    """Reliability curves of several predictions or groups of rows, on common histogram cells.

    Attributes
    ----------
    names : tuple of str
    curves : tuple of Curve
        The points, bands and histogram of each.
    lines : tuple of MapCurve or None
        The fitted map drawn over each, where there is one; by default none.
    before : tuple of Curve
        The same for the scores before calibration, where they were given.
    reading : str
        How scores before that were no probabilities were read, in words.
    beside : MapCurve or None
        The fitted map where its scores have no place on the axes, such as margins.

    Examples
    --------
    >>> from calibrant.diagrams import reliability_panels
    >>> panels = reliability_panels([0, 0, 1, 1], {"a": [0.1, 0.4, 0.4, 0.9], "b": [0, 0, 1, 1]})
    >>> panels
    Panels(a, b; weight 4)
    >>> panels["b"].mean_p.tolist()
    [0.0, 1.0]
    """

    names: tuple[str, ...]
    curves: tuple[Curve, ...]
    lines: tuple[MapCurve | None, ...] = ()
    before: tuple[Curve, ...] = ()
    reading: str = ""
    beside: MapCurve | None = None

    def __post_init__(self) -> None:
        if not self.lines:
            object.__setattr__(self, "lines", (None,) * len(self.names))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Curve:
        """The curve of that name."""
        if name not in self.names:
            raise KeyError(name)
        return self.curves[self.names.index(name)]

    @property
    def frame(self) -> tuple[float, float]:
        """The part of [0, 1] that holds all points, all bands and nearly all predictions."""
        frame = frame_of((*self.curves, *self.before))
        return frame.low, frame.high

    def to_dict(self) -> dict[str, Any]:
        """Each curve and line as plain lists and numbers, by name, ready for JSON."""
        found: dict[str, Any] = {
            name: {"curve": curve.to_dict(), "map": None if line is None else line.to_dict()}
            for name, curve, line in zip(self.names, self.curves, self.lines, strict=True)
        }
        for name, curve in zip(self.names, self.before, strict=False):
            found[name]["before"] = curve.to_dict()
        return found

    def __repr__(self) -> str:
        return f"Panels({', '.join(self.names)}; weight {self.curves[0].total:g})"

    def __str__(self) -> str:
        pairs = zip(self.names, self.curves, strict=True)
        return "\n\n".join(f"{name}\n{curve}" for name, curve in pairs)


def compare_curves(
    y: Any,
    p: Any = None,
    *,
    raw: Any = None,
    fitted_map: Any = None,
    rule: CurveOptions | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Panels:
    """The panel of one prediction after and, where ``raw`` is given, before calibration, with the
    map that did it. Scores before that are points have no curve.

    >>> both = compare_curves([0, 1, 1], [0.4, 0.6, 0.6], raw=[-2.0, 0.5, 3.0])
    >>> both.before[0].mean_p.round(2).tolist(), both.reading
    ([0.12, 0.62, 0.95], 'through σ')
    """
    rule = CurveOptions() if rule is None else rule
    tables = [read_table(y, p, sample_weight, pos_label)]
    before = None if raw is None else read_raw(y, raw, sample_weight, pos_label)
    read = None if before is None else before.as_probabilities()
    tables += [] if read is None else [read]
    span = span_of(tables, rule.axes)
    after, *others = (curve_of(table, rule, span) for table in tables)
    shown = Panels((ONLY,), (after,), before=tuple(others))
    if before is None or before.scale.kind == "probabilities":
        return with_map(shown, fitted_map)
    line = None
    if fitted_map is not None:
        low, high = float(before.scores[0]), float(before.scores[-1])
        lo, hi = (low, high) if low < high else (None, None)
        line = map_curve(fitted_map, lo=lo, hi=hi)
    reading = IN_SHORT.get(before.scale.kind, "") if others else ""
    return replace(shown, reading=reading, beside=line)


def with_map(panels: Panels, fitted_map: Any) -> Panels:
    """The first panel with a fitted map over its curves, or beside them if it reads margins."""
    if fitted_map is None:
        return panels
    if not panels.before and map_curve(fitted_map, n=2).domain == "score":
        return replace(panels, beside=map_curve(fitted_map))
    frame = frame_of((*panels.curves, *panels.before))
    line = map_curve(fitted_map, lo=frame.low, hi=frame.high, axes=frame.axes)
    return replace(panels, lines=(line, *panels.lines[1:]))


def panels_of(
    tables: Mapping[str, ScoreTable],
    rule: CurveOptions,
    *,
    maps: Mapping[str, Any] | None = None,
    span: tuple[float, float] | None = None,
) -> Panels:
    """The panels of tables of probabilities; their histograms cover the span, or what they need."""
    span = span_of(tables.values(), rule.axes) if span is None else span
    curves = tuple(curve_of(table, rule, span) for table in tables.values())
    frame, overlaid = frame_of(curves), maps or {}
    lines = tuple(
        map_curve(overlaid[name], lo=frame.low, hi=frame.high) if name in overlaid else None
        for name in tables
    )
    return Panels(tuple(tables), curves, lines)
