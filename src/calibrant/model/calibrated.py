"""A model and its calibrator as one scikit-learn classifier."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _num_samples, check_is_fitted

from calibrant.array_types import Array, Index
from calibrant.auto.advice import known_rows, warn_of
from calibrant.data.columns import column_names, in_order, plain, to_column
from calibrant.data.door import check_lengths, read_weight
from calibrant.data.labels import soft_labels
from calibrant.errors import InputError, ParameterError, in_our_words
from calibrant.fitting.base import Calibrator
from calibrant.fitting.fitted import Fitted
from calibrant.fitting.folds import SPLITTING, cv_kind
from calibrant.fitting.limits import Limit, OneOf, check_parameters
from calibrant.fitting.model_scores import (
    SCORE_METHODS,
    FitParams,
    Method,
    ModelRows,
    chosen_method,
    keep_feature_names,
    model_classes,
    model_tags,
    model_to_fit,
    positive_class,
    refuse_dispatched,
    score_method,
    warn_no_weights,
    warn_refitted,
    weight_argument,
)
from calibrant.model.member import (
    AnyCalibrator,
    Member,
    any_calibrator_of,
    fit_member,
    fit_models,
    scale_of_scores,
    segmented_of,
)


class CalibratedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any classifier, with probabilities that can be taken at their word.

    The calibrator must see scores as they will be on new rows, so it should not learn from scores
    of rows that the model was trained on. ``cv`` says where its scores come from.

    Parameters
    ----------
    estimator : classifier or callable, default: LogisticRegression(max_iter=1000)
        Anything with ``fit`` and with ``predict_proba`` or ``decision_function``. With
        ``cv="prefit"`` it is already fitted, needs no ``fit``, and may be a plain function from
        rows to scores: (n,), where high means the positive class, or (n, k) in the order of the
        sorted classes. scikit-learn's ``FrozenEstimator(model)`` is prefit whatever ``cv`` is.
    calibrator : calibrator of any kind, or a name, default: AutoCalibrator()
        A name (``"isotonic"``, ``"platt"`` or ``"sigmoid"``, ``"bls"``, …) has default options.
        Cloned before it is fitted. Its ``pos_label`` and ``classes`` count with two classes.
        `SimilarityBinning` gets the rows X as its features; `ACP` gets the intervals of the model's
        probabilities, computed from the rows that the model was fitted on.
    cv : int, None, splitter, iterable of splits, float, "prefit" or "train", default=3
        - int, splitter, iterable: the model is fitted once per fold, its scores of the rows left
          out are pooled, **one** calibrator is fitted on them, and the model is fitted again on
          all rows [1]_. An int means stratified folds in the order of rows, and with ``groups``
          stratified folds that keep groups together; None means 5, as in scikit-learn. A row
          scored r times counts 1/r each time. With several classes a fold may train without some
          of them (`CalibrationWarning`): its model then gives them probability 0.
        - float in (0, 1): this fraction of each class is held out, drawn at random, for the
          calibrator; the model is fitted on the rest only. With ``groups`` they are kept together.
        - ``"prefit"``: the estimator is fitted already; all rows calibrate. With any other ``cv``
          a fitted estimator is fitted anew, which an `AdviceWarning` says.
        - ``"train"``: the model is fitted on all rows and calibrated on the same ones: only for
          models that cannot overfit, and to reproduce papers that did so.
    ensemble : bool, default=False
        Keep each fold's model with a calibrator of its own and average their probabilities,
        instead of one refitted model with one pooled calibrator. Only with folds. A frozen
        estimator stays the same in each fold; only its calibrators differ.
    decision : {"calibrated", "model"}, default="calibrated"
        Whether `predict` gives the class of the highest calibrated probability, or the model's own
        decision (an ensemble's most frequent one).
    response_method : str or callable, default="auto"
        ``"auto"``, ``"raw_score"``, ``"predict_proba"``, ``"decision_function"`` or a function.
        Where the model's scores come from. ``"auto"``: what the calibrator asks for
        (`LogisticCorrection` needs ``decision_function``), else the first of these that the model
        has. A function of the fitted model and rows, such as `boosting_score`, gives (n,) scores
        that are high for the larger class, or (n, k).
    segments : column or list of columns of X, default=None
        With two classes: each segment gets a map of its own, shrunk to the coarser one, see
        `SegmentedCalibrator`. Several columns, such as ``["country", "product"]``, go from coarse
        to fine. Of an array, columns are numbers. The model sees them, too.
    random_state : int, RandomState or None, default=None
        Draws the rows held out by a float ``cv``.
    n_jobs : int or None, default=None
        How many folds are fitted at a time, as in joblib. The result is the same for any number.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted; the columns of `predict_proba`.
    pos_label_ : label
        With two classes: the one whose probability `calibrate` gives.
    estimator_ : fitted model
        The model whose scores are calibrated (not with ``ensemble=True``).
    calibrator_ : fitted calibrator
        Of the model's scores; with more than two classes one of all of them, such as a
        `CodedCalibrator` (not with ``ensemble=True``).
    calibrators_ : list of fitted calibrators
        With more than two classes, each class's own calibrator (not with ``ensemble=True``).
    members_ : list of Member
        Model and calibrators together: one member, or with ``ensemble=True`` one per fold.
    n_features_in_, feature_names_in_
        As the model has them.

    Notes
    -----
    More than two classes: a calibrator of one score is made a `CodedCalibrator`, which calibrates
    each class against the rest and divides the results by their sum [2]_ (a row of zeros becomes
    uniform). One of all classes' scores (`Temperature`, `VectorScaling`, …, or a `CodedCalibrator`
    of your own) is fitted to the (n, k) scores as they are. `CodedClassifier` also trains a model
    for each binary question.

    Rows are handed to the model as they came, only picked by index. Only a frame that has the names
    of the fit in another order is brought into the order of the fit; as many other names are
    refused. Weights reach the calibrator always and the model if its fit takes them
    (`CalibrationWarning` if not).

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines", 1999.
    .. [2] B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002, doi:10.1145/775047.775151.

    Examples
    --------
    >>> import calibrant as cal
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import log_loss
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(2000, n_redundant=10, flip_y=0.1, class_sep=0.7, random_state=1)
    >>> raw = GaussianNB().fit(X[:1000], y[:1000])
    >>> model = CalibratedClassifier(GaussianNB(), cal.Isotonic(smoothing="laplace"), cv=3)
    >>> model = model.fit(X[:1000], y[:1000])
    >>> [round(log_loss(y[1000:], m.predict_proba(X[1000:])), 2) for m in (raw, model)]
    [1.03, 0.4]

    A model that exists already, or only a function from rows to its scores:

    >>> score = lambda rows: raw.predict_proba(rows)[:, 1]
    >>> later = CalibratedClassifier(score, cv="prefit").fit(X[1000:], y[1000:])
    >>> later.predict(X[3:6]).tolist()
    [1, 0, 1]
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "ensemble": (OneOf((True, False)),),
        "decision": (OneOf(("calibrated", "model")),),
    }
    #: it takes rows, not scores: what saves and exports calibrators refuses it
    takes_rows: ClassVar[bool] = True

    classes_: NDArray[Any]
    members_: list[Member]

    @in_our_words
    def __init__(
        self,
        estimator: Any = None,
        calibrator: AnyCalibrator | str | None = None,
        *,
        cv: Any = 3,
        ensemble: bool = False,
        decision: str = "calibrated",
        response_method: Method = "auto",
        segments: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.decision = decision
        self.response_method = response_method
        self.segments = segments
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the model (unless prefit) and the calibrator of its scores.

        Parameters
        ----------
        X : rows
            Whatever the estimator takes; with folds or a fraction it must be possible to pick rows.
        y : array-like of shape (n,)
            Labels: two or more values of any kind. Or soft labels: floats in [0, 1], some of them
            fractions, are probabilities of the class 1. A model that is fitted learns each such row
            as a negative and a positive one, by their weights, and its fit must take these.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0, for the model and the calibrator.
        groups : array-like of shape (n,), optional
            Rows of one group stay on one side of every split. Without splits they have no effect.
        **fit_params
            For the model's fit; through metadata routing, where that is enabled. Columns of n rows
            are cut by split. ``eval_set="fold"`` makes the rows that a split holds out the
            evaluation set of its model, for early stopping in LightGBM and XGBoost. The model
            that is fitted again on all rows does the folds' mean number of rounds.
        """
        check_parameters(self, self._limits)
        kind = self._kind()
        estimator, calibrator = self._parts(kind)
        names = column_names(X)
        if kind == "prefit" or isinstance(estimator, FrozenEstimator):
            names = tuple(getattr(estimator, "feature_names_in_", names))
            X = in_order(X, names)
        data = self._read(X, y, sample_weight, kind, estimator, calibrator)
        params = params_of_fit(self, estimator, fit_params, len(data.codes), kind)
        if fit_params and data.share is not None:
            params.check_soft(estimator)
        data = replace(data, fit_params=params)
        trained = None if kind == "prefit" else data
        if trained is None:
            warn_of(known_rows(estimator, X))
        found = fit_models(self, data, estimator, kind, groups)
        told = (trained, self.segments, scale_of_scores(data, found))
        self._keep([fit_member(calibrator, data, m, *told) for m in found])
        self._columns = names
        return self

    def _kind(self) -> str:
        """What ``cv`` asks for; a frozen model is prefit, whatever the folds."""
        kind = cv_kind(self.cv)
        if self.ensemble and kind != "folds":
            raise ParameterError(
                f"ensemble=True keeps one model per fold, but cv={self.cv!r} has no folds. Use a "
                "number of folds or a splitter, or ensemble=False."
            )
        frozen = isinstance(self.estimator, FrozenEstimator)
        return "prefit" if frozen and not self.ensemble else kind

    def _parts(self, kind: str) -> tuple[Any, AnyCalibrator]:
        """The estimator and the calibrator, defaults filled in."""
        make = any_calibrator_of if self.segments is None else segmented_of
        estimator, calibrator = self.estimator, make(self.calibrator)
        if not callable(self.response_method):
            check_parameters(self, {"response_method": (OneOf(tuple(SCORE_METHODS)),)})
        if kind != "prefit":
            hint = ' If it is fitted already, or a function from rows to scores, use cv="prefit".'
            return model_to_fit(estimator, hint), calibrator
        if estimator is None:
            raise ParameterError('cv="prefit" needs a fitted estimator, but None came.')
        score_method(estimator, chosen_method(self.response_method, calibrator))
        if self.decision == "model" and not hasattr(estimator, "predict"):
            raise ParameterError(
                'decision="model" needs an estimator with predict, but a function came. Use '
                'decision="calibrated".'
            )
        return estimator, calibrator

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        kind: str,
        estimator: Any,
        calibrator: AnyCalibrator,
    ) -> ModelRows:
        """The rows, checked; a warning where the model cannot be used as it came."""
        fitted = kind == "prefit"
        refuse_dispatched(X, estimator)
        classes, codes, share = labels_of_model(y, estimator, calibrator, fitted=fitted)
        if kind in SPLITTING or (share is not None and not fitted):
            (X,) = indexable(X)
            check_lengths(X=_num_samples(X), y=len(codes))
        weight = read_weight(sample_weight, len(codes))
        positive = positive_class(calibrator, classes)
        if not fitted and not isinstance(estimator, FrozenEstimator):
            if weight is not None and weight_argument(estimator) is None:
                warn_no_weights(estimator)
            if kind in SPLITTING:
                warn_refitted(estimator)
        method = chosen_method(self.response_method, calibrator)
        return ModelRows(X, codes, weight, classes, positive, method, share=share)

    def _keep(self, members: list[Member]) -> None:
        """Set the fitted attributes, and remove those of an earlier fit of another kind."""
        for name in ("estimator_", "calibrator_", "calibrators_", "pos_label_"):
            self.__dict__.pop(name, None)
        first = members[0]
        self.classes_, self.members_ = first.classes, members
        if len(first.classes) == 2:
            self.pos_label_ = first.classes[first.positive]
        if not self.ensemble:
            self.estimator_ = first.estimator
            self.calibrator_ = first.calibrator
            if len(first.classes) > 2:
                self.calibrators_ = list(first.calibrators)
        keep_feature_names(self, first.estimator)

    def _rows(self, X: Any) -> Any:
        """New rows, with a frame's columns in the order of the fit; other names are refused, but
        for those of a function, which may pick columns as it likes."""
        check_is_fitted(self, "members_")
        model = self.members_[0].estimator
        return in_order(X, getattr(self, "_columns", ()), "X" if hasattr(model, "fit") else "")

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, shape (n, k), columns in the order of ``classes_``."""
        X = self._rows(X)
        members = [member.predict_proba(X) for member in self.members_]
        return members[0] if len(members) == 1 else np.mean(members, axis=0)

    def calibrate(self, X: Any) -> Array:
        """With two classes: the calibrated probability of ``pos_label_``, shape (n,)."""
        check_is_fitted(self, "members_")
        if len(self.classes_) != 2:
            raise InputError(
                f"calibrate gives the probability of one of two classes, but {len(self.classes_)} "
                "were fitted. Use predict_proba."
            )
        return self.predict_proba(X)[:, self.members_[0].positive]

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels: the most probable class (the first on ties), or the model's own decision."""
        check_is_fitted(self, "members_")
        if self.decision == "calibrated":
            best = np.argmax(self.predict_proba(X), axis=1)
        else:
            X = self._rows(X)
            refuse_dispatched(X, self.members_[0].estimator)
            votes = [np.asarray(member.estimator.predict(X)) for member in self.members_]
            if len(votes) == 1:
                return votes[0]
            best = np.argmax([sum(v == label for v in votes) for label in self.classes_], axis=0)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def to_fitted(self) -> Fitted:
        """The calibrator as a plain value for `save`: a map of the **model's scores**.

        The model itself is not in it. To use it, pass the model's scores of new rows; their kind
        and the model's name stand in the provenance.
        """
        check_is_fitted(self, "members_")
        if len(self.members_) > 1:
            raise InputError(
                f"an ensemble has {len(self.members_)} models, each with its own calibrator, and "
                "cannot be one map of scores. Fit with ensemble=False, or save each member's: "
                "members_[i].calibrators."
            )
        member = self.members_[0]
        single = member.to_fitted()
        note = {
            "input": member.input,
            "model": type(member.estimator).__name__,
            "note": "maps scores of the model, which is not saved here",
        }
        return replace(single, provenance={**single.provenance, **note})

    def set_params(self, **params: Any) -> Self:
        """As in scikit-learn. A part that is a name, or the default, is made before it is set.

        >>> CalibratedClassifier(calibrator="isotonic").set_params(calibrator__interpolation="step")
        CalibratedClassifier(calibrator=Isotonic())
        """
        for part, make in (("estimator", model_to_fit), ("calibrator", any_calibrator_of)):
            if any(name.startswith(f"{part}__") for name in params):
                params[part] = make(params.get(part, getattr(self, part)))
        return super().set_params(**params)  # type: ignore[no-any-return]

    def __sklearn_clone__(self) -> Self:
        """Unfitted, with the same parameters; a prefit model stays the same object, fitted."""
        if isinstance(self.cv, str) and self.cv == "prefit":
            bare = copy.copy(self)
            bare.estimator = None
            twin = BaseEstimator.__sklearn_clone__(bare)
            twin.estimator = self.estimator
            return twin  # type: ignore[no-any-return]
        return super().__sklearn_clone__()  # type: ignore[no-any-return]

    def get_metadata_routing(self) -> Any:
        """Who asks for what in fit: this classifier, its splitter (groups) and its model."""
        return router_of(self)

    def __sklearn_tags__(self) -> Any:
        tags = model_tags(super().__sklearn_tags__(), self.estimator)
        if hasattr(self.estimator, "__sklearn_tags__"):
            own = get_tags(self.estimator).classifier_tags
            tags.classifier_tags.multi_class = own is None or own.multi_class
        return tags


# --- What is passed to fit: keywords for the model, and labels, which may be soft -----------------


def router_of(classifier: Any) -> MetadataRouter:
    """The router of a `CalibratedClassifier`: itself, and its model as ``estimator``.

    A splitter that asks for groups, such as GroupKFold, asks for those of the classifier, unless
    its own ``set_fit_request`` says something else.
    """
    own = classifier._get_metadata_request()
    asked = getattr(get_routing_for_object(classifier.cv), "split", None)
    groups = {} if asked is None else asked.requests
    if own.fit.requests.get("groups") is None and groups.get("groups"):
        own.fit.add_request(param="groups", alias=groups["groups"])
    router = MetadataRouter(owner=classifier).add_self_request(own)
    model = classifier.estimator
    if model is None:
        model = model_to_fit(None)
    mapping = MethodMapping().add(caller="fit", callee="fit")
    return router.add(estimator=model, method_mapping=mapping)


def params_of_fit(
    classifier: Any, estimator: Any, given: Mapping[str, Any], n: int, kind: str
) -> FitParams:
    """The keywords for the model's fit, by its requests where metadata routing is enabled."""
    if not given:
        return FitParams()
    if kind == "prefit" or isinstance(estimator, FrozenEstimator):
        raise ParameterError(
            f"{', '.join(sorted(given))} would go to the model's fit, but this model is fitted "
            "already and stays as it is. Leave it out."
        )
    if get_config()["enable_metadata_routing"]:
        given = process_routing(classifier, "fit", **given).estimator.fit
    params = FitParams(dict(given), n)
    params.check(estimator, splits=kind in SPLITTING)
    return params


# --- labels ---------------------------------------------------------------------------------------


def labels_of_model(
    y: Any, estimator: Any, calibrator: Any, *, fitted: bool
) -> tuple[NDArray[Any], Index, Array | None]:
    """The classes, which of them each row has, and soft labels where there are such.

    The classes of a ``fitted`` model are its own. Soft labels are refused where the calibrator, or
    a model that is to be fitted, cannot learn from both halves of a row.
    """
    column = None if y is None else to_column(y, "y")  # None is refused with all else
    pos_label = getattr(calibrator, "pos_label", None)
    soft = None if column is None else soft_labels(column, pos_label, calibrator.classes)
    if soft is None:
        known = estimator if fitted else None
        return *model_classes(column, known, calibrator.classes), None
    if not isinstance(calibrator, Calibrator):
        raise ParameterError(
            "soft labels need a calibrator of one score, such as Platt(), BLS() or "
            f"AutoCalibrator(), but {type(calibrator).__name__} came, which learns from classes "
            "only."
        )
    if not fitted:
        _check_takes_weights(estimator)
    elif (known := getattr(estimator, "classes_", None)) is not None:
        _check_classes(estimator, [plain(label) for label in known])
    return soft.classes, soft.positive.astype(np.intp), soft.share


def _check_takes_weights(estimator: Any) -> None:
    if isinstance(estimator, FrozenEstimator) or weight_argument(estimator) is not None:
        return
    raise ParameterError(
        "with soft labels a model learns each row as two, a positive and a negative one, by their "
        f"weights, but fit of {type(estimator).__name__} takes no sample_weight. Fit it in another "
        'way, and calibrate it with cv="prefit" on other rows; or pass labels that are classes.'
    )


def _check_classes(estimator: Any, known: list[Any]) -> None:
    if len(known) != 2 or 0 not in known or 1 not in known:
        raise InputError(
            "soft labels are probabilities of the class 1 against 0, but "
            f"{type(estimator).__name__} knows the classes {known[:20]}. Pass labels that are "
            "classes; with two classes you can also fit a calibrator to the model's scores: "
            "fit_table(ScoreTable.from_soft_labels(scores, y))."
        )
