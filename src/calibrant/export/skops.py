"""The types that skops must trust to read our models: MLflow saves scikit-learn models with it."""

from __future__ import annotations

from calibrant.rules.base import known_kinds

#: classes by file, beside all kinds of maps: their state is numbers, text, and one another
TYPES = {
    "auto.advice": "Advice",
    "auto.auto": "AutoCalibrator",
    "auto.why": "Leaderboard",
    "data.attributes": "Attribute Schema",
    "data.scale": "ScoreRange",
    "data.score_matrix": "ScoreMatrix",
    "data.score_table": "ScoreTable",
    "fitting.held_out": "Sample Standing Trial",
    "methods.acp.acp": "ACP",
    "methods.acp.intervals": "Delta Intervals IntervalsOfModel Members NoInputs",
    "methods.acp.rule": "IntervalBins",
    "methods.binning.bayesian": "ABB BBQ Binning SBB",
    "methods.binning.histogram": "Histogram",
    "methods.boosting": "AdaBoost Models Trees",
    "methods.codes.calibrator": "CodedCalibrator MultiLabelCalibrator TopLabelCalibrator",
    "methods.codes.codes": "Code",
    "methods.features.calibrator": "FeatureCalibrator FeatureTrial",
    "methods.features.rule": "SmallTrees TreeRounds",
    "methods.isotonic": "Isotonic",
    "methods.near_isotonic.elite": "ELiTE",
    "methods.near_isotonic.enir": "ENIR NearIsotonicPath",
    "methods.scaling": (
        "Dirichlet EnsembleTemperature MatrixScaling StructuredScaling Temperature VectorScaling"
    ),
    "methods.segments": "Segment SegmentedCalibrator ShrinkageTrial",
    "methods.sigmoids": "Beta LogisticCorrection Platt Quadratic",
    "methods.similarity.neighbours": "Neighbours",
    "methods.similarity.similarity": "SimilarityBinning",
    "methods.splines.bls": "BLS BLSMember",
    "methods.splines.spline": "Spline",
    "methods.uncalibrated": "Rescale Uncalibrated",
    "methods.venn_abers.venn_abers": "VennAbers",
    "metrics.headlines": "ClassLook FirstLook",
    "metrics.intervals": "PairedCells",
    "model.calibrated": "CalibratedClassifier Member",
    "model.coded": "CodedClassifier",
    "rules.base": "RowInputs",
    "rules.plan.nodes": "Pieces",
}


def skops_types() -> list[str]:
    """The names of all types of calibrant that skops must trust to read a saved model.

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
    >>> "calibrant.methods.sigmoids.Platt" in skops_types()
    True
    """
    names = [f"calibrant.{file}.{own}" for file, all_ in TYPES.items() for own in all_.split()]
    names += [f"{kind.__module__}.{kind.__qualname__}" for kind in known_kinds().values()]
    return sorted(names)
