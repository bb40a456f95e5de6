"""The value that is saved and loaded: a map, the labels it speaks of, and where it came from."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.door import read_scores
from calibrant.data.frozen import Frozen
from calibrant.data.labels import plain
from calibrant.errors import InputError
from calibrant.maps import Map, VectorMap, map_from_dict

__all__ = ["Fitted", "load", "save"]

Array = NDArray[np.float64]
Label = str | int | float | bool

FORMAT = "calibrant"
VERSION = 1
LARGEST_FILE = 1 << 30


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
        Facts about the fit: library version, weight and number of distinct scores; never data.

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
        object.__setattr__(self, "classes", tuple(_label(c) for c in self.classes))
        for name in ("params", "provenance"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        if not isinstance(self.map, Map):
            raise InputError(f"map must be a Map, but {type(self.map).__name__} came.")
        if isinstance(self.map, VectorMap):
            return
        object.__setattr__(self, "pos_label", _label(self.pos_label))
        if len(self.classes) != 2 or self.positive_column is None:
            raise InputError(
                f"classes must be two labels with pos_label among them, but {self.classes!r} and "
                f"{self.pos_label!r} came."
            )

    @property
    def positive_column(self) -> int | None:
        """Which column of predict_proba is pos_label's."""
        for column, label in enumerate(self.classes):
            if type(label) is type(self.pos_label) and label == self.pos_label:
                return column
        return None

    def calibrate(self, scores: Any) -> Array:
        """The calibrated probability of ``pos_label`` for each score, shape (n,)."""
        if isinstance(self.map, VectorMap):
            raise InputError(
                "a multiclass calibrator gives one probability per class: use predict_proba."
            )
        return self.map(read_scores(scores, positive_column=self.positive_column or 0))

    def predict_proba(self, scores: Any) -> Array:
        """The probability of each class, columns in the order of ``classes``."""
        if isinstance(self.map, VectorMap):
            return self.map(scores)
        p = self.calibrate(scores)
        pair = (1.0 - p, p) if self.positive_column == 1 else (p, 1.0 - p)
        return np.column_stack(pair)

    def predict(self, scores: Any) -> NDArray[Any]:
        """The more probable class of each score (the first in sorted order on ties)."""
        return np.asarray(self.classes)[np.argmax(self.predict_proba(scores), axis=1), ...]

    def to_fitted(self) -> Fitted:
        """Itself: what `save` asks of everything it is given."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that `save` writes."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "params": dict(self.params),
            "classes": list(self.classes),
            "pos_label": self.pos_label,
            "map": self.map.to_dict(),
            "provenance": dict(self.provenance),
        }

    @staticmethod
    def from_dict(document: Any) -> Fitted:
        """Read the object that `to_dict` wrote; anything else is refused with a reason."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise InputError(
                "this is not a calibrant calibrator: its 'format' is missing or other."
            )
        version = document.get("version")
        if type(version) is not int or version < 1:
            raise InputError(f"the file must carry a format version, but {version!r} came.")
        if version > VERSION:
            raise InputError(
                f"the file has format version {version}, but this calibrant reads up to {VERSION}. "
                "Upgrade: pip install --upgrade calibrant"
            )
        for name, kind in (
            ("classes", list),
            ("method", str),
            ("params", dict),
            ("provenance", dict),
        ):
            if not isinstance(document.get(name), kind):
                raise InputError(f"the file is damaged: {name!r} is missing or of a wrong type.")
        return Fitted(
            map_from_dict(document.get("map", {})),
            tuple(document["classes"]),
            document.get("pos_label"),
            document["method"],
            document["params"],
            document["provenance"],
        )


def save(calibrator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator to a JSON file, whole or not at all.

    Parameters
    ----------
    calibrator : fitted calibrator or Fitted
    path : path of the file

    Examples
    --------
    >>> import calibrant as cal, tempfile, os
    >>> c = cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "c.json")
    >>> cal.save(c, path)
    >>> bool((cal.load(path).calibrate([0.3]) == c.calibrate([0.3])).all())
    True
    """
    if not hasattr(calibrator, "to_fitted"):
        raise InputError(
            f"only a fitted calibrator or a Fitted can be saved, but {type(calibrator).__name__} "
            "came."
        )
    document = calibrator.to_fitted().to_dict()
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(Path(path), text + "\n")


def load(path: str | os.PathLike[str]) -> Fitted:
    """Read a calibrator file. Only data is read; nothing in the file is ever executed."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise InputError(f"{file} is larger than 1 GiB: this is not a calibrator.")
        text = file.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as wrong:
        raise InputError(f"{file} is not a calibrator file: {wrong}") from wrong
    try:
        return Fitted.from_dict(document)
    except RecursionError as wrong:
        raise InputError(f"{file} is not a calibrator file: it nests too deeply.") from wrong
    except InputError as wrong:
        raise InputError(f"{file}: {wrong}") from wrong


def write_atomically(path: Path, text: str) -> None:
    """Write to a temporary name in the same folder and rename, so that no reader sees half."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _label(value: Any) -> Label:
    value = plain(value)
    if type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value)):
        return value  # type: ignore[no-any-return]
    raise InputError(
        f"labels must be strings, numbers or booleans to be saved, but {value!r} of type "
        f"{type(value).__name__} came. Convert them, for example to strings."
    )


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InputError(f"the file is damaged: the number {text} is out of range.")
    return value


def _refuse_constant(name: str) -> float:
    raise InputError(f"the file is damaged: numbers must be finite, but {name} came.")
