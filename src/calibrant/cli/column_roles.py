"""Which column holds the scores and which the labels, where the user did not say.

A column is told by its name and by its values in the first rows. Rather no guess than a wrong one:
where two columns are as likely, or none is likely enough, they are listed and the command stops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from calibrant.cli.asked_columns import ColumnRoles, positive_in_words
from calibrant.cli.class_columns import AskedColumn, assign, expand
from calibrant.cli.column_look import (
    APPLIED,
    CLASS_NAMES,
    LABELS,
    OUTCOME_WORDS,
    PREDICTED,
    ColumnLook,
    label_rank,
    probability_rank,
    score_rank,
)
from calibrant.cli.jobs import Files
from calibrant.data.labels import spelled_apart
from calibrant.data.naming import segment_names
from calibrant.engines.files.data_files import MISSING, nameless
from calibrant.engines.files.spelled_labels import classes_of, typed_present
from calibrant.errors import InputError
from calibrant.shell_words import quoted

if TYPE_CHECKING:
    from calibrant.cli.class_reading import ClassRoles
    from calibrant.engines.open_engine import Engine


#: rows that are looked at, and values in all of a wide file
ROWS, VALUES = 5_000, 2_000_000
#: columns that are listed in an error
LISTED = 12


def complete_roles(
    engine: Engine,
    files: Files,
    columns: ColumnRoles,
    *,
    probabilities: bool = False,
    besides: str | None = None,
) -> ColumnRoles:
    """The columns as asked for, and guesses for those that were not: they are noted in one line.

    ``probabilities``: the scores must be some. ``besides`` is a column that is used for more.
    """
    missing = [role for role in ("score", "label") if not getattr(columns, role)]
    if not missing:
        return columns
    looks = _looks(engine.first_rows(files, ROWS))
    segments = segment_names(columns.segment)
    taken = (columns.score, columns.label, columns.weight, *segments, besides)
    free = [look for look in looks if look.name not in taken]
    option = "prob" if probabilities else "score"
    ranks: dict[str, tuple[str, Callable[[ColumnLook], int]]] = {
        "score": (option, probability_rank if probabilities else score_rank),
        "label": ("label", label_rank),
    }
    found: dict[str, ColumnLook] = {}
    wrong = []
    for role in missing:
        option, rank = ranks[role]
        best = _likeliest(free, rank, sole=role == "score")
        if len(best) == 1:
            found[role] = best[0]
        else:
            wrong.append(_unclear(option, best))
    if wrong and not any(look.values for look in looks):
        raise InputError("the file must hold rows of data, but only column names came.")
    if wrong:
        wrong += [nameless([*(look.name for look in looks), *2 * engine.repeated])]
        wrong += _repeated(engine.repeated)
        if "label" in missing and "label" not in found:
            wrong += _three_or_more(free)
        raise InputError(" ".join(filter(None, (*wrong, _listed(looks)))))
    names = {role: look.name for role, look in found.items()}
    engine.notes.append(_words({ranks[role][0]: found[role] for role in missing}, columns))
    return replace(columns, **names, guessed=tuple(missing))


def applied_classes(engine: Engine, files: Files) -> list[str]:
    """The columns that `apply` writes for several classes, ``probability_a``, ``probability_b``, …,
    if another column holds these classes; else none."""
    looks = _looks(engine.first_rows(files, ROWS))
    found = [look.name for look in looks if look.name.startswith(f"{APPLIED}_") and look.inside]
    if len(found) < 3 or any(look.name == APPLIED for look in looks):
        return []
    asked = [AskedColumn(name) for name in found]
    others = [look for look in looks if look.name not in found]
    return found if any(class_label_rank(look, asked) >= 3 for look in others) else []


def first_numbers(engine: Engine, files: Files, columns: Sequence[str]) -> list[float]:
    """The numbers of some columns in the first rows; none where they are not plainly numbers."""
    looks = _looks(engine.first_rows(files, ROWS))
    found = [look.numbers for look in looks if look.name in columns]
    return [] if None in found else [value for numbers in found for value in numbers or ()]


def likely_label(engine: Engine, files: Files, roles: ClassRoles, known: Sequence[str] = ()) -> str:
    """The column of labels beside a column of scores for each class.

    Its values are the classes that the names of the score columns tell; else its own name says that
    it is one of labels. ``known`` are the columns of scores where none are asked for.
    """
    looks = _looks(engine.first_rows(files, ROWS))
    names = [look.name for look in looks]
    asked = expand(roles.scores or known, names, option=roles.option, taken=(roles.weight,))
    raw = expand(roles.raw, names, option="--raw") if roles.raw else []
    taken = {roles.weight, *(one.column for one in (*asked, *raw))}
    free = [look for look in looks if look.name not in taken]
    best = _likeliest(free, lambda look: class_label_rank(look, asked), sole=False)
    if len(best) == 1:
        return best[0].name
    raise InputError(f"{_unclear('label', best)} {_listed(looks)}")


def class_label_rank(look: ColumnLook, asked: Sequence[AskedColumn]) -> int:
    """How likely a column is the labels of several classes whose columns these are: 3 to 5 if its
    values are their classes, 1 or 2 by its name alone, 0 if it is none."""
    if look.never or PREDICTED.intersection((look.joined, *look.words)):
        return 0
    called = look.called(LABELS | CLASS_NAMES, OUTCOME_WORDS | CLASS_NAMES)
    if not 2 <= len(look.distinct) <= len(asked):
        return called if look.more and len(look.distinct) == 1 else 0
    with suppress(InputError):
        text = all(isinstance(value, str) for value in look.distinct)
        values = typed_present(look.distinct) if text else {v: v for v in look.distinct}
        assign(asked, list(values.values()), look.name, option="--score")
        return 3 + called
    return called


def _repeated(names: Sequence[str]) -> list[str]:
    """What to do about columns of one name, which are not looked at."""
    called = " or ".join(repr(name) for name in names if name.strip())
    return [f"Several columns are called {called}: rename them."] if called else []


def _three_or_more(looks: Sequence[ColumnLook]) -> list[str]:
    """What to do about a column whose name says labels, but which has more than two of them."""
    for look in looks:
        if look.called(LABELS, OUTCOME_WORDS) and look.numbers is None and len(look.distinct) > 2:
            said = f"The column {look.name!r} has more than two labels"
            if alike := spelled_apart(look.distinct):
                return [f"{said}. {alike}"]
            return [
                f"{said}: keep the rows of two of them, or name a column of scores for each class "
                "(--score A=COL --score B=COL ...)."
            ]
    return []


def _listed(looks: Sequence[ColumnLook]) -> str:
    """The columns in words, and what may be wrong with all of them."""
    more = ", ..." * (len(looks) > LISTED)
    said = f"The columns are {', '.join(map(str, looks[:LISTED]))}{more}."
    if all(look.joined.isdecimal() for look in looks):
        said += " Their names look like data: the file needs a header line."
    return said


def _looks(columns: Mapping[str, Sequence[Any]]) -> list[ColumnLook]:
    rows = max(VALUES // max(len(columns), 1), 100)
    looks = []
    for name, values in columns.items():
        kept = tuple(value for value in map(_plain, values[:rows]) if _present(value))
        looks.append(ColumnLook(name, kept, more=len(values) >= min(rows, ROWS)))
    return looks


def _plain(value: Any) -> Any:
    """A value as a number, a word or None; lists, dates and the like as words."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return float(value) if isinstance(value, Decimal) else str(value).strip()


def _present(value: Any) -> bool:
    if isinstance(value, str):
        return value.lower() not in MISSING
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _likeliest(
    looks: Sequence[ColumnLook], rank: Callable[[ColumnLook], int], *, sole: bool
) -> list[ColumnLook]:
    """The columns of the highest rank; fractions of any size must be the only numbers there."""
    ranks = {look.name: rank(look) for look in looks}
    best = max(ranks.values(), default=0)
    if best == 0:
        return []
    found = [look for look in looks if ranks[look.name] == best]
    numbers = [look for look in looks if look.numbers and len(look.distinct) > 2]
    return [] if sole and best == 1 and len(numbers) > 1 else found


def _unclear(option: str, best: Sequence[ColumnLook]) -> str:
    what = {"prob": "probabilities", "score": "scores", "label": "labels"}[option]
    if not best:
        return f"No column is surely that of the {what}: name it with --{option} COL."
    names = " or ".join(repr(look.name) for look in best[:5])
    several = ""
    if option != "label" and len(best) > 2:
        each = " ".join(f"--{option} {quoted(look.name)}" for look in best[:3])
        several = f" If they are of several classes, name them all: {each} …"
    return f"The column of {what} may be {names}: name it with --{option} COL.{several}"


def _words(found: Mapping[str, ColumnLook], columns: ColumnRoles) -> str:
    said = ", ".join(
        f"{option} = `{look.name}`{_positive(look, columns) if option == 'label' else ''}"
        for option, look in found.items()
    )
    others = "others" if len(found) > 1 else "another"
    return f"{said}; name {others} with {', '.join(f'--{option}' for option in found)}"


def _positive(look: ColumnLook, columns: ColumnRoles) -> str:
    """Which label is positive, where both are known."""
    with suppress(InputError):
        text = all(isinstance(value, str) for value in look.distinct)
        values = typed_present(look.distinct) if text else {v: v for v in look.distinct}
        coding = classes_of(values, look.name, columns.positive)
        asked = columns.pos_label is not None
        return f" ({positive_in_words(coding.classes, coding.pos_label, asked=asked)})"
    return ""
