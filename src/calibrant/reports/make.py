"""The report of a calibration, from scores and labels."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from calibrant.advice import advise_table
from calibrant.advice.segment_checks import segment_gaps
from calibrant.data.labels import plain, read_classes
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_column import read_segments, segment_names
from calibrant.data.to_numpy import to_matrix
from calibrant.data.validation import read_binary
from calibrant.diagrams.bins import histogram_of, window
from calibrant.diagrams.curves import reliability_curve
from calibrant.diagrams.map_lines import MapCurve, map_curve
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.named_methods import BEFORE
from calibrant.losses import logit, sigmoid
from calibrant.maps import Identity
from calibrant.metrics import Evaluation, evaluate
from calibrant.metrics.out_of_fold import within_folds
from calibrant.outputs import find_target, keep_apart
from calibrant.reports.axes import PageAxis, logit_axis, probability_axis
from calibrant.reports.contest import Contest, Data, contest_behind, contest_of
from calibrant.reports.key_facts import (
    data_facts,
    map_facts,
    source_facts,
    source_files,
    version_facts,
)
from calibrant.reports.recipes import recipes_for
from calibrant.reports.report_value import Method, PredictionSpread, Report
from calibrant.reports.segment_section import segment_panels
from calibrant.reports.sentences import verdict_of

__all__ = ["AS_THEY_ARE", "calibration_report", "methods_of", "report_of"]

#: what the page calls the scores without a calibrator
AS_THEY_ARE = "scores as they are"
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
    segments : array-like of shape (n,), optional
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

    Returns
    -------
    Report
        Frozen; ``to_html()``, ``save(path)``, ``to_dict()``; its ``fitted`` is what `save` takes.

    Notes
    -----
    Losses are means over rows held out; the gain is the paired difference to the scores as they
    are (margins through the sigmoid), with its interval. Curves have ten groups of equal weight
    with Clopper–Pearson intervals of their effective sample size. Segments are judged with the
    final map on the rows it was fitted to, which flatters a little. The same data give the same
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
    'Calibrate these scores with Platt before using them as probabilities.'
    """
    options = (title, score_name, label_name, source, saved_as)
    _check_words(title=title or "", score_name=score_name, label_name=label_name, saved_as=saved_as)
    if output is not None:
        find_target(output)
        keep_apart({"the output": output}, source_files(source))
    if _several(scores):
        from calibrant.reports.class_report import report_classes

        made = report_classes(scores, y, sample_weight, calibrator, segments, classes, *options)
    else:
        data = _read(scores, y, sample_weight, pos_label, classes, calibrator)
        made = _report_two(data, contest_of(calibrator, data), segments, *options)
    if output is not None:
        made.save(output)
    return made


def report_of(
    auto: Any,
    table: ScoreTable,
    *,
    title: str | None = None,
    score_name: str = "score",
    label_name: str = "label",
    source: Any = None,
    saved_as: str = "calibrator.json",
) -> Report:
    """The report of an `AutoCalibrator` that is fitted to this table already: nothing is fitted.

    The options are those of `report`.

    >>> from calibrant import AutoCalibrator, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.4, 0.8], [30, 20, 10], [10, 20, 30])
    >>> r = report_of(AutoCalibrator().fit_table(table), table)
    >>> r.chosen.name
    'scores as they are'
    """
    if getattr(auto, "leaderboard_", None) is None:
        raise InputError("a report needs an AutoCalibrator that is fitted and could be judged.")
    _check_words(title=title or "", score_name=score_name, label_name=label_name, saved_as=saved_as)
    labels = tuple(plain(label) for label in auto.classes_)
    data = Data(table, labels, plain(auto.pos_label_))
    options = (title, score_name, label_name, source, saved_as)
    return _report_two(data, contest_behind(auto), None, *options)


def _report_two(
    data: Data,
    contest: Contest,
    segments: Any,
    title: str | None,
    score_name: str,
    label_name: str,
    source: Any,
    saved_as: str,
) -> Report:
    known = source_facts(source)
    methods = methods_of(contest)
    chosen = next(row.name for row in contest.standings if row.chosen)
    fitted = contest.fitted
    return Report(
        title=title or f"Calibration of {score_name}",
        verdict=verdict_of(
            methods, level=contest.level, where=contest.where, single=contest.single
        ),
        how=contest.how,
        methods=methods,
        evaluation=_evaluated(contest, chosen, data),
        map_curve=_map_curve(fitted, data.table),
        panels=segment_panels(data, segments, fitted, contest.level),
        advice=_advice(data, contest, segments),
        facts=known
        | data_facts(data, score_name, label_name)
        | map_facts(fitted)
        | version_facts(),
        recipes=() if fitted is None else recipes_for(fitted, score_name, saved_as),
        fitted=fitted,
        level=contest.level,
    )


# --- reading ------------------------------------------------------------------------------------


def _check_words(**words: Any) -> None:
    for name, value in words.items():
        if not isinstance(value, str):
            raise ParameterError(f"{name} must be a str, but {type(value).__name__} came.")


def _several(scores: Any) -> bool:
    if isinstance(scores, ScoreTable):
        return False
    shape = to_matrix(scores, "scores").shape
    return len(shape) == 2 and shape[1] > 2


def _read(
    scores: Any, y: Any, sample_weight: Any, pos_label: Any, classes: Any, calibrator: Any
) -> Data:
    if isinstance(calibrator, Fitted) and classes is None and isinstance(scores, ScoreTable):
        classes, pos_label = list(calibrator.classes), calibrator.pos_label
    if not isinstance(scores, ScoreTable):
        if y is None:
            raise InputError("y must be given beside scores. Only a ScoreTable holds labels.")
        rows = read_binary(scores, y, sample_weight, pos_label=pos_label, classes=classes)
        return Data(ScoreTable.from_rows(rows), tuple(rows.classes), rows.pos_label, rows)
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise InputError(f"{name} must not be given beside a ScoreTable, which holds it.")
    if not scores:
        raise InputError("the table must hold at least one score, but it is empty.")
    known, positive = read_classes(classes, pos_label)
    return Data(scores, tuple(plain(label) for label in known), plain(positive))


def _advice(data: Data, contest: Contest, segments: Any) -> tuple[str, ...]:
    """What deserves a look, in sentences with figures."""
    found = list(advise_table(data.table, contest.calibrator))
    rows, fitted = data.rows, contest.fitted
    if segments is not None and rows is not None and fitted is not None:
        values, codes = read_segments(segments)
        p = fitted.map(rows.scores)
        found += segment_gaps(p, rows.positive, rows.weight, segment_names(values), codes)
    return tuple(one.text[:1].upper() + one.text[1:] for one in found)


# --- what the page shows ------------------------------------------------------------------------


def methods_of(contest: Contest) -> tuple[Method, ...]:
    """The leaderboard with curves: the scores as they are, then the others, best first."""
    tables = contest.tables
    curves = {
        name: reliability_curve(table, bins=BINS, binning="mass", level=contest.level)
        for name, table in tables.items()
    }
    columns = [c for curve in curves.values() for c in (curve.mean_p, curve.fraction)]
    axes = probability_axis(columns), logit_axis(columns)
    rows = sorted(contest.standings, key=lambda row: row.name != BEFORE)
    return tuple(
        Method(
            name=AS_THEY_ARE if row.name == BEFORE else row.name,
            log_loss=row.log_loss,
            brier=row.brier,
            curve=curves[row.name],
            spread=_spread(tables[row.name], axes[0]),
            logit_spread=_spread(tables[row.name], axes[1]),
            log_loss_se=_known(row.log_loss_se),
            brier_se=_known(row.brier_se),
            gain=None if row.name == BEFORE else row.gain,
            gain_low=None if row.name == BEFORE else row.gain_low,
            gain_high=None if row.name == BEFORE else row.gain_high,
            auc=row.auc,
            auc_change=None if row.name == BEFORE else row.auc_change,
            distinct=row.distinct,
            chosen=row.chosen,
        )
        for row in rows
    )


def _known(error: float) -> float | None:
    return error if np.isfinite(error) else None


def _spread(table: ScoreTable, axis: PageAxis) -> PredictionSpread:
    part = np.arange(CELLS + 1) / CELLS
    if axis.logit:
        low, high = logit(np.array([axis.low, axis.high]))
        edges = sigmoid(low + (high - low) * part)
    else:
        edges = axis.low + (axis.high - axis.low) * part
    return PredictionSpread(edges, histogram_of(table, edges) / table.total)


def _evaluated(contest: Contest, chosen: str, data: Data) -> Evaluation:
    raw = None
    if chosen != BEFORE:  # a splitter may leave rows out
        same = np.isclose(contest.tables[BEFORE].total, data.table.total, rtol=1e-9)
        raw = data.table if same else contest.tables[BEFORE]
    # as the gain has it: a row of weight 100 is one observation
    made = evaluate(contest.tables[chosen], raw=raw, level=contest.level, weights="importance")
    if not contest.unseen:
        return made
    standing = {row.name: row for row in contest.standings}
    aucs = (standing[BEFORE].auc, standing[chosen].auc)
    return within_folds(made, *aucs, scores=len(data.table), values=standing[chosen].distinct)


def _map_curve(fitted: Fitted | None, table: ScoreTable) -> MapCurve | None:
    """The map over the scores that came."""
    if fitted is None or fitted.map == Identity():
        return None
    low, high = float(table.scores[0]), float(table.scores[-1])
    if table.looks_like_probabilities:
        low, high = window(low, high)
    elif low == high:
        return None
    return map_curve(fitted, lo=low, hi=high)
