"""The types that skops must trust to read our models: MLflow saves scikit-learn models with it."""

from __future__ import annotations

from calibrant.maps.base import known_kinds

#: classes by file, beside all kinds of maps: their state is numbers, text, and one another
TYPES = {
    "advice.piece": "Advice",
    "auto.calibrator": "AutoCalibrator",
    "auto.leaderboard": "Leaderboard Standing",
    "boosting.adaboost": "AdaBoost",
    "boosting.learners": "Models Trees",
    "calibrators.abb": "ABB",
    "calibrators.bbq": "BBQ",
    "calibrators.beta": "Beta",
    "calibrators.bls": "BLS BLSMember",
    "calibrators.elite": "ELiTE",
    "calibrators.enir": "ENIR NearIsotonicPath",
    "calibrators.histogram": "Histogram",
    "calibrators.isotonic": "Isotonic",
    "calibrators.logistic_correction": "LogisticCorrection",
    "calibrators.platt": "Platt",
    "calibrators.quadratic": "Quadratic",
    "calibrators.rescale": "Rescale",
    "calibrators.sbb": "Binning SBB",
    "calibrators.spline": "Spline",
    "calibrators.uncalibrated": "Uncalibrated",
    "calibrators.venn_abers": "VennAbers",
    "classifier.calibrated_classifier": "CalibratedClassifier",
    "classifier.fitted_member": "Member",
    "data.score_matrix": "ScoreMatrix",
    "data.score_range": "ScoreRange",
    "data.score_table": "ScoreTable",
    "estimators.held_out_means": "Sample",
    "local.acp": "ACP",
    "local.attributes": "Attribute Schema",
    "local.base": "AsFeatures",
    "local.delta_method": "Delta",
    "local.feature_calibrator": "FeatureCalibrator",
    "local.feature_judging": "FeatureTrial HeldOutRounds",
    "local.interval_bins": "IntervalBins",
    "local.intervals": "Intervals IntervalsOfModel NoInputs",
    "local.local_gate": "HeldOutP",
    "local.neighbours": "Neighbours",
    "local.rule": "ClassScores",
    "local.sba": "SimilarityBinning",
    "local.spreads": "Members",
    "local.tree_rule": "TreeRounds",
    "local.trees": "SmallTrees",
    "metrics.change_intervals": "PairedCells",
    "metrics.class_look": "ClassLook",
    "metrics.first_look": "FirstLook",
    "multiclass.coded_calibrator": "CodedCalibrator",
    "multiclass.coded_classifier": "CodedClassifier",
    "multiclass.codes": "Code",
    "multiclass.multilabel": "MultiLabelCalibrator",
    "multiclass.top_label": "TopLabelCalibrator",
    "plan.line_pieces": "Pieces",
    "scaling.dirichlet": "Dirichlet",
    "scaling.ensemble_temperature": "EnsembleTemperature",
    "scaling.matrix": "MatrixScaling",
    "scaling.structured": "StructuredScaling",
    "scaling.temperature": "Temperature",
    "scaling.vector": "VectorScaling",
    "segment.calibrator": "SegmentedCalibrator",
    "segment.column_fit": "Segment",
    "segment.shrink": "ShrinkageTrial",
}


def skops_types() -> list[str]:
    """The names of all types of calibrant that a fitted model may hold, for skops to trust.

    skops reads no type that it does not know or was not told of. None of these runs anything when
    it is read: their state is numbers, text, arrays, and one another.

    Returns
    -------
    list of str
        Ascending; for ``trusted=`` of ``skops.io.load``, and ``skops_trusted_types=`` of
        ``mlflow.sklearn.log_model``. A classifier of another library has types of its own, and so
        has a function that you gave, such as ``ACP(interval=...)``.

    Examples
    --------
    >>> "calibrant.calibrators.platt.Platt" in skops_types()
    True
    """
    names = [f"calibrant.{file}.{own}" for file, all_ in TYPES.items() for own in all_.split()]
    names += [f"{kind.__module__}.{kind.__qualname__}" for kind in known_kinds().values()]
    return sorted(names)
