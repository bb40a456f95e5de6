"""How numbers are spelled in text: ``0,75``, ``1.234,5``, ``1,234.5`` and ``12.3 %``.

A plain number, ``0.75`` or ``1e-3``, needs no spelling. The others are read by one spelling for a
whole column, the one that reads every value. Where two read every value, and not as the same
numbers, the column is refused: ``1,234`` alone may be 1234 or 1.234.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from calibrant.errors import InputError

#: blanks that stand between thousands, the narrow and the unbroken one of typesetters among them
BLANK = "[ \u00a0\u202f]"
#: marks between thousands beside the one that is no decimal mark
MARKS = (BLANK, "['\u2019]")
#: what follows a percentage
PERCENT = f"{BLANK}?%"


@dataclass(frozen=True)
class NumberSpelling:
    """One way to write numbers.

    Parameters
    ----------
    decimal : {".", ","}
        The mark before decimals; the other one may stand between thousands, and so may a blank or
        an apostrophe.
    percent : bool, default=False
        Whether each number is followed by a percent sign, and is divided by 100.

    Examples
    --------
    >>> NumberSpelling(",").read("1.234,5"), NumberSpelling(".", percent=True).read("12.3 %")
    (1234.5, 0.123)
    >>> NumberSpelling(",").read("0.5") is None
    True
    """

    decimal: str
    percent: bool = False

    @cached_property
    def pattern(self) -> str:
        """A regular expression of the whole text, for Python and for databases."""
        mark = re.escape(self.decimal)
        between = (re.escape("," if self.decimal == "." else "."), *MARKS)
        groups = "|".join(f"(?:{one}[0-9]{{3}})+" for one in between)
        whole = f"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{groups}))"
        number = f"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)"
        # no power of ten before a percent sign: nobody writes it, and -2 is put there
        return number + (PERCENT if self.percent else "(?:[eE][+-]?[0-9]+)?")

    @property
    def dropped(self) -> str:
        """A regular expression of what is not a part of the number itself."""
        return f"[% '\u00a0\u202f\u2019{',' if self.decimal == '.' else '.'}]"

    @property
    def ending(self) -> str:
        """What follows the digits, so that a percentage is rounded once."""
        return "e-2" if self.percent else ""

    def read(self, text: str) -> float | None:
        """The number, None where the text is none."""
        bare = text.strip()
        if not re.fullmatch(self.pattern, bare):
            return None
        return float(re.sub(self.dropped, "", bare).replace(",", ".") + self.ending)

    def __str__(self) -> str:
        """How numbers are written, in words.

        >>> print(NumberSpelling(","))
        with a decimal comma
        """
        mark = "with a decimal comma" if self.decimal == "," else ""
        if self.percent:
            return f"as percentages {mark}".strip()
        return mark or "with marks between thousands"


#: all there are, the likeliest first
SPELLINGS = tuple(NumberSpelling(mark, percent) for percent in (False, True) for mark in ".,")


def choose_spelling(
    read: Mapping[NumberSpelling | None, int], unsure: Mapping[bool, str], name: str
) -> NumberSpelling | None:
    """The spelling that reads most values of a column; None for plain numbers.

    Parameters
    ----------
    read : how many values each of the allowed spellings reads, None for plain numbers
    unsure : a value that is one number with a point and another with a comma, if there is one;
        by whether it is a percentage
    name : what the column is called in an error

    >>> counts = {None: 1, NumberSpelling("."): 1, NumberSpelling(","): 9}
    >>> choose_spelling(counts, {}, "score column 'p'")
    NumberSpelling(decimal=',', percent=False)
    """
    best = max(read, key=lambda one: read[one])  # the first of equals
    if best is None:
        return None
    other = NumberSpelling("," if best.decimal == "." else ".", best.percent)
    if read.get(other, -1) < read[best] or best.percent not in unsure:
        return best
    text = unsure[best.percent]
    point, comma = (NumberSpelling(mark, best.percent).read(text) for mark in ".,")
    raise InputError(
        f"{name} can be read in two ways: {text!r} is {point!r} with a decimal point, and "
        f"{comma!r} with a decimal comma. Say which it is: --decimal . or --decimal ,"
    )
