"""What goes wrong elsewhere, silently: each is a test here."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import calibrant as cal


def overconfident(n, seed=0):
    rng = np.random.default_rng(seed)
    margin = rng.normal(0, 3, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-margin / 3))).astype(int)
    return 1 / (1 + np.exp(-margin)), y


@pytest.mark.parametrize("labels", [(1, 2), (-1, 1), ("a", "b"), (False, True)])
@pytest.mark.parametrize("kind", [cal.Temperature, cal.Histogram, cal.Isotonic, cal.Platt])
def test_labels_other_than_zero_and_one(kind, labels):
    p, y = overconfident(500)
    named = np.where(y == 1, labels[1], labels[0])
    c = kind().fit(p, named)
    assert (c.calibrate(p) == kind().fit(p, y).calibrate(p)).all()
    assert np.ptp(c.calibrate(p)) > 0.3, "not a constant"
    assert roc_auc_score(y, c.calibrate(p)) > 0.6, "not inverted"


def test_one_nan_is_not_swallowed():
    p, y = overconfident(400)
    c = cal.Platt().fit(p, y)
    p[17] = np.nan
    for use in (
        lambda: cal.Platt().fit(p, y),
        lambda: c.predict_proba(p),
        lambda: cal.metrics.ece(y, p),
        lambda: cal.diagrams.reliability_curve(y, p),
        lambda: cal.evaluate(y, p),
    ):
        with pytest.raises(cal.errors.InputError, match=r"1 of 400 is NaN \(first at row 17\)"):
            use()


def test_wrong_lengths_are_not_broadcast():
    p, y = overconfident(400)
    for use in (
        cal.metrics.ece,
        cal.metrics.brier,
        cal.metrics.log_loss,
        cal.metrics.auc,
        cal.evaluate,
        cal.diagrams.reliability_curve,
    ):
        with pytest.raises(cal.errors.InputError, match=r"400.*399|399.*400"):
            use(y[:399], p)


def test_percentages_soft_labels_and_nothing_are_refused():
    p, y = overconfident(400)
    for use in (cal.metrics.ece, cal.metrics.brier, cal.evaluate):
        with pytest.raises(cal.errors.InputError, match="Divide percentages by 100"):
            use(y, p * 100)
        with pytest.raises(cal.errors.InputError, match="soft labels"):
            use(p, p)
        with pytest.raises(cal.errors.InputError, match="at least one row"):
            use([], [])


def test_isotonic_on_small_sets_can_be_kept_from_certainty():
    p, y = overconfident(60, seed=3)
    new_p, new_y = overconfident(4000, seed=4)
    bare = cal.Isotonic().fit(p, y).calibrate(new_p)
    assert bare.min() == 0.0
    smooth = cal.Isotonic(smoothing="laplace").fit(p, y).calibrate(new_p)
    assert 0 < smooth.min() < smooth.max() < 1
    assert np.isfinite(log_loss(new_y, smooth))


def test_centred_isotonic_makes_no_ties_between_its_ends():
    p, y = overconfident(2000)
    step, centred = cal.Isotonic().fit(p, y), cal.Isotonic(interpolation="centred").fit(p, y)
    inside = p[(p > centred.map_.x[0]) & (p < centred.map_.x[-1])]
    assert len(inside) > 1000
    assert len(np.unique(centred.calibrate(inside))) == len(np.unique(inside))
    assert len(np.unique(step.calibrate(p))) < 100
    assert roc_auc_score(y, centred.calibrate(p)) >= roc_auc_score(y, p) - 0.02


def test_a_temperature_never_turns_the_order_round():
    p, y = overconfident(300)
    for labels in (y, 1 - y):
        c = cal.Temperature().fit(p, labels)
        assert c.temperature_ > 0
        assert roc_auc_score(labels, c.calibrate(p)) == pytest.approx(roc_auc_score(labels, p))


def test_zero_weights_are_accepted_and_mean_absent():
    p, y = overconfident(300)
    w = np.ones(300)
    w[:100] = 0
    for kind in (cal.Platt, cal.Beta, cal.Isotonic, cal.Histogram, cal.Temperature):
        assert kind().fit(p, y, w).map_ == kind().fit(p[100:], y[100:]).map_


def test_scikit_learns_scorers_agree_for_either_positive_label():
    from sklearn.metrics import get_scorer

    p, y = overconfident(500)
    high, low = cal.Platt().fit(p, y), cal.Platt(pos_label=0).fit(1 - p, y)
    for name in ("neg_log_loss", "roc_auc", "neg_brier_score"):
        a, b = get_scorer(name)(high, p, y), get_scorer(name)(low, 1 - p, y)
        assert a == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize(
    "make", [cal.Platt, cal.Beta, lambda: cal.Beta(parameters="am"), cal.Temperature]
)
def test_one_surprise_at_an_exact_zero_does_not_flatten_the_map(make):
    """Forests and neighbours give exact 0 and 1, whose logits must not outweigh all other rows."""
    random = np.random.default_rng(0)
    p = random.beta(0.5, 0.5, 4000)
    votes = random.binomial(30, p) / 30
    y = random.random(4000) < p
    assert y[votes == 0].any()
    assert not y[votes == 1].all()
    c = make().fit(votes[:2000], y[:2000])
    after, before = (
        cal.metrics.brier(y[2000:], v) for v in (c.calibrate(votes[2000:]), votes[2000:])
    )
    assert after < before + 0.002
    inside = make().fit(np.clip(votes[:2000], 1 / 60, 59 / 60), y[:2000])
    assert np.allclose(c.calibrate(votes), inside.calibrate(np.clip(votes, 1 / 60, 59 / 60)))
    assert 0 < c.calibrate([0.0])[0] < c.calibrate([1 / 30])[0]
    assert c.calibrate([0.0]) == c.calibrate([1e-9])  # what lies between counts as the end does


@pytest.mark.parametrize("make", [cal.Platt, cal.Beta, cal.Temperature])
def test_zeros_and_ones_that_only_new_rows_have_are_not_certain(make):
    random = np.random.default_rng(1)
    p = np.clip(random.beta(2, 2, 300), 0.05, 0.95)
    c = make().fit(p, random.random(300) < p)
    low, high = c.calibrate([0.0, 1.0])
    assert 1e-3 < low < c.calibrate([p.min()])[0]
    assert c.calibrate([p.max()])[0] < high < 1 - 1e-3
