"""DuckDB: one connection for one job, and the columns of files as SQL."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from calibrant.engines.apply import POWER, WHOLE_NUMBER, KeySpelling
from calibrant.engines.files import MISSING as MISSING_WORDS
from calibrant.engines.files import (
    PLAIN_READING,
    SPELLINGS,
    UTF8,
    WHOLE,
    WINDOWS,
    Encoding,
    NotUtf8Error,
    NumberSpelling,
    ReadOptions,
    choose_number_spelling,
    decode_file,
    file_encoding,
    file_kind,
    find_column,
    find_files,
    folder_columns,
    not_utf8_message,
    one_file_kind,
    read_csv_header,
    sheet_as_csv,
    wrong_fields_message,
)
from calibrant.errors import InputError, ParameterError, import_extra
from calibrant.outputs import NO_SPACE, TemporaryFolder, private_file
from calibrant.running import off_main_thread

T = TypeVar("T")

#: called now and then with the fraction that is done, 0 to 1
Progress = Callable[[float], None]

#: mistakes of the program, not of the data: never reworded
OURS = ("ParserException", "BinderException", "CatalogException", "InternalException")


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
        self._decoded: dict[Path, tuple[Path, Encoding]] = {}
        self._duckdb = import_extra("duckdb", extra="cli")
        self._progress = progress
        self._folder = TemporaryFolder()  # removed as well if the next line is interrupted
        self._connection = self._duckdb.connect(":memory:")
        try:
            # DuckDB makes an error of its own of a signal that comes while it runs a statement
            off_main_thread(
                lambda: self._configure(threads, memory_limit), stop=self._connection.interrupt
            )
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
            # with threads for writing, DuckDB 2.0 may wait for ever when a COPY fails
            "async_threads": 0,
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
        if memory_limit is not None:
            return
        # less than DuckDB's own memory limit, 80 % of the machine, which it fills without need
        query = "SELECT current_setting('threads'), current_setting('memory_limit')"
        cores, most = self._connection.execute(query).fetchall()[0]
        megabytes = 1000 + 256 * int(cores)
        amount, unit = most.split()
        if megabytes * 1e6 < float(amount) * _UNITS[unit]:
            self._connection.execute(f"SET memory_limit = '{megabytes}MB'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and remove what was spilled."""
        try:
            self._connection.close()
        finally:
            self._folder.cleanup()

    # --- running --------------------------------------------------------------------------------

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        rows: list[tuple[Any, ...]] = self.call(lambda: self._connection.execute(sql).fetchall())
        return rows

    def relation(self, sql: str) -> Any:
        """A query as a relation, which is not run yet."""
        return self._connection.sql(sql)

    def call(self, ask: Callable[[], T]) -> T:
        """The result of a call of DuckDB. It runs on another thread, so that Ctrl-C works at
        once."""

        def show_progress() -> None:
            if self._progress:
                self._progress(max(self._connection.query_progress(), 0.0) / 100.0)

        try:
            return off_main_thread(ask, meanwhile=show_progress, stop=self._connection.interrupt)
        except self._duckdb.Error as error:
            if type(error).__name__ in OURS:
                raise
            refusal = NotUtf8Error if "not utf-8" in str(error) else InputError
            raise refusal(_reworded(error)) from error

    @contextmanager
    def function(self, name: str, function: Callable[..., Any], gives: str) -> Iterator[None]:
        """Let SQL call a Python function of Arrow columns, within a with-block."""
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
        """A path in the session's temporary folder."""
        return Path(self._folder.name) / name

    def note(self, words: str) -> None:
        """Keep a note for the user on how files were read."""
        if words not in self.notes:
            self.notes.append(words)

    # --- looking at files -----------------------------------------------------------------------

    def source(
        self, path: Path, wanted: list[str], *, every: bool = False, counted: bool = True
    ) -> Source:
        """A file, opened: its columns and their types.

        ``every``: the types of all columns of a JSON file shall be known, not only of those wanted.
        ``counted``: the rows of a CSV file shall be counted, which is needed to read them all.
        """
        if path.is_file() and not path.stat().st_size:
            raise InputError(f"{path.name} is empty. It must hold named columns and rows of data.")
        return with_folder_columns(self.query, self._own_source(path, wanted, every, counted))

    def _excel_source(self, path: Path, wanted: list[str]) -> Source:
        """The sheet of an Excel file that has the wanted columns, copied to CSV."""
        copy = self.temporary(f"sheet-{secrets.token_hex(4)}.csv")
        with (
            private_file(copy) as stream,
            io.TextIOWrapper(stream, "utf-8", newline="") as cells,
        ):
            said = sheet_as_csv(path, cells, wanted)
        if said:
            self.note(said)
        return replace(_csv_source(copy, wanted), path=path)

    def _text_source(self, path: Path, wanted: list[str], counted: bool) -> Source:
        """A CSV file. One that is not UTF-8 is first copied as UTF-8."""
        known = file_encoding(path, self.reading.encoding)
        if path not in self._decoded:
            if known is None or known.utf8:
                try:
                    own = _csv_source(path, wanted, counted)
                    return replace(own, encoding=known or UTF8)
                except NotUtf8Error:
                    if known is not None:
                        raise
            found = known or Encoding(WINDOWS)
            self._decoded[path] = self._copy_in_utf8(path, found, guessed=known is None), found
        copy, found = self._decoded[path]
        folders = folder_columns(path)
        own = _csv_source(copy, [name for name in wanted if name.strip() not in folders], counted)
        return replace(own, path=path, encoding=found)

    def _copy_in_utf8(self, path: Path, encoding: Encoding, *, guessed: bool) -> Path:
        """Copy a text file in another encoding to UTF-8; the path of the copy."""
        folder = self.temporary(f"text-{secrets.token_hex(4)}")
        folder.mkdir(mode=0o700)
        copy = folder / (path.stem if path.suffix.lower() == ".gz" else path.name)
        with private_file(copy) as to:
            said = decode_file(path, encoding, to, guessed=guessed)
        if said:
            self.note(said)
        return copy

    def _own_source(self, path: Path, wanted: list[str], every: bool, counted: bool) -> Source:
        """A file of any kind, without the columns that its folders hold."""
        kind, ending, _ = file_kind(path)
        if kind == "csv":
            return self._text_source(path, wanted, counted)
        if self.reading.encoding is not None:
            raise ParameterError(
                f"--encoding is for CSV files, and {path.name} is none: it tells its own. Leave it "
                "out."
            )
        if kind == "excel":
            return self._excel_source(path, wanted)
        try:
            if kind == "parquet":
                return self._parquet_source(path)
            layout = "newline_delimited" if ending != ".json" else "auto"
            return json_source(self.query, path, layout, wanted, every=every)
        except InputError as wrong:
            if wrong.__cause__ is None:  # our own words
                raise
            raise InputError(
                f"{path.name} cannot be read as {_FORMATS[kind]}: {str(wrong).rstrip('.')}. Is it "
                "whole, and of the kind that its ending says?"
            ) from wrong

    def _parquet_source(self, path: Path) -> Source:
        """A Parquet file, with the names and types of its columns."""
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
        # beside a column S, DuckDB calls s s_1, and it calls a column without a name C2
        lower = {name.lower() for name in known}
        renamed = any(re.sub(r"_\d+$", "", name) in lower - {name} for name in lower)
        names, columns = known, tuple(map(identifier, known))
        if renamed or any(re.match(r"C\d+$", name) for name in known):
            parquet = import_extra("pyarrow.parquet", extra="cli")
            names = tuple(parquet.read_schema(path).names)
        return Source(path, "parquet", names, columns, types, relation, rows=rows)


def _csv_source(path: Path, wanted: list[str], counted: bool = True) -> Source:
    """A CSV file whose columns are all read as text, so that DuckDB guesses nothing."""
    names, separator, above, rows, line_end = read_csv_header(path, wanted, counted=counted)
    columns = tuple(f"c{i}" for i in range(len(names)))
    fields = ", ".join(f"{column}: 'VARCHAR'" for column in columns)
    options = f", new_line={_LINE_ENDS[line_end]}" if line_end else ""
    relation = (
        f"read_csv({pattern(path)}, auto_detect=false, header=false, skip={above.lines + 1}, "
        f"delim={literal(separator)}, quote='\"', escape='\"', columns={{{fields}}}, "
        f"hive_partitioning=false{options})"
    )
    types = ("VARCHAR",) * len(names)
    return Source(path, "csv", names, columns, types, relation, separator, line_end, rows)


_SHORTEN = "Shorten the long field or leave that column out, or write the file as Parquet."
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
    """DuckDB's error message in our words: which file and line, what is wrong, what to do."""
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
    file = _first_match(r"\n  file = (.*)", message)
    name = Path(file).name if file else ""
    line = _first_match(r"CSV Error on Line: (\d+)", message)
    counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    original = _first_match(r"Original Line: (.*)", message)
    shown = f": {original[:80]!r}" if original else ""
    if counts:
        return wrong_fields_message(name, line, counts[2], counts[1], original)
    if "Maximum line size" in message or "does not support a full read" in message:
        return (
            f"{name or 'the CSV file'}: {f'line {line}' if line else 'a line'} is longer than "
            f"2,000,000 bytes, the most that can be read{shown}. {_SHORTEN}"
        )
    if "unterminated quote" in message:  # so DuckDB also calls a quote that ends far away
        return (
            f"{name}: near line {line} a quote does not end, or a field in quotes is longer than "
            f"2,000,000 bytes, the most that can be read. Close the quote. {_SHORTEN}"
        )
    if "maximum_object_size" in message:
        return f"a row is longer than 16,777,216 bytes, the most that can be read. {_SHORTEN}"
    if "not utf-8" in message:
        return not_utf8_message(name, line)
    if "invalid state" in message:
        return (
            f"{name} mixes line endings or quotes in a way that cannot be read safely. Make them "
            f"alike first, for example: tr -d '\\r' < {name} > clean.csv"
        )
    first = message.split("\n", 1)[0]
    return re.sub(r"^[A-Za-z ]+ Error: ", "", first).strip()


def _first_match(expression: str, message: str) -> str:
    """What the first group of a pattern finds in a text; empty where there is no match."""
    match = re.search(expression, message)
    return match[1] if match else ""


# --- Files with the columns that the names of their folders hold, as SQL --------------------------


def with_folder_columns(query: Callable[[str], list[tuple[Any, ...]]], source: Source) -> Source:
    """The file with columns for what its folders' names say, as in day=2024-05-01/x.csv.

    A folder that says something else than the file's own column is an InputError: either may be
    meant. Values are text, whole numbers but for CSV files, whose columns are all text.
    """
    added: dict[str, str] = {}
    types = list(source.types)
    for name, value in folder_columns(source.path).items():
        if any(known.strip() == name.strip() for known in source.names):  # as columns are found
            _refuse_other_value(query, source, name, value)
            continue
        whole = value is not None and source.kind != "csv" and WHOLE.match(value)
        types.append("BIGINT" if whole else "VARCHAR")
        added[name] = f"{'NULL' if value is None else literal(value)}::{types[-1]}"
    return replace(
        source,
        names=(*source.names, *added),
        columns=(*source.columns, *added.values()),
        types=tuple(types),
        folders=len(added),
    )


def _refuse_other_value(
    query: Callable[..., Any], source: Source, name: str, value: str | None
) -> None:
    """Refuse a file whose own column says something else than its folder's name."""
    for place, known in enumerate(source.names):
        if known.strip() != name.strip():
            continue
        column = source.columns[place]
        found = f"({column} ->> '$')" if source.types[place] == "JSON" else f"({column})::VARCHAR"
        said = "NULL::VARCHAR" if value is None else literal(value)
        same = (
            f"coalesce({found}, '') = coalesce({said}, '') "
            f"OR coalesce(TRY_CAST({found} AS DOUBLE) = TRY_CAST({said} AS DOUBLE), false)"
        )
        first = query(f"SELECT {found} FROM {source.relation} WHERE NOT ({same}) LIMIT 1")
        if first:
            raise InputError(
                f"the column {name!r} of {source.path.name} must be what its folder says, "
                f"{name}={value}, but {str(first[0][0])[:40]!r} came: either may be meant. Rename "
                "the folder or the column."
            )


# --- JSON files: every row is kept as the text that it came as, and columns are taken out of it ---
# DuckDB's own columns of JSON would turn ``"20-01-02"`` into a date and 10**30 into a float.


Query = Callable[[str], list[tuple[Any, ...]]]

#: the column with a row's text
LINE = "json"
#: rows whose keys give the order of the columns; keys that come later are sorted
HEAD = 1_000

WHOLE_TYPES = {"UBIGINT", "BIGINT"}
BLANKS = " \t\n\r"


def json_source(
    query: Query, path: Path, layout: str, wanted: Sequence[str], *, every: bool = False
) -> Source:
    """A JSON file: its keys as columns, in the order of the first rows, with types for the wanted
    ones.

    Parameters
    ----------
    query : runs SQL
    path : Path
    layout : {"newline_delimited", "auto"}
    wanted : names of columns
        The others have the type JSON, unless ``every`` type shall be known.
    """
    relation = f"read_json_objects({pattern(path)}, format='{layout}', hive_partitioning=false)"
    first = query(f"SELECT json_keys({LINE}) FROM {relation} LIMIT {HEAD}")
    found = dict.fromkeys(key for (keys,) in first for key in keys)
    others = query(f"SELECT DISTINCT unnest(json_keys({LINE})) FROM {relation}")
    names = (*found, *sorted(key for (key,) in others if key not in found))
    if not first:
        raise InputError(f"{path.name} is empty. It must hold named columns and rows of data.")
    asked = {name.strip() for name in wanted}
    typed = [name for name in names if every or name.strip() in asked]
    rows, known = _json_types(query, path, relation, typed)
    types = tuple(known.get(name, "JSON") for name in names)
    columns = tuple(map(_json_column, names, types))
    return Source(path, "json", names, columns, types, relation, rows=rows)


def json_pointer(name: str) -> str:
    """The path of a key in a JSON object, as a string of SQL.

    >>> json_pointer("a/b")
    "'/a~1b'"
    """
    return literal("/" + name.replace("~", "~0").replace("/", "~1"))


def _json_types(
    query: Query, path: Path, relation: str, names: list[str]
) -> tuple[int, dict[str, str]]:
    """The number of rows of a JSON file, and the SQL type of each column by all its values.

    Every row must be an object, with every key once.
    """
    keys = f"json_keys({LINE})"
    asked = [
        "count(*)",
        f"count(*) FILTER (json_type({LINE}) <> 'OBJECT')",
        f"count(*) FILTER (len({keys}) <> len(list_distinct({keys})))",
    ]
    for name in names:
        kind, value = f"json_type({LINE}, {json_pointer(name)})", f"{LINE} ->> {json_pointer(name)}"
        asked.append(f"list(DISTINCT {kind}) FILTER ({kind} <> 'NULL')")
        large = f"({kind} = 'UBIGINT' AND TRY_CAST({value} AS BIGINT) IS NULL)"
        larger = f"({kind} = 'DOUBLE' AND regexp_full_match({value}, '-?[0-9]+'))"
        asked.append(f"coalesce(bool_or({large} OR {larger}), false)")
    rows, other, twice, *found = query(f"SELECT {', '.join(asked)} FROM {relation}")[0]
    if other:
        raise InputError(
            f'{path.name} must hold objects such as {{"score": 0.5}}, but {other:,} rows are '
            "something else. Drop them."
        )
    if twice:
        raise InputError(
            f"{path.name} must have every key once in a row, but {twice:,} rows have one twice. "
            "Rename or drop one of them."
        )
    told = zip(names, found[::2], found[1::2], strict=True)
    return rows, {name: _json_type(set(kinds or ()), large) for name, kinds, large in told}


def _json_type(kinds: set[str], large: bool) -> str:
    """The SQL type of a column, from the JSON types that it holds."""
    if not kinds:
        return "JSON"
    if kinds <= WHOLE_TYPES:
        return "JSON" if large else "BIGINT"
    if kinds <= {*WHOLE_TYPES, "DOUBLE"}:
        return "JSON" if large else "DOUBLE"
    if len(kinds) == 1:
        return {"OBJECT": "STRUCT", "ARRAY": "JSON[]"}.get(*kinds, *kinds)
    return "JSON"


def _json_column(name: str, kind: str) -> str:
    """SQL that takes a key's value out of a row, with its type."""
    if kind in ("BIGINT", "DOUBLE", "BOOLEAN"):
        return f"({LINE} ->> {json_pointer(name)})::{kind}"
    if kind == "VARCHAR":
        return f"({LINE} ->> {json_pointer(name)})"
    return f"nullif({LINE} -> {json_pointer(name)}, 'null'::JSON)"


# --- writing ------------------------------------------------------------------------------------


def json_row_with_keys(members: Mapping[str, str]) -> str:
    """SQL of a JSON row with more keys at its end. The rest of its text stays as it is.

    All other bytes stay. Line ends can stand only between the parts of a row, and become blanks.
    """
    start = f"left({json_row_on_one_line()}, -1)"
    comma = f"CASE WHEN regexp_full_match({start}, '\\{{\\s*') THEN '' ELSE ',' END"
    listed = [
        f"{literal(json.dumps(name, ensure_ascii=False) + ':')} || coalesce({value}, 'null')"
        for name, value in members.items()
    ]
    joined = " || ',' || ".join(listed)
    return f"{start} || {comma} || {joined} || '}}'"


def json_row_on_one_line() -> str:
    """SQL of a JSON row's text, with line ends replaced by blanks."""
    return f"translate({LINE}::VARCHAR, chr(10) || chr(13), '  ')"


def set_json_key(text: str, name: str, value: str) -> str:
    """The text of a JSON object with the value of one key replaced or added. The rest stays as it
    is.

    >>> set_json_key('{"a": 1.50, "b":[1 ,2]}', "b", "0.5")
    '{"a": 1.50, "b":0.5}'
    >>> set_json_key('{ }', "b", "0.5"), set_json_key('{"a":1}', "b", "0.5")
    ('{ "b":0.5}', '{"a":1,"b":0.5}')
    """
    decode = json.JSONDecoder().raw_decode
    place = _next_nonblank(text, text.index("{") + 1)
    empty = text[place] == "}"
    while text[place] != "}":
        key, place = decode(text, place)
        start = _next_nonblank(text, _next_nonblank(text, place) + 1)
        end = decode(text, start)[1]
        if key == name:
            return text[:start] + value + text[end:]
        place = _next_nonblank(text, end)
        if text[place] == ",":
            place = _next_nonblank(text, place + 1)
    comma = "" if empty else ","
    return f"{text[:place]}{comma}{json.dumps(name, ensure_ascii=False)}:{value}{text[place:]}"


def _next_nonblank(text: str, place: int) -> int:
    """The position of the next character that is not blank."""
    while text[place] in BLANKS:
        place += 1
    return place


def json_key_setter() -> Callable[..., Any]:
    """`set_json_key` as a function of Arrow columns, for SQL to call."""
    pyarrow = import_extra("pyarrow", extra="cli")

    def of_lines(lines: Any, names: Any, values: Any) -> Any:
        rows = zip(lines.to_pylist(), names.to_pylist(), values.to_pylist(), strict=True)
        return pyarrow.array([set_json_key(*row) for row in rows])

    return of_lines


# --- One file as DuckDB reads it: its columns as people call them, and their SQL ------------------


@dataclass(frozen=True)
class Source:
    """One data file: the names of its columns, and the SQL that reads each.

    Parameters
    ----------
    path : Path
    kind : {"csv", "json", "parquet"}
    names : the columns' names as the file has them
    columns : the SQL expression of each
    types : the SQL type of each
    relation : the table function that reads the file
    separator : between the fields of a CSV file
    line_end : of a CSV file whose rows were counted
    rows : how many there must be, where that is known apart from the reader
    encoding : of a CSV file; ``relation`` reads UTF-8
    folders : how many of the columns, the last ones, stand in the names of the file's folders
    """

    path: Path
    kind: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    types: tuple[str, ...]
    relation: str
    separator: str = ","
    line_end: str | None = None
    rows: int | None = None
    encoding: Encoding = UTF8
    folders: int = 0

    def find(self, name: str, role: str = "") -> int:
        """The number of a column, by its name; refused if it is not there."""
        return find_column(self.names, name, role, file=self.path.name, kind=self.kind)


def literal(text: str) -> str:
    """A string as SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A column's name as SQL.

    >>> identifier('say "hi"; --')
    '"say ""hi""; --"'
    """
    return '"' + name.replace('"', '""') + '"'


def pattern(path: Path) -> str:
    """A path as a string of SQL, with wildcards escaped so that only this file matches."""
    text = "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
    return literal(text)


def open_sources(
    session: Session,
    files: Sequence[str | os.PathLike[str]],
    wanted: list[str],
    *,
    every: bool = False,
) -> list[Source]:
    """The files that names and globs stand for, opened; all of one kind."""
    paths = find_files(files)
    one_file_kind({file_kind(path)[0]: path.name for path in paths})
    return [session.source(path, wanted, every=every) for path in paths]


# --- Columns of numbers, and how these are written: plainly, or as most of the column tells -------


class NumberColumns:
    """Columns of numbers, and how numbers are spelled in each (decimal comma, percent sign).

    At first as the job was told, or plainly; `respell` finds out once some cannot be read so.
    """

    def __init__(
        self, session: Session, sources: Sequence[Source], roles: Mapping[str, str]
    ) -> None:
        self.session, self.sources, self.roles = session, sources, roles
        self.written = dict.fromkeys(roles, session.reading.spelling)

    def respell(self) -> bool:
        """Find out how most numbers of each column are spelled. Returns whether that is new."""
        found = {column: self._spelling_of(column) for column in self.roles}
        changed, self.written = found != self.written, found
        return changed

    def _spelling_of(self, column: str) -> NumberSpelling | None:
        """The spelling that reads most numbers of a column; None for plain numbers.

        It is noted in the session. An InputError says that a column can be read in two ways.

        Notes
        -----
        One pass over the column of each file. A decimal mark that the job was told is the only one.
        """
        sources, role, told = self.sources, self.roles[column], self.session.reading.spelling
        if not any(is_text_column(source, source.find(column, role)) for source in sources):
            return told
        allowed = [one for one in SPELLINGS if told is None or one.decimal == told.decimal]
        tried: list[NumberSpelling | None] = [*([None] if told is None else []), *allowed]
        read: Counter[NumberSpelling | None] = Counter(dict.fromkeys(tried, 0))
        odd: dict[NumberSpelling | None, str] = {}
        unsure: dict[bool, str] = {}
        for source in sources:
            counts, not_plain, apart = self.session.query(
                _spelling_survey(source, column, role, tried)
            )[0]
            read.update(dict(zip(tried, counts, strict=True)))
            odd = {one: text for one, text in zip(tried, not_plain, strict=True) if text} | odd
            unsure = {bool(i): text for i, text in enumerate(apart) if text} | unsure
        name = f"{role} column {column!r} of {sources[0].path.name}"
        best = choose_number_spelling(read, unsure, name)
        if best is not None and best in odd:
            self.session.note(_spelling_note(role, column, best, odd[best]))
        return best

    def sql(self, source: Source, column: str) -> str:
        """SQL of a column as DOUBLE, by its spelling; NULL for what is no number."""
        role = self.roles[column]
        return number_sql(source, source.find(column, role), role, self.written[column])

    def missing(self, source: Source, column: str) -> str:
        """SQL of whether a value is missing, or a word such as NA."""
        return is_missing_sql(source, source.find(column, self.roles[column]))

    def checked(self, source: Source, column: str) -> str:
        """SQL of a column for applying: NULL where missing, infinity where it is no number (which
        is refused later)."""
        x, missing = self.sql(source, column), self.missing(source, column)
        return f"CASE WHEN {x} IS NOT NULL THEN {x} WHEN NOT {missing} THEN 'inf'::DOUBLE END"


def _spelling_survey(
    source: Source, column: str, role: str, tried: Sequence[NumberSpelling | None]
) -> str:
    """SQL that tells how a column spells numbers. For each spelling: how many values it reads, and
    one that plain reading does not; and values that a point and a comma read differently."""
    place = source.find(column, role)
    columns = {f"s{i}": number_sql(source, place, role, one) for i, one in enumerate(tried)}
    for i, percent in enumerate((False, True)):
        columns[f"p{i}"], columns[f"c{i}"] = (
            number_sql(source, place, role, NumberSpelling(mark, percent)) for mark in ".,"
        )
    columns |= {
        "x": number_sql(source, place, role),
        "t": f"({column_text_sql(source, place)})::VARCHAR",
    }
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    numbers = range(len(tried))
    counts = ", ".join(f"count(s{i})" for i in numbers)
    odd = ", ".join(f"arg_min(t, r) FILTER (s{i} IS NOT NULL AND x IS NULL)" for i in numbers)
    apart = ", ".join(f"arg_min(t, r) FILTER (p{i} <> c{i})" for i in (0, 1))
    return (
        f"SELECT [{counts}], [{odd}], [{apart}] FROM (SELECT row_number() OVER () AS r, {listed} "
        f"FROM {source.relation} WHERE NOT {is_missing_sql(source, place)})"
    )


def _spelling_note(role: str, column: str, written: NumberSpelling, example: str) -> str:
    """A note that numbers are not spelled plainly, with an example.

    >>> _spelling_note("score", "p", NumberSpelling(","), "0,75")
    "scores (column 'p') are written with a decimal comma: '0,75' is read as 0.75"
    """
    many = "probabilities" if role == "probability" else f"{role}s"
    shown = f"{example.strip()!r} is read as {written.read(example)!r}"
    return f"{many} (column {column!r}) are written {written}: {shown}"


# --- A file's columns as SQL: numbers, labels, and the text that stands in the file ---------------


#: a column of these types can be read as numbers
NUMERIC = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|VARCHAR|JSON)$"
)
#: and of these not as labels
NESTED = re.compile(r".*\]$|STRUCT|MAP|UNION|BLOB")
#: a column of these types can be one of segments; NULL is a column without a single value
SEGMENTS = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(\d+,0\)|BOOLEAN|VARCHAR|JSON|UUID|ENUM.*|\"NULL\")$"
)
#: whole numbers that Python would get as decimals
WIDE = re.compile(r"U?HUGEINT|DECIMAL")
#: numbers that may be NaN or infinite, alone or within other types
FLOATING = re.compile(r"\b(FLOAT|DOUBLE)\b")
#: a string of JSON
QUOTED = r'"(\\.|[^"\\])*"'
#: the sign and the digits of a whole number
BOTH = r"\1\2"


def column_text_sql(source: Source, column: int) -> str:
    """SQL of a column's values as text of the file; strings of JSON lose their quotes."""
    expression = source.columns[column]
    return f"({expression} ->> '$')" if source.types[column] == "JSON" else expression


def json_value_sql(source: Source, column: int) -> str:
    """SQL of a column's values for a JSON output. NaN and infinite numbers make the query fail."""
    expression, kind = source.columns[column], source.types[column]
    if not FLOATING.search(kind):
        return expression
    if kind in ("FLOAT", "DOUBLE"):
        fine = f"isfinite({expression}) IS NOT FALSE"
    else:  # as NaN or Infinity somewhere inside: outside of quotes, JSON has no other N or I
        bare = f"regexp_replace(to_json({expression})::VARCHAR, {literal(QUOTED)}, '', 'g')"
        fine = f"({expression} IS NULL OR NOT regexp_matches({bare}, '[NI]'))"
    wrong = literal(
        f"column {source.names[column]!r} holds NaN or infinite numbers, which JSON does not have. "
        "Write .parquet or .csv, or replace them first."
    )
    return f"CASE WHEN {fine} THEN {expression} ELSE error({wrong}) END"


def number_sql(
    source: Source, column: int, role: str, written: NumberSpelling | None = None
) -> str:
    """SQL that reads a column as DOUBLE; NULL for what is no number.

    Truth values count as 1 and 0, also where they are words, as in CSV. ``written`` is how text
    spells numbers; None for plain ones.
    """
    kind = source.types[column]
    if not NUMERIC.match(kind):
        raise InputError(
            f"{role} column {source.names[column]!r} of {source.path.name} must be numbers, but "
            f"its type is {kind}. Pick another column or convert it."
        )
    word = column_text_sql(source, column)
    if not is_text_column(source, column):
        return f"TRY_CAST({word} AS DOUBLE)"
    if written is not None:  # the digits and the decimal mark are cast
        bare = f"trim({word})"
        digits = f"regexp_replace({bare}, {literal(written.dropped)}, '', 'g')"
        plain = f"replace({digits}, ',', '.') || {literal(written.ending)}"
        fits = f"regexp_full_match({bare}, {literal(written.pattern)})"
        return f"CASE WHEN {fits} THEN TRY_CAST({plain} AS DOUBLE) END"
    odd = f"contains({word}, '_') OR contains({word}, '+-')"  # DuckDB takes 1_0 for 10, +-1 for -1
    truth = f"CASE lower(trim({word})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"CASE WHEN NOT ({odd}) THEN coalesce(TRY_CAST({word} AS DOUBLE), {truth}) END"


def is_text_column(source: Source, column: int) -> bool:
    """Whether the numbers of a column come as text."""
    return source.types[column] in ("VARCHAR", "JSON")


def is_missing_sql(source: Source, column: int) -> str:
    """SQL of whether a number is missing, or a word such as NA. It is never NULL."""
    word = f"({column_text_sql(source, column)})::VARCHAR"
    return f"coalesce({is_one_of_sql(word, MISSING_WORDS)}, true)"


def label_sql(source: Source, column: int) -> str:
    """SQL of a label as text; NULL where it is missing."""
    kind, expression = source.types[column], source.columns[column]
    if NESTED.match(kind):
        raise InputError(
            f"label column {source.names[column]!r} of {source.path.name} must hold plain labels, "
            f"but its type is {kind}. Pick another column."
        )
    if source.kind == "csv":
        return f"nullif(trim({expression}), '')"
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isfinite({expression}) THEN {expression}::VARCHAR END"
    if kind == "JSON":  # with its quotes, so that "1" and 1 stay apart
        return f"nullif({expression}::VARCHAR, 'null')"
    return f"{expression}::VARCHAR"


def segment_sql(source: Source, column: int) -> str:
    """SQL of a row's segment; NULL where it is missing."""
    kind, expression = source.types[column], source.columns[column]
    if not SEGMENTS.match(kind):
        raise InputError(
            f"segment column {source.names[column]!r} of {source.path.name} must hold words or "
            f"whole numbers, but its type is {kind}. Pick another column or convert it."
        )
    if source.kind == "csv":
        return f"nullif(trim({expression}), '')"
    if WIDE.match(kind):
        wrong = (
            f"segment column {source.names[column]!r} must hold numbers of at most 64 bits, but "
            "larger ones came. Convert it to text."
        )
        larger = f"CASE WHEN {expression} IS NOT NULL THEN error({literal(wrong)})::BIGINT END"
        return f"coalesce(TRY_CAST({expression} AS BIGINT), {larger})"
    return f"{expression}::VARCHAR" if kind == "UUID" else column_text_sql(source, column)


def segment_key_sql(source: Source, column: int, keys: KeySpelling) -> str:
    """SQL of a row's segment as text, spelled like the keys of the calibrator.

    Where the keys are whole numbers, truth values are 1 and 0, as they are in a fit, and numbers
    are told by their value: 07, 7.0 and 7 are the same.
    """
    wide = WIDE.match(source.types[column])
    word = f"({source.columns[column] if wide else segment_sql(source, column)})::VARCHAR"
    if keys.trimmed:
        word = f"trim({word})"
    if keys.whole and source.types[column] in ("BOOLEAN", "VARCHAR", "JSON"):
        digits = f"regexp_replace({word}, {literal(WHOLE_NUMBER)}, {literal(BOTH)})"
        power = f"regexp_matches({word}, {literal(POWER)})"
        number_ = f"TRY_CAST({word} AS DOUBLE)"
        power += f" AND abs({number_}) <= 2^53 AND {number_} = floor({number_})"
        known = "WHEN 'true' THEN '1' WHEN 'false' THEN '0' WHEN '-0' THEN '0'"
        word = (
            f"CASE WHEN {power} THEN {number_}::BIGINT::VARCHAR "
            f"ELSE CASE lower({digits}) {known} ELSE {digits} END END"
        )
    return word


def is_one_of_sql(expression: str, words: Sequence[str]) -> str:
    """SQL of whether a text is one of some words, blanks and case aside.

    Not by IN or list_contains: either becomes a join, and a join does not keep the order of rows.
    """
    listed = "|".join(re.escape(word.lower()) for word in words)
    return f"regexp_full_match(lower(trim({expression})), {literal(listed)})"
