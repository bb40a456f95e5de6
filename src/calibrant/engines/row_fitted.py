"""A calibrator that looks at further columns of each row, as engines apply it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.engines.files.data_files import MISSING
from calibrant.engines.files.typed_features import number_of
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.local.attributes import Attribute
from calibrant.local.rule import LocalFitted
from calibrant.local.tree_rule import TreeRounds


class FeatureColumn(NamedTuple):
    """A column that a calibrator looks at, and whether it holds categories."""

    name: str
    nominal: bool


@dataclass(frozen=True, eq=False, repr=False)
class RowFitted(Fitted):
    """The map of the score that comes first, with the labels, and the trees that follow.

    Parameters
    ----------
    rule : TreeRounds, beside all that `Fitted` has
    """

    rule: TreeRounds | None = None

    @classmethod
    def of(cls, fitted: LocalFitted) -> RowFitted | None:
        """What engines can apply; None for rules of another kind."""
        rule = fitted.rule
        if not isinstance(rule, TreeRounds):
            return None
        if not rule.schema.named or not all(isinstance(a.name, str) for a in rule.used):
            raise InputError(
                "the calibrator was fitted to features whose columns have no names, so none of a "
                "file can be found. Fit it to a frame, or with calibrant fit --features."
            )
        beside = (fitted.classes, fitted.pos_label, fitted.method, fitted.params, fitted.provenance)
        return cls(rule.start, *beside, fitted.score_range, rule=rule)

    @property
    def columns(self) -> tuple[FeatureColumn, ...]:
        """The columns that trees look at."""
        used = () if self.rule is None else self.rule.used
        return tuple(FeatureColumn(str(a.name), a.nominal) for a in used)

    def of_columns(
        self, scores: Array, columns: Sequence[NDArray[Any]], families: CategoryFamilies
    ) -> Array:
        """The probabilities of rows: numbers (NaN for missing) or texts (None) for each column.

        ``families`` are told what kind of categories came.
        """
        rule = self.rule
        assert rule is not None
        found: list[Array] = []
        for attribute, values in zip(rule.used, columns, strict=True):
            if attribute.categories is None:
                found.append(values)
                continue
            known = SpelledCategories.of(attribute)
            texts = dict.fromkeys(values.tolist())
            families.look(attribute, known, texts)
            place = {text: np.nan if text is None else known.code(text) for text in texts}
            found.append(np.array([place[v] for v in values.tolist()], dtype=np.float64))
        return rule.probabilities(scores, found)


class SpelledCategories(NamedTuple):
    """The categories of a column as files spell them: words, and numbers or truth values."""

    words: Mapping[str, int]
    numbers: Mapping[float, int]

    @classmethod
    def of(cls, attribute: Attribute) -> SpelledCategories:
        coded = list(enumerate(attribute.categories or ()))
        return cls(
            {category: code for code, category in coded if isinstance(category, str)},
            {category: code for code, category in coded if not isinstance(category, str)},
        )

    def code(self, text: str) -> float:
        """The code of a text; NaN for a category that is not known."""
        found = self.words.get(text, self.words.get(text.strip()))
        if found is None and self.numbers:
            value = number_of(text)
            found = None if value is None else self.numbers.get(value)
        return np.nan if found is None else found

    def family(self, text: str) -> bool | None:
        """Whether a text is of the kind of the categories; None where that cannot be told."""
        if not text.strip() or (self.numbers and self.words):
            return None
        if self.numbers:
            return None if text.strip().lower() in MISSING else number_of(text) is not None
        if number_of(text) is None:
            return True
        return False if all(number_of(word) is None for word in self.words) else None


class CategoryFamilies:
    """Whether the columns of categories hold words or numbers as in the fit, over all blocks."""

    def __init__(self) -> None:
        self.seen: list[tuple[Attribute, bool, bool, str]] = []  # threads append to it

    def look(self, attribute: Attribute, known: SpelledCategories, texts: Iterable[Any]) -> None:
        """Remember of which kind the texts of a block are."""
        kinds: dict[bool | None, str] = {}
        for text in texts:
            if text is not None:
                kinds.setdefault(known.family(text), text)
        if kinds:
            same = True in kinds or None in kinds
            self.seen.append((attribute, bool(known.words), same, kinds.get(False, "")))

    def refuse_other(self) -> None:
        """An InputError where all values of a column are of the other kind."""
        fine = {attribute.name for attribute, _, same, _ in self.seen if same}
        for attribute, words, _, example in self.seen:
            if attribute.name not in fine and example:
                raise attribute.other_family(words=words, example=example)
