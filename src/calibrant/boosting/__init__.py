"""Boosting with all its scores: the sum of votes F, the share of votes, and probabilities."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
