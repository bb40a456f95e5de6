"""What a monitor knows after some batches, as a value, and how one more batch changes it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from calibrant.array_types import Array
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_keys import Key
from calibrant.data.weighing import rows_count_once
from calibrant.errors import InputError
from calibrant.estimators.saved_labels import Label
from calibrant.losses import logit
from calibrant.metrics.rising_band import RisingBand
from calibrant.metrics.weighted_cells import table_for_test
from calibrant.monitor.evidence import Alternatives, Evidence, NullBounds, batch_gains

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


def reference_band(table: ScoreTable, level: float) -> RisingBand:
    """What old rows say of P(y | score), for a monitor that has no calibrator to go by.

    The band holds the whole rising curve with probability ``1 − level`` at least.
    """
    if not rows_count_once(table):
        raise InputError(
            "the rows of the reference must have no weights, since its limits are for rows "
            "that count once. Leave the weights out, or monitor against a calibrator."
        )
    return RisingBand.of(table, level)


@dataclass(frozen=True)
class Watched:
    """Which changes are watched for: borders of the parts of the scale, and where lines turn."""

    borders: Array
    centre: float

    @classmethod
    def by(cls, p: Array) -> Watched:
        """Tenths of the first batch's probabilities, and the mean of their log-odds.

        Probabilities are known before the labels, so they may decide what is bet on. If the batch
        has too few different probabilities, borders are fixed ones.
        """
        borders = np.quantile(p, np.arange(1, PARTS) / PARTS)
        if len(np.unique(p)) < 5 * PARTS:
            borders = EDGES[3:-3:2]
        centre = float(np.clip(logit(np.clip(p, 1e-6, 1.0 - 1e-6)).mean(), -5.0, 5.0))
        return cls(np.unique([0.0, *borders.tolist(), 2.0]), centre)

    def alternatives(self, *, only_shifts: bool = False) -> Alternatives:
        return Alternatives.of(self.borders, only_shifts=only_shifts)


@dataclass(frozen=True)
class SegmentEvidence:
    """The evidence in one segment, and its share of the first 1."""

    share: float
    evidence: Evidence


@dataclass(frozen=True)
class Alarm:
    """The first batch after which the evidence was enough, and when that was."""

    batch: int
    when: str


class NewRows(NamedTuple):
    """New rows: a table of probabilities or scores, and that of each segment that has rows.

    ``heaviest`` is the largest weight of a row.
    """

    table: ScoreTable
    segments: Mapping[Key, ScoreTable]
    rows: int
    heaviest: float
    when: str = ""

    @property
    def mark(self) -> str:
        """What tells this batch from others, whatever the order of its rows."""
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
        return self.evidence.batches

    @property
    def shared_by(self) -> float:
        """Among how many chances of a false alarm alpha is shared.

        A band of old rows may itself be wrong. That takes half of alpha, and half is left.
        """
        return 1.0 if self.band is None else 2.0

    @property
    def enough(self) -> float:
        """The ln of the evidence that raises the alarm."""
        return math.log(self.shared_by / self.alpha)

    @property
    def total(self) -> float:
        """ln of all evidence of now: the mean of that about all rows and about segments."""
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
        """What is claimed of a table's scores, and how far the truth may be from it."""
        found = NullBounds.exactly(table.scores)
        if self.band is not None:
            found = NullBounds(*self.band.at(table.scores))
        spare = self.least + table.error  # scores in cells are known no better than that
        return found.widened(spare) if spare else found

    def after(self, batch: NewRows) -> MonitorState:
        """With one more batch; a batch that came before is refused."""
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
        watched = self.watched or Watched.by(bounds.p)
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
        return replace(made, windows=thinned((*self.windows, window)))

    def _gains(
        self, table: ScoreTable, watched: Watched, alternatives: Alternatives, heaviest: float
    ) -> Array:
        # the factor of a bet is raised to the row's share of the heaviest weight, at most 1: so
        # still nobody can expect to win
        negative, positive = table.negative / heaviest, table.positive / heaviest
        return batch_gains(alternatives, watched.centre, self.bounds(table), negative, positive)

    def _segments(
        self, batch: NewRows, watched: Watched, heaviest: float
    ) -> dict[Key, SegmentEvidence]:
        """The evidence in each segment.

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


@dataclass(frozen=True)
class Window:
    """The sums of some batches that came one after another.

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
        """The window of one batch, a table of probabilities."""
        p, weight = table.scores, table.weight
        cell = np.searchsorted(EDGES, p, side="right")
        columns = (weight, table.positive, weight * p, weight * p * (1.0 - p))
        sums = (
            np.asarray(np.bincount(cell, column, minlength=len(EDGES) + 1), dtype=np.float64)
            for column in columns
        )
        return cls(batch, batch, when, when, evidence, *sums)

    def table(self) -> ScoreTable:
        """The cells as a table, each at its mean prediction."""
        at = self.weight > 0.0
        n, n1 = self.weight[at], self.positive[at]
        return ScoreTable.from_counts(np.clip(self.predicted[at] / n, 0.0, 1.0), n - n1, n1)


def joined(windows: Sequence[Window]) -> Window:
    """One window of several that came one after another."""
    first, last = windows[0], windows[-1]
    names = ("weight", "positive", "predicted", "variance")
    sums = (np.sum([getattr(window, name) for window in windows], axis=0) for name in names)
    return Window(first.first, last.last, first.since, last.until, last.evidence, *sums)


def thinned(windows: Sequence[Window]) -> tuple[Window, ...]:
    """The windows; if there are too many, the older half is joined in pairs."""
    if len(windows) <= MOST:
        return tuple(windows)
    half = len(windows) // 4 * 2
    pairs = (joined(windows[at : at + 2]) for at in range(0, half, 2))
    return (*pairs, *windows[half:])
