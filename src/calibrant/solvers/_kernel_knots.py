"""Fewer knots for long polygonal lines: `few_knots`, compiled for arrays."""

from __future__ import annotations

from calibrant.solvers._jit import jit
from calibrant.solvers.knots import few_knots

simplify = jit(few_knots)
