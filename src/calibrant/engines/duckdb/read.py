"""Files of any size → a score table, and a fitted map → a new column in them, through DuckDB."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.door import HEAVIEST
from calibrant.data.table import ScoreTable
from calibrant.engines.duckdb.columns import document, number, spelling
from calibrant.engines.duckdb.diagnose import (
    HEAVY,
    INFINITE,
    MISSING,
    NEGATIVE,
    OUTSIDE,
    TEXT,
    Check,
    refuse,
)
from calibrant.engines.duckdb.files import Source, find_files, kind_of, literal
from calibrant.engines.duckdb.labels import (
    Classes,
    Label,
    classes_of,
    from_json,
    missing_words,
    typed,
)
from calibrant.engines.duckdb.session import Session, given_or_new
from calibrant.errors import InputError

__all__ = ["FileTable", "look_at", "read_table"]

Array = NDArray[np.float64]

#: rows looked at first to learn the labels' spellings; a later surprise costs one more pass
HEAD = 10_000
#: distinct labels that are fetched before giving up
MANY = 1_000


class FileTable(NamedTuple):
    """What `read_table` returns: the table, its labels, and facts worth remembering."""

    table: ScoreTable
    classes: tuple[Label, Label]
    pos_label: Label
    facts: dict[str, Any]


def read_table(
    files: Sequence[str | os.PathLike[str]],
    *,
    score: str,
    label: str,
    weight: str | None = None,
    pos_label: Any = None,
    probabilities: bool = False,
    session: Session | None = None,
) -> FileTable:
    """The score table of files, by one GROUP BY that never holds the rows in memory.

    Parameters
    ----------
    files : paths or globs of CSV, TSV, JSON lines (also .gz) or Parquet
    score, label, weight : names of columns
    pos_label : label or its text, default: the larger class
    probabilities : bool, default=False
        Refuse scores outside [0, 1].
    session : Session, optional
        Sets threads, memory limit and progress.

    Notes
    -----
    Equal to ``ScoreTable.from_arrays`` of the rows: exactly for whole weights, else up to the order
    of additions (1e-12 relative). The result takes O(D) memory for D distinct scores; the grouping
    spills to disk beyond the session's limit. Labels of text files are typed by all their values:
    true/false are booleans, then whole numbers, numbers, or words.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.csv"
    >>> _ = file.write_text("p;bought\\n0.2;no\\n0.7;yes\\n0.2;yes\\n")
    >>> read = read_table([file], score="p", label="bought")
    >>> read.table, read.classes, read.pos_label
    (ScoreTable(2 scores from 0.2 to 0.7, weight 3: 2 positive, 1 negative), ('no', 'yes'), 'yes')
    """
    wanted = [score, label, *([weight] if weight else [])]
    with given_or_new(session) as open_session:
        sources = look_at(open_session, files, wanted)
        return _Reader(open_session, sources, score, label, weight, probabilities).read(pos_label)


def look_at(
    session: Session, files: Sequence[str | os.PathLike[str]], wanted: list[str]
) -> list[Source]:
    """The sources behind names and globs, all of one kind."""
    paths = find_files(files)
    kinds = {kind_of(path)[0]: path.name for path in paths}
    if len(kinds) > 1:
        raise InputError(
            f"files must be of one kind, but {' and '.join(kinds.values())} came. Run once for "
            "each kind."
        )
    return [session.look(path, wanted) for path in paths]


@dataclass
class _Reader:
    """The columns that `read_table` needs, as SQL, and the queries over them."""

    session: Session
    sources: list[Source]
    score: str
    label: str
    weight: str | None
    probabilities: bool
    absent: list[str] = field(default_factory=list)

    @property
    def role(self) -> str:
        return "probability" if self.probabilities else "score"

    @functools.cached_property
    def rows(self) -> str:
        """SQL of all rows as (x, y, w): score, label's spelling, weight."""
        return " UNION ALL ".join(map(self._part, self.sources))

    def _part(self, source: Source) -> str:
        x = number(source, source.find(self.score, self.role), self.role)
        y = spelling(source, source.find(self.label, "label"))
        w = ""
        if self.weight:
            w = f", {number(source, source.find(self.weight, 'weight'), 'weight')} AS w"
        return f"SELECT {x} AS x, {y} AS y{w} FROM {source.relation}"

    # --- labels ---------------------------------------------------------------------------------

    def _values(self, limit: str = "") -> dict[str, Label]:
        """The distinct spellings of labels (in the first rows only, or in all) and their values."""
        if self.sources[0].kind == "csv":
            query = f"SELECT DISTINCT y FROM (SELECT y FROM ({self.rows}) {limit}) LIMIT {MANY}"
            words = sorted(row[0] for row in self.session.query(query) if row[0] is not None)
            self.absent = missing_words(words)
            return typed([word for word in words if word not in self.absent])
        parts = " UNION ALL ".join(
            f"SELECT {spelling(s, i)} AS y, {document(s, i)} AS j FROM {s.relation}"
            for s in self.sources
            for i in [s.find(self.label, "label")]
        )
        query = f"SELECT DISTINCT y, j FROM (SELECT y, j FROM ({parts}) {limit}) LIMIT {MANY}"
        rows = sorted(row for row in self.session.query(query) if row[0] is not None)
        return from_json(dict(rows))

    def read(self, pos_label: Any) -> FileTable:
        values = self._values(f"LIMIT {HEAD}")
        if len(set(values.values())) < 2:  # the file may be sorted by label
            values = self._values()
        columns, classes = self._group(values, pos_label)
        if np.any(
            columns["odd"]
        ):  # a label, or a spelling of one, that the first rows did not show
            columns, classes = self._group(self._values(), pos_label)
        if np.any(columns["odd"]):
            self._refuse_labels()
        return self._finish(columns, classes)

    # --- the one pass ---------------------------------------------------------------------------

    def _group(self, values: dict[str, Label], pos_label: Any) -> tuple[dict[str, Any], Classes]:
        if not values:
            self._refuse_labels()
        classes = classes_of(values, self.label, pos_label)
        return self.session.run(self._grouped(classes), _arrays), classes

    def _grouped(self, classes: Classes) -> str:
        negative, positive = (_within(words) for words in (classes.negative, classes.positive))
        sums = {
            "negative": f"(count(*) FILTER ({negative}))::DOUBLE",
            "positive": f"(count(*) FILTER ({positive}))::DOUBLE",
        }
        if self.weight:
            sums = {
                "negative": f"sum(w) FILTER ({negative})",
                "positive": f"sum(w) FILTER ({positive})",
                "negative_sq": f"sum(w * w) FILTER ({negative})",
                "positive_sq": f"sum(w * w) FILTER ({positive})",
            }
            sums = {name: f"coalesce({sql}, 0.0)" for name, sql in sums.items()}
            # NaN compares as the largest number
            sums["bad"] = f"bool_or(w IS NULL OR w < 0 OR w > {HEAVIEST!r})"
            sums["n"] = "count(*)::DOUBLE"
        sums["odd"] = f"bool_or(y IS NULL OR NOT ({negative} OR {positive}))"
        listed = ", ".join(f"{sql} AS {name}" for name, sql in sums.items())
        return f"SELECT x, {listed} FROM ({self.rows}) GROUP BY x ORDER BY x"

    def _finish(self, columns: dict[str, Any], classes: Classes) -> FileTable:
        scores = columns.pop("x")
        if not len(scores):
            names = ", ".join(source.path.name for source in self.sources[:5])
            raise InputError(f"{names} must hold rows of data, but only column names came.")
        if np.ma.is_masked(scores) or not np.isfinite(scores).all():
            self._refuse_scores(TEXT, MISSING, INFINITE)
        if self.probabilities and (scores.min() < 0.0 or scores.max() > 1.0):
            self._refuse_scores(OUTSIDE)
        if self.weight and np.any(columns["bad"]):
            self._refuse_weights()
        # fetchnumpy masks a column that could hold NULL, even where none is
        sums = {
            name: np.ma.getdata(columns[name])
            for name in ("negative", "positive", "negative_sq", "positive_sq")
            if name in columns
        }
        table = ScoreTable.from_counts(np.ma.getdata(scores), **sums)
        if not table:
            raise InputError(
                f"weight column {self.weight!r} must be positive for at least one row, but all are "
                "zero. A zero weight means that the row is absent."
            )
        rows = columns["n"].sum() if self.weight else table.total
        return FileTable(table, classes.classes, classes.pos_label, self._facts(int(rows)))

    def _facts(self, rows: int) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "files": _some([source.path.name for source in self.sources]),
            "rows": rows,
            "score_column": self.score,
            "label_column": self.label,
        }
        return {**facts, "weight_column": self.weight} if self.weight else facts

    # --- refusals -------------------------------------------------------------------------------

    def _refuse_scores(self, *checks: Check) -> None:
        refuse(self.session, self.sources, self.score, role=self.role, checks=checks)

    def _refuse_weights(self) -> None:
        checks = (TEXT, MISSING, INFINITE, NEGATIVE, HEAVY)
        refuse(self.session, self.sources, str(self.weight), role="weight", checks=checks)

    def _refuse_labels(self) -> None:
        """Labels are missing, or there are no rows at all."""
        absent = tuple(self.absent)
        refuse(
            self.session, self.sources, self.label, role="label", checks=(MISSING,), absent=absent
        )
        names = ", ".join(source.path.name for source in self.sources[:5])
        raise InputError(f"{names} must hold rows of data, but only column names came.")


def _some(names: list[str], most: int = 20) -> list[str]:
    return names if len(names) <= most else [*names[:most], f"... {len(names) - most} more"]


def _arrays(result: Any) -> dict[str, Any]:
    columns: dict[str, Any] = result.fetchnumpy()
    return columns


def _within(words: tuple[str, ...]) -> str:
    return f"y IN ({', '.join(map(literal, words))})" if words else "false"
