"""Where a report comes from: counts, files, a fingerprint of the data, and versions."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.labels import plain
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.reports.contest import Data
from calibrant.version import __version__

__all__ = ["counted", "data_facts", "fingerprint", "map_facts", "source_facts", "version_facts"]


def source_facts(source: Any) -> dict[str, str]:
    """What the caller says of the data: a name, several, or a mapping of words to values.

    >>> source_facts("scores.csv"), source_facts({"date": "2026-03-01"})
    ({'source': 'scores.csv'}, {'date': '2026-03-01'})
    """
    if source is None:
        return {}
    if isinstance(source, (str, os.PathLike)):
        return {"source": os.fspath(source)}
    if isinstance(source, Mapping):
        return {str(key): _worded(value) for key, value in source.items() if value is not None}
    if isinstance(source, (list, tuple)):
        return {"source": _worded(source)}
    raise InputError(
        "source must be a name, a list of names or a mapping of words to values, but "
        f"{type(source).__name__} came."
    )


def source_files(source: Any) -> list[str]:
    """The files among what the caller says of the data.

    >>> source_files({"files": ["no such file.csv"], "date": "2026-03-01"})
    []
    """
    if isinstance(source, Mapping):
        source = list(source.values())
    if isinstance(source, (list, tuple)):
        return [file for item in source for file in source_files(item)]
    named = isinstance(source, (str, os.PathLike)) and os.path.isfile(source)
    return [os.fspath(source)] if named else []


def _worded(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_worded(item) for item in value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return counted(value)
    return str(value)


def counted(value: float) -> str:
    """A number of rows or a weight.

    >>> counted(12345.0), counted(0.25)
    ('12,345', '0.25')
    """
    return f"{value:,.10g}"


def data_facts(data: Data, score_name: str, label_name: str) -> dict[str, str]:
    """What the data are: columns, labels, counts, fingerprint."""
    table = data.table
    negative, positive = _labels(data)
    share = 100 * table.total_positive / table.total
    facts = {
        "score": score_name,
        "label": f"{label_name}: {positive!r} against {negative!r}",
    }
    weighted = False
    if data.rows is not None:
        weight = data.rows.weight
        weighted = weight is not None
        facts["rows"] = counted(len(data.rows.scores) if weight is None else (weight > 0).sum())
    if data.rows is None or weighted:
        facts["weight"] = counted(table.total)
        facts["effective rows"] = f"{table.effective_size:,.0f}"
    facts[f"of them {positive!r}"] = f"{counted(table.total_positive)} ({share:.3g} %)"
    if table.error:
        moved = f"no score was moved by more than {table.error:.2g}"
        facts["scores"] = f"{len(table):,} of {table.made}; {moved}"
    else:
        facts["distinct scores"] = f"{len(table):,}"
    columns = (table.scores, table.negative, table.positive, table.negative_sq, table.positive_sq)
    facts["fingerprint of the data"] = fingerprint(*columns)
    return facts


def _labels(data: Data) -> tuple[Any, Any]:
    first, second = (plain(label) for label in data.classes)
    return (first, second) if data.positive_column == 1 else (second, first)


def fingerprint(*columns: NDArray[Any]) -> str:
    """SHA-256 of arrays: the same rows in any order, and as a table, have the same one."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"


def map_facts(fitted: Fitted | None) -> dict[str, str]:
    """What was fitted."""
    if fitted is None:
        return {}
    given = {k: v for k, v in fitted.params.items() if k not in ("pos_label", "classes")}
    facts = {"method": fitted.method or "(not said)"}
    if given:
        facts["parameters"] = ", ".join(f"{k}={v}" for k, v in given.items())
    return {**facts, "map": repr(fitted.map)}


def version_facts() -> dict[str, str]:
    """What computed it."""
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return {
        "calibrant": __version__,
        "with": f"Python {platform.python_version()}, {others}",
    }
