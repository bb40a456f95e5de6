"""Trees on the columns of a row as a Python module."""

from __future__ import annotations

from calibrant.export.python.printer import PythonPrinter
from calibrant.export.python.text import Function, Text, in_docstring, number
from calibrant.export.tree_parts import TreeParts
from calibrant.plan.map_input import PlanTarget

#: the parameters of the function
SCORE, FEATURES = "score: float", "features: dict | list"


def tree_module(parts: TreeParts, name: str, target: PlanTarget, doc: str) -> str:
    """The text of a module with one function of a score and the columns of its row."""
    text = Text()
    body = Function(text, (SCORE, FEATURES))
    plan = parts.start.plan(target)
    body.add("score = _finite(score)")
    body.add(f"row = _feature_row(features, {_columns(parts, text)})")
    body.add(f"z = _logit({PythonPrinter(body, plan).write(plan)})")
    tables = _tables(parts, text)
    for first, last, factor in parts.ends:
        body.add(
            f"z = {number(factor)} * (z + _sum_of_leaves([*row, z], {first}, {last}, {tables}))"
        )
    body.add("return _sigmoid(z)")
    names = ", ".join(repr(one.name) for one in parts.columns)
    said = (
        '"""The calibrated probability for one score and the columns of its row.\n\n'
        f"It looks at {in_docstring(names)}.\n"
        '"""'
    )
    return text.source(doc, (), body.source(name, said))


def _columns(parts: TreeParts, text: Text) -> str:
    items = []
    for column in parts.columns:
        codes = None
        if column.categories is not None:
            codes = {category: float(code) for code, category in enumerate(column.categories)}
        items.append(f"({column.name!r}, {codes!r})")
    return text.table("COLUMNS", items, "the columns, and the codes of their categories")


def _tables(parts: TreeParts, text: Text) -> str:
    """The names of the tables of all trees, as arguments."""
    trees = parts.trees
    said = {
        "column": "which column each split looks at; the last one is the logit",
        "threshold": "numbers up to this go left",
        "missing_left": "whether missing numbers go left",
        "subset": "which set of categories goes left; -1: a split of numbers",
        "left": "the next split, or -1 - i for leaf i",
        "right": "the same, for rows that go right",
        "leaves": "what leaves add to the logit",
        "roots": "the first split of each tree",
    }
    names = [
        text.table(field.upper(), map(repr, getattr(trees, field).tolist()), words)
        for field, words in said.items()
    ]
    sets = [f"frozenset({sorted(map(float, codes))!r})" for codes in trees.sets]
    names.append(text.table("SETS", sets, "sets of category codes"))
    return ", ".join(names)
