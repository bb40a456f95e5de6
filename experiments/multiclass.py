"""Tables 4 and 5 of Zadrozny and Elkan 2002: several classes by way of binary naive Bayes.

``python -m experiments.multiclass [--quick]`` trains naive Bayes and boosted naive Bayes for each
column of a code, calibrates them by PAV on the training rows (as the paper did) and on folds, and
combines the columns by normalisation, least squares and coupling: on Pendigits and on both versions
of 20 Newsgroups.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

import calibrant as cal
from experiments import RESULTS, keep, say, table
from experiments.data import DataMissingError, data_folder

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

SPLITS = 10
#: rounds of boosting
ROUNDS = {"pendigits": 25, "19997": 10, "bydate": 10}
#: where PAV's scores come from: the training rows, or three folds
CALIBRATIONS = {"PAV": "train", "PAV on folds": 3}
COMBINERS = {
    "Norm": cal.multiclass.normalize,
    "LS": cal.multiclass.least_squares,
    "Coup": cal.multiclass.coupling,
}
PRINTED = "Coup, as printed"
#: what is counted of the words, and what is added to every count
WORDS = [(kind, alpha) for kind in ("counts", "presence") for alpha in (1.0, 0.1, 0.01)]
CELL = ["data", "kind", "code", "model", "calibration", "combine", "split"]
MEASURES = ["MSE", "error", "tied"]

#: Table 5: MSE (the sum over classes divided by 20) and error, each with its standard deviation
PUBLISHED = {
    ("", "Norm"): ((0.01625, 0.00049), (0.15836, 0.0067)),
    ("", "LS"): ((0.01720, 0.00045), (0.15530, 0.0064)),
    ("", "Coup"): ((0.01585, 0.00041), (0.16066, 0.0075)),
    ("PAV", "Norm"): ((0.01220, 0.00038), (0.15305, 0.0060)),
    ("PAV", "LS"): ((0.01419, 0.00029), (0.15299, 0.0057)),
    ("PAV", "Coup"): ((0.01415, 0.00029), (0.15422, 0.0060)),
}


class Rows(NamedTuple):
    """Rows and labels to learn from, and others to judge on."""

    X: Any
    y: Labels
    X_new: Any
    y_new: Labels


# --- the data -------------------------------------------------------------------------------------


def pendigits(kind: str) -> Rows:
    """Sixteen numbers from 0 to 100 with the source's split, as they are or in ten equal bins."""
    frame = pd.read_csv(data_folder() / "pendigits.csv.gz")
    X = frame.drop(columns=["label", "split"]).to_numpy(dtype=np.float64)
    X = X if kind == "Gaussian" else np.minimum(X // 10, 9).astype(np.intp)
    y, train = frame["label"].to_numpy(dtype=np.intp), (frame["split"] == "train").to_numpy()
    return Rows(X[train], y[train], X[~train], y[~train])


def newsgroups(name: str) -> tuple[csr_matrix, Labels, NDArray[np.bool_] | None]:
    """Word counts, labels, and who is in the test set where the source says so."""
    data = np.load(data_folder() / f"20newsgroups-{name}.npz")
    X = csr_matrix((data["data"].astype(np.float64), data["indices"], data["indptr"]))
    test = data["is_test"].astype(bool) if "is_test" in data.files else None
    return X, data["label"].astype(np.intp), test


def as_words(X: csr_matrix, kind: str) -> csr_matrix:
    """The counts, or 1 for each word that is there."""
    return X if kind == "counts" else X.sign()


def split(y: Labels, seed: int) -> tuple[Labels, Labels]:
    """80 % of each class, drawn at random, and the rest."""
    rng = np.random.default_rng(seed)
    parts = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    cuts = [np.split(rows, [round(0.8 * len(rows))]) for rows in parts]
    train, test = (np.concatenate(rows) for rows in zip(*cuts, strict=True))
    return train, test


# --- one model per column, and what becomes of its scores -----------------------------------------


def boosted(model: Any, rounds: int) -> cal.AdaBoost:
    """AdaBoost of naive Bayes, whose votes are its probabilities."""
    return cal.AdaBoost(model, votes="soft", n_estimators=rounds)


def score(model: Any, X: Any) -> Array:
    """What PAV calibrates: boosting's share of votes, else log-odds, which do not round to 0 or 1.

    F itself would not do: its size depends on the rounds, and folds may differ in these.
    """
    if hasattr(model, "raw_score"):
        return model.raw_score(X)
    joint = model.predict_joint_log_proba(X)
    return joint[:, 1] - joint[:, 0]


def as_printed(r: Array) -> Array:
    """Where the iteration printed for coupling ends, for one against the rest.

    It divides n_c = r_c + Σ_{b≠c}(1 − r_b) by the same sum of p and renormalises; at its fixed
    point k − 2 + 2p_c is proportional to n_c for every class that is not zero.
    """
    k = r.shape[1]
    n = k - 1 - r.sum(axis=1, keepdims=True) + 2 * r
    high = -np.sort(-n, axis=1)
    factor = (2 + np.arange(1, k + 1) * (k - 2)) / np.cumsum(high, axis=1)
    positive = (factor * high > k - 2).sum(axis=1) - 1
    p = np.maximum(factor[np.arange(len(r)), positive][:, None] * n - (k - 2), 0.0)
    return p / p.sum(axis=1, keepdims=True)


def probabilities(
    rows: Rows, estimator: Any, code: str, calibrations: tuple[str, ...] = tuple(CALIBRATIONS)
) -> Iterator[tuple[str, cal.Code, Array]]:
    """The columns' probabilities of the new rows, by calibration; ``""`` for none."""
    for name in calibrations:
        model = cal.CodedClassifier(
            estimator,
            code=code,
            calibrator=cal.Isotonic(),
            cv=CALIBRATIONS[name],
            method=score,
        )
        with warnings.catch_warnings():  # boosting may stop before its last round
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            scores = model.fit(rows.X, rows.y).scores(rows.X_new)
        if name == calibrations[0]:
            sure = [m.predict_proba(rows.X_new)[:, 1] for m in model.estimators_]
            yield "", model.code_, np.column_stack(sure)
        calibrated = [c.calibrate(scores[:, b]) for b, c in enumerate(model.calibrators_)]
        yield name, model.code_, np.column_stack(calibrated)


def combined(r: Array, code: cal.Code, y: Labels) -> Iterator[tuple[str, Array]]:
    """The distributions that each combiner makes of r; y are the training labels."""
    if code == cal.multiclass.one_vs_rest(code.n_classes):
        for name, combine in COMBINERS.items():
            yield name, combine(r, code)
        yield PRINTED, as_printed(r)
        return
    yield "LS", cal.multiclass.least_squares(r, code)
    used = (code.matrix[y] != 0).sum(axis=0)
    yield "Coup", cal.multiclass.coupling(r, code, used)


def lines(rows: Rows, estimator: Any, code: str, case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A line per calibration and combiner: MSE (the sum over classes), error, and share of ties."""
    chosen = case.pop("calibrations", tuple(CALIBRATIONS))
    for calibration, matrix, r in probabilities(rows, estimator, code, chosen):
        tied = float((((r == 1.0).sum(axis=1) > 1) | (r == 0.0).all(axis=1)).mean())
        for combine, p in combined(r, matrix, rows.y):
            found = cal.brier(rows.y_new, p), 1 - cal.accuracy(rows.y_new, p), tied
            line = {**case, "code": code, "calibration": calibration, "combine": combine}
            yield line | dict(zip(MEASURES, found, strict=True))


# --- what is run ----------------------------------------------------------------------------------


def on_pendigits(codes: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Both kinds of naive Bayes, plain and boosted, with each code."""
    models = {"Gaussian": GaussianNB(), "ten bins": CategoricalNB(min_categories=10)}
    for kind, model in models.items():
        rows = pendigits(kind)
        for code in codes:
            case = {"data": "pendigits", "kind": kind, "split": 0}
            yield from lines(rows, model, code, case | {"model": "NB"})
            more = boosted(model, ROUNDS["pendigits"])
            yield from lines(rows, more, code, case | {"model": "boosted NB"})
            say(f"pendigits, {kind}, {code}: {time.process_time():.0f} s of CPU time so far")


def on_newsgroups(
    rows: Rows, data: str, number: int, *, boost: bool, words: list[tuple[str, float]]
) -> Iterator[dict[str, Any]]:
    """One split: multinomial naive Bayes of each kind of words, the first with folds and boosted.

    MSE is the paper's here: the sum over classes, divided by their number.
    """
    for place, (kind, alpha) in enumerate(words):
        seen = rows._replace(X=as_words(rows.X, kind), X_new=as_words(rows.X_new, kind))
        case = {"data": data, "kind": f"{kind}, {alpha:g}", "split": number}
        chosen = {} if place == 0 else {"calibrations": ("PAV",)}
        model = MultinomialNB(alpha=alpha)
        found = list(lines(seen, model, "one_vs_rest", case | {"model": "NB"} | chosen))
        if boost and place == 0:
            more = boosted(model, ROUNDS[data])
            found += lines(seen, more, "one_vs_rest", case | {"model": "boosted NB"})
        yield from (line | {"MSE": line["MSE"] / 20} for line in found)
    say(f"20 Newsgroups {data}, split {number}: {time.process_time():.0f} s of CPU time so far")


def study(*, quick: bool) -> pd.DataFrame:
    """A row per data, kind, code, model, calibration, combiner and split."""
    codes = ("one_vs_rest",) if quick else ("one_vs_rest", "all_pairs", "ecoc")
    words = WORDS[:1] if quick else WORDS
    found = list(on_pendigits(codes))
    X, y, test = newsgroups("bydate")
    given = Rows(X[~test], y[~test], X[test], y[test])
    found += on_newsgroups(given, "bydate", 0, boost=not quick, words=words)
    X, y, _ = newsgroups("19997")
    for number in range(2 if quick else SPLITS):
        train, new = split(y, number)
        rows = Rows(X[train], y[train], X[new], y[new])
        found += on_newsgroups(rows, "19997", number, boost=not quick, words=words)
    return pd.DataFrame(found)[[*CELL, *MEASURES]].round(6)


# --- the page -------------------------------------------------------------------------------------


def called(calibration: str, model: str) -> str:
    """A row's name, as in the paper: PAV NB."""
    base, _, where = calibration.partition(" ")
    return " ".join(part for part in (base, model, f"({where})" if where else "") if part)


def wide(results: pd.DataFrame, combiners: list[str]) -> str:
    """Models and calibrations down, combiners across: MSE, then error."""
    rows = []
    keys = ["kind", "code", "model", "calibration"]
    for (kind, code, model, calibration), part in results.groupby(keys, sort=False):
        cells = part.set_index("combine")
        name = called(calibration, model)
        if code != "one_vs_rest":
            name = f"{kind}, {code.replace('_', ' ')}: {name}"
        mse = [f"{cells.loc[c, 'MSE']:.4f}" for c in combiners]
        rows.append((name, *mse, *(f"{cells.loc[c, 'error']:.4f}" for c in combiners)))
    columns = [f"{measure} {c}" for measure in ("MSE", "error") for c in combiners]
    return table(("", *columns), rows)


def long(results: pd.DataFrame) -> str:
    """A row per model, calibration and combiner, mean ± standard deviation, published beside."""
    rows = []
    for keys, part in results.groupby(["model", "calibration", "combine"], sort=False):
        model, calibration, combine = keys
        given = PUBLISHED.get((calibration, combine)) if model == "NB" else None
        mse, error = ("–", "–") if given is None else (f"{m:.5f} ± {sd:.5f}" for m, sd in given)
        rows.append(
            (
                f"{called(calibration, model)} {combine}",
                f"{part['MSE'].mean():.5f} ± {part['MSE'].std():.5f}",
                mse,
                f"{part['error'].mean():.5f} ± {part['error'].std():.5f}",
                error,
                f"{part['tied'].mean():.1%}",
            )
        )
    columns = ("method", "MSE", "published", "error", "published", "tied")
    return table(columns, rows)


def by_words(results: pd.DataFrame) -> str:
    """Means over splits for each way to count words."""
    pairs = [(c, m) for c in ("", "PAV") for m in ("Norm", "LS", "Coup", PRINTED)]
    mean = results.groupby(["kind", "calibration", "combine"], sort=False)[["MSE", "error"]].mean()
    rows = []
    for kind in results["kind"].unique():
        cells = [mean.loc[(kind, *pair)] for pair in pairs]
        errors = (f"{cells[i]['error']:.4f}" for i in (0, 4))
        rows.append((kind, *(f"{cell['MSE']:.5f}" for cell in cells), *errors))
    given = [PUBLISHED.get(pair) for pair in pairs]
    told = ("–" if cell is None else f"{cell[0][0]:.5f}" for cell in given)
    rows.append(("published", *told, *(f"{given[i][1][0]:.4f}" for i in (0, 4))))
    names = [f"{called(c, 'NB')} {m}" for c, m in pairs]
    return table(("words, α", *names, "error NB Norm", "error PAV NB Norm"), rows)


HEADING = """# Several classes by binary naive Bayes: Tables 4 and 5 of Zadrozny and Elkan (2002)

A binary model for each column of a code, calibrated by PAV (isotonic regression, steps) and
combined by normalisation (Norm), least squares (LS) or coupling (Coup). PAV's scores are those of
the training rows, as in the paper, or of three folds ("on folds"): log-odds, since probabilities of
naive Bayes round to 0 and 1. Without PAV the models' probabilities are taken at their word.
Boosted: AdaBoost with votes 2p − 1, {pendigits} rounds on Pendigits and {news} on 20 Newsgroups,
fewer where a round is no better than chance; its probabilities are σ(2F), and PAV sees the weighted
share of votes. The paper's rounds, and its ways to model numbers and to count words, are not in the
text that we have.

"Coup" is the minimum of the Kullback–Leibler divergence. "Coup, as printed" is where the iteration
printed for coupling ends, another point. With one-against-all, none of these changes the order of
the columns, so errors differ only through ties and rounding.

Made by `python -m experiments.multiclass`."""

PENDIGITS = """## Pendigits (Table 4)

7,494 rows to train, 3,498 rows of other writers to test, one-against-all. MSE is the sum over
classes. The published figures are not legible in our copy.

### Gaussian naive Bayes

{gaussian}

### Naive Bayes on ten equal bins per attribute

Laplace's 1 added to each count.

{bins}

### Other codes

All pairs (45 columns), and a dense random code of 34 columns (ecoc). Coupling counts columns by
their training rows.

{codes}"""

NEWS = """## 20 Newsgroups, 19,997 messages (Table 5)

80 % of each class to train, drawn at random ten times. MSE is the sum over classes divided by 20,
as in the published table. One-against-all, multinomial naive Bayes on word counts, 1 added to each
count (α). Words of the message body; the paper does not say which it took. ±: standard deviation
over splits. Tied: rows in which several columns say exactly 1, or all say 0.

{main}

### How words are counted

Counts, or 1 for each word that is there; means over ten splits.

{words}

## 20 Newsgroups by date

11,269 messages to train, 7,505 later ones to test; without duplicates. As above (α = 1).

{bydate}

By the way words are counted:

{dated}"""


def page(results: pd.DataFrame) -> str:
    """Everything that is printed and kept."""
    pen, news, dated = (results[results["data"] == d] for d in ("pendigits", "19997", "bydate"))
    every = ["Norm", "LS", "Coup", PRINTED]
    single = pen[pen["code"] == "one_vs_rest"]
    kinds = {kind: wide(part, every) for kind, part in single.groupby("kind", sort=False)}
    others = pen[pen["code"] != "one_vs_rest"]
    plain = news[news["kind"] == news["kind"].iloc[0]]
    parts = [
        HEADING.format(pendigits=ROUNDS["pendigits"], news=ROUNDS["19997"]),
        PENDIGITS.format(
            gaussian=kinds["Gaussian"], bins=kinds["ten bins"], codes=wide(others, ["LS", "Coup"])
        ),
        NEWS.format(
            main=long(plain),
            words=by_words(news[news["model"] == "NB"]),
            bydate=wide(dated[dated["kind"] == dated["kind"].iloc[0]], every),
            dated=by_words(dated[dated["model"] == "NB"]).rsplit("\n", 1)[0],
        ),
    ]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cases, nothing kept")
    quick = parser.parse_args().quick
    try:
        results = study(quick=quick)
    except DataMissingError as error:
        sys.exit(str(error))
    if quick:
        keys = [name for name in CELL if name != "split"]
        say(results.groupby(keys, sort=False)[MEASURES].mean().to_string())
        return
    results.to_csv(RESULTS / "multiclass.csv", index=False)
    keep("multiclass.md", page(results.fillna("")))


if __name__ == "__main__":
    main()
