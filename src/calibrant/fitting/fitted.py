"""The fitted calibrator as a plain value, which is saved and loaded; and its predictions."""

from __future__ import annotations

import hashlib
import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array, Index
from calibrant.data.attributes import Attribute
from calibrant.data.columns import as_in_fit, as_same_series, plain, to_column, to_matrix
from calibrant.data.documents import (
    as_unicode,
    brief,
    check_file,
    fits_64_bits,
    freeze_facts,
    is_unicode,
)
from calibrant.data.door import check_distributions, read_scores, row_blocks
from calibrant.data.frozen import Frozen, thawed_json
from calibrant.data.scale import OnRange, ScoreRange, ScoreScale, check_score_range
from calibrant.data.score_matrix import read_score_matrix
from calibrant.data.segments import NewSegments, segment_columns
from calibrant.errors import InputError
from calibrant.rules.base import Map, RowInputs, Rule, VectorMap, check_depth, rule_from_dict
from calibrant.rules.piecewise import ScoreAt, score_at
from calibrant.rules.segmented import Segmented
from calibrant.tensors import as_came

FORMAT = "calibrant"
VERSION = 2
#: the format of files in which rules that need more than scores were once saved
OLD_FORMAT = "calibrant-local"
#: what may come beside scores, by the names of arguments
BESIDE = ("features", "segments", "lower", "upper")


class PredictsByRule:
    """The predictions of calibrators whose rule may need more of a row than its score."""

    _rule_reader: RuleReader

    def calibrate(
        self,
        scores: ArrayLike,
        segments: Any = None,
        *,
        features: Any = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        on_range: OnRange = "error",
    ) -> Any:
        """With two classes: the calibrated probability of the positive one, shape (n,).

        A NumPy array; of a pandas or Polars series, a series with its index. What a calibrator
        needs beside the scores must come, and what it cannot use is refused.

        Parameters
        ----------
        scores : as in the fit
        segments : column or several columns, for calibrators of segments
            The segment of each row. Segments never seen get the map of all rows; most rows of such
            are a CalibrationWarning.
        features : array, list of rows, or frame, for calibrators that look at features
        lower, upper : array-likes of shape (n,), for `ACP`
            The ends of each row's interval, on the scale of the scores; they may be infinite.
        on_range : {"error", "clip", "allow"}
            Where the scores of the fit were probabilities, so must these be: others are refused,
            moved to 0 or 1, or taken as they are.
        """
        rows = RowInputs(features, segments, lower, upper, getattr(self, "progress", False))
        return self._rule_reader.positive(scores, rows, on_range)

    def predict_proba(
        self,
        scores: ArrayLike,
        segments: Any = None,
        *,
        features: Any = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        on_range: OnRange = "error",
    ) -> Array:
        """The probability of each class, columns in the order of the classes.

        What comes beside the scores is as in `calibrate`.
        """
        rows = RowInputs(features, segments, lower, upper, getattr(self, "progress", False))
        return self._rule_reader.of_classes(scores, rows, on_range)

    def predict(
        self,
        scores: ArrayLike,
        segments: Any = None,
        *,
        features: Any = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        on_range: OnRange = "error",
    ) -> NDArray[Any]:
        """The most probable class of each row (of a tie the first).

        For labels that do not exclude each other, (n, k) of 0 and 1: who is more probable than not.
        What comes beside the scores is as in `calibrate`.
        """
        rows = RowInputs(features, segments, lower, upper, getattr(self, "progress", False))
        return self._rule_reader.most_probable(scores, rows, on_range)


@dataclass(frozen=True, eq=False, repr=False)
class Fitted(PredictsByRule, Frozen):
    """A fitted calibrator as a plain value: what `load` returns and `save` writes.

    Parameters
    ----------
    rule : Rule
        Most often a `Map`, which is a function of scores alone.
    classes : tuple of labels
        The labels, of JSON types (``"1"``, ``1`` and ``True`` are three different labels), in the
        order of the columns: sorted, unless the fit of several classes named another.
    pos_label : label
        With two classes: the one whose probability `calibrate` gives; else None.
    method : str
        The name of the calibrator that made the rule.
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

    rule: Rule
    classes: tuple[Label, ...]
    pos_label: Label | None
    method: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    score_range: ScoreRange | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.method, str):
            raise InputError(f"method must be text, but {brief(self.method)} came.")
        object.__setattr__(self, "method", as_unicode(self.method))
        if not isinstance(self.rule, Rule):
            raise InputError(
                f"rule must be a Map or another Rule, but {name_type(self.rule)} came."
            )
        object.__setattr__(self, "classes", check_labels(self.classes))
        if not isinstance(self.score_range, ScoreRange | None):
            came_range = brief(self.score_range)
            raise InputError(f"score_range must be a ScoreRange or None, but {came_range} came.")
        for name in ("params", "provenance"):
            object.__setattr__(self, name, freeze_facts(getattr(self, name), name))
        if not self.rule.binary:
            k = self.rule.n_classes
            if len(self.classes) != k or self.pos_label is not None:
                raise InputError(
                    f"this map gives {k} probabilities, so classes must be {k} labels and "
                    f"pos_label None, but {len(self.classes)} labels and {brief(self.pos_label)} "
                    "came."
                )
            return
        two = len(self.classes) == 2
        if two:
            object.__setattr__(self, "pos_label", check_label(self.pos_label))
        if not two or self.positive_column is None:
            raise InputError(
                "classes must be two labels with pos_label among them, but "
                f"{brief(self.classes)} and {brief(self.pos_label)} came."
            )

    @property
    def map(self) -> Map:
        """The rule, if it is a function of scores alone; others are refused."""
        if isinstance(self.rule, Map):
            return self.rule
        raise NoMapError(_why_no_map(self))

    @property
    def positive_column(self) -> int | None:
        """The column of `predict_proba` with the probability of ``pos_label``, if there is one."""
        for column, label in enumerate(self.classes):
            if type(label) is type(self.pos_label) and label == self.pos_label:
                return column
        return None

    @property
    def expects(self) -> ScoreRange | None:
        """The range of the scores of the fit. If it is unknown, the range that the map needs; None
        if it needs none."""
        if self.score_range is None and self.rule.takes_probabilities:
            return ScoreRange("probability", 0.0, 1.0)
        return self.score_range

    @property
    def _rule_reader(self) -> RuleReader:  # type: ignore[override]
        column, unused = self.positive_column or 0, self.provenance.get("unused")
        takes = frozenset(map(str, unused if isinstance(unused, tuple) else ()))
        return RuleReader(self.rule, self.classes, column, self.expects, self.provenance, takes)

    def mirrored(self, scale: ScoreScale) -> Fitted:
        """The calibrator of the original scores, if it was fitted to reversed ones. ``scale`` is
        that of the original scores.

        >>> from calibrant.maps import Piecewise
        >>> points = Fitted(Piecewise.step([-500.0], [0.1, 0.8]), (0, 1), 1)
        >>> points.mirrored(ScoreScale(0, 1000)).calibrate([400, 600]).tolist()
        [0.8, 0.1]
        """
        known, centre = self.score_range, scale.centre
        ends = None if known is None else (centre - known.high, centre - known.low)
        return replace(
            self,
            rule=self.map.mirrored(centre),
            params={**self.params, "direction": "falling"},
            score_range=None if known is None or ends is None else ScoreRange(known.kind, *ends),
        )

    def score_at(self, probability: Any) -> ScoreAt:
        """The score that has this probability of ``pos_label``: a threshold, to the exact double.

        The map must rise or fall throughout. Where it is flat the answer has both ends. Where it
        jumps over the probability, it is the first score beyond the jump.

        >>> from calibrant.maps import Piecewise
        >>> fitted = Fitted(Piecewise.step([0.5], [0.1, 0.8]), (0, 1), 1)
        >>> fitted.score_at(0.3)  # no score has 30 %: from 0.5 on it is 80 %
        ScoreAt(score=0.5, low=0.5, high=0.5, probability=0.8, rising=True)
        """
        return score_at(self.map, probability)

    def __repr__(self) -> str:
        return "\n  ".join(_summary_lines(self))

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(line) for line in _summary_lines(self))
        return f"<div><b>{first}</b><br>{'<br>'.join(rest)}</div>"

    def to_fitted(self) -> Fitted:
        """The value itself (`save` calls this method of whatever it is given)."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that `save` writes; the ``arrays`` of the rule are not in it."""
        if isinstance(self.rule, Map):
            check_depth(self.rule)
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "params": thawed_json(self.params),
            "classes": list(self.classes),
            "pos_label": self.pos_label,
            "map": self.rule.to_dict(),
            "score_range": None if self.score_range is None else self.score_range.to_dict(),
            "provenance": thawed_json(self.provenance),
        }

    @staticmethod
    def from_dict(document: Any, arrays: Mapping[str, NDArray[Any]] | None = None) -> Fitted:
        """The value that `to_dict` wrote, with the ``arrays`` of its rule; anything else is refused
        with a reason."""
        if isinstance(document, Mapping) and document.get("format") == OLD_FORMAT:
            document = _upgraded_document(document)
        check_version(document, FORMAT, VERSION, "a calibrant calibrator")
        kinds = {"classes": list, "method": str, "params": dict, "provenance": dict}
        for name, kind in kinds.items():
            complete = isinstance(document.get(name), kind)
            check_file(complete, f"{name!r} is missing or of a wrong type.")
        check_file(is_unicode(document["method"]), "its 'method' is no text.")
        return Fitted(
            rule_from_dict(document.get("map", {}), arrays),
            tuple(document["classes"]),
            document.get("pos_label"),
            document["method"],
            document["params"],
            document["provenance"],
            ScoreRange.from_dict(document.get("score_range")),
        )


def _upgraded_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of the old format "calibrant-local" in today's format.

    Rules that need more than scores were once saved in the old one.
    """
    check_version(document, OLD_FORMAT, VERSION, "a calibrant calibrator")
    rule: Any = document.get("rule")
    complete = isinstance(rule, dict) and isinstance(rule.get("state"), dict)
    check_file(complete, "its 'rule' is missing or of a wrong type.")
    state = rule["state"]
    map_: Any = {**state, "kind": rule.get("kind"), "version": rule.get("version")}
    if rule.get("kind") == "class scores":
        map_ = state.get("map")
    facts = document.get("provenance")
    if rule.get("kind") == "class scores" or state.get("sizes") == []:  # a gate kept a map
        facts = {"unused": sorted(BESIDE), **facts} if isinstance(facts, dict) else facts
    return {**document, "format": FORMAT, "version": VERSION, "map": map_, "provenance": facts}


def check_version(document: Any, form: str, newest: int, what: str) -> None:
    """Refuse a document whose format is not ``form``, or whose version is above the ``newest``.

    ``what`` is what it should be, for the error.
    """
    if not isinstance(document, Mapping) or document.get("format") != form:
        came = document.get("format") if isinstance(document, Mapping) else document
        raise InputError(
            f"this is not {what}: its 'format' must be {form!r}, but {brief(came)} came."
        )
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise InputError(
            "the file must carry a format version, a whole number from 1, but "
            f"{brief(version)} came."
        )
    if version > newest:
        raise InputError(
            f"the file has format version {brief(version)}, but this calibrant reads up to "
            f"{newest}. Upgrade: pip install --upgrade calibrant"
        )


# --- Predictions: new scores, and what comes beside them, are read for a rule ---------------------


class RuleReader(NamedTuple):
    """Reads new scores, and what comes beside them, for a rule, and gives its predictions.

    Calibrators and `Fitted` predict by it.

    Parameters
    ----------
    rule : Rule
    labels : sequence of labels
        The classes or labels; a frame whose columns have these names must have them in this order.
    positive_column : int
        With two classes: which column of probabilities is that of the positive class.
    expects : ScoreRange or None
        The scores that the rule is for.
    provenance : mapping
        Facts about the fit: among them the names of several columns of scores or segments.
    takes : set of str
        What may come beside the scores even where the rule does not need it: a calibrator that
        takes features may have kept a map of the score.
    """

    rule: Rule
    labels: Any
    positive_column: int
    expects: ScoreRange | None
    provenance: Mapping[str, Any]
    takes: frozenset[str] = frozenset()

    def positive(self, scores: Any, rows: RowInputs, on_range: str) -> Any:
        """The probability of the positive class of each row, shape (n,). If the scores are a
        series, it is a series."""
        if not self.rule.binary:
            raise InputError(
                "calibrate gives the probability of one of two classes, but this calibrator gives "
                "one probability per class: use predict_proba."
            )
        p = self._probabilities(scores, rows, on_range)
        p = p if p.ndim == 1 else p[:, 1]
        return as_came(scores, as_same_series(scores, p))

    def of_classes(self, scores: Any, rows: RowInputs, on_range: str) -> Array:
        """The probability of each class, shape (n, k)."""
        return as_came(scores, self._of_classes(scores, rows, on_range))  # type: ignore[no-any-return]

    def _of_classes(self, scores: Any, rows: RowInputs, on_range: str) -> Array:
        """The probability of each class as a NumPy array."""
        p = self._probabilities(scores, rows, on_range)
        if p.ndim == 1:
            return np.column_stack((1.0 - p, p) if self.positive_column == 1 else (p, 1.0 - p))
        return p[:, ::-1] if self.rule.binary and self.positive_column == 0 else p

    def most_probable(self, scores: Any, rows: RowInputs, on_range: str) -> NDArray[Any]:
        """The label of the most probable class of each row (the first on ties).

        For labels that do not exclude each other, (n, k) of 0 and 1: who is more probable than not.
        """
        rule = self.rule
        if isinstance(rule, VectorMap):
            self._check_inputs(rows)
            clean = self.read(scores, on_range)
            if not rule.distribution:
                return as_came(scores, (rule(clean) >= 0.5).astype(np.int64))  # type: ignore[no-any-return]
            best = np.empty(len(clean), dtype=np.intp)
            for block in row_blocks(len(clean), rule.n_classes):
                best[block] = np.argmax(rule(clean[block]), axis=1)
        else:
            best = np.argmax(self._of_classes(scores, rows, on_range), axis=1)
        known = self.labels if isinstance(self.labels, np.ndarray) else label_array(self.labels)
        return as_came(scores, known.take(best))  # type: ignore[no-any-return]

    def read(self, scores: Any, on_range: str) -> NDArray[Any]:
        """Scores as the rule takes them, checked against the range of the fit."""
        rule, labels = self.rule, self.labels
        ordered = as_in_fit(scores, self.provenance, labels)
        if rule.binary:
            clean = read_scores(ordered, positive_column=self.positive_column, classes=labels)
        else:
            clean = read_column_scores(ordered, rule.n_columns, labels)
        clean = check_score_range(clean, self.expects, on_range)
        if isinstance(rule, VectorMap) and rule.reads == "probability" and on_range != "allow":
            check_distributions(clean)
        return clean

    def _probabilities(self, scores: Any, rows: RowInputs, on_range: str) -> Array:
        """The rule's probabilities for scores and what comes beside them."""
        self._check_inputs(rows)
        clean, rule = self.read(scores, on_range), self.rule
        if isinstance(rule, Segmented):
            return rule.of_codes(clean, self._find_segments(rule, rows.segments))
        return rule(clean, rows) if rule.needs else rule(clean)

    def _check_inputs(self, rows: RowInputs) -> None:
        """Refuse inputs that the rule does not need. Refuse rows without segments if it needs
        segments."""
        given = {name for name in BESIDE if getattr(rows, name) is not None}
        needless = sorted(given - self.rule.needs - self.takes)
        if needless:
            advice = "does not look at them. Leave them out."
            if "segments" in needless:
                advice = "has one map for all rows. Leave them out, or fit a SegmentedCalibrator."
            raise InputError(
                f"{' and '.join(needless)} must not be given: this calibrator {advice}"
            )
        if "segments" in self.rule.needs and rows.segments is None:
            raise InputError(
                "this calibrator has a map for each segment, so each row's segment must be given, "
                "but none came. Pass segments=[...]; for the map of all rows use map.default."
            )

    def _find_segments(self, rule: Segmented, segments: Any) -> Index:
        """The number of each row's segment. If most rows are in new segments, warn."""
        known: Any = self.provenance.get("segment_column")
        several = isinstance(known, (list, tuple)) and all(isinstance(n, str) for n in known)
        names = tuple(known) if several else ()
        columns = [to_column(column, "segments") for column in segment_columns(segments, names)]
        codes = rule.find(columns)
        new = rule.is_new(codes)
        if rule.seen and new.any():
            row = int(np.argmax(new))
            first = tuple(plain(column[row]) for column in columns)
            example = first if len(first) > 1 else first[0]
            unseen = NewSegments(len(codes), int(np.count_nonzero(new)), example)
            unseen.warn_of_most(rule.seen, "Are segments spelled as in the fit?")
        return codes


def read_column_scores(scores: Any, columns: int, labels: Any) -> NDArray[Any]:
    """Finite scores of shape (n, columns); one column may also come as (n,).

    Columns that have the names of the classes or labels must be in the order of ``labels``.
    """
    if columns > 1:
        return read_score_matrix(scores, columns, classes=labels)
    matrix = to_matrix(scores, "scores")
    if matrix.ndim == 2 and matrix.shape[1] != 1:
        raise InputError(
            f"scores must have one column, that of the only question, but {matrix.shape[1]} came."
        )
    return read_scores(matrix)[:, None]


# --- Maps and values of what exports are given: a calibrator, what `load` returns, or a map -------


def refuse_models(calibrator: Any) -> None:
    """Refuse a model with its calibrator where a calibrator of scores is needed.

    Such classes have ``takes_rows``, since they take rows and not scores.
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


class TreeParts(NamedTuple):
    """The parts of a rule of trees, for exports: a map of the score, then rounds z ← factor · (z +
    Σ trees).

    z begins as the logit of the map. ``trees`` are `SmallTrees` of
    `calibrant.methods.features.rule`. They count ``columns`` from 0, and z is the column after the
    last. ``facts`` is the fitted value.
    """

    start: Map
    columns: tuple[Attribute, ...]
    trees: Any
    sizes: tuple[int, ...]
    factors: tuple[float, ...]
    facts: Any

    @property
    def ends(self) -> list[tuple[int, int, float]]:
        """For each round: its first tree, the first tree after it, and its factor."""
        lasts = np.cumsum(self.sizes).tolist()
        firsts = [0, *lasts[:-1]]
        return list(zip(firsts, lasts, self.factors, strict=True))


def tree_parts_of(calibrator: Any) -> TreeParts | None:
    """The trees of a calibrator; None where it has none."""
    fitted = to_fitted_value(calibrator)
    parts = getattr(None if fitted is None else fitted.rule, "tree_parts", None)
    return None if parts is None else parts(fitted)


def map_of(calibrator: Any) -> Map:
    """The map of a fitted calibrator or of what `load` returns; a map as it is.

    >>> from calibrant.maps import Identity
    >>> map_of(Identity())
    Identity()
    """
    refuse_models(calibrator)
    map_ = getattr(calibrator, "map_", calibrator)
    if isinstance(map_, Map):
        return map_
    found = to_fitted_map(calibrator)
    if found is not None:
        return found.map
    raise InputError(
        "calibrator must be a fitted calibrator, what load returns, or a map, but "
        f"{name_type(calibrator)} came. Fit one, or read its file with calibrant.load."
    )


class FittedCalibrator(Protocol):
    """What `save` takes: a fitted calibrator, or a `Fitted` itself."""

    def to_fitted(self) -> Fitted:
        """The calibrator as a plain value."""
        ...


def to_fitted_value(calibrator: Any) -> Fitted | None:
    """The calibrator as a `Fitted`, which `save` writes; None for a map or any other object."""
    if isinstance(calibrator, (Map, type)) or not hasattr(calibrator, "to_fitted"):
        return None
    refuse_models(calibrator)
    fitted: Fitted = calibrator.to_fitted()
    return fitted


def to_fitted_map(calibrator: Any) -> Fitted | None:
    """The calibrator as a `Fitted` whose rule is a map; None for a map.

    A calibrator that needs more of a row than its scores has no map, and is refused.
    """
    fitted = to_fitted_value(calibrator)
    if fitted is not None and not isinstance(fitted.rule, Map):
        raise InputError(_why_no_map(fitted))
    return fitted


class NoMapError(InputError, AttributeError):
    """A calibrator without a map was asked for one, since it needs more of a row than its score."""


def _why_no_map(fitted: Fitted) -> str:
    """The error for a calibrator that has no map, since it needs more of a row than its scores."""
    needed = " and ".join(sorted(fitted.rule.needs))
    return (
        f"{fitted.method or 'this calibrator'} has no map and cannot be exported: it is no "
        f"function of the score alone, but needs each row's {needed}. Save it with calibrant.save "
        "and apply it with calibrant.load(...).predict_proba."
    )


def fingerprint(map_: Map) -> str:
    """Twelve characters that identify a map: the first of the SHA-256 of its JSON.

    >>> from calibrant.maps import Identity
    >>> fingerprint(Identity())
    'b98464d2bb19'
    """
    text = json.dumps(map_.to_dict(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def name_type(value: object) -> str:
    """The name of an object's type, for an error; a class is called one.

    >>> name_type(0.5), name_type(Map)
    ('float', 'the class Map')
    """
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


# --- Labels that a file can hold, and that come back from it as what they were --------------------


Label = str | int | float | bool


def check_label(value: Any) -> Label:
    """The label as a Python value, which a file must be able to hold."""
    value = plain(value)
    kind = type(value)
    if kind is bool or (kind is int and fits_64_bits(value)):
        return value  # type: ignore[no-any-return]
    if (kind is float and math.isfinite(value)) or (kind is str and is_unicode(value)):
        return value  # type: ignore[no-any-return]
    raise InputError(
        "labels must be strings, numbers or booleans to be saved (integers of 64 bits), but "
        f"{brief(value)} of type {kind.__name__} came. Convert them, for example to strings."
    )


def check_labels(values: Any) -> tuple[Label, ...]:
    """The labels as Python values, which must differ; 1, 1.0, True and "1" are different."""
    labels = tuple(check_label(value) for value in values)
    if len({(type(label), label) for label in labels}) < len(labels):
        raise InputError(f"classes must be different labels, but {brief(labels)} came.")
    return labels


def label_array(labels: tuple[Label, ...]) -> NDArray[Any]:
    """The labels as an array that keeps the type of each.

    >>> label_array(("b", "a")).dtype.kind, label_array((1, "1")).tolist()
    ('U', [1, '1'])
    """
    array = np.asarray(labels)
    kept = [(type(value), value) for value in array.tolist()]
    if kept != [(type(label), label) for label in labels]:
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
    return array


# --- A fitted calibrator in a few lines -----------------------------------------------------------


#: letters of a line
WIDEST = 160


def _summary_lines(fitted: Fitted) -> list[str]:
    """The lines that print a fitted calibrator: method, rule, labels, scores, origin."""
    method = fitted.method or "an unknown method"
    if fitted.pos_label is None:
        first = f"probabilities of {len(fitted.classes)} classes by {method}"
    else:
        first = f"the probability of {brief(fitted.pos_label)} by {method}"
    labels = " and ".join(brief(label) for label in fitted.classes[:6])
    more = f" and {len(fitted.classes) - 6} more" if len(fitted.classes) > 6 else ""
    rule = f"{'map' if isinstance(fitted.rule, Map) else 'rule'}: {fitted.rule!r}"
    lines = [f"{type(fitted).__name__}: {first}", rule, f"labels: {labels}{more}"]
    known = fitted.score_range
    if known is not None:
        kind = "probabilities" if known.probabilities else "scores"
        lines.append(f"for {kind} from {known.low:.6g} to {known.high:.6g}")
    rows, version = (fitted.provenance.get(name) for name in ("rows", "calibrant"))
    origin = [f"fitted to {rows:,} rows"] if isinstance(rows, int) else []
    origin += [f"by calibrant {version}"] if isinstance(version, str) else []
    lines += [" ".join(origin)] if origin else []
    return [line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…" for line in lines]
