"""The fast trees of Niculescu-Mizil 2005 are scikit-learn's, node for node."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import calibrant as cal
from calibrant.methods.boosting import rounded_weights
from studies import experiment


@pytest.fixture(scope="module")
def trees(root):
    found = experiment(root, "papers.niculescu2005.exact_trees")
    if not sklearn.__version__.startswith(found.COMPARED):
        pytest.skip(f"the trees are those of scikit-learn {found.COMPARED}x")
    return found


def same(one, other):
    """Whether two trees have the same bits in every node."""
    states = [tree.tree_.__getstate__() for tree in (one, other)]
    return (
        states[0]["max_depth"] == states[1]["max_depth"]
        and states[0]["nodes"].tobytes() == states[1]["nodes"].tobytes()
        and states[0]["values"].tobytes() == states[1]["values"].tobytes()
    )


def table(random, n, kinds):
    """Columns of one, two, few and many values, some of them equal up to 1e-7; labels; weights."""
    made = {
        "constant": lambda: np.full(n, 3.0),
        "two": lambda: random.integers(0, 2, n) * 5.0 - 1.0,
        "rare": lambda: (random.random(n) < 3.0 / n) * 1.0,
        "few": lambda: random.integers(-4, 12, n) / 3.0,
        "many": lambda: random.normal(size=n) ** 3,
        "near": lambda: 0.5 + random.integers(0, 200, n) * 3e-8,
    }
    X = np.column_stack([made[kind]() for kind in kinds]).astype(np.float32)
    y = (random.random(n) < 0.4).astype(np.int8)
    y[:2] = 0, 1
    w = np.exp(random.normal(size=n) * random.choice([0.0, 1.0, 4.0]))
    return X, y, rounded_weights(w / w.sum(), np.ones(n))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 160),
    st.lists(st.sampled_from(["constant", "two", "rare", "few", "many", "near"]), min_size=1,
             max_size=8),
    st.sampled_from(["gini", "entropy"]),
    st.sampled_from([1, 2, 7]),
    st.sampled_from([None, 1, 2, 5]),
    st.sampled_from([0.0, 1e-3, 2e-2]),
)  # fmt: skip
def test_a_tree_is_scikit_learns(trees, seed, n, kinds, criterion, least, deepest, alpha):
    X, y, w = table(np.random.default_rng(seed), n, kinds)
    options = {
        "criterion": criterion,
        "min_samples_leaf": least,
        "max_depth": deepest,
        "ccp_alpha": alpha,
        "random_state": seed,
    }
    one = DecisionTreeClassifier(**options).fit(X, y, sample_weight=w, check_input=False)
    other = trees.ExactTree(**options).fit(X, y, sample_weight=w, check_input=False)
    assert same(one, other)


@pytest.mark.parametrize("loss", ["exponential", "log"])
@pytest.mark.parametrize("options", [{}, {"votes": "soft", "leaf_smoothing": "laplace"}])
def test_a_booster_of_fast_trees_is_the_same_booster(trees, loss, options):
    """With margins that grow from round to round, and rows in other orders of columns."""
    kinds = ["two", "rare", "few", "many", "many", "two", "near"]
    X, y, _ = table(np.random.default_rng(8), 600, kinds)
    make = {"n_estimators": 40, "loss": loss, "random_state": 3, **options}
    slow = cal.boosting.AdaBoost("tree", **make).fit(X, y)
    with trees.exact_trees():
        fast = cal.boosting.AdaBoost("tree", **make).fit(X, y)
    assert all(isinstance(tree, trees.ExactTree) for tree in fast.estimators_)
    assert not any(isinstance(tree, trees.ExactTree) for tree in slow.estimators_)
    assert len(slow.estimators_) == len(fast.estimators_)
    assert all(map(same, slow.estimators_, fast.estimators_))
    assert np.array_equal(slow.decision_function(X), fast.decision_function(X))


def test_what_the_fast_trees_do_not_take_is_refused(trees):
    X, y = np.zeros((3, 1), dtype=np.float32), np.array([0, 1, 2])
    with pytest.raises(ValueError, match="two classes"):
        trees.ExactTree().fit(X, y, sample_weight=np.ones(3), check_input=False)
