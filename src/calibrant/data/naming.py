"""Columns by name: one that is not there, and names that an engine would misread."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["plain_names", "unknown_column"]


def unknown_column(name: str, role: str, names: Sequence[str], of: str) -> str:
    """Which columns there are, and which of them may have been meant.

    >>> unknown_column("scroe", "score", ["id", "score"], "the frame")
    "the frame has no column 'scroe' (score). Its columns are 'id', 'score'. Did you mean 'score'?"
    """
    lower = {known.strip().lower(): known for known in names}
    asked = name.strip().lower()
    near = difflib.get_close_matches(asked, lower, n=1, cutoff=0.5) or [
        known for known in lower if asked and known.startswith(asked)
    ]
    shown = ", ".join(repr(known) for known in names[:30])
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
    what = f"column {name!r}{f' ({role})' if role else ''}"
    return f"{of} has no {what}. Its columns are {shown}{more}.{hint}"


def plain_names(frame: nw.LazyFrame[Any]) -> tuple[nw.LazyFrame[Any], dict[str, str]]:
    """The frame with names that can be used, and the new name of each column by its old one.

    Spark reads a dot as the way into a structure and backticks as quotes.
    """
    import narwhals as nw

    names = frame.collect_schema().names()
    plain = [name.replace(".", "_").replace("`", "_") for name in names]
    if not frame.implementation.is_spark_like() or plain == names:
        return frame, {name: name for name in names}
    native: Any = frame.to_native()
    if len({name.lower() for name in plain}) < len(plain):
        plain = [f"{name}_{i}" for i, name in enumerate(plain)]
    renamed: nw.LazyFrame[Any] = nw.from_native(native.toDF(*plain))
    return renamed, dict(zip(names, plain, strict=True))
