"""Plans of several scores as one SELECT: a few steps, each a WITH, and a column for every class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import case, clamp, comment, inside, linear, shifted, total
from calibrant.export.sql.overflow import guarded
from calibrant.export.sql.printer import SqlPrinter, factor
from calibrant.export.sql.script import from_rows
from calibrant.export.sql.writer import Join, SqlWriter
from calibrant.plan import row_nodes
from calibrant.plan.nodes import Node, PlanPrinter
from calibrant.plan.row_nodes import EachColumn, LogSoftmax, RowInput

#: the names of columns of steps, before their numbers
HEADS = (
    *("s", "known", "r", "z", "x", "eta", "largest", "e", "total", "log_total", "ties", "rest"),
    "step",
)
#: below this exp is no normal number
LEAST_POWER = -708.0
#: arguments of one function
WIDE = 50


@dataclass(frozen=True)
class QueryStep:
    """One SELECT: the columns that it adds, and the tables that it joins."""

    about: str
    columns: tuple[tuple[str, str], ...]
    joins: tuple[Join, ...]


@dataclass
class QuerySteps:
    """Columns that are computed one after another.

    Parameters
    ----------
    writer : SqlWriter
    prefix : what the names of the columns begin with
    """

    writer: SqlWriter
    prefix: str = ""
    found: list[QueryStep] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    known: str = ""  # the column that says whether a row's scores are all numbers

    def add(self, about: str, values: Mapping[str, Sequence[str] | str]) -> list[str]:
        """Add a step that computes columns, given by the beginnings of their names; return them."""
        columns = []
        for head, texts in values.items():
            self.seen[head] += 1
            own = f"{self.prefix}{head}{self.seen[head] if self.seen[head] > 1 else ''}"
            if isinstance(texts, str):
                columns.append((own, texts))
            else:
                columns += [(f"{own}_{i}", text) for i, text in enumerate(texts)]
        self.found.append(QueryStep(about, tuple(columns), self._joins()))
        return [f"r.{name}" for name, _ in columns]

    def _joins(self) -> tuple[Join, ...]:
        """The joins that no step has made yet."""
        return tuple(self.writer.joins[sum(len(step.joins) for step in self.found) :])

    def numbers(self, columns: Sequence[str]) -> list[str]:
        """Add the first step: the scores of a row as doubles, and whether all of them are
        numbers."""
        finite = [self.writer.dialect.is_finite(c) for c in columns]
        cast = f"CAST({{}} AS {self.writer.dialect.double})"
        own = [case([(is_so, cast.format(c))]) for is_so, c in zip(finite, columns, strict=True)]
        every = case([("\nAND ".join(finite), "1")], "0")
        *found, self.known = self.add(
            "The scores; known: all are numbers.", {"s": own, "known": every}
        )
        return found

    def text(self, table: str, lookup: str, keep: Sequence[str], last: Sequence[str]) -> str:
        """The query: ``keep`` are columns of the table, ``last`` what is selected beside them."""
        dialect, source, parts = self.writer.dialect, table, []
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


class SqlRowPrinter(PlanPrinter[list[str]]):
    """Writes plans of rows as steps; each rule returns a column for each entry of a row."""

    def __init__(self, columns: Sequence[str], steps: QuerySteps) -> None:
        self.raw, self.steps = columns, steps
        self.dialect, self.number = steps.writer.dialect, steps.writer.dialect.number
        self.known = {}
        self.scores: list[str] = []

    def row_input(self, node: RowInput) -> list[str]:
        return self.numbers()

    def numbers(self) -> list[str]:
        """The columns that come in, as doubles."""
        self.scores = self.scores or self.steps.numbers(self.raw)
        return self.scores

    def each_column(self, node: EachColumn, relative: bool = False) -> list[str]:
        """Plans of columns. Columns that come in are checked one by one."""
        single = isinstance(node.row, RowInput) and not self.scores
        columns = self.raw if single else self.write(node.row)
        return [self._member(own, columns[j], relative) for j, own in node.members]

    def _member(self, node: Node, column: str, relative: bool) -> str:
        """A plan of one score as SQL, NULL for all that is no number."""
        printer = SqlPrinter(self.steps.writer, column, relative=relative)
        text = printer.write(guarded(node, self.dialect))
        return self.dialect.result.format(case([(self.dialect.is_finite(column), text)]))

    def within(self, node: row_nodes.Within) -> list[str]:
        columns = self.write(node.row)
        cut = [clamp(factor(c, self.dialect), self.dialect, node.low, node.high) for c in columns]
        return self.steps.add("The same, none too small or too large.", {"x": cut})

    def logarithms(self, node: row_nodes.Logarithms) -> list[str]:
        logs = [self._logarithm(c, node.floor) for c in self.write(node.row)]
        return self.steps.add("The logarithms of the probabilities.", {"z": logs})

    def _logarithm(self, p: str, floor: float) -> str:
        """ln of a probability, which is first moved into [floor, 1]."""
        number = self.number
        # a floor below all normal numbers is none: subnormal numbers have logarithms, too
        end = number(floor if floor >= np.finfo(np.float64).tiny else 0.0)
        branches = [(f"{p} <= {end}", number(float(np.log(floor))))]
        branches.append((f"{p} >= {number(1.0)}", number(0.0)))
        return case(branches, f"{self.dialect.ln}({p})")

    def affine(self, node: row_nodes.Affine) -> list[str]:
        x, k = self.write(node.row), len(self.write(node.row))
        full = node.matrix
        if full.ndim < 2:
            full = np.diag(np.broadcast_to(full, k))
        bias = np.zeros(k) if node.bias is None else node.bias
        sums = []
        for row, b in zip(full.tolist(), bias.tolist(), strict=True):
            terms = [(w, c) for w, c in zip(row, x, strict=True) if w]
            sums.append(self.dialect.result.format(linear(b, terms, self.dialect)))
        return self.steps.add("The logits, scaled.", {"eta": sums})

    def exponentials(self, node: row_nodes.Exponentials) -> list[str]:
        """With a log-softmax inside: the softmax."""
        if not isinstance(node.row, LogSoftmax):
            own = [_exp(c, self.dialect) for c in self.write(node.row)]
            return self.steps.add("Their exponentials.", {"e": own})
        e, _ = self._relative_powers(node.row.row)
        [whole] = self.steps.add("The sum of those.", {"total": total(e)})
        return [f"{c} / {whole}" for c in e]

    def log_softmax(self, node: LogSoftmax) -> list[str]:
        e, top = self._relative_powers(node.row)
        whole = f"{self.dialect.ln}({total(e)})"
        [log] = self.steps.add("The logarithm of their sum.", {"log_total": whole})
        logs = [f"{c} - {top} - {log}" for c in self.write(node.row)]
        return self.steps.add("The logarithms of the probabilities.", {"x": logs})

    def _relative_powers(self, node: Node) -> tuple[list[str], str]:
        """exp(value − largest) for each value, and the largest."""
        z = self.write(node)
        [top] = self.steps.add("The largest of them.", {"largest": self._largest(z)})
        own = [_exp(f"{c} - {top}", self.dialect) for c in z]
        return self.steps.add("Their exponentials, as shares of the largest.", {"e": own}), top

    def _largest(self, columns: Sequence[str]) -> str:
        greatest = self.dialect.greatest
        if not greatest:
            rows = ", ".join(f"({c})" for c in columns)
            return f"(SELECT MAX(v) FROM (VALUES {rows}) AS t(v))"
        while len(columns) > 1:
            parts = [columns[i : i + WIDE] for i in range(0, len(columns), WIDE)]
            columns = [f"{greatest}({', '.join(p)})" if len(p) > 1 else p[0] for p in parts]
        return columns[0]

    def relative(self, node: row_nodes.Relative) -> list[str]:
        columns = self.write(node.row)
        [top] = self.steps.add("The largest probability.", {"largest": self._largest(columns)})
        size = case([(f"{top} > {self.number(0.0)}", top)], self.number(1.0))
        cut = [clamp(c, self.dialect, 0.0) for c in columns]
        return self.steps.add("All as shares of it.", {"x": [f"{c} / {size}" for c in cut]})

    def power(self, node: row_nodes.Power) -> list[str]:
        powers = []
        for x in self.write(node.row):
            log = linear(0.0, [(node.power, f"{self.dialect.ln}({x})")], self.dialect)
            zero = self.number(0.0)
            powers.append(case([(f"{x} > {zero}", _exp(log, self.dialect))], zero))
        return self.steps.add("Their powers.", {"x": powers})

    def normalised(self, node: row_nodes.Normalised) -> list[str]:
        """Columns divided by their sum, unless that is zero."""
        columns, zero = self.write(node.row), self.number(0.0)
        [whole] = self.steps.add("Their sum.", {"total": total(columns)})
        shares = [case([(f"{whole} > {zero}", f"{c} / {whole}")], c) for c in columns]
        return self.steps.add("The same, of sum one.", {"x": shares})

    def row_average(self, node: row_nodes.RowAverage) -> list[str]:
        self.numbers()
        terms = [[f"{self.number(w)} * ({p})" for p in self.write(row)] for w, row in node.terms]
        return [total(own) for own in zip(*terms, strict=True)]

    def largest_mapped(self, node: row_nodes.LargestMapped) -> list[str]:
        """The formula of `row_nodes.with_largest`."""
        add, number, one = self.steps.add, self.number, self.number(1.0)
        zero = number(0.0)
        p = add("The probabilities.", {"x": self.write(node.row)})
        [top] = add("The largest of them.", {"largest": self._largest(p)})
        tied = [case([(f"{c} >= {top}", one)], zero) for c in p]
        below = [case([(f"{c} < {top}", c)], zero) for c in p]
        others = add("All others.", {"x": below})
        about = "How many are the largest, the largest of the others, and the sum of these."
        sums: dict[str, str] = {"largest": self._largest(others), "rest": total(others)}
        ties, second, rest = add(about, {"ties": total(tied), **sums})
        [mapped] = add("The largest, calibrated.", {"r": self._member(node.member, top, False)})
        even = number(row_nodes.AHEAD / node.k)
        order = f"{number(row_nodes.AHEAD)} * {second} / ({rest} + {ties} * {second})"
        [least] = add(
            "The least that keeps the order.", {"r": case([(f"{rest} > {zero}", order)], even)}
        )
        most = f"{one} / {ties}"
        within = case([(f"{mapped} < {least}", least), (f"{mapped} > {most}", most)], mapped)
        [first] = add("Within the order, and at most one in all.", {"r": within})
        size = clamp(f"{one} - {ties} * {first}", self.dialect, 0.0)
        [left] = add("What is left for the others.", {"rest": size})
        count = number(float(node.k))
        shares = [
            case([(f"{rest} > {zero}", f"{c} / {rest} * {left}")], f"{left} / ({count} - {ties})")
            for c in others
        ]
        return [case([(f"{c} >= {top}", first)], own) for c, own in zip(p, shares, strict=True)]

    def combined(self, node: row_nodes.Combined) -> list[str]:
        """Shares of the sum; the rules that iterate are refused before."""
        assert isinstance(node.row, EachColumn)
        own = self.each_column(node.row, relative=True)  # shares are made of them
        r = self.steps.add("The probability of each class against all others.", {"r": own})
        [whole] = self.steps.add("Their sum.", {"total": total(r)})
        zero, even = self.number(0.0), self.number(1.0 / len(r))
        shares = [factor(c, self.dialect) for c in r]
        return [
            case([(f"{whole} > {zero}", f"{c} / {whole}"), (f"{whole} <= {zero}", even)])
            for c in shares
        ]


def _exp(power: str, dialect: Dialect) -> str:
    """exp; where an engine refuses what underflows, 0 for that."""
    text = inside("EXP(", power, ")")
    if dialect.infinite:
        return text
    return case([(f"{power} > {dialect.number(LEAST_POWER)}", text)], dialect.number(0.0))
