"""Maps of several scores as one SELECT: a few steps, each a WITH, and a column for every class."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibrant.errors import InputError
from calibrant.export.sql.axis import start
from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.expressions import write
from calibrant.export.sql.formulas import factor
from calibrant.export.sql.layout import case, clamp, comment, inside, linear, shifted, total
from calibrant.export.sql.page import Join, Page
from calibrant.export.sql.script import from_rows
from calibrant.maps import Coded, Columns, Map, Softmax, VectorMap, VectorMixture
from calibrant.maps.combiners import singled_out
from calibrant.plan.rows import LARGEST_LOGIT

__all__ = ["HEADS", "Steps", "write_vector"]

#: what columns of steps are called, before their numbers
HEADS = ("s", "known", "r", "z", "x", "eta", "largest", "e", "total", "log_total", "step")
#: below this exp is no normal number
LEAST_POWER = -708.0
#: arguments of one function
WIDE = 50


@dataclass(frozen=True)
class Step:
    """One SELECT: the columns that it adds, and the tables that it joins."""

    about: str
    columns: tuple[tuple[str, str], ...]
    joins: tuple[Join, ...]


@dataclass
class Steps:
    """Columns that are computed one after another.

    Parameters
    ----------
    page : Page
    prefix : what their names begin with
    """

    page: Page
    prefix: str = ""
    found: list[Step] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    known: str = ""  # the column that says whether a row's scores are all numbers

    def add(self, about: str, values: Mapping[str, Sequence[str] | str]) -> list[str]:
        """A step that computes values, by the head of their columns' names; returns the columns."""
        columns = []
        for head, texts in values.items():
            self.seen[head] += 1
            own = f"{self.prefix}{head}{self.seen[head] if self.seen[head] > 1 else ''}"
            if isinstance(texts, str):
                columns.append((own, texts))
            else:
                columns += [(f"{own}_{i}", text) for i, text in enumerate(texts)]
        self.found.append(Step(about, tuple(columns), self._joins()))
        return [f"r.{name}" for name, _ in columns]

    def _joins(self) -> tuple[Join, ...]:
        """The joins that no step has made yet."""
        return tuple(self.page.joins[sum(len(step.joins) for step in self.found) :])

    def numbers(self, columns: Sequence[str]) -> list[str]:
        """The scores of a row as doubles, and whether all of them are numbers, before all else."""
        if self.known:
            return list(columns)
        finite = [self.page.dialect.is_finite(c) for c in columns]
        cast = f"CAST({{}} AS {self.page.dialect.double})"
        own = [case([(is_so, cast.format(c))]) for is_so, c in zip(finite, columns, strict=True)]
        every = case([("\nAND ".join(finite), "1")], "0")
        *found, self.known = self.add(
            "The scores; known: all are numbers.", {"s": own, "known": every}
        )
        return found

    def text(self, table: str, lookup: str, keep: Sequence[str], last: Sequence[str]) -> str:
        """The query: ``keep`` are columns of the table, ``last`` what is selected beside them."""
        dialect, source, parts = self.page.dialect, table, []
        for i, step in enumerate(self.found):
            columns = [f"{value} AS {name}" for name, value in step.columns]
            listed = ",\n".join((*(keep if i == 0 else ["r.*"]), *columns))
            rows = from_rows(source, step.joins, lookup, dialect)
            source = f"{self.prefix}step_{i + 1}"
            body = shifted(f"SELECT{dialect.top}\n{shifted(listed)}\n{rows}{dialect.limit}")
            parts.append(f"{comment(step.about)}{source} {dialect.step} (\n{body}\n)")
        first = "WITH\n" + ",\n".join(parts) + "\n" if parts else ""
        ending = shifted(",\n".join((*keep, *last)))
        rows = from_rows(source, self._joins(), lookup, dialect)
        return f"{first}SELECT\n{ending}\n{rows}"


@functools.singledispatch
def write_vector(map_: VectorMap, columns: Sequence[str], steps: Steps) -> list[str]:
    """The steps of a map of several columns; returns the probability of each class as SQL."""
    raise InputError(f"a map of kind {map_.kind!r} cannot be written as SQL. Apply it in memory.")


@write_vector.register
def _(map_: Columns, columns: Sequence[str], steps: Steps) -> list[str]:
    return [_guarded(m, c, steps.page) for m, c in zip(map_.maps, columns, strict=True)]


@write_vector.register
def _(map_: Coded, columns: Sequence[str], steps: Steps) -> list[str]:
    order = singled_out(map_.code)
    if map_.combine != "normalize" or order is None:
        raise InputError(
            f"a calibrator of several classes that combines by {map_.combine!r} cannot be written "
            "as SQL: each row's distribution is found by iteration, which SQL has no words for. "
            'Fit it with combine="normalize", or apply it in memory: predict_proba.'
        )
    page = steps.page.precise  # shares are made of them
    own = [_guarded(m, c, page) for m, c in zip(map_.maps, columns, strict=True)]
    r = steps.add("The probability of each class against all others.", {"r": own})
    [whole] = steps.add("Their sum.", {"total": total(r)})
    zero, even = steps.page.dialect.number(0.0), steps.page.dialect.number(1.0 / len(r))
    shares = [factor(c, steps.page.dialect) for c in r]
    return [
        case([(f"{whole} > {zero}", f"{shares[i]} / {whole}"), (f"{whole} <= {zero}", even)])
        for i in order.tolist()
    ]


def _guarded(map_: Map, column: str, page: Page) -> str:
    """A map of one score as SQL, NULL for all that is no number."""
    text = write(map_, start(column), (), page)
    return page.dialect.result.format(case([(page.dialect.is_finite(column), text)]))


# --- softmax ------------------------------------------------------------------------------------


@write_vector.register
def _(map_: Softmax, columns: Sequence[str], steps: Steps) -> list[str]:
    dialect = steps.page.dialect
    columns = steps.numbers(columns)
    if map_.input == "probability":
        logs = [_logarithm(c, map_.floor, steps) for c in columns]
        z = steps.add("The logarithms of the probabilities.", {"z": logs})
    else:
        cut = [clamp(factor(c, dialect), dialect, -LARGEST_LOGIT, LARGEST_LOGIT) for c in columns]
        z = steps.add("The logits, none so large that a product overflows.", {"z": cut})
    if map_.inner is not None:
        z = _log_softmax([linear(0.0, [(map_.inner, c)], dialect) for c in z], steps)
    pairs = zip(map_.weights.tolist(), map_.bias.tolist(), strict=True)
    eta = [
        linear(b, [(w, c) for w, c in zip(row, z, strict=True) if w], dialect) for row, b in pairs
    ]
    return _softmax([dialect.result.format(text) for text in eta], steps)


def _logarithm(p: str, floor: float, steps: Steps) -> str:
    """ln of a probability, which is first moved into [floor, 1]."""
    number = steps.page.dialect.number
    # subnormal numbers have logarithms of their own
    end = number(floor if floor >= np.finfo(np.float64).tiny else 0.0)
    branches = [(f"{p} <= {end}", number(float(np.log(floor))))]
    return case(
        [*branches, (f"{p} >= {number(1.0)}", number(0.0))], f"{steps.page.dialect.ln}({p})"
    )


def _softmax(eta: Sequence[str], steps: Steps) -> list[str]:
    z = steps.add("The calibrated logits.", {"eta": eta})
    [top] = steps.add("The largest of them.", {"largest": _largest(z, steps)})
    e = _exponentials(z, top, steps)
    [whole] = steps.add("The sum of those.", {"total": total(e)})
    return [f"{c} / {whole}" for c in e]


def _log_softmax(scaled: Sequence[str], steps: Steps) -> list[str]:
    z = steps.add("The logits, scaled.", {"z": scaled})
    [top] = steps.add("The largest of them.", {"largest": _largest(z, steps)})
    e = _exponentials(z, top, steps)
    whole = f"{steps.page.dialect.ln}({total(e)})"
    [log] = steps.add("The logarithm of their sum.", {"log_total": whole})
    logs = [f"{c} - {top} - {log}" for c in z]
    return steps.add("The logarithms of the probabilities.", {"x": logs})


def _exponentials(z: Sequence[str], top: str, steps: Steps) -> list[str]:
    own = [_exp(f"{c} - {top}", steps.page.dialect) for c in z]
    return steps.add("Their exponentials, as shares of the largest.", {"e": own})


def _exp(power: str, dialect: Dialect) -> str:
    """exp; where an engine refuses what underflows, 0 for that."""
    text = inside("EXP(", power, ")")
    if dialect.infinite:
        return text
    return case([(f"{power} > {dialect.number(LEAST_POWER)}", text)], dialect.number(0.0))


def _largest(columns: Sequence[str], steps: Steps) -> str:
    dialect = steps.page.dialect
    if not dialect.greatest:
        rows = ", ".join(f"({c})" for c in columns)
        return f"(SELECT MAX(v) FROM (VALUES {rows}) AS t(v))"
    while len(columns) > 1:
        parts = [columns[i : i + WIDE] for i in range(0, len(columns), WIDE)]
        columns = [f"{dialect.greatest}({', '.join(p)})" if len(p) > 1 else p[0] for p in parts]
    return columns[0]


# --- mixtures -----------------------------------------------------------------------------------


@write_vector.register
def _(map_: VectorMixture, columns: Sequence[str], steps: Steps) -> list[str]:
    seen = _seen(map_, steps.numbers(columns), steps)
    pairs = [(w, m) for w, m in zip(map_.weights.tolist(), map_.members, strict=True) if w > 0.0]
    number = steps.page.dialect.number
    members = [[f"{number(w)} * ({p})" for p in write_vector(m, seen, steps)] for w, m in pairs]
    return [total(own) for own in zip(*members, strict=True)]


def _seen(map_: VectorMixture, columns: Sequence[str], steps: Steps) -> list[str]:
    """What the members of a mixture see of a row, as `maps.vector_mixture.seen_by_members`."""
    dialect = steps.page.dialect
    if map_.input == "score":
        return list(columns)
    if map_.input == "logit":
        cut = [clamp(factor(c, dialect), dialect, -LARGEST_LOGIT, LARGEST_LOGIT) for c in columns]
        columns = _softmax([linear(0.0, [(map_.factor, c)], dialect) for c in cut], steps)
    elif map_.factor != 1.0:
        columns = _powers(columns, map_.factor, steps)
    cut = [clamp(factor(c, dialect), dialect, map_.floor, 1.0) for c in columns]
    raised = steps.add("The probabilities, none too small.", {"x": cut})
    return steps.add("The same, of sum one.", {"x": _shares(raised, steps)})


def _powers(columns: Sequence[str], factor: float, steps: Steps) -> list[str]:
    """Probabilities raised to a power and divided by their sum."""
    dialect = steps.page.dialect
    zero, one = dialect.number(0.0), dialect.number(1.0)
    [top] = steps.add("The largest probability.", {"largest": _largest(columns, steps)})
    size = case([(f"{top} > {zero}", top)], one)
    cut = [clamp(c, dialect, 0.0) for c in columns]
    share = steps.add("All as shares of it.", {"x": [f"{c} / {size}" for c in cut]})
    powers = []
    for x in share:
        log = linear(0.0, [(factor, f"{dialect.ln}({x})")], dialect)
        powers.append(case([(f"{x} > {zero}", _exp(log, dialect))], zero))
    return _shares(steps.add("Their powers.", {"x": powers}), steps)


def _shares(columns: Sequence[str], steps: Steps) -> list[str]:
    """Columns divided by their sum, unless that is zero."""
    zero = steps.page.dialect.number(0.0)
    [whole] = steps.add("Their sum.", {"total": total(columns)})
    return [case([(f"{whole} > {zero}", f"{c} / {whole}")], c) for c in columns]
