"""What a user passes on to a model's fit, cut to the rows of each split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.array_types import Index
from calibrant.errors import InputError, ParameterError

#: the value of eval_set that stands for the rows that a split holds out
FOLD = "fold"
#: the words under which fits take the weights of evaluation sets: LightGBM's and XGBoost's
_EVAL_WEIGHTS = ("eval_sample_weight", "sample_weight_eval_set")
#: the options of models that stop early: LightGBM's (with its other names) and XGBoost's
_STOPPING = (
    "early_stopping_rounds",
    "early_stopping_round",
    "early_stopping",
    "n_iter_no_change",
)
#: their options for the number of rounds: n_estimators, and LightGBM's other names
_ROUNDS = (
    "n_estimators",
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


@dataclass(frozen=True)
class FitParams:
    """Keywords for the fit of a model.

    Parameters
    ----------
    given : mapping
        As the user passed them. Columns and matrices of n rows are cut by split, everything else
        is passed on as it is. ``eval_set="fold"`` becomes the rows that the split holds out.
    n : int
        The number of rows.
    """

    given: Mapping[str, Any] = field(default_factory=dict)
    n: int = 0

    @property
    def on_fold(self) -> bool:
        """Whether the rows that a split holds out are its model's evaluation set."""
        value = self.given.get("eval_set")
        return isinstance(value, str) and value == FOLD

    def check(self, model: Any, *, splits: bool) -> None:
        """Refuse ``eval_set="fold"`` where there is no fold, or a model that cannot use it."""
        from sklearn.utils.validation import has_fit_parameter

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
        if not has_fit_parameter(model, "eval_set"):
            raise ParameterError(
                f'eval_set="fold" needs a model whose fit takes eval_set, such as LightGBM\'s or '
                f"XGBoost's classifiers, but {type(model).__name__} came."
            )

    def check_soft(self, model: Any) -> None:
        """Refuse what cannot go with soft labels, whose halves must be weighed in every fit."""
        from sklearn.utils.validation import has_fit_parameter

        name = weight_argument(model)
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
        if self.on_fold and not any(has_fit_parameter(model, one) for one in free):
            raise ParameterError(
                'eval_set="fold" with soft labels needs a model whose fit takes weights of '
                f"evaluation rows ({' or '.join(_EVAL_WEIGHTS)}), so that both halves of a row can "
                f"be weighed, but {type(model).__name__} came. Use a fixed number of rounds."
            )

    def of_rows(self, rows: Index | None) -> dict[str, Any]:
        """The keywords for a fit on some rows (None: all), but for the set of a fold."""
        given = {k: v for k, v in self.given.items() if not (k == "eval_set" and self.on_fold)}
        if rows is None:
            return given
        return {name: _cut(value, rows, self.n) for name, value in given.items()}

    def of_fold(self, model: Any, X: Any, y: Any, weight: Any) -> dict[str, Any]:
        """The evaluation set of a fold, with the rows' weights where the fit takes them."""
        if not self.on_fold:
            return {}
        from sklearn.utils.validation import has_fit_parameter

        made: dict[str, Any] = {"eval_set": [(X, y)]}
        if has_fit_parameter(model, "eval_X"):  # LightGBM's later words for the same
            made = {"eval_X": (X,), "eval_y": (y,)}
        for name in _EVAL_WEIGHTS:
            if weight is not None and name not in self.given and has_fit_parameter(model, name):
                made[name] = [weight]
        return made


def take(values: Any, rows: Index | None) -> Any:
    """Some rows of anything that has rows (None: all, as they came)."""
    from sklearn.utils import _safe_indexing

    return values if rows is None or values is None else _safe_indexing(values, rows)


def weight_argument(estimator: Any) -> str | None:
    """The keyword under which the estimator's fit takes weights per row; None if it takes none.

    A pipeline takes them for its last step, a search for the estimator that it tunes; where
    metadata routing is enabled, the estimator's own requests decide.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_argument(make_pipeline(LogisticRegression()))
    'logisticregression__sample_weight'
    """
    from sklearn import get_config
    from sklearn.utils.metadata_routing import get_routing_for_object
    from sklearn.utils.validation import has_fit_parameter

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
    return weight_argument(estimator.estimator) if _is_search(estimator) else None


def _is_search(estimator: Any) -> bool:
    from sklearn.model_selection._search import BaseSearchCV

    return isinstance(estimator, BaseSearchCV)


def _cut(value: Any, rows: Index, n: int) -> Any:
    """Some rows of a column or matrix of n rows; anything else as it is."""
    from sklearn.utils.validation import _num_samples

    if isinstance(value, (str, bytes, Mapping)) or not (
        hasattr(value, "__len__") or hasattr(value, "shape")
    ):
        return value
    try:
        fits = _num_samples(value) == n
    except TypeError:  # a single number in an array
        return value
    return take(value, rows) if fits else value


# --- a model that stops early, fitted again without rows to stop on ------------------------------


def rounds_found(models: list[Any]) -> int:
    """The number of rounds that boosters kept, on average over the folds."""
    found = [_rounds(model) for model in models]
    return max(1, round(sum(found) / len(found)))


def _rounds(model: Any) -> int:
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
    """Set a model to a number of rounds without early stopping, which needs rows to stop on.

    Returns the keywords for its fit, without what speaks of evaluation sets.
    """
    known = model.get_params()
    names = [name for name in _ROUNDS if known.get(name) is not None] or ["n_estimators"]
    model.set_params(**dict.fromkeys(names, rounds))
    model.set_params(**{name: None for name in _STOPPING if known.get(name)})
    if known.get("callbacks"):  # XGBoost's are options of the model
        model.set_params(callbacks=_lasting(known["callbacks"]) or None)
    kept = {name: value for name, value in given.items() if not name.startswith("eval_")}
    if kept.get("callbacks"):
        kept["callbacks"] = _lasting(kept["callbacks"])
    return kept


def _lasting(callbacks: Any) -> list[Any]:
    """The callbacks that do not stop early."""
    return [
        one
        for one in callbacks
        if type(one).__name__ != "EarlyStopping" and not hasattr(one, "stopping_rounds")
    ]
