"""All checks for the known mistakes at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant.advice.leaks import better_than_held_out
from calibrant.advice.piece import Advice
from calibrant.advice.prior_shift_check import shifted
from calibrant.advice.segment_checks import segment_gaps
from calibrant.advice.table_checks import (
    falling,
    few_cases,
    lost_order,
    not_probabilities,
    said_first,
    separated,
    zero_or_one,
)
from calibrant.data.naming import as_in_fit
from calibrant.data.score_kinds import kind_of, probability_of
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_column import read_segments
from calibrant.data.validation import check_lengths, read_binary
from calibrant.errors import InputError
from calibrant.estimators.registry import calibrator_of
from calibrant.maps import Map, VectorMap
from calibrant.metrics.first_look import LabelNames, first_look

#: a table of more scores than this is pooled before it is checked
MOST_CELLS = 200_000


def advise(
    scores: Any,
    y: Any,
    calibrator: Any = None,
    *,
    sample_weight: Any = None,
    segments: Any = None,
    held_out: Any = None,
    pos_label: Any = None,
    classes: Any = None,
) -> tuple[Advice, ...]:
    """Look for the known mistakes: in the data, and in a calibrator fitted to them.

    Parameters
    ----------
    scores, y, sample_weight
        The rows to calibrate on; see `Calibrator.fit`.
    calibrator : Calibrator or its name, optional
        If it is fitted, its map is looked at, too.
    segments : array-like of shape (n,), or several columns, optional
        Parts of the rows (countries, products, …) that should be calibrated each.
    held_out : (scores, y), optional
        The model's scores of rows that it was certainly not trained on.
    pos_label, classes : see `Calibrator`

    Returns
    -------
    tuple of Advice
        Each with ``code``, ``text`` and ``figures``; none if nothing was found.

    Notes
    -----
    ``one_class``, ``upside_down`` (high scores go with negatives), ``no_separation`` and
    ``no_order`` come first, by `calibrant.metrics.first_look`: claims at a level of 99 %.
    ``few_events``: fewer rows of the rarer class than the method's ``events_needed``, or than ten.
    ``trained_on_these_rows``: AUC of 0.999 or more, or three standard errors above that of
    ``held_out``. ``prior_shift``: base rate and mean score four standard errors and 0.4 logits
    apart, and a constant on the logit mends at least ¾ of what BLS mends, out of fold.
    ``falling_truth``: the rate of positives in bins falls by 0.02 or more, beyond 999 draws of the
    best rising rates. ``percentages``, ``points``: scores of 0 to 100, or of another scale.
    ``zero_or_one``, ``auc_lost``: what the map does to these rows. ``segments``: Holm's procedure
    at 1 % on z = Σw(y − p)/√Σw²p(1 − p), gaps of a tenth or more. O(N log N).

    Examples
    --------
    >>> import calibrant as cal
    >>> s = [0.1, 0.2, 0.3, 0.35, 0.4, 0.6, 0.7, 0.9]
    >>> y = [0, 0, 0, 1, 0, 1, 1, 1]
    >>> c = cal.Isotonic().fit_table(cal.ScoreTable.from_arrays(s, y))
    >>> [one.code for one in cal.advise(s, y, c)]
    ['few_events', 'zero_or_one']
    """
    if calibrator is not None and hasattr(calibrator, "classes_") and pos_label is None:
        pos_label = calibrator.pos_label_
        classes = list(calibrator.classes_) if classes is None else classes
    options = {"pos_label": pos_label, "classes": classes}
    if calibrator is not None and _map(calibrator) is not None:
        known = calibrator.to_fitted()
        scores = as_in_fit(scores, known.provenance, known.classes)
    rows = read_binary(scores, y, sample_weight, **options)
    table = ScoreTable.from_rows(rows)
    names = LabelNames.of(rows.classes, rows.pos_label)
    advice = list(advise_table(table, calibrator_of(calibrator), names=names))
    if held_out is not None:
        other = ScoreTable.from_arrays(*_pair(held_out), **options)
        better = list(better_than_held_out(table, other))
        advice = [one for one in advice if one.code not in {b.code for b in better}] + better
    if segments is not None:
        values, codes = read_segments(segments)
        check_lengths(y=len(rows.scores), segments=len(codes))
        fitted = _map(calibrator)
        if fitted is not None or kind_of(table) != "points":  # which stand for no probability
            p = probability_of(rows.scores, table) if fitted is None else fitted(rows.scores)
            advice += segment_gaps(p, rows.positive, rows.weight, values, codes)
    return tuple(advice)


def advise_table(
    table: ScoreTable, calibrator: Any = None, *, names: LabelNames | None = None
) -> tuple[Advice, ...]:
    """The checks that need only a table, and perhaps a calibrator (fitted or not).

    ``names`` says what the labels are called.
    """
    if not table:
        raise InputError("table must hold at least one score, but it is empty.")
    if len(table) > MOST_CELLS:
        table = table.pool(MOST_CELLS)
    return tuple(_checks(table, calibrator, names or LabelNames()))


def _checks(table: ScoreTable, calibrator: Any, names: LabelNames) -> Iterator[Advice]:
    fitted, look = _map(calibrator), first_look(table)
    yield from said_first(look, names)
    if look.found == "one class":
        return  # that is all there is to say
    yield from few_cases(table, calibrator, look, names)
    yield from separated(table)
    yield from shifted(table, names.face)
    yield from not_probabilities(table)
    if look.found != "wrong way":
        yield from falling(table)
    if fitted is not None:
        yield from zero_or_one(table, fitted)
        yield from lost_order(table, fitted)


def _map(calibrator: Any) -> Map | None:
    fitted = getattr(calibrator, "map_", getattr(calibrator, "map", None))
    return fitted if isinstance(fitted, Map) and not isinstance(fitted, VectorMap) else None


def _pair(held_out: Any) -> tuple[Any, Any]:
    if not isinstance(held_out, (tuple, list)) or len(held_out) != 2:
        raise InputError("held_out must be a pair: the scores and the labels of held-out rows.")
    return held_out[0], held_out[1]
