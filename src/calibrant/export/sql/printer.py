"""Plans of one score as SQL: formulas, and pieces chosen by comparisons or by a join.

Comparisons are with the score itself, whose bits every engine has in common, so they take the side
that NumPy takes. SQL has no variables within an expression: what is made of lines is written into
each of their branches, where a line is short and knows where it lies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.export.sql.dialects import Dialect
from calibrant.export.sql.layout import case, clamp, inside, linear, tree
from calibrant.export.sql.lines import (
    bounds,
    flat_value,
    is_steep,
    line,
    numbered_line,
    numbered_values,
)
from calibrant.export.sql.overflow import STEEPEST, is_bounded
from calibrant.export.sql.writer import SqlWriter
from calibrant.losses import LARGEST, SMALLEST, logit
from calibrant.plan.borders import Regions, regions
from calibrant.plan.map_input import PlanTarget
from calibrant.plan.nodes import (
    Clip,
    Constant,
    Input,
    Let,
    Linear,
    LinePieces,
    Log,
    Logit,
    MinusLogRest,
    Node,
    Number,
    PlanColumn,
    Sigmoid,
    Square,
    StepPieces,
    Variable,
    evaluate,
)
from calibrant.plan.ranges import EVERYWHERE, Range, about, ends_of, reach

__all__ = ["SQL", "Scope", "factor", "write"]

Array = NDArray[np.float64]

SQL = PlanTarget(
    "SQL",
    "Apply it in memory: calibrate, or predict_proba for several classes.",
    iterates=False,
)
#: scores that count as 0 in products, where those must not underflow
TINY = 1e-280
#: the logits of 0 and 1, and the logarithms of what they count as
ENDS = {
    Logit: tuple(logit(np.array([0.0, 1.0])).tolist()),
    Log: (float(np.log(SMALLEST)), float(np.log(LARGEST))),
    MinusLogRest: (0.0, float(-np.log1p(-LARGEST))),
}


@dataclass(frozen=True)
class Scope:
    """What is known where a node is written.

    Parameters
    ----------
    page : what it is written on
    score : SQL of the score
    here : the least and the largest score that get here
    bound : variables as SQL, to be used as operands
    ranges : the least and the largest value of each of them here
    columns : SQL of the parameters that each row has of its own
    code : of many plans in one, SQL of the number of each row's own
    relative : whether small values must keep their digits, because something is made of them
    """

    page: SqlWriter
    score: str
    here: Range = EVERYWHERE
    bound: Mapping[Node, str] = field(default_factory=dict)
    ranges: Mapping[Node, Range] = field(default_factory=dict)
    columns: Mapping[PlanColumn, str] = field(default_factory=dict)
    code: str = ""
    relative: bool = False

    @property
    def dialect(self) -> Dialect:
        """The dialect of the page."""
        return self.page.dialect

    def number(self, number: Number) -> str:
        """A parameter: a literal, or a column."""
        return (
            self.columns[number] if isinstance(number, PlanColumn) else self.dialect.number(number)
        )

    def reach(self, node: Node) -> Range:
        """The least and the largest value of a node here."""
        return reach(node, self.here, self.ranges)

    def between(self, low: float, high: float) -> Scope:
        """The scope of the scores in an interval."""
        return replace(self, here=(max(self.here[0], low), min(self.here[1], high)))

    def let(self, variable: Node, text: str, range_: Range) -> Scope:
        """The scope in which a variable has a value."""
        return replace(
            self,
            bound={**self.bound, variable: inside("(", text, ")")},
            ranges={**self.ranges, variable: range_},
        )


def write(node: Node, scope: Scope) -> str:
    """A node as SQL."""
    if node in scope.bound:
        return scope.bound[node]
    return RULES[type(node)](node, scope)


def operand(node: Node, scope: Scope) -> str:
    """A node as SQL that can be part of a product, of a comparison, or an argument."""
    text = write(node, scope)
    plain = node in scope.bound or isinstance(node, Input) or re.fullmatch(r"[\w.:]+", text)
    called = isinstance(node, Clip) and scope.dialect.greatest and any(_ends(node, scope))
    return text if plain or called else inside("(", text, ")")


def _constant(node: Constant, scope: Scope) -> str:
    return scope.number(node.value)


def _clip(node: Clip, scope: Scope) -> str:
    text, ends = write(node.x, scope), _ends(node, scope)
    return clamp(text, scope.dialect, *ends) if any(ends) else text


def _ends(node: Clip, scope: Scope) -> tuple[str | None, str | None]:
    """The ends of an interval that a value can be beyond, as SQL."""
    least, most = scope.reach(node.x)
    (_, low), (high, _) = ends_of(node.low), ends_of(node.high)
    return (
        scope.number(node.low) if least < low else None,
        scope.number(node.high) if most > high else None,
    )


def _linear(node: Linear, scope: Scope) -> str:
    numbered: list[tuple[float, str]] = []
    parts = [scope.number(node.base)] if isinstance(node.base, PlanColumn) else []
    for coefficient, term in node.terms:
        # −ln(1 − p) is written as ln(1 − p)
        turned = isinstance(term, MinusLogRest)
        text = _factor_of(term, coefficient, scope)
        if isinstance(coefficient, PlanColumn) or parts:
            parts.append(f"{'-' if turned else '+'} {scope.number(coefficient)} * {text}")
        else:
            numbered.append((-coefficient if turned else coefficient, text))
    base = 0.0 if isinstance(node.base, PlanColumn) else node.base
    if not parts:
        return linear(base, numbered, scope.dialect)
    if numbered or base:
        parts = [linear(base, numbered, scope.dialect), *parts]
    text = "\n".join(parts)
    return text.removeprefix("+ ")


def _factor_of(term: Node, coefficient: Number, scope: Scope) -> str:
    """A term of a sum; where products must not underflow, tiny scores count as 0."""
    if isinstance(term, MinusLogRest):  # the sum turns the sign
        return _function(term, scope)
    text = operand(term, scope) if not isinstance(term, FUNCTIONS) else write(term, scope)
    low, high = scope.here
    largest = max(map(abs, ends_of(coefficient)))
    inner = term.x if isinstance(term, Clip) else term
    tiny = isinstance(inner, Input) and low < TINY and high > -TINY and largest <= 0.5
    return factor(text, scope.dialect) if tiny else text


def factor(value: str, dialect: Dialect) -> str:
    """A value as a factor: where a product must not underflow, tiny ones count as 0."""
    if not dialect.strict:
        return value
    number = dialect.number
    return case([(f"ABS({value}) < {number(TINY)}", number(0.0))], value)


def _sigmoid(node: Sigmoid, scope: Scope) -> str:
    return sigmoid_of(write(node.x, scope), scope.dialect, is_bounded(scope.reach(node.x)))


def sigmoid_of(f: str, dialect: Dialect, bounded: bool) -> str:
    """σ(f) = 1 / (1 + exp(−f)) of SQL; where f is not bounded, it is moved to where exp is."""
    one = dialect.number(1.0)
    f = f if bounded or dialect.infinite else clamp(f, dialect, -STEEPEST, STEEPEST)
    if re.fullmatch(r"[\w.:]+", f):
        return f"{one} / ({one} + EXP(-{f}))"
    return inside(f"{one} / ({one} + EXP(-(", f, ")))")


def _function(node: Logit | Log | MinusLogRest, scope: Scope) -> str:
    """ln(p / (1 − p)), ln p or ln(1 − p), with the values of 0 and 1 where p can be those."""
    low, high = scope.reach(node.x)
    number, ln, one = scope.dialect.number, scope.dialect.ln, scope.dialect.number(1.0)
    p, sign = operand(node.x, scope), -1.0 if isinstance(node, MinusLogRest) else 1.0
    at_zero, at_one = (sign * end for end in ENDS[type(node)])
    branches = [(f"{p} <= {number(0.0)}", number(at_zero))] if low <= 0.0 else []
    branches += [(f"{p} >= {one}", number(at_one))] if high >= 1.0 else []
    # ln(1 − p) and not log1p: what is lost is below 1e-16
    inner = {Logit: f"{p} / ({one} - {p})", Log: p, MinusLogRest: f"{one} - {p}"}[type(node)]
    return inside("(", case(branches, f"{ln}({inner})"), ")") if branches else f"{ln}({inner})"


FUNCTIONS = (Logit, Log, Square)


def _square(node: Square, scope: Scope) -> str:
    z = operand(node.x, scope) if not isinstance(node.x, FUNCTIONS) else write(node.x, scope)
    return f"({z} * {z})"


# --- pieces -------------------------------------------------------------------------------------


def _steps(node: StepPieces, scope: Scope) -> str:
    if len(node.places) > 1:
        return scope.page.look_up_own(
            _all_found(node), [{"value": own} for own in node.values], scope.code, scope.score
        )["value"]
    [values], found = node.values, _found(node, scope)
    if scope.page.lookup and len(found.low) > 1:
        return scope.page.look_up(found, {"value": values}, scope.score)["value"]
    texts = [scope.dialect.number(float(values[i])) for i in found.piece]
    return tree(scope.score, found.low.tolist(), texts, scope.dialect)


def _found(node: StepPieces | LinePieces, scope: Scope) -> Regions:
    """The regions of the only table that scores get to here."""
    [place] = node.places
    assert place.found is not None
    low, high, piece = place.found
    first, last = scope.here
    here = (low <= last) & (high >= first)
    return Regions(np.maximum(low, first)[here], np.minimum(high, last)[here], piece[here])


def _all_found(node: StepPieces | LinePieces) -> list[Regions]:
    return [p.found or regions(p.knots, None, falling=False) for p in node.places]


def _lines(node: LinePieces, scope: Scope) -> str:
    if scope.page.lookup and sum(len(place.knots) for place in node.places) > 1:
        return _looked_up(node, scope)
    leaves = _leaves(node, scope)
    # what lines are of may choose among them where they meet at every knot
    chooser = scope.score if node.places[0].found is not None else operand(node.x, scope)
    low, texts = [low for low, *_ in leaves], [text for _, text, _ in leaves]
    return tree(chooser, low, texts, scope.dialect)


def _looked_up(node: LinePieces, scope: Scope) -> str:
    """Lines of which a join finds each row's own."""
    known = node.places[0].found is not None
    columns = [own.columns(scope.relative) for own in node.pieces]
    if len({tuple(own) for own in columns}) > 1:
        columns = [own.ends() for own in node.pieces]
    if any(is_steep(own, node.x).any() for own in node.pieces):
        more = (bounds(node, i, found) for i, found in enumerate(_all_found(node)))
        columns = [own | ends for own, ends in zip(columns, more, strict=True)]
    chooser = scope.score if known else operand(node.x, scope)
    if len(node.places) > 1:
        joined = scope.page.look_up_own(_all_found(node), columns, scope.code, chooser)
    else:
        found = _found(node, scope) if known else _all_found(node)[0]
        joined = scope.page.look_up(found, columns[0], chooser)
    text = line(_factor_of(node.x, 0.0, scope), joined)
    if "least" in joined:
        return clamp(text, scope.dialect, joined["least"], joined["most"])
    shares = all(_are_shares(own.low) and _are_shares(own.high) for own in node.pieces)
    return clamp(text, scope.dialect, 0.0, 1.0) if shares else text


def _are_shares(values: Array) -> bool:
    return bool(values.min() >= 0.0 and values.max() <= 1.0)


Leaf = tuple[float, str, Range]


def _leaves(node: LinePieces, scope: Scope) -> list[Leaf]:
    """Of each region here its lower end, and its line as SQL with its range."""
    [place], [pieces] = node.places, node.pieces
    known = place.found is not None
    found = _found(node, scope) if known else regions(place.knots, None, falling=False)
    steep, columns = is_steep(pieces, node.x), pieces.columns(scope.relative)
    limits = bounds(node, 0, found) if steep.any() else {}
    shares = _are_shares(pieces.low) and _are_shares(pieces.high)
    leaves = []
    for low, high, i in zip(*found, strict=True):
        piece = {name: float(column[i]) for name, column in columns.items()}
        ends = {name: float(column[i]) for name, column in limits.items() if steep[i]}
        own = scope.between(low, high) if known else scope
        flat = flat_value(piece, ends)
        if flat is not None:
            leaves.append((float(low), scope.dialect.number(flat), (flat, flat)))
            continue
        s = _factor_of(node.x, 0.0, own)
        text = numbered_line(s, piece, scope.page)
        range_ = about(*sorted((float(pieces.low[i]), float(pieces.high[i]))))
        least, most = ends.get("least"), ends.get("most")
        if shares and not ends:
            least, most = _beyond(node, piece, own.here if known else None, range_)
        if (least, most) != (None, None):
            text = clamp(text, scope.dialect, least, most)
        leaves.append((float(low), text, range_))
    return leaves


#: how near to 0 or 1 a line must come for rounding to carry it beyond
NEAR = 1e-12


def _beyond(
    node: LinePieces, piece: Mapping[str, float], here: Range | None, range_: Range
) -> tuple[float | None, float | None]:
    """Which of 0 and 1 rounding could carry a line beyond, here; None for those it cannot."""
    if here is not None and isinstance(node.x, Input):
        # each operation rises or falls with the score, and is the same in every engine
        values = numbered_values(piece, np.array(here))
        return 0.0 if values.min() < 0.0 else None, 1.0 if values.max() > 1.0 else None
    if here is not None:
        values = evaluate(node, np.array(here))
        range_ = float(values.min()), float(values.max())
    return 0.0 if range_[0] <= NEAR else None, 1.0 if range_[1] >= 1.0 - NEAR else None


# --- one after another --------------------------------------------------------------------------


def _let(node: Let, scope: Scope) -> str:
    value, own = node.variable.value, replace(scope, relative=True)
    lines = value.x if isinstance(value, Sigmoid) else value
    known = isinstance(lines, LinePieces) and lines.places[0].found is not None
    if scope.page.lookup or not known or not isinstance(lines, LinePieces):
        range_ = scope.reach(value)
        return write(node.body, scope.let(node.variable, write(value, own), range_))
    leaves = _leaves(lines, own)
    ends = [np.nextafter(low, -np.inf) for low, *_ in leaves[1:]] + [np.inf]
    texts = []
    for leaf, end in zip(leaves, ends, strict=True):
        here = scope.between(leaf[0], float(end))
        texts.append(_of_leaf(node, leaf, lines, here))
    return tree(scope.score, [low for low, *_ in leaves], texts, scope.dialect)


def _of_leaf(node: Let, leaf: Leaf, lines: LinePieces, scope: Scope) -> str:
    """What is made of one line, on its region."""
    low, text, range_ = leaf
    value = node.variable.value
    if range_[0] == range_[1]:  # what is made of a number is a number
        [p] = evaluate(node.body, np.array([low])).tolist()
        return scope.dialect.number(p)
    if isinstance(value, Sigmoid):
        text = sigmoid_of(text, scope.dialect, is_bounded(range_))
        range_ = reach(value, scope.here, {**scope.ranges, lines: range_})
    return write(node.body, scope.let(node.variable, text, range_))


RULES: dict[type[Node], Callable[..., str]] = {
    Input: lambda node, scope: scope.score,
    Constant: _constant,
    Clip: _clip,
    Linear: _linear,
    Sigmoid: _sigmoid,
    Logit: _function,
    Log: _function,
    MinusLogRest: lambda node, scope: f"-{_function(node, scope)}",
    Square: _square,
    StepPieces: _steps,
    LinePieces: _lines,
    Variable: lambda node, scope: write(node.value, scope),
    Let: _let,
}
