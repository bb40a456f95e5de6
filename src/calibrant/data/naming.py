"""Columns by name: one that is not there, there twice or in a wrong place; names of new ones."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from calibrant.errors import InputError


def open_any(values: Any, *, series: bool = False) -> Any:
    """A frame (or a series) as narwhals sees it, anything else as it is; InputError for a frame
    with several columns of one name, which nothing could tell apart."""
    import narwhals as nw

    try:
        opened = nw.from_native(values, allow_series=series, pass_through=True)
    except nw.exceptions.DuplicateError:
        native: Any = getattr(values, "column_names", None) or getattr(values, "columns", ())
        _refuse_repeated(list(native))
        raise  # pragma: no cover - narwhals has seen what we have not
    if isinstance(opened, nw.LazyFrame) and opened.implementation.is_spark_like():
        _refuse_repeated(list(values.columns))
    return opened


def _refuse_repeated(names: Sequence[Any]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        shown = ", ".join(map(repr, twice[:8]))
        raise InputError(
            f"the columns of a frame must have different names, but several are called {shown}. "
            "Rename or drop those first."
        )


def unknown_column(name: str, role: str, names: Sequence[str], of: str) -> str:
    """Which columns there are, and which of them may have been meant.

    >>> unknown_column("scroe", "score", ["id", "score"], "the frame")
    "the frame has no column 'scroe' (score). Its columns are 'id', 'score'. Did you mean 'score'?"
    """
    lower = {str(known).strip().lower(): known for known in names}
    asked = name.strip().lower()
    near = difflib.get_close_matches(asked, lower, n=1, cutoff=0.5) or [
        known for known in lower if asked and known.startswith(asked)
    ]
    shown = ", ".join(repr(known) for known in names[:30])
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
    what = f"column {name!r}{f' ({role})' if role else ''}"
    return f"{of} has no {what}. Its columns are {shown}{more}.{hint}"


def check_class_columns(values: Any, classes: Sequence[Any] | NDArray[Any], name: str) -> None:
    """Refuse a frame whose columns are named by the classes, but stand in another order.

    Columns are read by their place. Names tell that the place is wrong, also behind a common
    prefix, such as ``p_no`` and ``p_yes``; other names tell nothing.

    >>> import pandas as pd
    >>> check_class_columns(pd.DataFrame({"yes": [0.9], "no": [0.1]}), ["no", "yes"], "scores")
    Traceback (most recent call last):
        ...
    calibrant.errors.InputError: scores must have the columns 'no', 'yes' in this order, but \
they came as 'yes', 'no'. Columns are read by their place: pass frame[['no', 'yes']].
    """
    native = getattr(values, "column_names", None) or getattr(values, "columns", None)
    if native is None or callable(native) or len(native) != len(classes):
        return
    found = [str(column) for column in native]
    wanted = [str(label) for label in classes]
    if len(found) < 2 or found == wanted:
        return
    starts = {
        found[0][: -len(end)] if end else found[0] for end in wanted if found[0].endswith(end)
    }
    for start in starts:
        ordered = [start + label for label in wanted]
        if found != ordered and sorted(found) == sorted(ordered):
            right, came = (", ".join(map(repr, each[:8])) for each in (ordered, found))
            raise InputError(
                f"{name} must have the columns {right} in this order, but they came as {came}. "
                f"Columns are read by their place: pass frame[{ordered[:8]}]."
            )


def class_column_names(into: str, classes: Sequence[Any]) -> list[str]:
    """The names of new columns of several classes: by their labels, if all of those differ.

    >>> class_column_names("p", ["ape", "bee"]), class_column_names("p", ["a", "A"])
    (['p_ape', 'p_bee'], ['p_0', 'p_1'])
    """
    labels = ["".join(c if c.isprintable() else "_" for c in str(label)) for label in classes]
    if len({text.lower() for text in labels}) != len(labels):
        labels = [str(i) for i in range(len(labels))]
    return [f"{into}_{text}" for text in labels]


def segment_names(segment: Any) -> tuple[str, ...]:
    """The names of the columns of segments, from coarse to fine: none, one or several.

    >>> segment_names(None), segment_names("country"), segment_names(["country", "product"])
    ((), ('country',), ('country', 'product'))
    """
    given = () if segment is None else (segment,) if isinstance(segment, str) else segment
    listed = tuple(given) if isinstance(given, (list, tuple)) else ()
    if segment is not None and not (listed and all(isinstance(name, str) for name in listed)):
        raise InputError(
            f"segment must be the name of a column, or a list of names, but {segment!r} came."
        )
    if len(set(listed)) < len(listed):
        raise InputError(f"the columns of segments must differ, but {list(listed)} came.")
    return listed


def check_segment_names(names: Sequence[str], columns: int) -> None:
    """Refuse fewer or more columns of segments than a calibrator has."""
    if len(names) != columns:
        need = "one column" if columns == 1 else f"{columns} columns, from coarse to fine"
        raise InputError(
            f"this calibrator has segments of {need}, but {len(names)} came: {list(names)}. Name "
            "those of the fit, in their order."
        )
