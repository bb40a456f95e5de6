"""What every calibrator of scores shares: scikit-learn's contract, and the value that is saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from calibrant.array_types import Array
from calibrant.data.score_range import OnRange, ScoreRange
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain
from calibrant.errors import InputError
from calibrant.estimators.fitted import AppliedMap, Fitted
from calibrant.estimators.limits import Limit, check_parameters
from calibrant.maps import Map, VectorMap

#: scikit-learn's metadata routing takes every argument but X and y for metadata; these are none
NOT_ROUTED: dict[str, Any] = {"scores": UNUSED, "on_range": UNUSED}
#: a subclass may call them otherwise, and what a signature lacks can only be removed once it is
#: declared
DECLARED: dict[str, Any] = dict.fromkeys(NOT_ROUTED)


class KeepsMap:
    """An estimator whose fitted state is a map, the labels that it speaks of, and facts of the fit.

    A fit sets ``map_``, ``classes_``, ``score_range_``, ``_provenance`` and, with two classes,
    ``pos_label_``.
    """

    map_: Map
    classes_: NDArray[Any]
    score_range_: ScoreRange
    _provenance: dict[str, Any]

    def to_fitted(self) -> Fitted:
        """The fitted state as a plain value, as `save` writes it."""
        check_is_fitted(self)
        return Fitted(self.map_, *self._saved_beside())

    def _saved_beside(self) -> tuple[Any, ...]:
        """What is saved beside the map: labels, method, parameters, facts, range of the scores."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        return (
            tuple(plain(label) for label in self._class_labels),
            plain(getattr(self, "pos_label_", None)),
            type(self).__name__,
            {name: _jsonable(value) for name, value in params.items()},
            dict(self._provenance),
            self._fitted_range,
        )

    @property
    def _class_labels(self) -> Any:
        """What the columns of probabilities are called."""
        return self.classes_

    @property
    def _fitted_range(self) -> ScoreRange | None:
        """The scores of the fit; None for an estimator pickled before that was kept."""
        return getattr(self, "score_range_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")


class ScoreEstimator(KeepsMap, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A calibrator as scikit-learn sees it: a classifier whose rows are scores.

    A subclass declares its parameters in ``__init__`` and their limits in ``_limits``, and writes
    ``fit``.
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {}
    #: which scores of a model it calibrates
    score_method: ClassVar[str] = "auto"
    #: whether it takes more than two classes
    multiclass: ClassVar[bool] = False
    #: whether scores are one column, or several of which each has its own meaning
    _one_column: ClassVar[bool] = True
    # read in the order of their names (before scikit-learn 1.8), or of the class
    _A__metadata_request__fit: ClassVar[dict[str, Any]] = DECLARED
    _A__metadata_request__predict: ClassVar[dict[str, Any]] = DECLARED
    _A__metadata_request__predict_proba: ClassVar[dict[str, Any]] = DECLARED
    __metadata_request__fit: ClassVar[dict[str, Any]] = NOT_ROUTED
    __metadata_request__predict: ClassVar[dict[str, Any]] = NOT_ROUTED
    __metadata_request__predict_proba: ClassVar[dict[str, Any]] = NOT_ROUTED

    def _check_fit(self, scores: Any, y: Any) -> None:
        """Refuse parameters outside their limits, and a fit without labels."""
        check_parameters(self, self._limits)
        if isinstance(scores, ScoreTable):
            raise InputError(
                "scores must be a column, one per row, but a ScoreTable came, which holds scores "
                "and labels already. Use fit_table(table)."
            )
        if y is None:
            raise InputError("this calibrator requires y to be passed, but the target y is None.")

    @property
    def _positive_column(self) -> int:
        label = getattr(self, "pos_label_", None)
        return int(label is None or self.classes_[0] != label)

    @property
    def _applied(self) -> AppliedMap:
        check_is_fitted(self)
        known: dict[str, Any] = getattr(self, "_provenance", {})
        return AppliedMap(
            self.map_, self._positive_column, self._fitted_range, self._class_labels, known
        )

    def predict_proba(self, scores: Any, *, on_range: OnRange = "error") -> Array:
        """The probability of each class, columns in the order of ``classes_``.

        Where the scores of the fit were probabilities, so must these be: others are refused
        (``on_range="error"``), moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        return self._applied.predict_proba(scores, on_range=on_range)

    def predict(self, scores: Any, *, on_range: OnRange = "error") -> NDArray[Any]:
        """The most probable class of each row (the first in sorted order on ties).

        ``on_range`` is as in `predict_proba`.
        """
        best = self._applied.predict(scores, on_range=on_range)  # refuses what is unfitted
        return self.classes_.take(best)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = self._one_column
        tags.input_tags.two_d_array = not self._one_column
        tags.classifier_tags.multi_class = not self._one_column
        return tags


class ScoreTransformer(TransformerMixin):  # type: ignore[misc]
    """Lets a calibrator be any step of a pipeline: scores in, columns of probabilities out."""

    map_: Map
    classes_: NDArray[Any]

    def transform(self, X: Any) -> Any:
        """Calibrated probabilities as columns, in the container that ``set_output`` names.

        Parameters
        ----------
        X : scores, as `predict_proba` takes them

        Returns
        -------
        array of shape (n, 1), or a frame
            The probability of ``pos_label_``. A calibrator of all classes' scores gives (n, k), in
            the order of ``classes_``.
        """
        check_is_fitted(self)
        if isinstance(getattr(self, "map_", None), VectorMap):
            return self.predict_proba(X)
        return np.asarray(self.calibrate(X))[:, None]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of `transform`: "probability", or one for each class."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        if not isinstance(getattr(self, "map_", None), VectorMap):
            return np.array(["probability"], dtype=object)
        return np.array([f"probability_{label}" for label in self.classes_], dtype=object)


def _jsonable(value: Any) -> Any:
    """A parameter as JSON can hold it; what it cannot, as its repr."""
    value = plain(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return repr(value)
