"""Doubles as text that a database reads as the same double, to the last bit."""

from __future__ import annotations

import math
from decimal import Decimal

LARGEST = 1.7976931348623157e308
SMALLEST_NORMAL = 2.2250738585072014e-308
#: up to which whole number, and which power of ten, doubles are exact
WHOLE, TENS = 2**53, 22
#: the largest power of two that is written as one number
POWER = 62


def plain(x: float) -> str:
    """The shortest digits of this double. The exponent keeps databases from reading a DECIMAL.

    >>> plain(0.1), plain(1e-9), plain(-0.0)
    ('0.1e0', '1e-09', '0e0')
    """
    text = repr(float(x) + 0.0).removesuffix(".0")
    return text if "e" in text else f"{text}e0"


def quoted(x: float) -> str:
    """The number in quotes, which a column of doubles accepts.

    >>> quoted(0.1)
    "'0.1e0'"
    """
    return f"'{plain(x)}'"


def cast(x: float) -> str:
    """For databases that may read even digits with an exponent as fixed-point numbers.

    >>> cast(0.1)
    "'0.1e0'::FLOAT"
    """
    return f"{quoted(x)}::FLOAT"


def of_normals(x: float) -> str:
    """For databases without subnormal numbers: the next larger normal number stands for one.

    A comparison with it is right for all scores that such a database can hold.

    >>> of_normals(5e-324), of_normals(-5e-324)
    ('2.2250738585072014e-308', '0e0')
    """
    if 0.0 < abs(x) < SMALLEST_NORMAL:
        x = SMALLEST_NORMAL if x > 0.0 else 0.0
    return plain(x)


def by_quotient(x: float) -> str:
    """For databases that do not read all digits right: a quotient of numbers that they read right.

    IEEE 754 rounds one division right: of digits below 2⁵³ and a power of ten up to 10²², or else
    of the double's own integer and a power of two.

    >>> by_quotient(0.5), by_quotient(0.1), by_quotient(0.1 + 0.2)
    ('0.5e0', '(1e0 / 1e1)', '(1351079888211149e0 / 4503599627370496e0)')
    """
    x = float(x) + 0.0
    if math.isinf(x):
        return "9e999" if x > 0.0 else "-9e999"
    _, digits, exponent = Decimal(repr(x)).normalize().as_tuple()
    whole = int("".join(map(str, digits)))
    sign = "-" if x < 0.0 else ""
    small = whole < WHOLE and isinstance(exponent, int) and abs(exponent) <= TENS
    if small and Decimal(repr(x)) == Decimal(x):
        return plain(x)
    if small:
        return f"({sign}{whole}e0 {'/' if int(exponent) < 0 else '*'} 1e{abs(int(exponent))})"
    top, bottom = abs(x).as_integer_ratio()
    text = f"{top}e0" if top < WHOLE else _times(top)
    return f"({sign}{text}{_over(bottom.bit_length() - 1)})"


def _over(power: int) -> str:
    """Divisions by powers of two, which lose nothing."""
    whole, rest = divmod(power, POWER)
    return f" / {2**POWER}e0" * whole + (f" / {2**rest}e0" if rest else "")


def _times(top: int) -> str:
    mantissa, exponent = math.frexp(float(top))
    whole, rest = divmod(exponent - 53, POWER)
    factors = f" * {2**POWER}e0" * whole + (f" * {2**rest}e0" if rest else "")
    return f"{int(mantissa * WHOLE)}e0{factors}"
