"""The report of scores of two or of several classes, from rows or from a table."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from calibrant.array_types import Array
from calibrant.auto.advice import (
    SAID_FIRST,
    advise_segment_tables,
    advise_segments,
    advise_table,
    said_direction,
)
from calibrant.auto.auto import KINDS, AutoCalibrator, class_fits, count_distinct
from calibrant.auto.why import Leaderboard, share_in_words, why_preferred
from calibrant.data.attributes import read_attributes as read_features
from calibrant.data.columns import as_in_fit, plain
from calibrant.data.door import (
    Rows,
    check_distributions,
    check_lengths,
    check_word,
    read_binary,
    read_class_pair,
    read_probabilities,
)
from calibrant.data.score_matrix import ScoreMatrix, read_matrix, read_score_matrix
from calibrant.data.score_table import CellColumns, ScoreTable
from calibrant.data.segments import read_segments, segment_titles
from calibrant.diagrams.curve import (
    MapCurve,
    cell_edges,
    histogram_of,
    map_curve,
    probability_window,
    reliability_curve,
)
from calibrant.diagrams.decision import DecisionCurve, decision_curve
from calibrant.errors import CalibrationWarning, InputError, ParameterError, shell_quoted
from calibrant.fitting.base import (
    DIRECTIONS,
    Calibrator,
    VectorCalibrator,
    count_columns,
    direction_of,
    facts_of_matrix,
)
from calibrant.fitting.fitted import Fitted
from calibrant.fitting.folds import is_fold_count, soft_cells
from calibrant.fitting.held_out import (
    HeldOutCells,
    HeldOutMatrix,
    Trial,
    choose,
    fit_copies,
    standings,
    try_all,
)
from calibrant.fitting.registry import BEFORE, named_methods, to_calibrators
from calibrant.methods.codes.calibrator import CodedCalibrator
from calibrant.methods.codes.codes import read_code
from calibrant.methods.uncalibrated import Uncalibrated, unchanged_trial
from calibrant.metrics.chance import clopper_pearson
from calibrant.metrics.evaluating import (
    Evaluation,
    MulticlassEvaluation,
    evaluate,
    evaluate_held_out,
    with_auc_within_folds,
    without_praise,
)
from calibrant.metrics.groups import Multicalibration, multicalibration_of_rows
from calibrant.metrics.headlines import ClassNames, Face, LabelNames, class_look, first_look
from calibrant.metrics.intervals import PairedCells
from calibrant.metrics.measures import CLASS_MEASURES, MEASURES, chosen_records
from calibrant.metrics.tables import class_table, top_table
from calibrant.reports.kit import (
    Recipe,
    check_output,
    check_texts,
    common_axis,
    source_facts,
    version_facts,
)
from calibrant.reports.page import (
    AS_THEY_ARE,
    ONE_RATE,
    Method,
    Panel,
    PredictionSpread,
    Report,
    below_headline,
    recipes_for,
    verdict_of,
    worst_groups,
)
from calibrant.result_tables import format_count, short_value, shown_percent
from calibrant.rules.base import VectorMap
from calibrant.rules.combiners import singled_out
from calibrant.rules.sigmoids import Identity

#: what may be judged: calibrators and their names, alone or several; or what was made before
AnyCalibrators = (
    Calibrator
    | VectorCalibrator
    | CodedCalibrator
    | Fitted
    | str
    | Sequence[Any]
    | Mapping[str, Any]
    | None
)
#: where the data of a page come from
Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Any] | None
#: groups of equal weight of each curve, and cells of the histograms
BINS, CELLS = 10, 40


def calibration_report(
    scores: ArrayLike | ScoreTable,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    calibrator: AnyCalibrators = None,
    segments: Any = None,
    direction: Literal["rising", "falling", "auto"] | None = None,
    pos_label: Any = None,
    classes: Any = None,
    title: str | None = None,
    score_name: str = "score",
    label_name: str = "label",
    source: Source = None,
    saved_as: str | None = None,
    output: str | os.PathLike[str] | None = None,
    measures: str | Sequence[str] | None = None,
    features: Any = None,
) -> Report:
    """Which calibrator, are we better off, and how sure are we: the answers on one page.

    Parameters
    ----------
    scores : array-like of shape (n,), (n, 1), (n, 2) or (n, k), or ScoreTable
        Scores of any kind; or a table, which holds labels and weights (then no ``y``).
    y : array-like of shape (n,)
        Labels.
    sample_weight : array-like of shape (n,), optional
        Weights ≥ 0; a row of weight zero is as if absent.
    calibrator : default: ``AutoCalibrator()``
        A calibrator or its name, a list or a dict of several: clones of them are fitted here, and
        judged out of fold. A `Fitted` (from `load`), or a dict of names to such or to probabilities
        of the same rows: judged on these rows as they are, which must be other rows than those
        they were made from.
    segments : array-like of shape (n,), or several columns, or dict of ScoreTables, optional
        A group of each row (region, product, …): the page shows whether one map fits them all.
        Where ``scores`` is a table, the table of each group by its name.
    direction : {"rising", "falling", "auto"}, default: that of the calibrator
        Whether high scores mean ``pos_label``, or low ones, as credit scores do; "auto": as the
        labels show. Two classes only.
    pos_label : label, optional
        What a high score means; default: the larger class.
    classes : labels, optional
        All of them, where y may lack some or ``scores`` is a table.
    title, score_name, label_name : str
        What the page calls itself and the two columns.
    source : str, path, list of such, or mapping of words to values, optional
        Where the data come from, for the last section. A date stands there only if given here.
    saved_as : str, optional
        The file that the calibrator is in, for the lines that tell how to apply it. Without one
        they begin with the line that saves it.
    output : path, optional
        Where to write the page; none of the files that ``source`` names.
    measures : str or list of str, optional
        Measures beside the standard ones, by name or group, as in `evaluate`: ``"clinical"``, say.
    features : frame or array of shape (n, columns), optional
        Columns of the same rows: the page tells in which groups of rows the chosen map is wrong
        (see `calibrant.metrics.multicalibration`). Two classes only.

    Returns
    -------
    Report
        Frozen; ``to_html()``, ``save(path)``, ``to_dict()``; its ``fitted`` is what `save` takes.

    Notes
    -----
    Losses are means over rows held out; the gain is the paired difference to the scores as they
    are (margins through the sigmoid), with its interval. Curves have ten groups of equal weight
    with Clopper–Pearson intervals of their effective sample size. Segments are judged with the
    final map on the rows it was fitted to, which flatters a little, and so are the groups of
    ``features``. The same data give the same
    page, byte for byte. Cost: that of the calibrators' fits, six for each, and O(N log N).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Platt
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> r = calibration_report(p, rng.random(2000) < p**3, calibrator=Platt())
    >>> r
    Report('Calibration of score', 1 method, 'Platt' chosen)
    >>> r.verdict[0]
    'Calibrate these scores with a sigmoid (Platt) before using them as probabilities.'
    """
    words = PageWords(title or "", score_name, label_name, saved_as, source)
    check_output(output, source)
    for one in calibrator.values() if isinstance(calibrator, Mapping) else [calibrator]:
        if isinstance(one, Fitted):
            scores = as_in_fit(scores, one.provenance, one.classes)
    several = not isinstance(scores, ScoreTable) and count_columns(scores) > 2
    if several:
        _check_codes(calibrator)
        if direction not in (None, "rising"):
            raise InputError("direction is for scores of two classes, but several columns came.")
    shown = _measures_shown(measures, several=several)
    if features is not None:
        check_features(scores, features, several=several)
    if several:
        many = SeveralClasses.read(scores, y, sample_weight, classes, segments)
        made = _report(many, judge_calibrators(many, calibrator), segments, words, shown)
    else:
        two = TwoClasses.read(scores, y, sample_weight, pos_label, classes, calibrator, direction)
        made = _report(two, judge_calibrators(two, calibrator), segments, words, shown)
        if features is not None and two.rows is not None:
            groups = groups_of(two.rows, features, made.fitted, made.level)
            made = replace(made, groups=groups)
    if output is not None:
        made.save(output)
    return made


def report_of(
    calibrator: Any,
    data: ScoreTable | ScoreMatrix,
    *,
    held: HeldOutMatrix | None = None,
    trials: Mapping[str, Trial] | None = None,
    segments: Mapping[str, ScoreTable] | None = None,
    title: str | None = None,
    score_name: str = "score",
    label_name: str = "label",
    source: Any = None,
    saved_as: str | None = None,
    measures: str | Sequence[str] | None = None,
) -> Report:
    """The report of a calibrator that is fitted to this table, or matrix, already: nothing is
    fitted.

    It is an `AutoCalibrator`, or any of several classes with what was ``held`` out and the
    ``trials`` of the scores and the calibrator on it. The other options are those of
    `calibration_report`.

    >>> from calibrant import AutoCalibrator, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.4, 0.8], [30, 20, 10], [10, 20, 30])
    >>> r = report_of(AutoCalibrator().fit_table(table), table)
    >>> r.chosen.name
    'scores as they are'
    """
    words = PageWords(title or "", score_name, label_name, saved_as, source)
    automatic = getattr(calibrator, "leaderboard_", None) is not None
    shown = _measures_shown(measures, several=isinstance(data, ScoreMatrix))
    if isinstance(data, ScoreMatrix):
        several = SeveralClasses(data, np.asarray(calibrator.classes_))
        if automatic:
            return _report(several, contest_of_automatic(calibrator), None, words, shown)
        if held is not None and trials is not None:
            (name,) = named_methods([calibrator], kinds=KINDS, word="calibrator")
            before, after = trials.values()
            judged = {BEFORE: before, name: replace(after, fitted=calibrator)}
            return _report(several, contest_of_trials(several, judged, held), None, words, shown)
    elif automatic:
        labels = tuple(plain(label) for label in calibrator.classes_)
        two = TwoClasses(
            data, labels, plain(calibrator.pos_label_), direction=calibrator.direction_
        )
        return _report(two, contest_of_automatic(calibrator), segments, words, shown)
    raise InputError("a report needs an AutoCalibrator that is fitted and could be judged.")


@dataclass(frozen=True)
class PageWords:
    """The names that the caller gives to the page, its columns, its file and its source."""

    title: str
    score_name: str
    label_name: str
    saved_as: str | None
    source: Any

    def __post_init__(self) -> None:
        texts = {"score_name": self.score_name, "label_name": self.label_name}
        check_texts(title=self.title, **texts, saved_as=self.saved_as or "")
        source_facts(self.source)  # refused before anything is fitted


def _measures_shown(measures: Any, *, several: bool = False) -> list[str]:
    """The names of the standard measures and of those asked for, which must be known."""
    records = CLASS_MEASURES if several else MEASURES
    asked = {} if measures is None else chosen_records(records, measures)
    return [*chosen_records(records), *asked]


def _check_codes(calibrator: Any) -> None:
    """Refuse calibrators of pairs of classes and of other codes, whose scores are no column of each
    class: there is nothing that they could be compared with."""
    made = getattr(calibrator, "candidates", calibrator)
    if isinstance(made, Mapping):
        made = list(made.values())
    for one in made if isinstance(made, (list, tuple)) else [made]:
        code = getattr(one.rule if isinstance(one, Fitted) else one, "code", "one_vs_rest")
        if isinstance(code, str):
            fits = code == "one_vs_rest"
        else:
            order = singled_out(read_code(code).matrix.astype(np.float64))
            fits = order is not None and bool((order == np.arange(len(order))).all())
        if not fits:
            called = repr(code) if isinstance(code, str) else "of its own"
            raise InputError(
                "a report needs a column of scores for each class, in the order of the classes, "
                f"but a calibrator with a code {called} came, which reads a column for each "
                "question of the code (such as a pair of classes). Combine them first: "
                "calibration_report(p, y) with p = calibrator.predict_proba(scores), on rows that "
                "it was not fitted to."
            )


def _report(
    data: TwoOrMore, contest: Contest, segments: Any, words: PageWords, measures: list[str]
) -> Report:
    """The report of a contest, with all that its page says."""
    methods, fitted = _methods(data, contest), contest.fitted
    evaluation = data.evaluation(contest, measures)
    headline, useless = data.headline(words.label_name)
    if useless:
        evaluation = without_praise(evaluation)
    compared = evaluation.before is not None and "log_loss" in evaluation.before
    verdict = verdict_of(
        methods,
        level=contest.board.level,
        where=contest.where,
        single=contest.single,
        word=evaluation.verdict("log_loss") if compared else None,
    )
    share = 1.0 if fitted is None else fitted.provenance.get("share", 1.0)
    drawn = share_in_words(share, points=methods[0].name == ONE_RATE)
    verdict = (verdict[0], f"{verdict[1]} {drawn}".strip())
    if headline:
        verdict = below_headline(headline, verdict, methods, useless=useless)
    rule = "" if contest.single else why_preferred(contest.board)
    return Report(
        title=words.title or f"Calibration of {words.score_name}",
        verdict=verdict,
        how=f"{contest.how}{SOFT_LABELS if data.has_soft_labels(contest) else ''} {rule}".strip(),
        methods=methods,
        evaluation=evaluation,
        map_curve=data.map_curve(fitted),
        panels=data.panels(contest, segments),
        panel_kind=data.panel_kind,
        decision=None if useless else data.decision(contest),
        advice=data.advice(contest, segments),
        facts=source_facts(words.source)
        | data.facts(words.score_name, words.label_name)
        | map_facts(fitted)
        | version_facts(),
        recipes=data.recipes(fitted, words),
        fitted=fitted,
        level=contest.board.level,
        caution=bool(headline),
    )


def _methods(data: TwoOrMore, contest: Contest) -> tuple[Method, ...]:
    """The leaderboard with curves: the scores as they are, then the others, best first."""
    tables = {name: data.curve_table(one) for name, one in contest.predictions.items()}
    curves = {
        name: reliability_curve(table, bins=BINS, binning="mass", level=contest.board.level)
        for name, table in tables.items()
    }
    axis, odds = (common_axis(curves.values(), odds=odds) for odds in (False, True))
    methods = []
    for row in sorted(contest.board.rows, key=lambda row: row.name != BEFORE):
        name, table, known = row.name, tables[row.name], vars(row)
        figures = {n: known[n] for n in ("log_loss", "brier", "auc", "distinct", "chosen")}
        figures |= {n: known[n] for n in ("log_loss_se", "brier_se") if np.isfinite(known[n])}
        if name == BEFORE:  # one rate for all rows does not rank as the scores do
            name, figures["auc_change"] = data.before, row.auc_change or None
        else:
            figures |= {n: known[n] for n in ("gain", "gain_low", "gain_high", "auc_change")}
        spreads = []
        for of in (axis, odds):
            edges = cell_edges(of.low, of.high, CELLS, odds=of.logit)
            spreads.append(PredictionSpread(edges, histogram_of(table, edges) / table.total))
        figures |= {"curve": curves[row.name], "spread": spreads[0], "logit_spread": spreads[1]}
        methods.append(Method(name=name, **figures))
    return tuple(methods)


# --- Which method is taken: all are judged beside the scores as they are, on the same rows --------


#: folds and level where the caller brings no `AutoCalibrator` with its own
FOLDS = 5
LEVEL = 0.95
#: what a page says where labels are probabilities
SOFT_LABELS = (
    " Some labels are probabilities, so that a row counts partly for each class. Tests and "
    "intervals take every label as a class that was drawn, so that intervals are rather too wide."
)
#: predictions that differ by no more are one rate for all rows
SAME_RATE = 1e-9
TOO_FEW = "a report needs at least two rows of each class, or nothing can be judged on other rows."


@dataclass(frozen=True)
class Contest:
    """The leaderboard, and what stands behind it: all predictions, and the map that is taken.

    Attributes
    ----------
    board : Leaderboard
        Its ``folds`` are 0 for maps that were made before.
    predictions : mapping of str to ScoreTable or ScoreMatrix
        The probabilities of each method for the rows of the contest, with what came.
    fitted : Fitted or None
        The map of the chosen method, where there is one.
    calibrator : Any
        The chosen method, fitted, where advice can be given on it.
    single : bool
        Whether only one method was asked about: it is the chosen one, whatever its figures.
    pairs : mapping of str to PairedCells
        Two classes: the predictions of each method beside the scores of the same rows.
    """

    board: Leaderboard
    predictions: Mapping[str, Any]
    fitted: Fitted | None
    calibrator: Any = None
    single: bool = False
    pairs: Mapping[str, PairedCells] = field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """The name of the chosen method."""
        return self.board.chosen.name

    @property
    def before_and_after(self) -> tuple[Any, Any]:
        """The predictions of the scores as they are, and of the chosen method."""
        return self.predictions[BEFORE], self.predictions[self.chosen]

    @property
    def aucs(self) -> tuple[float | None, float | None] | None:
        """The AUC within folds before and after; None for maps that were made before, and for the
        scores as they are, which are the same in all folds."""
        if not self.board.folds or self.chosen == BEFORE:
            return None
        return self.board[BEFORE].scores_auc, self.board.chosen.auc

    @property
    def how(self) -> str:
        """How the figures were obtained."""
        folds = self.board.folds
        if not folds:
            return (
                "Judged on these rows with calibrators that were made before: they must be other "
                "rows."
            )
        times = f"{folds} fold{'s' * (folds != 1)}"
        return f"Judged out of fold ({times}): no row was judged by a calibrator that had seen it."

    @property
    def where(self) -> str:
        """The rows that the verdict speaks of."""
        return "On rows it had not seen" if self.board.folds else "On these rows"


def judge_calibrators(data: TwoOrMore, calibrator: Any) -> Contest:
    """The contest of what came as ``calibrator``: of an automatic choice, of calibrators that are
    fitted here, or of maps and probabilities that were made before."""
    calibrator = AutoCalibrator() if calibrator is None else to_calibrators(calibrator)
    if isinstance(calibrator, AutoCalibrator):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # the page says it
            return contest_of_automatic(data.fit_automatic(clone(calibrator)))
    if isinstance(calibrator, Fitted):
        calibrator = {calibrator.method or "calibrator": calibrator}
    to_fit = (*data.kinds, type)
    if not isinstance(calibrator, Mapping) or all(
        isinstance(one, to_fit) for one in calibrator.values()
    ):
        named = named_methods(calibrator, kinds=data.kinds, word="calibrator")
        folds = data.folds()
        trials = {BEFORE: data.unchanged(folds), **data.fit_all(named, folds)}
        return contest_of_trials(data, trials, folds)
    made = {str(name): one for name, one in calibrator.items()}
    if BEFORE in made:
        raise ParameterError(f"calibrator must not hold the name {BEFORE!r}: it is always there.")
    for name, one in made.items():
        if isinstance(one, to_fit):
            raise ParameterError(
                "calibrator must hold either calibrators to be fitted here, or maps and "
                f"probabilities that were made before, but both came ({name!r} is one to be "
                "fitted)."
            )
    held = data.all_rows(apart=not all(isinstance(one, Fitted) for one in made.values()))
    trials = {name: held.trial(data.predicted(name, one, held)) for name, one in made.items()}
    return contest_of_trials(data, {BEFORE: data.unchanged(held), **trials}, held, made)


def contest_of_trials(
    data: TwoOrMore,
    trials: Mapping[str, Trial],
    held: HeldOutCells | HeldOutMatrix,
    made: Mapping[str, Any] | None = None,
) -> Contest:
    """The contest of trials on the same rows, the first of them the scores as they are.

    A single method beside these is taken whatever its figures. ``made`` are the methods that were
    made before, in place of calibrators that are fitted here.
    """
    # times differ from run to run; the page must not
    trials = {name: replace(trial, seconds=0.0) for name, trial in trials.items()}
    sample = held.sample
    predictions = {name: held.predictions(trial) for name, trial in trials.items()}
    chosen, tied = choose(trials, held)
    single = len(trials) == 2
    if single:
        _, chosen = trials
    distinct = {name: data.distinct(one, predictions[name]) for name, one in trials.items()}
    rows = standings(trials, sample, level=LEVEL, chosen=chosen, tied=tied, distinct=distinct)
    calibrator = fitted = None
    if made is None:
        calibrator, fitted = trials[chosen].fitted, data.fitted(trials[chosen])
    elif isinstance(made.get(chosen), Fitted):
        calibrator = fitted = made[chosen]
    board = Leaderboard(rows, held.folds if made is None else 0, LEVEL, sample.total)
    pairs = {}
    if isinstance(data, TwoClasses) and isinstance(held, HeldOutCells):
        read = data.turned(held)
        pairs = {name: read.paired(trial) for name, trial in trials.items()}
    return Contest(board, predictions, fitted, calibrator, single, pairs)


def contest_of_automatic(auto: AutoCalibrator) -> Contest:
    """The contest that a fitted AutoCalibrator has held already."""
    if auto.leaderboard_ is None:
        raise InputError(TOO_FEW)
    fitted = auto.to_fitted()
    # seconds differ from run to run; the page must not
    facts = {key: value for key, value in fitted.provenance.items() if key != "leaderboard"}
    fitted = replace(fitted, provenance=facts)
    return Contest(auto.leaderboard_, auto.oof_, fitted, auto.calibrator_, pairs=auto.pairs_)


# --- What methods are judged on, and what the page shows of it: two classes, or several -----------
# Both kinds of data say the same things, and their methods are in the same order.


class ReportData:
    """What the data of all reports have in common; what only one kind has is empty here."""

    classes: Any

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels of the classes as plain Python values."""
        return tuple(plain(label) for label in self.classes)

    @property
    def before(self) -> str:
        """What the page calls the scores without a calibrator."""
        return AS_THEY_ARE

    def map_curve(self, fitted: Fitted | None) -> MapCurve | None:
        """The line of the chosen map, where one can be drawn."""
        return None

    def advice(self, contest: Contest, segments: Any) -> tuple[str, ...]:
        """What deserves a look, in sentences with figures."""
        return ()

    def has_soft_labels(self, contest: Contest) -> bool:
        """Whether some rows count for both classes, since their labels are probabilities."""
        return False

    def decision(self, contest: Contest) -> DecisionCurve | None:
        """What acting on the chosen probabilities is worth, beside the scores as they are."""
        return None

    def recipes(self, fitted: Fitted | None, words: PageWords) -> tuple[Recipe, ...]:
        """How to apply the chosen map."""
        return () if fitted is None else recipes_for(fitted, words.score_name, words.saved_as)


# --- The report of scores of several classes: the top label, and each class against the rest ------


@dataclass(frozen=True)
class SeveralClasses(ReportData):
    """Rows with a score for each class, and the labels of the classes."""

    matrix: ScoreMatrix
    classes: NDArray[Any]

    kinds: ClassVar[tuple[type, ...]] = KINDS
    panel_kind: ClassVar[str] = "class"

    @classmethod
    def read(cls, scores: Any, y: Any, sample_weight: Any, classes: Any, segments: Any) -> Self:
        """Rows of k ≥ 3 columns of scores."""
        if segments is not None:
            raise InputError("segments are for scores of two classes, but several columns came.")
        if y is None:
            raise InputError("y must be given beside scores of several classes.")
        return cls(*read_matrix(scores, y, sample_weight, classes))

    # --- judging --------------------------------------------------------------------------------

    def fit_automatic(self, auto: AutoCalibrator) -> AutoCalibrator:
        """The automatic choice, fitted to these data."""
        matrix = self.matrix
        auto.set_params(classes=list(self.classes))
        return auto.fit(matrix.scores, self.classes[matrix.codes], matrix.weight)

    def folds(self) -> HeldOutMatrix:
        """The rows in folds."""
        return HeldOutMatrix.of_matrix(self.matrix, self.classes, FOLDS)

    def all_rows(self, *, apart: bool) -> HeldOutMatrix:
        """All rows at once, for methods that were made before; ``apart``: each by itself."""
        rows = np.arange(len(self.matrix))
        return HeldOutMatrix(self.matrix, [(rows[:0], rows)])

    def unchanged(self, held: Any) -> Trial:
        """The scores as they are, on what is held out."""
        trial: Trial = held.unchanged()
        return trial

    def fit_all(self, named: Mapping[str, Any], held: Any) -> dict[str, Trial]:
        """Calibrators fitted to the rest of each fold and to the whole, and judged on the folds."""
        return try_all(class_fits(named, self.classes), held, self.matrix)

    def predicted(self, name: str, made: Any, held: Any) -> Array:
        """The probabilities of a map that was made before, or such probabilities themselves."""
        matrix = self.matrix
        if not isinstance(made, Fitted):
            called = f"calibrator[{name!r}]"
            p = read_score_matrix(made, matrix.n_classes, name=called, classes=self.classes)
            check_distributions(p, called)
            if len(p) != len(matrix):
                raise InputError(
                    f"{called} must have a row for each of the {len(matrix)} rows of positive "
                    f"weight, but {len(p)} came."
                )
            return p.astype(np.float64)
        if not isinstance(made.map, VectorMap) or tuple(made.classes) != self.labels:
            raise InputError(
                f"{name} must be for the classes {list(self.labels)[:20]}, but it is for "
                f"{list(made.classes)[:20]}."
            )
        return made.predict_proba(matrix.scores)

    def distinct(self, trial: Trial, prediction: Any) -> int:
        """How many different probabilities a method gives."""
        return count_distinct(prediction.scores)

    def fitted(self, trial: Trial) -> Fitted:
        """The map of a method that was fitted here, as a value."""
        if trial.fitted is not None:
            fitted: Fitted = trial.fitted.to_fitted()
            return fitted
        known, facts = facts_of_matrix(self.matrix, trial.map)
        return Fitted(trial.map, self.labels, None, "Identity", {}, facts, known)

    # --- what the page shows --------------------------------------------------------------------

    def curve_table(self, prediction: Any) -> ScoreTable:
        """The table whose reliability curve stands for a method."""
        return top_table(prediction)

    def evaluation(
        self, contest: Contest, measures: Sequence[str]
    ) -> Evaluation | MulticlassEvaluation:
        """All measures of the chosen method, beside those of the scores as they are."""
        before, after = contest.before_and_after
        made = evaluate(
            self.classes[after.codes],
            after.scores,
            raw=None if contest.chosen == BEFORE else before.scores,
            sample_weight=after.weight,
            classes=self.classes,
            level=contest.board.level,
            weights="importance",
            measures=measures,
        )
        if contest.aucs is None or not isinstance(made, MulticlassEvaluation):
            return made
        return with_auc_within_folds(made, *contest.aucs)

    def panels(self, contest: Contest, segments: Any) -> tuple[Panel, ...]:
        """The classes, before and after; of very many the rarest are left out."""
        before, after = contest.before_and_after
        heaviest = np.argsort(-after.class_weight, kind="stable")[:MOST_PANELS]
        return tuple(
            panel_of(
                str(self.labels[column]),
                class_table(before, column),
                class_table(after, column),
                bins=8,
                level=contest.board.level,
            )
            for column in sorted(heaviest.tolist())
        )

    def headline(self, label_name: str) -> tuple[str, bool]:
        """What must be known of the scores before anything else, nothing where all is well; and
        whether no map of them is worth anything."""
        look = class_look(self.matrix)
        return look.headline(ClassNames.of(self.labels, label_name, face="page")), look.unproven

    def facts(self, score_name: str, label_name: str) -> dict[str, str]:
        """Columns, labels, counts and the fingerprint."""
        matrix = self.matrix
        facts = {
            "score": f"{score_name}, {matrix.n_classes} columns",
            "label": f"{label_name}, {matrix.n_classes} classes",
            "rows": format_count(len(matrix)),
        }
        if matrix.weight is not None:
            facts |= _weight_facts(matrix)
        weight = np.ones(len(matrix)) if matrix.weight is None else matrix.weight
        facts["fingerprint of the data"] = fingerprint(matrix.scores, matrix.codes, weight)
        return facts


def _weight_facts(data: ScoreMatrix | ScoreTable) -> dict[str, str]:
    """How much the rows weigh, and how many rows of equal weight that is worth."""
    return {"weight": format_count(data.total), "effective rows": f"{data.effective_size:,.0f}"}


# --- The report of scores of two classes, from rows or from a table -------------------------------


@dataclass(frozen=True)
class TwoClasses(ReportData):
    """A table, the labels that it speaks of and, where there are any, its rows."""

    table: ScoreTable
    classes: tuple[Any, ...]
    pos_label: Any
    rows: Rows | None = None
    direction: str = "rising"

    kinds: ClassVar[tuple[type, ...]] = (Calibrator,)
    panel_kind: ClassVar[str] = "segment"

    @classmethod
    def read(
        cls,
        scores: Any,
        y: Any,
        sample_weight: Any,
        pos_label: Any,
        classes: Any,
        calibrator: Any,
        direction: str | None,
    ) -> Self:
        """Rows, or a table; the labels of a table may come from a `Fitted`."""
        asked = _own_direction(calibrator) if direction is None else direction
        check_word("direction", asked, DIRECTIONS.words)
        if not isinstance(scores, ScoreTable):
            if y is None:
                raise InputError("y must be given beside scores. Only a ScoreTable holds labels.")
            rows = read_binary(scores, y, sample_weight, pos_label=pos_label, classes=classes)
            table = ScoreTable.from_rows(rows)
            side = direction_of(table, asked)
            return cls(table, tuple(rows.classes), rows.pos_label, rows, side)
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise InputError(f"{name} must not be given beside a ScoreTable, which holds it.")
        if not scores:
            raise InputError("the table must hold at least one score, but it is empty.")
        if isinstance(calibrator, Fitted) and classes is None:
            classes, pos_label = list(calibrator.classes), calibrator.pos_label
        known, positive = read_class_pair(classes, pos_label)
        side = direction_of(scores, asked)
        return cls(scores, tuple(map(plain, known)), plain(positive), direction=side)

    @cached_property
    def rising(self) -> ScoreTable:
        """The table in which high scores mean the positive label."""
        return self.table.mirrored() if self.direction == "falling" else self.table

    @property
    def positive_column(self) -> int:
        """Which of the two classes is the positive one."""
        return 0 if self.labels[0] == plain(self.pos_label) else 1

    @property
    def before(self) -> str:
        scale, falling = self.table.scale, self.direction == "falling"
        if scale.kind == "points":  # which stand for no probability
            return ONE_RATE
        if scale.kind == "percentages":
            return f"({scale.turned}) / 100" if falling else f"{AS_THEY_ARE} (divided by 100)"
        if not falling:
            return AS_THEY_ARE
        return scale.turned if scale.probabilities else f"sigmoid of {scale.turned}"

    # --- judging --------------------------------------------------------------------------------

    def fit_automatic(self, auto: AutoCalibrator) -> AutoCalibrator:
        labels = {"classes": list(self.classes), "pos_label": self.pos_label}
        auto.set_params(direction=self.direction, **labels)
        if self.rows is None or is_fold_count(auto.cv):
            return auto.fit_table(self.table)
        known = np.asarray(self.classes)
        positive, negative = known[self.positive_column], known[1 - self.positive_column]
        y = np.where(self.rows.positive, positive, negative)
        return auto.fit(self.rows.scores, y, self.rows.weight)

    def folds(self) -> HeldOutCells:
        held = HeldOutCells.of_table(self.table, FOLDS, 0)
        if not held.folds:
            raise InputError(TOO_FEW)
        return held

    def all_rows(self, *, apart: bool) -> HeldOutCells:
        if not apart:
            return HeldOutCells.of_all(self.table.scores, self.table.columns)
        if self.rows is None:
            raise InputError(
                "probabilities can only be judged beside the scores and labels of the same rows, "
                "but a ScoreTable came, which has no rows. Pass scores and y."
            )
        scores, weight = self.rows.scores, self.rows.weight
        w = np.ones(len(scores)) if weight is None else weight
        one = np.where(self.rows.positive, w, 0.0)
        zero = w - one
        return HeldOutCells.of_all(scores, CellColumns(zero, one, zero * zero, one * one))

    def unchanged(self, held: Any) -> Trial:
        trial = unchanged_trial(self.rising, self.turned(held))
        made = Uncalibrated(direction=self.direction).fit_table(self.table)
        return replace(trial, map=made.map_, fitted=made)

    def turned(self, held: HeldOutCells) -> HeldOutCells:
        if self.direction == "rising":
            return held
        return replace(held, scores=self.table.scale.centre - held.scores)

    def fit_all(self, named: Mapping[str, Any], held: Any) -> dict[str, Trial]:
        fits = {}
        for name, one in named.items():
            own = getattr(one, "direction", None)
            turned = clone(one).set_params(direction=self.direction) if own == "rising" else one
            fits[name] = fit_copies(turned)
        return try_all(fits, held, self.table)

    def predicted(self, name: str, made: Any, held: Any) -> Array:
        if not isinstance(made, Fitted):
            called, column = f"calibrator[{name!r}]", self.positive_column
            p = read_probabilities(made, positive_column=column, name=called, classes=self.classes)
            check_lengths(**{"scores": len(held.scores), called: len(p)})
            return p
        if isinstance(made.map, VectorMap):
            raise InputError(f"{name} is for several classes, but the scores are of two.")
        mine, theirs = plain(self.pos_label), made.pos_label
        if type(mine) is not type(theirs) or mine != theirs:
            raise InputError(
                f"{name} gives the probability of {theirs!r}, but high scores are read as {mine!r} "
                f"here. Pass pos_label={theirs!r}."
            )
        return made.map(held.scores)

    def distinct(self, trial: Trial, prediction: Any) -> int:
        if trial.map is None:
            return len(prediction)
        return count_distinct(trial.map(self.table.scores))

    def fitted(self, trial: Trial) -> Fitted:
        """The map, with the labels: it was fitted to a table of 0 and 1."""
        fitted: Fitted = trial.fitted.to_fitted()
        return replace(fitted, classes=self.labels, pos_label=plain(self.pos_label))

    # --- what the page shows --------------------------------------------------------------------

    def curve_table(self, prediction: Any) -> ScoreTable:
        table: ScoreTable = prediction
        return table

    def evaluation(self, contest: Contest, measures: Sequence[str]) -> Evaluation:
        raw = None
        (before, after), pair = contest.before_and_after, contest.pairs[contest.chosen]
        if contest.chosen != BEFORE:  # a splitter may leave rows out
            same = np.isclose(before.total, self.table.total, rtol=1e-9)
            raw = self.rising if same else pair.scored()
        # as the gain has it: a row of weight 100 is one observation
        return evaluate_held_out(
            after,
            raw,
            pair,
            level=contest.board.level,
            aucs=contest.aucs,
            scores=len(self.table),
            values=contest.board.chosen.distinct,
            measures=measures,
        )

    def map_curve(self, fitted: Fitted | None) -> MapCurve | None:
        if fitted is None or fitted.map == Identity():
            return None
        low, high = float(self.table.scores[0]), float(self.table.scores[-1])
        if self.table.looks_like_probabilities:
            low, high = probability_window(low, high)
        elif low == high:
            return None
        return map_curve(fitted, lo=low, hi=high)

    def panels(self, contest: Contest, segments: Any) -> tuple[Panel, ...]:
        """The segments under one map, the heaviest first; the smallest of too many are one."""
        if segments is None:
            return ()
        level = contest.board.level
        if contest.fitted is None:
            raise InputError(
                "segments need a map of the score, but probabilities came. Pass a calibrator."
            )
        unchanged = Uncalibrated(direction=self.direction).fit_table(self.table).map_
        panels = []
        for name, own in self._segment_tables(segments).items():
            before, after = own.through(unchanged), own.through(contest.fitted.map)
            panels.append(panel_of(name, before, after, bins=5, level=level))
        return tuple(sorted(panels, key=lambda panel: -panel.figures["weight"]))

    def _segment_tables(self, segments: Any) -> dict[str, ScoreTable]:
        """The table of each segment; of very many the lightest are one."""
        rows = self.rows
        if rows is None and not isinstance(segments, Mapping):
            raise InputError(
                "segments need the rows they belong to, but a ScoreTable came. Pass scores and y, "
                "or a dict with the ScoreTable of each segment."
            )
        if rows is None:
            heaviest = sorted(segments, key=lambda name: -segments[name].total)
            tables = {str(name): segments[name] for name in heaviest}
            if len(tables) <= MOST_PANELS:
                return tables
            kept = dict(list(tables.items())[: MOST_PANELS - 1])
            rest = (table for name, table in tables.items() if name not in kept)
            return {**kept, OTHERS: ScoreTable.gather(rest)}
        values, codes = read_segments(segments)
        check_lengths(scores=len(rows.scores), segments=len(codes))
        names = list(segment_titles(values))
        if len(names) > MOST_PANELS:
            order = np.argsort(-np.bincount(codes, rows.weight), kind="stable")
            place = np.empty(len(names), dtype=np.intp)
            place[order] = np.minimum(np.arange(len(names)), MOST_PANELS - 1)
            names = [*(names[code] for code in order[: MOST_PANELS - 1]), OTHERS]
            codes = place[codes]
        each = (ScoreTable.from_rows(rows.take(codes == code)) for code in range(len(names)))
        return {name: own for name, own in zip(names, each, strict=True) if own}

    def headline(self, label_name: str) -> tuple[str, bool]:
        look = first_look(self.rising)
        face: Face = "check" if self.direction == "falling" else "page"
        names = LabelNames.of(self.classes, self.pos_label, label_name, face)
        return look.headline(names), look.unproven

    def advice(self, contest: Contest, segments: Any) -> tuple[str, ...]:
        names = LabelNames.of(self.classes, self.pos_label, face="page")
        known = advise_table(self.table, contest.calibrator, names=names, direction=self.direction)
        found = [one for one in known if one.code not in SAID_FIRST.values()]  # the verdict has it
        rows, fitted = self.rows, contest.fitted
        if segments is not None and rows is None and fitted is not None:
            found += advise_segment_tables(
                {name: table.through(fitted.map) for name, table in segments.items()}
            )
        elif segments is not None and rows is not None and fitted is not None:
            values, codes = read_segments(segments)
            p = fitted.map(rows.scores)
            found += advise_segments(p, rows.positive, rows.weight, segment_titles(values), codes)
        return tuple(one.text[:1].upper() + one.text[1:] for one in found)

    def decision(self, contest: Contest) -> DecisionCurve | None:
        before, after = contest.before_and_after
        if contest.chosen == BEFORE:
            return None
        scores = {} if self.table.scale.kind == "points" else {self.before: before}
        return decision_curve(None, {**scores, contest.chosen: after}, level=contest.board.level)

    def has_soft_labels(self, contest: Contest) -> bool:
        table, fitted = self.table, contest.fitted
        weights, squares = (table.negative, table.positive), (table.negative_sq, table.positive_sq)
        if contest.board.folds and fitted is not None and "soft_labels" in fitted.provenance:
            return True  # fitted to the same rows
        shares = not table.is_whole and all(map(np.array_equal, weights, squares))
        return shares or bool(soft_cells(weights, squares).any())

    def recipes(self, fitted: Fitted | None, words: PageWords) -> tuple[Recipe, ...]:
        if fitted is None or first_look(self.rising).found != "wrong way":
            return super().recipes(fitted, words)
        given = fitted.map(self.table.scores)
        if np.ptp(given) > SAME_RATE:
            return super().recipes(fitted, words)
        label = self.labels[1 - self.positive_column]
        low = "" if self.direction == "falling" else 'direction="falling" (--direction falling) or '
        return (
            Recipe(
                "Nothing to apply",
                "",
                "The scores run the wrong way, and all that a rising map can do with them is give "
                f"every row the same probability, {short_value(given[0])}. That is no calibration. "
                f"Make the report again with {low}pos_label={label!r} (--pos-label "
                f"{shell_quoted(str(label))}), or find out what turned them.",
            ),
        )

    def facts(self, score_name: str, label_name: str) -> dict[str, str]:
        table = self.table
        column = self.positive_column
        positive, negative = self.labels[column], self.labels[1 - column]
        share = shown_percent(table.total_positive / table.total)
        low = f": low means {positive!r}" if self.direction == "falling" else ""
        facts = {
            "score": f"{score_name}{low}",
            "label": f"{label_name}: {positive!r} against {negative!r}",
        }
        if self.rows is not None:
            facts["rows"] = format_count(self.rows.count)
        if self.rows is None or self.rows.weight is not None:
            facts |= _weight_facts(table)
        facts[f"of them {positive!r}"] = f"{format_count(table.total_positive)} ({share})"
        if table.error:
            moved = f"no score was moved by more than {table.error:.2g}"
            facts["scores"] = f"{len(table):,} of {table.made}; {moved}"
        else:
            facts["distinct scores"] = f"{len(table):,}"
        facts["fingerprint of the data"] = fingerprint(
            table.scores, table.negative, table.positive, table.negative_sq, table.positive_sq
        )
        return facts


def _own_direction(calibrator: Any) -> str:
    """The direction of what came as ``calibrator``, where all of it has the same one."""
    if not isinstance(calibrator, (Mapping, list, tuple)):
        return said_direction(calibrator)
    several = calibrator.values() if isinstance(calibrator, Mapping) else calibrator
    found = {said_direction(one) for one in several}
    return found.pop() if len(found) == 1 else "rising"


#: the data of a report
TwoOrMore = TwoClasses | SeveralClasses


# --- What a report has beside its curves: groups, panels and facts --------------------------------


def check_features(scores: Any, features: Any, *, several: bool) -> None:
    """Refuse features that cannot be looked at, before anything is fitted."""
    if several:
        raise InputError("features are looked at for two classes, but several columns came.")
    if isinstance(scores, ScoreTable):
        raise InputError(
            "features belong to rows, but a ScoreTable came, which has none. Pass scores and y."
        )
    check_lengths(scores=len(scores), features=len(read_features(features)))


def groups_of(rows: Rows, features: Any, fitted: Fitted | None, level: float) -> Multicalibration:
    """Where the final map is wrong, on the rows that it was fitted to: the worst groups."""
    if fitted is None:
        raise InputError(
            "features need a map of the score, but probabilities came. Pass a calibrator, or use "
            "metrics.multicalibration."
        )
    predicted = replace(rows, scores=np.clip(fitted.map(rows.scores), 0.0, 1.0))
    return worst_groups(multicalibration_of_rows(predicted, features, level=level))


#: of more segments the smallest are put together; of more classes the rarest are left out
MOST_PANELS = 24
OTHERS = "all others"


def panel_of(name: str, before: ScoreTable, after: ScoreTable, *, bins: int, level: float) -> Panel:
    """The curves of tables of probabilities, how often the event came, and the mean predictions."""
    share = np.array([after.total_positive / after.total])
    low, high = clopper_pearson(np.array([after.effective_size]), share, (1.0 - level) / 2)
    old, new = (float(table.weight @ table.scores) / table.total for table in (before, after))
    figures = {
        "weight": after.total,
        "events": after.total_positive,
        "observed": float(share[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        "before": old,
        "after": new,
    }
    first, second = (
        reliability_curve(table, bins=bins, binning="mass", level=level)
        for table in (before, after)
    )
    return Panel(name, first, second, figures)


def fingerprint(*columns: NDArray[Any]) -> str:
    """SHA-256 of arrays: the same rows in any order, and as a table, have the same one."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return f"sha256:{digest.hexdigest()}"


def map_facts(fitted: Fitted | None) -> dict[str, str]:
    """The method, its parameters and the map; nothing without a calibrator."""
    if fitted is None:
        return {}
    given = {k: v for k, v in fitted.params.items() if k not in ("pos_label", "classes")}
    facts = {"method": fitted.method or "(not said)"}
    if given:
        facts["parameters"] = ", ".join(f"{k}={v}" for k, v in given.items())
    return {**facts, "map": repr(fitted.map)}
