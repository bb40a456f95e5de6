"""Options that several commands share, and the database that they read with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from calibrant.cli.console import Bar, note

if TYPE_CHECKING:
    from calibrant.data.lazy_checks import CellsOption
    from calibrant.engines.files.read_options import ReadOptions
    from calibrant.engines.open_engine import Engine

__all__ = [
    "Bins",
    "CalibratorFile",
    "Cells",
    "DecimalMark",
    "EngineName",
    "EngineOptions",
    "Files",
    "FittedLabel",
    "FittedScore",
    "FittedSegment",
    "Folds",
    "Json",
    "LabelColumn",
    "Level",
    "Master",
    "MemoryLimit",
    "MissingRows",
    "PosLabel",
    "ProbColumn",
    "RawColumn",
    "Replicates",
    "ScoreColumn",
    "SegmentColumn",
    "StreamFormat",
    "Threads",
    "Weighing",
    "WeightColumn",
    "engine_for",
    "read_cells",
    "read_options",
]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, JSON lines (also .gz), Parquet or .xlsx; several, globs in quotes, or - "
        "for standard input.",
    ),
]
CalibratorFile = Annotated[
    Path, typer.Argument(metavar="CALIBRATOR", show_default=False, help="File that fit wrote.")
]
ScoreColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        "-s",
        metavar="COL",
        help="Column of scores of any kind, default: a guess; of several classes one for each: "
        "repeat it, or 'p_*', or CLASS=COL.",
    ),
]
FittedScore = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        "-s",
        metavar="COL",
        help="Column of scores; of several classes one for each; default: as in the fit.",
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label",
        "-l",
        metavar="COL",
        help="Column of labels, two values or several classes; default: a guess.",
    ),
]
FittedLabel = Annotated[
    str | None,
    typer.Option("--label", "-l", metavar="COL", help="Column of labels; default: as in the fit."),
]
ProbColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--prob",
        "-p",
        metavar="COL",
        help="Column of probabilities, default: a guess; of several classes one for each: repeat "
        "it, or 'p_*', or CLASS=COL.",
    ),
]
RawColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--raw",
        metavar="COL",
        help="Column of scores before calibration, to compare; of several classes one for each.",
    ),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", "-w", metavar="COL", help="Column of weights ≥ 0.")
]
PosLabel = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="What a high score means; default: yes rather than no, else the larger.",
    ),
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
        metavar="importance|counts", help="To intervals a weight is one row, or so many rows."
    ),
]


EngineName = Annotated[
    str,
    typer.Option("--engine", metavar="duckdb|spark", help="What reads and writes the files."),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Of Spark; default: all cores of this machine (local[*])."),
]
Cells = Annotated[
    str,
    typer.Option(
        metavar="auto|exact|N",
        help="Keep scores one by one, or put them into N cells; auto: cells beyond a million.",
    ),
]
SegmentColumn = Annotated[
    str | None,
    typer.Option("--segment", metavar="COL", help="Column of segments: a map for each of them."),
]
FittedSegment = Annotated[
    str | None,
    typer.Option("--segment", metavar="COL", help="Column of segments; default: as in the fit."),
]


DecimalMark = Annotated[
    str | None,
    typer.Option("--decimal", metavar=".|,", help="Mark before decimals; default: as it looks."),
]
MissingRows = Annotated[
    str,
    typer.Option("--missing", metavar="error|drop", help="What to do with rows without a value."),
]
StreamFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="csv|tsv|jsonl|parquet|xlsx",
        help="What standard input (-) is, and standard output; default: csv.",
    ),
]


class EngineOptions(NamedTuple):
    """Where the work is done: which engine, with how much of the machine; how files are read."""

    name: str = "duckdb"
    master: str | None = None
    threads: int | None = None
    memory_limit: str | None = None
    reading: ReadOptions | None = None


def read_options(
    decimal: str | None = None, missing: str = "error", format: str | None = None
) -> ReadOptions:
    """How files are read, standard input among them."""
    from calibrant.engines.files.read_options import ReadOptions

    return ReadOptions(decimal, missing, getattr(sys.stdin, "buffer", None), format)


@contextmanager
def engine_for(title: str, quiet: bool, place: EngineOptions) -> Iterator[Engine]:
    """An engine for one job, with a progress bar. At the end its notes are on stderr, unless
    ``quiet``."""
    from calibrant.engines.open_engine import open_engine

    place = place._replace(reading=place.reading or read_options())
    notes: list[str] = []
    try:
        with (
            Bar(title, quiet) as bar,
            open_engine(**place._asdict(), progress=bar) as engine,
        ):
            notes = engine.notes
            yield engine
    finally:
        for words in () if quiet else notes:
            note(words)


def read_cells(word: str) -> CellsOption:
    """The option --cells as the library takes it."""
    from calibrant.data.lazy_checks import check_cells

    cells: Any = int(word) if word.isdecimal() else word
    check_cells(cells)
    return cells  # type: ignore[no-any-return]
