"""Maps of several scores as graphs: rows (n, k) in, a probability for each class or label out."""

from __future__ import annotations

import functools

import numpy as np

from calibrant.errors import InputError
from calibrant.export.onnx.combine import combined
from calibrant.export.onnx.express import probability, refuse_large
from calibrant.export.onnx.formulas import log_softmax, softmax_of, sum_of
from calibrant.export.onnx.graph import Tensor
from calibrant.export.onnx.seen import Scores, Seen, clipped, shares
from calibrant.maps import Coded, Columns, Softmax, VectorMap, VectorMixture
from calibrant.maps.combiners import singled_out

__all__ = ["express_rows"]


@functools.singledispatch
def express_rows(map_: VectorMap, seen: Seen) -> Tensor:
    """A map of rows."""
    raise InputError(
        f"a map of kind {map_.kind!r} cannot be written as ONNX. Apply it in memory: predict_proba."
    )


@express_rows.register
def _(map_: Columns, seen: Seen) -> Tensor:
    parts = [probability(own, seen.own(j)) for j, own in enumerate(map_.maps)]
    return parts[0].graph.columns(parts)


@express_rows.register
def _(map_: Coded, seen: Seen) -> Tensor:
    axis = seen.own if singled_out(map_.code) is None else seen.among
    parts = [probability(own, axis(j)) for j, own in enumerate(map_.maps)]
    return combined(map_, parts[0].graph.columns(parts))


@express_rows.register
def _(map_: Softmax, seen: Seen) -> Tensor:
    if map_.input == "probability":
        z = seen.log(map_.floor)
    else:
        _refuse_logits(seen)
        z = clipped(seen.rows())
    if z.graph.dtype != np.float64:
        inner = 1.0 if map_.inner is None else map_.inner
        refuse_large(map_.matrix, map_.bias, np.array(inner))
    if map_.inner is not None:
        z = log_softmax(z * map_.inner)
    scaled = z @ map_.matrix.T if map_.matrix.ndim == 2 else z * map_.matrix
    return softmax_of(scaled + map_.bias)


@express_rows.register
def _(map_: VectorMixture, seen: Seen) -> Tensor:
    if map_.input != "score":
        seen = _distribution(map_, seen)
    parts = [
        express_rows(member, seen) * float(weight)
        for weight, member in zip(map_.weights, map_.members, strict=True)
        if weight > 0.0
    ]
    return sum_of(parts)


def _distribution(map_: VectorMixture, seen: Seen) -> Seen:
    """What the members of a mixture see of a row."""
    if map_.input == "logit":
        _refuse_logits(seen)
        seen = Scores(softmax_of(clipped(seen.rows()) * map_.factor))
    else:
        seen = seen.power(map_.factor)
        if seen.are_logits and map_.floor == 0.0:
            return seen
    x = seen.rows()
    return Scores(shares(x.graph.within(x, map_.floor, 1.0), x.graph.total))


def _refuse_logits(seen: Seen) -> None:
    if seen.are_logits:
        raise InputError(
            "input must be 'score': this calibrator takes logits as its scores, not probabilities "
            "whose logits could be given instead."
        )
