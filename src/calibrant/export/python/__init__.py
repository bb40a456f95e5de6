"""Maps as plain Python: the text of a module that needs the standard library only."""

from __future__ import annotations

import builtins
import keyword
from textwrap import fill
from typing import Any

import numpy as np

from calibrant.errors import ParameterError
from calibrant.export.python.printer import (
    IMPORTS,
    SCORE,
    WIDTH,
    Function,
    PythonPrinter,
    Text,
    in_docstring,
    number,
    plan_function,
    tree_module,
)
from calibrant.fitting.fitted import Fitted, map_of, to_fitted_map, tree_parts_of
from calibrant.rules.base import Map, VectorMap
from calibrant.rules.piecewise import read_probability
from calibrant.rules.plan.interpreter import evaluate
from calibrant.rules.plan.nodes import BySegment, Constant, Node, PlanTarget, Row, StepPieces
from calibrant.rules.plan.tables import find_borders
from calibrant.version import __version__

__all__ = ["to_python"]

PYTHON = PlanTarget("Python", "Save it with calibrant.save and apply it with calibrant.load.")
#: the longest label or name that a docstring shows whole
LONGEST = 80


def to_python(calibrator: Any, *, name: str | None = None, threshold: float | None = None) -> str:
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
        return tree_module(trees, name, PYTHON, _module_doc(trees.facts))
    map_, fitted = map_of(calibrator), to_fitted_map(calibrator)
    text, decision = Text(), None if at_least is None else map_.decision(at_least)
    plan = (map_ if decision is None else decision).plan(PYTHON)
    limit = at_least if decision is None else 1.0
    if isinstance(plan, Row):
        body = Function(text, ("scores: list[float]",), "list[float]")
        body.add(f"scores = _row(scores, {map_.n_columns})")
        if fitted is not None and isinstance(map_, VectorMap) and map_.reads == "probability":
            body.add("_check_distribution(scores)")
        body.add(f"return {PythonPrinter(body).write(plan)}")
    elif isinstance(plan, BySegment):
        body = _function_of_segment(plan, limit, text)
    else:
        body = _function_of_score(plan, limit, text)
    classes = () if fitted is None or not isinstance(map_, VectorMap) else fitted.classes
    main = body.source(name, _function_doc(plan, map_, fitted, at_least))
    return text.source(_module_doc(fitted), classes, main)


def _check_name(name: Any) -> None:
    """Refuse a name that the function cannot have."""
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
    """The function of a score that gives the value of a plan; with a limit, whether it is at least
    that."""
    body = Function(text, (SCORE,), "float" if limit is None else "bool")
    body.add("score = _finite(score)")
    if limit is None:
        body.add(f"return {PythonPrinter(body, plan).write(plan)}")
    elif isinstance(plan, Constant):
        body.add(f"return {evaluate(plan, np.zeros(1))[0] >= limit}")
    elif isinstance(plan, StepPieces) and len(plan.places[0].regions.low) == 2:
        low, _, piece = plan.places[0].regions
        rises = plan.values[0][piece[1]] >= limit
        body.add(f"return score {'>=' if rises else '<'} {number(low[1])}")
    else:
        body.add(f"return {PythonPrinter(body, plan).write(plan)} >= {number(limit)}")
    return body


def _function_of_segment(plan: BySegment, limit: float | None, text: Text) -> Function:
    """The function of a score and its segment: first the common value, then that of the segment's
    own map."""
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
    """The module's docstring: what made it, and where it comes from."""
    made = f" ({_short_name(fitted.method)})" if fitted is not None and fitted.method else ""
    version = None if fitted is None else fitted.provenance.get("calibrant")
    by = f"Fitted with calibrant {_short_name(version)}, written" if version else "Written"
    return _docstring(
        f"A calibrator{made} as plain Python: the standard library is all that it needs.",
        f"{by} by calibrant {__version__}. Runs on Python 3.8 and newer.",
    )


def _function_doc(plan: Node, map_: Map, fitted: Fitted | None, at_least: float | None) -> str:
    """The function's docstring: what it gives, and what it says of scores and segments."""
    known = None if fitted is None else fitted.score_range
    notes = "" if known is None else f"Scores must be {known.words()}. "
    if isinstance(plan, BySegment):
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
    """A name or label for a docstring: itself if it is a plain word, else its repr, shortened."""
    if isinstance(value, str) and value.replace(".", "").isalnum() and value.isascii():
        return value[:LONGEST]
    full = repr(value)
    return full if len(full) <= LONGEST else f"{full[:LONGEST]}…"


def _docstring(*paragraphs: str) -> str:
    """A docstring of some paragraphs."""
    filled = "\n\n".join(fill(text, WIDTH - 8, break_on_hyphens=False) for text in paragraphs)
    return f'"""{in_docstring(filled)}\n"""'
