"""The choice of a calibrator: judged out of fold, and free to keep the scores as they are."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
