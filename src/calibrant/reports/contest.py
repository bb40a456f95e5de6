"""How methods do beside the scores as they are, on rows they have not seen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.calibrators.uncalibrated import Uncalibrated
from calibrant.data.labels import plain
from calibrant.data.score_table import ScoreTable
from calibrant.data.validation import Rows, check_lengths, read_probabilities
from calibrant.errors import CalibrationWarning, InputError, ParameterError
from calibrant.estimators.base import Calibrator
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.named_methods import BEFORE, named_methods
from calibrant.estimators.table_folds import HeldOutCells
from calibrant.maps import VectorMap
from calibrant.metrics.ranking import area

if TYPE_CHECKING:
    from calibrant.auto import Standing
from calibrant.estimators.registry import calibrators_of

__all__ = ["Contest", "Data", "contest_behind", "contest_of", "out_of_fold_words"]

Array = NDArray[np.float64]

FOLDS = 5
LEVEL = 0.95

_UNSEEN = "On rows it had not seen"
_GIVEN = "On these rows"


@dataclass(frozen=True)
class Data:
    """What came: the table, the labels it speaks of and, where there are any, its rows."""

    table: ScoreTable
    classes: tuple[Any, ...]
    pos_label: Any
    rows: Rows | None = None

    @property
    def positive_column(self) -> int:
        return 0 if plain(self.classes[0]) == plain(self.pos_label) else 1


@dataclass(frozen=True)
class Contest:
    """What came of it: the standings, the predictions, and the map of what was chosen."""

    standings: tuple[Standing, ...]
    tables: Mapping[str, ScoreTable]
    fitted: Fitted | None
    how: str
    where: str
    level: float = LEVEL
    calibrator: Any = None  # what was chosen, as far as it can be advised on
    single: bool = False  # one method stands there, whatever came of it
    unseen: bool = True  # judged out of fold, by several maps


def contest_of(calibrator: Any, data: Data) -> Contest:
    """Judge whatever came as ``calibrator`` on the data."""
    from calibrant.auto import AutoCalibrator

    calibrator = AutoCalibrator() if calibrator is None else calibrators_of(calibrator)
    if isinstance(calibrator, AutoCalibrator):
        return _automatic(calibrator, data)
    if isinstance(calibrator, Fitted):
        return _as_given({calibrator.method or "calibrator": calibrator}, data)
    if isinstance(calibrator, Mapping) and any(
        not isinstance(c, (Calibrator, type)) for c in calibrator.values()
    ):
        return _as_given({str(name): c for name, c in calibrator.items()}, data)
    return _fitted(named_methods(calibrator, word="calibrator", taken=BEFORE), data)


# --- fitted here, judged out of fold ------------------------------------------------------------


def _automatic(calibrator: Any, data: Data) -> Contest:
    auto = clone(calibrator).set_params(classes=list(data.classes), pos_label=data.pos_label)
    rows = data.rows
    if rows is None or isinstance(auto.cv, Integral):
        return contest_behind(auto.fit_table(data.table))
    y = np.asarray(data.classes)[np.where(rows.positive, 1, 0) ^ (data.positive_column == 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the page gives the advice
        return contest_behind(auto.fit(rows.scores, y, rows.weight))


def contest_behind(auto: Any) -> Contest:
    """What a fitted AutoCalibrator found out already."""
    board = auto.leaderboard_
    if board is None:
        raise InputError(_TOO_FEW)
    fitted = auto.to_fitted()
    # seconds differ from run to run; the page must not
    facts = {key: v for key, v in fitted.provenance.items() if key != "leaderboard"}
    fitted = replace(fitted, provenance=facts)
    how = out_of_fold_words(board.folds)
    chosen = auto.calibrator_
    return Contest(board.rows, auto.oof_, fitted, how, _UNSEEN, board.level, chosen)


_TOO_FEW = "a report needs at least two rows of each class, or nothing can be judged on other rows."


def out_of_fold_words(folds: int) -> str:
    times = f"{folds} fold{'s' * (folds != 1)}"
    return f"Judged out of fold ({times}): no row was judged by a calibrator that had seen it."


def _fitted(named: dict[str, Calibrator], data: Data) -> Contest:
    from calibrant.auto.folds import parts_of_table
    from calibrant.auto.scoring import choose, judge, standings

    parts, _ = parts_of_table(data.table, FOLDS, 0)
    trials, sample = judge({BEFORE: Uncalibrated(), **named}, data.table, parts, progress=False)
    if sample is None:
        raise InputError(_TOO_FEW)
    judged = {name: trial.judged for name, trial in trials.items() if trial.judged is not None}
    chosen, tied = choose(judged, sample)
    if len(named) == 1:  # the page is about this one, whatever came of it
        chosen = next(iter(named))
    rows = standings(
        judged,
        sample,
        level=LEVEL,
        chosen=chosen,
        tied=tied,
        distinct={
            name: len(np.unique(trial.calibrator.map_(data.table.scores)))
            for name, trial in trials.items()
        },
        seconds=dict.fromkeys(trials, 0.0),
    )
    tables = {name: trial.oof for name, trial in trials.items() if trial.oof is not None}
    taken = trials[chosen].calibrator
    fitted = _named_after(taken.to_fitted(), data)
    how, single = out_of_fold_words(len(parts)), len(named) == 1
    return Contest(rows, tables, fitted, how, _UNSEEN, LEVEL, taken, single)


def _named_after(fitted: Fitted, data: Data) -> Fitted:
    """The same map, speaking of the data's labels instead of 0 and 1."""
    labels = tuple(plain(label) for label in data.classes)
    return replace(fitted, classes=labels, pos_label=plain(data.pos_label))


# --- made elsewhere, judged as they are ---------------------------------------------------------


def _as_given(named: dict[str, Any], data: Data) -> Contest:
    """Fitted maps, or probabilities of the same rows."""
    from calibrant.auto.held_out_means import Sample
    from calibrant.auto.scoring import choose, standings

    if BEFORE in named:
        raise ParameterError(f"calibrator must not hold the name {BEFORE!r}: it is always there.")
    maps = {name: value for name, value in named.items() if isinstance(value, Fitted)}
    scores, held = _cells(data, rows=len(maps) < len(named))
    outputs = {BEFORE: Uncalibrated().fit_table(data.table).map_(scores)}
    outputs |= {name: _predicted(name, value, scores, data) for name, value in named.items()}
    zero, one = held.negative > 0, held.positive > 0
    sample = Sample(
        np.concatenate((held.negative[zero], held.positive[one])),
        np.concatenate((held.negative_sq[zero], held.positive_sq[one])),
    )
    tables = {name: ScoreTable.from_counts(p, *held) for name, p in outputs.items()}
    ranked = {**tables, BEFORE: ScoreTable.from_counts(scores, *held)}
    judged = {name: _judged(p, held, ranked[name]) for name, p in outputs.items()}
    chosen, tied = choose(judged, sample)
    if len(named) == 1:
        chosen = next(iter(named))
    rows = standings(
        judged,
        sample,
        level=LEVEL,
        chosen=chosen,
        tied=tied,
        distinct={name: len(table) for name, table in tables.items()},
        seconds=dict.fromkeys(tables, 0.0),
    )
    how = "Judged on these rows with calibrators that were made before: they must be other rows."
    taken = maps.get(chosen)
    return Contest(rows, tables, taken, how, _GIVEN, LEVEL, taken, len(named) == 1, unseen=False)


def _cells(data: Data, *, rows: bool) -> tuple[Array, HeldOutCells]:
    """The scores, and who came with each: row by row where predictions come by rows."""
    if not rows:
        t = data.table
        return t.scores, HeldOutCells(t.negative, t.positive, t.negative_sq, t.positive_sq)
    if data.rows is None:
        raise InputError(
            "probabilities can only be judged beside the scores and labels of the same rows, but a "
            "ScoreTable came, which has no rows. Pass scores and y."
        )
    weight = data.rows.weight
    w = np.ones(len(data.rows.scores)) if weight is None else weight
    one = np.where(data.rows.positive, w, 0.0)
    zero = w - one
    return data.rows.scores, HeldOutCells(zero, one, zero * zero, one * one)


def _predicted(name: str, value: Any, scores: Array, data: Data) -> Array:
    if isinstance(value, (Calibrator, type)):
        raise ParameterError(
            "calibrator must hold either calibrators to be fitted here, or maps and probabilities "
            f"that were made before, but both came ({name!r} is one to be fitted)."
        )
    if not isinstance(value, Fitted):
        p = read_probabilities(
            value,
            positive_column=data.positive_column,
            name=f"calibrator[{name!r}]",
            classes=data.classes,
        )
        check_lengths(**{"scores": len(scores), f"calibrator[{name!r}]": len(p)})
        return p
    if isinstance(value.map, VectorMap):
        raise InputError(f"{name} is for several classes, but the scores are of two.")
    mine, theirs = plain(data.pos_label), value.pos_label
    if type(mine) is not type(theirs) or mine != theirs:
        raise InputError(
            f"{name} gives the probability of {theirs!r}, but high scores are read as {mine!r} "
            f"here. Pass pos_label={theirs!r}."
        )
    return value.map(scores)


def _judged(p: Array, held: HeldOutCells, ranked: ScoreTable) -> Any:
    from calibrant.auto.scoring import Judged

    zero, one = held.negative > 0, held.positive > 0
    with np.errstate(divide="ignore"):
        surprise = np.concatenate((-np.log1p(-p[zero]), -np.log(p[one])))
    square = np.concatenate((np.square(p[zero]), np.square(1.0 - p[one])))
    both = zero.any() and one.any()
    certain = bool(p.min() <= 0.0 or p.max() >= 1.0)
    return Judged(surprise, square, area(ranked) if both else None, certain)
