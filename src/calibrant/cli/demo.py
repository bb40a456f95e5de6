"""The command that does the whole job on a bundled example: a naive Bayes model that is far too
sure of itself.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from calibrant.cli import jobs, reading, sources
from calibrant.cli.app import command, say, say_json, say_pairs, show, tell
from calibrant.cli.judging import measure
from calibrant.engines.apply import ApplyOptions
from calibrant.engines.open_engine import open_engine
from calibrant.errors import InputError, shell_quoted
from calibrant.metrics.chance import read_interval_options
from calibrant.metrics.evaluating import in_words
from calibrant.outputs import write_whole

SEED = 20
TRAIN, CALIBRATE, NEW = 2_000, 4_000, 3_000
REGIONS = ("North", "South", 'Old Town, "east"', "Île-de-France", "Port; quay")


def example(seed: int = SEED) -> tuple[str, str]:
    """Two CSV files of customers, their scores and whether they left: to fit to, and to judge by.

    Twelve noisy readings of three hidden traits are correlated, which naive Bayes does not know:
    it counts the same evidence several times and its probabilities crowd at 0 and 1.

    >>> old, new = example()
    >>> old.splitlines()[0]
    'customer,region,months,score,churned'
    >>> len(old.splitlines()), len(new.splitlines())
    (4001, 3001)
    """
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(seed)
    n = TRAIN + CALIBRATE + NEW
    traits = rng.normal(size=(n, 3))
    features = np.repeat(traits, 4, axis=1) + 0.5 * rng.normal(size=(n, 12))
    tendency = traits @ [1.1, 0.8, 0.4] - 1.5
    left = rng.random(n) < 1.0 / (1.0 + np.exp(-tendency))
    model = GaussianNB().fit(features[:TRAIN], left[:TRAIN])
    scores = np.clip(model.predict_proba(features)[:, 1], 1e-6, 1.0 - 1e-6)
    months = rng.integers(1, 120, size=n)
    regions = rng.integers(len(REGIONS), size=n)

    def text_of(rows: range) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("customer", "region", "months", "score", "churned"))
        for i in rows:
            score = f"{scores[i]:.6f}"
            answer = "yes" if left[i] else "no"
            writer.writerow((f"{i:06d}", REGIONS[regions[i]], months[i], score, answer))
        return text.getvalue()

    middle = TRAIN + CALIBRATE
    return text_of(range(TRAIN, middle)), text_of(range(middle, n))


#: the files of the demonstration, and what they are
FILES = {
    "scores.csv": "scores of a naive Bayes model, and what happened",
    "new.csv": "customers that came later",
    "calibrator.json": "the calibrator",
    "calibrated.csv": "new.csv with one more column, probability",
    "reliability.png": "reliability diagram",
    "report.html": "the verdict, the leaderboard and diagrams on one page",
}
#: the commands that make them, in their folder
BY_HAND = (
    "calibrant fit scores.csv --score score --label churned",
    "calibrant apply calibrator.json new.csv -o calibrated.csv",
    "calibrant evaluate calibrated.csv --prob probability --raw score --label churned",
    "calibrant report scores.csv --score score --label churned -o report.html",
)


def demo(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where its files go.")] = Path(
        "calibrant-demo"
    ),
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of its names in the folder.")
    ] = False,
    json: sources.Json = False,
) -> None:
    """Run the whole job on a bundled example: fit, apply, evaluate, draw, report.

    \b
    Examples:
      calibrant demo
      calibrant demo /tmp/look
    """
    paths = _make_room(folder, force)
    scores, new, saved, calibrated, picture, page = paths
    for path, text in zip((scores, new), example(), strict=True):
        write_whole(path, text)
    with open_engine() as engine:
        read = reading.read_table(sources.FileSource(engine, [scores], ["score"], "churned"))
        auto = jobs.compare(read, jobs.REPORTED, folds=5)
        jobs.save_fitted(auto.to_fitted(), read.facts, saved)
        engine.apply(sources.load_map(saved), [new], calibrated, ApplyOptions("score"))
        made = sources.FileSource(
            engine, [calibrated], ["probability"], "churned", raw=["score"], option="--prob"
        )
        after = reading.read_table(made)
        intervals = read_interval_options(0.95, 1000, "importance", 0)
        evaluation, _ = measure(made, 10, intervals)
    write_whole(picture, jobs.draw(after, "png", auto))
    title = "Which customers will leave?"
    jobs.page_of(auto, read, title=title, saved_as=Path("calibrator.json")).save(page)
    if json:
        say_json(
            {
                "files": {path.name: str(path) for path in paths},
                "chosen": auto.chosen_,
                "verdict": auto.explain(),
                "evaluation": evaluation.to_dict(),
                "summary": in_words(evaluation),
            }
        )
        return
    tell(auto.explain())
    say()
    tell("Applied to new.csv, where the outcomes are known too:")
    say()
    show(evaluation)
    tell(in_words(evaluation))
    how = f"Measured on the {after.facts['rows']:,} rows of new.csv, which the fit has not seen."
    tell((how, "dim"))
    say()
    say_pairs({str(path): FILES[path.name] for path in paths})
    say()
    say("The same by hand:")
    for line in (f"cd {shell_quoted(str(folder))}", *BY_HAND):
        say("  ", command(line))


def _make_room(folder: Path, force: bool) -> list[Path]:
    """The paths of the files in a folder, which is made; what is there is not lost unasked."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} must be a folder, but it is a file. Name another.")
    paths = [folder / name for name in FILES]
    there = [path.name for path in paths if os.path.lexists(path)]
    if there and not force:
        raise InputError(
            f"the folder {folder} already has {', '.join(there)}. Name another folder, or let "
            "them be replaced: --force."
        )
    sources.check_places(
        {path.name: sources.OutputOption(path) for path in paths if folder.is_dir()}, []
    )
    folder.mkdir(parents=True, exist_ok=True)
    return paths
