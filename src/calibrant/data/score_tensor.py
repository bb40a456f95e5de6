"""Scores of several classes in a tensor of PyTorch, CuPy or JAX, which stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.distributions import (
    BadRows,
    refuse_distributions,
    refuse_infinite,
    sum_tolerance,
)
from calibrant.data.score_matrix import ScoreMatrix, read_classes_of, read_matrix
from calibrant.data.validation import check_lengths, read_weight
from calibrant.errors import InputError
from calibrant.kernels.block_arrays import TensorOps, tensor_ops
from calibrant.kernels.fused_rows import RowFacts, can_fuse, row_facts
from calibrant.kernels.temperature import FusedSums
from calibrant.tensors import library_of, on_host

#: a block holds at most this share of all numbers, so that what is made of it stays small
PART = 1 / 64
#: but so many numbers at least: small steps cost more than they do, the most on a GPU
FEWEST, FEWEST_ON_GPU = 1 << 17, 1 << 22
#: a first, rough fit takes one row of so many at least: of few rows it would be too rough
SPARSEST = 16


def read_where_it_is(
    scores: Any, y: Any, sample_weight: Any = None, classes: Any = None
) -> tuple[ScoreMatrix, NDArray[Any]]:
    """`read_matrix`, but a tensor that NumPy cannot look at stays on its device."""
    if not _stays(scores):
        return read_matrix(scores, y, sample_weight, classes)
    known, codes = read_classes_of(y, int(scores.shape[1]), classes)
    check_lengths(scores=len(scores), y=len(codes))
    weight = read_weight(sample_weight, len(codes))
    made = ScoreTensor.checked(scores, codes, weight)
    return (made if weight is None or weight.all() else made.take(weight > 0)), known


def _stays(scores: Any) -> bool:
    """Whether these are floats in a tensor that NumPy could not look at without a copy."""
    library = library_of(scores)
    if library is None or len(scores.shape) != 2:
        return False
    if library == "torch":
        plain = scores.device.type == "cpu" and scores.dtype.itemsize >= 4
        return bool(scores.is_floating_point() and not plain)
    if library == "cupy":
        return bool(scores.dtype.kind == "f")
    return bool("float" in scores.dtype.name and next(iter(scores.devices())).platform != "cpu")


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTensor(ScoreMatrix):
    """A `ScoreMatrix` whose scores are a tensor of logits or probabilities.

    Labels and weights are here; the scores are only ever looked at in blocks, where they are. What
    is asked of all rows (`facts`) is found in one pass.
    """

    scores: Any
    codes: Index
    weight: Array | None = None

    def __post_init__(self) -> None:
        if library_of(self.scores) == "torch":
            object.__setattr__(self, "scores", self.scores.detach())
        check_lengths(scores=len(self.scores), codes=len(self.codes))

    @classmethod
    def checked(cls, scores: Any, codes: Index, weight: Array | None) -> ScoreTensor:
        """The matrix, if all its scores are finite."""
        made = cls(scores, codes, weight)
        if made.n_classes < 2 or not len(made):
            raise InputError(
                "scores must have one row at least, and a column for each of two or more classes, "
                f"but their shape is {tuple(scores.shape)}."
            )
        facts = made.facts
        good = np.isfinite(facts.low) & np.isfinite(facts.high) & np.isfinite(facts.mean)
        if not good.all():
            refuse_infinite(made._bad(~good))
        return made

    def _bad(self, wrong: Flags) -> BadRows:
        first = int(np.argmax(wrong))
        return BadRows(int(wrong.sum()), first, len(self), on_host(self.scores[first]))

    @property
    def ops(self) -> TensorOps:
        """What can be done with the scores."""
        return tensor_ops(self.scores)

    @cached_property
    def facts(self) -> RowFacts:
        """Smallest, largest and mean score of each row, and its mean square about the mean."""
        return row_facts(self.scores, self._slices)

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.facts.low.min()), float(self.facts.high.max())

    @property
    def sums(self) -> tuple[float, float]:
        sums = self.facts.mean * self.n_classes
        return float(sums.min()), float(sums.max())

    @property
    def looks_like_probabilities(self) -> bool:
        return not self._not_distributions.any()

    @property
    def _not_distributions(self) -> Flags:
        low, high, mean, _ = self.facts
        apart = np.abs(mean * self.n_classes - 1.0)
        return np.asarray((low < 0.0) | (high > 1.0) | (apart > sum_tolerance(self.n_classes)))

    def check_distributions(self) -> None:
        wrong = self._not_distributions
        if wrong.any():
            refuse_distributions(self._bad(wrong))

    @property
    def smallest_positive(self) -> float:
        ops, found = self.ops, 1.0
        for rows in self._slices:
            found = min(found, ops.smallest_positive(self.scores[rows]))
        return found

    @property
    def _slices(self) -> list[slice]:
        on_cpu = library_of(self.scores) == "torch" and self.scores.device.type == "cpu"
        fewest = FEWEST if on_cpu else FEWEST_ON_GPU
        step = max(int(PART * len(self)), fewest // self.n_classes, 1)
        return [slice(start, start + step) for start in range(0, len(self), step)]

    def blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """(scores, codes, weights) of one block of rows after the other, all of them tensors.

        Scores and weights are float64 where the library has that.
        """
        ops = self.ops
        for rows in self._slices:
            x = ops.wide(self.scores[rows])
            weight = np.ones(len(x)) if self.weight is None else self.weight[rows]
            yield x, ops.beside(self.codes[rows], x), ops.beside(weight, x)

    def every(self, step: int) -> ScoreTensor:
        some = slice(None, None, min(step, SPARSEST))
        return self._part(self.scores[some], some)

    def take(self, rows: NDArray[Any]) -> ScoreTensor:
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return self._part(self.scores[self.ops.beside(rows, self.scores)], rows)

    def _part(self, scores: Any, rows: Any) -> ScoreTensor:
        weight = None if self.weight is None else self.weight[rows]
        made = ScoreTensor(scores, self.codes[rows], weight)
        made.__dict__["facts"] = RowFacts(*(column[rows] for column in self.facts))
        return made

    def temperature_sums(self) -> FusedSums | None:
        if not can_fuse(self.scores):
            return None
        weight = np.ones(len(self)) if self.weight is None else self.weight
        return FusedSums(self.scores, self.facts, self.codes, weight)

    def leading(self, columns: int) -> Array:
        return np.asarray(on_host(self.scores[:, :columns]), np.float64)
