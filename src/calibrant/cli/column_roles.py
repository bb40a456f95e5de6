"""Which column holds the scores and which the labels, where the user did not say.

A column is told by its name and by its values in the first rows. Rather no guess than a wrong one:
where two columns are as likely, or none is likely enough, they are listed and the command stops.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from calibrant.cli.asked_columns import ColumnRoles, positive_in_words
from calibrant.cli.class_columns import AskedColumn, assign, expand
from calibrant.cli.jobs import Files
from calibrant.data.naming import segment_names
from calibrant.engines.files.data_files import MISSING
from calibrant.engines.files.number_spelling import SPELLINGS
from calibrant.engines.files.spelled_labels import classes_of, typed_present
from calibrant.errors import InputError
from calibrant.shell_words import quoted

if TYPE_CHECKING:
    from calibrant.cli.class_reading import ClassRoles
    from calibrant.engines.open_engine import Engine

__all__ = [
    "ColumnLook",
    "class_label_rank",
    "complete_roles",
    "label_rank",
    "likely_label",
    "probability_rank",
    "score_rank",
]

#: rows that are looked at, and values in all of a wide file
ROWS, VALUES = 5_000, 2_000_000
#: columns that are listed in an error
LISTED = 12


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: names, without marks between their words, that say that a column is one of scores
SCORES = _words_of(
    "score scores prob proba probability p phat pred prediction predicted margin logit "
    "decisionfunction yscore yprob yproba yhat ypred modelscore rawscore riskscore"
)
#: and words in names that say so
SCORE_WORDS = _words_of("score scores prob proba probability pred prediction predicted logit")
PROBABILITIES = _words_of("prob proba p phat yprob yproba calibrated pcalibrated")
PROBABILITY_WORDS = _words_of("prob proba probability calibrated")
#: what `apply` calls its column
APPLIED = "probability"
#: names of labels, and words in the names of outcomes
LABELS = _words_of("label labels y target ytrue truth actual groundtruth gold outcome class")
OUTCOME_WORDS = LABELS - {"y"} | _words_of(
    "churn churned default defaulted bought purchased purchase clicked click converted conversion "
    "fraud survived died death dead event response responded result status success won lost "
    "readmitted cancelled canceled spam disease diagnosis diabetes approved accepted paid "
    "subscribed malignant relapse happened observed positive"
)
#: further names of labels of several classes
CLASS_NAMES = _words_of("kind type category species group classes")
#: words in names of what is neither a score nor a label
NEVER = _words_of(
    "id ids uuid guid key index idx row nr customer user account client weight weights w fold "
    "split train test holdout validation sex gender male female date time year month day"
)
#: words in names of what a model says of a row
PREDICTED = _words_of("pred prediction predicted yhat ypred")


@dataclass(frozen=True)
class ColumnLook:
    """A column by its name and the values of its first rows.

    Parameters
    ----------
    name : str
    values : the values that are there: words for none are left out
    more : whether there are more rows than were looked at
    """

    name: str
    values: tuple[Any, ...]
    more: bool = False

    @cached_property
    def words(self) -> list[str]:
        """The words of its name in small letters.

        >>> ColumnLook("yTrue_2", ()).words
        ['y', 'true', '2']
        """
        found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+", self.name)
        return [word.lower() for word in found]

    @property
    def joined(self) -> str:
        """The letters of its name."""
        return "".join(self.words)

    def called(self, names: frozenset[str], words: frozenset[str]) -> int:
        """2 if its name is one of these, 1 if a word of it is, else 0."""
        return 2 if self.joined in names else int(not words.isdisjoint(self.words))

    @property
    def never(self) -> bool:
        """Whether its name says that it is neither a score nor a label, or is no name at all."""
        return self.joined.isdecimal() or not self.words or not NEVER.isdisjoint(self.words)

    @cached_property
    def distinct(self) -> list[Any]:
        """The different values, in the order in which they come."""
        return list(dict.fromkeys(self.values))

    @cached_property
    def numbers(self) -> list[float] | None:
        """The values as numbers; None where some are none."""
        if not self.values:
            return None
        if not any(isinstance(value, str) for value in self.values):
            with suppress(TypeError, ValueError):
                return [float(value) for value in self.values]
            return None
        words = [str(value) for value in self.values]
        if any(re.match(r"\s*[+-]?0[0-9]", word) for word in words):
            return None  # 007 is a name
        for spelling in SPELLINGS:
            read = [spelling.read(word) for word in words]
            if None not in read:
                return [value for value in read if value is not None]
        return None

    @property
    def mostly_numbers(self) -> bool:
        """Whether half of its values, or more, are numbers."""
        words = [str(value) for value in self.values]
        most = max(sum(one.read(word) is not None for word in words) for one in SPELLINGS)
        return 2 * most >= len(words)

    @property
    def whole(self) -> bool:
        """Whether all its numbers are whole ones."""
        return self.numbers is not None and all(value.is_integer() for value in self.numbers)

    @property
    def inside(self) -> bool:
        """Whether all its numbers may be probabilities."""
        return self.numbers is not None and all(0.0 <= value <= 1.0 for value in self.numbers)

    def __str__(self) -> str:
        """The column for people.

        >>> print(ColumnLook("months", ("9", "100", "12")))
        'months' (whole numbers from 9 to 100)
        """
        found = self.distinct
        if not found:
            said = "empty"
        elif len(found) <= 2:
            said = " and ".join(map(str, found))
        elif self.numbers is not None:
            kind = "whole numbers" if self.whole else "numbers"
            said = f"{kind} from {min(self.numbers):g} to {max(self.numbers):g}"
        else:
            said = f"{len(found):,}{' or more' * self.more} words"
        return f"{self.name!r} ({said})"


# --- how likely ---------------------------------------------------------------------------------


def score_rank(look: ColumnLook) -> int:
    """How likely a column is one of scores: 4 by its name, 3 by a word of it, 2 if it holds
    fractions from 0 to 1, 1 if it holds other fractions, 0 if it is none."""
    if len(look.distinct) < 3 or look.never:
        return 0
    called = look.called(SCORES, SCORE_WORDS)
    if look.numbers is None:  # a few wrong cells are better named by the reader
        return 4 if called == 2 and look.mostly_numbers else 0
    if called or look.words[:1] == ["p"]:
        return 2 + max(called, 1)
    return 0 if look.whole else 1 + look.inside


def probability_rank(look: ColumnLook) -> int:
    """How likely a column is one of probabilities, which are from 0 to 1: 6 if it is called what
    `apply` calls it, 5 by its name, 4 by a word of it, else as scores."""
    if not look.inside or not score_rank(look):
        return 0
    if look.name == APPLIED:
        return 6
    called = look.called(PROBABILITIES, PROBABILITY_WORDS)
    return 3 + called if called else min(score_rank(look), 3)


def label_rank(look: ColumnLook) -> int:
    """How likely a column is one of labels, of two values: 3 by its name, 2 by a word of it, 1 by
    its values alone, 0 if it is none."""
    if look.never or PREDICTED.intersection((look.joined, *look.words)):
        return 0
    named = 1 + look.called(LABELS, OUTCOME_WORDS)
    if len(look.distinct) == 2:
        return named
    # rows may be sorted by their labels
    return named if named > 1 and len(look.distinct) == 1 and look.more else 0


# --- the guess ----------------------------------------------------------------------------------


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
    if wrong:
        raise InputError(f"{' '.join(wrong)} {_listed(looks)}")
    names = {role: look.name for role, look in found.items()}
    engine.notes.append(_words({ranks[role][0]: found[role] for role in missing}, columns))
    return replace(columns, **names, guessed=tuple(missing))


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


def _listed(looks: Sequence[ColumnLook]) -> str:
    """The columns in words, and what may be wrong with all of them."""
    if not any(look.values for look in looks):
        return "The file must hold rows of data, but only column names came."
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
