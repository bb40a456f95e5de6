"""How a shift of the prior is given, and the factors that follow from it.

For one probability, or each of several labels, the odds are multiplied by a factor. For a
distribution over classes, each p_c is multiplied by a factor of its own, and all are divided by
their sum. Every refusal of a parameter is worded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.json_facts import shown
from calibrant.errors import ParameterError
from calibrant.losses import LARGEST, shift_odds
from calibrant.monitor.rate_values import RateEstimate, RateEstimates

#: limits of rates, shares and weights, so that products and ratios of them stay finite
SMALLEST_RATE, LARGEST_RATE = 1e-100, LARGEST
LARGEST_WEIGHT = 1e100
#: how far rates of classes may be from the sum 1
SUM_TOLERANCE = 1e-6


class GivenShift(NamedTuple):
    """The shift as the caller gave it."""

    train_rate: Any = None
    target_rate: Any = None
    kept: Any = None
    positive_weight: Any = None


@dataclass(frozen=True)
class ProbabilityKind:
    """What probabilities are about: one class, k classes (a row has one), or k labels."""

    columns: int = 0  # 0: one probability for each row
    distribution: bool = False
    labels: tuple[Any, ...] | None = None
    rate: Any = None  # the rate at which they are calibrated, if that is known


@dataclass(frozen=True)
class Shift:
    """Factors (one, or one for each column) and a record of what was given, ready for JSON."""

    factor: Array
    record: dict[str, Any]


def shift_classes(p: Array, factor: Array) -> Array:
    """p'_c ∝ factor_c · p_c in each row.

    >>> shift_classes(np.array([[0.5, 0.25, 0.25]]), np.array([1.0, 1.0, 2.0])).tolist()
    [[0.4, 0.2, 0.4]]
    """
    scaled = p * (factor / factor.max())
    return np.asarray(scaled / scaled.sum(axis=-1, keepdims=True))


def read_shift(given: GivenShift, kind: ProbabilityKind) -> Shift:
    """The factors of a shift that is given in exactly one of the three ways."""
    ways = {
        "target_rate": given.target_rate is not None or given.train_rate is not None,
        "kept": given.kept is not None,
        "positive_weight": given.positive_weight is not None,
    }
    said = [name for name, is_said in ways.items() if is_said]
    if len(said) != 1:
        came = " and ".join(said) if said else "none of them"
        raise ParameterError(
            "the shift must be given in exactly one of three ways: target_rate (with train_rate), "
            f"kept, or positive_weight; but {came} came."
        )
    return WAYS[said[0]](given, kind)


# --- the three ways -------------------------------------------------------------------------------


def _by_rates(given: GivenShift, kind: ProbabilityKind) -> Shift:
    target_rate, train_rate = given.target_rate, given.train_rate
    if target_rate is None:
        raise ParameterError(
            "target_rate must be given with train_rate: the rate where the probabilities will be "
            "used. Where it is not known, estimate_rate estimates it from unlabelled rows."
        )
    extra: dict[str, Any] = {}
    if isinstance(target_rate, (RateEstimate, RateEstimates)):
        _refuse_border(target_rate)
        train_rate = target_rate.train_rate if train_rate is None else train_rate
        extra = {"estimated": target_rate.to_dict()}
        target_rate = target_rate.rate
    if train_rate is None and kind.rate is None:
        raise ParameterError(
            "train_rate must be given: the rate of positives (or of each class) in the data at "
            "which these probabilities are calibrated is not known here."
        )
    train = check_rates(kind.rate if train_rate is None else train_rate, "train_rate", kind)
    target = check_rates(target_rate, "target_rate", kind)
    factor = target / train
    if not kind.distribution:
        factor = factor / ((1.0 - target) / (1.0 - train))
    record = {"train_rate": train.tolist(), "target_rate": target.tolist(), **extra}
    return _recorded(factor, record, target)


def _by_kept(given: GivenShift, kind: ProbabilityKind) -> Shift:
    if kind.columns and not kind.distribution:
        raise ParameterError(
            "kept must not be given for several labels at once: rows that are left out change the "
            "rates of all labels. Pass train_rate and target_rate, a rate for each label."
        )
    sizes = (kind.columns,) if kind.columns else (0, 2)
    share = _numbers(given.kept, "kept", sizes, kind.labels)
    _check_range(share, "kept", SMALLEST_RATE, 1.0)
    factor = 1.0 / share if kind.columns else share
    if share.ndim and not kind.columns:  # of negatives and positives
        factor = share[0] / share[1]
    return _recorded(factor, {"kept": share.tolist()}, _moved(kind, factor))


def _by_weight(given: GivenShift, kind: ProbabilityKind) -> Shift:
    if kind.distribution:
        raise ParameterError(
            "positive_weight must not be given for several classes. For class weights w pass "
            "kept=w / max(w), a share for each class: only their ratios count."
        )
    sizes = (0, kind.columns) if kind.columns else (0,)
    weight = _numbers(given.positive_weight, "positive_weight", sizes, kind.labels)
    _check_range(weight, "positive_weight", 1.0 / LARGEST_WEIGHT, LARGEST_WEIGHT)
    factor = 1.0 / weight
    if kind.columns:
        factor = np.broadcast_to(factor, (kind.columns,))
    return _recorded(factor, {"positive_weight": weight.tolist()}, _moved(kind, factor))


WAYS = {"target_rate": _by_rates, "kept": _by_kept, "positive_weight": _by_weight}


def _moved(kind: ProbabilityKind, factor: Array) -> Array | None:
    """The known rate after the shift: rates move as probabilities do."""
    if kind.rate is None:
        return None
    rate = check_rates(kind.rate, "the rate in the provenance", kind)
    return shift_classes(rate, factor) if kind.distribution else shift_odds(rate, factor)


def _recorded(factor: Array, record: dict[str, Any], rate: Array | None) -> Shift:
    factor = np.asarray(factor, dtype=np.float64)
    known = {} if rate is None else {"rate": rate.tolist()}
    return Shift(factor, {**record, "factor": factor.tolist(), **known})


# --- the checks -----------------------------------------------------------------------------------


def check_rates(value: Any, name: str, kind: ProbabilityKind) -> Array:
    """Rates strictly between 0 and 1, as many as are needed; those of classes have the sum 1."""
    rates = _numbers(value, name, (kind.columns,), kind.labels)
    _check_range(rates, name, SMALLEST_RATE, LARGEST_RATE)
    if kind.distribution and abs(float(rates.sum()) - 1.0) > SUM_TOLERANCE:
        raise ParameterError(
            f"{name} must have the sum 1 over the {kind.columns} classes, but it is "
            f"{rates.sum():g}. Divide the rates by their sum."
        )
    return rates


def _numbers(
    value: Any, name: str, sizes: tuple[int, ...], labels: tuple[Any, ...] | None
) -> Array:
    """A number (size 0) or an array of one of the sizes; a mapping by label will do, too."""
    if isinstance(value, Mapping):
        value = _by_label(value, name, labels)
    try:
        array = np.asarray(value)
    except ValueError as wrong:  # lists of different lengths
        raise ParameterError(f"{name} must be numbers: {wrong}") from wrong
    wanted = " or ".join("a number" if not size else f"{size} numbers" for size in sizes)
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{name} must be {wanted}, but {shown(value)} came.")
    if array.shape not in [(size,) if size else () for size in sizes]:
        shape = f"an array of shape {array.shape}" if array.ndim else f"the number {value}"
        raise ParameterError(f"{name} must be {wanted}, but {shape} came.")
    return array.astype(np.float64)


def _by_label(value: Mapping[Any, Any], name: str, labels: tuple[Any, ...] | None) -> list[Any]:
    if labels is None:
        raise ParameterError(
            f"{name} must be numbers in the order of the columns, but a mapping came, and the "
            "labels are not known here. Labels are known to a fitted calibrator of several "
            "classes; one of two classes takes a number, the rate of pos_label."
        )
    if set(value) != set(labels):
        raise ParameterError(
            f"{name} must have an entry for each of the labels {shown(list(labels))}, but "
            f"{shown(list(value))} came."
        )
    return [value[label] for label in labels]


def _check_range(values: Array, name: str, least: float, most: float) -> None:
    if not ((values >= least) & (values <= most)).all():
        above = "at most 1" if most == 1.0 else "below 1" if most < 1.0 else f"at most {most:g}"
        raise ParameterError(
            f"{name} must be above 0 (at least {least:g}) and {above}, but "
            f"{shown(values.tolist())} came."
        )


def _refuse_border(estimate: RateEstimate | RateEstimates) -> None:
    rates = np.asarray(estimate.rate)
    if (rates <= 0.0).any() or (rates >= 1.0).any():
        raise ParameterError(
            f"target_rate must lie between 0 and 1, but the estimate is {shown(rates.tolist())}: "
            "at such a rate probabilities are 0 or 1. Pass a rate inside its interval instead, "
            "such as the middle of low and high, with train_rate."
        )
