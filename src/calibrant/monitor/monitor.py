"""A monitor of probabilities in use: it may be asked after every batch, for ever."""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from calibrant.array_types import Array
from calibrant.data.documents import brief
from calibrant.data.door import Rows, check_lengths, read_scores
from calibrant.data.score_table import WEIGHTS, ScoreTable, rows_count_once
from calibrant.data.segments import Key, refuse_several_columns, segment_codes, segment_key
from calibrant.errors import InputError
from calibrant.fitting.fitted import (
    Fitted,
    Label,
    check_label,
    check_labels,
    check_version,
    fingerprint,
    to_fitted_map,
)
from calibrant.losses import logit
from calibrant.metrics.chance import RisingBand
from calibrant.metrics.tables import (
    check_number,
    check_weights,
    read_rows,
    read_table,
    table_for_test,
)
from calibrant.monitor.drift import Drift, check_drift, check_least, map_of_one_score
from calibrant.result_tables import fields_as_dict, json_ready, sure_p
from calibrant.rules.base import Map
from calibrant.rules.sigmoids import Identity


class Monitor:
    """Watch probabilities in use, day after day, with one false alarm rate for all time.

    Parameters
    ----------
    reference : fitted calibrator, Fitted, Map or ScoreTable, optional
        A calibrator, whose probabilities are watched; or old rows with the same kind of scores, if
        P(y | score) rises. Without one, pass probabilities.
    alpha : float, default=0.05
        The chance of a false alarm, ever, however often the monitor is asked.
    least : float, default=0.0
        Smaller changes of a probability are no change. A calibrator was itself learned from rows
        and is never quite right: with many rows, say what matters to you, such as 0.01.
    weights : {"importance", "counts"}, default="importance"
        Whether a weight says how much a row matters, or is a number of equal rows.
    by_segment : bool, default=False
        Watch each segment as well, with shares of the same alpha.
    classes, pos_label : optional
        The labels, and the positive one; default: those of the calibrator, or as in `fit`.

    Notes
    -----
    The claim is E[y | p, the past] = p, to within ``least``. Some 200 alternatives bet against it:
    shifts and turns of all log-odds, and shifts in parts of the scale. One that says q instead of p
    has its stake multiplied by q/p where the event came, by (1 − q)/(1 − p) where not. Each begins
    anew with every batch. If the claim is true, their mean wealth is a martingale. So the chance
    that it ever reaches 1/alpha is at most alpha [1]_ [2]_, whatever the sizes of batches and the
    order of rows. Labels may come late, in any order, if each row comes once. ``since`` is where
    the bet that won most began. A row counts by its share of the heaviest weight so far.

    With old rows as the reference, half of alpha is the chance that their band [3]_ misses the
    curve. Segments get half of the evidence. One has an alarm of its own if its share of that is
    enough by itself (Holm's bound). A batch that came before is refused, if it has ten different
    probabilities or more. O(D) for D probabilities of a batch; the state is a file of some 10 kB.

    Threads may share a monitor: batches are taken one after another. A forked process goes on with
    a copy of its own, at any moment. Processes must not share a file that `load` and `save` use: of
    two that load it, update and save, the later one wins. The command ``calibrant monitor`` locks
    its file.

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
        least = check_least(least, 0.5)
        check_weights(weights)
        self._fitted: Fitted | None = None
        self._reset_lock()
        self._state = MonitorState(
            alpha,
            least,
            weights,
            bool(by_segment),
            classes=None if classes is None else check_labels(classes),
            pos_label=None if pos_label is None else check_label(pos_label),
        )
        if isinstance(reference, ScoreTable):
            if not rows_count_once(reference):
                raise InputError(
                    "the rows of the reference must have no weights, since its limits are for rows "
                    "that count once. Leave the weights out, or monitor against a calibrator."
                )
            # it holds the whole rising curve with probability 1 − alpha/2 at least
            self._state = replace(self._state, band=RisingBand.of(reference, alpha / 2.0))
        elif reference is not None:
            map_ = self._set_calibrator(reference)
            self._state = replace(self._state, fingerprint=fingerprint(map_))

    def _set_calibrator(self, calibrator: Any) -> Map:
        """Watch a calibrator's probabilities, and take over its labels; its map."""
        map_, known = map_of_one_score(calibrator), to_fitted_map(calibrator)
        self._fitted = known or Fitted(map_, (0, 1), 1)
        if known is not None and self._state.classes is None:
            self._state = replace(self._state, classes=known.classes, pos_label=known.pos_label)
        return map_

    def _required_calibrator(self) -> Fitted:
        """The calibrator of the monitor; an InputError where it has none."""
        if self._fitted is None:
            raise InputError(
                "scores need a calibrator, but this monitor has none. Pass probabilities: "
                "update(y, p), or make the monitor with the calibrator."
            )
        return self._fitted

    def __getstate__(self) -> dict[str, Any]:
        known = vars(self).items()
        return {name: value for name, value in known if name not in ("_locks", "_updater")}

    def __setstate__(self, known: Mapping[str, Any]) -> None:
        vars(self).update(known)
        self._reset_lock()

    def _reset_lock(self) -> None:
        """Begin without a lock, as after pickle.

        Each process makes one of its own. A forked process would wait for ever for a thread that
        held the lock, since it does not have that thread.
        """
        self._locks: dict[int, Any] = {}  # by the number of the process
        self._updater: tuple[int, int] | None = None  # the process and thread of an update

    @contextmanager
    def _one_batch(self) -> Iterator[None]:
        """Let one thread at a time take a batch."""
        own = (os.getpid(), threading.get_ident())
        with self._locks.setdefault(own[0], threading.RLock()):
            if self._updater == own:  # a signal handler, or rows that are made when they are read
                raise InputError(
                    "update was called while another update of the same monitor runs in this "
                    "thread. Call them one after another."
                )
            self._updater = own
            try:
                yield
            finally:
                self._updater = None

    # --- rows -----------------------------------------------------------------------------------

    def update(
        self,
        y: ArrayLike,
        p: ArrayLike | None = None,
        *,
        scores: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
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
            A name for the batch, such as its day. Readings repeat it.

        Returns
        -------
        MonitorReading
            If anything is wrong with the rows, the monitor stays as it was.
        """
        with self._one_batch():
            rows = self._read_rows_of_batch(y, p, scores, sample_weight)
            tables: dict[Key, ScoreTable] = {}
            self._check_segments(segments)
            if segments is not None:
                keys, codes = segment_codes(segments)
                check_lengths(y=len(rows.scores), segments=len(codes))
                made = (ScoreTable.from_rows(rows.take(codes == at)) for at in range(len(keys)))
                tables = {key: table for key, table in zip(keys, made, strict=True) if table}
            heaviest = 1.0 if rows.weight is None else float(rows.weight.max())
            labels, positive = check_labels(rows.classes.tolist()), check_label(rows.pos_label)
            batch = NewRows(ScoreTable.from_rows(rows), tables, rows.count, heaviest, str(when))
            return self._add_batch(batch, labels, positive)

    def update_table(
        self,
        table: ScoreTable,
        *,
        scores: bool = False,
        segments: Mapping[Key, ScoreTable] | None = None,
        when: str = "",
        classes: Any = None,
        pos_label: Any = None,
    ) -> MonitorReading:
        """Take a batch as a table, of any number of rows: see `score_table` for frames and files.

        Parameters
        ----------
        table : ScoreTable
            Of the probabilities; its positives are those of the monitor.
        scores : bool, default=False
            Whether the table holds scores for the calibrator, or as the old rows have them.
        segments : mapping of segment to ScoreTable
            With ``by_segment=True``: the table of each segment.
        when : str, optional
            A name for the batch.
        classes, pos_label : optional
            The two labels that the rows had, and the positive one: others than before are refused.

        Notes
        -----
        As `update` of the rows. Where scores were put into cells, a change by less than the cells'
        error is no change. A table does not know its heaviest row: the largest √Σw² of a cell is
        taken, which is at least as much.
        """
        with self._one_batch():
            self._check_segments(None if segments is None else list(segments))
            given = {
                key: self._read_table(one, scores) for key, one in (segments or {}).items() if one
            }
            found = self._read_table(table, scores)
            rows, heaviest = found.total, 1.0
            if found and not rows_count_once(found):
                rows = found.effective_size
                heaviest = math.sqrt(float(max(found.negative_sq.max(), found.positive_sq.max())))
            batch = NewRows(found, given, round(rows), heaviest, str(when))
            known, positive = self._read_labels(classes, pos_label)
            return self._add_batch(batch, known, positive)

    def _read_labels(self, classes: Any, pos_label: Any) -> tuple[tuple[Label, ...], Label]:
        """The two labels and the positive one of a table; refused if they are not those of the
        monitor."""
        state = self._state
        before = state.classes or (0, 1)
        positive = before[1] if state.pos_label is None else state.pos_label
        if classes is None:
            return before, positive
        came, its = check_labels(classes), check_label(pos_label)
        if state.classes is None:
            return came, its
        if [*map(str, came), str(its)] != [*map(str, before), str(positive)]:
            raise InputError(
                f"the labels must be those of the monitor, {list(before)} with {positive!r} as the "
                f"positive one, but {list(came)} with {its!r} came."
            )
        return before, positive

    def _read_table(self, table: ScoreTable, scores: bool) -> ScoreTable:
        """The table that the monitor watches: of probabilities, or of scores beside old rows."""
        if self._state.band is not None or not scores:
            if scores != (self._state.band is not None):
                raise InputError("with old rows as the reference, tables hold scores: scores=True.")
            return table if scores else read_table(table, None, None, None)
        map_ = self._required_calibrator().map
        made = table.through(map_)
        if not table.error:
            return made
        near = (map_(table.scores + step) for step in (-table.error, table.error))
        error = max(float(np.abs(p - map_(table.scores)).max()) for p in near)
        return replace(made, error=error, made=table.made)

    def _check_segments(self, segments: Any) -> None:
        """Refuse segments that the monitor does not watch, and their absence where it does."""
        refuse_several_columns(segments)
        if self._state.by_segment != (segments is not None):
            came = "they came without it" if segments is not None else "none came"
            how = "by_segment=True (on the command line --segment, from the first call on)"
            raise InputError(f"segments go with {how}, each row in one; but {came}.")

    def _add_batch(
        self, batch: NewRows, classes: tuple[Label, ...], pos_label: Label | None
    ) -> MonitorReading:
        """Add a batch to the evidence; the reading after it."""
        if not batch.table:
            raise InputError("a batch must hold rows with a weight above 0, but it has none.")
        self._state = replace(self._state.after(batch), classes=classes, pos_label=pos_label)
        return self.reading

    def _read_rows_of_batch(self, y: Any, p: Any, scores: Any, sample_weight: Any) -> Rows:
        """The rows that the monitor watches: with probabilities, or with scores beside old rows."""
        if (p is None) == (scores is None):
            raise InputError("pass either the probabilities p, or scores=..., and not both.")
        state = self._state
        labels = state.pos_label, state.classes
        if state.band is None:
            if p is None:
                p = self._required_calibrator().calibrate(scores)
            return read_rows(y, p, sample_weight, *labels)
        if scores is None:
            raise InputError("with old rows as the reference, pass their kind of scores: scores=.")
        return read_rows(y, scores, sample_weight, *labels, name="scores", read=read_scores)

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
        """Sums over time for charts, one window for each batch; older ones are joined."""
        return self._state.windows

    @property
    def enough(self) -> float:
        """The natural logarithm of the evidence that raises the alarm."""
        return self._state.enough

    @property
    def reading(self) -> MonitorReading:
        """What the monitor says now."""
        return reading_of_state(self._state)

    @property
    def segments(self) -> tuple[SegmentReading, ...]:
        """The reading of each segment; empty without ``by_segment``."""
        return segment_readings(self._state)

    def drift(self) -> Drift:
        """What `check_drift` says of the rows since the likeliest change began.

        Its ``update(calibrator)`` mends the calibrator. The rows are those of the windows that are
        kept, in 22 cells of the scale.
        """
        state = self._state  # one, while other threads may go on
        since = reading_of_state(state).since
        windows = [window for window in state.windows if window.last >= since]
        if not windows:
            raise InputError("there are no rows yet. Pass some: update(y, p).")
        return check_drift(Identity(), joined_windows(windows).table(), least=state.least)

    def __str__(self) -> str:
        state = self._state
        return f"Monitor({batch_counts(state.batches, state.rows)})\n{reading_of_state(state)}"

    __repr__ = __str__

    # --- files ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: all that the monitor knows."""
        state = self._state
        band = state.band
        if band is not None:
            band = band._replace(scores=band.scores[1:])  # the first is −∞
        segments = [{"segment": key, **fields_as_dict(one)} for key, one in state.segments.items()]
        return {
            "format": FORMAT,
            "version": VERSION,
            **fields_as_dict(replace(state, band=None, segments={})),
            "band": band and json_ready(band._asdict()),
            "segments": segments,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], reference: Any = None) -> Self:
        """A monitor in the state that `to_dict` gave."""
        check_version(document, FORMAT, VERSION, "the state of a monitor")
        made = cls()
        try:
            made._state = state_from_document(document)
        except InputError:
            raise
        except (TypeError, AttributeError, LookupError, ArithmeticError, ValueError) as wrong:
            raise InputError(
                f"the state of the monitor is damaged: {type(wrong).__name__}: {wrong}. Go on from "
                "an earlier copy, or start a new monitor."
            ) from wrong
        if reference is None:
            return made
        if isinstance(reference, ScoreTable):
            raise InputError("the file holds what the old rows say. Leave them out.")
        own = fingerprint(made._set_calibrator(reference))
        if own != made._state.fingerprint:
            raise InputError(
                "this is the state of a monitor of another calibrator: its fingerprint is "
                f"{made._state.fingerprint or '(none)'}, and that of the calibrator {own}. Pass "
                "the right one, or start a new monitor."
            )
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file: whole or not at all."""
        from calibrant.fitting.files import json_text
        from calibrant.outputs import write_whole

        write_whole(Path(path), json_text(self.to_dict()))

    @classmethod
    def load(cls, path: str | os.PathLike[str], reference: Any = None) -> Self:
        """A monitor in the state that `save` wrote.

        ``reference`` is the calibrator, if scores are to be passed; it must be the same one.
        """
        from calibrant.data.documents import read_document

        return cls.from_dict(read_document(Path(path), "the state of a monitor"), reference)


# --- What a monitor says of its state: as values, and in words ------------------------------------


#: what to do about each kind of change
REMEDIES = {"shift": "intercept", "slope": "refit", "part": "new map"}
#: and what to do it with
TODO = {
    "intercept": "Add one number to the log-odds: {doer} does.",
    "refit": "Correct the log-odds by a line: {doer} does.",
    "new map": "Fit a calibrator to new rows: no shift or line follows this.",
}


@dataclass(frozen=True, repr=False)
class MonitorReading:
    """What a monitor says now.

    Attributes
    ----------
    alarm : Alarm, or None
        The batch at which the alarm was raised; it stays.
    evidence : float
        How many times its stake a bet against the probabilities is worth now. If they are right,
        this is 1 on average at most. Infinite once something came that had probability 0.
    p_value : float
        The chance that the evidence ever gets as large as it has been, if the probabilities are
        right. It may be looked at whenever you like.
    since, since_when : int and str
        The batch with which the likeliest change began, and when that was. 0 before any batch.
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; infinite evidence is None."""
        return {
            **asdict(self),
            "evidence": self.evidence if math.isfinite(self.evidence) else None,
            "part": list(self.part),
            "segments": list(self.segments),
        }

    def __str__(self) -> str:
        return " ".join(reading_in_words(self))

    __repr__ = __str__


def reading_of_state(state: MonitorState) -> MonitorReading:
    """The reading that follows from a state."""
    if state.watched is None:
        return MonitorReading(None, 1.0, 1.0, 0, "", "shift", (0.0, 1.0), 0.0, 0.0, "none")
    worst = 0.0 if state.impossible else math.exp(-state.peak)
    alternatives = state.watched.alternatives()
    kinds = alternatives.kinds
    leader = state.evidence.leader(alternatives.prior)
    kind, since = str(kinds[leader]), int(state.evidence.since[leader])
    recommendation = "none"
    if state.alarm is not None:  # 0 and 1 have no log-odds to move
        recommendation = "new map" if state.impossible else REMEDIES[kind]
    return MonitorReading(
        alarm=state.alarm,
        evidence=math.inf if state.impossible else _stake_multiple(state.total),
        p_value=min(1.0, worst * state.alpha_parts),
        since=since,
        since_when=next((w.since for w in state.windows if w.last >= since), ""),
        change=kind,
        part=alternatives.part(leader),
        shift=float(alternatives.shift[leader]),
        confidence=float(state.evidence.shares()[kinds == kind].sum()),
        recommendation=recommendation,
        segments=tuple(one.segment for one in segment_readings(state) if one.alarm),
    )


def _stake_multiple(evidence: float) -> float:
    """How many times its stake a bet is worth, given the logarithm; cut at e⁷⁰⁰."""
    return math.exp(min(evidence, 700.0))


@dataclass(frozen=True)
class SegmentReading:
    """What a monitor says of one segment.

    Attributes
    ----------
    segment : str or int
    evidence : float
        The largest evidence in the segment so far.
    enough : float
        The evidence with which the segment has an alarm of its own.
    alarm : bool
        Whether it has one.
    since : int
        The batch of this segment's rows with which the likeliest change began, counted from the
        segment's first.
    part : (float, float)
        The probabilities that the likeliest change is about.
    shift : float
        What it adds to the log-odds there.
    """

    segment: Key
    evidence: float
    enough: float
    alarm: bool
    since: int
    part: tuple[float, float]
    shift: float


def segment_readings(state: MonitorState) -> tuple[SegmentReading, ...]:
    """The reading of each segment, in the order in which they came.

    A segment has an alarm of its own if its share of the evidence has been enough by itself.
    """
    if state.watched is None:
        return ()
    alternatives = state.watched.alternatives(only_shifts=True)
    found = []
    for key, one in state.segments.items():
        leader = one.evidence.leader(alternatives.prior)
        needed = state.enough - math.log(BY_SEGMENT * one.share)
        found.append(
            SegmentReading(
                segment=key,
                evidence=_stake_multiple(one.evidence.peak),
                enough=_stake_multiple(needed),
                alarm=one.evidence.peak >= needed,
                since=int(one.evidence.since[leader]),
                part=alternatives.part(leader),
                shift=float(alternatives.shift[leader]),
            )
        )
    return tuple(found)


# --- words ----------------------------------------------------------------------------------------


def reading_in_words(
    reading: MonitorReading, doer: str = "monitor.drift().update(calibrator)"
) -> list[str]:
    """A reading in sentences: what was found, since when, and what to do. ``doer`` is the call or
    command that does it."""
    if not reading.since:
        return ["No rows have come yet."]
    sure = sure_p(reading.p_value)
    if reading.alarm is None:
        return [f"No alarm ({sure}): the probabilities may still be right."]
    batch, when = reading.alarm.batch, reading.alarm.when
    first = f"Alarm since batch {batch}{f' ({when})' if when else ''}, {sure}."
    began = f"batch {reading.since}{f' ({reading.since_when})' if reading.since_when else ''}"
    said = [first, f"The change probably began with {began}: {_change_in_words(reading)}."]
    if math.isinf(reading.evidence):
        said[1] = "Something came that had been given probability 0."
    if reading.segments:
        listed, more = ", ".join(map(str, reading.segments[:10])), len(reading.segments) - 10
        listed += f" and {more:,} more" if more > 0 else ""
        said.append(f"Segments with an alarm of their own: {listed}.")
    return [*said, TODO[reading.recommendation].format(doer=doer)]


def batch_counts(batches: int, rows: int) -> str:
    """The numbers of batches and rows, in words."""
    counts = ((batches, "batch", "batches"), (rows, "row", "rows"))
    return ", ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in counts)


def _change_in_words(reading: MonitorReading) -> str:
    """A phrase: what the likeliest change did to the log-odds."""
    way = "up" if reading.shift > 0 else "down"
    if reading.change == "shift":
        return f"all log-odds went {way} by about {abs(reading.shift):g}"
    if reading.change == "slope":
        return "the log-odds were stretched or squeezed"
    low, high = reading.part
    return (
        f"log-odds of probabilities from {low:.2g} to {high:.2g} went {way} by about "
        f"{abs(reading.shift):g}"
    )


# --- The state of a monitor, read from plain values -----------------------------------------------


FORMAT, VERSION = "calibrant-monitor", 1


def state_from_document(document: Mapping[str, Any]) -> MonitorState:
    """The state in a document of `Monitor.to_dict`; an error if it is damaged."""
    watched, alarm, band = (document[name] for name in ("watched", "alarm", "band"))
    classes, positive = document["classes"], document["pos_label"]
    if positive is not None:
        positive = positive if classes is None else _read_choice(positive, tuple(classes))
    if band is not None:
        columns = [_read_numbers(band[name]) for name in RisingBand._fields]
        columns[0] = np.append(-np.inf, columns[0])
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns of the band differ in length")
        band = RisingBand(*columns)
    if watched is not None:
        watched = Watched(_read_numbers(watched["borders"]), _read_number(watched["centre"]))
    state = MonitorState(
        alpha=check_number("alpha", document["alpha"], 0.0, 1.0),
        least=_read_number(document["least"], 0.0, 0.5),
        weights=_read_choice(document["weights"], tuple(WEIGHTS)),
        by_segment=_read_choice(document["by_segment"], (True, False)),
        fingerprint=_read_text(document["fingerprint"]),
        band=band,
        classes=None if classes is None else check_labels(classes),
        pos_label=None if positive is None else check_label(positive),
        watched=watched,
        heaviest=_read_number(document["heaviest"], 0.0),
        rows=_read_count(document["rows"]),
        evidence=_read_evidence(document["evidence"]),
        peak=_read_number(document["peak"], 0.0),
        segments={
            segment_key(one["segment"]): SegmentEvidence(
                check_number("share", one["share"], 0.0, 1.0), _read_evidence(one["evidence"])
            )
            for one in document["segments"]
        },
        first_segments=_read_count(document["first_segments"]),
        windows=tuple(_read_window(window) for window in document["windows"]),
        marks=tuple((_read_count(number), str(mark)) for number, mark in document["marks"]),
        alarm=None if alarm is None else Alarm(_read_count(alarm["batch"]), str(alarm["when"])),
        impossible=_read_count(document["impossible"]),
    )
    _check_counts(state)
    return state


def _check_counts(state: MonitorState) -> None:
    """Refuse a state whose parts do not fit together."""
    count = 0 if state.watched is None else len(state.watched.alternatives().prior)
    if len(state.evidence.wealth) != count or (state.batches > 0) != (count > 0):
        raise InputError(
            f"the state of the monitor is damaged: {len(state.evidence.wealth)} alternatives came "
            f"where {count} are watched."
        )
    count = 0 if state.watched is None else len(state.watched.alternatives(only_shifts=True).prior)
    lengths = {len(one.evidence.wealth) for one in state.segments.values()}
    if not lengths <= {count} or state.first_segments > len(state.segments):
        raise InputError("the state of the monitor is damaged: its segments are not whole.")
    if (state.batches > 0) != bool(state.windows):
        raise InputError("the state of the monitor is damaged: it has batches without windows.")


def _read_evidence(given: Mapping[str, Any]) -> Evidence:
    """The evidence in a document."""
    wealth, best = (
        np.array([-np.inf if value is None else _read_number(value) for value in given[name]])
        for name in ("wealth", "best")
    )
    since = np.array([_read_count(value) for value in given["since"]], dtype=np.int64)
    if not len(wealth) == len(best) == len(since):
        raise ValueError("the columns of the evidence differ in length")
    return Evidence(
        wealth,
        best,
        since,
        _read_number(given["waiting"], 0.0, 1.0),
        _read_count(given["batches"]),
        _read_number(given["peak"], 0.0),
    )


def _read_window(given: Mapping[str, Any]) -> Window:
    """A window in a document."""
    columns = [_read_numbers(given[name], 0.0) for name in SUMS]
    if any(len(column) != len(EDGES) + 1 for column in columns):
        raise ValueError("a window has another number of cells")
    return Window(
        _read_count(given["first"]),
        _read_count(given["last"]),
        _read_text(given["since"]),
        _read_text(given["until"]),
        _read_number(given["evidence"]),
        *columns,
    )


def _read_numbers(values: Any, low: float = -math.inf) -> Array:
    """A list of numbers in a document, each at least ``low``."""
    return np.array([_read_number(value, low) for value in values], dtype=np.float64)


def _read_choice(value: Any, allowed: tuple[Any, ...]) -> Any:
    """A value in a document that must be one of some."""
    if not any(type(value) is type(one) and value == one for one in allowed):
        raise ValueError(f"one of {allowed} must be there, but {brief(value)} is")
    return value


def _read_text(value: Any) -> str:
    """A text in a document."""
    if type(value) is not str:
        raise ValueError(f"a text must be there, but {brief(value)} is")
    return value


def _read_number(value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number in a document, between two limits."""
    fine = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fine or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"a number from {low:g} to {high:g} must be there, but {brief(value)} is")
    return float(value)


def _read_count(value: Any) -> int:
    """A whole number in a document, from 0 on."""
    if type(value) is not int or value < 0:
        raise ValueError(f"a count must be there, but {brief(value)} is")
    return value


# --- What a monitor knows after some batches, as a value, and how one more batch changes it -------


#: where cells of probabilities begin, after the first
EDGES = np.concatenate(
    (
        [0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.15],
        [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
        [0.85, 0.9, 0.95, 0.98, 0.99, 0.997, 0.999],
    )
)
#: the most windows; if there are more, the older half is joined in pairs
MOST = 120
#: parts of the scale that are watched by themselves
PARTS = 10
#: how many batches are remembered, to notice one that comes again; and how many different
#: probabilities a batch must have for that
REMEMBERED, TELLING = 1000, 10
#: the share of the evidence that is about segments, and the share of this that segments of the
#: first batch get
BY_SEGMENT, AT_FIRST = 0.5, 0.5


@dataclass(frozen=True)
class Watched:
    """The changes that are watched for, as the first batch decided."""

    borders: Array
    centre: float

    @classmethod
    def of_first_batch(cls, p: Array) -> Watched:
        """The changes to watch for, given the probabilities of the first batch.

        Probabilities are known before the labels, so they may decide what is bet on. If the batch
        has too few different probabilities, borders are fixed ones.
        """
        borders = np.quantile(p, np.arange(1, PARTS) / PARTS)
        if len(np.unique(p)) < 5 * PARTS:
            borders = EDGES[3:-3:2]
        centre = float(np.clip(logit(np.clip(p, 1e-6, 1.0 - 1e-6)).mean(), -5.0, 5.0))
        return cls(np.unique([0.0, *borders.tolist(), 2.0]), centre)

    def alternatives(self, *, only_shifts: bool = False) -> Alternatives:
        """The changes to bet on."""
        return Alternatives.of(self.borders, only_shifts=only_shifts)


@dataclass(frozen=True)
class SegmentEvidence:
    """The evidence in one segment, and the share of the stake that it began with."""

    share: float
    evidence: Evidence


@dataclass(frozen=True)
class Alarm:
    """The batch that raised the alarm, and when that was."""

    batch: int
    when: str


class NewRows(NamedTuple):
    """A batch: its table, and the table of each segment.

    ``heaviest`` is the largest weight of a row.
    """

    table: ScoreTable
    segments: Mapping[Key, ScoreTable]
    rows: int
    heaviest: float
    when: str = ""

    @property
    def mark(self) -> str:
        """A hash of the rows, whatever their order."""
        columns = (self.table.scores, self.table.negative, self.table.positive)
        return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()[:16]


@dataclass(frozen=True)
class MonitorState:
    """All that a monitor remembers.

    Attributes
    ----------
    alpha, least, weights, by_segment
        As given to `Monitor`.
    fingerprint : str
        Of the calibrator's map; empty without one.
    band : RisingBand, or None
        What old rows say, if there are any in place of a calibrator.
    classes, pos_label
        The two labels and the positive one; None before the first batch if nobody told.
    watched : Watched, or None
        What the first batch decided.
    heaviest : float
        The largest weight so far.
    rows : int
        Rows so far.
    evidence : Evidence
        About all rows.
    peak : float
        The largest ln of all evidence together, segments included.
    segments : mapping of segment to SegmentEvidence
    first_segments : int
        How many segments the first batch had.
    windows : tuple of Window
    marks : tuple of (number of a batch, its mark)
    alarm : Alarm, or None
    impossible : int
        The first batch with an event that was claimed to be impossible; 0 if there is none.
    """

    alpha: float
    least: float
    weights: str
    by_segment: bool
    fingerprint: str = ""
    band: RisingBand | None = None
    classes: tuple[Label, ...] | None = None
    pos_label: Label | None = None
    watched: Watched | None = None
    heaviest: float = 0.0
    rows: int = 0
    evidence: Evidence = field(default_factory=lambda: Evidence.none(0))
    peak: float = 0.0
    segments: Mapping[Key, SegmentEvidence] = field(default_factory=dict)
    first_segments: int = 0
    windows: tuple[Window, ...] = ()
    marks: tuple[tuple[int, str], ...] = ()
    alarm: Alarm | None = None
    impossible: int = 0

    @property
    def batches(self) -> int:
        """How many batches came."""
        return self.evidence.batches

    @property
    def alpha_parts(self) -> float:
        """Into how many equal parts alpha is divided; the bets get one of them.

        A band of old rows may itself be wrong. That takes half of alpha, and half is left.
        """
        return 1.0 if self.band is None else 2.0

    @property
    def enough(self) -> float:
        """The natural logarithm of the evidence that raises the alarm."""
        return math.log(self.alpha_parts / self.alpha)

    @property
    def total(self) -> float:
        """The natural logarithm of all evidence, about all rows and about segments."""
        if not self.by_segment:
            return self.evidence.total
        shares = [(one.share, one.evidence.total) for one in self.segments.values()]
        unused = max(1.0 - sum(share for share, _ in shares), 0.0)
        about = [math.log(share) + value for share, value in shares]
        about += [math.log(unused)] if unused else []
        of_segments = math.log(BY_SEGMENT) + float(np.logaddexp.reduce(about))
        of_all = math.log(1.0 - BY_SEGMENT) + self.evidence.total
        return float(np.logaddexp(of_all, of_segments))

    def bounds(self, table: ScoreTable) -> NullBounds:
        """The claimed probabilities of a table, and the limits of what still agrees with the
        claim."""
        p = low = high = table.scores
        if self.band is not None:
            p, low, high = self.band.at(p)
        spare = self.least + table.error  # scores in cells are known no better than that
        if spare:
            low, high = np.maximum(low - spare, 0.0), np.minimum(high + spare, 1.0)
        return NullBounds(p, low, high)

    def after(self, batch: NewRows) -> MonitorState:
        """The state after one more batch; a batch that came before is refused."""
        heaviest = max(self.heaviest, batch.heaviest)
        if self.weights == "counts":
            table_for_test(batch.table, self.weights)  # refuses weights that are not whole
            heaviest = 1.0  # each is a number of rows
        number, mark = self.batches + 1, batch.mark
        earlier = next((at for at, known in self.marks if known == mark), None)
        if earlier is not None and len(batch.table) >= TELLING:
            raise InputError(
                f"this batch is the same as batch {earlier}: its {batch.rows:,} rows would count "
                "twice. Pass rows that came since."
            )
        bounds = self.bounds(batch.table)
        watched = self.watched or Watched.of_first_batch(bounds.p)
        alternatives = watched.alternatives()
        impossible = bounds.impossible(batch.table.negative, batch.table.positive)
        before = self.evidence if self.batches else Evidence.none(len(alternatives.prior))
        made = replace(
            self,
            watched=watched,
            heaviest=heaviest,
            rows=self.rows + batch.rows,
            evidence=before.after(
                self._gains(batch.table, watched, alternatives, heaviest), alternatives.prior
            ),
            segments=self._segments(batch, watched, heaviest),
            first_segments=self.first_segments if self.batches else len(batch.segments),
            marks=(*self.marks, (number, mark))[-REMEMBERED:],
            impossible=self.impossible or (number if impossible else 0),
        )
        made = replace(made, peak=max(self.peak, made.total))
        if made.alarm is None and (made.peak >= made.enough or made.impossible):
            made = replace(made, alarm=Alarm(number, batch.when))
        seen = ScoreTable.from_counts(bounds.p, batch.table.negative, batch.table.positive)
        window = Window.of(number, batch.when, made.total, seen)
        windows = (*self.windows, window)
        if len(windows) > MOST:
            half = len(windows) // 4 * 2
            pairs = (joined_windows(windows[at : at + 2]) for at in range(0, half, 2))
            windows = (*pairs, *windows[half:])
        return replace(made, windows=windows)

    def _gains(
        self, table: ScoreTable, watched: Watched, alternatives: Alternatives, heaviest: float
    ) -> Array:
        """What a table adds to the logarithm of each alternative's wealth.

        The factor of a bet is raised to the row's share of the heaviest weight, at most 1: so still
        nobody can expect to win.
        """
        negative, positive = table.negative / heaviest, table.positive / heaviest
        return batch_gains(alternatives, watched.centre, self.bounds(table), negative, positive)

    def _segments(
        self, batch: NewRows, watched: Watched, heaviest: float
    ) -> dict[Key, SegmentEvidence]:
        """The evidence in each segment after one more batch.

        Segments of the first batch share one half of it. Of the other half, the j-th segment that
        comes later gets 1/(j(j + 1)).
        """
        alternatives = watched.alternatives(only_shifts=True)
        found = dict(self.segments)
        for key, table in batch.segments.items():
            later = 1 + len(found) - self.first_segments
            share = (1.0 - AT_FIRST) / (later * (later + 1))
            if not self.batches:
                share = AT_FIRST / len(batch.segments)
            new = SegmentEvidence(share, Evidence.none(len(alternatives.prior)))
            known = found.get(key, new)
            gains = self._gains(table, watched, alternatives, heaviest)
            found[key] = replace(known, evidence=known.evidence.after(gains, alternatives.prior))
        return found


# --- windows of time ---------------------------------------------------------------------------


#: what a window has of each cell of the scale
SUMS = ("weight", "positive", "predicted", "variance")


@dataclass(frozen=True)
class Window:
    """Sums over one batch, or over several that came one after another.

    Attributes
    ----------
    first, last : int
        Their numbers.
    since, until : str
        When they were, as the user said; empty if nothing was said.
    evidence : float
        ln of the evidence after the last of them.
    weight, positive, predicted, variance : array
        Σw, Σwy, Σwp and Σwp(1 − p) in each cell of the scale.
    """

    first: int
    last: int
    since: str
    until: str
    evidence: float
    weight: Array
    positive: Array
    predicted: Array
    variance: Array

    @classmethod
    def of(cls, batch: int, when: str, evidence: float, table: ScoreTable) -> Self:
        """The window of one batch."""
        p, weight = table.scores, table.weight
        cell = np.searchsorted(EDGES, p, side="right")
        columns = (weight, table.positive, weight * p, weight * p * (1.0 - p))
        sums = (
            np.asarray(np.bincount(cell, column, minlength=len(EDGES) + 1), dtype=np.float64)
            for column in columns
        )
        return cls(batch, batch, when, when, evidence, *sums)

    def table(self) -> ScoreTable:
        """The window as a table, each cell at its mean prediction."""
        at = self.weight > 0.0
        n, n1 = self.weight[at], self.positive[at]
        return ScoreTable.from_counts(np.clip(self.predicted[at] / n, 0.0, 1.0), n - n1, n1)


def joined_windows(windows: Sequence[Window]) -> Window:
    """One window made of several."""
    first, last = windows[0], windows[-1]
    sums = (np.sum([getattr(window, name) for window in windows], axis=0) for name in SUMS)
    return Window(first.first, last.last, first.since, last.until, last.evidence, *sums)


# --------------------------------------------------------------------------------------------------
# Evidence against probabilities that adds up over time, and may be looked at after every row
#
# If probabilities are right, nobody can expect to win by betting against them. An alternative, such
# as "all log-odds are 0.2 higher", makes a probability q of each p and bets: its wealth is
# multiplied by q/p where the event came and by (1 − q)/(1 − p) where it did not. Before the row is
# known the expected factor is 1, whatever came before. So the mean wealth of many alternatives,
# which start with 1 in all, is a martingale, and the chance that it ever reaches 1/α is at most α
# (Ville 1939).
#
# Each alternative starts anew with every batch, with a share of the first 1 that is set aside for
# that batch. So a change that comes late is not hidden by what was lost before it.


#: how much an alternative adds to the log-odds
SHIFTS = (0.1, 0.2, 0.4, 0.8, 1.6)
#: by what an alternative multiplies the distance of the log-odds from the centre
SLOPES = (0.5, 0.7, 0.85, 1.2, 1.5, 2.0)
#: this many parts at each end of the scale are also watched together
TAILS = (2, 3, 5)
#: shares of the first 1: changes of all rows alike, of the slope (with or without a shift), of
#: one part of the scale
ALL, TURNED, PART = 0.5, 0.25, 0.25
#: Σ 1/(n·ln²n) over n ≥ 2, rounded up
SERIES = 2.10975
#: distinct probabilities that are worked on at a time
BLOCK = 4096


class Alternatives(NamedTuple):
    """The changes that are bet on, in columns: shift and slope of the log-odds, and for which
    probabilities.

    For probabilities in [low, high) the log-odds z become centre + slope·(z − centre) + shift;
    others stay. ``prior`` is the share of the first 1 that each starts with.
    """

    shift: Array
    slope: Array
    low: Array
    high: Array
    prior: Array

    @classmethod
    def of(cls, borders: Array, *, only_shifts: bool = False) -> Self:
        """All changes that are bet on: shifts of all rows, slopes, and shifts of parts of the
        scale."""
        both = [sign * size for size in SHIFTS for sign in (1.0, -1.0)]
        found = [(shift, 1.0, 0.0, math.inf, ALL) for shift in both]
        if not only_shifts:
            found += [(s, b, 0.0, math.inf, TURNED) for b in SLOPES for s in (0.0, *both)]
            ends = borders.tolist()
            parts = list(pairwise(ends))
            for many in TAILS:
                if many < len(parts):
                    parts += [(ends[-1 - many], ends[-1]), (ends[0], ends[many])]
            found += [(s, 1.0, low, high, PART) for low, high in dict.fromkeys(parts) for s in both]
        columns = np.array(found, dtype=np.float64).T
        shares = columns[-1]
        for share in np.unique(shares):
            columns[-1, shares == share] /= (shares == share).sum()
        columns[-1] /= columns[-1].sum()
        return cls(*columns)

    def part(self, place: int) -> tuple[float, float]:
        """The probabilities that a change is about."""
        return float(self.low[place]), min(float(self.high[place]), 1.0)

    @property
    def kinds(self) -> NDArray[np.str_]:
        """The kind of each change: "shift" of all rows, "slope", or "part" of the scale."""
        whole = np.isinf(self.high)
        return np.where(whole, np.where(self.slope == 1.0, "shift", "slope"), "part")


class NullBounds(NamedTuple):
    """The claimed probabilities of a batch, and the limits of what still agrees with the claim."""

    p: Array
    low: Array
    high: Array

    def impossible(self, negative: Array, positive: Array) -> bool:
        """Whether something came that the claim gives no chance at all."""
        return bool(positive[self.high <= 0.0].any() or negative[self.low >= 1.0].any())


def batch_gains(
    alternatives: Alternatives, centre: float, bounds: NullBounds, negative: Array, positive: Array
) -> Array:
    """What a batch adds to the logarithm of each alternative's wealth.

    The truth may be anything from low to high. An alternative above that range bets against high,
    one below it bets against low, and one inside does not bet. So no alternative can expect to win,
    whatever the truth is. O(K·D) for K alternatives and D probabilities.
    """
    shift, slope, low, high, _ = (column[:, None] for column in alternatives)
    found = np.zeros(len(alternatives.prior))
    for first in range(0, len(negative), BLOCK):
        at = slice(first, first + BLOCK)
        p, lower, upper = (bound[at] for bound in bounds)
        with np.errstate(divide="ignore"):
            z = np.log(p) - np.log1p(-p)
            least, not_least = np.log(lower), np.log1p(-lower)
            most, not_most = np.log(upper), np.log1p(-upper)
        moved = np.where((p >= low) & (p < high), centre + slope * (z - centre) + shift, z)
        rest = np.log1p(np.exp(-np.abs(moved)))
        q, not_q = np.minimum(moved, 0.0) - rest, -np.maximum(moved, 0.0) - rest  # ln q, ln(1 − q)
        above, below = q > most, q < least
        # ln of the factors for an event that came, and for one that did not, each (K, D)
        with np.errstate(invalid="ignore"):  # −∞ − −∞ where nothing is bet
            won = np.where(above, q - most, np.where(below, q - least, 0.0))
            lost = np.where(above, not_q - not_most, np.where(below, not_q - not_least, 0.0))
        found += won @ positive[at] + lost @ negative[at]
    return found


def starting_share(batch: int) -> float:
    """The share of the stake that bets get which begin with this batch.

    It is 1/((t + 1)·ln²(t + 1)), scaled to a sum of 1 over all t ≥ 1. Half goes to the first batch.
    The thousandth starts with so little that it costs no more than 13 in ln(wealth).

    >>> round(starting_share(1), 3), round(sum(map(starting_share, range(1, 10_000))), 3)
    (0.493, 0.949)
    """
    return 1.0 / (SERIES * (batch + 1) * math.log(batch + 1) ** 2)


@dataclass(frozen=True)
class Evidence:
    """The wealth of all bets after some batches.

    Attributes
    ----------
    wealth : array
        ln of the wealth of each alternative, whenever it began.
    best : array
        ln of the wealth of the one beginning that won most, without the alternative's own share.
    since : array of int
        The number of the batch, from 1 on, with which that one began.
    waiting : float
        What is left of the first 1 for later beginnings.
    batches : int
    peak : float
        The largest ln of all wealth together that there has been.
    """

    wealth: Array
    best: Array
    since: NDArray[np.int64]
    waiting: float = 1.0
    batches: int = 0
    peak: float = 0.0

    @classmethod
    def none(cls, count: int) -> Self:
        """The evidence before the first batch."""
        nothing = np.full(count, -np.inf)
        return cls(nothing, nothing, np.zeros(count, np.int64))

    def after(self, gains: Array, prior: Array) -> Self:
        """The evidence after one more batch. ``gains`` are what it adds to the logarithm of each
        wealth."""
        batch = self.batches + 1
        share = starting_share(batch)
        begun = np.logaddexp(self.wealth, np.log(share * prior))
        anew = self.best < math.log(share)
        made = replace(
            self,
            wealth=begun + gains,
            best=np.where(anew, math.log(share), self.best) + gains,
            since=np.where(anew, batch, self.since),
            waiting=max(self.waiting - share, 0.0),
            batches=batch,
        )
        return replace(made, peak=max(self.peak, made.total))

    @property
    def total(self) -> float:
        """The natural logarithm of all wealth together; 0 at first."""
        with np.errstate(divide="ignore"):
            return float(logsumexp(np.append(self.wealth, np.log(self.waiting))))

    def shares(self) -> Array:
        """The share of the wealth that each alternative has."""
        return np.exp(self.wealth - logsumexp(self.wealth)) if self.batches else np.exp(self.wealth)

    def leader(self, prior: Array) -> int:
        """The number of the alternative that explains the rows best."""
        return int(np.argmax(self.best + np.log(prior)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON. A wealth of 0, whose ln is −∞, is None."""
        wealth, best = (
            [value if math.isfinite(value) else None for value in values.tolist()]
            for values in (self.wealth, self.best)
        )
        columns = {"wealth": wealth, "best": best, "since": self.since.tolist()}
        return vars(self) | columns
