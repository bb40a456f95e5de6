"""Scores of several classes: an (n, k) matrix with the class and the weight of each row."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import check_class_columns, plain
from calibrant.data.door import (
    Rows,
    are_distributions,
    check_distributions,
    check_lengths,
    flag_rows,
    read_class_labels,
    read_weight,
    refuse_distributions,
    refuse_infinite,
    row_blocks,
    sum_tolerance,
    to_numbers,
)
from calibrant.data.frozen import Frozen, read_only
from calibrant.data.scale import ScoreScale
from calibrant.data.score_table import ScoreTable
from calibrant.errors import AdviceWarning, InputError, caller_level
from calibrant.solvers.block_arrays import RowFacts, can_fuse, ops_of, row_facts
from calibrant.tensors import library_of, on_host

if TYPE_CHECKING:
    from calibrant.solvers.softmax import FusedSums


#: float64, or float32 where float32 came: a matrix may be larger than memory
Scores = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreMatrix(Frozen):
    """n rows with a score for each of k classes, the code of each row's label, and weights.

    The multiclass sister of `ScoreTable`. The scores are a read-only view of what came, not a
    copy: float32 stays float32 and a `numpy.memmap` stays on disk, so work through `blocks`, which
    gives float64. Rows of weight zero are absent: `read_matrix` must copy the others then.

    Parameters
    ----------
    scores : array of shape (n, k), float32 or float64
    codes : array of shape (n,)
        Column of the row's own class, 0 to k − 1.
    weight : array of shape (n,), optional
        Weights > 0; None where all rows count once.
    whole : ScoreScale, optional
        The scale of the scores of the whole that these rows are a part of.

    Examples
    --------
    >>> scores = [[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]]
    >>> m, classes = read_matrix(scores, ["a", "c"], classes=["a", "b", "c"])
    >>> m
    ScoreMatrix(2 rows, 3 classes, weight 2)
    >>> [(x.shape, codes.tolist()) for x, codes, w in m.blocks()]
    [((2, 3), [0, 2])]
    """

    scores: Scores
    codes: Index
    weight: Array | None = None
    whole: ScoreScale | None = None

    def __post_init__(self) -> None:
        scores = self.scores
        if scores.ndim != 2 or scores.dtype not in (np.float32, np.float64):
            raise InputError(
                "scores of a ScoreMatrix must be 2-d of float32 or float64, but "
                f"{scores.dtype} of shape {scores.shape} came."
            )
        codes = np.asarray(self.codes, dtype=np.intp)
        check_lengths(scores=len(scores), codes=len(codes))
        if len(codes) and (codes.min() < 0 or codes.max() >= scores.shape[1]):
            raise InputError(f"codes must be places of the {scores.shape[1]} columns, 0 and up.")
        if self.weight is not None:
            check_lengths(scores=len(scores), weight=len(self.weight))
            object.__setattr__(self, "weight", read_only(self.weight))
        object.__setattr__(self, "scores", read_only(scores))
        object.__setattr__(self, "codes", read_only(codes))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.codes)

    @property
    def n_classes(self) -> int:
        """k, the number of columns."""
        return int(self.scores.shape[1])

    @property
    def total(self) -> float:
        """Σw."""
        return float(len(self)) if self.weight is None else float(self.weight.sum())

    @property
    def effective_size(self) -> float:
        """(Σw)² / Σw²."""
        if self.weight is None:
            return float(len(self))
        # squares of very small or large weights would leave the range of floats
        share = self.weight / self.weight.max(initial=np.finfo(float).tiny)
        return float(share.sum()) ** 2 / (float(share @ share) or 1.0)

    @property
    def class_weight(self) -> Array:
        """The weight of each class, shape (k,)."""
        return np.bincount(self.codes, self.weight, minlength=self.n_classes).astype(np.float64)

    @property
    def looks_like_probabilities(self) -> bool:
        """Whether every row is a distribution, up to rounding: see `are_distributions`."""
        return are_distributions(self.scores)

    @property
    def sums(self) -> tuple[float, float]:
        """The smallest and the largest sum of a row."""
        parts = (self.scores[rows] for rows in self._slices)
        sums = [part.sum(axis=1, dtype=np.float64) for part in parts]
        return float(min(map(np.min, sums))), float(max(map(np.max, sums)))

    def kind(self) -> str:
        """What the scores look like: ``"probability"`` or ``"logit"``. Parts have the kind of the
        whole.

        Percentages are refused. Scores in [0, 1] that do not sum to one are logits, with a warning.
        """
        if self.whole is not None and self.whole.rows:
            return self.whole.rows
        if self.looks_like_probabilities:
            return "probability"
        (low, high), near = self.ends, sum_tolerance(self.n_classes)
        if low < 0.0 or high > 100.0:
            return "logit"
        least, most = self.sums
        if high <= 1.0:
            warnings.warn(
                f"all scores are in [0, 1], but their rows sum to {least:.4g} up to {most:.4g}: so "
                "they are read as logits. If they are probabilities, divide each row by its sum.",
                AdviceWarning,
                stacklevel=caller_level(),
            )
        elif 100.0 * (1.0 - near) <= least and most <= 100.0 * (1.0 + near):
            raise InputError(
                "scores must be probabilities or logits, but each row sums to 100: they look like "
                "percentages. Divide them by 100."
            )
        return "logit"

    @property
    def size(self) -> int:
        """n·k, the number of scores."""
        return len(self) * self.n_classes

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest score."""
        return float(self.scores.min()), float(self.scores.max())

    @property
    def smallest_positive(self) -> float:
        """The smallest positive score, at most 1."""
        parts = (self.scores[rows] for rows in self._slices)
        return min(map(ops_of(self.scores).smallest_positive, parts), default=1.0)

    def check_distributions(self) -> None:
        """Refuse rows that are not distributions."""
        check_distributions(self.scores)

    def leading(self, columns: int) -> Scores:
        """The scores of the first so many classes."""
        return self.scores[:, :columns]

    @property
    def _slices(self) -> Iterable[slice]:
        """Slices of rows, each a block that is read at once."""
        return row_blocks(len(self), self.n_classes)

    def blocks(self) -> Iterator[tuple[Array, Index, Array]]:
        """(scores, codes, weights) of one block of rows after the other, where the scores are.

        Scores and weights are float64, of tensors where their library has that. No more than one
        block is in memory at a time.
        """
        ops = ops_of(self.scores)
        for rows in self._slices:
            x = ops.wide(self.scores[rows])
            weight = np.ones(len(x)) if self.weight is None else self.weight[rows]
            yield x, ops.beside(self.codes[rows], x), ops.beside(weight, x)

    def every(self, step: int) -> ScoreMatrix:
        """Every row whose number is a multiple of ``step``."""
        return self.take(np.arange(0, len(self), step))

    def temperature_sums(self) -> FusedSums | None:
        """The sums over rows for a temperature fit, where a kernel on the GPU can make them; else
        None."""
        return None

    def take(self, rows: NDArray[Any]) -> ScoreMatrix:
        """Some of the rows, chosen by their numbers or by flags."""
        weight = None if self.weight is None else self.weight[rows]
        return ScoreMatrix(self.scores[rows], self.codes[rows], weight, self.whole)

    def scaled(self) -> ScoreMatrix:
        """The same rows with their scale fixed, so that all parts taken of them are read alike."""
        return replace(self, whole=self.whole or ScoreScale(*self.ends, self.kind()))

    def table(self, column: int, signs: NDArray[Any]) -> ScoreTable:
        """One column as a `ScoreTable`: classes with sign 1 against those with −1, 0 left out.

        >>> m, _ = read_matrix([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], [0, 1, 2])
        >>> t = m.table(0, np.array([1, -1, 0]))
        >>> t.scores.tolist(), t.positive.tolist()
        ([0.1, 0.7], [0.0, 1.0])
        """
        sign = np.asarray(signs)[self.codes]
        used = sign != 0
        scores = self.scores[used, column].astype(np.float64) + 0.0
        weight = None if self.weight is None else self.weight[used]
        if not len(scores):
            return ScoreTable.empty()
        return ScoreTable.from_rows(Rows(scores, sign[used] > 0, weight, np.array([0, 1]), 1))

    def __repr__(self) -> str:
        return f"ScoreMatrix({len(self)} rows, {self.n_classes} classes, weight {self.total:g})"


def read_matrix(
    scores: Any,
    y: Any,
    sample_weight: Any = None,
    classes: Any = None,
    *,
    on_device: bool = False,
) -> tuple[ScoreMatrix, NDArray[Any]]:
    """The matrix of rows of scores, labels and weights, which are checked; and the classes.

    Column j of the scores is the j-th class in sorted order, or the j-th of ``classes``, which
    names them all. Labels that are whole numbers from 0 to k − 1 need no names. With ``on_device``
    a tensor that NumPy can only copy stays where it is.

    >>> read_matrix([[1.0, 0.0], [0.0, 2.0]], ["a", "a"], None, ["a", "b"])[1].tolist()
    ['a', 'b']
    >>> read_matrix([[1.0, 0.0, 0.5], [0.0, 2.0, 0.5]], [0, 2])[1].tolist()
    [0, 1, 2]
    """
    stays = on_device and _needs_copy(scores)
    clean = scores if stays else read_score_matrix(scores)
    columns = int(clean.shape[1])
    known, codes = read_class_labels(y, classes, columns)
    if len(known) != columns:
        shown = ", ".join(repr(plain(label)) for label in known[:5])
        more = f"{len(known)} classes ({shown}{', …' if len(known) > 5 else ''})"
        came = f"only one class, {shown}" if len(known) == 1 else more
        lacks = "name them all with classes=[...], since y lacks some."
        advice = (
            lacks if len(known) < columns else "add the columns that are missing, or correct y."
        )
        raise InputError(
            f"scores have {columns} columns, but y holds {came}. Every class must have its column, "
            f"in sorted order: {advice}"
        )
    check_class_columns(scores, known, "scores")
    check_lengths(scores=len(clean), y=len(codes))
    weight = read_weight(sample_weight, len(codes))
    if not stays:
        matrix = ScoreMatrix(clean, codes, weight)
    else:
        matrix = ScoreTensor(clean, codes, weight)
        matrix.check_finite()
    return (matrix if weight is None or weight.all() else matrix.take(weight > 0)), known


def read_score_matrix(
    scores: Any,
    columns: int | None = None,
    *,
    name: str = "scores",
    classes: Any = None,
) -> Scores:
    """Finite scores of shape (n, k): float32 and memory maps as they are, all else as float64.

    ``columns`` is the k that must be. ``classes`` says what the columns are; a frame whose names
    say otherwise is refused.
    """
    array = to_numbers(scores, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise InputError(
            f"{name} must have one column for each of two or more classes, but their shape is "
            f"{array.shape}. Pass a matrix (n, k) of logits or probabilities."
        )
    if columns is not None and array.shape[1] != columns:
        raise InputError(
            f"{name} must have {columns} columns, one for each class, but {array.shape[1]} came."
        )
    if classes is not None:
        check_class_columns(scores, classes, name)
    if not len(array):
        raise InputError(f"{name} must have at least one row, but none came (0 samples).")
    if array.dtype != np.float32:
        narrow = array.dtype.kind == "f" and array.dtype.itemsize < 4
        array = array.astype(np.float32 if narrow else np.float64, copy=False)
    refuse_infinite(array, flag_rows(array, lambda part: ~np.isfinite(part).all(axis=1)), name)
    return array


# --- Scores of several classes in a tensor of PyTorch, CuPy or JAX, which stays where it is -------


#: a block holds at most this share of all numbers, so that what is made of it stays small
PART = 1 / 64
#: but so many numbers at least: small steps cost more than they do, the most on a GPU
FEWEST, FEWEST_ON_GPU = 1 << 17, 1 << 22
#: a first, rough fit takes one row of so many at least: of few rows it would be too rough
SPARSEST = 16


def _needs_copy(scores: Any) -> bool:
    """Whether these are floats in a tensor that NumPy cannot read without a copy."""
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

    Labels and weights are NumPy arrays; the scores stay on their device and are read in blocks.
    What is needed of all rows (`facts`) is found in one pass.
    """

    scores: Any
    codes: Index
    weight: Array | None = None

    def __post_init__(self) -> None:
        if library_of(self.scores) == "torch":
            object.__setattr__(self, "scores", self.scores.detach())
        check_lengths(scores=len(self.scores), codes=len(self.codes))

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

    def check_finite(self) -> None:
        """Refuse a tensor without rows or with a single column, and rows with NaN or infinity."""
        if self.n_classes < 2 or not len(self):
            raise InputError(
                "scores must have one row at least, and a column for each of two or more classes, "
                f"but their shape is {tuple(self.scores.shape)}."
            )
        low, high, mean, _ = self.facts
        bad = ~(np.isfinite(low) & np.isfinite(high) & np.isfinite(mean))
        refuse_infinite(self.scores, bad)

    @property
    def looks_like_probabilities(self) -> bool:
        return not self._not_distributions.any()

    @property
    def _not_distributions(self) -> Flags:
        """Flags of the rows that are no distributions."""
        low, high, mean, _ = self.facts
        off = np.abs(mean * self.n_classes - 1.0)
        return np.asarray((low < 0.0) | (high > 1.0) | (off > sum_tolerance(self.n_classes)))

    def check_distributions(self) -> None:
        refuse_distributions(self.scores, self._not_distributions)

    @property
    def _slices(self) -> list[slice]:
        on_cpu = library_of(self.scores) == "torch" and self.scores.device.type == "cpu"
        fewest = FEWEST if on_cpu else FEWEST_ON_GPU
        step = max(int(PART * len(self)), fewest // self.n_classes, 1)
        return [slice(start, start + step) for start in range(0, len(self), step)]

    def every(self, step: int) -> ScoreTensor:
        some = slice(None, None, min(step, SPARSEST))
        return self._some_rows(self.scores[some], some)

    def take(self, rows: NDArray[Any]) -> ScoreTensor:
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return self._some_rows(self.scores[ops_of(self.scores).beside(rows, self.scores)], rows)

    def _some_rows(self, scores: Any, rows: Any) -> ScoreTensor:
        """A tensor of some rows, with their facts, which need not be found again."""
        weight = None if self.weight is None else self.weight[rows]
        made = ScoreTensor(scores, self.codes[rows], weight, self.whole)
        made.__dict__["facts"] = RowFacts(*(column[rows] for column in self.facts))
        return made

    def temperature_sums(self) -> FusedSums | None:
        if not can_fuse(self.scores):
            return None
        from calibrant.solvers.softmax import FusedSums  # needs SciPy; saved files need NumPy only

        weight = np.ones(len(self)) if self.weight is None else self.weight
        return FusedSums(self.scores, self.facts, self.codes, weight)

    def leading(self, columns: int) -> Array:
        return np.asarray(on_host(self.scores[:, :columns]), np.float64)
