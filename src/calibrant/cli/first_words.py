"""What is said before anything else: one class, too few rows, the wrong way, nothing to see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.cli.console import tell, tell_advice
from calibrant.cli.reading import file_facts
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.metrics.class_look import ClassNames
from calibrant.metrics.first_look import Face, FirstLook, LabelNames, first_look
from calibrant.shell_words import quoted

if TYPE_CHECKING:
    from calibrant.advice import Advice
    from calibrant.cli.fit_result import FitResult


def names_of(facts: Mapping[str, Any], face: Face = "command line") -> Any:
    """How words name the labels, their column and the option: `LabelNames`, or `ClassNames` of
    several classes. The facts are those of `file_facts`."""
    column = facts["label_column"]
    if "pos_label" in facts:
        return LabelNames.of(facts["classes"], facts["pos_label"], column, face)
    return ClassNames.of(facts["classes"], column, facts["score_columns"], face)


def tell_first(look: Any, names: Any) -> str:
    """Say what must be known before anything else, and return it; nothing where all is well."""
    first = "" if look is None else look.headline(names)
    if first:
        tell((first, "bold yellow"))
    return first


def tell_others(advice: Iterable[Advice], first: str) -> None:
    """What else deserves a look, beside what was said first."""
    from calibrant.advice.table_checks import SAID_FIRST

    said = SAID_FIRST.values() if first else ()
    tell_advice(one.text for one in advice if one.text not in first and one.code not in said)


def refuse_one_class(read: FileTable) -> None:
    """Refuse to learn from rows of one class."""
    look = first_look(read.table)
    if look.found == "one class":
        first = look.headline(names_of(file_facts(read)))
        raise InputError(
            f"{first} Add rows of the other class; or, if you want a calibrator all the same, say "
            "--allow-one-class."
        )


def refuse_wrong_way(result: FitResult) -> None:
    """Refuse a calibrator that gives all rows one probability because the scores run the wrong way:
    most likely the other label is the positive one."""
    look, fitted = result.look, result.fitted
    if not isinstance(look, FirstLook) or look.found != "wrong way":
        return
    if not isinstance(fitted, Fitted) or fitted.map.segments is not None:
        return
    given = fitted.map(result.read.table.scores)
    if np.ptp(given) > 1e-9:
        return
    option = f"--pos-label {quoted(str(fitted.pos_label))}"
    raise InputError(
        f"{look.headline(result.names)} Nothing was written: the calibrator would give "
        f"all rows the same probability, {given[0]:.3g}. If {fitted.pos_label!r} is the positive "
        f"label all the same, add {option}."
    )
