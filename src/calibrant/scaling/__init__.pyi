"""What `calibrant.scaling` shows; `lazy_names` reads it."""

from calibrant.scaling.base import VectorCalibrator as VectorCalibrator
