"""What `calibrant.scaling` shows; `lazy_names` reads it."""

from calibrant.fitting.base_classes import VectorCalibrator as VectorCalibrator
