"""What a command reads: its files, the columns that were named, and the engine that reads them."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from calibrant.cli.console import Bar, note
from calibrant.data.columns import segment_columns_of, unknown_column
from calibrant.data.lazy import CellsOption, check_cells
from calibrant.engines.files.files import ReadOptions, repeatable
from calibrant.engines.files.spelling import Label, match_label, sorted_classes, typed, yes_of
from calibrant.engines.open_engine import Engine, open_engine
from calibrant.errors import InputError, ParameterError, quoted
from calibrant.metrics.cells import Bins, check_bin_count
from calibrant.outputs import (
    STANDARD,
    Name,
    TemporaryFolder,
    check_folder,
    find_target,
    follow,
    keep_apart,
    path_of_url,
    stat_of,
)

Files = Sequence[str | os.PathLike[str]]
Segment = str | tuple[str, ...] | None


class EngineOptions(NamedTuple):
    """Where the work is done: which engine, with how much of the machine; how files are read."""

    name: str
    master: str | None
    threads: int | None
    memory_limit: str | None
    reading: ReadOptions


def engine_options(
    decimal: str | None = None,
    missing: str = "error",
    format: str | None = None,
    threads: int | None = None,
    memory_limit: str | None = None,
    engine: str = "duckdb",
    master: str | None = None,
    *,
    named: Sequence[Name] = (),
) -> EngineOptions:
    """The same from the options of a command; standard input is that of the process.

    ``named`` are all files that the command reads or writes rows of: a format is for ``-`` only.
    """
    if format is not None and not any(map(is_standard, named)):
        raise ParameterError(
            "--format is for standard input and output (-); a file's kind is told by its ending, "
            "such as .csv, .jsonl or .parquet. Leave --format out, or rename the file."
        )
    reading = ReadOptions(decimal, missing, getattr(sys.stdin, "buffer", None), format)
    return EngineOptions(engine, master, threads, memory_limit, reading)


@dataclass(frozen=True)
class FileSource:
    """Files, and which of their columns are read.

    Parameters
    ----------
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
    place : what reads the files, and how; DuckDB by default
    quiet : whether nothing but JSON is printed
    """

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
    place: EngineOptions | None = None
    quiet: bool = False

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

    def refuse_beside(self, **given: Any) -> None:
        """With several classes, refuse options for one column of scores, each by its name."""
        for name, value in given.items():
            if value and self.several:
                raise ParameterError(
                    f"--{name.replace('_', '-')} is for one column of scores, but several came, "
                    "one for each class. Leave it out."
                )

    @contextmanager
    def engine(self, title: str = "reading") -> Iterator[Engine]:
        """An engine for one job, with a progress bar. At the end its notes are on stderr, unless
        all is quiet."""

        place = self.place or engine_options()
        notes: list[str] = []
        try:
            with (
                Bar(title, self.quiet) as bar,
                open_engine(**place._asdict(), progress=bar) as engine,
            ):
                notes = engine.notes
                yield engine
        finally:
            place.reading.close()
            for words in () if self.quiet else notes:
                note(words)


def find_source(
    files: Sequence[str],
    words: Sequence[str] | None,
    label: str | None,
    weight: str | None,
    pos_label: str | None,
    place: EngineOptions,
    quiet: bool,
    *,
    segment: list[str] | None = None,
    raw: Sequence[str] | None = None,
    option: str = "--score",
) -> FileSource:
    """The source of a command. Where only the columns of the files tell whether words stand for
    one column or for several, the files are looked at.

    Files of probabilities are looked at, too, where no column was named: `apply` may have written
    some for several classes.
    """
    unnamed = option == "--prob" and not words
    unclear = unnamed or must_look(words)
    if STANDARD in files and unclear:  # it is read twice
        place = place._replace(reading=repeatable(place.reading))
    source = FileSource(
        files, words or (), label or "", weight, pos_label, read_segment(segment), raw or (), option
    )
    source = replace(source, several=len(source.words) > 1, place=place, quiet=quiet)
    if place.name == "duckdb" and unclear:
        source = _looked_at(source, place.reading)
    if len(source.raw) > 1 and not source.several:
        raise ParameterError(
            f"--raw must name one column, as --prob does, but {len(source.raw)} came. With several "
            "classes name a column of probabilities for each, too."
        )
    return source


def _looked_at(source: FileSource, reading: ReadOptions) -> FileSource:
    """The source with one column of scores, or with several classes, as the files have them."""
    from calibrant.cli.columns import applied_classes

    try:
        with open_engine(reading=reading) as engine:
            if not source.words:
                found = applied_classes(engine, source.files)
                guessed = ("score",) if found else ()
                return replace(source, words=found, several=bool(found), guessed=guessed)
            names, taken = engine.columns(source.files), (source.label, source.weight)
            asked = expand(source.words, names, option="--score", taken=taken)
    except BaseException:
        reading.close()  # there will be no job
        raise
    if len(asked) == 1 and asked[0].said is None:
        return replace(source, words=(asked[0].column,))
    return replace(source, several=True)


def read_segment(words: list[str] | None) -> Segment:
    """One column of segments, several, or none.

    >>> read_segment(["country"]), read_segment(["country", "product"]), read_segment(None)
    ('country', ('country', 'product'), None)
    """
    names = segment_columns_of(words or None)
    return names if len(names) > 1 else next(iter(names), None)


# --- Which column holds the score of which class: as said, or by the names of the columns ---------


#: classes that a line or a message shows
SHOWN = 8


def some_of(words: Sequence[str], more: str = "") -> str:
    """Words in a row: only the first of many, with ``more`` behind the dots.

    >>> some_of(["a", "b"]), some_of("abcdefghij", " (10)")
    ('a, b', 'a, b, c, d, e, f, g, h, … (10)')
    """
    return ", ".join(words[:SHOWN]) + (f", …{more}" if len(words) > SHOWN else "")


class AskedColumn(NamedTuple):
    """A column of scores, and the class that it was said to be for."""

    column: str
    said: str | None = None


class ColumnsByClass(NamedTuple):
    """The classes in sorted order, and the column of each."""

    classes: tuple[Label, ...]
    columns: tuple[str, ...]

    def line(self, option: str, guessed: str = "") -> str:
        """Which column is taken for which class, in one line; ``guessed`` is that of the labels."""
        pairs = zip(self.classes, self.columns, strict=True)
        each = [f"{_called(column)} is {label!r}" for label, column in pairs]
        shown = some_of(each, f" ({len(each)} classes)")
        label = f"label = `{guessed}`, " if guessed else ""
        other = "--label COL, " if guessed else ""
        return f"Columns: {label}{shown}. To name others: {other}{option} CLASS=COLUMN."


def _called(column: str) -> str:
    """A column as a line names it: in marks if it holds more than letters and digits."""
    return column if re.fullmatch(r"\w+", column) else f"`{column}`"


def are_special(words: Sequence[str]) -> bool:
    """Whether words may stand for several columns: more than one, a pattern, CLASS=COLUMN, or
    names with commas between them."""
    return len(words) > 1 or any(re.search(r"[*?=\[,]", word) for word in words)


def must_look(words: Sequence[str] | None) -> bool:
    """Whether only the columns of the files tell if a single word stands for one or several."""
    return words is not None and len(words) == 1 and are_special(words)


def expand(
    words: Sequence[str], names: Sequence[str], *, option: str, taken: Sequence[str | None] = ()
) -> list[AskedColumn]:
    """The columns that words stand for: names, CLASS=COLUMN, patterns such as ``p_*``, or several
    of these with commas between them.

    A word that is the name of a column is that column, whatever signs it holds. Patterns leave out
    the columns ``taken`` for something else.

    >>> expand(["p_*", "x=q"], ["id", "p_a", "p_b", "q"], option="--score")
    [AskedColumn(column='p_a', said=None), AskedColumn(column='p_b', said=None), \
AskedColumn(column='q', said='x')]
    """
    found: dict[str, AskedColumn] = {}
    for word in [part for given in words for part in _words_between_commas(given, names)]:
        for one in _meant(word, names, taken):
            if one.column in found and None not in (one.said, found[one.column].said):
                raise InputError(
                    f"each class must have a column of its own, but {one.column!r} came for "
                    f"{found[one.column].said!r} and for {one.said!r}. Correct {option}."
                )
            if one.column not in found or one.said is not None:
                found[one.column] = one
    return list(found.values())


def _words_between_commas(word: str, names: Sequence[str]) -> list[str]:
    """The words between commas, unless only the whole is a column's name or CLASS=COLUMN."""
    parts = [part.strip() for part in word.split(",") if part.strip()]
    whole = _is_known(word, names) and not all(_is_known(part, names) for part in parts)
    return [word] if whole or word in names or not parts else parts


def _is_known(word: str, names: Sequence[str]) -> bool:
    """Whether a word is a column, CLASS=COLUMN, or a pattern."""
    ends = (word, *(word[sign.end() :] for sign in re.finditer("=", word)))
    return any(_find(end, names) is not None for end in ends) or bool(re.search(r"[*?\[]", word))


def _meant(word: str, names: Sequence[str], taken: Sequence[str | None]) -> list[AskedColumn]:
    column = _find(word, names)
    if column is not None:
        return [AskedColumn(column)]
    for sign in re.finditer("=", word):
        said, column = word[: sign.start()].strip(), _find(word[sign.end() :], names)
        if column is not None and said:
            return [AskedColumn(column, said)]
    if "=" in word:
        raise InputError(unknown_column(word.partition("=")[2], "score", names, "the file"))
    if not re.search(r"[*?\[]", word):
        raise InputError(unknown_column(word, "score", names, "the file"))
    matched = [name for name in names if fnmatchcase(name, word) and name not in taken]
    if not matched:
        shown = ", ".join(map(repr, names[:30]))
        raise InputError(f"no column matches {word!r}. The columns of the file are {shown}.")
    return [AskedColumn(name) for name in matched]


def _find(word: str, names: Sequence[str]) -> str | None:
    """The column that a word names; blanks around it count only where they tell columns apart."""
    if word in names:
        return word
    return next((name for name in names if name.strip() == word.strip()), None)


def assign(
    asked: Sequence[AskedColumn],
    labels: Sequence[Label],
    label_column: str | None,
    *,
    option: str,
    fewest: int = 3,
) -> ColumnsByClass:
    """The column of each class: what was said first, the others by their names.

    The labels are those of a column, or of a calibrator (None). A class may lack rows if it was
    named. Never by position: a match that is not clean is refused.

    >>> asked = [AskedColumn("p_bee"), AskedColumn("p_ape"), AskedColumn("q", "cat")]
    >>> assign(asked, ["ape", "bee", "cat"], "kind", option="--score").columns
    ('p_ape', 'p_bee', 'q')
    """
    found = sorted_classes(labels, label_column or "")
    where = "the calibrator" if label_column is None else f"label column {label_column!r}"
    columns: dict[Label, str] = {}
    for one in asked:
        if one.said is None:
            continue
        label = match_label(found, one.said)
        if label is None:  # a class without rows
            label = _like(one.said, found)
        if label in columns:
            raise InputError(
                f"each class must have one column, but {columns[label]!r} and {one.column!r} came "
                f"for {label!r}. Correct {option}."
            )
        columns[label] = one.column
    rest = [one.column for one in asked if one.said is None]
    open_ = [label for label in found if label not in columns]
    pairs = _by_names(rest, open_)
    if pairs is None:
        raise InputError(_unmatched(asked, found, columns, where, option))
    columns |= pairs
    classes = sorted_classes(columns, label_column or "")
    if len(classes) < fewest:
        raise InputError(_two_classes(classes, columns, where, option))
    return ColumnsByClass(classes, tuple(columns[label] for label in classes))


def in_order(words: Sequence[str], classes: Sequence[Label]) -> tuple[str, ...] | None:
    """The columns that words name, in the order of the classes; None if nothing tells it.

    No file is looked at: every word is CLASS=COLUMN, or all are columns.

    >>> in_order(["b=q", "a=p"], ["a", "b"]), in_order(["x", "y"], ["a", "b"])
    (('p', 'q'), None)
    """
    said = [word.partition("=") for word in words]
    labels = [match_label(classes, text) if sign else None for text, sign, _ in said]
    pairs = {label: column for label, (_, _, column) in zip(labels, said, strict=True)}
    if set(pairs) == set(classes) and all(pairs.values()):
        return tuple(pairs[label] for label in classes)
    by_names = _by_names(words, classes)
    return None if by_names is None else tuple(by_names[label] for label in classes)


def _like(said: str, found: Sequence[Label]) -> Label:
    """A class that no row has, of the type of the others."""
    meant = typed([said])[said]
    same = all(isinstance(label, str) for label in found)
    return said if same or isinstance(meant, str) else meant


# --- by the names of the columns ----------------------------------------------------------------


def _by_names(columns: Sequence[str], labels: Sequence[Label]) -> dict[Label, str] | None:
    """The only way in which the columns' names tell their classes; None where there is none."""
    if len(columns) != len(labels):
        return None
    for text in (str, _whole, _plain):
        names = [_plain(column) if text is _plain else column for column in columns]
        words = [text(label) for label in labels]
        if len(set(names)) < len(names) or len(set(words)) < len(words):
            continue
        for match in (_around, _at_the_end):
            places = match(names, words)
            if places is not None:
                return {label: columns[i] for label, i in zip(labels, places, strict=True)}
    return None


def _whole(label: Label) -> str:
    """1.0 as 1: a column of numbers with decimals may hold whole numbers only."""
    return str(int(label)) if isinstance(label, float) else str(label)


def _plain(label: Label) -> str:
    """Small letters, and one sign for all that are neither letters nor digits."""
    return re.sub(r"[\W_]+", "_", str(label).casefold()).strip("_")


def _around(names: Sequence[str], words: Sequence[str]) -> list[int] | None:
    """Places of the names that are the words between a common beginning and a common end."""
    ways: set[tuple[int, ...]] = set()
    first = names[0] if names else ""
    for word in words:
        for found in re.finditer(f"(?={re.escape(word)})", first):
            before, after = first[: found.start()], first[found.start() + len(word) :]
            whole = [f"{before}{each}{after}" for each in words]
            if sorted(whole) == sorted(names):
                ways.add(tuple(names.index(each) for each in whole))
    return list(ways.pop()) if len(ways) == 1 else None


def _at_the_end(names: Sequence[str], words: Sequence[str]) -> list[int] | None:
    """Places of the names that end in the words, one of each, after a sign or a beginning."""

    def ends(name: str, word: str) -> bool:
        start = name[: len(name) - len(word)]
        return name.endswith(word) and (not start or not start[-1].isalnum())

    places = []
    for word in words:
        fits = [i for i, name in enumerate(names) if ends(name, word)]
        if len(fits) != 1:
            return None
        places.extend(fits)
    return places if len(set(places)) == len(names) else None


# --- words --------------------------------------------------------------------------------------


def _unmatched(
    asked: Sequence[AskedColumn],
    found: Sequence[Label],
    known: dict[Label, str],
    where: str,
    option: str,
) -> str:
    columns = [one.column for one in asked]
    rest = [one.column for one in asked if one.said is None]
    open_ = [label for label in found if label not in known]
    pairs = _guessed(rest, open_)[:SHOWN]
    example = " ".join(f"{option} {quoted(f'{label}={column}')}" for label, column in pairs)
    return (
        f"the names of the columns must tell which class each is for, one column for each of the "
        f"{len(found)} classes of {where}, but they do not. {_list('Columns', columns)} "
        f"{_list('Classes', found)} Say which is which, for example: {example}"
    )


def _guessed(columns: Sequence[str], labels: Sequence[Label]) -> list[tuple[Label, str]]:
    """Pairs for an example: by names where one holds the other, the rest as they come."""
    left = list(columns)
    pairs: dict[Label, str] = {}
    for label in labels:
        near = [column for column in left if _plain(label) in _plain(column)]
        if near:
            pairs[label] = near[0]
            left.remove(near[0])
    if len(pairs) < len(labels) and all(_plain(label).isdigit() for label in labels):
        pairs, left = {}, list(columns)  # names may count from 1, and labels from 0
    for label in labels:
        if label not in pairs:
            pairs[label] = left.pop(0) if left else "COLUMN"
    return [*((label, pairs[label]) for label in labels), *(("CLASS", one) for one in left)]


def _two_classes(
    classes: Sequence[Label], columns: dict[Label, str], where: str, option: str
) -> str:
    if len(classes) == 1:
        return (
            f"{where} must hold several classes, but only one class came: {classes[0]!r}. "
            "Add rows of the others."
        )
    column, positive = quoted(columns[classes[1]]), quoted(str(classes[1]))
    return (
        f"{where} has two classes, {classes[0]!r} and {classes[1]!r}: one column is enough. "
        f"Use {option} {column} --pos-label {positive}."
    )


def _list(what: str, values: Sequence[Label]) -> str:
    return f"{what}: {some_of(list(map(repr, values)), f' ({len(values)})')}."


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

    @property
    def named(self) -> bool:
        """Whether it is a file, and not standard output."""
        return self.path is not None and not (self.stream and is_standard(self.path))


def check_places(outputs: Mapping[str, OutputOption], read: Iterable[Name | None]) -> None:
    """Refuse outputs that cannot be written, that are read, or that are one: before any work.

    Parameters
    ----------
    outputs : by the option that names each
    read : files, globs, folders and URLs that the command reads
    """
    written: dict[str, Path] = {}
    for option, output in outputs.items():
        path = _local(output.path) if output.path is not None and output.named else None
        if path is not None:
            _check(path, output)
            written[option] = path
    # what is not there yet is no input: then there is no need to look into folders
    there = any(stat_of(path) is not None for path in written.values())
    names = [path for name in read if name is not None and (path := _local(name)) is not None]
    keep_apart(written, (file for path in names for file in (_files(path) if there else [path])))


def _check(path: Path, output: OutputOption) -> None:
    if output.folder and (os.path.isdir(path) or not os.path.exists(path)):
        final = follow(path)
        check_folder(final.parent)
        stat_of(final)
    else:
        slash = str(output.path).endswith(("/", os.sep))  # which a Path drops
        find_target(f"{path}/" if slash else path)
    if output.endings and path.suffix.lower() not in output.endings:
        raise InputError(f"{path.name} must end in {' or '.join(output.endings)}.")


def _local(name: Name) -> Path | None:
    """The path of a file on this machine, also of a URL of one; None for one elsewhere.

    A Path is never a URL: only words are.
    """
    if not isinstance(name, str) or os.path.exists(name):
        return Path(name)
    scheme, colon, rest = name.partition(":")
    if not (colon and rest.startswith("/") and re.fullmatch("[A-Za-z][A-Za-z0-9+.-]+", scheme)):
        return Path(name)
    return path_of_url(rest) if scheme.lower() == "file" else None


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


def write_standard(text: str) -> None:
    """Write text to standard output as UTF-8, whatever the terminal's letters are."""
    sys.stdout.buffer.write(text.encode("utf-8"))
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
