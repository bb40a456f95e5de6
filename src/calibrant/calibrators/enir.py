"""An ensemble of near-isotonic regressions: maps that rise, and maps that fall here and there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.frozen import Frozen, own
from calibrant.data.isotonic_blocks import SMOOTHING
from calibrant.data.score_table import ScoreTable
from calibrant.errors import InputError, ParameterError
from calibrant.estimators.base import WEIGHTS, Calibrator
from calibrant.estimators.limits import Limit, OneOf
from calibrant.kernels import path_scores
from calibrant.kernels.model_weights import CRITERIA, SELECT_ENIR, shares
from calibrant.kernels.near_isotonic import Tree, merge_path, pool_equal
from calibrant.kernels.path_scores import PathPart, average_leaves, part_that_matters
from calibrant.maps import Map, Piecewise
from calibrant.maps.chain import after_sigmoid
from calibrant.maps.piecewise import flat_runs
from calibrant.paper_variants.enir import authors_average

Index = NDArray[np.signedinteger[Any]]
Criterion = Callable[[Any, Any], Any]

#: models whose criterion is this much (and 2 ln of their number) above the least have, all
#: together, a weight below e⁻⁴⁰
SLACK = 80.0


@dataclass(frozen=True, eq=False, repr=False)
class NearIsotonicPath(Frozen):
    """The near-isotonic fits of a table for every λ: made by `near_isotonic_path`.

    Parameters
    ----------
    start, end : float
        The λ between which the path is known: 0 and infinity, except for the path of an ENIR.
    lambdas : array of shape (T,)
        The breakpoints λ > 0, ascending, at which neighbouring bins meet; the last fit is the
        isotonic one. A single 0 where there are none (the data are isotonic already).
    df : array of shape (T,)
        The number of bins at each breakpoint.
    first, positive, weight, direction : arrays of shape (m,)
        All bins of all fits: the index of their first score, their positives S, their weight W,
        and d ∈ {−1, 0, 1}. The value of a bin is (S + λd)/W.
    birth, death, parent : arrays of shape (m,)
        Bin i exists in the fits birth[i] ≤ t < death[i] (a birth of −1: from the start), and then
        becomes a part of bin parent[i] (−1: of none).
    total, size : float, int
        The total weight N, and the number D of distinct scores.

    Notes
    -----
    Bins never change, they only join, so that all fits together take O(D) memory.
    `log_likelihood` and `bic` are computed when they are asked for.
    """

    start: float
    end: float
    lambdas: Array
    df: Index
    first: Index
    positive: Array
    weight: Array
    direction: NDArray[np.int8]
    birth: Index
    death: Index
    parent: Index
    total: float
    size: int

    def at(self, lambda_: float) -> Array:
        """The probabilities at the distinct scores for any λ, exactly, also between breakpoints."""
        number = isinstance(lambda_, (int, float, np.number)) and not isinstance(lambda_, bool)
        if not number or not lambda_ >= 0.0:
            raise InputError(f"lambda_ must be a number of at least 0, but {lambda_!r} came.")
        if not self.start <= lambda_ <= self.end:
            raise InputError(
                f"lambda_ must be in [{self.start:g}, {self.end:g}], the part of the path that is "
                f"known here, but {lambda_:g} came. near_isotonic_path(table) gives the whole path."
            )
        t = int(np.searchsorted(self.lambdas, lambda_, side="right")) - 1
        alive = np.flatnonzero((self.birth <= t) & (t < self.death))
        alive = alive[np.argsort(self.first[alive])]
        moved = float(lambda_) if lambda_ < np.inf else 0.0  # in the end no bin moves
        value = (self.positive[alive] + moved * self.direction[alive]) / self.weight[alive]
        length = np.diff(np.append(self.first[alive], self.size))
        return np.repeat(np.clip(value, 0.0, 1.0), length)

    @functools.cached_property
    def log_likelihood(self) -> Array:
        """The Bernoulli log-likelihood of the fit at each breakpoint."""
        low, high = (np.maximum(end, 0).astype(np.intp) for end in (self.birth, self.death))
        bins = self.positive, self.weight, self.direction
        return own(path_scores.log_likelihoods(*bins, low, high, self.lambdas))

    @functools.cached_property
    def bic(self) -> Array:
        """−2 log-likelihood + df·ln N at each breakpoint."""
        return own(CRITERIA["bic"](self.log_likelihood, self.df.astype(float), self.total))

    def __len__(self) -> int:
        """The number T of breakpoints."""
        return len(self.lambdas)

    def __repr__(self) -> str:
        plural = "s" if len(self) != 1 else ""
        return (
            f"NearIsotonicPath({len(self)} fit{plural} of {self.size} scores, λ from "
            f"{self.lambdas[0]:.4g} to {self.lambdas[-1]:.4g}, {self.df[0]} to {self.df[-1]} bins)"
        )


def near_isotonic_path(table: ScoreTable) -> NearIsotonicPath:
    """All near-isotonic regressions of a table, from the data themselves to the isotonic fit.

    Parameters
    ----------
    table : ScoreTable
        What to fit. The result has the fit ``at`` any λ, and the BIC at each breakpoint.

    Notes
    -----
    The fit at λ minimises ½Σw(p − z)² + λΣ(p_i − p_{i+1})₊, with z the rate and w the weight at
    each distinct score: only falls are penalised. The fit is piecewise linear in λ, and bins that
    have met never part again, so that all fits together are one tree of merges. O(D log D) time,
    O(D) memory. Ties are never split. λ is in units of the table's weights. Breakpoints closer than
    1e-12 (relative) are one. Weights that span ten decades lose ten digits.

    References
    ----------
    .. [1] R. Tibshirani, H. Höfling, R. Tibshirani, "Nearly-isotonic regression", 2011,
       doi:10.1198/TECH.2010.10111.

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> path = near_isotonic_path(table)
    >>> path.lambdas.tolist(), path.df.tolist()
    ([0.5], [3])
    >>> path.at(0.2).tolist()
    [0.0, 0.8, 0.2, 1.0]
    """
    if not isinstance(table, ScoreTable):
        raise InputError(f"table must be a ScoreTable, but {type(table).__name__} came.")
    if not table:
        raise InputError("table must hold at least one score, but it is empty.")
    cells = _ScaledWeights.of(table)
    return cells.path(merge_path(pool_equal(cells.negative, cells.positive)))


class _ScaledWeights(NamedTuple):
    """The table's weights, in units in which their products cannot overflow."""

    negative: Array
    positive: Array
    unit: float
    total: float

    @classmethod
    def of(cls, table: ScoreTable) -> _ScaledWeights:
        n0, n1, total = table.negative, table.positive, table.total
        if 1e-100 < total < 1e100:
            return cls(n0, n1, 1.0, total)
        power = float(np.floor(np.log2(total)))
        unit = 2.0 ** (power - 450.0 if total > 1.0 else power)
        return cls(n0 / unit, n1 / unit, unit, total)

    def path(self, tree: Tree) -> NearIsotonicPath:
        if self.unit != 1.0:
            names = ("start", "end", "lambdas", "s", "w")
            tree = tree._replace(**{name: getattr(tree, name) * self.unit for name in names})
        columns: list[Any] = [own(column) for column in tree[2:]]
        values = [*tree[:2], *columns, self.total, len(self.negative)]
        return NearIsotonicPath(*values)


class _Preset(NamedTuple):
    """What "auto" means in each variant."""

    interpolation: str
    smoothing: str
    penalty: str


PRESETS = {
    "default": _Preset("linear", "jeffreys", "bic"),
    "paper": _Preset("step", "none", "bic"),
    "authors": _Preset("auto", "auto", "authors"),
}


class ENIR(Calibrator):
    """An average over near-isotonic regressions of all strengths, weighted by their BIC.

    Parameters
    ----------
    variant : {"default", "paper", "authors"}, default="default"
        What ``"auto"`` means below. ``"default"``: the best of our study, with Jeffreys' smoothing
        of bins (so that 0 and 1 are never returned) and lines between scores. ``"paper"``: the text
        [1]_ to the letter, with steps of raw bin values (end bins may be 0 or 1). ``"authors"``:
        what the authors' program computes; see docs/understand/methods/near_isotonic.md.
    criterion : {"bic", "aic", "aicc"}, default="bic"
        What weighs the models: ∝ exp(−½·criterion).
    penalty : {"auto", "bic", "authors"}, default="auto"
        With BIC: ln N for each bin, or ln N + ln 2π as the authors' program has it.
    models : {"all", "elbow", "best"}, default="all"
        Average over all models, over those ranked before the weights fall off, or take the best.
    interpolation : {"auto", "step", "linear"}, default="auto"
        Steps cut halfway between scores, or straight lines between the averages at the scores.
    smoothing : {"auto", "none", "laplace", "jeffreys"}, default="auto"
        Adds nothing, 1 or ½ of each class to every bin of every model, after it is scored.
    weights, pos_label, classes : see `Calibrator`

    Attributes
    ----------
    path_ : NearIsotonicPath
        The models; where they are many, only the part of the path that can matter.
        `near_isotonic_path` gives all.
    weights_ : ndarray of shape (T,)
        The weight of each of ``path_.lambdas``, of sum 1; 0 for those left out.
    n_models_scored_ : int
        The number of models scored. All others together have a weight below e⁻⁴⁰.

    Notes
    -----
    A model is the near-isotonic fit at a breakpoint λ > 0 of the path. With df its number of bins
    and N the effective number of rows, BIC = −2 ln L + df·ln N. Without breakpoints the isotonic
    fit is the only model. ln L and df both fall along the path, which bounds the BIC between two λ:
    only the part of the path that can matter is followed, and only the models that can matter are
    scored. Sums over the tree of merges give their average. O(N log N) for the table, then O(D) and
    little more, in O(D) memory. The value of a smoothed bin is (S + λd + a)/(W + 2a). AICc leaves
    out models with df ≥ N − 1; if these are all, it takes the last one. The map need not be
    monotone. Ties are never split.

    References
    ----------
    .. [1] M. Pakdaman Naeini, G. Cooper, "Binary classifier calibration using an ensemble of
       piecewise linear regression models", 2018, doi:10.1007/s10115-017-1133-2.
    .. [2] R. Tibshirani, H. Höfling, R. Tibshirani, "Nearly-isotonic regression", 2011,
       doi:10.1198/TECH.2010.10111.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(2000)
    >>> y = rng.random(2000) < 0.2 + 2.4 * (s - 0.5) ** 2  # falls, then rises
    >>> c = ENIR().fit(s, y)
    >>> c.calibrate([0.1, 0.5, 0.9]).round(2).tolist()
    [0.57, 0.24, 0.62]
    >>> c.n_models_scored_ < len(near_isotonic_path(ScoreTable.from_arrays(s, y)))
    True
    """

    events_needed: ClassVar[int] = 20
    _limits: ClassVar[Mapping[str, tuple[Limit, ...]]] = {
        "variant": (OneOf(tuple(PRESETS)),),
        "criterion": (OneOf(tuple(CRITERIA)),),
        "penalty": (OneOf(("auto", "bic", "authors")),),
        "models": (OneOf(("all", "elbow", "best")),),
        "interpolation": (OneOf(("auto", "step", "linear")),),
        "smoothing": (OneOf(("auto", *SMOOTHING)),),
        "weights": (WEIGHTS,),
    }

    def __init__(
        self,
        *,
        variant: str = "default",
        criterion: str = "bic",
        penalty: str = "auto",
        models: str = "all",
        interpolation: str = "auto",
        smoothing: str = "auto",
        weights: str = "importance",
        pos_label: Any = None,
        classes: Any = None,
    ) -> None:
        self.variant = variant
        self.criterion = criterion
        self.penalty = penalty
        self.models = models
        self.interpolation = interpolation
        self.smoothing = smoothing
        self.weights = weights
        self.pos_label = pos_label
        self.classes = classes

    def _fit(self, table: ScoreTable) -> Map:
        preset = PRESETS[self.variant]
        if self.variant == "authors":
            return self._fit_authors(table)
        cells = _ScaledWeights.of(table)
        criterion = self._criterion(table.total, cells.unit)
        bins = pool_equal(cells.negative, cells.positive)
        slack, part = SLACK + 2.0 * float(np.log(len(bins.s))), PathPart.whole(bins)
        if not criterion(0.0, 2) > criterion(0.0, 1):
            slack = np.inf  # more bins cost nothing, so that nothing bounds a model from below
        elif self.models != "elbow":  # the elbow depends on the number of models
            part = part_that_matters(bins, criterion, slack)
        tree = merge_path(part.begin, part.end)
        self.path_ = cells.path(tree)
        scores = path_scores.score_models(tree, criterion, slack, part)
        self.weights_ = self._weights(scores)
        self.n_models_scored_ = int(np.isfinite(scores).sum())
        pseudo = SMOOTHING[preset.smoothing if self.smoothing == "auto" else self.smoothing]
        values = average_leaves(tree, self.weights_, pseudo / cells.unit)[: len(part.begin.s)]
        drawn = preset.interpolation if self.interpolation == "auto" else self.interpolation
        return KINDS[drawn](table, part.begin.first, np.clip(values, 0.0, 1.0))

    def _criterion(self, total: float, unit: float = 1.0) -> Criterion:
        """The criterion as a function of the log-likelihood (in units of weight) and df."""
        penalty = PRESETS[self.variant].penalty if self.penalty == "auto" else self.penalty
        more = np.log(2.0 * np.pi) if (penalty, self.criterion) == ("authors", "bic") else 0.0
        score = CRITERIA[self.criterion]
        return lambda log, df: score(np.multiply(log, unit), np.asarray(df), total) + more * df

    def _weights(self, scores: Array) -> Array:
        if not np.isfinite(scores).any():  # every model has too many bins for AICc
            scores = np.full(len(scores), np.inf)
            scores[-1] = 0.0
        return SELECT_ENIR[self.models](shares(scores))

    def _fit_authors(self, table: ScoreTable) -> Map:
        for name in ("interpolation", "smoothing"):
            if getattr(self, name) != "auto":
                raise ParameterError(
                    f"{name} of ENIR must be 'auto' with variant='authors', which has its own, but "
                    f"{getattr(self, name)!r} came."
                )
        link = not table.looks_like_probabilities
        if link:  # σ may make far scores equal
            table = table.through_sigmoid()
        self.path_ = near_isotonic_path(table)
        criterion = self._criterion(table.total)
        found = authors_average(
            table, self.path_.lambdas, lambda logs, df: self._weights(criterion(logs, df))
        )
        self.weights_, self.n_models_scored_ = found.weights, found.n_models
        line = _lines(table, np.arange(len(table)), found.values)
        return after_sigmoid(line) if link else line


def _steps(table: ScoreTable, first: Index, values: Array) -> Map:
    """Steps halfway between scores, for runs of scores that begin at ``first``."""
    new = np.flatnonzero(values[1:] != values[:-1]) + 1
    return Piecewise.step(table.cuts(first[new] - 1), values[np.append(0, new)])


def _lines(table: ScoreTable, first: Index, values: Array) -> Map:
    """Straight lines between scores; knots inside a flat run are left out."""
    new = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    return flat_runs(table.scores, first[new], values[new])


#: how the averages at the scores become a map, by name
KINDS: dict[str, Callable[[ScoreTable, Index, Array], Map]] = {"step": _steps, "linear": _lines}
