"""Advice on data and on fits: the known mistakes, each looked for by one check."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, isotonic_regression
from scipy.special import ndtr, xlogy

from calibrant.array_types import Array, Flags, Index
from calibrant.data.columns import as_in_fit
from calibrant.data.door import check_lengths, read_binary
from calibrant.data.scale import ScoreScale
from calibrant.data.score_table import ScoreTable
from calibrant.data.segments import read_segments
from calibrant.errors import AdviceWarning, InputError, caller_level
from calibrant.fitting.base import direction_of, few_events_warning
from calibrant.fitting.held_out import HeldOutCells, Trial, fit_copies, losses_of_units, try_all
from calibrant.fitting.registry import to_calibrator
from calibrant.losses import logit, sigmoid
from calibrant.methods.splines.bls import BLS
from calibrant.metrics.headlines import FEW, ClassLook, Face, FirstLook, LabelNames, first_look
from calibrant.metrics.point_measures import area, one_class
from calibrant.result_tables import shown_percent
from calibrant.rules.base import Map, VectorMap
from calibrant.solvers.threads import one_thread

#: a table of more scores than this is pooled before it is checked
MOST_CELLS = 200_000


def advise(
    scores: ArrayLike,
    y: ArrayLike,
    calibrator: Any = None,
    *,
    sample_weight: ArrayLike | None = None,
    segments: Any = None,
    held_out: tuple[ArrayLike, ArrayLike] | None = None,
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
    ``no_order`` come first, by `calibrant.metrics.headlines`: claims at a level of 99 %.
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
    if calibrator is not None and _map_of_one_score(calibrator) is not None:
        known = calibrator.to_fitted()
        scores = as_in_fit(scores, known.provenance, known.classes)
    rows = read_binary(scores, y, sample_weight, **options)
    table = ScoreTable.from_rows(rows)
    names = LabelNames.of(rows.classes, rows.pos_label)
    asked = getattr(calibrator, "direction_", said_direction(calibrator))
    side = direction_of(table, asked)
    advice = list(advise_table(table, to_calibrator(calibrator), names=names, direction=side))
    if held_out is not None:
        if not isinstance(held_out, (tuple, list)) or len(held_out) != 2:
            raise InputError("held_out must be a pair: the scores and the labels of held-out rows.")
        other = ScoreTable.from_arrays(*held_out, **options)
        better = list(advise_trained_on(table, other))
        advice = [one for one in advice if one.code not in {b.code for b in better}] + better
    if segments is not None:
        values, codes = read_segments(segments)
        check_lengths(y=len(rows.scores), segments=len(codes))
        fitted = _map_of_one_score(calibrator)
        if fitted is not None or table.scale.kind != "points":  # which stand for no probability
            p = table.probability_of(rows.scores) if fitted is None else fitted(rows.scores)
            advice += advise_segments(p, rows.positive, rows.weight, values, codes)
    return tuple(advice)


@one_thread()
def advise_table(
    table: ScoreTable,
    calibrator: Any = None,
    *,
    names: LabelNames | None = None,
    judged: CurveHeldOut | None = None,
    direction: str = "rising",
) -> tuple[Advice, ...]:
    """The checks that need only a table, and perhaps a calibrator (fitted or not).

    ``names`` says what the labels are called. ``judged`` is how `BLS` did on what was held out of
    the table; None if that is to be found here. In the direction "falling" low scores mean the
    positive label: the table is read the other way.
    """
    if not table:
        raise InputError("table must hold at least one score, but it is empty.")
    if len(table) > MOST_CELLS:
        table = table.pool(MOST_CELLS)
    fitted, scale, names = _map_of_one_score(calibrator), table.scale, names or LabelNames()
    if direction == "falling":
        table, names = table.mirrored(), names._replace(face="check")
        fitted = None if fitted is None else fitted.mirrored(scale.centre)
    look = first_look(table)
    checks = [advise_first_look(look, names)]
    if look.found != "one class":  # else that is all there is to say
        checks.append(advise_few_cases(table, calibrator, look, names))
        checks.append(advise_separated(table))
        checks.append(advise_prior_shift(table, names.face, judged))
        checks.append(advise_score_scale(scale))
        if look.found != "wrong way":
            checks.append(advise_falling_rate(table))
        if fitted is not None:
            checks.append(advise_map(table, fitted))
    return tuple(chain.from_iterable(checks))


def said_direction(calibrator: Any) -> str:
    """The direction that a calibrator, fitted or not, was given; of others "rising".

    >>> said_direction("platt"), said_direction(BLS(direction="falling"))
    ('rising', 'falling')
    """
    params = getattr(calibrator, "params", {})
    said: str = getattr(calibrator, "direction", params.get("direction", "rising"))
    return said


def _map_of_one_score(calibrator: Any) -> Map | None:
    fitted = getattr(calibrator, "map_", getattr(calibrator, "map", None))
    return fitted if isinstance(fitted, Map) and not isinstance(fitted, VectorMap) else None


@dataclass(frozen=True)
class Advice:
    """A possible mistake that was found.

    Attributes
    ----------
    code : str
        A short name for it, for programs.
    text : str
        What was found, with the figures, and what to do.
    figures : mapping of str to numbers
    """

    code: str
    text: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", MappingProxyType(dict(self.figures)))

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return Advice, (self.code, self.text, dict(self.figures))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"code": self.code, "text": self.text, "figures": dict(self.figures)}


def warn_of(advice: Iterable[Advice]) -> None:
    """Warn of each piece of advice at the user's line, as an AdviceWarning."""
    for one in advice:
        warnings.warn(one.text, AdviceWarning, stacklevel=caller_level())


# --- Checks of a table, and of a map of its scores ------------------------------------------------


#: an AUC that scores of unseen rows rarely reach
SUSPICIOUS = 0.999
#: fewer rows of a class than this raise no suspicion
ENOUGH = 30
#: what a first look may find that is advice, and its code
SAID_FIRST = {
    "one class": "one_class",
    "wrong way": "upside_down",
    "nothing": "no_separation",
    "no order": "no_order",
    "swapped": "columns_swapped",
}
#: a smaller loss of AUC is not mentioned
AUC_LOST = 1e-3
#: falling rates: the most bins, the fewest rows in each, and the least fall that matters
FALL_BINS, FALL_ROWS, LEAST_FALL = 20, 50, 0.02
#: more rows than this count as so many, since random numbers must be drawn for them
FALL_MOST = 1e12
REPLICATES = 999


def advise_few_cases(
    table: ScoreTable, calibrator: Any, look: FirstLook, names: LabelNames
) -> Iterator[Advice]:
    """Advice if the rarer class has fewer rows than the calibrator needs, or fewer than ten."""
    needed = getattr(calibrator, "events_needed", 0)
    text = few_events_warning(calibrator, table) if needed else ""
    if not text and look.few:
        text, needed = look.few_words(names), FEW
    if text:
        yield Advice("few_events", text, {"needed": needed, "found": table.rarest})


def advise_separated(table: ScoreTable) -> Iterator[Advice]:
    """Advice if scores separate the classes too well for rows that the model has not seen."""
    if one_class(table) or table.rarest < ENOUGH:
        return
    auc = area(table)
    if auc >= SUSPICIOUS:
        yield Advice(
            "trained_on_these_rows",
            f"the scores order the classes almost perfectly (AUC {auc:.5f} on weight "
            f"{table.total:.10g}). If the model was trained on these rows, its scores say nothing "
            "about new ones: calibrate on rows that it has not seen, or with cross-validation.",
            {"auc": auc},
        )


def advise_first_look(look: FirstLook | ClassLook, names: Any) -> Iterator[Advice]:
    """Advice if there is one class only, if scores run the wrong way, if columns look swapped, or
    if scores say nothing about the label.

    ``names`` are `LabelNames`, or `ClassNames` of several classes.
    """
    if look.found in SAID_FIRST:
        figures = {"auc": look.auc, "low": look.low, "high": look.high}
        known = {name: value for name, value in figures.items() if value is not None}
        yield Advice(SAID_FIRST[look.found], look.headline(names), known)


def advise_score_scale(scale: ScoreScale) -> Iterator[Advice]:
    """Advice where scores look like percentages, or like points of some scale."""
    low, high, kind = float(scale.low), float(scale.high), scale.kind
    ends = f"the scores go from {low:.4g} to {high:.4g}"
    words = {
        "percentages": f"{ends} and look like percentages: the figures before calibration are of "
        "score / 100. If the scores are something else, those figures mean nothing.",
        "points": f"{ends}: they are points, not probabilities. As they are, only their order can "
        "be judged.",
    }
    if kind in words:
        yield Advice(kind, words[kind], {"low": low, "high": high})


def advise_map(table: ScoreTable, fitted: Map) -> Iterator[Advice]:
    """Advice if a map gives probabilities of exactly 0 or 1, or if its ties cost AUC."""
    p = fitted(table.scores)
    zero, one = p == 0.0, p == 1.0
    share = float(table.weight[zero | one].sum()) / table.total
    if share > 0:
        wrong = float(table.positive[zero].sum() + table.negative[one].sum())
        cost = f", and for a weight of {wrong:.4g} that was wrong" if wrong else ""
        yield Advice(
            "zero_or_one",
            f"{shown_percent(share)} of these rows get a probability of exactly 0 or 1{cost}: a "
            "single surprise makes the log loss infinite. Use BLS, or a method with smoothing, "
            'such as isotonic regression with smoothing="laplace".',
            {"share": share, "wrong": wrong},
        )
    made = table.through(fitted)
    values = len(made)
    if one_class(table) or values >= len(table):
        return
    before, after = area(table), area(made)
    if before - after > AUC_LOST:
        yield Advice(
            "auc_lost",
            f"{len(table):,} distinct scores become {values:,} probabilities, and AUC falls from "
            f"{before:.4f} to {after:.4f} on these rows. Rank by the scores, or use a map without "
            'ties: BLS, or isotonic regression with interpolation="centred".',
            {"before": before, "after": after, "distinct": len(table), "values": values},
        )


def advise_falling_rate(table: ScoreTable) -> Iterator[Advice]:
    """Advice if the rate of positives falls as scores rise, by more than chance explains.

    The test compares bins of equal mass. Its statistic is twice the gain in log-likelihood of the
    bins' own rates over the best rising rates. Its distribution is that under rising rates.
    """
    size = min(table.effective_size, FALL_MOST)
    count = min(FALL_BINS, int(size) // FALL_ROWS)
    if count < 3:
        return
    part = np.minimum((np.cumsum(table.weight) - table.weight / 2) / table.total * count, count - 1)
    starts = np.flatnonzero(np.diff(part.astype(np.intp), prepend=-1))
    n = np.add.reduceat(table.weight, starts) * (size / table.total)
    ones = np.add.reduceat(table.positive, starts) * (size / table.total)
    rate = ones / n
    rising = isotonic_regression(rate, weights=n).x
    drop = np.maximum.accumulate(rate) - rate
    worst = int(np.argmax(drop))
    if drop[worst] < LEAST_FALL:
        return
    gain = _likelihood_gain(ones, n, rising)
    rng = np.random.default_rng(0)
    drawn = rng.binomial(np.rint(n).astype(np.int64), rising, size=(REPLICATES, len(n)))
    whole = np.rint(n)
    null = (
        _likelihood_gain(draw, whole, isotonic_regression(draw / whole, weights=whole).x)
        for draw in drawn
    )
    if any(value >= gain for value in null):
        return
    high = int(np.argmax(rate[: worst + 1]))
    at = [float(table.scores[starts[i]]) for i in (high, worst)]
    yield Advice(
        "falling_truth",
        f"the share of positives falls from {rate[high]:.3f} at scores around {at[0]:.4g} to "
        f"{rate[worst]:.3f} around {at[1]:.4g} (p < {1 / (REPLICATES + 1):g}): higher scores do "
        "not always mean higher probability here. Find out why, or use a method that may fall: "
        "ENIR, ABB, or BLS with monotone=False.",
        {"high": float(rate[high]), "low": float(rate[worst]), "from": at[0], "to": at[1]},
    )


def _likelihood_gain(ones: Array, n: Array, rising: Array) -> float:
    own = ones / n
    fit = xlogy(ones, own) + xlogy(n - ones, 1.0 - own)
    return 2.0 * float((fit - xlogy(ones, rising) - xlogy(n - ones, 1.0 - rising)).sum())


# --- Is a base rate of its own all that is wrong with the scores? ---------------------------------


#: base rate and mean score must be further apart than this: in standard errors, and in logits
FAR_SHIFT, FAR_LOGIT = 4.0, 0.4
#: a shift is advised if it mends at least this share of what BLS mends
MOST_OF_IT = 0.75
#: folds, and the most scores, where this is measured here
FOLDS, MOST_POOLED = 5, 10_000
#: the most cells on which a fold finds its constant
SHIFT_CELLS = 2_000

#: what was held out, and how BLS did on it
CurveHeldOut = tuple[HeldOutCells, Trial]


def advise_prior_shift(
    table: ScoreTable, face: Face = "python", judged: CurveHeldOut | None = None
) -> Iterator[Advice]:
    """Advice if the base rate is far from the mean score, and a constant on the logit mends it.

    In Python the text ends with the call that adds the constant. What the constant mends is
    measured out of fold, beside what `BLS` mends on the same rows: by the Brier score, and by the
    log loss of probabilities of at least 1/(2n + 2). A shift cannot move scores of exactly 0 and 1,
    so their loss stays finite.
    """
    if not table.looks_like_probabilities or table.rarest < FEW:
        return
    p, n = table.scores, table.weight
    mean, rate = float(n @ p) / table.total, table.total_positive / table.total
    squares = table.negative_sq + table.positive_sq
    error = math.sqrt(float(squares @ (p * (1.0 - p)))) / table.total
    gap = np.diff(logit(np.array([mean, rate])))[0]
    if abs(rate - mean) <= FAR_SHIFT * error or abs(gap) <= FAR_LOGIT:
        return
    if judged is None:
        some = table.pool(MOST_POOLED) if len(table) > MOST_POOLED else table
        held = HeldOutCells.of_table(some, FOLDS, 0)
        if not held.folds:
            return
        judged = held, try_all({"BLS": fit_copies(BLS())}, held)["BLS"]
    mended = _share_mended(*judged, table.effective_size)
    if mended is None or mended < MOST_OF_IT:
        return
    shift = _logit_shift(table)
    as_call = f"calibrant.adjust_prior(p, positive_weight={math.exp(-shift):.6g})"
    call = f": {as_call}" if face == "python" else ""
    yield Advice(
        "prior_shift",
        f"the scores expect {shown_percent(mean)} positives, but {shown_percent(rate)} came: the "
        "model was probably trained at another base rate (undersampling, class weights), or the "
        f"population has moved. Adding {shift:+.3f} to the logit mends "
        f"{shown_percent(min(mended, 1.0), 2)} of what BLS mends{call}.",
        {"mean": mean, "rate": rate, "shift": shift, "mended": mended},
    )


def _share_mended(held: HeldOutCells, curve: Trial, size: float) -> float | None:
    """The share of the gain of BLS out of fold that a constant shift gains, too: the smaller of the
    shares by two losses. None if BLS gains nothing."""
    (cell, positive), mean = held.units, held.sample.mean
    least = 0.5 / (size + 1.0)

    def losses(p: Array) -> Array:
        """The Brier score and the log loss of predictions that are no nearer to 0 and 1."""
        brier = losses_of_units(p[cell], positive)[1]
        log_loss = losses_of_units(np.clip(p[cell], least, 1.0 - least), positive)[0]
        return np.array([mean(brier), mean(log_loss)])

    # a constant is found as well on cells
    with_shift = [
        sigmoid(logit(p) + _logit_shift(rest.pool(SHIFT_CELLS))) for rest, p in held.parts()
    ]
    before, after = losses(held.scores), losses(np.concatenate(with_shift))
    gains = before - losses(curve.p)
    return float(((before - after) / gains).min()) if (gains > 0.0).all() else None


def _logit_shift(table: ScoreTable) -> float:
    """The constant on the logit that brings the mean prediction to the base rate. Scores of 0 and 1
    do not move, so it may fall short."""
    z, n, rate = logit(table.scores), table.weight, table.total_positive / table.total

    def beyond(b: float) -> float:
        return float(n @ sigmoid(z + b)) / table.total - rate

    low, high = -800.0, 800.0
    if beyond(low) >= 0.0 or beyond(high) <= 0.0:
        return low if beyond(low) >= 0.0 else high
    return float(brentq(beyond, low, high))


# --- Segments that stay miscalibrated under a map for all -----------------------------------------


#: the probability that any segment is named if all are calibrated
ALPHA = 0.01
#: the least error of a segment's mean prediction, as a share of its rate, and its fewest rows
LEAST_SHARE, LEAST_ROWS = 0.1, 20.0
NAMED = 5


def advise_segments(
    p: Array,
    positive: Flags,
    weight: Array | None,
    names: list[Any],
    code: Index,
) -> Iterator[Advice]:
    """Advice on segments whose share of positives differs from what was predicted, by Holm's
    procedure.

    ``names`` and ``code`` are as `read_segments` gives them.
    """
    w = np.ones(len(p)) if weight is None else weight
    sums = [
        np.bincount(code, values, minlength=len(names)).astype(np.float64)
        for values in (w, w * w, w * (positive - p), w * w * p * (1.0 - p), w * positive, w * p)
    ]
    return _advise_sums(names, *sums)


def advise_segment_tables(tables: Mapping[str, ScoreTable]) -> Iterator[Advice]:
    """The same of segments that are tables of probabilities."""
    sums = []
    for table in tables.values():
        p, w = table.scores, table.weight
        square = table.negative_sq + table.positive_sq
        missed = table.positive - w * p
        columns = (w, square, missed, square * p * (1.0 - p), table.positive, w * p)
        sums.append([float(column.sum()) for column in columns])
    return _advise_sums(list(tables), *np.array(sums).T)


def _advise_sums(
    names: list[Any],
    total: Array,
    squares: Array,
    missed: Array,
    spread: Array,
    ones: Array,
    expected: Array,
) -> Iterator[Advice]:
    """The advice from sums of each segment: w, w², w(y − p), w²p(1 − p), wy and wp.

    Each is judged by z = Σw(y − p) / √Σw²p(1 − p).
    """
    size = total**2 / np.where(squares > 0, squares, 1.0)
    enough = (size >= LEAST_ROWS) & (spread > 0)
    z = np.where(enough, missed / np.sqrt(np.where(enough, spread, 1.0)), 0.0)
    chance = 2.0 * ndtr(-np.abs(z))
    order = np.argsort(chance)
    tests = int(enough.sum())
    wrong = []
    for rank, i in enumerate(order[:tests]):
        if chance[i] * (tests - rank) > ALPHA:
            break
        if abs(missed[i]) > LEAST_SHARE * max(ones[i], expected[i]):
            wrong.append(int(i))
    if not wrong:
        return
    gaps = []
    for i in wrong:
        predicted, came = float(expected[i] / total[i]), float(ones[i] / total[i])
        gap = {"name": names[i], "predicted": predicted, "came": came, "weight": float(total[i])}
        gaps.append(gap)
    shown = "; ".join(
        f"{gap['name']!r}: predicted {gap['predicted']:.3g}, observed {gap['came']:.3g} "
        f"(weight {gap['weight']:.6g})"
        for gap in gaps[:NAMED]
    )
    more = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    yield Advice(
        "segments",
        f"{len(wrong)} of {len(names)} segments stay miscalibrated under the one map: {shown}"
        f"{more}. Calibrate them by themselves, if each has rows enough.",
        {"segments": gaps},
    )


# --- Was the model trained on the rows that it is calibrated on? ----------------------------------


#: AUC must be ahead of that of held-out rows by more standard errors than this
FAR = 3.0
#: rows can only be recognised if this share of them are different
DIFFERENT = 0.9
#: a forest that drew more rows than this for all of its trees together is not looked at
MOST_DRAWN = 50_000_000


def advise_trained_on(table: ScoreTable, held_out: ScoreTable) -> Iterator[Advice]:
    """Advice if the AUC on the calibration rows is far above the AUC on rows held out."""
    if one_class(table) or one_class(held_out):
        return
    here, there = area(table), area(held_out)
    error = math.hypot(auc_error(here, table), auc_error(there, held_out))
    if here - there > FAR * error:
        yield Advice(
            "trained_on_these_rows",
            f"AUC is {here:.4f} on the calibration rows, but {there:.4f} on the held-out ones, "
            f"{(here - there) / error:.1f} standard errors less: the model has probably seen the "
            "former. Calibrate on rows that it was not trained on.",
            {"auc": here, "held_out": there, "error": error},
        )


def auc_error(auc: float, table: ScoreTable) -> float:
    """The standard error of an AUC (Hanley and McNeil 1982)."""
    columns = ((table.negative, table.negative_sq), (table.positive, table.positive_sq))
    zero, one = (float(w.sum()) ** 2 / float(q.sum()) for w, q in columns)
    above, below = auc / (2.0 - auc), 2.0 * auc**2 / (1.0 + auc)
    spread = (one - 1.0) * (above - auc**2) + (zero - 1.0) * (below - auc**2)
    # an AUC of exactly one has no spread: at least that of half a pair out of order
    least = 0.5 / (one * zero)
    return math.sqrt(max(auc * (1.0 - auc) + max(spread, 0.0), least) / (one * zero))


def trained_on(model: Any, X: Any) -> str:
    """Words for the evidence that a model was trained on exactly these rows; "" if there is none.

    Only models that keep something of their rows give evidence: nearest neighbours, support
    vectors, trees (the rows in each leaf), Gaussian naive Bayes and scalers (means and counts).

    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = [[0.0], [1.0], [5.0], [7.0]]
    >>> trained_on(GaussianNB().fit(X, [0, 0, 1, 1]), X)
    'its means are those of these rows'
    >>> trained_on(GaussianNB().fit(X, [0, 0, 1, 1]), [[3.0]])
    ''
    """
    steps = getattr(model, "steps", None)
    try:
        if steps is not None:
            for _, step in steps[:-1]:
                if sign := trained_on(step, X):
                    return sign
                if step not in (None, "passthrough"):
                    X = step.transform(X)
            return trained_on(steps[-1][1], X)
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim == 2 and len(rows):
            for attribute, (check, words) in _SIGNS.items():
                kept = getattr(model, attribute, None)
                if kept is not None and check(kept, model, rows):
                    return words
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        pass  # rows or a model of another kind: nothing can be told
    return ""


def known_rows(model: Any, X: Any) -> Iterator[Advice]:
    """Advice if a fitted model is about to be calibrated on its own training rows."""
    if sign := trained_on(model, X):
        yield Advice(
            "trained_on_these_rows",
            f"{type(model).__name__} was trained on the rows that it is to be calibrated on "
            f"({sign}): its scores there are better than on new rows, and so the probabilities "
            "will be too sure. Pass other rows, or an unfitted model and cv=5.",
        )


def _keeps_only_these_rows(kept: Any, model: Any, rows: Array) -> bool:
    """Whether every row that the model keeps is one of these."""
    kept = np.asarray(kept, dtype=np.float64)
    if kept.ndim != 2 or kept.shape[1] != rows.shape[1] or len(kept) < 2:
        return False
    known = {row.tobytes() for row in np.ascontiguousarray(rows)}
    if len(known) < DIFFERENT * len(rows):
        return False  # rows of few values meet by chance
    return all(row.tobytes() in known for row in np.ascontiguousarray(kept))


def _same_means(kept: Any, model: Any, rows: Array) -> bool:
    """Whether the means that the model keeps are those of these rows, for each class or for all."""
    seen, counts = getattr(model, "n_samples_seen_", -1), getattr(model, "class_count_", None)
    if counts is not None:
        seen, kept = np.sum(counts), counts @ kept / np.sum(counts)
    if np.any(np.asarray(seen) != len(rows)):
        return False
    return bool(np.allclose(kept, rows.mean(axis=0), rtol=1e-9, atol=1e-12))


def _same_leaves(kept: Any, model: Any, rows: Array) -> bool:
    """Whether each leaf of the tree holds as many of these rows as it held training rows."""
    if kept.n_node_samples[0] != len(rows) or kept.node_count < 3:
        return False
    filled = np.bincount(kept.apply(rows.astype(np.float32)), minlength=kept.node_count)
    leaves = kept.children_left == -1
    return bool((filled[leaves] == kept.n_node_samples[leaves]).all())


def _same_first_tree(kept: Any, model: Any, rows: Array) -> bool:
    first = np.asarray(kept, dtype=object).ravel()[0]
    tree = getattr(first, "tree_", None)
    if tree is None or getattr(model, "_n_samples", len(rows)) != len(rows):
        return False
    if hasattr(model, "estimators_samples_"):  # a forest: each tree has drawn some of the rows
        if len(rows) * len(model.estimators_) > MOST_DRAWN:
            return False
        rows = rows[np.unique(model.estimators_samples_[0])]
    return _same_leaves(tree, first, rows)


#: attributes that a fitted model may keep of its rows, how they are compared, and what is said
_SIGNS: dict[str, tuple[Callable[[Any, Any, Any], bool], str]] = {
    "support_vectors_": (_keeps_only_these_rows, "all its support vectors are among these rows"),
    "_fit_X": (_keeps_only_these_rows, "the rows that it remembers are these"),
    "theta_": (_same_means, "its means are those of these rows"),
    "mean_": (_same_means, "its scaling was learned from exactly these rows"),
    "tree_": (_same_leaves, "these rows fill its leaves exactly as those it was grown on"),
    "estimators_": (_same_first_tree, "these rows fill its leaves exactly as its own"),
}
