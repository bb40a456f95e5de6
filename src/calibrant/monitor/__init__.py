"""Does it still hold? Drift of calibration, and other base rates."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
