"""Boosting whose scores are known: F, the raw prediction, and the probability of its own loss."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
