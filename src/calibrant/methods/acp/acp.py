"""ACP: the frequency of positives among calibration scores inside each row's own interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.array_types import Array, Index
from calibrant.data.door import Limit, OneOf, Rows
from calibrant.data.isotonic_blocks import SMOOTHING
from calibrant.data.scale import OnRange
from calibrant.data.score_table import ScoreTable, row_sizes
from calibrant.errors import InputError, ParameterError
from calibrant.fitting.base import WEIGHTS, LocalCalibrator
from calibrant.fitting.model_scores import Method, score_method, take_rows, weight_argument
from calibrant.methods.acp.intervals import (
    LEVEL,
    SCALE,
    Intervals,
    IntervalsOfModel,
    NoInputs,
    is_logistic,
)
from calibrant.methods.acp.rule import IntervalBins, RowBins, read_interval
from calibrant.methods.uncalibrated import choose_by_gate, fit_score_map
from calibrant.rules.base import RowInputs

#: what ``kept_`` says where bins are used
BINS = "bins"


class IntervalFunction:
    """The limit of ``interval``: a function."""

    def allows(self, value: Any) -> bool:
        return callable(value)

    def __str__(self) -> str:
        return "a function from a model and rows to (lower, upper)"


@dataclass(kw_only=True, eq=False, repr=False)
class ACP(LocalCalibrator):
    """Adaptive calibration of predictions: each row is its own bin.

    An interval [l, u] around a probability says how sure the model is of it. So it also says which
    other predictions the model cannot tell apart from this one. ACP answers with the frequency of
    the positive class among the calibration scores in [l, u]. Rows of the same score may get
    different probabilities, since their intervals differ: this is no function of the score alone.

    An interval holds about n·width of the n calibration rows. Its width falls with the square root
    of the number of rows that the model was fitted on. If the model was fitted on few rows, the
    interval holds nearly everything and the answer tends to the base rate: lower ``level`` then. If
    it was fitted on many rows and there are few calibration rows, the interval holds hardly any and
    the answer is noise. ACP needs no monotone relation between score and probability, and promises
    none.

    Parameters
    ----------
    level : float in (0, 0.9999], default=0.95
        Level of the intervals, if `CalibratedClassifier` computes them. For the spread of a forest
        take about 0.2: at 0.95 its intervals hold nearly everything.
    scale : {"probability", "logit"}, default="probability"
        The scale of the intervals: see `prediction_interval`.
    interval : "auto" or function, default="auto"
        Where the intervals come from: "auto" is `prediction_interval`. A function takes the fitted
        model and rows, and returns (lower, upper) around the model's probability of
        ``classes_[1]``. If the model is a plain function, they are around its score. A lambda
        cannot be pickled: define the function in a module if you need that.
    smoothing : {"none", "laplace", "jeffreys"}, default="none"
        Adds 1 or ½ of each class to every bin, so that 0 and 1 are never returned.
    gate : {"auto", True, False}, default="auto"
        Whether bins are used only if they help. On rows held out (5 folds) their Brier score must
        be better than that of the scores, and than that of `BLS`, by more than two standard errors.
        Otherwise the scores or the curve of BLS are kept. The gate needs the intervals of the rows
        of the fit. "auto" judges where they are known: `CalibratedClassifier` computes them, and
        `fit` takes them. True refuses a fit without them. False is the paper's method.
    weights : {"importance", "counts"}, default="importance"
        See `Calibrator`.
    pos_label : label, default: the larger class
        What a high score means.
    classes : two labels, default: those found in y
        Needed only where y may hold a single class whose partner cannot be guessed.

    Attributes
    ----------
    rule_ : IntervalBins or Map
        The calibration scores and their weights, a value; or the map of the score that the gate
        keeps.
    kept_ : {"bins", "BLS", "uncalibrated"}
        What `calibrate` uses; always ``"bins"`` where nothing was judged.
    classes_ : ndarray of shape (2,)
        The labels, sorted; the columns of `predict_proba`.
    pos_label_ : label
        The class whose probability `calibrate` gives.

    Notes
    -----
    p = Σ_{x_i ∈ [l, u]} w_i y_i / Σ_{x_i ∈ [l, u]} w_i, with w in units of rows. Both ends are
    included, so that ties are never split. If no calibration score lies in the interval, the scores
    nearest to the row's own are used. They are taken until their weight is 10, together with all
    that are as far as the last one (to 1e-12, and to rounding). If all scores weigh less than 10,
    all are used. `predict_proba` warns and says how many intervals were empty.

    Scores and intervals may be on any scale, as long as it is the same one: probabilities with the
    intervals of `prediction_interval`, or logits with intervals of logits. The interval need not
    contain the score.

    `CalibratedClassifier(model, ACP())` calibrates the model's ``predict_proba`` and computes the
    intervals itself, from the rows that the model was fitted on. A model with only a
    ``decision_function`` is refused: those intervals would be on another scale than its scores.
    A logistic regression that comes already fitted does not hold what its intervals need: pass
    ``interval=lambda model, X: prediction_interval(model, X, train=(X_train,))``. With folds, the
    calibration scores come from models that were fitted on fewer rows than the model whose
    intervals are used.

    Costs O(N log N) to fit and O(log N) for each row. Sums of whole weights are exact; sums of
    fractions lose no digits by subtraction. An empty interval that needs k scores costs
    O(log k · log N).

    References
    ----------
    .. [1] X. Jiang, M. Osl, J. Kim, L. Ohno-Machado, "Calibrating predictive model estimates to
       support personalized medicine", 2012, doi:10.1136/amiajnl-2011-000291.
    .. [2] M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Binary classifier calibration using a
       Bayesian non-parametric approach", 2015, doi:10.1137/1.9781611974010.24.

    Examples
    --------
    >>> c = ACP().fit([0.1, 0.2, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1, 1])
    >>> c.calibrate([0.3, 0.3], lower=[0.2, 0.05], upper=[0.4, 0.65]).round(2).tolist()
    [0.33, 0.4]
    >>> found = c.bins([0.5], lower=[0.45], upper=[0.55])
    >>> found.empty.tolist(), found.weight.tolist(), found.probability.tolist()
    ([True], [6.0], [0.5])
    """

    level: float = 0.95
    scale: str = "probability"
    interval: str | Callable[[Any, Any], Any] = "auto"
    smoothing: str = "none"
    gate: str | bool = "auto"
    weights: str = "importance"
    pos_label: Any = None
    classes: Any = None

    _takes: ClassVar[frozenset[str]] = frozenset({"lower", "upper"})
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "level": (LEVEL,),
        "scale": (SCALE,),
        "interval": (OneOf(("auto",)), IntervalFunction()),
        "smoothing": (OneOf(tuple(SMOOTHING)),),
        "gate": (OneOf(("auto", True, False)),),
        "weights": (WEIGHTS,),
    }

    def fit(
        self,
        scores: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        lower: Any = None,
        upper: Any = None,
    ) -> Self:
        """Keep the scores, labels and weights, sorted and summed.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, 2)
            Scores of any kind, or a binary predict_proba (then pos_label's column is used).
        y : array-like of shape (n,)
            Labels: any two values.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        lower, upper : array-likes of shape (n,), optional
            The ends of each row's interval. Only the gate needs them.
        """
        inputs = RowInputs(lower=lower, upper=upper)
        return self.fit_rows(scores, y, None, sample_weight, inputs=inputs)

    def fit_rows(
        self,
        scores: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        groups: Any = None,
        inputs: RowInputs | None = None,
    ) -> Self:
        """As `fit`, with the intervals that the models of the scores have for these rows.

        X is not needed. ``groups`` says which rows are one that was scored several times: the gate
        holds them out together.
        """
        rows = self._read(scores, y, sample_weight)
        self.kept_ = self._choose_kept(rows, inputs or RowInputs(), groups)
        if self.kept_ == BINS:
            return self._keep(self._fit_bins(rows, np.arange(len(rows.codes))), rows)
        return self._keep(fit_score_map(self.kept_, rows, self.weights), rows)

    def _fit_bins(self, rows: Rows, some: Index) -> IntervalBins:
        """The rule fitted to some of the rows."""
        sized = replace(rows, weight=row_sizes(rows, self.weights))
        table = ScoreTable.from_rows(sized.take(some))
        return IntervalBins(table.scores, table.negative, table.positive, SMOOTHING[self.smoothing])

    def _choose_kept(self, rows: Rows, inputs: RowInputs, groups: Any) -> str:
        """The name of what is kept, judged on rows held out: bins, or a map of the scores."""
        ends = {"lower": inputs.lower, "upper": inputs.upper}
        lacking = [name for name, given in ends.items() if given is None]
        if self.gate is False or (self.gate == "auto" and len(lacking) == 2):
            return BINS
        if lacking:
            raise InputError(
                "ACP with a gate judges by the intervals of the rows that it is fitted to, but "
                f"{' and '.join(lacking)} did not come. Pass fit(scores, y, lower=..., upper=...), "
                "or use gate=False."
            )
        low, high = (end[rows.kept] for end in read_interval(inputs, len(rows.kept)))

        def fit(train: Index) -> Callable[[Index], Array]:
            bins = self._fit_bins(rows, train)

            def probabilities_of(test: Index) -> Array:
                inputs = RowInputs(lower=low[test], upper=high[test])
                return bins.bins(rows.scores[test], inputs).probability

            return probabilities_of

        return choose_by_gate(rows, self.weights, BINS, fit, groups)

    @property
    def judges_inputs(self) -> bool:
        """Whether the fit needs the intervals of its rows, for the gate."""
        return self.gate is not False

    def bins(
        self, scores: Any, *, lower: Any = None, upper: Any = None, on_range: OnRange = "error"
    ) -> RowBins:
        """The bin of each row: its probability of ``pos_label_``, weight, and whether it was empty.

        Scores and ``on_range`` are as in `predict_proba`.
        """
        clean = self._rule_reader.read(scores, on_range)
        if not isinstance(self.rule_, IntervalBins):
            raise InputError(
                f"the gate kept {self.kept_!r}, so that there are no bins. Use calibrate, or fit "
                "with gate=False."
            )
        return self.rule_.bins(clean, RowInputs(lower=lower, upper=upper))

    def companion(
        self, model: Any, train: Rows | None, rows: Index | None, method: Method = "auto"
    ) -> Callable[[Any], RowInputs]:
        """A function from new rows to the intervals of a model.

        What the function needs is computed here, once. A calibrator whose gate kept a map of the
        score needs no intervals.
        """
        if getattr(self, "kept_", BINS) != BINS:
            return NoInputs()
        label = getattr(self, "pos_label_", self.pos_label)
        known = getattr(model, "classes_", None)
        flip = known is not None and label is not None and bool(known[0] == label)
        if callable(self.interval):
            return IntervalsOfModel(partial(self.interval, model), flip)
        self._check_scores(model, train, method)
        if train is None and is_logistic(model):
            raise ParameterError(
                f"the intervals of {type(model).__name__} need the rows that it was fitted on, "
                "which nobody knows of a model that comes already fitted. Pass them: "
                "ACP(interval=lambda model, X: prediction_interval(model, X, train=(X_train, "
                "y_train))), or let CalibratedClassifier fit the model."
            )
        learned = None
        if train is not None:
            weight = train.weight if weight_argument(model) is not None else None
            learned = take_rows(train.X, rows), take_rows(weight, rows)
        intervals = Intervals.of(model, learned, level=self.level, scale=self.scale)
        return IntervalsOfModel(intervals, flip)

    def _check_scores(self, model: Any, train: Rows | None, method: Method) -> None:
        """Refuse scores other than the probabilities that the intervals are around."""
        given = train is None and hasattr(model, "predict_proba")  # not known: it is trusted
        source = "predict_proba" if given else score_method(model, method)
        fitted = getattr(self, "rule_", None)
        known = fitted.scores if isinstance(fitted, IntervalBins) else (0.0, 1.0)
        inside = known[0] >= 0 and known[-1] <= 1
        if source != "predict_proba" or not inside:
            raise ParameterError(
                "ACP's own intervals are around probabilities, so the scores must be those of "
                f"predict_proba, but {type(model).__name__} is scored by "
                f"{'another method' if source == 'predict_proba' else source or 'a function'}. "
                'Use a model with predict_proba (and response_method="predict_proba"), or pass '
                "interval= a function that gives (lower, upper) on the scale of the scores."
            )
