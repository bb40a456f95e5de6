"""The work behind several columns of scores, one for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.auto.advice import Advice
from calibrant.cli.jobs import (
    ALWAYS,
    LEVEL,
    FitResult,
    draw_classes,
    make_class_calibrator,
    page_words,
    quietly,
    with_facts,
)
from calibrant.cli.sources import some_of
from calibrant.data.door import are_distributions, sum_tolerance
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.engines.rows import FileMatrix
from calibrant.errors import InputError
from calibrant.fitting.fitted import label_array
from calibrant.fitting.registry import BEFORE, METHODS, calibrator_class
from calibrant.metrics.arguments import top_table
from calibrant.metrics.cells import Bins
from calibrant.metrics.evaluating import (
    MulticlassEvaluation,
    Records,
    evaluate_classes,
    with_auc_within_folds,
)
from calibrant.metrics.headlines import ClassLook, class_look
from calibrant.metrics.intervals import IntervalOptions, read_interval_options

if TYPE_CHECKING:
    from calibrant.auto.auto import AutoCalibrator
    from calibrant.reports.value import Report


#: rows of a class below which hardly anything can be learned of it
FEW = 10
#: tables drawn for the intervals of a fit's measures
REPLICATES = 1000


# --- jobs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassFitResult(FitResult):
    """A calibrator of several classes, and how it does on rows it has not seen.

    ``before`` and ``after`` are tables of the most probable class; ``unseen`` are the distributions
    behind them.
    """

    diagram_title = "The most probable class of each row:"
    too_few_words = "There are too few rows for an estimate for new rows."

    unseen: UnseenClasses | None = None

    @property
    def sizes(self) -> str:
        matrix = self.read.matrix
        shares = 100 * matrix.class_weight / matrix.total
        pairs = zip(self.read.classes, shares, strict=True)
        each = [f"{share:.3g} % {label!r}" for label, share in pairs]
        return f"{some_of(each)}; {len(each)} classes.{_few_rows(self.read)}"

    @cached_property
    def look(self) -> ClassLook:
        known = getattr(self.calibrator, "look_", None)
        return known if isinstance(known, ClassLook) else class_look(self.read.matrix)

    def picture(self, format: str) -> bytes:
        if self.unseen is None:
            raise InputError("a plot needs rows that are held out, but there are too few.")
        seen = self.unseen
        return draw_classes(seen.after, seen.before, self.read.classes, format=format)

    def page(self, saved_as: Path | None) -> Report:
        from calibrant.reports.report import report_of

        if self.unseen is None:
            raise InputError("a report needs rows that are held out, but there are too few.")
        words = page_words(self.read, saved_as)
        return report_of(self.calibrator, self.read.matrix, **self.unseen.judged, **words)


def _few_rows(read: FileMatrix) -> str:
    """Classes of which hardly anything can be learned, in a sentence."""
    rows = np.bincount(read.matrix.codes, minlength=len(read.classes))
    few = [f"{label!r} ({n})" for label, n in zip(read.classes, rows, strict=True) if n < FEW]
    if not few:
        return ""
    which = some_of(few)
    return f" Fewer than {FEW} rows of {which}: what is said of such a class is mostly chance."


def labels_of(matrix: ScoreMatrix, classes: Sequence[Any]) -> NDArray[Any]:
    """The label of each row."""
    return label_array(tuple(classes))[matrix.codes]


@quietly()
def fit(read: FileMatrix, calibrator: Any, folds: int) -> ClassFitResult:
    """Fit a calibrator, and estimate by cross-validation what it will do for new rows."""
    from calibrant.auto.auto import AutoCalibrator

    matrix, classes = read.matrix, list(read.classes)
    calibrator.set_params(classes=classes)
    if folds and isinstance(calibrator, AutoCalibrator):
        calibrator.set_params(cv=folds)
    calibrator.fit(matrix.scores, labels_of(matrix, classes), matrix.weight)
    fitted = with_facts(calibrator.to_fitted(), read.facts)
    result = ClassFitResult(fitted, read, calibrator, advice_on(matrix), folds)
    if not folds or len(matrix) < 2:
        return result
    seen = _unseen(calibrator, matrix, classes, folds)
    judged = FileMatrix(seen.after, read.classes, read.facts, seen.before)
    intervals = read_interval_options(LEVEL, REPLICATES, "importance", 0)
    evaluation = evaluate(judged, intervals=intervals)
    return replace(
        result,
        folds=seen.folds,
        evaluation=with_auc_within_folds(evaluation, *seen.aucs),
        before=top_table(seen.before),
        after=top_table(seen.after),
        unseen=seen,
    )


class UnseenClasses(NamedTuple):
    """Distributions of rows that were held out before and after calibration, AUC of both, and the
    folds; and what `report_of` asks for, unless an automatic choice has it."""

    before: ScoreMatrix
    after: ScoreMatrix
    aucs: tuple[float | None, float | None]
    folds: int
    judged: Mapping[str, Any] = MappingProxyType({})


def _unseen(calibrator: Any, matrix: ScoreMatrix, classes: list[Any], folds: int) -> UnseenClasses:
    """The predictions of rows held out; an automatic choice has made them already."""
    from calibrant.auto.auto import fits_of
    from calibrant.fitting.folds import matrix_pairs
    from calibrant.fitting.held_out import HeldOutMatrix, ranked_as, try_all

    board = getattr(calibrator, "leaderboard_", None)
    if board is not None:
        oof, aucs = calibrator.oof_, (board[BEFORE].scores_auc, board.chosen.auc)
        return UnseenClasses(oof[BEFORE], oof[calibrator.chosen_], aucs, board.folds)
    labels = label_array(tuple(classes))
    held = HeldOutMatrix(matrix, matrix_pairs(matrix, labels, folds, None, 0)[0])
    trials = {BEFORE: held.unchanged(), **try_all(fits_of({"after": calibrator}, labels), held)}
    before, after = trials.values()
    aucs = (before.whole_auc, ranked_as(after, before)[0])
    made = held.predictions(before), held.predictions(after)
    return UnseenClasses(*made, aucs, held.folds, {"held": held, "trials": trials})


def evaluate(
    read: FileMatrix,
    *,
    bins: Bins = 10,
    intervals: IntervalOptions | None,
    records: Records | None = None,
) -> MulticlassEvaluation:
    """The measures of columns of probabilities, and of the scores of the same rows before."""
    after, before = read.matrix, read.raw
    return evaluate_classes(
        labels_of(after, read.classes),
        after.scores,
        None if before is None else before.scores,
        bins,
        after.weight,
        list(read.classes),
        intervals,
        records,
    )


def candidates(methods: Sequence[str]) -> Mapping[str, Any]:
    """Methods by the names that a leaderboard shows; those that are always there are left out."""
    from calibrant.auto.auto import members_for

    members = members_for(3, rows=1)
    named = {}
    for name in dict.fromkeys(methods):
        if name in ALWAYS:
            continue
        made = make_class_calibrator(name, [])
        shown = f"one-vs-rest {name}" if name in METHODS and hasattr(made, "calibrator") else name
        named[calibrator_class(name).__name__ if shown in members else shown] = made
    return named


def automatic(read: FileMatrix, methods: Sequence[str], folds: int) -> AutoCalibrator:
    """The automatic choice among methods by name, not fitted yet."""
    from calibrant.auto.auto import AutoCalibrator

    return AutoCalibrator(candidates=candidates(methods), cv=folds, classes=list(read.classes))


@quietly()
def compare(read: FileMatrix, methods: Sequence[str], folds: int) -> AutoCalibrator:
    """The automatic choice among methods by name, fitted and judged."""
    matrix = read.matrix
    auto = automatic(read, methods, folds)
    return auto.fit(matrix.scores, labels_of(matrix, read.classes), matrix.weight)


@quietly()
def report(
    read: FileMatrix,
    methods: Sequence[str],
    folds: int,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
) -> Report:
    """The page on the scores of files: the automatic choice among methods by name."""
    from calibrant.reports.report import calibration_report

    return calibration_report(
        read.matrix.scores,
        labels_of(read.matrix, read.classes),
        sample_weight=read.matrix.weight,
        calibrator=automatic(read, methods, folds),
        classes=list(read.classes),
        title=title,
        **page_words(read, saved_as),
    )


# --- advice -------------------------------------------------------------------------------------


def advice_on(matrix: ScoreMatrix) -> tuple[Advice, ...]:
    """Rows that look like probabilities but do not sum to one are read as logits: a likely slip."""
    scores = matrix.scores
    if scores.min() < 0.0 or are_distributions(scores):
        return ()
    sums = scores.sum(axis=1)
    figures = {"least_sum": float(sums.min()), "largest_sum": float(sums.max())}
    if scores.max() > 1.0:
        return ()
    off = int((np.abs(sums - 1.0) > sum_tolerance(matrix.n_classes)).sum())
    text = (
        f"all scores are in [0, 1], but {off:,} of {len(sums):,} rows do not sum to 1 (from "
        f"{sums.min():.3g} to {sums.max():.3g}), so that all were read as logits. If they are "
        "probabilities of classes that exclude each other, divide each row by its sum, or name the "
        "columns of all classes."
    )
    return (Advice("rows_do_not_sum_to_one", text, figures),)
