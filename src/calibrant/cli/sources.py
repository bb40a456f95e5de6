"""What a command is given: files, calibrators, places to write to, and shared options."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from calibrant.cli.app import Bar, note
from calibrant.data.columns import segment_columns_of
from calibrant.data.door import check_word
from calibrant.data.lazy import CellsOption, Names, check_cells
from calibrant.engines.apply import RowFitted
from calibrant.engines.files import KINDS, ReadOptions, is_calibrator, yes_of
from calibrant.engines.open_engine import Engine, RowsOfFiles, open_engine
from calibrant.errors import InputError, ParameterError, shell_quoted
from calibrant.fitting.files import load
from calibrant.fitting.fitted import Fitted
from calibrant.outputs import (
    STANDARD,
    Name,
    TemporaryFolder,
    check_different_files,
    check_output_folder,
    find_target,
    follow_links,
    path_here,
    stat_of,
)
from calibrant.rules.base import Map

Files = Sequence[str | os.PathLike[str]]
Segment = str | tuple[str, ...] | None


@dataclass(frozen=True)
class RunOptions:
    """Options of most commands: how rows are read, by what, and how the command answers."""

    decimal: Annotated[
        str | None,
        typer.Option("--decimal", metavar=".|,", help="Decimal mark; guessed if left out."),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="Encoding of CSV files, such as cp1250; default: UTF-8, else cp1252.",
        ),
    ] = None
    missing: Annotated[
        str,
        typer.Option(
            "--missing", metavar="error|drop", help="Stop at rows without a value, or drop them."
        ),
    ] = "error"
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="csv|tsv|jsonl|parquet|xlsx",
            help="Format of standard input and output (-); default: csv.",
        ),
    ] = None
    allow_one_class: Annotated[
        bool, typer.Option("--allow-one-class", help="Fit although all rows have one label.")
    ] = False
    cells: Annotated[
        str,
        typer.Option(
            metavar="auto|exact|N",
            help="Keep every score, or group them into N cells; auto: group beyond a million.",
        ),
    ] = "auto"
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="duckdb|spark", help="What reads and writes the files."),
    ] = "duckdb"
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Address of Spark; default: all cores of this machine (local[*])."
        ),
    ] = None
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False
    threads: Annotated[
        int | None, typer.Option(min=1, show_default=False, help="Cores to use; default: all.")
    ] = None
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Most memory to use, such as 2GB; what does not fit goes to disk."
        ),
    ] = None

    @contextmanager
    def open(self, *named: Name, title: str = "reading") -> Iterator[Engine]:
        """An engine for one job, with a progress bar. At the end its notes are on stderr, unless
        all is quiet.

        ``named`` are all files that the command reads or writes rows of: only ``-`` has a format.
        """
        if self.format is not None and not any(map(is_standard, named)):
            raise ParameterError(
                "--format is for standard input and output (-); a file's kind is told by its "
                "ending, such as .csv, .jsonl or .parquet. Leave --format out, or rename the file."
            )
        stream, notes = getattr(sys.stdin, "buffer", None), []
        try:
            with (
                Bar(title, self.json) as bar,
                open_engine(
                    self.engine,
                    threads=self.threads,
                    memory_limit=self.memory_limit,
                    progress=bar,
                    master=self.master,
                    reading=ReadOptions(
                        self.decimal, self.missing, stream, self.format, self.encoding
                    ),
                ) as engine,
            ):
                notes = engine.notes
                yield engine
        finally:
            for words in () if self.json else notes:
                note(words)

    def read_cells(self) -> CellsOption:
        """The option --cells as the library takes it."""
        cells: Any = int(self.cells) if self.cells.isdecimal() else self.cells
        check_cells(cells)
        return cells  # type: ignore[no-any-return]


#: the same of a command that learns nothing, and of one that holds all rows in memory
EngineRun = Annotated[RunOptions, "allow_one_class"]
LocalRun = Annotated[RunOptions, "allow_one_class", "cells", "engine", "master"]


@dataclass(frozen=True)
class FileSource:
    """Files, and which of their columns are read.

    Parameters
    ----------
    engine : what reads them
    files : names, patterns, or ``-`` for standard input
    words : of the option for scores or probabilities
        The name of one column, none where it is to be guessed, or words for the columns of
        ``several`` classes.
    label : column of labels, "" where it is to be guessed
    weight, segment : columns, if there are some
    pos_label : the positive label, if it was said
    raw : words for the columns of scores before calibration
    option : the option that the words came by: ``--score``, or ``--prob`` for probabilities
    several : whether there is a column for each of several classes
    guessed : roles whose columns were guessed
    looks : the columns by their first rows, once they were looked at
    run : how the command answers
    cells : how scores are grouped
    """

    engine: Engine
    files: Files
    words: Sequence[str] = ()
    label: str = ""
    weight: str | None = None
    pos_label: str | None = None
    segment: Segment = None
    raw: Sequence[str] = ()
    option: str = "--score"
    several: bool = False
    guessed: tuple[str, ...] = ()
    looks: Sequence[Any] = ()
    run: RunOptions = RunOptions()
    cells: CellsOption = "auto"

    @property
    def score(self) -> str:
        """The one column of scores; "" where it is to be guessed."""
        return self.words[0] if self.words else ""

    @property
    def before(self) -> str | None:
        """The one column of scores before calibration, if there is one."""
        return self.raw[0] if self.raw else None

    @property
    def probabilities(self) -> bool:
        """Whether the scores must be probabilities."""
        return self.option == "--prob"

    @property
    def role(self) -> str:
        """What messages call the scores."""
        return "probability" if self.probabilities else "score"

    @property
    def positive(self) -> Any:
        """The positive label: as asked for, or the yes of a yes and a no."""
        return yes_of if self.pos_label is None else self.pos_label

    @property
    def facts(self) -> dict[str, Any]:
        """What is worth remembering of how the columns were found."""
        return {"guessed": list(self.guessed)} if self.guessed else {}

    def refuse_beside(self, **more: Any) -> None:
        """With several classes, refuse options for one column of scores, those of the source and
        ``more``, each by its name."""
        own = {
            "segment": self.segment,
            "pos_label": self.pos_label,
            "cells": self.run.cells != "auto",
            "allow_one_class": self.run.allow_one_class,
        }
        for name, value in (own | more).items():
            if value and self.several:
                raise ParameterError(
                    f"--{name.replace('_', '-')} is for one column of scores, but several came, "
                    "one for each class. Leave it out."
                )

    def rows(self, raw: str | None = None) -> RowsOfFiles:
        """The rows, whose scores must be probabilities if the option says so; they must have a
        value in the column ``raw``, too."""
        names = Names(self.score, self.label, self.weight, self.segment, raw)
        return self.engine.rows(self.files, names, self.role)


def read_segment(words: list[str] | None) -> Segment:
    """One column of segments, several, or none.

    >>> read_segment(["country"]), read_segment(["country", "product"]), read_segment(None)
    ('country', ('country', 'product'), None)
    """
    names = segment_columns_of(words or None)
    return names if len(names) > 1 else next(iter(names), None)


# --- Calibrators that commands are given as files, and the columns that they were fitted to -------


def load_any(path: Path) -> Fitted:
    """A calibrator of any kind from its file; files of data are told as such."""
    if path.is_dir():
        raise InputError(f"a calibrator must be a file, but {path} is a folder.")
    if (
        path.suffix.lower() in KINDS.keys() - {".json"}
        and path.exists()
        and not is_calibrator(path)
    ):
        raise InputError(
            f"a calibrator must be the JSON file that calibrant fit writes, but {path} looks like "
            "a file of data."
        )
    return load(path)


def load_map(path: Path, *, by_row: bool = False) -> Fitted:
    """A calibrator of scores from its file; with ``by_row`` also one of trees on other columns."""
    loaded = load_any(path)
    if isinstance(loaded.rule, Map):
        return loaded
    fitted = RowFitted.of(loaded) if by_row else None
    if fitted is None:
        raise InputError(
            f"{path} holds {loaded.method}, which needs more of each row than its score. Apply it "
            "in Python: calibrant.load(...).predict_proba(scores, ...)."
        )
    return fitted


def refuse_swapped(calibrator: Path | None, files: Sequence[str], order: str) -> None:
    """Refuse a calibrator among the files of data, unless its own place is taken by another one.

    ``order`` is the command as it should be, with ``{calibrator}`` and ``{files}`` in it.
    """
    found = [name for name in files if is_calibrator(name)]
    if not found or (calibrator is not None and is_calibrator(calibrator)):
        return
    data = [name for name in files if name not in found]
    data += [] if calibrator is None else [str(calibrator)]
    came = f", and {data[0]} does not" if data else ""
    meant = order.format(
        calibrator=shell_quoted(found[0]),
        files=" ".join(map(shell_quoted, data)) if data else "FILE",
    )
    raise InputError(f"{found[0]} looks like a calibrator{came}. Did you mean: calibrant {meant}")


def apply_command(calibrator: Path | None) -> str:
    """The command that applies a calibrator, to copy."""
    name = "CALIBRATOR.json" if is_standard(calibrator) else shell_quoted(str(calibrator))
    return f"calibrant apply {name} NEW.csv -o OUT.csv"


def score_column(fitted: Fitted, asked: Sequence[str]) -> str:
    """The one column of scores: as asked for, or as in the fit; "" where neither says it."""
    if len(asked) > 1:
        raise InputError(
            f"this calibrator reads one column of scores, but {len(asked)} were named."
        )
    known = asked[0] if asked else fitted.provenance.get("score_column")
    return known if isinstance(known, str) else ""


def segment_column(fitted: Fitted, asked: list[str] | None) -> Segment:
    """The columns of segments: as asked for, or as in the fit; None for a calibrator without."""
    if asked or fitted.map.segments is None:
        return read_segment(asked)
    known = fitted.provenance.get("segment_column")
    if isinstance(known, tuple) and all(isinstance(name, str) for name in known):
        return known
    if not isinstance(known, str):
        raise InputError(
            "the calibrator has a map for each segment, but does not know their column. Name it "
            "with --segment COL, several from coarse to fine."
        )
    return known


# --- Where a command reads and writes: no file is both, and none is written twice -----------------
# A result on standard output (``-``) is there whole or not at all; words for people go to stderr.

PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")


class OutputOption(NamedTuple):
    """What an option names: a file to be written, with one of some endings.

    Parameters
    ----------
    path : path, or a URL, of which the engine knows more; None if the option was not given
    endings : those that are allowed; any by default
    folder : whether a folder of that name is written
    stream : whether ``-`` stands for standard output
    """

    path: Name | None
    endings: Sequence[str] = ()
    folder: bool = False
    stream: bool = False


def check_places(outputs: Mapping[str, OutputOption], read: Iterable[Name | None]) -> None:
    """Refuse outputs that cannot be written, that are read, or that are one: before any work.

    Parameters
    ----------
    outputs : by the option that names each
    read : files, globs, folders and URLs that the command reads
    """
    written: dict[str, Path] = {}
    for option, output in outputs.items():
        if output.path is None or (output.stream and is_standard(output.path)):
            continue
        path = path_here(output.path)
        if path is None:
            continue
        if output.folder and (os.path.isdir(path) or not os.path.exists(path)):
            final = follow_links(path)
            check_output_folder(final.parent)
            stat_of(final)
        else:
            slash = str(output.path).endswith(("/", os.sep))  # which a Path drops
            find_target(f"{path}/" if slash else path)
        if output.endings and path.suffix.lower() not in output.endings:
            raise InputError(f"{path.name} must end in {' or '.join(output.endings)}.")
        written[option] = path
    # what is not there yet is no input: then there is no need to look into folders
    there = any(stat_of(path) is not None for path in written.values())
    names = [path for name in read if name is not None and (path := path_here(name)) is not None]
    check_different_files(
        written, (file for path in names for file in (_files(path) if there else [path]))
    )


def _files(path: Path) -> Iterator[Path]:
    """The files that a name, a glob or a folder stands for."""
    if os.path.isdir(path):
        yield from (file for file in path.rglob("*") if not file.is_dir())
    elif os.path.exists(path):
        yield path
    else:
        patterns = {str(path), *_braces(str(path))}  # braces may also be a part of the name
        found = [Path(file) for one in patterns for file in glob.iglob(one, recursive=True)]
        yield from found or [path]


def _braces(pattern: str) -> list[str]:
    """The patterns that one with alternatives, as Spark knows them, stands for.

    >>> _braces("day-{1,2}.csv")
    ['day-1.csv', 'day-2.csv']
    """
    found = re.search(r"\{([^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [one for word in found[1].split(",") for one in _braces(before + word + after)]


# --- standard output ----------------------------------------------------------------------------


def is_standard(output: Name | None) -> bool:
    """Whether an output is standard output."""
    return output is not None and os.fspath(output) == STANDARD


def said_name(output: Name) -> str:
    """What an output is called."""
    return "standard output" if is_standard(output) else str(output)


def check_direction(direction: str, *, several: bool = False, features: bool = False) -> None:
    """Refuse a direction that is none, or that is not for these scores."""
    check_word("--direction", direction, ("rising", "falling", "auto"))
    if direction != "rising" and (several or features):
        beside = "columns of several classes" if several else "--features"
        raise ParameterError(f"--direction is for one column of scores, not beside {beside}.")


def refuse_two(output: Name, json: bool) -> None:
    """Refuse a result and a JSON document that would both go to standard output."""
    if json and is_standard(output):
        raise ParameterError(
            "--json and --output - would both write to standard output: leave one of them out."
        )


def words_beside(output: Name) -> AbstractContextManager[Any]:
    """Where the result goes to standard output, words for people go to stderr."""
    return redirect_stdout(sys.stderr) if is_standard(output) else nullcontext()


@contextmanager
def place_of(output: str, format: str | None) -> Iterator[str]:
    """The file to write: the output, or one that is copied to standard output at the end.

    Nothing is there before the file is whole. It lies in a folder that no one else can read, and
    is removed. Sheets are only read: their rows are written as CSV.
    """
    if not is_standard(output):
        yield output
        return
    ending = "csv" if format in (None, "xlsx") else format
    with TemporaryFolder() as folder:
        place = Path(folder) / f"stdout.{ending}"
        yield str(place)
        with place.open("rb") as whole:
            shutil.copyfileobj(whole, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()


# --- Options that several commands share, and how their words are read ----------------------------

FileNames = Annotated[
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
    typer.Option("--label", "-l", metavar="COL", help="Column of labels; guessed if left out."),
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
Direction = Annotated[
    str,
    typer.Option(
        metavar="rising|falling|auto",
        help="Whether a high score means the positive label, or a low one, as of credit scores.",
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
MoreMeasures = Annotated[
    list[str] | None,
    typer.Option(
        "--measures",
        metavar="NAME",
        callback=_apart,
        help="Measures beside the standard ones: names or groups (clinical, all). Separate with "
        "commas, or repeat the option.",
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
