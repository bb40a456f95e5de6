"""The base of the calibrators that need more than a score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
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
        """Fit on a model's scores of the rows X.

        Rows of one group are a single row that was scored several times. ``inputs`` is what the
        companions of the models of the scores found for these rows, if `judges_inputs`.
        """

    @property
    def judges_inputs(self) -> bool:
        """Whether `fit_rows` asks for what companions find for the rows of the fit."""
        return False

    @abstractmethod
    def companion(
        self, model: Any, train: Rows | None, rows: Index | None, method: Method = "auto"
    ) -> Callable[[Any], RowInputs]:
        """A function that finds, for new rows, what is needed beside the model's scores.

        The model was fitted to the ``rows`` of ``train`` (None: all of them). ``train`` is None if
        that is not known. ``method`` gives the model's scores.
        """

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> Rows:
        """Check the parameters and the rows, code the labels, and drop rows of weight zero."""
        self._check_fit(scores, y)
        classes, codes, pos_label = self._labels(y)
        column = int(classes[0] != pos_label) if len(classes) == 2 else 1
        self._check_columns(scores, classes)
        if len(classes) == 2:
            check_two_column_order(scores, self.classes, classes)
        clean = read_class_scores(scores, classes, column)
        check_lengths(scores=len(clean), y=len(codes))
        known = read_weight(sample_weight, len(codes)), classes, pos_label
        rows = Rows(clean, codes, *known, columns=score_column_facts(scores), scale=self._whole)
        return rows.without_weightless()

    def _labels(self, y: Any) -> tuple[NDArray[Any], Index, Any]:
        if self.multiclass:
            many, codes = read_class_labels(y, self.classes)
            if len(many) > 2:
                if self.pos_label is not None:
                    raise InputError(
                        f"pos_label must be None with {len(many)} classes, but "
                        f"{self.pos_label!r} came."
                    )
                return many, codes, None
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
        return two.classes, two.positive.astype(np.intp), two.pos_label

    def _check_columns(self, scores: Any, classes: NDArray[Any]) -> None:
        """Refuse scores of more classes than are known: those that y lacks must be named."""
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
        """Set the fitted attributes."""
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
        """As predict_proba, for the model's own scores and what `companion` found."""
        return self._applied.of_classes(scores, rows, "allow")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.multiclass
        return tags


def read_class_scores(scores: Any, classes: NDArray[Any], positive_column: int) -> Array:
    """Finite scores: (n,) of the positive class for two classes, (n, k) for more."""
    k = len(classes)
    if k == 2:
        return read_scores(scores, positive_column=positive_column, classes=classes)
    matrix = to_matrix(scores, "scores")
    if matrix.ndim != 2 or matrix.shape[1] != k:
        raise InputError(
            f"scores must have one column for each of the {k} classes, but their shape is "
            f"{matrix.shape}. If y lacks some of the classes, name them all: classes=[...]."
        )
    check_class_columns(scores, classes, "scores")
    return np.column_stack([read_scores(matrix[:, j]) for j in range(k)])


class ReadsFeatures:
    """What the local calibrators share that look at the features of each row."""

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
        """Set how many features there are, and their names if they came with words for names."""
        self.n_features_in_ = len(schema)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if schema.named and all(isinstance(a.name, str) for a in schema.attributes):
            self.feature_names_in_ = np.array([a.name for a in schema.attributes], dtype=object)
