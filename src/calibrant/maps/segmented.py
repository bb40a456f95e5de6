"""One map per segment, shrunk to a common one, which is also the fallback for all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.data.json_facts import fits_64_bits, is_text, shown
from calibrant.data.segment_keys import Key, find_segments, segment_codes
from calibrant.errors import InputError
from calibrant.maps.base import Array, Map
from calibrant.maps.chain import Chain
from calibrant.maps.checks import in_unit, numbers, read_by, word
from calibrant.maps.decision import decided_by
from calibrant.maps.identity import Identity
from calibrant.maps.member_fields import map_tuple, one_map
from calibrant.maps.mixture import Mixture
from calibrant.maps.piecewise import Piecewise
from calibrant.plan.map_input import PlanTarget, start
from calibrant.plan.nodes import BySegment, Node, Variable

__all__ = ["Segmented"]

Index = NDArray[np.intp]


def _keys(keys: Any) -> tuple[Key, ...]:
    """Keys that a file can hold. Integers have at most 64 bits: longer ones would be slow to
    hash."""
    made = (keys,) if isinstance(keys, (str, int)) else tuple(keys)
    for key in made:
        fine = type(key) is int and fits_64_bits(key)
        if isinstance(keys, (str, int)) or not (fine or (type(key) is str and is_text(key))):
            raise InputError(
                "the keys of a segmented map must be a sequence of strings or integers of 64 bits, "
                f"but {shown(key)} came."
            )
    return made


@dataclass(frozen=True, eq=False, repr=False)
class Segmented(Map):
    """λᵢ · maps[i] + (1 − λᵢ) · default in segment keys[i], ``default`` in all other segments.

    Parameters
    ----------
    default : map of one score
        For every segment that has no key, and what the others are shrunk to.
    keys : tuple of str or int
        The segments. ``1`` and ``"1"`` are two of them.
    maps : tuple of maps of one score, one per key
    weights : array of λ in [0, 1], one per key, optional
        Without it all are 1.
    input : {"score", "default"}, default="score"
        What ``maps`` take: the score itself, or what ``default`` makes of it.
    default_keys : tuple of str or int, optional
        Segments that the fit has seen, but that use ``default``. Listing them tells them from new
        segments.

    Notes
    -----
    Rows are brought together by segment with one sort: O(n log n), and one call of each map.

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
    """

    kind: ClassVar[str] = "segmented"
    #: version 1 had neither weights nor input, version 2 no default_keys
    version: ClassVar[int] = 3

    default: Map = field(metadata=one_map("the default of a segmented map"))
    keys: tuple[Any, ...] = field(metadata=read_by(_keys))
    maps: tuple[Map, ...] = field(metadata=map_tuple("the maps of segments"))
    weights: Array | None = field(default=None, metadata=numbers("segment weights"))
    input: str = field(
        default="score", metadata=word("input of a segmented map", "score", "default")
    )
    default_keys: tuple[Any, ...] = field(default=(), metadata=read_by(_keys))

    def _check(self) -> None:
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
            in_unit(self.weights, "segment weights")

    @property
    def seen(self) -> tuple[Key, ...]:
        """All segments that are known, whether they have a map of their own or the default."""
        return self.keys + self.default_keys

    def __call__(self, scores: ArrayLike, segments: Any = None) -> Array:
        s = np.asarray(scores, dtype=np.float64)
        if segments is None:
            return self.default(s)
        return self.of_codes(s, self.find(segments))

    def find(self, segments: Any) -> Index:
        """The number of each row's segment among those `seen`; how many these are if it is new."""
        codes = find_segments(segments, {key: i for i, key in enumerate(self.seen)})
        if self.seen and (codes == len(self.seen)).all():
            self._check_kind(segments)
        return codes

    by_segment = __call__

    def _check_kind(self, segments: Any) -> None:
        """Refuse text where the keys are numbers, and numbers where they are text: no row would
        match."""
        values = segment_codes(segments)[0]
        seen = self.seen
        words, keys = ({isinstance(key, str) for key in found} for found in (values, seen))
        if values and not words & keys:
            are, came = ("text", "numbers") if keys == {True} else ("numbers", "text")
            raise InputError(
                f"segments must be {are}, as the {len(seen)} known ones are (such as "
                f"{seen[0]!r}), but {came} came (such as {values[0]!r}). Convert the column."
            )

    def of_codes(self, s: Array, codes: Index) -> Array:
        """Probabilities of scores whose segments were found by `find`."""
        if codes.shape != s.shape:
            raise InputError(
                f"segments must name one segment per score, but {codes.shape} came for {s.shape}."
            )
        n = len(self.keys)
        codes = np.minimum(codes, n)  # all others have the default
        common = self.default(s)
        taken = common if self.input == "default" else s
        # small integers sort in linear time
        order = np.argsort(codes.astype(np.min_scalar_type(n)), kind="stable")
        bounds = np.cumsum(np.bincount(codes, minlength=n + 1))[:n]
        result = common.copy()
        begin = 0
        for i, end in enumerate(bounds.tolist()):
            if end > begin:
                rows = order[begin:end]
                result[rows] = self._mixed(i, self.maps[i](taken[rows]), common[rows])
            begin = end
        return result

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def segments(self) -> tuple[Key, ...]:
        return self.seen

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
        axis = scores = start(target, input)
        default = self.default.simple
        common = Variable(default.lowered(axis))
        maps: Sequence[Map] = self.maps
        if self.input == "default":
            if isinstance(default, Piecewise) and default.is_step:
                maps = [default.then(own) for own in maps]
            else:
                axis = axis.after(common, self.default, self.default.of_logit)
        members = tuple(own.lowered(axis) for own in maps)
        shares = np.ones(len(maps)) if self.weights is None else self.weights

        def whole(i: int) -> Node:
            return self.member(self.keys[i]).lowered(scores)

        return BySegment(common, self.keys, members, shares, whole)

    def shifted(self, factor: Array) -> Map:
        """Mixes each segment's map with the default first: a mixture of shifted maps is another
        map."""
        members = tuple(self._whole(i).shifted(factor) for i in range(len(self.keys)))
        default = self.default.shifted(factor)
        return Segmented(default, self.keys, members, default_keys=self.default_keys)

    def decision(self, threshold: float) -> Map | None:
        default = self.default.decision(threshold)
        own = [self._decision(i, threshold) for i in range(len(self.keys))]
        known = tuple(member for member in own if member is not None)
        if default is None or len(known) < len(own):
            return None
        return Segmented(default, self.keys, known, default_keys=self.default_keys)

    def _decision(self, i: int, threshold: float) -> Map | None:
        """The decision of segment i, by the arithmetic of `of_codes`: its last bits decide."""

        def function(s: Array) -> Array:
            common = self.default(s)
            own = self.maps[i](common if self.input == "default" else s)
            return self._mixed(i, own, common)

        return decided_by(self.member(self.keys[i]), threshold, function)

    def _whole(self, i: int) -> Map:
        """The map of segment i on its own, with the default written at most once."""
        if self.input == "score":
            return self.member(self.keys[i])
        share = 1.0 if self.weights is None else float(self.weights[i])
        if share == 1.0:
            return Chain((self.default, self.maps[i]))
        # both read what the default gives, so the share of the default is that number itself
        both = Mixture(np.array([share, 1.0 - share]), (self.maps[i], Identity()))
        return Chain((self.default, both))

    def __repr__(self) -> str:
        kinds = sorted({type(member).__name__ for member in self.maps})
        members = f" of kind {' and '.join(kinds)}" if kinds else ""
        return f"Segmented({len(self.keys)} segments{members}, default={self.default!r})"

    def _mixed(self, i: int, own: Array, common: Array) -> Array:
        if self.weights is None or self.weights[i] == 1.0:
            return own
        share = float(self.weights[i])
        return np.asarray(share * own + (1.0 - share) * common)

    def member(self, key: Key | None = None) -> Map:
        """The map of one segment (None, or a key that is not known: the default) on its own.

        >>> from calibrant.maps import Identity, Piecewise
        >>> m = Segmented(Identity(), (7,), (Piecewise.constant(0.1),), [0.5])
        >>> m.member(7)([0.3]).tolist() == m([0.3], [7]).tolist()
        True
        """
        if key not in self.keys:
            return self.default
        i = self.keys.index(key)
        own: Map = self.maps[i]
        if self.input == "default":
            own = Chain((self.default, own))
        share = 1.0 if self.weights is None else float(self.weights[i])
        if share == 1.0:
            return own
        return Mixture(np.array([share, 1.0 - share]), (own, self.default))
