"""The report of scores of several classes: the top label, and each class against the rest."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.array_types import Array, Index
from calibrant.auto import AutoCalibrator
from calibrant.auto.candidate_limits import KINDS
from calibrant.auto.scoring import Judged
from calibrant.auto.several_classes import (
    HeldOutClasses,
    HeldOutMatrix,
    count_distinct,
    judged_rows,
    row_splits,
    unchanged,
)
from calibrant.data.distributions import check_distributions
from calibrant.data.score_matrix import ScoreMatrix, read_matrix, read_score_matrix
from calibrant.data.score_table import ScoreTable
from calibrant.errors import CalibrationWarning, InputError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.held_out_means import Sample
from calibrant.estimators.named_methods import BEFORE, named_methods
from calibrant.maps import VectorMap
from calibrant.metrics import Evaluation, MulticlassEvaluation, evaluate
from calibrant.metrics.class_look import ClassNames, class_look
from calibrant.metrics.out_of_fold import with_auc_within_folds
from calibrant.metrics.probability_matrix import class_table, top_table
from calibrant.multiclass.coded_calibrator import CodedCalibrator
from calibrant.reports.contest import FOLDS, Contest, Entrant, ReportData, contest_behind, decide
from calibrant.reports.key_facts import fingerprint
from calibrant.reports.panel_section import MOST_PANELS, panel_of
from calibrant.reports.report_value import Panel
from calibrant.result_tables import counted
from calibrant.scaling.base import provenance_of, range_of_rows


@dataclass(frozen=True)
class SeveralClasses(ReportData):
    """Rows with a score for each class, and the labels of the classes."""

    matrix: ScoreMatrix
    classes: NDArray[Any]

    kinds: ClassVar[tuple[type, ...]] = KINDS
    panel_kind: ClassVar[str] = "class"

    @classmethod
    def read(cls, scores: Any, y: Any, sample_weight: Any, classes: Any, segments: Any) -> Self:
        """Rows of k ≥ 3 columns of scores."""
        if segments is not None:
            raise InputError("segments are for scores of two classes, but several columns came.")
        if y is None:
            raise InputError("y must be given beside scores of several classes.")
        return cls(*read_matrix(scores, y, sample_weight, classes))

    # --- judging --------------------------------------------------------------------------------

    def automatic(self, auto: AutoCalibrator) -> Contest:
        auto = clone(auto).set_params(classes=list(self.classes))
        matrix = self.matrix
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # the page says it
            auto.fit(matrix.scores, self.classes[matrix.codes], matrix.weight)
        return contest_behind(auto)

    def behind(self, calibrator: Any, unseen: HeldOutClasses) -> Contest:
        """A calibrator that is fitted to these rows already, judged on rows that were held out."""
        (name,) = named_methods([calibrator], kinds=KINDS, word="calibrator", taken=BEFORE)
        outputs = {BEFORE: unseen.before.scores, name: unseen.after.scores}
        codes = self.matrix.codes[unseen.rows]
        judged = {
            called: judged_rows(p, codes, auc)
            for (called, p), auc in zip(outputs.items(), unseen.aucs, strict=True)
        }
        fitted = {BEFORE: self._unchanged(), name: calibrator.to_fitted()}
        return self._decide(outputs, judged, unseen.rows, fitted, unseen.folds)

    def judge_fitted(self, named: Mapping[str, Any]) -> Contest:
        matrix = self.matrix
        pairs, _ = row_splits(matrix, self.classes, FOLDS, None, 0)
        held = HeldOutMatrix(matrix, pairs, "importance")
        outputs, fitted = {BEFORE: held.before}, {BEFORE: self._unchanged()}
        for name, calibrator in named.items():
            parts = [
                self._fit(calibrator, matrix.take(train)).map_(matrix.scores[test])
                for train, test in pairs
            ]
            outputs[name] = np.concatenate(parts)
            fitted[name] = self._fit(calibrator, matrix).to_fitted()
        judged = {name: held.judged(p) for name, p in outputs.items()}
        return self._decide(outputs, judged, held.rows, fitted, len(pairs))

    def judge_given(self, named: Mapping[str, Any]) -> Contest:
        rows = np.arange(len(self.matrix))
        held = HeldOutMatrix(self.matrix, [(rows[:0], rows)], "importance")
        outputs = {BEFORE: held.before}
        outputs |= {name: self._predicted(name, value) for name, value in named.items()}
        judged = {name: held.judged(p) for name, p in outputs.items()}
        maps = {name: value for name, value in named.items() if isinstance(value, Fitted)}
        return self._decide(outputs, judged, rows, maps, None)

    def _unchanged(self) -> Fitted:
        """The scores as they are, as a map."""
        fitted_map = unchanged(self.matrix)
        facts, known = provenance_of(self.matrix), range_of_rows(self.matrix, fitted_map)
        return Fitted(fitted_map, self.labels, None, "Identity", {}, facts, known)

    def _fit(self, calibrator: Any, matrix: ScoreMatrix) -> Any:
        one = clone(calibrator)
        if isinstance(one, Calibrator) and not one.multiclass:
            one = CodedCalibrator(one.set_params(pos_label=None, classes=None))
        one.set_params(classes=list(self.classes))
        return one.fit(matrix.scores, self.classes[matrix.codes], matrix.weight)

    def _predicted(self, name: str, value: Any) -> Array:
        matrix = self.matrix
        if not isinstance(value, Fitted):
            called = f"calibrator[{name!r}]"
            p = read_score_matrix(value, matrix.n_classes, name=called, classes=self.classes)
            check_distributions(p, called)
            if len(p) != len(matrix):
                raise InputError(
                    f"{called} must have a row for each of the {len(matrix)} rows of positive "
                    f"weight, but {len(p)} came."
                )
            return p.astype(np.float64)
        if not isinstance(value.map, VectorMap) or tuple(value.classes) != self.labels:
            raise InputError(
                f"{name} must be for the classes {list(self.labels)[:20]}, but it is for "
                f"{list(value.classes)[:20]}."
            )
        return value.predict_proba(matrix.scores)

    def _decide(
        self,
        outputs: Mapping[str, Array],
        judged: Mapping[str, Judged],
        rows: Index,
        fitted: Mapping[str, Fitted],
        folds: int | None,
    ) -> Contest:
        """The contest of probabilities of these rows of the matrix."""
        codes, weight = self.matrix.codes[rows], self._weight[rows]
        entrants = {}
        for name, p in outputs.items():
            made = ScoreMatrix(p, codes, weight)
            entrants[name] = Entrant(judged[name], made, count_distinct(p), fitted.get(name))
        return decide(entrants, Sample(weight, weight**2), folds)

    @property
    def _weight(self) -> Array:
        weight = self.matrix.weight
        return np.ones(len(self.matrix)) if weight is None else weight

    # --- what the page shows --------------------------------------------------------------------

    def curve_table(self, prediction: Any) -> ScoreTable:
        return top_table(prediction)

    def evaluation(
        self, contest: Contest, measures: Sequence[str] | None = None
    ) -> Evaluation | MulticlassEvaluation:
        before, after = contest.predictions[BEFORE], contest.predictions[contest.chosen]
        made = evaluate(
            self.classes[after.codes],
            after.scores,
            raw=None if contest.chosen == BEFORE else before.scores,
            sample_weight=after.weight,
            classes=self.classes,
            level=contest.level,
            weights="importance",
            measures=measures,
        )
        if contest.folds is None or not isinstance(made, MulticlassEvaluation):
            return made
        standing = {row.name: row for row in contest.standings}
        aucs = standing[BEFORE].scores_auc, standing[contest.chosen].auc
        return with_auc_within_folds(made, *aucs)

    def panels(self, contest: Contest, segments: Any) -> tuple[Panel, ...]:
        before, after = contest.predictions[BEFORE], contest.predictions[contest.chosen]
        heaviest = np.argsort(-after.class_weight, kind="stable")[:MOST_PANELS]
        return tuple(
            panel_of(
                str(self.labels[column]),
                class_table(before, column),
                class_table(after, column),
                bins=8,
                level=contest.level,
            )
            for column in sorted(heaviest.tolist())
        )

    def headline(self, label_name: str) -> tuple[str, bool]:
        look = class_look(self.matrix)
        return look.headline(ClassNames.of(self.labels, label_name, face="page")), look.unproven

    def facts(self, score_name: str, label_name: str) -> dict[str, str]:
        matrix = self.matrix
        facts = {
            "score": f"{score_name}, {matrix.n_classes} columns",
            "label": f"{label_name}, {matrix.n_classes} classes",
            "rows": counted(len(matrix)),
        }
        if matrix.weight is not None:
            facts["weight"] = counted(matrix.total)
            facts["effective rows"] = f"{matrix.effective_size:,.0f}"
        facts["fingerprint of the data"] = fingerprint(matrix.scores, matrix.codes, self._weight)
        return facts
