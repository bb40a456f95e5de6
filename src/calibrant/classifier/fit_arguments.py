"""What is passed to fit: keywords for the model, and labels, which may be soft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)

from calibrant.array_types import Array, Index
from calibrant.data.labels import soft_labels
from calibrant.data.to_numpy import plain, to_column
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fit_params import FitParams, weight_argument
from calibrant.estimators.model_folds import model_classes, model_to_fit
from calibrant.estimators.splits import SPLITTING


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
