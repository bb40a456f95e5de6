"""The work behind the commands on one score, and what they show of it."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from calibrant.cli.console import tell, tell_advice
from calibrant.cli.reading import FileFeatures, FileSegments, file_facts
from calibrant.data.documents import OUT_OF_FOLD, evaluation_facts, read_period
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.engines.rows import FileMatrix, FileTable
from calibrant.errors import (
    AdviceWarning,
    CalibrationWarning,
    InputError,
    ParameterError,
    did_you_mean,
    our_parameter,
    quoted,
)
from calibrant.fitting.files import save
from calibrant.fitting.fitted import Fitted, label_array
from calibrant.fitting.registry import DEFAULT, METHODS, OF_CLASSES, calibrator_class, method_name
from calibrant.metrics.cells import Bins
from calibrant.metrics.evaluating import (
    Evaluation,
    MulticlassEvaluation,
    evaluate,
    evaluate_held_out,
    without_praise,
)
from calibrant.metrics.groups import Multicalibration, multicalibration
from calibrant.metrics.headlines import (
    ClassLook,
    ClassNames,
    Face,
    FirstLook,
    LabelNames,
    first_look,
)
from calibrant.metrics.intervals import PairedCells
from calibrant.result_tables import shown_percent

if TYPE_CHECKING:
    from calibrant.auto.advice import Advice
    from calibrant.auto.auto import AutoCalibrator
    from calibrant.fitting.base import Calibrator
    from calibrant.methods.segments import SegmentedCalibrator
    from calibrant.reports.value import Report


#: above this many distinct scores the out-of-fold estimate is made on a pooled table
MOST_CELLS, POOLED_CELLS = 200_000, 100_000
#: of intervals where the command line has no option for it
LEVEL = 0.95


# --- fits ---------------------------------------------------------------------------------------


def fit_score(read: FileTable, calibrator: Calibrator, folds: int) -> FitResult:
    """Fit a calibrator, and estimate by cross-validation what it will do for new rows."""
    from calibrant.auto.advice import advise_table
    from calibrant.auto.auto import AutoCalibrator

    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    if folds and isinstance(calibrator, AutoCalibrator):
        calibrator.set_params(cv=folds)
    table = read.table
    fitted = with_facts(calibrator.fit_table(table).to_fitted(), read.facts)
    advice = advise_table(table, calibrator, names=names_of(file_facts(read)))
    result = FitResult(fitted, read, calibrator, advice, folds)
    if not folds or too_few(table):
        return result
    values = len(np.unique(fitted.map(table.scores)))
    if len(table) > MOST_CELLS:
        table = table.pool(POOLED_CELLS)
    seen = _of_choice(calibrator) or _held_out(calibrator, table, folds)
    if table.error:  # the automatic choice has pooled its own
        table = replace(seen.pair.scored(), error=table.error)
    return _judged(result, seen, table, values)


class Unseen(NamedTuple):
    """Predictions of rows that were held out, these beside the scores of the same rows, AUC before
    and after, and the folds."""

    after: ScoreTable
    pair: PairedCells
    aucs: tuple[float | None, float | None] | None
    folds: int


def _of_choice(calibrator: Any) -> Unseen | None:
    """The predictions that an automatic choice has made of rows held out; None without one."""
    board = getattr(calibrator, "leaderboard_", None)
    if board is None:
        return None
    name, aucs = calibrator.chosen_, (board["uncalibrated"].scores_auc, board.chosen.auc)
    return Unseen(calibrator.oof_[name], calibrator.pairs_[name], aucs, board.folds)


def _held_out(calibrator: Calibrator, table: ScoreTable, folds: int) -> Unseen:
    """The predictions of rows held out in turn."""
    from calibrant.fitting.held_out import HeldOutCells, fit_bare, ranked_as, try_all
    from calibrant.methods.uncalibrated import as_they_came

    held = HeldOutCells.of_table(table, folds, 0)
    before = as_they_came(table, held)
    after = try_all({"after": fit_bare(calibrator)}, held)["after"]
    aucs = (before.whole_auc, ranked_as(after, before)[0])
    return Unseen(held.predictions(after), held.paired(after), aucs, held.folds)


def _judged(result: FitResult, seen: Unseen, before: ScoreTable, values: int) -> FitResult:
    """The fit with the measures of rows held out: their scores, and so many probabilities."""
    sizes = {"scores": len(result.read.table), "values": values}
    evaluation = evaluate_held_out(
        seen.after, before, seen.pair, level=LEVEL, aucs=seen.aucs, **sizes
    )
    return replace(result, folds=seen.folds, evaluation=evaluation, before=before, after=seen.after)


def make_segmented(
    method: str, settings: Sequence[str], shrinkage: str | None
) -> SegmentedCalibrator:
    """An unfitted calibrator of segments: the default one, or that of a method."""
    from calibrant.data.door import check_parameters
    from calibrant.methods.segments import SegmentedCalibrator

    plain = method == DEFAULT and not settings
    calibrator = None if plain else make_calibrator(method, settings)
    made = SegmentedCalibrator(calibrator, shrinkage=read_value(shrinkage or "cv"))
    check_parameters(made, made._limits)
    return made


def fit_segments(tables: FileSegments, calibrator: SegmentedCalibrator, folds: int) -> FitResult:
    """Fit the segments, and estimate by cross-validation what that does for new rows."""
    from calibrant.auto.advice import advise_table
    from calibrant.methods.segments import predict_held_out

    read = tables.read
    calibrator.set_params(classes=list(read.classes), pos_label=read.pos_label)
    fitted = with_facts(calibrator.fit_tables(tables.by_key).to_fitted(), read.facts)
    advice = advise_table(read.table, names=names_of(file_facts(read)))
    result = FitResult(fitted, read, calibrator, advice, folds)
    if not folds or too_few(read.table):
        return result
    after, pair, dealt = predict_held_out(calibrator, tables.by_key, folds)
    if not after or pair is None:
        return replace(result, folds=0)
    return _judged(result, Unseen(after, pair, None, dealt), read.table, len(after))


def fit_features(given: FileFeatures, folds: int) -> FitResult:
    """The automatic choice with the columns as one more candidate."""
    from calibrant.auto.auto import AutoCalibrator

    file, rows = given.read, given.rows
    auto = AutoCalibrator(cv=folds or 5, classes=list(file.classes), pos_label=file.pos_label)
    with quietly():
        auto.fit(rows.scores, given.y, rows.weight, features=given.features)
    fitted = with_facts(auto.to_fitted(), file.facts)
    result = FitResult(fitted, file, auto, auto.advice_, folds)
    seen = _of_choice(auto)
    if not folds or seen is None or too_few(file.table):
        return replace(result, folds=0)
    return _judged(result, seen, seen.pair.scored(), len(np.unique(seen.after.scores)))


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of single fits: what they say is shown with the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        yield


def check_folds(folds: int) -> None:
    """Refuse a number of folds before anything is read."""
    if folds < 0 or folds == 1:
        raise ParameterError(f"cv must be at least 2, or 0 for no estimate, but {folds} came.")


# --- the record of a fit ------------------------------------------------------------------------


def time_facts(period: str | None) -> dict[str, Any]:
    """The time of the fit, and the period that its rows are from, if it is known."""
    known = {} if period is None else {"period": read_period(period)}
    return {**known, "fitted_at": time_stamp()}


def recorded(result: FitResult, facts: Mapping[str, Any]) -> FitResult:
    """The same fit with more in its provenance: these facts, and its measures."""
    more = dict(facts)
    if result.evaluation is not None:
        more["measures"] = evaluation_facts(result.evaluation, OUT_OF_FOLD, result.folds)
    return replace(result, fitted=with_facts(result.fitted, more))


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


# --- comparisons --------------------------------------------------------------------------------


def compare(read: FileTable, methods: Sequence[str], folds: int) -> AutoCalibrator:
    """The automatic choice among methods by name, fitted and judged."""
    from calibrant.auto.auto import AutoCalibrator

    names = [name for name in dict.fromkeys(methods) if name not in ALWAYS]
    candidates = {name: make_calibrator(name, []) for name in names}
    auto = AutoCalibrator(
        candidates=candidates, cv=folds, classes=list(read.classes), pos_label=read.pos_label
    )
    return auto.fit_table(read.table)


def evaluate_each(
    tables: Mapping[Any, ScoreTable], bins: Bins, measures: Sequence[str] | None = None
) -> dict[str, Evaluation]:
    """The measures of each segment, the largest first."""
    from calibrant.data.segments import segment_titles

    keys = sorted(tables, key=lambda key: -tables[key].total)
    names = segment_titles(keys)
    return {
        name: evaluate(tables[key], bins=bins, level=None, measures=measures)
        for name, key in zip(names, keys, strict=True)
    }


def find_groups(
    given: FileFeatures, fitted_map: Callable[[Any], Any] | None = None, **drawing: Any
) -> Multicalibration:
    """Where the scores, or what a map makes of them, are wrong; ``drawing`` goes to the measure."""
    rows = given.rows
    p = rows.scores if fitted_map is None else fitted_map(rows.scores).clip(0.0, 1.0)
    return multicalibration(
        rows.positive.astype(int),
        p,
        features=given.features,
        sample_weight=rows.weight,
        classes=[0, 1],
        **drawing,
    )


def with_groups(page: Report, given: FileFeatures | None) -> Report:
    """A page that also tells where its map is wrong, if rows with features were read."""
    if given is None or page.fitted is None:
        return page
    from calibrant.reports.page import for_page

    found = find_groups(given, page.fitted.map, level=page.level)
    return replace(page, groups=for_page(found))


# --- What came of a fit: the calibrator, how it does on rows it has not seen, and what shows it ---


@dataclass(frozen=True)
class FitResult:
    """A fitted calibrator, and how it does on rows it has not seen.

    ``read`` is what it was fitted to. ``evaluation``, and the tables ``before`` and ``after`` that
    it compares, are None where nothing could be held out.
    """

    #: what the diagram shows, where that must be said
    diagram_title: ClassVar[str] = ""
    #: why there is no estimate for new rows
    too_few_words: ClassVar[str] = "A class has no second row: there is no estimate for new rows."

    fitted: Fitted
    read: Any
    calibrator: Any
    advice: tuple[Advice, ...]
    folds: int
    evaluation: Evaluation | MulticlassEvaluation | None = None
    before: ScoreTable | None = None
    after: ScoreTable | None = None

    @property
    def segments(self) -> tuple[Any, ...]:
        """What became of each segment, if there are some."""
        found: tuple[Any, ...] = getattr(self.calibrator, "segments_", ())
        return found

    @property
    def verdict(self) -> str | None:
        """The automatic choice in words, if there was one."""
        if not hasattr(self.calibrator, "explain"):
            return None
        said: str = self.calibrator.explain(names=self.names)
        return said

    @cached_property
    def look(self) -> FirstLook | ClassLook:
        """What the scores themselves show."""
        return first_look(self.read.table)

    @property
    def names(self) -> Any:
        """How words name the labels: `LabelNames`, or `ClassNames` of several classes."""
        return names_of(file_facts(self.read))

    @property
    def shown_evaluation(self) -> Any:
        """The evaluation without what was said before it."""
        evaluation: Any = self.evaluation
        found = replace(evaluation, look=None)
        return without_praise(found) if self.look.unproven else found

    @property
    def sizes(self) -> str:
        """The classes and the scores, in words."""
        table = self.read.table
        share = shown_percent(table.total_positive / table.total)
        scores = f"{len(table):,} distinct scores."
        if table.made:
            moved = f"no score was moved by more than {table.error:.2g}"
            scores = f"{len(table):,} of {table.made}; {moved}."
        return f"{share} are {self.fitted.pos_label!r}, {scores}"

    def picture(self, format: str) -> bytes:
        """The reliability diagram of rows held out."""
        if self.after is None:
            raise InputError("a plot needs at least two rows of each class.")
        shown = None if "feature_columns" in self.read.facts else self.fitted
        return draw(self.after, self.before, format=format, fitted_map=shown)

    def page(self, saved_as: Path | None) -> Report:
        """The page on the fit."""
        return page_of(self.calibrator, self.read, saved_as=saved_as)


# --- What commands write for people to look at: pictures and pages --------------------------------


#: panels of classes that a picture has
PANELS = 11
#: thresholds of a drawn decision curve
STEPS = 200


# --- pictures, as the bytes of a file -----------------------------------------------------------


def draw(
    after: ScoreTable,
    before: ScoreTable | None = None,
    *,
    format: str = "png",
    bins: Bins = 10,
    fitted_map: Fitted | None = None,
    title: str | None = None,
) -> bytes:
    """A reliability diagram."""
    from calibrant.diagrams.draw.figures import render
    from calibrant.diagrams.draw.reliability import reliability_diagram

    figure = reliability_diagram(after, raw=before, bins=bins, fitted_map=fitted_map, title=title)
    return render(figure, format)


def draw_classes(
    after: ScoreMatrix,
    before: ScoreMatrix | None,
    classes: Sequence[Any],
    *,
    format: str = "png",
    bins: Bins = 10,
    title: str | None = None,
) -> bytes:
    """A reliability diagram of the top label and of each class, the heaviest of many."""
    from calibrant.diagrams.draw.figures import render
    from calibrant.diagrams.draw.reliability import class_diagram

    heaviest = np.argsort(-after.class_weight, kind="stable")[:PANELS]
    figure = class_diagram(
        label_array(tuple(classes))[after.codes],
        after.scores,
        classes=list(classes),
        show=[classes[column] for column in sorted(heaviest.tolist())],
        bins=bins,
        sample_weight=after.weight,
        raw=None if before is None else before.scores,
        title=title,
    )
    return render(figure, format)


def draw_decision(
    tables: Mapping[str, ScoreTable],
    ends: tuple[float, float] | None = None,
    *,
    format: str = "png",
    title: str | None = None,
) -> bytes:
    """The decision curves of columns of scores, between two thresholds."""
    from calibrant.diagrams.decision import decision_curve
    from calibrant.diagrams.draw.figures import render
    from calibrant.diagrams.draw.others import decision_diagram

    read = {name: table.as_probabilities() for name, table in tables.items()}
    for name, table in read.items():
        if table is None:
            raise InputError(
                f"a decision curve needs probabilities, but {name!r} holds points. Leave it out, "
                "or calibrate it first."
            )
    thresholds = None if ends is None else np.linspace(*ends, STEPS)
    curve = decision_curve(None, read, thresholds=thresholds)
    return render(decision_diagram(curve, title=title), format)


def read_thresholds(text: str) -> tuple[float, float]:
    """The ends LOW:HIGH of the thresholds of a decision curve."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        low = high = math.nan
    if not 0.0 < low < high < 1.0:
        raise ParameterError(
            "--thresholds must be two numbers with a colon between them, such as 0.05:0.5, above 0 "
            f"and below 1, the smaller first, but {text!r} came."
        )
    return low, high


# --- pages --------------------------------------------------------------------------------------


def page_of(
    calibrator: Calibrator,
    read: FileTable,
    *,
    title: str | None = None,
    saved_as: Path | None = None,
    measures: Sequence[str] | None = None,
) -> Report:
    """The page on a calibrator that was fitted to a table of files."""
    from calibrant.reports.report import calibration_report, report_of

    options: dict[str, Any] = {"title": title, "measures": measures, **page_words(read, saved_as)}
    if too_few(read.table):
        first = first_look(read.table).headline(names_of(file_facts(read)))
        raise InputError(f"{first} A report needs at least two rows of each class.".strip())
    if getattr(calibrator, "leaderboard_", None) is not None:
        return report_of(calibrator, read.table, **options)
    options |= {"classes": list(read.classes), "pos_label": read.pos_label}
    return calibration_report(read.table, calibrator=calibrator, **options)


def page_words(read: FileTable | FileMatrix, saved_as: Path | None) -> dict[str, Any]:
    """What a page calls the columns, the files and the calibrator."""
    facts = read.facts
    columns = facts["score_columns"] if isinstance(read, FileMatrix) else [facts["score_column"]]
    return {
        "score_name": ", ".join(columns[:3]) + (", …" if len(columns) > 3 else ""),
        "label_name": facts["label_column"],
        "source": {"files": ", ".join(facts["files"]), "rows": f"{facts['rows']:,}"},
        "saved_as": "calibrator.json" if saved_as is None else str(saved_as),
    }


def too_few(table: ScoreTable) -> bool:
    """Whether a class has fewer than two rows, so that none of it is left when one is held out."""
    counts = ((table.negative, table.negative_sq), (table.positive, table.positive_sq))
    return any(w.sum() ** 2 < 1.999 * w2.sum() or not w.any() for w, w2 in counts)


# --- What is said before anything else: one class, too few rows, the wrong way, nothing to see ----


def names_of(facts: Mapping[str, Any], face: Face = "command line") -> Any:
    """How words name the labels, their column and the option: `LabelNames`, or `ClassNames` of
    several classes. The facts are those of `file_facts`."""
    column = facts["label_column"]
    if "pos_label" in facts:
        return LabelNames.of(facts["classes"], facts["pos_label"], column, face)
    return ClassNames.of(facts["classes"], column, facts["score_columns"], face)


def tell_first(look: Any, names: Any) -> str:
    """Say what must be known before anything else, and return it; nothing where all is well."""
    first = "" if look is None else look.headline(names)
    if first:
        tell((first, "bold yellow"))
    return first


def tell_others(advice: Iterable[Advice], first: str) -> None:
    """What else deserves a look, beside what was said first."""
    from calibrant.auto.advice import SAID_FIRST

    said = SAID_FIRST.values() if first else ()
    tell_advice(one.text for one in advice if one.text not in first and one.code not in said)


def refuse_one_class(read: FileTable) -> None:
    """Refuse to learn from rows of one class."""
    look = first_look(read.table)
    if look.found == "one class":
        first = look.headline(names_of(file_facts(read)))
        raise InputError(
            f"{first} Add rows of the other class; or, if you want a calibrator all the same, say "
            "--allow-one-class."
        )


def refuse_wrong_way(read: Any, fitted: Fitted | None) -> None:
    """Refuse a calibrator that gives all rows one probability because the scores run the wrong way:
    most likely the other label is the positive one."""
    if not isinstance(read, FileTable) or fitted is None or fitted.rule.needs:
        return
    look = first_look(read.table)
    given = fitted.map(read.table.scores)
    if look.found != "wrong way" or np.ptp(given) > 1e-9:
        return
    option = f"--pos-label {quoted(str(fitted.pos_label))}"
    raise InputError(
        f"{look.headline(names_of(file_facts(read)))} Nothing was written: the calibrator would "
        f"give all rows the same probability, {given[0]:.3g}. If {fitted.pos_label!r} is the "
        f"positive label all the same, add {option}."
    )


# --- Methods by the names that the command line knows them by -------------------------------------


#: parameters that the command line fills in itself, or that are no plain values
OWN = ("pos_label", "classes", "candidates", "progress")
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


def make_calibrator(method: str, settings: Sequence[str]) -> Calibrator:
    """An unfitted calibrator from its name and ``key=value`` words.

    >>> make_calibrator("isotonic", ["interpolation=centred"])
    Isotonic(interpolation='centred')
    """
    from sklearn.base import clone

    calibrator: Calibrator = calibrator_class(method)(**_settings(method, settings))
    # a trial on two scores refuses a wrong value now, not after hours of reading
    clone(calibrator).fit_table(ScoreTable.from_counts([0.25, 0.75], [2, 1], [1, 2]))
    return calibrator


def make_class_calibrator(method: str, settings: Sequence[str]) -> Any:
    """The same for scores of several classes; a method of one score takes each against the rest.

    >>> make_class_calibrator("platt", [])
    CodedCalibrator(calibrator=Platt())
    """
    from sklearn.base import clone

    from calibrant.fitting.base import Calibrator
    from calibrant.methods.codes.calibrator import CodedCalibrator

    made = calibrator_class(method)(**_settings(method, settings, several=True))
    if isinstance(made, Calibrator) and not made.multiclass:
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
            ours = our_parameter(key, known, read_value(value))
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


def check_methods(methods: Sequence[str], *, several: bool = False) -> list[str]:
    """The names of methods as the registry has them, or an error before anything is read."""
    return [offered(name, several=several) for name in methods]
