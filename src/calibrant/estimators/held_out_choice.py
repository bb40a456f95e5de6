"""Which of several candidates is taken, by their losses on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.estimators.held_out_means import Sample

__all__ = ["BENEFIT", "HeldOutLosses", "choose", "errors_behind"]

Array = NDArray[np.float64]

#: a candidate replaces our own method only if it is ahead by more standard errors than this
BENEFIT = 2.0


class HeldOutLosses(Protocol):
    """How a candidate did on the rows held out."""

    @property
    def log_loss(self) -> Array:
        """The loss on each cell of the sample."""

    @property
    def certain(self) -> bool:
        """Whether it gave a probability of exactly 0 or 1."""


def choose(
    judged: Mapping[str, HeldOutLosses], sample: Sample, *, demanding: Collection[str] = ()
) -> tuple[str, set[str]]:
    """The candidate that is taken, and those that are as good as the best.

    As good as the best is who is behind it by at most one standard error. The first candidate (the
    scores as they came) is taken if it is one of these. Otherwise the second (our own method) is
    taken if it is ahead of the first by more than one standard error, and at most two behind the
    best. In all other cases the best is taken. A candidate that gives an exact 0 or 1 is taken only
    if all do: if such rows were right so far, this does not show what a wrong one will cost.

    Candidates that ask more of their users (``demanding``) are taken only if they are ahead by more
    than two standard errors of what would be taken without them.
    """
    if demanding:
        plain = {name: one for name, one in judged.items() if name not in demanding}
        return _demanding(judged, demanding, sample, *choose(plain, sample))
    finite = {n: j for n, j in judged.items() if np.isfinite(sample.mean(j.log_loss))}
    finite = {n: j for n, j in finite.items() if not j.certain} or finite
    first, second, *_ = judged
    if not finite:
        return first, set(judged)
    best = min(finite, key=lambda name: sample.mean(finite[name].log_loss))
    ahead = {name: errors_behind(one, finite[best], sample) for name, one in finite.items()}
    tied = {name for name, errors in ahead.items() if errors <= 1.0}
    if first in tied:
        return first, tied
    if ahead.get(second, np.inf) > BENEFIT:
        return best, tied
    helps = first not in finite or errors_behind(finite[first], finite[second], sample) > 1.0
    return (second if helps else best), tied


def _demanding(
    judged: Mapping[str, HeldOutLosses],
    names: Collection[str],
    sample: Sample,
    taken: str,
    tied: set[str],
) -> tuple[str, set[str]]:
    for name in names:
        other, one = judged[taken], judged[name]
        if not np.isfinite(sample.mean(one.log_loss)):
            continue
        hopeless = not np.isfinite(sample.mean(other.log_loss))
        if hopeless or errors_behind(other, one, sample) > BENEFIT:
            taken, tied = name, {name}
    return taken, tied


def errors_behind(one: HeldOutLosses, other: HeldOutLosses, sample: Sample) -> float:
    """How many standard errors of the paired difference one is behind the other; at least 0."""
    difference = one.log_loss - other.log_loss
    mean, error = sample.mean(difference), sample.error(difference)
    if one is other or mean <= 0.0:
        return 0.0
    return mean / error if error > 0 else np.inf
