"""Has calibration changed? A test of new rows against old ones, and what to do about it."""

from calibrant.drift.checking import check_drift
from calibrant.drift.value import Drift, DriftTest, Rates, Remedy

__all__ = ["Drift", "DriftTest", "Rates", "Remedy", "check_drift"]
