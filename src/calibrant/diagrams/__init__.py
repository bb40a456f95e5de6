"""Reliability curves and diagrams: `curves` computes, only `draw` knows matplotlib."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
