"""How likely a column is one of scores, of probabilities or of labels."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from calibrant.engines.files.number_spelling import SPELLINGS
from calibrant.engines.files.yes_no_words import partner_of

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
