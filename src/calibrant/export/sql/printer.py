"""Plans as SQL: of one score, and of rows of scores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant.array_types import Array, Flags, Index
from calibrant.data.score_table import HALF, LEAST
from calibrant.export.lookup_tables import (
    Grid,
    StackedPlans,
    grid_of,
    parameter_table,
    regions_by_cell,
    stacked_plans,
)
from calibrant.export.sql.dialects import (
    SMALLEST_NORMAL,
    Dialect,
    case,
    clamp,
    comment,
    comparison_tree,
    in_brackets,
    indented,
    linear_sum,
    quoted_name,
    sum_of_terms,
    table_name,
    text_literal,
)
from calibrant.losses import LARGEST, SMALLEST, logit
from calibrant.rules.plan import nodes
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import Node, Number, Pieces, PlanColumn, PlanPrinter, Regions

Range = tuple[float, float]

#: how far from what NumPy gives an engine's value may be, as a share of it, or of 1
MARGIN = 1e-9
EVERYWHERE = (-nodes.LARGEST_DOUBLE, nodes.LARGEST_DOUBLE)

SQL = nodes.PlanTarget(
    "SQL",
    "Apply it in memory: calibrate, or predict_proba for several classes.",
    iterates=False,
)
#: smaller scores count as 0 in products, where products must not underflow
TINY = 1e-280
#: the values of the functions at 0 and 1
ENDS = {
    nodes.Logit: tuple(logit(np.array([0.0, 1.0])).tolist()),
    nodes.Log: (float(np.log(SMALLEST)), float(np.log(LARGEST))),
    nodes.MinusLogRest: (0.0, float(-np.log1p(-LARGEST))),
}
#: a name, a qualified name or a number
WORD = r"[\w.:]+"
#: functions whose SQL is an operand as it stands
FUNCTIONS = (nodes.Logit, nodes.Log, nodes.Square)
#: the lower end of a region, its line as SQL, and the range of that
Leaf = tuple[float, str, Range]
#: how near to 0 or 1 a line must come for rounding to carry it beyond
NEAR = 1e-12


@dataclass(frozen=True)
class SqlPrinter(PlanPrinter[str]):
    """Writes the plan of one score as SQL. It knows which scores get to where it writes, and which
    variables are known.

    Parameters
    ----------
    writer : collects the joins that the text needs
    score : SQL of the score
    here : the least and the largest score that get here
    known : variables as SQL, to be used as operands
    ranges : the least and the largest value of each of them here
    columns : SQL of the parameters that each row has of its own
    code : for stacked plans, SQL of the number of each row's own plan
    relative : whether small values must keep their digits, because another map reads them
    whole : whether all values are 0 and 1, and are written as whole numbers
    """

    writer: SqlWriter
    score: str
    here: Range = EVERYWHERE
    known: dict[Node, str] = field(default_factory=dict)
    ranges: Mapping[Node, Range] = field(default_factory=dict)
    columns: Mapping[PlanColumn, str] = field(default_factory=dict)
    code: str = ""
    relative: bool = False
    whole: bool = False

    @property
    def dialect(self) -> Dialect:
        """The dialect of the writer."""
        return self.writer.dialect

    def number(self, number: Number) -> str:
        """A parameter as SQL: a literal, or a column."""
        if isinstance(number, PlanColumn):
            return self.columns[number]
        return str(int(number)) if self.whole else self.dialect.number(number)

    def reach(self, node: Node) -> Range:
        """The least and the largest value that a node can have here."""
        return value_range(node, self.here, self.ranges)

    def for_scores_between(self, low: float, high: float) -> SqlPrinter:
        """A printer for a branch that only scores in an interval get to."""
        return replace(self, here=(max(self.here[0], low), min(self.here[1], high)))

    def with_variable(self, variable: Node, text: str, range_: Range) -> SqlPrinter:
        """A printer that knows a variable, by its SQL and range."""
        return replace(
            self,
            known={**self.known, variable: in_brackets("(", text, ")")},
            ranges={**self.ranges, variable: range_},
        )

    def write(self, node: Node) -> str:
        """A node as SQL. What is used twice is written twice, since SQL has no variables."""
        return self.known[node] if node in self.known else self.by_rule(node)

    def operand(self, node: Node) -> str:
        """A node as SQL, in brackets where it needs them as an operand."""
        text = self.write(node)
        plain = isinstance(node, nodes.Input) or node in self.known or re.fullmatch(WORD, text)
        called = (
            isinstance(node, nodes.Clip) and self.dialect.greatest and any(self._clip_ends(node))
        )
        return text if plain or called else in_brackets("(", text, ")")

    def input(self, node: nodes.Input) -> str:
        return self.score

    def constant(self, node: nodes.Constant) -> str:
        return self.number(node.value)

    def clip(self, node: nodes.Clip) -> str:
        """A clipped value. An end that the value cannot pass is not written."""
        text, ends = self.write(node.x), self._clip_ends(node)
        return clamp(text, self.dialect, *ends) if any(ends) else text

    def _clip_ends(self, node: nodes.Clip) -> tuple[str | None, str | None]:
        """The ends of a clipped value as SQL; None for one that the value cannot pass."""
        least, most = self.reach(node.x)
        (_, low), (high, _) = ends_of(node.low), ends_of(node.high)
        return (
            self.number(node.low) if least < low else None,
            self.number(node.high) if most > high else None,
        )

    def linear(self, node: nodes.Linear) -> str:
        """A sum of terms with coefficients."""
        numbered: list[tuple[float, str]] = []
        parts = [self.number(node.base)] if isinstance(node.base, PlanColumn) else []
        for coefficient, term in node.terms:
            # −ln(1 − p) is written as ln(1 − p)
            turned = isinstance(term, nodes.MinusLogRest)
            text = self._factor_of(term, coefficient)
            if isinstance(coefficient, PlanColumn) or parts:
                parts.append(f"{'-' if turned else '+'} {self.number(coefficient)} * {text}")
            else:
                numbered.append((-coefficient if turned else coefficient, text))
        base = 0.0 if isinstance(node.base, PlanColumn) else node.base
        if not parts:
            return linear_sum(base, numbered, self.dialect)
        if numbered or base:
            parts = [linear_sum(base, numbered, self.dialect), *parts]
        text = "\n".join(parts)
        return text.removeprefix("+ ")

    def _factor_of(self, term: Node, coefficient: Number) -> str:
        """A term of a sum as SQL, safe from underflow where the database needs that."""
        if isinstance(term, nodes.MinusLogRest):  # the sum turns the sign
            return self._log_function(term)
        text = self.operand(term) if not isinstance(term, FUNCTIONS) else self.write(term)
        low, high = self.here
        largest = max(map(abs, ends_of(coefficient)))
        inner = term.x if isinstance(term, nodes.Clip) else term
        tiny = isinstance(inner, nodes.Input) and low < TINY and high > -TINY and largest <= 0.5
        return guarded_factor(text, self.dialect) if tiny else text

    def sigmoid(self, node: nodes.Sigmoid) -> str:
        return sigmoid_of(self.write(node.x), self.dialect, exp_is_finite(self.reach(node.x)))

    def softplus(self, node: nodes.Softplus) -> str:
        """ln(1 + exp(f)), written so that it cannot overflow."""
        f, number = self.operand(node.x), self.dialect.number
        size = f"ABS({f})"
        if not (self.dialect.infinite or exp_is_finite(self.reach(node.x))):
            size = clamp(size, self.dialect, None, STEEPEST)
        tail = in_brackets("EXP(-", size, ")")
        above = clamp(f, self.dialect, 0.0, None)
        return f"{above} + {self.dialect.ln}({number(1.0)} + {tail})"

    def _log_function(self, node: nodes.Logit | nodes.Log | nodes.MinusLogRest) -> str:
        """ln(p / (1 − p)), ln p or ln(1 − p) as SQL, also where p is 0 or 1."""
        low, high = self.reach(node.x)
        number, ln, one = self.dialect.number, self.dialect.ln, self.dialect.number(1.0)
        p, sign = self.operand(node.x), -1.0 if isinstance(node, nodes.MinusLogRest) else 1.0
        at_zero, at_one = (sign * end for end in ENDS[type(node)])
        branches = [(f"{p} <= {number(0.0)}", number(at_zero))] if low <= 0.0 else []
        branches += [(f"{p} >= {one}", number(at_one))] if high >= 1.0 else []
        # ln(1 − p) and not log1p: what is lost is below 1e-16
        inner = {
            nodes.Logit: f"{p} / ({one} - {p})",
            nodes.Log: p,
            nodes.MinusLogRest: f"{one} - {p}",
        }[type(node)]
        return (
            in_brackets("(", case(branches, f"{ln}({inner})"), ")")
            if branches
            else f"{ln}({inner})"
        )

    logit = log = _log_function

    def minus_log_rest(self, node: nodes.MinusLogRest) -> str:
        return f"-{self._log_function(node)}"

    def square(self, node: nodes.Square) -> str:
        z = self.operand(node.x) if not isinstance(node.x, FUNCTIONS) else self.write(node.x)
        return f"({z} * {z})"

    # --- pieces -----------------------------------------------------------------------------------

    def step_pieces(self, node: nodes.StepPieces) -> str:
        """The value of the step: by a CASE, or by a lookup table."""
        found = self._reached_regions(node)
        if self.writer.lookup and sum(len(own.low) for own in found) > 1:
            columns = [{"value": own} for own in node.values]
            return self.writer.join_pieces(found, columns, self.score, self.code)["value"]
        [own], [values] = found, node.values
        texts = [self.number(float(values[i])) for i in own.piece]
        return comparison_tree(self.score, own.low.tolist(), texts, self.dialect)

    def _reached_regions(self, node: nodes.StepPieces | nodes.LinePieces) -> list[Regions]:
        """The regions of each table of pieces that scores can reach here."""
        if self.here == EVERYWHERE or not node.places[0].by_input:
            return [place.regions for place in node.places]
        return [place.regions.within(*self.here) for place in node.places]

    def line_pieces(self, node: nodes.LinePieces) -> str:
        """The value of the line: by a CASE, or by a lookup table."""
        # what lines are of may choose the piece itself, if they meet at every knot
        chooser = self.score if node.places[0].by_input else self.operand(node.x)
        if not self.writer.lookup or sum(len(place.knots) for place in node.places) < 2:
            low, texts, _ = zip(*self._line_leaves(node), strict=True)
            return comparison_tree(chooser, low, texts, self.dialect)
        found = self._reached_regions(node)
        columns = nodes.line_columns(node.pieces, self.relative)
        if any(is_steep(own, node.x).any() for own in node.pieces):
            columns = [own | piece_bounds(node, i, found[i]) for i, own in enumerate(columns)]
        joined = self.writer.join_pieces(found, columns, chooser, self.code)
        text = line_by_columns(self._factor_of(node.x, 0.0), joined)
        if "least" in joined:
            return clamp(text, self.dialect, joined["least"], joined["most"])
        shares = all(own.are_shares for own in node.pieces)
        return clamp(text, self.dialect, 0.0, 1.0) if shares else text

    def _line_leaves(self, node: nodes.LinePieces) -> list[Leaf]:
        """For each region that scores can reach: its lower end, its line as SQL, and the range of
        that."""
        [place], [pieces] = node.places, node.pieces
        known, [found] = place.by_input, self._reached_regions(node)
        steep, columns = is_steep(pieces, node.x), pieces.columns(self.relative)
        limits = piece_bounds(node, 0, found) if steep.any() else {}
        leaves = []
        for low, high, i in zip(*found, strict=True):
            piece = {name: float(column[i]) for name, column in columns.items()}
            ends = {name: float(column[i]) for name, column in limits.items() if steep[i]}
            own = self.for_scores_between(low, high) if known else self
            flat = nodes.flat_value(piece)
            if ends and ends["least"] == ends["most"]:
                flat = ends["least"]
            if flat is not None:
                leaves.append((float(low), self.dialect.number(flat), (flat, flat)))
                continue
            s = own._factor_of(node.x, 0.0)
            text = line_by_numbers(s, piece, self.writer)
            range_ = widened(*sorted((float(pieces.low[i]), float(pieces.high[i]))))
            least, most = ends.get("least"), ends.get("most")
            if pieces.are_shares and not ends:
                least, most = _ends_to_clamp(node, piece, own.here if known else None, range_)
            if (least, most) != (None, None):
                text = clamp(text, self.dialect, least, most)
            leaves.append((float(low), text, range_))
        return leaves

    # --- one after another ------------------------------------------------------------------------

    def let(self, node: nodes.Let) -> str:
        """The body of a variable, with the variable's SQL in its place."""
        value, own = node.variable.value, replace(self, relative=True)
        lines = value.x if isinstance(value, nodes.Sigmoid) else value
        if (
            self.writer.lookup
            or not isinstance(lines, nodes.LinePieces)
            or not lines.places[0].by_input
        ):
            return self.with_variable(node.variable, own.write(value), self.reach(value)).write(
                node.body
            )
        leaves = own._line_leaves(lines)
        ends = [np.nextafter(low, -np.inf) for low, *_ in leaves[1:]] + [np.inf]
        texts = []
        for (low, text, range_), end in zip(leaves, ends, strict=True):
            if range_[0] == range_[1]:  # what is made of a number is a number
                [p] = evaluate(node.body, np.array([low])).tolist()
                texts.append(self.dialect.number(p))
                continue
            here, known = self.for_scores_between(low, float(end)), (text, range_)
            if isinstance(value, nodes.Sigmoid):
                known = (
                    sigmoid_of(text, self.dialect, exp_is_finite(range_)),
                    value_range(value, here.here, {**self.ranges, lines: range_}),
                )
            texts.append(here.with_variable(node.variable, *known).write(node.body))
        return comparison_tree(self.score, [low for low, *_ in leaves], texts, self.dialect)


def guarded_factor(value: str, dialect: Dialect) -> str:
    """SQL of a value as a factor. Tiny ones count as 0 where underflow is an error."""
    if not dialect.strict:
        return value
    number = dialect.number
    return case([(f"ABS({value}) < {number(TINY)}", number(0.0))], value)


def sigmoid_of(f: str, dialect: Dialect, bounded: bool) -> str:
    """SQL of σ(f) = 1 / (1 + exp(−f)), safe from overflow where the database needs that."""
    one = dialect.number(1.0)
    f = f if bounded or dialect.infinite else clamp(f, dialect, -STEEPEST, STEEPEST)
    if re.fullmatch(WORD, f):
        return f"{one} / ({one} + EXP(-{f}))"
    return in_brackets(f"{one} / ({one} + EXP(-(", f, ")))")


def _ends_to_clamp(
    node: nodes.LinePieces, piece: Mapping[str, float], here: Range | None, range_: Range
) -> tuple[float | None, float | None]:
    """Which of 0 and 1 a line must be clipped to, since rounding could pass them; None for an end
    that is safe."""
    if here is not None and isinstance(node.x, nodes.Input):
        # each operation rises or falls with the score, and is the same in every engine
        values = nodes.on_line(np.array(here), piece)
        return 0.0 if values.min() < 0.0 else None, 1.0 if values.max() > 1.0 else None
    if here is not None:
        values = evaluate(node, np.array(here))
        range_ = float(values.min()), float(values.max())
    return 0.0 if range_[0] <= NEAR else None, 1.0 if range_[1] >= 1.0 - NEAR else None


# --- A plan per segment: a CASE; or, for many, a table of parameters and one of pieces ------------


def write_segments(plan: nodes.BySegment, segments: Sequence[str], printer: SqlPrinter) -> str:
    """The plan of a score and its segment as SQL."""
    dialect = printer.dialect
    used = np.flatnonzero(plan.shares > 0.0).tolist()
    common = without_overflow(plan.common.value, dialect)
    if not used:
        return printer.write(common)
    columns = []
    for i, name in enumerate(segments):
        is_text = plan.key_type("in a column of SQL", i) is str
        columns.append(dialect.key.format(name) if is_text else name)
    if printer.writer.lookup:
        return _segments_by_lookup(plan, used, columns, printer)
    branches = []
    for i in used:
        text = printer.write(without_overflow(plan.whole(i), dialect))
        keys = [
            str(key) if isinstance(key, int) else text_literal(key + dialect.key_end, dialect)
            for key in plan.paths[i]
        ]
        branches.append((keys, text))
    rest = printer.write(common)
    if len(columns) == 1:
        return case([(key, text) for [key], text in branches], rest, operand=columns[0])
    conditions = []
    for keys, text in sorted(branches, key=lambda branch: -len(branch[0])):  # the finest first
        pairs = zip(columns, keys, strict=False)  # a coarse one has no value in the last columns
        conditions.append((" AND ".join(f"{column} = {key}" for column, key in pairs), text))
    return case(conditions, rest)


# --- many segments ------------------------------------------------------------------------------


def _segment_number(
    plan: nodes.BySegment, used: list[int], columns: Sequence[str], printer: SqlPrinter
) -> tuple[Any, str]:
    """The keys of a lookup table of segments, and SQL of each row's own key.

    With several columns values are numbers: tables give that of the finest segment that is known.
    """
    if len(columns) == 1:
        keys = [plan.keys[i] for i in used]
        return np.array(keys) if isinstance(keys[0], int) else keys, columns[0]
    found: list[str] = []
    for size in range(len(columns), 0, -1):
        here = [n for n, i in enumerate(used) if len(plan.paths[i]) == size]
        if here:
            table: dict[str, Any] = {}
            for j in range(size):
                values = [plan.paths[used[n]][j] for n in here]
                whole = isinstance(values[0], int)
                table[plan.column_names[j]] = np.array(values) if whole else values
            equal = dict(zip(table, columns, strict=False))
            about = f"{len(here):,} segments of {size} column{'s' * (size > 1)}: the number of each"
            joined = printer.writer.join(about, {**table, "place": np.array(here)}, equal)
            found.append(joined["place"])
    place = found[0] if len(found) == 1 else f"COALESCE({', '.join(found)})"
    return np.arange(len(used)), place


def _segments_by_lookup(
    plan: nodes.BySegment, used: list[int], columns: Sequence[str], printer: SqlPrinter
) -> str:
    """The plan of many segments as SQL, with parameters from a lookup table."""
    dialect = printer.dialect
    precise = replace(printer, relative=nodes.use_counts(plan.members)[plan.common] > 0)
    common = precise.write(without_overflow(plan.common.value, dialect))
    printer = printer.with_variable(plan.common, common, printer.reach(plan.common))
    stacks = [
        StackedPlans(members, without_overflow(node, dialect))
        for members, node in stacked_plans([plan.members[i] for i in used], shared=(plan.common,))
    ]
    table, names = parameter_table(stacks, plan.shares[used])
    if len(stacks) == 1:
        del table["part"]
    if (table["share"] == 1.0).all():
        del table["share"]
    segments, place = _segment_number(plan, used, columns, printer)
    about = f"{len(used):,} segments: the number of each, and what its map is made of"
    rows: dict[str, Any] = {"segment": segments, **table}
    joined = printer.writer.join(about, rows, {"segment": place})
    own = {parameter: joined[name] for parameter, name in names.items()}
    printer = replace(printer, columns=own, code=joined["code"])
    texts = [printer.write(node) for _, node in stacks]
    value = texts[0]
    if len(texts) > 1:
        parts = enumerate(texts[:-1])
        value = case([(f"{joined['part']} = {i}", text) for i, text in parts], texts[-1])
    if "share" in joined:
        rest = f"({dialect.number(1.0)} - {joined['share']})"
        mixed = ((joined["share"], value), (rest, common))
        value = "\n+ ".join(in_brackets(f"{share} * (", text, ")") for share, text in mixed)
    return case([(f"{joined['code']} IS NULL", common)], value)


# --------------------------------------------------------------------------------------------------
# Plans of several scores as one SELECT: a few steps, each a WITH, and a column for every class


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
    """A query that is written in steps. Each step selects from the one before.

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

    def add(self, about: str, **values: Sequence[str] | str) -> list[str]:
        """Add a step that computes columns; their names."""
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
        body = f"SELECT{dialect.top}\n{indented(listed)}\n{self._from_clause()}{dialect.limit}"
        step = f"{self.prefix}step_{len(self.steps) + 1} {dialect.step}"
        self.steps.append(f"{comment(about)}{step} (\n{indented(body)}\n)")
        return [f"r.{name}" for name in columns]

    def _from_clause(self) -> str:
        """The FROM clause of the next step, with new lookup tables joined."""
        source = f"{self.prefix}step_{len(self.steps)}" if self.steps else self.table
        new = self.writer.joins[self.joined :]
        self.joined += len(new)
        text, dialect = f"FROM {source} AS r", self.writer.dialect
        for join in new:
            table = f"{table_name(self.lookup, dialect, join.suffix)} AS {join.alias}"
            conditions = indented("ON " + "\nAND ".join(join.conditions))
            text += f"\nLEFT JOIN {table}{dialect.joined}\n{conditions}"
        return text

    def query(self, last: Sequence[str]) -> str:
        """The whole query: all steps, then a SELECT of the last columns."""
        first = "WITH\n" + ",\n".join(self.steps) + "\n" if self.steps else ""
        ending = indented(",\n".join((*self.keep, *last)))
        return f"{first}SELECT\n{ending}\n{self._from_clause()}"


class SqlRowPrinter(PlanPrinter[list[str]]):
    """Writes the plan of several scores as steps of a query; a column for each class."""

    def __init__(self, columns: Sequence[str], steps: QuerySteps) -> None:
        self.raw, self.steps = columns, steps
        self.dialect, self.number = steps.writer.dialect, steps.writer.dialect.number
        self.known = {}
        self.scores: list[str] = []
        self.all_finite = ""  # the column that says so of a row's scores, where it is needed

    def probabilities(self, plan: Node) -> list[str]:
        """The columns of the result; NULL in rows with a score that is no number."""
        found = self.write(plan)
        if not self.all_finite:
            return found
        return [case([(f"{self.all_finite} = 1", p)]) for p in found]

    def row_input(self, node: nodes.RowInput) -> list[str]:
        return self.numbers()

    def numbers(self) -> list[str]:
        """The scores as doubles, by a first step of the query."""
        if not self.scores:
            is_finite, double = self.dialect.is_finite, self.dialect.double
            own = [case([(is_finite(c), f"CAST({c} AS {double})")]) for c in self.raw]
            every = case([("\nAND ".join(map(is_finite, self.raw)), "1")], "0")
            about = "The scores, and known: whether all are numbers."
            *self.scores, self.all_finite = self.steps.add(about, s=own, known=every)
        return self.scores

    def each_column(self, node: nodes.EachColumn, relative: bool = False) -> list[str]:
        """The value of each column by its own plan."""
        single = isinstance(node.row, nodes.RowInput) and not self.scores
        columns = self.raw if single else self.write(node.row)
        return [self._column_plan(own, columns[j], relative) for j, own in node.members]

    def _column_plan(self, node: Node, column: str, relative: bool) -> str:
        """SQL of one column by its plan; NULL for what is no number."""
        printer = SqlPrinter(self.steps.writer, column, relative=relative)
        text = printer.write(without_overflow(node, self.dialect))
        return self.dialect.result.format(case([(self.dialect.is_finite(column), text)]))

    def within(self, node: nodes.Within) -> list[str]:
        """Add a step with all columns clipped to an interval."""
        columns = self.write(node.row)
        cut = [
            clamp(guarded_factor(c, self.dialect), self.dialect, node.low, node.high)
            for c in columns
        ]
        return self.steps.add("The same, none too small or too large.", x=cut)

    def logarithms(self, node: nodes.Logarithms) -> list[str]:
        """Add a step with the logarithms of all columns."""
        # a floor below all normal numbers is none: subnormal numbers have logarithms, too
        end = self.number(node.floor if node.floor >= SMALLEST_NORMAL else 0.0)
        least, one, zero = map(self.number, (float(np.log(node.floor)), 1.0, 0.0))
        logs = [
            case([(f"{p} <= {end}", least), (f"{p} >= {one}", zero)], f"{self.dialect.ln}({p})")
            for p in self.write(node.row)
        ]
        return self.steps.add("The logarithms of the probabilities.", z=logs)

    def affine(self, node: nodes.Affine) -> list[str]:
        """Add a step with W·x + b."""
        x, k = self.write(node.row), len(self.write(node.row))
        full = node.matrix
        if full.ndim < 2:
            full = np.diag(np.broadcast_to(full, k))
        bias = np.zeros(k) if node.bias is None else node.bias
        sums = []
        for row, b in zip(full.tolist(), bias.tolist(), strict=True):
            terms = [(w, c) for w, c in zip(row, x, strict=True) if w]
            sums.append(self.dialect.result.format(linear_sum(b, terms, self.dialect)))
        return self.steps.add("The logits, scaled.", eta=sums)

    def softmax_row(self, node: nodes.SoftmaxRow) -> list[str]:
        """The softmax of the columns, in several steps."""
        e, _ = self._relative_powers(node.row)
        [whole] = self.steps.add("The sum of those.", total=sum_of_terms(e))
        return [f"{c} / {whole}" for c in e]

    def log_softmax(self, node: nodes.LogSoftmax) -> list[str]:
        """The logarithm of the softmax of the columns, in several steps."""
        e, top = self._relative_powers(node.row)
        whole = f"{self.dialect.ln}({sum_of_terms(e)})"
        [log] = self.steps.add("The logarithm of their sum.", log_total=whole)
        logs = [f"{c} - {top} - {log}" for c in self.write(node.row)]
        return self.steps.add("The logarithms of the probabilities.", x=logs)

    def _relative_powers(self, node: Node) -> tuple[list[str], str]:
        """exp(value − largest value) for each column, and the largest value."""
        z = self.write(node)
        [top] = self.steps.add("The largest of them.", largest=self._largest_of(z))
        own = [_guarded_exp(f"{c} - {top}", self.dialect) for c in z]
        return self.steps.add("Their exponentials, as shares of the largest.", e=own), top

    def _largest_of(self, columns: Sequence[str]) -> str:
        """SQL of the largest of some columns."""
        greatest = self.dialect.greatest
        if not greatest:
            rows = ", ".join(f"({c})" for c in columns)
            return f"(SELECT MAX(v) FROM (VALUES {rows}) AS t(v))"
        while len(columns) > 1:
            parts = [columns[i : i + WIDE] for i in range(0, len(columns), WIDE)]
            columns = [f"{greatest}({', '.join(p)})" if len(p) > 1 else p[0] for p in parts]
        return columns[0]

    def relative_power(self, node: nodes.RelativePower) -> list[str]:
        """Powers of the columns divided by the largest, in several steps."""
        columns, zero = self.write(node.row), self.number(0.0)
        [top] = self.steps.add("The largest probability.", largest=self._largest_of(columns))
        size = case([(f"{top} > {zero}", top)], self.number(1.0))
        shares = [f"{clamp(c, self.dialect, 0.0)} / {size}" for c in columns]
        powers = []
        for x in self.steps.add("All as shares of it.", x=shares):
            log = linear_sum(0.0, [(node.power, f"{self.dialect.ln}({x})")], self.dialect)
            powers.append(case([(f"{x} > {zero}", _guarded_exp(log, self.dialect))], zero))
        return self.steps.add("Their powers.", x=powers)

    def normalised(self, node: nodes.Normalised) -> list[str]:
        """The columns divided by their sum, unless that is 0."""
        columns, zero = self.write(node.row), self.number(0.0)
        [whole] = self.steps.add("Their sum.", total=sum_of_terms(columns))
        shares = [case([(f"{whole} > {zero}", f"{c} / {whole}")], c) for c in columns]
        return self.steps.add("The same, of sum one.", x=shares)

    def row_average(self, node: nodes.RowAverage) -> list[str]:
        """The weighted mean of several rows."""
        self.numbers()
        terms = [[f"{self.number(w)} * ({p})" for p in self.write(row)] for w, row in node.terms]
        return [sum_of_terms(own) for own in zip(*terms, strict=True)]

    def largest_mapped(self, node: nodes.LargestMapped) -> list[str]:
        """The formula of `with_largest`, in several steps."""
        add, number, one = self.steps.add, self.number, self.number(1.0)
        zero = number(0.0)
        p = add("The probabilities.", x=self.write(node.row))
        [top] = add("The largest of them.", largest=self._largest_of(p))
        tied = [case([(f"{c} >= {top}", one)], zero) for c in p]
        others = self._all_but_largest(node.row, p, top)
        about = "How many are the largest, the largest of the others, and the sum of these."
        largest, rest = self._largest_of(others), sum_of_terms(others)
        ties, second, rest = add(about, ties=sum_of_terms(tied), largest=largest, rest=rest)
        [mapped] = add("The largest, calibrated.", r=self._column_plan(node.member, top, False))
        even = number(nodes.AHEAD / node.k)
        order = f"{number(nodes.AHEAD)} * {second} / ({rest} + {ties} * {second})"
        [least] = add(
            "The least that keeps the order.", r=case([(f"{rest} > {zero}", order)], even)
        )
        most = f"{one} / {ties}"
        ends = [(f"{mapped} > {most} OR {least} > {most}", most), (f"{mapped} < {least}", least)]
        within = case(ends, mapped)
        [first] = add("Within the order, and at most one in all.", r=within)
        size = clamp(f"{one} - {ties} * {first}", self.dialect, 0.0)
        [left] = add("What is left for the others.", rest=size)
        count = number(float(node.k))
        shares = [
            case([(f"{rest} > {zero}", f"{c} / {rest} * {left}")], f"{left} / ({count} - {ties})")
            for c in (guarded_factor(own, self.dialect) for own in others)
        ]
        return [case([(f"{c} >= {top}", first)], own) for c, own in zip(p, shares, strict=True)]

    def _all_but_largest(self, row: Node, p: Sequence[str], top: str) -> list[str]:
        """All columns, with 0 for the largest. Where a database cuts small powers to 0, logarithms
        keep their ratios."""
        add, number = self.steps.add, self.number
        if self.dialect.infinite:
            own = [case([(f"{c} < {top}", c)], number(0.0)) for c in p]
            return add("All others.", x=own)
        none = number(NO_LOGARITHM)
        pairs = zip(p, self._logarithms_of(row), strict=True)
        logs = [case([(f"{c} < {top}", log)], none) for c, log in pairs]
        logs = add("The logarithms of all others.", z=logs)
        [second] = add("The largest of those.", largest=self._largest_of(logs))
        is_some = f"{second} > {number(NO_POWER)}"
        shares = [_guarded_exp(f"({log} - {second})", self.dialect) for log in logs]
        shares = [case([(is_some, share)], number(0.0)) for share in shares]
        return add("All others, as shares of the second.", e=shares)

    def _logarithms_of(self, row: Node) -> list[str]:
        """The logarithms of a row's values, up to a common constant."""
        if isinstance(row, nodes.Within | nodes.Normalised):
            return self._logarithms_of(row.row)
        if isinstance(row, nodes.SoftmaxRow):
            z = self.write(row.row)
            [top] = self.steps.add("The largest logit.", largest=self._largest_of(z))
            return [f"{c} - {top}" for c in z]
        zero, none, ln = self.number(0.0), self.number(NO_LOGARITHM), self.dialect.ln
        if isinstance(row, nodes.RelativePower):
            c = self._logarithms_of(row.row)
            [top] = self.steps.add("The largest logarithm.", largest=self._largest_of(c))
            power = self.number(row.power)
            return [case([(f"{own} > {none}", f"{power} * ({own} - {top})")], none) for own in c]
        return [case([(f"{c} > {zero}", f"{ln}({c})")], none) for c in self.write(row)]

    def combined(self, node: nodes.Combined) -> list[str]:
        """The columns divided by their sum. Combiners that iterate are refused earlier."""
        assert isinstance(node.row, nodes.EachColumn)
        own = self.each_column(node.row, relative=True)  # shares are made of them
        r = self.steps.add("The probability of each class against all others.", r=own)
        [whole] = self.steps.add("Their sum.", total=sum_of_terms(r))
        zero, even = self.number(0.0), self.number(1.0 / len(r))
        shares = [guarded_factor(c, self.dialect) for c in r]
        return [
            case([(f"{whole} > {zero}", f"{c} / {whole}"), (f"{whole} <= {zero}", even)])
            for c in shares
        ]


def _guarded_exp(power: str, dialect: Dialect) -> str:
    """SQL of exp; 0 where a database would refuse an underflow."""
    text = in_brackets("EXP(", power, ")")
    if dialect.infinite:
        return text
    return case([(f"{power} > {dialect.number(LEAST_POWER)}", text)], dialect.number(0.0))


# --- What the text being written needs: the dialect, the form, and the tables to join -------------


@dataclass(frozen=True)
class LookupJoin:
    """A lookup table to be made, and how a query joins it.

    Parameters
    ----------
    about : what its rows are, for a comment
    suffix : what is added to the name of the lookup table
    alias : what the query calls it
    columns : values by name; text, whole numbers or doubles
    key : how many of the first columns tell its rows apart
    conditions : SQL that holds for the row that is found
    """

    about: str
    suffix: str
    alias: str
    columns: Mapping[str, Array | Index | list[str]]
    key: int
    conditions: tuple[str, ...]


@dataclass
class SqlWriter:
    """Collects the lookup tables that are needed while SQL is written.

    Parameters
    ----------
    dialect : Dialect
    lookup : bool
        Whether pieces are chosen by joins; by CASE otherwise.
    """

    dialect: Dialect
    lookup: bool = False
    joins: list[LookupJoin] = field(default_factory=list)

    def join_pieces(
        self,
        found: Sequence[Regions],
        columns: Sequence[Mapping[str, Array]],
        score: str,
        code: str = "",
    ) -> dict[str, str]:
        """Join a lookup table of pieces; SQL of the columns of each row's piece.

        Where there are several tables, ``code`` is SQL of the number of the row's own.
        """
        low = np.sort(np.concatenate([own.low for own in found]))
        grid = grid_of(low, owners=len(found), lean=True)
        parts = [self.rows(grid, *pair) for pair in zip(found, columns, strict=True)]
        table = {own: np.concatenate([part[own] for part in parts]) for own in parts[0]}
        equal = {"cell": cell_of_score(grid, score, self.dialect)}
        what, each = "pieces", "cell"
        if len(parts) > 1:
            what, each = "pieces of maps", "segment and cell"
            codes = np.repeat(np.arange(len(parts)), [len(part["cell"]) for part in parts])
            table, equal = {"code": codes, **table}, {"code": code, **equal}
        about = f"{len(low):,} {what}, each once for every {each} of scores that it touches"
        return self.join(about, table, equal, score)

    def rows(self, grid: Grid, found: Regions, columns: Mapping[str, Array]) -> dict[str, Any]:
        """The rows of a lookup table of pieces: cell, ends of the region, and values."""
        low, high, piece = found
        if not self.dialect.subnormals:  # ends are normal numbers
            low, high = low.copy(), high.copy()
            for end, up in ((low, True), (high, False)):
                tiny = (end != 0.0) & (np.abs(end) < SMALLEST_NORMAL)
                away = (end > 0.0) == up
                end[tiny] = np.where(away, np.sign(end) * SMALLEST_NORMAL, 0.0)[tiny]
            some = low <= high
            low, high, piece = low[some], high[some], piece[some]
        cells, region = regions_by_cell(grid, low, high)
        order = np.lexsort((low[region], cells))
        cells, region = cells[order], region[order]
        first = np.where(low == -nodes.LARGEST_DOUBLE, -self.dialect.endless, low)
        last = np.where(high == nodes.LARGEST_DOUBLE, self.dialect.endless, high)
        ends = {"cell": cells, "score_from": first[region], "score_to": last[region]}
        return ends | {own: c[piece[region]] for own, c in columns.items()}

    def join(
        self,
        about: str,
        columns: Mapping[str, Array | Index | list[str]],
        equal: Mapping[str, str],
        score: str = "",
    ) -> dict[str, str]:
        """Join a new lookup table, by equal columns and perhaps by the region of the score; SQL of
        its columns."""
        count = len(self.joins) + 1
        alias, suffix = (f"l{count}", f"_{count}") if count > 1 else ("l", "")
        found = {own: f"{alias}.{quoted_name(own, self.dialect)}" for own in columns}
        conditions = [f"{found[own]} = {value}" for own, value in equal.items()]
        if score:
            conditions.append(f"{score} BETWEEN {alias}.score_from AND {alias}.score_to")
        self.joins.append(
            LookupJoin(about, suffix, alias, columns, len(conditions), tuple(conditions))
        )
        return found


# --------------------------------------------------------------------------------------------------
# Lines as SQL. Where rounding could carry a value beyond those at the line's ends, it is cut


#: how far values of different engines may differ, as a share of the value
ROUNDING = 2.0**-51


# --- where rounding matters ---------------------------------------------------------------------


def is_steep(pieces: Pieces, x: Node) -> Flags:
    """Which lines are so steep that rounding of x changes their value.

    >>> from calibrant.rules.plan.nodes import Input, Logit
    >>> rise = np.array([0.0, 1.0])
    >>> is_steep(Pieces(np.array([0.0, 1e-9]), rise, rise), Logit(Input())).tolist()
    [False, True, False]
    """
    if isinstance(x, nodes.Input):  # whose bits all engines have in common
        return np.zeros(len(pieces.x) + 1, dtype=bool)
    _, width, low, high, *_ = pieces.table
    size = np.maximum(np.abs(pieces.x), 1.0)
    size = np.maximum(np.append(size, 1.0), np.append(1.0, size))
    with np.errstate(over="ignore"):
        moved = np.abs(high - low) / width * size * ROUNDING
    return np.asarray(moved > nodes.LOST)


def piece_bounds(node: nodes.LinePieces, i: int, found: Regions) -> dict[str, Array]:
    """The least and the largest value of each piece of a table, as NumPy computes them."""
    pieces = node.pieces[i]
    if not node.places[i].by_input:
        ends = [pieces.low[found.piece], pieces.high[found.piece]]
    else:
        ends = [evaluate(node, scores, owner=i) for scores in (found.low, found.high)]
    least, most = np.zeros((2, len(pieces.x) + 1))
    least[found.piece], most[found.piece] = np.minimum(*ends), np.maximum(*ends)
    return {"least": least, "most": most}


# --- as SQL -------------------------------------------------------------------------------------


def line_by_numbers(s: str, piece: Mapping[str, float], writer: SqlWriter) -> str:
    """SQL of a line whose parameters are numbers.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> piece = {"start": 0.5, "low": 0.0, "high": 0.25, "width": 2.0}
    >>> line_by_numbers("s", piece, SqlWriter(dialect_of("duckdb")))
    '(s - 0.5e0) / 2e0 * 0.25e0'
    """
    dialect = writer.dialect
    if "base" in piece:
        return linear_sum(piece["base"], [(piece["slope"], s)], dialect)
    if "slope" in piece:
        along = linear_sum(-piece["start"], [(1.0, s)], dialect)
        return linear_sum(piece["low"], [(piece["slope"], f"({along})")], dialect)
    # the operations of the map itself, one after another, but for those that change nothing
    rise, start = piece["high"] - piece["low"], piece["start"]
    text = s if piece.get("scale", 1.0) == 1.0 else f"{s} * {dialect.number(piece['scale'])}"
    if start:
        text = f"({text} {'-' if start > 0.0 else '+'} {dialect.number(abs(start))})"
    for mark, number in (("/", piece["width"]), ("*", abs(rise))):
        text += f" {mark} {dialect.number(number)}" if number != 1.0 else ""
    return linear_sum(piece["low"], [(1.0 if rise > 0.0 else -1.0, text)], dialect)


def line_by_columns(s: str, piece: Mapping[str, str]) -> str:
    """SQL of a line whose parameters are columns."""
    if "base" in piece:
        return f"{piece['base']} + {piece['slope']} * {s}"
    if "slope" in piece:
        return f"{piece['low']} + {piece['slope']} * ({s} - {piece['start']})"
    low, high, width = piece["low"], piece["high"], piece["width"]
    scaled = f"{s} * {piece['scale']}" if "scale" in piece else s
    return f"{low} + ({scaled} - {piece['start']}) / {width} * ({high} - {low})"


# --- Plans for databases in which an overflow is an error, and not infinity -----------------------


#: beyond ± this a sigmoid is 0 (to 1e-260) or 1; further out some engines refuse the exp in it, or
#: its product with a weight
STEEPEST = 600.0
#: any number in this interval is as good, so a short one is taken
ROUND = (570.0, 630.0)
#: products up to here can be added without overflow
HUGE = 1e300
#: up to here, the sum of an intercept and a term keeps the digits of both
WHERE_SUMS_ARE_SURE = 1e6


def exp_is_finite(range_: Range) -> bool:
    """Whether exp of all values in a range is finite."""
    return range_[0] >= -ROUND[1] and range_[1] <= ROUND[1]


def without_overflow(node: Node, dialect: Dialect) -> Node:
    """The plan with large factors clipped, for databases in which an overflow is an error.

    Where a product is that large, the sigmoid around it has long been 0 or 1.
    """
    return node if dialect.infinite else nodes.rebuilt_plan(node, _with_small_products)


def _with_small_products(node: Node) -> Node:
    """A sum whose factors are clipped, so that no product overflows."""
    if not isinstance(node, nodes.Linear):
        return node
    if node.base == 0.0 and [c for c, _ in node.terms] in ([1.0], [-1.0]):  # no more than a sign
        return node
    terms = []
    for i, (c, term) in enumerate(node.terms):
        largest = max(map(abs, ends_of(c))) * max(map(abs, value_range(term)))
        cut = nodes.Clip(term, *_factor_limits(node, i)) if largest > HUGE else term
        terms.append((c, cut))
    same = all(new is old for (_, new), (_, old) in zip(terms, node.terms, strict=True))
    return node if same else nodes.Linear(node.base, tuple(terms))


def _factor_limits(node: nodes.Linear, i: int) -> tuple[Number, Number]:
    """The interval that a factor is clipped to. Beyond it the sigmoid of the sum is 0 or 1
    anyway."""
    c, base = (nodes.values_of(number) for number in (node.terms[i][0], node.base))
    if len(node.terms) == 1 and np.abs(base).max() <= WHERE_SUMS_ARE_SURE:
        both = []
        for level in (-STEEPEST, STEEPEST):
            exact = (level - base) / c
            short = np.array([float(f"{end:.1e}") for end in exact.tolist()])
            size = np.abs(base + c * short)
            both.append(np.where((size >= ROUND[0]) & (size <= ROUND[1]), short, exact))
        low, high = np.minimum(*both), np.maximum(*both)
    else:
        others = nodes.Linear(0.0, node.terms[:i] + node.terms[i + 1 :])
        rest = max(map(abs, value_range(others)))
        high = 2.0 * (STEEPEST + rest + np.abs(base)) / np.abs(c)
        # two terms of a margin have no end, but only one of them is large at a time
        high = np.minimum(high, HUGE / np.maximum(np.abs(c), HUGE / nodes.LARGEST_DOUBLE))
        low = -high
    if len(high) == 1:
        return float(low[0]), float(high[0])
    return PlanColumn(low), PlanColumn(high)


# --- The cell of a score, only by operations that IEEE 754 fixes to the last bit ------------------


#: scores further out than so many spreads count as this far out: so no product overflows
FAR = 2.0**60


def cell_of_score(grid: Grid, score: str, dialect: Dialect) -> str:
    """SQL of the grid cell of a score.

    >>> from calibrant.export.sql.dialects import dialect_of
    >>> cell_of_score(Grid(4), "s", dialect_of("duckdb"))
    'CAST(FLOOR(4e0 * CASE WHEN s <= 0e0 THEN 0e0 WHEN s < 1e0 THEN s ELSE 1e0 END) AS INTEGER)'
    """
    number, cells = dialect.number, grid.cells
    one, zero, start = number(1.0), number(0.0), number(grid.first)
    if start.startswith("-"):
        start = f"({start})"

    def between(inner: str, low: tuple[float, float], high: tuple[float, float]) -> str:
        """A value between two scores, constants beyond them; NaN and NULL are beyond the last."""
        branches = [(f"{score} <= {number(low[0])}", number(low[1]))]
        return case([*branches, (f"{score} < {number(high[0])}", inner)], number(high[1]))

    if cells is None:
        along, end = score, (grid.last - grid.first) * grid.factor
        if (grid.first, grid.factor) != (0.0, 1.0):
            along = f"({score} - {start}) * {number(grid.factor)}"
        t = between(along, (grid.first, 0.0), (grid.last, end))
        t = "SQRT(" * grid.roots + t + ")" * grid.roots
        return dialect.cells(f"{number(float(grid.count))} * {t}")
    # `Cells.places` of the score less `Grid.first`
    if cells.centre is None:  # even in the logit
        below = case([(f"{score} > {zero}", score)], zero)
        above = case([(f"{score} < {one}", f"{one} - {score}")], zero)
        lower, upper = (f"SQRT(SQRT(SQRT({p})))" for p in (below, above))
        half, side = number(HALF), f"{score} < {number(0.5)}"
        low, high = f"{lower} - {half}", f"{half} - {upper}"
    else:  # finest in the middle
        first, last = (grid.first + side * FAR * cells.spread for side in (-1.0, 1.0))
        near = between(score, (first, first), (last, last))
        t = f"({near} - {start}) * {number(1.0 / cells.spread)}"
        far, side = f"{one} / ({one} + ABS({t}))", f"{t} < {zero}"
        low, high = f"{far} - {one}", f"{one} - {far}"
    text = case([(side, f"{low} - {number(LEAST)}")], high)
    return in_brackets("", dialect.cells(f"{number(cells._scale)} * {text}"), "")


# --- The range of values that a node can have: what SQL need not guard against --------------------


def value_range(
    node: Node, score: Range = EVERYWHERE, known: Mapping[Node, Range] | None = None
) -> Range:
    """The least and the largest value of a node, as any engine may compute it.

    Parameters
    ----------
    node : Node
    score : the least and the largest score that comes in
    known : ranges of variables, where they are known better

    Notes
    -----
    By interval arithmetic, so never too narrow. A value that cannot be negative has no negative
    numbers in its range.

    >>> from calibrant.rules.plan.nodes import Clip, Input, Linear, Sigmoid
    >>> value_range(Sigmoid(Input()))
    (0.0, 1.0)
    >>> value_range(Linear(1.0, ((-2.0, Clip(Input(), 0.0, 0.25)),)))[0] > 0.49
    True
    """
    with np.errstate(all="ignore"):
        low, high = _Reach(score, known or {}).write(node)
    return float(low), float(high)


def ends_of(number: Number) -> Range:
    """The least and the largest of a parameter."""
    values = nodes.values_of(number)
    return float(values.min()), float(values.max())


def widened(low: float, high: float) -> Range:
    """A range a little wider, but not across zero: rounding does not change a sign."""
    below = low - MARGIN * max(1.0, abs(low))
    above = high + MARGIN * max(1.0, abs(high))
    return max(below, 0.0) if low >= 0.0 else below, min(above, 0.0) if high <= 0.0 else above


class _Reach(PlanPrinter[Range]):
    """The ranges of nodes, by interval arithmetic."""

    def __init__(self, score: Range, known: Mapping[Node, Range]) -> None:
        self.score, self.known = score, dict(known)

    def input(self, node: nodes.Input) -> Range:
        return self.score

    def constant(self, node: nodes.Constant) -> Range:
        return ends_of(node.value)

    def clip(self, node: nodes.Clip) -> Range:
        (low, _), (_, high) = ends_of(node.low), ends_of(node.high)
        least, most = self.write(node.x)
        return min(max(least, low), high), max(min(most, high), low)

    def linear(self, node: nodes.Linear) -> Range:
        """The range of a sum, from the ranges of its terms."""
        low, high = ends_of(node.base)
        for coefficient, term in node.terms:
            products = [c * v for c in ends_of(coefficient) for v in self.write(term)]
            low, high = low + min(products), high + max(products)
        return widened(low, high)

    def rising(self, node: nodes.Rising) -> Range:
        """The function at both ends."""
        low, high = node.function(np.array(self.write(node.x))).tolist()
        return widened(low, high)

    def sigmoid(self, node: nodes.Sigmoid) -> Range:
        low, high = self.rising(node)
        return low, min(high, 1.0)

    def square(self, node: nodes.Square) -> Range:
        low, high = self.write(node.x)
        squares = (low * low, high * high)
        return widened(0.0 if low <= 0.0 <= high else min(squares), max(squares))

    def step_pieces(self, node: nodes.StepPieces) -> Range:
        """The range of all steps that scores can lie on."""
        tables = zip(node.places, node.values, strict=True)
        return _span_of([v for place, own in tables for v in self._met(place, own)])

    def line_pieces(self, node: nodes.LinePieces) -> Range:
        """The range of the ends of all lines that scores can lie on."""
        tables = zip(node.places, node.pieces, strict=True)
        return widened(
            *_span_of([v for place, own in tables for v in self._met(place, own.low, own.high)])
        )

    def _met(self, place: nodes.PieceChoice, *columns: Array) -> list[Array]:
        """The entries of columns for the pieces that scores can lie on."""
        if not place.by_input:
            return list(columns)
        here = place.regions.within(*self.score).piece
        return [column[here] for column in columns]


def _span_of(values: list[Array]) -> Range:
    """The least and the largest entry of some columns."""
    whole = np.concatenate(values)
    return float(whole.min()), float(whole.max())
