"""Plans as SQL: of one score, and of rows of scores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.text import (
    STEEPEST,
    SqlWriter,
    bounds,
    case,
    clamp,
    comment,
    from_rows,
    guarded,
    inside,
    is_bounded,
    is_steep,
    line,
    linear,
    numbered_line,
    shifted,
    string,
    total,
    tree,
)
from calibrant.losses import LARGEST, SMALLEST, logit
from calibrant.rules.plan import nodes
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import (
    EVERYWHERE,
    BySegment,
    EachColumn,
    LogSoftmax,
    Node,
    Number,
    PlanColumn,
    PlanPrinter,
    PlanTarget,
    Range,
    Regions,
    RowInput,
    about,
    ends_of,
    flat_value,
    line_columns,
    on_line,
    reach,
    uses,
)
from calibrant.rules.plan.tables import StackedPlans, parameter_table, stacked

SQL = PlanTarget(
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
    """Writes plans as SQL, and knows where: in which branch, and after which variables.

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
        """A parameter: a literal, or a column."""
        if isinstance(number, PlanColumn):
            return self.columns[number]
        return str(int(number)) if self.whole else self.dialect.number(number)

    def reach(self, node: Node) -> Range:
        """The least and the largest value of a node here."""
        return reach(node, self.here, self.ranges)

    def between(self, low: float, high: float) -> SqlPrinter:
        """The printer for scores in an interval."""
        return replace(self, here=(max(self.here[0], low), min(self.here[1], high)))

    def given(self, variable: Node, text: str, range_: Range) -> SqlPrinter:
        """The printer for what is made of a variable."""
        return replace(
            self,
            known={**self.known, variable: inside("(", text, ")")},
            ranges={**self.ranges, variable: range_},
        )

    def write(self, node: Node) -> str:
        """A node as SQL. What is used twice is written twice: SQL has no variables."""
        return self.known[node] if node in self.known else self.by_rule(node)

    def operand(self, node: Node) -> str:
        """A node as SQL that can be part of a product, of a comparison, or an argument."""
        text = self.write(node)
        plain = isinstance(node, nodes.Input) or node in self.known or re.fullmatch(WORD, text)
        called = isinstance(node, nodes.Clip) and self.dialect.greatest and any(self._ends(node))
        return text if plain or called else inside("(", text, ")")

    def input(self, node: nodes.Input) -> str:
        return self.score

    def constant(self, node: nodes.Constant) -> str:
        return self.number(node.value)

    def clip(self, node: nodes.Clip) -> str:
        text, ends = self.write(node.x), self._ends(node)
        return clamp(text, self.dialect, *ends) if any(ends) else text

    def _ends(self, node: nodes.Clip) -> tuple[str | None, str | None]:
        """The ends of the interval as SQL; None for an end that the value cannot be beyond."""
        least, most = self.reach(node.x)
        (_, low), (high, _) = ends_of(node.low), ends_of(node.high)
        return (
            self.number(node.low) if least < low else None,
            self.number(node.high) if most > high else None,
        )

    def linear(self, node: nodes.Linear) -> str:
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
            return linear(base, numbered, self.dialect)
        if numbered or base:
            parts = [linear(base, numbered, self.dialect), *parts]
        text = "\n".join(parts)
        return text.removeprefix("+ ")

    def _factor_of(self, term: Node, coefficient: Number) -> str:
        """A term of a sum; where products must not underflow, tiny scores count as 0."""
        if isinstance(term, nodes.MinusLogRest):  # the sum turns the sign
            return self._function(term)
        text = self.operand(term) if not isinstance(term, FUNCTIONS) else self.write(term)
        low, high = self.here
        largest = max(map(abs, ends_of(coefficient)))
        inner = term.x if isinstance(term, nodes.Clip) else term
        tiny = isinstance(inner, nodes.Input) and low < TINY and high > -TINY and largest <= 0.5
        return factor(text, self.dialect) if tiny else text

    def sigmoid(self, node: nodes.Sigmoid) -> str:
        return sigmoid_of(self.write(node.x), self.dialect, is_bounded(self.reach(node.x)))

    def softplus(self, node: nodes.Softplus) -> str:
        """ln(1 + exp(f)) = max(f, 0) + ln(1 + exp(−|f|)); what is lost is below 1e-16."""
        f, number = self.operand(node.x), self.dialect.number
        size = f"ABS({f})"
        if not (self.dialect.infinite or is_bounded(self.reach(node.x))):
            size = clamp(size, self.dialect, None, STEEPEST)
        tail = inside("EXP(-", size, ")")
        above = clamp(f, self.dialect, 0.0, None)
        return f"{above} + {self.dialect.ln}({number(1.0)} + {tail})"

    def _function(self, node: nodes.Logit | nodes.Log | nodes.MinusLogRest) -> str:
        """ln(p / (1 − p)), ln p or ln(1 − p); 0 and 1 get values of their own where p can be 0 or
        1."""
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
        return inside("(", case(branches, f"{ln}({inner})"), ")") if branches else f"{ln}({inner})"

    logit = log = _function

    def minus_log_rest(self, node: nodes.MinusLogRest) -> str:
        return f"-{self._function(node)}"

    def square(self, node: nodes.Square) -> str:
        z = self.operand(node.x) if not isinstance(node.x, FUNCTIONS) else self.write(node.x)
        return f"({z} * {z})"

    # --- pieces -----------------------------------------------------------------------------------

    def step_pieces(self, node: nodes.StepPieces) -> str:
        found = self._found(node)
        if self.writer.lookup and sum(len(own.low) for own in found) > 1:
            return self._joined(node, [{"value": own} for own in node.values], self.score)["value"]
        [own], [values] = found, node.values
        texts = [self.number(float(values[i])) for i in own.piece]
        return tree(self.score, own.low.tolist(), texts, self.dialect)

    def _found(self, node: nodes.StepPieces | nodes.LinePieces) -> list[Regions]:
        """The regions of each table; where the score chooses, those that scores get to here."""
        if self.here == EVERYWHERE or not node.places[0].by_input:
            return [place.regions for place in node.places]
        return [place.regions.within(*self.here) for place in node.places]

    def _joined(
        self,
        node: nodes.StepPieces | nodes.LinePieces,
        columns: Sequence[Mapping[str, Array]],
        chooser: str,
    ) -> dict[str, str]:
        """The columns of the piece that a join finds for each row."""
        code = self.code if len(node.places) > 1 else ""
        return self.writer.look_up(self._found(node), columns, chooser, code)

    def line_pieces(self, node: nodes.LinePieces) -> str:
        if self.writer.lookup and sum(len(place.knots) for place in node.places) > 1:
            return self._looked_up(node)
        leaves = self._leaves(node)
        low, texts = [low for low, *_ in leaves], [text for _, text, _ in leaves]
        return tree(self._chooser(node), low, texts, self.dialect)

    def _chooser(self, node: nodes.LinePieces) -> str:
        """What chooses a piece: the score; or what lines are of, if they meet at every knot."""
        return self.score if node.places[0].by_input else self.operand(node.x)

    def _looked_up(self, node: nodes.LinePieces) -> str:
        """Lines; a join finds the one that each row lies on."""
        columns = line_columns(node.pieces, self.relative)
        if any(is_steep(own, node.x).any() for own in node.pieces):
            more = (bounds(node, i, found) for i, found in enumerate(self._found(node)))
            columns = [own | ends for own, ends in zip(columns, more, strict=True)]
        joined = self._joined(node, columns, self._chooser(node))
        text = line(self._factor_of(node.x, 0.0), joined)
        if "least" in joined:
            return clamp(text, self.dialect, joined["least"], joined["most"])
        shares = all(own.are_shares for own in node.pieces)
        return clamp(text, self.dialect, 0.0, 1.0) if shares else text

    def _leaves(self, node: nodes.LinePieces) -> list[Leaf]:
        """For each region that scores get to: its lower end, its line as SQL, and the line's
        range."""
        [place], [pieces] = node.places, node.pieces
        known, [found] = place.by_input, self._found(node)
        steep, columns = is_steep(pieces, node.x), pieces.columns(self.relative)
        limits = bounds(node, 0, found) if steep.any() else {}
        leaves = []
        for low, high, i in zip(*found, strict=True):
            piece = {name: float(column[i]) for name, column in columns.items()}
            ends = {name: float(column[i]) for name, column in limits.items() if steep[i]}
            own = self.between(low, high) if known else self
            flat = flat_value(piece)
            if ends and ends["least"] == ends["most"]:
                flat = ends["least"]
            if flat is not None:
                leaves.append((float(low), self.dialect.number(flat), (flat, flat)))
                continue
            s = own._factor_of(node.x, 0.0)
            text = numbered_line(s, piece, self.writer)
            range_ = about(*sorted((float(pieces.low[i]), float(pieces.high[i]))))
            least, most = ends.get("least"), ends.get("most")
            if pieces.are_shares and not ends:
                least, most = _beyond(node, piece, own.here if known else None, range_)
            if (least, most) != (None, None):
                text = clamp(text, self.dialect, least, most)
            leaves.append((float(low), text, range_))
        return leaves

    # --- one after another ------------------------------------------------------------------------

    def let(self, node: nodes.Let) -> str:
        value, own = node.variable.value, replace(self, relative=True)
        lines = value.x if isinstance(value, nodes.Sigmoid) else value
        if (
            self.writer.lookup
            or not isinstance(lines, nodes.LinePieces)
            or not lines.places[0].by_input
        ):
            return self.given(node.variable, own.write(value), self.reach(value)).write(node.body)
        leaves = own._leaves(lines)
        ends = [np.nextafter(low, -np.inf) for low, *_ in leaves[1:]] + [np.inf]
        texts = []
        for leaf, end in zip(leaves, ends, strict=True):
            here = self.between(leaf[0], float(end))
            texts.append(here._of_leaf(node, leaf, lines))
        return tree(self.score, [low for low, *_ in leaves], texts, self.dialect)

    def _of_leaf(self, node: nodes.Let, leaf: Leaf, lines: nodes.LinePieces) -> str:
        """The body of a Let, on the region of one line of its variable."""
        low, text, range_ = leaf
        value = node.variable.value
        if range_[0] == range_[1]:  # what is made of a number is a number
            [p] = evaluate(node.body, np.array([low])).tolist()
            return self.dialect.number(p)
        if isinstance(value, nodes.Sigmoid):
            text = sigmoid_of(text, self.dialect, is_bounded(range_))
            range_ = reach(value, self.here, {**self.ranges, lines: range_})
        return self.given(node.variable, text, range_).write(node.body)


def factor(value: str, dialect: Dialect) -> str:
    """A value as a factor: where a product must not underflow, tiny ones count as 0."""
    if not dialect.strict:
        return value
    number = dialect.number
    return case([(f"ABS({value}) < {number(TINY)}", number(0.0))], value)


def sigmoid_of(f: str, dialect: Dialect, bounded: bool) -> str:
    """σ(f) = 1 / (1 + exp(−f)) of SQL; where f is not bounded, it is moved to where exp is."""
    one = dialect.number(1.0)
    f = f if bounded or dialect.infinite else clamp(f, dialect, -STEEPEST, STEEPEST)
    if re.fullmatch(WORD, f):
        return f"{one} / ({one} + EXP(-{f}))"
    return inside(f"{one} / ({one} + EXP(-(", f, ")))")


def _beyond(
    node: nodes.LinePieces, piece: Mapping[str, float], here: Range | None, range_: Range
) -> tuple[float | None, float | None]:
    """0 and 1, or None for either of them that rounding cannot carry the line beyond."""
    if here is not None and isinstance(node.x, nodes.Input):
        # each operation rises or falls with the score, and is the same in every engine
        values = on_line(np.array(here), piece)
        return 0.0 if values.min() < 0.0 else None, 1.0 if values.max() > 1.0 else None
    if here is not None:
        values = evaluate(node, np.array(here))
        range_ = float(values.min()), float(values.max())
    return 0.0 if range_[0] <= NEAR else None, 1.0 if range_[1] >= 1.0 - NEAR else None


# --- A plan per segment: a CASE; or, for many, a table of parameters and one of pieces ------------


def write_segmented(plan: BySegment, segments: Sequence[str], printer: SqlPrinter) -> str:
    """The plan of a score and of columns of segments as SQL."""
    used = np.flatnonzero(plan.shares > 0.0).tolist()
    common = guarded(plan.common.value, printer.dialect)
    if not used:
        return printer.write(common)
    columns = [_comparable(plan, i, name, printer.dialect) for i, name in enumerate(segments)]
    if printer.writer.lookup:
        return _looked_up(plan, used, columns, printer)
    dialect = printer.dialect
    own = [printer.write(guarded(plan.whole(i), dialect)) for i in used]
    if len(columns) == 1:
        keys = [_literal(plan.keys[i], dialect) for i in used]
        return case(list(zip(keys, own, strict=True)), printer.write(common), operand=columns[0])
    branches = [(plan.paths[i], text) for i, text in zip(used, own, strict=True)]
    finest_first = sorted(branches, key=lambda branch: -len(branch[0]))
    conditions = [(_condition(path, columns, dialect), text) for path, text in finest_first]
    return case(conditions, printer.write(common))


def _comparable(plan: BySegment, column: int, name: str, dialect: Dialect) -> str:
    """A column of segments as SQL that is compared with the keys."""
    is_text = plan.key_type("in a column of SQL", column) is str
    return dialect.key.format(name) if is_text else name


def _condition(path: Sequence[str | int], columns: Sequence[str], dialect: Dialect) -> str:
    pairs = zip(columns, path, strict=False)  # a coarse segment has no value in the last columns
    return " AND ".join(f"{column} = {_literal(key, dialect)}" for column, key in pairs)


def _literal(key: str | int, dialect: Dialect) -> str:
    return str(key) if isinstance(key, int) else string(key + dialect.key_end, dialect)


# --- many segments ------------------------------------------------------------------------------


def _place(
    plan: BySegment, used: list[int], columns: Sequence[str], printer: SqlPrinter
) -> tuple[Any, str]:
    """The values that tell segments apart, and the SQL that gives the value of a row.

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


def _looked_up(
    plan: BySegment, used: list[int], columns: Sequence[str], printer: SqlPrinter
) -> str:
    """Plans of the same form share columns. The table says which form each segment has."""
    dialect = printer.dialect
    precise = replace(printer, relative=uses(plan.members)[plan.common] > 0)
    common = precise.write(guarded(plan.common.value, dialect))
    printer = printer.given(plan.common, common, printer.reach(plan.common))
    stacks = [
        StackedPlans(members, guarded(node, dialect))
        for members, node in stacked([plan.members[i] for i in used], shared=(plan.common,))
    ]
    table, names = parameter_table(stacks, plan.shares[used])
    if len(stacks) == 1:
        del table["part"]
    if (table["share"] == 1.0).all():
        del table["share"]
    segments, place = _place(plan, used, columns, printer)
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
        value = "\n+ ".join(inside(f"{share} * (", text, ")") for share, text in mixed)
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

    def within(self, node: nodes.Within) -> list[str]:
        columns = self.write(node.row)
        cut = [clamp(factor(c, self.dialect), self.dialect, node.low, node.high) for c in columns]
        return self.steps.add("The same, none too small or too large.", {"x": cut})

    def logarithms(self, node: nodes.Logarithms) -> list[str]:
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

    def affine(self, node: nodes.Affine) -> list[str]:
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

    def softmax_row(self, node: nodes.SoftmaxRow) -> list[str]:
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

    def relative_power(self, node: nodes.RelativePower) -> list[str]:
        columns, zero = self.write(node.row), self.number(0.0)
        [top] = self.steps.add("The largest probability.", {"largest": self._largest(columns)})
        size = case([(f"{top} > {zero}", top)], self.number(1.0))
        shares = [f"{clamp(c, self.dialect, 0.0)} / {size}" for c in columns]
        powers = []
        for x in self.steps.add("All as shares of it.", {"x": shares}):
            log = linear(0.0, [(node.power, f"{self.dialect.ln}({x})")], self.dialect)
            powers.append(case([(f"{x} > {zero}", _exp(log, self.dialect))], zero))
        return self.steps.add("Their powers.", {"x": powers})

    def normalised(self, node: nodes.Normalised) -> list[str]:
        """Columns divided by their sum, unless that is zero."""
        columns, zero = self.write(node.row), self.number(0.0)
        [whole] = self.steps.add("Their sum.", {"total": total(columns)})
        shares = [case([(f"{whole} > {zero}", f"{c} / {whole}")], c) for c in columns]
        return self.steps.add("The same, of sum one.", {"x": shares})

    def row_average(self, node: nodes.RowAverage) -> list[str]:
        self.numbers()
        terms = [[f"{self.number(w)} * ({p})" for p in self.write(row)] for w, row in node.terms]
        return [total(own) for own in zip(*terms, strict=True)]

    def largest_mapped(self, node: nodes.LargestMapped) -> list[str]:
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
        even = number(nodes.AHEAD / node.k)
        order = f"{number(nodes.AHEAD)} * {second} / ({rest} + {ties} * {second})"
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
        if isinstance(row, nodes.Within | nodes.Normalised):
            return self._logarithms_of(row.row)
        if isinstance(row, nodes.SoftmaxRow):
            z = self.write(row.row)
            [top] = self.steps.add("The largest logit.", {"largest": self._largest(z)})
            return [f"{c} - {top}" for c in z]
        zero, none, ln = self.number(0.0), self.number(NO_LOGARITHM), self.dialect.ln
        if isinstance(row, nodes.RelativePower):
            c = self._logarithms_of(row.row)
            [top] = self.steps.add("The largest logarithm.", {"largest": self._largest(c)})
            power = self.number(row.power)
            return [case([(f"{own} > {none}", f"{power} * ({own} - {top})")], none) for own in c]
        return [case([(f"{c} > {zero}", f"{ln}({c})")], none) for c in self.write(row)]

    def combined(self, node: nodes.Combined) -> list[str]:
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
