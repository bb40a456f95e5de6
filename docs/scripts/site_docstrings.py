"""Docstrings for the site: what is written for `help()` as Markdown, with links.

An extension of griffe, named in mkdocs.yml. NumPy's references (``[1]_`` and ``.. [1]``) become
lists, names in single backticks become links to where the site shows them, and formulas with
brackets and stars stay as they are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import griffe
from mkdocstrings_handlers.python._internal import rendering

PAGES = Path(__file__).parent.parent / "reference" / "api"

#: where a text speaks of a reference
CITED = re.compile(r"\[(\d+)\]_")
#: a reference, up to the next one or to the end of its paragraph
REFERENCE = re.compile(r"^([ ]*)\.\. \[(\d+)\] (.*(?:\n\1[ ]+\S.*)*)", flags=re.MULTILINE)
#: an index and a call, which is no link: steps[0](score)
CALLED = re.compile(r"(?<=\w)(\[[^\]\s]+\])(?=\()")
#: a star within a name, which is no emphasis: y*ᵢ
STAR = re.compile(r"(?<=\w)\*(?=\w)")
#: names and what they are: the first line of an item of Parameters
ITEM = re.compile(r"^([ ]*)(\w[\w, ]*?) : (.*)$", flags=re.MULTILINE)
#: several parameters that are explained elsewhere
ELSEWHERE = re.compile(r"(?:see|as in) `\w+`$")
#: one of several values: {"a", "b"}
CHOICE = re.compile(r"\{([^{}]+)\}")
#: a name of ours
NAMED = re.compile(r"(?<![`\w])`(?:cal\.|calibrant\.)?([\w.]+)`(?!`)")
#: methods that most people call, in the order in which they do
FIRST = (
    *("fit", "update", "calibrate", "predict_proba", "predict", "top_label", "class_wise"),
    *("explain", "verdict", "worst", "score_at", "to_fitted", "save", "load", "to_frame"),
)
#: methods for pipelines, tables and those who write a method of their own
LAST = (
    *("to_dict", "from_dict", "transform", "get_feature_names_out", "fit_table", "fit_tables"),
    *("fit_rows", "update_table", "predict_rows", "judges_inputs", "companion", "set_params"),
    *("get_metadata_routing", "children", "arrays", "plan", "lowered", "stages", "simple"),
)
DOI = re.compile(r"\bdoi:\s*(10\.\d+/[^\s,]*[^\s,.;])")
ARXIV = re.compile(r"\barXiv:(\d{4}\.\d{4,5})")


def shown_names() -> dict[str, str]:
    """Where the site shows each public name: ``{"ece": "calibrant.metrics.ece", …}``."""
    pages = (page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("*.md")))
    paths = re.findall(r"^::: (\S+)$", "\n".join(pages), flags=re.MULTILINE)
    short = {path.rpartition(".")[2]: path for path in paths}
    return short | {path.removeprefix("calibrant."): path for path in paths}


def in_markdown(text: str, names: dict[str, str], own: str = "") -> str:
    """The docstring of the object with the name ``own``, as Markdown.

    >>> names = {"ece": "x.ece"}
    >>> print(in_markdown("`ece` of [1]_.\\n\\n.. [1] A. Name,\\n   arXiv:2001.00001.", names))
    [`ece`][x.ece] of \\[1].
    <BLANKLINE>
    1. A. Name, [arXiv:2001.00001](https://arxiv.org/abs/2001.00001).
    >>> print(in_markdown('a, b : see `ece`\\nc : {"x", "y"}, default="x"', names))
    a
        See [`ece`][x.ece].
    b
        See [`ece`][x.ece].
    c : "x" | "y", default="x"
    """
    text = CITED.sub(r"\\[\1]", CALLED.sub(r"\\\1", STAR.sub(r"\\*", text)))
    text = REFERENCE.sub(_reference, ITEM.sub(_item, text))

    def link(found: re.Match[str]) -> str:
        path = names.get(found[1])
        return found[0] if path is None or found[1] == own else f"[{found[0]}][{path}]"

    lines = text.split("\n")  # types are set as code, and examples are code
    plain = [bool(ITEM.match(line) or line.lstrip().startswith((">>>", "..."))) for line in lines]
    return "\n".join(
        line if code else NAMED.sub(link, line) for line, code in zip(lines, plain, strict=True)
    )


def _item(found: re.Match[str]) -> str:
    indent, names, kind = found.groups()
    if ELSEWHERE.match(kind):
        said = kind[0].upper() + kind[1:]
        return "\n".join(f"{indent}{name}\n{indent}    {said}." for name in names.split(", "))
    plain = kind.replace("`", "")  # types are set as code already
    return f"{indent}{names} : {CHOICE.sub(_choice, plain)}"


def _choice(found: re.Match[str]) -> str:
    return " | ".join(value.strip() for value in found[1].split(","))


def _reference(found: re.Match[str]) -> str:
    words = DOI.sub(_doi, " ".join(found[3].split()))
    words = ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", words)
    return f"{found[1]}{found[2]}. {words}"


def _doi(found: re.Match[str]) -> str:
    shown = found[1].replace("<", "&lt;")
    return f"[doi:{shown}](https://doi.org/{quote(found[1])})"


def by_use(member: griffe.Object | griffe.Alias) -> int:
    """Where a method stands on its class's page: first, last, or between.

    >>> [by_use(griffe.Function(name)) for name in ("fit", "calibrate", "drift", "to_dict")]
    [0, 2, 15, 16]
    """
    if member.name in LAST:
        return len(FIRST) + 1 + LAST.index(member.name)
    return FIRST.index(member.name) if member.name in FIRST else len(FIRST)


rendering._order_map["source"] = by_use  # the handler has no option for an order of one's own


class SiteDocstrings(griffe.Extension):
    """Rewrites each docstring as it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.names = shown_names()

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = in_markdown(obj.docstring.value, self.names, obj.name)
