"""From the columns' probabilities to the classes': normalisation, least squares, coupling.

Column b of a code opposes its positives I to its negatives J, and its calibrated classifier gives
r_b ≈ Σ_I p / (Σ_I p + Σ_J p). With more columns than free probabilities no p fits all of them; the
combiners differ in what they take for the nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from calibrant.array_types import Array
from calibrant.data.to_numpy import to_matrix
from calibrant.errors import InputError, ParameterError
from calibrant.maps.combiners import combine_rows, is_all_pairs, singled_out
from calibrant.multiclass.codes import Code, read_code


def normalize(r: Any, code: Any, *, weights: Any = None) -> Array:
    """p ∝ r, for one-against-all codes: the simplest rule, and hard to beat there.

    Parameters
    ----------
    r : array of shape (n, columns)
        The columns' probabilities, in [0, 1].
    code : Code or matrix of shape (k, columns)
        One against all; the columns may come in any order.
    weights : array of shape (columns,), optional
        Checked, but without effect: no column can make up for another here.

    Returns
    -------
    array of shape (n, k)
        Distributions over the classes; uniform where a row is all zero.

    Notes
    -----
    O(n·k). Any other code is a ParameterError.

    References
    ----------
    Zadrozny, Elkan (2002). Transforming classifier scores into accurate multiclass probability
    estimates. KDD. doi:10.1145/775047.775151

    Examples
    --------
    >>> from calibrant.multiclass import one_vs_rest
    >>> normalize([[0.2, 0.6, 0.0], [0.0, 0.0, 0.0]], one_vs_rest(3)).round(3).tolist()
    [[0.25, 0.75, 0.0], [0.333, 0.333, 0.333]]
    """
    return _combine("normalize", r, code, weights)


def least_squares(r: Any, code: Any, *, weights: Any = None) -> Array:
    """The distribution p with the smallest Σ_b n_b((1−r_b)Σ_I p − r_bΣ_J p)².

    Parameters
    ----------
    r : array of shape (n, columns)
        The columns' probabilities, in [0, 1].
    code : Code, matrix of shape (k, columns), or any other form that `read_code` takes
    weights : array of shape (columns,), optional
        The n_b ≥ 0, for instance the training weight of each column; only their ratios matter, and
        a column of weight zero is as if absent. A class that only such columns know gets the
        probability 0; classes that only they link are an InputError. All one by default.

    Returns
    -------
    array of shape (n, k)
        Distributions over the classes; entries may be exactly zero.

    Notes
    -----
    For codes without zeros this is Kong and Dietterich's ‖M⁺ᵀp − r‖², for one against all the
    projection onto the simplex. The minimum is found exactly (to rounding) by an active set per
    row, for all rows at once; where it is not unique, it is the one nearest to the uniform
    distribution. O(n·k²·(columns + k)) and, for one against all, O(n·k·log k); memory beyond r
    and the result does not grow with n.

    References
    ----------
    Kong, Dietterich (1997). Probability estimation via error-correcting output coding. Int. Conf.
    on Artificial Intelligence and Soft Computing. Zadrozny, Elkan (2002), KDD.
    doi:10.1145/775047.775151

    Examples
    --------
    >>> from calibrant.multiclass import all_pairs, one_vs_rest
    >>> least_squares([[0.9, 0.4, 0.1]], one_vs_rest(3)).round(3).tolist()
    [[0.75, 0.25, 0.0]]
    >>> least_squares([[0.75, 0.6, 1 / 3]], all_pairs(3)).round(3).tolist()
    [[0.5, 0.167, 0.333]]
    """
    return _combine("least_squares", r, code, weights)


def coupling(r: Any, code: Any, *, weights: Any = None) -> Array:
    """The distribution p with the smallest Σ_b n_b·KL(r_b ‖ r̂_b), r̂_b = Σ_I p / (Σ_I p + Σ_J p).

    Parameters
    ----------
    r : array of shape (n, columns)
        The columns' probabilities, in [0, 1].
    code : Code, matrix of shape (k, columns), or any other form that `read_code` takes
    weights : array of shape (columns,), optional
        The n_b ≥ 0, for instance the training weight of each column; only their ratios matter, and
        a column of weight zero is as if absent. A class that only such columns know gets the
        probability 0; classes that only they link are an InputError. All one by default.

    Returns
    -------
    array of shape (n, k)
        Distributions over the classes.

    Notes
    -----
    For all pairs this is Hastie and Tibshirani's pairwise coupling, a Bradley–Terry model; for
    other codes the generalised one. The minimum is sought by a guarded Newton method from the
    least-squares solution, each row until ∂/∂ln p of the objective is below 1e-10·Σn and the next
    step moves no probability by more than 1e-11; the objective never rises. Codes without zeros
    and pairs have no other minima; a sparse code may have local ones, of which one is found. Where
    the minimum is not unique, one near least squares is found. Zeros and ones among the r are
    allowed, and so are minima with zeros; a class below 1e-15 is only known to be that small. A
    column that opposes only such classes asks for a ratio of zeros, which no p has: the divergence
    then has no minimum, and the p given is the one that its infimum is approached at.
    After 248 steps a row takes what it has: that happens to sparse codes whose r are both
    contradictory and within 1e-9 of 0 or 1.

    The multiplicative update often printed for general codes, with Σn_b r_b over Σn_b r̂_b, has
    this minimum as its fixed point only where every column opposes two single classes. The right
    one is p_c·[Σ_{c∈I} n_b r_b/Σ_I p + Σ_{c∈J} n_b(1−r_b)/Σ_J p] / Σ_{c∈I∪J} n_b/(Σ_I p + Σ_J p).

    O(n·k²·(columns + k)) for each of usually 4 to 12 steps; one against all needs only O(n·k) per
    step. Memory beyond r and the result does not grow with n.

    References
    ----------
    Hastie, Tibshirani (1998). Classification by pairwise coupling. Annals of Statistics 26(2).
    doi:10.1214/aos/1028144844. Zadrozny (2002). Reducing multiclass to binary by coupling
    probability estimates. NIPS. Huang, Weng, Lin (2006). Generalized Bradley–Terry models and
    multi-class probability estimates. JMLR 7, 85–115.

    Examples
    --------
    >>> from calibrant.multiclass import all_pairs
    >>> coupling([[0.75, 0.6, 1 / 3], [0.0, 0.0, 0.0]], all_pairs(3)).round(3).tolist()
    [[0.5, 0.167, 0.333], [0.0, 0.0, 1.0]]
    """
    return _combine("coupling", r, code, weights)


def pairwise(r: Any, code: Any, *, weights: Any = None) -> Array:
    """Wu, Lin and Weng's second method: the smallest Σ_{i<j} n_ij(r_ji p_i − r_ij p_j)².

    Parameters
    ----------
    r : array of shape (n, columns)
        The columns' probabilities, in [0, 1].
    code : Code or matrix of shape (k, columns)
        All pairs; columns may come in any order and direction, and more than once.
    weights : array of shape (columns,), optional
        The n_ij ≥ 0; a column of weight zero is as if absent. A class that only such columns know
        gets the probability 0; classes that only they link are an InputError. All one by default.

    Returns
    -------
    array of shape (n, k)
        Distributions over the classes.

    Notes
    -----
    With r_ji = 1 − r_ij this is `least_squares` on all pairs, number for number: there p ≥ 0 holds
    by itself. O(n·k³). Any other code is a ParameterError.

    References
    ----------
    Wu, Lin, Weng (2004). Probability estimates for multi-class classification by pairwise
    coupling. JMLR 5, 975–1005.

    Examples
    --------
    >>> from calibrant.multiclass import all_pairs
    >>> pairwise([[0.75, 0.6, 1 / 3]], all_pairs(3)).round(3).tolist()
    [[0.5, 0.167, 0.333]]
    """
    return _combine("pairwise", r, code, weights)


def _combine(name: str, r: Any, code: Any, weights: Any) -> Array:
    """Check all arguments, then combine."""
    found = read_code(code)
    matrix = found.matrix.astype(np.float64)
    if name in NEEDS and not NEEDS[name].fits(matrix):
        raise ParameterError(
            f"{name} needs {NEEDS[name].words} code, but {found!r} is another. Use least_squares "
            "or coupling, which take any code."
        )
    return combine_rows(name, _read_r(r, found), matrix, _read_weights(weights, found))


class NeededCode(NamedTuple):
    """The only code that a way to combine columns takes: how it is told, and its names."""

    fits: Callable[[Array], bool]
    words: str
    name: str


#: the ways to combine columns that do not take any code
NEEDS: dict[str, NeededCode] = {
    "normalize": NeededCode(
        lambda matrix: singled_out(matrix) is not None, "a one-against-all", "one_vs_rest"
    ),
    "pairwise": NeededCode(is_all_pairs, "an all-pairs", "all_pairs"),
}


def _read_r(r: Any, code: Code) -> Array:
    array = to_matrix(r, "r")
    if array.dtype.kind not in "biuf":
        raise InputError(f"r must be numbers, but values of type {array.dtype} came.")
    if array.ndim != 2 or array.shape[1] != len(code):
        raise InputError(
            f"r must have one column per column of the code, shape (n, {len(code)}), but its shape "
            f"is {array.shape}."
        )
    values = np.asarray(array, dtype=np.float64)
    if not len(values) or (values.min() >= 0.0 and values.max() <= 1.0):
        return values
    wrong = ~((values >= 0.0) & (values <= 1.0)).all(axis=1)  # NaN compares false
    first = int(np.argmax(wrong))
    raise InputError(
        f"r must be probabilities in [0, 1]: {int(wrong.sum())} of {len(values)} rows are not "
        f"(first is row {first}: {values[first].tolist()}). Calibrate margins first; drop or "
        "impute NaN."
    )


def _read_weights(weights: Any, code: Code) -> Array | None:
    if weights is None:
        return None
    array = to_matrix(weights, "weights")
    if array.dtype.kind not in "biuf" or array.shape != (len(code),):
        raise InputError(
            f"weights must be {len(code)} numbers, one per column of the code, but "
            f"{array.dtype} of shape {array.shape} came."
        )
    values = np.asarray(array, dtype=np.float64)
    wrong = np.flatnonzero(~((values >= 0.0) & np.isfinite(values)))
    if len(wrong):
        raise InputError(
            f"weights must be finite and at least 0, but column {wrong[0]} has {values[wrong[0]]}."
        )
    if not values.any():
        raise InputError("weights must be positive for at least one column, but all are zero.")
    return values
