"""One DuckDB connection for one job: bounded, interruptible, and speaking in our words."""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from calibrant.background import off_main_thread
from calibrant.engines.duckdb.json_files import json_source
from calibrant.engines.duckdb.partitions import with_partitions
from calibrant.engines.duckdb.source import Source, identifier, literal, pattern
from calibrant.engines.files.csv_header import not_utf8, read_csv_header
from calibrant.engines.files.csv_records import wrong_fields
from calibrant.engines.files.data_files import kind_of, refuse_empty
from calibrant.engines.files.excel_files import sheet_as_csv
from calibrant.engines.files.read_options import PLAIN_READING, ReadOptions
from calibrant.errors import InputError, ParameterError, import_extra
from calibrant.outputs import TemporaryFolder, private_file

T = TypeVar("T")

#: called now and then with the fraction that is done, 0 to 1
Progress = Callable[[float], None]

#: mistakes of the program, not of the data: never reworded
OURS = ("ParserException", "BinderException", "CatalogException", "InternalException")

NO_SPACE = (
    "No space left on device: the output was not written. Free some, or write to another disk."
)


class Session:
    """A private in-memory DuckDB that leaves nothing behind.

    Parameters
    ----------
    threads : int, optional
        How many cores to use; all by default.
    memory_limit : str, optional
        Such as ``"2GB"``; what does not fit is spilled to a temporary folder. Default: 1 GB and
        256 MB per core, at most 80 % of the machine's memory.
    progress : callable, optional
        Called about ten times a second with the fraction done of a long query.
    reading : ReadOptions, optional
        How files are read where they can be read in more than one way.

    Attributes
    ----------
    notes : list of str
        What a user should know of how the files were read.

    Examples
    --------
    >>> with Session(threads=1) as session:
    ...     session.query("SELECT 6 * 7")
    [(42,)]
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        memory_limit: str | None = None,
        progress: Progress | None = None,
        reading: ReadOptions = PLAIN_READING,
    ) -> None:
        self.reading = reading
        self.notes: list[str] = []
        self._duckdb = import_extra("duckdb", extra="cli")
        self._progress = progress
        self._folder = TemporaryFolder()
        self._connection = self._duckdb.connect(":memory:")
        try:
            self._configure(threads, memory_limit)
        except BaseException:
            self.close()
            raise

    def _configure(self, threads: int | None, memory_limit: str | None) -> None:
        settings: dict[str, Any] = {
            "temp_directory": self._folder.name,
            "autoinstall_known_extensions": False,  # reading a file must not reach for the network
            "enable_progress_bar": True,  # without it there is no query_progress
            "enable_progress_bar_print": False,
            "preserve_insertion_order": True,
        }
        given = {"threads": threads, "memory_limit": memory_limit}
        if memory_limit is not None and not _SIZE.match(memory_limit):  # "-1" would be no limit
            raise ParameterError(
                f"memory_limit must be {_ALLOWED['memory_limit']}, but {memory_limit!r} came."
            )
        for name, value in {**settings, **given}.items():
            if value is None:
                continue
            try:
                self._connection.execute(f"SET {name} = ?", [value])
            except self._duckdb.Error as wrong:
                raise ParameterError(
                    f"{name} must be {_ALLOWED[name]}, but {value!r} came."
                ) from wrong
        if memory_limit is None:
            self._bound()

    def _bound(self) -> None:
        """Lower DuckDB's own memory limit, 80 % of the machine, which it fills without need."""
        query = "SELECT current_setting('threads'), current_setting('memory_limit')"
        threads, most = self._connection.execute(query).fetchall()[0]
        megabytes = 1000 + 256 * int(threads)
        amount, unit = most.split()
        if megabytes * 1e6 < float(amount) * _UNITS[unit]:
            self._connection.execute(f"SET memory_limit = '{megabytes}MB'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and remove what was spilled."""
        self._connection.close()
        self._folder.cleanup()

    # --- running --------------------------------------------------------------------------------

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        rows: list[tuple[Any, ...]] = self.call(lambda: self._connection.execute(sql).fetchall())
        return rows

    def relation(self, sql: str) -> Any:
        """A query that is not run yet."""
        return self._connection.sql(sql)

    def call(self, ask: Callable[[], T]) -> T:
        """What a function of this database answers, off the main thread so that Ctrl-C works at
        once."""
        try:
            return off_main_thread(
                ask, meanwhile=self._show_progress, stop=self._connection.interrupt
            )
        except self._duckdb.Error as error:
            if type(error).__name__ in OURS:
                raise
            raise InputError(_reworded(error)) from error

    def _show_progress(self) -> None:
        if self._progress:
            self._progress(max(self._connection.query_progress(), 0.0) / 100.0)

    @contextmanager
    def function(self, name: str, function: Callable[..., Any], gives: str) -> Iterator[None]:
        """Make a function of any number of Arrow columns known to SQL, for a while."""
        import_extra("pyarrow", extra="cli")
        self._connection.create_function(
            name,
            function,
            None,  # columns as they come
            gives,
            type="arrow",
            null_handling="special",
            side_effects=True,  # every row is seen, and counted: not the values of a dictionary
        )
        try:
            yield
        finally:
            self._connection.remove_function(name)

    def temporary(self, name: str) -> Path:
        """A place for a file that is gone at the end."""
        return Path(self._folder.name) / name

    def note(self, words: str) -> None:
        """Remember what a user should know of how files are read, once."""
        if words not in self.notes:
            self.notes.append(words)

    # --- looking at files -----------------------------------------------------------------------

    def look(
        self, path: Path, wanted: list[str], *, every: bool = False, counted: bool = True
    ) -> Source:
        """What a file holds, by its header or schema, or the keys of its objects.

        ``every``: the types of all columns of a JSON file shall be known, not only of those wanted.
        ``counted``: the rows of a CSV file shall be counted, which is needed to read them all.
        """
        refuse_empty(path)
        return with_partitions(self.query, self._look(path, wanted, every, counted))

    def _sheet(self, path: Path, wanted: list[str]) -> Source:
        """The sheet of an Excel file that has the columns wanted, by a CSV file of its cells."""
        copy = self.temporary(f"sheet-{secrets.token_hex(4)}.csv")
        with (
            private_file(copy) as stream,
            io.TextIOWrapper(stream, "utf-8", newline="") as cells,
        ):
            said = sheet_as_csv(path, cells, wanted)
        if said:
            self.note(said)
        return replace(_csv(copy, wanted), path=path)

    def _look(self, path: Path, wanted: list[str], every: bool, counted: bool) -> Source:
        kind, ending, _ = kind_of(path)
        if kind == "csv":
            with path.open("rb") as stream:
                if stream.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                    raise InputError(not_utf8(path.name, was="utf16"))
            return _csv(path, wanted, counted)
        if kind == "excel":
            return self._sheet(path, wanted)
        try:
            if kind == "parquet":
                return self._parquet(path)
            layout = "newline_delimited" if ending != ".json" else "auto"
            return json_source(self.query, path, layout, wanted, every=every)
        except InputError as wrong:
            if wrong.__cause__ is None:  # our own words
                raise
            raise InputError(
                f"{path.name} cannot be read as {_FORMATS[kind]}: {str(wrong).rstrip('.')}. Is it "
                "whole, and of the kind that its ending says?"
            ) from wrong

    def _parquet(self, path: Path) -> Source:
        relation = f"read_parquet({pattern(path)}, hive_partitioning=false)"
        try:
            described = self.query(f"DESCRIBE SELECT * FROM {relation}")
        except self._duckdb.BinderException as wrong:  # it names a column like another
            raise InputError(
                f"{path.name} must give each of its columns a name of its own, but one has none, "
                "or names differ only in case and a number at the end. Rename those columns."
            ) from wrong
        known = tuple(row[0] for row in described)
        types = tuple(row[1] for row in described)
        rows = self.query(f"SELECT num_rows FROM parquet_file_metadata({pattern(path)})")[0][0]
        names, columns = _own_names(path, known), tuple(map(identifier, known))
        return Source(path, "parquet", names, columns, types, relation, rows=rows)


def _csv(path: Path, wanted: list[str], counted: bool = True) -> Source:
    """A CSV file of text columns; nothing of it is guessed by DuckDB."""
    _, names, separator, above, rows, line_end = read_csv_header(path, wanted, counted=counted)
    columns = tuple(f"c{i}" for i in range(len(names)))
    fields = ", ".join(f"{column}: 'VARCHAR'" for column in columns)
    options = f", new_line={_LINE_ENDS[line_end]}" if line_end else ""
    relation = (
        f"read_csv({pattern(path)}, auto_detect=false, header=false, skip={above.lines + 1}, "
        f"delim={literal(separator)}, quote='\"', escape='\"', columns={{{fields}}}, "
        f"hive_partitioning=false{options})"
    )
    types = ("VARCHAR",) * len(names)
    return Source(path, "csv", names, columns, types, relation, separator, rows)


def _own_names(path: Path, known: tuple[str, ...]) -> tuple[str, ...]:
    """The columns as the file has them. Beside a column ``S``, DuckDB calls ``s`` ``s_1``, and it
    calls a column without a name ``C2``."""
    lower = {name.lower() for name in known}
    renamed = any(re.sub(r"_\d+$", "", name) in lower - {name} for name in lower)
    if not renamed and not any(re.match(r"C\d+$", name) for name in known):
        return known
    return tuple(import_extra("pyarrow.parquet", extra="cli").read_schema(path).names)


#: what Linux, macOS and Windows say of a full disk
_FULL = ("No space left on device", "Disk quota exceeded", "not enough space on the disk")
#: a number with a unit; a share of the machine's memory is DuckDB's other way
_SIZE = re.compile(r"\s*[0-9.]+\s*([KMGT]i?B|B|bytes|%)\s*$", re.IGNORECASE)
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
#: DuckDB's own words for line ends
_LINE_ENDS = {"\n": "'\\n'", "\r\n": "'\\r\\n'", "\r": "'\\r'"}
_FORMATS = {"json": "JSON", "parquet": "Parquet"}
_ALLOWED = {
    "threads": "a whole number of at least 1",
    "memory_limit": "a size such as '2GB' or '500MB'",
}


def _reworded(error: BaseException) -> str:
    """DuckDB's message in one line: which file, which line, what is wrong there, what to do."""
    message = str(error)
    if any(words in message for words in _FULL):
        return NO_SPACE
    if "Broken pipe" in message:
        return "the output was not written whole: the reader of the pipe went away."
    if "max_temp_directory_size" in message:
        return (
            "there is no space left for temporary files. Free some, set the environment variable "
            "TMPDIR to a folder of a larger disk, or raise the memory limit."
        )
    if type(error).__name__ == "OutOfMemoryException":
        return (
            "the work needs more memory than is allowed. Raise the memory limit, use fewer "
            "threads, or put the scores into cells."
        )
    file = _find(r"\n  file = (.*)", message)
    name = Path(file).name if file else ""
    line = _find(r"CSV Error on Line: (\d+)", message)
    counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    original = _find(r"Original Line: (.*)", message)
    shown = f": {original[:80]!r}" if original else ""
    if counts:
        return wrong_fields(name, line, counts[2], counts[1], original)
    if "Maximum line size" in message or "does not support a full read" in message:
        return (
            f"{name or 'the CSV file'}: {f'line {line}' if line else 'a line'} is longer than "
            f"2,000,000 bytes, the most that can be read{shown}. Shorten its long field or leave "
            "that column out, or write the file as Parquet."
        )
    if "unterminated quote" in message:
        return f"{name}: line {line} has a quote that does not end{shown}. Close or double it."
    if "not utf-8" in message:
        return not_utf8(name, line)
    if "invalid state" in message:
        return (
            f"{name} mixes line endings or quotes in a way that cannot be read safely. Make them "
            f"alike first, for example: tr -d '\\r' < {name} > clean.csv"
        )
    first = message.split("\n", 1)[0]
    return re.sub(r"^[A-Za-z ]+ Error: ", "", first).strip()


def _find(expression: str, message: str) -> str:
    match = re.search(expression, message)
    return match[1] if match else ""
