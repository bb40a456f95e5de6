"""The work behind --segment: a map for each segment, and measures of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.cli.asked_columns import ColumnRoles, note_positive
from calibrant.cli.first_words import names_of
from calibrant.cli.fit_result import FitResult
from calibrant.cli.jobs import LEVEL, Files, rows_of, too_few, with_facts
from calibrant.cli.method_names import make_calibrator, read_value
from calibrant.data.cells import cell_facts
from calibrant.data.lazy_checks import CellsOption
from calibrant.data.score_table import ScoreTable
from calibrant.engines.rows_of_files import FileTable
from calibrant.estimators.registry import DEFAULT

if TYPE_CHECKING:
    from calibrant.engines.open_engine import Engine
    from calibrant.metrics import Evaluation
    from calibrant.metrics.bin_sweep import Bins
    from calibrant.segment import SegmentedCalibrator


class Tables(NamedTuple):
    """The table of each segment, and that of all rows."""

    by_key: dict[Any, ScoreTable]
    read: FileTable


def make(method: str, settings: Sequence[str], shrinkage: str | None) -> SegmentedCalibrator:
    """An unfitted calibrator of segments: the default one, or that of a method."""
    from calibrant.estimators.limits import check_parameters
    from calibrant.segment import SegmentedCalibrator

    plain = method == DEFAULT and not settings
    calibrator = None if plain else make_calibrator(method, settings)
    made = SegmentedCalibrator(calibrator, shrinkage=read_value(shrinkage or "cv"))
    check_parameters(made, made._limits)
    return made


def read(
    engine: Engine,
    files: Files,
    columns: ColumnRoles,
    cells: CellsOption,
    *,
    probabilities: bool = False,
) -> Tables:
    """The tables of segments, by one GROUP BY."""
    rows = rows_of(engine, files, columns, probabilities=probabilities)
    grouped, coding = rows.ask(lambda lazy: lazy.grouped(cells), columns.positive)
    note_positive(engine, columns, coding.classes, coding.pos_label)
    tables = grouped.tables()
    whole = ScoreTable.gather(tables.values())
    if probabilities and not whole.looks_like_probabilities:
        rows.refuse_outside()
    facts = rows.facts(grouped.rows) | columns.facts | cell_facts(whole)
    return Tables(tables, FileTable(whole, coding.classes, coding.pos_label, facts))


def fit(tables: Tables, calibrator: SegmentedCalibrator, folds: int) -> FitResult:
    """Fit the segments, and estimate by cross-validation what that does for new rows."""
    from calibrant.advice import advise_table
    from calibrant.metrics.out_of_fold import evaluate_held_out
    from calibrant.segment.held_out import held_out

    read = tables.read
    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    fitted = with_facts(calibrator.fit_tables(tables.by_key).to_fitted(), read.facts)
    result = FitResult(
        fitted, read, calibrator, advise_table(read.table, names=names_of(read)), folds
    )
    if not folds or too_few(read.table):
        return result
    after, pair, dealt = held_out(calibrator, tables.by_key, folds)
    if not after:
        return replace(result, folds=0)
    sizes = {"scores": len(read.table), "values": len(after)}
    evaluation = evaluate_held_out(after, read.table, pair, level=LEVEL, aucs=None, **sizes)
    return replace(result, folds=dealt, evaluation=evaluation, before=read.table, after=after)


def evaluate_each(
    tables: Mapping[Any, ScoreTable], bins: Bins, measures: Sequence[str] | None = None
) -> dict[str, Evaluation]:
    """The measures of each segment, the largest first."""
    from calibrant.data.segment_column import segment_names
    from calibrant.metrics import evaluate

    keys = sorted(tables, key=lambda key: -tables[key].total)
    names = segment_names(keys)
    return {
        name: evaluate(tables[key], bins=bins, level=None, measures=measures)
        for name, key in zip(names, keys, strict=True)
    }
