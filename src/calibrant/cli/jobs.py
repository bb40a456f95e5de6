"""Work that several commands share: methods by name, fits, pictures and pages."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.app import (
    command,
    note,
    say,
    say_json,
    say_pairs,
    tell,
    tell_advice,
    typed_again,
)
from calibrant.cli.reading import names_of
from calibrant.cli.sources import Json
from calibrant.data.documents import read_period
from calibrant.data.score_table import ScoreTable
from calibrant.data.segments import segment_titles
from calibrant.engines.open_engine import FileScores
from calibrant.errors import (
    AdviceWarning,
    CalibrationWarning,
    InputError,
    ParameterError,
    did_you_mean,
    parameter_hint,
    shell_quoted,
)
from calibrant.fitting.files import save
from calibrant.fitting.fitted import Fitted, label_array
from calibrant.fitting.registry import METHODS, OF_CLASSES, calibrator_class, method_name
from calibrant.metrics.chance import IntervalOptions
from calibrant.metrics.evaluating import MulticlassEvaluation, evaluate_classes
from calibrant.metrics.headlines import first_look
from calibrant.metrics.measures import Records
from calibrant.metrics.tables import Bins

if TYPE_CHECKING:
    from calibrant.auto.advice import Advice
    from calibrant.auto.auto import AutoCalibrator
    from calibrant.reports.page import Report


# --- Methods by the names that the command line knows them by -------------------------------------

#: parameters that the command line fills in itself, or that are no plain values
OWN = ("direction", "pos_label", "classes", "candidates", "progress")
#: the method whose own folds are those of the estimate, --cv
JUDGES = "auto"
#: what every comparison holds without being asked
ALWAYS = ("auto", "uncalibrated", "bls")
#: and what one holds by default: fast methods of each kind
COMPARED = (
    "platt",
    "beta",
    "quadratic",
    "temperature",
    "spline",
    "isotonic",
    "venn-abers",
    "histogram",
    "bbq",
    "enir",
    "elite",
)
#: and what a page shows beside them
REPORTED = ("platt", "beta", "isotonic", "venn-abers", "enir")
#: what a comparison of several classes holds by default, beside the mixture and its members
COMPARED_CLASSES = ("vector", "dirichlet", "platt", "beta", "isotonic")
#: and what a page on them shows
REPORTED_CLASSES = ("vector", "dirichlet", "isotonic")


def offered(method: str, *, several: bool = False) -> str:
    """The registered name of a method that calibrates one score, or those of ``several`` classes.

    Methods of one score take several classes as well, each against the rest.
    """
    name = method_name(method)
    known = METHODS | OF_CLASSES if several else METHODS
    if name in OF_CLASSES and not several:
        raise ParameterError(
            f"the method must calibrate one score, but {name!r} is for several classes. Name a "
            f"column of scores for each of them, or use one of {', '.join(known)}."
        )
    if name not in known:
        raise ParameterError(
            f"the method must look at scores alone, but {name!r} takes more. Use one of "
            f"{', '.join(known)}."
        )
    return name


def parameters(method: str, *, several: bool = False) -> dict[str, Any]:
    """The parameters of a method and their defaults."""
    name = offered(method, several=several)
    own = (*OWN, "cv") if name == JUDGES else OWN
    defaults = calibrator_class(name)().get_params(deep=False)
    return {key: value for key, value in defaults.items() if key not in own}


def methods(json: Json = False) -> None:
    """List the methods of calibration.

    \b
    Examples:
      calibrant methods
      calibrant fit s.csv -s p -l y --method isotonic --param interpolation=centred
    """
    if json:
        found = []
        for name, (cls, line) in (METHODS | OF_CLASSES).items():
            columns = "several" if name in OF_CLASSES else "one or several"
            params = parameters(name, several=name in OF_CLASSES)
            facts = {"name": name, "class": cls, "summary": line, "columns": columns}
            found.append({**facts, "params": params})
        say_json(found)
        return
    say_pairs({name: line for name, (_, line) in METHODS.items()})
    say()
    tell(
        "For several classes, with a column of scores for each, all of these (auto and "
        "temperature look at all columns, the others at each class against the rest), and:"
    )
    say()
    say_pairs({name: line for name, (_, line) in OF_CLASSES.items()})
    say()
    say("Parameters of one: ", command("calibrant methods --json"))


def make_calibrator(method: str, settings: Sequence[str], *, several: bool = False) -> Any:
    """An unfitted calibrator from its name and ``key=value`` words.

    With ``several`` classes, a method of one score calibrates each class against the rest.

    >>> make_calibrator("isotonic", ["interpolation=centred"])
    Isotonic(interpolation='centred')
    >>> make_calibrator("platt", [], several=True)
    CodedCalibrator(calibrator=Platt())
    """
    from sklearn.base import clone

    from calibrant.fitting.base import Calibrator

    made: Any = calibrator_class(method)(**_settings(method, settings, several=several))
    # a trial on a few scores refuses a wrong value now, not after hours of reading
    if not several:
        clone(made).fit_table(ScoreTable.from_counts([0.25, 0.75], [2, 1], [1, 2]))
        return made
    if isinstance(made, Calibrator) and not made.multiclass:
        from calibrant.methods.codes.calibrator import CodedCalibrator

        made = CodedCalibrator(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        clone(made).fit([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 4, [0, 1, 2] * 4)
    return made


def _settings(method: str, settings: Sequence[str], *, several: bool = False) -> dict[str, Any]:
    """The parameters that ``key=value`` words set."""
    known = parameters(method, several=several)
    chosen = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ParameterError(f"a parameter must be written key=value, but {setting!r} came.")
        if key not in known:
            ours = parameter_hint(key, known, read_value(value))
            hint = f" {ours[0].upper()}{ours[1:]}" if ours else did_you_mean(key, known)
            allowed = f"takes {', '.join(known)}" if known else "takes no parameters"
            raise ParameterError(f"{method} {allowed}, but {key!r} came.{hint}")
        chosen[key] = read_value(value)
    return chosen


def read_value(word: str) -> Any:
    """A number, true, false or null as JSON has it; all else is a word."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


# --- fits -----------------------------------------------------------------------------------------


def learn(calibrator: Any, read: FileScores) -> Any:
    """The calibrator, fitted to one column of scores or to those of several classes."""
    calibrator.set_params(classes=list(read.classes))
    if not read.several:
        if direction_of(read) == "falling":
            calibrator.set_params(direction="falling")
        return calibrator.set_params(pos_label=read.pos_label).fit_table(read.as_came.data)
    with quietly():
        return calibrator.fit(read.data.scores, labels_of(read), read.data.weight)


def compare(read: FileScores, methods: Sequence[str], folds: int) -> AutoCalibrator:
    """The automatic choice among methods by name, fitted and judged."""
    from calibrant.auto.auto import AutoCalibrator, members_for

    several = read.several
    members = members_for(3, rows=1) if several else ()
    candidates = {}
    for name in dict.fromkeys(methods):
        if name in ALWAYS:
            continue
        made = make_calibrator(name, [], several=several)
        one_score = several and name in METHODS and hasattr(made, "calibrator")
        shown = f"one-vs-rest {name}" if one_score else name
        candidates[calibrator_class(name).__name__ if shown in members else shown] = made
    auto: AutoCalibrator = learn(AutoCalibrator(candidates=candidates, cv=folds), read)
    return auto


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of single fits: what they say is shown with the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        yield


def labels_of(read: FileScores) -> NDArray[Any]:
    """The label of each row of several classes."""
    labels: NDArray[Any] = label_array(read.classes)[read.data.codes]
    return labels


def measure_classes(
    read: FileScores,
    bins: Bins,
    intervals: IntervalOptions | None,
    records: Records | None = None,
) -> MulticlassEvaluation:
    """The measures of columns of probabilities, and of the scores of the same rows before."""
    return evaluate_classes(
        labels_of(read),
        read.data.scores,
        None if read.before is None else read.before.scores,
        bins,
        read.data.weight,
        list(read.classes),
        intervals,
        records,
    )


# --- the record of a fit ------------------------------------------------------------------------


def time_facts(period: str | None) -> dict[str, Any]:
    """The time of the fit, and the period that its rows are from, if it is known."""
    known = {} if period is None else {"period": read_period(period)}
    return {**known, "fitted_at": time_stamp()}


def with_facts(fitted: Fitted, facts: Mapping[str, Any]) -> Fitted:
    """The same map, with more in its provenance."""
    return replace(fitted, provenance={**fitted.provenance, **facts})


def time_stamp() -> str:
    """The time in UTC: now, or SOURCE_DATE_EPOCH, with which the same fit gives the same file.

    >>> len(time_stamp())
    20
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "").strip()
    try:
        moment = datetime.fromtimestamp(int(given), UTC) if given else datetime.now(UTC)
    except (ValueError, OverflowError, OSError) as wrong:
        raise InputError(
            f"SOURCE_DATE_EPOCH must be a whole number of seconds, but {given!r} came."
        ) from wrong
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def save_fitted(fitted: Fitted | None, facts: Mapping[str, Any], path: Path) -> None:
    """Save a calibrator with what is known of the files that it was fitted to, and of the fit."""
    if fitted is None:
        raise InputError("there is no calibrator to save.")
    save(with_facts(fitted, facts), path)


# --- pictures, as the bytes of a file -----------------------------------------------------------

#: panels of classes that a picture has
PANELS = 11


def draw(read: FileScores, format: str, fitted_map: Any = None, **asked: Any) -> bytes:
    """A reliability diagram; of several classes that of the top label and of each class, the
    heaviest of many."""
    from calibrant.diagrams.draw.figures import render
    from calibrant.diagrams.draw.reliability import class_diagram, reliability_diagram

    after, before = read.data, read.before
    if not read.several:
        figure = reliability_diagram(after, raw=before, fitted_map=fitted_map, **asked)
        return render(figure, format)
    heaviest = np.argsort(-after.class_weight, kind="stable")[:PANELS]
    figure = class_diagram(
        labels_of(read),
        after.scores,
        classes=list(read.classes),
        show=[read.classes[column] for column in sorted(heaviest.tolist())],
        sample_weight=after.weight,
        raw=None if before is None else before.scores,
        **asked,
    )
    return render(figure, format)


# --- pages --------------------------------------------------------------------------------------


def page_of(
    calibrator: Any,
    read: FileScores,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
    measures: Sequence[str] | None = None,
    **judged: Any,
) -> Report:
    """The page on a calibrator that was fitted to files.

    ``judged`` is what was held out for a calibrator of several classes that is no automatic choice.
    """
    from calibrant.reports.report import calibration_report, report_of

    came, facts = read.as_came, read.facts
    columns = facts["score_columns"] if read.several else [facts["score_column"]]
    options: dict[str, Any] = {
        "title": title,
        "measures": measures,
        "score_name": ", ".join(columns[:3]) + (", …" if len(columns) > 3 else ""),
        "label_name": facts["label_column"],
        "source": {"files": ", ".join(facts["files"]), "rows": f"{facts['rows']:,}"},
        "saved_as": None if saved_as is None else str(saved_as),
    }
    if not read.several and too_few(read.data):
        first = first_look(read.data).headline(names_of(read.document))
        raise InputError(f"{first} A report needs at least two rows of each class.".strip())
    if read.by_segment:
        named = zip(segment_titles(list(came.by_segment)), came.by_segment.values(), strict=True)
        options["segments"] = dict(named)
    if read.several or getattr(calibrator, "leaderboard_", None) is not None:
        return report_of(calibrator, came.data, **options, **judged)
    options |= {"classes": list(read.classes), "pos_label": read.pos_label}
    return calibration_report(came.data, calibrator=calibrator, **options)


def too_few(table: ScoreTable) -> bool:
    """Whether a class has fewer than two rows, so that none of it is left when one is held out."""
    counts = ((table.negative, table.negative_sq), (table.positive, table.positive_sq))
    return any(w.sum() ** 2 < 1.999 * w2.sum() or not w.any() for w, w2 in counts)


# --- what is refused or said before anything else -------------------------------------------------


def refuse_one_class(read: FileScores) -> None:
    """Refuse to learn from rows of one class."""
    if not (read.data.total_positive and read.data.total_negative):
        first = first_look(read.data).headline(names_of(read.document))
        raise InputError(
            f"{first} Add rows of the other class; or, if you want a calibrator all the same, say "
            "--allow-one-class."
        )


def with_direction(read: FileScores, asked: str) -> FileScores:
    """What was read; where low scores mean the positive label, its facts and a note say so.

    ``asked`` is "rising", "falling" or "auto": as the labels show.
    """
    from calibrant.fitting.base import direction_of

    if read.several or direction_of(read.data, asked) == "rising":
        return read
    note(
        f"low scores mean {str(read.pos_label)!r}: they are read as {read.data.scale.turned}; the "
        "calibrator takes them as they are"
    )
    return replace(read, facts={**read.facts, "direction": "falling"})


def facing(read: FileScores, asked: str) -> FileScores:
    """What was read; where low scores mean the positive label, read the other way."""
    read = with_direction(read, asked)
    return read if direction_of(read) == "rising" else read.mirrored()


def direction_of(read: FileScores) -> str:
    """Whether high scores mean the positive label, or low ones."""
    direction: str = read.facts.get("direction", "rising")
    return direction


def refuse_wrong_way(read: FileScores, fitted: Fitted | None) -> None:
    """Refuse a calibrator that gives all rows one probability because the scores run the wrong way:
    most likely the other label is the positive one."""
    if read.several or fitted is None or fitted.rule.needs:
        return
    look = first_look(read.data)
    given = fitted.map(read.as_came.data.scores)
    if look.found != "wrong way" or np.ptp(given) > 1e-9:
        return
    option = f"--pos-label {shell_quoted(str(fitted.pos_label))}"
    raise InputError(
        f"{look.headline(names_of(read.document))} Nothing was written: the calibrator would "
        f"give all rows the same probability, {given[0]:.3g}. For low scores: "
        f"`{typed_again('--direction', 'falling')}`. If a high score should mean "
        f"{str(fitted.pos_label)!r} all the same, add {option}."
    )


def tell_others(advice: Iterable[Advice], first: str) -> None:
    """What else deserves a look, beside what was said first."""
    from calibrant.auto.advice import SAID_FIRST

    said = SAID_FIRST.values() if first else ()
    tell_advice(one.text for one in advice if one.text not in first and one.code not in said)
