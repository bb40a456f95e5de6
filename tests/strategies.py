"""Random data sets with everything that goes wrong: ties, zero weights, extremes, one class."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from calibrant.maps import Chain, Identity, Interval, Logistic, Mixture, Piecewise

#: for tests whose examples are dear: a fifth of what the profile says
costly = settings(max_examples=max(settings().max_examples // 5, 4))

PROBABILITIES = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 5e-324, 1 - 2.0**-53, 1e-300]),
    st.integers(0, 10).map(lambda k: k / 10),
)
MARGINS = st.one_of(
    st.floats(-20, 20),
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.7e308, -1.7e308, 5e-324, 1e-310]),
)
TAME_PROBABILITIES = st.one_of(st.integers(1, 19).map(lambda k: k / 20), st.floats(0.01, 0.99))
TAME_MARGINS = st.one_of(st.integers(-3, 3).map(float), st.floats(-4, 4).map(lambda v: round(v, 3)))
WHOLE = st.integers(0, 4).map(float)
REAL = st.one_of(st.just(0.0), st.floats(0.01, 10.0))


@st.composite
def rows(draw, score=None, weight=WHOLE, min_size=1, max_size=30, both_classes=False):
    """(scores, labels 0/1, weights) with at least one positive weight."""
    chosen = draw(st.sampled_from([PROBABILITIES, MARGINS])) if score is None else score
    n = draw(st.integers(min_size, max_size))
    s = draw(st.lists(chosen, min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    w = draw(st.lists(weight, min_size=n, max_size=n))
    w[0] = w[0] or 1.0
    if both_classes:
        y[0], y[-1] = 0, 1
        w[-1] = w[-1] or 1.0
    return np.array(s), np.array(y), np.array(w)


# --- maps of one score ---------------------------------------------------------------------------

# a line between logarithms may be as steep as these knots allow: what rounding moves grows with it
KNOTS = st.integers(-16, 16).map(lambda v: v / 4)
PIECES = st.integers(1, 6).flatmap(
    lambda m: st.builds(
        Piecewise,
        st.lists(KNOTS, min_size=m, max_size=m, unique=True).map(sorted),
        *[st.lists(st.floats(0, 1), min_size=m, max_size=m)] * 2,
        st.sampled_from(["score", "logit"]),
        st.sampled_from(["probability", "logit"]),
    )
)
SIGMOIDS = st.builds(
    lambda a, b, name: Logistic(a, ((name, b),)),
    st.floats(-3, 3),
    st.floats(-3, 3),
    st.sampled_from(["x", "z", "ln_p", "neg_ln_1mp", "ln_sigmoid", "softplus"]),
)
LEAVES = st.one_of(PIECES, SIGMOIDS, st.just(Identity()))
MAPS = st.one_of(
    PIECES,
    st.lists(SIGMOIDS, min_size=1, max_size=2).flatmap(
        lambda first: PIECES.map(lambda last: Chain((*first, last)))
    ),
    st.lists(LEAVES, min_size=1, max_size=3).map(
        lambda members: Mixture(np.full(len(members), 1 / len(members)), members)
    ),
)
#: chains and mixtures of anything, of which some cannot be written without a doubt
NESTED = st.recursive(
    st.one_of(
        LEAVES, st.builds(lambda a: Logistic(0.1, (("z", 0.5), ("z2", a))), st.floats(-1, 1))
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(lambda steps: Chain(tuple(steps))),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda members: Mixture(np.full(len(members), 1 / len(members)), members)
        ),
        inner.map(lambda point: Interval(point, point, point)),
    ),
    max_leaves=6,
)
