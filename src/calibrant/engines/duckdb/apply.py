"""Add columns of calibrated probabilities to files, in one stream from disk to disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from calibrant.data.segment_column import NewSegments
from calibrant.engines.apply_options import ApplyOptions
from calibrant.engines.duckdb.block_function import (
    BlockWatch,
    StopError,
    calibrating,
    takes_distributions,
)
from calibrant.engines.duckdb.column_sql import checked_number, finite, segment_text, text
from calibrant.engines.duckdb.diagnose import BEYOND, INFINITE, LEFT_OUT, TEXT, refuse
from calibrant.engines.duckdb.diagnose_sums import SUMS_TO_APPLY, refuse_sums
from calibrant.engines.duckdb.file_rows import look_at
from calibrant.engines.duckdb.find_spelling import find_spelling
from calibrant.engines.duckdb.json_files import appended, member_setter, one_line
from calibrant.engines.duckdb.parquet_files import changed_types, copy_beside
from calibrant.engines.duckdb.session import Session
from calibrant.engines.duckdb.source import Source, identifier, literal
from calibrant.engines.files.data_files import output_kind, refuse_different, refuse_url
from calibrant.engines.files.number_spelling import NumberSpelling
from calibrant.engines.row_fitted import FeatureColumn, RowFitted
from calibrant.engines.rows_of_files import check_rows
from calibrant.engines.segment_texts import SegmentKeys, segment_keys
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.maps import VectorMap
from calibrant.outputs import find_target, keep_apart, whole_file

FUNCTION, SET = "calibrant_calibrate", "calibrant_set_member"
FEATURE = "feature"
#: the column that holds the probabilities of all classes of a row
MADE = "calibrant_probabilities"
#: how the numbers of each column of scores are written; None for plain ones
Spellings = dict[str, NumberSpelling | None]


def apply_file(
    session: Session,
    fitted: Fitted,
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    options: ApplyOptions,
    new_segments: NewSegments | None = None,
) -> int:
    """Copy files to ``out`` with one more column, or one for each of several classes; the number
    of rows written.

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
    beside = [c.name for c in fitted.columns] if isinstance(fitted, RowFitted) else []
    sources = look_at(session, files, [*options.columns, *beside], every=every)
    keep_apart({"the output": out}, [source.path for source in sources])
    added = options.new_columns(fitted)
    names = _names(sources, options, added)
    told = session.reading.spelling
    written: Spellings = dict.fromkeys((*options.scores, *options.features), told)
    if find_target(out).stream:  # rows cannot be taken back: ask before the first one
        written = _spellings(session, sources, options)
    job = _Job(session, fitted, sources, names, out, options, new_segments)
    while True:
        try:
            return _copied(job, added, written)
        except _UnreadableError as failed:
            best = _spellings(session, sources, options)
            if best == written:
                _refuse(job, written, beyond=failed.beyond)
                raise
        written = best
        if new_segments is not None:
            new_segments.rows = new_segments.new = 0


class _Job(NamedTuple):
    """What is applied to which rows, and where they go."""

    session: Session
    fitted: Fitted
    sources: list[Source]
    names: list[str]
    out: Path
    options: ApplyOptions
    new_segments: NewSegments | None


class _UnreadableError(InputError):
    """Some scores cannot be calibrated as they are read."""

    def __init__(self, beyond: bool) -> None:
        super().__init__("some rows cannot be calibrated.")
        self.beyond = beyond


def _spellings(session: Session, sources: list[Source], options: ApplyOptions) -> Spellings:
    named = dict.fromkeys(options.scores, "score") | dict.fromkeys(options.features, FEATURE)
    return {name: find_spelling(session, sources, name, role) for name, role in named.items()}


def _copied(job: _Job, added: list[str], written: Spellings) -> int:
    """Copy the rows with their scores read in one way; how many there are."""
    session, fitted, sources, names, out, options, new_segments = job
    keys = segment_keys(fitted.map)
    several = isinstance(fitted.map, VectorMap)
    beside = fitted.columns if isinstance(fitted, RowFitted) else ()
    new = [
        _with_probabilities(source, options, added, keys, several, written, beside)
        for source in sources
    ]
    watch = BlockWatch(fitted.expects, options.on_range)
    calibrate = calibrating(fitted, keys, options.on_missing == "null", watch, new_segments)
    kinds: tuple[str, ...] = ("DOUBLE", "VARCHAR") if keys else ("DOUBLE",)
    if beside or (keys and len(keys.columns) > 1):
        kinds = ()  # of as many columns as come
    kinds, gives = ((), f"DOUBLE[{len(added)}]") if several else (kinds, "DOUBLE")
    with (
        session.function(FUNCTION, calibrate, kinds, gives),
        session.function(SET, member_setter(), ("VARCHAR",) * 3, "VARCHAR"),
        whole_file(out) as temporary,
    ):
        try:
            count = _write(session, new, names, out, temporary)
        except InputError as failed:
            if StopError.__name__ in str(failed):
                raise _UnreadableError(watch.refuses) from failed
            raise
        watch.families.refuse_other()
    watch.warn_at_end(", ".join(options.scores[:8]))
    return count


class _Extended(NamedTuple):
    """A file with its new columns: a relation that has them, and the SQL of each by its name."""

    source: Source
    relation: str
    new: dict[str, str]
    #: whether the scores are written with a decimal comma
    comma: bool = False


def _write(
    session: Session,
    extended: list[_Extended],
    names: list[str],
    out: Path,
    temporary: Path,
) -> int:
    """Write the rows, in order, to a temporary file; how many there are."""
    sources = [one.source for one in extended]
    rare = _rare(sources, names, out)
    beside = session.temporary("probabilities.parquet")
    command = _copy_new(extended, beside) if rare else _copy(extended, names, out, temporary)
    header = not rare and _has_header_row(sources[0], names, out)
    with _ordered(session, command):
        written = int(session.query(command)[0][0]) - header
    check_rows(written, [s.rows for s in sources], sources[0].path.name)
    if rare:
        copy_beside(sources, names, list(extended[0].new), beside, temporary)
    return written


def _refuse(job: _Job, written: Spellings, *, beyond: bool) -> None:
    """Say which rows cannot be calibrated, once it is known that there are some."""
    session, fitted, sources, _, _, options, _ = job
    missing = (LEFT_OUT,) if options.on_missing == "error" else ()
    checks = (TEXT, INFINITE, *missing, *((BEYOND,) if beyond else ()))
    for column in options.scores:
        spelled = written[column]
        refuse(session, sources, column, role="score", checks=checks, written=spelled)
    for column in options.features:
        told = written.get(column)
        refuse(session, sources, column, role=FEATURE, checks=(TEXT, INFINITE), written=told)
    for segment in options.segments:
        refuse(session, sources, segment, role="segment", checks=missing, absent=())
    if takes_distributions(fitted, options.on_range):
        refuse_sums(session, sources, options.scores, role="score", advice=SUMS_TO_APPLY)


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


def _names(sources: list[Source], options: ApplyOptions, added: list[str]) -> list[str]:
    """The columns of the output; every file must have those of the first."""
    refuse_different([(source.path.name, source.names) for source in sources])
    first = sources[0]
    options.check_columns(added, first.names, first.path.name)
    return [*first.names, *(name for name in added if name not in first.names)]


def _with_probabilities(
    source: Source,
    options: ApplyOptions,
    added: list[str],
    keys: SegmentKeys | None,
    several: bool,
    written: Spellings,
    beside: Sequence[FeatureColumn] = (),
) -> _Extended:
    """A file with the new columns; for ``several`` classes one call gives them all."""
    given = [checked_number(source, column, written[column]) for column in options.scores]
    if keys:
        for segment, spelling in zip(options.segments, keys.columns, strict=True):
            given.append(segment_text(source, source.find(segment, "segment"), spelling))
    for one in beside:
        told = written.get(one.name)
        if one.nominal:
            given.append(f"({text(source, source.find(one.name, FEATURE))})::VARCHAR")
        else:
            given.append(checked_number(source, one.name, told, FEATURE))
    made = f"{FUNCTION}({', '.join(given)})"
    spelled = [written[column] for column in options.scores]
    comma = any(one is not None and one.decimal == "," for one in spelled)
    if not several:
        return _Extended(source, source.relation, {added[0]: made}, comma)
    relation = f"(SELECT *, {made} AS {MADE} FROM {source.relation})"
    each = {name: f"{MADE}[{i}]" for i, name in enumerate(added, start=1)}
    return _Extended(source, relation, each, comma)


def _select(one: _Extended, names: list[str], kind: str) -> str:
    """SQL of the output's columns. In CSV, strings of JSON lose their quotes, and new numbers are
    written with a decimal comma where the scores are; in JSON, NaN and infinite numbers are
    refused."""
    source, new = one.source, one.new
    places: dict[str, list[int]] = {}
    for i, name in enumerate(source.names):
        places.setdefault(name, []).append(i)
    plain = {"csv": text, "json": finite}
    read = plain.get(kind, lambda source, i: source.columns[i])
    if kind == "csv" and one.comma:
        new = {name: f"replace(({sql})::VARCHAR, '.', ',')" for name, sql in new.items()}
    # of columns with the same name the first comes first, also in a file of another order
    chosen = [new[name] if name in new else read(source, places[name].pop(0)) for name in names]
    listed = ", ".join(f"{sql} AS o{i}" for i, sql in enumerate(chosen))
    return f"SELECT {listed} FROM {one.relation}"


def _lines(one: _Extended) -> str:
    """SQL of the lines of JSON as they came, with new keys added, or their values replaced."""
    source = one.source
    values = {name: f"to_json({sql})::VARCHAR" for name, sql in one.new.items()}
    own = len(source.names) - source.folders
    members = {
        name: f"to_json({column})::VARCHAR"
        for name, column in zip(source.names[own:], source.columns[own:], strict=True)
    }
    if not set(values).isdisjoint(source.names[:own]):
        line = appended(members) if members else one_line()
        for name, value in values.items():
            line = f"{SET}({line}, {literal(name)}, coalesce({value}, 'null'))"
        return f"SELECT {line} AS o0 FROM {one.relation}"
    return f"SELECT {appended({**members, **values})} AS o0 FROM {one.relation}"


def _copy(extended: list[_Extended], names: list[str], out: Path, temporary: Path) -> str:
    """The COPY command for the output's kind."""
    kind, ending, packed = output_kind(out)
    first = extended[0].source
    rows = " UNION ALL ".join(_select(one, names, kind) for one in extended)
    columns = [f"o{i}" for i in range(len(names))]
    named = ", ".join(f"{c} AS {identifier(n)}" for c, n in zip(columns, names, strict=True) if n)
    query = f"SELECT {named} FROM ({rows})"
    options = {
        "csv": "FORMAT csv, HEADER true",
        "json": "FORMAT json",
        "parquet": "FORMAT parquet",
    }[kind]
    if _as_lines(first, out):
        query = " UNION ALL ".join(map(_lines, extended))
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


def _copy_new(extended: list[_Extended], to: Path) -> str:
    """The COPY command for the new columns alone."""
    listed = [
        ", ".join(f"{sql} AS p{i}" for i, sql in enumerate(one.new.values())) for one in extended
    ]
    pairs = zip(listed, extended, strict=True)
    rows = " UNION ALL ".join(f"SELECT {columns} FROM {one.relation}" for columns, one in pairs)
    return f"COPY ({rows}) TO {literal(str(to))} (FORMAT parquet, USE_TMP_FILE false)"


def _distinct(names: list[str]) -> bool:
    """Whether SQL can tell the columns apart; if not, the header is one more row."""
    return len({name.lower() for name in names}) == len(names) and all(names)


def _repeated(names: list[str]) -> list[str]:
    lower = [name.lower() for name in names]
    return [name for name in names if lower.count(name.lower()) > 1 or not name][:8]
