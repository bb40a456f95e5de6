"""Several binary maps, combined into one distribution over classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.errors import InputError
from calibrant.maps.base import Array, Map, VectorMap, float_array, one_of

__all__ = ["Coded"]


@dataclass(frozen=True, eq=False)
class Coded(VectorMap):
    """One map per column of a code matrix, combined into class probabilities.

    Parameters
    ----------
    code : array of shape (k, columns)
        Entries −1, 0, 1: which classes are the negatives and the positives of each column.
    maps : tuple of maps, one per column
    combine : {"normalize"}
        ``"normalize"``: p ∝ r, for one-against-all codes (the identity matrix in ±1); a row whose
        r are all zero gets the uniform distribution.

    Examples
    --------
    >>> from calibrant.maps import Identity
    >>> Coded.one_vs_rest((Identity(), Identity()))([[0.2, 0.2], [0.0, 0.0]]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    kind: ClassVar[str] = "coded"

    code: Array
    maps: tuple[Map, ...]
    combine: str = "normalize"

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", float_array(self.code, "code", 2))
        object.__setattr__(self, "maps", tuple(self.maps))
        one_of(self.combine, ("normalize",), "combine")
        k, columns = self.code.shape
        if not np.isin(self.code, (-1.0, 0.0, 1.0)).all():
            raise InputError("a code matrix must hold −1, 0 and 1 only.")
        if columns != len(self.maps) or k < 2:
            raise InputError(
                f"a code of {k} classes and {columns} columns cannot go with {len(self.maps)} maps."
            )
        if any(not isinstance(m, Map) or isinstance(m, VectorMap) for m in self.maps):
            raise InputError("the members of a coded map must be maps of one score.")
        if not np.array_equal(self.code, 2.0 * np.eye(k) - 1.0):
            raise InputError("normalize needs a one-against-all code: 1 on the diagonal, else −1.")
        super().__post_init__()

    @classmethod
    def one_vs_rest(cls, maps: tuple[Map, ...]) -> Coded:
        """Each class against all others, normalised."""
        return cls(2.0 * np.eye(len(maps)) - 1.0, maps)

    def __call__(self, scores: ArrayLike) -> Array:
        s = np.asarray(scores, dtype=np.float64)
        if s.ndim != 2 or s.shape[1] != len(self.maps):
            raise InputError(
                f"scores must have the shape (n, {len(self.maps)}), but {s.shape} came."
            )
        r = np.column_stack([member(s[:, j]) for j, member in enumerate(self.maps)])
        total = r.sum(axis=1, keepdims=True)
        return np.where(total > 0, r / np.where(total > 0, total, 1.0), 1.0 / r.shape[1])
