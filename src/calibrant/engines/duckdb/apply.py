"""Add a column of calibrated probabilities to files, in one stream from disk to disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.data.segment_column import NewSegments
from calibrant.engines.apply_options import ApplyOptions
from calibrant.engines.duckdb.block_function import BlockWatch, StopError, calibrating
from calibrant.engines.duckdb.column_sql import finite, is_missing, number, segment_text, text
from calibrant.engines.duckdb.diagnose import BEYOND, INFINITE, LEFT_OUT, TEXT, refuse
from calibrant.engines.duckdb.file_rows import look_at
from calibrant.engines.duckdb.find_spelling import find_spelling
from calibrant.engines.duckdb.json_files import appended, one_line, set_member
from calibrant.engines.duckdb.parquet_files import changed_types, copy_beside
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source, identifier, literal
from calibrant.engines.files.data_files import output_kind, refuse_different, refuse_url
from calibrant.engines.files.number_spelling import NumberSpelling
from calibrant.engines.rows_of_files import check_rows
from calibrant.engines.segment_texts import SegmentKeys, segment_keys
from calibrant.errors import InputError, import_extra
from calibrant.estimators.fitted import Fitted
from calibrant.outputs import find_target, keep_apart, whole_file

__all__ = ["apply_file"]

FUNCTION, SET = "calibrant_calibrate", "calibrant_set_member"


def apply_file(
    session: Session,
    fitted: Fitted,
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    options: ApplyOptions,
    new_segments: NewSegments | None = None,
) -> int:
    """Copy files to ``out`` with one more column; the number of rows written.

    Parameters
    ----------
    session : Session
    fitted : Fitted
    files : paths or globs, all with the same columns
    out : path
        Its ending says what is written: .csv, .tsv, .jsonl (each also .gz) or .parquet.
    options : ApplyOptions
    new_segments : NewSegments, optional
        Counts the rows of segments that the calibrator has not seen.

    Notes
    -----
    Rows keep their order and other columns their values: fields of text files are never parsed.
    Memory does not grow with the number of rows. ``out`` appears whole at the end or not at all.
    A pipe is written to as rows come. ``out`` must not be one of the files.
    Probabilities equal ``fitted.calibrate`` bit for bit; CSV holds the shortest text that reads
    back as the same number.
    """
    refuse_url(os.fspath(out))
    out = Path(out)
    _refuse_packed_stream(out)
    every = output_kind(out)[0] == "parquet"
    sources = look_at(session, files, options.columns, every=every)
    keep_apart({"the output": out}, [source.path for source in sources])
    names = _names(sources, options)
    written = session.reading.spelling
    if find_target(out).stream:  # rows cannot be taken back: ask before the first one
        written = find_spelling(session, sources, options.score, "score")
    try:
        return _copied(session, fitted, sources, names, out, options, written, new_segments)
    except _UnreadableError as failed:
        best = find_spelling(session, sources, options.score, "score")
        if best == written:
            _refuse(session, sources, options, written, beyond=failed.beyond)
            raise
    if new_segments is not None:
        new_segments.rows = new_segments.new = 0
    try:
        return _copied(session, fitted, sources, names, out, options, best, new_segments)
    except _UnreadableError as failed:
        _refuse(session, sources, options, best, beyond=failed.beyond)
        raise


class _UnreadableError(InputError):
    """Some scores cannot be calibrated as they are read."""

    def __init__(self, beyond: bool) -> None:
        super().__init__("some rows cannot be calibrated.")
        self.beyond = beyond


def _copied(
    session: Session,
    fitted: Fitted,
    sources: list[Source],
    names: list[str],
    out: Path,
    options: ApplyOptions,
    written: NumberSpelling | None,
    new_segments: NewSegments | None,
) -> int:
    """Copy the rows with their scores read in one way; how many there are."""
    keys = segment_keys(fitted.map)
    new = {source.path: _probability(source, options, keys, written) for source in sources}
    watch = BlockWatch(fitted.expects, options.on_range)
    calibrate = calibrating(fitted, keys, options.on_missing == "null", watch, new_segments)
    kinds = ("DOUBLE", "VARCHAR") if keys else ("DOUBLE",)
    with (
        session.function(FUNCTION, calibrate, kinds),
        session.function(SET, _set_member(options.into), ("VARCHAR", "VARCHAR"), "VARCHAR"),
        whole_file(out) as temporary,
    ):
        try:
            count = _write(session, sources, new, names, options.into, out, temporary)
        except InputError as failed:
            if StopError.__name__ in str(failed):
                raise _UnreadableError(watch.refuses) from failed
            raise
    watch.warn_at_end(options.score)
    return count


def _write(
    session: Session,
    sources: list[Source],
    new: dict[Path, str],
    names: list[str],
    into: str,
    out: Path,
    temporary: Path,
) -> int:
    """Write the rows, in order, to a temporary file; how many there are."""
    rare = _rare(sources, names, out)
    beside = session.temporary("probabilities.parquet")
    if rare:
        command = _copy_new(sources, new, beside)
    else:
        command = _copy(sources, new, names, into, out, temporary)
    header = not rare and _has_header_row(sources[0], names, out)
    with _ordered(session, command):
        written = int(session.query(command)[0][0]) - header
    check_rows(written, [s.rows for s in sources], sources[0].path.name)
    if rare:
        copy_beside(sources, names, into, beside, temporary)
    return written


def _refuse(
    session: Session,
    sources: list[Source],
    options: ApplyOptions,
    written: NumberSpelling | None,
    *,
    beyond: bool,
) -> None:
    """Say which rows cannot be calibrated, once it is known that there are some."""
    missing = (LEFT_OUT,) if options.on_missing == "error" else ()
    checks = (TEXT, INFINITE, *missing, *((BEYOND,) if beyond else ()))
    refuse(session, sources, options.score, role="score", checks=checks, written=written)
    if options.segment:
        refuse(session, sources, options.segment, role="segment", checks=missing, absent=())


def _set_member(name: str) -> Callable[..., Any]:
    """A function of Arrow columns: lines of JSON and the new values of a key in them."""
    pyarrow = import_extra("pyarrow", extra="cli")

    def of_lines(lines: Any, values: Any) -> Any:
        pairs = zip(lines.to_pylist(), values.to_pylist(), strict=True)
        return pyarrow.array([set_member(line, name, value) for line, value in pairs])

    return of_lines


@contextmanager
def _ordered(session: Session, command: str) -> Iterator[None]:
    """Write rows in order: by one thread where the plan would not write batches in order."""
    plan = " ".join(str(row[1]) for row in session.query(f"EXPLAIN {command}"))
    if re.search("batch.copy", plan, re.IGNORECASE):
        yield
        return
    threads = session.query("SELECT current_setting('threads')")[0][0]
    session.query("SET threads = 1")
    try:
        yield
    finally:
        session.query(f"SET threads = {threads}")


# --- the columns --------------------------------------------------------------------------------


def _names(sources: list[Source], options: ApplyOptions) -> list[str]:
    """The columns of the output; every file must have those of the first."""
    refuse_different([(source.path.name, source.names) for source in sources])
    first, into = sources[0], options.into
    options.check_columns(first.names, first.path.name)
    return [*first.names, *([] if into in first.names else [into])]


def _probability(
    source: Source,
    options: ApplyOptions,
    keys: SegmentKeys | None,
    written: NumberSpelling | None,
) -> str:
    """SQL of the new column."""
    place = source.find(options.score, "score")
    x, missing = number(source, place, "score", written), is_missing(source, place)
    # what is neither missing nor a number becomes infinite, which is always refused
    checked = f"CASE WHEN {x} IS NOT NULL THEN {x} WHEN NOT {missing} THEN 'inf'::DOUBLE END"
    if options.segment and keys:
        group = segment_text(source, source.find(options.segment, "segment"), keys)
        return f"{FUNCTION}({checked}, {group})"
    return f"{FUNCTION}({checked})"


def _select(source: Source, names: list[str], into: str, new: str, kind: str) -> str:
    """SQL of the output's columns. In CSV, strings of JSON lose their quotes; in JSON, NaN and
    infinite numbers are refused."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(source.names):
        places.setdefault(name, []).append(i)
    plain = {"csv": text, "json": finite}
    read = plain.get(kind, lambda source, i: source.columns[i])
    # of columns with the same name the first comes first, also in a file of another order
    chosen = [new if name == into else read(source, places[name].pop(0)) for name in names]
    listed = ", ".join(f"{sql} AS o{i}" for i, sql in enumerate(chosen))
    return f"SELECT {listed} FROM {source.relation}"


def _lines(source: Source, into: str, new: str) -> str:
    """SQL of the lines of JSON as they came, with the new key added, or its value replaced."""
    value = f"to_json({new})::VARCHAR"
    own = len(source.names) - source.folders
    members = {
        name: f"to_json({column})::VARCHAR"
        for name, column in zip(source.names[own:], source.columns[own:], strict=True)
    }
    if into in source.names[:own]:
        line = appended(members) if members else one_line()
        return f"SELECT {SET}({line}, coalesce({value}, 'null')) AS o0 FROM {source.relation}"
    return f"SELECT {appended({**members, into: value})} AS o0 FROM {source.relation}"


def _copy(
    sources: list[Source],
    new: dict[Path, str],
    names: list[str],
    into: str,
    out: Path,
    temporary: Path,
) -> str:
    """The COPY command for the output's kind."""
    kind, ending, packed = output_kind(out)
    first = sources[0]
    rows = " UNION ALL ".join(_select(s, names, into, new[s.path], kind) for s in sources)
    columns = [f"o{i}" for i in range(len(names))]
    named = ", ".join(f"{c} AS {identifier(n)}" for c, n in zip(columns, names, strict=True) if n)
    query = f"SELECT {named} FROM ({rows})"
    options = {
        "csv": "FORMAT csv, HEADER true",
        "json": "FORMAT json",
        "parquet": "FORMAT parquet",
    }[kind]
    if _as_lines(first, out):
        query = " UNION ALL ".join(_lines(s, into, new[s.path]) for s in sources)
        options = _RAW
    elif not _distinct(names):
        if kind != "csv":
            raise InputError(
                f"{out.name} needs columns with different names (upper and lower case are the "
                f"same), but {first.path.name} has {', '.join(map(repr, _repeated(names)))}. Write "
                ".csv instead."
            )
        # SQL would rename the columns, so the header is written as the first row
        header = ", ".join(f"{literal(n)} AS {c}" for c, n in zip(columns, names, strict=True))
        fields = ", ".join(f"{c}::VARCHAR" for c in columns)
        query = f"SELECT {header} UNION ALL SELECT {fields} FROM ({rows})"
        options = "FORMAT csv, HEADER false"
    if kind == "csv":
        kept = first.separator if first.separator != "\t" else ","
        options += f", DELIMITER {literal(chr(9) if ending == '.tsv' else kept)}"
    if kind == "parquet":
        options += ", COMPRESSION zstd"
    elif packed:
        options += ", COMPRESSION gzip"
    return f"COPY ({query}) TO {literal(str(temporary))} ({options}, USE_TMP_FILE false)"


def _refuse_packed_stream(out: Path) -> None:
    """Refuse compressed output to a pipe or a device: DuckDB would not compress it."""
    if output_kind(out)[2] and find_target(out).stream:
        raise InputError(
            f"{out.name} is a pipe or a device, which is not written to compressed. Name it "
            "without .gz, and compress what comes out of it."
        )


def _as_lines(first: Source, out: Path) -> bool:
    """Whether rows are JSON before and after, so that their text need not be touched."""
    return first.kind == output_kind(out)[0] == "json"


#: options to write one column of text as it is: no quotes, and a separator that JSON never holds
_RAW = "FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE ''"


def _has_header_row(first: Source, names: list[str], out: Path) -> bool:
    """Whether the header was written as a row of its own."""
    return not _distinct(names) and not _as_lines(first, out)


def _rare(sources: list[Source], names: list[str], out: Path) -> bool:
    """Whether Parquet files have names or types that DuckDB would change: Arrow must copy them."""
    if sources[0].kind != "parquet":
        return False
    if output_kind(out)[0] == "parquet":
        clear = len(set(names)) == len(names)  # else neither can
        return (clear and not _distinct(names)) or any(changed_types(s.path) for s in sources)
    for source in sources:
        if lost := changed_types(source.path, lost=True):
            raise InputError(
                f"{out.name} cannot hold the values of {', '.join(lost[:8])} of "
                f"{source.path.name}. Write .parquet, or convert them first."
            )
    return False


def _copy_new(sources: list[Source], new: dict[Path, str], to: Path) -> str:
    """The COPY command for the new column alone."""
    rows = " UNION ALL ".join(f"SELECT {new[s.path]} AS p FROM {s.relation}" for s in sources)
    return f"COPY ({rows}) TO {literal(str(to))} (FORMAT parquet, USE_TMP_FILE false)"


def _distinct(names: list[str]) -> bool:
    """Whether SQL can tell the columns apart; if not, the header is one more row."""
    return len({name.lower() for name in names}) == len(names) and all(names)


def _repeated(names: list[str]) -> list[str]:
    lower = [name.lower() for name in names]
    return [name for name in names if lower.count(name.lower()) > 1 or not name][:8]
