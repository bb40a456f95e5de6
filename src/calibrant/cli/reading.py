"""Files read for the commands: which column is which, and what the columns hold.

A column that nobody named is told by its name and by its values in the first rows. Rather no guess
than a wrong one: where two columns are as likely, or none is likely enough, they are listed and the
command stops.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.array_types import Array
from calibrant.cli.app import SHOWN, brief, some_of, tell
from calibrant.cli.sources import FileSource, RunOptions, read_segment
from calibrant.data.columns import segment_columns_of, unknown_column
from calibrant.data.door import Rows, are_distributions, read_weight, spelling_advice
from calibrant.data.lazy import Coding, Names, check_label_apart, grouped_tables, row_count
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable, pooling_facts
from calibrant.engines.files import (
    MISSING,
    SPELLINGS,
    Label,
    classes_of,
    match_label,
    nameless,
    partner_of,
    sorted_classes,
    typed,
    typed_present,
    yes_of,
)
from calibrant.engines.open_engine import Engine, FileScores, read_rows
from calibrant.errors import InputError, ParameterError, shell_quoted
from calibrant.fitting.fitted import Fitted, label_array
from calibrant.metrics.headlines import ClassNames, Face, LabelNames
from calibrant.rules.base import VectorMap


def find_source(
    engine: Engine,
    files: Sequence[str],
    words: Sequence[str] | None,
    label: str | None,
    weight: str | None,
    pos_label: str | None,
    run: RunOptions,
    *,
    segment: list[str] | None = None,
    raw: Sequence[str] | None = None,
    option: str = "--score",
    guess: bool = True,
) -> FileSource:
    """The source of a command. Where only the columns of the files tell whether words stand for
    one column or for several, the files are looked at.

    Where no column was named and ``guess`` is true, columns whose names tell the classes of another
    column come first.
    """
    cells, words, raw = run.read_cells(), words or (), raw or ()
    source = FileSource(
        engine, files, words, label or "", weight, pos_label, read_segment(segment), raw, option
    )
    source = replace(source, several=len(words) > 1, run=run, cells=cells)
    if engine.spark:
        pass
    elif guess and not words and pos_label is None:
        source = replace(source, looks=_looks(source))
        found = class_columns(source)
        guessed = ("score",) if found else ()
        source = replace(source, words=found, several=bool(found), guessed=guessed)
    elif len(words) == 1 and are_special(words):
        asked = expand(words, engine.columns(files), option="--score", taken=(label, weight))
        one = list(asked.values()) == [None]
        source = replace(source, words=list(asked) if one else words, several=not one)
    if len(raw) > 1 and not source.several:
        raise ParameterError(
            f"--raw must name one column, as --prob does, but {len(raw)} came. With several "
            "classes name a column of probabilities for each, too."
        )
    return source


def read_scores(source: FileSource, features: Sequence[str] = ()) -> FileScores:
    """The scores of one column or of several classes, with other columns if some are asked for;
    columns that were not named are guessed."""
    if source.several:
        return read_matrix(source)
    source = complete_roles(source)
    read = read_table(source)
    if not features:
        return read
    rows = read_features(source, features)
    return replace(read, rows=rows.rows, features=rows.features)


def size_of(read: FileScores) -> str:
    """How much was read, in words."""
    if read.several:
        return f"{read.facts['rows']:,} rows"
    return f"{len(read.data):,} {'cells' if read.data.made else 'distinct scores'}"


# --- one column of scores: as a table, by segments, or by rows ------------------------------------


def read_table(source: FileSource) -> FileScores:
    """The score table of files, and that of the scores before calibration if they are named."""
    cells, positive = source.cells, source.positive
    read = read_rows(source.rows(source.before), cells=cells, pos_label=positive)
    note_positive(source, read)
    before = None
    if source.before is not None:
        raw = replace(source, words=source.raw, option="--score")
        before = read_rows(raw.rows(source.score), cells=cells, pos_label=positive).data
    return replace(read, facts=read.facts | source.facts, before=before)


def read_segments(source: FileSource) -> FileScores:
    """The tables of segments, by one GROUP BY."""
    rows = source.rows()
    grouped, coding = rows.ask(lambda lazy: lazy.grouped(source.cells), source.positive)
    tables = grouped_tables(*grouped)
    whole = ScoreTable.gather(tables.values())
    note_positive(source, coding)
    if source.probabilities and not whole.looks_like_probabilities:
        rows.refuse_outside()
    facts = rows.facts(row_count(grouped[1])) | source.facts | pooling_facts(whole)
    return FileScores(whole, coding.classes, coding.pos_label, facts, by_segment=tables)


def read_features(
    source: FileSource, features: Sequence[str], *, learn: bool = False
) -> FileScores:
    """The rows of files, in memory. To ``learn`` from, a column of another role is refused."""
    features = list(dict.fromkeys(features))
    names = Names(source.score, source.label, source.weight)
    twice = [name for name in features if learn and name in names]
    if twice:
        raise ParameterError(f"--features must be other columns, but {twice[0]!r} has a role.")
    check_label_apart(names)
    wanted = [source.score, *features]
    rows = source.engine.rows_to_hold(source.files, wanted, names, source.role)
    spelled = rows.classes()
    coding = classes_of(spelled, source.label, source.positive)
    classes, pos_label = list(coding.classes), coding.pos_label
    if learn:
        note_positive(source, coding)
    codes = {word: classes.index(label) for word, label in spelled.items()}
    held = rows.with_scores([source.score])
    found = held.read(codes, features)
    scores, labels = found.scores[:, 0], label_array(coding.classes)
    positive = found.codes == classes.index(pos_label)
    each = Rows(scores, positive, found.weight, labels, pos_label)
    columns = {"score_column": source.score, "feature_columns": features}
    return FileScores(
        ScoreTable.from_rows(each),
        coding.classes,
        pos_label,
        held.facts(len(scores)) | columns | source.facts,
        rows=each,
        y=labels[found.codes],
        features=found.features,
    )


# --- a column of scores for each class ------------------------------------------------------------


def read_matrix(source: FileSource, fitted: tuple[Fitted, Path] | None = None) -> FileScores:
    """The scores of several classes from files; which column is which is said, unless all is quiet.

    The classes are those of the labels, or of a calibrator, which comes with the name of its file.
    """
    known = () if fitted is None else fitted[0].provenance.get("score_columns", ())
    label, guess = (source.label, "") if source.label else likely_label(source, known)
    wanted = [word for word in (*source.words, *source.raw) if not are_special([word])]
    names = Names(label, label, source.weight)
    rows = source.engine.rows_to_hold(source.files, wanted, names, source.role)
    labels, there, taken = rows.classes(), rows.sources[0].names, (label, source.weight)
    asked = expand(source.words, there, option=source.option, taken=taken)
    if label in asked:
        raise InputError(
            f"score and label must be different columns, but both are {label!r}. Name the "
            "column that holds each."
        )
    if fitted is None:
        found = assign(asked, list(labels.values()), label, option=source.option)
    else:
        found = fitted_columns(fitted[0], source.words, there, fitted[1])
    classes, k = tuple(found), len(found)
    codes = {word: _code(one, classes, label) for word, one in labels.items()}
    columns = list(found.values())
    if source.raw:
        before = expand(source.raw, there, option="--raw", taken=taken)
        columns += assign(before, classes, label, option="--raw").values()
    held = rows.with_scores(columns)
    read = held.read(codes)
    weight = read_weight(read.weight, len(read.codes))
    kept = slice(None) if weight is None or weight.all() else weight > 0  # zero: as if absent

    def matrix(columns: slice) -> ScoreMatrix:
        scores = np.ascontiguousarray(read.scores[:, columns])
        return ScoreMatrix(scores[kept], read.codes[kept], None if weight is None else weight[kept])

    after = matrix(slice(0, k))
    if source.probabilities and not are_distributions(after.scores):
        held.refuse_sums(columns[:k])
    facts = held.facts(len(read.codes)) | {"score_columns": columns[:k]}
    if guessed := [*source.guessed, *([] if source.label else ["label"])]:
        facts["guessed"] = guessed
    if not source.run.json:
        each = []
        for one, column in found.items():
            named = column if re.fullmatch(r"\w+", column) else f"`{column}`"
            each.append(f"{named} is {one!r}")
        shown = some_of(each, f" ({len(each)} classes)")
        other = "" if source.label else "--label COL, "
        tell(f"Columns: {guess}{shown}. To name others: {other}{source.option} CLASS=COLUMN.")
    return FileScores(
        after, classes, None, facts, before=matrix(slice(k, None)) if source.raw else None
    )


def _code(label: Any, classes: Sequence[Any], column: str) -> int:
    """The place of a label: 1 in one file may be 1.0 in another."""
    for place, known in enumerate(classes):
        if known == label or str(known) == str(label):
            return place
    raise InputError(
        f"label column {column!r} must hold only the classes {list(classes)[:20]}, but {label!r} "
        "came. Correct those rows, or fit anew with a column for that class."
    )


def fitted_columns(
    fitted: Fitted, words: Sequence[str], names: Sequence[str], path: Path
) -> dict[Label, str]:
    """The columns that a calibrator of several classes reads: as asked for, or as in the fit."""
    k = fitted.map.n_columns if isinstance(fitted.map, VectorMap) else 1
    if k != len(fitted.classes):
        raise InputError(
            f"{path} reads {k} columns, which are no scores of its {len(fitted.classes)} classes. "
            "Apply it in Python: calibrant.load(...).predict_proba(scores)."
        )
    kept = fitted.provenance.get("score_columns")
    known = tuple(map(str, kept)) if isinstance(kept, (tuple, list)) and len(kept) == k else ()
    asked = expand(words, names, option="--score")
    plain = [column for column, said in asked.items() if said is None]
    as_in_fit = sorted(plain) == sorted(known) and in_order(plain, fitted.classes) is None
    if words and not as_in_fit:
        found = assign(asked, fitted.classes, None, option="--score", fewest=1)
        if len(found) != k:
            raise InputError(
                f"the columns must be those of the calibrator's classes, "
                f"{list(fitted.classes)[:20]}, but {list(found)[:20]} came."
            )
        return {label: found[label] for label in fitted.classes}
    if not known:
        example = " ".join(f"--score '{label}=COLUMN'" for label in fitted.classes[:SHOWN])
        raise InputError(
            f"{path} does not know the columns of scores. Name one for each class: {example}"
        )
    return dict(zip(fitted.classes, known, strict=True))


# --- what is worth knowing of files ---------------------------------------------------------------


def names_of(facts: Mapping[str, Any], face: Face = "command line") -> Any:
    """How words name the labels, their column and the option: `LabelNames`, or `ClassNames` of
    several classes. The facts are those of `FileScores.document`."""
    column = facts["label_column"]
    if "direction" in facts:  # it was said, so that another is no advice
        face = "check"
    if "pos_label" in facts:
        return LabelNames.of(facts["classes"], facts["pos_label"], column, face)
    return ClassNames.of(facts["classes"], column, facts["score_columns"], face)


# --- Which column holds the score of which class: as said, or by the names of the columns ---------


#: columns of scores, and the class that each was said to be for, if it was
Asked = Mapping[str, str | None]


def are_special(words: Sequence[str]) -> bool:
    """Whether words may stand for several columns: more than one, a pattern, CLASS=COLUMN, or
    names with commas between them."""
    return len(words) > 1 or any(re.search(r"[*?=\[,]", word) for word in words)


def expand(
    words: Sequence[str], names: Sequence[str], *, option: str, taken: Sequence[str | None] = ()
) -> dict[str, str | None]:
    """The columns that words stand for, and the class that each was said to be for: names,
    CLASS=COLUMN, patterns such as ``p_*``, or several of these with commas between them.

    A word that is the name of a column is that column, whatever signs it holds. Patterns leave out
    the columns ``taken`` for something else. Commas part no word that only as a whole is a column
    or CLASS=COLUMN.

    >>> expand(["p_*", "x=q"], ["id", "p_a", "p_b", "q"], option="--score")
    {'p_a': None, 'p_b': None, 'q': 'x'}
    """
    apart: list[str] = []
    for word in words:
        parts = [part.strip() for part in word.split(",") if part.strip()]
        whole = _is_known(word, names) and not all(_is_known(part, names) for part in parts)
        apart += [word] if whole or word in names or not parts else parts
    found: dict[str, str | None] = {}
    for word in apart:
        for column, said in _meant(word, names, taken).items():
            before = found.get(column)
            if said is not None and before is not None:
                raise InputError(
                    f"each class must have a column of its own, but {column!r} came for "
                    f"{before!r} and for {said!r}. Correct {option}."
                )
            found[column] = before if said is None else said
    return found


def _is_known(word: str, names: Sequence[str]) -> bool:
    """Whether a word is a column, CLASS=COLUMN, or a pattern."""
    ends = (word, *(word[sign.end() :] for sign in re.finditer("=", word)))
    return any(_find(end, names) is not None for end in ends) or bool(re.search(r"[*?\[]", word))


def _meant(word: str, names: Sequence[str], taken: Sequence[str | None]) -> Asked:
    column = _find(word, names)
    if column is not None:
        return {column: None}
    for sign in re.finditer("=", word):
        said, column = word[: sign.start()].strip(), _find(word[sign.end() :], names)
        if column is not None and said:
            return {column: said}
    if "=" in word or not re.search(r"[*?\[]", word):
        unknown = word.partition("=")[2] if "=" in word else word
        raise InputError(unknown_column(unknown, "score", names, "the file"))
    matched = [name for name in names if fnmatchcase(name, word) and name not in taken]
    if not matched:
        shown = ", ".join(map(repr, names[:30]))
        raise InputError(f"no column matches {word!r}. The columns of the file are {shown}.")
    return dict.fromkeys(matched)


def _find(word: str, names: Sequence[str]) -> str | None:
    """The column that a word names; blanks around it count only where they tell columns apart."""
    if word in names:
        return word
    return next((name for name in names if name.strip() == word.strip()), None)


def assign(
    asked: Asked,
    labels: Sequence[Label],
    label_column: str | None,
    *,
    option: str,
    fewest: int = 3,
) -> dict[Label, str]:
    """The column of each class, in sorted order: what was said first, the others by their names.

    The labels are those of a column, or of a calibrator (None). A class may lack rows if it was
    named. Never by position: a match that is not clean is refused.

    >>> asked = {"p_bee": None, "p_ape": None, "q": "cat"}
    >>> assign(asked, ["ape", "bee", "cat"], "kind", option="--score")
    {'ape': 'p_ape', 'bee': 'p_bee', 'cat': 'q'}
    """
    found = sorted_classes(labels, label_column or "")
    where = "the calibrator" if label_column is None else f"label column {label_column!r}"
    columns: dict[Label, str] = {}
    for column, said in asked.items():
        if said is None:
            continue
        label = match_label(found, said)
        if label is None:  # a class without rows, of the type of the others
            meant = typed([said])[said]
            words = all(isinstance(known, str) for known in found)
            label = said if words or isinstance(meant, str) else meant
        if label in columns:
            raise InputError(
                f"each class must have one column, but {columns[label]!r} and {column!r} came "
                f"for {label!r}. Correct {option}."
            )
        columns[label] = column
    rest = [column for column, said in asked.items() if said is None]
    open_ = [label for label in found if label not in columns]
    pairs = _by_names(rest, open_)
    if pairs is None:
        raise InputError(_unmatched(asked, found, columns, where, option))
    columns |= pairs
    classes = sorted_classes(columns, label_column or "")
    if len(classes) < fewest:
        raise InputError(_two_classes(classes, columns, where, option))
    return {label: columns[label] for label in classes}


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


# --- by the names of the columns ----------------------------------------------------------------


def _by_names(columns: Sequence[str], labels: Sequence[Label]) -> dict[Label, str] | None:
    """The only way in which the columns' names tell their classes; None where there is none."""
    if len(columns) != len(labels):
        return None
    for text in (str, _whole, _letters):
        names = [_letters(column) if text is _letters else column for column in columns]
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


def _letters(label: Label) -> str:
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

    def ends_in(name: str, word: str) -> bool:
        """Whether a name is the word, or ends in it after a sign: `p_yes`, and not `eyes`."""
        start = name[: len(name) - len(word)]
        return name.endswith(word) and (not start or not start[-1].isalnum())

    places = []
    for word in words:
        fits = [i for i, name in enumerate(names) if ends_in(name, word)]
        if len(fits) != 1:
            return None
        places.extend(fits)
    return places if len(set(places)) == len(names) else None


# --- words --------------------------------------------------------------------------------------


def _unmatched(
    asked: Asked,
    found: Sequence[Label],
    known: dict[Label, str],
    where: str,
    option: str,
) -> str:
    rest = [column for column, said in asked.items() if said is None]
    open_ = [label for label in found if label not in known]
    # an example: by names where one holds the other, the rest as they come
    left, near = list(rest), {}
    for label in open_:
        alike = [column for column in left if _letters(label) in _letters(column)]
        if alike:
            near[label] = alike[0]
            left.remove(alike[0])
    if len(near) < len(open_) and all(_letters(label).isdigit() for label in open_):
        near, left = {}, list(rest)  # names may count from 1, and labels from 0
    for label in open_:
        if label not in near:
            near[label] = left.pop(0) if left else "COLUMN"
    pairs = [*((label, near[label]) for label in open_), *(("CLASS", one) for one in left)][:SHOWN]
    example = " ".join(f"{option} {shell_quoted(f'{label}={column}')}" for label, column in pairs)
    return (
        f"the names of the columns must tell which class each is for, one column for each of the "
        f"{len(found)} classes of {where}, but they do not. {_list('Columns', list(asked))} "
        f"{_list('Classes', found)} Say which is which, for example: {example}"
    )


def _two_classes(
    classes: Sequence[Label], columns: dict[Label, str], where: str, option: str
) -> str:
    if len(classes) == 1:
        return (
            f"{where} must hold several classes, but only one class came: {classes[0]!r}. "
            "Add rows of the others."
        )
    column, positive = shell_quoted(columns[classes[1]]), shell_quoted(str(classes[1]))
    return (
        f"{where} has two classes, {classes[0]!r} and {classes[1]!r}: one column is enough. "
        f"Use {option} {column} --pos-label {positive}."
    )


def _list(what: str, values: Sequence[Label]) -> str:
    return f"{what}: {some_of(list(map(repr, values)), f' ({len(values)})')}."


# --- Which column holds the scores and which the labels, where nobody said it ---------------------

#: rows that are looked at, and values in all of a wide file
ROWS, VALUES = 5_000, 2_000_000
#: columns that are listed in an error
LISTED = 12


def complete_roles(source: FileSource) -> FileSource:
    """The source with guesses for the columns that were not named: they are noted in one line."""
    missing = [role for role in ("score", "label") if not getattr(source, role)]
    if not missing:
        return source
    looks, repeated = _looks(source), source.engine.repeated
    segments = segment_columns_of(source.segment)
    taken = (source.score, source.label, source.weight, *segments, source.before)
    free = [look for look in looks if look.name not in taken]
    ranks: dict[str, tuple[str, Callable[[ColumnLook], int]]] = {
        "score": ("prob", probability_rank) if source.probabilities else ("score", score_rank),
        "label": ("label", label_rank),
    }
    likely = {role: _likeliest(free, ranks[role][1], sole=role == "score") for role in missing}
    wrong = [_unclear(ranks[role][0], best) for role, best in likely.items() if len(best) != 1]
    if wrong and not any(look.values for look in looks):
        raise InputError("the file must hold rows of data, but only column names came.")
    if wrong:
        wrong.append(nameless([*(look.name for look in looks), *2 * repeated]))
        if called := " or ".join(repr(name) for name in repeated if name.strip()):
            wrong.append(f"Several columns are called {called}: rename them.")
        if "label" in likely and len(likely["label"]) != 1:
            wrong.append(_three_or_more(free))
        raise InputError(" ".join(filter(None, (*wrong, _listed(looks)))))
    found = {role: best[0] for role, best in likely.items()}
    said = {ranks[role][0]: f"`{look.name}`" for role, look in found.items()}
    if "label" in found:
        with suppress(InputError):  # which label is positive, where both are known
            coding = classes_of(_typed(found["label"]), found["label"].name, source.positive)
            asked = source.pos_label is not None
            said["label"] += (
                f" ({positive_in_words(coding.classes, coding.pos_label, asked=asked)})"
            )
    pairs = ", ".join(f"{option} = {column}" for option, column in said.items())
    others, options = "others" if len(said) > 1 else "another", [f"--{option}" for option in said]
    source.engine.notes.append(f"{pairs}; name {others} with {', '.join(options)}")
    words = [found["score"].name] if "score" in found else source.words
    label = found["label"].name if "label" in found else source.label
    return replace(source, words=words, label=label, guessed=tuple(missing))


def class_columns(source: FileSource) -> list[str]:
    """The columns of scores, one for each of several classes, that nobody named; none if there are
    no such columns.

    Their names differ only in the classes that another column holds, in any order and case. Rows
    that sum to one confirm it; so do names that say score, where classes are words. Probabilities
    that `apply` wrote come first among probabilities. An InputError lists sets that fit equally.
    """
    looks = _looks(source)
    if source.probabilities and any(look.name == APPLIED for look in looks):
        return []
    raw = expand(source.raw, [look.name for look in looks], option="--raw")
    taken = (source.weight, *segment_columns_of(source.segment), *raw)
    free = [look for look in looks if look.name not in taken]
    called = [_by_name(free, text) for text in (str, _letters)]
    sets: dict[frozenset[str], list[str]] = {}
    for look in free:
        if look.name == source.label or (not source.label and may_be_labels(look)):
            sets |= {frozenset(names): names for names in _named_by_classes(look, *called)}
    found = list(sets.values())
    if source.probabilities:
        applied = [names for names in found if names[0].startswith(f"{APPLIED}_")]
        found = applied or found
    if len(found) > 1:
        each = " or ".join(", ".join(map(repr, names[:3])) for names in found[:3])
        words = " ".join(f"{source.option} {shell_quoted(name)}" for name in found[0][:3])
        raise InputError(
            f"The columns of {source.role} for each class may be {each}: name one of these sets, "
            f"such as {words}"
        )
    return found[0] if found else []


#: columns by their names, or by the letters of these; columns of one name are left out
ByName = Mapping[str, "ColumnLook"]


def _by_name(looks: Sequence[ColumnLook], text: Callable[[Label], str]) -> ByName:
    names = [text(look.name) for look in looks]
    times = Counter(names)
    return {name: look for name, look in zip(names, looks, strict=True) if times[name] == 1}


def _named_by_classes(label: ColumnLook, exact: ByName, letters: ByName) -> list[list[str]]:
    """The sets of columns whose names are the classes of a column of labels between a common
    beginning and a common end, and which hold their scores."""
    if not 3 <= len(label.distinct) <= len(letters) or (label.numbers and not label.whole):
        return []
    classes = list(dict.fromkeys(_typed(label).values()))
    for text, called in ((str, exact), (_whole, exact), (_letters, letters)):
        words = [text(one) for one in classes]
        if len(words) < 3 or len(set(words)) < len(words):
            continue
        found = []
        for before, after in _ends_around(words[0], called):
            if not all(f"{before}{word}{after}" in called for word in reversed(words)):
                continue
            names = [f"{before}{word}{after}" for word in words]
            alike = [one for one in called if one.startswith(before) and one.endswith(after)]
            alone = len(alike) == len(names) or not (before or after)
            members = [called[name] for name in names]
            if _are_scores(members, classes, alone=alone):
                found.append([look.name for look in members])
        if found:
            return found
    return []


def _ends_around(word: str, names: Iterable[str]) -> dict[tuple[str, str], None]:
    """What stands before and after a word, wherever a name holds it."""
    return {
        (name[: place.start()], name[place.start() + len(word) :]): None
        for name in names
        if word in name
        for place in re.finditer(f"(?={re.escape(word)})", name)
    }


def _are_scores(looks: Sequence[ColumnLook], classes: Sequence[Any], *, alone: bool) -> bool:
    """Whether columns hold a score for each class: their rows are distributions, or their names say
    score, there are no others of such a name (``alone``), and the classes are words."""
    if any(look.numbers is None for look in looks) or all(look.whole for look in looks):
        return False
    rows = _rows_of(looks)
    if len(rows) and are_distributions(rows):
        return True
    words = all(isinstance(one, str) for one in classes)
    return words and alone and all(look.called(SCORES, SCORE_WORDS) for look in looks)


def _rows_of(looks: Sequence[ColumnLook]) -> Array:
    """The numbers of some columns side by side; rows that lack one are left out."""
    columns = np.column_stack([look.numbers_in_rows for look in looks])
    rows: Array = columns[~np.isnan(columns).any(axis=1)]
    return rows


def first_numbers(source: FileSource, columns: Sequence[str]) -> list[float]:
    """The numbers of some columns in the first rows; none where they are not plainly numbers."""
    found = [look.numbers for look in _looks(source) if look.name in columns]
    return [] if None in found else [value for numbers in found for value in numbers or ()]


def likely_label(source: FileSource, known: Sequence[str] = ()) -> tuple[str, str]:
    """The column of labels beside a column of scores for each class, and what to say of it.

    Its values are the classes that the names of the score columns tell; else its own name says that
    it is one of labels. A column that holds the class of the largest score is a prediction, unless
    its name says that it is one of labels and no other column fits. ``known`` are the columns of
    scores where none are asked for.
    """
    looks = _looks(source)
    names = [look.name for look in looks]
    asked = expand(source.words or known, names, option=source.option, taken=(source.weight,))
    raw = expand(source.raw, names, option="--raw")
    taken = {source.weight, *asked, *raw}
    free = [look for look in looks if look.name not in taken]
    ranks = {look.name: class_label_rank(look, asked) for look in free}
    by_values = [look for look in free if ranks[look.name] >= 3]
    predicted = [look for look in by_values if _is_prediction(look, asked, looks)]
    for look in predicted:
        ranks[look.name] -= 3
    best = _likeliest(free, lambda look: ranks[look.name], sole=False)
    shown = some_of([f"`{look.name}`" for look in predicted if look not in best], "")
    what = "a prediction: the class of the largest score in nearly every row"
    if len(best) == 1:
        said = f"label = `{best[0].name}`"
        return best[0].name, f"{said} ({shown} holds {what}), " if shown else f"{said}, "
    said = f" {shown} seems to hold {what}." if shown else ""
    raise InputError(f"{_unclear('label', best)}{said} {_listed(looks)}")


#: the share of rows from which on a column of the most probable classes is a prediction, and the
#: fewest rows that can tell
NEARLY, ENOUGH = 0.99, 30


def _is_prediction(look: ColumnLook, asked: Asked, looks: Sequence[ColumnLook]) -> bool:
    """Whether a column holds the class of the largest score in nearly every row."""
    typed_ = _typed(look)
    columns = assign(asked, list(typed_.values()), look.name, option="--score")
    by_name = {other.name: other for other in looks}
    scores = [by_name[column] for column in columns.values()]
    if any(one.numbers is None for one in scores):
        return False
    codes: dict[Any, int] = {label: code for code, label in enumerate(columns)}
    labels = [codes.get(typed_.get(value), -1) for value in look.cells]
    rows = np.column_stack([one.numbers_in_rows for one in scores])
    complete = (np.asarray(labels) >= 0) & ~np.isnan(rows).any(axis=1)
    kept, own = rows[complete], np.asarray(labels)[complete]
    if len(kept) < ENOUGH:
        return False
    largest = kept[np.arange(len(kept)), own] == kept.max(axis=1)
    return bool(largest.mean() >= NEARLY)


def class_label_rank(look: ColumnLook, asked: Asked) -> int:
    """How likely a column is the labels of several classes whose columns these are: 3 to 5 if its
    values are their classes, 1 or 2 by its name alone, 0 if it is none."""
    if not may_be_labels(look):
        return 0
    called = look.called(LABELS | CLASS_NAMES, OUTCOME_WORDS | CLASS_NAMES)
    if not 2 <= len(look.distinct) <= len(asked):
        return called if look.more and len(look.distinct) == 1 else 0
    with suppress(InputError):
        assign(asked, list(_typed(look).values()), look.name, option="--score")
        return 3 + called
    return called


def _typed(look: ColumnLook) -> dict[Any, Any]:
    """The labels that the values of a column stand for."""
    text = all(isinstance(value, str) for value in look.distinct)
    return typed_present(look.distinct) if text else {value: value for value in look.distinct}


def _three_or_more(looks: Sequence[ColumnLook]) -> str:
    """What to do about a column whose name says labels, but which has more than two of them."""
    for look in looks:
        if look.called(LABELS, OUTCOME_WORDS) and look.numbers is None and len(look.distinct) > 2:
            said = f"The column {look.name!r} has more than two labels"
            if alike := spelling_advice(look.distinct):
                return f"{said}. {alike}"
            return (
                f"{said}: keep the rows of two of them, or name a column of scores for each class "
                "(--score A=COL --score B=COL ...)."
            )
    return ""


def _listed(looks: Sequence[ColumnLook]) -> str:
    """The columns in words, and what may be wrong with all of them."""
    more = ", ..." * (len(looks) > LISTED)
    said = f"The columns are {', '.join(map(str, looks[:LISTED]))}{more}."
    if all(look.joined.isdecimal() for look in looks):
        said += " Their names look like data: the file needs a header line."
    return said


def _looks(source: FileSource) -> list[ColumnLook]:
    """The columns of files by their first rows."""
    if source.looks:
        return list(source.looks)
    columns = source.engine.first_rows(source.files, ROWS)
    rows = max(VALUES // max(len(columns), 1), 100)
    looks = []
    for name, values in columns.items():
        cells = tuple(map(_cell, values[:rows]))
        looks.append(ColumnLook(name, cells, more=len(values) >= min(rows, ROWS)))
    return looks


def _cell(value: Any) -> Any:
    """A value as a number or a word; lists, dates and the like as words, words for none as None."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Decimal):
        return _cell(float(value))
    word = str(value).strip()
    return None if word.lower() in MISSING else word


def _likeliest(
    looks: Sequence[ColumnLook], rank: Callable[[ColumnLook], int], *, sole: bool
) -> list[ColumnLook]:
    """The columns of the highest rank; fractions of any size must be the only numbers there."""
    ranks = {look.name: rank(look) for look in looks}
    best = max(ranks.values(), default=0)
    if best == 0:
        return []
    found = [look for look in looks if ranks[look.name] == best]
    numbers = [look for look in looks if look.numbers and len(look.distinct) > 2]
    return [] if sole and best == 1 and len(numbers) > 1 else found


def _unclear(option: str, best: Sequence[ColumnLook]) -> str:
    what = {"prob": "probabilities", "score": "scores", "label": "labels"}[option]
    if not best:
        return f"No column is surely that of the {what}: name it with --{option} COL."
    names = " or ".join(repr(look.name) for look in best[:5])
    several = ""
    if option != "label" and len(best) > 2:
        each = " ".join(f"--{option} {shell_quoted(look.name)}" for look in best[:3])
        several = f" If they are of several classes, name them all: {each} …"
    return f"The column of {what} may be {names}: name it with --{option} COL.{several}"


# --- the positive label -------------------------------------------------------------------------


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
    option = f"--pos-label {shell_quoted(str(other))}"
    return f"{pair}, {pos_label} is taken as positive; if {other} is, add {option}"


def note_positive(source: FileSource, read: FileScores | Coding) -> None:
    """Note which of two words is positive, where nobody said it and the order alone may mislead."""
    if source.pos_label is not None or "label" in source.guessed:
        return  # it was said, or is noted with the guess
    classes, pos_label = read.classes, read.pos_label
    if isinstance(pos_label, str) and (yes_of(classes) is None or pos_label != classes[-1]):
        said = positive_in_words(classes, pos_label, asked=False)
        line = f"label = `{source.label}` ({said})"
        if line not in source.engine.notes:
            source.engine.notes.append(line)


# --- How likely a column is one of scores, of probabilities or of labels --------------------------

#: values that are listed, where there are no more
FEW = 6


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: names, without marks between their words, that say that a column is one of scores
SCORES = _words_of(
    "score scores prob proba probability p phat pred prediction predicted margin logit "
    "decisionfunction yscore yprob yproba yhat ypred modelscore rawscore riskscore"
)
#: and words in names that say so
SCORE_WORDS = _words_of("score scores prob proba probability pred prediction predicted logit")
PROBABILITIES = _words_of("prob proba p phat yprob yproba calibrated pcalibrated")
PROBABILITY_WORDS = _words_of("prob proba probability calibrated")
#: what `apply` calls its column
APPLIED = "probability"
#: names of labels, and words in the names of outcomes
LABELS = _words_of("label labels y target ytrue truth actual groundtruth gold outcome class")
OUTCOME_WORDS = LABELS - {"y"} | _words_of(
    "churn churned default defaulted bought purchased purchase clicked click converted conversion "
    "fraud survived died death dead event response responded result status success won lost "
    "readmitted cancelled canceled spam disease diagnosis diabetes approved accepted paid "
    "subscribed malignant relapse happened observed positive"
)
#: further names of labels of several classes
CLASS_NAMES = _words_of("kind type category species group classes")
#: words in names of what is neither a score nor a label
NEVER = _words_of(
    "id ids uuid guid key index idx row nr customer user account client weight weights w fold "
    "split train test holdout validation sex gender male female date time year month day"
)
#: words in names of what a model says of a row
PREDICTED = _words_of("pred prediction predicted yhat ypred")


@dataclass(frozen=True)
class ColumnLook:
    """A column by its name and the values of its first rows.

    Parameters
    ----------
    name : str
    cells : a value for each row; None where there is none, or a word for none
    more : whether there are more rows than were looked at
    """

    name: str
    cells: tuple[Any, ...]
    more: bool = False

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The values that are there."""
        return tuple(value for value in self.cells if value is not None)

    @cached_property
    def words(self) -> list[str]:
        """The words of its name in small letters.

        >>> ColumnLook("yTrue_2", ()).words
        ['y', 'true', '2']
        """
        found = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+", self.name)
        return [word.lower() for word in found]

    @property
    def joined(self) -> str:
        """The letters of its name."""
        return "".join(self.words)

    def called(self, names: frozenset[str], words: frozenset[str]) -> int:
        """2 if its name is one of these, 1 if a word of it is, else 0."""
        return 2 if self.joined in names else int(not words.isdisjoint(self.words))

    @property
    def never(self) -> bool:
        """Whether its name says that it is neither a score nor a label, or is no name at all."""
        return self.joined.isdecimal() or not self.words or not NEVER.isdisjoint(self.words)

    @cached_property
    def distinct(self) -> list[Any]:
        """The different values, in the order in which they come."""
        return list(dict.fromkeys(self.values))

    @cached_property
    def numbers(self) -> list[float] | None:
        """The values as numbers; None where some are none."""
        if not self.values:
            return None
        if not any(isinstance(value, str) for value in self.values):
            with suppress(TypeError, ValueError):
                return [float(value) for value in self.values]
            return None
        words = [str(value) for value in self.values]
        if any(re.match(r"\s*[+-]?0[0-9]", word) for word in words):
            return None  # 007 is a name
        for spelling in SPELLINGS:
            read = [spelling.read(word) for word in words]
            if None not in read:
                return [value for value in read if value is not None]
        return None

    @property
    def numbers_in_rows(self) -> Array:
        """A number for each row, NaN where there is none; for a column of numbers."""
        numbers = iter(self.numbers or ())
        return np.array([math.nan if cell is None else next(numbers) for cell in self.cells])

    @property
    def mostly_numbers(self) -> bool:
        """Whether half of its values, or more, are numbers."""
        words = [str(value) for value in self.values]
        most = max(sum(one.read(word) is not None for word in words) for one in SPELLINGS)
        return 2 * most >= len(words)

    @property
    def whole(self) -> bool:
        """Whether all its numbers are whole ones."""
        return self.numbers is not None and all(value.is_integer() for value in self.numbers)

    @property
    def inside(self) -> bool:
        """Whether all its numbers may be probabilities."""
        return self.numbers is not None and all(0.0 <= value <= 1.0 for value in self.numbers)

    def __str__(self) -> str:
        """The column for people.

        >>> print(ColumnLook("months", ("9", "100", "12")))
        'months' (whole numbers from 9 to 100)
        """
        found = self.distinct
        if not found:
            said = "empty"
        elif len(found) <= 2:
            said = " and ".join(brief(str(one), 40) for one in found)
        elif self.numbers is not None:
            kind = "whole numbers" if self.whole else "numbers"
            said = f"{kind} from {min(self.numbers):g} to {max(self.numbers):g}"
        elif len(found) <= FEW and not self.more:
            said = ", ".join(repr(brief(str(one), 40)) for one in found)
        else:
            said = f"{len(found):,}{' or more' * self.more} words"
        return f"{self.name!r} ({said})"


def score_rank(look: ColumnLook) -> int:
    """How likely a column is one of scores: 4 by its name, 3 by a word of it, 2 if it holds
    fractions from 0 to 1, 1 if it holds other fractions, 0 if it is none."""
    if len(look.distinct) < 3 or look.never:
        return 0
    called = look.called(SCORES, SCORE_WORDS)
    if look.numbers is None:  # a few wrong cells are better named by the reader
        return 4 if called == 2 and look.mostly_numbers else 0
    if called or look.words[:1] == ["p"]:
        return 2 + max(called, 1)
    return 0 if look.whole else 1 + look.inside


def probability_rank(look: ColumnLook) -> int:
    """How likely a column is one of probabilities, which are from 0 to 1: 6 if it is called what
    `apply` calls it, 5 by its name, 4 by a word of it, else as scores."""
    if not look.inside or not score_rank(look):
        return 0
    if look.name == APPLIED:
        return 6
    called = look.called(PROBABILITIES, PROBABILITY_WORDS)
    return 3 + called if called else min(score_rank(look), 3)


def may_be_labels(look: ColumnLook) -> bool:
    """Whether nothing in its name says that a column is not one of labels."""
    return not look.never and PREDICTED.isdisjoint((look.joined, *look.words))


def label_rank(look: ColumnLook) -> int:
    """How likely a column is one of labels, of two values: 3 by its name, 2 by a word of it, 1 by
    its values alone, or by its name if it holds one value (yes or no, if only a word of the name
    says so), 0 if it is none."""
    if not may_be_labels(look):
        return 0
    named = 1 + look.called(LABELS, OUTCOME_WORDS)
    if len(look.distinct) == 2:
        return named
    if len(look.distinct) != 1:
        return 0
    if look.more and named > 1:
        return named  # rows may be sorted by their labels
    # one class: what that means is said by those who read it
    return int(named == 3 or (named == 2 and partner_of(look.distinct[0]) is not None))
