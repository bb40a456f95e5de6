"""Who gets what is passed to fit: scikit-learn's metadata routing, and the plain form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)

from calibrant.errors import ParameterError
from calibrant.estimators.fit_params import FitParams
from calibrant.estimators.model_folds import model_to_fit
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
