"""Reliability diagrams of several classes, drawn as panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.diagrams.class_curves import class_reliability
from calibrant.diagrams.draw.panels import panel_diagram
from calibrant.metrics.bin_sweep import Bins
from calibrant.other_words import in_our_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_our_words
def class_diagram(
    y: Any,
    p: Any,
    *,
    classes: Any = None,
    show: Any = None,
    top_label: bool = True,
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
    raw: Any = None,
    across: int | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Figure:
    """Reliability diagrams of a multiclass model: the top label first, then every class.

    Parameters
    ----------
    y, p, classes, show, top_label, sample_weight, raw
        As in `class_reliability`, which computes what is drawn.
    curve, bins, binning, band, bands, level, sigma, axes, replicates, random_state
        As in `reliability_curve`.
    across, ax, title
        As in `panel_diagram`.

    Returns
    -------
    matplotlib Figure
        Save it with ``savefig``; a notebook shows it. With ``ax``, the figure of those axes.

    Notes
    -----
    All panels have the same axes; above six they are broken into rows, so for many classes name
    some with ``show=``. Needs matplotlib: ``pip install 'calibrant[cli]'``. O(n log n) per panel.

    Examples
    --------
    >>> p = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]
    >>> figure = class_diagram(["ape", "bee", "cat", "bee"], p, show=["bee"])
    >>> [axes.get_label() for axes in figure.axes[::2]]
    ['reliability top label', 'reliability bee']
    """
    panels = class_reliability(
        y,
        p,
        classes=classes,
        show=show,
        top_label=top_label,
        curve=curve,
        bins=bins,
        binning=binning,
        band=band,
        bands=bands,
        level=level,
        sigma=sigma,
        axes=axes,
        replicates=replicates,
        random_state=random_state,
        sample_weight=sample_weight,
        raw=raw,
    )
    return panel_diagram(panels, across=across, ax=ax, title=title)
