"""Maps: frozen functions of scores that save, load and export without what fitted them."""

from calibrant.rules.base import Map, VectorMap, map_from_dict
from calibrant.rules.chain import Chain, Interval
from calibrant.rules.combiners import Coded, Columns
from calibrant.rules.mixture import Mixture
from calibrant.rules.piecewise import Piecewise
from calibrant.rules.segmented import Segmented
from calibrant.rules.sigmoids import Identity, Logistic
from calibrant.rules.softmax import Softmax, TopLabel, VectorMixture

__all__ = [
    "Chain",
    "Coded",
    "Columns",
    "Identity",
    "Interval",
    "Logistic",
    "Map",
    "Mixture",
    "Piecewise",
    "Segmented",
    "Softmax",
    "TopLabel",
    "VectorMap",
    "VectorMixture",
    "map_from_dict",
]
