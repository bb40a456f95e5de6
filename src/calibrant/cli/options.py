"""Options that several commands share, and how their words are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.data.lazy_checks import CellsOption, check_cells
from calibrant.errors import ParameterError
from calibrant.metrics.bin_sweep import Bins, check_bin_count

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="CSV, TSV, JSON lines (all also .gz), Parquet or .xlsx. Several names, a pattern in "
        "quotes ('day-*.csv'), or - for standard input.",
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
        help="Column of scores; guessed if left out. With several classes one for each: repeat the "
        "option, or give a,b,c or 'p_*' or CLASS=COL.",
    ),
]
FittedScore = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        "-s",
        metavar="COL",
        help="Column of scores, with several classes one for each; default: as in the fit.",
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label",
        "-l",
        metavar="COL",
        help="Column of labels; guessed if left out.",
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
        help="Column of probabilities; guessed if left out. With several classes one for each: "
        "repeat the option, or give a,b,c or 'p_*' or CLASS=COL.",
    ),
]
RawColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--raw",
        metavar="COL",
        help="Column of the scores before calibration, to compare with; with several classes "
        "one for each.",
    ),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", "-w", metavar="COL", help="Column of weights ≥ 0.")
]
PosLabel = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="The label that a high score means; default: yes rather than no, else the larger.",
    ),
]
BinsWord = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="Bins of equal width; auto: of equal weight, as many as keep frequencies rising.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Threads = Annotated[
    int | None, typer.Option(min=1, show_default=False, help="Cores to use; default: all.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Most memory to use, such as 2GB; what does not fit goes to disk."
    ),
]
Folds = Annotated[
    int, typer.Option(min=0, help="Folds for the estimate of how new rows will fare; 0 for none.")
]


Level = Annotated[
    float, typer.Option(min=0, max=1, help="Confidence of the intervals; 0 for none.")
]
Replicates = Annotated[
    int, typer.Option(min=100, help="Random draws, for intervals that need them.")
]


def _apart(names: list[str] | None) -> list[str] | None:
    """Names that commas separate, one by one."""
    return [name.strip() for given in names or () for name in given.split(",")] or None


Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measures",
        metavar="NAME",
        callback=_apart,
        help="Which measures: names or groups (standard, clinical, all). Separate with commas, or "
        "repeat the option.",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="COL,...",
        callback=_apart,
        help="Columns to find groups of rows where it is wrong, such as region,age.",
    ),
]
Weighing = Annotated[
    str,
    typer.Option(
        metavar="importance|counts",
        help="Whether a weight says how much a row matters, or how many rows it stands for.",
    ),
]


EngineName = Annotated[
    str,
    typer.Option("--engine", metavar="duckdb|spark", help="What reads and writes the files."),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Address of Spark; default: all cores of this machine (local[*])."
    ),
]
Cells = Annotated[
    str,
    typer.Option(
        metavar="auto|exact|N",
        help="Keep every score, or group them into N cells; auto: group beyond a million.",
    ),
]
SegmentColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--segment",
        metavar="COL",
        help="Column of segments, such as countries: each is treated on its own. May be repeated, "
        "from coarse to fine.",
    ),
]
FitFeatures = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="COL,...",
        callback=_apart,
        help="Columns of the row to correct scores by, such as region,age; used where they help.",
    ),
]
FittedSegment = Annotated[
    list[str] | None,
    typer.Option("--segment", metavar="COL", help="Column of segments; default: as in the fit."),
]


DecimalMark = Annotated[
    str | None,
    typer.Option("--decimal", metavar=".|,", help="Decimal mark; guessed if left out."),
]
MissingRows = Annotated[
    str,
    typer.Option(
        "--missing", metavar="error|drop", help="Stop at rows without a value, or drop them."
    ),
]
StreamFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="csv|tsv|jsonl|parquet|xlsx",
        help="Format of standard input and output (-); default: csv.",
    ),
]


def read_share(word: str) -> float:
    """A probability as people write it.

    >>> read_share("20%"), read_share("0.2"), read_share("0,2")
    (0.2, 0.2, 0.2)
    """
    text = str(word).strip().replace(",", ".")  # a default is a number
    try:
        return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        raise typer.BadParameter(f"a number such as 0.2 or 20% is needed, not {word!r}.") from None


def check_weighing(weights: str, weight: str | None) -> None:
    """Refuse --weights where no column of weights is named."""
    if weights == "counts" and weight is None:
        raise ParameterError(
            "--weights counts says how a column of weights counts, but none was named. Name it "
            "with --weight COL, or leave --weights out."
        )


def read_cells(word: str) -> CellsOption:
    """The option --cells as the library takes it."""
    cells: Any = int(word) if word.isdecimal() else word
    check_cells(cells)
    return cells  # type: ignore[no-any-return]


def read_bins(word: str) -> Bins:
    """The option --bins as the library takes it."""
    return check_bin_count(int(word) if word.isdecimal() else word)
