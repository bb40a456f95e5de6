"""The value that is saved and loaded: a map, the labels it speaks of, and where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.data.distributions import check_distributions, row_blocks
from calibrant.data.frozen import Frozen, thaw
from calibrant.data.json_facts import as_text, freeze_facts, is_text, shown
from calibrant.data.naming import as_in_fit
from calibrant.data.score_matrix import read_score_matrix
from calibrant.data.score_range import OnRange, ScoreRange, check_range
from calibrant.data.segment_column import NewSegments
from calibrant.data.segment_keys import segment_columns
from calibrant.data.to_numpy import like_series, plain, to_column, to_matrix
from calibrant.data.validation import read_scores
from calibrant.errors import InputError
from calibrant.estimators.fitted_words import as_html, in_lines
from calibrant.estimators.saved_labels import Label, check_label, check_labels, label_array
from calibrant.maps import Map, Segmented, VectorMap, map_from_dict
from calibrant.maps.base import check_depth
from calibrant.maps.inverse import ScoreAt, score_at

FORMAT = "calibrant"
VERSION = 2


class AppliedMap(NamedTuple):
    """A map, and how scores are read for it: what a calibrator and its saved value both predict by.

    Parameters
    ----------
    map : Map
    positive_column : int
        With two classes: which column of probabilities the map gives.
    expects : ScoreRange or None
        The scores that the map is for.
    labels : sequence of labels
        The classes or labels; a frame whose columns bear their names must have them in this order.
    provenance : mapping
        What is known of the fit: the names of several columns of scores or segments are among it.
    """

    map: Map
    positive_column: int
    expects: ScoreRange | None
    labels: Any
    provenance: Mapping[str, Any]

    def calibrate(self, scores: Any, segments: Any = None, on_range: str = "error") -> Any:
        """The probability of the positive class for each score, (n,); of a series, a series."""
        if isinstance(self.map, VectorMap):
            raise InputError(
                "a multiclass calibrator gives one probability per class: use predict_proba."
            )
        self._check_segments(segments)
        ordered = as_in_fit(scores, self.provenance, self.labels)
        clean = read_scores(ordered, positive_column=self.positive_column, classes=self.labels)
        clean = check_range(clean, self.expects, on_range)
        if isinstance(self.map, Segmented):
            given = segment_columns(segments, self._segment_names)
            columns = [to_column(column, "segments") for column in given]
            codes = self.map.find(columns)
            _warn_of_new(self.map, codes, columns)
            return like_series(scores, self.map.of_codes(clean, codes))
        return like_series(scores, self.map(clean))

    def predict_proba(self, scores: Any, segments: Any = None, on_range: str = "error") -> Array:
        """The probability of each class, shape (n, k)."""
        if isinstance(self.map, VectorMap):
            return self.map(self._rows(self.map, scores, segments, on_range))
        p = np.asarray(self.calibrate(scores, segments, on_range))
        return np.column_stack((1.0 - p, p) if self.positive_column == 1 else (p, 1.0 - p))

    def predict(self, scores: Any, segments: Any = None, on_range: str = "error") -> Index:
        """The column of the most probable class of each row (the first on ties).

        For labels that do not exclude each other, (n, k) of 0 and 1: who is more probable than not.
        """
        if not isinstance(self.map, VectorMap):
            p = self.predict_proba(scores, segments, on_range)
            return np.asarray(np.argmax(p, axis=1))
        rows = self._rows(self.map, scores, segments, on_range)
        if not self.map.distribution:
            return (self.map(rows) >= 0.5).astype(np.int64)
        best = np.empty(len(rows), dtype=np.intp)
        for block in row_blocks(len(rows), self.map.n_classes):
            best[block] = np.argmax(self.map(rows[block]), axis=1)
        return best

    def score_at(self, probability: Any) -> ScoreAt:
        """The score at which the probability of the positive class reaches a value."""
        return score_at(self.map, probability)

    def _rows(self, fitted: VectorMap, scores: Any, segments: Any, on_range: str) -> NDArray[Any]:
        """Rows of scores of the kind of the fit; distributions if the map takes such."""
        self._check_segments(segments)
        ordered = as_in_fit(scores, self.provenance, self.labels)
        rows = read_column_scores(ordered, fitted.n_columns, self.labels)
        clean = check_range(rows, self.expects, on_range)
        if fitted.reads == "probability" and on_range != "allow":
            check_distributions(clean)
        return clean

    @property
    def _segment_names(self) -> tuple[str, ...]:
        """The names of several columns of segments, if the fit knew them."""
        known = self.provenance.get("segment_column")
        several = isinstance(known, (list, tuple)) and all(isinstance(n, str) for n in known)
        return tuple(known) if several and known is not None else ()

    def _check_segments(self, segments: Any) -> None:
        segmented = self.map.segments is not None
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


def _warn_of_new(fitted: Segmented, codes: Index, columns: list[NDArray[Any]]) -> None:
    """Warn if most rows are of segments that were never seen."""
    new = fitted.is_new(codes)
    if fitted.seen and new.any():
        row = int(np.argmax(new))
        first = tuple(plain(column[row]) for column in columns)
        example = first if len(first) > 1 else first[0]
        found = NewSegments(len(codes), int(np.count_nonzero(new)), example)
        found.warn_of_most(fitted.seen, "Are segments spelled as in the fit?")


def read_column_scores(scores: Any, columns: int, labels: Any) -> NDArray[Any]:
    """Finite scores of shape (n, columns); of one column also (n,).

    Columns that bear the names of the classes or labels must be in the order of ``labels``.
    """
    if columns > 1:
        return read_score_matrix(scores, columns, classes=labels)
    matrix = to_matrix(scores, "scores")
    if matrix.ndim == 2 and matrix.shape[1] != 1:
        raise InputError(
            f"scores must have one column, that of the only question, but {matrix.shape[1]} came."
        )
    return read_scores(matrix)[:, None]


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(Frozen):
    """A fitted calibrator as a plain value: what `load` returns and `save` writes.

    Parameters
    ----------
    map : Map
    classes : tuple of labels
        The labels, of JSON types (``"1"``, ``1`` and ``True`` are three different labels), in the
        order of the columns: sorted, unless the fit of several classes named another.
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
    score_range : ScoreRange, optional
        The scores of the fit: whether they were probabilities, and their smallest and largest.
        None if that is not known (files of format version 1). Then scores must be probabilities
        only if the map takes their logit.

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
    score_range: ScoreRange | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.method, str):
            raise InputError(f"method must be text, but {shown(self.method)} came.")
        object.__setattr__(self, "method", as_text(self.method))
        if not isinstance(self.map, Map):
            raise InputError(f"map must be a Map, but {type(self.map).__name__} came.")
        object.__setattr__(self, "classes", check_labels(self.classes))
        if not isinstance(self.score_range, ScoreRange | None):
            came = shown(self.score_range)
            raise InputError(f"score_range must be a ScoreRange or None, but {came} came.")
        for name in ("params", "provenance"):
            object.__setattr__(self, name, freeze_facts(getattr(self, name), name))
        if isinstance(self.map, VectorMap):
            k = self.map.n_classes
            if len(self.classes) != k or self.pos_label is not None:
                raise InputError(
                    f"this map gives {k} probabilities, so classes must be {k} labels and "
                    f"pos_label None, but {len(self.classes)} labels and {shown(self.pos_label)} "
                    "came."
                )
            return
        object.__setattr__(self, "pos_label", check_label(self.pos_label))
        if len(self.classes) != 2 or self.positive_column is None:
            raise InputError(
                "classes must be two labels with pos_label among them, but "
                f"{shown(self.classes)} and {shown(self.pos_label)} came."
            )

    @property
    def positive_column(self) -> int | None:
        """Which column of predict_proba is pos_label's."""
        for column, label in enumerate(self.classes):
            if type(label) is type(self.pos_label) and label == self.pos_label:
                return column
        return None

    @property
    def expects(self) -> ScoreRange | None:
        """The scores that it is for: those of the fit, or what the map says of them."""
        if self.score_range is None and self.map.takes_probabilities:
            return ScoreRange("probability", 0.0, 1.0)
        return self.score_range

    def calibrate(self, scores: Any, segments: Any = None, *, on_range: OnRange = "error") -> Any:
        """The calibrated probability of ``pos_label`` for each score, shape (n,).

        A NumPy array; of a pandas or Polars series, a series with its index. ``segments`` says
        which segment each row is in: needed by a calibrator of segments, and refused by all others.
        Segments never seen get the map of all rows; most rows of such are a CalibrationWarning.
        Where the scores of the fit were probabilities, so must these be: others are refused
        (``on_range="error"``), moved to 0 or 1 (``"clip"``) or taken as they are (``"allow"``).
        """
        return self._applied.calibrate(scores, segments, on_range)

    def score_at(self, probability: Any) -> ScoreAt:
        """Which score has this probability of ``pos_label``? A threshold, to the exact double.

        For maps that rise or fall throughout; others are refused. Where the map is flat the answer
        has both ends, where it jumps over the probability the first score beyond.

        >>> from calibrant.maps import Piecewise
        >>> fitted = Fitted(Piecewise.step([0.5], [0.1, 0.8]), (0, 1), 1)
        >>> fitted.score_at(0.3)  # no score has 30 %: from 0.5 on it is 80 %
        ScoreAt(score=0.5, low=0.5, high=0.5, probability=0.8, rising=True)
        """
        return self._applied.score_at(probability)

    @property
    def _applied(self) -> AppliedMap:
        column = self.positive_column or 0
        return AppliedMap(self.map, column, self.expects, self.classes, self.provenance)

    def predict_proba(
        self, scores: Any, segments: Any = None, *, on_range: OnRange = "error"
    ) -> Array:
        """The probability of each class, columns in the order of ``classes``.

        ``segments`` and ``on_range`` are as in `calibrate`.
        """
        return self._applied.predict_proba(scores, segments, on_range)

    def predict(
        self, scores: Any, segments: Any = None, *, on_range: OnRange = "error"
    ) -> NDArray[Any]:
        """The most probable class of each row (the first in sorted order on ties).

        For labels that do not exclude each other, (n, k) of 0 and 1: who is more probable than not.
        """
        best = self._applied.predict(scores, segments, on_range)
        return best if best.ndim == 2 else label_array(self.classes).take(best)

    def __repr__(self) -> str:
        return "\n  ".join(in_lines(self, f"map: {self.map!r}"))

    def _repr_html_(self) -> str:
        return as_html(in_lines(self, f"map: {self.map!r}"))

    def to_fitted(self) -> Fitted:
        """Itself: what `save` asks of everything it is given."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that `save` writes."""
        check_depth(self.map)
        return document_of(self, FORMAT, VERSION, {"map": self.map.to_dict()})

    @staticmethod
    def from_dict(document: Any) -> Fitted:
        """Read the object that `to_dict` wrote; anything else is refused with a reason."""
        check_header(document, FORMAT, VERSION)
        return Fitted(map_from_dict(document.get("map", {})), *fields_of(document))


def refuse_models(calibrator: Any) -> None:
    """Refuse a model with its calibrator where the calibrator alone would be taken.

    Whatever is made of it would take scores, where the object itself takes rows. Classes of such
    objects say so by ``takes_rows``.
    """
    if isinstance(calibrator, type) or not getattr(calibrator, "takes_rows", False):
        return
    raise InputError(
        f"a calibrator of scores must come, but {type(calibrator).__name__} is a model with its "
        "calibrator: it takes rows, and its model cannot be a part of this. Pass its to_fitted(), "
        "the calibrator of the model's scores, and give that the scores of the same model. To have "
        "both in one, pickle it, or write ONNX: calibrant.to_onnx of a CalibratedClassifier, or "
        "calibrant.compose_onnx of a model that you convert yourself."
    )


def document_of(fitted: Any, form: str, version: int, content: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of a fitted calibrator; ``content`` holds its map, or what stands for it."""
    return {
        "format": form,
        "version": version,
        "method": fitted.method,
        "params": thaw(fitted.params),
        "classes": list(fitted.classes),
        "pos_label": fitted.pos_label,
        **content,
        "score_range": None if fitted.score_range is None else fitted.score_range.to_dict(),
        "provenance": thaw(fitted.provenance),
    }


def fields_of(document: Mapping[str, Any]) -> tuple[Any, ...]:
    """What follows the map in a fitted calibrator, from a document whose header was checked."""
    return (
        tuple(document["classes"]),
        document.get("pos_label"),
        document["method"],
        document["params"],
        document["provenance"],
        ScoreRange.from_dict(document.get("score_range")),
    )


def check_header(document: Any, form: str, newest: int) -> None:
    """Refuse a document that is not a calibrator file of a known version."""
    check_version(document, form, newest, "a calibrant calibrator")
    kinds = {"classes": list, "method": str, "params": dict, "provenance": dict}
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise InputError(f"the file is damaged: {name!r} is missing or of a wrong type.")
    if not is_text(document["method"]):
        raise InputError("the file is damaged: its 'method' is no text.")


def check_version(document: Any, form: str, newest: int, what: str) -> None:
    """Refuse a document of another format, or of a version that is not known."""
    if not isinstance(document, Mapping) or document.get("format") != form:
        came = document.get("format") if isinstance(document, Mapping) else document
        raise InputError(
            f"this is not {what}: its 'format' must be {form!r}, but {shown(came)} came."
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
