"""Advice that prevents the known mistakes, each with its figures."""

from calibrant.auto.advice import Advice, advise, advise_table, known_rows, trained_on, warn_of

__all__ = ["Advice", "advise", "advise_table", "known_rows", "trained_on", "warn_of"]
