"""Advice that prevents the known mistakes, each with its figures."""

from calibrant.advice.advise_on import advise, advise_table
from calibrant.advice.leaks import known_rows, trained_on
from calibrant.advice.piece import Advice, warn_of

__all__ = ["Advice", "advise", "advise_table", "known_rows", "trained_on", "warn_of"]
