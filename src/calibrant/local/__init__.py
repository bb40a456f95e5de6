"""Calibrators that see more of a row than its score: its attributes, or its interval."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
