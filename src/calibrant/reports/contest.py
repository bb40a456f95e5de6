"""Which method is taken: all are judged beside the scores as they are, on the same rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from calibrant.auto import AutoCalibrator, Standing
from calibrant.auto.folds import Fold
from calibrant.auto.scoring import Judged, pairs_of, standings
from calibrant.data.score_table import ScoreTable
from calibrant.data.to_numpy import plain
from calibrant.diagrams.map_lines import MapCurve
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.fitted import Fitted
from calibrant.estimators.held_out_choice import CLASS_ERRORS, choose
from calibrant.estimators.held_out_means import Sample
from calibrant.estimators.named_methods import BEFORE, named_methods
from calibrant.estimators.registry import calibrators_of
from calibrant.metrics import Evaluation, MulticlassEvaluation
from calibrant.metrics.change_intervals import PairedCells
from calibrant.metrics.combined_test import chance_that_right
from calibrant.reports.report_value import Panel
from calibrant.reports.sentences import AS_THEY_ARE

#: folds and level where the caller brings no `AutoCalibrator` with its own
FOLDS = 5
LEVEL = 0.95
TOO_FEW = "a report needs at least two rows of each class, or nothing can be judged on other rows."


class Entrant(NamedTuple):
    """A method of a contest: its losses, its predictions with what came, and how many differ.

    ``fitted`` is its map, and ``calibrator`` what advice can be given on, where there are any.
    """

    judged: Judged
    prediction: Any
    distinct: int
    fitted: Fitted | None = None
    calibrator: Any = None


@dataclass(frozen=True)
class Contest:
    """The outcome: the standings, all predictions, and the map of the chosen method.

    Attributes
    ----------
    standings : tuple of Standing
    predictions : mapping of str to ScoreTable or ScoreMatrix
        The probabilities of each method for the rows of the contest, with what came.
    fitted : Fitted or None
        The map of the chosen method, where there is one.
    folds : int or None
        How often rows were held out; None for maps that were made before.
    level : float
    calibrator : Any
        The chosen method, fitted, where advice can be given on it.
    single : bool
        Whether only one method was asked about: it is the chosen one, whatever its figures.
    pairs : mapping of str to PairedCells
        Two classes: the predictions of each method beside the scores of the same rows.
    """

    standings: tuple[Standing, ...]
    predictions: Mapping[str, Any]
    fitted: Fitted | None
    folds: int | None
    level: float
    calibrator: Any = None
    single: bool = False
    pairs: Mapping[str, PairedCells] = field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """The name of the chosen method."""
        return next(row.name for row in self.standings if row.chosen)

    @property
    def how(self) -> str:
        """How the figures were obtained."""
        if self.folds is None:
            return (
                "Judged on these rows with calibrators that were made before: they must be other "
                "rows."
            )
        times = f"{self.folds} fold{'s' * (self.folds != 1)}"
        return f"Judged out of fold ({times}): no row was judged by a calibrator that had seen it."

    @property
    def where(self) -> str:
        """The rows that the verdict speaks of."""
        return "On these rows" if self.folds is None else "On rows it had not seen"


class ReportData(ABC):
    """The data of a report, of two classes or of several, and what each shows of them."""

    #: the calibrators that can be fitted to such data
    kinds: ClassVar[tuple[type, ...]]
    panel_kind: ClassVar[str]
    classes: Any

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels of the classes as plain Python values."""
        return tuple(plain(label) for label in self.classes)

    @property
    def before(self) -> str:
        """What the page calls the scores without a calibrator."""
        return AS_THEY_ARE

    @abstractmethod
    def automatic(self, auto: AutoCalibrator) -> Contest:
        """The contest that an unfitted AutoCalibrator holds."""

    @abstractmethod
    def judge_fitted(self, named: Mapping[str, Any]) -> Contest:
        """Calibrators, fitted here and judged out of fold."""

    @abstractmethod
    def judge_given(self, named: Mapping[str, Any]) -> Contest:
        """Maps, or probabilities of these rows, judged as they are."""

    @abstractmethod
    def curve_table(self, prediction: Any) -> ScoreTable:
        """The table whose reliability curve stands for a method."""

    @abstractmethod
    def evaluation(
        self, contest: Contest, measures: Sequence[str] | None = None
    ) -> Evaluation | MulticlassEvaluation:
        """All measures of the chosen method, beside those of the scores as they are."""

    @abstractmethod
    def panels(self, contest: Contest, segments: Any) -> tuple[Panel, ...]:
        """The segments or classes, before and after."""

    @abstractmethod
    def facts(self, score_name: str, label_name: str) -> dict[str, str]:
        """Columns, labels, counts and the fingerprint."""

    def map_curve(self, fitted: Fitted | None) -> MapCurve | None:
        """The line of the chosen map, where one can be drawn."""
        return None

    @abstractmethod
    def headline(self, label_name: str) -> tuple[str, bool]:
        """What must be known of the scores before anything else, nothing where all is well; and
        whether no map of them is worth anything."""

    def advice(self, contest: Contest, segments: Any) -> tuple[str, ...]:
        """What deserves a look, in sentences with figures."""
        return ()


def contest_of(calibrator: Any, data: ReportData) -> Contest:
    """Judge whatever came as ``calibrator`` on the data."""
    calibrator = AutoCalibrator() if calibrator is None else calibrators_of(calibrator)
    if isinstance(calibrator, AutoCalibrator):
        return data.automatic(calibrator)
    if isinstance(calibrator, Fitted):
        calibrator = {calibrator.method or "calibrator": calibrator}
    to_fit = (*data.kinds, type)
    if isinstance(calibrator, Mapping) and not all(
        isinstance(one, to_fit) for one in calibrator.values()
    ):
        named = {str(name): one for name, one in calibrator.items()}
        _check_made_before(named, to_fit)
        return data.judge_given(named)
    named = named_methods(calibrator, kinds=data.kinds, word="calibrator", taken=BEFORE)
    return data.judge_fitted(named)


def _check_made_before(named: Mapping[str, Any], to_fit: tuple[type, ...]) -> None:
    if BEFORE in named:
        raise ParameterError(f"calibrator must not hold the name {BEFORE!r}: it is always there.")
    for name, value in named.items():
        if isinstance(value, to_fit):
            raise ParameterError(
                "calibrator must hold either calibrators to be fitted here, or maps and "
                f"probabilities that were made before, but both came ({name!r} is one to be "
                "fitted)."
            )


def decide(
    entrants: Mapping[str, Entrant], sample: Sample, folds: int | None, parts: Sequence[Fold] = ()
) -> Contest:
    """Choose among methods that were judged on one sample, the scores as they are among them.

    A single method beside these is taken whatever its figures. ``parts`` are the folds of two
    classes.
    """
    judged = {name: one.judged for name, one in entrants.items()}
    before = entrants[BEFORE].prediction
    if isinstance(before, ScoreTable):
        right = chance_that_right(before, grouped=sample.cluster is not None)
        chosen, tied = choose(judged, sample, right=right)
    else:
        chosen, tied = choose(judged, sample, errors=CLASS_ERRORS)
    single = len(entrants) == 2
    if single:
        chosen = next(name for name in entrants if name != BEFORE)
    rows = standings(
        judged,
        sample,
        level=LEVEL,
        chosen=chosen,
        tied=tied,
        distinct={name: one.distinct for name, one in entrants.items()},
        seconds=dict.fromkeys(entrants, 0.0),  # times differ from run to run; the page must not
    )
    return Contest(
        rows,
        {name: one.prediction for name, one in entrants.items()},
        entrants[chosen].fitted,
        folds,
        LEVEL,
        entrants[chosen].calibrator,
        single,
        pairs_of(judged, list(parts)) if parts else {},
    )


def contest_behind(auto: AutoCalibrator) -> Contest:
    """The contest that a fitted AutoCalibrator has held already."""
    board = auto.leaderboard_
    if board is None:
        raise InputError(TOO_FEW)
    fitted = auto.to_fitted()
    # seconds differ from run to run; the page must not
    facts = {key: value for key, value in fitted.provenance.items() if key != "leaderboard"}
    fitted = replace(fitted, provenance=facts)
    return Contest(
        board.rows,
        auto.oof_,
        fitted,
        board.folds,
        board.level,
        auto.calibrator_,
        pairs=auto.pairs_,
    )
