"""What a map of several scores reads of a row: the scores, or logits whose softmax they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.export.onnx.axis import Axis, of_logits, of_scores
from calibrant.export.onnx.formulas import log_of, log_softmax, softmax_of
from calibrant.export.onnx.graph import Tensor
from calibrant.losses import SMALLEST
from calibrant.maps.softmax import LARGEST_LOGIT

__all__ = ["Logits", "Scores", "Seen", "clipped", "shares"]

#: logits are cut at ± this in float32
LARGEST_LOGIT_32 = 1e15


class Seen(Protocol):
    """A row (n, k) in the several ways that maps read it."""

    @property
    def are_logits(self) -> bool:
        """Whether the rows that came are logits of what the map takes."""

    def rows(self) -> Tensor:
        """The scores themselves."""

    def log(self, floor: float) -> Tensor:
        """Their logarithms, those below a floor raised to it."""

    def power(self, factor: float) -> Seen:
        """The distributions ∝ scores to a power."""

    def own(self, j: int) -> Axis:
        """Column j, as a score of its own."""

    def among(self, j: int) -> Axis:
        """Column j, as one of probabilities that sum to one."""


@dataclass(frozen=True)
class Scores:
    """Rows as they came, or as they were computed."""

    x: Tensor
    are_logits: bool = False

    def rows(self) -> Tensor:
        return self.x

    def log(self, floor: float) -> Tensor:
        return log_of(self.x, floor)

    def power(self, factor: float) -> Seen:
        if factor == 1.0:
            return self
        graph = self.x.graph
        relative = shares(graph.at_least(self.x, 0.0), graph.greatest)
        return Scores(shares(graph.op("Pow", relative, factor), graph.total))

    def own(self, j: int) -> Axis:
        return of_scores(self.x.graph.column(self.x, j))

    def among(self, j: int) -> Axis:
        return self.own(j)


@dataclass(frozen=True)
class Logits:
    """Logits z of k classes whose softmax the map takes; of columns of their own, the sigmoids."""

    z: Tensor
    k: int
    are_logits: bool = True

    def rows(self) -> Tensor:
        return softmax_of(self.z)

    def log(self, floor: float) -> Tensor:
        value = log_softmax(self.z)
        # the smallest number is no floor: it only says where a double is rounded to zero
        return value if floor <= SMALLEST else self.z.graph.at_least(value, float(np.log(floor)))

    def power(self, factor: float) -> Seen:
        return self if factor == 1.0 else Logits(self.z * factor, self.k)

    def own(self, j: int) -> Axis:
        return of_logits(self.z.graph.column(self.z, j))

    def among(self, j: int) -> Axis:
        """z_j − ln Σ_{i≠j} exp(z_i)."""
        graph = self.z.graph
        others = graph.gather(self.z, np.delete(np.arange(self.k), j), axis=1)
        greatest = graph.greatest(others, 1)
        total = graph.total(graph.op("Exp", others - greatest), 1)
        rest = graph.squeeze(greatest + graph.op("Log", total), 1)
        return of_logits(graph.column(self.z, j) - rest)


def clipped(z: Tensor) -> Tensor:
    """Logits moved to where their products with any parameter stay finite."""
    most = LARGEST_LOGIT if z.graph.dtype == np.float64 else LARGEST_LOGIT_32
    return z.graph.within(z, -most, most)


def shares(x: Tensor, whole: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Rows divided by their sum or largest entry, unless that is zero."""
    size = whole(x, 1)
    return x / x.graph.where(size > 0.0, size, 1.0)
