"""The work behind the commands: files in, files and values out, nothing printed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.cli.asked_columns import ColumnRoles, note_positive
from calibrant.cli.first_words import names_of
from calibrant.cli.fit_result import FitResult
from calibrant.cli.method_names import ALWAYS, REPORTED, make_calibrator
from calibrant.cli.options import read_segment
from calibrant.data.lazy_checks import CellsOption, Names
from calibrant.data.provenance import OUT_OF_FOLD, measures_of, read_period
from calibrant.data.score_table import ScoreTable
from calibrant.engines.rows_of_files import FileTable, read_rows
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.files import save

if TYPE_CHECKING:
    from calibrant.auto import AutoCalibrator
    from calibrant.data.lazy_rows import LazyRows
    from calibrant.engines.open_engine import Engine
    from calibrant.engines.rows_of_classes import FileMatrix
    from calibrant.engines.rows_of_files import RowsOfFiles
    from calibrant.estimators.base import Calibrator
    from calibrant.metrics import Evaluation
    from calibrant.metrics.all_measures import Records
    from calibrant.metrics.bin_sweep import Bins
    from calibrant.metrics.change_intervals import PairedCells
    from calibrant.metrics.intervals import IntervalOptions
    from calibrant.reports.report_value import Report


Files = Sequence[str | os.PathLike[str]]

#: above this many distinct scores the out-of-fold estimate is made on a pooled table
MOST_CELLS, POOLED_CELLS = 200_000, 100_000
#: of intervals where the command line has no option for it
LEVEL = 0.95


# --- jobs ---------------------------------------------------------------------------------------


def read_files(
    engine: Engine,
    files: Files,
    columns: ColumnRoles,
    *,
    cells: CellsOption = "auto",
    probabilities: bool = False,
    raw: str | None = None,
) -> FileTable:
    """The score table of files; rows must have a value in the column ``raw``, too."""
    rows = rows_of(engine, files, columns, probabilities=probabilities, raw=raw)
    read = read_rows(rows, cells=cells, pos_label=columns.positive)
    note_positive(engine, columns, read.classes, read.pos_label)
    return read._replace(facts=read.facts | columns.facts)


def rows_of(
    engine: Engine,
    files: Files,
    columns: ColumnRoles,
    *,
    probabilities: bool,
    raw: str | None = None,
) -> RowsOfFiles:
    """The rows of files, whose scores must be probabilities if that is said."""
    names = Names(columns.score, columns.label, columns.weight, columns.segment, raw)
    return engine.rows(files, names, "probability" if probabilities else "score")


def file_facts(read: FileTable | FileMatrix) -> dict[str, Any]:
    """What is worth knowing of files and their labels, for JSON."""
    positive = {"pos_label": read.pos_label} if isinstance(read, FileTable) else {}
    return {**read.facts, "classes": list(read.classes), **positive}


def one_raw_column(words: Sequence[str] | None) -> str | None:
    """The column of scores before calibration, beside one of probabilities."""
    if words and len(words) > 1:
        raise ParameterError(
            f"--raw must name one column, as --prob does, but {len(words)} came. With several "
            "classes name a column of probabilities for each, too."
        )
    return words[0] if words else None


def time_facts(period: str | None) -> dict[str, Any]:
    """The time of the fit, and the period that its rows are from, if it is known."""
    known = {} if period is None else {"period": read_period(period)}
    return {**known, "fitted_at": time_stamp()}


def recorded(result: FitResult, facts: Mapping[str, Any]) -> FitResult:
    """The same fit with more in its provenance: these facts, and its measures."""
    more = dict(facts)
    if result.evaluation is not None:
        more["measures"] = measures_of(result.evaluation, OUT_OF_FOLD, result.folds)
    return replace(result, fitted=with_facts(result.fitted, more))


def with_facts(fitted: Fitted, facts: Mapping[str, Any]) -> Fitted:
    """The same map, with more in its provenance."""
    return replace(fitted, provenance={**fitted.provenance, **facts})


def time_stamp() -> str:
    """The time in UTC: now, or SOURCE_DATE_EPOCH, with which the same fit gives the same file.

    >>> len(time_stamp())
    20
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "").strip()
    try:
        moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    except (ValueError, OverflowError, OSError) as wrong:
        raise InputError(
            f"SOURCE_DATE_EPOCH must be a whole number of seconds, but {given!r} came."
        ) from wrong
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def check_folds(folds: int) -> None:
    """Refuse a number of folds before anything is read."""
    if folds < 0 or folds == 1:
        raise ParameterError(f"cv must be at least 2, or 0 for no estimate, but {folds} came.")


def fit_read(read: FileTable, calibrator: Calibrator, *, folds: int = 5) -> FitResult:
    """Fit a calibrator, and estimate by cross-validation what it will do for new rows."""
    import numpy as np

    from calibrant.advice import advise_table
    from calibrant.auto import AutoCalibrator
    from calibrant.metrics.out_of_fold import evaluate_held_out

    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    if folds and isinstance(calibrator, AutoCalibrator):
        calibrator.set_params(cv=folds)
    table = read.table
    fitted = with_facts(calibrator.fit_table(table).to_fitted(), read.facts)
    advice = advise_table(table, calibrator, names=names_of(read))
    result = FitResult(fitted, read, calibrator, advice, folds)
    if not folds or too_few(table):
        return result
    values = len(np.unique(fitted.map(table.scores)))
    if len(table) > MOST_CELLS:
        table = table.pool(POOLED_CELLS)
    seen = _unseen(calibrator, table, folds)
    if table.error:  # the automatic choice has pooled its own
        table = replace(seen.pair.scored(), error=table.error)
    sizes = {"scores": len(read.table), "values": values}
    evaluation = evaluate_held_out(
        seen.after, table, seen.pair, level=LEVEL, aucs=seen.aucs, **sizes
    )
    return replace(result, folds=seen.folds, evaluation=evaluation, before=table, after=seen.after)


class Unseen(NamedTuple):
    """Predictions of rows that were held out, these beside the scores of the same rows, AUC before
    and after, and the folds."""

    after: ScoreTable
    pair: PairedCells
    aucs: tuple[float | None, float | None]
    folds: int


def _unseen(calibrator: Calibrator, table: ScoreTable, folds: int) -> Unseen:
    """The predictions of rows held out; an automatic choice has made them already."""
    from sklearn.base import clone

    from calibrant.auto.folds import parts_of_table
    from calibrant.auto.scoring import judge_maps, pairs_of, ranked_as
    from calibrant.calibrators.uncalibrated import Uncalibrated

    board = getattr(calibrator, "leaderboard_", None)
    if board is not None:
        aucs = (board["uncalibrated"].auc, board.chosen.auc)
        name = calibrator.chosen_
        return Unseen(calibrator.oof_[name], calibrator.pairs_[name], aucs, board.folds)
    parts, _ = parts_of_table(table, folds, 0)
    before = Uncalibrated().fit_table(table).map_
    first, _ = judge_maps([before] * len(parts), parts, ranks=True)
    maps = [clone(calibrator).fit_table(part.rest).map_ for part in parts]
    judged, after = judge_maps(maps, parts)
    aucs = (first.whole_auc, ranked_as(judged, first)[0])
    return Unseen(after, pairs_of({"after": judged}, parts)["after"], aucs, len(parts))


def compare_read(read: FileTable, methods: Sequence[str], folds: int) -> AutoCalibrator:
    """The automatic choice among methods by name, fitted and judged."""
    from calibrant.auto import AutoCalibrator

    names = [name for name in dict.fromkeys(methods) if name not in ALWAYS]
    candidates = {name: make_calibrator(name, []) for name in names}
    auto = AutoCalibrator(
        candidates=candidates, cv=folds, classes=list(read.classes), pos_label=read.pos_label
    )
    return auto.fit_table(read.table)


def report_read(
    read: FileTable,
    methods: Sequence[str],
    folds: int,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
    measures: Sequence[str] | None = None,
) -> Report:
    """The page on the scores of files: the automatic choice among some methods."""
    auto = compare_read(read, methods or REPORTED, folds)
    return page_of(auto, read, title=title, saved_as=saved_as, measures=measures)


def page_of(
    calibrator: Calibrator,
    read: FileTable,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
    measures: Sequence[str] | None = None,
) -> Report:
    """The page on a calibrator that was fitted to a table of files."""
    from calibrant.metrics.first_look import first_look
    from calibrant.reports.make import calibration_report, report_of

    name = "calibrator.json" if saved_as is None else str(saved_as)
    source = {"files": ", ".join(read.facts["files"]), "rows": f"{read.facts['rows']:,}"}
    names = {"score_name": read.facts["score_column"], "label_name": read.facts["label_column"]}
    options: dict[str, Any] = {"title": title, "source": source, "saved_as": name, **names}
    options["measures"] = measures
    if too_few(read.table):
        first = first_look(read.table).headline(names_of(read))
        raise InputError(f"{first} A report needs at least two rows of each class.".strip())
    if getattr(calibrator, "leaderboard_", None) is not None:
        return report_of(calibrator, read.table, **options)
    options |= {"classes": list(read.classes), "pos_label": read.pos_label}
    return calibration_report(read.table, calibrator=calibrator, **options)


def save_fitted(
    fitted: Fitted | None, read: FileTable, path: Path, facts: Mapping[str, Any] | None = None
) -> None:
    """A calibrator, with what is known of the files that it was fitted to, and of the fit."""
    if fitted is None:
        raise InputError("there is no calibrator to save.")
    save(with_facts(fitted, {**read.facts, **(facts or {})}), path)


def too_few(table: ScoreTable) -> bool:
    """Whether a class has fewer than two rows, so that none of it is left when one is held out."""
    counts = ((table.negative, table.negative_sq), (table.positive, table.positive_sq))
    return any(w.sum() ** 2 < 1.999 * w2.sum() or not w.any() for w, w2 in counts)


def evaluate_files(
    engine: Engine, files: Files, columns: ColumnRoles, raw: str | None = None
) -> tuple[FileTable, ScoreTable | None]:
    """The table of a column of probabilities and, if asked for, that of the scores behind it."""
    read = read_files(engine, files, columns, probabilities=True, raw=raw)
    if raw is None:
        return read, None
    before = replace(columns, score=raw)
    return read, read_files(engine, files, before, raw=columns.score).table


def measure_files(
    engine: Engine,
    files: Files,
    columns: ColumnRoles,
    raw: str | None,
    *,
    cells: CellsOption,
    bins: Bins,
    intervals: IntervalOptions | None,
    records: Records | None = None,
) -> tuple[Evaluation, dict[str, Any]]:
    """The measures of a column of probabilities, and what is worth knowing of the files."""
    from calibrant.metrics.evaluating_lazy import evaluate_rows
    from calibrant.metrics.lazy_sums import OutsideError

    asked = rows_of(engine, files, columns, probabilities=True, raw=raw)

    def ask(rows: LazyRows) -> tuple[Evaluation, int]:
        found = evaluate_rows(*rows.apart(), bins, intervals, cells, records)
        return found, rows.look().rows if columns.weight else round(found.weight)

    try:
        (evaluation, count), coding = asked.ask(ask, columns.positive)
    except OutsideError:
        asked.refuse_outside()  # which row it is, if that can be told
        raise
    note_positive(engine, columns, coding.classes, coding.pos_label)
    labels = {"classes": list(coding.classes), "pos_label": coding.pos_label}
    return evaluation, {**asked.facts(count), **columns.facts, **labels}


# --- calibrators --------------------------------------------------------------------------------


def segment_column(fitted: Fitted, asked: list[str] | None) -> str | tuple[str, ...] | None:
    """The columns of segments: as asked for, or as in the fit; None for a calibrator without."""
    if asked or fitted.map.segments is None:
        return read_segment(asked)
    known = fitted.provenance.get("segment_column")
    if isinstance(known, tuple) and all(isinstance(name, str) for name in known):
        return known
    if not isinstance(known, str):
        raise InputError(
            "the calibrator has a map for each segment, but does not know their column. Name it "
            "with --segment COL, several from coarse to fine."
        )
    return known


def draw(
    after: ScoreTable,
    before: ScoreTable | None = None,
    *,
    format: str = "png",
    bins: Bins = 10,
    fitted_map: Fitted | None = None,
    title: str | None = None,
) -> bytes:
    """A reliability diagram as the bytes of a file."""
    from calibrant.diagrams.draw import reliability_diagram, render

    figure = reliability_diagram(after, raw=before, bins=bins, fitted_map=fitted_map, title=title)
    return render(figure, format)
