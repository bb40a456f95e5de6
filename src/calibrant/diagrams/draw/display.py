"""A reliability diagram of a fitted model, made as scikit-learn's displays are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.data.labels import read_classes
from calibrant.data.to_numpy import plain
from calibrant.diagrams.curve_options import CurveOptions
from calibrant.diagrams.curve_value import Curve
from calibrant.diagrams.curves import compare_curves
from calibrant.diagrams.draw.figures import refuse_other_axes, render
from calibrant.diagrams.draw.reliability import comparison_diagram
from calibrant.errors import InputError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from calibrant.metrics.bin_sweep import Bins
from calibrant.other_words import in_our_words


@dataclass(frozen=True)
class ReliabilityDisplay:
    """A reliability diagram with its axes and its numbers.

    Make one with `from_estimator` or `from_predictions`, as with scikit-learn's
    ``CalibrationDisplay``. A notebook shows it. `reliability_diagram` has more options.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        The panel with the curve.
    curve_ : Curve
        The numbers: ``curve_.mean_p`` and ``curve_.fraction`` of each bin, and the band.
    name : str
        What the legend calls the curve.

    Examples
    --------
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = ReliabilityDisplay.from_predictions(y, p, name="forest", bins=2)
    >>> display.curve_.fraction.round(2).tolist()
    [0.33, 0.67]
    >>> display.ax_.get_xlabel(), display.figure_.axes[0] is display.ax_
    ('', True)
    """

    figure_: Figure
    ax_: Axes
    curve_: Curve
    name: str

    @classmethod
    @in_our_words
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        bins: Bins = 10,
        binning: str = "width",
        curve: str = "binned",
        band: str | None = "auto",
        bands: str = "auto",
        axes: str = "probability",
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        title: str | None = None,
    ) -> ReliabilityDisplay:
        """The diagram of a fitted classifier's probabilities for the rows X.

        Parameters
        ----------
        estimator : fitted classifier of two classes with ``predict_proba``
        X : rows that it was not fitted on
        y : array-like of shape (n,)
            Their labels.
        pos_label : label, default: the larger class
            The class whose probability is shown.
        name : str, default: the name of the estimator's class
        bins, binning, curve, band, bands, axes, sample_weight, ax, title
            As in `reliability_diagram`.
        """
        label, p = _probabilities(estimator, X, y, pos_label)
        return cls.from_predictions(
            y,
            p,
            bins=bins,
            binning=binning,
            curve=curve,
            band=band,
            bands=bands,
            axes=axes,
            sample_weight=sample_weight,
            pos_label=label,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            title=title,
        )

    @classmethod
    @in_our_words
    def from_predictions(
        cls,
        y: Any,
        p: Any,
        *,
        bins: Bins = 10,
        binning: str = "width",
        curve: str = "binned",
        band: str | None = "auto",
        bands: str = "auto",
        axes: str = "probability",
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        title: str | None = None,
    ) -> ReliabilityDisplay:
        """The diagram of probabilities that exist already.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels: any two values.
        p : array-like of shape (n,)
            The probability of ``pos_label`` for each row.
        name : str, default: "predictions"
        bins, binning, curve, band, bands, axes, sample_weight, pos_label, ax, title
            As in `reliability_diagram`.
        """
        refuse_other_axes(ax)
        rule = CurveOptions(
            bins=bins, binning=binning, band=band, bands=bands, curve=curve, axes=axes
        )
        both = compare_curves(y, p, rule=rule, sample_weight=sample_weight, pos_label=pos_label)
        name = "predictions" if name is None else name
        figure = comparison_diagram(both, (name, "before"), ax=ax, title=title)
        return cls(figure, figure.axes[0] if ax is None else ax, both.curves[0], name)

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows; figures of pyplot are shown by pyplot itself."""
        return render(self.figure_) if self.figure_.canvas.manager is None else None


def _probabilities(estimator: Any, X: Any, y: Any, pos_label: Any) -> tuple[Any, Any]:
    """The class that is shown, and what a fitted model of two classes gives it."""
    from calibrant.estimators.model_folds import model_classes, model_scores

    if not hasattr(estimator, "predict_proba"):
        raise ParameterError(
            f"estimator must have predict_proba, but {type(estimator).__name__} has not. Calibrate "
            "its scores first, such as with CalibratedClassifier."
        )
    classes, _ = model_classes(y, estimator)
    if len(classes) != 2:
        raise InputError(
            f"estimator must know two classes, but {len(classes)} came. Use "
            "calibrant.diagrams.class_diagram(y, estimator.predict_proba(X))."
        )
    known, label = read_classes([plain(c) for c in classes], pos_label)
    positive = int(known[1] == label)
    return label, model_scores(estimator, X, known, positive, "predict_proba")
