"""A rule of several classes that looks at the scores alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from calibrant.arrays import Array
from calibrant.errors import InputError
from calibrant.local.rule import RowInputs, Rule
from calibrant.maps import Map, VectorMap


@dataclass(frozen=True, eq=False)
class ClassScores(Rule):
    """A map from a row's scores to its probabilities. Nothing else of the row counts."""

    kind: ClassVar[str] = "class scores"

    map: VectorMap

    @property
    def n_classes(self) -> int:
        return self.map.n_columns

    @property
    def only_map(self) -> Map | None:
        return self.map

    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        return self.map(scores)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"map": self.map.to_dict()}, {}

    @classmethod
    def from_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        found = Map.from_dict(state.get("map"))  # type: ignore[arg-type]
        if not isinstance(found, VectorMap) or arrays:
            raise InputError("the file is damaged: its map must be one of several classes.")
        return cls(found)
