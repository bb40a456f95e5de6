"""What `calibrant.scaling` shows; `lazy_names` reads it."""

from calibrant.fitting.base import VectorCalibrator as VectorCalibrator
