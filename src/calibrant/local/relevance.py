"""How much an attribute says about the class: mutual information, and weights made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.to_numpy import to_matrix
from calibrant.errors import InputError
from calibrant.local.attributes import CodedRows

#: numeric attributes are cut into at most this many bins of equal weight
BINS = 10


def given_weights(weights: Any, features: int, scores: int) -> Array:
    """One weight per feature (scores get 1), or per feature and score column, checked."""
    array = to_matrix(weights, "attribute_weights")
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise InputError(
            "attribute_weights must be a list of numbers, one per feature, but "
            f"{array.dtype} of shape {array.shape} came."
        )
    w = array.astype(np.float64)
    if not np.isfinite(w).all() or (w < 0).any():
        raise InputError("attribute_weights must be finite and at least 0, but others came.")
    if len(w) == features:
        w = np.append(w, np.ones(scores))
    if len(w) != features + scores:
        more = f" or {features + scores} (with the scores)" if scores else ""
        raise InputError(
            f"attribute_weights must hold {features} weights, one per feature,{more} but "
            f"{len(w)} came."
        )
    if not w.any():
        raise InputError("attribute_weights must not all be 0: all rows would be equally near.")
    return w


def relevance(rows: CodedRows, nominal: Flags, y: Index, weight: Array) -> Array:
    """The mutual information of each column with the class: features in their order, then scores.

    If no column says anything, all are 1.
    """
    kinds = np.append(nominal, np.zeros(rows.numeric.shape[1] - int((~nominal).sum()), dtype=bool))
    array = np.empty(len(kinds))
    array[kinds] = [mutual_information(c.astype(np.intp) + 1, y, weight) for c in rows.codes.T]
    columns = zip(rows.numeric.T, rows.absent.T, strict=True)
    array[~kinds] = [mutual_information(_bins(*both, weight), y, weight) for both in columns]
    return array if array.any() else np.ones(len(array))


def mutual_information(levels: Index, y: Index, weight: Array) -> float:
    """I = H(x) + H(y) − H(x, y) in nats, each with Miller and Madow's correction; at least 0.

    The correction adds (number of values that occur − 1) / 2n to each entropy, where n is the total
    weight. Without it, a column that says nothing would seem to say more the more values it has.
    """
    k = int(y.max()) + 1
    joint = np.bincount(levels * k + y, weights=weight, minlength=(int(levels.max()) + 1) * k)
    joint = joint.reshape(-1, k) / weight.sum()
    parts = (joint.sum(axis=1), joint.sum(axis=0), joint.ravel())
    entropies = [-float(p[p > 0] @ np.log(p[p > 0])) for p in parts]
    occurring = [int((p > 0).sum()) - 1 for p in parts]
    plug_in = entropies[0] + entropies[1] - entropies[2]
    correction = (occurring[0] + occurring[1] - occurring[2]) / (2 * float(weight.sum()))
    return max(0.0, plug_in + correction)


def _bins(values: Array, absent: Flags, weight: Array) -> Index:
    """Bins of equal weight that never split equal values, counted from 1; 0 is absent."""
    result = np.zeros(len(values), dtype=np.intp)
    if absent.all():
        return result
    present = ~absent
    distinct, inverse = np.unique(values[present], return_inverse=True)
    mass = np.cumsum(np.bincount(inverse, weights=weight[present]))
    ends = np.searchsorted(mass, mass[-1] * np.arange(1, BINS) / BINS * (1 - 1e-12))
    place = np.searchsorted(np.unique(ends), np.arange(len(distinct)))
    result[present] = place[inverse] + 1
    return result
