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

from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.outputs import find_target, keep_apart
from calibrant.result_tables import worded
from calibrant.version import __version__


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
        return {str(key): worded(value) for key, value in source.items() if value is not None}
    if isinstance(source, (list, tuple)):
        return {"source": worded(source)}
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


def check_texts(**texts: Any) -> None:
    """Refuse words for the page that are no text."""
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ParameterError(f"{name} must be a str, but {type(value).__name__} came.")


def check_output(output: Any, *sources: Any) -> None:
    """Refuse, before anything is made, an output that is among the files of its sources."""
    if output is not None:
        find_target(output)
        keep_apart({"the output": output}, source_files(sources))


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
