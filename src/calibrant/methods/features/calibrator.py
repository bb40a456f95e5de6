"""FeatureCalibrator: corrections of the logit that are learnt from the columns of the row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from calibrant.array_types import Array, Flags, Index
from calibrant.data.attributes import Attribute, Schema
from calibrant.data.door import Limit, Number, OneOf, Rows
from calibrant.data.scale import ScoreScale
from calibrant.data.score_table import row_sizes
from calibrant.errors import AdviceWarning, InputError, caller_level, import_extra
from calibrant.fitting.base import WEIGHTS, LocalCalibrator, ReadsFeatures
from calibrant.fitting.folds import FOLDS, CvLimit
from calibrant.fitting.held_out import HeldOutCells, Sample, Trial, choose, fit_copies, try_all
from calibrant.fitting.registry import BEFORE
from calibrant.losses import logit, sigmoid, softplus
from calibrant.methods.features.rule import (
    LARGEST_LEAF,
    MOST_LEAVES,
    MOST_ROUNDS,
    STEEPEST,
    SmallTrees,
    TreeRounds,
    matrix_for_trees,
    sum_of_leaves,
)
from calibrant.methods.splines.bls import BLS
from calibrant.methods.uncalibrated import SMOOTH, fit_score_map, trial_before
from calibrant.result_tables import rows_in_words, shown_loss
from calibrant.rules.base import RowInputs
from calibrant.solvers.logistic import LogisticProblem, Prior

#: what may be kept beside a smooth curve and the scores as they came
FEATURES = "features"
#: with more rows than this, a single part of this size is held out
MANY_ROWS, HELD_PART = 200_000, 0.25
#: folds, the trials of the scores and of the curve on them, and the p-value that scores are right
Judged = tuple[HeldOutCells, Mapping[str, Trial], float | None]


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureCalibrator(ReadsFeatures, LocalCalibrator):
    """Correct scores by boosted trees on the columns of a row, where that helps.

    A score can be right on average and wrong for a group of rows: too high for one region, too low
    for new customers. Small trees find such groups by the columns given, at every level of the
    score (multicalibration, as MCGrad does it). The result is judged on rows that were held out.
    The trees are used only if they are ahead of the scores and of a smooth curve (`BLS`) by more
    than two standard errors. Otherwise the curve or the scores are kept; ``kept_`` says which.

    Needs LightGBM to fit: ``pip install 'calibrant[features]'``. What was fitted is saved, loaded
    and applied without it.

    Parameters
    ----------
    gate : bool, default=True
        Whether trees are used only if they help on rows held out.
    rounds : int or "auto", default="auto"
        How many rounds of trees; ``"auto"``: as many as help on rows held out.
    trees, leaves : int, default=27 and 5
        Trees in a round, and leaves of a tree.
    learning_rate : float, default=0.1
    min_rows : int, default=160
        The least number of rows in a leaf.
    ridge : float, default=1.0
        The penalty on squared leaf values.
    cv : int, float, splitter or iterable of splits, default=None
        Which rows are held out, as in `AutoCalibrator`. None: 5 folds, or a single quarter of the
        rows if there are more than 200,000.
    nominal : list of names or positions, default=None
        Columns of numbers that are categories.
    random_state : int, default=0
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    kept_ : {"features", "BLS", "uncalibrated"}
        What `calibrate` uses: the trees, a smooth curve of the score, or the score as it came.
    rule_ : TreeRounds or Map
        The fitted rule, a value: the trees, or the map of the score that is kept.
    rounds_ : int
        How many rounds of trees it has; 0 where trees are not kept.
    losses_ : dict of name to float, or None if nothing was held out
        The log loss of all three on rows held out.
    gains_ : dict of name to (gain, low, high), or None
        What the trees gain in log loss over ``"uncalibrated"`` and ``"BLS"``, with 95 % intervals.
    round_losses_ : tuple of float, or None
        The log loss on rows held out after 0, 1, 2 … rounds.
    importances_ : dict of column to float
        The share of each column, and of the score, in the gain of the splits; largest first.
    groups_ : tuple of GroupChange
        The groups of rows for which the trees change most: see `explain`.
    notes_ : tuple of str
        Columns to look at: those of one value, and those that may leak the label.
    trial_ : FeatureTrial, or None
        The probabilities of rows held out.
    n_features_in_, feature_names_in_, classes_, pos_label_ : as in `SimilarityBinning`

    Notes
    -----
    Let z be the logit of BLS's curve. A round starts from z and grows trees on the columns and z,
    by gradient boosting of the log loss. Then z becomes z plus the sum of the trees, times the
    factor that makes the log loss least. The next round starts from this z. Rounds are added until
    two in a row do not help on the rows held out. Each fold is judged with the number of rounds
    that is best for the other folds, so that the choice does not flatter the result. If a single
    part is held out, each half of it is judged with the number that is best for the other half.

    Defaults are near those published for MCGrad: 5 leaves, 160 rows in a leaf, and 27 trees at a
    learning rate of 0.1 for their 94 at 0.029. Trees cannot split fewer than 2·``min_rows`` rows:
    with 5 folds at least 400 rows are needed.

    Columns are numbers or categories (words, booleans, categories); missing values stay missing.
    Categories that are new, or that no tree names, count as missing. If a column of numbers had no
    missing value in the fit, later missing ones go with most rows. Frames are matched by column
    name, and columns that no tree looks at need not be there. Other input is matched by position.

    More than two classes are refused. Costs O(N log N) for the curve and (folds + 1) × rounds fits
    of LightGBM, each O(N · columns · ``trees``), and O(trees) for each row to apply.

    References
    ----------
    .. [1] N. Tax, L. Perini, F. Linder, et al., "MCGrad: multicalibration at web scale", 2026,
       doi:10.1145/3770854.3783954.
    .. [2] Ú. Hébert-Johnson, M. Kim, O. Reingold, G. Rothblum, "Multicalibration: calibration for
       the (computationally-identifiable) masses", 2018.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, new = rng.random(4000), rng.integers(0, 2, 4000)
    >>> happened = rng.random(4000) < np.where(new == 1, p**2, p)
    >>> c = FeatureCalibrator().fit(p, happened, features=new[:, None])  # doctest: +SKIP
    >>> c.kept_, c.calibrate([0.5, 0.5], features=[[0], [1]]).round(1).tolist()  # doctest: +SKIP
    ('features', [0.5, 0.3])
    """

    gate: bool = True
    rounds: int | str = "auto"
    trees: int = 27
    leaves: int = 5
    learning_rate: float = 0.1
    min_rows: int = 160
    ridge: float = 1.0
    cv: Any = None
    nominal: Any = None
    random_state: int = 0
    weights: str = "importance"
    pos_label: Any = None
    classes: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "gate": (OneOf((True, False)),),
        "rounds": (Number(1, MOST_ROUNDS, whole=True), OneOf(("auto",))),
        "trees": (Number(1, 1000, whole=True),),
        "leaves": (Number(2, MOST_LEAVES, whole=True),),
        "learning_rate": (Number(0, 1, open=True),),
        "min_rows": (Number(1, whole=True),),
        "ridge": (Number(0),),
        "cv": (CvLimit(), OneOf((None,))),
        "random_state": (Number(0, 2**31 - 1, whole=True),),
        "weights": (WEIGHTS,),
    }

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the corrections, and whether to use them.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, 2)
            Scores of any kind, or a binary predict_proba.
        y : array-like of shape (n,)
            Labels: any two values.
        features : array, list of rows, or frame, of n rows
            The columns that corrections are learnt from.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together.
        """
        rows = self._read(scores, y, sample_weight)

        def judge() -> Judged | None:
            """The folds, the scores and the curve on them, and whether the scores are right."""
            if np.bincount(rows.codes, minlength=2).min() < 2:
                return None
            cv = self.cv
            if cv is None:
                cv = HELD_PART if len(rows.codes) > MANY_ROWS else FOLDS
            counts = self.weights == "counts"
            held = HeldOutCells.of_rows(rows, cv, groups, int(self.random_state), counts=counts)
            trials, right = trial_before(rows, self.weights, held)
            curve = try_all({SMOOTH: fit_copies(BLS())}, held, keep_maps=True)
            return held, trials | curve, right

        return self._fit_rows(rows, features, judge)

    def _fit_rows(self, rows: Rows, features: Any, judge: Callable[[], Any]) -> Self:
        """Fit to rows that were read. ``judge`` gives the folds that decide, and the trials of
        the scores and the curve on them; None where nothing can be held out."""
        lightgbm()
        table, schema = self._read_features(features, rows, self.nominal)
        matrix = matrix_for_trees(schema, len(table), enumerate(schema.floats(table)))
        growth = Growth(
            matrix,
            rows.positive.astype(float),
            row_sizes(rows, self.weights),
            np.flatnonzero(schema.nominal).tolist(),
            int(self.trees),
            {  # of LightGBM, chosen so that equal data give equal trees
                "objective": "binary",
                "learning_rate": float(self.learning_rate),
                "num_leaves": int(self.leaves),
                "min_data_in_leaf": int(self.min_rows),
                "lambda_l2": float(self.ridge),
                "min_gain_to_split": 0.15,
                "max_bin": 63,
                "bin_construct_sample_cnt": 50_000,
                "deterministic": True,
                "force_row_wise": True,
                "seed": int(self.random_state),
                "verbosity": -1,
            },
        )
        self.notes_ = check_columns(schema, matrix, rows.positive)
        judges = self.gate or self.rounds == "auto"
        judged = judge() if judges else None
        if judged is None:  # nothing is judged, or a class has fewer than two rows
            self.trial_, kept = None, BEFORE if judges else FEATURES
        else:
            rounds = None if self.rounds == "auto" else int(self.rounds)
            self.trial_ = FeatureTrial.of(growth, rows.scores, judged, rounds)
            kept = self.trial_.kept if self.gate or not self.trial_.rounds else FEATURES
        self._learn_rule(rows, growth, schema, kept)
        for note in self.notes_:
            warnings.warn(note, AdviceWarning, stacklevel=caller_level())
        return self

    def _learn_rule(self, rows: Rows, growth: Growth, schema: Schema, kept: str) -> None:
        """Fit what is kept to all rows, and set the attributes that tell of it."""
        trial = self.trial_
        self.importances_: dict[str, float] = {}
        if kept == FEATURES:
            start = fit_score_map(SMOOTH, rows, self.weights)
            growth.matrix[:, -1] = logit(start(rows.scores))
            wanted = int(self.rounds) if trial is None else trial.rounds
            while len(growth.rounds) < wanted and growth.add_round():
                pass
            self._keep(TreeRounds.of_rounds(start, schema, growth.rounds, growth.factors), rows)
            self.kept_, self.rounds_ = (FEATURES if growth.rounds else SMOOTH), len(growth.rounds)
            names = [*(a.title for a in schema.attributes), "score"]
            total = float(growth.gains.sum()) or 1.0
            order = np.argsort(-growth.gains, kind="stable")
            self.importances_ = {names[j]: float(growth.gains[j]) / total for j in order.tolist()}
        else:
            self._keep(fit_score_map(kept, rows, self.weights), rows)
            self.kept_, self.rounds_ = kept, 0
        self.losses_: dict[str, float] | None = None
        self.gains_: dict[str, tuple[float, float, float]] | None = None
        self.round_losses_: tuple[float, ...] | None = None
        self.groups_: tuple[GroupChange, ...] = ()
        if trial is not None:
            self.losses_ = {n: trial.sample.mean(one.log_loss) for n, one in trial.judged.items()}
            self.gains_ = {name: trial.gain(name, FEATURES) for name in (BEFORE, SMOOTH)}
            self.round_losses_ = trial.round_losses
            if self.kept_ == FEATURES:
                columns = (schema, growth.matrix, rows.positive, self.importances_)
                self.groups_ = changed_groups(trial, *columns)
        self._keep_names(schema)
        self._provenance |= {"kept": self.kept_, "rounds": self.rounds_}

    def explain(self) -> str:
        """What was kept and why, in plain words with the figures.

        Says by how much the trees help on rows held out, from which columns, and for which groups.
        """
        check_is_fitted(self)
        return f"{_choice_in_words(self)} {features_in_words(self)}".strip()

    def fit_rows(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        X: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        inputs: RowInputs | None = None,
    ) -> Self:
        """Fit on a model's scores of the rows X, which are the features."""
        return self.fit(scores, y, features=X, sample_weight=sample_weight, groups=groups)


# --- Whether columns say more than the scores, judged on rows held out ----------------------------


@dataclass(frozen=True)
class FeatureTrial:
    """How the scores, the curve and the trees did on rows held out.

    Attributes
    ----------
    held : array of shape (m,)
        Which rows were held out, fold after fold.
    sample : Sample
        Their weights.
    judged : mapping of name to Trial
    rounds : int
        The number of rounds of least loss, or the number that was asked for.
    round_losses : tuple of float
        The mean log loss after 0, 1, 2 … rounds.
    folds : int
    right : float or None
        The p-value of the test that the scores as they came are right.
    """

    held: Index
    sample: Sample
    judged: Mapping[str, Trial]
    rounds: int
    round_losses: tuple[float, ...]
    folds: int
    right: float | None = None

    @classmethod
    def of(cls, whole: Growth, scores: Array, judged: Judged, rounds: int | None) -> FeatureTrial:
        """Add rounds of trees to the curve of each fold, and judge them on what it holds out.

        Several folds are their own parts, for which the others choose the number of rounds; a
        single one is halved.
        """
        held, trials, right = judged
        growths = []
        for (train, test), curve in zip(held.pairs, trials[SMOOTH].maps, strict=True):
            growths.append(growth := whole.without(test, train))
            assert growth.held is not None
            growth.matrix[:, -1] = logit(curve(scores[train]))
            growth.held[:, -1] = logit(curve(scores[test]))
        test = np.concatenate([test for _, test in held.pairs])
        if held.folds > 1:
            part = np.repeat(np.arange(held.folds), held.sizes)
        else:
            part = (np.arange(len(test)) if held.cluster is None else held.cluster) % 2
        logits, best, losses = rounds_held_out(
            growths, whole.positive[test], held.sample.weight, part, rounds
        )
        kept = {
            name: replace(trials[name], map=None, fitted=None, maps=()) for name in (BEFORE, SMOOTH)
        }
        kept[FEATURES] = held.trial(sigmoid(logits))
        return cls(test, held.sample, kept, best, losses, held.folds, right)

    def gain(self, before: str, after: str, level: float = 0.95) -> tuple[float, float, float]:
        """By how much ``after`` lowers the log loss of ``before``, with the interval."""
        old, new = self.judged[before], self.judged[after]
        return self.sample.gain(old.log_loss, new.log_loss, level)

    @property
    def kept(self) -> str:
        """What to keep: trees only if they are ahead of scores and curve by two standard errors.

        The curve, in turn, is kept only if the scores are found wrong, as `AutoCalibrator` does.
        """
        judged = dict(self.judged)
        if not self.rounds:
            del judged[FEATURES]
        demanding = {FEATURES} & set(judged)
        return choose(judged, self.sample, p_value=self.right, demanding=demanding)[0]


#: this many rounds in a row may fail to help
PATIENCE = 1


def rounds_held_out(
    growths: list[Growth],
    positive: Array,
    weight: Array,
    part: Index,
    rounds: int | None = None,
) -> tuple[Array, int, tuple[float, ...]]:
    """Grow rounds on the rows outside each fold until more no longer help on the rows held out.

    ``positive``, ``weight`` and ``part`` are those of the rows held out, fold after fold. If
    ``rounds`` is given, so many are grown, and nothing is chosen.

    Returns the logit of each row after the number of rounds that is best for the rows outside its
    part, so that the choice does not flatter the result; the number of least loss; and the mean log
    loss after 0, 1, 2 … rounds.
    """
    history: list[Array] = []
    losses: list[Array] = []
    means: list[float] = []
    most = MOST_ROUNDS if rounds is None else rounds
    while True:
        history.append(np.concatenate([one.held[:, -1] for one in growths if one.held is not None]))
        losses.append(softplus(history[-1]) - positive * history[-1])
        means.append(float(weight @ losses[-1]) / float(weight.sum()))
        best = len(means) - 1 if rounds is not None else int(np.argmin(means))
        if len(history) > most or len(means) - 1 - best > PATIENCE:
            break
        went_on = [one.add_round() for one in growths]
        if not any(went_on):
            break
    logits = np.empty(len(positive))
    for own in np.unique(part):
        inside = part == own
        chosen = best
        if rounds is None and not inside.all():
            chosen = int(np.argmin([weight[~inside] @ loss[~inside] for loss in losses]))
        logits[inside] = history[chosen][inside]
    return logits, best, tuple(means)


# --- Columns that cannot help, and columns that help too well to be true --------------------------


#: a column that alone puts this share of pairs of rows in order may hold the label
LEAK = 0.99
#: the most rows that are looked at, and the fewest rows of a class for a verdict
MOST_ROWS, FEWEST = 50_000, 50


def check_columns(schema: Schema, matrix: Array, positive: Flags) -> tuple[str, ...]:
    """Notes on columns that hold a single value, and on columns that may hold the label."""
    notes = []
    same = []
    for column, attribute in zip(matrix.T, schema.attributes, strict=False):
        gone = np.isnan(column)
        if gone.all() or (not gone.any() and (column == column[0]).all()):
            same.append(attribute.title)
    if same:
        notes.append(f"These columns hold a single value and are left out: {', '.join(same)}.")
    step = -(-len(matrix) // MOST_ROWS)
    some, hit = matrix[::step], positive[::step]
    if min(int(hit.sum()), int((~hit).sum())) < FEWEST:
        return tuple(notes)
    for j, attribute in enumerate(schema.attributes):
        if attribute.title in same:
            continue
        area = column_auc(some[:, j], hit, nominal=attribute.nominal)
        if area > LEAK:
            notes.append(
                f"{attribute.title} alone tells the classes apart (AUC {area:.4f}). If it is known "
                "only after the label is, it leaks the label: leave it out. The gain would not be "
                "there for new rows."
            )
    return tuple(notes)


def column_auc(column: Array, positive: Flags, *, nominal: bool) -> float:
    """The share of pairs that a column puts in order, in the better of its two directions.

    Categories are ordered by their rates among half of the rows, and judged on the other half. So a
    column in which each row has a name of its own says nothing.
    """
    if nominal:
        codes = np.where(np.isnan(column), 0.0, column + 1.0).astype(np.intp)
        learn = np.zeros(len(codes), dtype=bool)
        for own in (positive, ~positive):
            learn[np.flatnonzero(own)[::2]] = True
        size = int(codes.max()) + 1
        total = np.bincount(codes[learn], minlength=size)
        hits = np.bincount(codes[learn & positive], minlength=size)
        rate = positive[learn].mean()
        values = ((hits + rate) / (total + 1.0))[codes[~learn]]
        return _auc(values, positive[~learn])
    present = ~np.isnan(column)
    values = np.where(present, column, np.inf)
    area = _auc(values, positive)
    return max(area, 1.0 - area)


def _auc(values: Array, positive: Flags) -> float:
    """The area under the ROC curve: the share of pairs in order, ties counting half."""
    n1 = int(positive.sum())
    n0 = len(positive) - n1
    return float((rankdata(values)[positive].sum() - n1 * (n1 + 1) / 2) / (n0 * n1))


# --- Groups of rows whose probabilities change ----------------------------------------------------


#: the most columns, groups of a column and groups that are kept; the fewest rows of a group
MOST_COLUMNS, MOST_CATEGORIES, MOST_GROUPS, FEWEST_ROWS = 5, 20, 8, 50


@dataclass(frozen=True)
class GroupChange:
    """A group of rows held out, and its probabilities before and after.

    Attributes
    ----------
    column : str
    group : str
        The category, the range of numbers, or "missing".
    weight : float
        The weight of its rows.
    rate : float
        The share of positives among them.
    before, after : float
        The mean probability of the scores as they came, and with the trees.
    gain : float
        By how much the trees lower the mean log loss of its rows.
    """

    column: str
    group: str
    weight: float
    rate: float
    before: float
    after: float
    gain: float


def changed_groups(
    trial: FeatureTrial, schema: Schema, matrix: Array, positive: Flags, columns: Iterable[str]
) -> tuple[GroupChange, ...]:
    """The groups that gain most in total, among those of the most important ``columns``.

    Only groups whose mean probability moves closer to their rate are told of.
    """
    weight, hit = trial.sample.weight, positive[trial.held].astype(float)
    before, after = trial.judged[BEFORE], trial.judged[FEATURES]
    titles = [a.title for a in schema.attributes]
    gain = np.minimum(before.log_loss, 100.0) - after.log_loss  # that of a wrong 0 or 1 is infinite
    groups = []
    for name in [one for one in columns if one in titles][:MOST_COLUMNS]:
        j = titles.index(name)
        for group, inside in _column_groups(schema.attributes[j], matrix[trial.held, j]):
            w = weight[inside]
            if int(inside.sum()) < FEWEST_ROWS or not w.sum() > 0:
                continue
            means = [
                float(w @ values[inside]) / float(w.sum())
                for values in (hit, before.p, after.p, gain)
            ]
            groups.append(GroupChange(name, group, float(w.sum()), *means))
    better = [one for one in groups if abs(one.after - one.rate) < abs(one.before - one.rate)]
    order = sorted(better, key=lambda one: -one.gain * one.weight)
    return tuple(order[:MOST_GROUPS])


def _column_groups(attribute: Attribute, values: Array) -> Iterator[tuple[str, Flags]]:
    """The groups that one column makes, and which rows are in each."""
    absent = np.isnan(values)
    if attribute.categories is not None:
        counts = np.bincount(values[~absent].astype(np.intp), minlength=len(attribute.categories))
        for code in np.argsort(-counts, kind="stable")[:MOST_CATEGORIES].tolist():
            yield str(attribute.categories[code]), values == code
        yield "missing", absent
        return
    yield "missing", absent
    if absent.all():
        return
    cuts = np.unique(np.quantile(values[~absent], (0.25, 0.5, 0.75)))
    for low, high in pairwise([-np.inf, *cuts.tolist(), np.inf]):
        words = f"above {low:.4g}" if np.isinf(high) else f"{low:.4g} to {high:.4g}"
        yield f"up to {high:.4g}" if np.isinf(low) else words, (values > low) & (values <= high)


# --- The result in words --------------------------------------------------------------------------


#: how many columns and groups are named in words
NAMED = 3
_KEPT = {BEFORE: "the scores stay as they are", SMOOTH: "a smooth curve of the score (BLS) is kept"}
_NAME_SHORT = {BEFORE: "scores", SMOOTH: "smooth curve", FEATURES: "with columns"}


def _choice_in_words(fitted: FeatureCalibrator) -> str:
    kept, trial, losses, gains = fitted.kept_, fitted.trial_, fitted.losses_, fitted.gains_
    if trial is None or losses is None or gains is None:
        if kept == FEATURES:
            return "The columns are used as told; nothing was held out to judge them on."
        if kept == SMOOTH:
            return (
                "A smooth curve of the score (BLS) is kept: the trees found nothing to split, as "
                "happens with fewer than 2·min_rows rows or one class. Nothing was held out."
            )
        unchanged = (
            "All rows get one rate" if _are_points(fitted) else "The scores are kept as they are"
        )
        return (
            f"{unchanged}: there are fewer than two rows of a class, so that nothing can be judged "
            "on rows that were not learned from."
        )
    where = f"On rows held out ({rows_in_words(trial.sample.total)})"
    figures = ", ".join(f"{_NAME_SHORT[n]} {shown_loss(loss)}" for n, loss in losses.items())
    if kept == FEATURES:
        rounds = f"{fitted.rounds_} round{'s' * (fitted.rounds_ != 1)} of trees"
        gain, low, high = gains[BEFORE]
        return (
            f"The columns help: the score is corrected by {rounds}. {where}, this gains "
            f"{shown_loss(gain)} in log loss over the scores as they are (95 % interval "
            f"{shown_loss(low)} to {shown_loss(high)}). Log loss: {figures}."
        )
    gain, low, high = gains[kept]
    words = _KEPT[kept]
    if kept == BEFORE and _are_points(fitted):
        words = "all rows get one rate, since the scores are points, which stand for no probability"
    return (
        f"The columns do not help beyond noise, so {words}. {where}, trees on the "
        f"columns would {'gain' if gain >= 0 else 'lose'} {shown_loss(abs(gain))} in log loss "
        f"(95 % interval of the gain {shown_loss(low)} to {shown_loss(high)}). They are used only "
        f"if they are ahead by more than two standard errors. Log loss: {figures}."
    )


def _are_points(fitted: FeatureCalibrator) -> bool:
    """Whether the scores stand for no probability, so that what is kept of them is one rate."""
    return ScoreScale(fitted.score_range_.low, fitted.score_range_.high).kind == "points"


def features_in_words(fitted: FeatureCalibrator) -> str:
    """From which columns the splits gain, which groups change most, and the notes."""
    named = [(name, share) for name, share in fitted.importances_.items() if share > 0.005]
    parts = []
    if named:
        columns = ", ".join(f"{name} ({100 * share:.0f} %)" for name, share in named[:NAMED])
        rest = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        parts.append(f"The splits gain from {columns}{rest}.")
    if fitted.groups_:
        groups = []
        for one in fitted.groups_[:NAMED]:
            ranged = one.group.startswith(("up to ", "above ")) or " to " in one.group
            name = one.group if ranged or one.group == "missing" else f"= {one.group}"
            groups.append(
                f"{one.column} {name} ({rows_in_words(one.weight)}): scores said "
                f"{one.before:.3f}, {one.rate:.3f} happened, now {one.after:.3f}"
            )
        parts.append(f"It changes most for {'; '.join(groups)}.")
    return " ".join((*parts, *fitted.notes_))


# --- Rounds of trees: LightGBM grows the trees of a round, which are read as arrays --------------


#: the extra that brings LightGBM
EXTRA = "features"
#: with fewer rows, several threads cost more time than they save
FEW_ROWS = 200_000
#: what is read of each split; the names but the last are fields of `SmallTrees`
SPLIT = [
    ("column", np.int32),
    ("threshold", np.float64),
    ("missing_left", np.bool_),
    ("subset", np.int32),
    ("left", np.int32),
    ("right", np.int32),
    ("gain", np.float64),
]


def lightgbm() -> Any:
    """The module. If it is not installed, the error names the extra to install."""
    return import_extra("lightgbm", extra=EXTRA)


@dataclass
class Growth:
    """Rounds of trees grown on some rows, and applied to the rows ``held``, if there are any.

    Parameters
    ----------
    matrix : array of shape (n, columns)
        Rows as trees see them: numbers and category codes, NaN where missing; the logit comes last.
    positive, weight : arrays of shape (n,)
        1.0 for the positive class, and weights.
    nominal : list of int
        The columns of category codes.
    trees : int
        How many trees a round has.
    options : dict
        LightGBM's parameters.
    held : array of shape (m, columns), optional
        Rows held out, as in ``matrix``.
    """

    matrix: Array
    positive: Array
    weight: Array
    nominal: list[int]
    trees: int
    options: dict[str, Any]
    held: Array | None = None
    rounds: list[SmallTrees] = field(default_factory=list, init=False)
    factors: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.gains = np.zeros(self.matrix.shape[1])

    def without(self, test: Index, train: Index) -> Growth:
        """A growth on copies of the rows ``train`` alone, with the rows ``test`` held out."""
        rest, held = (np.asfortranarray(self.matrix[rows]) for rows in (train, test))
        positive, weight = self.positive[train], self.weight[train]
        return replace(self, matrix=rest, positive=positive, weight=weight, held=held)

    def add_round(self) -> bool:
        """Grow one more round; False, with nothing changed, if no tree finds anything to split."""
        trees, gains = self.grow_trees()
        if not len(trees):
            return False
        z = self.matrix[:, -1] + sum_of_leaves(trees.layout, self.matrix)
        # the factor of least log loss, from 0.1 to 10; a weak prior draws it to 1
        one, n1 = np.ones(1), self.weight * self.positive
        problem = LogisticProblem(lambda part: z[None, part], self.weight - n1, n1, Prior(one, one))
        factor = min(max(float(problem.least(one).theta[0]), 1.0 / STEEPEST), STEEPEST)
        self.matrix[:, -1] = factor * z
        if self.held is not None:
            total = sum_of_leaves(trees.layout, self.held)
            self.held[:, -1] = factor * (self.held[:, -1] + total)
        self.gains += gains
        self.rounds.append(trees)
        self.factors.append(factor)
        return True

    def grow_trees(self) -> tuple[SmallTrees, Array]:
        """Trees that correct the logits in the last column, and what the splits on each column
        gain."""
        engine, n = lightgbm(), len(self.matrix)
        options = {"num_threads": 1 if n < FEW_ROWS else 0, **self.options}
        data = engine.Dataset(
            self.matrix,
            self.positive,
            weight=self.weight,
            init_score=self.matrix[:, -1].copy(),
            categorical_feature=self.nominal,
            params=options,
        )
        booster = engine.train(options, data, self.trees)
        return read_trees(booster.dump_model()["tree_info"], self.matrix.shape[1])


def read_trees(described: Iterable[dict[str, Any]], columns: int) -> tuple[SmallTrees, Array]:
    """The trees of LightGBM's description, without those that are a single leaf, and what the
    splits on each column gain."""
    splits: list[tuple[Any, ...]] = []
    leaves: list[float] = []
    sets: list[tuple[int, ...]] = []

    def read(node: dict[str, Any]) -> int:
        """The place of a node: a split, or −1 − i for the leaf i."""
        if "split_feature" not in node:
            value = float(node["leaf_value"])
            if not abs(value) <= LARGEST_LEAF:
                raise InputError(
                    f"the trees must change logits by at most {LARGEST_LEAF:g} each, but one "
                    f"changes them by {value:g}. Use a smaller learning_rate or a larger ridge."
                )
            leaves.append(value)
            return -len(leaves)
        place = len(splits)
        splits.append(())  # parents come before their children
        how = (0.0, False, len(sets))
        if node["decision_type"] == "==":
            sets.append(tuple(int(code) for code in str(node["threshold"]).split("||")))
        else:
            if node["missing_type"] == "NaN":  # missing numbers go as learnt
                left = bool(node["default_left"])
            else:  # or with most rows if none was missing
                left = _rows_of_node(node["left_child"]) >= _rows_of_node(node["right_child"])
            how = (float(node["threshold"]), left, -1)
        sides = read(node["left_child"]), read(node["right_child"])
        splits[place] = (node["split_feature"], *how, *sides, node["split_gain"])
        return place

    roots = []
    for tree in described:
        root = read(tree["tree_structure"])
        if root >= 0:
            roots.append(root)
        else:
            leaves.pop()
    table = np.array(splits, dtype=SPLIT)
    gains = np.zeros(columns)
    np.add.at(gains, table["column"], table["gain"])
    fields: dict[str, Any] = {name: table[name] for name, _ in SPLIT[:-1]}
    fields |= {"leaves": np.array(leaves, dtype=float), "roots": np.array(roots, dtype=np.int32)}
    return SmallTrees(sets=tuple(sets), **fields), gains


def _rows_of_node(node: dict[str, Any]) -> int:
    return int(node.get("internal_count", node.get("leaf_count", 0)))
