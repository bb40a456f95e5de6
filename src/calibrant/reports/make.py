"""The report of a calibration, from scores and labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.auto.several_classes import HeldOutClasses
from calibrant.data.naming import as_in_fit
from calibrant.data.score_matrix import ScoreMatrix
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain, to_matrix
from calibrant.diagrams.axes_view import cell_edges
from calibrant.diagrams.bins import histogram_of
from calibrant.diagrams.curves import reliability_curve
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.named_methods import BEFORE
from calibrant.metrics.all_measures import chosen_records
from calibrant.metrics.evaluation_results import without_praise
from calibrant.metrics.registry import CLASS_MEASURES, MEASURES
from calibrant.reports.axes import PageAxis
from calibrant.reports.charts import common_axis
from calibrant.reports.contest import Contest, ReportData, contest_behind, contest_of
from calibrant.reports.key_facts import (
    check_output,
    check_texts,
    map_facts,
    source_facts,
    version_facts,
)
from calibrant.reports.recipes import recipes_for
from calibrant.reports.report_value import Method, PredictionSpread, Report
from calibrant.reports.sentences import under, verdict_of, word_of
from calibrant.reports.several_classes import SeveralClasses
from calibrant.reports.two_classes import TwoClasses
from calibrant.reports.where_wrong import check_features, groups_of

#: groups of equal weight of each curve, and cells of the histograms
BINS, CELLS = 10, 40


def calibration_report(
    scores: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    calibrator: Any = None,
    segments: Any = None,
    pos_label: Any = None,
    classes: Any = None,
    title: str | None = None,
    score_name: str = "score",
    label_name: str = "label",
    source: Any = None,
    saved_as: str = "calibrator.json",
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
    segments : array-like of shape (n,), or several columns, optional
        A group of each row (region, product, …): the page shows whether one map fits them all.
    pos_label : label, optional
        What a high score means; default: the larger class.
    classes : labels, optional
        All of them, where y may lack some or ``scores`` is a table.
    title, score_name, label_name : str
        What the page calls itself and the two columns.
    source : str, path, list of such, or mapping of words to values, optional
        Where the data come from, for the last section. A date stands there only if given here.
    saved_as : str, default="calibrator.json"
        The name of the calibrator's file in the lines that tell how to apply it.
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
    several = not isinstance(scores, ScoreTable) and _columns(scores) > 2
    shown = _measures_shown(measures, several=several)
    if features is not None:
        check_features(scores, features, several=several)
    if several:
        many = SeveralClasses.read(scores, y, sample_weight, classes, segments)
        made = _report(many, contest_of(calibrator, many), segments, words, shown)
    else:
        two = TwoClasses.read(scores, y, sample_weight, pos_label, classes, calibrator)
        made = _report(two, contest_of(calibrator, two), segments, words, shown)
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
    unseen: HeldOutClasses | None = None,
    title: str | None = None,
    score_name: str = "score",
    label_name: str = "label",
    source: Any = None,
    saved_as: str = "calibrator.json",
    measures: str | Sequence[str] | None = None,
) -> Report:
    """The report of a calibrator that is fitted to this table, or matrix, already: nothing is
    fitted.

    It is an `AutoCalibrator`, or any of several classes beside its predictions of ``unseen`` rows.
    The options are those of `calibration_report`.

    >>> from calibrant import AutoCalibrator, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.4, 0.8], [30, 20, 10], [10, 20, 30])
    >>> r = report_of(AutoCalibrator().fit_table(table), table)
    >>> r.chosen.name
    'scores as they are'
    """
    words = PageWords(title or "", score_name, label_name, saved_as, source)
    judged = getattr(calibrator, "leaderboard_", None) is not None
    shown = _measures_shown(measures, several=isinstance(data, ScoreMatrix))
    if isinstance(data, ScoreMatrix):
        several = SeveralClasses(data, np.asarray(calibrator.classes_))
        if judged:
            return _report(several, contest_behind(calibrator), None, words, shown)
        if unseen is not None:
            return _report(several, several.behind(calibrator, unseen), None, words, shown)
    elif judged:
        labels = tuple(plain(label) for label in calibrator.classes_)
        two = TwoClasses(data, labels, plain(calibrator.pos_label_))
        return _report(two, contest_behind(calibrator), None, words, shown)
    raise InputError("a report needs an AutoCalibrator that is fitted and could be judged.")


@dataclass(frozen=True)
class PageWords:
    """The names that the caller gives to the page, its columns, its file and its source."""

    title: str
    score_name: str
    label_name: str
    saved_as: str
    source: Any

    def __post_init__(self) -> None:
        texts = {"score_name": self.score_name, "label_name": self.label_name}
        check_texts(title=self.title, **texts, saved_as=self.saved_as)
        source_facts(self.source)  # refused before anything is fitted


def _measures_shown(measures: Any, *, several: bool = False) -> list[str]:
    """The names of the standard measures and of those asked for, which must be known."""
    records = CLASS_MEASURES if several else MEASURES
    asked = {} if measures is None else chosen_records(records, measures)
    return [*chosen_records(records), *asked]


def _columns(scores: Any) -> int:
    shape = to_matrix(scores, "scores").shape
    return shape[1] if len(shape) == 2 else 1


def _report(
    data: ReportData, contest: Contest, segments: Any, words: PageWords, measures: list[str]
) -> Report:
    methods, fitted = _methods(data, contest), contest.fitted
    evaluation = data.evaluation(contest, measures)
    headline, useless = data.headline(words.label_name)
    if useless:
        evaluation = without_praise(evaluation)
    found = verdict_of(
        methods,
        level=contest.level,
        where=contest.where,
        single=contest.single,
        word=word_of(evaluation),
    )
    return Report(
        title=words.title or f"Calibration of {words.score_name}",
        verdict=under(headline, found, methods, useless=useless) if headline else found,
        how=contest.how,
        methods=methods,
        evaluation=evaluation,
        map_curve=data.map_curve(fitted),
        panels=data.panels(contest, segments),
        panel_kind=data.panel_kind,
        advice=data.advice(contest, segments),
        facts=source_facts(words.source)
        | data.facts(words.score_name, words.label_name)
        | map_facts(fitted)
        | version_facts(),
        recipes=() if fitted is None else recipes_for(fitted, words.score_name, words.saved_as),
        fitted=fitted,
        level=contest.level,
        caution=bool(headline),
    )


def _methods(data: ReportData, contest: Contest) -> tuple[Method, ...]:
    """The leaderboard with curves: the scores as they are, then the others, best first."""
    tables = {name: data.curve_table(one) for name, one in contest.predictions.items()}
    curves = {
        name: reliability_curve(table, bins=BINS, binning="mass", level=contest.level)
        for name, table in tables.items()
    }
    axis, odds = (common_axis(curves.values(), odds=odds) for odds in (False, True))
    methods = []
    for row in sorted(contest.standings, key=lambda row: row.name != BEFORE):
        before, table = row.name == BEFORE, tables[row.name]
        compared = {n: getattr(row, n) for n in ("gain", "gain_low", "gain_high", "auc_change")}
        if before:  # one rate for all rows does not rank as the scores do
            compared = {"auc_change": row.auc_change or None}
        methods.append(
            Method(
                name=data.before if before else row.name,
                log_loss=row.log_loss,
                brier=row.brier,
                curve=curves[row.name],
                spread=_spread(table, axis),
                logit_spread=_spread(table, odds),
                log_loss_se=_known(row.log_loss_se),
                brier_se=_known(row.brier_se),
                auc=row.auc,
                distinct=row.distinct,
                chosen=row.chosen,
                **compared,
            )
        )
    return tuple(methods)


def _known(error: float) -> float | None:
    return error if np.isfinite(error) else None


def _spread(table: ScoreTable, axis: PageAxis) -> PredictionSpread:
    edges = cell_edges(axis.low, axis.high, CELLS, odds=axis.logit)
    return PredictionSpread(edges, histogram_of(table, edges) / table.total)
