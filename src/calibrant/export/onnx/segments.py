"""One map per segment: a second input says which."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant.errors import InputError
from calibrant.export.onnx.axis import Axis, Made
from calibrant.export.onnx.express import after, express, logistic, piecewise
from calibrant.export.onnx.graph import Tensor
from calibrant.maps import Logistic, Map, Piecewise, Segmented

__all__ = ["ML", "by_segment", "key_type"]

#: the domain of operators for classical models
ML = "ai.onnx.ml"


def key_type(map_: Segmented) -> np.dtype[Any]:
    """The type of the segments' tensor: int64, or object for strings."""
    kinds = {type(key) for key in map_.keys}
    if len(kinds) > 1:
        raise InputError(
            "the segments of an ONNX graph must be all strings or all integers, but both came. "
            "Fit the segments as strings: segments.astype(str)."
        )
    if kinds == {str}:
        return np.dtype(object)
    most = np.iinfo(np.int64)
    if any(not most.min <= key <= most.max for key in map_.keys):
        raise InputError("integer segments must fit 64 bits in ONNX. Fit the segments as strings.")
    return np.dtype(np.int64)


def by_segment(map_: Segmented, axis: Axis, segment: Tensor) -> Tensor:
    """The probability of each row by its segment's map; of other segments, the default's."""
    graph = axis.chooser.graph
    default = map_.default.simple
    common = express(default, axis).score()
    maps: list[Map] = [own.simple for own in map_.maps]
    if map_.input == "default":
        if isinstance(default, Piecewise) and default.is_step:
            maps = [default.then(own) for own in maps]
        else:
            axis = after(default, axis)
    code = _code(map_, segment)
    own = _each(maps, axis, code, common)
    if map_.weights is None:
        return own
    shares = np.append(map_.weights, 1.0)
    mixed = graph.gather(shares, code) * own + graph.gather(1.0 - shares, code) * common
    return graph.where(graph.gather(shares == 1.0, code), own, mixed)


def _code(map_: Segmented, segment: Tensor) -> Tensor:
    """The number of each row's segment; how many there are for one that is not known."""
    graph, strings = segment.graph, key_type(map_) == np.dtype(object)
    attributes = {
        "keys_strings" if strings else "keys_int64s": list(map_.keys),
        "values_int64s": list(range(len(map_.keys))),
        "default_int64": len(map_.keys),
    }
    code = graph.op("LabelEncoder", segment, attributes=attributes, domain=ML)
    return graph.cast(code, np.int32)


# --- many maps at once --------------------------------------------------------------------------


class Group(NamedTuple):
    """Maps with the same key are written together, by this function."""

    key: Hashable
    write: Callable[[Any, Axis, Tensor], Made]


@functools.singledispatch
def _group(map_: Map) -> Group:
    return Group(map_, lambda maps, axis, code: express(maps[0], axis))


@_group.register
def _(map_: Piecewise) -> Group:
    return Group(("piecewise", map_.input, map_.is_step or map_.output), piecewise)


@_group.register
def _(map_: Logistic) -> Group:
    return Group(("logistic", map_.clip is None), logistic)


def _each(maps: Sequence[Map], axis: Axis, code: Tensor, otherwise: Tensor) -> Tensor:
    """The probability by map ``code`` of each row, or another one where there is no such map."""
    graph = code.graph
    groups: dict[Hashable, list[int]] = {}
    for i, map_ in enumerate(maps):
        groups.setdefault(_group(map_).key, []).append(i)
    result = otherwise
    for members in groups.values():
        # rows of other groups read the first table, and are not heard
        place, here = np.zeros(len(maps) + 1, dtype=np.int32), np.zeros(len(maps) + 1, dtype=bool)
        place[members], here[members] = np.arange(len(members)), True
        write = _group(maps[members[0]]).write
        own = write([maps[i] for i in members], axis, graph.gather(place, code)).score()
        result = graph.where(graph.gather(here, code), own, result)
    return result
