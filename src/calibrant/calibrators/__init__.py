"""One file per method; `near_isotonic_path` has all fits behind ENIR."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
