"""Plans of one score as SQL: formulas, and pieces chosen by comparisons or by a join.

Comparisons are with the score itself, whose bits are the same in every engine, so they decide as
NumPy does. SQL has no variables within an expression. So a map that reads lines is written into
each branch of those lines, where the formula of one line is short and its range is known.
"""

from __future__ import annotations

import re
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
    guarded,
    inside,
    is_bounded,
    is_steep,
    line,
    linear,
    numbered_line,
    string,
    tree,
)
from calibrant.losses import LARGEST, SMALLEST, logit
from calibrant.rules.plan import nodes
from calibrant.rules.plan.borders import Regions, flat_value, line_columns, on_line
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.map_input import PlanTarget
from calibrant.rules.plan.nodes import (
    EVERYWHERE,
    BySegment,
    Node,
    Number,
    PlanColumn,
    PlanPrinter,
    Range,
    about,
    ends_of,
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
