"""The choice of a calibrator: judged out of fold, and free to keep the scores as they are."""

from calibrant.auto.calibrator import AutoCalibrator
from calibrant.auto.leaderboard import Leaderboard, Standing

__all__ = ["AutoCalibrator", "Leaderboard", "Standing"]
