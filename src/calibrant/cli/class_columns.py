"""Which column holds the score of which class: as said, or by the names of the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from calibrant.data.naming import unknown_column
from calibrant.engines.files.spelled_labels import match_label, sorted_classes, typed
from calibrant.engines.files.yes_no_words import Label
from calibrant.errors import InputError
from calibrant.shell_words import quoted

#: classes that a line or a message shows
SHOWN = 8


def some_of(words: Sequence[str], more: str = "") -> str:
    """Words in a row: only the first of many, with ``more`` behind the dots.

    >>> some_of(["a", "b"]), some_of("abcdefghij", " (10)")
    ('a, b', 'a, b, c, d, e, f, g, h, … (10)')
    """
    return ", ".join(words[:SHOWN]) + (f", …{more}" if len(words) > SHOWN else "")


class AskedColumn(NamedTuple):
    """A column of scores, and the class that it was said to be for."""

    column: str
    said: str | None = None


class ColumnsByClass(NamedTuple):
    """The classes in sorted order, and the column of each."""

    classes: tuple[Label, ...]
    columns: tuple[str, ...]

    def line(self, option: str, guessed: str = "") -> str:
        """Which column is taken for which class, in one line; ``guessed`` is that of the labels."""
        pairs = zip(self.classes, self.columns, strict=True)
        each = [f"{_called(column)} is {label!r}" for label, column in pairs]
        shown = some_of(each, f" ({len(each)} classes)")
        label = f"label = `{guessed}`, " if guessed else ""
        other = "--label COL, " if guessed else ""
        return f"Columns: {label}{shown}. To name others: {other}{option} CLASS=COLUMN."


def _called(column: str) -> str:
    """A column as a line names it: in marks if it holds more than letters and digits."""
    return column if re.fullmatch(r"\w+", column) else f"`{column}`"


def are_special(words: Sequence[str]) -> bool:
    """Whether words may stand for several columns: more than one, a pattern, CLASS=COLUMN, or
    names with commas between them."""
    return len(words) > 1 or any(re.search(r"[*?=\[,]", word) for word in words)


def must_look(words: Sequence[str] | None) -> bool:
    """Whether only the columns of the files tell if a single word stands for one or several."""
    return words is not None and len(words) == 1 and are_special(words)


def expand(
    words: Sequence[str], names: Sequence[str], *, option: str, taken: Sequence[str | None] = ()
) -> list[AskedColumn]:
    """The columns that words stand for: names, CLASS=COLUMN, patterns such as ``p_*``, or several
    of these with commas between them.

    A word that is the name of a column is that column, whatever signs it holds. Patterns leave out
    the columns ``taken`` for something else.

    >>> expand(["p_*", "x=q"], ["id", "p_a", "p_b", "q"], option="--score")
    [AskedColumn(column='p_a', said=None), AskedColumn(column='p_b', said=None), \
AskedColumn(column='q', said='x')]
    """
    found: dict[str, AskedColumn] = {}
    for word in [part for given in words for part in _apart(given, names)]:
        for one in _meant(word, names, taken):
            if one.column in found and None not in (one.said, found[one.column].said):
                raise InputError(
                    f"each class must have a column of its own, but {one.column!r} came for "
                    f"{found[one.column].said!r} and for {one.said!r}. Correct {option}."
                )
            if one.column not in found or one.said is not None:
                found[one.column] = one
    return list(found.values())


def _apart(word: str, names: Sequence[str]) -> list[str]:
    """The words between commas, unless only the whole is a column's name or CLASS=COLUMN."""
    parts = [part.strip() for part in word.split(",") if part.strip()]
    whole = _is_known(word, names) and not all(_is_known(part, names) for part in parts)
    return [word] if whole or word in names or not parts else parts


def _is_known(word: str, names: Sequence[str]) -> bool:
    """Whether a word is a column, CLASS=COLUMN, or a pattern."""
    ends = (word, *(word[sign.end() :] for sign in re.finditer("=", word)))
    return any(_find(end, names) is not None for end in ends) or bool(re.search(r"[*?\[]", word))


def _meant(word: str, names: Sequence[str], taken: Sequence[str | None]) -> list[AskedColumn]:
    column = _find(word, names)
    if column is not None:
        return [AskedColumn(column)]
    for sign in re.finditer("=", word):
        said, column = word[: sign.start()].strip(), _find(word[sign.end() :], names)
        if column is not None and said:
            return [AskedColumn(column, said)]
    if "=" in word:
        raise InputError(unknown_column(word.partition("=")[2], "score", names, "the file"))
    if not re.search(r"[*?\[]", word):
        raise InputError(unknown_column(word, "score", names, "the file"))
    matched = [name for name in names if fnmatchcase(name, word) and name not in taken]
    if not matched:
        shown = ", ".join(map(repr, names[:30]))
        raise InputError(f"no column matches {word!r}. The columns of the file are {shown}.")
    return [AskedColumn(name) for name in matched]


def _find(word: str, names: Sequence[str]) -> str | None:
    """The column that a word names; blanks around it count only where they tell columns apart."""
    if word in names:
        return word
    return next((name for name in names if name.strip() == word.strip()), None)


def assign(
    asked: Sequence[AskedColumn],
    labels: Sequence[Label],
    label_column: str | None,
    *,
    option: str,
    fewest: int = 3,
) -> ColumnsByClass:
    """The column of each class: what was said first, the others by their names.

    The labels are those of a column, or of a calibrator (None). A class may lack rows if it was
    named. Never by position: a match that is not clean is refused.

    >>> asked = [AskedColumn("p_bee"), AskedColumn("p_ape"), AskedColumn("q", "cat")]
    >>> assign(asked, ["ape", "bee", "cat"], "kind", option="--score").columns
    ('p_ape', 'p_bee', 'q')
    """
    found = sorted_classes(labels, label_column or "")
    where = "the calibrator" if label_column is None else f"label column {label_column!r}"
    columns: dict[Label, str] = {}
    for one in asked:
        if one.said is None:
            continue
        label = match_label(found, one.said)
        if label is None:  # a class without rows
            label = _like(one.said, found)
        if label in columns:
            raise InputError(
                f"each class must have one column, but {columns[label]!r} and {one.column!r} came "
                f"for {label!r}. Correct {option}."
            )
        columns[label] = one.column
    rest = [one.column for one in asked if one.said is None]
    open_ = [label for label in found if label not in columns]
    pairs = _by_names(rest, open_)
    if pairs is None:
        raise InputError(_unmatched(asked, found, columns, where, option))
    columns |= pairs
    classes = sorted_classes(columns, label_column or "")
    if len(classes) < fewest:
        raise InputError(_two_classes(classes, columns, where, option))
    return ColumnsByClass(classes, tuple(columns[label] for label in classes))


def in_order(words: Sequence[str], classes: Sequence[Label]) -> tuple[str, ...] | None:
    """The columns that words name, in the order of the classes; None if nothing tells it.

    No file is looked at: every word is CLASS=COLUMN, or all are columns.

    >>> in_order(["b=q", "a=p"], ["a", "b"]), in_order(["x", "y"], ["a", "b"])
    (('p', 'q'), None)
    """
    said = [word.partition("=") for word in words]
    labels = [match_label(classes, text) if sign else None for text, sign, _ in said]
    pairs = {label: column for label, (_, _, column) in zip(labels, said, strict=True)}
    if set(pairs) == set(classes) and all(pairs.values()):
        return tuple(pairs[label] for label in classes)
    by_names = _by_names(words, classes)
    return None if by_names is None else tuple(by_names[label] for label in classes)


def _like(said: str, found: Sequence[Label]) -> Label:
    """A class that no row has, of the type of the others."""
    meant = typed([said])[said]
    same = all(isinstance(label, str) for label in found)
    return said if same or isinstance(meant, str) else meant


# --- by the names of the columns ----------------------------------------------------------------


def _by_names(columns: Sequence[str], labels: Sequence[Label]) -> dict[Label, str] | None:
    """The only way in which the columns' names tell their classes; None where there is none."""
    if len(columns) != len(labels):
        return None
    for text in (str, _whole, _plain):
        names = [_plain(column) if text is _plain else column for column in columns]
        words = [text(label) for label in labels]
        if len(set(names)) < len(names) or len(set(words)) < len(words):
            continue
        for match in (_around, _at_the_end):
            places = match(names, words)
            if places is not None:
                return {label: columns[i] for label, i in zip(labels, places, strict=True)}
    return None


def _whole(label: Label) -> str:
    """1.0 as 1: a column of numbers with decimals may hold whole numbers only."""
    return str(int(label)) if isinstance(label, float) else str(label)


def _plain(label: Label) -> str:
    """Small letters, and one sign for all that are neither letters nor digits."""
    return re.sub(r"[\W_]+", "_", str(label).casefold()).strip("_")


def _around(names: Sequence[str], words: Sequence[str]) -> list[int] | None:
    """Places of the names that are the words between a common beginning and a common end."""
    ways: set[tuple[int, ...]] = set()
    first = names[0] if names else ""
    for word in words:
        for found in re.finditer(f"(?={re.escape(word)})", first):
            before, after = first[: found.start()], first[found.start() + len(word) :]
            whole = [f"{before}{each}{after}" for each in words]
            if sorted(whole) == sorted(names):
                ways.add(tuple(names.index(each) for each in whole))
    return list(ways.pop()) if len(ways) == 1 else None


def _at_the_end(names: Sequence[str], words: Sequence[str]) -> list[int] | None:
    """Places of the names that end in the words, one of each, after a sign or a beginning."""

    def ends(name: str, word: str) -> bool:
        start = name[: len(name) - len(word)]
        return name.endswith(word) and (not start or not start[-1].isalnum())

    places = []
    for word in words:
        fits = [i for i, name in enumerate(names) if ends(name, word)]
        if len(fits) != 1:
            return None
        places.extend(fits)
    return places if len(set(places)) == len(names) else None


# --- words --------------------------------------------------------------------------------------


def _unmatched(
    asked: Sequence[AskedColumn],
    found: Sequence[Label],
    known: dict[Label, str],
    where: str,
    option: str,
) -> str:
    columns = [one.column for one in asked]
    rest = [one.column for one in asked if one.said is None]
    open_ = [label for label in found if label not in known]
    pairs = _guessed(rest, open_)[:SHOWN]
    example = " ".join(f"{option} {quoted(f'{label}={column}')}" for label, column in pairs)
    return (
        f"the names of the columns must tell which class each is for, one column for each of the "
        f"{len(found)} classes of {where}, but they do not. {_list('Columns', columns)} "
        f"{_list('Classes', found)} Say which is which, for example: {example}"
    )


def _guessed(columns: Sequence[str], labels: Sequence[Label]) -> list[tuple[Label, str]]:
    """Pairs for an example: by names where one holds the other, the rest as they come."""
    left = list(columns)
    pairs: dict[Label, str] = {}
    for label in labels:
        near = [column for column in left if _plain(label) in _plain(column)]
        if near:
            pairs[label] = near[0]
            left.remove(near[0])
    if len(pairs) < len(labels) and all(_plain(label).isdigit() for label in labels):
        pairs, left = {}, list(columns)  # names may count from 1, and labels from 0
    for label in labels:
        if label not in pairs:
            pairs[label] = left.pop(0) if left else "COLUMN"
    return [*((label, pairs[label]) for label in labels), *(("CLASS", one) for one in left)]


def _two_classes(
    classes: Sequence[Label], columns: dict[Label, str], where: str, option: str
) -> str:
    if len(classes) == 1:
        return (
            f"{where} must hold several classes, but only one class came: {classes[0]!r}. "
            "Add rows of the others."
        )
    column, positive = quoted(columns[classes[1]]), quoted(str(classes[1]))
    return (
        f"{where} has two classes, {classes[0]!r} and {classes[1]!r}: one column is enough. "
        f"Use {option} {column} --pos-label {positive}."
    )


def _list(what: str, values: Sequence[Label]) -> str:
    return f"{what}: {some_of(list(map(repr, values)), f' ({len(values)})')}."
