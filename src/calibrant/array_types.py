"""The kinds of arrays that signatures name."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: places in another array
Index = NDArray[np.intp]
Flags = NDArray[np.bool_]
