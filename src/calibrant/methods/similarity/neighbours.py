"""The fitted rule of similarity binning: calibration rows, and how to find the nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Flags
from calibrant.data import door
from calibrant.data.attributes import MISSING, CodedRows, Schema
from calibrant.data.documents import check_saved, shown
from calibrant.methods.similarity.distance import Space
from calibrant.methods.similarity.nearest import FoundRows, Search, reach
from calibrant.rules.base import RowInputs, Rule

#: the power of a metric's differences
METRICS: dict[str, int] = {"ibk": 2, "manhattan": 1}
#: a neighbour counts by 1/(distance + this), as in IBk; None: all neighbours count alike
NEIGHBOUR_WEIGHTS: dict[str, float | None] = {"uniform": None, "distance": 0.001}
#: what each class starts with, as a multiple of 1/n
SMOOTHING: dict[str, float] = {"none": 0.0, "ibk": 1.0}
#: the options of a rule that are words
WORDS: dict[str, Mapping[str, Any]] = {
    "metric": METRICS,
    "weights": NEIGHBOUR_WEIGHTS,
    "smoothing": SMOOTHING,
}
#: the largest sum of attribute weights, whose mean is 1
HEAVIEST = 1e9
#: the arrays of a saved rule, and the kind of their numbers
ARRAYS = {
    "numeric": np.float64,
    "absent": np.bool_,
    "codes": np.int32,
    "counts": np.float64,
    "numeric_weight": np.float64,
    "nominal_weight": np.float64,
}


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours(Rule):
    """The class frequencies among the k calibration rows nearest to a row.

    Parameters
    ----------
    schema : Schema
        The attributes of rows.
    numeric : array of shape (m, a)
        Distinct calibration rows: numeric attributes (0 where absent), then score columns.
    absent : bool array of shape (m, a)
    codes : int32 array of shape (m, b)
        The places of nominal attributes among their categories; −1 is missing.
    counts : array of shape (m, classes)
        The weight of each class at each distinct row.
    numeric_weight, nominal_weight : arrays of shape (a,) and (b,)
        Attribute weights; the one score column of two classes counts twice.
    k : int
    metric, weights, smoothing : keys of METRICS, NEIGHBOUR_WEIGHTS and SMOOTHING
    """

    kind: ClassVar[str] = "neighbours"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})

    schema: Schema
    numeric: Array
    absent: Flags
    codes: NDArray[np.int32]
    counts: Array
    numeric_weight: Array
    nominal_weight: Array
    k: int
    metric: str
    weights: str
    smoothing: str

    @property
    def n_classes(self) -> int:
        return int(self.counts.shape[1])

    @property
    def score_columns(self) -> int:
        """How many of the numeric columns are scores."""
        return int(self.numeric.shape[1]) - int((~self.schema.nominal).sum())

    @cached_property
    def cells(self) -> CodedRows:
        """The distinct calibration rows."""
        return CodedRows(self.numeric, self.absent, self.codes)

    @cached_property
    def search(self) -> Search:
        """What finds the neighbours; made when first needed, and never saved."""
        weights = self.numeric_weight, self.nominal_weight
        space = Space(self.cells, *weights, power=METRICS[self.metric])
        return Search(space, self.counts.sum(axis=1))

    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        """The probabilities of the classes, shape (n, classes)."""
        queries = self.schema.read(rows.features)
        door.check_lengths(scores=len(scores), features=len(queries))
        if self.score_columns:
            queries = queries.with_scores(scores)
        result = np.empty((len(queries), self.n_classes))
        for found in self.search.find(queries, self.k, progress=rows.progress):
            result[found.rows] = self._frequencies(found)
        return result

    def _frequencies(self, found: FoundRows) -> Array:
        mass = np.cumsum(self.search.weight[found.index], axis=1)
        inside = found.near <= reach(found.near, mass, self.k)[:, None]
        pull = inside * self.pull(found.near)
        sums = [(pull * column[found.index]).sum(axis=1) for column in self.counts.T]
        total = np.column_stack(sums) + self.start
        shares: Array = total / total.sum(axis=1, keepdims=True)
        return shares

    @property
    def start(self) -> float:
        """What each class starts with."""
        return SMOOTHING[self.smoothing] / float(self.counts.sum())

    def pull(self, near: Array) -> Array | float:
        """How much a neighbour counts, given its distance to the metric's power."""
        offset = NEIGHBOUR_WEIGHTS[self.weights]
        if offset is None:
            return 1.0
        attributes = float(self.numeric_weight.sum() + self.nominal_weight.sum())
        near = near if METRICS[self.metric] == 1 else np.sqrt(near)
        pull: Array = 1.0 / (near / np.sqrt(attributes) + offset)
        return pull

    def __repr__(self) -> str:
        return (
            f"Neighbours({len(self.counts)} distinct rows of {len(self.schema)} attributes, "
            f"{self.n_classes} classes, k={self.k}, {self.metric})"
        )

    # --- saving ---------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return self.schema.to_state() | {name: getattr(self, name) for name in ("k", *WORDS)}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def _of_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        check_saved(
            set(arrays) == set(ARRAYS),
            f"its arrays must be {sorted(ARRAYS)}, but {sorted(arrays)} came.",
        )
        for name, kind in ARRAYS.items():
            check_saved(arrays[name].dtype == kind, f"{name} holds {arrays[name].dtype}.")
        for name, known in WORDS.items():
            word = state.get(name)
            check_saved(isinstance(word, str) and word in known, f"{name} is {shown(word)}.")
        schema = Schema.from_state(state)
        _check(schema, arrays, state.get("k"))
        fields: dict[str, Any] = {**arrays, **{name: state[name] for name in WORDS}}
        return cls(schema=schema, k=state["k"], **fields)


def _check(schema: Schema, arrays: Mapping[str, NDArray[Any]], k: Any) -> None:
    """Refuse arrays of a file that do not fit together, with a reason."""
    numeric, absent, codes, counts, numeric_weight, nominal_weight = (arrays[n] for n in ARRAYS)
    nominal = [a for a in schema.attributes if a.categories is not None]
    plain = len(schema) - len(nominal)
    two_d = all(a.ndim == 2 for a in (numeric, absent, codes, counts))
    shapes = two_d and (
        len(counts) >= 1
        and counts.shape[1] >= 2
        and numeric.shape == absent.shape
        and len(numeric) == len(codes) == len(counts)
        and codes.shape[1] == len(nominal)
        and numeric.shape[1] - plain in (0, 1 if counts.shape[1] == 2 else counts.shape[1])
        and numeric_weight.shape == (numeric.shape[1],)
        and nominal_weight.shape == (len(nominal),)
    )
    check_saved(shapes, "the shapes of its arrays do not fit together.")
    weights = [counts, numeric_weight, nominal_weight]
    inside = [((a >= 0) & (a <= door.HEAVIEST)).all() for a in weights]
    check_saved(np.isfinite(numeric).all() and all(inside), "it holds numbers out of range.")
    gaps = absent[:, plain:].any() or numeric[absent].any() or not counts.sum(axis=1).all()
    check_saved(not gaps, "its rows are not complete.")
    most = np.array([len(a.categories or ()) for a in nominal], dtype=np.int64)
    known = (codes >= MISSING) & (codes < most)
    check_saved(known.all(), "it holds codes of no category.")
    check_saved(
        type(k) is int and 1 <= k <= counts.sum() * (1 + 1e-12),
        f"k must be a whole number from 1 to the weight of its rows, but {shown(k)} came.",
    )
    total = numeric_weight.sum() + nominal_weight.sum()
    check_saved(0 < total <= HEAVIEST, "its attribute weights are out of range.")
