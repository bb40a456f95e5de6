"""A monitor of probabilities in use: it may be asked after every batch, for ever."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import Key, segment_codes
from calibrant.data.validation import Rows, check_lengths, read_labels, read_scores, read_weight
from calibrant.data.weighing import WEIGHTS
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import Number
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.saved_labels import check_label, check_labels
from calibrant.export.map_given import fingerprint, fitted_of
from calibrant.maps import Identity
from calibrant.metrics.arguments import check_number, check_word, read_rows
from calibrant.monitor.drift_check import check_drift
from calibrant.monitor.drift_value import Drift, map_of_one_score
from calibrant.monitor.monitor_state import BY_SEGMENT, Alarm, MonitorState, NewRows
from calibrant.monitor.monitor_windows import Window, joined
from calibrant.monitor.reference_band import ReferenceBand

__all__ = ["Monitor", "MonitorReading"]

#: what to do about each kind of change
REMEDIES = {"shift": "intercept", "slope": "refit", "part": "new map"}


@dataclass(frozen=True, repr=False)
class MonitorReading:
    """What a monitor says now.

    Attributes
    ----------
    alarm : Alarm, or None
        The batch at which the alarm was raised; it stays.
    evidence : float
        How many times its stake a bet against the probabilities is worth now, at best 1 on average
        if they are right.
    p_value : float
        The chance that the evidence ever gets as large as it has been, if the probabilities are
        right. It may be looked at whenever you like.
    since, since_when : int and str
        The batch with which the likeliest change began, and when that was. 0 without a batch.
    change : {"shift", "slope", "part"}
        What it did to the log-odds: all moved alike, were stretched or squeezed, or moved in one
        part of the scale.
    part : (float, float)
        The probabilities that the likeliest change is about.
    shift : float
        What the likeliest change adds to the log-odds there.
    confidence : float
        The share of the evidence that speaks for this kind of change.
    recommendation : {"none", "intercept", "refit", "new map"}
        As in `Drift`; "none" as long as there is no alarm.
    segments : tuple
        Segments with an alarm of their own.
    """

    alarm: Alarm | None
    evidence: float
    p_value: float
    since: int
    since_when: str
    change: str
    part: tuple[float, float]
    shift: float
    confidence: float
    recommendation: str
    segments: tuple[Key, ...] = ()

    def __str__(self) -> str:
        from calibrant.monitor.monitor_words import in_words

        return " ".join(in_words(self))

    __repr__ = __str__


class Monitor:
    """Watch probabilities in use, day after day, with one false alarm rate for all time.

    Parameters
    ----------
    reference : fitted calibrator, Fitted, Map or ScoreTable, optional
        What should hold: a calibrator, whose probabilities are watched; or old rows with the same
        kind of scores (then P(y | score) must rise). Without one, probabilities are passed.
    alpha : float, default=0.05
        The chance of a false alarm, ever, however often the monitor is asked.
    least : float, default=0.0
        Changes of a probability by less than this are no change. A calibrator was itself learned
        from rows and is never quite right: with many rows, say what matters to you, such as 0.01.
    weights : {"importance", "counts"}, default="importance"
        Whether a weight says how much a row matters, or is a number of equal rows.
    by_segment : bool, default=False
        Watch each segment as well, with shares of the same alpha.
    classes, pos_label : optional
        The two labels, and which one the probabilities are of; default: as in `fit`, or as the
        calibrator knows.

    Notes
    -----
    The claim is E[y | p, the past] = p, to within ``least``. Bets against it multiply their stake
    by q/p or (1 − q)/(1 − p). The q come from some 200 alternatives: shifts and turns of all
    log-odds, and shifts of tenths and of both ends of the scale. Each begins anew with every batch.
    Their mean is a martingale if the claim is true, so it ever reaches 1/alpha with probability
    alpha at most [1]_ [2]_: after each batch, for ever, whatever the sizes of the batches and the
    order of their rows. Labels may come late, in any order, as long as each row comes once.
    ``since`` is the beginning of the bet that won most. A row of less weight than the heaviest so
    far is bet on with that share of the power.

    With old rows as the reference, half of alpha is the chance that their band [3]_ misses the
    curve. Segments get half of the evidence; one has an alarm of its own if its share of it alone
    is enough (Holm's bound). Rows that came twice are noticed by batch, if it has ten different
    probabilities at least.

    O(D) for D different probabilities of a batch; the state is a file of some ten kilobytes.

    References
    ----------
    .. [1] J. Ville, "Étude critique de la notion de collectif", 1939.
    .. [2] A. Ramdas, P. Grünwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe anytime-
       valid inference", 2023, doi:10.1214/23-STS894.
    .. [3] T. Dimitriadis, L. Dümbgen, A. Henzi, M. Puke, J. Ziegel, "Honest calibration assessment
       for binary outcome predictions", 2023, doi:10.1093/biomet/asac068.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor()
    >>> for day in range(30):
    ...     p = rng.beta(1, 4, 500)
    ...     true = p if day < 15 else p / (p + 0.5 * (1 - p))
    ...     reading = monitor.update(rng.random(500) < true, p)
    >>> monitor.alarm.batch, reading.since, reading.recommendation
    (16, 16, 'intercept')
    """

    def __init__(
        self,
        reference: Any = None,
        *,
        alpha: float = 0.05,
        least: float = 0.0,
        weights: str = "importance",
        by_segment: bool = False,
        classes: Any = None,
        pos_label: Any = None,
    ) -> None:
        alpha = check_number("alpha", alpha, 0.0, 1.0)
        if not Number(0.0, 0.5).allows(least):
            raise ParameterError(f"least must be {Number(0.0, 0.5)}, but {least!r} came.")
        check_word("weights", weights, WEIGHTS)
        self._fitted: Fitted | None = None
        self._state = MonitorState(
            alpha,
            float(least),
            weights,
            bool(by_segment),
            classes=None if classes is None else check_labels(classes),
            pos_label=None if pos_label is None else check_label(pos_label),
        )
        if isinstance(reference, ScoreTable):
            band = ReferenceBand.of(reference, alpha / 2.0)
            self._state = replace(self._state, band=band)
        elif reference is not None:
            self._watch(reference)
            self._state = replace(self._state, fingerprint=fingerprint(self._known().map))

    def _watch(self, calibrator: Any) -> None:
        """Take a calibrator, whose labels are those of the rows."""
        map_ = map_of_one_score(calibrator)
        self._fitted = fitted_of(calibrator) or Fitted(map_, (0, 1), 1)
        if fitted_of(calibrator) is not None and self._state.classes is None:
            self._state = replace(
                self._state, classes=self._fitted.classes, pos_label=self._fitted.pos_label
            )

    def _known(self) -> Fitted:
        if self._fitted is None:
            raise InputError(
                "scores need a calibrator, but this monitor has none. Pass probabilities: "
                "update(y, p), or make the monitor with the calibrator."
            )
        return self._fitted

    # --- rows -----------------------------------------------------------------------------------

    def update(
        self,
        y: Any,
        p: Any = None,
        *,
        scores: Any = None,
        sample_weight: Any = None,
        segments: Any = None,
        when: str = "",
    ) -> MonitorReading:
        """Take a batch of rows whose labels have come, and say what the evidence is now.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels.
        p : array-like of shape (n,), or a binary predict_proba
            The probabilities that were given.
        scores : array-like of shape (n,)
            In place of p: scores, for the calibrator or as the old rows have them.
        sample_weight : array-like of shape (n,), optional
        segments : array-like of shape (n,)
            With ``by_segment=True``: which segment each row is in.
        when : str, optional
            A name for the batch, such as its day, to be said again.

        Returns
        -------
        MonitorReading
            If anything is wrong with the rows, the monitor stays as it was.
        """
        rows = self._read(y, p, scores, sample_weight)
        tables: dict[Key, ScoreTable] = {}
        if self._state.by_segment != (segments is not None):
            raise InputError(
                "segments go with by_segment=True, each row in one; but "
                + ("they came without it." if segments is not None else "none came.")
            )
        if segments is not None:
            keys, codes = segment_codes(segments)
            check_lengths(y=len(rows.scores), segments=len(codes))
            tables = {
                key: ScoreTable.from_rows(rows.take(codes == at)) for at, key in enumerate(keys)
            }
            tables = {key: table for key, table in tables.items() if table}
        table = ScoreTable.from_rows(rows)
        if not table:
            raise InputError("a batch must hold rows with a weight above 0, but it has none.")
        heaviest = None
        if self._state.weights == "importance":
            heaviest = 1.0 if rows.weight is None else float(rows.weight.max())
        batch = NewRows(table, tables, rows.count, heaviest, str(when))
        labels, positive = check_labels(rows.classes.tolist()), check_label(rows.pos_label)
        self._state = replace(self._state.after(batch), classes=labels, pos_label=positive)
        return self.reading

    def _read(self, y: Any, p: Any, scores: Any, sample_weight: Any) -> Rows:
        """The rows: probabilities, or scores where old rows are the reference."""
        if (p is None) == (scores is None):
            raise InputError("pass either the probabilities p, or scores=..., and not both.")
        state = self._state
        labels = {"pos_label": state.pos_label, "classes": state.classes}
        if state.band is None:
            if p is None:
                p = self._known().calibrate(scores)
            return read_rows(y, p, sample_weight, **labels)
        if scores is None:
            raise InputError("with old rows as the reference, pass their kind of scores: scores=.")
        found = read_labels(y, **labels)
        clean = read_scores(scores, positive_column=found.positive_column, classes=found.classes)
        check_lengths(y=len(found.positive), scores=len(clean))
        weight = read_weight(sample_weight, len(clean))
        return Rows(clean, found.positive, weight, found.classes, found.pos_label)

    # --- answers --------------------------------------------------------------------------------

    @property
    def alarm(self) -> Alarm | None:
        """The first alarm, or None."""
        return self._state.alarm

    @property
    def batches(self) -> int:
        """How many batches came."""
        return self._state.batches

    @property
    def rows(self) -> int:
        """How many rows came."""
        return self._state.rows

    @property
    def windows(self) -> tuple[Window, ...]:
        """Sums over time, for charts: one window a batch, older ones joined."""
        return self._state.windows

    @property
    def enough(self) -> float:
        """The natural logarithm of the evidence that raises the alarm."""
        return self._state.enough

    @property
    def reading(self) -> MonitorReading:
        """What the monitor says now."""
        state = self._state
        evidence = math.inf if state.impossible else math.exp(min(state.total, 700.0))
        worst = 0.0 if state.impossible else math.exp(-state.peak)
        p_value = min(1.0, worst * (1.0 if state.band is None else 2.0))
        if state.watched is None:
            whole = (0.0, 1.0)
            return MonitorReading(None, 1.0, 1.0, 0, "", "shift", whole, 0.0, 0.0, "none")
        alternatives = state.watched.alternatives()
        leader = state.evidence.leader(alternatives.prior)
        kinds = alternatives.kinds
        kind, since = str(kinds[leader]), int(state.evidence.since[leader])
        return MonitorReading(
            alarm=state.alarm,
            evidence=evidence,
            p_value=p_value,
            since=since,
            since_when=next((w.since for w in state.windows if w.last >= since), ""),
            change=kind,
            part=(float(alternatives.low[leader]), min(float(alternatives.high[leader]), 1.0)),
            shift=float(alternatives.shift[leader]),
            confidence=float(state.evidence.shares()[kinds == kind].sum()),
            recommendation="none" if state.alarm is None else REMEDIES[kind],
            segments=self._alarmed(),
        )

    def _alarmed(self) -> tuple[Key, ...]:
        """Segments whose own share of the evidence has been enough by itself."""
        state = self._state
        return tuple(
            key
            for key, one in state.segments.items()
            if math.log(BY_SEGMENT * one.share) + one.evidence.peak >= state.enough
        )

    def drift(self) -> Drift:
        """What `check_drift` says of the rows since the likeliest change began.

        Its ``update(calibrator)`` mends the calibrator. The rows are those of the windows that are
        kept, in 22 cells of the scale.
        """
        since = self.reading.since
        windows = [window for window in self._state.windows if window.last >= since]
        if not windows:
            raise InputError("there are no rows yet. Pass some: update(y, p).")
        return check_drift(Identity(), joined(windows).table(), least=self._state.least)

    def __str__(self) -> str:
        from calibrant.monitor.monitor_words import described

        return described(self)

    __repr__ = __str__

    # --- files ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: all that the monitor knows."""
        from calibrant.monitor.monitor_file import document_of

        return document_of(self._state)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], reference: Any = None) -> Self:
        """A monitor from what `to_dict` gave; see `load`."""
        from calibrant.monitor.monitor_file import state_of

        made = cls()
        made._state = state_of(document)
        if reference is None:
            return made
        if isinstance(reference, ScoreTable):
            raise InputError("the file holds what the old rows say. Leave them out.")
        made._watch(reference)
        if fingerprint(made._known().map) != made._state.fingerprint:
            raise InputError(
                "this is the state of a monitor of another calibrator: its fingerprint is "
                f"{made._state.fingerprint or '(none)'}, and that of the calibrator "
                f"{fingerprint(made._known().map)}. Pass the right one, or start a new monitor."
            )
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file: whole or not at all."""
        from calibrant.export.json import json_text
        from calibrant.outputs import write_whole

        write_whole(Path(path), json_text(self.to_dict()))

    @classmethod
    def load(cls, path: str | os.PathLike[str], reference: Any = None) -> Self:
        """Go on from a file that `save` wrote.

        ``reference`` is the calibrator, if scores are to be passed; it must be the same one.
        """
        from calibrant.data.json_documents import read_document

        return cls.from_dict(read_document(Path(path), "the state of a monitor"), reference)
