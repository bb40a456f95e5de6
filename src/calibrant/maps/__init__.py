"""Maps: frozen functions of scores that save, load and export without what fitted them."""

from calibrant.maps.base import Map, VectorMap, map_from_dict
from calibrant.maps.chain import Chain
from calibrant.maps.coded import Coded
from calibrant.maps.columns import Columns
from calibrant.maps.identity import Identity
from calibrant.maps.interval import Interval
from calibrant.maps.logistic import Logistic
from calibrant.maps.mixture import Mixture
from calibrant.maps.piecewise import Piecewise
from calibrant.maps.segmented import Segmented
from calibrant.maps.softmax import Softmax
from calibrant.maps.top_label import TopLabel
from calibrant.maps.vector_mixture import VectorMixture

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
