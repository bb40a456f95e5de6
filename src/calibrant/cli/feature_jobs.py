"""The work behind --features: corrections learnt from further columns, and groups of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.cli.asked_columns import ColumnRoles, note_positive
from calibrant.cli.fit_result import FitResult
from calibrant.cli.jobs import LEVEL, Files, too_few
from calibrant.data.lazy_checks import Names
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows
from calibrant.engines.files.spelled_labels import classes_of
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import AdviceWarning, InputError, ParameterError
from calibrant.estimators.saved_labels import label_array

if TYPE_CHECKING:
    from calibrant.engines.open_engine import Engine
    from calibrant.metrics import Multicalibration
    from calibrant.reports.report_value import Report


class FeatureFile(NamedTuple):
    """The rows of files, their columns beside the score, and the table of the scores."""

    rows: Rows
    y: Any
    features: Any
    table: FileTable


def read(
    engine: Engine,
    files: Files,
    roles: ColumnRoles,
    features: Sequence[str],
    *,
    probabilities: bool = False,
    learn: bool = False,
) -> FeatureFile:
    """The rows of files, in memory. To ``learn`` from, a column of another role is refused."""
    features = list(dict.fromkeys(features))
    taken = (roles.score, roles.label, roles.weight) if learn else ()
    twice = [name for name in features if name in taken]
    if twice:
        raise ParameterError(f"--features must be other columns, but {twice[0]!r} has a role.")
    names = Names(roles.score, roles.label, roles.weight)
    rows = engine.feature_rows(files, features, names, "probability" if probabilities else "score")
    spelled = rows.labels()
    coding = classes_of(spelled, roles.label, roles.positive)
    classes, pos_label = coding.classes, coding.pos_label
    if learn:
        note_positive(engine, roles, classes, pos_label)
    codes = {word: list(classes).index(label) for word, label in spelled.items()}
    found = rows.read([roles.score], codes, features)
    positive = found.codes == list(classes).index(pos_label)
    scores, labels = found.numbers[:, 0], label_array(classes)
    each = Rows(scores, positive, found.weight, labels, pos_label)
    facts = rows.facts(len(scores)) | {
        "score_column": roles.score,
        "feature_columns": features,
        **roles.facts,
    }
    table = FileTable(ScoreTable.from_rows(each), classes, pos_label, facts)
    return FeatureFile(each, labels[found.codes], found.features, table)


def find_groups(
    given: FeatureFile, fitted_map: Callable[[Any], Any] | None = None, **drawing: Any
) -> Multicalibration:
    """Where the scores, or what a map makes of them, are wrong; ``drawing`` goes to the measure."""
    from calibrant.metrics import multicalibration

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


def with_groups(page: Report, given: FeatureFile | None) -> Report:
    """A page that also tells where its map is wrong, if rows with features were read."""
    if given is None or page.fitted is None:
        return page
    from calibrant.reports.where_wrong import for_page

    found = find_groups(given, page.fitted.map, level=page.level)
    return replace(page, groups=for_page(found))


@dataclass(frozen=True)
class FeatureFitResult(FitResult):
    """A fit with further columns, and how it does on rows it has not seen."""

    def picture(self, format: str) -> bytes:
        from calibrant.cli.jobs import draw

        if self.after is None:
            raise InputError("a plot needs at least two rows of each class.")
        return draw(self.after, self.before, format=format)

    def page(self, saved_as: Path | None) -> Report:
        raise ParameterError("there is no report on features yet: leave --report out.")


def fit(given: FeatureFile, folds: int) -> FitResult:
    """The automatic choice with the columns as one more candidate."""
    from calibrant.auto import AutoCalibrator
    from calibrant.metrics.out_of_fold import evaluate_held_out

    file, rows = given.table, given.rows
    auto = AutoCalibrator(cv=folds or 5, classes=list(file.classes), pos_label=file.pos_label)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)  # it is shown with the result
        auto.fit(rows.scores, given.y, rows.weight, features=given.features)
    fitted: Any = auto.to_fitted()
    fitted = replace(fitted, provenance={**fitted.provenance, **file.facts})
    result = FeatureFitResult(fitted, file, auto, auto.advice_, folds)
    board = auto.leaderboard_
    if not folds or board is None or too_few(file.table):
        return replace(result, folds=0)
    name = auto.chosen_
    after, pair = auto.oof_[name], auto.pairs_[name]
    aucs = (board["uncalibrated"].auc, board.chosen.auc)
    before = pair.scored()
    sizes = {"scores": len(file.table), "values": len(np.unique(after.scores))}
    evaluation = evaluate_held_out(after, before, pair, level=LEVEL, aucs=aucs, **sizes)
    return replace(result, folds=board.folds, evaluation=evaluation, before=before, after=after)
