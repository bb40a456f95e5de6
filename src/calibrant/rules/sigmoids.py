"""Sigmoids of a few named features: Platt, temperature, beta, quadratic, prior shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array
from calibrant.data.documents import brief
from calibrant.data.door import finite_float
from calibrant.errors import InputError
from calibrant.losses import log_p, logit, minus_log_rest, sigmoid, softplus
from calibrant.rules.base import (
    Map,
    field_read_by,
    in_blocks,
    number_field,
    read_pair,
)
from calibrant.rules.plan.nodes import Clip, Constant, Linear, MapInput, Node, Sigmoid


def _log_sigmoid(x: Array) -> Array:
    """ln σ(x)."""
    return -softplus(-x)


Features = Mapping[str, Callable[[Array], Array]]

#: the features by name: the score x, z = logit(x), z², ln x, and −ln(1 − x); the last two of σ(x)
FEATURES: Features = {
    "x": lambda s: s,
    "z": logit,
    "z2": lambda s: logit(s) ** 2,
    "ln_p": log_p,
    "neg_ln_1mp": minus_log_rest,
    "ln_sigmoid": _log_sigmoid,
    "softplus": softplus,
}
#: the same as functions of z, exact where the score rounds to 0 or 1
FEATURES_OF_LOGIT: Features = {
    "x": sigmoid,
    "z": lambda z: z,
    "z2": lambda z: z * z,
    "ln_p": _log_sigmoid,
    "neg_ln_1mp": softplus,
    "ln_sigmoid": lambda z: _log_sigmoid(sigmoid(z)),
    "softplus": lambda z: softplus(sigmoid(z)),
}
#: features of a score that may be any number, and of one that is a probability
OF_MARGINS = ("x", "ln_sigmoid", "softplus")
OF_PROBABILITIES = tuple(name for name in FEATURES if name not in OF_MARGINS)
#: the features that are exchanged, but for their sign, where a score is mirrored
MIRRORED = {
    "ln_p": "neg_ln_1mp",
    "neg_ln_1mp": "ln_p",
    "ln_sigmoid": "softplus",
    "softplus": "ln_sigmoid",
}
#: logits are cut at ± this, so that z² and its products stay finite
LARGEST_LOGIT = 1e8
#: how far to either side of its middle a sigmoid is drawn, in logits
REACH = 6.0
#: the widest range of scores to draw
WIDEST = 1e300


def _read_terms(terms: Any) -> tuple[tuple[str, float], ...]:
    """Checked terms of a formula: names of features, and their coefficients."""
    if isinstance(terms, str) or not hasattr(terms, "__iter__"):
        raise InputError(
            "a logistic map cannot be made of such terms: they must be pairs of a feature and its "
            f"coefficient, but {brief(terms)} came."
        )
    read = []
    for term in terms:
        name, coefficient = read_pair(term, "a term of a logistic map")
        if not isinstance(name, str) or name not in FEATURES:
            raise InputError(f"a feature must be one of {tuple(FEATURES)}, but {brief(name)} came.")
        read.append((name, finite_float(coefficient, f"coefficient of {name}", 1e290)))
    return tuple(read)


def _read_interval(clip: Any) -> tuple[float, float]:
    """A checked interval within [0, 1]."""
    low, high = (finite_float(end, "clip") for end in read_pair(clip, "clip"))
    if not 0.0 <= low < high <= 1.0:
        raise InputError(f"clip must be an interval inside [0, 1], but {low:g} to {high:g} came.")
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Logistic(Map):
    """σ(intercept + Σ coefficient · φ(score)).

    Parameters
    ----------
    intercept : float
    terms : tuple of (feature, coefficient)
        Features: ``"x"`` the score, ``"z"`` its logit, ``"z2"`` the logit squared, ``"ln_p"`` and
        ``"neg_ln_1mp"`` the logarithms of the beta map, ln p and −ln(1 − p). Of margins these are
        ``"ln_sigmoid"``, ln σ(x), and ``"softplus"``, −ln(1 − σ(x)) = ln(1 + eˣ), exact where σ(x)
        rounds to 0 or 1. They do not go together with ``"x"``, which is their sum.
    clip : pair of probabilities, optional
        Scores are first moved into this interval. So 0 and 1, which have no logit, get one.

    Examples
    --------
    >>> Logistic(0.0, (("x", 2.0),))([-1.0, 0.0, 1.0]).round(3).tolist()
    [0.119, 0.5, 0.881]
    >>> Logistic(0.0, (("z", 1.0),))([0.25]).round(12).tolist()
    [0.25]
    >>> Logistic(0.0, (("z", 1.0),), clip=(0.01, 1.0))([0.0, 0.25]).round(12).tolist()
    [0.01, 0.25]
    """

    kind: ClassVar[str] = "logistic"
    #: version 1 had neither ln_sigmoid nor softplus
    version: ClassVar[int] = 2

    # below 1e290 no sum of terms can be ∞ − ∞: x is unbounded, or one of ln_sigmoid and softplus
    intercept: float = field(metadata=number_field("intercept", 1e290))
    terms: tuple[tuple[str, float], ...] = field(metadata=field_read_by(_read_terms))
    clip: tuple[float, float] | None = field(default=None, metadata=field_read_by(_read_interval))

    def _check(self) -> None:
        """Refuse a feature that comes twice, and x beside ln_sigmoid and softplus, its parts."""
        names = [name for name, _ in self.terms]
        if len(set(names)) != len(names):
            raise InputError(f"each feature of a logistic map may occur once, but {names} came.")
        if "x" in names and self._reads_margins:
            raise InputError(
                "x must not be a feature beside ln_sigmoid and softplus, whose sum it is, but "
                f"{names} came. Add its coefficient to theirs."
            )

    @property
    def _reads_margins(self) -> bool:
        """Whether scores are margins in the formula."""
        return any(name in OF_MARGINS and name != "x" for name, _ in self.terms)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"version": 2 if self._reads_margins else 1}

    def __call__(self, scores: ArrayLike) -> Array:
        of_block = partial(self._evaluate, FEATURES, self.clip)
        return in_blocks(of_block, np.asarray(scores, dtype=np.float64))

    def of_logit(self, z: Array) -> Array:
        """The probabilities of scores whose logits are z.

        >>> temperature = Logistic(0.0, (("z", 0.25),))
        >>> temperature(sigmoid(np.array([100.0]))).round(6).tolist()
        [0.999897]
        >>> temperature.of_logit(np.array([100.0])).round(6).tolist()
        [1.0]
        """
        return self._evaluate(FEATURES_OF_LOGIT, clip_logits(self.clip), z)

    def between_logits(self, z: Array) -> Array:
        """As `of_logit`, but z is first clipped to the logits of 0 and 1, where scores end."""
        low, high = logit(np.array(self.clip or (0.0, 1.0))).tolist()
        return self._evaluate(FEATURES_OF_LOGIT, (low, high), z)

    def _evaluate(self, features: Features, clip: tuple[float, float] | None, s: Array) -> Array:
        """The probabilities of numbers that are first clipped; ``features`` computes each term."""
        s = s if clip is None else np.clip(s, *clip)
        total = np.full(s.shape, self.intercept)
        with np.errstate(over="ignore"):
            for name, coefficient in self.terms:
                if coefficient:  # 0 times a square that overflows would be no number
                    total += coefficient * features[name](s)
        return sigmoid(total)

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def takes_probabilities(self) -> bool:
        return self.clip is not None or any(name in OF_PROBABILITIES for name, c in self.terms if c)

    @property
    def looks_like_probabilities(self) -> bool:
        return any(name in OF_PROBABILITIES for name, _ in self.terms)

    @property
    def trend(self) -> int:
        """The common sign of all coefficients; 0 if signs differ, or if z² is among the
        features."""
        signs = {int(np.sign(c)) for _, c in self.terms if c}
        if any(name == "z2" and c for name, c in self.terms) or len(signs) > 1:
            return 0
        return signs.pop() if signs else 1

    size = 1

    @property
    def span(self) -> tuple[float, float]:
        """[0, 1] for probabilities, else the scores between which the sigmoid is not flat."""
        if self._reads_margins and not self.looks_like_probabilities:
            return -REACH, REACH
        if [name for name, _ in self.terms] != ["x"]:
            return 0.0, 1.0
        slope = self.terms[0][1]
        if abs(slope) * WIDEST <= REACH + abs(self.intercept):  # flat as far as floats go
            return -1.0, 1.0
        middle = -self.intercept / slope
        reach = max(REACH / abs(slope), 1e-9 * abs(middle))
        return middle - reach, middle + reach

    def knots(self, low: float, high: float) -> Array:
        return np.empty(0)

    def lowered(self, axis: MapInput) -> Node:
        """The sigmoid of a sum of features."""
        terms = [(name, c) for name, c in self.terms if c]
        if not terms:
            return Constant(float(sigmoid(np.array(self.intercept))))
        features = axis.features(self.clip, clip_logits(self.clip))
        return Sigmoid(Linear(self.intercept, tuple((c, features[name]) for name, c in terms)))

    @property
    def as_line(self) -> tuple[float, float] | None:
        """Intercept and slope of a rising line on the logit scale, if the map is one."""
        if self.clip is not None or len(self.terms) != 1:
            return None
        (name, slope), *_ = self.terms
        return (self.intercept, slope) if name == "z" and slope > 0.0 else None

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        """The formula with other coefficients; a chain where these would be too large."""
        rising_line(intercept, slope)
        try:
            return replace(
                self,
                intercept=intercept + slope * self.intercept,
                terms=tuple((name, slope * c) for name, c in self.terms),
            )
        except InputError:  # numbers beyond what a formula may hold
            return super().corrected(intercept, slope)

    def mirrored(self, centre: float) -> Map:
        """The formula of reversed scores, centre − s: the same features with other signs."""
        about = 1.0 if self.takes_probabilities else 0.0
        if centre != about and any(name != "x" for name, _ in self.terms):
            raise InputError(
                f"a formula of logits cannot be turned round {centre:g}. Divide percentages by "
                "100, or turn the scores yourself: pass -scores."
            )
        intercept = self.intercept + centre * sum(c for name, c in self.terms if name == "x")
        terms = tuple(
            (MIRRORED.get(name, name), c if name == "z2" else -c) for name, c in self.terms
        )
        clip = self.clip and (centre - self.clip[1], centre - self.clip[0])
        return replace(self, intercept=intercept, terms=terms, clip=clip)

    def __repr__(self) -> str:
        terms = "".join(f" {c:+.6g}·{name}" for name, c in self.terms)
        inside = "" if self.clip is None else f", clip=({self.clip[0]:.6g}, {self.clip[1]:.6g})"
        return f"Logistic(σ({self.intercept:.6g}{terms}){inside})"


def rising_line(intercept: float, slope: float) -> Logistic:
    """The map σ(intercept + slope · z) with a slope above 0."""
    if not slope > 0.0:
        raise InputError(f"the slope of a correction must be above 0, but {slope:g} came.")
    return Logistic(intercept, (("z", slope),))


def clip_logits(clip: tuple[float, float] | None) -> tuple[float, float]:
    """The logits of the ends of an interval. For 0 and 1 they are ± `LARGEST_LOGIT`."""
    low, high = (0.0, 1.0) if clip is None else clip
    inner = logit(np.array([low, high]))
    return (
        float(inner[0]) if low > 0.0 else -LARGEST_LOGIT,
        float(inner[1]) if high < 1.0 else LARGEST_LOGIT,
    )


# --- The map that changes nothing -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Identity(Map):
    """p ↦ p, clipped to [0, 1].

    >>> Identity()([0.2, 1.5]).tolist()
    [0.2, 1.0]
    """

    kind: ClassVar[str] = "identity"

    def __call__(self, scores: ArrayLike) -> Array:
        return np.clip(np.asarray(scores, dtype=np.float64), 0.0, 1.0)

    takes_probabilities = looks_like_probabilities = True
    trend = size = 1
    span = (0.0, 1.0)

    def knots(self, low: float, high: float) -> Array:
        return np.array([0.0, 1.0])

    def lowered(self, axis: MapInput) -> Node:
        return Clip(axis.score.node, 0.0, 1.0)

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        return rising_line(intercept, slope)

    def mirrored(self, centre: float) -> Map:
        return Logistic(0.0, (("z", -1.0),))
