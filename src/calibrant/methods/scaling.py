"""Temperature scaling and its relatives: maps softmax(W·x + b), from a factor to a full matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array, Index
from calibrant.data.door import Limit, Number, OneOf, check_parameters
from calibrant.data.score_matrix import ScoreMatrix, read_matrix
from calibrant.data.score_table import ScoreTable
from calibrant.fitting.base import (
    DIRECTIONS,
    KEPT,
    LABEL_SMOOTHING,
    SCALES,
    WEIGHTS,
    OneScoreOrMany,
    RowReading,
    VectorCalibrator,
    count_columns,
    read_as,
    uses_logit_scale,
)
from calibrant.fitting.folds import FOLDS, deal_by_scores, rows_by_score
from calibrant.fitting.held_out import (
    ERRORS_AHEAD_OF_CLASSES,
    HeldOut,
    Sample,
    Trial,
    choose,
    try_all,
)
from calibrant.losses import logit
from calibrant.rules.base import Map, VectorMap, in_blocks
from calibrant.rules.sigmoids import Logistic
from calibrant.rules.softmax import Softmax, VectorMixture
from calibrant.solvers.block_arrays import Source, log_shares, ops_of
from calibrant.solvers.logistic import STEEPEST, fit_logistic
from calibrant.solvers.softmax import (
    RIDGE,
    BlockSums,
    SoftmaxFit,
    SoftmaxProblem,
    fit_softmax,
    fit_temperature,
    forms_hessian,
    softmax_objective,
    softmax_row_losses,
)
from calibrant.solvers.weights import mixture_weights
from calibrant.tensors import library_of

#: the flattest map: 1/T times the logits' root mean square is at least this
FLATTEST = 1e-3


@dataclass(kw_only=True, eq=False, repr=False)
class Temperature(OneScoreOrMany):
    """P = σ(z / T), or softmax(z / T), with one temperature T > 0, by maximum likelihood.

    Scores of one column, or the two of a binary predict_proba, calibrate two classes; a column for
    each of three or more classes calibrates them together.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        Whether z is the logit of the score (of several classes: the logarithm of each probability)
        or the score itself; ``"auto"`` takes the logit when all scores lie in [0, 1] (and the rows
        of several classes sum to one), and reads anything else as logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    direction, pos_label : see `Calibrator`
        With two classes only.
    classes : see `Calibrator`
        With several classes all of them, in the order of the columns (default: sorted).

    Attributes
    ----------
    temperature_ : float
        T: above 1 softens over-confident scores, below 1 sharpens timid ones.

    Notes
    -----
    Convex in 1/T. T is always positive, so the order of scores never turns. Where the data ask for
    a negative slope, T is the largest allowed: 1000 times the root mean square of z (for several
    classes, of the differences between a row's logits), and all probabilities come close to 1/k. A
    ridge of 1e-7·Σw keeps separable data finite. Only the ratios of weights matter. Equal scores
    stay equal: temperature cannot move the base rate. Scores of exactly 0 and 1 count as half as
    far from the end as the outermost score inside (0, 1); with several classes a zero counts as
    half the smallest positive entry.

    O(D) per Newton step after the table; O(n·k) for several classes, block by block. Float32 scores
    and memory maps are never copied as a whole, neither here nor by ``map_``, which can write into
    a given array. (Rows of weight zero are an exception: leave them out yourself where memory is
    short.) Logits of several classes in a tensor are fitted on the tensor's device.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017.

    Examples
    --------
    >>> p = [0.99, 0.99, 0.99, 0.99, 0.01, 0.01, 0.01, 0.01]
    >>> c = Temperature().fit(p, [1, 1, 1, 0, 0, 0, 0, 1])
    >>> round(c.temperature_, 3), c.calibrate([0.99]).round(3).tolist()
    (4.183, [0.75])
    >>> c = Temperature().fit([[3, 0, 0], [0, 3, 0], [0, 0, 3], [3, 0, 0]], list("abcb"))
    >>> round(c.temperature_, 3), c.predict_proba([[3, 0, 0]]).round(3).tolist()
    (1.674, [[0.75, 0.125, 0.125]])
    """

    scale: str = "auto"
    label_smoothing: float = 0.0
    direction: str = "rising"
    pos_label: Any = None
    classes: Any = None

    events_needed: ClassVar[int] = 10
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "scale": (SCALES,),
        "label_smoothing": (LABEL_SMOOTHING,),
        "direction": (DIRECTIONS,),
    }

    def fit(
        self, scores: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2) or (n, k)
            Scores of any kind, a binary predict_proba, or logits or probabilities of k classes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights ≥ 0; a row of weight zero is as if absent.
        """
        if y is None or count_columns(scores) < 3:
            super().fit(scores, y, sample_weight)
            return self
        check_parameters(self, self._limits)
        self._refuse_pos_label()
        matrix, classes = read_matrix(scores, y, sample_weight, self.classes, on_device=True)
        read = read_as(matrix, self.scale)
        factor = read.temperature(smoothing=self.label_smoothing)
        self.temperature_ = 1.0 / factor
        self._learn_rows(read.map(factor, np.zeros(matrix.n_classes)), matrix, classes, scores)
        return self

    def _fit(self, table: ScoreTable) -> Map:
        on_logit = uses_logit_scale(self.scale, table)
        clip = table.inner_interval if on_logit else None
        low = 0.5 * self.label_smoothing

        def fit(part: ScoreTable, start: Array | None) -> Array:
            scores = part.scores if clip is None else np.clip(part.scores, *clip)
            z = in_blocks(logit, scores) if on_logit else scores
            fitted = fit_logistic(
                [z],
                part.negative,
                part.positive,
                intercept=False,
                ridge=RIDGE * part.total,
                smoothing=(low, low),
                start=start,
            )
            with np.errstate(over="ignore"):
                flattest = FLATTEST / _root_mean_square(z, part.weight)
            return np.clip(fitted.coefficients, min(flattest, STEEPEST), STEEPEST)

        slope = float(table.coarse_to_fine(fit)[0])
        self.temperature_ = 1.0 / slope
        return Logistic(0.0, (("z" if on_logit else "x", slope),), clip)


def _root_mean_square(z: Array, weight: Array) -> float:
    """Weighted root mean square, safe from overflow; 1 where all are zero."""
    largest = float(np.abs(z).max())
    if largest == 0.0:
        return 1.0
    square = z / largest
    square *= square
    return largest * float(np.sqrt(square @ weight / weight.sum()))


# --- Ensemble temperature scaling: a temperature, the scores as they are and even odds, mixed -----


#: a member of less than this share is left out
LEAST_SHARE = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class EnsembleTemperature(VectorCalibrator):
    """A temperature, mixed with the scores as they are and with equal probabilities (ETS).

    P = w₁·softmax(z / T) + w₂·softmax(z) + w₃/k for k classes, with shares w that sum to one.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits z; ``"logit"``: they are probabilities and z = ln p;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    classes : see `VectorCalibrator`

    Attributes
    ----------
    temperature_ : float
        T: above 1 softens over-confident scores, below 1 sharpens timid ones.
    shares_ : ndarray of shape (3,)
        w: of the scores at the temperature, of the scores as they are, and of the uniform
        distribution.

    Notes
    -----
    First T is fitted by maximum likelihood, as by `Temperature`; then, with T fixed, the shares
    [1]_. The log loss is convex in the shares. Newton's method finds its minimum, where a share may
    be zero. So the log loss on the rows of the fit is never above that of a temperature alone. No
    row changes the order of its classes, so the most probable class stays what it is. The uniform
    part w₃/k keeps all probabilities above zero. That helps where labels are sometimes wrong,
    however sure the model is.

    Only ratios of weights matter. Zero probabilities are read as half the smallest positive one.
    O(n·k) for each pass of the temperature, and one pass more; float32 scores and memory maps are
    read block by block and never copied as a whole.

    References
    ----------
    .. [1] J. Zhang, B. Kailkhura, T. Han, "Mix-n-match: ensemble and compositional methods for
       uncertainty calibration in deep learning", 2020, doi:10.48550/arXiv.2003.07329.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = 4 * rng.normal(size=(3000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> wrong = rng.random(3000) < 0.3
    >>> y[wrong] = rng.integers(0, 3, wrong.sum())
    >>> c = EnsembleTemperature().fit(z, y)
    >>> c.shares_.round(1).tolist(), c.predict_proba([[9, 0, 0]]).round(1).tolist()
    ([0.0, 0.7, 0.3], [[0.8, 0.1, 0.1]])
    """

    scale: str = "auto"
    classes: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {"scale": (SCALES,)}

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        return read_matrix(scores, y, sample_weight, self.classes, on_device=True)

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read = read_as(matrix, self.scale)
        factor = read.temperature()
        sums, even = read.sums(), np.full(len(matrix), 1.0 / matrix.n_classes)
        own = np.column_stack((*(np.exp(-sums.own_losses(f)) for f in (factor, 1.0)), even))
        weight = np.ones(len(matrix)) if matrix.weight is None else matrix.weight
        raw = mixture_weights(own, weight / weight.mean(), 0.0)
        shares = np.where(raw < LEAST_SHARE, 0.0, raw)
        self.temperature_, self.shares_ = 1.0 / factor, shares / shares.sum()
        none = np.zeros(matrix.n_classes)
        used = [(w, f) for w, f in zip(self.shares_, (factor, 1.0, 0.0), strict=True) if w > 0.0]
        weights = np.array([w for w, _ in used])
        return VectorMixture(weights, tuple(read.map(f, none) for _, f in used))


# --- What softmax(W·x + b) is fitted and kept by: vector, matrix, Dirichlet and structured scaling


class AffineCalibrator(VectorCalibrator):
    """A calibrator whose map is softmax(W·x + b), unless something simpler does as well.

    With ``gate``, temperature scaling replaces the fit where it loses less on rows held out. The
    better of the two is kept only if its gain over the scores as they are exceeds the standard
    error of that gain; else the scores stay as they are.

    Attributes
    ----------
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.
    """

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "scale": (SCALES,),
        "label_smoothing": (LABEL_SMOOTHING,),
        "gate": (OneOf((True, False)),),
    }

    scale: str
    label_smoothing: float
    gate: bool
    kept_: str

    def _fit_and_gate(self, family: AffineFit, strength: Strength) -> Softmax:
        fit = family.fit(strength)
        return self._keep_if_better(
            family, fit, family.judged(strength, fit.theta) if self.gate else None
        )

    def _keep_if_better(self, family: AffineFit, fit: SoftmaxFit, judged: Judged | None) -> Softmax:
        """The fitted map, or a simpler map that loses no more on rows held out."""
        self.converged_, self.n_iter_ = True, fit.steps
        self.gain_, self.gain_error_, self.kept_ = float("nan"), float("nan"), "fit"
        if judged is not None:
            held, trial = judged
            gain = held.unchanged.log_loss - trial.log_loss
            self.gain_, self.gain_error_ = held.sample.mean(gain), held.sample.error(gain)
            self.kept_ = held.choice(trial) if self.gate else "fit"
        if self.kept_ == "fit":
            return family.map(fit.theta)
        factor = family.temperature if self.kept_ == "temperature" else 1.0
        return family.read.map(factor, np.zeros(family.k))


# --- Vector scaling: a factor and an offset for each class's logit --------------------------------


@dataclass(kw_only=True, eq=False, repr=False)
class VectorScaling(AffineCalibrator):
    """P = softmax(v·z + b), a factor and an offset per class, by maximum likelihood.

    Parameters
    ----------
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits z; ``"logit"``: they are probabilities and z = ln p;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    gate : bool, default=True
        Fall back to a temperature alone where that loses less on rows held out, and to the scores
        as they are unless the gain over them exceeds its standard error.
    classes : see `VectorCalibrator`

    Attributes
    ----------
    factors_, offsets_ : ndarray of shape (k,)
        v and b of the map that was kept.
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.

    Notes
    -----
    Convex in v and b; Newton's method, O(n·k²) per step up to 40 classes, conjugate gradients
    above. A ridge of 1e-7·Σw towards the identity keeps the fit finite where classes separate or y
    lacks one. Only ratios of weights matter. Zero probabilities are read as half the smallest
    positive one. On logits the map changes if a constant is added to all logits of a row, as
    published; `StructuredScaling` does not change.

    The gate holds rows out in five folds, made of at most 20,000 rows and dealt in the order of
    their scores: nothing is random. Where this would take too long (6,700 rows of 300 classes), it
    holds out a single part, a fifth and at most 5,000 of the rows, and judges a fit to all the
    others.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017, doi:10.48550/arXiv.1706.04599.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(3000, 3))
    >>> y = (z * [1, 2, 1] + [0, 0, 1] + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> c = VectorScaling().fit(3 * z, y)
    >>> (3 * c.factors_).round(1).tolist()
    [1.0, 2.1, 1.0]
    """

    scale: str = "auto"
    label_smoothing: float = 0.0
    gate: bool = True
    classes: Any = None

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read = read_as(matrix, self.scale)
        family = AffineFit(read, full=False, smoothing=self.label_smoothing)
        free = family.strength(diagonal=0.0, off_diagonal=0.0, intercept=0.0)
        fitted = self._fit_and_gate(family, lambda total: free)
        self.factors_, self.offsets_ = np.diag(fitted.weights), fitted.bias
        return fitted


# --- A ridge on what is off the diagonal: matrix scaling, and Dirichlet calibration of ln p (ODIR)


@dataclass(kw_only=True, eq=False, repr=False)
class RidgeCalibrator(AffineCalibrator):
    """A full W with a ridge λ off its diagonal and a ridge μ on b, added to the mean log loss
    (ODIR).

    The ``_inner`` of a subclass says how rows are read: None takes logits as they are, 1 turns them
    into ln p first.
    """

    lambda_: float | str = "auto"
    mu: float | None = None
    scale: str = "auto"
    label_smoothing: float = 0.0
    gate: bool = True
    weights: str = "importance"
    classes: Any = None

    _inner: ClassVar[float | None] = None
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        **AffineCalibrator._limits,
        "lambda_": (OneOf(("auto",)), Number(0.0)),
        "mu": (OneOf((None,)), Number(0.0)),
        "weights": (WEIGHTS,),
    }

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read = read_as(matrix, self.scale)
        family = AffineFit(read, full=True, smoothing=self.label_smoothing, inner=self._inner)
        k, n = family.k, family.total
        pairs, mu = k * (k - 1), self.mu

        def strength(value: float) -> Strength:
            on_b = value if mu is None else mu

            def of(total: float) -> Array:
                off, on = 2.0 * total * value / pairs, 2.0 * total * on_b / k
                return family.strength(diagonal=0.0, off_diagonal=off, intercept=on)

            return of

        self.held_out_: dict[float, float] = {}
        if not isinstance(self.lambda_, str):
            value = float(self.lambda_)
            fitted = self._fit_and_gate(family, strength(value))
        elif family.is_small:
            part = family.subsample
            self.held_out_, trial = try_strengths(part.held, strength)
            best = min(self.held_out_, key=self.held_out_.__getitem__)
            # the ridge beside the summed loss stays the same when rows are added
            value = best * part.total / n
            start = np.mean([one.theta for one in trial.maps], axis=0)
            fit = family.fit(strength(value), start / part.units * family.units)
            judged = part.held, trial
            if self.gate and family.judge is not part:
                judged = family.judged(strength(value), fit.theta)
            fitted = self._keep_if_better(family, fit, judged)
        else:
            value, mu = pairs**2 / n, k**2 / n if mu is None else mu
            fitted = self._fit_and_gate(family, strength(value))
        self.lambda_used_, self.mu_used_ = value, value if mu is None else float(mu)
        self.matrix_, self.offsets_ = fitted.weights, fitted.bias
        return fitted


class MatrixScaling(RidgeCalibrator):
    """P = softmax(W·z + b) of logits z, off-diagonal of W and b shrunk to zero.

    Parameters
    ----------
    lambda_ : float or "auto", default="auto"
        Strength λ of the ridge on the off-diagonal of W; ``"auto"``: the one with the least log
        loss on rows held out, among half decades from 1000 to 1e-6.
    mu : float, optional
        Strength μ of the ridge on b; None: as λ.
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits; ``"logit"``: they are probabilities, read by their logarithm;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    gate : bool, default=True
        Fall back to a temperature alone where that loses less on rows held out, and to the scores
        as they are unless the gain over them exceeds its standard error.
    weights, classes : see `VectorCalibrator`

    Attributes
    ----------
    matrix_ : ndarray of shape (k, k)
    offsets_ : ndarray of shape (k,)
        W and b of the map that was kept.
    lambda_used_, mu_used_ : float
        λ and μ of the fit.
    held_out_ : dict of float to float
        With ``lambda_="auto"``: log loss per row on rows held out, for each λ that was tried.
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.

    Notes
    -----
    Minimises the mean log loss + λ/(k(k−1))·Σ_{i≠j} W²_ij + μ/k·Σ b² [2]_ (without ridges [1]_ the
    k² + k parameters overfit). Convex; Newton's method, O(n·k⁴) per step up to 24 classes,
    conjugate gradients above. Zero probabilities are read as half the smallest positive one. On
    logits the map changes if a constant is added to all logits of a row, as published; `Dirichlet`
    and `StructuredScaling` do not change. n is the effective number of rows.

    To choose λ, and for the gate, rows are held out in five folds, dealt in the order of their
    scores: nothing is random. The folds are made of at most 20,000 rows (6,700 for 16 classes,
    1,400 for 24); a λ or μ chosen on a part of the rows shrinks with the number of all. Above 24
    classes this would take too long: ``"auto"`` is then λ = (k(k−1))²/n and μ = k²/n, the strengths
    of `StructuredScaling`. Where five folds cannot hold enough rows, the gate holds out a single
    part, a fifth and at most 5,000 of the rows, and judges a fit to all the others.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Weinberger, "On calibration of modern neural networks",
       2017, doi:10.48550/arXiv.1706.04599.
    .. [2] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       temperature scaling", 2019, doi:10.48550/arXiv.1910.12656.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(3000, 3))
    >>> y = (z + z[:, [1, 0, 2]] / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> c = MatrixScaling().fit(3 * z, y)
    >>> (3 * (c.matrix_[:2] - c.matrix_[2])).round(1).tolist()
    [[1.0, 0.5, -1.5], [0.5, 1.1, -1.5]]
    """


class Dirichlet(RidgeCalibrator):
    """P = softmax(W·ln p + b), off-diagonal of W and b shrunk to zero (ODIR).

    Parameters
    ----------
    lambda_ : float or "auto", default="auto"
        Strength λ of the ridge on the off-diagonal of W; ``"auto"``: the one with the least log
        loss on rows held out, among half decades from 1000 to 1e-6.
    mu : float, optional
        Strength μ of the ridge on b; None: as λ.
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits; ``"logit"``: they are probabilities, read by their logarithm;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    gate : bool, default=True
        Fall back to a temperature alone where that loses less on rows held out, and to the scores
        as they are unless the gain over them exceeds its standard error.
    weights, classes : see `VectorCalibrator`

    Attributes
    ----------
    matrix_ : ndarray of shape (k, k)
    offsets_ : ndarray of shape (k,)
        W and b of the map that was kept.
    lambda_used_, mu_used_ : float
        λ and μ of the fit.
    held_out_ : dict of float to float
        With ``lambda_="auto"``: log loss per row on rows held out, for each λ that was tried.
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.

    Notes
    -----
    The right map for scores p that are Dirichlet distributed within each class [1]_. Logits are
    normalised first, ln p = z − ln Σ exp z, so that a constant added to a row changes nothing.
    Minimises the mean log loss + λ/(k(k−1))·Σ_{i≠j} W²_ij + μ/k·Σ b². Convex; Newton's method,
    O(n·k⁴) per step up to 24 classes, conjugate gradients above. Zero probabilities are read as
    half the smallest positive one. n is the effective number of rows.

    To choose λ, and for the gate, rows are held out in five folds, dealt in the order of their
    scores: nothing is random. The folds are made of at most 20,000 rows (6,700 for 16 classes,
    1,400 for 24); a λ or μ chosen on a part of the rows shrinks with the number of all. Above 24
    classes this would take too long: ``"auto"`` is then λ = (k(k−1))²/n and μ = k²/n. Where five
    folds cannot hold enough rows, the gate holds out a single part, a fifth and at most 5,000 of
    the rows, and judges a fit to all the others.

    References
    ----------
    .. [1] M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach, "Beyond
       temperature scaling: obtaining well-calibrated multiclass probabilities with Dirichlet
       calibration", 2019, doi:10.48550/arXiv.1910.12656.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 3000)
    >>> p = rng.dirichlet([1, 1, 1], 3000) * 0.5 + 0.5 * rng.dirichlet([4, 1, 1], 3000)
    >>> p = np.array([np.roll(row, k) for row, k in zip(p, y)])
    >>> c = Dirichlet().fit(p, y)
    >>> c.predict_proba([[0.6, 0.3, 0.1]]).round(2).tolist()
    [[0.85, 0.14, 0.01]]
    """

    _inner: ClassVar[float | None] = 1.0


# --- Structured scaling: temperature first, then small corrections, shrunk by their number --------


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredScaling(AffineCalibrator):
    """P = softmax((I + diag v + M)·x + b), x the log-probabilities at the best temperature.

    Parameters
    ----------
    structure : {"matrix", "vector"}, default="matrix"
        With the off-diagonal matrix M, or without it.
    lambda_intercept, lambda_diagonal, lambda_off_diagonal : float, default=1.0
        Strengths of the ridges on b, v and M; the defaults are the published ones.
    scale : {"auto", "logit", "raw"}, default="auto"
        ``"raw"``: scores are logits; ``"logit"``: they are probabilities, read by their logarithm;
        ``"auto"``: probabilities if every row lies in [0, 1] and sums to one, else logits.
    label_smoothing : float, default=0.0
        ε: targets are 1 − ε + ε/k for a row's own class and ε/k for the others.
    gate : bool, default=True
        Fall back to a temperature alone where that loses less on rows held out, and to the scores
        as they are unless the gain over them exceeds its standard error.
    weights, classes : see `VectorCalibrator`

    Attributes
    ----------
    temperature_ : float
        T of the first step.
    matrix_ : ndarray of shape (k, k)
    offsets_ : ndarray of shape (k,)
        I + diag v + M and b of the map that was kept.
    kept_ : {"fit", "temperature", "identity"}
        What was kept as the map.
    gain_, gain_error_ : float
        The fit's gain in log loss per row over the scores as they are, on rows held out, and its
        standard error (NaN: not measured).
    converged_, n_iter_ : bool, int
        That the solver converged (else the fit raises), and its steps.

    Notes
    -----
    First T is fitted by maximum likelihood. Then, with x = ln softmax(z / T), the fit minimises
    Σ loss + λ_b·k·Σ b² + λ_v·k·Σ v² + λ_M·k(k−1)·Σ M² (structured matrix and vector scaling [1]_):
    the more parameters of a kind there are, the more each is shrunk. So few rows give nearly
    temperature scaling, and many nearly matrix scaling. Convex; Newton's method, O(n·k⁴) per step
    up to 24 classes (vector: O(n·k²) up to 40), conjugate gradients above. A constant added to the
    logits of a row changes nothing. Weights count in units of rows. Zero probabilities are read as
    half the smallest positive one.

    The gate holds rows out in five folds, made of at most 20,000 rows and dealt in the order of
    their scores: nothing is random. Each fold fits its own T. Where this would take too long (1,400
    rows of 24 classes, 400 of 100), it holds out a single part, a fifth and at most 5,000 of the
    rows, and judges a fit to all the others.

    References
    ----------
    .. [1] E. Berta, D. Holzmüller, M. Jordan, F. Bach, "Structured matrix scaling for multi-class
       calibration", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(3000, 3))
    >>> y = (z + [0, 0, 1] + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> c = StructuredScaling().fit(3 * z, y)
    >>> c.predict_proba([[0, 0, 0]]).round(2).tolist()
    [[0.23, 0.2, 0.57]]
    """

    structure: str = "matrix"
    lambda_intercept: float = 1.0
    lambda_diagonal: float = 1.0
    lambda_off_diagonal: float = 1.0
    scale: str = "auto"
    label_smoothing: float = 0.0
    gate: bool = True
    weights: str = "importance"
    classes: Any = None

    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        **AffineCalibrator._limits,
        "structure": (OneOf(("matrix", "vector")),),
        "lambda_intercept": (Number(0.0),),
        "lambda_diagonal": (Number(0.0),),
        "lambda_off_diagonal": (Number(0.0),),
        "weights": (WEIGHTS,),
    }

    def _read(self, scores: Any, y: Any, sample_weight: Any) -> tuple[ScoreMatrix, NDArray[Any]]:
        # JAX has no float64 unless asked for it, and in float32 the fit could not end
        stays = library_of(scores) != "jax"
        return read_matrix(scores, y, sample_weight, self.classes, on_device=stays)

    def _fit(self, matrix: ScoreMatrix) -> VectorMap:
        read, k = read_as(matrix, self.scale), matrix.n_classes
        factor = read.temperature(smoothing=self.label_smoothing)
        self.temperature_ = 1.0 / factor
        full = self.structure == "matrix"
        family = AffineFit(
            read, full=full, smoothing=self.label_smoothing, inner=factor, tuned=True
        )
        strength = family.strength(
            diagonal=2.0 * self.lambda_diagonal * k,
            off_diagonal=2.0 * self.lambda_off_diagonal * k * (k - 1),
            intercept=2.0 * self.lambda_intercept * k,
        )
        fitted = self._fit_and_gate(family, lambda total: strength)
        self.matrix_, self.offsets_ = fitted.weights, fitted.bias
        return fitted


# --- Fits of softmax(W·x + b) with ridges towards the identity -----------------------------------


#: folds are made of at most so many rows; of more rows, a sample spread evenly over their order
MOST_ROWS = 20_000
#: the most work that five folds may be: rows times squared parameters where Hessians are formed,
#: rows times parameters where they are not. Beyond that, a single part of the rows is held out
DENSE_WORK, SPARSE_WORK = 500_000_000, 4_000_000
#: the most rows that such a single part holds
MOST_HELD = 5_000
#: strengths that are tried, from strong to weak
DECADES = tuple(10.0**e for e in range(3, -7, -1))

#: the ridge on each parameter of θ, for rows of a total weight
Strength = Callable[[float], Array]
#: rows held out, and how fits did on them
Judged = tuple["HeldOutBlocks", Trial]


class AffineFit:
    """softmax(W·x + b) on the features of a matrix, W diagonal or full.

    Inside, features are divided by their spread, so that logits of any size fit alike. Ridges add
    ½·Σ strength·(θ − identity)² to Σ w·loss; their strengths refer to W and b themselves, and are
    given as a `Strength` of Σw, since some depend on the number of rows. ``tuned`` says that
    ``inner`` was fitted to the rows: every fold must then find its own.
    """

    def __init__(
        self,
        read: RowReading,
        *,
        full: bool,
        smoothing: float,
        inner: float | None = None,
        tuned: bool = False,
    ) -> None:
        self.read, self.full, self.smoothing = read, full, smoothing
        self.inner, self.tuned = inner, tuned
        self.k, self.total = read.matrix.n_classes, read.matrix.total
        self.size = BlockSums(read.source(inner=inner)).spread()
        self.source = read.source(inner=inner, size=self.size)
        self.units = np.ones(self.shape)
        self.units[:, :-1] = self.size
        self.identity = self._scaled(1.0)
        #: the θ that returns the scores' own distributions
        self.unchanged = self._scaled(1.0 / (1.0 if inner is None else inner))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of θ = [W, b]: (k, k + 1), or (k, 2) where W is diagonal."""
        return (self.k, self.k + 1 if self.full else 2)

    @property
    def is_small(self) -> bool:
        """Whether the fit forms Hessians. Only then is its strength chosen on rows held out."""
        return forms_hessian(self.k * self.shape[1], full=self.full)

    @property
    def budget(self) -> int:
        """The largest number of rows in all five folds. It is lower for more parameters."""
        size = self.k * self.shape[1]
        work = DENSE_WORK // size**2 if self.is_small else SPARSE_WORK // size
        return min(MOST_ROWS, work)

    def _scaled(self, factor: float) -> Array:
        theta = np.zeros(self.shape)
        diagonal = (np.arange(self.k), np.arange(self.k) if self.full else 0)
        theta[diagonal] = factor * self.size
        return theta

    def strength(self, *, diagonal: float, off_diagonal: float, intercept: float) -> Array:
        """The strength of the ridge on each parameter."""
        strength = np.full(self.shape, off_diagonal)
        strength[:, -1] = intercept
        strength[np.arange(self.k), np.arange(self.k) if self.full else 0] = diagonal
        return strength

    def problem(self, strength: Array, source: Source, total: float) -> SoftmaxProblem:
        ridge = strength / self.units**2 + RIDGE * total
        return SoftmaxProblem(source, ridge, self.identity, self.smoothing, total)

    def fit(self, strength: Strength, start: Array | None = None) -> SoftmaxFit:
        """The fit of least objective. It begins at the best of three: the identity, the scores as
        they are, and ``start`` (by default a temperature)."""
        problem = self.problem(strength(self.total), self.source, self.total)
        if self.tuned and start is None:  # the identity is the best temperature
            return fit_softmax(problem, self.identity)
        warm = self.best_temperature(self.source) if start is None else start
        starts = [self.identity, self.unchanged, warm]
        return fit_softmax(
            problem, min(starts, key=lambda theta: softmax_objective(problem, theta))
        )

    def best_temperature(self, source: Source) -> Array:
        """The θ of the best temperature. Without rows, that of the identity."""
        if not any(len(x) for x, _, _ in source()):
            return self.identity
        factor = fit_temperature(BlockSums(source), smoothing=self.smoothing)
        return self._scaled(factor / self.size)

    @cached_property
    def subsample(self) -> AffineFit:
        """The same fit on a sample of the rows that is small enough for five folds."""
        matrix = self.read.matrix
        step = -(-len(matrix) // max(self.budget, 1))
        if step == 1:
            return self
        some = replace(self.read, matrix=matrix.take(np.sort(rows_by_score(matrix)[::step])))
        return AffineFit(
            some, full=self.full, smoothing=self.smoothing, inner=self.inner, tuned=self.tuned
        )

    @property
    def judge(self) -> AffineFit:
        """The fit whose folds judge this one: that on the sample, or this fit itself if it has many
        parameters, which need all rows."""
        small = min(len(self.read.matrix), MOST_ROWS) <= self.budget
        return self.subsample if small else self

    @cached_property
    def held(self) -> HeldOutBlocks:
        """The folds of this fit's rows."""
        return HeldOutBlocks(self)

    def judged(self, strength: Strength, theta: Array) -> Judged:
        """The folds that judge the fit, and a trial of this strength on them; fits begin at θ."""
        held = self.judge.held
        start = theta / self.units * held.family.units
        return held, held.try_fit(strength, [start] * held.folds)

    def map(self, theta: Array) -> Softmax:
        """The map with the parameters θ."""
        own = theta / self.units
        matrix = own[:, :-1] if self.full else own[:, 0]
        return self.read.map(matrix, own[:, -1], self.inner)

    @property
    def temperature(self) -> float:
        """The factor by which the best temperature multiplies the scores."""
        inner = 1.0 if self.inner is None else self.inner
        return float(self.best_temperature(self.source)[0, 0] / self.size * inner)


# --- What such fits gain on rows held out ---------------------------------------------------------


class Fold(NamedTuple):
    """The part of the rows that a fold learns from: number of the fold, blocks of rows, weight."""

    number: int
    source: Source
    total: float


class FoldFit(NamedTuple):
    """A fit to a fold's rows: a function from blocks held out to the losses of their rows.

    With a ``factor``, features are read at a temperature of the fold's own.
    """

    family: AffineFit
    theta: Array
    factor: float | None = None

    def __call__(self, source: Source) -> Array:
        losses = [
            softmax_row_losses(x, y, self.theta, self.family.full)
            for x, y, _ in self.read(source)()
        ]
        return np.concatenate(losses)

    def read(self, source: Source) -> Source:
        """The features for this fit. With a ``factor`` they are ln softmax(factor·x), in units of
        the spread."""
        if (factor := self.factor) is None:
            return source

        def blocks() -> Iterator[tuple[Array, Index, Array]]:
            for x, codes, w in source():
                yield log_shares(factor * x) / self.family.size, codes, w

        return blocks


class HeldOutBlocks(HeldOut):
    """Blocks of features that are held out, fold after fold, for fits of one family.

    There are five folds, or a single one that holds out at most a fifth of the rows, where five
    fits would take too long. Folds are dealt in the order of the scores and not at random. So the
    same rows give the same fit in any order, without a seed; and shares of the classes differ from
    fold to fold as chance has it (see `deal_by_scores`), as this family fits such shares.

    Features never become probabilities, since the rows of many classes are many numbers: a `Trial`
    holds the log losses only, and for predictions the probability of each row's own class.
    """

    def __init__(self, family: AffineFit) -> None:
        self.family, matrix = family, family.read.matrix
        several = len(matrix) <= family.budget
        count = FOLDS if several else max(FOLDS, -(-len(matrix) // MOST_HELD))
        fold = deal_by_scores(matrix, count)

        def part(j: int, held: bool) -> Source:
            def blocks() -> Iterator[tuple[Array, Index, Array]]:
                start = 0
                for x, codes, w in family.source():
                    kept = np.flatnonzero((fold[start : start + len(x)] == j) == held)
                    start += len(x)
                    at = ops_of(x).beside(kept, x)
                    yield x[at], codes[at], w[at]

            if matrix.size > KEPT:
                return blocks
            made = list(blocks())
            return lambda: iter(made)

        sums = np.bincount(fold, matrix.weight, minlength=count)
        self._parts = [
            (Fold(j, part(j, False), float(np.delete(sums, j).sum())), part(j, True))
            for j in range(FOLDS if several else 1)
        ]

    @property
    def folds(self) -> int:
        return len(self._parts)

    def parts(self) -> list[tuple[Fold, Source]]:
        return self._parts

    @cached_property
    def sample(self) -> Sample:
        weight = [ops_of(w).host(w) for _, held in self._parts for _, _, w in held()]
        every = np.concatenate(weight)
        return Sample(every, every**2)

    def trial(self, p: NDArray[Any], *, ranks: bool = False) -> Trial:
        own = np.exp(-p)
        return Trial(own, p, np.full(len(p), np.nan), certain=False)

    def try_fit(self, strength: Strength, starts: list[Array]) -> Trial:
        """The trial of fits of one strength to each fold, each from its own θ; ``maps`` are
        `FoldFit` values."""
        family = self.family

        def fit(fold: Fold) -> FoldFit:
            factor = float(self.temperatures[fold.number][0, 0]) if family.tuned else None
            made = FoldFit(family, family.identity, factor)
            if not fold.total:
                return made
            problem = family.problem(strength(fold.total), made.read(fold.source), fold.total)
            return made._replace(theta=fit_softmax(problem, starts[fold.number]).theta)

        return try_all({"fit": fit}, self, keep_maps=True)["fit"]

    @cached_property
    def temperatures(self) -> list[Array]:
        """The θ of the best temperature of each fold."""
        return [self.family.best_temperature(fold.source) for fold, _ in self._parts]

    @cached_property
    def unchanged(self) -> Trial:
        """The trial of the scores as they are."""
        as_it_is = FoldFit(self.family, self.family.unchanged)
        return try_all({"identity": lambda fold: as_it_is}, self)["identity"]

    def choice(self, trial: Trial) -> str:
        """The name of what is kept: "fit", "temperature" or "identity".

        The better of the first two is kept if it gains more over the scores than the standard error
        of that gain.
        """

        def tempered(fold: Fold) -> FoldFit:
            return FoldFit(self.family, self.temperatures[fold.number])

        trials = {**try_all({"temperature": tempered}, self), "fit": trial}
        best = min(trials, key=lambda name: self.sample.mean(trials[name].log_loss))
        both = {"identity": self.unchanged, best: trials[best]}
        return choose(both, self.sample, errors=ERRORS_AHEAD_OF_CLASSES)[0]


def try_strengths(
    held: HeldOutBlocks, strength: Callable[[float], Strength]
) -> tuple[dict[float, float], Trial]:
    """The log loss on rows held out for each strength that is tried, and the `Trial` of the best.

    First decades, from strong to weak, until two in a row are worse than the best; then the half
    decades beside the best, within their range. Each fit starts where the one before it ended.
    """
    losses: dict[float, float] = {}
    trials: dict[float, Trial] = {}

    def best() -> float:
        return min(losses, key=losses.__getitem__)

    def attempt(value: float, starts: list[Array]) -> None:
        trials[value] = held.try_fit(strength(value), starts)
        losses[value] = held.sample.mean(trials[value].log_loss)

    starts = [held.family.identity] * FOLDS
    for value in DECADES:
        attempt(value, starts)
        starts = [one.theta for one in trials[value].maps]
        if list(losses).index(best()) < len(losses) - 2:
            break
    decade = best()
    for value in (decade * 10**0.5, decade / 10**0.5):
        if min(DECADES) < value < max(DECADES):
            attempt(value, [one.theta for one in trials[decade].maps])
    return losses, trials[best()]
