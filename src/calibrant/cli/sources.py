"""What a command reads: its files, the columns that were named, and the engine that reads them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from calibrant.cli.class_columns import expand, must_look
from calibrant.cli.console import Bar, note
from calibrant.data.naming import segment_names
from calibrant.engines.files.read_options import ReadOptions, repeatable
from calibrant.engines.files.yes_no_words import yes_of
from calibrant.engines.open_engine import Engine, open_engine
from calibrant.errors import ParameterError
from calibrant.outputs import STANDARD

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
) -> EngineOptions:
    """The same from the options of a command; standard input is that of the process."""
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
    from calibrant.cli.column_roles import applied_classes

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
    names = segment_names(words or None)
    return names if len(names) > 1 else next(iter(names), None)
