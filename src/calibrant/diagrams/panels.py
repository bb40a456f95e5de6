"""Reliability curves side by side: over steps of boosting, or before and after calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.data.frozen import Frozen
from calibrant.data.score_table import ScoreTable
from calibrant.diagrams.axes_view import frame_of, span_of
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.curves import curve_of
from calibrant.diagrams.map_lines import MapCurve, map_curve
from calibrant.diagrams.predictions import read_several
from calibrant.errors import InputError, ParameterError
from calibrant.metrics.bin_sweep import Bins
from calibrant.other_words import in_our_words

#: the steps of the paper's first figure
STEPS = (1, 4, 8, 32, 128, 1024)


@dataclass(frozen=True, eq=False, repr=False)
class Panels(Frozen):
    """Reliability curves of several predictions or groups of rows, on common histogram cells.

    Attributes
    ----------
    names : tuple of str
    curves : tuple of Curve
        The points, bands and histogram of each.
    lines : tuple of MapCurve or None
        The fitted map drawn over each, where there is one; by default none.
    before : tuple of Curve
        The same for the scores before calibration, where they were given.
    reading : str
        How scores before that were no probabilities were read, in words.

    Examples
    --------
    >>> panels = reliability_panels([0, 0, 1, 1], {"a": [0.1, 0.4, 0.4, 0.9], "b": [0, 0, 1, 1]})
    >>> panels
    Panels(a, b; weight 4)
    >>> panels["b"].mean_p.tolist()
    [0.0, 1.0]
    """

    names: tuple[str, ...]
    curves: tuple[Curve, ...]
    lines: tuple[MapCurve | None, ...] = ()
    before: tuple[Curve, ...] = ()
    reading: str = ""

    def __post_init__(self) -> None:
        if not self.lines:
            object.__setattr__(self, "lines", (None,) * len(self.names))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Curve:
        """The curve of that name."""
        if name not in self.names:
            raise KeyError(name)
        return self.curves[self.names.index(name)]

    @property
    def frame(self) -> tuple[float, float]:
        """The part of [0, 1] that holds all points, all bands and nearly all predictions."""
        frame = frame_of((*self.curves, *self.before))
        return frame.low, frame.high

    def to_dict(self) -> dict[str, Any]:
        """Each curve and line as plain lists and numbers, by name, ready for JSON."""
        found: dict[str, Any] = {
            name: {"curve": curve.to_dict(), "map": None if line is None else line.to_dict()}
            for name, curve, line in zip(self.names, self.curves, self.lines, strict=True)
        }
        for name, curve in zip(self.names, self.before, strict=False):
            found[name]["before"] = curve.to_dict()
        return found

    def __repr__(self) -> str:
        return f"Panels({', '.join(self.names)}; weight {self.curves[0].total:g})"

    def __str__(self) -> str:
        pairs = zip(self.names, self.curves, strict=True)
        return "\n\n".join(f"{name}\n{curve}" for name, curve in pairs)


@in_our_words
def reliability_panels(
    y: Any,
    predictions: Mapping[str, Any],
    *,
    maps: Mapping[str, Any] | None = None,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "width",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sigma: float | None = None,
    axes: str = "probability",
    replicates: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Panels:
    """Reliability curves and histograms of several predictions of the same rows, side by side.

    Parameters
    ----------
    y : array-like of shape (n,), or None
        Labels, any two values; None where the predictions are tables.
    predictions : dict of name to array-like of shape (n,), (n, 1) or (n, 2), or to ScoreTable
        Probabilities of the same rows, one column of the figure each, in this order.
    maps : dict of name to Map, Fitted or fitted calibrator, optional
        The map fitted to predictions of that name, to be drawn over their points.
    curve, bins, binning, band, bands, level, sigma, axes, replicates, random_state
    sample_weight, pos_label
        As in `reliability_curve`.

    Returns
    -------
    Panels
        `panel_diagram` draws it.

    Notes
    -----
    [1]_ shows this for boosted trees: the raw predictions with the sigmoid and the isotonic
    function fitted to other rows, and the predictions after either. O(N log N) per prediction.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> import calibrant as cal
    >>> platt = cal.Platt().fit([0.2, 0.4, 0.5, 0.8], [0, 1, 0, 1])
    >>> test, labels = [0.1, 0.3, 0.6, 0.7], [0, 0, 1, 1]
    >>> predictions = {"raw": test, "Platt": platt.calibrate(test)}
    >>> panels = reliability_panels(labels, predictions, maps={"raw": platt}, band=None)
    >>> panels["raw"].fraction.tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    rule = CurveOptions(
        bins, binning, band, level, replicates, random_state, curve, sigma, axes, bands
    )
    tables = read_several(y, predictions, sample_weight, pos_label)
    return panels_of(tables, rule, maps=_checked_maps(maps, predictions))


def panels_of(
    tables: Mapping[str, ScoreTable],
    rule: CurveOptions,
    *,
    maps: Mapping[str, Any] | None = None,
    span: tuple[float, float] | None = None,
) -> Panels:
    """The panels of tables of probabilities; their histograms cover the span, or what they need."""
    span = span_of(tables.values(), rule.axes) if span is None else span
    curves = tuple(curve_of(table, rule, span) for table in tables.values())
    frame, overlaid = frame_of(curves), maps or {}
    lines = tuple(
        map_curve(overlaid[name], lo=frame.low, hi=frame.high) if name in overlaid else None
        for name in tables
    )
    return Panels(tuple(tables), curves, lines)


@in_our_words
def boosting_panels(
    model: Any,
    X: Any,
    y: Any,
    *,
    steps: Sequence[int] | None = None,
    curve: str = "binned",
    bins: Bins = 10,
    binning: str = "width",
    band: str | None = "auto",
    bands: str = "auto",
    level: float = 0.95,
    sample_weight: Any = None,
) -> Panels:
    """What boosting does to predictions, step by step: they leave 0 and 1 and crowd in the middle.

    Parameters
    ----------
    model : fitted AdaBoost
        Or anything with ``staged_raw_score(X, steps=steps)``, which gives predictions in [0, 1].
    X, y : rows that the model was not trained on, and their labels
    steps : whole numbers, optional
        After how many steps; by default 1, 4, 8, 32, 128 and 1024, or the model's last step
        where it has fewer.
    curve, bins, binning, band, bands, level, sample_weight
        As in `reliability_curve`.

    Returns
    -------
    Panels
        `panel_diagram` draws it.

    Notes
    -----
    The first figure of [1]_. The model is gone through once, whatever the number of steps, and a
    prediction is its raw score, Σαh/Σα with votes h of 0 and 1. O(N log N) per step besides.

    References
    ----------
    .. [1] A. Niculescu-Mizil, R. Caruana, "Obtaining calibrated probabilities from boosting", 2005.

    Examples
    --------
    >>> from calibrant.boosting.adaboost import AdaBoost
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> model = AdaBoost(n_estimators=8, random_state=0).fit(X, y)
    >>> boosting_panels(model, X, y)
    Panels(1 step, 4 steps, 8 steps; weight 6)
    """
    if not hasattr(model, "staged_raw_score"):
        raise InputError(
            "model must be a fitted AdaBoost, with staged_raw_score, but "
            f"{type(model).__name__} came. For other models pass the predictions of each step to "
            "reliability_panels."
        )
    if steps is None:
        last = max(1, getattr(model, "n_steps_", STEPS[-1]))
        steps = sorted({*(step for step in STEPS if step < last), min(last, STEPS[-1])})
    staged = zip(steps, model.staged_raw_score(X, steps=steps), strict=True)
    predictions = {f"{step} step{'s' if step != 1 else ''}": f for step, f in staged}
    rule = CurveOptions(bins, binning, band, level, curve=curve, bands=bands)
    return panels_of(read_several(y, predictions, sample_weight, model.classes_[1]), rule)


# --- reading ------------------------------------------------------------------------------------


def _checked_maps(maps: Any, predictions: Mapping[str, Any]) -> Mapping[str, Any]:
    if maps is None:
        return {}
    known = ", ".join(repr(name) for name in predictions)
    if not isinstance(maps, Mapping):
        raise ParameterError(
            f"maps must be a dict whose names are among {known}, but {type(maps).__name__} came."
        )
    for name in maps:
        if name not in predictions:
            raise ParameterError(f"the names of maps must be among {known}, but {name!r} came.")
    return {str(name): fitted for name, fitted in maps.items()}
