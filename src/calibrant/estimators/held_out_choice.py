"""Which of several candidates is taken, by their losses on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np

from calibrant.array_types import Array
from calibrant.estimators.held_out_means import Sample

#: a candidate replaces our own method only if it is ahead by more standard errors than this
BENEFIT = 2.0
#: the scores are kept unless they are found wrong at this level; and the standard errors by which
#: noise alone is ahead in so many samples
LEVEL, ONE_SIDED = 0.05, 1.64
#: standard errors by which the best must be ahead of the scores of several classes
CLASS_ERRORS = 1.0
#: mean losses that differ by this part are equal but for rounding
ROUNDING = 1e-12


class HeldOutLosses(Protocol):
    """How a candidate did on the rows held out."""

    @property
    def log_loss(self) -> Array:
        """The loss on each cell of the sample."""

    @property
    def certain(self) -> bool:
        """Whether it gave a probability of exactly 0 or 1."""


def choose(
    judged: Mapping[str, HeldOutLosses],
    sample: Sample,
    *,
    right: float | None = None,
    errors: float = ONE_SIDED,
    demanding: Collection[str] = (),
) -> tuple[str, set[str]]:
    """The candidate that is taken, and those that are as good as the best.

    The first candidate is the scores as they came. They are kept unless the best is ahead of them
    by more than so many standard ``errors``, or is ahead at all and a test refutes the scores
    (``right`` is the p-value of the test that they are right; None without one).

    Otherwise the second candidate (our own method) is taken if it is ahead of the scores by the
    same rule, and at most two standard errors behind the best. In all other cases the best is
    taken. A candidate that gives an exact 0 or 1 is taken only if all do: if such rows were right
    so far, this does not show what a wrong one will cost.

    As good as the best is who is behind it by at most one standard error. Candidates that ask more
    of their users (``demanding``) are taken only if they are ahead by more than two standard errors
    of what would be taken without them.
    """
    plain = {name: one for name, one in judged.items() if name not in demanding}
    taken, tied = _choose(plain, sample, right, errors)
    for name in demanding:
        other, one = judged[taken], judged[name]
        if not np.isfinite(sample.mean(one.log_loss)):
            continue
        hopeless = not np.isfinite(sample.mean(other.log_loss))
        if hopeless or errors_behind(other, one, sample) > BENEFIT:
            taken, tied = name, {name}
    return taken, tied


def _choose(
    judged: Mapping[str, HeldOutLosses], sample: Sample, right: float | None, errors: float
) -> tuple[str, set[str]]:
    """The choice among candidates of which none asks more than the others."""
    finite = {n: j for n, j in judged.items() if np.isfinite(sample.mean(j.log_loss))}
    finite = {n: j for n, j in finite.items() if not j.certain} or finite
    first, second, *_ = judged
    if not finite:
        return first, set(judged)
    best = min(finite, key=lambda name: sample.mean(finite[name].log_loss))
    behind = {name: errors_behind(one, finite[best], sample) for name, one in finite.items()}
    tied = {name for name, count in behind.items() if count <= 1.0}

    def beats_the_scores(name: str) -> bool:
        if first not in finite:
            return True
        ahead = errors_behind(finite[first], finite[name], sample)
        refuted = right is not None and right <= LEVEL
        return ahead > (0.0 if refuted else errors)

    if not beats_the_scores(best):
        return first, tied
    own = behind.get(second, np.inf) <= BENEFIT and beats_the_scores(second)
    return (second if own else best), tied


def errors_behind(one: HeldOutLosses, other: HeldOutLosses, sample: Sample) -> float:
    """How many standard errors of the paired difference one is behind the other; at least 0."""
    difference = one.log_loss - other.log_loss
    mean, error = sample.mean(difference), sample.error(difference)
    if one is other or mean <= ROUNDING * abs(sample.mean(other.log_loss)):
        return 0.0
    return mean / error if error > 0 else np.inf
