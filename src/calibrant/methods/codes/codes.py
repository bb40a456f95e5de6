"""Code matrices: how several classes become yes-or-no questions.

An entry 1 makes a class one of a column's positives, −1 one of its negatives, 0 leaves it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.array_types import Array
from calibrant.data.columns import to_matrix
from calibrant.data.frozen import Frozen
from calibrant.errors import InputError, ParameterError, did_you_mean
from calibrant.rules.combiners import (
    combine_rows,
    first_few,
    is_all_pairs,
    linked_classes,
    singled_out,
)

Matrix = NDArray[np.int8]

#: the most classes of an exhaustive code: 2047 columns
MOST_EXHAUSTIVE = 12
#: the number of random matrices that are compared; fewer if that takes more differences than this
DRAWS, DIFFERENCES = 200, 1_000_000_000
#: with so few classes a code may need nearly all questions there are, so more columns are drawn
FEW = 6


@dataclass(frozen=True, eq=False, repr=False)
class Code(Frozen):
    """A code matrix: one row per class, one column per yes-or-no question.

    Parameters
    ----------
    matrix : array of shape (k, columns) with entries −1, 0, 1
        Column b asks "one of the classes with 1, or one of those with −1?"; classes with 0 play no
        part in it.

    Attributes
    ----------
    n_classes, n_columns : int
    row_separation : float
        The smallest distance between the rows of two classes. More is better: so much must go
        wrong before one class is taken for another. The distance counts ½|a − b| per column: 1
        where one class is positive and the other negative, ½ where one of them is left out, 0
        where both are equal or both left out (Allwein, Schapire and Singer count ½ there, too,
        which would let empty columns separate classes).
    column_separation : float
        The smallest distance between two columns, in the same count over classes, where a column
        and its complement are the same question; infinite with a single column. More is better:
        equal questions make equal errors.

    Notes
    -----
    What a code must fulfil: every column has both signs; no two rows are equal; and the columns
    link all classes to one another (classes in groups that no column compares would have no
    common scale). Equal and complementary columns are allowed: they count as often as they occur,
    and ``column_separation`` is 0 then. Two classes need no column that opposes them directly:
    (1, −1, 0) and (0, 1, −1) determine three classes.

    References
    ----------
    Allwein, Schapire, Singer (2000). Reducing multiclass to binary: a unifying approach for margin
    classifiers. JMLR 1, 113–141.

    Examples
    --------
    >>> code = Code([[1, -1], [-1, 1], [-1, -1]])
    >>> code
    Code(3 classes, 2 columns, row separation 1, column separation 1)
    >>> len(code), code.matrix.tolist()
    (2, [[1, -1], [-1, 1], [-1, -1]])
    """

    matrix: Matrix

    def __post_init__(self) -> None:
        try:
            array = np.asarray(self.matrix)
        except ValueError as wrong:
            raise InputError(f"a code must be a matrix: {wrong}") from wrong
        if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
            raise InputError(
                "a code must be a matrix with a row for each of at least two classes and at least "
                f"one column, but its shape is {array.shape}."
            )
        if array.dtype.kind not in "iuf" or not np.isin(array, (-1, 0, 1)).all():
            raise InputError("a code must hold the numbers −1, 0 and 1 only.")
        clean = array.astype(np.int8)
        fault = _error_in_code(clean)
        if fault is not None:
            raise InputError(fault)
        object.__setattr__(self, "matrix", clean)
        super().__post_init__()

    def __len__(self) -> int:
        return int(self.matrix.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.matrix, dtype=dtype, copy=copy)

    @property
    def n_classes(self) -> int:
        """The number of rows."""
        return int(self.matrix.shape[0])

    @property
    def n_columns(self) -> int:
        """The number of columns, also ``len(code)``."""
        return len(self)

    @property
    def row_separation(self) -> float:
        """The smallest distance between two rows; more is better."""
        return _least_distance(self.matrix)

    @property
    def column_separation(self) -> float:
        """The smallest distance between two columns or their complements; more is better."""
        return _least_distance(self.matrix.T, complements=True)

    def __repr__(self) -> str:
        return (
            f"Code({self.n_classes} classes, {len(self)} columns, row separation "
            f"{self.row_separation:g}, column separation {self.column_separation:g})"
        )


def one_vs_rest(k: int) -> Code:
    """Each class against all others: k columns.

    Parameters
    ----------
    k : int
        Number of classes, at least 2.

    Examples
    --------
    >>> one_vs_rest(3).matrix.tolist()
    [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    """
    return Code(2 * np.eye(_read_class_count(k), dtype=np.int8) - 1)


def all_pairs(k: int) -> Code:
    """Each class against each other one: k(k−1)/2 columns, (0,1), (0,2), …, (1,2), ….

    Parameters
    ----------
    k : int
        Number of classes, at least 2.

    Examples
    --------
    >>> all_pairs(3).matrix.tolist()
    [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    """
    k = _read_class_count(k)
    first, second = np.triu_indices(k, 1)
    matrix = np.zeros((k, len(first)), dtype=np.int8)
    columns = np.arange(len(first))
    matrix[first, columns], matrix[second, columns] = 1, -1
    return Code(matrix)


def ecoc(
    k: int, *, design: str = "dense", n_columns: int | None = None, random_state: int | None = None
) -> Code:
    """An error-correcting output code.

    Parameters
    ----------
    k : int
        Number of classes, at least 2.
    design : {"dense", "sparse", "exhaustive"}
        ``"dense"``: random ±1. ``"sparse"``: random −1, 0, 1 with chances ¼, ½, ¼.
        ``"exhaustive"``: all 2^(k−1)−1 ways to split the classes, for at most 12 of them.
    n_columns : int, optional
        By default ⌈10·log₂ k⌉ for dense and ⌈15·log₂ k⌉ for sparse codes, but no more than there
        are different questions: 2^(k−1)−1 dense and (3^k+1)/2−2^k sparse ones. Ask for more, and
        questions repeat. An exhaustive code has only one number of columns.
    random_state : int ≥ 0, optional
        Seed of the random designs. None is the seed 0: a code is the same at every call.

    Notes
    -----
    Of 200 random matrices (fewer above 200 classes, nine of 1,000) the one with the largest row
    separation is taken, among those the one with the largest column separation, then the earliest.
    Columns without both signs are drawn again, and so is a column that repeats an earlier one or
    its complement, while others remain. O(200·k²·columns + 200·k·columns²).

    References
    ----------
    Dietterich, Bakiri (1995). Solving multiclass learning problems via error-correcting output
    codes. JAIR 2, 263–286. doi:10.1613/jair.105. Allwein, Schapire, Singer (2000). JMLR 1, 113–141.

    Examples
    --------
    >>> ecoc(4, design="exhaustive")
    Code(4 classes, 7 columns, row separation 4, column separation 1)
    >>> ecoc(10, random_state=1) == ecoc(10, random_state=1)
    True
    """
    k = _read_class_count(k)
    if random_state is not None:
        random_state = _read_whole("random_state", random_state, 0, " or None")
    if not isinstance(design, str) or design not in DESIGNS:
        hint = did_you_mean(design, DESIGNS)
        raise ParameterError(f"design must be one of {tuple(DESIGNS)}, but {design!r} came.{hint}")
    return DESIGNS[design](k, n_columns, random_state)


def read_code(code: Any, k: int | None = None) -> Code:
    """A Code from a Code, a matrix, or a name, checked, and for k classes where k is given.

    Parameters
    ----------
    code : Code, matrix, or one of "one_vs_rest", "all_pairs", "ecoc"
    k : int, optional
        The number of classes; needed for a name.

    Examples
    --------
    >>> read_code("all_pairs", 3) == all_pairs(3)
    True
    """
    if isinstance(code, str):
        if code not in NAMES:
            raise ParameterError(
                f"code must be one of {tuple(NAMES)}, a Code or a matrix, but {code!r} came."
                f"{did_you_mean(code, NAMES)}"
            )
        if k is None:
            raise ParameterError(
                f"the code {code!r} is for any number of classes: say which, as {code}(k)."
            )
        return NAMES[code](k)
    checked = code if isinstance(code, Code) else Code(code)
    if k is not None and checked.n_classes != k:
        raise InputError(
            f"the code must have one row per class, but it has {checked.n_classes} rows for {k} "
            "classes."
        )
    return checked


# --- How the kinds are made -----------------------------------------------------------------------


def _read_whole(name: str, value: Any, least: int, meaning: str = "") -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < least:
        raise ParameterError(
            f"{name} must be a whole number of at least {least}{meaning}, but {value!r} came."
        )
    return int(value)


def _read_class_count(k: Any) -> int:
    return _read_whole("k", k, 2, ", the number of classes")


def _exhaustive_code(k: int, n_columns: int | None, random_state: int | None) -> Code:
    if k > MOST_EXHAUSTIVE:
        raise ParameterError(
            f"an exhaustive code of {k} classes would have {2 ** (k - 1) - 1} columns; it is "
            f"offered up to {MOST_EXHAUSTIVE} classes. Use design='dense' or design='sparse'."
        )
    count = 2 ** (k - 1) - 1
    if n_columns is not None and n_columns != count:
        raise ParameterError(
            f"an exhaustive code of {k} classes has {count} columns, but n_columns={n_columns!r} "
            "came. Leave it out, or use design='dense'."
        )
    # the first class is always positive; the bits of 0 … count−1 say which others join it
    bits = (np.arange(count)[None, :] >> np.arange(k - 1)[:, None]) & 1
    return Code(np.vstack((np.ones(count, dtype=np.int8), (2 * bits - 1).astype(np.int8))))


def _best_random_code(
    chances: tuple[float, float, float],
    per_bit: float,
    questions: Callable[[int], int],
    k: int,
    n_columns: int | None,
    random_state: int | None,
) -> Code:
    """The best of many random codes.

    ``chances`` are the probabilities of −1, 0 and 1. ``per_bit`` gives the default number of
    columns, and ``questions`` the number of different columns possible for so many classes.
    """
    usual = min(math.ceil(per_bit * math.log2(k)), questions(k))
    wanted = usual if n_columns is None else n_columns
    least = math.ceil(math.log2(k))
    wanted = _read_whole("n_columns", wanted, least, f", or {k} classes could not be told apart")
    rng = np.random.default_rng(0 if random_state is None else random_state)
    best, rank = None, (-1.0, -1.0)
    for _ in range(max(2, min(DRAWS, DIFFERENCES // (k * wanted * (k + wanted))))):
        matrix = _random_matrix(rng, k, wanted, chances)
        rows = 0.0 if matrix is None else _least_distance(matrix)
        if matrix is None or rows < rank[0]:
            continue
        separations = rows, _least_distance(matrix.T, complements=True)
        if separations > rank:
            best, rank = matrix, separations
    if best is None:  # so few columns that no draw was valid: binary numbers
        bits = (np.arange(k)[:, None] >> np.arange(least)) & 1
        best = np.resize((bits * 2 - 1).T, (wanted, k)).T.astype(np.int8)
    return Code(best)


def _random_matrix(
    rng: np.random.Generator, k: int, columns: int, chances: tuple[float, float, float]
) -> Matrix | None:
    """A random code matrix, or None if the one drawn is not valid. Its columns are different if
    there are enough."""
    most = 40 * columns + 64 if k <= FEW else 4 * columns + 64
    pool = rng.choice(np.array([-1, 0, 1], dtype=np.int8), size=(most, k), p=chances)
    pool = pool[(pool > 0).any(axis=1) & (pool < 0).any(axis=1)]
    sign = np.sign(np.take_along_axis(pool, np.argmax(pool != 0, axis=1)[:, None], axis=1))
    _, first = np.unique(pool * sign, axis=0, return_index=True)
    again = np.setdiff1d(np.arange(len(pool)), first)
    chosen = np.concatenate((np.sort(first), again))[:columns]
    matrix = np.ascontiguousarray(pool[chosen].T)
    return matrix if len(chosen) == columns and _error_in_code(matrix) is None else None


def _least_distance(matrix: Matrix, *, complements: bool = False) -> float:
    """The smallest ½Σ|a − b| over pairs of rows a and b. With ``complements`` b may also be the
    complement of a row."""
    rows, least = matrix.astype(np.int64), math.inf
    for i in range(len(rows) - 1):
        distance = np.abs(rows[i] - rows[i + 1 :]).sum(axis=1)
        if complements:
            distance = np.minimum(distance, np.abs(rows[i] + rows[i + 1 :]).sum(axis=1))
        least = min(least, float(distance.min()))
    return least / 2


# --- What a code must fulfil ----------------------------------------------------------------------


def _error_in_code(matrix: Matrix) -> str | None:
    """The words of an error if a matrix is no code; None if it is one."""
    one_sided = np.flatnonzero(~((matrix > 0).any(axis=0) & (matrix < 0).any(axis=0)))
    if len(one_sided):
        return (
            f"every column of a code must hold both 1 and −1, but {len(one_sided)} of "
            f"{matrix.shape[1]} do not: {first_few(one_sided)}. Give them both, or leave them out."
        )
    _, first, group = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    twins = np.flatnonzero(first[group.ravel()] != np.arange(len(matrix)))
    if len(twins):
        row = int(twins[0])
        return (
            "every class must have a row of its own in a code, but rows "
            f"{int(first[group.ravel()[row]])} and {row} are equal: no column tells those classes "
            "apart. Add one that does."
        )
    reached = linked_classes(matrix)
    if not reached.all():
        return (
            "the columns of a code must link all classes, but none compares classes "
            f"{first_few(np.flatnonzero(reached))} with {first_few(np.flatnonzero(~reached))}. Add "
            "a column that does."
        )
    return None


DESIGNS: dict[str, Callable[[int, int | None, int | None], Code]] = {
    "dense": partial(_best_random_code, (0.5, 0.0, 0.5), 10.0, lambda k: 2 ** (k - 1) - 1),
    "sparse": partial(_best_random_code, (0.25, 0.5, 0.25), 15.0, lambda k: (3**k + 1) // 2 - 2**k),
    "exhaustive": _exhaustive_code,
}
NAMES: dict[str, Callable[[int], Code]] = {
    "one_vs_rest": one_vs_rest,
    "all_pairs": all_pairs,
    "ecoc": ecoc,
}


# --- From the columns' probabilities to the classes': normalisation, least squares, coupling ------
# Column b of a code opposes its positives I to its negatives J, and its calibrated classifier gives
# r_b ≈ Σ_I p / (Σ_I p + Σ_J p). With more columns than free probabilities no p fits all of them;
# the combiners differ in what they take for the nearest.


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
    return _check_and_combine("normalize", r, code, weights)


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
    return _check_and_combine("least_squares", r, code, weights)


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
    return _check_and_combine("coupling", r, code, weights)


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
    return _check_and_combine("pairwise", r, code, weights)


def _check_and_combine(name: str, r: Any, code: Any, weights: Any) -> Array:
    """The class probabilities by a named way to combine columns; all arguments are checked."""
    checked = read_code(code)
    matrix = checked.matrix.astype(np.float64)
    if name in NEEDS and not NEEDS[name].fits(matrix):
        raise ParameterError(
            f"{name} needs {NEEDS[name].words} code, but {checked!r} is another. Use least_squares "
            "or coupling, which take any code."
        )
    return combine_rows(
        name, _read_probabilities(r, checked), matrix, _read_column_weights(weights, checked)
    )


class NeededCode(NamedTuple):
    """A code that some way to combine columns needs: a test for it, words for errors, and its
    name."""

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


def _read_probabilities(r: Any, code: Code) -> Array:
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


def _read_column_weights(weights: Any, code: Code) -> Array | None:
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
