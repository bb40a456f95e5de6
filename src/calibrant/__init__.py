"""Calibrant turns any classifier's scores into probabilities people can act on.

>>> import calibrant as cal
>>> c = cal.Isotonic().fit([0.1, 0.3, 0.4, 0.6], ["no", "yes", "no", "yes"])
>>> c.predict_proba([0.35]).tolist()
[[0.5, 0.5]]
"""

from calibrant.lazy_names import lazy_names
from calibrant.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_names(__name__)
