"""The command that learns, fit: what is fitted, what it does for new rows, and how that reads."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from calibrant.cli import jobs, reading, sources
from calibrant.cli.app import (
    command,
    run_with_status,
    say,
    say_json,
    say_pairs,
    show,
    some_of,
    tell,
    tell_first,
)
from calibrant.data.documents import OUT_OF_FOLD, evaluation_facts
from calibrant.data.door import are_distributions, sum_tolerance
from calibrant.data.frozen import thawed_json
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.curve import reliability_curve
from calibrant.engines.open_engine import FEATURES, FileScores
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.files import save, to_json
from calibrant.fitting.fitted import Fitted, label_array
from calibrant.fitting.registry import BEFORE, DEFAULT
from calibrant.metrics.chance import read_interval_options
from calibrant.metrics.evaluating import (
    Evaluation,
    MulticlassEvaluation,
    evaluate_held_out,
    in_words,
    with_auc_within_folds,
    without_praise,
)
from calibrant.metrics.headlines import ClassLook, class_look, first_look
from calibrant.metrics.intervals import PairedCells
from calibrant.metrics.measures import CLASS_MEASURES, MEASURES, STANDARD, chosen_records
from calibrant.metrics.tables import top_table
from calibrant.outputs import write_whole
from calibrant.result_tables import shown_percent

if TYPE_CHECKING:
    from calibrant.auto.advice import Advice
    from calibrant.methods.segments import SegmentedCalibrator
    from calibrant.reports.page import Report


MethodName = Annotated[
    str, typer.Option("--method", "-m", metavar="NAME", help="See: calibrant methods.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Parameter of the method; may be repeated."),
]
Shrinkage = Annotated[
    str | None,
    typer.Option(
        metavar="cv|N",
        help="With --segment: how much segments may differ from all rows; default: cv.",
    ),
]
OutputFile = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="JSON", help="Where the calibrator goes; - for standard output."
    ),
]
Period = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="The period that the rows are from, such as 2026-03; it is kept in the file.",
    ),
]
PlotFile = Annotated[
    Path | None, typer.Option(metavar="PNG", help="Draw the reliability before and after.")
]
ReportFile = Annotated[
    Path | None, typer.Option(metavar="HTML", help="Write a page about what improved.")
]


def fit(
    files: sources.FileNames,
    score: sources.ScoreColumn = None,
    label: sources.LabelColumn = None,
    weight: sources.WeightColumn = None,
    segment: sources.SegmentColumn = None,
    features: sources.FitFeatures = None,
    method: MethodName = DEFAULT,
    param: Parameters = None,
    shrinkage: Shrinkage = None,
    pos_label: sources.PosLabel = None,
    direction: sources.Direction = "rising",
    output: OutputFile = Path("calibrator.json"),
    cv: sources.Folds = 5,
    period: Period = None,
    plot: PlotFile = None,
    report: ReportFile = None,
    measures: sources.MoreMeasures = None,
    *,
    run: sources.RunOptions,
) -> None:
    """Learn a calibrator from scores and labels, and say what it improves.

    \b
    Examples:
      calibrant fit scores.csv
      calibrant fit scores.csv --score p --label y
      calibrant fit 'day-*.parquet' -s margin -l bought --pos-label yes -o c.json
      calibrant fit s.csv -s p -l y -m isotonic --param interpolation=centred --plot r.png
      calibrant fit 'day-*.parquet' -s p -l y --segment country
      calibrant fit s.csv -s p -l y --segment country --segment product
      calibrant fit s.csv -s p -l y --features region,age
      calibrant fit s.csv --score 'p_*' --label kind
      calibrant fit loans.csv -s credit_score -l default --direction falling
      calibrant fit scores.csv --measures all
      xz -dc scores.csv.xz | calibrant fit - -o - > calibrator.json
      calibrant fit 'day-*.parquet' -s p -l y --engine spark --master spark://host:7077

    All figures are out of fold: no row is judged by a calibrator that has seen it.
    """
    written = {"calibrator": output, "plot": plot, "report": report}
    places = {
        "--plot": sources.OutputOption(plot, sources.PICTURES),
        "--report": sources.OutputOption(report, sources.PAGES),
    }
    sources.check_places({"--output": sources.OutputOption(output, stream=True), **places}, files)
    sources.refuse_two(output, run.json)
    if cv < 0 or cv == 1:
        raise ParameterError(f"cv must be at least 2, or 0 for no estimate, but {cv} came.")
    if not cv and (plot or report):
        raise ParameterError("a plot or report shows out-of-fold results: --cv must not be 0.")
    if not cv and measures:
        raise ParameterError("measures are of out-of-fold results: --cv must not be 0.")
    if shrinkage and not segment:
        raise ParameterError("--shrinkage is for segments: name their column with --segment COL.")
    times = jobs.time_facts(period)
    with run.open(*files) as engine:
        source = reading.find_source(
            engine, files, score, label, weight, pos_label, run, segment=segment
        )
        if features:
            _check_features(segment, report, run.cells, asked_method=method, param=param)
        if segment and report:
            raise ParameterError("there is no report on segments yet: leave --report out.")
        source.refuse_beside()
        sources.check_direction(direction, several=source.several, features=bool(features))
        if features and source.several:
            raise ParameterError("features are for two classes: leave --features out.")
        chosen_records(CLASS_MEASURES if source.several else MEASURES, measures)  # that are known
        judging = Judging(cv, measures)
        settings = param or []
        read, title, work = _prepared(
            source, method, settings, shrinkage, features, judging, direction
        )
    if not read.several and not run.allow_one_class:
        jobs.refuse_one_class(read)

    def learned() -> FitResult:
        result = work()
        more = dict(times)
        if result.evaluation is not None:
            more["measures"] = evaluation_facts(result.evaluation, OUT_OF_FOLD, result.folds)
        if pos_label is None:
            jobs.refuse_wrong_way(read, result.fitted)
        return replace(result, fitted=jobs.with_facts(result.fitted, more))

    result = run_with_status(learned, f"fitting {title}", run.json)
    write_fit(result, written)
    if run.json:
        say_json(fit_document(result, written))
        return
    with sources.words_beside(output):
        print_fit(result, written)


def _check_features(
    segment: list[str] | None,
    report: Path | None,
    cells: str,
    *,
    asked_method: str,
    param: list[str] | None,
) -> None:
    """Refuse what does not go with --features."""
    if segment:
        raise ParameterError(
            "--features and --segment do not go together: name the column of segments among the "
            "features."
        )
    if asked_method != DEFAULT or param:
        raise ParameterError(
            f"--features come with the method {DEFAULT}, which uses them where they help: leave "
            "--method and --param out."
        )
    if report:
        raise ParameterError("there is no report on features yet: leave --report out.")
    if cells != "auto":
        raise ParameterError("--features reads every row as it is: leave --cells out.")


def _prepared(
    source: sources.FileSource,
    method: str,
    settings: list[str],
    shrinkage: str | None,
    features: list[str] | None,
    judging: Judging,
    direction: str,
) -> tuple[FileScores, str, Callable[[], FitResult]]:
    """What was read, what is fitted to how much of it, in words, and the fit, ready to run."""
    if features:
        source.engine.need_duckdb(FEATURES)
        rows = reading.read_features(reading.complete_roles(source), features, learn=True)
        title = f"{len(features)} columns of {len(rows.y):,} rows"
        return rows, title, lambda: fit_features(rows, judging)
    if source.segment:
        from calibrant.data.door import check_parameters
        from calibrant.methods.segments import SegmentedCalibrator

        plain = method == DEFAULT and not settings
        of_each = None if plain else jobs.make_calibrator(method, settings)
        segmented = SegmentedCalibrator(of_each, shrinkage=jobs.read_value(shrinkage or "cv"))
        check_parameters(segmented, segmented._limits)
        tables = jobs.facing(reading.read_segments(reading.complete_roles(source)), direction)
        title = f"{len(tables.by_segment):,} segments"
        return tables, title, lambda: fit_segments(tables, segmented, judging)
    calibrator = run_with_status(
        lambda: jobs.make_calibrator(method, settings, several=source.several),
        f"preparing {method}",
        source.run.json,
    )
    read = jobs.facing(reading.read_scores(source), direction)
    title = f"{method} to {reading.size_of(read)}"
    return read, title, lambda: fit_scores(read, calibrator, judging)


# --- fits of one score and of several classes -----------------------------------------------------

#: of intervals where the command line has no option for them
LEVEL, REPLICATES = 0.95, 1000
#: above this many distinct scores the out-of-fold estimate is made on a pooled table
MOST_CELLS, POOLED_CELLS = 200_000, 100_000


class Judging(NamedTuple):
    """How a fit is judged: in how many folds, and by which measures beside the standard ones."""

    folds: int
    measures: list[str] | None = None

    @property
    def asked(self) -> list[str] | None:
        """The measures as `evaluate` takes them; None where none were asked for."""
        return None if self.measures is None else [STANDARD, *self.measures]


def fit_scores(read: FileScores, calibrator: Any, judging: Judging) -> FitResult:
    """Fit a calibrator, and estimate by cross-validation what it will do for new rows."""
    from calibrant.auto.advice import advise_table
    from calibrant.auto.auto import AutoCalibrator

    folds = judging.folds
    if folds and isinstance(calibrator, AutoCalibrator):
        calibrator.set_params(cv=folds)
    fitted, data, came = jobs.learn(calibrator, read).to_fitted(), read.data, read.as_came.data
    if read.several:
        result = FitResult.of(fitted, read, calibrator, advice_on(data), folds)
        if folds and len(data) > 1:
            with jobs.quietly():
                return _judged(result, unseen(calibrator, read, data, folds), judging.asked)
        return result
    told: Any = {"names": reading.names_of(read.document), "direction": jobs.direction_of(read)}
    advice = advise_table(came, calibrator, **told)
    result = FitResult.of(fitted, read, calibrator, advice, folds)
    if not folds or jobs.too_few(data):
        return result
    values = len(np.unique(fitted.map(came.scores)))
    if len(data) > MOST_CELLS:
        data = data.pool(POOLED_CELLS)
    seen = unseen(calibrator, read, data, folds)
    if data.error and seen.pair is not None:  # the automatic choice has pooled its own
        seen = seen._replace(before=replace(seen.pair.scored(), error=data.error))
    return _judged(result, seen, judging.asked, values)


class Unseen(NamedTuple):
    """The scores of rows that were held out in turn and what became of them, as tables or matrices;
    both beside each other, row by row; AUC before and after, and the folds; and what `report_of`
    asks for, unless an automatic choice has it."""

    before: Any
    after: Any
    pair: PairedCells | None
    aucs: tuple[float | None, float | None] | None
    folds: int
    judged: Mapping[str, Any] = MappingProxyType({})


def unseen(calibrator: Any, read: FileScores, data: Any, folds: int) -> Unseen:
    """The predictions of rows that were held out of what was read, or of the cells of its ``data``;
    an automatic choice has made them already."""
    from sklearn.base import clone

    from calibrant.auto.auto import class_fits
    from calibrant.fitting.held_out import (
        HeldOutCells,
        HeldOutMatrix,
        auc_and_gain,
        fit_copies,
        try_all,
    )
    from calibrant.methods.uncalibrated import unchanged_trial

    one_score, board = not read.several, getattr(calibrator, "leaderboard_", None)
    if board is not None:
        made, name = calibrator.oof_, calibrator.chosen_
        before, pair = data if one_score else made[BEFORE], calibrator.pairs_.get(name)
        # the scores themselves are the same in all folds
        aucs = None if name == BEFORE else (board[BEFORE].scores_auc, board.chosen.auc)
        return Unseen(before, made[name], pair, aucs, board.folds)
    held: Any
    if one_score:
        held = HeldOutCells.of_table(data, folds, 0)
        if read.came is not None:  # the table is turned round already
            calibrator = clone(calibrator).set_params(direction="rising")
        as_they_are, fit = unchanged_trial(data, held), fit_copies(calibrator)
    else:
        labels = label_array(read.classes)
        held = HeldOutMatrix.of_matrix(data, labels, folds)
        as_they_are, fit = held.unchanged(), class_fits({"after": calibrator}, labels)["after"]
    trials = {BEFORE: as_they_are, **try_all({"after": fit}, held)}
    after = trials["after"]
    return Unseen(
        data if one_score else held.predictions(as_they_are),
        held.predictions(after),
        held.paired(after) if one_score else None,
        (as_they_are.whole_auc, auc_and_gain(after, as_they_are)[0]),
        held.folds,
        {} if one_score else {"held": held, "trials": trials},
    )


def _judged(
    result: FitResult, seen: Unseen, measures: list[str] | None, values: int = 0
) -> FitResult:
    """The fit with the measures of rows held out; of one score ``values`` are how many
    probabilities it has."""
    read = result.read
    evaluation: Any
    if read.several:
        judged = replace(read, data=seen.after, before=seen.before)
        intervals = read_interval_options(LEVEL, REPLICATES, "importance", 0)
        records = None if measures is None else chosen_records(CLASS_MEASURES, measures)
        evaluation = jobs.measure_classes(judged, 10, intervals, records)
        if seen.aucs is not None:
            evaluation = with_auc_within_folds(evaluation, *seen.aucs)
    else:
        evaluation = evaluate_held_out(
            seen.after,
            seen.before,
            seen.pair,
            level=LEVEL,
            aucs=seen.aucs,
            scores=len(read.data),
            values=values,
            measures=measures,
        )
    return replace(result, folds=seen.folds, evaluation=evaluation, seen=seen)


def advice_on(matrix: ScoreMatrix) -> tuple[Advice, ...]:
    """Rows that look like probabilities but do not sum to one are read as logits: a likely slip."""
    from calibrant.auto.advice import Advice

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


# --- fits of segments and of features -------------------------------------------------------------


def fit_segments(read: FileScores, calibrator: SegmentedCalibrator, judging: Judging) -> FitResult:
    """Fit the segments, and estimate by cross-validation what that does for new rows."""
    from calibrant.auto.advice import advise_table
    from calibrant.methods.segments import predict_segments

    folds = judging.folds
    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    fitted = calibrator.fit_tables(read.by_segment).to_fitted()
    came = read.as_came.data
    if read.came is not None:  # it was fitted to scores read the other way
        fitted = fitted.mirrored(came.scale)
    told: Any = {"names": reading.names_of(read.document), "direction": jobs.direction_of(read)}
    advice = advise_table(came, **told)
    result = FitResult.of(fitted, read, calibrator, advice, folds)
    if not folds or jobs.too_few(read.data):
        return result
    after, pair, dealt = predict_segments(calibrator, read.by_segment, folds)
    if not after or pair is None:
        return replace(result, folds=0)
    seen = Unseen(read.data, after, pair, None, dealt)
    return _judged(result, seen, judging.asked, len(after))


def fit_features(read: FileScores, judging: Judging) -> FitResult:
    """The automatic choice with the columns as one more candidate."""
    from calibrant.auto.auto import AutoCalibrator

    folds = judging.folds
    auto = AutoCalibrator(cv=folds or 5, classes=list(read.classes), pos_label=read.pos_label)
    rows: Any = read.rows
    with jobs.quietly():
        auto.fit(rows.scores, read.y, rows.weight, features=read.features)
    result = FitResult.of(auto.to_fitted(), read, auto, auto.advice_, folds)
    if not folds or auto.leaderboard_ is None or jobs.too_few(read.data):
        return replace(result, folds=0)
    seen = unseen(auto, read, read.data, folds)
    if seen.pair is not None:
        seen = seen._replace(before=seen.pair.scored())
    return _judged(result, seen, judging.asked, len(np.unique(seen.after.scores)))


# --- What came of a fit ---------------------------------------------------------------------------


#: rows of a class below which hardly anything can be learned of it
FEW = 10


@dataclass(frozen=True)
class FitResult:
    """A fitted calibrator, and how it does on rows it has not seen.

    ``read`` is what it was fitted to. ``evaluation``, and ``seen``, which it compares, are None
    where nothing could be held out. ``look`` is what the scores themselves show, and ``verdict``
    the automatic choice in words, if there was one.
    """

    fitted: Fitted
    read: FileScores
    calibrator: Any
    advice: tuple[Advice, ...]
    folds: int
    evaluation: Evaluation | MulticlassEvaluation | None = None
    seen: Unseen | None = None
    look: Any = None
    verdict: str | None = None

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        read: FileScores,
        calibrator: Any,
        advice: tuple[Advice, ...],
        folds: int,
    ) -> FitResult:
        """A fit before rows were held out; what was read goes into its provenance."""
        look, names = getattr(calibrator, "look_", None), reading.names_of(read.document)
        if not read.several:
            look = first_look(read.data)
        elif not isinstance(look, ClassLook):
            look = class_look(read.data)
        said = calibrator.explain(names=names) if hasattr(calibrator, "explain") else None
        known = jobs.with_facts(fitted, read.facts)
        return cls(known, read, calibrator, advice, folds, look=look, verdict=said)

    @property
    def segments(self) -> tuple[Any, ...]:
        """What became of each segment, if there are some."""
        found: tuple[Any, ...] = getattr(self.calibrator, "segments_", ())
        return found

    @property
    def names(self) -> Any:
        """How words name the labels: `LabelNames`, or `ClassNames` of several classes."""
        return reading.names_of(self.read.document)

    @property
    def sizes(self) -> str:
        """The classes and the scores, in words."""
        if self.read.several:
            matrix, labels = self.read.data, [repr(label) for label in self.read.classes]
            shares = (100 * matrix.class_weight / matrix.total).tolist()
            each = [f"{share:.3g} % {label}" for share, label in zip(shares, labels, strict=True)]
            rows = np.bincount(matrix.codes, minlength=len(labels))
            few = [f"{label} ({n})" for label, n in zip(labels, rows, strict=True) if n < FEW]
            chance = (
                f" Fewer than {FEW} rows of {some_of(few)}: what is said of such a class is mostly "
                "chance."
            )
            return f"{some_of(each)}; {len(each)} classes.{chance if few else ''}"
        table = self.read.data
        share = shown_percent(table.total_positive / table.total)
        scores = f"{len(table):,} distinct scores."
        if table.made:
            moved = f"no score was moved by more than {table.error:.2g}"
            scores = f"{len(table):,} of {table.made}; {moved}."
        return f"{share} are {self.fitted.pos_label!r}, {scores}"

    def picture(self, format: str) -> bytes:
        """The reliability diagram of rows held out."""
        if self.seen is None:
            raise InputError(
                "a plot needs rows that are held out, but there are too few."
                if self.read.several
                else "a plot needs at least two rows of each class."
            )
        shown = None if "feature_columns" in self.read.facts else self.fitted
        if shown is not None and self.read.came is not None:
            shown = shown.mirrored(self.read.came.data.scale)
        held = replace(self.read, data=self.seen.after, before=self.seen.before)
        return jobs.draw(held, format, shown, bins=10)

    def page(self, saved_as: Path | None) -> Report:
        """The page on the fit."""
        judged: Mapping[str, Any] = {}
        if self.read.several:
            if self.seen is None:
                raise InputError("a report needs rows that are held out, but there are too few.")
            judged = self.seen.judged
        return jobs.page_of(self.calibrator, self.read, saved_as=saved_as, **judged)


# --- How it reads: on the terminal, as JSON, and as files -----------------------------------------


def print_fit(result: FitResult, written: Mapping[str, Path | None]) -> None:
    """What was fitted, what it improves, where it is, and how to go on."""
    look = result.look
    first = tell_first(look, result.names)
    tell(_headline(result))
    if result.verdict is not None:
        tell((result.verdict.removeprefix(first).strip(), "bold"))
    if result.segments:
        tell((_segments_in_words(result), "bold"))
    seen, evaluation = result.seen, result.evaluation
    if evaluation is None and result.folds:
        tell(
            "There are too few rows for an estimate for new rows."
            if result.read.several
            else "A class has no second row: there is no estimate for new rows."
        )
    if seen is not None and evaluation is not None:
        tables = seen.after, seen.before
        say()
        if result.read.several:
            tell("The most probable class of each row:")
            tables = top_table(seen.after), top_table(seen.before)
        say(reliability_text(*tables))
        say()
        shown = replace(evaluation, look=None)
        show(without_praise(shown) if look.unproven else shown, colour=not first)
        if not look.unproven:
            tell(in_words(evaluation))
        folds = f"{result.folds} fold{'s' * (result.folds != 1)}"
        how = "no row was judged by a calibrator that had seen it"
        tell((f"The figures after are out of fold ({folds}): {how}.", "dim"))
    jobs.tell_others(result.advice, first)
    say()
    say_pairs({name: sources.said_name(path) for name, path in written.items() if path is not None})
    say()
    output = written["calibrator"]
    say("Apply it: ", command(sources.apply_command(output)))


def _headline(result: FitResult) -> str:
    read, fitted = result.read, result.fitted
    names = read.facts["files"]
    of = names[0] if len(names) == 1 else f"{len(names)} files"
    return f"{fitted.method} fitted to {read.facts['rows']:,} rows of {of}: {result.sizes}"


def _segments_in_words(result: FitResult) -> str:
    """How many segments there are, and how far they go their own way."""
    own = [one for one in result.segments if one.share > 0]
    said = f"{len(result.segments):,} segments, {len(own):,} of them with a map of their own"
    if own:
        shares = sorted(one.share for one in own)
        middle = shares[len(shares) // 2]
        said += f" (its share is {shares[0]:.2g} to {shares[-1]:.2g}, half below {middle:.2g})"
    reasons = Counter(one.reason for one in result.segments if one.reason)
    listed = ", ".join(f"{count:,}: {reason}" for reason, count in reasons.items())
    several = any(isinstance(one.key, tuple) for one in result.segments)
    theirs = "that of the coarser segment, or of all rows" if several else "that of all rows"
    return f"{said}.{f' The others have {theirs} ({listed}).' if listed else ''}"


def fit_document(result: FitResult, written: Mapping[str, Path | None]) -> dict[str, Any]:
    """The machine's answer to a fit."""
    fitted, evaluation = result.fitted, result.evaluation
    board = getattr(result.calibrator, "leaderboard_", None)
    return {
        **{name: None if path is None else str(path) for name, path in written.items()},
        "method": fitted.method,
        "params": thawed_json(fitted.params),
        "classes": list(fitted.classes),
        "pos_label": fitted.pos_label,
        "provenance": thawed_json(fitted.provenance),
        "folds": result.folds,
        "evaluation": None if evaluation is None else evaluation.to_dict(),
        "summary": None if evaluation is None else in_words(evaluation),
        "segments": [asdict(one) for one in result.segments] if result.segments else None,
        "headline": result.look.headline(result.names) or None,
        "verdict": result.verdict,
        "chosen": getattr(result.calibrator, "chosen_", None),
        "refused": getattr(result.calibrator, "refused_", None),
        "leaderboard": None if board is None else board.to_dict(),
        "advice": [one.to_dict() for one in result.advice],
    }


def write_fit(result: FitResult, written: Mapping[str, Path | None]) -> None:
    """The files of a fit: the calibrator, and the plot and the report if asked for."""
    output, plot, report = written["calibrator"], written["plot"], written["report"]
    picture = None if plot is None else result.picture(plot.suffix[1:].lower())
    if output is not None and not sources.is_standard(output):
        save(result.fitted, output)
    if plot is not None and picture is not None:
        write_whole(plot, picture)
    if report is not None and output is not None:
        saved_as = None if sources.is_standard(output) else output
        result.page(saved_as).save(report)
    if output is not None and sources.is_standard(output):
        sys.stdout.buffer.write(to_json(result.fitted).encode("utf-8"))
        sys.stdout.buffer.flush()


# --- A small reliability diagram made of letters --------------------------------------------------

WIDTH, HEIGHT = 49, 13
#: the letters of the curves before and after, and of both in one place
OLD, NEW, BOTH = "o", "x", "*"
#: where the axes may end
ENDS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def reliability_text(after: ScoreTable, before: ScoreTable | None = None, bins: int = 10) -> str:
    """Mean prediction (across) against fraction of positives (up), in bins of equal mass.

    ``o`` is before, ``x`` after, ``*`` both; the dots are where they should be.

    >>> t = ScoreTable.from_counts([0.1, 0.5, 0.9], [90, 50, 10], [10, 50, 90])
    >>> print(reliability_text(t).splitlines()[0].replace(" ", ""))
    1.0│···
    """
    curves = {NEW: reliability_curve(after, bins=bins, binning="mass", band=None)}
    before = None if before is None else before.as_probabilities()  # points are none
    if before is not None:
        old = reliability_curve(before, bins=bins, binning="mass", band=None)
        curves = {OLD: old, **curves}
    drawn = curves.values()
    largest = max(max(float(c.mean_p.max()), float(c.fraction.max())) for c in drawn)
    end = min((end for end in ENDS if end >= largest), default=1.0)  # leaves nothing outside
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for column in range(WIDTH):
        row = round(column / (WIDTH - 1) * (HEIGHT - 1))
        grid[row][column] = "·"
    for letter, curve in curves.items():
        for x, y in zip(curve.mean_p, curve.fraction, strict=True):
            row, column = _place(y, HEIGHT, end), _place(x, WIDTH, end)
            taken = grid[row][column] in curves and grid[row][column] != letter
            grid[row][column] = BOTH if taken else letter
    digits = 1 - math.floor(math.log10(end)) if end < 1 else 1
    ends = {0: 0.0, (HEIGHT - 1) // 2: end / 2, HEIGHT - 1: end}
    marks = {row: f"{mark:.{digits}f}" for row, mark in ends.items()}
    wide = max(map(len, marks.values())) + 1
    lines = [
        f"{marks.get(row, ''):>{wide}} │{''.join(grid[row])}".rstrip()
        for row in reversed(range(HEIGHT))
    ]
    lines.append(f"{'':>{wide}} └{'─' * WIDTH}")
    zero, middle, last = marks.values()
    foot = (zero.ljust(WIDTH // 2 - 1) + middle).ljust(WIDTH - digits - 2)
    lines.append(f"{'':>{wide}}  {foot}{last}")
    names = f"{OLD} before, {NEW} after, {BOTH} both" if before is not None else f"{NEW} after"
    lines.append(f"{'':>{wide}}  → predicted   ↑ share of positives   ({names})")
    return "\n".join(lines)


def _place(value: float, cells: int, end: float) -> int:
    return min(max(round(float(value) / end * (cells - 1)), 0), cells - 1)
