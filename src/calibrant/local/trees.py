"""Small decision trees as arrays: how they are evaluated, joined, and read from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data.frozen import Frozen
from calibrant.local.saved_checks import check_saved

Index = NDArray[np.int32]

#: from this many rows on, a compiled kernel evaluates the trees
MANY_ROWS = 5000
#: the limits of what a file may hold
LARGEST_LEAF, MOST_SPLITS, MOST_LEAVES = 100.0, 1_000_000, 256
#: the fields of a file, and the kind of their numbers
WHOLE = ("column", "left", "right", "subset", "roots")
REAL = ("threshold", "leaves")


#: the arrays of a layout that have one number for each split
_EACH = ("left", "right", "column", "threshold", "missing_left", "subset")


class TreeLayout(NamedTuple):
    """The splits of each tree one after the other, as `calibrant.kernels.trees` takes them.

    A tree that is a single leaf has a split with this leaf on both sides.
    """

    starts: Index
    left: Index
    right: Index
    column: Index
    threshold: Array
    missing_left: Flags
    subset: Index
    members: Flags
    leaves: Array

    def part(self, first: int, last: int) -> TreeLayout:
        """Some of the trees."""
        begin, end = self.starts[first], self.starts[last]
        each: dict[str, Any] = {name: getattr(self, name)[begin:end] for name in _EACH}
        return self._replace(starts=self.starts[first : last + 1] - begin, **each)


@dataclass(frozen=True, eq=False, repr=False)
class SmallTrees(Frozen):
    """Decision trees, each of which gives a row the value of one of its leaves.

    Parameters
    ----------
    column : int32 array of shape (splits,)
        Which column a split looks at.
    threshold : array of shape (splits,)
        Numbers up to this go left.
    missing_left : bool array of shape (splits,)
        Whether missing numbers go left.
    subset : int32 array of shape (splits,)
        −1 for a split of numbers; else which of ``sets`` goes left. All other categories go right,
        and so do missing ones.
    left, right : int32 arrays of shape (splits,)
        A later split, or −1 − i for the leaf i.
    leaves : array of shape (leaves,)
    roots : int32 array of shape (trees,)
        The first split of each tree, or −1 − i for a tree that is the leaf i alone.
    sets : tuple of tuples of category codes
    """

    column: Index
    threshold: Array
    missing_left: Flags
    subset: Index
    left: Index
    right: Index
    leaves: Array
    roots: Index
    sets: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.roots)

    @classmethod
    def none(cls) -> Self:
        """No tree at all."""
        whole, real = np.empty(0, dtype=np.int32), np.empty(0)
        return cls(whole, real, np.empty(0, dtype=bool), whole, whole, whole, real, whole, ())

    @classmethod
    def joined(cls, parts: Sequence[SmallTrees]) -> Self:
        """The trees of all parts, one after the other."""
        if not parts:
            return cls.none()
        found: dict[str, list[Any]] = {name: [] for name in (*WHOLE, *REAL, "missing_left")}
        splits = leaves = sets = 0
        for one in parts:
            for name in ("left", "right", "roots"):
                node = getattr(one, name)
                found[name].append(np.where(node >= 0, node + splits, node - leaves))
            found["subset"].append(np.where(one.subset >= 0, one.subset + sets, -1))
            for name in ("column", "threshold", "missing_left", "leaves"):
                found[name].append(getattr(one, name))
            splits += len(one.column)
            leaves += len(one.leaves)
            sets += len(one.sets)
        arrays = {name: np.concatenate(columns) for name, columns in found.items()}
        arrays |= {name: arrays[name].astype(np.int32) for name in WHOLE}
        return cls(sets=tuple(codes for one in parts for codes in one.sets), **arrays)

    @cached_property
    def tree_of(self) -> NDArray[np.intp]:
        """The tree of each split. Splits come after the split that leads to them."""
        found = np.zeros(len(self.column), dtype=np.intp)
        grown = self.roots >= 0
        found[self.roots[grown]] = np.flatnonzero(grown)
        for node, sides in enumerate(zip(self.left.tolist(), self.right.tolist(), strict=True)):
            found[[side for side in sides if side >= 0]] = found[node]
        return found

    @cached_property
    def layout(self) -> TreeLayout:
        """The splits in order, made when first needed."""
        order: list[int] = []
        left: list[int] = []
        right: list[int] = []
        starts = [0]
        lasts = np.cumsum(np.bincount(self.tree_of, minlength=len(self)))
        parts = np.split(np.argsort(self.tree_of, kind="stable"), lasts[:-1])
        for root, part in zip(self.roots.tolist(), parts, strict=False):
            own = part.tolist()
            place = {node: i for i, node in enumerate(own)}
            order += own or [-1]
            for sides, found in ((self.left, left), (self.right, right)):
                ends = [int(sides[node]) for node in own] or [root]
                found += [place[end] if end >= 0 else end for end in ends]
            starts.append(len(order))
        at = np.array(order, dtype=np.intp)

        def of_splits(values: NDArray[Any], alone: int, dtype: Any) -> NDArray[Any]:
            """Values of the splits in order; ``alone`` for a leaf alone, where none matters."""
            known = np.where(at >= 0, values[at], alone) if len(values) else np.full(len(at), alone)
            return known.astype(dtype)

        widest = 1 + max((max(codes, default=0) for codes in self.sets), default=0)
        members = np.zeros((max(len(self.sets), 1), widest + 1), dtype=bool)
        for row, codes in enumerate(self.sets):
            members[row, list(codes)] = True
        return TreeLayout(
            np.array(starts, dtype=np.int32),
            np.array(left, dtype=np.int32),
            np.array(right, dtype=np.int32),
            of_splits(self.column, 0, np.int32),
            of_splits(self.threshold, 0, np.float64),
            of_splits(self.missing_left, 0, np.bool_),
            of_splits(self.subset, -1, np.int32),
            members,
            self.leaves,
        )

    @property
    def used(self) -> list[int]:
        """The columns that splits look at."""
        return [int(j) for j in np.unique(self.column)]


def sum_of_leaves(layout: TreeLayout, matrix: Array) -> Array:
    """The sum of the leaves that each row gets. A row has numbers and category codes, or NaN.

    Many rows go through a compiled kernel, fastest where a column lies in one piece. Both ways add
    the leaves tree after tree, so the result is the same to the bit.
    """
    if len(matrix) < MANY_ROWS:
        return _by_numpy(layout, matrix)
    from calibrant.kernels.trees import BLOCK, add_leaves

    largest = int(np.diff(layout.starts).max(initial=0))
    total = np.zeros(len(matrix))
    add_leaves(np.ascontiguousarray(matrix.T), *layout, np.empty((largest + 2, BLOCK)), total)
    return total


def _by_numpy(layout: TreeLayout, matrix: Array) -> Array:
    total = np.zeros(len(matrix))
    for begin, end in zip(layout.starts[:-1].tolist(), layout.starts[1:].tolist(), strict=True):
        values: dict[int, Array | float] = {}
        for k in range(end - 1, begin - 1, -1):
            sides = [
                values[side] if side >= 0 else float(layout.leaves[-1 - side])
                for side in (int(layout.left[k]), int(layout.right[k]))
            ]
            values[k - begin] = np.where(_left(layout, k, matrix[:, layout.column[k]]), *sides)
        total += values[0]
    return total


def _left(layout: TreeLayout, k: int, x: Array) -> Flags:
    """Which rows go left at a split."""
    gone = np.isnan(x)
    if layout.subset[k] >= 0:
        last = layout.members.shape[1] - 1  # a code beyond all sets: in none
        codes = np.where(gone, last, np.minimum(x, last)).astype(np.intp)
        inside: Flags = layout.members[layout.subset[k]][codes] & ~gone
        return inside
    return np.asarray((x <= layout.threshold[k]) | (gone & bool(layout.missing_left[k])))


# --- files --------------------------------------------------------------------------------------


def state_of(trees: SmallTrees) -> dict[str, Any]:
    """What JSON can hold."""
    arrays = {name: getattr(trees, name).tolist() for name in (*WHOLE, *REAL)}
    return {
        **arrays,
        "missing_left": trees.missing_left.astype(int).tolist(),
        "sets": [list(codes) for codes in trees.sets],
    }


def trees_of(state: Any, categories: Sequence[int | None]) -> SmallTrees:
    """Read what `state_of` wrote, given how many categories each column has (None: numbers).

    Anything that cannot be evaluated is refused.
    """
    fields = {*WHOLE, *REAL, "missing_left", "sets"}
    complete = isinstance(state, Mapping) and set(state) == fields
    check_saved(complete, "its trees are missing or of a wrong type.")
    arrays: dict[str, Any] = {name: _numbers(state[name], name, whole=True) for name in WHOLE}
    arrays |= {name: _numbers(state[name], name, whole=False) for name in REAL}
    sides = _numbers(state["missing_left"], "missing_left", whole=True)
    check_saved(np.isin(sides, (0, 1)).all(), "missing_left of its trees must hold 0 and 1.")
    arrays["missing_left"] = sides == 1
    sets = state["sets"]
    listed = isinstance(sets, list) and all(isinstance(codes, list) for codes in sets)
    check_saved(listed, "its sets of categories are of a wrong type.")
    known = tuple(tuple(_numbers(codes, "sets", whole=True).tolist()) for codes in sets)
    trees = SmallTrees(sets=known, **arrays)
    _check(trees, categories)
    return trees


def _numbers(values: Any, name: str, *, whole: bool) -> NDArray[Any]:
    """A list of a file as an array: of whole numbers of 32 bits, or of floats."""
    kind, words, dtype = (int, "whole numbers", np.int32) if whole else (float, "numbers", float)
    fine = isinstance(values, list) and len(values) <= 3 * MOST_SPLITS
    fine = fine and all(type(v) is kind and not (whole and abs(v) >= 2**31) for v in values)
    check_saved(fine, f"{name} of its trees must hold {words}.")
    return np.array(values, dtype=dtype)


def _check(trees: SmallTrees, categories: Sequence[int | None]) -> None:
    splits, leaves = len(trees.column), len(trees.leaves)
    sizes = {len(getattr(trees, n)) for n in ("threshold", "missing_left", "subset")}
    fit = (sizes | {len(trees.left), len(trees.right)}) == {splits} and splits <= MOST_SPLITS
    check_saved(fit, "the sizes of its trees do not fit together.")
    ends = np.concatenate((trees.left, trees.right, trees.roots))
    after = np.concatenate((np.arange(splits), np.arange(splits), np.full(len(trees), -1)))
    later = (ends < 0) | (ends > after)  # so that every path ends
    inside = (ends >= -leaves) & (ends < splits) & later
    check_saved(inside.all(), "its trees lead nowhere.")
    once = np.bincount(ends[ends >= 0], minlength=splits) == 1
    check_saved(once.all(), "a split of its trees must follow one other.")
    small = np.bincount(trees.tree_of) < MOST_LEAVES
    check_saved(small.all(), f"its trees must have at most {MOST_LEAVES} leaves each.")
    numbers = np.isfinite(trees.threshold).all() and (abs(trees.leaves) <= LARGEST_LEAF).all()
    check_saved(numbers, "its trees hold numbers out of range.")
    columns = (trees.column >= 0) & (trees.column < len(categories))
    check_saved(columns.all(), "its trees look at columns that there are not.")
    known = (trees.subset >= -1) & (trees.subset < len(trees.sets))
    check_saved(known.all(), "its trees name sets that there are not.")
    for j, subset in zip(trees.column.tolist(), trees.subset.tolist(), strict=True):
        most = categories[j]
        codes = () if subset < 0 else trees.sets[subset]
        alike = (most is None) == (subset < 0) and all(0 <= code < (most or 0) for code in codes)
        check_saved(alike, "its trees split numbers and categories alike.")
    named = np.unique(trees.subset[trees.subset >= 0])
    check_saved(len(named) == len(trees.sets), "no tree names some of its sets of categories.")
