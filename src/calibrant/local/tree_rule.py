"""The fitted rule of `FeatureCalibrator`: a map of the score, then rounds of trees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data import validation as door
from calibrant.data.attribute_table import AttributeTable, read_table
from calibrant.data.json_facts import shown
from calibrant.export.tree_parts import ExportedColumn, TreeParts
from calibrant.local.attributes import Attribute, Schema
from calibrant.local.rule import RowInputs, Rule
from calibrant.local.saved_checks import check_saved
from calibrant.local.trees import SmallTrees, state_of, sum_of_leaves, trees_of
from calibrant.losses import logit, sigmoid
from calibrant.maps import Map
from calibrant.maps.base import check_depth
from calibrant.maps.checks import maps_of_one_score

#: the most rounds, and the largest factor of a round; the smallest is one over it
MOST_ROUNDS, STEEPEST = 100, 10.0
#: rows that are evaluated together
BLOCK = 65_536


def matrix_of(schema: Schema, rows: int, columns: Iterable[tuple[int, Array]]) -> Array:
    """Rows as the trees see them: a column for each attribute, and an empty one for the logit.

    ``columns`` are numbers or category codes by their place; what is not given is missing (NaN).
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
        From the score to a probability. Without rounds this is the whole rule.
    schema : Schema
        The attributes of rows, with only those categories that a tree names.
    trees : SmallTrees
        Those of all rounds. Their columns are the attributes, then the logit z of the round.
    sizes : tuple of int
        How many of the trees each round has.
    factors : array of shape (rounds,)
    """

    kind: ClassVar[str] = "trees"

    start: Map
    schema: Schema
    trees: SmallTrees
    sizes: tuple[int, ...]
    factors: Array

    @classmethod
    def of_map(cls, start: Map) -> Self:
        """The rule that looks at the score alone."""
        return cls(start, Schema((), named=True), SmallTrees.none(), (), np.empty(0))

    @classmethod
    def of_rounds(
        cls, start: Map, schema: Schema, rounds: Sequence[SmallTrees], factors: Sequence[float]
    ) -> Self:
        """The rule of fitted rounds, without the categories that no tree names."""
        trees = SmallTrees.joined(rounds)
        schema, trees = _pruned(schema, trees)
        return cls(start, schema, trees, tuple(map(len, rounds)), np.array(factors, dtype=float))

    @property
    def n_classes(self) -> int:
        return 2

    @property
    def used_places(self) -> list[int]:
        """The places of the attributes that trees look at."""
        return [j for j in self.trees.used if j < len(self.schema)]

    @property
    def used(self) -> tuple[Attribute, ...]:
        """The attributes that trees look at."""
        return tuple(self.schema.attributes[j] for j in self.used_places)

    @property
    def only_map(self) -> Map | None:
        return None if self.sizes else self.start

    def tree_parts(self, facts: Any) -> TreeParts:
        columns = self.used_places
        places = np.full(len(self.schema) + 1, len(columns), dtype=np.int32)
        places[columns] = np.arange(len(columns))
        return TreeParts(
            self.start,
            tuple(
                ExportedColumn(a.name if self.schema.named else j, a.categories)
                for j, a in zip(columns, self.used, strict=True)
            ),
            replace(self.trees, column=places[self.trees.column]),
            self.sizes,
            tuple(self.factors.tolist()),
            facts,
        )

    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        """The probabilities of the two classes, shape (n, 2)."""
        if not self.sizes:
            p = self.start(scores)
        else:
            schema, table = self._arranged(rows.features, len(scores))
            door.check_lengths(scores=len(scores), features=len(table))
            p = np.empty(len(scores))
            for first in range(0, len(scores), BLOCK):
                part = slice(first, first + BLOCK)
                columns = schema.floats(table.take(part))
                if schema is self.schema:
                    columns = [columns[j] for j in self.used_places]
                p[part] = self.probabilities(scores[part], columns)
        return np.column_stack((1.0 - p, p))

    def _arranged(self, features: Any, count: int) -> tuple[Schema, AttributeTable]:
        """The columns of rows in order. Named ones that no tree looks at need not be there."""
        if not self.used:  # all trees split on the score
            return Schema((), named=True), AttributeTable((), [], count)
        names = [a.name for a in self.used] if self.schema.named else None
        table = read_table(features, only=names)
        if names is None or table.names is None or type(table.names[0]) is not type(names[0]):
            return self.schema, self.schema.arrange(table)  # by place: all of them
        known = Schema(self.used, named=True)
        return known, known.arrange(table)

    def probabilities(self, scores: Array, columns: Sequence[Array]) -> Array:
        """The probability of the positive class of each row.

        ``columns`` are those that trees look at: numbers or category codes, NaN where missing.
        """
        used = zip(self.used_places, columns, strict=True)
        matrix = matrix_of(self.schema, len(scores), used)
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

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        check_depth(self.start)
        state = {
            **self.schema.to_state(),
            "start": self.start.to_dict(),
            "sizes": list(self.sizes),
            "factors": self.factors.tolist(),
            "trees": state_of(self.trees),
        }
        return state, {}

    @classmethod
    def from_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        schema = Schema.from_state(state)
        start = maps_of_one_score([Map.from_dict(state.get("start"))], "start")[0]  # type: ignore[arg-type]
        known = [None if a.categories is None else len(a.categories) for a in schema.attributes]
        trees = trees_of(state.get("trees"), [*known, None])
        sizes: Any = state.get("sizes")
        factors: Any = state.get("factors")
        listed = isinstance(sizes, list) and isinstance(factors, list)
        check_saved(listed, "its rounds are missing or of a wrong type.")
        fit = all(type(n) is int and n >= 1 for n in sizes) and sum(sizes) == len(trees)
        fit = fit and len(sizes) == len(factors) and len(sizes) <= MOST_ROUNDS and not arrays
        check_saved(fit, "its rounds and trees do not fit together.")
        check_saved(
            all(type(f) is float and 1 / STEEPEST <= f <= STEEPEST for f in factors),
            f"the factors of rounds must be numbers from {1 / STEEPEST:g} to {STEEPEST:g}, but "
            f"{shown(factors)} came.",
        )
        return cls(start, schema, trees, tuple(sizes), np.array(factors, dtype=float))


def _pruned(schema: Schema, trees: SmallTrees) -> tuple[Schema, SmallTrees]:
    """With only the categories that a tree names: all others go the same way as missing ones."""
    named: dict[int, set[int]] = {}
    for column, subset in zip(trees.column.tolist(), trees.subset.tolist(), strict=True):
        if subset >= 0:
            named.setdefault(column, set()).update(trees.sets[subset])
    attributes, places = [], {}
    for j, attribute in enumerate(schema.attributes):
        if attribute.categories is None:
            attributes.append(attribute)
            continue
        kept = sorted(named.get(j, ()))
        places[j] = {code: place for place, code in enumerate(kept)}
        found = tuple(attribute.categories[code] for code in kept)
        attributes.append(replace(attribute, categories=found))
    sets = list(trees.sets)
    for column, subset in zip(trees.column.tolist(), trees.subset.tolist(), strict=True):
        if subset >= 0:
            sets[subset] = tuple(places[column][code] for code in trees.sets[subset])
    return Schema(tuple(attributes), schema.named), replace(trees, sets=tuple(sets))
