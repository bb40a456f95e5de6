"""The value that is saved and loaded: a map, the labels it speaks of, and where it came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.door import read_scores
from calibrant.data.facts import as_text, fits_64_bits, freeze_facts, is_text, shown
from calibrant.data.frozen import Frozen, thaw
from calibrant.data.labels import plain
from calibrant.data.matrix import read_score_matrix
from calibrant.errors import InputError
from calibrant.maps import Map, Segmented, Softmax, VectorMap, VectorMixture, map_from_dict

__all__ = ["Fitted", "Label", "check_header", "check_label", "check_labels", "label_array"]

Array = NDArray[np.float64]
Label = str | int | float | bool

FORMAT = "calibrant"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Fitted(Frozen):
    """A fitted calibrator as a plain value: what `load` returns and `save` writes.

    Parameters
    ----------
    map : Map
    classes : tuple of labels, sorted
        The labels, of JSON types (``"1"``, ``1`` and ``True`` are three different labels).
    pos_label : label
        The class whose probability the map gives; None for a multiclass map.
    method : str
        The name of the calibrator that made the map.
    params : dict
        Its parameters.
    provenance : dict
        Facts about the fit: the library's version, how much data there was, measures before and
        after where they are known, and what `save` was told; never the data. Like ``params`` it is
        read-only to the bottom, lists in it are tuples, and `to_dict` gives plain ones.

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> f = Fitted(Piecewise.step([0.5], [0.1, 0.8]), ("ham", "spam"), "spam", "Histogram")
    >>> f.predict_proba([0.7]).round(3).tolist(), f.predict([0.2, 0.7]).tolist()
    ([[0.2, 0.8]], ['ham', 'spam'])
    """

    map: Map
    classes: tuple[Label, ...]
    pos_label: Label | None
    method: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.method, str):
            raise InputError(f"method must be text, but {shown(self.method)} came.")
        object.__setattr__(self, "method", as_text(self.method))
        if not isinstance(self.map, Map):
            raise InputError(f"map must be a Map, but {type(self.map).__name__} came.")
        object.__setattr__(self, "classes", check_labels(self.classes))
        for name in ("params", "provenance"):
            object.__setattr__(self, name, freeze_facts(getattr(self, name), name))
        if isinstance(self.map, VectorMap):
            self._check_classes(self.map.n_classes)
            return
        object.__setattr__(self, "pos_label", check_label(self.pos_label))
        if len(self.classes) != 2 or self.positive_column is None:
            raise InputError(
                "classes must be two labels with pos_label among them, but "
                f"{shown(self.classes)} and {shown(self.pos_label)} came."
            )

    def _check_classes(self, k: int) -> None:
        if len(self.classes) != k or self.pos_label is not None:
            raise InputError(
                f"this map gives {k} probabilities, so classes must be {k} labels and pos_label "
                f"None, but {len(self.classes)} labels and {shown(self.pos_label)} came."
            )

    @property
    def positive_column(self) -> int | None:
        """Which column of predict_proba is pos_label's."""
        for column, label in enumerate(self.classes):
            if type(label) is type(self.pos_label) and label == self.pos_label:
                return column
        return None

    def calibrate(self, scores: Any, segments: Any = None) -> Array:
        """The calibrated probability of ``pos_label`` for each score, shape (n,).

        ``segments`` says which segment each row is in: needed by a calibrator of segments, and
        refused by all others.
        """
        if isinstance(self.map, VectorMap):
            raise InputError(
                "a multiclass calibrator gives one probability per class: use predict_proba."
            )
        self._check_segments(segments)
        clean = read_scores(scores, positive_column=self.positive_column or 0)
        if isinstance(self.map, Segmented):
            return self.map(clean, segments)
        return self.map(clean)

    def _check_segments(self, segments: Any) -> None:
        segmented = isinstance(self.map, Segmented)
        if segmented and segments is None:
            raise InputError(
                "this calibrator has a map for each segment, so each row's segment must be given, "
                "but none came. Pass segments=[...]; for the map of all rows use map.default."
            )
        if segments is not None and not segmented:
            raise InputError(
                "segments must not be given: this calibrator has one map for all rows. Leave them "
                "out, or fit a SegmentedCalibrator."
            )

    def predict_proba(self, scores: Any, segments: Any = None) -> Array:
        """The probability of each class, columns in the order of ``classes``."""
        if isinstance(self.map, VectorMap):
            self._check_segments(segments)
            return self.map(self._columns(scores, self.map))
        p = self.calibrate(scores, segments=segments)
        pair = (1.0 - p, p) if self.positive_column == 1 else (p, 1.0 - p)
        return np.column_stack(pair)

    @staticmethod
    def _columns(scores: Any, fitted: VectorMap) -> NDArray[Any]:
        if fitted.n_columns == 1:
            return read_scores(scores)[:, None]
        wanted = isinstance(fitted, (Softmax, VectorMixture)) and fitted.input == "probability"
        return read_score_matrix(scores, fitted.n_columns, probabilities=wanted)

    def predict(self, scores: Any, segments: Any = None) -> NDArray[Any]:
        """The most probable class of each row (the first in sorted order on ties).

        For labels that do not exclude each other, (n, k) of 0 and 1: who is more probable than not.
        """
        p = self.predict_proba(scores, segments=segments)
        if isinstance(self.map, VectorMap) and not self.map.distribution:
            return (p >= 0.5).astype(np.int64)
        labels: NDArray[Any] = label_array(self.classes)[np.argmax(p, axis=1)]
        return labels

    def to_fitted(self) -> Fitted:
        """Itself: what `save` asks of everything it is given."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that `save` writes."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "params": thaw(self.params),
            "classes": list(self.classes),
            "pos_label": self.pos_label,
            "map": self.map.to_dict(),
            "provenance": thaw(self.provenance),
        }

    @staticmethod
    def from_dict(document: Any) -> Fitted:
        """Read the object that `to_dict` wrote; anything else is refused with a reason."""
        check_header(document, FORMAT, VERSION)
        return Fitted(
            map_from_dict(document.get("map", {})),
            tuple(document["classes"]),
            document.get("pos_label"),
            document["method"],
            document["params"],
            document["provenance"],
        )


def check_header(document: Any, form: str, newest: int) -> None:
    """What every calibrator file must say of itself before its content is looked at."""
    if not isinstance(document, Mapping) or document.get("format") != form:
        came = document.get("format") if isinstance(document, Mapping) else document
        raise InputError(
            f"this is not a calibrant calibrator: its 'format' must be {form!r}, but "
            f"{shown(came)} came."
        )
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise InputError(
            "the file must carry a format version, a whole number from 1, but "
            f"{shown(version)} came."
        )
    if version > newest:
        raise InputError(
            f"the file has format version {shown(version)}, but this calibrant reads up to "
            f"{newest}. Upgrade: pip install --upgrade calibrant"
        )
    kinds = {"classes": list, "method": str, "params": dict, "provenance": dict}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise InputError(f"the file is damaged: {name!r} is missing or of a wrong type.")
    if not is_text(document["method"]):
        raise InputError("the file is damaged: its 'method' is no text.")


def check_label(value: Any) -> Label:
    """A label that a file can hold, as a Python value."""
    value = plain(value)
    kind = type(value)
    if kind is bool or (kind is int and fits_64_bits(value)):
        return value  # type: ignore[no-any-return]
    if (kind is float and math.isfinite(value)) or (kind is str and is_text(value)):
        return value  # type: ignore[no-any-return]
    raise InputError(
        "labels must be strings, numbers or booleans to be saved (integers of 64 bits), but "
        f"{shown(value)} of type {kind.__name__} came. Convert them, for example to strings."
    )


def check_labels(values: Any) -> tuple[Label, ...]:
    """Labels that a file can hold, each of them once; 1, 1.0, True and "1" are different."""
    labels = tuple(check_label(value) for value in values)
    if len({(type(label), label) for label in labels}) < len(labels):
        raise InputError(f"classes must be different labels, but {shown(labels)} came.")
    return labels


def label_array(labels: tuple[Label, ...]) -> NDArray[Any]:
    """The labels as an array that gives each of them back as it is, whatever NumPy thinks.

    >>> label_array(("b", "a")).dtype.kind, label_array((1, "1")).tolist()
    ('U', [1, '1'])
    """
    array = np.asarray(labels)
    kept = [(type(value), value) for value in array.tolist()]
    if kept != [(type(label), label) for label in labels]:
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
    return array
