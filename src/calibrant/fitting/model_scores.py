"""Models: how they are fitted to rows, and how they score them."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _is_fitted, _num_samples, has_fit_parameter

from calibrant.array_types import Array, Index
from calibrant.data.columns import check_class_columns, plain, to_matrix
from calibrant.data.door import (
    Rows,
    read_class_pair,
    read_labels,
    read_scores,
    read_sorted_classes,
    split_soft_labels,
)
from calibrant.data.score_table import weight_in_rows
from calibrant.errors import (
    AdviceWarning,
    CalibrationWarning,
    InputError,
    ParameterError,
    caller_level,
)
from calibrant.tensors import as_came, library_of, on_host, stays_tensor

# --- What all classifiers share that are made of models and of calibrators of their scores --------


class PredictsRows(ABC):
    """The predictions of a model, or of several, together with what calibrates their scores.

    A subclass gives ``_probabilities(X)``, and has ``classes_`` (or overrides `_class_labels`).
    """

    #: it takes rows, not scores: what saves and exports calibrators refuses it
    takes_rows: ClassVar[bool] = True

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, shape (n, k), columns in the order of the classes.

        Parameters
        ----------
        X : rows, as the model takes them
        """
        return self._probabilities(X)

    @abstractmethod
    def _probabilities(self, X: Any) -> Array:
        """The probabilities that `predict_proba` returns."""

    @property
    def _class_labels(self) -> Any:
        """The labels of the columns of probabilities."""
        return self.classes_  # type: ignore[attr-defined]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row (of a tie the first of ``classes_``)."""
        best = np.argmax(on_host(self.predict_proba(X)), axis=1)
        labels: NDArray[Any] = as_came(X, self._class_labels[best])
        return labels


class ModelClassifier(PredictsRows, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that fits its ``estimator``, and takes the rows that this takes."""

    estimator: Any

    def _keep_feature_names(self, model: Any) -> None:
        """Set the number and names of the model's features, where the model has them."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is None:
            tags.input_tags.sparse = True
        elif hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = copy.copy(get_tags(self.estimator).input_tags)
        return tags


# --- Fits of a model to the rows of each split, and its scores of others --------------------------


#: a name of SCORE_METHODS, or a function of a fitted model and rows
Method = str | Callable[[Any, Any], Any]

#: the value of eval_set that stands for the rows that a split holds out
FOLD = "fold"
#: the words under which fits take the weights of evaluation sets: LightGBM's and XGBoost's
_EVAL_WEIGHTS = ("eval_sample_weight", "sample_weight_eval_set")


@dataclass(frozen=True)
class ModelFits:
    """How copies of a model are fitted to rows, and how the copies score rows.

    Parameters
    ----------
    estimator : the model, or a function from rows to scores
    method : key of SCORE_METHODS, or function of a model and rows
    positive : int
        With two classes: the place of the one that a high score means.
    given : mapping
        Keywords for the fit, as the user passed them. Columns and matrices of n rows are cut by
        split, everything else is passed on as it is. ``eval_set="fold"`` becomes the rows that the
        split holds out.
    """

    estimator: Any
    method: Method = "auto"
    positive: int = 1
    given: Mapping[str, Any] = field(default_factory=dict)

    def fit(
        self,
        rows: Rows,
        some: Index | None = None,
        held: Index | None = None,
        rounds: int | None = None,
    ) -> Any:
        """A copy of the model, fitted to some of the rows (all of them by default).

        The rows ``held`` are its evaluation set, if ``eval_set="fold"`` was passed. With ``rounds``
        it fits so many rounds and does not stop early.
        """
        model = clone(self.estimator, safe=False)
        learned, y, weight = training_rows(rows, some)
        params = {k: v for k, v in self.given.items() if not (k == "eval_set" and self.on_fold)}
        if learned is not None:
            n = len(rows.codes)
            params = {name: _take_if_rows(value, learned, n) for name, value in params.items()}
        if rounds is not None:
            params = without_stopping(model, params, rounds)
        elif held is not None and self.on_fold:
            judged, its_y, its_weight = training_rows(rows, held)
            X = take_rows(rows.X, judged)
            if has_fit_parameter(model, "eval_X"):  # LightGBM's later words for the same
                params |= {"eval_X": (X,), "eval_y": (its_y,)}
            else:
                params["eval_set"] = [(X, its_y)]
            for word in _EVAL_WEIGHTS if its_weight is not None else ():
                if word not in self.given and has_fit_parameter(model, word):
                    params[word] = [its_weight]
        if hands_on_tensors(rows.X, model):
            y, weight = as_came(rows.X, y), None if weight is None else as_came(rows.X, weight)
        name = None if weight is None else weight_argument(model)
        weights = {} if name is None else {name: weight}
        model.fit(take_rows(rows.X, learned), y, **weights, **params)
        return model

    def fit_again(self, rows: Rows, fold_models: list[Any]) -> Any:
        """A copy of the model, fitted to all rows.

        If folds were the evaluation sets of their models, there are no rows left to stop on. Then
        it does as many rounds as those models kept, on average.
        """
        rounds = None
        if self.on_fold:
            kept = [_kept_rounds(model) for model in fold_models]
            rounds = max(1, round(sum(kept) / len(kept)))
        return self.fit(rows, rounds=rounds)

    def scores(self, model: Any, rows: Rows, some: Index | None = None) -> Array:
        """The scores that a fitted model gives to some of the rows (all of them by default)."""
        return model_scores(
            model, take_rows(rows.X, some), rows.classes, self.positive, self.method
        )

    def fit_and_score(
        self, rows: Rows, train: Index | None, test: Index | None
    ) -> tuple[Any, Array]:
        """A model fitted to the rows ``train``, and its scores of the rows ``test`` (None: all)."""
        model = self.fit(rows, train, test)
        return model, self.scores(model, rows, test)

    @property
    def on_fold(self) -> bool:
        """Whether ``eval_set="fold"`` was passed: the rows that a split holds out are its model's
        evaluation set."""
        value = self.given.get("eval_set")
        return isinstance(value, str) and value == FOLD

    def check(self, *, splits: bool) -> None:
        """Refuse ``eval_set="fold"`` if there is no fold, or if the model cannot use it."""
        for name, value in self.given.items():
            if name.endswith("__eval_set") and isinstance(value, str):
                raise ParameterError(
                    f'{name}="{value}" cannot be used inside a pipeline, whose other steps would '
                    "not see the evaluation rows. Prepare the rows first, and pass the booster "
                    'itself with eval_set="fold".'
                )
        value = self.given.get("eval_set")
        if isinstance(value, str) and value != FOLD:
            raise ParameterError(
                f'eval_set must be "fold" or a list of (X, y), but {value!r} came.'
            )
        if not self.on_fold:
            return
        if not splits:
            raise ParameterError(
                'eval_set="fold" needs rows that are held out, but cv="train" holds out none. Use '
                "a number of folds, a splitter or a fraction."
            )
        if not has_fit_parameter(self.estimator, "eval_set"):
            raise ParameterError(
                f'eval_set="fold" needs a model whose fit takes eval_set, such as LightGBM\'s, '
                f"XGBoost's or CatBoost's classifiers, but {type(self.estimator).__name__} came."
            )

    def check_soft(self) -> None:
        """Refuse options of a fit that cannot go with soft labels, whose two halves must be
        weighted."""
        name = weight_argument(self.estimator)
        if name in self.given:
            raise ParameterError(
                f"{name} cannot be given to the model's fit with soft labels, which are weights of "
                "both classes there. Pass sample_weight, which goes to the model, too."
            )
        if "eval_set" in self.given and not self.on_fold:
            raise ParameterError(
                "an eval_set of your own cannot go with soft labels: the model would take its "
                'labels as they are. Use eval_set="fold", or a fixed number of rounds.'
            )
        free = [one for one in _EVAL_WEIGHTS if one not in self.given]
        if self.on_fold and not any(has_fit_parameter(self.estimator, one) for one in free):
            raise ParameterError(
                'eval_set="fold" with soft labels needs a model whose fit takes weights of '
                f"evaluation rows ({' or '.join(_EVAL_WEIGHTS)}), so that both halves of a row can "
                f"be weighed, but {type(self.estimator).__name__} came. Use a fixed number of "
                "rounds."
            )


def training_rows(
    rows: Rows, some: Index | None
) -> tuple[Index | None, NDArray[Any], Array | None]:
    """The numbers, labels and weights of some rows (None: all) for the fit of a model.

    Of soft labels they are both halves of each row.
    """
    if rows.share is None:
        return some, take_rows(rows.labels, some), take_rows(rows.weight, some)
    halves, codes, weight = split_soft_labels(
        take_rows(rows.share, some), take_rows(rows.weight, some)
    )
    return halves if some is None else some[halves], rows.classes[codes], weight


def take_rows(values: Any, rows: Index | None) -> Any:
    """Some rows of an array, a frame or a list; None stands for all of them."""
    return values if rows is None or values is None else _safe_indexing(values, rows)


def weight_argument(estimator: Any) -> str | None:
    """The keyword for weights of rows in the estimator's fit; None if it takes none.

    A pipeline takes them for its last step, and a search for the estimator that it tunes. If
    metadata routing is enabled, the estimator's own requests decide.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_argument(make_pipeline(LogisticRegression()))
    'logisticregression__sample_weight'
    """
    word = "sample_weight"
    if get_config()["enable_metadata_routing"] and hasattr(estimator, "get_metadata_routing"):
        routing = get_routing_for_object(estimator)
        requests = getattr(getattr(routing, "fit", None), "requests", {})
        refused = requests.get(word) is False
        takes = has_fit_parameter(estimator, word) and not refused
        return word if takes or routing.consumes("fit", [word]) else None
    if has_fit_parameter(estimator, word):
        return word
    if hasattr(estimator, "steps") and estimator.steps:
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    from sklearn.model_selection._search import BaseSearchCV

    return weight_argument(estimator.estimator) if isinstance(estimator, BaseSearchCV) else None


def _take_if_rows(value: Any, rows: Index, n: int) -> Any:
    """Some rows of a value that is a column or matrix of n rows; any other value as it is."""
    if isinstance(value, (str, bytes, Mapping)) or not (
        hasattr(value, "__len__") or hasattr(value, "shape")
    ):
        return value
    try:
        fits = _num_samples(value) == n
    except TypeError:  # a single number in an array
        return value
    return take_rows(value, rows) if fits else value


# --- Rows in, scores of a model out ---------------------------------------------------------------


#: which methods of a model give its scores, first choice first: raw_score is what boosting has for
#: calibrators, since the probabilities of boosted trees saturate at 0 and 1
SCORE_METHODS = {
    "auto": ("raw_score", "predict_proba", "decision_function"),
    "raw_score": ("raw_score",),
    "predict_proba": ("predict_proba",),
    "decision_function": ("decision_function",),
}
#: what to do with scores of pairs of classes
PAIRS = "CodedClassifier trains and calibrates a model for each pair."
#: the score of the other class, where a model gives only one column
_OTHER_CLASS: dict[str | None, Callable[[Array], Array]] = {
    "raw_score": lambda s: 1.0 - s,
    "predict_proba": lambda s: 1.0 - s,
    "decision_function": lambda s: -s,
}


def refuse_array_api(X: Any, model: Any) -> None:
    """Refuse tensors where scikit-learn's array_api_dispatch is on.

    Its models would keep them as tensors, while labels, weights and calibrators are NumPy's.
    """
    if not hands_on_tensors(X, model):
        return
    raise InputError(
        f"X must be a NumPy array or a frame for {type(model).__name__} where array_api_dispatch "
        f"of scikit-learn is on, but {type(X).__name__} of {library_of(X)} came. Convert it "
        "(X.cpu().numpy() in PyTorch), or switch that off: "
        "sklearn.set_config(array_api_dispatch=False)."
    )


def hands_on_tensors(X: Any, model: Any) -> bool:
    """Whether a model of scikit-learn will get X as a tensor. Then its labels must be tensors,
    too."""
    return stays_tensor(X) and type(model).__module__.partition(".")[0] in ("sklearn", "calibrant")


def check_array_api(X: Any, model: Any, classes: NDArray[Any] | None = None) -> None:
    """Refuse tensors that a model cannot compute with, if scikit-learn's array_api_dispatch is on.

    Then ``classes`` that are no numbers are refused as well, since no tensor can hold them.
    """
    if not hands_on_tensors(X, model):
        return
    if not _computes_with_tensors(model):
        refuse_array_api(X, model)
    if classes is not None and classes.dtype.kind not in "biuf":
        raise InputError(
            "y must hold numbers where a model is fitted to tensors (array_api_dispatch of "
            f"scikit-learn is on), but {plain(classes[0])!r} came: no tensor holds text. Number "
            "the classes, or calibrate a fitted model (FrozenEstimator)."
        )


def _computes_with_tensors(model: Any) -> bool:
    """Whether scikit-learn's tags say that the model can compute with tensors.

    A pipeline can if all of its steps can.
    """
    if isinstance(model, FrozenEstimator):
        return _computes_with_tensors(model.estimator)
    steps = [step for _, step in getattr(model, "steps", ())] or [model]
    return all(get_tags(one).array_api_support for one in steps if hasattr(one, "fit"))


def model_classes(y: Any, model: Any = None, classes: Any = None) -> tuple[NDArray[Any], Index]:
    """The classes in ascending order, and the position of each row's label among them.

    The classes are those of the fitted ``model``, else those in ``classes``, else those found in y.
    """
    if y is None:
        raise InputError("this classifier requires y to be passed, but the target y is None.")
    known = getattr(model, "classes_", None)
    found, codes = read_sorted_classes(y, classes=classes if known is None else known)
    if len(found) > 1:
        return found, codes
    if model is None:
        raise InputError(
            "y must hold at least two classes to fit a model, but only one class came: "
            f"{plain(found[0])!r}."
        )
    pair = read_labels(y).classes  # with the partner of the one label, where it is known
    return pair, codes + int(pair[1] == found[0])


def positive_class(calibrator: Any, classes: NDArray[Any]) -> int:
    """The position, among two classes, of the one that a high score means."""
    pos_label = getattr(calibrator, "pos_label", None)
    if len(classes) == 2:
        ordered, label = read_class_pair(list(classes), pos_label)
        return int(ordered[1] == label)
    if pos_label is not None:
        raise ParameterError(
            f"pos_label of the calibrator must be None with {len(classes)} classes, each of which "
            f"is calibrated against the rest, but {pos_label!r} came."
        )
    return 1


def model_scores(
    model: Any, X: Any, classes: NDArray[Any], positive: int = 1, method: Method = "auto"
) -> Array:
    """The scores of a fitted model: (n,) for one of two classes, (n, k) for several, in the order
    of ``classes``.

    Columns are found by the model's own ``classes_`` if it has them.
    """
    name = score_method(model, method)
    what = f"the scores of {_model_name(model)}"
    check_array_api(X, model)
    if name == "decision_function" and len(classes) > 2:
        _refuse_pairs(model)
    if callable(method):
        given = method(model, X)
    else:
        given = model(X) if name is None else getattr(model, name)(X)
    raw = to_matrix(given, what)
    order = find_columns(model, classes, partly=name == "predict_proba")
    if (order < 0).any():  # a fold's model has not seen all classes
        raw = np.column_stack((raw, np.zeros(len(raw))))
        order = np.where(order < 0, raw.shape[1] - 1, order)
        return np.column_stack([read_scores(raw[:, column], name=what) for column in order])
    k = len(classes)
    if k == 2 and (raw.ndim == 1 or raw.shape[1:] == (1,)):
        if callable(method) and positive == 0:
            raise InputError(
                f"{what} are one column, high for the class {plain(classes[1])!r}, but the "
                f"calibrator's pos_label is {plain(classes[0])!r}. Leave pos_label out, or let "
                "response_method give two columns."
            )
        high = positive if name is None else int(np.flatnonzero(order == 1)[0])
        scores = read_scores(raw, name=what)
        return scores if high == positive else _OTHER_CLASS[name](scores)
    if raw.ndim != 2 or raw.shape[1] != k:
        why = "A model must know the classes it is calibrated for."
        if raw.ndim == 2 and raw.shape[1] == k * (k - 1) // 2:
            why = f"These seem to be one for each pair of classes. {PAIRS}"
        raise InputError(
            f"{what} must have one column per class, that is {k}, but their shape is {raw.shape}. "
            f"{why}"
        )
    check_class_columns(given, classes[np.argsort(order)], what)
    if k == 2:
        return read_scores(raw[:, order], positive_column=positive, name=what)
    return np.column_stack([read_scores(raw[:, column], name=what) for column in order])


def _refuse_pairs(model: Any) -> None:
    """Refuse a model whose decision_function gives a column for each pair of classes.

    Three classes have three pairs, so that these could pass for columns of classes.
    """
    inner = model
    for _ in range(10):  # pipelines and searches may lie in each other
        if getattr(inner, "decision_function_shape", "ovr") == "ovo":
            raise InputError(
                f"the scores of {_model_name(model)} must have one column per class, but "
                'decision_function_shape="ovo" gives one for each pair of classes. Set '
                f'decision_function_shape="ovr": the model stays the same. {PAIRS}'
            )
        steps = getattr(inner, "steps", None)
        inside = getattr(inner, "best_estimator_", getattr(inner, "estimator", None))
        inner = steps[-1][1] if steps else inside


def last_model(model: Any, X: Any = None) -> tuple[Any, Any]:
    """The model at the end of pipelines and searches, and the rows X (if given) as that model gets
    them."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            if X is not None and len(model.steps) > 1:
                X = model[:-1].transform(X)
            model = model.steps[-1][1]
        else:
            return model, X


def score_method(model: Any, method: Method) -> str | None:
    """The name of the method that gives a model's scores; None if that is a function."""
    if callable(method):
        return None
    for name in SCORE_METHODS[method]:
        if hasattr(model, name):
            return name
    if callable(model) and not isinstance(model, type) and method == "auto":
        return None
    wanted = "predict_proba or decision_function" if method == "auto" else method
    raise ParameterError(
        f"estimator must have {wanted}, but {_model_name(model)} has not. Pass an instance that "
        'has, or with cv="prefit" a function from rows to scores, such as model.predict.'
    )


def may_be_probabilities(model: Any, method: Method) -> bool:
    """Whether a model's scores may be probabilities. Those of a decision_function never are."""
    return score_method(model, method) in ("predict_proba", None)


def preferred_method(method: Method, calibrator: Any) -> Method:
    """The method of the model that gives its scores. For "auto" it is the one that the calibrator
    prefers."""
    return calibrator.score_method if isinstance(method, str) and method == "auto" else method


def model_to_fit(estimator: Any, hint: str = "") -> Any:
    """The estimator, which must be an instance with ``fit``; for None a logistic regression."""
    if estimator is None:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise ParameterError(
            f"estimator must be an instance with a fit method, but {estimator!r} came.{hint}"
        )
    return estimator


def warn_no_weights(estimator: Any, weight: Array | None) -> None:
    """Warn where weights came, but a model's fit takes none."""
    if weight is None or weight_argument(estimator) is not None:
        return
    warnings.warn(
        f"fit of {type(estimator).__name__} takes no sample_weight, so only the calibrator uses "
        "the weights: the model is fitted as if all rows counted once.",
        CalibrationWarning,
        stacklevel=caller_level(),
    )


def warn_refitted(estimator: Any) -> None:
    """Warn that a model is fitted already, but copies of it will be fitted anew."""
    if not hasattr(estimator, "__dict__") or not _is_fitted(estimator):
        return
    warnings.warn(
        f"this {type(estimator).__name__} is fitted already, but copies of it are fitted anew to "
        'the rows that came. To calibrate it as it is, pass cv="prefit", or '
        "FrozenEstimator(model) as the estimator, and rows that it was not trained on. If a new "
        "fit is what you want, pass sklearn.base.clone(model).",
        AdviceWarning,
        stacklevel=caller_level(),
    )


def find_columns(model: Any, classes: NDArray[Any], *, partly: bool = True) -> Index:
    """The column of each class in a model's scores.

    If ``partly``, the model need not know all of several classes: −1 for those that it lacks.
    """
    own = getattr(model, "classes_", None)
    if own is None:
        return np.arange(len(classes))
    columns = [
        next((column for column, known in enumerate(on_host(own)) if np.all(known == label)), -1)
        for label in classes
    ]
    missing = columns.count(-1)
    allowed = not missing or (partly and len(own) >= 2)
    if allowed and missing == len(classes) - len(own):
        return np.array(columns, dtype=np.intp)
    raise InputError(
        f"{_model_name(model)} must know the classes {[plain(c) for c in classes][:20]}, but "
        f"it knows {[plain(c) for c in own][:20]}. Calibrate it with the labels that it was fitted "
        "on; with folds that lack a class, use stratified ones or a model with predict_proba."
    )


def _model_name(model: Any) -> str:
    """The name of a model's class, or of a function, for errors."""
    return str(getattr(model, "__name__", type(model).__name__))


# --- A model that stops early, fitted again without rows to stop on -------------------------------


#: the options of models that stop early: LightGBM's (with its other names) and XGBoost's
_STOPPING = (
    "early_stopping_rounds",
    "early_stopping_round",
    "early_stopping",
    "n_iter_no_change",
)
#: their options for the number of rounds: n_estimators, and their other names
_ROUNDS = (
    "n_estimators",
    "iterations",
    "num_iterations",
    "num_iteration",
    "n_iter",
    "num_tree",
    "num_trees",
    "num_round",
    "num_rounds",
    "nrounds",
    "num_boost_round",
    "max_iter",
)


def _kept_rounds(model: Any) -> int:
    """The number of rounds of a fitted booster that stopped early."""
    trees = getattr(model, "tree_count_", None)  # CatBoost: what is left up to the best round
    if isinstance(trees, (int, np.integer)):
        return int(trees)
    best = getattr(model, "best_iteration_", None)  # LightGBM: how many rounds are best
    if isinstance(best, (int, np.integer)) and best > 0:
        return int(best)
    best = getattr(model, "best_iteration", None)  # XGBoost: the number of the best, from 0
    if isinstance(best, (int, np.integer)):
        return int(best) + 1
    known = model.get_params()
    for name in reversed(_ROUNDS):  # another name goes before n_estimators
        if isinstance(known.get(name), (int, np.integer)):
            return int(known[name])
    raise InputError(
        f'eval_set="fold" fits {type(model).__name__} once more to all rows, with the number of '
        "rounds that the folds found, but this model does not say it (best_iteration_ or "
        "n_estimators). Use ensemble=True, or a fraction as cv: these need no further fit."
    )


def without_stopping(model: Any, given: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """Set a model to a number of rounds and switch early stopping off, since it would need an
    evaluation set.

    Returns the keywords for its fit, without those about evaluation sets.
    """
    known = model.get_params()
    names = [name for name in _ROUNDS if known.get(name) is not None] or ["n_estimators"]
    model.set_params(**dict.fromkeys(names, rounds))
    model.set_params(**{name: None for name in _STOPPING if known.get(name)})
    if known.get("use_best_model"):  # CatBoost: of the rounds of an evaluation set
        model.set_params(use_best_model=False)
    if known.get("callbacks"):  # XGBoost's are options of the model
        model.set_params(callbacks=_without_early_stopping(known["callbacks"]) or None)
    kept = {name: value for name, value in given.items() if not name.startswith("eval_")}
    if kept.get("callbacks"):
        kept["callbacks"] = _without_early_stopping(kept["callbacks"])
    return kept


def _without_early_stopping(callbacks: Any) -> list[Any]:
    """The callbacks without those that stop a booster early."""
    return [
        one
        for one in callbacks
        if type(one).__name__ != "EarlyStopping" and not hasattr(one, "stopping_rounds")
    ]


# --- A calibrator fitted to the pooled scores of all folds ----------------------------------------


#: scores, and the rows that they belong to (None: all)
ScoredPart = tuple[Array, Index | None]


@contextmanager
def pooled_scores(
    calibrator: Any, data: Rows, parts: list[ScoredPart]
) -> Iterator[tuple[Array, Index, Array | None]]:
    """The scores of all parts as one column, with the row and the weight of each score.

    The calibrator must be fitted to them inside the block.

    With repeated splits, a row that is scored r times counts 1/r each time, so that it counts as
    one row in all. Weights are then in units of rows, and inside the block the calibrator reads
    them as counts.
    """
    n = len(data.codes)
    scores = np.concatenate([scores for scores, _ in parts])
    rows = np.concatenate([np.arange(n) if test is None else test for _, test in parts])
    times = np.bincount(rows, minlength=n)
    if times.max(initial=1) <= 1:
        yield scores, rows, take_rows(data.weight, rows)
        return
    given = _weights_parameters(calibrator)
    size = np.ones(n)
    if data.weight is not None:
        scored = times > 0
        in_rows = weight_in_rows(data.weight[scored], next(iter(given.values()), "importance"))
        size[scored] = 1.0 if in_rows is None else in_rows
    take_weights_as_counts(calibrator)
    yield scores, rows, (size / np.maximum(times, 1))[rows]
    calibrator.set_params(**given)  # the parameters that are saved are those of the user


def take_weights_as_counts(calibrator: Any) -> Any:
    """The calibrator, with ``weights="counts"`` set in it and in all calibrators inside it."""
    return calibrator.set_params(**dict.fromkeys(_weights_parameters(calibrator), "counts"))


def _weights_parameters(calibrator: Any) -> dict[str, str]:
    """The parameters ``weights`` of a calibrator and of any inside it, with their values."""
    params = calibrator.get_params()
    return {name: value for name, value in params.items() if name.split("__")[-1] == "weights"}
