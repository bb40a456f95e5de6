"""Fitted calibrators and hand-made maps that every export is tried on, and scores that tell."""

from __future__ import annotations

import functools

import numpy as np
from sklearn.base import clone

import calibrant as cal
from calibrant.losses import logit, sigmoid
from calibrant.maps import (
    Chain,
    Coded,
    Columns,
    Identity,
    Interval,
    Logistic,
    Mixture,
    Piecewise,
    Segmented,
    Softmax,
    TopLabel,
    VectorMixture,
)
from calibrant.rules.plan.nodes import (
    FIRST,
    LAST,
    PlanTarget,
    borders,
    double_at,
    double_rank,
    use_counts,
)
from cases import CASES

LARGE = float(np.finfo(np.float64).max)
ENDS = [0.0, -0.0, 1.0, 5e-324, 1 - 2.0**-53, 1e-300, -3.0, 2.0, 40.0, -800.0, 1e308, LARGE, -LARGE]

# --- fitted ---------------------------------------------------------------------------------------


@functools.cache
def rows(margins):
    """Scores and labels of 150 rows, some of them equal."""
    rng = np.random.default_rng(7)
    p = np.round(rng.beta(0.6, 2, 150), 3)
    y = np.where(rng.random(150) < p**1.5, "yes", "no")
    return (logit(np.clip(p, 0.001, 0.999)) if margins else p), y


@functools.cache
def fitted(name, margins=False):
    """The case of that name, fitted to probabilities or margins."""
    case = next(case for case in CASES if case.name == name)
    return clone(case.calibrator).fit(*rows(margins))


#: calibrators of several classes or labels
VECTORS = {
    "temperature": cal.Temperature(),
    "temperature of probabilities": cal.Temperature(scale="logit"),
    "vector": cal.VectorScaling(),
    "matrix": cal.MatrixScaling(),
    "dirichlet": cal.Dirichlet(),
    "structured": cal.StructuredScaling(),
    "ensemble temperature": cal.EnsembleTemperature(),
    "ensemble temperature of probabilities": cal.EnsembleTemperature(),
    "top label": cal.TopLabelCalibrator(cal.Platt()),
    "top label of probabilities": cal.TopLabelCalibrator(cal.Isotonic()),
    "one against all": cal.CodedCalibrator(cal.Isotonic()),
    "one against all, coupled": cal.CodedCalibrator(cal.Platt(), combine="coupling"),
    "one against all, least squares": cal.CodedCalibrator(cal.Beta(), combine="least_squares"),
    "pairs": cal.CodedCalibrator(cal.Platt(), code="all_pairs"),
    "pairs, pairwise": cal.CodedCalibrator(cal.Isotonic(), code="all_pairs", combine="pairwise"),
    "labels": cal.MultiLabelCalibrator(cal.Histogram()),
}


@functools.cache
def vector_rows(name):
    """(scores, y) that the calibrator takes."""
    rng = np.random.default_rng(8)
    z = rng.normal(0, 1.5, (200, 3))
    y = np.array(["a", "b", "c"])[(z + rng.gumbel(size=z.shape)).argmax(axis=1)]
    if name == "labels":
        return sigmoid(2 * z), (rng.random(z.shape) < sigmoid(z)).astype(int)
    if "probabilities" in name:
        return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), y
    return z, y


@functools.cache
def fitted_vector(name):
    return clone(VECTORS[name]).fit(*vector_rows(name))


@functools.cache
def fitted_segments(own=None):
    """Segments by name, of the common map's value; or each with a calibrator of its own."""
    rng = np.random.default_rng(9)
    segment = rng.choice(["de", "fr", "it"], 900)
    p = rng.beta(0.6, 2, 900)
    y = rng.random(900) < np.where(segment == "it", p**2, np.sqrt(p))
    return cal.SegmentedCalibrator(own).fit(p, y, segments=segment)


# --- hand-made ------------------------------------------------------------------------------------

LINE = Piecewise.linear([0.2, 0.5, 0.8], [0.1, 0.7, 0.2])
RISE = Piecewise.linear([0.1, 0.4, 0.9], [0.05, 0.6, 0.9])
JUMP = Piecewise.step([0.3, 0.5, 0.9], [0.1, 0.4, 0.2, 0.9])
BOTH = Piecewise([0.2, 0.5, 0.7], [0.1, 0.5, 0.4], [0.2, 0.3, 0.9])  # jumps and lines
RISES = Piecewise([0.2, 0.5, 0.7], [0.1, 0.3, 0.5], [0.2, 0.3, 0.9])
BOTH_OF_LOGIT = Piecewise([-2.0, 0.5, 3.0], [-3.0, -0.5, 0.4], [-2.0, 0.3, 0.9], "logit", "logit")
UP = Logistic(0.3, (("x", 2.0),))
FALL = Logistic(0.2, (("x", -1.5),))
HILL = Logistic(0.2, (("z", 0.5), ("z2", -0.3)))
BETA = Logistic(-0.3, (("ln_p", 0.7), ("neg_ln_1mp", 1.4)), clip=(0.01, 0.98))
MANY = Piecewise.step(np.linspace(0.001, 0.999, 400), np.random.default_rng(1).random(401))
MANY_LINES = Piecewise.linear(
    np.linspace(-9, 9, 300), np.random.default_rng(2).random(300), "logit"
)

SHAPES = {
    "identity": Identity(),
    "constant": Piecewise.constant(0.3),
    "line": LINE,
    "jump": JUMP,
    "jumps and lines": BOTH,
    "jumps and lines of the logit": BOTH_OF_LOGIT,
    "steep": Piecewise([0.3, np.nextafter(0.3, 1)], [0.1, 0.9], [0.2, 0.8]),
    "far": Piecewise.linear([-1.7e308, 0.0, 1.7e308], [0.0, 0.4, 1.0]),
    "farther": Piecewise([-1.7e308, 1.7e308], [0.0, 0.4], [0.1, 1.0]),
    "small": Piecewise.linear([0.0, 5e-324, 1e-323], [0.0, 0.4, 1.0]),
    "knots beyond all logits": Piecewise.step([-800.0, 50.0], [0.1, 0.5, 0.9], "logit"),
    "knots with the same border": Piecewise(
        [36.0, 36.7, 36.70000001], [0.1, 0.3, 0.5], [0.2, 0.4, 0.9], "logit"
    ),
    "steps on the logit scale": Piecewise([-1.0, 2.0], [-3.0, 0.0], [0.0, 4.0], "logit", "logit"),
    "many steps": MANY,
    "many lines of the logit": MANY_LINES,
    "flat sigmoid": Logistic(0.7, (("x", 0.0), ("z2", 0.0))),
    "no terms": Logistic(-0.2, ()),
    "rising": UP,
    "falling": FALL,
    "hill": HILL,
    "beta": BETA,
    "beta of margins": Logistic(-0.3, (("ln_sigmoid", 0.02), ("softplus", 0.7))),
    "overflow": Logistic(0.0, (("x", 1e280),)),
    "all terms": Logistic(
        0.1, (("x", 0.5), ("z", -0.2), ("z2", 0.01), ("ln_p", 0.3), ("neg_ln_1mp", 0.2))
    ),
    "interval": Interval(Piecewise.constant(0.1), Piecewise.constant(0.9), JUMP, 0.9),
    "mixture of steps": Mixture([0.3, 0.7], (JUMP, MANY)),
    "mixture of steps and lines": Mixture([0.3, 0.7], (JUMP, LINE)),
    "mixture of mixtures": Mixture([0.5, 0.5, 0.0], (Mixture([0.1, 0.9], (MANY, LINE)), JUMP, UP)),
    "mixture of two scales": Mixture([0.25, 0.25, 0.5], (MANY, MANY_LINES, HILL)),
    "mixture above one": Mixture([0.5, 0.5 + 9e-10], (Piecewise.constant(1.0),) * 2),
    "steps of a falling sigmoid": Chain((FALL, JUMP)),
    "many steps of a falling sigmoid": Chain((FALL, MANY)),
    "jumps and lines of a falling sigmoid": Chain((FALL, BOTH)),
    "steps of the logit of a sigmoid": Chain(
        (UP, Piecewise.step([-1.0, 0.5], [0.1, 0.5, 0.9], "logit"))
    ),
    "steps of a mixture of sigmoids": Chain((Mixture([0.5, 0.5], (UP, RISE)), MANY)),
    "lines of a hill": Chain((HILL, LINE)),
    "steps of steps that fall": Chain((JUMP, Piecewise.step([0.2, 0.4], [0.7, 0.1, 0.9]))),
    "steps of lines that fall and rise": Chain((LINE, JUMP)),
    "steps of a mixture of steps": Chain((Mixture([0.3, 0.7], (JUMP, MANY)), MANY)),
    "sigmoid of steps": Chain((JUMP, HILL)),
    "long chain": Chain((UP, Identity(), RISE, Logistic(0.1, (("z", 1.2),)), RISES, MANY)),
    "a segmented map within another": Chain((Identity(), Segmented(LINE, (1,), (JUMP,)))),
}

SEGMENTED = {
    "words": Segmented(LINE, ("a", "b'\n", '"""'), (JUMP, HILL, UP), [0.5, 1.0, 0.0]),
    "numbers": Segmented(UP, (1, -7), (JUMP, JUMP)),
    "both": Segmented(UP, (1, "1"), (JUMP, BETA), [0.1, 0.2]),
    "of the default": Segmented(UP, ("a", "b"), (MANY, HILL), None, "default"),
    "of steps": Segmented(JUMP, ("a", "b"), (MANY, HILL), [0.3, 1.0], "default"),
    "none": Segmented(UP, (), (), default_keys=("a", 7)),
}

PAIRS = [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
ROWS = {
    "softmax": Softmax(0.7, [0.1, -0.2, 0.0]),
    "softmax with an inner factor": Softmax([0.5, 1.5, 0.8], [0.1, -0.2, 0.0], inner=0.3),
    "softmax of probabilities": Softmax(
        [[1.0, 0.2, -0.1], [0.0, 0.9, 0.3], [-0.4, 0.1, 1.2]], [0.1, -0.2, 0.0], "probability", 1e-9
    ),
    "columns": Columns((UP, JUMP, BOTH_OF_LOGIT)),
    "one against all": Coded.one_vs_rest((UP, JUMP, FALL)),
    "all of them zero": Coded.one_vs_rest((Piecewise.constant(0.0),) * 3),
    "one against all, in another order": Coded(
        [[-1, 1, -1], [-1, -1, 1], [1, -1, -1]], (UP, JUMP, FALL), "least_squares", [1.0, 2.0, 0.5]
    ),
    "one against all, coupled": Coded(
        [[-1, 1, -1], [-1, -1, 1], [1, -1, -1]], (UP, JUMP, FALL), "coupling", [1.0, 2.0, 0.5]
    ),
    "pairs": Coded(PAIRS, (UP, BETA, FALL), "coupling", [1.0, 2.0, 0.5]),
    "pairwise": Coded(PAIRS, (UP, BETA, FALL), "pairwise"),
    "pairs of which one counts for nothing": Coded(
        PAIRS, (UP, BETA, FALL), "least_squares", [1.0, 2.0, 0.0]
    ),
    "a class that only weightless columns know": Coded(
        [[1, 1, 0], [-1, 0, 1], [0, -1, -1]], (UP, BETA, FALL), "coupling", [1.0, 0.0, 0.0]
    ),
    "a code without zeros": Coded(
        [[1, 1, -1], [-1, 1, 1], [1, -1, 1]], (UP, BETA, FALL), "least_squares"
    ),
    "one column": Coded([[-1], [1]], (UP,), "coupling"),
    "top label": TopLabel(HILL, 3, "logit", 0.7),
    "top label of probabilities": TopLabel(JUMP, 3, "probability"),
    "top label of powers": TopLabel(RISE, 3, "probability", 0.6),
    "top label that is never sure": TopLabel(Piecewise.constant(0.0), 3),
    "top label that is always sure": TopLabel(Piecewise.constant(1.0), 3, "probability"),
    "mixture with a top label": VectorMixture(
        [0.4, 0.6], (TopLabel(BETA, 3, "probability"), Softmax(0.7, np.zeros(3), "probability"))
    ),
    "mixture of scores": VectorMixture(
        [0.3, 0.7, 0.0],
        (Softmax(0.7, [0.1, -0.2, 0.0]), Coded.one_vs_rest((UP,) * 3), Softmax(1.0, np.zeros(3))),
    ),
    "mixture of logits": VectorMixture(
        [0.3, 0.7],
        (
            Softmax(0.7, [0.1, -0.2, 0.0], "probability"),
            Coded(PAIRS, (BETA, LINE, RISE), "coupling"),
        ),
        "logit",
        1e-6,
        0.5,
    ),
    "mixture of probabilities": VectorMixture(
        [0.3, 0.7],
        (Softmax(0.7, [0.1, -0.2, 0.0], "probability"), Coded.one_vs_rest((BETA, LINE, RISE))),
        "probability",
        0.01,
        1.7,
    ),
}


# --- scores that tell -----------------------------------------------------------------------------


def around(points):
    """Points and the three doubles on each side."""
    found = [np.asarray(points, dtype=np.float64)]
    for toward in (-np.inf, np.inf):
        at = found[0]
        for _ in range(3):
            with np.errstate(over="ignore"):
                at = np.nextafter(at, toward)
            found.append(at)
    flat = np.concatenate(found)
    return flat[np.isfinite(flat)]


def knots(map_, before=None, trend=1):
    """Scores at which a map, of what ``before`` makes of the score, changes its piece."""
    if isinstance(map_, Interval):
        return knots(map_.point, before, trend)
    if isinstance(map_, Segmented):
        return np.concatenate([knots(m, before, trend) for m in (map_.default, *map_.maps)])
    if isinstance(map_, Mixture):
        return np.concatenate([knots(member, before, trend) for member in map_.members])
    if isinstance(map_, Chain):
        found = []
        for i, step in enumerate(map_.steps):
            part = Chain(map_.steps[:i]) if i else None
            found.append(knots(step, part, part.trend if i else 1))
        return np.concatenate(found)
    if not isinstance(map_, Piecewise):
        return np.empty(0)
    steps = [step for step in (before, logit if map_.input == "logit" else None) if step]
    if not steps:
        return map_.x

    def function(s):
        for step in steps:
            s = step(s)
        return s

    ranks = borders(map_.x, function, trend < 0)
    return double_at(ranks[ranks < 2**63 - 2**53])


def telling(map_, margins, n=60):
    """Scores that tell a wrong piece from the right one."""
    rng = np.random.default_rng(5)
    scores = rng.normal(0, 3, n) if margins else rng.random(n)
    return np.concatenate((scores, around(knots(map_)[:60]), around([0.0, 1.0]), ENDS))


def wavering(map_, scores):
    """Scores at which a function before a table goes back and forth.

    The exponentials and logarithms of a C library may fall by their last bit where they should
    rise. A plan has one border there, and the map passes the knot several times.
    """
    found = np.zeros(len(scores), dtype=bool)
    steps = np.arange(-64, 65)
    doubles = double_at(np.clip(double_rank(scores)[:, None] + steps, FIRST, LAST))
    numbers = np.clip(scores[:, None] + steps * 2.0**-52, -LARGE, LARGE)
    nodes = use_counts([map_.plan(PlanTarget("anything", ""))])
    for place in (place for node in nodes for place in getattr(node, "places", ())):
        if place.function is None or place.stretches is None:
            continue
        for near in (doubles, numbers):
            values = place.function(near.ravel()).reshape(near.shape)
            sign = place.stretches.at(double_rank(near[:, :-1]))
            found |= (np.diff(values, axis=1) * sign < 0).any(axis=1)
    return found
