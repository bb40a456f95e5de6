"""Several binary maps, combined into one distribution over classes."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.errors import InputError
from calibrant.rules.base import Map, VectorMap, map_tuple, numbers, word
from calibrant.rules.combiners import (
    COMBINERS,
    DENSE,
    check_linked,
    combine_rows,
    counted,
    is_all_pairs,
    singled_out,
    some,
)
from calibrant.rules.plan.map_input import Combined, Row, RowAxis

#: how class probabilities are found where each column singles out a class, and where not
RULES = {
    "normalize": ("normalized", "normalized"),
    "least_squares": ("projected", "least_squares"),
    "coupling": ("balanced", "coupled"),
    "pairwise": ("projected", "least_squares"),
}
#: numbers that a combiner's table of products of columns may hold (half a gigabyte)
MOST_PRODUCTS = 1 << 26


@dataclass(frozen=True, eq=False)
class Coded(VectorMap):
    """One map per column of a code matrix, combined into class probabilities.

    Parameters
    ----------
    code : array of shape (k, columns)
        Entries −1, 0, 1: which classes are the negatives and the positives of each column.
    maps : tuple of maps, one per column
    combine : {"normalize", "least_squares", "coupling", "pairwise"}
        ``"normalize"``: p ∝ r, for one-against-all codes; a row whose r are all zero gets the
        uniform distribution. ``"pairwise"`` is for all pairs, the other two for any code. They are
        the functions of these names in ``calibrant.multiclass``.
    weights : array of shape (columns,), optional
        How much each column counts in least squares and coupling; all the same by default.

    Notes
    -----
    Format version 1 had no weights.

    Examples
    --------
    >>> from calibrant.maps import Identity
    >>> Coded.one_vs_rest((Identity(), Identity()))([[0.2, 0.2], [0.0, 0.0]]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    >>> pairs = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    >>> Coded(pairs, (Identity(),) * 3, "coupling")([[0.75, 0.6, 1 / 3]]).round(3).tolist()
    [[0.5, 0.167, 0.333]]
    """

    kind: ClassVar[str] = "coded"
    version: ClassVar[int] = 2

    code: Array = field(metadata=numbers("code", 2))
    maps: tuple[Map, ...] = field(metadata=map_tuple("the maps of a coded map"))
    combine: str = field(default="normalize", metadata=word("combine", *COMBINERS))
    weights: Array | None = field(default=None, metadata=numbers("weights"))

    def _check(self) -> None:
        k, columns = self.code.shape
        if not np.isin(self.code, (-1.0, 0.0, 1.0)).all():
            raise InputError("a code matrix must hold −1, 0 and 1 only.")
        if columns != len(self.maps) or k < 2 or columns < 1:
            raise InputError(
                f"a code of {k} classes and {columns} columns cannot go with {len(self.maps)} maps."
            )
        n = np.ones(columns) if self.weights is None else self.weights
        if len(n) != columns or (n < 0).any() or not n.any():
            raise InputError(
                f"weights must be {columns} numbers of at least 0, one per column and not all 0, "
                f"but {n.tolist()[:8]} came."
            )
        if self.combine == "normalize" and singled_out(self.code) is None:
            raise InputError(
                "normalize needs a one-against-all code: 1 once in every row and column, else −1."
            )
        if not ((self.code > 0).any(axis=0) & (self.code < 0).any(axis=0)).all():
            raise InputError("every column of a code matrix must hold both 1 and −1.")
        if self.combine == "pairwise" and not is_all_pairs(self.code):
            raise InputError("pairwise needs a code of all pairs of classes.")
        if self.combine != "normalize":
            _check_solvable(self.code, self.weights)

    @classmethod
    def one_vs_rest(cls, maps: tuple[Map, ...]) -> Coded:
        """Each class against all others, normalised."""
        return cls(2.0 * np.eye(len(maps)) - 1.0, maps)

    @property
    def n_columns(self) -> int:
        return len(self.maps)

    @property
    def n_classes(self) -> int:
        return len(self.code)

    def lowered_rows(self, axis: RowAxis) -> Row:
        """Leaves out columns without weight, and classes that only they know, as `combine_rows`
        does. Where each column singles out a class, columns come in the order of the classes."""
        code, n = self.code, np.ones(self.n_columns)
        if self.weights is not None and self.combine != "normalize":
            n = self.weights / self.weights.max()
        used = np.flatnonzero(counted(n))
        known = (code[:, used] != 0).any(axis=1)
        code = code[known][:, used]
        order = singled_out(code)
        rule = RULES[self.combine][order is None]
        if rule != "normalized" and not axis.target.iterates:
            raise InputError(
                f"a calibrator of several classes that combines by {self.combine!r} cannot be "
                f"written as {axis.target.name}: each row's distribution is found by iteration, "
                f"which {axis.target.name} has no words for. Fit it with "
                'code="one_vs_rest" and combine="normalize", or apply it in memory: predict_proba.'
            )
        if order is not None:
            code, used = code[:, order], used[order]
        r = axis.each(
            [(j, self.maps[j].lowered) for j in used.tolist()],
            among=singled_out(self.code) is not None,
        )
        solve = functools.partial(COMBINERS[self.combine], code=code, weights=n[used])
        return Combined(r, rule, code, n[used], known, solve)

    def shifted(self, factor: Array) -> Map:
        """p ∝ r, so each column is scaled by the factor of its class, divided by the largest
        factor."""
        order = singled_out(self.code)
        if self.combine != "normalize" or order is None:
            raise InputError(
                f"a coded map that combines by {self.combine!r} cannot be moved to other rates: "
                "its columns are weighed against each other before there are classes. Adjust what "
                "it gives instead: adjust_prior(calibrator.predict_proba(scores), ...); or fit "
                'with code="one_vs_rest" and combine="normalize".'
            )
        share = np.empty(len(order))
        share[order] = factor / factor.max()
        pairs = zip(self.maps, share.tolist(), strict=True)
        return replace(self, maps=tuple(member.scaled(own) for member, own in pairs))

    def __call__(self, scores: ArrayLike) -> Array:
        r = each_column(self.maps, self.rows_of(scores))
        return combine_rows(self.combine, r, self.code, self.weights)


def _check_solvable(code: Array, weights: Array | None) -> None:
    """Refuse codes whose columns do not link all classes, or that need too much memory."""
    used = code != 0
    unknown = np.flatnonzero(~used.any(axis=1))
    if len(unknown):
        raise InputError(
            "every class of a code matrix must be in some column, but in none are classes "
            f"{some(unknown)}."
        )
    check_linked(code if weights is None else code[:, counted(weights)])
    k, columns = code.shape
    sizes = used.sum(axis=0, dtype=np.float64)
    products, table = float((sizes * (sizes + 1.0)).sum()) / 2.0, k * (k + 1.0) / 2.0 * columns
    kept = table if products > DENSE * table else products
    if singled_out(code) is None and kept > MOST_PRODUCTS:
        raise InputError(
            f"a code of {k} classes and {columns} columns is too large to be combined this way. "
            "Use a one-against-all code, all pairs, or columns of fewer classes."
        )


# --- One map per column, each a probability of its own: several labels at once --------------------


@dataclass(frozen=True, eq=False)
class Columns(VectorMap):
    """Map j of column j. Nothing is combined, so rows need not sum to one.

    Parameters
    ----------
    maps : tuple of maps, one per column

    Examples
    --------
    >>> from calibrant.maps import Identity
    >>> Columns((Identity(), Identity()))([[0.9, 0.8]]).tolist()
    [[0.9, 0.8]]
    """

    kind: ClassVar[str] = "columns"
    distribution: ClassVar[bool] = False

    maps: tuple[Map, ...] = field(metadata=map_tuple("columns"))

    def _check(self) -> None:
        if not self.maps:
            raise InputError("columns must be one or more maps of one score, but none came.")

    @property
    def n_columns(self) -> int:
        return len(self.maps)

    def lowered_rows(self, axis: RowAxis) -> Row:
        return axis.each([(j, member.lowered) for j, member in enumerate(self.maps)])

    def shifted(self, factor: Array) -> Map:
        pairs = zip(self.maps, factor, strict=True)
        return Columns(tuple(member.shifted(own) for member, own in pairs))

    def __call__(self, scores: ArrayLike) -> Array:
        return each_column(self.maps, self.rows_of(scores))


def each_column(members: tuple[Map, ...], rows: NDArray[Any]) -> Array:
    """The value of map j at column j, for each row."""
    values = np.asarray(rows, dtype=np.float64)
    return np.column_stack([member(values[:, j]) for j, member in enumerate(members)])
