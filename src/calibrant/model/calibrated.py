"""A model and its calibrator as one scikit-learn classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from calibrant.array_types import Array, Index
from calibrant.auto.advice import known_rows, warn_of
from calibrant.auto.auto import AutoCalibrator, Cv
from calibrant.auto.why import with_verdict
from calibrant.data.columns import column_kinds, column_names, plain, reorder_columns, to_column
from calibrant.data.door import (
    Limit,
    OneOf,
    Rows,
    are_distributions,
    check_lengths,
    check_parameters,
    read_weight,
    soft_label_rows,
)
from calibrant.data.scale import ScoreRange, ScoreScale
from calibrant.errors import InputError, ParameterError, refuse_foreign_names
from calibrant.fitting.base import Calibrator, LocalCalibrator, VectorCalibrator
from calibrant.fitting.fitted import Fitted
from calibrant.fitting.folds import (
    SPLITTING,
    check_splits,
    cv_kind,
    split_rows,
)
from calibrant.fitting.model_scores import (
    SCORE_METHODS,
    Method,
    ModelClassifier,
    ModelFits,
    PredictsRows,
    ScoredPart,
    check_array_api,
    find_columns,
    may_be_probabilities,
    model_classes,
    model_scores,
    model_to_fit,
    pooled_scores,
    positive_class,
    preferred_method,
    score_method,
    take_rows,
    warn_no_weights,
    warn_refitted,
    weight_argument,
)
from calibrant.fitting.registry import to_calibrator
from calibrant.methods.codes.calibrator import CodedCalibrator
from calibrant.methods.codes.codes import one_vs_rest, read_code
from calibrant.methods.segments import SegmentedCalibrator
from calibrant.rules.base import RowInputs
from calibrant.tensors import as_came, on_host


@refuse_foreign_names
@dataclass(eq=False, repr=False)
class CalibratedClassifier(ModelClassifier):
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

    Rows are handed to the model as they came, only picked by index. Where scikit-learn's
    ``array_api_dispatch`` is on and they are a tensor, so are probabilities, on the same device.
    Only a frame that has the names of the fit in another order is brought into the order of the
    fit; as many other names are refused. Weights reach the calibrator always and the model if its
    fit takes them (`CalibrationWarning` if not).

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

    estimator: Any = None
    calibrator: AnyCalibrator | str | None = None
    _: KW_ONLY
    cv: Cv | str = 3
    ensemble: bool = False
    decision: Literal["calibrated", "model"] = "calibrated"
    response_method: Method = "auto"
    segments: Any = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "ensemble": (OneOf((True, False)),),
        "decision": (OneOf(("calibrated", "model")),),
    }

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
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
            evaluation set of its model, for early stopping in LightGBM, XGBoost and CatBoost. The
            model that is fitted again on all rows does the folds' mean number of rounds.
        """
        check_parameters(self, self._limits)
        kind = self._kind_of_cv()
        estimator, calibrator = self._estimator_and_calibrator(kind)
        names = column_names(X)
        frozen = kind == "prefit" or isinstance(estimator, FrozenEstimator)
        if frozen:
            names = tuple(getattr(estimator, "feature_names_in_", names))
            X = reorder_columns(X, names)
        rows = self._read(X, y, sample_weight, kind, estimator, calibrator)
        method = preferred_method(self.response_method, calibrator)
        fits = ModelFits(estimator, method, positive_class(calibrator, rows.classes), fit_params)
        if fit_params and frozen:
            raise ParameterError(
                f"{', '.join(sorted(fit_params))} would go to the model's fit, but this model is "
                "fitted already and stays as it is. Leave it out."
            )
        if fit_params:
            if get_config()["enable_metadata_routing"]:
                given = process_routing(self, "fit", **fit_params).estimator.fit
                fits = replace(fits, given=dict(given))
            fits.check(splits=kind in SPLITTING)
            if rows.share is not None:
                fits.check_soft()
        if kind == "prefit":
            warn_of(known_rows(estimator, X))
        models = fit_models(self, rows, fits, kind, groups)
        job = MemberFits(rows, fits, kind != "prefit", self.segments, scale_of_scores(rows, models))
        self._keep([job.member(calibrator, one) for one in models])
        self._columns, self._kinds = names, column_kinds(X)
        return self

    def _kind_of_cv(self) -> str:
        """The kind of ``cv``; a frozen model is prefit, whatever the folds."""
        kind = cv_kind(self.cv)
        if self.ensemble and kind != "folds":
            raise ParameterError(
                f"ensemble=True keeps one model per fold, but cv={self.cv!r} has no folds. Use a "
                "number of folds or a splitter, or ensemble=False."
            )
        frozen = isinstance(self.estimator, FrozenEstimator)
        return "prefit" if frozen and not self.ensemble else kind

    def _estimator_and_calibrator(self, kind: str) -> tuple[Any, AnyCalibrator]:
        """The estimator and the calibrator, or their defaults if none were given."""
        estimator, calibrator = self.estimator, calibrator_of(self.calibrator, self.segments)
        if not callable(self.response_method):
            check_parameters(self, {"response_method": (OneOf(tuple(SCORE_METHODS)),)})
        if kind != "prefit":
            hint = ' If it is fitted already, or a function from rows to scores, use cv="prefit".'
            return model_to_fit(estimator, hint), calibrator
        if estimator is None:
            raise ParameterError('cv="prefit" needs a fitted estimator, but None came.')
        score_method(estimator, preferred_method(self.response_method, calibrator))
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
    ) -> Rows:
        """The rows, checked; a warning where the model cannot be used as it came."""
        fitted = kind == "prefit"
        classes, codes, share = labels_of_model(y, estimator, calibrator, fitted=fitted)
        frozen = fitted or isinstance(estimator, FrozenEstimator)
        check_array_api(X, estimator, None if frozen else classes)
        if kind in SPLITTING or (share is not None and not fitted):
            (X,) = indexable(X)
            check_lengths(X=_num_samples(X), y=len(codes))
        weight = read_weight(sample_weight, len(codes))
        if not frozen:
            warn_no_weights(estimator, weight)
            if kind in SPLITTING:
                warn_refitted(estimator)
        return Rows.unscored(X, codes, weight, classes, share)

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
        self._keep_feature_names(first.estimator)

    def _columns_as_in_fit(self, X: Any) -> Any:
        """New rows, with a frame's columns in the order of the fit. Other names are refused.

        For a function, columns stay as they are, since it may pick them itself.
        """
        check_is_fitted(self, "members_")
        model = self.members_[0].estimator
        return reorder_columns(
            X, getattr(self, "_columns", ()), "X" if hasattr(model, "fit") else ""
        )

    def _probabilities(self, X: Any) -> Array:
        """The probability of each class: the mean of the members' predictions."""
        X = self._columns_as_in_fit(X)
        members = [member.predict_proba(X) for member in self.members_]
        p: Array = members[0] if len(members) == 1 else np.mean(members, axis=0)
        return as_came(X, p)  # type: ignore[no-any-return]

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
            return super().predict(X)
        X = self._columns_as_in_fit(X)
        check_array_api(X, self.members_[0].estimator)
        votes = [np.asarray(on_host(member.estimator.predict(X))) for member in self.members_]
        labels = votes[0]
        if len(votes) > 1:
            best = np.argmax([sum(v == label for v in votes) for label in self.classes_], axis=0)
            labels = self.classes_[best]
        return as_came(X, labels)  # type: ignore[no-any-return]

    def explain(self) -> str:
        """Which rows the calibrator learned from, and what came of it: of an automatic choice the
        verdict with its figures, of an ensemble that of each member.

        >>> from sklearn.datasets import make_classification
        >>> X, y = make_classification(400, random_state=0)
        >>> print(CalibratedClassifier(calibrator="platt").fit(X, y).explain())
        Platt learned from the scores of LogisticRegression (predict_proba) of rows that it had \
not seen, fold after fold; the model was then fitted again, to all rows. What this gains was not \
measured: calibrant.evaluate says it, on other rows.
        """
        check_is_fitted(self, "members_")
        verdicts = [
            member.calibrator.explain()
            for member in self.members_
            if hasattr(member.calibrator, "explain")
        ]
        if len(verdicts) > 1:
            verdicts = [f"Member {i}: {said}" for i, said in enumerate(verdicts, start=1)]
        unknown = "What this gains was not measured: calibrant.evaluate says it, on other rows."
        return " ".join([self._learned_from(), *(verdicts or [unknown])])

    def _learned_from(self) -> str:
        """Which scores the calibrator was fitted to, in words."""
        first, kind = self.members_[0], cv_kind(self.cv)
        given: Any = first.calibrator
        if isinstance(given, CodedCalibrator):
            given = given.calibrator
        model, one = type(first.estimator).__name__, type(given).__name__
        if isinstance(first.estimator, FrozenEstimator):
            model, kind = type(first.estimator.estimator).__name__, "prefit"
        of = "the model" if first.input == "function" else f"{model} ({first.input})"
        if self.ensemble:
            return (
                f"The probabilities of {len(self.members_)} models, {model} with a calibrator "
                f"({one}) for each fold, are averaged."
            )
        return {
            "prefit": f"{one} learned from the scores of {of}, which was fitted before.",
            "train": f"{one} learned from the scores of {of} of the rows that it was fitted to.",
            "fraction": f"{one} learned from the scores of {of} of rows that were held out.",
            "folds": f"{one} learned from the scores of {of} of rows that it had not seen, fold "
            "after fold; the model was then fitted again, to all rows.",
        }[kind]

    def _html_repr(self) -> str:
        """scikit-learn's box; once fitted with what `explain` says below it, and the leaderboard of
        an automatic choice."""
        box: str = super()._html_repr()
        if not hasattr(self, "members_"):
            return box
        alone = self.members_[0] if len(self.members_) == 1 else None
        board = None if alone is None else getattr(alone.calibrator, "leaderboard_", None)
        return with_verdict(box, self.explain(), board)

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
        """As in scikit-learn; a calibrator given by name, or by default, takes parameters, too.

        >>> CalibratedClassifier(calibrator="isotonic").set_params(calibrator__interpolation="step")
        CalibratedClassifier(calibrator=Isotonic())
        """
        for part, make in (("estimator", model_to_fit), ("calibrator", calibrator_of)):
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
        """Which metadata this classifier, its splitter (groups) and its model ask for in fit.

        A splitter that asks for groups, such as GroupKFold, gets those of the classifier, unless
        its own ``set_fit_request`` says otherwise.
        """
        own = self._get_metadata_request()
        asked = getattr(get_routing_for_object(self.cv), "split", None)
        groups = {} if asked is None else asked.requests
        if own.fit.requests.get("groups") is None and groups.get("groups"):
            own.fit.add_request(param="groups", alias=groups["groups"])
        router = MetadataRouter(owner=self).add_self_request(own)
        model = model_to_fit(None) if self.estimator is None else self.estimator
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=model, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            own = get_tags(self.estimator).classifier_tags
            tags.classifier_tags.multi_class = own is None or own.multi_class
            tags.array_api_support = get_tags(self.estimator).array_api_support
        return tags


# --- Labels ---------------------------------------------------------------------------------------


def labels_of_model(
    y: Any, estimator: Any, calibrator: Any, *, fitted: bool
) -> tuple[NDArray[Any], Index, Array | None]:
    """The classes, the position of each row's class among them, and soft labels, if any came.

    The classes of a ``fitted`` model are its own. Soft labels are refused where the calibrator, or
    a model that is to be fitted, cannot learn from both halves of a row.
    """
    column = None if y is None else to_column(y, "y")  # None is refused with all else
    pos_label = getattr(calibrator, "pos_label", None)
    soft = None if column is None else soft_label_rows(column, pos_label, calibrator.classes)
    if soft is None:
        known = estimator if fitted else None
        return *model_classes(column, known, calibrator.classes), None
    if not isinstance(calibrator, Calibrator):
        raise ParameterError(
            "soft labels need a calibrator of one score, such as Platt(), BLS() or "
            f"AutoCalibrator(), but {type(calibrator).__name__} came, which learns from classes "
            "only."
        )
    known = getattr(estimator, "classes_", None)
    if not fitted and not isinstance(estimator, FrozenEstimator):
        if weight_argument(estimator) is None:
            raise ParameterError(
                "with soft labels a model learns each row as two, a positive and a negative one, "
                f"by their weights, but fit of {type(estimator).__name__} takes no sample_weight. "
                'Fit it in another way, and calibrate it with cv="prefit" on other rows; or pass '
                "labels that are classes."
            )
    elif fitted and known is not None:
        own = [plain(label) for label in known]
        if len(own) != 2 or 0 not in own or 1 not in own:
            raise InputError(
                "soft labels are probabilities of the class 1 against 0, but "
                f"{type(estimator).__name__} knows the classes {own[:20]}. Pass labels that are "
                "classes; with two classes you can also fit a calibrator to the model's scores: "
                "fit_table(ScoreTable.from_soft_labels(scores, y))."
            )
    return soft.classes, soft.positive.astype(np.intp), soft.share


# --- Fitted models, each together with what calibrates its scores ---------------------------------


#: what can calibrate a model: of one score, of all classes' scores, or of more than scores
AnyCalibrator = (
    Calibrator | VectorCalibrator | CodedCalibrator | LocalCalibrator | SegmentedCalibrator
)


@dataclass(frozen=True)
class Member(PredictsRows):
    """A fitted model and what calibrates its scores.

    Parameters
    ----------
    estimator : fitted model or function of rows
    calibrator : fitted calibrator
        For several classes one that takes all of their scores.
    classes : ndarray of shape (k,), sorted
    positive : int
        With two classes: the one of them that a high score means.
    method : where the model's scores come from
    companion : function from rows to `RowInputs`, optional
        With a local calibrator: finds what it needs beside the scores.
    margins : bool
        With two classes and a calibrator of all classes' scores: whether the model's scores were
        margins at fit, so that the pair of columns is (−s/2, s/2) and not (1 − s, s).
    segments : column or list of columns, optional
        With a `SegmentedCalibrator`: the columns of rows that hold their segments.
    """

    estimator: Any
    calibrator: AnyCalibrator
    classes: NDArray[Any]
    positive: int
    method: Method
    companion: Callable[[Any], RowInputs] | None = None
    margins: bool = False
    segments: Any = None

    @property
    def calibrators(self) -> tuple[Any, ...]:
        """The calibrator, or those of the classes where each has its own."""
        if isinstance(self.calibrator, CodedCalibrator):
            return tuple(self.calibrator.calibrators_)
        return (self.calibrator,)

    @property
    def input(self) -> str:
        """The name of the method that gives the model's scores, or "function"."""
        return score_method(self.estimator, self.method) or "function"

    @property
    def _class_labels(self) -> NDArray[Any]:
        return self.classes

    def _probabilities(self, X: Any) -> Array:
        """The probability of each class. A class that a fold's model has not seen gets 0, as in
        scikit-learn.

        Scores may lie outside the range of the fit, since the same model gives them.
        """
        model, calibrator = self.estimator, self.calibrator
        scores = model_scores(model, X, self.classes, self.positive, self.method)
        if isinstance(calibrator, LocalCalibrator):
            assert self.companion is not None
            p = calibrator.predict_rows(scores, self.companion(X))
        elif isinstance(calibrator, SegmentedCalibrator):
            p = calibrator.predict_proba(scores, segments_of(X, self.segments), on_range="allow")
        else:
            if scores.ndim == 1 and not isinstance(calibrator, Calibrator):
                scores = _two_columns(scores, self.margins)
            p = calibrator.predict_proba(scores, on_range="allow")
        absent = find_columns(model, self.classes) < 0
        if not absent.any():
            return p
        known = np.where(absent, 0.0, p)
        total = known.sum(axis=1, keepdims=True)
        even = ~absent / np.count_nonzero(~absent)
        return np.where(total > 0.0, known / np.where(total > 0.0, total, 1.0), even)

    def to_fitted(self) -> Fitted:
        """The calibrator of the scores as a plain value. The model is not in it."""
        fitted = self.calibrator.to_fitted()
        known = fitted.score_range
        if known is not None and not may_be_probabilities(self.estimator, self.method):
            # new scores need not lie in [0, 1], although those of the fit may do
            fitted = replace(fitted, score_range=ScoreRange("number", known.low, known.high))
        if not isinstance(self.calibrator, CodedCalibrator):
            return fitted
        one = next(c for c in self.calibrators if c is not None).to_fitted()
        return replace(fitted, method=one.method, params=one.params)


# --- Models ---------------------------------------------------------------------------------------


#: a fitted model and the rows that it learned (None: all of them)
FittedModel = tuple[Any, Index | None]


class ModelToKeep(NamedTuple):
    """A model kept for predictions, and the scores that its calibrator learns, in parts.

    Part i was scored by model i of ``scored_by``: that of a fold, or the kept model itself.
    """

    kept: FittedModel
    parts: list[ScoredPart]
    scored_by: list[FittedModel]


def fit_models(
    classifier: Any, rows: Rows, fits: ModelFits, kind: str, groups: Any
) -> list[ModelToKeep]:
    """The models to keep, each with scores to calibrate it on, for this ``kind`` of cv."""
    if kind == "prefit":
        whole = fits.estimator, None
        return [ModelToKeep(whole, [(fits.scores(fits.estimator, rows), None)], [whole])]
    pairs = split_rows(classifier.cv, rows, groups, classifier.random_state)
    if kind in SPLITTING:
        check_splits(pairs, rows, fits, ensemble=classifier.ensemble)
    scored = Parallel(n_jobs=classifier.n_jobs)(
        delayed(fits.fit_and_score)(rows, train, test) for train, test in pairs
    )
    parts = [(scores, test) for (_, scores), (_, test) in zip(scored, pairs, strict=True)]
    models = [(model, train) for (model, _), (train, _) in zip(scored, pairs, strict=True)]
    if kind == "folds" and not classifier.ensemble:
        again = fits.fit_again(rows, [model for model, _ in models]), None
        return [ModelToKeep(again, parts, models)]
    return [ModelToKeep(model, [part], [model]) for model, part in zip(models, parts, strict=True)]


# --- Calibrators ----------------------------------------------------------------------------------


def scale_of_scores(data: Rows, models: list[ModelToKeep]) -> ScoreScale:
    """The scale of the scores that the models gave to all rows of positive weight."""
    parts = [part for kept in models for part in kept.parts]
    scores = [s for s, _ in parts]
    if data.weight is not None:
        scores = [s[take_rows(data.weight > 0.0, rows)] for s, rows in parts]
    scores = [s for s in scores if s.size]
    if not scores:  # the calibrator says so
        return ScoreScale(0.0, 1.0)
    low, high = min(float(s.min()) for s in scores), max(float(s.max()) for s in scores)
    if scores[0].ndim == 1:
        return ScoreScale(low, high)
    distributions = [are_distributions(s) for s in scores]
    if not any(distributions):  # each part says by itself what else it looks like
        return ScoreScale(low, high)
    return ScoreScale(low, high, "probability" if all(distributions) else "logit")


@dataclass(frozen=True)
class MemberFits:
    """What it takes to fit calibrators to the scores of models.

    Parameters
    ----------
    rows, fits : the rows, and how models were fitted to them
    trained : bool
        Whether the models learned some of these rows; False where nobody knows what they learned.
    segments : column or list of columns, optional
        The columns of the rows that hold their segments.
    scale : ScoreScale
        What the scores of all models together are.
    """

    rows: Rows
    fits: ModelFits
    trained: bool
    segments: Any
    scale: ScoreScale

    def member(self, calibrator: AnyCalibrator, kept: ModelToKeep) -> Member:
        """The kept model with a copy of the calibrator, fitted to all parts of scores."""
        data, fits, parts = self.rows, self.fits, kept.parts
        one, inputs = self._unfitted_calibrator(calibrator), None
        pair = parts[0][0].ndim == 1 and isinstance(one, VectorCalibrator | CodedCalibrator)
        margins, known = pair and not self.scale.probabilities, self.scale
        if pair:  # both columns are made of one score
            known = self.scale._replace(rows="logit" if margins else "probability")
        if isinstance(one, LocalCalibrator) and one.judges_inputs:
            inputs = self._companion_inputs(one, kept)
        segments = segments_of(data.X, self.segments) if self.segments is not None else None
        with (
            pooled_scores(one, data, parts) as (scores, rows, weight),
            one._part_of(None if pair and isinstance(one, CodedCalibrator) else known),
        ):
            y = (data.labels if data.share is None else data.share)[rows]
            if isinstance(one, LocalCalibrator):
                X = data.X if len(parts) == 1 and parts[0][1] is None else take_rows(data.X, rows)
                one.fit_rows(scores, y, X, weight, groups=rows, inputs=inputs)
            elif isinstance(one, SegmentedCalibrator):
                groups = None if len(np.unique(rows)) == len(rows) else rows
                one.fit(scores, y, weight, segments=take_rows(segments, rows), groups=groups)
            else:
                one.fit(_two_columns(scores, margins) if pair else scores, y, weight)
        model, learned = kept.kept
        more = {"margins": margins, "segments": self.segments}
        if isinstance(one, LocalCalibrator):
            more["companion"] = self._companion(one, model, learned)
        return Member(model, one, data.classes, fits.positive, fits.method, **more)

    def _unfitted_calibrator(self, calibrator: Any) -> Any:
        """A clone of the calibrator that knows the classes and, of two, which one a high score
        means.

        With more classes, a calibrator of one score becomes a `CodedCalibrator`.
        """
        classes = self.rows.classes
        k, labels = len(classes), dict[str, Any](classes=list(classes))
        if isinstance(calibrator, LocalCalibrator) and k > 2 and not calibrator.multiclass:
            raise InputError(f"{type(calibrator).__name__} calibrates two classes, but {k} came.")
        if isinstance(calibrator, SegmentedCalibrator) and k != 2:
            raise InputError(f"segments are for two classes, but {k} came.")
        if isinstance(calibrator, Calibrator) and k > 2 and not calibrator.multiclass:
            calibrator = CodedCalibrator(clone(calibrator).set_params(classes=None))
        if isinstance(calibrator, CodedCalibrator):
            code = read_code(calibrator.code, k)
            if not np.array_equal(code.matrix, one_vs_rest(k).matrix):
                raise ParameterError(
                    'code of the CodedCalibrator must be "one_vs_rest", since the model gives one '
                    "score per class, but another code came. CodedClassifier trains a model for "
                    "each column of any code."
                )
        if k == 2 and hasattr(calibrator, "pos_label"):
            labels["pos_label"] = classes[self.fits.positive]
        return clone(calibrator).set_params(**labels)

    def _companion(
        self, calibrator: LocalCalibrator, model: Any, learned: Index | None
    ) -> Callable[[Any], RowInputs]:
        """The function from new rows to the inputs that the calibrator needs beside a model's
        scores."""
        train = self.rows if self.trained else None
        return calibrator.companion(model, train, learned, self.fits.method)

    def _companion_inputs(self, calibrator: LocalCalibrator, kept: ModelToKeep) -> RowInputs:
        """The intervals of all rows, each found by the companion of the model that scored it."""
        found = [
            self._companion(calibrator, model, learned)(take_rows(self.rows.X, rows))
            for (model, learned), (_, rows) in zip(kept.scored_by, kept.parts, strict=True)
        ]
        lower = np.concatenate([np.asarray(one.lower) for one in found])
        return RowInputs(lower=lower, upper=np.concatenate([np.asarray(o.upper) for o in found]))


def _two_columns(scores: Array, margins: bool) -> Array:
    """The columns of two classes made of one score: 1 − s and s, or of margins −s/2 and s/2."""
    return np.column_stack((-0.5 * scores, 0.5 * scores) if margins else (1.0 - scores, scores))


def segments_of(X: Any, columns: Any) -> Any:
    """The columns of X that hold the rows' segments."""
    named = list(columns) if isinstance(columns, (list, tuple)) else columns
    if isinstance(named, list) and len(named) == 1:
        named = named[0]
    try:
        return _safe_indexing(X, named, axis=1)
    except (ValueError, KeyError, IndexError, TypeError) as wrong:
        raise InputError(
            f"segments must name columns of X, or their places, but {columns!r} came: {wrong}"
        ) from wrong


def calibrator_of(given: Any, segments: Any = None) -> AnyCalibrator:
    """The calibrator that was given, itself or by its name, or the default.

    With ``segments`` it becomes a `SegmentedCalibrator`, whose maps are of that kind.
    """
    made = to_calibrator(given)
    if segments is None:
        made = AutoCalibrator() if made is None else made
        if isinstance(made, SegmentedCalibrator):
            raise ParameterError(
                "a SegmentedCalibrator needs the columns of X that hold the segments: "
                'CalibratedClassifier(..., segments=["country", "product"]).'
            )
        if not isinstance(made, AnyCalibrator):
            raise ParameterError(
                "calibrator must be a Calibrator such as Platt(), a local one such as "
                f"SimilarityBinning(), or a name such as 'isotonic', but {made!r} came."
            )
    elif made is None or isinstance(made, Calibrator):
        return SegmentedCalibrator(made)
    elif not isinstance(made, SegmentedCalibrator):
        raise ParameterError(
            "with segments, calibrator must be one of a single score such as Platt(), or a "
            f"SegmentedCalibrator, but {made!r} came."
        )
    return made  # type: ignore[no-any-return]
