"""The base of the calibrators that need more than a score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.data.attributes import AttributeTable, Schema, read_attributes
from calibrant.data.columns import check_class_columns, plain, score_column_facts, to_matrix
from calibrant.data.door import (
    Rows,
    check_lengths,
    check_two_column_order,
    read_class_labels,
    read_labels,
    read_scores,
    read_sorted_classes,
    read_weight,
)
from calibrant.data.scale import ScoreRange
from calibrant.errors import InputError
from calibrant.fitting.base import ScoreEstimator, row_provenance
from calibrant.fitting.fitted import PredictsByRule
from calibrant.fitting.model_scores import Method
from calibrant.rules.base import RowInputs, Rule


class LocalCalibrator(PredictsByRule, ScoreEstimator):
    """Turns scores, labels and what else is known of each row into a rule.

    A subclass declares its parameters and their limits, and what it needs beside new scores
    (``_takes``). It writes ``fit`` with the arguments that it needs, by means of `_read` and
    `_keep`.

    Attributes
    ----------
    rule_ : Rule
        The fitted function, a value.
    classes_ : ndarray of shape (k,)
        The labels, sorted (more than two as ``classes`` names them); the columns of
        `predict_proba`.
    pos_label_ : label
        With two classes: the one whose probability `calibrate` gives; else None.
    """

    _kept_as: ClassVar[str] = "rule_"

    weights: str
    pos_label: Any
    classes: Any
    rule_: Rule
    pos_label_: Any

    @abstractmethod
    def fit_rows(
        self,
        scores: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        groups: Any = None,
        inputs: RowInputs | None = None,
    ) -> Self:
        """Fit to a model's scores of the rows X.

        Rows of one group are a single row that was scored several times. ``inputs`` are what the
        models' `companion` functions give for these rows, if the calibrator `judges_inputs`.
        """

    @property
    def judges_inputs(self) -> bool:
        """Whether `fit_rows` needs its ``inputs``."""
        return False

    @abstractmethod
    def companion(
        self, model: Any, train: Rows | None, rows: Index | None, method: Method = "auto"
    ) -> Callable[[Any], RowInputs]:
        """A function from a model's new rows to what `predict_rows` needs beside their scores.

        The model was fitted to the ``rows`` of ``train`` (None: all of them). ``train`` is None if
        that is not known. ``method`` says how the model is asked for scores.
        """

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> Rows:
        """The rows of a fit, checked, without those of weight zero."""
        self._check_fit(scores, y)
        rows = self._read_labels(y)
        self._check_columns(scores, rows.classes)
        if len(rows.classes) == 2:
            check_two_column_order(scores, self.classes, rows.classes)
        clean = read_class_scores(scores, rows)
        check_lengths(scores=len(clean), y=len(rows.codes))
        weight, columns = read_weight(sample_weight, len(clean)), score_column_facts(scores)
        rows = replace(rows, scores=clean, weight=weight, columns=columns, scale=self._whole)
        return rows.without_weightless()

    def _read_labels(self, y: Any) -> Rows:
        """Rows without scores, of two classes or, where the calibrator takes them, of more."""
        if self.multiclass:
            many, codes = read_class_labels(y, self.classes)
            if len(many) > 2:
                if self.pos_label is not None:
                    raise InputError(
                        f"pos_label must be None with {len(many)} classes, but "
                        f"{self.pos_label!r} came."
                    )
                return Rows(np.empty(0), codes, None, many, None)
        try:
            two = read_labels(y, pos_label=self.pos_label, classes=self.classes)
        except InputError:
            many = read_sorted_classes(y)[0]
            if len(many) < 3:
                raise
            raise InputError(
                f"{type(self).__name__} is for two classes (Only binary classification is "
                f"supported), but y holds {len(many)}: {[plain(c) for c in many][:20]}. Calibrate "
                "one class against the rest, or all of them at once with SimilarityBinning."
            ) from None
        return replace(two, codes=two.positive.astype(np.intp))

    def _check_columns(self, scores: Any, classes: NDArray[Any]) -> None:
        """Refuse three or more columns of scores where only two classes are known."""
        if not self.multiclass or len(classes) > 2:
            return
        shape = to_matrix(scores, "scores").shape
        if len(shape) == 2 and shape[1] > 2:
            raise InputError(
                f"scores have {shape[1]} columns, one for each class, but only "
                f"{[plain(c) for c in classes]} are known. If y lacks some of the classes, name "
                "them all: classes=[...]."
            )

    def _keep(self, rule: Rule, rows: Rows) -> Self:
        """Set the fitted attributes: the rule, the labels, and facts about the rows."""
        self.rule_ = rule
        self.classes_, self.pos_label_ = rows.classes, rows.pos_label
        self.score_range_ = ScoreRange.between(float(rows.scores.min()), float(rows.scores.max()))
        weight = np.ones(len(rows.codes)) if rows.weight is None else rows.weight
        self._provenance = row_provenance(weight, rows.codes, len(rows.classes))
        if len(rows.classes) == 2:
            self._provenance["positive_weight"] = self._provenance.pop("class_weights")[1]
        self._provenance |= rows.columns
        if unused := self._takes - rule.needs:  # a gate kept a map of the score
            self._provenance["unused"] = sorted(unused)
        return self

    def predict_rows(self, scores: Any, rows: RowInputs) -> Array:
        """The probability of each class for scores of the model of the fit, which may be any.

        ``rows`` are what the function of `companion` gives.
        """
        return self._rule_reader.of_classes(scores, rows, "allow")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.multiclass
        return tags


def read_class_scores(scores: Any, labels: Rows) -> Array:
    """Finite scores: (n,) of the positive class for two classes, (n, k) for more."""
    classes, k = labels.classes, len(labels.classes)
    if k == 2:
        return read_scores(scores, positive_column=labels.positive_column, classes=classes)
    matrix = to_matrix(scores, "scores")
    if matrix.ndim != 2 or matrix.shape[1] != k:
        raise InputError(
            f"scores must have one column for each of the {k} classes, but their shape is "
            f"{matrix.shape}. If y lacks some of the classes, name them all: classes=[...]."
        )
    check_class_columns(scores, classes, "scores")
    return np.column_stack([read_scores(matrix[:, j]) for j in range(k)])


class ReadsFeatures:
    """A local calibrator that reads the features of each row."""

    _takes: ClassVar[frozenset[str]] = frozenset({"features"})
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def companion(
        self, model: Any, train: Rows | None, rows: Index | None, method: Method = "auto"
    ) -> Callable[[Any], RowInputs]:
        """The rows of the model as features."""
        return RowInputs

    def _read_features(
        self, features: Any, rows: Rows, nominal: Any
    ) -> tuple[AttributeTable, Schema]:
        """The features of the rows that count, and the schema of their columns."""
        table = read_attributes(features)
        check_lengths(scores=len(rows.kept), features=len(table))
        table = table.take(rows.kept)
        return table, Schema.learn(table, nominal)

    def _keep_names(self, schema: Schema) -> None:
        """Set the number of features, and their names where all of them are text."""
        self.n_features_in_ = len(schema)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if schema.named and all(isinstance(a.name, str) for a in schema.attributes):
            self.feature_names_in_ = np.array([a.name for a in schema.attributes], dtype=object)
