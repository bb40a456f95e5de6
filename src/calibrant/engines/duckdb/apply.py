"""Add a column of calibrated probabilities to files, in one stream from disk to disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.engines.duckdb.columns import is_one_of, number, segment_text, text
from calibrant.engines.duckdb.diagnose import INFINITE, MISSING, TEXT, refuse
from calibrant.engines.duckdb.files import MISSING as MISSING_WORDS
from calibrant.engines.duckdb.files import (
    Source,
    identifier,
    kind_of,
    literal,
    refuse_url,
    whole_file,
)
from calibrant.engines.duckdb.read import look_at
from calibrant.engines.duckdb.session import Session, given_or_new
from calibrant.engines.segments import SegmentKeys, check_segment, segment_keys
from calibrant.errors import InputError, ParameterError, import_extra
from calibrant.fitted import Fitted
from calibrant.maps import Segmented

__all__ = ["apply_file"]

FUNCTION = "calibrant_calibrate"
ON_MISSING = ("error", "null")


class _StopError(Exception):
    """A score cannot be calibrated; which one is found out afterwards."""


def apply_file(
    fitted: Fitted,
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    score: str,
    into: str = "probability",
    segment: str | None = None,
    on_missing: str = "error",
    overwrite_column: bool = False,
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
        it do not count. Segments never seen get the map of all rows.
    on_missing : {"error", "null"}, default="error"
        What to do with rows that have no score, or no segment where one is needed; "null" leaves
        their probability empty.
    overwrite_column : bool, default=False
        Allow ``into`` to replace a column of that name, in its place.
    session : Session, optional
        Sets threads, memory limit and progress.

    Returns
    -------
    rows : int
        How many were written.

    Notes
    -----
    Rows keep their order and other columns their values: fields of text files are never parsed.
    Memory does not grow with the number of rows. ``out`` appears whole at the end or not at all.
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
    with given_or_new(session) as open_session:
        sources = look_at(open_session, files, [score, *([segment] if segment else [])])
        _refuse_itself(out, sources)
        names = _names(sources, into, overwrite_column)
        keys = segment_keys(fitted.map) if isinstance(fitted.map, Segmented) else None
        rows = " UNION ALL ".join(
            _select(source, names, score, into, segment, keys) for source in sources
        )
        calibrate = _calibrate(fitted, keys, on_missing == "null")
        kinds = ("DOUBLE", "VARCHAR") if keys else ("DOUBLE",)
        with open_session.function(FUNCTION, calibrate, kinds), whole_file(out) as temporary:
            command = _copy(rows, names, out, temporary, sources[0])
            threads = _keep_order(open_session, command)
            try:
                return int(open_session.query(command)[0][0]) - (not _distinct(names))
            except InputError as failed:
                if _StopError.__name__ not in str(failed):
                    raise
                missing = (MISSING,) if on_missing == "error" else ()
                refuse(
                    open_session, sources, score, role="score", checks=(TEXT, INFINITE, *missing)
                )
                if segment:
                    refuse(
                        open_session, sources, segment, role="segment", checks=missing, absent=()
                    )
                raise
            finally:
                if threads is not None:
                    open_session.query(f"SET threads = {threads}")


def _calibrate(fitted: Fitted, keys: SegmentKeys | None, allow_missing: bool) -> Callable[..., Any]:
    """The map as a function of Arrow columns: NULL is a missing value, infinity a wrong one."""
    pyarrow = import_extra("pyarrow", extra="cli")

    def answer(scores: Any, known: Any, calibrate: Callable[[Any], Any]) -> Any:
        usable = np.isfinite(scores) & known
        if not usable.all() and (not allow_missing or np.isinf(scores).any()):
            raise _StopError
        result = np.zeros(len(scores))
        if usable.any():
            result[usable] = calibrate(usable)
        return pyarrow.array(result, mask=~usable)

    def of_scores(column: Any) -> Any:
        scores = column.to_numpy(zero_copy_only=False)
        return answer(scores, True, lambda usable: fitted.calibrate(scores[usable]))

    if keys is None:
        return of_scores
    by_text = keys.map

    def of_segments(column: Any, segments: Any) -> Any:
        scores, names = (c.to_numpy(zero_copy_only=False) for c in (column, segments))
        known = np.array([name is not None for name in names])
        return answer(scores, known, lambda usable: by_text(scores[usable], names[usable]))

    return of_segments


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


def _select(
    source: Source,
    names: list[str],
    score: str,
    into: str,
    segment: str | None,
    keys: SegmentKeys | None,
) -> str:
    place = source.find(score, "score")
    x, raw = number(source, place, "score"), f"{text(source, place)}::VARCHAR"
    missing = f"{raw} IS NULL OR {is_one_of(raw, MISSING_WORDS)}"
    # what is neither missing nor a number becomes infinite, which is always refused
    checked = f"CASE WHEN {x} IS NOT NULL THEN {x} WHEN NOT ({missing}) THEN 'inf'::DOUBLE END"
    new = f"{FUNCTION}({checked})"
    if segment and keys:
        group = segment_text(source, source.find(segment, "segment"), keys)
        new = f"{FUNCTION}({checked}, {group})"
    places: dict[str, list[int]] = {}
    for i, name in enumerate(source.names):
        places.setdefault(name, []).append(i)
    # of columns with the same name the first comes first, also in a file of another order
    chosen = [new if name == into else source.columns[places[name].pop(0)] for name in names]
    listed = ", ".join(f"{sql} AS o{i}" for i, sql in enumerate(chosen))
    return f"SELECT {listed} FROM {source.relation}"


def _copy(rows: str, names: list[str], out: Path, temporary: Path, first: Source) -> str:
    """The COPY command for the output's kind."""
    kind, ending, packed = kind_of(out)
    columns = [f"o{i}" for i in range(len(names))]
    distinct = _distinct(names)
    named = ", ".join(f"{c} AS {identifier(n)}" for c, n in zip(columns, names, strict=True) if n)
    options = {
        "csv": "FORMAT csv, HEADER true",
        "json": "FORMAT json",
        "parquet": "FORMAT parquet",
    }[kind]
    query = f"SELECT {named} FROM ({rows})"
    if not distinct and kind != "csv":
        raise InputError(
            f"{out.name} needs columns with different names (upper and lower case are the same), "
            f"but {first.path.name} has {', '.join(map(repr, _repeated(names)))}. Write .csv "
            "instead."
        )
    if not distinct:  # SQL would rename the columns: the header is written as a first row
        header = ", ".join(f"{literal(n)} AS {c}" for c, n in zip(columns, names, strict=True))
        texts = ", ".join(f"{c}::VARCHAR" for c in columns)
        query = f"SELECT {header} UNION ALL SELECT {texts} FROM ({rows})"
        options = "FORMAT csv, HEADER false"
    if kind == "csv":
        kept = first.separator if first.separator != "\t" else ","
        options += f", DELIMITER {literal(chr(9) if ending == '.tsv' else kept)}"
    if kind == "parquet":
        options += ", COMPRESSION zstd"
    elif packed:
        options += ", COMPRESSION gzip"
    return f"COPY ({query}) TO {literal(str(temporary))} ({options}, USE_TMP_FILE false)"


def _distinct(names: list[str]) -> bool:
    """Whether SQL can tell the columns apart; if not, the header is one more row."""
    return len({name.lower() for name in names}) == len(names) and all(names)


def _repeated(names: list[str]) -> list[str]:
    lower = [name.lower() for name in names]
    return [name for name in names if lower.count(name.lower()) > 1 or not name][:8]


def _refuse_itself(out: Path, sources: list[Source]) -> None:
    for source in sources:
        if out.exists() and out.samefile(source.path):
            raise InputError(f"the output must be another file than the input {source.path}.")
