"""The value that is saved and loaded: a map, the labels it speaks of, and where it came from."""

from __future__ import annotations

import hashlib
import html
import importlib
import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.data.columns import (
    as_in_fit,
    check_class_columns,
    like_series,
    plain,
    to_column,
    to_matrix,
)
from calibrant.data.documents import (
    as_text,
    check_saved,
    fits_64_bits,
    freeze_facts,
    is_text,
    shown,
)
from calibrant.data.door import check_distributions, read_scores, row_blocks
from calibrant.data.frozen import Frozen, thaw
from calibrant.data.scale import OnRange, ScoreRange, check_range
from calibrant.data.score_matrix import read_score_matrix
from calibrant.data.segments import NewSegments, segment_columns
from calibrant.errors import InputError
from calibrant.rules.base import Map, VectorMap, check_depth, map_from_dict
from calibrant.rules.piecewise import ScoreAt, score_at
from calibrant.rules.plan.tables import TreeParts
from calibrant.rules.segmented import Segmented

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
        """The most probable class of each row (of a tie the first of ``classes``).

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


def tree_parts_of(calibrator: Any) -> TreeParts | None:
    """The trees of a calibrator that has some; None for all others."""
    parts: TreeParts | None = getattr(value_of(calibrator), "tree_parts", None)
    return parts


# --- What an export is given: a map, or anything that holds one -----------------------------------


def map_of(calibrator: Any) -> Map:
    """The map of a fitted calibrator, of what `load` returns, or a map itself.

    >>> from calibrant.maps import Identity
    >>> map_of(Identity())
    Identity()
    """
    refuse_models(calibrator)
    map_ = getattr(calibrator, "map_", calibrator)
    if isinstance(map_, Map):
        return map_
    found = fitted_of(calibrator)
    if found is not None:
        return found.map
    raise InputError(
        "calibrator must be a fitted calibrator, what load returns, or a map, but "
        f"{came(calibrator)} came. Fit one, or read its file with calibrant.load."
    )


def value_of(calibrator: Any) -> Any:
    """The value that `save` writes: a `Fitted`, or a `LocalFitted` where more of a row than its
    scores is needed; None for a bare map and for what is no calibrator."""
    if isinstance(calibrator, (Map, type)) or not hasattr(calibrator, "to_fitted"):
        return None
    refuse_models(calibrator)
    return calibrator.to_fitted()


def fitted_of(calibrator: Any) -> Fitted | None:
    """The fitted value with its labels; None for a bare map.

    A calibrator that needs more of a row than its scores has no map to write, and is refused.
    """
    fitted: Any = value_of(calibrator)
    if fitted is None or isinstance(fitted, Fitted):
        return fitted
    plain: Fitted | None = fitted.plain
    if plain is not None:
        return plain
    raise InputError(
        f"{fitted.method} cannot be exported: it is no function of the score alone, but needs "
        "each row's features or interval and the calibration rows it keeps. Save it with "
        "calibrant.save and apply it with calibrant.load(...).predict_proba."
    )


def fingerprint(map_: Map) -> str:
    """Twelve characters that identify a map: the first of the SHA-256 of its JSON.

    >>> from calibrant.maps import Identity
    >>> fingerprint(Identity())
    'b98464d2bb19'
    """
    text = json.dumps(map_.to_dict(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def came(value: object) -> str:
    """What came instead of a calibrator, in a word or two.

    >>> came(0.5), came(Map)
    ('float', 'the class Map')
    """
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


# --------------------------------------------------------------------------------------------------
# What a local calibrator is once fitted: a frozen rule, and the value that is saved and loaded


LOCAL_FORMAT = "calibrant-local"
LOCAL_VERSION = 2


@dataclass(frozen=True)
class RowInputs:
    """What is known of each row beside its score: its features, or the ends of its interval.

    ``progress`` says whether to show a bar while a rule is applied to the rows.
    """

    features: Any = None
    lower: Any = None
    upper: Any = None
    progress: bool = False


class Rule(Frozen):
    """A frozen function of scores and rows; subclasses are frozen dataclasses.

    Scores are (n,) for two classes and (n, k) for more. The columns of the result are in the order
    of the codes: of two classes, the positive one is the last.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    @abstractmethod
    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        """The probabilities of the classes, shape (n, k)."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """How many columns the result has."""

    @property
    def only_map(self) -> Map | None:
        """The map of the score, if the rule is nothing else; None if it looks at more."""
        return None

    def tree_parts(self, facts: Any) -> TreeParts | None:
        """Its trees, as exports take them, if it is made of trees."""
        return None

    @abstractmethod
    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What JSON can hold, and the arrays by name."""

    @classmethod
    @abstractmethod
    def from_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The rule of such parts; anything else is refused with a reason."""


@dataclass(frozen=True, eq=False)
class ClassScores(Rule):
    """A map from a row's scores to its probabilities. Nothing else of the row counts."""

    kind: ClassVar[str] = "class scores"

    map: VectorMap

    @property
    def n_classes(self) -> int:
        return self.map.n_columns

    @property
    def only_map(self) -> Map | None:
        return self.map

    def __call__(self, scores: Array, rows: RowInputs) -> Array:
        return self.map(scores)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        check_depth(self.map)
        return {"map": self.map.to_dict()}, {}

    @classmethod
    def from_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        found = Map.from_dict(state.get("map"))  # type: ignore[arg-type]
        fine = isinstance(found, VectorMap) and not arrays
        check_saved(fine, "its map must be one of several classes.")
        return cls(found)  # type: ignore[arg-type]


def read_columns(scores: Any, classes: Sequence[Any] | NDArray[Any], positive_column: int) -> Array:
    """Finite scores: (n,) of the positive class for two classes, (n, k) for more."""
    k = len(classes)
    if k == 2:
        return read_scores(scores, positive_column=positive_column, classes=classes)
    matrix = to_matrix(scores, "scores")
    if matrix.ndim != 2 or matrix.shape[1] != k:
        raise InputError(
            f"scores must have one column for each of the {k} classes, but their shape is "
            f"{matrix.shape}. If y lacks some of the classes, name them all: classes=[...]."
        )
    check_class_columns(scores, classes, "scores")
    return np.column_stack([read_scores(matrix[:, j]) for j in range(k)])


class AppliedRule(NamedTuple):
    """A rule and how scores are read for it: calibrators and saved values predict by it.

    ``positive_column`` says, with two classes, which column of probabilities is pos_label's.
    ``expects`` are the scores that the rule is for. ``provenance`` is what is known of the fit: the
    names of the columns of scores are among it.
    """

    rule: Rule
    classes: Sequence[Any] | NDArray[Any]
    positive_column: int
    expects: ScoreRange | None
    provenance: Mapping[str, Any]

    def read(self, scores: Any, on_range: str) -> Array:
        """New scores as the rule takes them, checked against the range of the fit."""
        scores = as_in_fit(scores, self.provenance, self.classes)
        clean = read_columns(scores, self.classes, self.positive_column)
        return check_range(clean, self.expects, on_range)

    def predict_proba(self, scores: Any, rows: RowInputs, on_range: str) -> Array:
        """The probability of each class, columns in the order of the classes."""
        p = self.rule(self.read(scores, on_range), rows)
        return p if self.positive_column == 1 else p[:, ::-1]

    def calibrate(self, scores: Any, rows: RowInputs, on_range: str) -> Any:
        """With two classes: the probability of pos_label, shape (n,)."""
        if len(self.classes) != 2:
            raise InputError(
                "calibrate gives the probability of one of two classes, but "
                f"{len(self.classes)} were fitted. Use predict_proba."
            )
        p = self.predict_proba(scores, rows, on_range)
        return like_series(scores, p[:, self.positive_column])

    def predict(self, scores: Any, rows: RowInputs, on_range: str) -> Index:
        """The column of the most probable class of each row (the first on ties)."""
        return np.asarray(np.argmax(self.predict_proba(scores, rows, on_range), axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class LocalFitted(Frozen):
    """A fitted local calibrator as a plain value: what `load` returns for it.

    Parameters
    ----------
    rule : Rule
    classes : tuple of labels
        In the order of the columns of probabilities, which is sorted unless the fit named another.
    pos_label : label
        With two classes: the one whose probability `calibrate` gives; else None.
    method, params, provenance, score_range
        As in `Fitted`.
    """

    rule: Rule
    classes: tuple[Label, ...]
    pos_label: Label | None
    method: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    score_range: ScoreRange | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_labels(self.classes))
        for name in ("params", "provenance"):
            object.__setattr__(self, name, freeze_facts(getattr(self, name), name))
        if not isinstance(self.rule, Rule):
            raise InputError(f"rule must be a Rule, but {type(self.rule).__name__} came.")
        known = any(type(c) is type(self.pos_label) and c == self.pos_label for c in self.classes)
        fitting = known if len(self.classes) == 2 else self.pos_label is None
        if len(self.classes) < 2 or not fitting:
            raise InputError(
                "classes must be two labels with pos_label among them, or more labels without, "
                f"but {shown(self.classes)} and {shown(self.pos_label)} came."
            )

    @property
    def positive_column(self) -> int:
        """With two classes: which column of predict_proba is pos_label's."""
        first = self.classes[0]
        return int(type(first) is not type(self.pos_label) or first != self.pos_label)

    @property
    def _applied(self) -> AppliedRule:
        known = self.score_range, self.provenance
        return AppliedRule(self.rule, self.classes, self.positive_column, *known)

    def predict_proba(
        self,
        scores: Any,
        *,
        features: Any = None,
        lower: Any = None,
        upper: Any = None,
        on_range: OnRange = "error",
    ) -> Array:
        """The probability of each class, columns in the order of ``classes``.

        ``on_range`` is as in `Fitted`.
        """
        return self._applied.predict_proba(scores, RowInputs(features, lower, upper), on_range)

    def calibrate(
        self,
        scores: Any,
        *,
        features: Any = None,
        lower: Any = None,
        upper: Any = None,
        on_range: OnRange = "error",
    ) -> Any:
        """With two classes: the probability of ``pos_label``, shape (n,), as in `Fitted`."""
        return self._applied.calibrate(scores, RowInputs(features, lower, upper), on_range)

    def predict(
        self,
        scores: Any,
        *,
        features: Any = None,
        lower: Any = None,
        upper: Any = None,
        on_range: OnRange = "error",
    ) -> NDArray[Any]:
        """The most probable class of each row (of a tie the first of ``classes``)."""
        best = self._applied.predict(scores, RowInputs(features, lower, upper), on_range)
        labels: NDArray[Any] = label_array(self.classes)[best]
        return labels

    def __repr__(self) -> str:
        return "\n  ".join(in_lines(self, f"rule: {self.rule!r}"))

    def _repr_html_(self) -> str:
        return as_html(in_lines(self, f"rule: {self.rule!r}"))

    @property
    def plain(self) -> Fitted | None:
        """The same as a calibrator of the score alone; None if the rule looks at more."""
        own = self.rule.only_map
        if own is None:
            return None
        beside = (self.classes, self.pos_label, self.method, self.params, self.provenance)
        return Fitted(own, *beside, self.score_range)

    @property
    def tree_parts(self) -> TreeParts | None:
        """The trees of the rule as exports take them, if it has some."""
        return None if self.rule.only_map is not None else self.rule.tree_parts(self)

    def to_fitted(self) -> LocalFitted:
        """Itself: what `save` asks of everything it is given."""
        return self

    def to_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The JSON object and the arrays that `save` writes."""
        state, arrays = self.rule.to_parts()
        rule = {"kind": self.rule.kind, "version": self.rule.version, "state": state}
        document = document_of(self, LOCAL_FORMAT, LOCAL_VERSION, {"rule": rule})
        return document, arrays

    @staticmethod
    def from_parts(document: Any, arrays: Mapping[str, NDArray[Any]]) -> LocalFitted:
        """Read what `to_parts` made; anything else is refused with a reason."""
        check_header(document, LOCAL_FORMAT, LOCAL_VERSION)
        rule = document.get("rule")
        complete = isinstance(rule, dict) and isinstance(rule.get("state"), dict)
        check_saved(complete, "its 'rule' is missing or of a wrong type.")
        name, version = rule.get("kind"), rule.get("version")
        if not isinstance(name, str) or name not in RULES:
            raise InputError(
                f"unknown kind of rule {shown(name)}; known are {', '.join(sorted(RULES))}. It may "
                "need a newer calibrant: pip install --upgrade calibrant"
            )
        kind = _rule_kind(name)
        if type(version) is not int or not 1 <= version <= kind.version:
            raise InputError(
                f"this {kind.kind} rule has format version {shown(version)}, but this calibrant "
                f"reads 1 to {kind.version}. Upgrade: pip install --upgrade calibrant"
            )
        try:
            made = kind.from_parts(rule["state"], arrays)
        except InputError:
            raise
        except (TypeError, AttributeError, LookupError, ArithmeticError, ValueError) as wrong:
            raise InputError(f"the file is damaged: {type(wrong).__name__}: {wrong}") from wrong
        fitted = LocalFitted(made, *fields_of(document))
        check_saved(
            made.n_classes == len(fitted.classes),
            f"its rule speaks of {made.n_classes} classes, but {len(fitted.classes)} are named.",
        )
        return fitted


#: the kinds of rules that a file may name, and where each is. They are imported when a file names
#: them: loading a calibrator imports no method.
RULES = {
    "bins": "calibrant.methods.acp.rule:IntervalBins",
    "class scores": "calibrant.fitting.fitted:ClassScores",
    "neighbours": "calibrant.methods.similarity.neighbours:Neighbours",
    "trees": "calibrant.methods.features.rule:TreeRounds",
}


def _rule_kind(name: str) -> type[Rule]:
    """The kind of rule with this name in `RULES`."""
    module, kind = RULES[name].split(":")
    return getattr(importlib.import_module(module), kind)  # type: ignore[no-any-return]


# --- Labels that a file can hold, and that come back from it as what they were --------------------


Label = str | int | float | bool


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


# --------------------------------------------------------------------------------------------------
# A fitted calibrator in a few lines: what it gives, by which map, for which scores, from where


#: letters of a line
WIDEST = 160


def in_lines(fitted: Any, what: str) -> list[str]:
    """At most five lines; ``what`` describes the map, or what stands for it."""
    method = fitted.method or "an unknown method"
    if fitted.pos_label is None:
        first = f"probabilities of {len(fitted.classes)} classes by {method}"
    else:
        first = f"the probability of {shown(fitted.pos_label)} by {method}"
    labels = " and ".join(shown(label) for label in fitted.classes[:6])
    more = f" and {len(fitted.classes) - 6} more" if len(fitted.classes) > 6 else ""
    lines = [f"{type(fitted).__name__}: {first}", what, f"labels: {labels}{more}"]
    known = fitted.score_range
    if known is not None:
        kind = "probabilities" if known.probabilities else "scores"
        lines.append(f"for {kind} from {known.low:.6g} to {known.high:.6g}")
    told = _origin(fitted.provenance)
    lines += [told] if told else []
    return [line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…" for line in lines]


def _origin(facts: Mapping[str, Any]) -> str:
    """How many rows it was fitted to, and by which version."""
    rows, version = facts.get("rows"), facts.get("calibrant")
    found = [f"fitted to {rows:,} rows"] if isinstance(rows, int) else []
    found += [f"by calibrant {version}"] if isinstance(version, str) else []
    return " ".join(found)


def as_html(lines: list[str]) -> str:
    """The same for notebooks: the first line in bold."""
    first, *rest = (html.escape(line) for line in lines)
    return f"<div><b>{first}</b><br>{'<br>'.join(rest)}</div>"
