"""Columns by name: one that is not there, there twice or in a wrong place; names of new ones."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError


def open_any(values: Any, *, series: bool = False) -> Any:
    """A frame (or a series) as narwhals sees it, anything else as it is; InputError for a frame
    with several columns of one name, which nothing could tell apart."""
    import narwhals as nw

    if type(values).__module__.startswith("pyarrow") and type(values).__name__ == "RecordBatch":
        import pyarrow  # present, since the value is one of its batches

        values = pyarrow.Table.from_batches([values])
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
    prefix, such as ``p_no`` and ``p_yes``; other names tell nothing here (see `as_in_fit`).

    >>> import pandas as pd
    >>> check_class_columns(pd.DataFrame({"yes": [0.9], "no": [0.1]}), ["no", "yes"], "scores")
    Traceback (most recent call last):
        ...
    calibrant.errors.InputError: scores must have the columns 'no', 'yes' in this order, but \
they came as 'yes', 'no'. Columns are read by their place: pass frame[['no', 'yes']].
    """
    native = getattr(values, "column_names", None) or getattr(values, "columns", None)
    if native is None or callable(native):
        return
    ordered = _by_classes(native, classes)
    if ordered is not None and ordered != [str(column) for column in native]:
        right, came = (", ".join(map(repr, each[:8])) for each in (ordered, list(map(str, native))))
        raise InputError(
            f"{name} must have the columns {right} in this order, but they came as {came}. "
            f"Columns are read by their place: pass frame[{ordered[:8]}]."
        )


def _by_classes(names: Sequence[Any], classes: Sequence[Any] | NDArray[Any]) -> list[str] | None:
    """Columns that are named by the classes, in the order of these; None for other names."""
    found, wanted = [str(column) for column in names], [str(label) for label in classes]
    if len(found) != len(wanted) or len(found) < 2:
        return None
    starts = {
        found[0][: -len(end)] if end else found[0] for end in wanted if found[0].endswith(end)
    }
    each = [[start + label for label in wanted] for start in sorted(starts)]
    fitting = [ordered for ordered in each if sorted(ordered) == sorted(found)]
    return found if found in fitting else fitting[0] if fitting else None


# --- the names of the fit -------------------------------------------------------------------------


def column_names(values: Any) -> tuple[str | int, ...]:
    """The names of two columns or more of a frame in memory, all words or all whole numbers.

    Names of other kinds (of several levels, dates, words beside numbers) are told by their text.

    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"low": [0.3], "high": [0.7]})), column_names([[0.3, 0.7]])
    (('low', 'high'), ())
    """
    frame = _frame_of(values)
    if frame is None:
        return ()
    return _usable(frame.columns) or _usable([str(name) for name in frame.columns])


def column_facts(scores: Any) -> dict[str, Any]:
    """What the provenance of a fit says of the columns of scores; nothing where they have no names.

    >>> column_facts([[0.3, 0.7]])
    {}
    """
    names = column_names(scores)
    return {"score_columns": list(names)} if names else {}


def as_in_fit(
    scores: Any,
    provenance: Mapping[str, Any],
    classes: Sequence[Any] | NDArray[Any],
) -> Any:
    """Scores with their columns in the order of the fit, whose ``provenance`` knows their names.

    Other names are refused, but for those of the classes. Scores without names (arrays), and
    those of a fit that knew none, are returned as they are: their columns go by place.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"high": [0.7], "low": [0.1], "mid": [0.2]})
    >>> as_in_fit(frame, {"score_columns": ["low", "mid", "high"]}, [0, 1, 2]).columns.tolist()
    ['low', 'mid', 'high']
    """
    known = _usable(provenance.get("score_columns"))
    if known and _by_classes(column_names(scores), classes) is not None:
        check_class_columns(scores, classes, "scores")
        return scores
    return in_order(scores, known, "scores")


def names_as_in_fit(
    names: tuple[str, ...],
    provenance: Mapping[str, Any],
    classes: Sequence[Any] | NDArray[Any],
) -> tuple[str, ...]:
    """Names of columns of scores in the order of the fit or of the classes, where they are those;
    others as they came.

    >>> names_as_in_fit(("high", "low"), {"score_columns": ["low", "high"]}, ["a", "b"])
    ('low', 'high')
    >>> names_as_in_fit(("p_b", "p_a"), {}, ["a", "b"]), names_as_in_fit(("x", "u"), {}, ["a", "b"])
    (('p_a', 'p_b'), ('x', 'u'))
    """
    known = tuple(map(str, _usable(provenance.get("score_columns"))))
    if sorted(names) == sorted(known):
        return known
    return tuple(_by_classes(names, classes) or names)


def in_order(frame: Any, names: Sequence[Any], refused_as: str = "") -> Any:
    """The frame with its columns in this order, if they have just these names.

    As many other names of the same kind are an InputError where ``refused_as`` says what they are
    the names of.

    >>> import pandas as pd
    >>> in_order(pd.DataFrame({"b": [1], "a": [2]}), ("a", "b")).columns.tolist()
    ['a', 'b']
    """
    found = column_names(frame) if len(names) else ()
    if found == tuple(names) or len(found) != len(names):
        return frame
    if set(found) == set(names):
        return _frame_of(frame)[:, [found.index(name) for name in names]].to_native()
    if refused_as and type(found[0]) is type(names[0]):
        lacking, other = (
            ", ".join([repr(one) for one in these if one not in those][:8])
            for these, those in ((names, found), (found, names))
        )
        raise InputError(
            f"{refused_as} must have the columns of the fit, in any order: {lacking} missing, "
            f"{other} unexpected. Rename them, or pass an array, whose columns go by their place."
        )
    return frame


def _frame_of(values: Any) -> Any:
    """A frame in memory as narwhals sees it; None for anything else."""
    kind = type(values)
    if not (hasattr(kind, "columns") or hasattr(kind, "column_names")):
        return None  # and narwhals is not imported for arrays
    import narwhals as nw

    opened = open_any(values)
    return opened if isinstance(opened, nw.DataFrame) else None


def _usable(names: Any) -> tuple[str | int, ...]:
    """Names that tell columns apart: two or more, all words or all whole numbers."""
    listed = list(names) if isinstance(names, (list, tuple)) else []
    given = tuple(name.item() if isinstance(name, np.generic) else name for name in listed)
    alike = any(all(type(name) is kind for name in given) for kind in (str, int))
    return given if len(given) > 1 and alike and len(set(given)) == len(given) else ()


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
