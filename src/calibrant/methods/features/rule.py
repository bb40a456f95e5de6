"""FeatureCalibrator's rule: small trees as arrays, evaluated, joined, read from a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data import door
from calibrant.data.attributes import Attribute, AttributeTable, Schema, read_attributes
from calibrant.data.documents import brief, check_file
from calibrant.data.frozen import Frozen
from calibrant.fitting.fitted import TreeParts
from calibrant.losses import logit, sigmoid
from calibrant.rules.base import Map, RowInputs, Rule, check_depth, maps_of_one_score

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
    """The splits of each tree one after the other, as the kernel takes them.

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
    def joined(cls, parts: Sequence[SmallTrees]) -> Self:
        """The trees of all parts, one after the other."""
        collected: dict[str, list[Any]] = {name: [] for name in (*WHOLE, *REAL, "missing_left")}
        splits = leaves = sets = 0
        for one in parts:
            for name in ("left", "right", "roots"):
                node = getattr(one, name)
                collected[name].append(np.where(node >= 0, node + splits, node - leaves))
            collected["subset"].append(np.where(one.subset >= 0, one.subset + sets, -1))
            for name in ("column", "threshold", "missing_left", "leaves"):
                collected[name].append(getattr(one, name))
            splits += len(one.column)
            leaves += len(one.leaves)
            sets += len(one.sets)
        arrays = {name: np.concatenate(columns) for name, columns in collected.items()}
        arrays |= {name: arrays[name].astype(np.int32) for name in WHOLE}
        return cls(sets=tuple(codes for one in parts for codes in one.sets), **arrays)

    @cached_property
    def tree_of(self) -> NDArray[np.intp]:
        """The tree of each split. Splits come after the split that leads to them."""
        tree = np.zeros(len(self.column), dtype=np.intp)
        grown = self.roots >= 0
        tree[self.roots[grown]] = np.flatnonzero(grown)
        for node, sides in enumerate(zip(self.left.tolist(), self.right.tolist(), strict=True)):
            tree[[side for side in sides if side >= 0]] = tree[node]
        return tree

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
            for sides, ends_of_side in ((self.left, left), (self.right, right)):
                ends = [int(sides[node]) for node in own] or [root]
                ends_of_side += [place[end] if end >= 0 else end for end in ends]
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

    def to_state(self) -> dict[str, Any]:
        """The trees as plain lists that JSON can hold."""
        arrays = {name: getattr(self, name).tolist() for name in (*WHOLE, *REAL)}
        return {
            **arrays,
            "missing_left": self.missing_left.astype(int).tolist(),
            "sets": [list(codes) for codes in self.sets],
        }

    @classmethod
    def from_state(cls, state: Any, categories: Sequence[int | None]) -> Self:
        """Read what `to_state` wrote, given how many categories each column has (None: numbers).

        Anything that cannot be evaluated is refused.
        """
        fields = {*WHOLE, *REAL, "missing_left", "sets"}
        complete = isinstance(state, Mapping) and set(state) == fields
        check_file(complete, "its trees are missing or of a wrong type.")
        arrays: dict[str, Any] = {
            name: _read_numbers(state[name], name, whole=True) for name in WHOLE
        }
        arrays |= {name: _read_numbers(state[name], name, whole=False) for name in REAL}
        sides = _read_numbers(state["missing_left"], "missing_left", whole=True)
        check_file(np.isin(sides, (0, 1)).all(), "missing_left of its trees must hold 0 and 1.")
        arrays["missing_left"] = sides == 1
        sets = state["sets"]
        listed = isinstance(sets, list) and all(isinstance(codes, list) for codes in sets)
        check_file(listed, "its sets of categories are of a wrong type.")
        known = tuple(tuple(_read_numbers(codes, "sets", whole=True).tolist()) for codes in sets)
        trees = cls(sets=known, **arrays)
        _check_trees(trees, categories)
        return trees


def sum_of_leaves(layout: TreeLayout, matrix: Array) -> Array:
    """The sum of the leaves that each row reaches. A row holds numbers and category codes, or NaN.

    Many rows go through a compiled kernel, which is fastest if a column lies in one piece. Both
    ways add the leaves tree after tree, so the result is the same to the bit.
    """
    total = np.zeros(len(matrix))
    if len(matrix) >= MANY_ROWS:
        from calibrant.methods.features._kernel import BLOCK, add_leaves

        largest = int(np.diff(layout.starts).max(initial=0))
        add_leaves(np.ascontiguousarray(matrix.T), *layout, np.empty((largest + 2, BLOCK)), total)
        return total
    for begin, end in zip(layout.starts[:-1].tolist(), layout.starts[1:].tolist(), strict=True):
        values: dict[int, Array | float] = {}
        for k in range(end - 1, begin - 1, -1):
            sides = [
                values[side] if side >= 0 else float(layout.leaves[-1 - side])
                for side in (int(layout.left[k]), int(layout.right[k]))
            ]
            values[k - begin] = np.where(_goes_left(layout, k, matrix[:, layout.column[k]]), *sides)
        total += values[0]
    return total


def _goes_left(layout: TreeLayout, k: int, x: Array) -> Flags:
    """Flags of the rows that go left at a split."""
    gone = np.isnan(x)
    if layout.subset[k] >= 0:
        last = layout.members.shape[1] - 1  # a code beyond all sets: in none
        codes = np.where(gone, last, np.minimum(x, last)).astype(np.intp)
        inside: Flags = layout.members[layout.subset[k]][codes] & ~gone
        return inside
    return np.asarray((x <= layout.threshold[k]) | (gone & bool(layout.missing_left[k])))


# --- Files ----------------------------------------------------------------------------------------


def _read_numbers(values: Any, name: str, *, whole: bool) -> NDArray[Any]:
    """A list of a file as an array: of whole numbers of 32 bits, or of floats."""
    kind, words, dtype = (int, "whole numbers", np.int32) if whole else (float, "numbers", float)
    fine = isinstance(values, list) and len(values) <= 3 * MOST_SPLITS
    fine = fine and all(type(v) is kind and not (whole and abs(v) >= 2**31) for v in values)
    check_file(fine, f"{name} of its trees must hold {words}.")
    return np.array(values, dtype=dtype)


def _check_trees(trees: SmallTrees, categories: Sequence[int | None]) -> None:
    splits, leaves = len(trees.column), len(trees.leaves)
    sizes = {len(getattr(trees, n)) for n in ("threshold", "missing_left", "subset")}
    fit = (sizes | {len(trees.left), len(trees.right)}) == {splits} and splits <= MOST_SPLITS
    check_file(fit, "the sizes of its trees do not fit together.")
    ends = np.concatenate((trees.left, trees.right, trees.roots))
    after = np.concatenate((np.arange(splits), np.arange(splits), np.full(len(trees), -1)))
    later = (ends < 0) | (ends > after)  # so that every path ends
    inside = (ends >= -leaves) & (ends < splits) & later
    check_file(inside.all(), "its trees lead nowhere.")
    once = np.bincount(ends[ends >= 0], minlength=splits) == 1
    check_file(once.all(), "a split of its trees must follow one other.")
    small = np.bincount(trees.tree_of) < MOST_LEAVES
    check_file(small.all(), f"its trees must have at most {MOST_LEAVES} leaves each.")
    numbers = np.isfinite(trees.threshold).all() and (abs(trees.leaves) <= LARGEST_LEAF).all()
    check_file(numbers, "its trees hold numbers out of range.")
    columns = (trees.column >= 0) & (trees.column < len(categories))
    check_file(columns.all(), "its trees look at columns that there are not.")
    known = (trees.subset >= -1) & (trees.subset < len(trees.sets))
    check_file(known.all(), "its trees name sets that there are not.")
    for j, subset in zip(trees.column.tolist(), trees.subset.tolist(), strict=True):
        most = categories[j]
        codes = () if subset < 0 else trees.sets[subset]
        alike = (most is None) == (subset < 0) and all(0 <= code < (most or 0) for code in codes)
        check_file(alike, "its trees split numbers and categories alike.")
    named = np.unique(trees.subset[trees.subset >= 0])
    check_file(len(named) == len(trees.sets), "no tree names some of its sets of categories.")


# --- The fitted rule of `FeatureCalibrator`: a map of the score, then rounds of trees -------------


#: the most rounds, and the largest factor of a round; the smallest is one over it
MOST_ROUNDS, STEEPEST = 100, 10.0
#: rows that are evaluated together
BLOCK = 65_536


def matrix_for_trees(schema: Schema, rows: int, columns: Iterable[tuple[int, Array]]) -> Array:
    """Rows as the trees take them: a column for each attribute, and an empty column for the logit.

    ``columns`` are numbers or category codes by position. Columns that are not given are missing
    (NaN).
    """
    matrix = np.full((rows, len(schema) + 1), np.nan, order="F")
    for place, column in columns:
        matrix[:, place] = column
    return matrix


@dataclass(frozen=True, eq=False, repr=False)
class TreeRounds(Rule):
    """σ(z) with z ← factor · (z + Σ trees), round after round, from the logit of ``start``.

    Parameters
    ----------
    start : Map
        From the score to a probability.
    schema : Schema
        The attributes of rows, with only those categories that a tree names.
    trees : SmallTrees
        Those of all rounds. Their columns are the attributes, then the logit z of the round.
    sizes : tuple of int
        How many of the trees each round has.
    factors : array of shape (rounds,)
    """

    kind: ClassVar[str] = "trees"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})

    start: Map
    schema: Schema
    trees: SmallTrees
    sizes: tuple[int, ...]
    factors: Array

    @classmethod
    def of_rounds(
        cls, start: Map, schema: Schema, rounds: Sequence[SmallTrees], factors: Sequence[float]
    ) -> Self | Map:
        """The rule of fitted rounds; ``start`` if there are none. Categories that no tree names are
        dropped."""
        if not rounds:
            return start
        trees = SmallTrees.joined(rounds)
        schema, trees = _used_categories(schema, trees)
        return cls(start, schema, trees, tuple(map(len, rounds)), np.array(factors, dtype=float))

    @property
    def used_places(self) -> list[int]:
        """The positions of the attributes in the splits of the trees."""
        return [j for j in self.trees.used if j < len(self.schema)]

    @property
    def used(self) -> tuple[Attribute, ...]:
        """The attributes in the splits of the trees."""
        return tuple(self.schema.attributes[j] for j in self.used_places)

    def tree_parts(self, facts: Any) -> TreeParts:
        columns = self.used_places
        position = np.full(len(self.schema) + 1, len(columns), dtype=np.int32)
        position[columns] = np.arange(len(columns))
        return TreeParts(
            self.start,
            tuple(
                a if self.schema.named else replace(a, name=j)
                for j, a in zip(columns, self.used, strict=True)
            ),
            replace(self.trees, column=position[self.trees.column]),
            self.sizes,
            tuple(self.factors.tolist()),
            facts,
        )

    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        """The probability of the positive class of each row, shape (n,)."""
        schema, table = self._arranged(rows.features, len(scores))
        door.check_lengths(scores=len(scores), features=len(table))
        p = np.empty(len(scores))
        for first in range(0, len(scores), BLOCK):
            part = slice(first, first + BLOCK)
            columns = schema.floats(table.take(part))
            if schema is self.schema:
                columns = [columns[j] for j in self.used_places]
            p[part] = self.probabilities(scores[part], columns)
        return p

    def _arranged(self, features: Any, count: int) -> tuple[Schema, AttributeTable]:
        """The columns of rows in the order of a schema, and that schema. Named columns that no tree
        uses may be missing."""
        if not self.used:  # all trees split on the score
            return Schema((), named=True), AttributeTable((), [], count)
        names = [a.name for a in self.used] if self.schema.named else None
        table = read_attributes(features, only=names)
        if names is None or table.names is None or type(table.names[0]) is not type(names[0]):
            return self.schema, self.schema.arrange(table)  # by place: all of them
        known = Schema(self.used, named=True)
        return known, known.arrange(table)

    def probabilities(self, scores: Array, columns: Sequence[Array]) -> Array:
        """The probability of the positive class of each row.

        ``columns`` are those that trees look at: numbers or category codes, NaN where missing.
        """
        used = zip(self.used_places, columns, strict=True)
        matrix = matrix_for_trees(self.schema, len(scores), used)
        matrix[:, -1] = logit(self.start(scores))  # the logit after each round takes its place
        last = 0
        for size, factor in zip(self.sizes, self.factors.tolist(), strict=True):
            first, last = last, last + size
            total = sum_of_leaves(self.trees.layout.part(first, last), matrix)
            matrix[:, -1] = factor * (matrix[:, -1] + total)
        return np.asarray(sigmoid(matrix[:, -1]))

    def __repr__(self) -> str:
        names = ", ".join(a.title for a in self.used[:8]) or "no column"
        return f"TreeRounds({len(self.sizes)} rounds of {len(self.trees)} trees on {names})"

    # --- saving ---------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        check_depth(self.start)
        return {
            **self.schema.to_state(),
            "start": self.start.to_dict(),
            "sizes": list(self.sizes),
            "factors": self.factors.tolist(),
            "trees": self.trees.to_state(),
        }

    @classmethod
    def _of_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self | Map:
        """The rule of a file. Older files hold a map of the score as trees without rounds; they
        give that map."""
        schema = Schema.from_state(state)
        start = maps_of_one_score([Map.from_dict(state.get("start"))], "start")[0]  # type: ignore[arg-type]
        known = [None if a.categories is None else len(a.categories) for a in schema.attributes]
        trees = SmallTrees.from_state(state.get("trees"), [*known, None])
        sizes: Any = state.get("sizes")
        factors: Any = state.get("factors")
        listed = isinstance(sizes, list) and isinstance(factors, list)
        check_file(listed, "its rounds are missing or of a wrong type.")
        fit = all(type(n) is int and n >= 1 for n in sizes) and sum(sizes) == len(trees)
        fit = fit and len(sizes) == len(factors) and len(sizes) <= MOST_ROUNDS and not arrays
        check_file(fit, "its rounds and trees do not fit together.")
        check_file(
            all(type(f) is float and 1 / STEEPEST <= f <= STEEPEST for f in factors),
            f"the factors of rounds must be numbers from {1 / STEEPEST:g} to {STEEPEST:g}, but "
            f"{brief(factors)} came.",
        )
        if not sizes:
            return start
        return cls(start, schema, trees, tuple(sizes), np.array(factors, dtype=float))


def _used_categories(schema: Schema, trees: SmallTrees) -> tuple[Schema, SmallTrees]:
    """The schema and the trees with only the categories that trees name. All others count as
    missing."""
    named: dict[int, set[int]] = {}
    for column, subset in zip(trees.column.tolist(), trees.subset.tolist(), strict=True):
        if subset >= 0:
            named.setdefault(column, set()).update(trees.sets[subset])
    attributes, positions = [], {}
    for j, attribute in enumerate(schema.attributes):
        if attribute.categories is None:
            attributes.append(attribute)
            continue
        kept = sorted(named.get(j, ()))
        positions[j] = {code: place for place, code in enumerate(kept)}
        categories = tuple(attribute.categories[code] for code in kept)
        attributes.append(replace(attribute, categories=categories))
    sets = list(trees.sets)
    for column, subset in zip(trees.column.tolist(), trees.subset.tolist(), strict=True):
        if subset >= 0:
            sets[subset] = tuple(positions[column][code] for code in trees.sets[subset])
    return Schema(tuple(attributes), schema.named), replace(trees, sets=tuple(sets))
