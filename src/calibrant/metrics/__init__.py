"""Measures of probabilities: every function takes labels and probabilities, or a score table."""

from calibrant.metrics.binned import ece, mce
from calibrant.metrics.decisions import Profit, profit
from calibrant.metrics.decompose import DeGrootFienberg, Murphy, degroot_fienberg, murphy
from calibrant.metrics.evaluating import evaluate
from calibrant.metrics.evaluation import Evaluation
from calibrant.metrics.goodness import HosmerLemeshow, hosmer_lemeshow
from calibrant.metrics.hull import (
    Corp,
    FlachMatsubara,
    calibration_loss,
    corp,
    flach_matsubara,
)
from calibrant.metrics.proper import brier, log_loss, rmse
from calibrant.metrics.ranking import accuracy, auc
from calibrant.metrics.windows import calbin

__all__ = [
    "Corp",
    "DeGrootFienberg",
    "Evaluation",
    "FlachMatsubara",
    "HosmerLemeshow",
    "Murphy",
    "Profit",
    "accuracy",
    "auc",
    "brier",
    "calbin",
    "calibration_loss",
    "corp",
    "degroot_fienberg",
    "ece",
    "evaluate",
    "flach_matsubara",
    "hosmer_lemeshow",
    "log_loss",
    "mce",
    "murphy",
    "profit",
    "rmse",
]
