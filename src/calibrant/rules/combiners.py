"""Rules with a map for each column, and how probabilities of columns become those of classes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.array_types import Array, Flags, Index
from calibrant.errors import InputError
from calibrant.rules.base import Map, VectorMap, maps_field, numbers_field, word_field
from calibrant.rules.plan.nodes import Combined, Row, RowAxis

#: how class probabilities are found where each column singles out a class, and where not
RULES = {
    "normalize": ("normalized", "normalized"),
    "least_squares": ("projected", "least_squares"),
    "coupling": ("balanced", "coupled"),
    "pairwise": ("projected", "least_squares"),
}
#: numbers that a combiner's table of products of columns may hold (half a gigabyte)
MOST_PRODUCTS = 1 << 26


@dataclass(frozen=True, eq=False)
class Coded(VectorMap):
    """One map per column of a code matrix, combined into class probabilities.

    Parameters
    ----------
    code : array of shape (k, columns)
        Entries −1, 0, 1: which classes are the negatives and the positives of each column.
    maps : tuple of maps, one per column
    combine : {"normalize", "least_squares", "coupling", "pairwise"}
        ``"normalize"``: p ∝ r, for one-against-all codes; a row whose r are all zero gets the
        uniform distribution. ``"pairwise"`` is for all pairs, the other two for any code. They are
        the functions of these names in ``calibrant.multiclass``.
    weights : array of shape (columns,), optional
        How much each column counts in least squares and coupling; all the same by default.

    Notes
    -----
    Format version 1 had no weights.

    Examples
    --------
    >>> from calibrant.maps import Identity
    >>> Coded.one_vs_rest((Identity(), Identity()))([[0.2, 0.2], [0.0, 0.0]]).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    >>> pairs = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    >>> Coded(pairs, (Identity(),) * 3, "coupling")([[0.75, 0.6, 1 / 3]]).round(3).tolist()
    [[0.5, 0.167, 0.333]]
    """

    kind: ClassVar[str] = "coded"
    version: ClassVar[int] = 2

    code: Array = field(metadata=numbers_field("code", 2))
    maps: tuple[Map, ...] = field(metadata=maps_field("the maps of a coded map"))
    combine: str = field(default="normalize", metadata=word_field("combine", *RULES))
    weights: Array | None = field(default=None, metadata=numbers_field("weights"))

    def _check(self) -> None:
        """Refuse codes, weights and combiners that do not go together."""
        k, columns = self.code.shape
        if not np.isin(self.code, (-1.0, 0.0, 1.0)).all():
            raise InputError("a code matrix must hold −1, 0 and 1 only.")
        if columns != len(self.maps) or k < 2 or columns < 1:
            raise InputError(
                f"a code of {k} classes and {columns} columns cannot go with {len(self.maps)} maps."
            )
        n = np.ones(columns) if self.weights is None else self.weights
        if len(n) != columns or (n < 0).any() or not n.any():
            raise InputError(
                f"weights must be {columns} numbers of at least 0, one per column and not all 0, "
                f"but {n.tolist()[:8]} came."
            )
        if self.combine == "normalize" and singled_out(self.code) is None:
            raise InputError(
                "normalize needs a one-against-all code: 1 once in every row and column, else −1."
            )
        if not ((self.code > 0).any(axis=0) & (self.code < 0).any(axis=0)).all():
            raise InputError("every column of a code matrix must hold both 1 and −1.")
        if self.combine == "pairwise" and not is_all_pairs(self.code):
            raise InputError("pairwise needs a code of all pairs of classes.")
        if self.combine != "normalize":
            _check_solvable(self.code, self.weights)

    @classmethod
    def one_vs_rest(cls, maps: tuple[Map, ...]) -> Coded:
        """The map that divides the probability of each class against all others by their sum."""
        return cls(2.0 * np.eye(len(maps)) - 1.0, maps)

    @property
    def n_columns(self) -> int:
        return len(self.maps)

    @property
    def n_classes(self) -> int:
        return len(self.code)

    def lowered_rows(self, axis: RowAxis) -> Row:
        """The node that combines the columns of positive weight into the classes that these columns
        know.

        As in `combine_rows`. If each column singles out a class, columns come in the order of the
        classes.
        """
        code, n = self.code, np.ones(self.n_columns)
        if self.weights is not None and self.combine != "normalize":
            n = self.weights / self.weights.max()
        used = np.flatnonzero(columns_that_count(n))
        known = (code[:, used] != 0).any(axis=1)
        code = code[known][:, used]
        order = singled_out(code)
        rule = RULES[self.combine][order is None]
        if rule != "normalized" and not axis.target.iterates:
            raise InputError(
                f"a calibrator of several classes that combines by {self.combine!r} cannot be "
                f"written as {axis.target.name}: each row's distribution is found by iteration, "
                f"which {axis.target.name} has no words for. Fit it with "
                'code="one_vs_rest" and combine="normalize", or apply it in memory: predict_proba.'
            )
        if order is not None:
            code, used = code[:, order], used[order]
        r = axis.each(
            [(j, self.maps[j].lowered) for j in used.tolist()],
            among=singled_out(self.code) is not None,
        )
        solve = functools.partial(COMBINERS[self.combine], code=code, weights=n[used])
        return Combined(r, rule, code, n[used], known, solve)

    def shifted(self, factor: Array) -> Map:
        """The map with each column scaled by the factor of its class, divided by the largest
        factor. For p ∝ r only."""
        order = singled_out(self.code)
        if self.combine != "normalize" or order is None:
            raise InputError(
                f"a coded map that combines by {self.combine!r} cannot be moved to other rates: "
                "its columns are weighed against each other before there are classes. Adjust what "
                "it gives instead: adjust_prior(calibrator.predict_proba(scores), ...); or fit "
                'with code="one_vs_rest" and combine="normalize".'
            )
        share = np.empty(len(order))
        share[order] = factor / factor.max()
        pairs = zip(self.maps, share.tolist(), strict=True)
        return replace(self, maps=tuple(member.scaled(own) for member, own in pairs))

    def __call__(self, scores: ArrayLike) -> Array:
        r = each_column(self.maps, self.rows_of(scores))
        return combine_rows(self.combine, r, self.code, self.weights)


def _check_solvable(code: Array, weights: Array | None) -> None:
    """Refuse codes whose columns do not link all classes, or that need too much memory."""
    used = code != 0
    unknown = np.flatnonzero(~used.any(axis=1))
    if len(unknown):
        raise InputError(
            "every class of a code matrix must be in some column, but in none are classes "
            f"{first_few(unknown)}."
        )
    check_linked(code if weights is None else code[:, columns_that_count(weights)])
    k, columns = code.shape
    sizes = used.sum(axis=0, dtype=np.float64)
    products, table = float((sizes * (sizes + 1.0)).sum()) / 2.0, k * (k + 1.0) / 2.0 * columns
    kept = table if products > DENSE * table else products
    if singled_out(code) is None and kept > MOST_PRODUCTS:
        raise InputError(
            f"a code of {k} classes and {columns} columns is too large to be combined this way. "
            "Use a one-against-all code, all pairs, or columns of fewer classes."
        )


@dataclass(frozen=True, eq=False)
class Columns(VectorMap):
    """Map j of column j, each a probability of its own: rows need not sum to one.

    Parameters
    ----------
    maps : tuple of maps, one per column

    Examples
    --------
    >>> from calibrant.maps import Identity
    >>> Columns((Identity(), Identity()))([[0.9, 0.8]]).tolist()
    [[0.9, 0.8]]
    """

    kind: ClassVar[str] = "columns"
    distribution: ClassVar[bool] = False

    maps: tuple[Map, ...] = field(metadata=maps_field("columns"))

    def _check(self) -> None:
        if not self.maps:
            raise InputError("columns must be one or more maps of one score, but none came.")

    @property
    def n_columns(self) -> int:
        return len(self.maps)

    def lowered_rows(self, axis: RowAxis) -> Row:
        return axis.each([(j, member.lowered) for j, member in enumerate(self.maps)])

    def shifted(self, factor: Array) -> Map:
        pairs = zip(self.maps, factor, strict=True)
        return Columns(tuple(member.shifted(own) for member, own in pairs))

    def __call__(self, scores: ArrayLike) -> Array:
        return each_column(self.maps, self.rows_of(scores))


def each_column(members: tuple[Map, ...], rows: NDArray[Any]) -> Array:
    """The value of map j at column j, for each row."""
    values = np.asarray(rows, dtype=np.float64)
    return np.column_stack([member(values[:, j]) for j, member in enumerate(members)])


# --- Codes: which classes are the negatives and the positives of each column ----------------------


def singled_out(code: Array) -> Index | None:
    """For each class its column, if the code opposes each class to all others (in any order); else
    None.

    >>> singled_out(np.array([[-1.0, 1.0], [1.0, -1.0]])).tolist()
    [1, 0]
    """
    k, columns = code.shape
    positive = code > 0
    one_each = k == columns and (positive.sum(axis=0) == 1).all() and (code != 0).all()
    if not one_each or not (positive.sum(axis=1) == 1).all():
        return None
    return np.asarray(np.argmax(positive, axis=1))


def is_pairs(code: Array) -> bool:
    """Whether every column opposes a single class to another single class."""
    return bool(((code > 0).sum(axis=0) == 1).all() and ((code < 0).sum(axis=0) == 1).all())


def is_all_pairs(code: Array) -> bool:
    """Whether the columns are single pairs, and every pair of classes is among them."""
    k, columns = code.shape
    if columns < k * (k - 1) // 2 or not is_pairs(code):
        return False
    i, j = np.argmax(code, axis=0), np.argmin(code, axis=0)
    met = np.eye(len(code), dtype=bool)
    met[i, j] = met[j, i] = True
    return bool(met.all())


def linked_classes(code: NDArray[np.number]) -> Flags:
    """Flags of the classes that columns link to the first one, directly or through other classes.

    >>> linked_classes(np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])).tolist()
    [True, True, False, False]
    """
    used = code != 0
    reached = np.zeros(len(code), dtype=bool)
    reached[0] = True
    while True:
        wider = used[:, used[reached].any(axis=0)].any(axis=1) | reached
        if (wider == reached).all():
            return reached
        reached = wider


def columns_that_count(weights: Array) -> Flags:
    """Flags of the columns whose weight is not negligible."""
    return np.asarray(weights / weights.max() > LIGHTEST)


def check_linked(code: Array) -> Flags:
    """Flags of the classes that are in some column. If columns do not link all of these, they are
    refused."""
    known = (code != 0).any(axis=1)
    classes, reached = np.flatnonzero(known), linked_classes(code[known])
    if not reached.all():
        raise InputError(
            "the columns of positive weight must link all classes that they know, but none "
            f"compares classes {first_few(classes[reached])} with {first_few(classes[~reached])}. "
            "Give weight to a column that does."
        )
    return np.asarray(known)


def first_few(index: Index) -> str:
    """The first few numbers as text, for an error."""
    shown = ", ".join(str(i) for i in index[:8].tolist())
    return shown + (", …" if len(index) > 8 else "")


# --- Combiners: the probabilities of columns as those of classes ----------------------------------


def combine_rows(name: str, r: Array, code: Array, weights: Array | None) -> Array:
    """Class probabilities by the combiner of that name. Columns of weight zero are left out.

    A class that is only in such columns gets no probability. Otherwise it would take all of it
    wherever the other columns contradict each other. Classes linked only by such columns are an
    InputError.
    """
    if weights is None or name == "normalize":
        return COMBINERS[name](r, code, np.ones(code.shape[1]))
    n, used = weights / weights.max(), columns_that_count(weights)
    if used.all():
        return COMBINERS[name](r, code, n)
    r, code, n = r[:, used], code[:, used], n[used]
    known = check_linked(code)
    p = np.zeros((len(r), len(code)))
    p[:, known] = COMBINERS[name](r, code[known], n)
    return p


def _normalize(r: Array, code: Array, weights: Array) -> Array:
    """Rows divided by their sum; all the same where that is zero."""
    order = singled_out(code)
    values = r if order is None else r[:, order]
    total = values.sum(axis=1, keepdims=True)
    p = values / np.where(total > 0, total, 1.0)
    return np.where(total > 0, p, 1.0 / values.shape[1])


def _least_squares(r: Array, code: Array, weights: Array) -> Array:
    """Class probabilities by least squares on the simplex."""
    order = singled_out(code)
    if order is not None:
        return _of_one_vs_rest(_project_on_simplex, r, order, weights)
    size = rows_to_combine(*code.shape)
    return _by_blocks(r, len(code), size, SimplexQuadratic(code, weights).solve)


def _project_on_simplex(r: Array, n: Array) -> Array:
    """The p that minimises Σ n_c(p_c − r_c)²: (r − τ/n)₊ with the τ at which it sums to one, by
    sorting."""
    inverse = 1.0 / n
    by_limit = np.argsort(-r / inverse, axis=0)
    ordered = np.take_along_axis(r, by_limit, axis=0)
    steps = inverse[by_limit, 0]
    tau = (np.cumsum(ordered, axis=0) - 1.0) / np.cumsum(steps, axis=0)
    inside = ordered > tau * steps
    last = len(r) - 1 - np.argmax(inside[::-1], axis=0)
    p = np.maximum(r - np.take_along_axis(tau, last[None], axis=0) * inverse, 0.0)
    return np.asarray(p / p.sum(axis=0))


def _of_one_vs_rest(
    solve: Callable[[Array, Array], Array], r: Array, order: Index, weights: Array
) -> Array:
    """The rows that ``solve`` gives, with columns brought into the order of the classes first."""
    own, size = weights[order][:, None], rows_to_combine(1, 2 * len(order))
    return _by_blocks(r, len(order), size, lambda block: solve(block[order], own))


def _by_blocks(r: Array, classes: int, size: int, solve: Callable[[Array], Array]) -> Array:
    """The rows that ``solve`` gives, computed block by block; a block has the shape (columns,
    rows)."""
    p = np.empty((len(r), classes))
    for start in range(0, len(r), size):
        rows = slice(start, start + size)
        p[rows] = solve(np.ascontiguousarray(r[rows].T)).T
    return p


# --- Coupling: the likelihood of the columns' probabilities ---------------------------------------


#: rounds of the coupling; rows still open after one entry are gathered for the next
ROUNDS = (8, 16, 32, 64, 128)
#: a row is done when its gradient per unit weight is below the first of these, and the next step is
#: shorter than the second, or lowers the objective per unit weight by less than the third; that
#: step is still taken if it lowers the objective
GRADIENT, MOVE, FALL = 1e-10, 1e-11, 1e-18
#: how far columns may be from what they ask for and still count as satisfied
AGREES = 4e-15
#: a column that weighs less, as a share of the heaviest, counts as absent
LIGHTEST = 1e-100
#: what is added to the diagonal, per unit weight
RIDGE = 1e-14
#: the lowest probability while iterating, and the least share of one that a round leaves
FLOOR, KEEP = 1e-60, 1e-3
#: a probability that no longer matters
TINY = 1e-15
#: parts of a step that are tried where the whole step raises the objective
SHORTER = (1 / 4, 1 / 16, 1 / 64)
#: the share of the uniform distribution in the start; less for pairs: their least squares are
#: positive
SHARE_PAIRS, SHARE = 1e-12, 1e-2


def _coupling(r: Array, code: Array, weights: Array) -> Array:
    """Class probabilities by coupling, which minimises a sum of Kullback–Leibler divergences."""
    order = singled_out(code)
    if order is not None:
        return _of_one_vs_rest(_couple_one_vs_rest, r, order, weights)
    likelihood, p = _Likelihood(code, weights), _least_squares(r, code, weights)
    size, left = rows_to_combine(*code.shape), np.arange(len(r))
    for at, rounds in enumerate(ROUNDS):
        later = []
        for begin in range(0, len(left), size):
            rows = left[begin : begin + size]
            block = np.ascontiguousarray(r[rows].T)
            begun = np.ascontiguousarray(p[rows].T)
            if at == 0:
                open_ = ~likelihood.fits_exactly(block, begun)
                rows, block = rows[open_], block[:, open_]
                begun = (1.0 - likelihood.share) * begun[:, open_] + likelihood.share / len(code)
            found, open_ = likelihood.descend(block, begun, rounds)
            p[rows] = found.T
            later.append(rows[open_])
        left = np.concatenate(later) if later else left
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _couple_one_vs_rest(r: Array, n: Array) -> Array:
    """Class probabilities by coupling, where each column is one class against all others.

    They are the p with n_c(p_c − r_c) = μ·p_c(1−p_c), for the μ at which Σp = 1. Each p_c rises
    with μ, so μ is found by Newton's method inside a bracket that only shrinks.
    """
    k, total = len(r), r.sum(axis=0)
    low = np.where(total > 1.0, -n.sum(), 0.0)
    high = np.where(total > 1.0, 0.0, n.max() * k / (k - 1.0))
    mu, result, left = np.zeros(r.shape[1]), np.empty(r.shape), np.arange(r.shape[1])
    for _ in range(120):
        p, root = _share_at(r, n, mu)
        excess = p.sum(axis=0) - 1.0
        result[:, left] = p
        open_ = (np.abs(excess) > 4e-16 * k) & (high - low > 1e-15 * np.abs(mu))
        if not open_.any():
            break
        low, high = np.where(excess < 0, mu, low), np.where(excess < 0, high, mu)
        slope = (p * (1.0 - p) / np.maximum(root, 1e-300)).sum(axis=0)
        new = mu - excess / np.maximum(slope, 1e-300)
        outside = ~((new > low) & (new < high))
        mu = np.where(outside, 0.5 * (low + high), new)
        left, r, mu, low, high = left[open_], r[:, open_], mu[open_], low[open_], high[open_]
    return np.asarray(result / result.sum(axis=0))


def _share_at(r: Array, n: Array, mu: Array) -> tuple[Array, Array]:
    """The root in [0, 1] of μp² + (n−μ)p − nr = 0, and the root of its discriminant."""
    q = n - mu
    gap = np.where(mu > 0, q * q + 4.0 * mu * n * r, (n + mu) ** 2 - 4.0 * mu * n * (1.0 - r))
    root = np.sqrt(gap)
    upper = (root - q) / np.where(q > 0, 1.0, 2.0 * mu)
    lower = 2.0 * n * r / np.where(q > 0, q + root, 1.0)
    return np.minimum(np.where(q > 0, lower, upper), 1.0), root


class _Likelihood:
    """F(p) = −Σ_b n_b[r_b ln A_b + (1−r_b) ln B_b − ln(A_b+B_b)] and its descent.

    A_b and B_b are the sums of p over the positives and negatives of column b. Write p∘(1+u) for a
    step; v = p∘∇F is the gradient in u. The matrix of Newton's method is D·∇²F·D + diag(v₊) with
    D = diag(p): the added diagonal makes convergence quadratic at the border too (Coleman and Li).
    For pairs it is the Hessian in ln p, a Laplacian. F does not change with the scale of p, and
    N·ppᵀ fixes it. Where the step would raise F, shorter ones are tried, and at last the
    multiplicative step p_c·[Σ n r/A + Σ n(1−r)/B]/[Σ n/(A+B)], which never raises it.
    """

    def __init__(self, code: Array, weights: Array) -> None:
        columns = code.T
        plus, minus = (columns > 0).astype(float), (columns < 0).astype(float)
        self.plus, self.minus, self.n = plus, minus, weights[:, None]
        self.plus_t, self.minus_t = plus.T.copy(), minus.T.copy()
        self.part_t, self.signs = self.plus_t + self.minus_t, self.plus_t - self.minus_t
        self.k, self.total = len(code), float(weights.sum())
        self.pairs, self.full = is_pairs(code), bool((code != 0).all())
        self.share = SHARE_PAIRS if self.pairs else SHARE
        if self.pairs:
            self.both = outer_pattern(columns, columns)
        else:
            self.own, self.other = outer_pattern(plus, plus), outer_pattern(minus, minus)
            self.both = outer_pattern(plus + minus, plus + minus)

    def sums(self, p: Array) -> tuple[Array, Array]:
        """Σp over the positive classes of each column, and over its negative ones: A and B."""
        return matrix_product(self.plus, p), matrix_product(self.minus, p)

    def fits_exactly(self, r: Array, p: Array) -> Flags:
        """Flags of the rows where every column gets exactly the r that it asks for, so that no p
        can do better."""
        a, b = self.sums(p)
        return np.asarray(np.abs((1.0 - r) * a - r * b).max(axis=0) <= AGREES)

    def value(self, r: Array, p: Array) -> Array:
        """The objective F of every row."""
        a, b = self.sums(p)
        s = a + b
        return np.asarray((self.n * (r * np.log(s / a) + (1.0 - r) * np.log(s / b))).sum(axis=0))

    def newton(self, r: Array, p: Array) -> tuple[Array, Array, Array]:
        """The gradient v, Newton's step u, and the factors of the multiplicative step."""
        a, b = self.sums(p)
        s = a + b
        i, j = np.tril_indices(self.k)
        if self.pairs:
            share = a / s
            v = matrix_product(self.signs, self.n * (share - r))
            curve = matrix_product(self.both, self.n * share * (b / s))
            curve += self.total * (p[i] * p[j])
            gain = matrix_product(self.plus_t, self.n * r) + matrix_product(
                self.minus_t, self.n * (1.0 - r)
            )
            return v, self._step(curve, v, RIDGE * self.total), _ratio(gain, gain + v)
        from_a, from_b = self.n * r / a, self.n * (1.0 - r) / b
        gain = matrix_product(self.plus_t, from_a) + matrix_product(self.minus_t, from_b)
        loss = matrix_product(self.part_t, self.n / s)
        v = p * (loss - gain)
        curve = matrix_product(self.own, from_a / a) + matrix_product(self.other, from_b / b)
        if not self.full:  # else it is just what fixes the scale
            curve += self.total - matrix_product(self.both, self.n / s**2)
        curve *= p[i] * p[j]
        small = np.maximum(v, 0.0) + RIDGE * self.total * (p * p + 1e-30)
        return v, self._step(curve, v, small), _ratio(gain, loss)

    def _step(self, curve: Array, v: Array, diagonal: Array | float) -> Array:
        """Newton's step u, by the lower triangles of the matrices."""
        matrices, each = symmetric_matrices(curve, self.k), np.arange(self.k)
        matrices[each, each] += diagonal
        factor_in_place(matrices)
        return solve_factored(matrices, -v)

    def descend(self, r: Array, p: Array, rounds: int) -> tuple[Array, Flags]:
        """The p after at most so many steps, and flags of the rows that have not converged."""
        result, left = p.copy(), np.arange(p.shape[1])
        before = self.value(r, p)
        for _ in range(rounds):
            v, u, factors = self.newton(r, p)
            done = self._converged(p, u, v)
            new = _reweighted(p, np.maximum(1.0 + u, KEEP))
            after = self.value(r, new)
            raised = ~(after <= before + 1e-14 * (self.total + before))
            stay = raised & done
            new[:, stay], after[stay] = p[:, stay], before[stay]
            raised &= ~done
            if raised.any():
                new[:, raised], after[raised] = self._shorter_steps(
                    r[:, raised], p[:, raised], u[:, raised], factors[:, raised]
                )
            result[:, left] = new
            if done.any():
                left, r, new, after = left[~done], r[:, ~done], new[:, ~done], after[~done]
            p, before = new, after
            if not len(left):
                break
        open_ = np.zeros(result.shape[1], dtype=bool)
        open_[left] = True
        return result, open_

    def _converged(self, p: Array, u: Array, v: Array) -> Flags:
        """Where the conditions of a minimum hold."""
        done = np.asarray(np.abs(p * u).max(axis=0) <= MOVE)
        if self.pairs:
            # of classes this small all that matters is that they stay small, and for pairs the
            # step shows whether they do
            v = np.where(p > TINY, v, 0.0)
        else:  # where the minimum is not unique, steps along it may be long: then the fall decides
            done |= np.abs((v * u).sum(axis=0)) <= FALL * self.total
        return np.asarray(done & (np.abs(v).max(axis=0) <= GRADIENT * self.total))

    def _shorter_steps(self, r: Array, p: Array, u: Array, factors: Array) -> tuple[Array, Array]:
        """The best of several shorter steps and the multiplicative one, which never raises F."""
        new = _reweighted(p, factors)
        after = self.value(r, new)
        inside = (1.0 - KEEP) / np.maximum(-u.min(axis=0), 1.0)
        width = np.ptp(u, axis=0)
        mild = np.log1p(width) / np.where(width > 0, width, 1.0)
        trials = [np.exp(np.clip(mild * u, -30.0, 30.0)), np.maximum(1.0 + inside * u, KEEP)]
        trials += [np.maximum(1.0 + t * u, KEEP) for t in SHORTER]
        for change in trials:
            trial = _reweighted(p, change)
            value = self.value(r, trial)
            better = value < after
            new, after = np.where(better, trial, new), np.where(better, value, after)
        return new, after


def _ratio(gain: Array, loss: Array) -> Array:
    """gain / loss; 1 for classes that no column knows."""
    return np.divide(gain, loss, out=np.ones_like(gain), where=loss > FLOOR)


def _reweighted(p: Array, change: Array) -> Array:
    """Shares multiplied by factors, of sum 1 again."""
    new = p * change
    return np.asarray(np.maximum(new / new.sum(axis=0), FLOOR))


#: by name; "pairwise" (Wu, Lin and Weng's second method) is least squares over all pairs
COMBINERS: dict[str, Callable[..., Array]] = {
    "normalize": _normalize,
    "least_squares": _least_squares,
    "coupling": _coupling,
    "pairwise": _least_squares,
}


# --- Many small quadratic problems on the simplex at once: the arithmetic under the combiners -----
# Rows lie along the last axis, so that every step is one operation on long contiguous vectors.


#: multiplications of one matrix product. Larger ones make BLAS start threads, which cost more than
#: they bring on matrices of this size
PRODUCT = 1 << 19
#: numbers that the temporaries of one block of rows may hold
BLOCK = 1 << 19
#: what is added to the diagonal, relative to the mean weight of columns; refinement undoes it
SIMPLEX_RIDGE = 1e-11
#: how far below zero a value or a gradient may lie and still count as zero
ZERO = 1e-13
#: a table with a larger share of numbers other than zero is not kept sparse
DENSE = 0.15
#: the least that stands in for a pivot that is not positive
PIVOT = 1e-10
#: the most rounds of pivoting: far more than any row needs
PIVOTS = 200


def rows_to_combine(classes: int, columns: int) -> int:
    """The number of rows to combine at once."""
    return max(1, BLOCK // (6 * columns + 3 * classes * classes))


def matrix_product(matrix: Any, rows: Array) -> Array:
    """matrix @ rows, on one thread; the matrix may be sparse."""
    if not isinstance(matrix, np.ndarray):
        return np.asarray(matrix @ rows)
    step = max(16, PRODUCT // max(matrix.size, 1))
    if step >= rows.shape[1]:
        return np.asarray(matrix @ rows)
    out = np.empty((len(matrix), rows.shape[1]))
    for start in range(0, rows.shape[1], step):
        np.matmul(matrix, rows[:, start : start + step], out=out[:, start : start + step])
    return out


def outer_pattern(left: Array, right: Array) -> Any:
    """T of shape (k(k+1)/2, columns): T @ x is the lower triangle of Σ_b x_b·sym(left_b right_bᵀ).

    ``left`` and ``right`` have shape (columns, k); sym(A) = (A + Aᵀ)/2. Sparse where that pays.
    """
    columns, k = left.shape
    at, value, pointer = [], [], [0]
    for a, b in zip(left, right, strict=True):
        used = np.flatnonzero((a != 0) | (b != 0))
        i, j = (used[side] for side in np.tril_indices(len(used)))
        both = (a[i] * b[j] + a[j] * b[i]) / 2
        keep = both != 0
        at.append((i * (i + 1) // 2 + j)[keep])
        value.append(both[keep])
        pointer.append(pointer[-1] + int(keep.sum()))
    index, data = np.concatenate(at), np.concatenate(value)
    shape = (k * (k + 1) // 2, columns)
    if len(data) > DENSE * shape[0] * shape[1]:
        dense = np.zeros(shape)
        dense[index, np.repeat(np.arange(columns), np.diff(pointer))] = data
        return dense
    try:
        from scipy.sparse import csc_array
    except ImportError:
        return PlainSparse(index, data, pointer, shape[0])
    return csc_array((data, index, pointer), shape=shape).tocsr()


@dataclass(frozen=True)
class PlainSparse:
    """A sparse matrix by columns, where SciPy is not installed; products are the same to the bit.

    >>> matrix = PlainSparse(np.array([0, 2]), np.array([3.0, 4.0]), [0, 1, 2], 3)
    >>> (matrix @ np.array([[1.0], [10.0]])).ravel().tolist()
    [3.0, 0.0, 40.0]
    """

    index: Index
    data: Array
    pointer: list[int]
    rows: int

    def __matmul__(self, other: Array) -> Array:
        total = np.zeros((self.rows, other.shape[1]))
        for column, (begin, end) in enumerate(itertools.pairwise(self.pointer)):
            total[self.index[begin:end]] += self.data[begin:end, None] * other[column]
        return total

    def sum(self, axis: int) -> Array:
        """The sum of each row (axis 1)."""
        order = np.argsort(self.index, kind="stable")
        present, starts = np.unique(self.index[order], return_index=True)
        total = np.zeros(self.rows)
        total[present] = np.add.reduceat(self.data[order], starts)
        return total


def symmetric_matrices(triangle: Array, k: int) -> Array:
    """The (k, k, rows) matrices whose lower triangles are given row by row."""
    i, j = np.tril_indices(k)
    full = np.empty((k, k, triangle.shape[1]))
    full[i, j] = triangle
    full[j, i] = triangle
    return full


def factor_in_place(matrices: Array) -> None:
    """Factorise matrices (k, k, rows) as L·D·Lᵀ in place. A pivot that is not positive changes its
    sign."""
    for j in range(len(matrices)):
        pivot = matrices[j, j]
        positive = pivot > 0
        if not positive.all():
            pivot[~positive] = np.maximum(-pivot[~positive], PIVOT)
        below = matrices[j + 1 :, j]
        scaled = below / pivot
        matrices[j + 1 :, j + 1 :] -= scaled[:, None] * below[None]
        matrices[j + 1 :, j] = scaled


def solve_factored(factors: Array, b: Array) -> Array:
    """The solutions x (k, rows) of A·x = b, where `factor_in_place` has factorised A."""
    x, k = b.copy(), len(b)
    for j in range(k - 1):
        x[j + 1 :] -= factors[j + 1 :, j] * x[j]
    for j in range(k):
        x[j] /= factors[j, j]
    for j in range(k - 2, -1, -1):
        x[j] -= (factors[j + 1 :, j] * x[j + 1 :]).sum(axis=0)
    return x


class SimplexQuadratic:
    """min Σ_b n_b((1−r_b)Σ_I p − r_bΣ_J p)² over p ≥ 0, Σp = 1, for blocks of rows r.

    With Q the matrix of that form, p = y/Σy where y ≥ 0 minimises ½yᵀ(Q+c·11ᵀ)y − 1ᵀy: along a
    ray y = tp the best t leaves −1/(2(pᵀQp+c)). Such problems are solved exactly by block
    principal pivoting: guess which classes are zero, solve for the others, and flip every class of
    the wrong sign. Where that does not help soon, only the last such class is flipped: that rule
    cannot cycle. Where the minimum is not unique, a ridge of 1e-11 and two steps of refinement
    choose the one nearest to uniform.
    """

    def __init__(self, code: Array, weights: Array) -> None:
        columns = code.T
        plus, minus = (columns > 0).astype(float), (columns < 0).astype(float)
        self.k, mean = len(code), weights.sum() / len(code)
        scale = weights[:, None]
        # (1−r)²·II − r(1−r)·(IJ+JI) + r²·JJ, by powers of r
        self.constant = np.asarray(outer_pattern(scale * plus, plus).sum(axis=1))[:, None] + mean
        self.linear = outer_pattern(-2.0 * scale * plus, plus + minus)
        self.square = outer_pattern(scale * (plus + minus), plus + minus)
        self.ridge = SIMPLEX_RIDGE * mean

    def solve(self, r: Array) -> Array:
        """The p (k, rows) that minimises the quadratic for each r (columns, rows)."""
        triangle = matrix_product(self.linear, r)
        triangle += matrix_product(self.square, r * r)
        triangle += self.constant
        full = symmetric_matrices(triangle, self.k)
        rows = r.shape[1]
        free = np.ones((self.k, rows), dtype=bool)
        fewest, patience = np.full(rows, self.k + 1), np.full(rows, 3)
        result, left = np.empty((self.k, rows)), np.arange(rows)
        for _ in range(PIVOTS):
            y, wrong = self._solve_free(full, free)
            result[:, left] = y
            count = wrong.sum(axis=0)
            open_ = count > 0
            if not open_.any():
                break
            better = count < fewest
            fewest, patience = np.where(better, count, fewest), np.where(better, 3, patience - 1)
            one = patience < 0
            if one.any():  # of these rows only the last class that is wrong
                last = self.k - 1 - np.argmax(wrong[::-1], axis=0)
                wrong = wrong & (~one | (np.arange(self.k)[:, None] == last))
            free ^= wrong
            if not open_.all():
                left, free, full = left[open_], free[:, open_], full[:, :, open_]
                fewest, patience = fewest[open_], patience[open_]
        p = np.maximum(result, 0.0)
        return np.asarray(p / p.sum(axis=0))

    def _solve_free(self, full: Array, free: Flags) -> tuple[Array, Flags]:
        """The solution y in which classes that are not free are zero, and which classes have the
        wrong sign."""
        b = free.astype(float)
        matrices = full.copy() if free.all() else full * b[:, None] * b[None]
        diagonal = np.arange(self.k)
        matrices[diagonal, diagonal] += self.ridge + (1.0 - b)
        factor_in_place(matrices)
        y = solve_factored(matrices, b)
        for _ in range(2):
            y += solve_factored(matrices, (b - (full * y).sum(axis=1)) * b)
        slope = (full * y).sum(axis=1) - 1.0
        return y, np.where(free, y < -ZERO * y.max(axis=0), slope < -ZERO)
