"""What a report is: a frozen value that holds all that the page shows."""

from __future__ import annotations

import hashlib
import html
import os
import platform
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen
from calibrant.diagrams.curve import Curve
from calibrant.diagrams.map_lines import MapCurve
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.fitted import Fitted
from calibrant.metrics.evaluating import Evaluation, MulticlassEvaluation
from calibrant.metrics.groups import Multicalibration
from calibrant.outputs import find_target, keep_apart, write_whole
from calibrant.result_tables import json_ready, worded
from calibrant.version import __version__


@dataclass(frozen=True, eq=False)
class PredictionSpread(Frozen):
    """How predictions are spread: the share of all weight between neighbouring edges."""

    edges: Array
    share: Array


@dataclass(frozen=True, eq=False)
class Method(Frozen):
    """A line of the leaderboard, and its curve.

    Attributes
    ----------
    name : str
    log_loss, log_loss_se, brier, brier_se : float
        Mean loss out of fold, and its standard error (None if unknown).
    gain, gain_low, gain_high : float or None
        Log loss of the scores as they are minus its own: positive is better; with its interval.
    auc, auc_change : float or None
        The AUC, and what it gained over that of the scores; of these themselves only where they
        are points, of which one rate for all rows is kept.
    distinct : int or None
        Different predictions.
    curve : Curve
        Its reliability curve out of fold.
    spread, logit_spread : PredictionSpread
        Its predictions in cells of the axis, and of the axis of log-odds.
    chosen : bool
    """

    name: str
    log_loss: float
    brier: float
    curve: Curve
    spread: PredictionSpread
    logit_spread: PredictionSpread
    log_loss_se: float | None = None
    brier_se: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    auc: float | None = None
    auc_change: float | None = None
    distinct: int | None = None
    chosen: bool = False


@dataclass(frozen=True, eq=False)
class Panel(Frozen):
    """A segment of the rows, or a class against the rest: curves and a few figures.

    Attributes
    ----------
    name : str
    before, after : Curve
    figures : mapping of str to float
        ``weight``, ``events``, ``observed`` with ``low`` and ``high`` (its interval), and the mean
        prediction ``before`` and ``after``.
    """

    name: str
    before: Curve
    after: Curve
    figures: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", MappingProxyType(dict(self.figures)))


@dataclass(frozen=True)
class Recipe:
    """How to apply the map somewhere: a title, the lines to copy, and what to know of them."""

    title: str
    code: str
    note: str = ""


class PageValue(Frozen):
    """A value that is shown as a page, with a verdict of two sentences at its top."""

    verdict: tuple[str, str]
    facts: Mapping[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))
        super().__post_init__()

    @abstractmethod
    def to_html(self) -> str:
        """The page: one file that needs no other and no network."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all."""
        find_target(path)  # refused before the page is made
        write_whole(path, self.to_html())
        return Path(path)

    def _repr_html_(self) -> str:
        """The verdict, for notebooks."""
        first, second = (html.escape(sentence) for sentence in self.verdict)
        return f"<p><b>{first}</b> {second}</p>"

    def __str__(self) -> str:
        return " ".join(self.verdict)


@dataclass(frozen=True, eq=False, repr=False)
class Report(PageValue):
    """Everything that a report shows, as a value: the same data give the same page, byte for byte.

    Attributes
    ----------
    title : str
    verdict : pair of str
        What to do, and how much better it is.
    how : str
        How the figures were obtained.
    methods : tuple of Method
        The leaderboard: the scores as they are first, then the others, best first.
    evaluation : Evaluation or MulticlassEvaluation
        All measures of the chosen method, beside those of the scores as they are.
    map_curve : MapCurve or None
        The chosen map, if it is one of a single score.
    panels : tuple of Panel
        Segments of the rows, or the classes of a multiclass model.
    panel_kind : {"segment", "class"}
    advice : tuple of str
        What deserves a look, in sentences.
    facts : mapping of str to str
        Where it comes from: rows, weights, files, fingerprint of the data, versions.
    recipes : tuple of Recipe
        How to apply the chosen map.
    fitted : Fitted or None
        The chosen map as a value: ``cal.save(report.fitted, "calibrator.json")``.
    level : float
        Of all intervals.
    caution : bool
        Whether the verdict is about the scores themselves (one class, their direction, that they
        say nothing, or too few rows): then nothing on the page is green.
    groups : Multicalibration or None
        Where the chosen map is wrong, if features were given: the worst groups of rows.
    """

    title: str
    verdict: tuple[str, str]
    how: str
    methods: tuple[Method, ...]
    evaluation: Evaluation | MulticlassEvaluation
    map_curve: MapCurve | None = None
    panels: tuple[Panel, ...] = ()
    panel_kind: str = "segment"
    advice: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    recipes: tuple[Recipe, ...] = ()
    fitted: Fitted | None = None
    level: float = 0.95
    caution: bool = False
    groups: Multicalibration | None = None

    def __post_init__(self) -> None:
        for name in ("methods", "panels", "advice", "recipes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        super().__post_init__()
        if not self.methods or sum(method.chosen for method in self.methods) != 1:
            raise InputError("a report needs methods, exactly one of which is the chosen one.")

    @property
    def raw(self) -> Method:
        """The scores as they are."""
        return self.methods[0]

    @property
    def chosen(self) -> Method:
        """What the verdict is about."""
        return next(method for method in self.methods if method.chosen)

    def to_html(self) -> str:
        """The page: one file that needs no other and no network."""
        from calibrant.reports.page import to_html

        return to_html(self)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready object; an infinite number is the string "inf" or "-inf"."""
        document = {
            name: json_ready(value)
            for name, value in self._items()
            if name not in ("evaluation", "fitted")
        }
        document["evaluation"] = self.evaluation.to_dict()
        document["fitted"] = None if self.fitted is None else self.fitted.to_dict()
        return document

    def _repr_html_(self) -> str:
        """The verdict and the measures, for notebooks."""
        return super()._repr_html_() + self.evaluation._repr_html_()

    def __repr__(self) -> str:
        count = len(self.methods) - 1
        plural = "s" if count != 1 else ""
        return f"Report({self.title!r}, {count} method{plural}, {self.chosen.name!r} chosen)"


# --- Where a report comes from: counts, files, a fingerprint of the data, and versions ------------


def source_facts(source: Any) -> dict[str, str]:
    """What the caller says of the data: a name, several, or a mapping of words to values.

    >>> source_facts("scores.csv"), source_facts({"date": "2026-03-01"})
    ({'source': 'scores.csv'}, {'date': '2026-03-01'})
    """
    if source is None:
        return {}
    if isinstance(source, (str, os.PathLike)):
        return {"source": os.fspath(source)}
    if isinstance(source, Mapping):
        return {str(key): worded(value) for key, value in source.items() if value is not None}
    if isinstance(source, (list, tuple)):
        return {"source": worded(source)}
    raise InputError(
        "source must be a name, a list of names or a mapping of words to values, but "
        f"{type(source).__name__} came."
    )


def source_files(source: Any) -> list[str]:
    """The files among what the caller says of the data.

    >>> source_files({"files": ["no such file.csv"], "date": "2026-03-01"})
    []
    """
    if isinstance(source, Mapping):
        source = list(source.values())
    if isinstance(source, (list, tuple)):
        return [file for item in source for file in source_files(item)]
    named = isinstance(source, (str, os.PathLike)) and os.path.isfile(source)
    return [os.fspath(source)] if named else []


def check_texts(**texts: Any) -> None:
    """Refuse words for the page that are no text."""
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ParameterError(f"{name} must be a str, but {type(value).__name__} came.")


def check_output(output: Any, *sources: Any) -> None:
    """Refuse, before anything is made, an output that is among the files of its sources."""
    if output is not None:
        find_target(output)
        keep_apart({"the output": output}, source_files(sources))


def fingerprint(*columns: NDArray[Any]) -> str:
    """SHA-256 of arrays: the same rows in any order, and as a table, have the same one."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"


def map_facts(fitted: Fitted | None) -> dict[str, str]:
    """What was fitted."""
    if fitted is None:
        return {}
    given = {k: v for k, v in fitted.params.items() if k not in ("pos_label", "classes")}
    facts = {"method": fitted.method or "(not said)"}
    if given:
        facts["parameters"] = ", ".join(f"{k}={v}" for k, v in given.items())
    return {**facts, "map": repr(fitted.map)}


def version_facts() -> dict[str, str]:
    """What computed it."""
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return {
        "calibrant": __version__,
        "with": f"Python {platform.python_version()}, {others}",
    }
