"""Columns of the rows as one more candidate of the automatic choice."""

from __future__ import annotations

import time
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.advice import warn_of
from calibrant.array_types import Array
from calibrant.auto.explain import SOFT
from calibrant.auto.folds import Fold, parts_of_rows, table_cv
from calibrant.auto.scoring import CandidateTrial, judge_maps
from calibrant.data.score_range import OnRange
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, read_binary
from calibrant.errors import InputError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.named_methods import check_orientation
from calibrant.estimators.splits import FOLDS
from calibrant.local.feature_calibrator import FeatureCalibrator
from calibrant.local.feature_judging import FEATURES, HELD_PART, MANY_ROWS
from calibrant.local.feature_words import columns_in_words, groups_in_words
from calibrant.scaling.base import OneOrMany, count_columns


class TakesFeatures(OneOrMany):
    """What the automatic choice does where it is given the columns of rows.

    If they are chosen there is no map of the score: ``map_`` is absent, and what is saved is the
    rule of the `FeatureCalibrator`.
    """

    cv: Any
    random_state: int
    chosen_: str
    calibrator_: Any
    advice_: Any
    feature_calibrator_: FeatureCalibrator | None
    _feature_seconds: float

    def _fit_features(
        self, scores: Any, y: Any, sample_weight: Any, groups: Any, features: Any
    ) -> Self:
        if y is None:
            raise InputError("this calibrator requires y to be passed, but the target y is None.")
        if count_columns(scores) > 2:
            raise InputError(
                "features are used with two classes only, but scores of several classes came. "
                "Leave features out."
            )
        rows = read_binary(scores, y, sample_weight, pos_label=self.pos_label, classes=self.classes)
        check_orientation(self._named((Calibrator,)), rows)
        cv, notes = self._feature_cv(rows.count)
        start = time.perf_counter()
        local = FeatureCalibrator(
            cv=cv,
            weights=self.weights or "importance",
            random_state=self.random_state,
            pos_label=rows.pos_label,
            classes=list(rows.classes),
        )
        local.fit(scores, y, features=features, sample_weight=sample_weight, groups=groups)
        self._feature_seconds = time.perf_counter() - start
        self.feature_calibrator_ = local
        if local.trial_ is None:  # nothing can be held out
            table = ScoreTable.from_rows(rows)
            return self._learn(table, rows.classes, rows.pos_label, lambda t: self._judge(t, []))
        return self._learn_by_rows(rows, cv, groups, notes)

    def _learn_by_rows(self, rows: Rows, cv: Any, groups: Any, notes: tuple[str, ...] = ()) -> Self:
        """Judge the candidates on splits of the rows, and fit the one that is taken."""
        counts = self.weights == "counts"
        table, parts = parts_of_rows(rows, cv, groups, self.random_state, counts=counts)
        if rows.share is not None:
            notes = (*notes, SOFT)
        self._learn(table, rows.classes, rows.pos_label, lambda t: self._judge(t, parts, notes))
        self._provenance |= rows.facts
        if self._by_features:
            del self.map_
        warn_of(self._warnings)
        return self

    def _feature_cv(self, rows: int) -> tuple[Any, tuple[str, ...]]:
        """The splits, as a value that can be used twice."""
        if table_cv(self.cv):
            if rows > MANY_ROWS:
                return HELD_PART, (f"judged on {HELD_PART:.0%} of the rows, held out once",)
            return (FOLDS if self.cv is None else self.cv), ()
        if isinstance(self.cv, Real) or hasattr(self.cv, "split"):
            return self.cv, ()
        return list(self.cv), ()

    def _feature_trials(self, parts: list[Fold]) -> dict[str, CandidateTrial]:
        """The columns as a candidate, on the same rows held out; none without columns."""
        local = getattr(self, "feature_calibrator_", None)
        if local is None or local.trial_ is None:
            return {}
        p = local.trial_.judged[FEATURES].p
        ends = np.cumsum([len(part.scores) for part in parts])[:-1]
        maps = [(lambda _, own=own: own) for own in np.split(p, ends)]
        judged, oof = judge_maps(maps, parts)
        trial = CandidateTrial(lambda _: p, self._feature_seconds, judged, oof, local)
        return {FEATURES: trial}

    @property
    def _by_features(self) -> bool:
        return getattr(self, "chosen_", "") == FEATURES

    def _feature_words(self) -> str:
        """From which columns, and for which groups."""
        local = getattr(self, "feature_calibrator_", None)
        if local is None or not self._by_features:
            return ""
        parts = (columns_in_words(local.importances_), groups_in_words(local.groups_))
        return " ".join(part for part in (*parts, *local.notes_) if part)

    # --- what it gives --------------------------------------------------------------------------

    def calibrate(self, scores: Any, *, features: Any = None, on_range: OnRange = "error") -> Any:
        """The calibrated probability of ``pos_label_`` for each score, shape (n,).

        ``features`` are needed where ``chosen_`` is ``"features"``, and not looked at elsewhere.
        ``on_range`` is as in `Calibrator`.
        """
        if self._by_features:
            return self.calibrator_.calibrate(scores, features=features, on_range=on_range)
        return super().calibrate(scores, on_range=on_range)

    def predict_proba(
        self, scores: Any, *, features: Any = None, on_range: OnRange = "error"
    ) -> Array:
        """The probability of each class, columns in the order of ``classes_``: see `calibrate`."""
        if self._by_features:
            p: Array = self.calibrator_.predict_proba(scores, features=features, on_range=on_range)
            return p
        return super().predict_proba(scores, on_range=on_range)

    def predict(
        self, scores: Any, *, features: Any = None, on_range: OnRange = "error"
    ) -> NDArray[Any]:
        """The most probable class of each row (the first in sorted order on ties)."""
        if self._by_features:
            labels: NDArray[Any] = self.calibrator_.predict(
                scores, features=features, on_range=on_range
            )
            return labels
        return super().predict(scores, on_range=on_range)

    def to_fitted(self) -> Any:
        return self.calibrator_.to_fitted() if self._by_features else super().to_fitted()

    def __sklearn_is_fitted__(self) -> bool:
        return self._by_features or super().__sklearn_is_fitted__()
