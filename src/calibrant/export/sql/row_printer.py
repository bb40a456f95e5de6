"""Plans of several scores as one SELECT: a few steps, each a WITH, and a column for every class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.printer import SqlPrinter, factor
from calibrant.export.sql.text import (
    SqlWriter,
    case,
    clamp,
    comment,
    from_rows,
    guarded,
    inside,
    linear,
    shifted,
    total,
)
from calibrant.rules.plan import map_input
from calibrant.rules.plan.map_input import EachColumn, LogSoftmax, RowInput
from calibrant.rules.plan.nodes import Node, PlanPrinter

#: the names of columns of steps, before their numbers
HEADS = (
    *("s", "known", "r", "z", "x", "eta", "largest", "e", "total", "log_total", "ties", "rest"),
    "step",
)
#: below this exp is no normal number
LEAST_POWER = -708.0
#: up to here exp is 0 in double; and a logarithm that stands for that of 0
NO_POWER, NO_LOGARITHM = -745.1332191019412, -1e300
#: arguments of one function
WIDE = 50


@dataclass
class QuerySteps:
    """SELECTs that are computed one after another, each of the columns of the one before.

    Parameters
    ----------
    writer : SqlWriter
    table : SQL of the table of rows
    lookup : the name of the lookup tables
    keep : SQL of the columns of the table that are kept
    prefix : what the names of the columns begin with
    """

    writer: SqlWriter
    table: str
    lookup: str
    keep: Sequence[str]
    prefix: str = ""
    steps: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    joined: int = 0  # how many of the writer's joins steps have made

    def add(self, about: str, values: Mapping[str, Sequence[str] | str]) -> list[str]:
        """Add a step that computes columns, given by the beginnings of their names; return them."""
        columns: dict[str, str] = {}
        for head, texts in values.items():
            self.seen[head] += 1
            own = f"{self.prefix}{head}{self.seen[head] if self.seen[head] > 1 else ''}"
            if isinstance(texts, str):
                columns[own] = texts
            else:
                columns |= {f"{own}_{i}": text for i, text in enumerate(texts)}
        dialect, before = self.writer.dialect, ["r.*"] if self.steps else self.keep
        listed = ",\n".join([*before, *(f"{text} AS {name}" for name, text in columns.items())])
        body = f"SELECT{dialect.top}\n{shifted(listed)}\n{self._rows()}{dialect.limit}"
        step = f"{self.prefix}step_{len(self.steps) + 1} {dialect.step}"
        self.steps.append(f"{comment(about)}{step} (\n{shifted(body)}\n)")
        return [f"r.{name}" for name in columns]

    def _rows(self) -> str:
        """FROM the last step, or from the table, with the lookups that no step has joined yet."""
        source = f"{self.prefix}step_{len(self.steps)}" if self.steps else self.table
        new = self.writer.joins[self.joined :]
        self.joined += len(new)
        return from_rows(source, new, self.lookup, self.writer.dialect)

    def query(self, last: Sequence[str]) -> str:
        """The whole query: all steps, and a SELECT of what is kept and of the last columns."""
        first = "WITH\n" + ",\n".join(self.steps) + "\n" if self.steps else ""
        ending = shifted(",\n".join((*self.keep, *last)))
        return f"{first}SELECT\n{ending}\n{self._rows()}"


class SqlRowPrinter(PlanPrinter[list[str]]):
    """Writes plans of rows as steps; each rule returns a column for each entry of a row."""

    def __init__(self, columns: Sequence[str], steps: QuerySteps) -> None:
        self.raw, self.steps = columns, steps
        self.dialect, self.number = steps.writer.dialect, steps.writer.dialect.number
        self.known = {}
        self.scores: list[str] = []
        self.all_finite = ""  # the column that says so of a row's scores, where it is needed

    def probabilities(self, plan: Node) -> list[str]:
        """The columns of the result: NULL where a score that all of them need is no number."""
        found = self.write(plan)
        if not self.all_finite:
            return found
        return [case([(f"{self.all_finite} = 1", p)]) for p in found]

    def row_input(self, node: RowInput) -> list[str]:
        return self.numbers()

    def numbers(self) -> list[str]:
        """The columns that come in, as doubles: the first step, where there is one."""
        if not self.scores:
            is_finite, double = self.dialect.is_finite, self.dialect.double
            own = [case([(is_finite(c), f"CAST({c} AS {double})")]) for c in self.raw]
            every = case([("\nAND ".join(map(is_finite, self.raw)), "1")], "0")
            about = "The scores, and known: whether all are numbers."
            *self.scores, self.all_finite = self.steps.add(about, {"s": own, "known": every})
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

    def within(self, node: map_input.Within) -> list[str]:
        columns = self.write(node.row)
        cut = [clamp(factor(c, self.dialect), self.dialect, node.low, node.high) for c in columns]
        return self.steps.add("The same, none too small or too large.", {"x": cut})

    def logarithms(self, node: map_input.Logarithms) -> list[str]:
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

    def affine(self, node: map_input.Affine) -> list[str]:
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

    def softmax_row(self, node: map_input.SoftmaxRow) -> list[str]:
        e, _ = self._relative_powers(node.row)
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

    def relative_power(self, node: map_input.RelativePower) -> list[str]:
        columns, zero = self.write(node.row), self.number(0.0)
        [top] = self.steps.add("The largest probability.", {"largest": self._largest(columns)})
        size = case([(f"{top} > {zero}", top)], self.number(1.0))
        shares = [f"{clamp(c, self.dialect, 0.0)} / {size}" for c in columns]
        powers = []
        for x in self.steps.add("All as shares of it.", {"x": shares}):
            log = linear(0.0, [(node.power, f"{self.dialect.ln}({x})")], self.dialect)
            powers.append(case([(f"{x} > {zero}", _exp(log, self.dialect))], zero))
        return self.steps.add("Their powers.", {"x": powers})

    def normalised(self, node: map_input.Normalised) -> list[str]:
        """Columns divided by their sum, unless that is zero."""
        columns, zero = self.write(node.row), self.number(0.0)
        [whole] = self.steps.add("Their sum.", {"total": total(columns)})
        shares = [case([(f"{whole} > {zero}", f"{c} / {whole}")], c) for c in columns]
        return self.steps.add("The same, of sum one.", {"x": shares})

    def row_average(self, node: map_input.RowAverage) -> list[str]:
        self.numbers()
        terms = [[f"{self.number(w)} * ({p})" for p in self.write(row)] for w, row in node.terms]
        return [total(own) for own in zip(*terms, strict=True)]

    def largest_mapped(self, node: map_input.LargestMapped) -> list[str]:
        """The formula of `row_nodes.with_largest`."""
        add, number, one = self.steps.add, self.number, self.number(1.0)
        zero = number(0.0)
        p = add("The probabilities.", {"x": self.write(node.row)})
        [top] = add("The largest of them.", {"largest": self._largest(p)})
        tied = [case([(f"{c} >= {top}", one)], zero) for c in p]
        others = self._others(node.row, p, top)
        about = "How many are the largest, the largest of the others, and the sum of these."
        sums: dict[str, str] = {"largest": self._largest(others), "rest": total(others)}
        ties, second, rest = add(about, {"ties": total(tied), **sums})
        [mapped] = add("The largest, calibrated.", {"r": self._member(node.member, top, False)})
        even = number(map_input.AHEAD / node.k)
        order = f"{number(map_input.AHEAD)} * {second} / ({rest} + {ties} * {second})"
        [least] = add(
            "The least that keeps the order.", {"r": case([(f"{rest} > {zero}", order)], even)}
        )
        most = f"{one} / {ties}"
        ends = [(f"{mapped} > {most} OR {least} > {most}", most), (f"{mapped} < {least}", least)]
        within = case(ends, mapped)
        [first] = add("Within the order, and at most one in all.", {"r": within})
        size = clamp(f"{one} - {ties} * {first}", self.dialect, 0.0)
        [left] = add("What is left for the others.", {"rest": size})
        count = number(float(node.k))
        shares = [
            case([(f"{rest} > {zero}", f"{c} / {rest} * {left}")], f"{left} / ({count} - {ties})")
            for c in (factor(own, self.dialect) for own in others)
        ]
        return [case([(f"{c} >= {top}", first)], own) for c, own in zip(p, shares, strict=True)]

    def _others(self, row: Node, p: Sequence[str], top: str) -> list[str]:
        """All but the largest, 0 in its place. Where small powers are cut to 0, as shares of the
        second, from logarithms: so their ratios stay, and are those of doubles."""
        add, number = self.steps.add, self.number
        if self.dialect.infinite:
            own = [case([(f"{c} < {top}", c)], number(0.0)) for c in p]
            return add("All others.", {"x": own})
        none = number(NO_LOGARITHM)
        pairs = zip(p, self._logarithms_of(row), strict=True)
        logs = [case([(f"{c} < {top}", log)], none) for c, log in pairs]
        logs = add("The logarithms of all others.", {"z": logs})
        [second] = add("The largest of those.", {"largest": self._largest(logs)})
        is_some = f"{second} > {number(NO_POWER)}"
        shares = [_exp(f"({log} - {second})", self.dialect) for log in logs]
        shares = [case([(is_some, share)], number(0.0)) for share in shares]
        return add("All others, as shares of the second.", {"e": shares})

    def _logarithms_of(self, row: Node) -> list[str]:
        """The logarithms of a row's values; of shares of a sum, those of shares of the largest."""
        if isinstance(row, map_input.Within | map_input.Normalised):
            return self._logarithms_of(row.row)
        if isinstance(row, map_input.SoftmaxRow):
            z = self.write(row.row)
            [top] = self.steps.add("The largest logit.", {"largest": self._largest(z)})
            return [f"{c} - {top}" for c in z]
        zero, none, ln = self.number(0.0), self.number(NO_LOGARITHM), self.dialect.ln
        if isinstance(row, map_input.RelativePower):
            c = self._logarithms_of(row.row)
            [top] = self.steps.add("The largest logarithm.", {"largest": self._largest(c)})
            power = self.number(row.power)
            return [case([(f"{own} > {none}", f"{power} * ({own} - {top})")], none) for own in c]
        return [case([(f"{c} > {zero}", f"{ln}({c})")], none) for c in self.write(row)]

    def combined(self, node: map_input.Combined) -> list[str]:
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
