"""Add columns of calibrated probabilities to files, in one stream from disk to disk."""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.data.door import are_distributions
from calibrant.data.scale import WHAT_TO_DO, ScoreRange, as_fitted
from calibrant.data.segments import NewSegments
from calibrant.engines.apply import (
    LEFT_OUT,
    ApplyOptions,
    RangeWatch,
    RowFitted,
    SpelledCategories,
    block_rule,
    segment_keys,
)
from calibrant.engines.duckdb import (
    NumberColumns,
    Session,
    Source,
    column_text_sql,
    identifier,
    json_key_setter,
    json_row_on_one_line,
    json_row_with_keys,
    json_value_sql,
    literal,
    open_sources,
    segment_key_sql,
)
from calibrant.engines.duckdb_rows import (
    INFINITE,
    MISSING,
    OUTSIDE,
    SUMS_TO_APPLY,
    TEXT,
    refuse,
    refuse_sums,
)
from calibrant.engines.files import (
    UTF8,
    Encoding,
    encode_file,
    not_encodable_message,
    open_packed,
    output_file_kind,
    refuse_different,
    refuse_url,
)
from calibrant.engines.open_engine import check_rows
from calibrant.errors import InputError, import_extra
from calibrant.fitting.fitted import Fitted
from calibrant.outputs import check_different_files, find_target, private_file, whole_file
from calibrant.rules.base import VectorMap
from calibrant.rules.segmented import Segmented

FUNCTION, SET = "calibrant_calibrate", "calibrant_set_member"
FEATURE = "feature"
#: the column that holds the probabilities of all classes of a row
MADE = "calibrant_probabilities"


def apply_file(
    session: Session,
    fitted: Fitted,
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    options: ApplyOptions,
    new_segments: NewSegments,
) -> int:
    """Copy files to ``out`` with a column of probabilities, or one for each class; the number of
    rows.

    Parameters
    ----------
    session : Session
    fitted : Fitted
    files : paths or globs, all with the same columns
    out : path
        Its ending says what is written: .csv, .tsv, .jsonl (each also .gz) or .parquet.
    options : ApplyOptions
    new_segments : NewSegments
        Counts the rows of segments that the calibrator has not seen.

    Notes
    -----
    Rows keep their order and other columns their values: fields of text files are never parsed.
    CSV is written in the encoding of the files, or in UTF-8 where they have several. Memory does
    not grow with the number of rows. ``out`` appears whole at the end or not at all. A pipe is
    written to as rows come, in another encoding than UTF-8 at the end. ``out`` must not be one of
    the files.
    Probabilities equal ``fitted.calibrate`` bit for bit; CSV holds the shortest text that reads
    back as the same number.
    """
    refuse_url(os.fspath(out))
    out = Path(out)
    kind, _, packed = output_file_kind(out)
    stream = find_target(out).stream
    if packed and stream:  # DuckDB would not compress it
        raise InputError(
            f"{out.name} is a pipe or a device, which is not written to compressed. Name it "
            "without .gz, and compress what comes out of it."
        )
    beside = [str(one.name) for one in fitted.used] if isinstance(fitted, RowFitted) else []
    sources = open_sources(session, files, [*options.columns, *beside], every=kind == "parquet")
    check_different_files({"the output": out}, [source.path for source in sources])
    for source in sources:
        refuse_changed(source, out)
    job = _ApplyJob(session, fitted, sources, out, options, new_segments)
    if stream:  # rows cannot be taken back: ask before the first one
        job.numbers.respell()
    while True:
        try:
            return job.copy()
        except StopError as failed:
            if not job.numbers.respell():
                job.refuse()
                raise InputError("some rows cannot be calibrated.") from failed
        new_segments.rows = new_segments.new = 0


class _ApplyJob:
    """One run of `apply_file`: the calibrator, the files that are read, and the output.

    ``names`` are the columns of the output, ``added`` the new ones.
    """

    def __init__(
        self,
        session: Session,
        fitted: Fitted,
        sources: list[Source],
        out: Path,
        options: ApplyOptions,
        new_segments: NewSegments,
    ) -> None:
        self.session, self.fitted, self.sources = session, fitted, sources
        self.out, self.options, self.new = out, options, new_segments
        refuse_different([(source.path.name, source.names) for source in sources])
        first = sources[0]
        self.added = options.new_columns(fitted)
        options.check_columns(self.added, first.names, first.path.name)
        self.names = [*first.names, *(name for name in self.added if name not in first.names)]
        self.encoding = self._encoding()
        self.beside = fitted.used if isinstance(fitted, RowFitted) else ()
        roles = dict.fromkeys(options.scores, "score")
        for column in self.beside:
            if not column.nominal:
                roles.setdefault(str(column.name), FEATURE)
        self.numbers = NumberColumns(session, sources, roles)
        self.map, self.spellings = segment_keys(fitted.map)

    def _encoding(self) -> Encoding:
        """The encoding of the output: for CSV that of the files if they agree, else UTF-8."""
        found = dict.fromkeys(source.encoding for source in self.sources)
        first, *others = found
        marked_or_not = bool(others) and all(one.utf8 for one in found)
        if output_file_kind(self.out)[0] != "csv" or marked_or_not:
            return UTF8
        if others:
            self.session.note(f"{self.out.name} is UTF-8: the files have several encodings")
            return UTF8
        for letter in "".join(self.names):
            try:
                letter.encode(first.name)
            except UnicodeEncodeError as wrong:
                raise InputError(not_encodable_message(letter, first)) from wrong
        return first

    @contextmanager
    def _output_file(self) -> Iterator[tuple[Path, bool]]:
        """A temporary file for DuckDB to write, and whether DuckDB compresses it. At the end it
        becomes the output, encoded if need be."""
        packed = output_file_kind(self.out)[2]
        with whole_file(self.out) as temporary:
            if self.encoding == UTF8:
                yield temporary, packed
                return
            plain = self.session.temporary(f"out-{secrets.token_hex(4)}.csv")
            private_file(plain).close()
            yield plain, False
            with open_packed(temporary, packed) as stream:
                encode_file(plain, self.encoding, stream)
            plain.unlink()

    def copy(self) -> int:
        """Read, calibrate and write all rows; the number of rows. StopError if some cannot be
        calibrated."""
        session, options = self.session, self.options
        watch = BlockWatch(self.fitted.expects, options.on_range)
        spelled = [SpelledCategories(one) if one.nominal else None for one in self.beside]
        several = isinstance(self.map, VectorMap)
        gives = f"DOUBLE[{len(self.added)}]" if several else "DOUBLE"
        with (
            session.function(FUNCTION, self._calibrating(watch, spelled), gives),
            session.function(SET, json_key_setter(), "VARCHAR"),
            self._output_file() as (temporary, packed),
        ):
            command, header = self._copy_command(temporary, packed)
            try:
                with _rows_in_order(session, command):
                    written = int(session.query(command)[0][0]) - header
            except InputError as failed:
                if StopError.__name__ in str(failed):
                    raise StopError from failed
                raise
            check_rows(written, [s.rows for s in self.sources], self.sources[0].path.name)
            for categories in filter(None, spelled):
                categories.refuse_other()
        watch.warn_at_end(", ".join(options.scores[:8]))
        return written

    def _calibrating(
        self, watch: BlockWatch, spelled: Sequence[SpelledCategories | None]
    ) -> Callable[..., Any]:
        """The calibrator as a function that SQL calls with blocks of rows: scores, then segments or
        features.

        NULL is a missing score or segment, infinity a wrong number. Of several classes each row
        gets a list of probabilities.
        """
        pyarrow = import_extra("pyarrow", extra="cli")
        map_: Any = self.map
        options, spellings = self.options, self.spellings
        scores = len(options.scores)
        distributions = options.takes_distributions(map_)
        trees = self.fitted.trees if isinstance(self.fitted, RowFitted) else None
        seen = set(map_.seen) if isinstance(map_, Segmented) else set()
        lock = threading.Lock()

        def of_rows(given: Array, beside: Sequence[Any]) -> Array:
            if trees is not None:
                pairs = zip(spelled, beside, strict=True)
                return trees.probabilities(given, [own.codes(v) if own else v for own, v in pairs])
            if distributions and not are_distributions(given):
                raise StopError
            p: Array = map_(given, beside) if spellings else map_(given)
            return p

        rule = block_rule(map_, options, watch, of_rows)

        def of_block(*columns: Any) -> Any:
            arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
            complete = np.ones(len(arrays[0]), dtype=bool)
            if spellings:
                for column in columns[scores:]:
                    complete &= column.is_valid().to_numpy(zero_copy_only=False)
            if any(own.dtype != object and np.isinf(own).any() for own in arrays):
                raise StopError  # a wrong number: a score, or a feature
            p, known = rule(arrays[:scores], complete, arrays[scores:])
            if options.on_missing == "error" and not known.all():
                raise StopError
            if seen:
                some = [own[complete] for own in arrays[scores:]]
                with lock:
                    self.new.add(some[0] if len(some) == 1 else zip(*some, strict=True), seen)
            if p.ndim == 1:
                return pyarrow.array(p, mask=~known)
            flat, missing = pyarrow.array(p.ravel()), pyarrow.array(~known)
            return pyarrow.FixedSizeListArray.from_arrays(flat, p.shape[1], mask=missing)

        return of_block

    def _copy_command(self, temporary: Path, packed: bool) -> tuple[str, int]:
        """The COPY command, and how many of its rows are a header."""
        names, out, first, header = self.names, self.out, self.sources[0], 0
        kind, ending, _ = output_file_kind(out)
        lines = first.kind == kind == "json"  # the text of a row need not be touched
        rows = " UNION ALL ".join(self._output_rows(source, kind, lines) for source in self.sources)
        columns = [f"o{i}" for i in range(len(names))]
        lower = [name.lower() for name in names]
        repeated = [name for name in names if lower.count(name.lower()) > 1 or not name]
        options = _FORMATS[kind]
        if lines:
            query, options = rows, _RAW
        elif not repeated:
            named = (f"{c} AS {identifier(n)}" for c, n in zip(columns, names, strict=True))
            query = f"SELECT {', '.join(named)} FROM ({rows})"
        elif kind != "csv":
            raise InputError(
                f"{out.name} needs columns with different names (upper and lower case are the "
                f"same), but {first.path.name} has {', '.join(map(repr, repeated[:8]))}. Write "
                ".csv instead."
            )
        else:  # SQL would rename the columns, so the header is written as the first row
            named = (f"{literal(n)} AS {c}" for c, n in zip(columns, names, strict=True))
            fields = ", ".join(f"{c}::VARCHAR" for c in columns)
            query = f"SELECT {', '.join(named)} UNION ALL SELECT {fields} FROM ({rows})"
            options, header = "FORMAT csv, HEADER false", 1
        if kind == "csv":
            kept = first.separator if first.separator != "\t" else ","
            options += f", DELIMITER {literal(chr(9) if ending == '.tsv' else kept)}"
            if first.line_end:
                options += f", NEW_LINE {literal(first.line_end)}"
        if packed:
            options += ", COMPRESSION gzip"
        command = f"COPY ({query}) TO {literal(str(temporary))} ({options}, USE_TMP_FILE false)"
        return command, header

    def _output_rows(self, source: Source, kind: str, lines: bool) -> str:
        """SQL of a file's rows with the new columns; where ``lines``, of its lines of JSON."""
        numbers, options = self.numbers, self.options
        given = [numbers.checked(source, column) for column in options.scores]
        for segment, spelling in zip(options.segments, self.spellings, strict=True):
            given.append(segment_key_sql(source, source.find(segment, "segment"), spelling))
        for one in self.beside:
            name = str(one.name)
            if one.nominal:
                given.append(f"({column_text_sql(source, source.find(name, FEATURE))})::VARCHAR")
            else:
                given.append(numbers.checked(source, name))
        made, relation = f"{FUNCTION}({', '.join(given)})", source.relation
        new = {self.added[0]: made}
        if isinstance(self.map, VectorMap):  # one call gives all classes
            relation = f"(SELECT *, {made} AS {MADE} FROM {relation})"
            new = {name: f"{MADE}[{i}]" for i, name in enumerate(self.added, start=1)}
        if lines:
            return f"SELECT {_json_lines(source, new)} AS o0 FROM {relation}"
        written = [numbers.written[column] for column in options.scores]
        comma = any(one is not None and one.decimal == "," for one in written)
        if kind == "csv" and comma:  # as the scores are written
            new = {name: f"replace(({sql})::VARCHAR, '.', ',')" for name, sql in new.items()}
        return f"SELECT {_output_columns(source, new, self.names, kind)} FROM {relation}"

    def refuse(self) -> None:
        """Raise the InputError that says which rows cannot be calibrated, and why."""
        session, sources, options = self.session, self.sources, self.options
        missing = [replace(MISSING, advice=LEFT_OUT)] if options.on_missing == "error" else []
        of_scores, known = list(missing), self.fitted.expects
        if known is not None and RangeWatch(known, options.on_range).refuses:
            of_scores.append(replace(OUTSIDE, must=as_fitted(known), advice=WHAT_TO_DO))
        for column, role in self.numbers.roles.items():
            written = self.numbers.written[column]
            checks = (TEXT, INFINITE, *(of_scores if role == "score" else ()))
            refuse(session, sources, column, role=role, checks=checks, written=written)
        for segment in options.segments:
            refuse(session, sources, segment, role="segment", checks=missing, absent=())
        if options.takes_distributions(self.fitted.map):
            refuse_sums(session, sources, options.scores, role="score", advice=SUMS_TO_APPLY)


# --- the copy -----------------------------------------------------------------------------------


@contextmanager
def _rows_in_order(session: Session, command: str) -> Iterator[None]:
    """Make sure that the rows of a COPY keep their order, with one thread where that is needed."""
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


def _output_columns(source: Source, new: Mapping[str, str], names: list[str], kind: str) -> str:
    """SQL of all columns of the output, as its kind of file needs them."""
    places: dict[str, list[int]] = {}
    for i, name in enumerate(source.names):
        places.setdefault(name, []).append(i)
    plain = {"csv": column_text_sql, "json": json_value_sql}
    read = plain.get(kind, lambda source, i: source.columns[i])
    # of columns with the same name the first comes first, also in a file of another order
    chosen = [new[name] if name in new else read(source, places[name].pop(0)) for name in names]
    return ", ".join(f"{sql} AS o{i}" for i, sql in enumerate(chosen))


def _json_lines(source: Source, new: Mapping[str, str]) -> str:
    """SQL of the lines of a JSON file with new keys added, or replaced. All else stays as it
    came."""
    values = {name: f"to_json({sql})::VARCHAR" for name, sql in new.items()}
    own = len(source.names) - source.folders
    members = {
        name: f"to_json({column})::VARCHAR"
        for name, column in zip(source.names[own:], source.columns[own:], strict=True)
    }
    if set(values).isdisjoint(source.names[:own]):
        return json_row_with_keys({**members, **values})
    line = json_row_with_keys(members) if members else json_row_on_one_line()
    for name, value in values.items():
        line = f"{SET}({line}, {literal(name)}, coalesce({value}, 'null'))"
    return line


#: what the COPY command writes, by the kind of output
_FORMATS = {
    "csv": "FORMAT csv, HEADER true",
    "json": "FORMAT json",
    "parquet": "FORMAT parquet, COMPRESSION zstd",
}
#: to write one column of text as it is: no quotes, and a separator that JSON never holds
_RAW = "FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE ''"


def refuse_changed(source: Source, out: Path) -> None:
    """Refuse a Parquet file with columns that DuckDB cannot write as they are: very long decimals,
    durations, and structs with ambiguous names."""
    if source.kind != "parquet":
        return
    pyarrow = import_extra("pyarrow", extra="cli")
    schema = import_extra("pyarrow.parquet", extra="cli").read_schema(source.path)
    parquet = output_file_kind(out)[0] == "parquet"  # elsewhere a duration is a number anyway
    lost = [
        f"{f.name!r} ({f.type})" for f in schema if _duckdb_changes(pyarrow.types, f.type, parquet)
    ]
    if lost:
        raise InputError(
            f"{out.name} cannot hold the values of {', '.join(lost[:8])} of {source.path.name}. "
            "Convert these columns to another type first, or leave them out."
        )


def _duckdb_changes(types: Any, kind: Any, parquet: bool) -> bool:
    """Whether DuckDB would change values of an Arrow type."""
    if types.is_decimal256(kind) or (parquet and types.is_duration(kind)):
        return True
    if types.is_dictionary(kind):
        return _duckdb_changes(types, kind.value_type, parquet)
    inner = [kind.field(i) for i in range(kind.num_fields)]
    if types.is_struct(kind) and len({f.name.lower() for f in inner} - {""}) < len(inner):
        return True
    return any(_duckdb_changes(types, f.type, parquet) for f in inner)


# --- The function that DuckDB calls for blocks of rows: scores in, probabilities out --------------


class StopError(Exception):
    """Some row cannot be calibrated. Which one is found out afterwards."""


class BlockWatch(RangeWatch):
    """`RangeWatch` for scores that come in blocks from several threads."""

    def __init__(self, known: ScoreRange | None, on_range: str) -> None:
        super().__init__(known, on_range)
        self.blocks: list[tuple[int, int, int]] = []  # threads append to it

    def of_block(self, scores: Array, name: str) -> Array:
        """The scores of a block, clipped if asked for. Those far from the fit are counted."""
        known = self.known
        if known is None:
            return scores
        if known.probabilities and ((scores < 0.0) | (scores > 1.0)).any():
            if self.refuses:
                raise StopError
            scores = np.clip(scores, 0.0, 1.0)
        ends = int((scores < known.low).sum()), int((scores > known.high).sum())
        self.blocks.append((*ends, scores.size))
        return scores

    def warn_at_end(self, column: str) -> None:
        """Warn if most scores of all blocks lay outside the range of the fit."""
        below, above, rows = (sum(part) for part in zip((0, 0, 0), *self.blocks, strict=True))
        self.warn(below, above, rows, column)
