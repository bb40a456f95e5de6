"""When are scores kept as they are? ``python -m experiments.gates [--half tune|judge] [--shares]``.

`AutoCalibrator` keeps scores that need no calibration. Here many gates decide about the same
samples: scores that are right, scores that are wrong in known ways, and the scores of twelve kinds
of model on the papers' datasets. For each sample it is recorded what a gate may look at, and what
the scores and `BLS` cost on new rows; so every gate is judged on the same figures. Gates were
compared on the half *tune*; the half *judge* (other distributions, other errors, other datasets)
was run once, for the gate that was taken. What is done is kept in a folder.

With ``--shares`` rules are compared that say how much `BLS` counts beside the scores (`RULES`), on
simulated samples and by a `BLS` that no longer shifts right scores to the number of positives.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import wilcoxon

import calibrant as cal
from calibrant.fitting.held_out import HeldOutCells, fit_copies, try_all
from calibrant.methods.uncalibrated import unchanged_trial
from experiments import keep, say, table
from experiments.bls_scores import FOLDER, is_judged, scored
from experiments.data import DataMissingError, tasks
from experiments.study import CLIP, LEAST

Array = NDArray[np.float64]
Random = np.random.Generator

SIZES = (50, 200, 500, 1000, 5000)
#: rows of new data where the truth is known: losses there are expectations
NEW = 20_000
#: samples of right scores, and of each error, for each distribution and size
SAMPLES = {"tune": (30, 15), "judge": (10, 10)}
#: deals into folds whose gains are averaged by the gates that repeat them
DEALS = 3
#: how often labels are redrawn by the test of calibration
REPLICATES = 499
PEERS: dict[str, Callable[[], Any]] = {
    "Platt": cal.Platt,
    "Beta": cal.Beta,
    "Isotonic": lambda: cal.Isotonic(interpolation="centred", smoothing="laplace"),
    "Spline": cal.Spline,
    "VennAbers": cal.VennAbers,
}
#: shares of BLS in a blend of log-odds with the scores
BLENDS = (0.25, 0.5, 0.75)


class Sample(NamedTuple):
    """Rows to calibrate on, and what they are judged by: expected or drawn labels of new rows."""

    scores: Array
    y: NDArray[np.intp]
    new: Array
    truth: Array


# --- samples --------------------------------------------------------------------------------------

DISTRIBUTIONS: dict[str, dict[str, Callable[[int, Random], Array]]] = {
    "tune": {
        "uniform": lambda n, r: r.random(n),
        "Beta(.5, .5)": lambda n, r: r.beta(0.5, 0.5, n).clip(1e-4, 1 - 1e-4),
        "normal log-odds": lambda n, r: expit(r.normal(0.0, 1.5, n)),
        "rare": lambda n, r: r.beta(0.5, 12.0, n).clip(1e-4, 1.0),
        "eleven values": lambda n, r: r.choice(np.linspace(0.05, 0.95, 11), n),
    },
    "judge": {
        "Beta(1, 3)": lambda n, r: r.beta(1.0, 3.0, n),
        "U-shaped": lambda n, r: r.beta(0.2, 0.2, n).clip(1e-5, 1 - 1e-5),
        "normal log-odds, low": lambda n, r: expit(r.normal(-1.0, 1.0, n)),
        "rare, narrow": lambda n, r: r.beta(1.0, 30.0, n),
        "four values": lambda n, r: r.choice([0.1, 0.3, 0.6, 0.8], n),
    },
}
ERRORS: dict[str, dict[str, Callable[[Array], Array]]] = {
    "tune": {
        "slope .75": lambda p: expit(0.75 * logit(p)),
        "slope 1.5": lambda p: expit(1.5 * logit(p)),
        "shift .4": lambda p: expit(logit(p) + 0.4),
        "wave": lambda p: np.clip(p - 0.08 * np.sin(2 * np.pi * p), 0.0, 1.0),
    },
    "judge": {
        "slope .65": lambda p: expit(0.65 * logit(p)),
        "slope 1.3": lambda p: expit(1.3 * logit(p)),
        "shift −.5": lambda p: expit(logit(p) - 0.5),
        "bump": lambda p: np.clip(p + 0.2 * np.exp(-(((p - 0.3) / 0.1) ** 2)), 0.0, 1.0),
    },
}


def simulated(half: str, kind: str, error: str, n: int, seed: int) -> Sample:
    """Scores of a distribution, and labels drawn from their truth."""
    key = zlib.crc32(f"{half}/{kind}/{error}/{n}/{seed}".encode())
    random = np.random.default_rng(key)
    draw = DISTRIBUTIONS[half][kind]
    truth = ERRORS[half].get(error, lambda p: p)
    while True:
        scores = draw(n, random)
        y = (random.random(n) < truth(scores)).astype(np.intp)
        if 1 < y.sum() < n - 1:
            break
    new = draw(NEW, random)
    return Sample(scores, y, new, truth(new))


def real(half: str, folder: Path) -> Iterator[tuple[str, str, str, int, Sample]]:
    """Scores of models as they are, and with labels drawn from them: those are right."""
    for task in tasks(LEAST):
        if is_judged(task) != (half == "judge"):
            continue
        for model, data in scored(task, 0, folder):
            sizes = [n for n in (200, 1000) if n <= len(data.y)]
            for n in sizes:
                some = data.some(n, 0)
                yield (
                    "real", f"{task.name}/{model}", "as they are", n,
                    Sample(some.scores, some.y, some.new, some.y_new.astype(float)),
                )  # fmt: skip
                if min(some.scores.min(), some.new.min()) < 0 or some.scores.max() > 1:
                    continue
                random = np.random.default_rng(zlib.crc32(f"{task.name}/{model}/{n}".encode()))
                p, q = (s.clip(1e-4, 1 - 1e-4) for s in (some.scores, some.new))
                y = (random.random(n) < p).astype(np.intp)
                if 1 < y.sum() < n - 1:
                    yield "redrawn", f"{task.name}/{model}", "right", n, Sample(p, y, q, q)


def samples(half: str, folder: Path) -> Iterator[tuple[tuple[str, ...], Callable[[], Sample]]]:
    """The key of each sample, and how to make it."""
    for source, kind, error, n, sample in real(half, folder):
        yield (source, kind, error, str(n), "0"), _bound(lambda s: s, sample)
    right, wrong = SAMPLES[half]
    for seed in range(right):
        for n in SIZES:
            for kind in DISTRIBUTIONS[half]:
                for error in ("right", *(ERRORS[half] if seed < wrong else ())):
                    key = ("simulated", kind, error, str(n), str(seed))
                    yield key, _bound(simulated, half, kind, error, n, seed)


def _bound(function: Callable[..., Sample], *args: Any) -> Callable[[], Sample]:
    return lambda: function(*args)


# --- what is seen of a sample ---------------------------------------------------------------------


def loss(truth: Array, p: Array) -> float:
    """Log loss on new rows, expected where their truth is known."""
    q = np.clip(p, CLIP, 1.0 - CLIP)
    return float(-(truth * np.log(q) + (1.0 - truth) * np.log1p(-q)).mean())


def seen(one: Sample) -> dict[str, float]:
    """All that gates look at, and the losses on new rows."""
    found: dict[str, float] = {}
    n = len(one.y)
    rows = cal.ScoreTable.from_arrays(one.scores, one.y)
    for deal in range(DEALS if n <= 1000 else 1):
        held = HeldOutCells.of_table(rows, 5, deal)
        kept = unchanged_trial(rows, held)
        gain = kept.log_loss - try_all({"BLS": fit_copies(cal.BLS())}, held)["BLS"].log_loss
        found[f"gain {deal}"] = held.sample.mean(gain)
        found[f"error {deal}"] = held.sample.error(gain)
        found["certain"] = float(kept.certain)
    before = cal.Uncalibrated().fit(one.scores, one.y)
    p = np.clip(before.calibrate(one.scores), 1e-12, 1 - 1e-12)
    test = cal.metrics.calibration_test(one.y, p, replicates=REPLICATES)
    found |= {
        "test": test.p_value, "cox": test.cox, "spiegelhalter": test.spiegelhalter,
        "hosmer": test.hosmer_lemeshow,
    }  # fmt: skip
    bls = cal.BLS().fit(one.scores, one.y)
    flat = {m.name: m for m in bls.members_ if m.name in ("identity", "near identity")}
    found["identity weight"] = sum(m.weight for m in flat.values())
    own = flat["identity"].log_evidence if "identity" in flat else -np.inf
    found["evidence"] = max(m.log_evidence for m in bls.members_) - own
    raw, smooth = before.calibrate(one.new), bls.calibrate(one.new)
    found |= {"loss scores": loss(one.truth, raw), "loss BLS": loss(one.truth, smooth)}
    a, b = (logit(np.clip(q, 1e-9, 1 - 1e-9)) for q in (raw, smooth))
    for share in BLENDS:
        found[f"loss blend {share}"] = loss(one.truth, expit((1 - share) * a + share * b))
    for name, make in PEERS.items():
        found[f"loss {name}"] = loss(one.truth, make().fit(one.scores, one.y).calibrate(one.new))
    return found


KEYS = ["source", "kind", "error", "n", "seed"]


def run(half: str, folder: Path) -> pd.DataFrame:
    """See every sample; those that the folder has are not done again."""
    path = folder / f"gates-{half}.csv"
    folder.mkdir(parents=True, exist_ok=True)
    done: set[tuple[str, ...]] = set()
    if path.exists():
        kept = pd.read_csv(path, dtype=dict.fromkeys(KEYS, str))
        done = set(kept[KEYS].itertuples(index=False, name=None))
    names: list[str] | None = None
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        for count, (key, make) in enumerate(samples(half, folder)):
            if key in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = seen(make())
            if names is None:
                names = sorted(_columns())
                if not done:
                    writer.writerow([*KEYS, *names])
            writer.writerow([*key, *(f"{found.get(name, np.nan):.6g}" for name in names)])
            stream.flush()
            if count % 200 == 0:
                say(f"{count} samples")
    return pd.read_csv(path, dtype=dict.fromkeys(["source", "kind", "error"], str))


def _columns() -> list[str]:
    folds = [f"{name} {deal}" for deal in range(DEALS) for name in ("gain", "error")]
    losses = ["scores", "BLS", *(f"blend {share}" for share in BLENDS), *PEERS]
    tests = ["test", "cox", "spiegelhalter", "hosmer", "identity weight", "evidence", "certain"]
    return [*folds, *tests, *(f"loss {name}" for name in losses)]


# --- gates ----------------------------------------------------------------------------------------

#: whether a gate lets BLS pass, by what it sees of a sample
GATES: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "never (BLS always)": lambda d: d["gain 0"] > -np.inf,
    "gain above 0": lambda d: d["gain 0"] > 0,
    "gain above 1 SE (the gate before)": lambda d: d["gain 0"] > d["error 0"],
    "gain above 1.28 SE": lambda d: d["gain 0"] > 1.28 * d["error 0"],
    "gain above 1.64 SE": lambda d: d["gain 0"] > 1.64 * d["error 0"],
    "three deals, 1 SE": lambda d: _mean(d, "gain") > _mean(d, "error"),
    "three deals, 1.64 SE": lambda d: _mean(d, "gain") > 1.64 * _mean(d, "error"),
    "identity below half of the weight": lambda d: d["identity weight"] < 0.5,
    "evidence ratio above e²": lambda d: d["evidence"] > 2,
    "evidence ratio above e³": lambda d: d["evidence"] > 3,
    "test at 2 %": lambda d: d["test"] <= 0.02,
    "test at 5 %": lambda d: d["test"] <= 0.05,
    "test at 5 %, gain above 0": lambda d: (d["test"] <= 0.05) & (d["gain 0"] > 0),
    "the same at 3 %, or 1.28 SE": lambda d: (
        ((d["test"] <= 0.03) & (d["gain 0"] > 0)) | (d["gain 0"] > 1.28 * d["error 0"])
    ),
    "the same at 5 %, or 1 SE": lambda d: (
        ((d["test"] <= 0.05) & (d["gain 0"] > 0)) | (d["gain 0"] > d["error 0"])
    ),
    "the same at 5 %, or 1.64 SE (taken)": lambda d: (
        ((d["test"] <= 0.05) & (d["gain 0"] > 0)) | (d["gain 0"] > 1.64 * d["error 0"])
    ),
    "test at 5 %, gain above 0 in three deals": lambda d: (
        (d["test"] <= 0.05) & (_mean(d, "gain") > 0)
    ),
    "test at 10 %, gain above 0": lambda d: (d["test"] <= 0.1) & (d["gain 0"] > 0),
    "Cox alone at 5 %, gain above 0": lambda d: (d["cox"] <= 0.05) & (d["gain 0"] > 0),
}
GATE_BEFORE, GATE_TAKEN = (
    "gain above 1 SE (the gate before)",
    "the same at 5 %, or 1.64 SE (taken)",
)
TINY = 1e-9


def _mean(seen_of: pd.DataFrame, name: str) -> pd.Series:
    """Over the deals that a sample has."""
    return seen_of[[f"{name} {deal}" for deal in range(DEALS)]].mean(axis=1)


def passed(seen_of: pd.DataFrame, gate: str) -> Array:
    """Losses on new rows behind a gate; scores of exactly 0 and 1 are never kept."""
    return np.where(_taken(seen_of, gate), seen_of["loss BLS"], seen_of["loss scores"])


def _taken(seen_of: pd.DataFrame, gate: str) -> pd.Series:
    return GATES[gate](seen_of) | (seen_of["certain"] > 0)


def win_rate(seen_of: pd.DataFrame, losses: Array) -> float:
    """The share of five other methods and of the scores as they are that is beaten; ties half."""
    others = seen_of[[f"loss {name}" for name in ("scores", *PEERS)]].to_numpy()
    mine = losses[:, None]
    return float((mine < others - TINY).mean() + (np.abs(mine - others) <= TINY).mean() / 2)


def figures(seen_of: pd.DataFrame) -> str:
    """A line for each gate."""
    right = (seen_of["error"] == "right") & (seen_of["certain"] == 0)
    wrong = (seen_of["source"] == "simulated") & (seen_of["error"] != "right")
    real = seen_of["source"] == "real"
    rows = []
    for gate in GATES:
        taken, losses = _taken(seen_of, gate), passed(seen_of, gate)
        changed = [100 * taken[right & (seen_of["n"] == n)].mean() for n in SIZES]
        few = right & (seen_of["n"] == 200)
        rows.append(
            (
                gate,
                " / ".join(f"{share:.0f}" for share in changed),
                f"{1e4 * (losses - seen_of['loss scores'])[few].mean():.1f}",
                f"{win_rate(seen_of[wrong], losses[wrong]):.3f}",
                f"{1e4 * (losses - _least(seen_of))[wrong | right].mean():.1f}",
                *(_real(seen_of, losses, real & (seen_of["n"] == n)) for n in (200, 1000)),
            )
        )
    columns = (
        "gate", "right scores changed, %", "their loss, 200 rows", "win rate, wrong scores",
        "regret", "models, 200 rows", "models, 1000 rows",
    )  # fmt: skip
    return table(columns, rows)


def _least(seen_of: pd.DataFrame) -> pd.Series:
    return seen_of[["loss scores", "loss BLS"]].min(axis=1)


def _real(seen_of: pd.DataFrame, losses: Array, some: pd.Series) -> str:
    """Win rate, mean log loss, and share made worse than by the scores, of real models."""
    part, mine = seen_of[some], losses[some]
    worse = (mine > part["loss scores"] + TINY).mean()
    return f"{win_rate(part, mine):.3f}, {mine.mean():.4f}, {100 * worse:.1f} %"


def by_dataset(seen_of: pd.DataFrame, n: int) -> str:
    """Mean log loss of models' scores on each dataset, and paired tests over datasets."""
    part = seen_of[(seen_of["source"] == "real") & (seen_of["n"] == n)]
    names = {task.name: task.entry["name"] for task in tasks(LEAST)}
    columns = {
        "scores": part["loss scores"],
        "gate before": passed(part, GATE_BEFORE),
        "default": passed(part, GATE_TAKEN),
        **{name: part[f"loss {name}"] for name in ("BLS", "Spline", "Platt", "Beta")},
    }
    dataset = part["kind"].str.partition("/")[0].map(names)
    means = pd.DataFrame(columns, index=part.index).groupby(dataset.to_numpy()).mean()
    rows = [(name, *(f"{loss:.4f}" for loss in row)) for name, row in means.iterrows()]
    rows.append(("**mean**", *(f"{loss:.4f}" for loss in means.mean())))
    tests = (
        "–" if name == "default" else f"{wilcoxon(means['default'] - means[name]).pvalue:.2g}"
        for name in means.columns
    )
    rows.append(("*p* against the default", *tests))
    return table(("dataset", *means.columns), rows)


def models(halves: dict[str, pd.DataFrame]) -> str:
    """Every model as it is, what gates saw of it and the losses, so that all can be recomputed."""
    parts = [found[found["source"] == "real"].assign(half=half) for half, found in halves.items()]
    rows = pd.concat(parts).drop(columns=["source", "error", "seed"])
    return rows.to_csv(index=False, float_format="%.5g", lineterminator="\n")


def page(halves: dict[str, pd.DataFrame]) -> str:
    """Both halves, the one that the gate was chosen on first."""
    parts = [HEADING]
    for half, found in halves.items():
        count = found.groupby("source").size().to_dict()
        said = ", ".join(f"{n} {source}" for source, n in sorted(count.items()))
        parts.append(f"## The half *{half}* ({said} samples)\n\n{figures(found)}")
    for n in (200, 1000):
        title = f"## Models of the half *judge*, {n:,} rows: mean log loss by dataset"
        parts.append(f"{title}\n\n{DATASETS}\n\n{by_dataset(halves['judge'], n)}")
    return "\n\n".join(parts)


# --- how much BLS counts beside the scores --------------------------------------------------------

#: rows, and samples of each distribution and error with so many
SHARE_SIZES = {50: 24, 200: 90, 1000: 24}
#: shares of BLS whose losses are computed; those of others lie on straight lines between them
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def _ramp(low: float, high: float) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda d: ((d["evidence"] - low) / (high - low)).clip(0.0, 1.0)


#: the share of BLS, by what a rule sees. *Evidence*: the score test of `HeldOut.evidence`.
#: How one was chosen, before the half *judge* and the arena's half *report* were run: of the rules
#: that cost right scores 0.0004 in log loss or less with 200 rows (mean of the half *tune* and of
#: scores drawn from the arena's models), the one of the largest win rate on the arena's half *tune*
#: with 200 and 1,000 rows, where it makes no more experiments worse than the gate before
RULES: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "BLS always": lambda d: d["evidence"] * 0.0 + 1.0,
    "all or nothing: test at 5 % and gain above 0, or 1.64 SE (before)": lambda d: (
        ((d["test"] <= 0.05) & (d["gain"] > 0)) | (d["gain"] > 1.64 * d["se"])
    ).astype(float),
    "all or nothing: evidence above 1.64": lambda d: (d["evidence"] > 1.64).astype(float),
    "evidence from 0 to 2": _ramp(0.0, 2.0),
    "evidence from 0.5 to 2.5": _ramp(0.5, 2.5),
    "evidence from 0.5 to 3": _ramp(0.5, 3.0),
    "evidence from 1 to 2": _ramp(1.0, 2.0),
    "evidence from 1 to 3 (taken)": _ramp(1.0, 3.0),
    "evidence from 1.28 to 2.28": _ramp(1.28, 2.28),
    "1 − 1/evidence²": lambda d: (1.0 - d["evidence"].clip(lower=1.0) ** -2).clip(0.0, 1.0),
}
RULE_TAKEN = "evidence from 1 to 3 (taken)"


def shared(one: Sample) -> dict[str, float]:
    """What the rules see, and the loss on new rows for each of `SHARES`; of the truth, too."""
    rows = cal.ScoreTable.from_arrays(one.scores, one.y)
    held = HeldOutCells.of_table(rows, 5, 0)
    before = unchanged_trial(rows, held)
    bls = try_all({"BLS": fit_copies(cal.BLS())}, held, rows)["BLS"]
    gain = before.log_loss - bls.log_loss
    test = cal.metrics.calibration_test(
        one.y, np.clip(one.scores, 1e-12, 1 - 1e-12), replicates=199
    )
    found = {
        "evidence": held.evidence(before, bls), "gain": held.sample.mean(gain),
        "se": held.sample.error(gain), "test": test.p_value, "truth": loss(one.truth, one.truth),
    }  # fmt: skip
    a, b = (logit(np.clip(q, 1e-9, 1 - 1e-9)) for q in (one.new, bls.map(one.new)))
    for share in SHARES:
        found[f"share {share}"] = loss(one.truth, expit((1.0 - share) * a + share * b))
    return found


def run_shares(half: str) -> pd.DataFrame:
    """What rules see of simulated samples, and what shares lose."""
    found = []
    for n, samples in SHARE_SIZES.items():
        for kind in DISTRIBUTIONS[half]:
            for error in ("right", *ERRORS[half]):
                for seed in range(samples if error == "right" else samples // 3):
                    seen_of = shared(simulated(half, kind, error, n, seed))
                    found.append({"kind": kind, "error": error, "n": n, **seen_of})
        say(f"{half}: {n} rows")
    return pd.DataFrame(found)


def loss_of_shares(seen_of: pd.DataFrame, share: Array) -> Array:
    """Losses on new rows, given how much BLS counts in each sample."""
    losses = seen_of[[f"share {one}" for one in SHARES]].to_numpy()
    return np.array([np.interp(w, SHARES, row) for w, row in zip(share, losses, strict=True)])


def share_figures(seen_of: pd.DataFrame) -> str:
    """A line for each rule."""
    rows = []
    right = seen_of["error"] == "right"
    for name, rule in RULES.items():
        share = rule(seen_of).to_numpy()
        excess = 1e4 * (loss_of_shares(seen_of, share) - seen_of["truth"].to_numpy())
        cells = []
        for some in (right, ~right):
            of_n = [(some & (seen_of["n"] == n)).to_numpy() for n in SHARE_SIZES]
            cells.append(" / ".join(f"{excess[here].mean():.1f}" for here in of_n))
        few = (right & (seen_of["n"] == 200)).to_numpy()
        error = excess[few].std(ddof=1) / np.sqrt(few.sum())
        rows.append(
            (name, f"{100 * (share[few] > 0).mean():.0f} %", cells[0], f"{error:.1f}", cells[1])
        )
    sizes = " / ".join(f"{n:,}" for n in SHARE_SIZES)
    columns = (
        "share of BLS", "right scores changed, 200 rows", f"lost on right scores, {sizes} rows",
        "± (200 rows)", f"lost on wrong scores, {sizes} rows",
    )  # fmt: skip
    return table(columns, rows)


SHARE_HEADING = """# How much BLS counts beside the scores

`AutoCalibrator` averages the log-odds of `BLS` and of the scores as they came. Each line is a rule
for the share of `BLS`, all on the same samples: simulated scores that are right, and scores that
are wrong in four ways. *Evidence*: by how many standard errors a first step from the scores towards
`BLS` lowers the log loss of rows held out (the score test). *Lost*: mean log loss on new rows above
that of the truth, × 10⁻⁴. The rule was chosen by the half *tune* and by the arena's half *tune*:
of the rules that cost right scores 4 · 10⁻⁴ or less with 200 rows, the one of the largest win rate
there. The half *judge* was run once, after that.

Made by `python -m experiments.gates --shares`."""


def share_page() -> str:
    """Both halves."""
    parts = [f"## The half *{half}*\n\n{share_figures(run_shares(half))}" for half in ERRORS]
    return "\n\n".join([SHARE_HEADING, *parts])


DATASETS = """*Default*: `BLS` behind the gate that was taken, as `AutoCalibrator` ships it. All
tasks and models of a dataset are averaged, so that each dataset counts once. *p*: Wilcoxon's signed
rank over datasets, two-sided."""


HEADING = f"""# When scores are kept as they are

`AutoCalibrator` keeps scores that need no calibration. Each line is a gate that decides whether
`BLS` is taken instead, all on the same samples. *SE*: standard error of the gain in log loss, out
of five folds. *Test*: `calibration_test`. *Evidence*: of the best member of `BLS` against the
scores. The gate was chosen on the half *tune*; the half *judge* has other distributions of scores,
other errors and other datasets, and was run once, after that. Of its simulated samples, 30 rounds
were planned; the run was stopped for time after 10, when earlier figures of it had been seen. The
test redrew labels {REPLICATES} times here, 199 times in `AutoCalibrator`.

- *right scores changed*: share of samples in which right scores are replaced, with
  {" / ".join(f"{n:,}" for n in SIZES)} rows. Labels were drawn from the scores: of five
  distributions, and of models' scores on the papers' datasets.
- *their loss, 200 rows*: what that costs on average over all samples of right scores, in log loss
  on new rows × 10⁻⁴.
- *win rate, wrong scores*: simulated scores of four kinds of error; share of Platt, Beta, Isotonic,
  Spline, VennAbers and the scores themselves that is beaten on new rows.
- *regret*: mean log loss above that of the better of scores and `BLS`, right and wrong scores
  together, × 10⁻⁴.
- *models*: twelve kinds of model as they are; win rate, mean log loss, share made worse than by
  their scores as they are.

Made by `python -m experiments.gates`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["tune", "judge"], help="only this half, nothing kept")
    parser.add_argument("--shares", action="store_true", help="how much BLS counts: minutes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where parts are kept")
    told = parser.parse_args()
    try:
        if told.shares:
            if told.half:
                say(share_figures(run_shares(told.half)))
            else:
                keep("shares.md", share_page())
            return
        if told.half:
            say(figures(run(told.half, told.folder)))
            return
        halves = {half: run(half, told.folder) for half in ("tune", "judge")}
        keep("gates.md", page(halves))
        keep("gates_models.csv", models(halves))
    except DataMissingError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
