"""Options that several commands share, and the database that they read with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.console import Bar

if TYPE_CHECKING:
    from calibrant.engines.duckdb import Session

__all__ = [
    "Bins",
    "CalibratorFile",
    "Files",
    "Folds",
    "Json",
    "LabelColumn",
    "Level",
    "MemoryLimit",
    "PosLabel",
    "ProbColumn",
    "RawColumn",
    "Replicates",
    "ScoreColumn",
    "Threads",
    "Weighing",
    "WeightColumn",
    "session_for",
]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, JSON lines (also .gz) or Parquet; several, or globs in quotes.",
    ),
]
CalibratorFile = Annotated[
    Path, typer.Argument(metavar="CALIBRATOR", show_default=False, help="File that fit wrote.")
]
ScoreColumn = Annotated[
    str, typer.Option("--score", "-s", metavar="COL", help="Column of scores of any kind.")
]
LabelColumn = Annotated[
    str, typer.Option("--label", "-l", metavar="COL", help="Column of labels, any two values.")
]
ProbColumn = Annotated[
    str, typer.Option("--prob", "-p", metavar="COL", help="Column of probabilities.")
]
RawColumn = Annotated[
    str | None,
    typer.Option("--raw", metavar="COL", help="Column of scores before calibration, to compare."),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", "-w", metavar="COL", help="Column of weights ≥ 0.")
]
PosLabel = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="What a high score means; default: the larger label."),
]
Bins = Annotated[int, typer.Option(min=1, help="Bins of equal width for ECE and MCE.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Threads = Annotated[
    int | None, typer.Option(min=1, show_default=False, help="Cores to use; default: all.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Such as 2GB; what does not fit is spilled to disk."),
]
Folds = Annotated[
    int, typer.Option(min=0, help="Folds of the estimate for new rows; 0: no estimate.")
]


Level = Annotated[
    float, typer.Option(min=0, max=1, help="Confidence of the intervals; 0: no intervals.")
]
Replicates = Annotated[int, typer.Option(min=100, help="Tables drawn for intervals that need it.")]
Weighing = Annotated[
    str,
    typer.Option(
        metavar="counts|importance", help="To intervals a weight is so many rows, or one row."
    ),
]


@contextmanager
def session_for(
    title: str, quiet: bool, threads: int | None, memory: str | None
) -> Iterator[Session]:
    """A database for one job, with a progress bar."""
    from calibrant.engines.duckdb import Session

    with (
        Bar(title, quiet) as bar,
        Session(threads=threads, memory_limit=memory, progress=bar) as session,
    ):
        yield session
