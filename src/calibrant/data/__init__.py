"""The two kinds of data that calibrators are fitted to, and the range of their scores."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
