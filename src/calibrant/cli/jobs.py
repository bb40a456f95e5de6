"""The work behind the commands on one score: files and values out, nothing printed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.cli.first_words import names_of
from calibrant.cli.fit_result import FitResult
from calibrant.cli.method_names import ALWAYS, make_calibrator, read_value
from calibrant.cli.reading import FileFeatures, FileSegments, file_facts
from calibrant.cli.showing import too_few
from calibrant.data.provenance import OUT_OF_FOLD, measures_of, read_period
from calibrant.data.score_table import ScoreTable
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import AdviceWarning, InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.registry import DEFAULT
from calibrant.files import save
from calibrant.metrics import Evaluation, Multicalibration, evaluate, multicalibration
from calibrant.metrics.bin_sweep import Bins
from calibrant.metrics.change_intervals import PairedCells
from calibrant.metrics.out_of_fold import evaluate_held_out

if TYPE_CHECKING:
    from calibrant.auto import AutoCalibrator
    from calibrant.estimators.base import Calibrator
    from calibrant.reports.report_value import Report
    from calibrant.segment import SegmentedCalibrator


#: above this many distinct scores the out-of-fold estimate is made on a pooled table
MOST_CELLS, POOLED_CELLS = 200_000, 100_000
#: of intervals where the command line has no option for it
LEVEL = 0.95


# --- fits ---------------------------------------------------------------------------------------


def fit_score(read: FileTable, calibrator: Calibrator, folds: int) -> FitResult:
    """Fit a calibrator, and estimate by cross-validation what it will do for new rows."""
    from calibrant.advice import advise_table
    from calibrant.auto import AutoCalibrator

    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    if folds and isinstance(calibrator, AutoCalibrator):
        calibrator.set_params(cv=folds)
    table = read.table
    fitted = with_facts(calibrator.fit_table(table).to_fitted(), read.facts)
    advice = advise_table(table, calibrator, names=names_of(file_facts(read)))
    result = FitResult(fitted, read, calibrator, advice, folds)
    if not folds or too_few(table):
        return result
    values = len(np.unique(fitted.map(table.scores)))
    if len(table) > MOST_CELLS:
        table = table.pool(POOLED_CELLS)
    seen = _of_choice(calibrator) or _held_out(calibrator, table, folds)
    if table.error:  # the automatic choice has pooled its own
        table = replace(seen.pair.scored(), error=table.error)
    return _judged(result, seen, table, values)


class Unseen(NamedTuple):
    """Predictions of rows that were held out, these beside the scores of the same rows, AUC before
    and after, and the folds."""

    after: ScoreTable
    pair: PairedCells
    aucs: tuple[float | None, float | None] | None
    folds: int


def _of_choice(calibrator: Any) -> Unseen | None:
    """The predictions that an automatic choice has made of rows held out; None without one."""
    board = getattr(calibrator, "leaderboard_", None)
    if board is None:
        return None
    name, aucs = calibrator.chosen_, (board["uncalibrated"].scores_auc, board.chosen.auc)
    return Unseen(calibrator.oof_[name], calibrator.pairs_[name], aucs, board.folds)


def _held_out(calibrator: Calibrator, table: ScoreTable, folds: int) -> Unseen:
    """The predictions of rows held out in turn."""
    from sklearn.base import clone

    from calibrant.auto.folds import parts_of_table
    from calibrant.auto.scoring import judge_maps, pairs_of, ranked_as
    from calibrant.calibrators.uncalibrated import Uncalibrated

    parts, _ = parts_of_table(table, folds, 0)
    before = Uncalibrated().fit_table(table).map_
    first, _ = judge_maps([before] * len(parts), parts, ranks=True)
    maps = [clone(calibrator).fit_table(part.rest).map_ for part in parts]
    judged, after = judge_maps(maps, parts)
    aucs = (first.whole_auc, ranked_as(judged, first)[0])
    return Unseen(after, pairs_of({"after": judged}, parts)["after"], aucs, len(parts))


def _judged(result: FitResult, seen: Unseen, before: ScoreTable, values: int) -> FitResult:
    """The fit with the measures of rows held out: their scores, and so many probabilities."""
    sizes = {"scores": len(result.read.table), "values": values}
    evaluation = evaluate_held_out(
        seen.after, before, seen.pair, level=LEVEL, aucs=seen.aucs, **sizes
    )
    return replace(result, folds=seen.folds, evaluation=evaluation, before=before, after=seen.after)


def make_segmented(
    method: str, settings: Sequence[str], shrinkage: str | None
) -> SegmentedCalibrator:
    """An unfitted calibrator of segments: the default one, or that of a method."""
    from calibrant.estimators.limits import check_parameters
    from calibrant.segment import SegmentedCalibrator

    plain = method == DEFAULT and not settings
    calibrator = None if plain else make_calibrator(method, settings)
    made = SegmentedCalibrator(calibrator, shrinkage=read_value(shrinkage or "cv"))
    check_parameters(made, made._limits)
    return made


def fit_segments(tables: FileSegments, calibrator: SegmentedCalibrator, folds: int) -> FitResult:
    """Fit the segments, and estimate by cross-validation what that does for new rows."""
    from calibrant.advice import advise_table
    from calibrant.segment.held_out import held_out

    read = tables.read
    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    fitted = with_facts(calibrator.fit_tables(tables.by_key).to_fitted(), read.facts)
    advice = advise_table(read.table, names=names_of(file_facts(read)))
    result = FitResult(fitted, read, calibrator, advice, folds)
    if not folds or too_few(read.table):
        return result
    after, pair, dealt = held_out(calibrator, tables.by_key, folds)
    if not after or pair is None:
        return replace(result, folds=0)
    return _judged(result, Unseen(after, pair, None, dealt), read.table, len(after))


def fit_features(given: FileFeatures, folds: int) -> FitResult:
    """The automatic choice with the columns as one more candidate."""
    from calibrant.auto import AutoCalibrator

    file, rows = given.read, given.rows
    auto = AutoCalibrator(cv=folds or 5, classes=list(file.classes), pos_label=file.pos_label)
    with quietly():
        auto.fit(rows.scores, given.y, rows.weight, features=given.features)
    fitted = with_facts(auto.to_fitted(), file.facts)
    result = FitResult(fitted, file, auto, auto.advice_, folds)
    seen = _of_choice(auto)
    if not folds or seen is None or too_few(file.table):
        return replace(result, folds=0)
    return _judged(result, seen, seen.pair.scored(), len(np.unique(seen.after.scores)))


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of single fits: what they say is shown with the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        yield


def check_folds(folds: int) -> None:
    """Refuse a number of folds before anything is read."""
    if folds < 0 or folds == 1:
        raise ParameterError(f"cv must be at least 2, or 0 for no estimate, but {folds} came.")


# --- the record of a fit ------------------------------------------------------------------------


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


def save_fitted(fitted: Fitted | None, facts: Mapping[str, Any], path: Path) -> None:
    """Save a calibrator with what is known of the files that it was fitted to, and of the fit."""
    if fitted is None:
        raise InputError("there is no calibrator to save.")
    save(with_facts(fitted, facts), path)


# --- comparisons --------------------------------------------------------------------------------


def compare(read: FileTable, methods: Sequence[str], folds: int) -> AutoCalibrator:
    """The automatic choice among methods by name, fitted and judged."""
    from calibrant.auto import AutoCalibrator

    names = [name for name in dict.fromkeys(methods) if name not in ALWAYS]
    candidates = {name: make_calibrator(name, []) for name in names}
    auto = AutoCalibrator(
        candidates=candidates, cv=folds, classes=list(read.classes), pos_label=read.pos_label
    )
    return auto.fit_table(read.table)


def evaluate_each(
    tables: Mapping[Any, ScoreTable], bins: Bins, measures: Sequence[str] | None = None
) -> dict[str, Evaluation]:
    """The measures of each segment, the largest first."""
    from calibrant.data.segment_column import segment_names

    keys = sorted(tables, key=lambda key: -tables[key].total)
    names = segment_names(keys)
    return {
        name: evaluate(tables[key], bins=bins, level=None, measures=measures)
        for name, key in zip(names, keys, strict=True)
    }


def find_groups(
    given: FileFeatures, fitted_map: Callable[[Any], Any] | None = None, **drawing: Any
) -> Multicalibration:
    """Where the scores, or what a map makes of them, are wrong; ``drawing`` goes to the measure."""
    rows = given.rows
    p = rows.scores if fitted_map is None else fitted_map(rows.scores).clip(0.0, 1.0)
    return multicalibration(
        rows.positive.astype(int),
        p,
        features=given.features,
        sample_weight=rows.weight,
        classes=[0, 1],
        **drawing,
    )


def with_groups(page: Report, given: FileFeatures | None) -> Report:
    """A page that also tells where its map is wrong, if rows with features were read."""
    if given is None or page.fitted is None:
        return page
    from calibrant.reports.where_wrong import for_page

    found = find_groups(given, page.fitted.map, level=page.level)
    return replace(page, groups=for_page(found))
