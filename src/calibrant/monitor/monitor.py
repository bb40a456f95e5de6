"""A monitor of probabilities in use: it may be asked after every batch, for ever."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from calibrant.data.labels import read_labels
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import Key, refuse_columns, segment_codes
from calibrant.data.validation import Rows, check_lengths, read_scores, read_weight
from calibrant.data.weighing import rows_count_once
from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.saved_labels import Label, check_label, check_labels
from calibrant.export.map_given import fingerprint, fitted_of
from calibrant.maps import Identity
from calibrant.metrics.arguments import check_number, read_column, read_rows, read_table
from calibrant.metrics.weighted_cells import check_weights
from calibrant.monitor.drift_check import check_drift, check_least
from calibrant.monitor.drift_value import Drift, map_of_one_score
from calibrant.monitor.monitor_reading import (
    MonitorReading,
    SegmentReading,
    reading_of,
    segment_readings,
    taken,
)
from calibrant.monitor.monitor_state import (
    Alarm,
    MonitorState,
    NewRows,
    Window,
    joined,
    reference_band,
)


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

    Threads may share a monitor: batches are taken one after another. Processes must not share a
    file that `load` and `save` use: of two that load it, update and save, the later one wins. The
    command ``calibrant monitor`` locks its file.

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
        self._lock = threading.Lock()  # held while a batch is taken
        self._state = MonitorState(
            alpha,
            least,
            weights,
            bool(by_segment),
            classes=None if classes is None else check_labels(classes),
            pos_label=None if pos_label is None else check_label(pos_label),
        )
        if isinstance(reference, ScoreTable):
            band = reference_band(reference, alpha / 2.0)
            self._state = replace(self._state, band=band)
        elif reference is not None:
            self._watch(reference)
            self._state = replace(self._state, fingerprint=fingerprint(self._known().map))

    def _watch(self, calibrator: Any) -> None:
        """Take a calibrator, whose labels are those of the rows."""
        map_, known = map_of_one_score(calibrator), fitted_of(calibrator)
        self._fitted = known or Fitted(map_, (0, 1), 1)
        if known is not None and self._state.classes is None:
            self._state = replace(self._state, classes=known.classes, pos_label=known.pos_label)

    def _known(self) -> Fitted:
        if self._fitted is None:
            raise InputError(
                "scores need a calibrator, but this monitor has none. Pass probabilities: "
                "update(y, p), or make the monitor with the calibrator."
            )
        return self._fitted

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, known: Mapping[str, Any]) -> None:
        vars(self).update(known, _lock=threading.Lock())

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
            A name for the batch, such as its day. Readings repeat it.

        Returns
        -------
        MonitorReading
            If anything is wrong with the rows, the monitor stays as it was.
        """
        with self._lock:
            rows = self._read(y, p, scores, sample_weight)
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
            return self._take(batch, labels, positive)

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
        with self._lock:
            self._check_segments(None if segments is None else list(segments))
            given = {key: self._table(one, scores) for key, one in (segments or {}).items() if one}
            found = self._table(table, scores)
            rows, heaviest = found.total, 1.0
            if found and not rows_count_once(found):
                rows = found.effective_size
                heaviest = math.sqrt(float(max(found.negative_sq.max(), found.positive_sq.max())))
            batch = NewRows(found, given, round(rows), heaviest, str(when))
            known, positive = self._labels(classes, pos_label)
            return self._take(batch, known, positive)

    def _labels(self, classes: Any, pos_label: Any) -> tuple[tuple[Label, ...], Label]:
        """The labels of the monitor; a table of other labels is refused."""
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

    def _table(self, table: ScoreTable, scores: bool) -> ScoreTable:
        """A table of probabilities, or of scores where old rows are the reference."""
        if self._state.band is not None or not scores:
            if scores != (self._state.band is not None):
                raise InputError("with old rows as the reference, tables hold scores: scores=True.")
            return table if scores else read_table(table, None, None, None)
        map_ = self._known().map
        made = table.through(map_)
        if not table.error:
            return made
        near = (map_(table.scores + step) for step in (-table.error, table.error))
        error = max(float(np.abs(p - map_(table.scores)).max()) for p in near)
        return replace(made, error=error, made=table.made)

    def _check_segments(self, segments: Any) -> None:
        refuse_columns(segments)
        if self._state.by_segment != (segments is not None):
            came = "they came without it" if segments is not None else "none came"
            how = "by_segment=True (on the command line --segment, from the first call on)"
            raise InputError(f"segments go with {how}, each row in one; but {came}.")

    def _take(
        self, batch: NewRows, classes: tuple[Label, ...], pos_label: Label | None
    ) -> MonitorReading:
        if not batch.table:
            raise InputError("a batch must hold rows with a weight above 0, but it has none.")
        self._state = replace(self._state.after(batch), classes=classes, pos_label=pos_label)
        return self.reading

    def _read(self, y: Any, p: Any, scores: Any, sample_weight: Any) -> Rows:
        """The rows: probabilities, or scores where old rows are the reference."""
        if (p is None) == (scores is None):
            raise InputError("pass either the probabilities p, or scores=..., and not both.")
        state = self._state
        if state.band is None:
            if p is None:
                p = self._known().calibrate(scores)
            return read_rows(y, p, sample_weight, state.pos_label, state.classes)
        if scores is None:
            raise InputError("with old rows as the reference, pass their kind of scores: scores=.")
        found = read_labels(y, pos_label=state.pos_label, classes=state.classes)
        clean = read_column(scores, found, name="scores", read=read_scores)
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
        """Sums over time, for charts: a window for each batch; older ones are joined."""
        return self._state.windows

    @property
    def enough(self) -> float:
        """The natural logarithm of the evidence that raises the alarm."""
        return self._state.enough

    @property
    def reading(self) -> MonitorReading:
        """What the monitor says now."""
        return reading_of(self._state)

    @property
    def segments(self) -> tuple[SegmentReading, ...]:
        """What is said of each segment now; empty without ``by_segment``."""
        return segment_readings(self._state)

    def drift(self) -> Drift:
        """What `check_drift` says of the rows since the likeliest change began.

        Its ``update(calibrator)`` mends the calibrator. The rows are those of the windows that are
        kept, in 22 cells of the scale.
        """
        state = self._state  # one, while other threads may go on
        since = reading_of(state).since
        windows = [window for window in state.windows if window.last >= since]
        if not windows:
            raise InputError("there are no rows yet. Pass some: update(y, p).")
        return check_drift(Identity(), joined(windows).table(), least=state.least)

    def __str__(self) -> str:
        state = self._state
        return f"Monitor({taken(state.batches, state.rows)})\n{reading_of(state)}"

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
