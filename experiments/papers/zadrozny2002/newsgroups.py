"""Table 5: 20 Newsgroups by binary naive Bayes, one against the rest, on ten random splits."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.naive_bayes import MultinomialNB

from experiments import table
from experiments.data import read_arrays
from experiments.papers.beside import Beside, beside, counted, tall, told_within
from experiments.papers.cells import Cell, Row, Table
from experiments.papers.published import published
from experiments.papers.zadrozny2002.coding import Labels
from experiments.papers.zadrozny2002.columns import COMBINERS, EVERY, Rows, boosted, figures
from experiments.papers.zadrozny2002.pendigits import BOOSTED, KINDS, heads, ways

SPLITS, QUICK_SPLITS = 10, 5
ROUNDS = 10
#: published MSE are the sum over classes divided by their number
CLASSES = 20
#: what is counted of the words, and what is added to every count
WORDS = {
    f"{kind}, {alpha:g}": (kind, alpha)
    for kind in ("counts", "presence")
    for alpha in (1.0, 0.1, 0.01)
}
PLAIN = "counts, 1"
MAIN = {"data": "19997", "words": PLAIN}


# --- the data -------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def messages(name: str) -> tuple[csr_matrix, Labels, NDArray[np.bool_] | None]:
    """Word counts, labels, and who is in the test set where the source says so."""
    data = read_arrays(f"20newsgroups-{name}")
    X = csr_matrix((data["data"].astype(np.float64), data["indices"], data["indptr"]))
    test = data["is_test"].astype(bool) if "is_test" in data else None
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


def rows(data: str, words: str, seed: int) -> Rows:
    """One split: at random, or the source's by date."""
    X, y, test = messages(data)
    X = as_words(X, WORDS[words][0])
    train, new = split(y, seed) if test is None else (np.flatnonzero(~test), np.flatnonzero(test))
    return Rows(X[train], y[train], X[new], y[new])


def run(data: str, words: str, model: str, on: str, seed: int) -> Row:
    """One model on one split, its columns calibrated on the training rows or on folds."""
    plain = MultinomialNB(alpha=WORDS[words][1])
    chosen = {"NB": plain, "boosted NB": boosted(plain, ROUNDS)}[model]
    return figures(rows(data, words, seed), chosen, "one_vs_rest", on, divide=CLASSES)


def cells(quick: bool) -> list[Cell]:
    """Quick: half the splits, boosting on one of them."""
    found: list[Cell] = []
    for data, splits in {"19997": QUICK_SPLITS if quick else SPLITS, "bydate": 1}.items():
        plain = [("NB", words, "train", splits) for words in WORDS]
        folds = [("NB", PLAIN, "folds", splits)]
        more = [("boosted NB", PLAIN, on, 1 if quick else splits) for on in ("train", "folds")]
        found += [
            {"data": data, "words": words, "model": model, "on": on, "seed": seed}
            for model, words, on, count in [*plain, *folds, *more]
            for seed in range(count)
        ]
    return found


# --- the page -------------------------------------------------------------------------------------


def part(frame: pd.DataFrame, **keys: str) -> pd.DataFrame:
    """The runs of some cells. Data are named by numbers or words, so they are compared as text."""
    for name, value in keys.items():
        frame = frame[frame[name].astype(str) == value]
    return frame


def stands(frame: pd.DataFrame, **keys: str) -> dict[str, dict[str, Beside]]:
    """Table 5: measure → method → published and ours."""
    runs = part(frame, model="NB", on="train", **keys)
    given = published("zadrozny2002", "5")
    groups: dict[str, dict[str, Beside]] = {"MSE": {}, "error": {}}
    for _, row in given.iterrows():
        calibration = "PAV" if row["model"].startswith("PAV") else "raw"
        found = runs[f"{calibration} {row['method']} {row['measure']}"]
        name = f"{row['model']} {row['method']}"
        cell = beside(float(row["value"]), found, digits=5, repetitions=SPLITS)
        groups[row["measure"]][name] = cell._replace(published_sd=float(row["sd"]))
    return groups


def means(frame: pd.DataFrame, words: str) -> dict[str, float]:
    """Mean MSE after PAV over random splits, by combiner, for one way to count words."""
    mean = part(frame, data="19997", words=words, model="NB", on="train").mean(numeric_only=True)
    return {f"PAV NB {name}": float(mean[f"PAV {name} MSE"]) for name in COMBINERS}


def every(frame: pd.DataFrame) -> str:
    """All that was tried on random splits, also what is not in the paper."""
    lines = []
    for model in BOOSTED:
        for name, calibration, on in KINDS:
            runs = part(frame, model=model, on=on, **MAIN)
            for combine in EVERY if len(runs) else ():
                mse = beside(np.nan, runs[f"{calibration} {combine} MSE"], digits=5)
                error = beside(np.nan, runs[f"{calibration} {combine} error"], digits=5)
                tied = f"{runs[f'{calibration} tied'].mean():.1%}"
                label = f"{name.format(model)} {combine}"
                lines.append((label, mse.ours, error.ours, tied, len(runs)))
    return table(("method", "MSE", "error", "tied", "splits"), lines)


def distance(frame: pd.DataFrame, words: str) -> float:
    """Mean distance of the published MSE from ours, for one way to count words."""
    cells_ = stands(frame, data="19997", words=words)["MSE"].values()
    return float(np.mean([abs(cell.published - cell.mean) for cell in cells_]))


def by_words(frame: pd.DataFrame, data: str) -> str:
    """Means over splits for each way to count words; on random splits beside the published."""
    pairs = [(c, m) for c in ("raw", "PAV") for m in EVERY]
    names = [f"{ {'raw': 'NB', 'PAV': 'PAV NB'}[c] } {m}" for c, m in pairs]
    beside_them = data == "19997"
    lines = []
    for words in WORDS:
        runs = part(frame, data=data, words=words, model="NB", on="train")
        if len(runs):
            mean = runs.mean(numeric_only=True)
            errors = (f"{mean[f'{c} Norm error']:.4f}" for c in ("raw", "PAV"))
            far = [f"{distance(frame, words):.5f}"] if beside_them else []
            mses = (f"{mean[f'{c} {m} MSE']:.5f}" for c, m in pairs)
            lines.append((words, *mses, *errors, *far))
    if beside_them:
        told = stands(frame, **MAIN)
        mses = (f"{told['MSE'][n].published:.5f}" if n in told["MSE"] else "–" for n in names)
        errors = (f"{told['error'][n].published:.4f}" for n in ("NB Norm", "PAV NB Norm"))
        lines.append(("published", *mses, *errors, ""))
    more = ["mean distance of MSE"] if beside_them else []
    return table(("words, α", *names, "error NB Norm", "error PAV NB Norm", *more), lines)


PAGE = """80 % of each class to train, drawn at random ({splits} splits). MSE is the sum over
classes divided by 20: the published figures can only be that. One against the rest, multinomial
naive Bayes on word counts, 1 added to each count (α), PAV on the training rows. Words of the
message body; the paper does not say which it took, nor how it counted them. ±: standard deviation
over splits. The published figures are means of ten splits, too, and have their own standard
deviations: {counted}. {within}

{main}

### More ways

PAV's scores from three folds, the fixed point of the iteration printed for coupling ("Coup, as
printed"), and naive Bayes boosted in {rounds} rounds. Tied: rows in which several columns say
exactly 1, or all say 0.

{every}

### How words are counted

Counts, or 1 for each word that is there; means over splits.

{words}

### By date

11,269 messages to train, 7,505 later ones to test; without duplicates. As above (α = 1).

{bydate}

By the way words are counted:

{dated}"""


def page(frame: pd.DataFrame) -> str:
    main = part(frame, model="NB", on="train", **MAIN)
    dated = part(frame, data="bydate", words=PLAIN)
    return PAGE.format(
        splits=len(main),
        rounds=ROUNDS,
        main=tall(groups := stands(frame, **MAIN)),
        counted=counted(cells := [cell for some in groups.values() for cell in some.values()]),
        within=told_within(cells),
        every=every(frame),
        words=by_words(frame, "19997"),
        bydate=table(("", *heads(EVERY)), ways(dated, EVERY)),
        dated=by_words(frame, "bydate"),
    )


TABLES = (Table("5", "Table 5: 20 Newsgroups, MSE and error", cells, run, page),)
