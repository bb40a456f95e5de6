"""The names by which the command line knows the methods: module, class, and one line on each."""

from __future__ import annotations

__all__ = ["DEFAULT", "METHODS"]

#: what `calibrant fit` uses unless told otherwise: any shape, safe on few rows, and it keeps the
#: scores as they are where nothing is better
DEFAULT = "auto"

METHODS: dict[str, tuple[str, str, str]] = {
    "auto": (
        "calibrant.auto",
        "AutoCalibrator",
        "BLS if it helps, else the scores as they are: the default",
    ),
    "bls": (
        "calibrant.calibrators.bls",
        "BLS",
        "many smooth maps, averaged by evidence: few rows or many",
    ),
    "platt": (
        "calibrant.calibrators.platt",
        "Platt",
        "a sigmoid, two parameters: safe on few rows",
    ),
    "isotonic": (
        "calibrant.calibrators.isotonic",
        "Isotonic",
        "the best rising steps: any shape, wants a thousand rows",
    ),
    "venn-abers": (
        "calibrant.calibrators.venn_abers",
        "VennAbers",
        "two isotonic fits: a lower and an upper probability, merged",
    ),
    "beta": (
        "calibrant.calibrators.beta",
        "Beta",
        "three parameters: bends each end of the scale alone",
    ),
    "quadratic": (
        "calibrant.calibrators.quadratic",
        "Quadratic",
        "a sigmoid with a bend, three parameters",
    ),
    "spline": (
        "calibrant.calibrators.spline",
        "Spline",
        "a smooth curve, as bent as the data ask for",
    ),
    "histogram": (
        "calibrant.calibrators.histogram",
        "Histogram",
        "the fraction of positives in each of a few bins",
    ),
    "bbq": (
        "calibrant.calibrators.bbq",
        "BBQ",
        "histograms of many sizes, averaged by their evidence",
    ),
    "sbb": (
        "calibrant.calibrators.sbb",
        "SBB",
        "the most probable of all binnings, found exactly",
    ),
    "abb": (
        "calibrant.calibrators.abb",
        "ABB",
        "the average over all binnings: smooth, for small data",
    ),
    "enir": (
        "calibrant.calibrators.enir",
        "ENIR",
        "steps that may fall at a price, averaged over all prices",
    ),
    "elite": (
        "calibrant.calibrators.elite",
        "ELiTE",
        "broken lines of many smoothnesses, averaged: no steps",
    ),
    "temperature": (
        "calibrant.scaling.temperature",
        "Temperature",
        "one factor on the logit: mends overconfidence only",
    ),
    "logistic-correction": (
        "calibrant.calibrators.logistic_correction",
        "LogisticCorrection",
        "1/(1+exp(-2F)) of boosting's scores F; fits nothing",
    ),
    "rescale": (
        "calibrant.calibrators.rescale",
        "Rescale",
        "squeezes margins into [0, 1]; looks at no labels",
    ),
    "identity": (
        "calibrant.calibrators.identity",
        "Identity",
        "the scores as they are: the baseline to beat",
    ),
}
