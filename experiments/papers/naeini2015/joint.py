"""Future work: posterior probabilities of models of joint distributions, max-margin ones too.

Chains of letters: the order of the two kinds (A to M, N to Z) is a simulated Markov chain, each
letter is a row of UCI's Letter of that kind. A chain model is trained on some chains, the
probabilities of its nodes are calibrated on others, with all nodes pooled, and tested on new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

import calibrant as cal
from experiments import table
from experiments.chains import Chain, best_labels, fit_field, fit_margin, marginals, max_marginals
from experiments.data import read, task
from experiments.papers.cells import Cell, Table, repeated
from experiments.papers.naeini2015.methods import BASE as ITSELF
from experiments.papers.naeini2015.methods import METHODS as OF_THE_PAPER

__all__ = ["BASE", "JOINT_TABLE", "METHODS", "MODELS", "better"]

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

DATASET = "letter_p2"
LENGTH, STAYS = 30, 0.8
#: chains to train, to calibrate and to test on
CHAINS = (30, 50, 300)
SEEDS = 20
BASE = "model"
METHODS: dict[str, Callable[[], Any]] = {
    **{name: make for name, make in OF_THE_PAPER.items() if name != ITSELF},
    "ENIR": cal.ENIR,
    "BLS": cal.BLS,
}
MEASURES = ("log loss", "Brier", "ECE")
#: log loss counts a probability of 0 as this
CLIP = 1e-6


class Model(NamedTuple):
    """How a chain is fitted, what is read of its nodes, and as which probability."""

    fit: Callable[[Array, Labels], Chain]
    score: Callable[[Array, float], Array]
    link: Callable[[Array], Array]


def _itself(scores: Array) -> Array:
    return scores


MODELS = {
    "random field": Model(fit_field, marginals, _itself),
    "max margin, marginals": Model(fit_margin, marginals, _itself),
    "max margin, margins": Model(fit_margin, max_marginals, expit),
}


@lru_cache(maxsize=1)
def letters() -> tuple[Array, Labels]:
    """Features, standardised, and kinds of all letters."""
    X, y = read(task(DATASET), None)
    values = X.to_numpy(dtype=float)
    return (values - values.mean(axis=0)) / values.std(axis=0), y


def drawn(seed: int) -> list[tuple[Array, Labels]]:
    """Chains to train, calibrate and test on; no letter is in two of the three."""
    X, y = letters()
    rng = np.random.default_rng(seed)
    parts = np.array_split(rng.permutation(len(y)), len(CHAINS))
    found = []
    for part, chains in zip(parts, CHAINS, strict=True):
        states = np.empty((chains, LENGTH), dtype=np.intp)
        states[:, 0] = rng.random(chains) < 0.5
        for t in range(1, LENGTH):
            stays = rng.random(chains) < STAYS
            states[:, t] = np.where(stays, states[:, t - 1], 1 - states[:, t - 1])
        rows = np.empty_like(states)
        for kind in (0, 1):
            chosen = states == kind
            rows[chosen] = rng.choice(part[y[part] == kind], int(chosen.sum()))
        found.append((X[rows], states))
    return found


def measured(name: str, y: Labels, p: Array) -> dict[str, float]:
    found = (
        cal.metrics.log_loss(y, p, clip=CLIP),
        cal.metrics.brier(y, p),
        cal.metrics.ece(y, p, binning="mass"),
    )
    return {f"{name} {m}": round(float(v), 6) for m, v in zip(MEASURES, found, strict=True)}


def run(model: str, seed: int) -> dict[str, float]:
    """One draw of chains: the model's own probabilities, and those after each calibrator."""
    fit, score, link = MODELS[model]
    train, hold, test = drawn(seed)
    chain = fit(*train)
    held, new = (score(chain.nodes(X), chain.equal).ravel() for X, _ in (hold, test))
    y, truth = hold[1].ravel(), test[1].ravel()
    errors = best_labels(chain.nodes(test[0]), chain.equal).ravel() != truth
    row = {"error": round(float(errors.mean()), 6)} | measured(BASE, truth, link(new))
    for name, make in METHODS.items():
        row |= measured(name, truth, make().fit(held, y).calibrate(new))
    return row


def cells(quick: bool) -> list[Cell]:
    return repeated(5 if quick else SEEDS, model=MODELS)


# --- the page -------------------------------------------------------------------------------------


def better(frame: pd.DataFrame, model: str, method: str, measure: str) -> tuple[int, int]:
    """In how many draws a method is better than the model's own probabilities."""
    part = frame[frame["model"] == model]
    return int((part[f"{method} {measure}"] < part[f"{BASE} {measure}"]).sum()), len(part)


TEXT = """No figures are published. {train} chains of {length} letters to train, {hold} to
calibrate, {test} to test; {draws} draws. Neighbours are of one kind (A to M, N to Z) with
probability {stays:g}. *Random field*: a conditional random field by maximum likelihood, its exact
marginals. *Max margin*: the same scores of chains, fitted by the structured hinge loss with a
subgradient method; it has no probabilities, so its weights are read as if they were a field's
("marginals"), or a node's score is the best labelling with it at 1 minus the best with it at 0,
through σ where nothing is fitted ("margins"). Means over draws; in brackets, the draws in which a
method is better than what it was given. ECE in ten groups of equal mass, ties together."""


def page(frame: pd.DataFrame) -> str:
    train, hold, test = CHAINS
    said = TEXT.format(
        train=train, hold=hold, test=test, length=LENGTH, stays=STAYS, draws=frame["seed"].nunique()
    )
    rows = []
    for model in [name for name in MODELS if name in set(frame["model"])]:
        part = frame[frame["model"] == model]
        for name in (BASE, *METHODS):
            texts = []
            for measure in MEASURES:
                won, draws = better(frame, model, name, measure)
                more = "" if name == BASE else f" ({won} of {draws})"
                texts.append(f"{part[f'{name} {measure}'].mean():.4f}{more}")
            label = f"{model} (error {part['error'].mean():.3f})" if name == BASE else ""
            rows.append((label, name, *texts))
    return f"{said}\n\n{table(('chain', 'method', *MEASURES), rows)}"


JOINT_TABLE = Table("joint", "Future work: nodes of joint models", cells, run, page)
