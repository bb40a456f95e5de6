"""Fewer knots for long polygonal lines: `few_knots`, compiled for arrays."""

from __future__ import annotations

from calibrant.kernels._jit import jit
from calibrant.kernels.few_knots import few_knots

simplify = jit(few_knots)
