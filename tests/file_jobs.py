"""Jobs on files as tests ask for them: with a session of their own or a given one, by keywords."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calibrant.data.lazy import Names
from calibrant.engines.apply import ApplyOptions
from calibrant.engines.open_engine import (
    Engine,
    FileScores,
    open_engine,
    read_rows,
)
from calibrant.engines.spark import Spark

__all__ = ["apply_file", "read_table"]


@contextmanager
def _engine(session: Any) -> Iterator[Engine]:
    if session is None:
        with open_engine() as engine:
            yield engine
    else:
        yield Engine(lambda: session, spark=isinstance(session, Spark))


def apply_file(
    fitted: Any,
    files: Any,
    out: Any,
    *,
    session: Any = None,
    new_segments: Any = None,
    **options: Any,
) -> int:
    """Copy files with a column of probabilities; the number of rows."""
    with _engine(session) as engine:
        return engine.apply(fitted, files, out, ApplyOptions(**options), new_segments)


def read_table(
    files: Any,
    *,
    score: str,
    label: str,
    weight: str | None = None,
    pos_label: Any = None,
    probabilities: bool = False,
    cells: Any = "exact",
    session: Any = None,
) -> FileScores:
    """The score table of files."""
    role = "probability" if probabilities else "score"
    with _engine(session) as engine:
        rows = engine.rows(files, Names(score, label, weight), role)
        return read_rows(rows, cells=cells, pos_label=pos_label)
