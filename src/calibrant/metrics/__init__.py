"""Measures of probabilities: every function takes labels and probabilities, or a score table."""

from typing import TYPE_CHECKING

from calibrant.metrics.binned_errors import ece, mce
from calibrant.metrics.calbin_windows import calbin
from calibrant.metrics.combined_test import CalibrationTest, calibration_test
from calibrant.metrics.cox import Cox, cox
from calibrant.metrics.cumulative import ECCE, ecce
from calibrant.metrics.decisions import Profit, profit
from calibrant.metrics.decompose import DeGrootFienberg, Murphy, degroot_fienberg, murphy
from calibrant.metrics.ece_significance import ECETest, ece_test
from calibrant.metrics.evaluating import evaluate
from calibrant.metrics.evaluation_results import Evaluation, MulticlassEvaluation
from calibrant.metrics.goodness import (
    HosmerLemeshow,
    Spiegelhalter,
    hosmer_lemeshow,
    spiegelhalter,
)
from calibrant.metrics.group_errors import multicalibration
from calibrant.metrics.group_results import GroupError, Multicalibration
from calibrant.metrics.hull import (
    Corp,
    FlachMatsubara,
    calibration_loss,
    corp,
    flach_matsubara,
)
from calibrant.metrics.kernel_calibration import SKCETest, skce, skce_test
from calibrant.metrics.kernel_smoothed import SmoothECE, smooth_ece
from calibrant.metrics.multiclass import (
    classwise_ece,
    classwise_mce,
    top_label_ece,
    top_label_mce,
)
from calibrant.metrics.multilabel import MultilabelMeasures, multilabel_measures
from calibrant.metrics.net_benefit import NetBenefit, net_benefit
from calibrant.metrics.paired_losses import LossDifference, loss_difference
from calibrant.metrics.proper import brier, log_loss, rmse
from calibrant.metrics.ranking import accuracy, auc
from calibrant.metrics.smooth_errors import ICI, ici
from calibrant.other_words import our_measure

__all__ = [
    "ECCE",
    "ICI",
    "CalibrationTest",
    "Corp",
    "Cox",
    "DeGrootFienberg",
    "ECETest",
    "Evaluation",
    "FlachMatsubara",
    "GroupError",
    "HosmerLemeshow",
    "LossDifference",
    "Multicalibration",
    "MulticlassEvaluation",
    "MultilabelMeasures",
    "Murphy",
    "NetBenefit",
    "Profit",
    "SKCETest",
    "SmoothECE",
    "Spiegelhalter",
    "accuracy",
    "auc",
    "brier",
    "calbin",
    "calibration_loss",
    "calibration_test",
    "classwise_ece",
    "classwise_mce",
    "corp",
    "cox",
    "degroot_fienberg",
    "ecce",
    "ece",
    "ece_test",
    "evaluate",
    "flach_matsubara",
    "hosmer_lemeshow",
    "ici",
    "log_loss",
    "loss_difference",
    "mce",
    "multicalibration",
    "multilabel_measures",
    "murphy",
    "net_benefit",
    "profit",
    "rmse",
    "skce",
    "skce_test",
    "smooth_ece",
    "spiegelhalter",
    "top_label_ece",
    "top_label_mce",
]

if not TYPE_CHECKING:  # else type checkers would take every name for one of ours

    def __getattr__(name: str) -> object:
        hint = "" if name.startswith("_") else our_measure(name, __all__)
        raise AttributeError(f"module 'calibrant.metrics' has no attribute {name!r}.{hint}")
