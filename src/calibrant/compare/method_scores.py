"""Reads scores of methods over datasets as an array with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.to_numpy import to_incomplete
from calibrant.errors import InputError, ParameterError


def read_scores(
    scores: Any, names: Any = None, *, finite: bool = False
) -> tuple[Array, tuple[str, ...]]:
    """Scores from a 2-d array, a frame, or a mapping of name to column; without gaps.

    They have a row for each dataset and a column for each method, whose names come with them.
    """
    values, found = _columns(scores)
    if found is not None and names is not None:
        raise InputError(
            "names are for arrays, but a frame or mapping came with names of its own: "
            f"{list(found)[:8]}. Leave names out, or rename its columns."
        )
    if values.ndim != 2:
        raise InputError(
            "scores must be 2-d, a row for each dataset and a column for each method, but their "
            f"shape is {values.shape}."
        )
    rows, columns = values.shape
    if rows < 2 or columns < 2:
        raise InputError(
            "scores must have at least 2 datasets (rows) and 2 methods (columns), but "
            f"{rows} × {columns} came."
        )
    given = found if found is not None else names
    if given is None:
        given = [f"method {number}" for number in range(1, columns + 1)]
    called = check_names(given, columns)
    _check_known(values, called, finite)
    return values, called


def _columns(scores: Any) -> tuple[Array, list[str] | None]:
    if not isinstance(scores, Mapping):
        try:
            values, found = to_incomplete(scores, "scores")
        except InputError as wrong:
            if not hasattr(scores, "columns"):
                raise
            raise InputError(
                f"{wrong} Keep the methods' columns only; names of datasets belong elsewhere."
            ) from wrong
        return values, None if found is None else [str(name) for name in found]
    columns = [to_incomplete(column, f"scores of {name}")[0] for name, column in scores.items()]
    for name, column in zip(scores, columns, strict=True):
        if column.ndim != 1:
            raise InputError(
                f"scores of {name} must be one column, but their shape is {column.shape}."
            )
    lengths = {str(name): len(column) for name, column in zip(scores, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"scores must have one entry per dataset for every method, but the lengths are "
            f"{lengths}. Keep the datasets that all methods have."
        )
    values = np.column_stack(columns) if columns else np.empty((0, 0))
    return values, list(lengths)


def check_names(names: Any, columns: int) -> tuple[str, ...]:
    """The names, which must be different, one for each column."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise InputError(f"names must be a list of {columns} names, but {names!r} came.")
    called = tuple(str(name) for name in names)
    if len(called) != columns:
        raise InputError(f"names must be {columns}, one per method, but {len(called)} came.")
    twice = sorted({name for name in called if called.count(name) > 1})
    if twice:
        raise InputError(f"names must differ, but these came more than once: {twice[:8]}.")
    return called


def _check_known(values: Array, names: Sequence[str], finite: bool) -> None:
    bad = ~np.isfinite(values) if finite else np.isnan(values)
    if bad.any():
        row, column = (int(place) for place in np.argwhere(bad)[0])
        word = "finite" if finite else "complete"
        kind = "missing, NaN or infinite" if finite else "missing or NaN"
        rows = int(bad.any(axis=1).sum())
        raise InputError(
            f"scores must be {word}: {rows} of {len(values)} datasets have a value that is {kind} "
            f"(first at row {row}, {names[column]!r}). Leave out those datasets, or the method."
        )


def read_pair(first: Any, second: Any, names: tuple[str, str]) -> tuple[Array, Array]:
    """Two finite columns of the same length."""
    pair = []
    for values, name in zip((first, second), names, strict=True):
        column, _ = to_incomplete(values, name)
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        if column.ndim != 1:
            raise InputError(
                f"{name} must be one column, an entry per dataset, but its shape is {column.shape}."
            )
        bad = ~np.isfinite(column)
        if bad.any():
            raise InputError(
                f"{name} must be finite: {int(bad.sum())} of {len(column)} are missing, NaN or "
                f"infinite (first at row {int(np.argmax(bad))}). Leave out those datasets."
            )
        pair.append(column)
    if len(pair[0]) != len(pair[1]):
        raise InputError(
            f"{names[0]} and {names[1]} must have one entry per dataset, but {names[0]} has "
            f"{len(pair[0])} and {names[1]} has {len(pair[1])}."
        )
    return pair[0], pair[1]


def place_of(control: Any, names: Sequence[str]) -> int:
    """The column of the control: by name, or by its number from 0."""
    if isinstance(control, str) and control in names:
        return list(names).index(control)
    whole = isinstance(control, Integral) and not isinstance(control, (bool, np.bool_))
    if whole and 0 <= int(control) < len(names):
        return int(control)
    raise ParameterError(
        f"control must be the name of a method ({', '.join(map(repr, names))}) or its column, 0 to "
        f"{len(names) - 1}, but {control!r} came."
    )
