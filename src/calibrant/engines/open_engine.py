"""One face for the engines that read files: questions of all rows, and a new column."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from calibrant.data.door import Rows
from calibrant.data.lazy import (
    HEAD,
    BadRowsError,
    CellsOption,
    Coding,
    LazyRows,
    Names,
    check_label_apart,
    grouped_table,
    row_count,
)
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, pooling_facts
from calibrant.data.segments import NewSegments
from calibrant.engines.apply import ApplyOptions, RowFitted
from calibrant.engines.files import (
    PLAIN_READING,
    Label,
    NotUtf8Error,
    ReadOptions,
    classes_of,
    find_files,
    save_standard_input,
)
from calibrant.errors import InputError, ParameterError, did_you_mean
from calibrant.fitting.fitted import Fitted
from calibrant.outputs import STANDARD, Name
from calibrant.rules.base import VectorMap

if TYPE_CHECKING:
    from calibrant.engines.duckdb import Source
    from calibrant.engines.duckdb_rows import FileRows

T = TypeVar("T")
Paths = Sequence[str | os.PathLike[str]]
#: what only DuckDB reads, and what to do instead
FEATURES = ("columns beside the score are read", "")
SEVERAL = (
    "scores of several classes are read and written",
    ", or apply the calibrator there by SQL: calibrant export --to sql --dialect spark",
)
ENGINES = ("duckdb", "spark")


@contextmanager
def open_engine(
    name: str = "duckdb",
    *,
    threads: int | None = None,
    memory_limit: str | None = None,
    progress: Callable[[float], None] | None = None,
    master: str | None = None,
    reading: ReadOptions = PLAIN_READING,
) -> Iterator[Engine]:
    """An engine for one job. DuckDB or Spark starts when it is first needed.

    Parameters
    ----------
    name : {"duckdb", "spark"}
    threads : int, optional
        Cores to use; all by default.
    memory_limit : str, optional
        Such as ``"2GB"``: of DuckDB, or of Spark's driver.
    progress : callable, optional
        Called now and then with the fraction that is done.
    master : str, optional
        Of Spark; default: all cores of this machine.
    reading : ReadOptions, optional
        How files are read where they can be read in more than one way.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("p,y\\n0.2,no\\n0.7,yes\\n")
    >>> with open_engine("duckdb", threads=1) as engine:
    ...     answer, coding = engine.rows([file], Names("p", "y")).ask(lambda rows: rows.extent())
    >>> answer[0], coding.pos_label
    (2, 'yes')
    """
    if name not in ENGINES:
        hint = did_you_mean(name, ENGINES)
        raise ParameterError(f"engine must be {' or '.join(ENGINES)}, but {name!r} came.{hint}")
    if name == "spark" and (reading.decimal is not None or reading.drop):
        raise ParameterError(
            "the engine spark reads plain numbers and drops no rows: leave --decimal and "
            "--missing out, or use the engine duckdb."
        )
    if name == "spark" and reading.encoding is not None:
        raise ParameterError(
            "the engine spark reads UTF-8: leave --encoding out, or use the engine duckdb."
        )
    if name == "duckdb" and master is not None:
        raise ParameterError("a master is for Spark: use it with the engine spark.")

    def start() -> Any:
        if name == "spark":
            from calibrant.engines.spark import Spark

            place = master or "local[*]"
            return Spark(place, threads=threads, memory=memory_limit, progress=progress)
        from calibrant.engines.duckdb import Session

        return Session(
            threads=threads, memory_limit=memory_limit, progress=progress, reading=reading
        )

    with ExitStack() as stack:
        yield Engine(lambda: stack.enter_context(start()), spark=name == "spark")


class Engine:
    """Reads data files, and writes them with a column of probabilities, for one job.

    Parameters
    ----------
    start : function without arguments
        Starts what works: a Session of DuckDB, or Spark. It is called when that is first needed.
    spark : bool, default=False
        Spark reads and writes by its own rules, one score and segments. DuckDB takes all kinds of
        files, standard input, several classes and features.

    Attributes
    ----------
    notes : list of str
        What a user should know of how the files were read.
    repeated : list of str
        The names that several columns of the file last looked at have.
    """

    def __init__(self, start: Callable[[], Any], *, spark: bool = False) -> None:
        self._start, self.spark = start, spark
        self.notes: list[str] = []
        self.repeated: list[str] = []

    @cached_property
    def session(self) -> Any:
        """The session of DuckDB or Spark."""
        session = self._start()
        session.notes = self.notes
        return session

    def rows(self, files: Paths, names: Names, role: str = "score") -> RowsOfFiles:
        """The rows of files, to be asked questions."""
        check_label_apart(names)
        if self.spark:
            from calibrant.engines.spark_files import SparkRows

            return SparkRows(self.session, self._with_standard_input(files), names, role)
        from calibrant.engines.duckdb_rows import FileRows

        sources = self._sources(files, list(names.roles().values()))
        return FileRows(self.session, sources, names, role)

    def first_rows(self, files: Paths, count: int) -> dict[str, list[Any]]:
        """The first rows of the first file, as a list of values for each column.

        Text files have text for values. Columns of one name are left out; ``repeated`` names them.

        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.csv"
        >>> _ = file.write_text("p,y\\n0.2,no\\n0.7,yes\\n")
        >>> with open_engine() as engine:
        ...     engine.first_rows([file], 10)
        {'p': ['0.2', '0.7'], 'y': ['no', 'yes']}
        """
        there = self._with_standard_input(files)
        if self.spark:
            from calibrant.engines.spark_files import read_files

            frame = read_files(self.session, there)
            names: Sequence[str] = frame.columns
            rows = self.session.call(lambda: frame.limit(count).collect())
        else:
            from calibrant.engines.duckdb import column_text_sql

            first, rows = find_files(there)[0], None
            for counted in (False, True):  # the count finds what is not UTF-8 below the header
                source = self.session.source(first, [], counted=counted)
                names = source.names
                columns = ", ".join(column_text_sql(source, i) for i in range(len(names)))
                query = f"SELECT {columns} FROM {source.relation} LIMIT {count}"
                try:
                    rows = self.session.query(query)
                    break
                except NotUtf8Error:
                    if counted:
                        raise
        once = [i for i, name in enumerate(names) if names.count(name) == 1]
        self.repeated[:] = dict.fromkeys(name for name in names if names.count(name) > 1)
        return {names[i]: [row[i] for row in rows] for i in once}

    def rows_to_hold(
        self, files: Paths, wanted: Sequence[str], names: Names, role: str = "score"
    ) -> FileRows:
        """The rows of files, to be read into memory: several classes, or features beside the
        score."""
        self.need_duckdb(SEVERAL)
        from calibrant.engines.duckdb_rows import FileRows

        known = [name for name in (*wanted, names.label, names.weight) if name]
        sources = self._sources(files, known)
        for source in sources:
            for name, of in ((names.label, "label"), (names.weight, "weight")):
                if name:
                    source.find(name, of)
        return FileRows(self.session, sources, names, role)

    def columns(self, files: Paths) -> tuple[str, ...]:
        """The names of the columns that files have."""
        self.need_duckdb(SEVERAL)
        return self._sources(files, ())[0].names

    def apply(
        self,
        fitted: Fitted,
        files: Paths,
        out: Name,
        options: ApplyOptions,
        new_segments: NewSegments | None = None,
    ) -> int:
        """Copy files with a column of probabilities; the number of rows.

        ``new_segments`` counts the rows of segments that the calibrator has not seen.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from calibrant.maps import Piecewise
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "in.csv").write_text("id,p\\n007,0.9\\n008,0.2\\n")
        >>> f = Fitted(Piecewise.step([0.5], [0.25, 0.75]), (0, 1), 1)
        >>> with open_engine() as engine:
        ...     engine.apply(f, [folder / "in.csv"], folder / "out.csv", ApplyOptions("p"))
        2
        >>> print((folder / "out.csv").read_text())
        id,p,probability
        007,0.9,0.75
        008,0.2,0.25
        <BLANKLINE>
        """
        options.check_fitted(fitted)
        if isinstance(fitted.map, VectorMap):
            self.need_duckdb(SEVERAL)
        if isinstance(fitted, RowFitted):
            self.need_duckdb(FEATURES)
        there = self._with_standard_input(files)
        new = NewSegments() if new_segments is None else new_segments
        if self.spark:
            from calibrant.engines import spark_files

            return spark_files.apply_file(self.session, fitted, there, out, options, new)
        from calibrant.engines import duckdb_apply

        return duckdb_apply.apply_file(self.session, fitted, there, out, options, new)

    def _sources(self, files: Paths, wanted: Sequence[str]) -> list[Source]:
        """The files, opened by DuckDB."""
        from calibrant.engines.duckdb import open_sources

        return open_sources(self.session, self._with_standard_input(files), list(wanted))

    def _with_standard_input(self, files: Paths) -> Paths:
        """The names of the files, where "-" is replaced by a copy of standard input."""
        if not any(os.fspath(name) == STANDARD for name in files):
            return files
        if self.spark:
            raise InputError(
                "standard input (-) is read by the engine duckdb alone. Save it to a file first."
            )
        return [self._standard_input if os.fspath(name) == STANDARD else name for name in files]

    @cached_property
    def _standard_input(self) -> Path:
        """The path of a copy of standard input."""
        return save_standard_input(self.session.reading, self.session.temporary("stdin"))

    def need_duckdb(self, what: tuple[str, str]) -> None:
        """Refuse the engine spark for what only DuckDB can do."""
        if self.spark:
            are_read, instead = what
            raise InputError(
                f"{are_read} by DuckDB only, but another engine was asked for. Leave the engine "
                f"out{instead}."
            )


# --- The rows of files, whoever reads them: questions of all rows, and their table ---------------


#: how many files are named in the facts of a fit
NAMED = 20
#: what to do about probabilities outside [0, 1]
OUTSIDE_ADVICE = "Divide percentages by 100; calibrate margins or logits first."


@dataclass(frozen=True)
class FileScores:
    """What was read of files: scores with their labels, and facts for the provenance.

    Parameters
    ----------
    data : ScoreTable, or ScoreMatrix of several classes
    classes : tuple of labels
    pos_label : the positive label; None of several classes
    facts : dict
    before : the same of the scores of the same rows before calibration, where asked for
    by_segment : the table of each segment, where asked for
    rows, y, features : the rows one by one, their labels and a frame of columns beside the score,
        where asked for
    came : the same with the scores as they came, where they are read the other way
    """

    data: Any
    classes: tuple[Label, ...]
    pos_label: Label | None
    facts: dict[str, Any]
    before: Any = None
    by_segment: Mapping[Any, ScoreTable] = field(default_factory=dict)
    rows: Rows | None = None
    y: Any = None
    features: Any = None
    came: FileScores | None = None

    @property
    def several(self) -> bool:
        """Whether the scores are of several classes."""
        return isinstance(self.data, ScoreMatrix)

    @property
    def as_came(self) -> FileScores:
        """The same with the scores as they came."""
        return self if self.came is None else self.came

    def mirrored(self) -> FileScores:
        """The same scores turned round, for files where a low score means the positive label."""
        scale = self.data.scale
        tables = {key: one.part_of(scale).mirrored() for key, one in self.by_segment.items()}
        return replace(self, data=self.data.mirrored(), by_segment=tables, came=self)

    @property
    def document(self) -> dict[str, Any]:
        """The facts and labels, ready for JSON."""
        positive = {} if self.several else {"pos_label": self.pos_label}
        return {**self.facts, "classes": list(self.classes), **positive}


class RowsOfFiles(ABC):
    """The rows of files as a lazy frame, with the questions that are asked of them.

    Labels are known by their spellings in the first rows; one that comes later costs another pass.
    """

    names: Names
    role: str
    #: what the files are called
    file_names: list[str]
    #: how many rows each file must hold; None where only the engine can tell
    expected: list[int | None]

    @property
    def dropped(self) -> int:
        """How many rows were left out because a value is missing."""
        return 0

    @abstractmethod
    def labels(self, rows: int | None) -> dict[Any, Label]:
        """The different labels by their spelling: of the first ``rows`` rows, or of all."""

    @abstractmethod
    def lazy(self, coding: Coding) -> LazyRows:
        """The rows as a lazy frame, their labels coded."""

    @abstractmethod
    def refuse(self, coding: Coding) -> None:
        """Raise the InputError that says what is wrong with the rows, if something is."""

    @abstractmethod
    def refuse_labels(self) -> None:
        """Raise an InputError: labels are missing, or there are no rows."""

    @abstractmethod
    def refuse_outside(self) -> None:
        """Raise an InputError if some probabilities lie outside [0, 1]."""

    def respell(self) -> bool:
        """Find out how most numbers are spelled; whether that is new."""
        return False

    def coding(self, pos_label: Any, *, all_rows: bool) -> Coding:
        """The two classes and the positive one, from the labels of the first rows or of all."""
        values = {} if all_rows else self.labels(HEAD)
        if len(set(values.values())) < 2:  # the rows may be sorted by label
            values = self.labels(None)
        if not values:
            self.refuse_labels()
        return classes_of(values, self.names.label, pos_label)

    def ask(self, question: Callable[[LazyRows], T], pos_label: Any = None) -> tuple[T, Coding]:
        """The answer to a question of all rows, and the labels it is based on. Wrong rows are
        refused."""
        coding = self.coding(pos_label, all_rows=False)
        try:
            return question(self.lazy(coding)), coding
        except BadRowsError:
            if self.respell():
                return self.ask(question, pos_label)
            again = self.coding(pos_label, all_rows=True)
        if again != coding:
            with suppress(BadRowsError):
                return question(self.lazy(again)), again
        self.refuse(again)
        raise InputError("some rows cannot be read.")  # pragma: no cover - a check says which

    def facts(self, rows: int | None) -> dict[str, Any]:
        """Facts on the files for the provenance. Refused if another number of rows was read than
        they hold."""
        if rows is not None:
            check_rows(rows + self.dropped, self.expected, self.file_names[0])
        files, more = self.file_names[:NAMED], len(self.file_names) - NAMED
        facts: dict[str, Any] = {"files": [*files, f"... {more} more"] if more > 0 else files}
        if rows is not None:
            facts["rows"] = rows
        if self.dropped:
            facts["rows_dropped"] = self.dropped
        return facts | self.names.facts()


def check_rows(rows: int, expected: Sequence[int | None], first: str) -> None:
    """Refuse a result of another number of rows than the files hold."""
    known = [count for count in expected if count is not None]
    if len(known) < len(expected) or sum(known) == rows:
        return
    what = first if len(expected) == 1 else f"{first} and the other files"
    raise InputError(
        f"all {sum(known):,} rows of {what} must be read, but {rows:,} were, so nothing is "
        "written. Of a CSV file, is a line longer than 2,000,000 bytes, the most that can be read? "
        "Shorten its long field or leave that column out. If not, it is a mistake of the reader: "
        "save the data as Parquet, and please report it."
    )


def read_rows(
    rows: RowsOfFiles, *, cells: CellsOption = "auto", pos_label: Any = None
) -> FileScores:
    """The score table of files, with facts on it."""
    grouped, coding = rows.ask(lambda lazy: lazy.grouped(cells), pos_label)
    table = grouped_table(*grouped)
    if rows.role == "probability" and not table.looks_like_probabilities:
        rows.refuse_outside()
    facts = rows.facts(row_count(grouped[1])) | pooling_facts(table)
    return FileScores(table, coding.classes, coding.pos_label, facts)
