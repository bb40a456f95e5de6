"""What a fit gives: a rule, which is a frozen value, a function of scores and a JSON object."""

from __future__ import annotations

import functools
import importlib
import math
import pkgutil
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array
from calibrant.data.documents import brief, check_file
from calibrant.data.door import finite_float
from calibrant.data.frozen import Frozen
from calibrant.errors import InputError
from calibrant.losses import sigmoid
from calibrant.rules.plan.nodes import (
    MapInput,
    Node,
    PlanTarget,
    Row,
    RowAxis,
    first_input,
    first_row_axis,
)

#: the kinds of rules that methods define, and where: a class is imported when a file names it
OF_METHODS = {
    "bins": "calibrant.methods.acp.rule:IntervalBins",
    "neighbours": "calibrant.methods.similarity.neighbours:Neighbours",
    "trees": "calibrant.methods.features.rule:TreeRounds",
}
#: how many others a map in a file may lie in
DEEPEST = 20
#: how deep lists lie in each other: rows of a matrix, terms of a formula, keys of several columns
LISTS = 2


@dataclass(frozen=True)
class RowInputs:
    """What is known of each row beside its score: features, segment, or the ends of an interval.

    ``progress`` says whether to show a bar while a rule is applied to the rows.
    """

    features: Any = None
    segments: Any = None
    lower: Any = None
    upper: Any = None
    progress: bool = False


class Rule(Frozen):
    """What a fit gives: a function from scores, and what it needs beside them, to probabilities.

    Subclasses are ``@dataclass(frozen=True, eq=False)``. Most are maps, which are called with
    scores alone; a rule that needs more is called with scores and `RowInputs`. The result is the
    probability of the positive one of two classes, shape (n,), or that of each class, (n, k). Of
    two columns the last is that of the positive class.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    #: the fields of `RowInputs` that it looks at
    needs: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def __call__(self, *scores_and_rows: Any, **options: Any) -> Array:
        """The probabilities of scores."""

    @property
    def binary(self) -> bool:
        """Whether it gives the probability of one of two classes from a single score."""
        return self.n_classes == 2

    @property
    def n_columns(self) -> int:
        """How many scores a row has."""
        return 1 if self.binary else self.n_classes

    @property
    def n_classes(self) -> int:
        """How many classes or labels get a probability."""
        return 2

    @property
    def takes_probabilities(self) -> bool:
        """Whether scores must lie in [0, 1], whatever those of the fit were."""
        return False

    # --- saving -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description: kind, format version and the fields that are no `arrays`."""
        return {"kind": self.kind, "version": self.version, **self._state()}

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """The fields that are no `arrays`, as JSON holds them; floats bit for bit."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are saved in a second file, by name."""
        return {}

    @classmethod
    @abstractmethod
    def _of_parts(cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Rule:
        """The rule of these fields and arrays of a file; others are refused with a reason."""


class Map(Rule):
    """A function from finite scores to probabilities: a rule that needs nothing else.

    The fields of its subclasses are floats, strings, arrays and other maps; they validate
    themselves when made, so a map that exists is a map that works.

    A map also says what is known of it, in the properties below. A new kind is one file that
    defines them. What a kind does not define is refused where it is asked for, never guessed.
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, read, optional in _fields_to_read(kind):
            value = getattr(self, name)
            if not (optional and value is None):
                object.__setattr__(self, name, read(value))
        self._check()
        super().__post_init__()

    def _check(self) -> None:
        """Refuse fields that do not go together. Each on its own has been checked before."""

    @abstractmethod
    def __call__(self, scores: ArrayLike) -> Array:
        """The calibrated probabilities of the scores, of the same shape."""

    def _state(self) -> dict[str, Any]:
        return {name: _encoded_value(value) for name, value in self._items()}

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> Map:
        """The map that `to_dict` described; anything else is refused with a reason."""
        return map_from_dict(description)

    @classmethod
    def _of_parts(
        cls, state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], depth: int = 0
    ) -> Self:
        """The map of the fields of a file; a file of arrays, and wrong fields, are refused."""
        check_file(not arrays, "it names arrays, but its map has none.")
        known: Any = fields(cls)  # type: ignore[arg-type]
        names = [field.name for field in known]
        missing = [f.name for f in known if f.default is MISSING and f.name not in state]
        unknown = [key for key in state if key not in names]
        if missing or unknown:
            wrong = [f"{brief(missing)} did not come"] * bool(missing)
            wrong += [f"{brief(unknown)} came as well"] * bool(unknown)
            raise InputError(
                f"a {cls.kind} map must have the fields {names}, but {' and '.join(wrong)}."
            )
        decoded = {
            name: _decoded_value(value, f"{cls.kind}.{name}", depth)
            for name, value in state.items()
        }
        try:
            return cls(**decoded)
        except InputError:
            raise
        except (TypeError, AttributeError, LookupError, ArithmeticError, ValueError) as error:
            raise InputError(f"a {cls.kind} map cannot be made of these fields: {error}") from error

    # --- what is known of it without evaluating it ------------------------------------------------

    @property
    def children(self) -> tuple[Map, ...]:
        """The maps that this one is made of, in the order of its fields."""
        parts = (value if isinstance(value, tuple) else (value,) for _, value in self._items())
        return tuple(part for group in parts for part in group if isinstance(part, Map))

    @property
    def main(self) -> Map | None:
        """The map used when segments or intervals are ignored, if that is another map; else None.

        Facts that a kind of map does not define are taken from its main map.
        """
        return None

    @property
    def n_segment_columns(self) -> int:
        """The number of columns that name a row's segment; 0 for a map without segments."""
        return 0

    @property
    def segments(self) -> tuple[Any, ...] | None:
        """The segments that the map knows; None for a map without segments. Those of several
        columns are tuples."""
        return None

    @property
    def band(self) -> tuple[Map, Map, float | None] | None:
        """The lower map, the upper map, and the probability between them (None if there is none);
        None for a map without a band."""
        return None

    def by_segment(self, scores: ArrayLike, segments: Any) -> Array:
        """The calibrated probabilities of scores, each by the map of its segment."""
        self._refuse_unknown("segments")

    @property
    def takes_probabilities(self) -> bool:
        """Whether scores must lie in [0, 1], since the map takes the logit of its scores."""
        return self._main_for("takes_probabilities").takes_probabilities

    @property
    def looks_like_probabilities(self) -> bool:
        """Whether the map seems to take scores in [0, 1]. It may take others."""
        return self._main_for("looks_like_probabilities").looks_like_probabilities

    @property
    def trend(self) -> int:
        """1 if the map never falls, −1 if it never rises, 0 if neither is known."""
        return self._main_for("trend").trend

    @property
    def size(self) -> int:
        """The number of knots and formulas in the map written as one expression."""
        return self._main_for("size").size

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and the highest score worth drawing."""
        return self._main_for("span").span

    def knots(self, low: float, high: float) -> Array:
        """The scores at which pieces of the map meet. Knots that must be searched for are searched
        for between ``low`` and ``high``."""
        return self._main_for("knots").knots(low, high)

    # --- what it becomes for other systems --------------------------------------------------------

    def plan(self, target: PlanTarget, input: str = "score") -> Node:
        """The map as a plan that every target prints; ``input`` says what comes in."""
        return self.lowered(first_input(target, input))

    def lowered(self, axis: MapInput) -> Node:
        """The map as nodes of a plan; ``axis`` says what it reads. An InputError if it has no
        plan."""
        if self.main is not None:
            return self.main.lowered(axis)
        raise axis.target.refuses(f"a map of kind {self.kind!r}")

    @property
    def stages(self) -> tuple[Map, ...]:
        """The maps that are applied one after another. None of them is a chain."""
        return (self,) if self.main is None else self.main.stages

    # --- other maps made of it --------------------------------------------------------------------

    @property
    def simple(self) -> Map:
        """The same function made of fewer kinds of maps. A band becomes its point, a segmented map
        its default, and a mixture or chain of steps one table of steps."""
        return self if self.main is None else self.main.simple

    def of_logit(self, z: Array) -> Array:
        """The probabilities of scores whose logits are z.

        Maps of logits read z itself. So they still tell scores apart where σ(z) rounds to 1.
        """
        return self(sigmoid(z)) if self.main is None else self.main.of_logit(z)

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        """The map σ(intercept + slope · logit of what this one gives), slope above 0.

        A formula of logits changes its coefficients, and steps change their values. Any other map
        is followed by one more step, and later corrections change that step. So a map does not
        grow with the number of its corrections.

        Notes
        -----
        A corrected formula has the logit of the chain up to rounding: 2⁻⁵² of the largest term for
        each correction. The chain also rounds the probability between its two steps. This costs up
        to 2⁻⁵³/(1 − p) in the logit, and makes −744 and 37 of the logits of 0 and 1. Values of
        steps are those of the chain bit for bit. O(size of map).

        >>> from calibrant.maps import Logistic, Piecewise
        >>> Logistic(0.5, (("x", 2.0),)).corrected(1.0, 0.5)
        Logistic(σ(1.25 +1·x))
        >>> Piecewise.linear([0, 1], [0.1, 0.8]).corrected(1.0).corrected(0.5).steps[1]
        Logistic(σ(1.5 +1·z))
        """
        from calibrant.rules.chain import Chain
        from calibrant.rules.sigmoids import rising_line

        return Chain((self, rising_line(intercept, slope)))

    def shifted(self, factor: Array) -> Map:
        """The map whose odds are ``factor`` times those of this one.

        It is `corrected` by ln(factor). Maps to classes take one factor for the probability of each
        class, maps to labels one for the odds of each label.

        >>> from calibrant.maps import Logistic, Piecewise
        >>> Logistic(0.5, (("x", 2.0),)).shifted(np.array(np.e))
        Logistic(σ(1.5 +2·x))
        >>> Piecewise.step([0.3], [0.5, 0.75]).shifted(np.array(1 / 3))([0.1, 0.4]).tolist()
        [0.25, 0.5]
        """
        return self.corrected(float(np.log(factor)))

    def mirrored(self, centre: float) -> Map:
        """The map of reversed scores: for a score s it gives what this map gives for centre − s.

        So a map fitted to reversed scores becomes one of the scores themselves.

        >>> from calibrant.maps import Logistic, Piecewise
        >>> Logistic(0.5, (("x", 2.0),)).mirrored(0.0)
        Logistic(σ(0.5 -2·x))
        >>> Piecewise.step([0.3], [0.5, 0.75]).mirrored(1.0)([0.6, 0.8]).tolist()
        [0.75, 0.5]
        """
        self._refuse_unknown("mirror image")

    def decision(self, threshold: float) -> Map | None:
        """A map that is 1 where this one gives at least ``threshold``, and 0 elsewhere, exactly.

        None if the intervals on which this map rises and falls are not known.
        """
        from calibrant.rules.piecewise import decision_steps

        return decision_steps(self, threshold)

    def scaled(self, share: float) -> Map:
        """The map multiplied by a share up to 1."""
        from calibrant.rules.mixture import Mixture
        from calibrant.rules.piecewise import Piecewise

        if share == 1.0:
            return self
        return Mixture(np.array([share, 1.0 - share]), (self, Piecewise.constant(0.0)))

    def _main_for(self, what: str) -> Map:
        """The main map, which is asked for a fact that this kind does not define; an error if there
        is none."""
        if self.main is None:
            self._refuse_unknown(what)
        return self.main

    def _refuse_unknown(self, what: str) -> NoReturn:
        """The error for a property that this kind of map does not define."""
        raise InputError(
            f"a map of kind {self.kind!r} does not say its {what}: the class of that kind must "
            "define it."
        )


@functools.cache
def _fields_to_read(kind: Any) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    """For each field with a reading function: its name, that function, and whether it may be
    None."""
    own = [field for field in fields(kind) if READ in field.metadata]
    return tuple((field.name, field.metadata[READ], field.default is None) for field in own)


class VectorMap(Map):
    """A map from score matrices to probabilities of k classes or labels, shape (n, k)."""

    #: whether the probabilities of a row sum to one
    distribution: ClassVar[bool] = True

    @property
    def binary(self) -> bool:
        return False

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """How many scores a row has."""

    @property
    def n_classes(self) -> int:
        """k: how many probabilities a row gets."""
        return self.n_columns

    @property
    def takes_probabilities(self) -> bool:
        if self.reads != "score":
            return self.reads == "probability"
        return any(child.takes_probabilities for child in self.children)

    @property
    def reads(self) -> str:
        """How a row is read as one distribution: "logit" or "probability". Otherwise "score"."""
        return "score"

    @property
    def size(self) -> int:
        return sum(child.size for child in self.children) or 1

    def rows_of(self, scores: ArrayLike) -> NDArray[Any]:
        """Scores as an array with a row of `n_columns` numbers for each case."""
        rows = np.asarray(scores)
        if rows.ndim != 2 or rows.shape[1] != self.n_columns:
            raise InputError(
                f"scores must have the shape (n, {self.n_columns}), but {rows.shape} came."
            )
        return rows

    def plan(self, target: PlanTarget, input: str = "score") -> Node:
        return self.lowered_rows(first_row_axis(self.n_columns, target, input))

    def lowered_rows(self, axis: RowAxis) -> Row:
        """The map as nodes of a plan of rows; an InputError where it cannot be one."""
        raise axis.target.refuses(f"a map of kind {self.kind!r}")

    def corrected(self, intercept: float, slope: float = 1.0) -> Map:
        """Refuse a correction, which is for one score."""
        self._refuse_unknown("correction")

    def decision(self, threshold: float) -> Map | None:
        """Refuse a threshold: it is for one score."""
        raise InputError(
            "threshold= is for calibrators of one score, but this one gives a probability for each "
            "of several classes. Export it without, and compare the column of the class you act on."
        )

    def shifted(self, factor: Array) -> Map:
        """Refuse a shift; kinds that can be shifted override this."""
        raise InputError(
            f"a map of kind {self.kind!r} has no prior shift among the kinds of maps. Adjust what "
            "it gives instead: adjust_prior(calibrator.predict_proba(scores), ...)."
        )


def check_depth(map_: Map) -> None:
    """Refuse a map that nests too deep for a file to be read again."""
    level: tuple[Map, ...] = (map_,)
    for _ in range(DEEPEST + 1):
        level = tuple(child for one in level for child in one.children)
    if level:
        _refuse_depth()


def _refuse_depth() -> NoReturn:
    """Refuse a map that nests too deep."""
    raise InputError(f"a map may nest at most {DEEPEST} deep in a file, but this one is deeper.")


def rule_from_dict(
    description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None
) -> Rule:
    """Read a rule of any kind, checking kind, version and fields on the way."""
    kind, state = _kind_and_state(description)
    try:
        return kind._of_parts(state, arrays or {})
    except InputError:
        raise
    except (TypeError, AttributeError, LookupError, ArithmeticError, ValueError) as wrong:
        raise InputError(f"the file is damaged: {type(wrong).__name__}: {wrong}") from wrong


def map_from_dict(description: Mapping[str, Any], depth: int = 0) -> Map:
    """Read a map of any kind, checking kind, version and fields on the way."""
    if depth > DEEPEST:
        _refuse_depth()
    kind, state = _kind_and_state(description)
    if not issubclass(kind, Map):
        raise InputError(
            f"a map must come, but {kind.kind!r} is a rule that needs more than scores."
        )
    return kind._of_parts(state, {}, depth)


def _kind_and_state(description: Any) -> tuple[type[Rule], dict[str, Any]]:
    """The class for the kind that a description names, and the fields for it."""
    if not isinstance(description, Mapping) or not isinstance(description.get("kind"), str):
        raise InputError("a map must be an object with a 'kind'; this is not one of ours.")
    name, version = description["kind"], description.get("version")
    kind: type[Rule] | None = known_kinds().get(name)
    if kind is None and name in OF_METHODS:
        module, own = OF_METHODS[name].split(":")
        kind = getattr(importlib.import_module(module), own)
    if kind is None:
        known = ", ".join(sorted([*known_kinds(), *OF_METHODS]))
        raise InputError(
            f"unknown kind of map {brief(name)}; known are {known}. It may "
            "need a newer calibrant: pip install --upgrade calibrant"
        )
    if type(version) is not int or version < 1:
        raise InputError(
            f"the {name} map must carry a format version, a whole number from 1, but "
            f"{brief(version)} came."
        )
    if version > kind.version:
        raise InputError(
            f"this {name} map has format version {brief(version)}, but this calibrant reads up "
            f"to {kind.version}. Upgrade: pip install --upgrade calibrant"
        )
    return kind, {key: v for key, v in description.items() if key not in ("kind", "version")}


@functools.cache
def known_kinds() -> dict[str, type[Map]]:
    """Every kind of map by its name, from all files in this folder."""
    from calibrant import rules as package

    kinds: dict[str, type[Map]] = {}
    for file in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(file.name)).values():
            if isinstance(value, type) and issubclass(value, Map) and "kind" in vars(value):
                kinds[value.kind] = value
    return kinds


def _encoded_value(value: Any) -> Any:
    """A field's value as JSON holds it."""
    if isinstance(value, Map):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_encoded_value(item) for item in value]
    return value


def _decoded_value(value: Any, where: str, depth: int, lists: int = 0) -> Any:
    """A field's value read from JSON: a map, a word or a number. A list of floats is an array, any
    other list a tuple."""
    if isinstance(value, Mapping):
        return map_from_dict(value, depth + 1)
    if isinstance(value, (list, tuple)):
        if lists == LISTS:
            raise InputError(f"{where} must not hold lists in lists in lists, but it does.")
        if value and set(map(type, value)) == {float}:
            return check_finite(np.array(value), where)
        return tuple(_decoded_value(item, where, depth, lists + 1) for item in value)
    if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where} must be finite, but {value!r} came.")
        return value
    raise InputError(f"{where} cannot hold a value of type {type(value).__name__}.")


# --- Checks that the kinds of maps share: numbers, words, pairs and maps, refused with a reason ---
# A kind declares how its fields are read: ``x: Array = field(metadata=numbers("piecewise x"))``.


#: the key of a field's metadata under which the function is that reads its values
READ = "read"
#: scores that are evaluated at a time
BLOCK = 1 << 16


def field_read_by(function: Callable[[Any], Any]) -> dict[str, Any]:
    """The metadata of a field whose values are read by a function. A default of None is not
    read."""
    return {READ: function}


def numbers_field(where: str, ndim: int | tuple[int, ...] = 1) -> dict[str, Any]:
    """The metadata of a field that holds an array of finite numbers."""
    return field_read_by(partial(float_array, where=where, ndim=ndim))


def number_field(where: str, largest: float = math.inf) -> dict[str, Any]:
    """The metadata of a field that holds a finite number."""
    return field_read_by(partial(finite_float, where=where, largest=largest))


def word_field(where: str, *allowed: str) -> dict[str, Any]:
    """The metadata of a field that holds a word from a short list."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise InputError(f"{where} must be one of {allowed}, but {brief(value)} came.")
        return value

    return field_read_by(read)


def maps_field(where: str) -> dict[str, Any]:
    """The metadata of a field that holds a tuple of maps of one score."""
    return field_read_by(partial(maps_of_one_score, where=where))


def map_field(where: str) -> dict[str, Any]:
    """The metadata of a field that holds a map of one score."""
    return field_read_by(lambda value: maps_of_one_score((value,), where)[0])


def float_array(values: Any, where: str, ndim: int | tuple[int, ...] = 1) -> Array:
    """Finite numbers as float64 (booleans and strings refused), of the given dimension."""
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    try:
        array = np.asarray(values)
    except ValueError as wrong:
        raise InputError(
            f"{where} must be an array of numbers, but lists of different lengths came."
        ) from wrong
    if array.dtype.kind == "O" and not any(map(_is_no_number, array.flat)):
        try:
            array = array.astype(np.float64)  # integers beyond 64 bits
        except OverflowError as wrong:
            raise InputError(
                f"{where} must be finite, but a number beyond all doubles came."
            ) from wrong
    if array.size and array.dtype.kind not in "iuf":
        odd: Any = array.dtype
        if array.dtype.kind == "O":
            odd = brief(next(filter(_is_no_number, array.flat)))
        raise InputError(f"{where} must be numbers, but {odd} came.")
    array = array.astype(np.float64, copy=False)
    if array.ndim not in allowed:
        dimensions = " or ".join(map(str, allowed))
        raise InputError(f"{where} must have {dimensions} dimension(s), but has {array.ndim}.")
    return check_finite(array, where)


def check_finite(array: Array, where: str) -> Array:
    """The array, if all of its numbers are finite."""
    fine = np.isfinite(array)
    if not fine.all():
        first = int(np.argmin(fine))
        raise InputError(f"{where} must be finite, but number {first} is {array.flat[first]}.")
    return array


def _is_no_number(value: Any) -> bool:
    """Whether a value is no Python number; booleans are none."""
    return isinstance(value, bool) or not isinstance(value, (int, float))


def read_pair(values: Any, where: str) -> tuple[Any, Any]:
    """The two values of a list, tuple or array."""
    if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != 2:
        came = values.tolist() if isinstance(values, np.ndarray) else values
        raise InputError(f"{where} must be a pair, but {brief(came)} came.")
    first, second = values
    return first, second


def maps_of_one_score(members: Any, where: str) -> tuple[Map, ...]:
    """The maps as a tuple, after a check that each takes one score."""
    made = (members,) if isinstance(members, str) else tuple(members)
    for member in made:
        if not isinstance(member, Map) or isinstance(member, VectorMap):
            raise InputError(
                f"{where} must be a sequence of maps of one score, but {brief(member)} came."
            )
    return made


def check_probabilities(array: Array, where: str) -> None:
    """Refuse numbers outside [0, 1]."""
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        first = int(np.argmax(outside))
        raise InputError(f"{where} must lie in [0, 1], but number {first} is {array[first]:g}.")


def check_weights(weights: Array, members: Sequence[Any]) -> None:
    """Refuse weights that are not one per member, are negative, or do not sum to 1."""
    if len(weights) != len(members) or not members:
        raise InputError(
            f"a mixture needs one weight per member, but {len(weights)} weights came with "
            f"{len(members)} members."
        )
    if weights.min() < 0.0 or weights.max() > 2.0 or abs(weights.sum() - 1.0) > 1e-9:
        raise InputError(
            "the weights of a mixture must be non-negative and sum to 1, but they are "
            f"{weights.min():g} to {weights.max():g}."
        )


def in_blocks(function: Callable[[Array], Array], scores: Array) -> Array:
    """The values of a function, computed block by block. So temporary arrays stay small."""
    if scores.size <= BLOCK:
        return function(scores)
    flat, result = scores.reshape(-1), np.empty(scores.size)
    for start in range(0, flat.size, BLOCK):
        result[start : start + BLOCK] = function(flat[start : start + BLOCK])
    return result.reshape(scores.shape)
