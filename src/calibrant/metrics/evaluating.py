"""`evaluate`: all measures at once, of arrays, of tables and of frames."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, overload

import numpy as np

from calibrant.array_types import Array
from calibrant.data.columns import column_names, is_lazy_frame, plain, reorder_columns
from calibrant.data.door import read_scores
from calibrant.data.frozen import Frozen
from calibrant.data.lazy import CellsOption, LazyRows, Names, frame_beside_label, read_lazy
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, refuse_foreign_names
from calibrant.metrics.chance import IntervalOptions, read_interval_options
from calibrant.metrics.class_frames import ClassFrame, read_class_frame
from calibrant.metrics.frames import measured_rows, paired_cells
from calibrant.metrics.groups import Multicalibration, multicalibration_of_rows
from calibrant.metrics.headlines import ClassLook, FirstLook, class_look, first_look
from calibrant.metrics.intervals import (
    ChangeIntervals,
    ClassIntervals,
    MeasureIntervals,
    PairedCells,
    RowPredictions,
    weight_note,
)
from calibrant.metrics.measures import (
    CLASS_MEASURES,
    MEASURES,
    SAME_ORDER,
    Measure,
    Measured,
    Records,
    Verdict,
    chosen_records,
    measure_all,
    measure_table,
)
from calibrant.metrics.point_measures import ClassFacts
from calibrant.metrics.tables import (
    Bins,
    bins_note,
    check_bin_count,
    has_several,
    read_classes,
    read_column,
    read_raw_classes,
    read_rows,
    read_table,
)
from calibrant.result_tables import (
    PrintsAsTable,
    ResultTable,
    TableColumn,
    TableRow,
    json_ready,
    rows_in_words,
    short_value,
    shown_value,
)

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
    p: list[str] | tuple[str, ...] | Mapping[Any, str],
    *,
    label: str,
    bins: Bins = 10,
    sample_weight: str | None = None,
    classes: Any = None,
    level: float | None = 0.95,
    replicates: int = 1000,
    weights: str = "importance",
    random_state: int | None = 0,
    cells: CellsOption = "auto",
    measures: str | Sequence[str] | None = None,
) -> MulticlassEvaluation: ...


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


@refuse_foreign_names
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
        any size (DuckDB, Polars, Spark, Dask, Ibis, pandas, Arrow), whose columns p, raw and
        sample_weight then name.
    p : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
        Predicted probabilities of the positive class, a binary predict_proba, or one column for
        each of k ≥ 3 classes in sorted order, each row a distribution (sum within 0.001 of 1). Of a
        frame a column, or for k ≥ 3 classes a list of columns, or a dict from classes to columns;
        then there is no ``raw``, and no intervals.
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
        Which measures: names, or groups of them. ``"clinical"`` has observed/expected, Cox's slope
        and intercepts, ICI, E50, E90 and Emax, ``"all"`` has every one. The table has them in its
        own order. By default those of ``"standard"`` are computed, and the table shows five.
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
    measure      good is  before   after  change
    ───────────  ───────  ──────  ──────  ──────
    log loss     smaller  0.3657  0.4389  higher
    Brier score  smaller  0.1191  0.1425  higher
    ECE          smaller  0.2645  0.1250  lower
    AUC          larger   1.0000  0.8750  lower
    4 rows, 2 of them positive; 3 different predictions, 4 before
    8 more measures: measures="all"
    note: raw scores lie outside [0, 1] and were read as margins, through the sigmoid
    note: calibration_slope was left out: a threshold tells the classes apart
    note: 4 different scores became 3 predictions: some now share one, AUC moved from 1 to 0.875
    >>> p = np.linspace(0.05, 0.95, 400).round(2)
    >>> y = np.arange(400) * 37 % 100 < 100 * p**2
    >>> print(evaluate(y, p**2, raw=p))
    measure            good is  before   after     95 % interval  change                   by
    ─────────────────  ───────  ──────  ──────  ────────────────  ───────  ──────────────────
    log loss           smaller  0.5410  0.4591  0.4080 to 0.5254  better   −0.1215 to −0.0363
    Brier score        smaller  0.1815  0.1482  0.1293 to 0.1697  better   −0.0486 to −0.0172
    ECE                smaller  0.1700  0.0170  0.0000 to 0.0550  better   −0.2346 to −0.0781
    AUC                larger   0.8418  0.8418  0.7974 to 0.8780  same       0.0000 to 0.0000
    calibration slope  near 1   1.2314  0.9525  0.7257 to 1.1793  unclear  −0.3251 to −0.2186
    400 rows, 132 of them positive; 91 different predictions, 91 before
    8 more measures: measures="all"
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]
    >>> print(evaluate(["ape", "bee", "cat", "bee"], p, level=0.9))
    measure         good is   value     90 % interval
    ──────────────  ───────  ──────  ────────────────
    log loss        smaller  0.5737  0.0364 to 1.4755
    Brier score     smaller  0.2950  0.0000 to 0.9267
    top-label ECE   smaller  0.3250  0.0000 to 0.5939
    class-wise ECE  smaller  0.2667  0.0000 to 0.3851
    AUC             larger   1.0000  0.4964 to 1.0000
    4 rows; 3 classes, from 1 to 2 each
    largest ECE of a class: 0.3500, 'bee'
    5 more measures: measures="all"
    """
    bins = check_bin_count(bins)
    options = read_interval_options(level, replicates, weights, random_state)
    if features is not None and (label is not None or isinstance(y, ScoreTable)):
        raise InputError(FEATURES_NEED_ROWS)
    if label is not None and isinstance(p, (list, tuple, Mapping)):
        if pos_label is not None or raw is not None:
            given = "pos_label" if raw is None else "raw"
            raise InputError(
                f"{given} is for two classes where y is a frame, but a column for each of several "
                "classes came. Leave it out."
            )
        seen = read_class_frame(y, p, label, sample_weight, classes, bins, cells)
        return evaluate_class_frame(seen, chosen_records(CLASS_MEASURES, measures))
    if label is not None:
        wanted = None if measures is None else chosen_records(MEASURES, measures)
        frame = read_frame(y, p, label, raw, sample_weight, pos_label, classes)
        return evaluate_rows(*frame.score_and_raw(), bins, options, cells, wanted)
    if isinstance(p, str) or is_lazy_frame(y):
        raise InputError(
            "label must name the column of labels where y is a lazy frame or p names a column: "
            'evaluate(frame, "probability", label="y").'
        )
    if not isinstance(cells, str) or cells != "auto":
        raise InputError(f"cells goes with a frame and label=, but {cells!r} came without them.")
    raw = reorder_columns(raw, column_names(p))
    several, p = has_several(y, p, pos_label)
    if several:
        if features is not None:
            raise InputError(FEATURES_NEED_TWO)
        wanted = None if measures is None else chosen_records(CLASS_MEASURES, measures)
        return evaluate_classes(y, p, raw, bins, sample_weight, classes, options, wanted)
    records = chosen_records(MEASURES, measures)
    pair = groups = None
    if isinstance(y, ScoreTable):
        table = read_table(y, p, sample_weight, pos_label, classes)
        scored = None if raw is None else _table_of_raw(table, raw)
    else:
        rows = read_rows(y, p, sample_weight, pos_label, classes)
        table, scored = ScoreTable.from_rows(rows), None
        if raw is not None:
            scores = read_column(raw, rows, classes, name="raw", read=read_scores)
            pair = PairedCells.of_rows(rows, scores)
            scored = ScoreTable.from_rows(replace(rows, scores=scores))
        if features is not None:
            groups = multicalibration_of_rows(
                rows, features, None, level or LEVEL, replicates, random_state, weights
            )
    old = None if scored is None else measure_table(scored, bins, records)
    found = evaluation_of(measure_table(table, bins, records), old, bins, options, pair)
    return replace(found, groups=groups, brief=measures is None)


def _table_of_raw(table: ScoreTable, raw: Any) -> ScoreTable:
    """The table of raw scores; refused if it cannot be of the same rows."""
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


APART = "predictions and raw scores were grouped apart, not as pairs"


def read_frame(
    frame: Any, p: Any, label: Any, raw: Any, sample_weight: Any, pos_label: Any, classes: Any
) -> LazyRows:
    """The rows of a frame, read lazily. p, label, raw and sample_weight name its columns."""
    lazy = frame_beside_label(frame)
    names = {"p": p, "label": label, "raw": raw, "sample_weight": sample_weight}
    for role, name in names.items():
        if not isinstance(name, str) and (name is not None or role in ("p", "label")):
            raise InputError(
                f"{role} must be the name of a column of the frame, but {type(name).__name__} "
                "came. Name a column; arrays go with an array of labels in place of y."
            )
    asked = Names(p, label, sample_weight, raw=raw)
    return read_lazy(lazy, asked, pos_label=pos_label, classes=classes)


def evaluate_rows(
    rows: LazyRows,
    raw: LazyRows | None,
    bins: Bins,
    options: IntervalOptions | None,
    cells: CellsOption = "auto",
    records: Records | None = None,
) -> Evaluation:
    """`evaluate` for rows in an engine: of probabilities, and of raw scores if they came.

    It has the measures of the records, or the standard ones, and shows few of them.
    """
    wanted = chosen_records(MEASURES) if records is None else records
    new, old = measured_rows(rows, raw, bins, wanted, cells)
    pair = None
    if raw is not None and old is not None and options is not None and new.counted and old.counted:
        pair = paired_cells(rows, raw)
    made = evaluation_of(new, old, bins, options, pair, apart=APART)
    return replace(made, brief=records is None)


# --- What an evaluation says, in two sentences ----------------------------------------------------


def in_words(evaluation: Evaluation | MulticlassEvaluation) -> str:
    """What calibration changed, in two sentences: the size of the errors, then the ranking.

    Nothing where log loss or ECE were not asked for.

    >>> from calibrant.metrics import evaluate
    >>> e = evaluate([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.9], raw=[0.4, 0.5, 0.6, 0.7])
    >>> in_words(e).split(". ")[0]
    'Log loss fell from 0.518 to 0.338 (−35 %) and ECE from 0.400 to 0.275'
    """
    after, before = evaluation.after, evaluation.before
    ece = "ece" if "ece" in after else "top_label_ece"
    if "log_loss" not in after or ece not in after:
        return ""  # others were asked for
    word = "ECE" if ece == "ece" else "top-label ECE"
    if before is None or "log_loss" not in before:
        return f"Log loss is {short_value(after['log_loss'])}, {word} {short_value(after[ece])}."
    parts = [_log_loss_in_words(before["log_loss"], after["log_loss"])]
    parts[0] += f"{_ece_in_words(parts[0], word, before[ece], after[ece])}."
    if "auc" in after and "auc" in before:
        old, new = before["auc"], after["auc"]
        kept = abs(new - old) < SAME_ORDER
        parts.append(
            f"The ranking is kept: AUC {new:.3f}." if kept else f"AUC moved {from_to(old, new)}."
        )
    if math.isinf(after["log_loss"]):
        parts.append("A probability of 0 or 1 was wrong: smooth the map, or try another method.")
    elif evaluation.verdict("log_loss") == "worse":
        parts.append("This made the scores worse: keep them as they are, or try another method.")
    elif evaluation.verdict("log_loss") == "unclear":
        parts.append("The change of the log loss may be chance.")
    return " ".join(parts)


def _log_loss_in_words(old: float, new: float) -> str:
    """A phrase on the log loss, such as "Log loss fell from 0.5 to 0.4 (−20 %)"."""
    if math.isinf(new) or math.isinf(old):
        return f"Log loss went {from_to(old, new)}"
    if math.isclose(old, new, rel_tol=5e-4):
        return f"Log loss stayed at {short_value(new)}"
    change = f" ({100 * (new - old) / old:+.0f} %)".replace("-", "−") if old else ""
    return f"Log loss {'fell' if new < old else 'rose'} {from_to(old, new)}{change}"


def _ece_in_words(loss: str, word: str, old: float, new: float) -> str:
    """A phrase on the ECE that goes on after that on the log loss, the ``loss``."""
    stayed = short_value(old) == short_value(new)
    did = "stayed" if stayed else "fell" if new < old else "rose"
    ends = f"at {short_value(new)}" if stayed else from_to(old, new)
    if f" {did} " in loss or (" went " in loss and not stayed):
        return f" and {word} {ends}"
    return f", and {word} {'stayed' if stayed else 'went'} {ends}"


def from_to(old: float, new: float) -> str:
    """Two values as a phrase: "from 0.3 to 0.25"."""
    return f"from {short_value(old)} to {short_value(new)}"


def interval_fields(
    records: Records,
    new: MeasureIntervals | None,
    old: MeasureIntervals | None,
    changes: ChangeIntervals | None,
) -> tuple[Any, ...]:
    """The level, the intervals after and before, and the changes, for an evaluation; nothing
    without intervals.

    The change is the difference of every measure that is finite on both sides.
    """
    if new is None:
        return ()
    spans = _intervals(records, new)
    if old is None:
        return new.level, spans
    moved: Changes = {}
    for name, value in new.values.items():
        difference = value - old.values.get(name, math.nan)
        if not math.isfinite(difference):
            continue
        interval = records[name].change if spans and changes is not None else None
        span = None if interval is None else interval(changes)
        ends = (
            (None, None) if span is None else (min(span[0], difference), max(span[1], difference))
        )
        moved[name] = (difference, *ends)
    return new.level, spans, _intervals(records, old), moved


def _intervals(records: Records, of: MeasureIntervals) -> Spans:
    """The interval of each measure that has one, by name."""
    found: Spans = {}
    if not of.enough:
        return found
    for name, value in of.values.items():
        measure = records[name]
        if math.isfinite(value):
            span = of.redrawn(name) if measure.interval is None else measure.interval(of)
            if span is not None:
                found[name] = measure.cut_span(value, span)
    return found


def merge_notes(before: list[str], after: list[str]) -> list[str]:
    """The notes of both sides as one list. What holds for one side only says for which."""
    common = [note for note in after if note in before]
    sides = (("before", before), ("after", after))
    return common + [f"{side}: {n}" for side, notes in sides for n in notes if n not in common]


def evaluation_of(
    new: Measured,
    old: Measured | None,
    bins: Bins,
    options: IntervalOptions | None,
    pair: PairedCells | None = None,
    apart: str = "two tables do not tell which rows belong together",
) -> Evaluation:
    """The evaluation of measures after calibration, beside those before it if they came.

    It has intervals if there are options. ``pair`` are the rows of both, if they are known.
    ``apart`` says why the change has no intervals where there are none.
    """
    notes, old_notes = list(new.notes), [] if old is None else list(old.notes)
    found = before = changes = None
    if options is not None:
        found = new.intervals(bins, options)
        notes += found.notes
        if old is not None:
            before = old.intervals(bins, options)
            old_notes += before.notes
            if pair is not None:
                points = old.ranked.scale.kind == "points"  # of which only the order is compared
                p = pair.before if points else old.ranked.probability_of(pair.before)
                changes = ChangeIntervals(
                    RowPredictions(found, pair.after, pair.after, pair.positive),
                    RowPredictions(before, p, pair.before, pair.positive),
                    pair.rows(options.weights),
                )
    if old is not None:
        notes = _notes_on_both(new, old, merge_notes(old_notes, notes))
        if found is not None and changes is None:
            notes.append(f"the change has no intervals: {apart}")
    if options is not None:
        notes += weight_note(new.table, options.weights)
    made = Evaluation(
        new.values,
        None if old is None else old.values,
        new.table.total,
        new.table.total_positive,
        len(new.table),
        None if old is None else len(old.ranked),
        tuple(notes),
        *interval_fields(MEASURES, found, before, changes),
    )
    weights = "importance" if options is None else options.weights
    return with_look(made, first_look(new.ranked, weights))


def _notes_on_both(new: Measured, old: Measured, notes: list[str]) -> list[str]:
    """All notes of an evaluation: how raw scores were read, those of each side, and on new ties."""
    if read := old.scale.words():
        notes = [f"raw scores {read}", *notes]
    if not new.counted or len(new.table) >= len(old.ranked):
        return notes
    many = f"{'' if old.counted else 'at least '}{len(old.ranked):,}"
    ties = f"{many} different scores became {len(new.table):,} predictions: some now share one"
    before, after = old.values.get("auc"), new.values.get("auc")
    if before is not None and after is not None and before != after:
        ties = f"{ties}, AUC moved from {before:.4g} to {after:.4g}"
    return [*notes, TiesNote(ties)]


# --- several classes ----------------------------------------------------------------------------


def evaluate_classes(
    y: Any,
    p: Any,
    raw: Any,
    bins: Bins,
    sample_weight: Any,
    classes: Any,
    options: IntervalOptions | None,
    records: Records | None = None,
) -> MulticlassEvaluation:
    """`evaluate` for an (n, k) matrix of probabilities, and raw scores if they came."""
    seen = read_classes(y, p, sample_weight, classes)
    matrix = seen.matrix
    facts = ClassFacts(matrix, bins)
    wanted = chosen_records(CLASS_MEASURES) if records is None else records
    values, notes = measure_all(wanted, facts)
    if isinstance(bins, str) and "top_label_ece" in values:
        notes.append(bins_note(len(facts.top.weight), "top-label ECE is"))
    found = None if options is None else ClassIntervals(matrix, values, bins, options)
    old_values = before = changes = None
    if raw is not None:
        old, linked = read_raw_classes(y, seen, raw, sample_weight, classes)
        old_values, old_notes = measure_all(wanted, ClassFacts(old, bins))
        notes = merge_notes(old_notes, notes)
        if linked:
            read = "raw scores are no distributions and were read as logits, through softmax"
            notes = [read, *notes]
        if options is not None and found is not None:
            before = ClassIntervals(old, old_values, bins, options)
            changes = ChangeIntervals(found, before, found.rows)
    if options is not None and found is not None:
        notes += found.notes
        if found.enough:
            without = [name for name in values if CLASS_MEASURES[name].interval is None]
            notes += [f"{name} has no interval for several classes" for name in without]
            notes += weight_note(matrix, options.weights)
    made = MulticlassEvaluation(
        values,
        old_values,
        by_class(facts, matrix.class_weight),
        matrix.total,
        tuple(plain(label) for label in seen.labels),
        tuple(notes),
        *interval_fields(CLASS_MEASURES, found, before, changes),
    )
    weights = "importance" if options is None else options.weights
    return with_look(replace(made, brief=records is None), class_look(matrix, weights))


def evaluate_class_frame(seen: ClassFrame, records: Records) -> MulticlassEvaluation:
    """`evaluate` for several classes in a lazy frame, without intervals."""
    values, notes = measure_all(records, seen)
    if isinstance(seen.bins, str) and "top_label_ece" in values:
        notes.append(bins_note(len(seen.top.weight), "top-label ECE is"))
    notes.append("measures of several classes have intervals only where rows are in memory")
    pooled = [table for table in seen.tables if table.made]
    if pooled:
        notes.append(
            f"of {len(pooled)} classes predictions were grouped: AUC and errors of bins are those "
            f'of cells, with cells="exact" of each prediction'
        )
    labels = tuple(plain(label) for label in seen.labels)
    each = by_class(seen, seen.sums.classes)
    return MulticlassEvaluation(values, None, each, seen.sums.weight, labels, tuple(notes))


def by_class(facts: ClassFacts | ClassFrame, weight: Array) -> ByClass:
    """For each class: its weight, ECE, MCE and AUC."""
    return {
        "weight": tuple(weight.tolist()),
        "ece": tuple(groups.mean_gap() for groups in facts.each),
        "mce": tuple(groups.largest_gap() for groups in facts.each),
        "auc": tuple(facts.columns.areas),
    }


# --- What `evaluate` returns: values that print as a table ----------------------------------------


#: why a change is not called better
NO_PRAISE = (
    "no change is called better here, only lower or higher: something is wrong with the scores "
    "themselves, and even one constant for all rows would have smaller losses"
)


class TiesNote(str):
    """The note that different scores became equal predictions."""


# --- tables -------------------------------------------------------------------------------------

Spans = dict[str, tuple[float, float]]
Changes = dict[str, tuple[float, float | None, float | None]]
ByClass = dict[str, tuple[float | None, ...]]


class EvaluationTable(PrintsAsTable, Frozen):
    """What evaluations of two and of several classes share: the printed table and verdicts."""

    after: dict[str, float]
    before: dict[str, float] | None
    intervals: Spans | None
    intervals_before: Spans | None
    change: Changes | None
    level: float | None
    notes: tuple[str, ...]
    praise: bool
    look: Any
    brief: bool
    #: the measures by name, in the order of the table
    _measures: ClassVar[Mapping[str, Measure]]

    def _below(self) -> list[str]:
        """The lines under the table."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object; an infinite value is the string "inf", an unknown end null."""
        ends = ("difference", "low", "high")
        known = {name: json_ready(value) for name, value in self._items() if name != "brief"}
        if self.change is not None:
            pairs = self.change.items()
            known["change"] = {name: dict(zip(ends, parts, strict=True)) for name, parts in pairs}
        return known

    def verdict(self, name: str) -> Verdict:
        """Which way a measure went: "better", "worse", "unclear" or "same".

        "unclear" is what may be chance: the interval of the change holds 0 or, where the change has
        none, the intervals before and after overlap. Where no intervals were wanted it is "lower"
        or "higher", and so is what is not to be praised (``praise``).
        """
        if self.before is None or name not in self.before or name not in self.after:
            raise InputError(f"{name} must be known before and after to have changed.")
        old, new = (self.intervals_before or {}).get(name), (self.intervals or {}).get(name)
        word = self._measures[name].verdict(
            self.before[name],
            self.after[name],
            change=self._change_of(name),
            sides=None if old is None or new is None else (old, new),
            judged=self.level is not None,
        )
        if self.praise or word != "better":
            return word
        return "lower" if self.after[name] < self.before[name] else "higher"

    def _shown_notes(self) -> list[str]:
        """The lines of notes below the table; what is wrong with the predictions comes first."""
        first = [self.look.headline()] if self.look is not None and self.look.useless else []
        others = {name for name, one in self._measures.items() if self.brief and not one.brief}
        notes = [note for note in self.notes if not others & set(note.split(" ", 2)[:2])]
        known = len(others & self.after.keys())
        more = [f'{known} more measures: measures="all"'] if known else []
        return [*more, *(f"note: {note}" for note in [*first, *notes])]

    def _change_of(self, name: str) -> tuple[float, float] | None:
        """The interval of a measure's change; None where it has none."""
        _, low, high = (self.change or {}).get(name, (0.0, None, None))
        return None if low is None or high is None else (low, high)

    @property
    def _paired(self) -> bool:
        """Whether any change has an interval."""
        return any(low is not None for _, low, _ in (self.change or {}).values())

    def _table(self) -> ResultTable:
        rows = [
            TableRow((measure.label, measure.good, *self._cells(measure)), measure.meaning)
            for measure in self._shown
        ]
        return ResultTable(self._columns(), rows, self._below())

    @property
    def _shown(self) -> list[Measure]:
        """The measures that the table shows."""
        known = [measure for name, measure in self._measures.items() if name in self.after]
        return [measure for measure in known if measure.brief or not self.brief]

    def _columns(self) -> list[TableColumn]:
        """The columns of the table, and which of them a narrow terminal leaves out."""
        # a narrow terminal leaves out the interval of the change, then which way is good
        good = TableColumn("good is", "left", may_break=False, expendable=1)
        named = [TableColumn("measure", "left", may_break=False), good]
        ends = [TableColumn(f"{100 * (self.level or 0):g} % interval", expendable=2)]
        ends *= self.intervals is not None
        if self.before is None:
            return [*named, TableColumn("value", may_break=False), *ends]
        values = [TableColumn(title, may_break=False) for title in ("before", "after")]
        verdict = TableColumn("change", "left", may_break=False, coloured=True)
        return [*named, *values, *ends, verdict, *[TableColumn("by", expendable=0)] * self._paired]

    def _cells(self, measure: Measure) -> list[str]:
        """A line of the table: values, interval and verdict of a measure."""
        name = measure.name
        cells = [shown_value(self.after[name])]
        if self.intervals is not None:
            cells.append(_shown_span(self.intervals.get(name)))
        if self.before is None:
            return cells
        old = self.before.get(name)
        if old is None:  # only the predictions came with a table
            return ["–", *cells, "–", *["–"] * self._paired]
        cells = [shown_value(old), *cells, self.verdict(name)]
        return [*cells, _shown_span(self._change_of(name))] if self._paired else cells


def _shown_span(span: tuple[float, float] | None) -> str:
    """An interval as text; a dash where there is none."""
    return "–" if span is None else f"{shown_value(span[0])} to {shown_value(span[1])}"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(EvaluationTable):
    """The measures of a set of probabilities, after calibration and perhaps before it.

    Attributes
    ----------
    after : dict of str to float
        Value of each measure, by name. A measure that the data do not allow is left out, and a
        note says why.
    before : dict of str to float, or None
        The same for the raw scores, if they were given.
    weight, positive_weight : float
        Total weight (the number of rows, without weights), and that of the positives.
    distinct, distinct_before : int
        Different predictions, and different raw scores (None if they were not given).
    notes : tuple of str
        What deserves a look.
    level : float, or None
        The confidence of the intervals; None where none were wanted.
    intervals, intervals_before : dict of str to (float, float), or None
        The interval of each measure that has one. It holds the value itself.
    change : dict of str to (float, float or None, float or None), or None
        After − before, and the ends of its interval (None where it cannot be told), for each
        measure that is finite on both sides.
    look : FirstLook, or None
        Whether the predictions say anything, and which way they run.
    praise : bool
        Whether a change may be called better. Scores that are worth nothing have smaller losses as
        a constant, and nothing is won: the word is then "lower" or "higher", not "better".
    groups : Multicalibration, or None
        Where predictions are wrong, if ``features`` were given.
    brief : bool
        Whether the table shows log loss, Brier score, ECE, AUC and calibration slope alone, because
        no ``measures`` were asked for. ``to_dict`` has all that were computed.

    Notes
    -----
    Smaller is better for ``log_loss``, ``brier``, ``ece``, ``mce``, ``rmse``, ``calbin``,
    ``calibration_loss``, ``miscalibration``, ``ici``, ``e50``, ``e90`` and ``emax``; larger is
    better for ``auc``, ``accuracy`` and ``discrimination``. ``observed_expected`` and
    ``calibration_slope`` are best at 1, ``line_intercept`` and ``calibration_in_the_large`` at 0.
    """

    after: dict[str, float]
    before: dict[str, float] | None
    weight: float
    positive_weight: float
    distinct: int
    distinct_before: int | None
    notes: tuple[str, ...] = ()
    level: float | None = None
    intervals: Spans | None = None
    intervals_before: Spans | None = None
    change: Changes | None = None
    look: FirstLook | None = None
    praise: bool = True
    groups: Multicalibration | None = None
    brief: bool = False
    _measures = MEASURES

    def _below(self) -> list[str]:
        distinct = f"{self.distinct:,} different prediction{'s' if self.distinct != 1 else ''}"
        if self.distinct_before is not None:
            distinct += f", {self.distinct_before:,} before"
        weight, positive = self.weight, self.positive_weight
        rows = f"rows of weight {weight:.10g} in all, positive ones of weight {positive:.10g}"
        if float(weight).is_integer() and float(positive).is_integer():
            rows = f"{weight:,.0f} row{'s' * (weight != 1)}, {positive:,.0f} of them positive"
        where = [] if self.groups is None else [f"features: {self.groups.summary()}"]
        return [f"{rows}; {distinct}", *where, *self._shown_notes()]


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassEvaluation(EvaluationTable):
    """The measures of probabilities of several classes, after calibration and perhaps before it.

    Attributes
    ----------
    after : dict of str to float
        Value of each measure, by name. A measure that the data do not allow is left out, and a
        note says why.
    before : dict of str to float, or None
        The same for the raw scores, if they were given.
    by_class : dict of str to tuple
        After calibration, for each class against the rest, in the order of ``labels``: its
        ``weight``, ``ece``, ``mce`` and ``auc`` (None for a class that did not come).
    weight : float
        Total weight (the number of rows, without weights).
    labels : tuple
        The class of each column.
    notes : tuple of str
        What deserves a look.
    level : float, or None
        The confidence of the intervals; None where none were wanted.
    intervals, intervals_before : dict of str to (float, float), or None
        The interval of each measure but ``calbin``. It holds the value itself.
    change : dict of str to (float, float or None, float or None), or None
        After − before, and the ends of its interval: for log loss, Brier score, RMSE, top-label
        ECE, AUC and accuracy; None for the others.
    look : ClassLook, or None
        Whether the predictions say anything, and whether a class's column is the right one.
    praise : bool
        As in `Evaluation`.
    brief : bool
        Whether the table shows log loss, Brier score, top-label and class-wise ECE and AUC alone,
        because no ``measures`` were asked for. ``to_dict`` has all that were computed.

    Notes
    -----
    Larger is better for ``auc`` and ``accuracy``, smaller for all others.
    """

    after: dict[str, float]
    before: dict[str, float] | None
    by_class: ByClass
    weight: float
    labels: tuple[Any, ...]
    notes: tuple[str, ...] = ()
    level: float | None = None
    intervals: Spans | None = None
    intervals_before: Spans | None = None
    change: Changes | None = None
    look: ClassLook | None = None
    praise: bool = True
    brief: bool = False
    _measures = CLASS_MEASURES

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object. A label that JSON does not know, such as a date, becomes text."""
        known = (str, int, float)
        labels = [label if isinstance(label, known) else str(label) for label in self.labels]
        return super().to_dict() | {"labels": labels}

    def _below(self) -> list[str]:
        sizes = [value for value in self.by_class["weight"] if value is not None]
        spread = f"from {min(sizes):.10g} to {max(sizes):.10g} each"
        whole = all(float(value).is_integer() for value in (self.weight, *sizes))
        total = rows_in_words(self.weight) if whole else f"weight {self.weight:.10g}"
        lines = [f"{total}; {len(self.labels)} classes, {spread}"]
        errors = [value for value in self.by_class["ece"] if value is not None]
        worst = int(np.argmax(errors))
        lines.append(f"largest ECE of a class: {errors[worst]:.4f}, {self.labels[worst]!r}")
        return [*lines, *self._shown_notes()]


AnyEvaluation = TypeVar("AnyEvaluation", bound=Evaluation | MulticlassEvaluation)


def without_praise(made: AnyEvaluation) -> AnyEvaluation:
    """The evaluation in which no change is called better, for scores that are worth nothing."""
    if made.before is None or not made.praise:
        return made
    both = made.before.keys() & made.after.keys()
    praised = any(made.verdict(name) == "better" for name in both)
    return replace(made, praise=False, notes=made.notes + (NO_PRAISE,) * praised)


def with_look(made: AnyEvaluation, look: Any) -> AnyEvaluation:
    """The evaluation with the headline that the predictions themselves deserve."""
    made = replace(made, look=look)
    return without_praise(made) if look.useless else made


# --- Predictions out of fold: all measures, AUC as one map has it, and the map's values -----------


#: bins as `evaluate` has them; tables drawn again are fewer, since people wait for a fit
BINS, REPLICATES = 10, 400
_HOW = "AUC after is measured within each fold, because each fold has a calibrator of its own"


def evaluate_held_out(
    after: ScoreTable,
    before: ScoreTable | None,
    pair: PairedCells | None,
    *,
    level: float,
    aucs: tuple[float | None, float | None] | None,
    scores: int,
    values: int,
    measures: Any = None,
) -> Evaluation:
    """The evaluation of predictions out of fold, beside that of the scores.

    Predictions of several folds come from as many maps. Thrown together they are in an order that
    none of the maps has made, and one score has several values. So AUC is that of the scores over
    all pairs and, after, that plus its change within folds (the intervals keep their width); and
    values are counted for the map fitted to all rows.

    Parameters
    ----------
    after : ScoreTable
        Predictions out of fold.
    before : ScoreTable or None
        The scores as they came; None where they are what was chosen.
    pair : PairedCells or None
        Both for the same rows, without which the changes have no intervals.
    level : float
        Confidence of the intervals.
    aucs : pair of float or None, or None
        AUC before and after; None for predictions of a single map.
    scores, values : int
        Distinct scores, and what they become under the map fitted to all rows.
    measures : str or list of str, optional
        As in `evaluate`.
    """
    options = IntervalOptions(level, REPLICATES, "importance", 0)
    records = chosen_records(MEASURES, measures)
    old = None if before is None else measure_table(before, BINS, records)
    made = evaluation_of(measure_table(after, BINS, records), old, BINS, options, pair)
    made = replace(made, brief=measures is None)
    if aucs is None:
        return made
    old_auc, new_auc = aucs
    if new_auc is not None and values == 1:
        new_auc = 0.5  # one rate for all rows ranks nothing
    if made.before is None:
        if new_auc is None or "auc" not in made.after:
            return made
        spans = _moved_auc(made.intervals, new_auc - made.after["auc"])
        return replace(made, after={**made.after, "auc": new_auc}, intervals=spans)
    # ties of the folds' maps are not those of the one map
    notes = [note for note in made.notes if not isinstance(note, TiesNote)]
    if values < scores:
        many = f"{values:,} prediction{'s' * (values != 1)}"
        said = f"{scores:,} different scores become {many}, so that some scores share one"
        notes.append(TiesNote(said))
    made = replace(made, distinct=values, distinct_before=scores, notes=tuple(notes))
    found = with_auc_within_folds(made, old_auc, new_auc)
    return replace(found, notes=made.notes) if values == 1 else found


def with_auc_within_folds(
    made: AnyEvaluation, old: float | None, new: float | None
) -> AnyEvaluation:
    """The evaluation with other AUCs before and after, measured within each fold.

    Its intervals keep their width.
    """
    before = made.before
    if before is None or old is None or new is None or "auc" not in made.after.keys() & before:
        return made
    change = made.change
    if change is not None and "auc" in change:
        value, *ends = change["auc"]
        by = (new - old) - value
        low, high = (None if end is None else end + by for end in ends)
        change = {**change, "auc": (new - old, low, high)}
    return replace(
        made,
        after={**made.after, "auc": new},
        before={**before, "auc": old},
        intervals=_moved_auc(made.intervals, new - made.after["auc"]),
        intervals_before=_moved_auc(made.intervals_before, old - before["auc"]),
        change=change,
        notes=(*made.notes, _HOW),
    )


def _moved_auc(spans: Spans | None, by: float) -> Spans | None:
    """The intervals, of which that of the AUC is moved and cut to [0, 1]."""
    if spans is None or "auc" not in spans:
        return spans
    low, high = spans["auc"]
    return {**spans, "auc": (min(max(low + by, 0.0), 1.0), min(max(high + by, 0.0), 1.0))}
