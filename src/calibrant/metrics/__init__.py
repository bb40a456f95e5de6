"""Measures of probabilities: every function takes labels and probabilities, or a score table."""

from collections.abc import Iterable
from typing import Any

from calibrant.errors import did_you_mean
from calibrant.lazy_names import lazy_names

_named, __dir__, __all__ = lazy_names(__name__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _named(name)
    hint = "" if name.startswith("_") else _measure_hint(name, __all__)
    raise AttributeError(f"module 'calibrant.metrics' has no attribute {name!r}.{hint}")


#: what papers and other libraries call a measure, and how it is called here
CALLED_ELSEWHERE = {
    "ace": 'classwise_ece(y, p, binning="mass"), or ece(y, p, binning="mass") for two classes',
    "adaptive_ece": 'ece(y, p, binning="mass")',
    "adaptive_calibration_error": 'classwise_ece(y, p, binning="mass")',
    "brier_score": "brier(y, p)",
    "brier_score_loss": "brier(y, p)",
    "confidence_ece": "top_label_ece(y, p)",
    "debiased_ece": "ece(y, p, debias=True)",
    "ece_sweep": 'ece(y, p, bins="auto")',
    "expected_calibration_error": "ece(y, p)",
    "kce": "skce(y, p)",
    "marginal_calibration_error": "classwise_ece(y, p, norm=2)",
    "maximum_calibration_error": "mce(y, p)",
    "multicalibration_error": "multicalibration(y, p, features=frame).largest",
    "multiaccuracy": "multicalibration(y, p, features=frame).largest",
    "rms_calibration_error": "ece(y, p, norm=2)",
    "rmsce": "ece(y, p, norm=2)",
    "roc_auc_score": "auc(y, p)",
    "sce": "classwise_ece(y, p)",
    "smece": "smooth_ece(y, p)",
    "static_calibration_error": "classwise_ece(y, p)",
}


def _measure_hint(name: str, known: Iterable[str]) -> str:
    """A hint at our measure for a name that other libraries use, or at the nearest known name.

    >>> _measure_hint("sce", ["classwise_ece"]), _measure_hint("brir", ["brier"])
    (' Here it is classwise_ece(y, p).', " Did you mean 'brier'?")
    """
    ours = CALLED_ELSEWHERE.get(name.lower())
    return f" Here it is {ours}." if ours else did_you_mean(name, known)
