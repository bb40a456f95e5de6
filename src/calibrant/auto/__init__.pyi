"""What `calibrant.auto` shows; `lazy_names` reads it."""

from calibrant.auto.auto import AutoCalibrator as AutoCalibrator
from calibrant.auto.why import Leaderboard as Leaderboard
from calibrant.fitting.held_out import Standing as Standing
