"""What a reliability diagram shows, computed: its points, their bands, and the histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.data.frozen import Frozen
from calibrant.data.score_kinds import IN_SHORT, as_probabilities, kind_of
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.axes_view import cell_edges, span_of
from calibrant.diagrams.bins import histogram_of
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.predictions import read_raw
from calibrant.diagrams.shapes import shape_of
from calibrant.metrics.arguments import read_table
from calibrant.metrics.bin_sweep import Bins
from calibrant.other_words import in_our_words


@in_our_words
def reliability_curve(
    y: Any,
    p: Any = None,
    *,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "width",
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
    curve : {"binned", "isotonic", "smooth"}, default="binned"
        Predictions grouped in bins; the isotonic (CORP) curve, which needs no choice of bins; or
        a moving average.
    bins : int or "auto", default=10
        How many bins; those without predictions vanish. Only for ``"binned"``, like ``binning``.
        ``"auto"``: the bins of ``ece(bins="auto")``, of equal weight and as many as let fractions
        rise from bin to bin; ``binning`` plays no part then.
    binning : {"width", "mass"}, default="width"
        Bins of equal width on [0, 1], or of equal weight.
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

    Examples
    --------
    >>> curve = reliability_curve(["no", "yes", "yes"], [0.2, 0.8, 0.8], bins=2, band=None)
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
    shape = shape_of(table, rule)
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


@dataclass(frozen=True, eq=False)
class ComparedCurves(Frozen):
    """The curves of one diagram, on common histogram cells.

    Attributes
    ----------
    after : Curve
    before : Curve or None
    linked : bool
        Whether the scores before were no probabilities: margins are read through σ, percentages
        are divided by 100, and points have no curve.
    reading : str
        How they were read, in words.
    raw_range : tuple of two floats, or None
        The smallest and the largest score before, as they came.
    """

    after: Curve
    before: Curve | None = None
    linked: bool = False
    raw_range: tuple[float, float] | None = None
    reading: str = ""

    @property
    def curves(self) -> tuple[Curve, ...]:
        return (self.after,) if self.before is None else (self.after, self.before)


def compare_curves(
    y: Any,
    p: Any = None,
    *,
    raw: Any = None,
    rule: CurveOptions | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> ComparedCurves:
    """The reliability curves after and, where ``raw`` is given, before calibration.

    >>> both = compare_curves([0, 1, 1], [0.4, 0.6, 0.6], raw=[-2.0, 0.5, 3.0])
    >>> both.linked, both.before.mean_p.round(2).tolist()
    (True, [0.12, 0.62, 0.95])
    """
    rule = CurveOptions() if rule is None else rule
    after = read_table(y, p, sample_weight, pos_label)
    if raw is None:
        return ComparedCurves(curve_of(after, rule))
    before = read_raw(y, raw, sample_weight, pos_label)
    ends = float(before.scores[0]), float(before.scores[-1])
    kind = kind_of(before)
    linked, read = kind != "probabilities", as_probabilities(before)
    if read is None:
        return ComparedCurves(curve_of(after, rule), None, linked, ends)
    common = span_of([after, read], rule.axes)
    curves = curve_of(after, rule, common), curve_of(read, rule, common)
    return ComparedCurves(*curves, linked, ends, IN_SHORT.get(kind, ""))
