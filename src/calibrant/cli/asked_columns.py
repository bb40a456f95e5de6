"""The columns of one score that a user named, and which label is positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.engines.files.yes_no_words import yes_of
from calibrant.shell_words import quoted

if TYPE_CHECKING:
    from calibrant.engines.open_engine import Engine


@dataclass(frozen=True)
class ColumnRoles:
    """The names of the columns to read, which label is positive, and which roles were guessed."""

    score: str
    label: str
    weight: str | None = None
    pos_label: str | None = None
    segment: str | tuple[str, ...] | None = None
    guessed: tuple[str, ...] = ()

    @property
    def positive(self) -> Any:
        """The positive label: as asked for, or the yes of a yes and a no."""
        return yes_of if self.pos_label is None else self.pos_label

    @property
    def facts(self) -> dict[str, Any]:
        """What is worth remembering of how the columns were found."""
        return {"guessed": list(self.guessed)} if self.guessed else {}


def positive_in_words(classes: Sequence[Any], pos_label: Any, *, asked: bool) -> str:
    """Which label is positive, and how to name the other where its meaning does not tell.

    >>> positive_in_words(["ja", "nein"], "ja", asked=False)
    'ja/nein, ja is positive'
    >>> positive_in_words(["bad", "good"], "good", asked=False)
    'good/bad, good is taken as positive; if bad is, add --pos-label bad'
    """
    other = next((label for label in classes if label != pos_label), pos_label)
    pair = f"{pos_label}/{other}"
    if asked or not isinstance(pos_label, str) or yes_of(classes) is not None:
        return f"{pair}, {pos_label} is positive"
    option = f"--pos-label {quoted(str(other))}"
    return f"{pair}, {pos_label} is taken as positive; if {other} is, add {option}"


def note_positive(
    engine: Engine, columns: ColumnRoles, classes: Sequence[Any], pos_label: Any
) -> None:
    """Note which of two words is positive, where nobody said it and the order alone may mislead."""
    if columns.pos_label is not None or "label" in columns.guessed:
        return  # it was said, or is noted with the guess
    if isinstance(pos_label, str) and (yes_of(classes) is None or pos_label != classes[-1]):
        said = positive_in_words(classes, pos_label, asked=False)
        line = f"label = `{columns.label}` ({said})"
        if line not in engine.notes:
            engine.notes.append(line)
