"""Maps as SQL, ONNX, plain Python and JSON: text and files that other systems evaluate."""

from calibrant.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
