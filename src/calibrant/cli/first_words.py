"""What is said before anything else: one class, too few rows, the wrong way, nothing to see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.cli.console import tell, tell_advice
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.advice import Advice
    from calibrant.engines.rows_of_files import FileTable
    from calibrant.metrics.first_look import FirstLook, LabelNames

__all__ = ["label_names", "names_of", "refuse_one_class", "tell_first", "tell_others"]


def label_names(facts: Mapping[str, Any]) -> LabelNames:
    """How words on the terminal name the labels, their column and the option."""
    from calibrant.metrics.first_look import LabelNames

    column = str(facts.get("label_column", ""))
    return LabelNames.of(facts["classes"], facts["pos_label"], column, "command line")


def names_of(read: FileTable) -> LabelNames:
    """The same for the table of files."""
    return label_names({**read.facts, "classes": read.classes, "pos_label": read.pos_label})


def tell_first(look: FirstLook | None, names: LabelNames | None) -> str:
    """Say what must be known before anything else, and return it; nothing where all is well."""
    first = "" if look is None or names is None else look.headline(names)
    if first:
        tell((first, "bold yellow"))
    return first


def tell_others(advice: Iterable[Advice], first: str) -> None:
    """What else deserves a look, beside what was said first."""
    tell_advice(one.text for one in advice if one.text not in first)


def refuse_one_class(read: FileTable) -> None:
    """Refuse to learn from rows of one class."""
    from calibrant.metrics.first_look import first_look

    look = first_look(read.table)
    if look.found == "one class":
        raise InputError(
            f"{look.headline(names_of(read))} Add rows of the other class; or, if you want a "
            "calibrator all the same, say --allow-one-class."
        )
