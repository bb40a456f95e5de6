"""Maps as plain Python: the text of a module that needs the standard library only."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import keyword
import re
from collections import Counter
from collections.abc import Iterable
from textwrap import fill, indent
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.errors import ParameterError
from calibrant.export.lookup_tables import find_borders
from calibrant.export.python import helpers
from calibrant.fitting.fitted import (
    Fitted,
    FittedCalibrator,
    TreeParts,
    map_of,
    to_fitted_map,
    tree_parts_of,
)
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.piecewise import read_probability
from calibrant.rules.plan import nodes
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import Node, PlanPrinter, use_counts
from calibrant.version import __version__

__all__ = ["to_python"]

PYTHON = nodes.PlanTarget("Python", "Save it with calibrant.save and apply it with calibrant.load.")
#: the longest label or name that a docstring shows whole
LONGEST = 80


def to_python(
    calibrator: FittedCalibrator | Map, *, name: str | None = None, threshold: float | None = None
) -> str:
    """The calibrator as the text of a Python module with one function.

    The module needs nothing but Python 3.8 or newer: tables are tuples, a search is `bisect`.

    Parameters
    ----------
    calibrator : fitted calibrator, Fitted (what `load` returns), or Map
    name : str, optional
        The name of the function: a plain ASCII name that is no keyword, builtin or private name.
        By default "calibrate", or "decide" with a threshold.
    threshold : float in [0, 1], optional
        Write the decision in place of the probability, for calibrators of one score:
        ``decide(score) -> bool`` says whether ``calibrate`` gives at least this.

    Returns
    -------
    str
        A module with ``calibrate(score) -> float``, the probability of ``pos_label``; with
        ``calibrate(score, segment) -> float`` for a calibrator of segments (of several columns
        ``calibrate(score, segment_1, segment_2)``, and so on); or with
        ``calibrate(scores) -> list[float]`` for several classes, in the order of its ``CLASSES``;
        or with ``calibrate(score, features) -> float`` for a `FeatureCalibrator`, where features
        are a dict by the columns' names, or a list of all columns if they have none.
        What is missing, NaN or infinite is a ValueError.

    Notes
    -----
    Steps are those of `calibrate` bit for bit, and at a jump the function is always on the same
    side: where a logarithm would decide, knots are moved to the scale of the score beforehand.
    Formulas differ by what Python's exp and log differ from NumPy's, a few units in the last place.
    Combiners that are solved by iteration (least squares and coupling of several classes) are
    solved in the text too, to 1e-9. A decision compares the score with the exact doubles at which
    `calibrate` passes the threshold; only for `Quadratic` is the probability computed and compared.
    A call costs O(log m) for m knots; the text holds O(m) numbers.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> text = to_python(Piecewise.step([0.5], [0.1, 0.8]), name="risk")
    >>> module = {}
    >>> exec(text, module)
    >>> module["risk"](0.7)
    0.8
    """
    at_least = None if threshold is None else read_probability(threshold, "threshold")
    name = ("calibrate" if at_least is None else "decide") if name is None else name
    _check_name(name)
    trees = tree_parts_of(calibrator)
    if trees is not None:
        if at_least is not None:
            raise ParameterError(
                "threshold must be None for a calibrator of trees, whose module gives "
                f"probabilities, but {threshold!r} came. Compare what it gives."
            )
        return tree_module(trees, name, _module_doc(trees.facts))
    map_, fitted = map_of(calibrator), to_fitted_map(calibrator)
    text, decision = Text(), None if at_least is None else map_.decision(at_least)
    plan = (map_ if decision is None else decision).plan(PYTHON)
    limit = at_least if decision is None else 1.0
    if isinstance(plan, nodes.Row):
        body = Function(text, ("scores: list[float]",), "list[float]")
        body.add(f"scores = _row(scores, {map_.n_columns})")
        if fitted is not None and isinstance(map_, VectorMap) and map_.reads == "probability":
            body.add("_check_distribution(scores)")
        body.add(f"return {PythonPrinter(body).write(plan)}")
    elif isinstance(plan, nodes.BySegment):
        body = _function_of_segment(plan, limit, text)
    else:
        body = _function_of_score(plan, limit, text)
    classes = () if fitted is None or not isinstance(map_, VectorMap) else fitted.classes
    main = body.source(name, _function_doc(plan, map_, fitted, at_least))
    return text.source(_module_doc(fitted), classes, main)


def _check_name(name: Any) -> None:
    """Refuse what cannot be the name of the function."""
    fits = isinstance(name, str) and name.isascii() and name.isidentifier()
    if not fits or name.startswith("_") or keyword.iskeyword(name):
        raise ParameterError(
            "name must be a Python name of plain letters, digits and underscores that begins with "
            f"a letter and is no keyword, but {name!r} came."
        )
    if name in (*IMPORTS, "CLASSES") or hasattr(builtins, name):
        raise ParameterError(
            f"name must not be {name!r}: the function's own text, or all of Python, uses that "
            "name. Choose another, such as 'calibrate'."
        )


# --- the function -------------------------------------------------------------------------------


def _function_of_score(plan: Node, limit: float | None, text: Text) -> Function:
    """The text of a function of one score. With a limit it tells whether the value is at least
    that."""
    body = Function(text, (SCORE,), "float" if limit is None else "bool")
    body.add("score = _finite(score)")
    if limit is None:
        body.add(f"return {PythonPrinter(body, plan).write(plan)}")
    elif isinstance(plan, nodes.Constant):
        body.add(f"return {evaluate(plan, np.zeros(1))[0] >= limit}")
    elif isinstance(plan, nodes.StepPieces) and len(plan.places[0].regions.low) == 2:
        low, _, piece = plan.places[0].regions
        rises = plan.values[0][piece[1]] >= limit
        body.add(f"return score {'>=' if rises else '<'} {number(low[1])}")
    else:
        body.add(f"return {PythonPrinter(body, plan).write(plan)} >= {number(limit)}")
    return body


def _function_of_segment(plan: nodes.BySegment, limit: float | None, text: Text) -> Function:
    """The text of a function of a score and its segment."""
    names = plan.column_names
    parameters = (SCORE, *(f"{name}: str | int" for name in names))
    if limit is not None:
        own = text.function(_function_of_segment(plan, None, text))
        value = f"{own}({', '.join(['score', *names])})"
        body = Function(text, parameters, "bool")
        body.add(f"return {value} >= {number(limit)}")
        return body
    body = Function(text, parameters)
    body.add("score = _finite(score)")
    words = {str: "text", int: "numbers"}  # the text refuses what is no such segment
    for i, name in enumerate(names):
        kinds = {type(key) for key in plan.values(i)} or set(words)
        known = " or ".join(word for kind, word in words.items() if kind in kinds)
        body.add(f"_check_segment({name}, {known!r})")
    common = PythonPrinter(body, plan.common).variable(plan.common, "common")
    if not plan.keys:
        body.add(f"return {common}")
        return body
    find_borders(plan.members)
    items = [
        f"{key!r}: ({plan_function(own, text, plan.common)}, {number(share)})"
        for key, own, share in zip(plan.keys, plan.members, plan.shares.tolist(), strict=True)
    ]
    table = text.registry("SEGMENTS", "{}", items, "each segment's own map, and its share")
    key = "segment"
    if len(names) > 1:  # the finest segment that is known
        body.add(f"key = ({', '.join(names)})")
        body.add(f"while key and key not in {table}:\n    key = key[:-1]")
        key = "key"
    body.add(f"if {key} not in {table}:\n    return {common}")
    body.add(f"member, share = {table}[{key}]")
    body.add(f"own = member(score, {common})")
    body.add(f"return own if share == 1.0 else share * own + (1.0 - share) * {common}")
    return body


# --- its words ----------------------------------------------------------------------------------


def _module_doc(fitted: Fitted | None) -> str:
    """The docstring of the written module."""
    made = f" ({_short_name(fitted.method)})" if fitted is not None and fitted.method else ""
    version = None if fitted is None else fitted.provenance.get("calibrant")
    by = f"Fitted with calibrant {_short_name(version)}, written" if version else "Written"
    return _docstring(
        f"A calibrator{made} as plain Python: the standard library is all that it needs.",
        f"{by} by calibrant {__version__}. Runs on Python 3.8 and newer.",
    )


def _function_doc(plan: Node, map_: Map, fitted: Fitted | None, at_least: float | None) -> str:
    """The docstring of the written function."""
    known = None if fitted is None else fitted.score_range
    notes = "" if known is None else f"Scores must be {known.words()}. "
    if isinstance(plan, nodes.BySegment):
        segments = "1 segment is" if len(plan.keys) == 1 else f"{len(plan.keys)} segments are"
        others = "the map of all rows"
        if plan.columns > 1:
            others = "the map of the coarser segment, or of all rows"
        notes += f"{segments} known; all others get {others}. "
    notes += "A score that is missing, NaN or infinite is a ValueError."
    if isinstance(map_, VectorMap):
        listed = "" if fitted is None else " of the classes in CLASSES, in that order,"
        scores = "1 score" if map_.n_columns == 1 else f"{map_.n_columns} scores"
        return _docstring(f"The calibrated probabilities{listed} for a row of {scores}.", notes)
    where = "one score" if map_.segments is None else "one score and its segment"
    head, tail, of = "The", "", ""
    if at_least is not None:
        head, tail = "Whether the", f" is at least {number(at_least)}"
    if fitted is not None:
        other = next(c for i, c in enumerate(fitted.classes) if i != fitted.positive_column)
        of = f" of {_short_name(fitted.pos_label)} (not {_short_name(other)})"
    return _docstring(f"{head} calibrated probability{of} for {where}{tail}.", notes)


def _short_name(value: Any) -> str:
    """A name or label as it stands in a docstring, shortened."""
    if isinstance(value, str) and value.replace(".", "").isalnum() and value.isascii():
        return value[:LONGEST]
    full = repr(value)
    return full if len(full) <= LONGEST else f"{full[:LONGEST]}…"


def _docstring(*paragraphs: str) -> str:
    """The text of a docstring with some paragraphs."""
    filled = "\n\n".join(fill(text, WIDTH - 8, break_on_hyphens=False) for text in paragraphs)
    return f'"""{in_docstring(filled)}\n"""'


# --- Plans of a score, or of a row of scores, as statements of a Python function ------------------


#: the parameters of functions
SCORE, FEATURES = "score: float", "features: dict | list"
#: the most terms of one expression; a longer sum is several statements
MANY = 8
#: the names of variables that hold the value of a node
HINTS: dict[type[Node], str] = {nodes.Logit: "z", nodes.Clip: "x"}
#: nodes that no variable needs to hold; rows are kept by their rules
PLAIN = (nodes.Constant, nodes.Input, nodes.Row)
#: the helpers that compute functions
HELPERS: dict[type[Node], str] = {
    nodes.Sigmoid: "_sigmoid",
    nodes.Logit: "_logit",
    nodes.Log: "_ln",
    nodes.MinusLogRest: "_minus_ln_rest",
    nodes.Softplus: "_softplus",
}


def plan_function(plan: Node, text: Text, common: Node | None = None) -> str:
    """Write a private function of one score that evaluates a plan; its name."""
    known = {} if common is None else {common: "common"}
    body = Function(text, (SCORE, *(f"{name}: float" for name in known.values())))
    body.add(f"return {PythonPrinter(body, plan, known=known).write(plan)}")
    return text.function(body)


class PythonPrinter(PlanPrinter[str]):
    """Writes a plan as statements in the body of a Python function.

    ``known`` are nodes that variables hold already.
    """

    def __init__(self, body: Function, *plans: Node, known: dict[Node, str] | None = None) -> None:
        self.body, self.text = body, body.text
        self.known = dict(known or {})
        self.uses: Counter[Node] = use_counts(plans)

    def write(self, node: Node) -> str:
        """A node as an expression of Python. Statements that it needs go into the body."""
        if node not in self.known:
            written = self.by_rule(node)
            if self.uses[node] < 2 or isinstance(node, PLAIN):
                return written
            self.known[node] = self.body.keep(HINTS.get(type(node), "p"), written)
        return self.known[node]

    def input(self, node: nodes.Input) -> str:
        return "score"

    def constant(self, node: nodes.Constant) -> str:
        return number(node.value)

    def let(self, node: nodes.Let) -> str:
        """The variable as a statement, then the expression made of it."""
        self.variable(node.variable)
        return self.write(node.body)

    def variable(self, node: nodes.Variable, hint: str = "p") -> str:
        """The name of the Python variable that holds a node's value."""
        if node not in self.known:
            self.known[node] = self.body.keep(hint, self.write(node.value))
        return self.known[node]

    def clip(self, node: nodes.Clip) -> str:
        return f"min(max({self.write(node.x)}, {number(node.low)}), {number(node.high)})"

    def linear(self, node: nodes.Linear) -> str:
        """A sum as an expression; a long one as several statements."""
        if len(node.terms) > MANY:
            total = self.body.name("total")
            self.body.add(f"{total} = {number(node.base)}", sets=total)
            for c, term in node.terms:
                self.body.add(f"{total} += {number(c)} * {self.write(term)}", sets=total)
            return total
        parts = [number(node.base)] if node.base or not node.terms else []
        for c, term in node.terms:
            part = f"{number(c)} * {self.write(term)}"
            sign = "- " if part.startswith("-") else "+ "
            parts.append(sign + part.removeprefix("-") if parts else part)
        line = " ".join(parts)
        return line if len(line) <= WIDTH - 30 else "\n" + indent("\n".join(parts), "    ") + "\n"

    def rising(self, node: nodes.Rising) -> str:
        return f"{HELPERS[type(node)]}({self.write(node.x)})"

    def square(self, node: nodes.Square) -> str:
        z = self.body.keep("z", self.write(node.x))
        return f"({z} * {z})"

    def step_pieces(self, node: nodes.StepPieces) -> str:
        """A search in a table of steps."""
        [place], [values] = node.places, node.values
        low, _, piece = place.regions
        cuts = self.text.numbers("CUTS", low[1:], "the lowest scores of all steps but the first")
        held = self.text.numbers("VALUES", values[piece], "the value of each step")
        return f"{held}[bisect.bisect_right({cuts}, {self.write(node.input)})]"

    def line_pieces(self, node: nodes.LinePieces) -> str:
        """A call that finds the line of a number in tables of knots and values."""
        [pieces] = node.pieces
        x = self.body.keep("x", self.write(node.x))
        knots = self.text.numbers("KNOTS", pieces.x, "the knots, in ascending order")
        if pieces.jumps:
            left = self.text.numbers("LEFT", pieces.left, "what lines come to just before a knot")
            right = self.text.numbers("RIGHT", pieces.right, "what lines start from at a knot")
            chosen = self._piece_number(node)
        else:  # at a knot both lines agree, so any side will do
            left = right = self.text.numbers("VALUES", pieces.left, "the value at each knot")
            chosen = f"bisect.bisect_right({knots}, {x})"
        return f"_on_line({x}, {knots}, {left}, {right}, {chosen})"

    def _piece_number(self, node: nodes.LinePieces) -> str:
        """An expression for the number of the piece that a score falls into."""
        low, _, piece = node.places[0].regions
        cuts = self.text.numbers("CUTS", low[1:], "the scores at which each next piece begins")
        found = f"bisect.bisect_right({cuts}, {self.write(node.input)})"
        if np.array_equal(piece, np.arange(len(piece))):
            return found
        held = self.text.table("PIECES", map(str, piece.tolist()), "the pieces in that order")
        return f"{held}[{found}]"

    # --- rows -------------------------------------------------------------------------------------

    def row_input(self, node: nodes.RowInput) -> str:
        return "scores"

    def in_variable(self, node: Node, hint: str = "x") -> str:
        """The name of a variable that holds a node's value; a statement sets it."""
        return self.body.keep(hint, self.write(node))

    def each_column(self, node: nodes.EachColumn) -> str:
        """A list of calls, one function for each column."""
        items = [f"({column}, {plan_function(own, self.text)})" for column, own in node.members]
        held = self.text.registry("MEMBERS", "()", items, "a column of the row, and its map")
        return f"[member({self.in_variable(node.row)}[column]) for column, member in {held}]"

    def within(self, node: nodes.Within) -> str:
        low, high = number(node.low), number(node.high)
        return f"[min(max(value, {low}), {high}) for value in {self.in_variable(node.row)}]"

    def logarithms(self, node: nodes.Logarithms) -> str:
        cut = f"min(max(value, {number(node.floor)}), 1.0)"
        return f"[math.log({cut}) for value in {self.in_variable(node.row)}]"

    def affine(self, node: nodes.Affine) -> str:
        """A list comprehension for W·x + b, by the form of the matrix."""
        x, text = self.in_variable(node.row), self.text
        if node.bias is None:
            return f"[{number(float(node.matrix))} * value for value in {x}]"
        bias = text.numbers("BIAS", node.bias, "what is added to each class")
        if node.matrix.ndim == 0:
            factor = number(float(node.matrix))
            return f"[{factor} * value + b for value, b in zip({x}, {bias})]"
        if node.matrix.ndim == 1:
            own = text.numbers("FACTORS", node.matrix, "the factor of each class")
            return f"[w * value + b for w, value, b in zip({own}, {x}, {bias})]"
        rows = [f"({', '.join(map(repr, row))})" for row in node.matrix.tolist()]
        matrix = text.table("MATRIX", rows, "how much of each logit goes into each class")
        row = f"sum(w * value for w, value in zip(row, {x})) + b"
        return f"[{row} for row, b in zip({matrix}, {bias})]"

    def log_softmax(self, node: nodes.LogSoftmax) -> str:
        return f"_log_softmax({self.in_variable(node.row)})"

    def softmax_row(self, node: nodes.SoftmaxRow) -> str:
        return f"[math.exp(value) for value in _log_softmax({self.in_variable(node.row)})]"

    def normalised(self, node: nodes.Normalised) -> str:
        return f"_shares({self.write(node.row)})"

    def relative_power(self, node: nodes.RelativePower) -> str:
        """Powers of the values divided by the largest."""
        kept = self.body.keep("x", f"[max(value, 0.0) for value in {self.in_variable(node.row)}]")
        peak = self.body.keep("peak", f"max({kept}) or 1.0")
        shares = self.body.keep("x", f"[value / {peak} for value in {kept}]")
        return f"[value ** {number(node.power)} for value in {shares}]"

    def row_average(self, node: nodes.RowAverage) -> str:
        """The weighted mean of several lists."""
        pairs = [f"({number(weight)}, {self.in_variable(row, 'p')})" for weight, row in node.terms]
        rows = self.body.keep("rows", f"[{', '.join(pairs)}]")
        first = self.body.keep("first", f"{rows}[0][1]")
        return f"[sum(weight * p[j] for weight, p in {rows}) for j in range(len({first}))]"

    def largest_mapped(self, node: nodes.LargestMapped) -> str:
        p = self.in_variable(node.row, "p")
        return f"_with_largest({p}, {plan_function(node.member, self.text)}(max({p})))"

    def combined(self, node: nodes.Combined) -> str:
        """The call of a combiner."""
        r = self.in_variable(node.row, "r")
        p = f"_{node.rule}({r})"
        if node.rule in ("projected", "balanced"):
            own = self.text.numbers("WEIGHTS", node.weights, "how much each class counts")
            p = f"_{node.rule}({r}, {own})"
        elif node.rule != "normalized":
            items = []
            for column, weight in zip(node.code.T, node.weights, strict=True):
                sides = (tuple(np.flatnonzero(column == sign).tolist()) for sign in (1.0, -1.0))
                items.append(f"({', '.join(map(str, sides))}, {number(weight)})")
            says = "of each column the positive and negative classes, weight"
            p = f"_{node.rule}({r}, {self.text.table('COLUMNS', items, says)}, {len(node.code)})"
        if node.known.all():
            return p
        found = self.body.keep("p", p)
        places = [str(int(node.known[:c].sum())) if k else "None" for c, k in enumerate(node.known)]
        at = self.text.table("PLACES", places, "where each class is; some are never probable")
        return f"[0.0 if i is None else {found}[i] for i in {at}]"


# --- Trees on the columns of a row as a Python module ---------------------------------------------


#: the tables of trees, and what the text says of them
OF_TREES = {
    "column": "which column each split looks at; the last one is the logit",
    "threshold": "numbers up to this go left",
    "missing_left": "whether missing numbers go left",
    "subset": "which set of categories goes left; -1: a split of numbers",
    "left": "the next split, or -1 - i for leaf i",
    "right": "the same, for rows that go right",
    "leaves": "what leaves add to the logit",
    "roots": "the first split of each tree",
}


def tree_module(parts: TreeParts, name: str, doc: str) -> str:
    """The text of a module with one function of a score and the columns of its row."""
    text, trees = Text(), parts.trees
    body = Function(text, (SCORE, FEATURES))
    plan = parts.start.plan(PYTHON)
    body.add("score = _finite(score)")
    items = []
    for column in parts.columns:
        codes = None
        if column.categories is not None:
            codes = {category: float(code) for code, category in enumerate(column.categories)}
        items.append(f"({column.name!r}, {codes!r})")
    columns = text.table("COLUMNS", items, "the columns, and the codes of their categories")
    body.add(f"row = _feature_row(features, {columns})")
    body.add(f"z = _logit({PythonPrinter(body, plan).write(plan)})")
    tables = [
        text.table(field.upper(), map(repr, getattr(trees, field).tolist()), words)
        for field, words in OF_TREES.items()
    ]
    sets = [f"frozenset({sorted(map(float, codes))!r})" for codes in trees.sets]
    tables.append(text.table("SETS", sets, "sets of category codes"))
    for first, last, factor in parts.ends:
        leaves = f"_sum_of_leaves([*row, z], {first}, {last}, {', '.join(tables)})"
        body.add(f"z = {number(factor)} * (z + {leaves})")
    body.add("return _sigmoid(z)")
    names = ", ".join(repr(one.name) for one in parts.columns)
    said = (
        '"""The calibrated probability for one score and the columns of its row.\n\n'
        f"It looks at {in_docstring(names)}.\n"
        '"""'
    )
    return text.source(doc, (), body.source(name, said))


# --- The text of a module: tables, functions that share them, and the helpers that they need ------


#: columns of a line
WIDTH = 100
#: modules of the standard library that the text may import
IMPORTS = ("bisect", "math")


def number(value: Any) -> str:
    """A number as text that Python reads back bit for bit.

    >>> number(0.1), number(-1)
    ('0.1', '-1.0')
    """
    return repr(float(value))


def in_docstring(words: str) -> str:
    """Words escaped, so that they cannot end a docstring.

    >>> in_docstring('a "b"')
    'a \\\\"b\\\\"'
    """
    return words.replace("\\", "\\\\").replace('"', '\\"')


class Text:
    """The text of the module that is being written: its tables and functions."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._tables: dict[str, tuple[str, str]] = {}
        self._functions: dict[str, str] = {}
        self._registries: list[str] = []

    def name(self, hint: str) -> str:
        """A new name of the module: ``_KNOTS``, ``_KNOTS_2``, …"""
        self._names[hint] = self._names.get(hint, 0) + 1
        return f"_{hint}" if self._names[hint] == 1 else f"_{hint}_{self._names[hint]}"

    def table(self, hint: str, items: Iterable[str], says: str) -> str:
        """Add a tuple to the module, unless it has an equal one; its name."""
        written = _tuple_text(list(items))
        if written not in self._tables:
            self._tables[written] = self.name(hint), says
        return self._tables[written][0]

    def numbers(self, hint: str, values: Array, says: str) -> str:
        """Add a tuple of numbers to the module; its name."""
        return self.table(hint, map(repr, values.tolist()), says)

    def function(self, made: Function) -> str:
        """Add a private function to the module, unless it has an equal one; its name."""
        source = made.source("{name}")
        if source not in self._functions:
            self._functions[source] = self.name("map")
        return self._functions[source]

    def registry(self, hint: str, brackets: str, items: Iterable[str], says: str) -> str:
        """Add a container of functions to the module; its name."""
        name = self.name(hint)
        lines = "".join(f"    {item},\n" for item in items)
        self._registries.append(f"# {says}\n{name} = {brackets[0]}\n{lines}{brackets[1]}\n")
        return name

    def source(self, doc: str, classes: Iterable[object], main: str) -> str:
        """The text of the whole module."""
        functions = [w.replace("{name}", name, 1) for w, name in self._functions.items()]
        code = [*functions, *self._registries, main]
        needed = _names_used("\n".join(code))
        imports = [f"import {name}\n" for name in IMPORTS if name in needed]
        labels = [repr(label) for label in classes]
        tables = [f"CLASSES = {_tuple_text(labels)}\n"] if labels else []
        tables += [
            f"# {says}\n{name} = {written}\n"
            for written, (name, says) in self._tables.items()
            if name in needed
        ]
        helping = [source for name, source in _helper_sources().items() if name in needed]
        head = [f"{doc}\n", "from __future__ import annotations\n", "".join(imports), *tables]
        return "\n".join(filter(None, head)) + "".join(f"\n\n{part}" for part in helping + code)


class Function:
    """The text of a function that is being written."""

    def __init__(self, text: Text, parameters: tuple[str, ...], returns: str = "float") -> None:
        self.text = text
        self._parameters, self._returns = parameters, returns
        self._lines: list[tuple[str, str]] = []
        self._names: dict[str, int] = {p.split(":", maxsplit=1)[0]: 1 for p in parameters}
        self._kept: dict[str, str] = {}

    def add(self, statement: str, sets: str = "") -> None:
        """Add a statement. If it only sets a variable, ``sets`` is the variable's name."""
        self._lines.append((statement, sets))

    def name(self, hint: str) -> str:
        """A new name for a variable of the function."""
        self._names[hint] = self._names.get(hint, 0) + 1
        return hint if self._names[hint] == 1 else f"{hint}_{self._names[hint]}"

    def keep(self, hint: str, expression: str) -> str:
        """The variable that holds an expression. It is set once for equal expressions."""
        if expression.isidentifier():
            return expression
        if expression not in self._kept:
            self._kept[expression] = self.name(hint)
            self.add(f"{self._kept[expression]} = {expression}", sets=self._kept[expression])
        return self._kept[expression]

    def source(self, name: str, doc: str = "") -> str:
        """The text of the function, without variables that are never read."""
        lines: list[str] = []
        read: set[str] = set()
        for statement, sets in reversed(self._lines):
            if not sets or sets in read:
                lines.append(statement)
                read |= set(re.findall(r"\w+", statement))
        head = f"def {name}({', '.join(self._parameters)}) -> {self._returns}:"
        return "\n".join(
            [head, indent("\n".join([*filter(None, [doc]), *lines[::-1]]), "    "), ""]
        )


def _tuple_text(items: list[str]) -> str:
    """A tuple as text, wrapped to the line length."""
    short = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if len(short) <= WIDTH - 20:
        return short
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > WIDTH - 4:
            lines.append(line)
            line = ""
        line += f"{' ' if line else ''}{item},"
    return "(\n" + "\n".join(f"    {part}" for part in [*lines, line]) + "\n)"


@functools.cache
def _helper_sources() -> dict[str, str]:
    """The source of each helper function, by name."""
    found = inspect.getmembers(helpers, inspect.isfunction)
    lines = {name: inspect.getsourcelines(function) for name, function in found}
    return {name: "".join(lines[name][0]) for name in sorted(lines, key=lambda n: lines[n][1])}


def _names_used(code: str) -> set[str]:
    """All names in some code, and in the helpers that it calls."""
    found, new = set[str](), {code}
    while new:
        names = {
            node.id
            for part in new
            for node in ast.walk(ast.parse(part))
            if isinstance(node, ast.Name)
        }
        new = {source for name, source in _helper_sources().items() if name in names - found}
        found |= names
    return found
