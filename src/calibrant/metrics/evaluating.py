"""`evaluate`: all measures at once, of arrays, of tables and of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from calibrant.data.labels import Labels
from calibrant.data.lazy_checks import CellsOption
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_lengths, read_scores
from calibrant.errors import InputError
from calibrant.metrics.all_measures import chosen_records, evaluate_classes, evaluation_of, measured
from calibrant.metrics.arguments import read_column, read_rows, read_table, refuse_positive
from calibrant.metrics.bin_sweep import Bins, check_bin_count
from calibrant.metrics.change_intervals import PairedCells
from calibrant.metrics.evaluating_lazy import evaluate_rows, read_frame, refuse_frames
from calibrant.metrics.evaluation_results import Evaluation, MulticlassEvaluation
from calibrant.metrics.group_errors import multicalibration_of_rows
from calibrant.metrics.group_results import Multicalibration
from calibrant.metrics.intervals import read_interval_options
from calibrant.metrics.probability_matrix import has_several
from calibrant.metrics.registry import CLASS_MEASURES, MEASURES
from calibrant.other_words import in_our_words

#: the level of the groups' intervals where the measures have no intervals
LEVEL = 0.95
FEATURES_NEED_ROWS = (
    "features belong to rows that are in memory, but a table or a frame beside label= came. Pass "
    "columns: y, p and features=frame[[...]]."
)
FEATURES_NEED_TWO = (
    "features are looked at for two classes, but p has more columns. Pass one class at a time: "
    "y == label, its column of p, and features."
)


@overload
def evaluate(
    y: ScoreTable,
    p: None = None,
    *,
    raw: Any = None,
    bins: Bins = 10,
    sample_weight: None = None,
    pos_label: None = None,
    classes: None = None,
    level: float | None = 0.95,
    replicates: int = 1000,
    weights: str = "importance",
    random_state: int | None = 0,
    measures: str | Sequence[str] | None = None,
) -> Evaluation: ...


@overload
def evaluate(
    y: Any,
    p: str,
    *,
    label: str,
    raw: str | None = None,
    bins: Bins = 10,
    sample_weight: str | None = None,
    pos_label: Any = None,
    classes: Any = None,
    level: float | None = 0.95,
    replicates: int = 1000,
    weights: str = "importance",
    random_state: int | None = 0,
    cells: CellsOption = "auto",
    measures: str | Sequence[str] | None = None,
) -> Evaluation: ...


@overload
def evaluate(
    y: Any,
    p: Any = None,
    *,
    label: None = None,
    raw: Any = None,
    bins: Bins = 10,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
    level: float | None = 0.95,
    replicates: int = 1000,
    weights: str = "importance",
    random_state: int | None = 0,
    measures: str | Sequence[str] | None = None,
    features: Any = None,
) -> Evaluation | MulticlassEvaluation: ...


@in_our_words
def evaluate(
    y: Any,
    p: Any = None,
    *,
    label: str | None = None,
    raw: Any = None,
    bins: Bins = 10,
    sample_weight: Any = None,
    pos_label: Any = None,
    classes: Any = None,
    level: float | None = 0.95,
    replicates: int = 1000,
    weights: str = "importance",
    random_state: int | None = 0,
    cells: CellsOption = "auto",
    measures: str | Sequence[str] | None = None,
    features: Any = None,
) -> Evaluation | MulticlassEvaluation:
    """All measures of a set of probabilities, and of the raw scores they were made from.

    Each measure comes with an interval. In 95 % of samples it should hold the value for unlimited
    data of the same kind; with fewer than ten positives or negatives it may hold it less often, and
    a note says so.

    Parameters
    ----------
    y : array-like of shape (n,), ScoreTable, or a frame beside ``label``
        Labels; or a table whose scores are the probabilities (then p is left out); or a frame of
        any size (DuckDB, Polars, Spark, Ibis, pandas, Arrow), whose columns p, raw and
        sample_weight then name.
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1).
    label : str, optional
        The column of labels of a frame.
    raw : array-like like p, or ScoreTable if y is one, optional
        The scores of the same rows before calibration. Where any lies outside [0, 1] they are read
        as margins, through σ (of k ≥ 3 classes: logits, through softmax); from 0 to more than 10
        and at most 100 as percentages. Of points (further from 0 than 100) only the order is
        judged. A note says so.
    bins : int or "auto", default=10
        Bins of equal width for all kinds of ECE and MCE; ``"auto"``: of equal weight, as many as
        let frequencies rise from bin to bin (see `ece`). A note tells how many.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    pos_label : label, optional
        What p is the probability of; default: the larger of the two labels. Not with (n, k).
    classes : array-like of labels, optional
        The class of each column, where y lacks some or the columns have another order.
    level : float in (0, 1) or None, default=0.95
        Confidence of the intervals; None leaves them out.
    replicates : int, default=1000
        Tables drawn for the intervals that need it (at least 100).
    weights : {"importance", "counts"}, default="importance"
        How intervals read a weight: as how much a row matters, so that a common factor changes
        nothing, or as a number of equal rows. Values are the same.
    random_state : int or None, default=0
        Seed of the drawing; None draws anew each time.
    cells : "auto", "exact" or even int, default="auto"
        Only for frames, see `table`: whether predictions are fetched one by one ("auto": up to a
        million different ones) or in cells. Either way all measures but the AUC are exact.
    measures : str or list of str, optional
        Which measures: names, or groups of them. ``"standard"`` is the default, ``"clinical"`` has
        observed/expected, Cox's slope and intercepts, ICI, E50, E90 and Emax, and ``"all"`` has
        every one. The table has them in its own order.
    features : frame or array of shape (n, columns), optional
        Columns of the same rows, in memory: ``groups`` of the result then tells where predictions
        are wrong (see `calibrant.metrics.multicalibration`). Two classes only.

    Returns
    -------
    Evaluation, or MulticlassEvaluation for k ≥ 3 columns
        Frozen; prints as a table (plain, rich, or HTML in a notebook).

    Notes
    -----
    What the data do not allow is left out with a note: ``auc`` with one class, ``calbin`` with
    weights that are not whole (or more than 50 million cases), ``calibration_slope`` where there is
    no line. An infinite log loss stays, with a note that says how many cases caused it. O(N log N)
    for the table, then O(D) (``calbin``: O(n log D)); for k ≥ 3 classes k times that, a column at a
    time. Their ``auc`` is the mean over the classes that came.

    Intervals: Student's for means (log loss, Brier), corrected for skewness [1]_; Wilson's for
    accuracy and, with DeLong's variance [2]_, for AUC; for ``ece`` from the normal distribution of
    the bins' gaps, with what chance adds taken off the lower end; for ``mce`` from binomial
    limits of all bins; for observed/expected all ratios that a score test does not refuse; Wald's
    for slope and intercepts. For the measures of isotonic regression, for ``calbin`` and for those
    of the smooth curve they come from tables or curves drawn again, O(replicates · min(D, 2000)),
    if there are ten cases of each class. The order of rows does not matter. Where labels, p and
    ``raw`` are columns of the same rows, the change has an interval as well. "better" and "worse"
    are said where that interval leaves out 0 or, where there is none (two tables, MCE, CalBin), the
    intervals before and after do not overlap; else the verdict is "unclear". Where good is near a
    target, all values that the intervals allow must agree about which is nearer. With
    ``level=None`` it is just "lower" or "higher".

    Frames are grouped where they are. More than a million different predictions are grouped by
    cell, and up to three passes look into the cells that decide the isotonic fit. ``calbin`` is
    then left out, and so are slope, intercepts and the smooth curve; ``auc`` has an error whose
    bound a note tells, and the others are exact. Memory here is O(cells).

    References
    ----------
    .. [1] N. Johnson, "Modified t tests and confidence intervals for asymmetrical populations",
       1978, doi:10.1080/01621459.1978.10480051.
    .. [2] E. DeLong, D. DeLong, D. Clarke-Pearson, "Comparing the areas under two or more
       correlated receiver operating characteristic curves", 1988, doi:10.2307/2531595.

    Examples
    --------
    >>> e = evaluate([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.9])
    >>> round(e.after["brier"], 4), e.after["auc"]
    (0.0925, 1.0)
    >>> print(evaluate([0, 0, 1, 1], [0.2, 0.4, 0.4, 0.9], raw=[-2.0, 0.5, 1.0, 3.0], level=None))
    measure            good is  before   after  change
    ─────────────────  ───────  ──────  ──────  ──────
    log loss           smaller  0.3657  0.4389  higher
    Brier score        smaller  0.1191  0.1425  higher
    ECE                smaller  0.2645  0.1250  lower
    MCE                smaller  0.6225  0.2000  lower
    RMSE               smaller  0.3451  0.3775  higher
    AUC                larger   1.0000  0.8750  lower
    accuracy           larger   0.7500  0.7500  same
    CalBin             smaller  0.2645  0.1250  lower
    calibration loss   smaller  0.1191  0.0175  lower
    miscalibration     smaller  0.1191  0.0175  lower
    discrimination     larger   0.2500  0.1250  lower
    observed/expected  near 1   0.8246  1.0526  higher
    4 rows, 2 of them positive; 3 different predictions, 4 before
    note: raw scores lie outside [0, 1] and were read as margins, through the sigmoid
    note: calibration_slope was left out: a threshold tells the classes apart
    note: 4 different scores became 3 predictions: some now share one, AUC moved from 1 to 0.875
    >>> p = np.linspace(0.05, 0.95, 400).round(2)
    >>> y = np.arange(400) * 37 % 100 < 100 * p**2
    >>> print(evaluate(y, p**2, raw=p))
    measure            good is  before     after     95 % interval  change                   by
    ─────────────────  ───────  ──────  ────────  ────────────────  ───────  ──────────────────
    log loss           smaller  0.5410    0.4591  0.4080 to 0.5254  better   −0.1215 to −0.0363
    Brier score        smaller  0.1815    0.1482  0.1293 to 0.1697  better   −0.0486 to −0.0172
    ECE                smaller  0.1700    0.0170  0.0000 to 0.0550  better   −0.2346 to −0.0781
    MCE                smaller  0.2449    0.0975  0.0000 to 0.6101  unclear                   –
    RMSE               smaller  0.4260    0.3850  0.3596 to 0.4120  better   −0.0600 to −0.0206
    AUC                larger   0.8418    0.8418  0.7974 to 0.8780  same       0.0000 to 0.0000
    accuracy           larger   0.7250    0.7825  0.7395 to 0.8201  better     0.0100 to 0.1044
    CalBin             smaller  0.1849    0.0253  0.0000 to 0.0461  better                    –
    calibration loss   smaller  0.0339  7.05e-04  0.0000 to 0.0042  better   −0.0530 to −0.0129
    miscalibration     smaller  0.0356    0.0024  0.0000 to 0.0064  better   −0.0574 to −0.0083
    discrimination     larger   0.0753    0.0753  0.0475 to 0.0956  same      −0.0125 to 0.0126
    observed/expected  near 1   0.6600    1.0382  0.9202 to 1.1650  better     0.3288 to 0.4275
    calibration slope  near 1   1.2314    0.9525  0.7257 to 1.1793  unclear  −0.3251 to −0.2186
    400 rows, 132 of them positive; 91 different predictions, 91 before
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]
    >>> print(evaluate(["ape", "bee", "cat", "bee"], p, level=0.9))
    measure         good is   value     90 % interval
    ──────────────  ───────  ──────  ────────────────
    log loss        smaller  0.5737  0.0364 to 1.4755
    Brier score     smaller  0.2950  0.0000 to 0.9267
    RMSE            smaller  0.3136  0.0000 to 0.5558
    top-label ECE   smaller  0.3250  0.0000 to 0.5939
    top-label MCE   smaller  0.4000  0.0000 to 0.7500
    class-wise ECE  smaller  0.2667  0.0000 to 0.3851
    class-wise MCE  smaller  0.7000  0.0000 to 0.8500
    AUC             larger   1.0000  0.4964 to 1.0000
    accuracy        larger   0.7500  0.3562 to 0.9421
    CalBin          smaller  0.2667                 –
    4 rows; 3 classes, from 1 to 2 each
    largest ECE of a class: 0.3500, 'bee'
    note: calbin has no interval for several classes
    """
    bins = check_bin_count(bins)
    options = read_interval_options(level, replicates, weights, random_state)
    if features is not None and (label is not None or isinstance(y, ScoreTable)):
        raise InputError(FEATURES_NEED_ROWS)
    if label is not None:
        wanted = chosen_records(MEASURES, measures)
        frame = read_frame(y, p, label, raw, sample_weight, pos_label, classes)
        return evaluate_rows(*frame.apart(), bins, options, cells, wanted)
    refuse_frames(y, p, cells)
    several, p = has_several(y, p)
    if several:
        refuse_positive(pos_label)
        if features is not None:
            raise InputError(FEATURES_NEED_TWO)
        wanted = chosen_records(CLASS_MEASURES, measures)
        return evaluate_classes(y, p, raw, bins, sample_weight, classes, options, wanted)
    wanted = chosen_records(MEASURES, measures)
    pair: PairedCells | None = None
    groups: Multicalibration | None = None
    if isinstance(y, ScoreTable):
        table = read_table(y, p, sample_weight, pos_label, classes)
        scored = None if raw is None else _raw_table(table, raw)
    else:
        rows = read_rows(y, p, sample_weight, pos_label, classes)
        table, scored = ScoreTable.from_rows(rows), None
        if raw is not None:
            before = _raw_rows(rows, raw, classes)
            pair = PairedCells.of_rows(rows, before.scores)
            scored = ScoreTable.from_rows(before)
        if features is not None:
            groups = multicalibration_of_rows(
                rows, features, None, level or LEVEL, replicates, random_state, weights
            )
    old = None if scored is None else measured(scored, bins, wanted)
    found = evaluation_of(measured(table, bins, wanted), old, bins, options, pair)
    return found if groups is None else replace(found, groups=groups)


def _raw_rows(rows: Rows, raw: Any, classes: Any) -> Rows:
    labels = Labels(rows.positive, rows.classes, rows.pos_label)
    scores = read_column(raw, labels, classes, name="raw", read=read_scores)
    check_lengths(y=len(rows.scores), raw=len(scores))
    return replace(rows, scores=scores)


def _raw_table(table: ScoreTable, raw: Any) -> ScoreTable:
    if not isinstance(raw, ScoreTable):
        raise InputError(
            f"raw must be a ScoreTable beside a table, but {type(raw).__name__} came. Pass labels, "
            "probabilities and raw scores as columns of the same rows, or two tables."
        )
    mine, theirs = (np.array([t.total_negative, t.total_positive]) for t in (table, raw))
    if not np.allclose(mine, theirs, rtol=1e-9, atol=0.0):
        raise InputError(
            "raw must be the table of the same rows: it holds weights "
            f"{theirs[0]:.10g} negative and {theirs[1]:.10g} positive, the other table "
            f"{mine[0]:.10g} and {mine[1]:.10g}."
        )
    return raw
