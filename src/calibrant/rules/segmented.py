"""One map per segment, shrunk to a common one, which is also the fallback for all others.

With several columns a segment is shrunk to the coarser one that it is a part of.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from calibrant.array_types import Array, Flags, Index
from calibrant.data.documents import brief, fits_64_bits, is_unicode
from calibrant.data.segments import Key, SegmentKey, find_segments, segment_codes, segment_columns
from calibrant.errors import InputError
from calibrant.rules.base import (
    Map,
    check_probabilities,
    field_read_by,
    map_field,
    maps_field,
    numbers_field,
    word_field,
)
from calibrant.rules.chain import Chain
from calibrant.rules.mixture import Mixture
from calibrant.rules.piecewise import Piecewise, decision_steps
from calibrant.rules.plan.nodes import BySegment, Node, PlanTarget, Variable, first_input
from calibrant.rules.sigmoids import Identity


def _read_keys(keys: Any) -> tuple[SegmentKey, ...]:
    """Segment keys that a file can hold, or tuples of them. Integers of more than 64 bits are
    refused."""
    alone = isinstance(keys, (str, int))
    made = (keys,) if alone else tuple(keys)
    nested = tuple(tuple(k) if isinstance(k, (list, tuple)) else k for k in made)
    for key in nested:
        parts = key if isinstance(key, tuple) else (key,)
        if alone or not parts or not all(map(_is_valid_key, parts)):
            raise InputError(
                "the keys of a segmented map must be a sequence of strings or integers of 64 bits, "
                f"or of tuples of these, but {brief(key)} came."
            )
    return nested


def _is_valid_key(key: Any) -> bool:
    """Whether a key is text or a whole number that a file can hold."""
    return (type(key) is int and fits_64_bits(key)) or (type(key) is str and is_unicode(key))


def _coarse_to_fine(key: SegmentKey) -> list[SegmentKey]:
    """The segments that contain a segment, from coarse to fine; the last is the segment itself.

    >>> _coarse_to_fine(("fr", "card")), _coarse_to_fine("fr")
    ([('fr',), ('fr', 'card')], ['fr'])
    """
    return [key[:j] for j in range(1, len(key) + 1)] if isinstance(key, tuple) else [key]


@dataclass(frozen=True, eq=False, repr=False)
class Segmented(Map):
    """λᵢ · maps[i] + (1 − λᵢ) · default in segment keys[i], ``default`` in all other segments.

    With several columns keys are tuples, such as ("fr",) and ("fr", "card"), and a segment has
    its coarser one in place of the default: λᵢ · maps[i] + (1 − λᵢ) · what its coarser segment
    gives. A row has the finest segment that is known.

    Parameters
    ----------
    default : map of one score
        For every segment that has no key, and what the others are shrunk to.
    keys : tuple of str or int, or of tuples of them
        The segments. ``1`` and ``"1"`` are two of them.
    maps : tuple of maps of one score, one per key
    weights : array of λ in [0, 1], one per key, optional
        Without it all are 1.
    input : {"score", "default"}, default="score"
        What ``maps`` take: the score itself, or what ``default`` (with several columns: the
        coarser segment) makes of it.
    default_keys : tuple of str or int, or of tuples of them, optional
        Segments that the fit has seen, but that use ``default`` (the coarser segment). Listing
        them tells them from new segments.

    Notes
    -----
    Rows are brought together by segment with one sort for each column: O(n log n), and one call of
    each map.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> c = Piecewise.constant
    >>> m = Segmented(c(0.5), ("fr", "de"), (c(0.1), c(0.2)))
    >>> m([1.0, 1.0, 1.0], ["de", "fr", "it"]).tolist()
    [0.2, 0.1, 0.5]
    >>> m([1.0]).tolist()
    [0.5]
    >>> Segmented(c(0.5), ("fr",), (c(0.1),), [0.75])([1.0, 1.0], ["fr", "it"]).round(6).tolist()
    [0.2, 0.5]
    >>> two = Segmented(c(0.5), (("fr",), ("fr", "card")), (c(0.1), c(0.2)))
    >>> two([1.0, 1.0, 1.0], [["fr", "fr", "it"], ["card", "loan", "card"]]).tolist()
    [0.2, 0.1, 0.5]
    """

    kind: ClassVar[str] = "segmented"
    #: version 1 had neither weights nor input, version 2 no default_keys, version 3 one column
    version: ClassVar[int] = 4
    needs: ClassVar[frozenset[str]] = frozenset({"segments"})

    default: Map = field(metadata=map_field("the default of a segmented map"))
    keys: tuple[Any, ...] = field(metadata=field_read_by(_read_keys))
    maps: tuple[Map, ...] = field(metadata=maps_field("the maps of segments"))
    weights: Array | None = field(default=None, metadata=numbers_field("segment weights"))
    input: str = field(
        default="score", metadata=word_field("input of a segmented map", "score", "default")
    )
    default_keys: tuple[Any, ...] = field(default=(), metadata=field_read_by(_read_keys))

    def _check(self) -> None:
        """Refuse keys, maps and weights that do not go together."""
        tuples = [isinstance(key, tuple) for key in self.seen]
        if any(tuples) and (not all(tuples) or self.columns < 2):
            raise InputError(
                "the keys of a segmented map must be all plain, or all tuples of which some have "
                f"two values or more, but {brief(self.seen[:8])} came."
            )
        if len(self.keys) != len(self.maps) or len(set(self.keys)) != len(self.keys):
            raise InputError(
                "a segmented map needs one map per key, and each key once, but "
                f"{len(set(self.keys))} different keys of {len(self.keys)} came with "
                f"{len(self.maps)} maps."
            )
        if len(set(self.seen)) != len(self.seen):
            raise InputError(
                "the default_keys of a segmented map must be other segments than its keys, and "
                f"each must come once, but of {len(self.seen)} in all {len(set(self.seen))} differ."
            )
        if self.weights is not None:
            if len(self.weights) != len(self.keys):
                raise InputError("a segmented map needs one weight per key, or none at all.")
            check_probabilities(self.weights, "segment weights")

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"version": 3 if self.columns == 1 else 4}

    @property
    def seen(self) -> tuple[SegmentKey, ...]:
        """All segments that are known, whether they have a map of their own or the default."""
        return self.keys + self.default_keys

    @property
    def columns(self) -> int:
        """How many columns say which segment a row is in."""
        return max((len(key) for key in self.seen if isinstance(key, tuple)), default=1)

    @cached_property
    def _places(self) -> dict[SegmentKey, int]:
        """The number of each known segment; those with a map of their own come first."""
        return {key: i for i, key in enumerate(self.seen)}

    def __call__(self, scores: ArrayLike, segments: Any = None) -> Array:
        s = np.asarray(scores, dtype=np.float64)
        if segments is None:
            return self.default(s)
        return self.of_codes(s, self.find(segments))

    def find(self, segments: Any) -> Index:
        """For each row the number of its segment among `seen`; the number of those if the segment
        is new.

        With several columns it is the finest known segment.
        """
        given = segment_columns(segments)
        codes = find_segments(given, self._places, self.columns)
        if self.seen and self.is_new(codes).all():
            # no row would match text where the keys are numbers, or numbers where they are text
            for at, column in enumerate(given):
                values, seen = segment_codes(column)[0], self.values(at)
                words, keys = ({isinstance(key, str) for key in own} for own in (values, seen))
                if values and seen and not words & keys:
                    are, came = ("text", "numbers") if keys == {True} else ("numbers", "text")
                    where = f" (column {at + 1})" if len(given) > 1 else ""
                    raise InputError(
                        f"segments{where} must be {are}, as the {len(seen)} known ones are (such "
                        f"as {seen[0]!r}), but {came} came (such as {values[0]!r}). Convert the "
                        "column."
                    )
        return codes

    def is_new(self, codes: Index) -> Flags:
        """Flags of the rows whose segment is not known, or not known in all of its columns."""
        count = self.columns
        new = [isinstance(key, tuple) and len(key) < count for key in self.seen]
        return np.array([*new, True])[codes]

    by_segment = __call__

    def values(self, column: int) -> tuple[Key, ...]:
        """The different values of known segments in one of their columns."""
        paths = (key if isinstance(key, tuple) else (key,) for key in self.seen)
        return tuple(dict.fromkeys(path[column] for path in paths if len(path) > column))

    def of_codes(self, s: Array, codes: Index) -> Array:
        """Probabilities of scores whose segments were found by `find`."""
        if codes.shape != s.shape:
            raise InputError(
                f"segments must name one segment per score, but {codes.shape} came for {s.shape}."
            )
        result, n = self.default(s), len(self.keys)
        for own in self._levels:
            common, result, maps = result, result.copy(), own[codes]
            scores = common if self.input == "default" else s
            # small integers sort in linear time
            order = np.argsort(maps.astype(np.min_scalar_type(n)), kind="stable")
            bounds = np.cumsum(np.bincount(maps, minlength=n + 1))[:n].tolist()
            for i, (begin, end) in enumerate(itertools.pairwise([0, *bounds])):
                if end > begin:
                    rows, share = order[begin:end], self._share(i)
                    value = self.maps[i](scores[rows])
                    if share != 1.0:
                        value = share * value + (1.0 - share) * common[rows]
                    result[rows] = value
        return result

    @cached_property
    def _levels(self) -> list[Index]:
        """For each column, the number of the map that each segment gets by that column.

        Segments are numbered as in `seen`, with one more for new segments. The number of maps
        stands for "no map".
        """
        n = len(self.keys)
        levels = np.full((self.columns, len(self.seen) + 1), n, dtype=np.intp)
        for i, key in enumerate(self.seen):
            for column, part in enumerate(_coarse_to_fine(key)):
                levels[column, i] = min(self._places.get(part, n), n)
        return list(levels)

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def segments(self) -> tuple[SegmentKey, ...]:
        return self.seen

    @property
    def n_segment_columns(self) -> int:
        return self.columns

    @property
    def takes_probabilities(self) -> bool:
        own = self.maps if self.input == "score" else ()
        return any(member.takes_probabilities for member in (self.default, *own))

    @property
    def main(self) -> Map:
        return self.default

    @property
    def size(self) -> int:
        shrunk = 0 if self.weights is None else int((self.weights < 1.0).sum())
        return sum(member.size for member in self.maps) + (1 + shrunk) * self.default.size

    def plan(self, target: PlanTarget, input: str = "score") -> Node:
        """The plan of the default and of each segment's map, with the share of each."""
        axis = scores = first_input(target, input)
        default = self.default.simple
        common = Variable(default.lowered(axis))
        parts = [self._part(self._path(key)) for key in self.keys]
        maps: Sequence[Map] = [own for own, _ in parts]
        if self.input == "default":
            if isinstance(default, Piecewise) and default.is_step:
                maps = [default.then(own) for own in maps]
            else:
                axis = axis.after(common, self.default)
        members = tuple(own.lowered(axis) for own in maps)
        shares = np.array([share for _, share in parts], dtype=np.float64)

        def whole(i: int) -> Node:
            return self.member(self.keys[i]).lowered(scores)

        return BySegment(common, self.keys, members, shares, whole, self.columns)

    def shifted(self, factor: Array) -> Map:
        """The map at other base rates. Each segment's map is first mixed with the default, since a
        mixture of shifted maps would be another map."""
        members = tuple(self._whole(key).shifted(factor) for key in self.keys)
        default = self.default.shifted(factor)
        return Segmented(default, self.keys, members, default_keys=self.default_keys)

    def mirrored(self, centre: float) -> Map:
        """The map of reversed scores. Maps that take the output of the default stay as they are."""
        maps = self.maps
        if self.input == "score":
            maps = tuple(member.mirrored(centre) for member in maps)
        return replace(self, default=self.default.mirrored(centre), maps=maps)

    def decision(self, threshold: float) -> Map | None:
        """The decisions of the default and of all segments; None if one of them is not known."""
        default, known = self.default.decision(threshold), []
        for i, key in enumerate(self.keys):

            def function(s: Array, i: int = i) -> Array:
                """The probabilities of segment i, bit for bit: the last bits decide."""
                return self.of_codes(s, np.full(s.shape, i, dtype=np.intp))

            own = decision_steps(self.member(key), threshold, function)
            if own is None:
                return None
            known.append(own)
        if default is None:
            return None
        return Segmented(default, self.keys, tuple(known), default_keys=self.default_keys)

    # --- the map of one segment -------------------------------------------------------------------

    def _path(self, key: Any) -> list[int]:
        """The numbers of the maps for a segment, from the coarsest column to the finest."""
        n = len(self.keys)
        found = (self._places.get(part, n) for part in _coarse_to_fine(key))
        return [i for i in found if i < n]

    def _share(self, i: int) -> float:
        """The weight λ of map i; the default has the rest."""
        return 1.0 if self.weights is None else float(self.weights[i])

    def _part(self, path: list[int]) -> tuple[Map, float]:
        """One map and its share λ, for a segment that has the maps with these numbers. Its
        probability is λ · map + (1 − λ) · default.

        The map takes the same input as ``maps``.
        """
        if len(path) == 1:
            return self.maps[path[0]], self._share(path[0])
        if self.input == "default":
            return Chain(tuple(self._step(j) for j in path)), 1.0
        shares, left = [], 1.0  # how much each map of the path counts, and what is left to coarser
        for j in reversed(path):
            shares.append(left * self._share(j))
            left *= 1.0 - self._share(j)
        used = [(share, self.maps[j]) for share, j in zip(shares, reversed(path), strict=True)]
        used = [(share, own) for share, own in used if share > 0.0]
        if len(used) < 2:
            share, own = used[0] if used else (0.0, self.maps[path[-1]])
            return own, share
        total = sum(share for share, _ in used)
        members = tuple(own for _, own in used)
        return Mixture(np.array([share / total for share, _ in used]), members), min(total, 1.0)

    def _step(self, j: int) -> Map:
        """The map of segment j, applied to the probability of its coarser segment."""
        share = self._share(j)
        if share == 1.0:
            return self.maps[j]
        return Mixture(np.array([share, 1.0 - share]), (self.maps[j], Identity()))

    def _whole(self, key: SegmentKey) -> Map:
        """The map of a segment without any other map, with the default in it at most once."""
        if self.input == "score":
            return self.member(key)
        # each step reads what the one before gives, so a share of it is that number itself
        return Chain((self.default, *(self._step(i) for i in self._path(key))))

    def __repr__(self) -> str:
        kinds = sorted({type(member).__name__ for member in self.maps})
        members = f" of kind {' and '.join(kinds)}" if kinds else ""
        return f"Segmented({len(self.keys)} segments{members}, default={self.default!r})"

    def member(self, key: SegmentKey | None = None) -> Map:
        """The map of one segment. For None, and for an unknown key, it is the default.

        With several columns ``key`` is a tuple, and its first values are enough: ("fr",).

        >>> from calibrant.maps import Identity, Piecewise
        >>> m = Segmented(Identity(), (7,), (Piecewise.constant(0.1),), [0.5])
        >>> m.member(7)([0.3]).tolist() == m([0.3], [7]).tolist()
        True
        """
        path = self._path(key)
        if not path:
            return self.default
        own, share = self._part(path)
        if self.input == "default":
            own = Chain((self.default, own))
        if share == 1.0:
            return own
        return Mixture(np.array([share, 1.0 - share]), (own, self.default))
