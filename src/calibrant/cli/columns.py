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
from typing import Any

from calibrant.cli.sources import AskedColumn, Files, FileSource, assign, expand
from calibrant.data.columns import segment_columns_of
from calibrant.data.door import spelling_advice
from calibrant.data.lazy import Coding
from calibrant.engines.files.files import nameless
from calibrant.engines.files.spelling import (
    MISSING,
    SPELLINGS,
    classes_of,
    partner_of,
    typed_present,
    yes_of,
)
from calibrant.engines.open_engine import Engine
from calibrant.engines.rows import FileTable
from calibrant.errors import InputError, quoted

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
    segments = segment_columns_of(source.segment)
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
            if alike := spelling_advice(look.distinct):
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


# --- How likely a column is one of scores, of probabilities or of labels --------------------------


#: values that are listed, where there are no more
FEW = 6


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
            said = " and ".join(_brief(str(one)) for one in found)
        elif self.numbers is not None:
            kind = "whole numbers" if self.whole else "numbers"
            said = f"{kind} from {min(self.numbers):g} to {max(self.numbers):g}"
        elif len(found) <= FEW and not self.more:
            said = ", ".join(repr(_brief(str(one))) for one in found)
        else:
            said = f"{len(found):,}{' or more' * self.more} words"
        return f"{self.name!r} ({said})"


def _brief(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
    its values alone, or by its name if it holds one value (yes or no, if only a word of the name
    says so), 0 if it is none."""
    if look.never or PREDICTED.intersection((look.joined, *look.words)):
        return 0
    named = 1 + look.called(LABELS, OUTCOME_WORDS)
    if len(look.distinct) == 2:
        return named
    if len(look.distinct) != 1:
        return 0
    if look.more and named > 1:
        return named  # rows may be sorted by their labels
    # one class: what that means is said by those who read it
    return int(named == 3 or (named == 2 and partner_of(look.distinct[0]) is not None))
