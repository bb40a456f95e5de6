"""The report of scores of several classes: the top label, and each class against the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.auto.calibrator import KINDS
from calibrant.auto.held_out_means import Sample
from calibrant.auto.scoring import Judged, choose, standings
from calibrant.auto.several_classes import (
    as_they_came,
    count_distinct,
    judge_classes,
    row_splits,
    unchanged,
)
from calibrant.data.labels import plain
from calibrant.data.score_matrix import (
    ScoreMatrix,
    check_distributions,
    read_matrix,
    read_score_matrix,
)
from calibrant.diagrams.curves import reliability_curve
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.named_methods import BEFORE, named_methods
from calibrant.estimators.registry import calibrators_of
from calibrant.losses import softmax
from calibrant.maps import VectorMap
from calibrant.metrics import evaluate
from calibrant.metrics.probability_matrix import class_table, class_tables, top_table
from calibrant.metrics.ranking import area, one_class
from calibrant.multiclass.coded_calibrator import CodedCalibrator
from calibrant.reports.contest import FOLDS, LEVEL, Contest, out_of_fold_words
from calibrant.reports.key_facts import counted, fingerprint, map_facts, source_facts, version_facts
from calibrant.reports.make import methods_of
from calibrant.reports.recipes import recipes_for
from calibrant.reports.report_value import Panel, Report
from calibrant.reports.segment_section import MOST, figures_of
from calibrant.reports.sentences import verdict_of
from calibrant.scaling.base import provenance_of

__all__ = ["report_classes"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Seen:
    """Rows that were judged: which, and the probabilities of each method for them."""

    matrix: ScoreMatrix
    classes: NDArray[Any]
    rows: Index
    outputs: Mapping[str, Array]
    fitted: Mapping[str, Fitted]
    how: str
    where: str
    single: bool
    level: float = LEVEL
    sample: Sample | None = None

    @property
    def codes(self) -> Index:
        return self.matrix.codes[self.rows]

    @property
    def weight(self) -> Array:
        w = self.matrix.weight
        return np.ones(len(self.rows)) if w is None else w[self.rows]

    def of(self, name: str) -> ScoreMatrix:
        """The predictions of a method with what came."""
        return ScoreMatrix(self.outputs[name], self.codes, self.weight)


def report_classes(
    scores: Any,
    y: Any,
    sample_weight: Any,
    calibrator: Any,
    segments: Any,
    classes: Any,
    title: str | None,
    score_name: str,
    label_name: str,
    source: Any,
    saved_as: str,
) -> Report:
    """As `calibrant.reports.make.report`, for k ≥ 3 columns of scores."""
    if segments is not None:
        raise InputError("segments are for scores of two classes, but several columns came.")
    if y is None:
        raise InputError("y must be given beside scores of several classes.")
    known = source_facts(source)
    matrix, labels = read_matrix(scores, y, sample_weight, classes)
    seen = _seen(calibrator, matrix, labels)
    contest = _contest(seen)
    methods = methods_of(contest)
    chosen = next(row.name for row in contest.standings if row.chosen)
    answers, weight = labels[seen.codes], seen.weight
    evaluation = evaluate(
        answers,
        seen.outputs[chosen],
        raw=None if chosen == BEFORE else seen.outputs[BEFORE],
        sample_weight=weight,
        classes=labels,
        level=contest.level,
        weights="importance",
    )
    fitted = contest.fitted
    facts = {
        "score": f"{score_name}, {matrix.n_classes} columns",
        "label": f"{label_name}, {matrix.n_classes} classes",
        "rows": counted(len(matrix)),
    }
    if matrix.weight is not None:
        facts |= {"weight": counted(matrix.total)}
        facts |= {"effective rows": f"{matrix.effective_size:,.0f}"}
    facts["fingerprint of the data"] = fingerprint(matrix.scores, matrix.codes, seen.weight)
    return Report(
        title=title or f"Calibration of {score_name}",
        verdict=verdict_of(
            methods, level=contest.level, where=contest.where, single=contest.single
        ),
        how=contest.how,
        methods=methods,
        evaluation=evaluation,
        panels=_panels(seen, chosen, contest.level),
        panel_kind="class",
        facts=known | facts | map_facts(fitted) | version_facts(),
        recipes=() if fitted is None else recipes_for(fitted, score_name, saved_as),
        fitted=fitted,
        level=contest.level,
    )


# --- judging ------------------------------------------------------------------------------------


def _seen(calibrator: Any, matrix: ScoreMatrix, classes: NDArray[Any]) -> Seen:
    from calibrant.auto import AutoCalibrator

    calibrator = AutoCalibrator() if calibrator is None else calibrators_of(calibrator)
    if isinstance(calibrator, AutoCalibrator):
        return _automatic(calibrator, matrix, classes)
    if isinstance(calibrator, Fitted):
        calibrator = {calibrator.method or "calibrator": calibrator}
    if isinstance(calibrator, Mapping) and any(
        not isinstance(c, (*KINDS, type)) for c in calibrator.values()
    ):
        return _as_given({str(name): c for name, c in calibrator.items()}, matrix, classes)
    named = named_methods(calibrator, kinds=KINDS, word="calibrator", taken=BEFORE)
    return _fitted(named, matrix, classes)


def _labels(classes: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(plain(label) for label in classes)


def _automatic(auto: Any, matrix: ScoreMatrix, classes: NDArray[Any]) -> Seen:
    named = {}
    if auto.candidates:
        named = named_methods(auto.candidates, kinds=KINDS, word="candidates", taken=BEFORE)
    pairs, clusters = row_splits(matrix, classes, auto.cv, None, auto.random_state)
    trials, sample = judge_classes(
        named, matrix, pairs, clusters, weights=auto.weights, progress=False
    )
    rows = np.concatenate([test for _, test in pairs])
    fitted = {
        name: Fitted(trial.map, _labels(classes), None, name, {}, provenance_of(matrix))
        for name, trial in trials.items()
    }
    outputs = {name: trial.oof for name, trial in trials.items()}
    how = out_of_fold_words(len(pairs))
    where = "On rows it had not seen"
    return Seen(matrix, classes, rows, outputs, fitted, how, where, False, auto.level, sample)


def _fitted(named: Mapping[str, Any], matrix: ScoreMatrix, classes: NDArray[Any]) -> Seen:
    pairs, _ = row_splits(matrix, classes, FOLDS, None, 0)
    rows = np.concatenate([test for _, test in pairs])
    outputs = {BEFORE: as_they_came(matrix, rows)}
    maps = {
        BEFORE: Fitted(
            unchanged(matrix), _labels(classes), None, "Identity", {}, provenance_of(matrix)
        )
    }
    for name, calibrator in named.items():
        parts = [
            _fit(calibrator, matrix.take(train), classes).map_(matrix.scores[test])
            for train, test in pairs
        ]
        outputs[name] = np.concatenate(parts)
        maps[name] = _fit(calibrator, matrix, classes).to_fitted()
    how = out_of_fold_words(len(pairs))
    where = "On rows it had not seen"
    return Seen(matrix, classes, rows, outputs, maps, how, where, len(named) == 1)


def _fit(calibrator: Any, matrix: ScoreMatrix, classes: NDArray[Any]) -> Any:
    one = clone(calibrator)
    if isinstance(one, Calibrator) and not one.multiclass:
        one = CodedCalibrator(one.set_params(pos_label=None, classes=None))
    one.set_params(classes=list(classes))
    return one.fit(matrix.scores, classes[matrix.codes], matrix.weight)


def _as_given(named: Mapping[str, Any], matrix: ScoreMatrix, classes: NDArray[Any]) -> Seen:
    outputs = {BEFORE: _as_distributions(matrix)}
    for name, value in named.items():
        outputs[name] = _predicted(name, value, matrix, classes)
    maps = {name: value for name, value in named.items() if isinstance(value, Fitted)}
    rows = np.arange(len(matrix))
    how = "Judged on these rows with calibrators that were made before: they must be other rows."
    single = len(named) == 1
    return Seen(matrix, classes, rows, outputs, maps, how, "On these rows", single)


def _as_distributions(matrix: ScoreMatrix) -> Array:
    scores = matrix.scores.astype(np.float64)
    return scores if matrix.looks_like_probabilities else softmax(scores)


def _predicted(name: str, value: Any, matrix: ScoreMatrix, classes: NDArray[Any]) -> Array:
    if isinstance(value, (*KINDS, type)):
        raise ParameterError(
            "calibrator must hold either calibrators to be fitted here, or maps and probabilities "
            f"that were made before, but both came ({name!r} is one to be fitted)."
        )
    if not isinstance(value, Fitted):
        p = read_score_matrix(
            value, matrix.n_classes, name=f"calibrator[{name!r}]", classes=classes
        )
        check_distributions(p, f"calibrator[{name!r}]")
        if len(p) != len(matrix):
            raise InputError(
                f"calibrator[{name!r}] must have a row for each of the {len(matrix)} rows of "
                f"positive weight, but {len(p)} came."
            )
        return p.astype(np.float64)
    if not isinstance(value.map, VectorMap) or tuple(value.classes) != _labels(classes):
        raise InputError(
            f"{name} must be for the classes {list(_labels(classes))[:20]}, but it is for "
            f"{list(value.classes)[:20]}."
        )
    return value.predict_proba(matrix.scores)


def _contest(seen: Seen) -> Contest:

    weight, rows = seen.weight, np.arange(len(seen.rows))
    judged = {}
    for name, p in seen.outputs.items():
        own = p[rows, seen.codes]
        with np.errstate(divide="ignore"):
            surprise = -np.log(own)
        square = np.square(p).sum(axis=1) - 2.0 * own + 1.0
        certain = bool(p.min(initial=1.0) <= 0.0)
        judged[name] = Judged(surprise, square, _auc(seen.of(name)), certain)
    sample = seen.sample or Sample(weight, weight**2)
    chosen, tied = choose(judged, sample)
    if seen.single:
        chosen = next(name for name in judged if name != BEFORE)
    board = standings(
        judged,
        sample,
        level=seen.level,
        chosen=chosen,
        tied=tied,
        distinct={name: count_distinct(p) for name, p in seen.outputs.items()},
        seconds=dict.fromkeys(judged, 0.0),
    )
    tables = {name: top_table(seen.of(name)) for name in seen.outputs}
    fitted = seen.fitted.get(chosen)
    return Contest(board, tables, fitted, seen.how, seen.where, seen.level, single=seen.single)


def _auc(matrix: ScoreMatrix) -> float | None:
    """The mean over the classes that came, each against the rest."""
    areas = [area(table) for table in class_tables(matrix) if not one_class(table)]
    return float(np.mean(areas)) if areas else None


def _panels(seen: Seen, chosen: str, level: float) -> tuple[Panel, ...]:
    """A panel for each class, the most frequent ones of very many."""
    before, after = seen.of(BEFORE), seen.of(chosen)
    heaviest = np.argsort(-after.class_weight, kind="stable")[:MOST]
    panels = []
    for column in sorted(heaviest.tolist()):
        old, new = class_table(before, column), class_table(after, column)
        curves = [reliability_curve(t, bins=8, binning="mass", level=level) for t in (old, new)]
        name = str(plain(seen.classes[column]))
        panels.append(Panel(name, curves[0], curves[1], figures_of(old, new, level)))
    return tuple(panels)
