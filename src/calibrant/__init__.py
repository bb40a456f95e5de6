"""Calibrant turns any classifier's scores into probabilities people can act on.

>>> import calibrant as cal
>>> c = cal.Isotonic().fit([0.1, 0.3, 0.4, 0.6], ["no", "yes", "no", "yes"])
>>> c.predict_proba([0.35]).tolist()
[[0.5, 0.5]]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: every public name and the module that defines it; nothing is imported before it is used
_HOMES = {
    "ABB": "calibrators.abb",
    "ACP": "local.acp",
    "AdaBoost": "boosting.adaboost",
    "Advice": "advice",
    "AdviceWarning": "errors",
    "AutoCalibrator": "auto",
    "BBQ": "calibrators.bbq",
    "BLS": "calibrators.bls",
    "Beta": "calibrators.beta",
    "CalibratedClassifier": "wrap",
    "CalibrationWarning": "errors",
    "Calibrator": "base",
    "Code": "multiclass.codes",
    "CodedCalibrator": "multiclass.calibrator",
    "CodedClassifier": "multiclass.classifier",
    "ConvergenceError": "errors",
    "Curve": "diagrams.curves",
    "Dirichlet": "scaling.dirichlet",
    "Drift": "drift",
    "ELiTE": "calibrators.elite",
    "ENIR": "calibrators.enir",
    "Evaluation": "metrics",
    "Fitted": "fitted",
    "Histogram": "calibrators.histogram",
    "Identity": "calibrators.identity",
    "InputError": "errors",
    "Isotonic": "calibrators.isotonic",
    "Leaderboard": "auto",
    "LearningCurve": "diagrams.learning",
    "LocalFitted": "local.rule",
    "LogisticCorrection": "calibrators.logistic_correction",
    "MatrixScaling": "scaling.matrix",
    "MissingExtraError": "errors",
    "MultiLabelCalibrator": "multiclass.multilabel",
    "MulticlassEvaluation": "metrics",
    "MultilabelMeasures": "metrics",
    "NearIsotonicPath": "calibrators.enir",
    "Panels": "diagrams.panels",
    "ParameterError": "errors",
    "Platt": "calibrators.platt",
    "PredictionInterval": "local.intervals",
    "Quadratic": "calibrators.quadratic",
    "RangeWarning": "errors",
    "RateEstimate": "prior",
    "RateEstimates": "prior",
    "Report": "reports.value",
    "Rescale": "calibrators.rescale",
    "SBB": "calibrators.sbb",
    "ScoreMatrix": "data.matrix",
    "ScoreRange": "data.score_range",
    "ScoreTable": "data.table",
    "SegmentedCalibrator": "segment",
    "Segments": "diagrams.segments",
    "SimilarityBinning": "local.sba",
    "Spline": "calibrators.spline",
    "Sql": "export.sql",
    "Standing": "auto",
    "StructuredScaling": "scaling.structured",
    "Temperature": "scaling.temperature",
    "VectorCalibrator": "vector_base",
    "VectorScaling": "scaling.vector",
    "VennAbers": "calibrators.venn_abers",
    "accuracy": "metrics",
    "adjust_prior": "prior",
    "advise": "advice",
    "apply": "engines.apply",
    "auc": "metrics",
    "boosting_panels": "diagrams.panels",
    "boosting_score": "boosting.score",
    "brier": "metrics",
    "calbin": "metrics",
    "calibration_loss": "metrics",
    "check_drift": "drift",
    "class_diagram": "diagrams.draw.classes",
    "class_reliability": "diagrams.classes",
    "classwise_ece": "metrics",
    "classwise_mce": "metrics",
    "compose_onnx": "export.onnx",
    "corp": "metrics",
    "critical_difference_diagram": "diagrams.draw.ranks",
    "degroot_fienberg": "metrics",
    "ecce": "metrics",
    "ece": "metrics",
    "ece_test": "metrics",
    "estimate_rate": "prior",
    "estimate_rates": "prior",
    "evaluate": "metrics",
    "fit_isotonic": "engines.isotonic",
    "flach_matsubara": "metrics",
    "hosmer_lemeshow": "metrics",
    "learning_curve": "diagrams.learning",
    "learning_diagram": "diagrams.draw",
    "load": "files",
    "log_loss": "metrics",
    "loss_difference": "metrics",
    "map_curve": "diagrams.lines",
    "map_diagram": "diagrams.draw",
    "mce": "metrics",
    "multilabel_measures": "metrics",
    "murphy": "metrics",
    "near_isotonic_path": "calibrators.enir",
    "panel_diagram": "diagrams.draw",
    "prediction_interval": "local.intervals",
    "profit": "metrics",
    "reliability_curve": "diagrams.curves",
    "reliability_diagram": "diagrams.draw",
    "reliability_panels": "diagrams.panels",
    "reliability_segments": "diagrams.segments",
    "report": "reports.making",
    "rmse": "metrics",
    "save": "files",
    "segment_tables": "engines.tables",
    "skops_types": "export.skops",
    "smooth_ece": "metrics",
    "spiegelhalter": "metrics",
    "table": "engines.tables",
    "to_json": "export.json",
    "to_onnx": "export.onnx",
    "to_python": "export.python",
    "to_sql": "export.sql",
    "top_label_ece": "metrics",
    "top_label_mce": "metrics",
}

#: rooms that are public as a whole
_ROOMS = ("compare", "maps", "multiclass")

__all__ = [*sorted(_HOMES), *_ROOMS]  # noqa: PLE0604

if TYPE_CHECKING:
    from calibrant import compare as compare
    from calibrant import maps as maps
    from calibrant import multiclass as multiclass
    from calibrant.advice import Advice as Advice
    from calibrant.advice import advise as advise
    from calibrant.auto import AutoCalibrator as AutoCalibrator
    from calibrant.auto import Leaderboard as Leaderboard
    from calibrant.auto import Standing as Standing
    from calibrant.base import Calibrator as Calibrator
    from calibrant.boosting.adaboost import AdaBoost as AdaBoost
    from calibrant.boosting.score import boosting_score as boosting_score
    from calibrant.calibrators.abb import ABB as ABB
    from calibrant.calibrators.bbq import BBQ as BBQ
    from calibrant.calibrators.beta import Beta as Beta
    from calibrant.calibrators.bls import BLS as BLS
    from calibrant.calibrators.elite import ELiTE as ELiTE
    from calibrant.calibrators.enir import ENIR as ENIR
    from calibrant.calibrators.enir import NearIsotonicPath as NearIsotonicPath
    from calibrant.calibrators.enir import near_isotonic_path as near_isotonic_path
    from calibrant.calibrators.histogram import Histogram as Histogram
    from calibrant.calibrators.identity import Identity as Identity
    from calibrant.calibrators.isotonic import Isotonic as Isotonic
    from calibrant.calibrators.logistic_correction import LogisticCorrection as LogisticCorrection
    from calibrant.calibrators.platt import Platt as Platt
    from calibrant.calibrators.quadratic import Quadratic as Quadratic
    from calibrant.calibrators.rescale import Rescale as Rescale
    from calibrant.calibrators.sbb import SBB as SBB
    from calibrant.calibrators.spline import Spline as Spline
    from calibrant.calibrators.venn_abers import VennAbers as VennAbers
    from calibrant.data.matrix import ScoreMatrix as ScoreMatrix
    from calibrant.data.score_range import ScoreRange as ScoreRange
    from calibrant.data.table import ScoreTable as ScoreTable
    from calibrant.diagrams.classes import class_reliability as class_reliability
    from calibrant.diagrams.curves import Curve as Curve
    from calibrant.diagrams.curves import reliability_curve as reliability_curve
    from calibrant.diagrams.draw import learning_diagram as learning_diagram
    from calibrant.diagrams.draw import map_diagram as map_diagram
    from calibrant.diagrams.draw import panel_diagram as panel_diagram
    from calibrant.diagrams.draw import reliability_diagram as reliability_diagram
    from calibrant.diagrams.draw.classes import class_diagram as class_diagram
    from calibrant.diagrams.draw.ranks import (
        critical_difference_diagram as critical_difference_diagram,
    )
    from calibrant.diagrams.learning import LearningCurve as LearningCurve
    from calibrant.diagrams.learning import learning_curve as learning_curve
    from calibrant.diagrams.lines import map_curve as map_curve
    from calibrant.diagrams.panels import Panels as Panels
    from calibrant.diagrams.panels import boosting_panels as boosting_panels
    from calibrant.diagrams.panels import reliability_panels as reliability_panels
    from calibrant.diagrams.segments import Segments as Segments
    from calibrant.diagrams.segments import reliability_segments as reliability_segments
    from calibrant.drift import Drift as Drift
    from calibrant.drift import check_drift as check_drift
    from calibrant.engines.apply import apply as apply
    from calibrant.engines.isotonic import fit_isotonic as fit_isotonic
    from calibrant.engines.tables import segment_tables as segment_tables
    from calibrant.engines.tables import table as table
    from calibrant.errors import AdviceWarning as AdviceWarning
    from calibrant.errors import CalibrationWarning as CalibrationWarning
    from calibrant.errors import ConvergenceError as ConvergenceError
    from calibrant.errors import InputError as InputError
    from calibrant.errors import MissingExtraError as MissingExtraError
    from calibrant.errors import ParameterError as ParameterError
    from calibrant.errors import RangeWarning as RangeWarning
    from calibrant.export.json import to_json as to_json
    from calibrant.export.onnx import compose_onnx as compose_onnx
    from calibrant.export.onnx import to_onnx as to_onnx
    from calibrant.export.python import to_python as to_python
    from calibrant.export.skops import skops_types as skops_types
    from calibrant.export.sql import Sql as Sql
    from calibrant.export.sql import to_sql as to_sql
    from calibrant.files import load as load
    from calibrant.files import save as save
    from calibrant.fitted import Fitted as Fitted
    from calibrant.local.acp import ACP as ACP
    from calibrant.local.intervals import PredictionInterval as PredictionInterval
    from calibrant.local.intervals import prediction_interval as prediction_interval
    from calibrant.local.rule import LocalFitted as LocalFitted
    from calibrant.local.sba import SimilarityBinning as SimilarityBinning
    from calibrant.metrics import Evaluation as Evaluation
    from calibrant.metrics import MulticlassEvaluation as MulticlassEvaluation
    from calibrant.metrics import MultilabelMeasures as MultilabelMeasures
    from calibrant.metrics import accuracy as accuracy
    from calibrant.metrics import auc as auc
    from calibrant.metrics import brier as brier
    from calibrant.metrics import calbin as calbin
    from calibrant.metrics import calibration_loss as calibration_loss
    from calibrant.metrics import classwise_ece as classwise_ece
    from calibrant.metrics import classwise_mce as classwise_mce
    from calibrant.metrics import corp as corp
    from calibrant.metrics import degroot_fienberg as degroot_fienberg
    from calibrant.metrics import ecce as ecce
    from calibrant.metrics import ece as ece
    from calibrant.metrics import ece_test as ece_test
    from calibrant.metrics import evaluate as evaluate
    from calibrant.metrics import flach_matsubara as flach_matsubara
    from calibrant.metrics import hosmer_lemeshow as hosmer_lemeshow
    from calibrant.metrics import log_loss as log_loss
    from calibrant.metrics import loss_difference as loss_difference
    from calibrant.metrics import mce as mce
    from calibrant.metrics import multilabel_measures as multilabel_measures
    from calibrant.metrics import murphy as murphy
    from calibrant.metrics import profit as profit
    from calibrant.metrics import rmse as rmse
    from calibrant.metrics import smooth_ece as smooth_ece
    from calibrant.metrics import spiegelhalter as spiegelhalter
    from calibrant.metrics import top_label_ece as top_label_ece
    from calibrant.metrics import top_label_mce as top_label_mce
    from calibrant.multiclass.calibrator import CodedCalibrator as CodedCalibrator
    from calibrant.multiclass.classifier import CodedClassifier as CodedClassifier
    from calibrant.multiclass.codes import Code as Code
    from calibrant.multiclass.multilabel import MultiLabelCalibrator as MultiLabelCalibrator
    from calibrant.prior import RateEstimate as RateEstimate
    from calibrant.prior import RateEstimates as RateEstimates
    from calibrant.prior import adjust_prior as adjust_prior
    from calibrant.prior import estimate_rate as estimate_rate
    from calibrant.prior import estimate_rates as estimate_rates
    from calibrant.reports.making import report as report
    from calibrant.reports.value import Report as Report
    from calibrant.scaling.dirichlet import Dirichlet as Dirichlet
    from calibrant.scaling.matrix import MatrixScaling as MatrixScaling
    from calibrant.scaling.structured import StructuredScaling as StructuredScaling
    from calibrant.scaling.temperature import Temperature as Temperature
    from calibrant.scaling.vector import VectorScaling as VectorScaling
    from calibrant.segment import SegmentedCalibrator as SegmentedCalibrator
    from calibrant.vector_base import VectorCalibrator as VectorCalibrator
    from calibrant.wrap import CalibratedClassifier as CalibratedClassifier


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"calibrant.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"calibrant.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
