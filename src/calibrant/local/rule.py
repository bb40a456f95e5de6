"""What a local calibrator is once fitted: a frozen rule, and the value that is saved and loaded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array, Index
from calibrant.data.frozen import Frozen
from calibrant.data.json_facts import freeze_facts, shown
from calibrant.data.naming import as_in_fit, check_class_columns
from calibrant.data.score_range import OnRange, ScoreRange, check_range
from calibrant.data.to_numpy import like_series, to_matrix
from calibrant.data.validation import read_scores
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted, check_header, document_of, fields_of
from calibrant.estimators.fitted_words import as_html, in_lines
from calibrant.estimators.saved_labels import Label, check_labels, label_array
from calibrant.export.tree_parts import TreeParts
from calibrant.local.saved_checks import check_saved
from calibrant.maps import Map, VectorMap
from calibrant.maps.base import check_depth

FORMAT = "calibrant-local"
VERSION = 2


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
        """The most probable class of each row (the first in sorted order on ties)."""
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
        document = document_of(self, FORMAT, VERSION, {"rule": rule})
        return document, arrays

    @staticmethod
    def from_parts(document: Any, arrays: Mapping[str, NDArray[Any]]) -> LocalFitted:
        """Read what `to_parts` made; anything else is refused with a reason."""
        check_header(document, FORMAT, VERSION)
        rule = document.get("rule")
        complete = isinstance(rule, dict) and isinstance(rule.get("state"), dict)
        check_saved(complete, "its 'rule' is missing or of a wrong type.")
        name, version = rule.get("kind"), rule.get("version")
        known = _kinds()
        kind = known.get(name) if isinstance(name, str) else None
        if kind is None:
            raise InputError(
                f"unknown kind of rule {shown(name)}; known are {', '.join(sorted(known))}. It may "
                "need a newer calibrant: pip install --upgrade calibrant"
            )
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


def _kinds() -> dict[str, type[Rule]]:
    """Every kind of rule by name, for reading files."""
    from calibrant.local.interval_bins import IntervalBins
    from calibrant.local.neighbours import Neighbours
    from calibrant.local.tree_rule import TreeRounds

    return {kind.kind: kind for kind in (ClassScores, IntervalBins, Neighbours, TreeRounds)}
