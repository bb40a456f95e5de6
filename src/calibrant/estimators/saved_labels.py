"""Labels that a file can hold, and that come back from it as what they were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.json_facts import fits_64_bits, is_text, shown
from calibrant.data.to_numpy import plain
from calibrant.errors import InputError

Label = str | int | float | bool


def check_label(value: Any) -> Label:
    """A label that a file can hold, as a Python value."""
    value = plain(value)
    kind = type(value)
    if kind is bool or (kind is int and fits_64_bits(value)):
        return value  # type: ignore[no-any-return]
    if (kind is float and math.isfinite(value)) or (kind is str and is_text(value)):
        return value  # type: ignore[no-any-return]
    raise InputError(
        "labels must be strings, numbers or booleans to be saved (integers of 64 bits), but "
        f"{shown(value)} of type {kind.__name__} came. Convert them, for example to strings."
    )


def check_labels(values: Any) -> tuple[Label, ...]:
    """Labels that a file can hold, each of them once; 1, 1.0, True and "1" are different."""
    labels = tuple(check_label(value) for value in values)
    if len({(type(label), label) for label in labels}) < len(labels):
        raise InputError(f"classes must be different labels, but {shown(labels)} came.")
    return labels


def label_array(labels: tuple[Label, ...]) -> NDArray[Any]:
    """The labels as an array that gives each of them back as it is, whatever NumPy thinks.

    >>> label_array(("b", "a")).dtype.kind, label_array((1, "1")).tolist()
    ('U', [1, '1'])
    """
    array = np.asarray(labels)
    kept = [(type(value), value) for value in array.tolist()]
    if kept != [(type(label), label) for label in labels]:
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
    return array
