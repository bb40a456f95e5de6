"""Calibrators of several classes at once: softmax of scaled logits."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
