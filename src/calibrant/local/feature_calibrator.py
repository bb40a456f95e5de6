"""FeatureCalibrator: corrections of the logit that are learnt from the columns of the row."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant.errors import AdviceWarning, caller_level
from calibrant.estimators.base import WEIGHTS
from calibrant.estimators.limits import Limit, Number, OneOf
from calibrant.estimators.named_methods import BEFORE
from calibrant.estimators.splits import Splits
from calibrant.local.attributes import Schema
from calibrant.local.base import LocalCalibrator, LocalRows, LooksAtFeatures
from calibrant.local.feature_judging import FEATURES, FeatureTrial, judge_features
from calibrant.local.feature_words import (
    GroupChange,
    changed_groups,
    check_columns,
    explain_features,
)
from calibrant.local.local_gate import SMOOTH, score_map, score_rule
from calibrant.local.rule import RowInputs
from calibrant.local.tree_growth import Growth, TrainingMatrix, TreeOptions, lightgbm
from calibrant.local.tree_rule import MOST_ROUNDS, TreeRounds, matrix_of
from calibrant.local.trees import MOST_LEAVES
from calibrant.losses import logit


class FeatureCalibrator(LooksAtFeatures, LocalCalibrator):
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
    rule_ : TreeRounds
        The fitted rule: a value.
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

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "gate": (OneOf((True, False)),),
        "rounds": (Number(1, MOST_ROUNDS, whole=True), OneOf(("auto",))),
        "trees": (Number(1, 1000, whole=True),),
        "leaves": (Number(2, MOST_LEAVES, whole=True),),
        "learning_rate": (Number(0, 1, open=True),),
        "min_rows": (Number(1, whole=True),),
        "ridge": (Number(0),),
        "cv": (Splits(), OneOf((None,))),
        "random_state": (Number(0, 2**31 - 1, whole=True),),
        "weights": (WEIGHTS,),
    }

    rule_: TreeRounds
    trial_: FeatureTrial | None

    def __init__(
        self,
        *,
        gate: bool = True,
        rounds: int | str = "auto",
        trees: int = 27,
        leaves: int = 5,
        learning_rate: float = 0.1,
        min_rows: int = 160,
        ridge: float = 1.0,
        cv: Any = None,
        nominal: Any = None,
        random_state: int = 0,
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.gate = gate
        self.rounds = rounds
        self.trees = trees
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.min_rows = min_rows
        self.ridge = ridge
        self.cv = cv
        self.nominal = nominal
        self.random_state = random_state
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    def fit(
        self,
        scores: Any,
        y: Any = None,
        *,
        features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
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
        lightgbm()
        table, schema = self._read_features(features, rows, self.nominal)
        matrix = matrix_of(schema, len(table), enumerate(schema.floats(table)))
        nominal = np.flatnonzero(schema.nominal).tolist()
        seen = TrainingMatrix(matrix, rows.positive.astype(float), rows.weight, nominal)
        self.notes_ = check_columns(schema, seen)
        judges = self.gate or self.rounds == "auto"
        self.trial_ = self._try(rows, seen, groups) if judges else None
        if self.trial_ is None:  # nothing is judged, or a class has fewer than two rows
            kept = BEFORE if judges else FEATURES
        else:
            kept = self.trial_.kept if self.gate or not self.trial_.rounds.best else FEATURES
        self._learn_rule(rows, seen, schema, kept)
        self._keep_figures(seen, schema)
        for note in self.notes_:
            warnings.warn(note, AdviceWarning, stacklevel=caller_level())
        return self

    @property
    def _options(self) -> TreeOptions:
        return TreeOptions(
            int(self.trees),
            int(self.leaves),
            float(self.learning_rate),
            int(self.min_rows),
            float(self.ridge),
            int(self.random_state),
        )

    def _try(self, rows: LocalRows, seen: TrainingMatrix, groups: Any) -> FeatureTrial | None:
        """What rows held out say; None if none can be held out."""
        if np.bincount(rows.codes, minlength=2).min() < 2:
            return None
        rounds = None if self.rounds == "auto" else int(self.rounds)
        return judge_features(rows, seen, self._options, cv=self.cv, groups=groups, rounds=rounds)

    def _learn_rule(self, rows: LocalRows, seen: TrainingMatrix, schema: Schema, kept: str) -> None:
        """Fit what is kept to all rows."""
        self.importances_: dict[str, float] = {}
        if kept != FEATURES:
            self._keep(score_rule(kept, rows), rows)
            self.kept_, self.rounds_ = kept, 0
            return
        start = score_map(SMOOTH, rows)
        seen.matrix[:, -1] = logit(start(rows.scores))
        growth = Growth(seen, self._options)
        wanted = self.trial_.rounds.best if self.trial_ is not None else int(self.rounds)
        while len(growth.rounds) < wanted and growth.go_on():
            pass
        rule = TreeRounds.of_rounds(start, schema, growth.rounds, growth.factors)
        self._keep(rule, rows)
        self.kept_, self.rounds_ = (FEATURES if growth.rounds else SMOOTH), len(growth.rounds)
        names = [*(a.title for a in schema.attributes), "score"]
        total = float(growth.gains.sum()) or 1.0
        order = np.argsort(-growth.gains, kind="stable")
        self.importances_ = {names[j]: float(growth.gains[j]) / total for j in order.tolist()}

    def _keep_figures(self, seen: TrainingMatrix, schema: Schema) -> None:
        """Set the attributes that tell of the trial and of the columns."""
        trial = self.trial_
        self.losses_: dict[str, float] | None = None
        self.gains_: dict[str, tuple[float, float, float]] | None = None
        self.round_losses_: tuple[float, ...] | None = None
        self.groups_: tuple[GroupChange, ...] = ()
        if trial is not None:
            self.losses_ = {n: trial.sample.mean(one.log_loss) for n, one in trial.judged.items()}
            self.gains_ = {name: trial.gain(name, FEATURES) for name in (BEFORE, SMOOTH)}
            self.round_losses_ = trial.rounds.losses
            if self.kept_ == FEATURES:
                self.groups_ = changed_groups(trial, schema, seen, self.importances_)
        self._keep_names(schema)
        self._provenance |= {"kept": self.kept_, "rounds": self.rounds_}

    def explain(self) -> str:
        """What was kept and why, in plain words with the figures.

        Says by how much the trees help on rows held out, from which columns, and for which groups.
        """
        check_is_fitted(self)
        return explain_features(self)

    def fit_rows(
        self,
        scores: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        groups: Any = None,
        inputs: RowInputs | None = None,
    ) -> Self:
        """Fit on a model's scores of the rows X, which are the features."""
        return self.fit(scores, y, features=X, sample_weight=sample_weight, groups=groups)
