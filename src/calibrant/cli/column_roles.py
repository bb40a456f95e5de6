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
from typing import Any

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
from calibrant.cli.sources import Files, FileSource
from calibrant.data.labels import spelled_apart
from calibrant.data.lazy_checks import Coding
from calibrant.data.naming import segment_names
from calibrant.engines.files.data_files import MISSING, nameless
from calibrant.engines.files.spelled_labels import classes_of, typed_present
from calibrant.engines.files.yes_no_words import yes_of
from calibrant.engines.open_engine import Engine
from calibrant.engines.rows_of_files import FileTable
from calibrant.errors import InputError
from calibrant.shell_words import quoted

#: rows that are looked at, and values in all of a wide file
ROWS, VALUES = 5_000, 2_000_000
#: columns that are listed in an error
LISTED = 12


def complete_roles(engine: Engine, source: FileSource) -> FileSource:
    """The source with guesses for the columns that were not named: they are noted in one line."""
    missing = [role for role in ("score", "label") if not getattr(source, role)]
    if not missing:
        return source
    looks = _looks(engine, source.files)
    segments = segment_names(source.segment)
    taken = (source.score, source.label, source.weight, *segments, source.before)
    free = [look for look in looks if look.name not in taken]
    ranks: dict[str, tuple[str, Callable[[ColumnLook], int]]] = {
        "score": ("prob", probability_rank) if source.probabilities else ("score", score_rank),
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
    engine.notes.append(_words({ranks[role][0]: found[role] for role in missing}, source))
    words = [found["score"].name] if "score" in found else source.words
    label = found["label"].name if "label" in found else source.label
    return replace(source, words=words, label=label, guessed=tuple(missing))


def applied_classes(engine: Engine, files: Files) -> list[str]:
    """The columns that `apply` writes for several classes, ``probability_a``, ``probability_b``, …,
    if another column holds these classes; else none."""
    looks = _looks(engine, files)
    found = [look.name for look in looks if look.name.startswith(f"{APPLIED}_") and look.inside]
    if len(found) < 3 or any(look.name == APPLIED for look in looks):
        return []
    asked = [AskedColumn(name) for name in found]
    others = [look for look in looks if look.name not in found]
    return found if any(class_label_rank(look, asked) >= 3 for look in others) else []


def first_numbers(engine: Engine, files: Files, columns: Sequence[str]) -> list[float]:
    """The numbers of some columns in the first rows; none where they are not plainly numbers."""
    looks = _looks(engine, files)
    found = [look.numbers for look in looks if look.name in columns]
    return [] if None in found else [value for numbers in found for value in numbers or ()]


def likely_label(engine: Engine, source: FileSource, known: Sequence[str] = ()) -> str:
    """The column of labels beside a column of scores for each class.

    Its values are the classes that the names of the score columns tell; else its own name says that
    it is one of labels. ``known`` are the columns of scores where none are asked for.
    """
    looks = _looks(engine, source.files)
    names = [look.name for look in looks]
    asked = expand(source.words or known, names, option=source.option, taken=(source.weight,))
    raw = expand(source.raw, names, option="--raw")
    taken = {source.weight, *(one.column for one in (*asked, *raw))}
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
        assign(asked, list(_typed(look).values()), look.name, option="--score")
        return 3 + called
    return called


def _typed(look: ColumnLook) -> dict[Any, Any]:
    """The labels that the values of a column stand for."""
    text = all(isinstance(value, str) for value in look.distinct)
    return typed_present(look.distinct) if text else {value: value for value in look.distinct}


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


def _looks(engine: Engine, files: Files) -> list[ColumnLook]:
    """The columns of files by their first rows."""
    columns = engine.first_rows(files, ROWS)
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


def _words(found: Mapping[str, ColumnLook], source: FileSource) -> str:
    said = ", ".join(
        f"{option} = `{look.name}`{_positive(look, source) if option == 'label' else ''}"
        for option, look in found.items()
    )
    others = "others" if len(found) > 1 else "another"
    return f"{said}; name {others} with {', '.join(f'--{option}' for option in found)}"


def _positive(look: ColumnLook, source: FileSource) -> str:
    """Which label is positive, where both are known."""
    with suppress(InputError):
        coding = classes_of(_typed(look), look.name, source.positive)
        asked = source.pos_label is not None
        return f" ({positive_in_words(coding.classes, coding.pos_label, asked=asked)})"
    return ""


# --- the positive label -------------------------------------------------------------------------


def positive_in_words(classes: Sequence[Any], pos_label: Any, *, asked: bool) -> str:
    """Which label is positive, and how to name the other where its meaning does not tell.

    >>> positive_in_words(["ja", "nein"], "ja", asked=False)
    'ja/nein, ja is positive'
    >>> positive_in_words(["bad", "good"], "good", asked=False)
    'good/bad, good is taken as positive; if bad is, add --pos-label bad'
    """
    other = next((label for label in classes if label != pos_label), pos_label)
    pair = f"{pos_label}/{other}"
    if asked or not isinstance(pos_label, str) or yes_of(classes) is not None:
        return f"{pair}, {pos_label} is positive"
    option = f"--pos-label {quoted(str(other))}"
    return f"{pair}, {pos_label} is taken as positive; if {other} is, add {option}"


def note_positive(engine: Engine, source: FileSource, read: FileTable | Coding) -> None:
    """Note which of two words is positive, where nobody said it and the order alone may mislead."""
    if source.pos_label is not None or "label" in source.guessed:
        return  # it was said, or is noted with the guess
    classes, pos_label = read.classes, read.pos_label
    if isinstance(pos_label, str) and (yes_of(classes) is None or pos_label != classes[-1]):
        said = positive_in_words(classes, pos_label, asked=False)
        line = f"label = `{source.label}` ({said})"
        if line not in engine.notes:
            engine.notes.append(line)
