"""What an export is given: a map, or anything that holds one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted, refuse_models
from calibrant.maps import Map


def map_of(calibrator: Any) -> Map:
    """The map of a fitted calibrator, of what `load` returns, or a map itself.

    >>> from calibrant.maps import Identity
    >>> map_of(Identity())
    Identity()
    """
    refuse_models(calibrator)
    map_ = getattr(calibrator, "map_", calibrator)
    if isinstance(map_, Map):
        return map_
    found = fitted_of(calibrator)
    if found is not None:
        return found.map
    raise InputError(
        "calibrator must be a fitted calibrator, what load returns, or a map, but "
        f"{came(calibrator)} came. Fit one, or read its file with calibrant.load."
    )


def value_of(calibrator: Any) -> Any:
    """The value that `save` writes: a `Fitted`, or a `LocalFitted` where more of a row than its
    scores is needed; None for a bare map and for what is no calibrator."""
    if isinstance(calibrator, (Map, type)) or not hasattr(calibrator, "to_fitted"):
        return None
    refuse_models(calibrator)
    return calibrator.to_fitted()


def fitted_of(calibrator: Any) -> Fitted | None:
    """The fitted value with its labels; None for a bare map.

    A calibrator that needs more of a row than its scores has no map to write, and is refused.
    """
    fitted: Any = value_of(calibrator)
    if fitted is None or isinstance(fitted, Fitted):
        return fitted
    plain: Fitted | None = fitted.plain
    if plain is not None:
        return plain
    raise InputError(
        f"{fitted.method} cannot be exported: it is no function of the score alone, but needs "
        "each row's features or interval and the calibration rows it keeps. Save it with "
        "calibrant.save and apply it with calibrant.load(...).predict_proba."
    )


def fingerprint(map_: Map) -> str:
    """Twelve characters that identify a map: the first of the SHA-256 of its JSON.

    >>> from calibrant.maps import Identity
    >>> fingerprint(Identity())
    'b98464d2bb19'
    """
    text = json.dumps(map_.to_dict(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def came(value: object) -> str:
    """What came instead of a calibrator, in a word or two.

    >>> came(0.5), came(Map)
    ('float', 'the class Map')
    """
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
