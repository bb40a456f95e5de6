"""One map per segment, with a fallback for the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import InputError
from calibrant.maps.base import Array, Map, VectorMap

__all__ = ["Segmented"]


@dataclass(frozen=True, eq=False)
class Segmented(Map):
    """maps[i] for the scores of segment keys[i], ``default`` for segments never seen.

    Parameters
    ----------
    default : map of one score
    keys : tuple of str or int
    maps : tuple of maps, one per key

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> c = Piecewise.constant
    >>> m = Segmented(c(0.5), ("fr", "de"), (c(0.1), c(0.2)))
    >>> m([1.0, 1.0, 1.0], ["de", "fr", "it"]).tolist()
    [0.2, 0.1, 0.5]
    >>> m([1.0]).tolist()
    [0.5]
    """

    kind: ClassVar[str] = "segmented"

    default: Map
    keys: tuple[Any, ...]
    maps: tuple[Map, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        object.__setattr__(self, "maps", tuple(self.maps))
        if len(self.keys) != len(self.maps) or len(set(self.keys)) != len(self.keys):
            raise InputError("a segmented map needs one map per key, and each key once.")
        if any(type(key) not in (str, int) for key in self.keys):
            raise InputError("the keys of a segmented map must be strings or integers.")
        for member in (self.default, *self.maps):
            if not isinstance(member, Map) or isinstance(member, VectorMap):
                raise InputError("the members of a segmented map must be maps of one score.")
        super().__post_init__()

    def __call__(self, scores: ArrayLike, segments: ArrayLike | None = None) -> Array:
        s = np.asarray(scores, dtype=np.float64)
        if segments is None:
            return self.default(s)
        values = np.asarray(segments)
        if values.shape != s.shape:
            raise InputError(
                f"segments must name one segment per score, but {values.shape} came for {s.shape}."
            )
        distinct, of_row = np.unique(values, return_inverse=True)
        by_key = dict(zip(self.keys, self.maps, strict=True))
        result = np.empty(s.shape)
        order = np.argsort(of_row, kind="stable")
        bounds = np.searchsorted(of_row[order], np.arange(len(distinct) + 1))
        for i, key in enumerate(distinct.tolist()):
            rows = order[bounds[i] : bounds[i + 1]]
            result[rows] = by_key.get(key, self.default)(s[rows])
        return result
