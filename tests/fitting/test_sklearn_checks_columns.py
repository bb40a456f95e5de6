"""scikit-learn's own checks, for the calibrators of several columns and of segments.

Their input is one score for each class (or a score and a segment) and not features, so that each is
derived into an adapter that makes its input from the columns of X.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

import calibrant as cal
from calibrant.data.door import read_sorted_classes


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny fits spend their time in waiting threads, if the linear algebra may start any."""
    with threadpool_limits(1):
        yield


def per_class(X, k):
    """A score for each of k classes: the first column times −1 … 1, and a little of the others."""
    return np.outer(np.clip(X[:, 0], -1e3, 1e3), np.linspace(-1.0, 1.0, max(k, 2)))


class Checked:
    """X is checked as scikit-learn does, and its scores are handed on."""

    def fit(self, X, y, sample_weight=None):
        if y is not None:
            X = validate_data(self, X)
            wide = X.shape[1]
            self._learn_from(X, y, sample_weight)
            self.n_features_in_ = wide
            return self
        return super().fit(X, y)

    def _learn_from(self, X, y, sample_weight):
        super().fit(per_class(X, len(np.unique(np.asarray(y)))), y, sample_weight)

    def _given(self, X):
        check_is_fitted(self, "map_")
        return validate_data(self, X, reset=False)

    def predict_proba(self, X):
        return super().predict_proba(per_class(self._given(X), len(self.classes_)))

    def predict(self, X):
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.classifier_tags.poor_score = True
        return tags


class VectorAdapter(Checked, cal.VectorScaling):
    pass


class MatrixAdapter(Checked, cal.MatrixScaling):
    pass


class DirichletAdapter(Checked, cal.Dirichlet):
    pass


class StructuredAdapter(Checked, cal.StructuredScaling):
    pass


class EnsembleAdapter(Checked, cal.EnsembleTemperature):
    pass


class TopLabelAdapter(Checked, cal.TopLabelCalibrator):
    pass


class CodedAdapter(Checked, cal.CodedCalibrator):
    pass


class LabelsAdapter(Checked, cal.MultiLabelCalibrator):
    """Classes as labels of which each row has one."""

    def _learn_from(self, X, y, sample_weight):
        names, codes = read_sorted_classes(y)
        if len(names) < 2:
            raise cal.errors.InputError(
                "y must hold at least two classes, but only one class came."
            )
        one_hot = codes[:, None] == np.arange(len(names))
        cal.MultiLabelCalibrator.fit(self, per_class(X, len(names)), one_hot, sample_weight)
        self.classes_ = names

    def predict_proba(self, X):
        p = super().predict_proba(X)
        return p / p.sum(axis=1, keepdims=True)


class SegmentedAdapter(Checked, cal.SegmentedCalibrator):
    """The first column is the score, and the sign of the last the segment."""

    def _learn_from(self, X, y, sample_weight):
        cal.SegmentedCalibrator.fit(self, X[:, 0], y, sample_weight, segments=X[:, -1] > 0)

    def predict_proba(self, X):
        X = self._given(X)
        return cal.SegmentedCalibrator.predict_proba(self, X[:, 0], segments=X[:, -1] > 0)


SCALING = (VectorAdapter, MatrixAdapter, DirichletAdapter)
ADAPTED = [
    *(kind() for kind in SCALING),
    VectorAdapter(gate=False),
    MatrixAdapter(gate=False, lambda_=0.01, weights="counts"),
    DirichletAdapter(gate=False, lambda_=0.01, weights="counts"),
    StructuredAdapter(weights="counts"),
    EnsembleAdapter(),
    TopLabelAdapter(cal.Platt(weights="counts")),
    CodedAdapter(cal.Platt(weights="counts")),
    LabelsAdapter(cal.Platt(weights="counts")),
    SegmentedAdapter(weights="counts", shrinkage=10.0),
    SegmentedAdapter(cal.Platt(), weights="counts", shrinkage=10.0),
]


def explained(estimator):
    """The gate and a λ of its own hold rows out: one of weight two stays on one side."""
    if isinstance(estimator, SCALING) and estimator.gate:
        return {
            "check_sample_weight_equivalence_on_dense_data": "a row stays whole in its fold",
        }
    return {}


@parametrize_with_checks(ADAPTED, expected_failed_checks=explained)
def test_adapter_passes_every_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "calibrate", "bins", "to_fitted"])
@pytest.mark.parametrize(
    "unfitted",
    [
        cal.ACP(),
        cal.SimilarityBinning(),
        cal.SegmentedCalibrator(),
        cal.CodedCalibrator(cal.Platt()),
        cal.MultiLabelCalibrator(cal.Platt()),
        cal.VectorScaling(),
        cal.CalibratedClassifier(),
        cal.CodedClassifier(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_unfitted_is_refused_by_every_method(unfitted, method):
    if not hasattr(unfitted, method):
        pytest.skip("it has no such method")
    with pytest.raises(NotFittedError):
        getattr(unfitted, method)(*([[0.5]] if method != "to_fitted" else []))
