"""Add a column of calibrated probabilities to files, in one stream from disk to disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from calibrant.data.score_range import check_on_range
from calibrant.data.segment_column import NewSegments
from calibrant.engines.duckdb.block_function import Passing, StopError, calibrating
from calibrant.engines.duckdb.column_sql import finite, is_one_of, number, segment_text, text
from calibrant.engines.duckdb.diagnose import BEYOND, INFINITE, MISSING, TEXT, refuse
from calibrant.engines.duckdb.file_rows import look_at
from calibrant.engines.duckdb.files import MISSING as MISSING_WORDS
from calibrant.engines.duckdb.files import (
    Source,
    identifier,
    kind_of,
    literal,
    refuse_url,
)
from calibrant.engines.duckdb.json_files import appended, one_line, set_member
from calibrant.engines.duckdb.parquet_files import changed_types, copy_beside
from calibrant.engines.duckdb.session import Session, given_or_new
from calibrant.engines.rows_of_files import check_rows
from calibrant.engines.segment_keys import SegmentKeys, check_segment, segment_keys
from calibrant.errors import InputError, ParameterError, import_extra
from calibrant.estimators.fitted import Fitted
from calibrant.maps import Segmented
from calibrant.outputs import find_target, keep_apart, whole_file

__all__ = ["apply_file"]

FUNCTION, SET = "calibrant_calibrate", "calibrant_set_member"
ON_MISSING = ("error", "null")


def apply_file(
    fitted: Fitted,
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    score: str,
    into: str = "probability",
    segment: str | None = None,
    on_missing: str = "error",
    on_range: str = "error",
    overwrite_column: bool = False,
    new_segments: NewSegments | None = None,
    session: Session | None = None,
) -> int:
    """Copy files to ``out`` with one more column, the calibrated probability of ``pos_label``.

    Parameters
    ----------
    fitted : Fitted
    files : paths or globs, all with the same columns
    out : path
        Its ending says what is written: .csv, .tsv, .jsonl (each also .gz) or .parquet.
    score : name of the column of scores
    into : name of the new column
    segment : name of the column of segments, where the calibrator has a map for each
        Segments are told by their text, so that 1 and ``"1"`` are the same here, and blanks around
        it do not count; where the calibrator has only whole numbers, 01 and 1.0 are 1. Segments
        never seen get the map of all rows.
    on_missing : {"error", "null"}, default="error"
        What to do with rows that have no score, or no segment where one is needed; "null" leaves
        their probability empty.
    on_range : {"error", "clip", "allow"}, default="error"
        What to do with scores outside [0, 1] where the calibrator was fitted on probabilities:
        refuse them, count them as 0 or 1, or take them as they are.
    overwrite_column : bool, default=False
        Allow ``into`` to replace a column of that name, in its place.
    new_segments : NewSegments, optional
        Where rows of segments that were never seen are counted.
    session : Session, optional
        Sets threads, memory limit and progress.

    Returns
    -------
    rows : int
        How many were written.

    Notes
    -----
    Rows keep their order and other columns their values: fields of text files are never parsed.
    Memory does not grow with the number of rows. ``out`` appears whole at the end or not at all;
    a pipe is written to as rows come. It may be none of the files.
    Probabilities equal ``fitted.calibrate`` bit for bit; CSV holds the shortest text that reads
    back as the same number.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.maps import Piecewise
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "in.csv").write_text("id,p\\n007,0.9\\n008,0.2\\n")
    >>> f = Fitted(Piecewise.step([0.5], [0.25, 0.75]), (0, 1), 1)
    >>> apply_file(f, [folder / "in.csv"], folder / "out.csv", score="p")
    2
    >>> print((folder / "out.csv").read_text())
    id,p,probability
    007,0.9,0.75
    008,0.2,0.25
    <BLANKLINE>
    """
    if on_missing not in ON_MISSING:
        raise ParameterError(f"on_missing must be one of {ON_MISSING}, but {on_missing!r} came.")
    check_on_range(on_range)
    if fitted.positive_column is None:
        raise InputError(
            "the calibrator must be for two classes, but it is a multiclass one, which gives one "
            "probability per class: use its predict_proba in Python."
        )
    check_segment(fitted, segment)
    if not into.strip():
        raise ParameterError(f"into must be the name of the new column, but {into!r} came.")
    refuse_url(os.fspath(out))
    out = Path(out)
    _refuse_packed_stream(out)
    with given_or_new(session) as open_session:
        wanted = [score, *([segment] if segment else [])]
        sources = look_at(open_session, files, wanted, every=kind_of(out)[0] == "parquet")
        keep_apart({"the output": out}, [source.path for source in sources])
        names = _names(sources, into, overwrite_column)
        keys = segment_keys(fitted.map) if isinstance(fitted.map, Segmented) else None
        new = {source.path: _probability(source, score, segment, keys) for source in sources}
        passing = Passing(fitted.expects, on_range)
        calibrate = calibrating(fitted, keys, on_missing == "null", passing, new_segments)
        kinds = ("DOUBLE", "VARCHAR") if keys else ("DOUBLE",)
        with (
            open_session.function(FUNCTION, calibrate, kinds),
            open_session.function(SET, _set_member(into), ("VARCHAR", "VARCHAR"), "VARCHAR"),
            whole_file(out) as temporary,
        ):
            rare = _rare(sources, names, out)
            beside = open_session.temporary("probabilities.parquet")
            command = (
                _copy_new(sources, new, beside)
                if rare
                else _copy(sources, new, names, into, out, temporary)
            )
            threads = _keep_order(open_session, command)
            try:
                header = not rare and _has_header_row(sources[0], names, out)
                written = int(open_session.query(command)[0][0]) - header
                check_rows(written, [s.rows for s in sources], sources[0].path.name)
                if rare:
                    copy_beside(sources, names, into, beside, temporary)
            except InputError as failed:
                if StopError.__name__ not in str(failed):
                    raise
                missing = (MISSING,) if on_missing == "error" else ()
                checks = (TEXT, INFINITE, *missing, *((BEYOND,) if passing.refuses else ()))
                refuse(open_session, sources, score, role="score", checks=checks)
                if segment:
                    refuse(
                        open_session, sources, segment, role="segment", checks=missing, absent=()
                    )
                raise
            finally:
                if threads is not None:
                    open_session.query(f"SET threads = {threads}")
        passing.warn(score)
        return written


def _set_member(name: str) -> Callable[..., Any]:
    """Replace a key's value in objects that are Arrow columns of text."""
    pyarrow = import_extra("pyarrow", extra="cli")

    def of_lines(lines: Any, values: Any) -> Any:
        pairs = zip(lines.to_pylist(), values.to_pylist(), strict=True)
        return pyarrow.array([set_member(line, name, value) for line, value in pairs])

    return of_lines


def _keep_order(session: Session, command: str) -> int | None:
    """Where the plan would not write batches in order, one thread does; how many there were."""
    plan = " ".join(str(row[1]) for row in session.query(f"EXPLAIN {command}"))
    if re.search("batch.copy", plan, re.IGNORECASE):
        return None
    threads = int(session.query("SELECT current_setting('threads')")[0][0])
    session.query("SET threads = 1")
    return threads


# --- the columns --------------------------------------------------------------------------------


def _names(sources: list[Source], into: str, overwrite: bool) -> list[str]:
    """The columns of the output; every file must have those of the first."""
    first = sources[0]
    for other in sources[1:]:
        if sorted(other.names) != sorted(first.names):
            odd = sorted(set(other.names) ^ set(first.names)) or sorted(other.names)
            raise InputError(
                f"all files must have the same columns, but {first.path.name} and "
                f"{other.path.name} differ in {', '.join(map(repr, odd[:8]))}. Apply one by one."
            )
    if into in first.names and not overwrite:
        raise InputError(
            f"{first.path.name} already has a column {into!r}. Give the new one another name "
            "(into), or allow the old one to be replaced (overwrite-column)."
        )
    return [*first.names, *([] if into in first.names else [into])]


def _probability(source: Source, score: str, segment: str | None, keys: SegmentKeys | None) -> str:
    """SQL of the new column."""
    place = source.find(score, "score")
    x, raw = number(source, place, "score"), f"{text(source, place)}::VARCHAR"
    missing = f"{raw} IS NULL OR {is_one_of(raw, MISSING_WORDS)}"
    # what is neither missing nor a number becomes infinite, which is always refused
    checked = f"CASE WHEN {x} IS NOT NULL THEN {x} WHEN NOT ({missing}) THEN 'inf'::DOUBLE END"
    if segment and keys:
        group = segment_text(source, source.find(segment, "segment"), keys)
        return f"{FUNCTION}({checked}, {group})"
    return f"{FUNCTION}({checked})"


def _select(source: Source, names: list[str], into: str, new: str, kind: str) -> str:
    """SQL of the columns of an output of that kind: CSV has JSON strings without their quotes, and
    JSON no NaN."""
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
    """SQL of the rows of JSON as they came, with one more key, or another value for one."""
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
    kind, ending, packed = kind_of(out)
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
        # SQL would rename the columns: the header is written as a first row
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
    """DuckDB writes to a pipe as if nothing had been said of compression."""
    if kind_of(out)[2] and find_target(out).stream:
        raise InputError(
            f"{out.name} is a pipe or a device, which is not written to compressed. Name it "
            "without .gz, and compress what comes out of it."
        )


def _as_lines(first: Source, out: Path) -> bool:
    """Whether rows are JSON before and after, so that their text need not be touched."""
    return first.kind == kind_of(out)[0] == "json"


#: one column as it is: without quotes, and parted by what no JSON holds
_RAW = "FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE ''"


def _has_header_row(first: Source, names: list[str], out: Path) -> bool:
    """Whether the header was written as a row of its own."""
    return not _distinct(names) and not _as_lines(first, out)


def _rare(sources: list[Source], names: list[str], out: Path) -> bool:
    """Whether Parquet files have names or types that DuckDB would change: Arrow must copy them."""
    if sources[0].kind != "parquet":
        return False
    if kind_of(out)[0] == "parquet":
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
