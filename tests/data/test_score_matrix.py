"""Matrices of scores of several classes: whether they are probabilities or logits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from calibrant.data.score_matrix import ScoreMatrix
from calibrant.errors import AdviceWarning, InputError


def matrix_of(scores):
    return ScoreMatrix(np.asarray(scores, dtype=float), np.zeros(len(scores), dtype=int))


@pytest.mark.parametrize("k", [2, 3, 7, 30])
@pytest.mark.parametrize("digits", [2, 3, 6])
def test_rounded_probabilities_are_probabilities(k, digits):
    p = np.random.default_rng(k).dirichlet(np.ones(k), size=500).round(digits)
    assert matrix_of(p).kind() == "probability"


def test_percentages_are_refused():
    p = 100.0 * np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    for scores in (p, p.round(1), p.round()):
        with pytest.raises(InputError, match=r"sums to 100.*Divide them by 100"):
            matrix_of(scores).kind()
    assert matrix_of(np.vstack([p, [[10.0, 20.0, 30.0, 60.0]]])).kind() == "logit"


def test_scores_within_0_and_1_that_are_no_distributions_are_logits_with_a_word():
    scores = np.random.default_rng(0).uniform(size=(50, 3))
    with pytest.warns(AdviceWarning, match=r"rows sum to 0\.\d+ up to .*read as logits"):
        assert matrix_of(scores).kind() == "logit"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert matrix_of(scores * 3.0).kind() == "logit"
        assert matrix_of(scores - 0.5).kind() == "logit"
