"""AutoCalibrator: the choice of a calibrator, with no calibration always in the race."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant.array_types import Array
from calibrant.auto.advice import Advice, advise_first_look, advise_table, warn_of
from calibrant.auto.why import (
    POINTS,
    SOFT,
    Leaderboard,
    explanation,
    kept_in_words,
    why_refused,
    why_too_few,
    with_verdict,
)
from calibrant.data.columns import to_column
from calibrant.data.door import (
    Limit,
    Number,
    OneOf,
    Rows,
    check_parameters,
    read_binary,
    read_weight,
    row_blocks,
)
from calibrant.data.scale import ScoreScale
from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.data.score_table import ScoreTable, table_in_rows
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import (
    DIRECTIONS,
    WEIGHTS,
    Calibrator,
    OneScoreOrMany,
    VectorCalibrator,
    count_columns,
    direction_of,
)
from calibrant.fitting.fitted import Fitted, PredictsByRule, RuleReader
from calibrant.fitting.folds import (
    FEW_CLASSES,
    FOLDED_NUMBERS,
    FOLDS,
    CvLimit,
    is_fold_count,
)
from calibrant.fitting.held_out import (
    Fit,
    HeldOutCells,
    HeldOutMatrix,
    Trial,
    choose,
    fit_copies,
    progress_bar,
    standings,
    try_all,
)
from calibrant.fitting.model_scores import take_weights_as_counts
from calibrant.fitting.registry import BEFORE, check_pos_labels, named_methods, to_calibrators
from calibrant.losses import logit, sigmoid
from calibrant.methods.codes.calibrator import CodedCalibrator, TopLabelCalibrator
from calibrant.methods.features.calibrator import (
    FEATURES,
    HELD_PART,
    MANY_ROWS,
    FeatureCalibrator,
    features_in_words,
)
from calibrant.methods.scaling import EnsembleTemperature, StructuredScaling, Temperature
from calibrant.methods.splines.bls import BLS, MAP_ERROR, MOST_ODDS
from calibrant.methods.uncalibrated import Uncalibrated, unchanged_trial
from calibrant.metrics.headlines import (
    ClassLook,
    ClassNames,
    FirstLook,
    LabelNames,
    class_look,
    first_look,
)
from calibrant.rules.base import Map
from calibrant.rules.piecewise import Piecewise, refined_lines
from calibrant.rules.sigmoids import Identity, Logistic
from calibrant.rules.softmax import VectorMixture, seen_by_members
from calibrant.solvers.threads import one_thread
from calibrant.solvers.weights import mixture_weights
from calibrant.tensors import on_host

#: what calibrates scores alone: the first kind takes two classes, the others several
KINDS = (Calibrator, VectorCalibrator, CodedCalibrator)


AnyCalibrator = Calibrator | VectorCalibrator | CodedCalibrator


class Splitter(Protocol):
    """What splits rows, such as scikit-learn's ``TimeSeriesSplit()``."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[Any]:
        """The (train, test) rows of each split."""
        ...


#: how rows are held out: folds, a fraction, a splitter, or the splits themselves
Cv = int | float | Splitter | Iterable[Any] | None


class Candidates:
    """The limits of ``candidates``: calibrators of scores, in a list or by name."""

    def allows(self, value: Any) -> bool:
        if not isinstance(value, (list, tuple, Mapping)):
            return False
        calibrators = to_calibrators(value)
        inside = calibrators.values() if isinstance(calibrators, Mapping) else calibrators
        return all(isinstance(one, KINDS) for one in inside)

    def __str__(self) -> str:
        return "a list of calibrators of scores, or a dict of names, such as [Platt(), 'isotonic']"


@dataclass(kw_only=True, eq=False, repr=False)
class AutoCalibrator(PredictsByRule, OneScoreOrMany):
    """Bayesian-averaged logit splines (`BLS`), or whatever else is better, or nothing at all.

    Every candidate is judged on rows that it has not seen, and the scores as they came are always
    one of them: where nothing speaks against them they are kept, and ``refused_`` says so. Where
    little does, the map is between them and the curve, and ``share_`` says where.

    Parameters
    ----------
    candidates : list, tuple or dict of calibrators or names, default=None
        Judged beside `BLS`. With several classes they are judged beside a mixture of temperature
        scaling, structured scaling and one-vs-rest BLS. A dict gives them names.
    cv : int, None (5), float, splitter or iterable of (train, test) rows, default=5
        A number of folds; a fraction of the rows to hold out once; or a splitter such as
        ``TimeSeriesSplit()``, or the splits themselves.
    level : float, default=0.95
        The level of the intervals in ``leaderboard_``.
    weights : {"importance", "counts"}, default="importance"
        How much a row matters, so that standard errors use Σw² and a row is in one fold; or how
        many equal rows it stands for. See `Calibrator`.
    progress : bool, default=False
        Show a bar on stderr.
    random_state : int, default=0
        The seed for dealing a table into folds and for drawing a fraction.
    direction, pos_label : see `Calibrator`
        With two classes only.
    classes : see `Calibrator`
        With several classes all of them, in the order of the columns (default: sorted).

    Attributes
    ----------
    leaderboard_ : Leaderboard, or None where no row could be held out
        Log loss and Brier score of each candidate out of fold, with standard errors; the gain over
        the scores as they came; AUC; values; seconds. Prints as a table.
    chosen_ : str
        The name of the candidate that was taken; ``"uncalibrated"`` for none.
    refused_ : str or None
        Why no candidate was taken, with the figures; None if one was. The scores are then kept as
        they are; where they are points, all rows get one rate.
    share_ : float
        How much what was taken counts in the log-odds of ``map_``, from 0 (the scores are kept) to
        1; the rest are the scores as they came. Other candidates than `BLS` count in full.
    map_ : Map
        From scores to probabilities; absent where columns of the rows are chosen: then the rule of
        ``calibrator_`` is applied and saved.
    calibrator_ : fitted calibrator, or None for the mixture and the scores of several classes
    feature_calibrator_ : FeatureCalibrator, or None if no features were given
    oof_ : dict of name to ScoreTable, of several classes to ScoreMatrix
        Each candidate's predictions out of fold, with what happened.
    pairs_ : dict of name to PairedCells
        Two classes: each candidate's predictions out of fold beside the scores of the same rows.
    look_ : FirstLook, of several classes ClassLook
        The direction of the scores, and whether they say anything (see `explain`).
    scores_are_ : str
        What the scores look like: probabilities, percentages, margins or points. Points stand for
        no probability: ``"uncalibrated"`` is then one rate for all rows.
    advice_ : tuple of Advice
        What deserves a look (see `advise`); `fit` also warns of it. Several classes: only what is
        wrong with the scores themselves.

    Notes
    -----
    The choice: the difference in log-odds between `BLS` and the scores is a direction, learned on
    other rows. If the scores are right, a first step in that direction gains nothing on average.
    By how many standard errors it does gain on the rows held out is the evidence t against the
    scores (the score test). `BLS` gets the share (t − 1)/2, but no less than 0 and no more than 1,
    and the scores the rest: the map is the average of their log-odds. So up to one standard error
    the scores are kept exactly, from three on `BLS` counts alone, and nothing jumps between. Of
    scores that are right, some 20 % are changed, and by little: with 200 rows the mean loss over
    all samples is 0.0004 in log loss.

    Other candidates, and the mixture of several classes, are taken whole or not at all: if the
    evidence is two standard errors, and the gain one. The candidate of least loss is preferred to
    our own method only if it is ahead of that by more than two standard errors. A candidate that
    gives an exact 0 or 1 is taken only if all do, since a single wrong one makes the log loss
    infinite; the same holds for the scores.

    The folds: they are dealt from the score table, and a row of weight 100 is in one fold. There
    are fewer than ``cv`` where a class has fewer rows. With ``groups`` or a splitter, rows are
    split. Standard errors use Σw² of unequal weights, and count groups where there are any. With a
    single row of a class nothing can be judged, and the scores are kept. With more than 200,000
    distinct scores, candidates are judged on 100,000 cells of them and fitted to all. Margins
    (scores of which any lies outside [0, 1]) are compared by their sigmoid.

    Three or more classes: the members of the mixture see rows softened to the best temperature.
    Their shares are those that make the rows held out likeliest, with 0.3 pseudo-rows for each
    member; a fold is judged with shares found on the other folds. At most 50,000 rows are used to
    judge. Above 30 classes, members take a few passes over the rows as they came, and of more than
    a million scores a single part is held out; `explain` says what was left out, and why.

    Cost: O(N log N) for the table, and cv + 1 fits of each candidate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> timid = p**2 / (p**2 + (1 - p) ** 2)
    >>> auto = AutoCalibrator().fit(p, rng.random(2000) < timid)
    >>> auto.chosen_, auto.calibrate([0.25, 0.75]).round(1).tolist()
    ('BLS', [0.1, 0.9])
    >>> auto = AutoCalibrator().fit(p, rng.random(2000) < p)
    >>> auto.chosen_, auto.refused_.split(":")[0], auto.calibrate([0.5]).tolist()
    ('uncalibrated', 'The scores are kept as they are', [0.5])
    """

    candidates: Sequence[AnyCalibrator | str] | Mapping[str, AnyCalibrator | str] | None = None
    cv: Cv = 5
    level: float = 0.95
    weights: Literal["importance", "counts"] = "importance"
    progress: bool = False
    random_state: int = 0
    direction: Literal["rising", "falling", "auto"] = "rising"
    pos_label: Any = None
    classes: Any = None

    _takes: ClassVar[frozenset[str]] = frozenset({"features"})
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "candidates": (Candidates(), OneOf((None,))),
        "cv": (CvLimit(),),
        "level": (Number(0, 1 - 1e-9, open=True),),
        "weights": (WEIGHTS,),
        "progress": (OneOf((True, False)),),
        "random_state": (Number(0, whole=True),),
        "direction": (DIRECTIONS,),
    }

    leaderboard_: Leaderboard | None = field(init=False)
    chosen_: str = field(init=False)
    refused_: str | None = field(init=False)
    share_: float = field(init=False)
    look_: FirstLook | ClassLook = field(init=False)
    scores_are_: str = field(init=False)
    calibrator_: Any = field(init=False)
    feature_calibrator_: FeatureCalibrator | None = field(init=False)
    oof_: Mapping[str, ScoreTable | ScoreMatrix] = field(init=False)
    _judged: Any = field(init=False)

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        features: Any = None,
    ) -> Self:
        """Judge the candidates, and fit the one that is taken.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
            Scores of any kind, a binary predict_proba, or logits or probabilities of k classes.
        y : array-like of shape (n,)
            Labels, or with two classes soft labels, see `Calibrator`.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together.
        features : array, list of rows, or frame, of n rows, optional
            Columns from which `FeatureCalibrator` learns corrections, as one more candidate
            (``"features"``). It is taken only if it is clearly better than what would be taken
            without it; then `calibrate` and the others need ``features``, too.
        """
        check_parameters(self, self._limits)
        self.feature_calibrator_ = None
        if features is not None:
            return self._fit_features(scores, y, sample_weight, groups, features)
        if y is not None and count_columns(scores) > 2:
            return self._fit_classes(scores, y, sample_weight, groups)
        rows = self._read(scores, y, sample_weight)
        if groups is not None or rows.share is not None or not is_fold_count(self.cv):
            check_pos_labels(self._named((Calibrator,)), rows)
            return self._learn_by_rows(rows, self._hold_out(rows, self.cv, groups))
        table, labels = ScoreTable.from_rows(rows), (rows.classes, rows.pos_label)
        facts = rows.facts
        del rows  # the columns may be copies, and fits are to stay small
        self._learn(table, *labels)
        self._provenance |= facts
        warn_of(self._warnings)
        return self

    def _fit_features(
        self, scores: Any, y: Any, sample_weight: Any, groups: Any, features: Any
    ) -> Self:
        if y is None:
            raise InputError("this calibrator requires y to be passed, but the target y is None.")
        if self.direction != "rising":
            raise ParameterError(
                'direction must be "rising" where features are given, but '
                f"{self.direction!r} came. Turn the scores yourself: pass 1 - scores or -scores."
            )
        if count_columns(scores) > 2:
            raise InputError(
                "features are used with two classes only, but scores of several classes came. "
                "Leave features out."
            )
        rows = read_binary(scores, y, sample_weight, pos_label=self.pos_label, classes=self.classes)
        check_pos_labels(self._named((Calibrator,)), rows)
        cv: Any = self.cv
        notes: tuple[str, ...] = ()
        if is_fold_count(cv) and rows.count > MANY_ROWS:
            cv, notes = HELD_PART, (f"judged on {HELD_PART:.0%} of the rows, held out once",)
        elif is_fold_count(cv):
            cv = FOLDS if cv is None else cv
        elif not isinstance(cv, Real) and not hasattr(cv, "split"):
            cv = list(cv)  # splits that are used twice
        local = FeatureCalibrator(
            cv=cv,
            weights=self.weights,
            random_state=self.random_state,
            pos_label=rows.pos_label,
            classes=list(rows.classes),
        )
        read = local._read(scores, y, sample_weight)

        def correct(judged: Any) -> FeatureCalibrator:
            """Columns as one more candidate, on the rows that the others are judged on."""
            return local._fit_rows(read, features, lambda: judged)

        few = np.bincount(read.codes, minlength=2).min() < 2
        held = None if few else self._hold_out(rows, cv, groups)
        return self._learn_by_rows(rows, held, notes, correct)

    def _hold_out(self, rows: Rows, cv: Any, groups: Any) -> HeldOutCells:
        counts = self.weights == "counts"
        table = ScoreTable.from_rows(rows)
        if direction_of(table, self.direction) == "falling":
            rows = rows.mirrored(table.scale)
        return HeldOutCells.of_rows(rows, cv, groups, self.random_state, counts=counts)

    def _learn_by_rows(
        self,
        rows: Rows,
        held: HeldOutCells | None,
        notes: tuple[str, ...] = (),
        correct: Callable[[Any], FeatureCalibrator] | None = None,
    ) -> Self:
        """Judge the candidates on splits of the rows, and fit the one that is taken.

        ``correct`` makes the candidate that uses features; it is given the trials in each fold.
        """
        table = ScoreTable.from_rows(rows)
        if rows.share is not None:
            notes = (*notes, SOFT)
        judge = partial(self._judge, held=held, notes=notes, correct=correct)
        self._learn(table, rows.classes, rows.pos_label, judge)
        self._provenance |= rows.facts
        if self._by_features:
            del self.map_
        warn_of(self._warnings)
        return self

    def _in_rows(self, table: ScoreTable) -> ScoreTable:
        """The table with its weights as they came, since each candidate converts them itself.
        Counts are converted here."""
        return table_in_rows(table, "counts") if self.weights == "counts" else table

    def _fit(self, table: ScoreTable) -> Map:
        cv: Any = self.cv
        if not is_fold_count(cv):
            raise ParameterError(
                "cv of AutoCalibrator must be a number of folds for a table, which has no rows to "
                f"split, but {self.cv!r} came."
            )
        self.feature_calibrator_ = None
        folds = FOLDS if cv is None else int(cv)
        return self._judge(table, HeldOutCells.of_table(table, folds, self.random_state))

    def _named(self, kinds: tuple[type, ...]) -> dict[str, Any]:
        if not self.candidates:
            return {}
        named = named_methods(self.candidates, kinds=kinds, word="candidates")
        for name in {BLS.__name__, MIXTURE, FEATURES} & set(named):
            raise ParameterError(
                f"candidates must have other names than {name!r}, which is always one of them. "
                "Name yours in a dict."
            )
        return named

    def _judge(
        self,
        table: ScoreTable,
        held: HeldOutCells | None,
        notes: tuple[str, ...] = (),
        correct: Callable[[Any], FeatureCalibrator] | None = None,
    ) -> Map:
        named = {BLS.__name__: BLS(), **self._named((Calibrator,))}
        self.look_, self.scores_are_, self.share_ = first_look(table), table.scale.kind, 0.0
        if held is None or not held.folds:
            if correct is not None:
                self.feature_calibrator_ = correct(None)
            self.calibrator_ = Uncalibrated().fit_table(table)
            self.chosen_, self.leaderboard_, self.oof_, self.pairs_ = BEFORE, None, {}, {}
            self.refused_ = why_too_few(table, self.scores_are_)
            return self.calibrator_.map_  # type: ignore[no-any-return]
        notes = (*notes, *held.notes, *([POINTS] if self.scores_are_ == "points" else []))
        bar = progress_bar(len(named) * (held.folds + 1), show=self.progress)
        fits = {name: fit_copies(one) for name, one in named.items()}
        tried = try_all(fits, held, table, keep_maps=correct is not None, bar=bar)
        trials = {BEFORE: unchanged_trial(table, held), **tried}
        next(bar, None)  # ends the bar
        whole = table.through(trials[BEFORE].fitted.map_)  # the folds may be of pooled cells
        certain = bool(whole.scores[0] <= 0.0 or whole.scores[-1] >= 1.0)
        trials[BEFORE] = replace(trials[BEFORE], certain=certain)
        if correct is not None:
            start = time.perf_counter()
            local = correct((held, trials))
            seconds = time.perf_counter() - start
            if local.trial_ is not None:
                p = local.trial_.judged[FEATURES].p
                trials[FEATURES] = replace(held.trial(p), fitted=local, seconds=seconds)
            self.feature_calibrator_ = local
        before, curve = trials[BEFORE], trials[BLS.__name__]
        self._judged, self.share_ = (held, curve), held.share(before, curve)
        if 0.0 < self.share_ < 1.0:
            trials[BLS.__name__] = drawn_towards(before, curve, self.share_, held)
        distinct = {
            name: count_distinct(trial.p if trial.map is None else trial.map(table.scores))
            for name, trial in trials.items()
        }
        self._take_candidate(trials, held, distinct, notes, partly=True)
        if self.chosen_ != BLS.__name__:
            self.share_ = float(self.chosen_ != BEFORE)
        self.pairs_ = {name: held.paired(trial) for name, trial in trials.items()}
        fitted: Map = trials[BLS.__name__ if self.chosen_ == FEATURES else self.chosen_].fitted.map_
        return fitted

    @property
    def _warnings(self) -> list[Advice]:
        """The advice that `fit` warns of: all but guesses from the range of the scores, or from how
        well they separate the classes."""
        guesses = {"trained_on_these_rows", "percentages", "points"}
        return [one for one in self.advice_ if one.code not in guesses]

    @one_thread()
    def _learn(
        self,
        table: ScoreTable,
        classes: NDArray[Any],
        pos_label: Any,
        fit: Callable[[ScoreTable], Map] | None = None,
    ) -> Self:
        self._judged = None
        super()._learn(table, classes, pos_label, fit)
        known: Any = None if self.chosen_ == FEATURES else self.calibrator_
        if self.direction_ == "falling":  # it was fitted to mirrored scores
            known.direction = known.direction_ = self.direction_
            known.map_, known.score_range_ = self.map_, self.score_range_
        self.advice_ = advise_table(
            self._in_rows(table),
            known,
            names=LabelNames.of(classes, pos_label),
            judged=self.__dict__.pop("_judged"),
            direction=self.direction_,
        )
        return self

    @one_thread()
    def _take_candidate(
        self,
        trials: Mapping[str, Trial],
        held: HeldOutCells | HeldOutMatrix,
        distinct: Mapping[str, int],
        notes: tuple[str, ...] = (),
        left_out: tuple[str, ...] = (),
        partly: bool = False,
    ) -> None:
        """Take one of the candidates, and keep the results of all.

        ``distinct`` is the number of different predictions of each.
        """
        sample = held.sample
        demanding = {FEATURES} & set(trials)
        chosen, tied = choose(trials, held, partly=partly, demanding=demanding)
        rows = standings(
            trials, sample, level=self.level, chosen=chosen, tied=tied, distinct=distinct
        )
        board = Leaderboard(rows, held.folds, self.level, sample.total, notes, left_out)
        kept = chosen == BEFORE
        self.refused_ = why_refused(board, self.scores_are_) if kept else None
        self.chosen_, self.leaderboard_ = chosen, board
        self.calibrator_ = trials[chosen].fitted
        self.oof_ = {name: held.predictions(trial) for name, trial in trials.items()}

    # --- several classes ------------------------------------------------------------------------

    def _fit_classes(self, scores: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        self._refuse_pos_label()
        # of few classes members see a copy of the rows, which is made where NumPy is
        stays = count_columns(scores) > FEW_CLASSES
        matrix, classes = read_matrix(scores, y, sample_weight, self.classes, on_device=stays)
        if self._whole is not None:
            matrix = replace(matrix, whole=self._whole)
        named = self._named(KINDS)
        self.look_, self.scores_are_ = class_look(matrix, self.weights), "distributions"
        weight = read_weight(sample_weight, len(to_column(y, "y")))
        present = None if weight is None else weight > 0
        dealt = (groups, self.random_state, self.weights, present)
        held = HeldOutMatrix.of_matrix(matrix, classes, self.cv, *dealt)
        if len(matrix) < 2 or not held.pairs:
            raise InputError("scores of several classes must have two rows or more to be judged.")
        trials = judge_classes(named, held, progress=self.progress)
        n, k = len(matrix), matrix.n_classes
        step = 1 if k <= FEW_CLASSES else -(-n // max(COUNTED_NUMBERS // k, 1))
        counted, out = on_host(matrix.scores[::step]), reasons_left_out(k, n)
        distinct = {name: count_distinct(trial.map(counted)) for name, trial in trials.items()}
        self._take_candidate(trials, held, distinct, left_out=out)
        self.share_ = float(self.chosen_ != BEFORE)
        self.pairs_, self.advice_ = {}, tuple(advise_first_look(self.look_, ClassNames.of(classes)))
        self._learn_rows(trials[self.chosen_].map, matrix, classes, scores)
        warn_of(self._warnings)
        return self

    # --- what came of it ------------------------------------------------------------------------

    def explain(self, *, names: LabelNames | ClassNames | None = None) -> str:
        """What was chosen and why, in plain words with the figures.

        What is wrong with the scores themselves comes first: one class only, the wrong direction,
        columns that look swapped, or that they say nothing. ``names`` says how to call the labels,
        their column and the option that names the positive one.

        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(1000)
        >>> print(AutoCalibrator().fit(p, p > 0.5).explain().split(".")[0])
        A smooth curve (BLS) was chosen
        """
        check_is_fitted(self)
        falling = getattr(self, "direction_", "rising") == "falling"
        if isinstance(self.look_, ClassLook):
            named = names if isinstance(names, ClassNames) else ClassNames.of(self.classes_)
            first = self.look_.headline(named)
        else:
            labels = names if isinstance(names, LabelNames) else None
            labels = labels or LabelNames.of(self.classes_, self.pos_label_)
            first = self.look_.headline(labels._replace(face="check") if falling else labels)
            if falling and self.refused_ is not None and self.score_range_ is not None:
                came = ScoreScale(self.score_range_.low, self.score_range_.high)
                first = (
                    f"{first} Low scores mean {labels.named(True)}: they are read as {came.turned}."
                ).strip()
        if self.leaderboard_ is None:
            return f"{first} {self.refused_}".strip()
        known = (self.refused_, self.scores_are_, self.share_)
        choice = explanation(self.leaderboard_, *known, useless=self.look_.unproven)
        if falling:
            choice = choice.replace(kept_in_words("probabilities"), "So read, they are kept", 1)
        columns = features_in_words(self.calibrator_) if self._by_features else ""
        return f"{first} {choice} {columns}".strip()

    def _html_repr(self) -> str:
        """scikit-learn's box; once fitted with the verdict and the leaderboard below it."""
        box: str = super()._html_repr()
        fitted = self.__sklearn_is_fitted__()
        return with_verdict(box, self.explain(), self.leaderboard_) if fitted else box

    def to_fitted(self) -> Fitted:
        """The fitted state as a plain value, as `save` writes it; its provenance has the choice."""
        fitted = self.calibrator_.to_fitted() if self._by_features else super().to_fitted()
        choice: dict[str, Any] = {"chosen": self.chosen_}
        if self.refused_ is not None:
            choice["refused"] = self.refused_
        if 0.0 < self.share_ < 1.0:
            choice["share"] = self.share_
        if self.leaderboard_ is not None:
            choice["measures"] = self.leaderboard_.measures()
            choice["leaderboard"] = self.leaderboard_.to_dict(times=False)
        return replace(fitted, provenance={**fitted.provenance, **choice})

    @property
    def _by_features(self) -> bool:
        return getattr(self, "chosen_", "") == FEATURES

    @property
    def _rule_reader(self) -> RuleReader:  # type: ignore[override]
        applied: RuleReader = (
            self.calibrator_._rule_reader if self._by_features else super()._rule_reader
        )
        return applied

    def __sklearn_is_fitted__(self) -> bool:
        return self._by_features or super().__sklearn_is_fitted__()


# --- A curve that is drawn towards the scores as they came ----------------------------------------


def drawn_towards(before: Trial, curve: Trial, share: float, held: HeldOutCells) -> Trial:
    """The trial of a curve that counts by a ``share`` in the log-odds, and the scores the rest."""
    scores = np.clip(logit(before.p), -MOST_ODDS, MOST_ODDS)
    odds = (1.0 - share) * scores + share * logit(curve.p)
    curve.fitted.map_ = drawn = average_odds(curve.map, before.map, share)
    return replace(held.trial(sigmoid(odds)), map=drawn, fitted=curve.fitted, seconds=curve.seconds)


def average_odds(curve: Piecewise, scores: Map, share: float) -> Piecewise:
    """The average of the log-odds of a curve, by a share, and of the scores as they came.

    Log-odds of scores further from 0 than `MOST_ODDS` count as that. The map has the knots of the
    curve and those of the scores, also where these lie beyond the curve, which is flat there.
    Between them probabilities and margins are straight lines; percentages are not, and get more.

    >>> line = Piecewise.linear([-1.0, 1.0], [-2.0, 2.0], "logit", "logit")
    >>> average_odds(line, Identity(), 0.25)([0.3]).round(3).tolist(), line([0.3]).round(3).tolist()
    ([0.257], [0.155])
    """
    straight = isinstance(scores, (Identity, Logistic))
    bends: Any = (-MOST_ODDS, MOST_ODDS)
    if isinstance(scores, Piecewise):  # percentages; the one rate of points bends nowhere
        bends = scores.x if scores.size > 1 else ()
    x = np.union1d(curve.x, bends)

    def average(at: Array) -> Array:
        before = np.clip(at if straight else logit(scores(at)), -MOST_ODDS, MOST_ODDS)
        return (1.0 - share) * before + share * curve.limits(at)[1]

    if not straight:
        x, _, _ = refined_lines(average, x, average(x), average(x), MAP_ERROR)
    return Piecewise.linear(x, average(x), curve.input, curve.output)


# --- Several classes: candidates judged out of fold, and their mixture ----------------------------


#: the name of the average of the members
MIXTURE = "mixture"
#: distinct distributions are counted on at most so many rows
MOST_COUNTED = 200_000
#: and of many classes on rows of about so many scores
COUNTED_NUMBERS = 1 << 19
#: members see no probability below a floor: half the smallest that came, but within these limits
LEAST_FLOOR, LARGEST_FLOOR = 1e-7, 1e-2
#: the pseudo-count of each member in the mixture
PSEUDO = 0.3
#: a member of less than this share is left out of the mixture
LEAST_SHARE = 1e-3


class MemberView(NamedTuple):
    """How rows are prepared for the members of the mixture; see `VectorMixture`."""

    input: str
    floor: float
    factor: float

    @classmethod
    def best_for(cls, matrix: ScoreMatrix) -> MemberView:
        """The view for a matrix: rows softened to its best temperature, then raised to a floor.

        Rows that the best temperature would sharpen are left as they are. The floor is half the
        smallest positive entry, within [1e-7, 1e-2]. Without it the 1e-300 of naive Bayes, or
        logits in the hundreds, would outweigh everything else in a logarithm. Softening comes
        first, since it keeps apart small entries that would otherwise all be raised to the floor.
        Rows of many classes are seen as they are: a copy of them would be large.
        """
        if matrix.n_classes > FEW_CLASSES:
            return cls("score", 0.0, 1.0)
        kind = matrix.kind()
        factor = min(1.0, 1.0 / fit_copies(Temperature())(matrix).temperature_)
        smallest = 1.0
        for rows in row_blocks(*matrix.scores.shape):
            part = seen_by_members(matrix.scores[rows], kind, 0.0, factor)
            smallest = min(smallest, float(part.min(initial=1.0, where=part > 0)))
        largest = min(LARGEST_FLOOR, 0.5 / matrix.n_classes)
        return cls(kind, float(np.clip(0.5 * smallest, LEAST_FLOOR, largest)), factor)

    def of(self, matrix: ScoreMatrix) -> ScoreMatrix:
        """The matrix that members are fitted to, made of the scores as they came."""
        if self.input == "score":
            return matrix
        parts = (
            seen_by_members(matrix.scores[rows], *self) for rows in row_blocks(*matrix.scores.shape)
        )
        return ScoreMatrix(np.concatenate(list(parts)), matrix.codes, matrix.weight)


def judge_classes(
    named: Mapping[str, Any], held: HeldOutMatrix, *, progress: bool
) -> dict[str, Trial]:
    """The trials of the scores as they came, the mixture, its members and all candidates on rows
    held out."""
    matrix, weights = held.matrix, held.weights
    if weights == "counts":
        named = {name: take_weights_as_counts(clone(one)) for name, one in named.items()}
    view = MemberView.best_for(matrix)
    members = members_for(matrix.n_classes, weights, rows=len(matrix))
    softened = view.of(matrix)
    bar = progress_bar((len(named) + len(members)) * (held.folds + 1), show=progress)
    inner = try_all(class_fits(members), replace(held, matrix=softened), softened, bar=bar)
    others = try_all(class_fits(named), held, matrix, bar=bar)
    next(bar, None)  # ends the bar
    trials = {BEFORE: held.unchanged(), MIXTURE: _try_mixture(inner, held, view)}
    for name, one in inner.items():
        trials[name] = replace(one, map=VectorMixture(np.ones(1), (one.map,), *view))
    return {**trials, **others}


def class_fits(named: Mapping[str, Any], classes: NDArray[Any] | None = None) -> dict[str, Fit]:
    """A fit to matrices for each calibrator. Calibrators of one score are fitted one class at a
    time.

    ``classes`` is as in `fit_copies`.
    """

    def of_all_classes(one: Any) -> Any:
        if not isinstance(one, Calibrator) or one.multiclass:
            return one
        return CodedCalibrator(clone(one).set_params(pos_label=None, classes=None))

    return {name: fit_copies(of_all_classes(one), classes) for name, one in named.items()}


def _try_mixture(inner: Mapping[str, Trial], held: HeldOutMatrix, view: MemberView) -> Trial:
    """The trial of the average of all members. Each fold is judged with shares found on the other
    folds.

    If there is a single fold, its rows are halved for this.
    """
    rows = np.arange(len(held.codes))
    own = np.column_stack([one.p[rows, held.codes] for one in inner.values()]).astype(np.float64)
    output = np.zeros(next(iter(inner.values())).p.shape)
    fold = held.fold if held.folds > 1 else rows % 2
    for f in range(max(held.folds, 2)):
        here = fold == f
        shares = mixture_weights(own[~here], held.size[~here], PSEUDO)
        for share, one in zip(shares, inner.values(), strict=True):
            output[here] += share * one.p[here]
    shares = mixture_weights(own, held.size, PSEUDO)
    kept = shares > LEAST_SHARE
    maps = tuple(one.map for one, k in zip(inner.values(), kept, strict=True) if k)
    average = VectorMixture(shares[kept] / shares[kept].sum(), maps, *view)
    seconds = sum(one.seconds for one in inner.values())
    return replace(held.trial(output), map=average, seconds=seconds)


def count_distinct(p: Array) -> int:
    """The number of different probabilities. Distributions are counted on at most `MOST_COUNTED`
    rows."""
    if p.ndim == 1:
        return len(np.unique(p))
    p = p[:: -(-len(p) // MOST_COUNTED)]
    return len(np.unique(p @ np.sqrt(np.arange(2.0, p.shape[1] + 2.0))))


# --- The members of the mixture for several classes -----------------------------------------------


#: the most rows times squared classes that a full matrix is fitted to, where classes are many
MATRIX_WORK = 50_000_000


def members_for(k: int, weights: str = "importance", *, rows: int) -> dict[str, Any]:
    """The members of the mixture for k classes; ``weights`` is as in `Calibrator`.

    For many classes they are methods that need only a few passes over the rows. A full matrix is a
    member as long as it is cheap.
    """
    return {name: one for name, one, against in _possible_members(k, rows, weights) if not against}


def reasons_left_out(k: int, rows: int) -> tuple[str, ...]:
    """The methods that are no members because there are too many classes, each with the reason.

    >>> reasons_left_out(1000, 500)[1]
    'structured vector scaling, since there are fewer rows (500) than classes'
    >>> reasons_left_out(10, 500)
    ()
    """
    return tuple(against for _, _, against in _possible_members(k, rows) if against)


def _possible_members(k: int, rows: int, weights: str = "importance") -> list[tuple[str, Any, str]]:
    """All methods that could be members: the name, the calibrator, and why it is left out (empty if
    it is not)."""

    def structured(strength: float, structure: str = "matrix") -> StructuredScaling:
        return StructuredScaling(
            structure=structure,
            lambda_intercept=strength,
            lambda_diagonal=strength,
            lambda_off_diagonal=strength,
            gate=False,
            weights=weights,
        )

    one_vs_rest = CodedCalibrator(BLS(weights=weights))
    if k <= FEW_CLASSES:
        return [
            ("temperature", Temperature(), ""),
            ("structured, weak ridge", structured(0.01), ""),
            ("structured", structured(1.0), ""),
            ("one-vs-rest BLS", one_vs_rest, ""),
        ]
    curves = f"one-vs-rest BLS, which fits a curve to each of the {k:,} classes"
    alone = vector = matrix = ""
    if rows * k > FOLDED_NUMBERS:
        alone = "temperature scaling alone, which ensemble temperature holds as a part"
    if rows * k * k > MATRIX_WORK:
        many = f"with {k * (k + 1):,} parameters"
        matrix = f"structured matrix scaling, which would take too long {many}"
    if rows < k:
        few = f"since there are fewer rows ({rows:,}) than classes"
        vector, matrix = (f"structured {kind} scaling, {few}" for kind in ("vector", "matrix"))
    return [
        ("one-vs-rest BLS", one_vs_rest, curves),
        ("temperature", Temperature(), alone),
        ("ensemble temperature", EnsembleTemperature(), ""),
        ("top-label BLS", TopLabelCalibrator(BLS(weights=weights)), ""),
        ("structured vector", structured(1.0, "vector"), vector),
        ("structured", structured(1.0), matrix),
    ]
