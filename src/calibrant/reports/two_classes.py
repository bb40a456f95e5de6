"""The report of scores of two classes, from rows or from a table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from calibrant.advice import advise_table
from calibrant.advice.segment_checks import segment_gaps
from calibrant.advice.table_checks import SAID_FIRST
from calibrant.array_types import Array
from calibrant.auto import AutoCalibrator
from calibrant.auto.folds import Fold, parts_of_table, table_cv
from calibrant.auto.scoring import Judged, judge, judge_maps, sample_of
from calibrant.calibrators.uncalibrated import Uncalibrated
from calibrant.data.labels import read_classes
from calibrant.data.score_kinds import kind_of
from calibrant.data.score_table import ScoreTable
from calibrant.data.segment_column import read_segments, segment_names
from calibrant.data.to_numpy import plain
from calibrant.data.validation import Rows, check_lengths, read_binary, read_probabilities
from calibrant.diagrams.bins import window
from calibrant.diagrams.map_lines import MapCurve, map_curve
from calibrant.errors import CalibrationWarning, InputError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.named_methods import BEFORE
from calibrant.estimators.table_folds import HeldOutCells
from calibrant.maps import Identity, VectorMap
from calibrant.metrics import Evaluation
from calibrant.metrics.first_look import LabelNames, first_look
from calibrant.metrics.out_of_fold import evaluate_held_out
from calibrant.reports.contest import (
    FOLDS,
    TOO_FEW,
    Contest,
    Entrant,
    ReportData,
    contest_behind,
    decide,
)
from calibrant.reports.key_facts import fingerprint
from calibrant.reports.panel_section import segment_panels
from calibrant.reports.report_value import Panel
from calibrant.reports.sentences import AS_THEY_ARE, ONE_RATE
from calibrant.result_tables import counted, shown_percent


@dataclass(frozen=True)
class TwoClasses(ReportData):
    """A table, the labels that it speaks of and, where there are any, its rows."""

    table: ScoreTable
    classes: tuple[Any, ...]
    pos_label: Any
    rows: Rows | None = None

    kinds: ClassVar[tuple[type, ...]] = (Calibrator,)
    panel_kind: ClassVar[str] = "segment"

    @classmethod
    def read(
        cls, scores: Any, y: Any, sample_weight: Any, pos_label: Any, classes: Any, calibrator: Any
    ) -> Self:
        """Rows, or a table; the labels of a table may come from a `Fitted`."""
        if not isinstance(scores, ScoreTable):
            if y is None:
                raise InputError("y must be given beside scores. Only a ScoreTable holds labels.")
            rows = read_binary(scores, y, sample_weight, pos_label=pos_label, classes=classes)
            return cls(ScoreTable.from_rows(rows), tuple(rows.classes), rows.pos_label, rows)
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise InputError(f"{name} must not be given beside a ScoreTable, which holds it.")
        if not scores:
            raise InputError("the table must hold at least one score, but it is empty.")
        if isinstance(calibrator, Fitted) and classes is None:
            classes, pos_label = list(calibrator.classes), calibrator.pos_label
        known, positive = read_classes(classes, pos_label)
        return cls(scores, tuple(plain(label) for label in known), plain(positive))

    @property
    def positive_column(self) -> int:
        """Which of the two classes is the positive one."""
        return 0 if self.labels[0] == plain(self.pos_label) else 1

    @property
    def before(self) -> str:
        kind = kind_of(self.table)
        if kind == "points":  # which stand for no probability
            return ONE_RATE
        return f"{AS_THEY_ARE} (divided by 100)" if kind == "percentages" else AS_THEY_ARE

    # --- judging --------------------------------------------------------------------------------

    def automatic(self, auto: AutoCalibrator) -> Contest:
        auto = clone(auto).set_params(classes=list(self.classes), pos_label=self.pos_label)
        if self.rows is None or table_cv(auto.cv):
            return contest_behind(auto.fit_table(self.table))
        labels = np.asarray(self.classes)
        positive, negative = labels[self.positive_column], labels[1 - self.positive_column]
        y = np.where(self.rows.positive, positive, negative)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # the page gives the advice
            return contest_behind(auto.fit(self.rows.scores, y, self.rows.weight))

    def judge_fitted(self, named: Mapping[str, Any]) -> Contest:
        parts, _ = parts_of_table(self.table, FOLDS, 0)
        if not parts:
            raise InputError(TOO_FEW)
        trials, sample = judge({BEFORE: Uncalibrated(), **named}, self.table, parts, progress=False)
        # fitted to a table of 0 and 1
        labels = {"classes": self.labels, "pos_label": plain(self.pos_label)}
        entrants = {}
        for name, trial in trials.items():
            distinct = len(np.unique(trial.map(self.table.scores)))
            fitted = replace(trial.calibrator.to_fitted(), **labels)
            entrants[name] = Entrant(trial.judged, trial.oof, distinct, fitted, trial.calibrator)
        return decide(entrants, sample, len(parts), parts)

    def judge_given(self, named: Mapping[str, Any]) -> Contest:
        maps = {name: value for name, value in named.items() if isinstance(value, Fitted)}
        whole = self._all_held(by_rows=len(maps) < len(named))
        outputs = {BEFORE: Uncalibrated().fit_table(self.table).map_(whole.scores)}
        outputs |= {name: self._predicted(name, one, whole.scores) for name, one in named.items()}
        entrants = {}
        for name, p in outputs.items():
            judged, table = _judged(p, whole, ranks=name == BEFORE)
            entrants[name] = Entrant(judged, table, len(table), maps.get(name), maps.get(name))
        return decide(entrants, sample_of([whole]), None, [whole])

    def _all_held(self, *, by_rows: bool) -> Fold:
        """All scores as one fold that is held out: row by row, or as the table has them."""
        table = self.table
        if not by_rows:
            columns = (table.negative, table.positive, table.negative_sq, table.positive_sq)
            return Fold(ScoreTable.empty(), table.scores, HeldOutCells(*columns))
        if self.rows is None:
            raise InputError(
                "probabilities can only be judged beside the scores and labels of the same rows, "
                "but a ScoreTable came, which has no rows. Pass scores and y."
            )
        scores, weight = self.rows.scores, self.rows.weight
        w = np.ones(len(scores)) if weight is None else weight
        one = np.where(self.rows.positive, w, 0.0)
        zero = w - one
        held = HeldOutCells(zero, one, zero * zero, one * one)
        return Fold(ScoreTable.empty(), scores, held)

    def _predicted(self, name: str, value: Any, scores: Array) -> Array:
        if not isinstance(value, Fitted):
            called = f"calibrator[{name!r}]"
            p = read_probabilities(
                value,
                positive_column=self.positive_column,
                name=called,
                classes=self.classes,
            )
            check_lengths(**{"scores": len(scores), called: len(p)})
            return p
        if isinstance(value.map, VectorMap):
            raise InputError(f"{name} is for several classes, but the scores are of two.")
        mine, theirs = plain(self.pos_label), value.pos_label
        if type(mine) is not type(theirs) or mine != theirs:
            raise InputError(
                f"{name} gives the probability of {theirs!r}, but high scores are read as {mine!r} "
                f"here. Pass pos_label={theirs!r}."
            )
        return value.map(scores)

    # --- what the page shows --------------------------------------------------------------------

    def curve_table(self, prediction: Any) -> ScoreTable:
        table: ScoreTable = prediction
        return table

    def evaluation(self, contest: Contest, measures: Sequence[str] | None = None) -> Evaluation:
        raw = None
        tables, chosen = contest.predictions, contest.chosen
        pair = contest.pairs[chosen]
        if chosen != BEFORE:  # a splitter may leave rows out
            same = np.isclose(tables[BEFORE].total, self.table.total, rtol=1e-9)
            raw = self.table if same else pair.scored()
        standing = {row.name: row for row in contest.standings}
        # as the gain has it: a row of weight 100 is one observation
        return evaluate_held_out(
            tables[chosen],
            raw,
            pair,
            level=contest.level,
            aucs=None
            if contest.folds is None
            else (standing[BEFORE].scores_auc, standing[chosen].auc),
            scores=len(self.table),
            values=standing[chosen].distinct,
            measures=measures,
        )

    def map_curve(self, fitted: Fitted | None) -> MapCurve | None:
        if fitted is None or fitted.map == Identity():
            return None
        low, high = float(self.table.scores[0]), float(self.table.scores[-1])
        if self.table.looks_like_probabilities:
            low, high = window(low, high)
        elif low == high:
            return None
        return map_curve(fitted, lo=low, hi=high)

    def panels(self, contest: Contest, segments: Any) -> tuple[Panel, ...]:
        if segments is None:
            return ()
        if self.rows is None:
            raise InputError(
                "segments need the rows they belong to, but a ScoreTable came. Pass scores and y."
            )
        if contest.fitted is None:
            raise InputError(
                "segments need a map of the score, but probabilities came. Pass a calibrator."
            )
        return segment_panels(self.table, self.rows, segments, contest.fitted.map, contest.level)

    def headline(self, label_name: str) -> tuple[str, bool]:
        look = first_look(self.table)
        names = LabelNames.of(self.classes, self.pos_label, label_name, "page")
        return look.headline(names), look.unproven

    def advice(self, contest: Contest, segments: Any) -> tuple[str, ...]:
        known = advise_table(self.table, contest.calibrator)
        found = [one for one in known if one.code not in SAID_FIRST.values()]  # the verdict has it
        rows, fitted = self.rows, contest.fitted
        if segments is not None and rows is not None and fitted is not None:
            values, codes = read_segments(segments)
            p = fitted.map(rows.scores)
            found += segment_gaps(p, rows.positive, rows.weight, segment_names(values), codes)
        return tuple(one.text[:1].upper() + one.text[1:] for one in found)

    def facts(self, score_name: str, label_name: str) -> dict[str, str]:
        table = self.table
        column = self.positive_column
        positive, negative = self.labels[column], self.labels[1 - column]
        share = shown_percent(table.total_positive / table.total)
        facts = {"score": score_name, "label": f"{label_name}: {positive!r} against {negative!r}"}
        if self.rows is not None:
            facts["rows"] = counted(self.rows.count)
        if self.rows is None or self.rows.weight is not None:
            facts["weight"] = counted(table.total)
            facts["effective rows"] = f"{table.effective_size:,.0f}"
        facts[f"of them {positive!r}"] = f"{counted(table.total_positive)} ({share})"
        if table.error:
            moved = f"no score was moved by more than {table.error:.2g}"
            facts["scores"] = f"{len(table):,} of {table.made}; {moved}"
        else:
            facts["distinct scores"] = f"{len(table):,}"
        facts["fingerprint of the data"] = fingerprint(
            table.scores, table.negative, table.positive, table.negative_sq, table.positive_sq
        )
        return facts


def _judged(p: Array, held: Fold, *, ranks: bool) -> tuple[Judged, ScoreTable]:
    """The losses of predictions of what is held, and their table."""
    return judge_maps([lambda _: p], [held], ranks=ranks)
