"""Fewer knots for long lines, compiled."""

from __future__ import annotations

from calibrant.solvers._jit import jit
from calibrant.solvers.knots import few_knots

#: `few_knots`, compiled for arrays
simplify = jit(few_knots)
