"""Every option of every command changes what comes out, or is refused: none is ignored in silence.

Each way of using a command (one score, several classes, segments, ...) is run once as it is and
once with each of the other options and some pairs of them, which a fixed seed draws.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from calibrant.cli.app import app, parser
from calibrant.errors import ParameterError

#: options that say how it is done, or what is to happen in cases that do not come here
HOW = {
    *("--help", "--threads", "--memory-limit", "--missing", "--engine", "--decimal", "--to"),
    *("--overwrite-column", "--on-missing", "--on-range", "--exit-code", "--allow-one-class"),
    *("--update", "--encoding"),
}
#: what is given for each of the others; where a command needs other words, "command option"
WORDS = {
    "--score": ["q"],
    "--prob": ["q"],
    "--label": ["z"],
    "--weight": ["w"],
    "--raw": ["q"],
    "--segment": ["h"],
    "--features": ["v"],
    "--measures": ["clinical"],
    "--bins": ["3"],
    "--curve": ["isotonic"],
    "--level": ["0.5"],
    "--replicates": ["200"],
    "--weights": ["counts"],
    "--cells": ["16"],
    "--master": ["local[1]"],
    "--method": ["isotonic"],
    "--param": ["weights=counts"],
    "--shrinkage": ["3"],
    "--cv": ["3"],
    "--kind": ["decision"],
    "--thresholds": ["0.1:0.2"],
    "--into": ["new"],
    "--least": ["0.02"],
    "--alpha": ["0.2"],
    "--dialect": ["snowflake"],
    "--form": ["lookup"],
    "--table": ["t"],
    "--lookup": ["known"],
    "--keep": ["w"],
    "--view": ["v"],
    "--threshold": ["0.3"],
    "--name": ["f"],
    "--input": ["logit"],
    "--float": ["32"],
    "--period": ["2026-03"],
    "--at": ["0.3"],
    "--format": ["csv"],
    "--force": [],
    "--json": [],
    "--output": ["other.json"],
    "--title": ["T"],
    "--plot": ["other.svg"],
    "--report": ["other.html"],
    "--save": ["other.json"],
    "--when": ["monday"],
    "--pos-label": ["0"],
    "--direction": ["falling"],
    "--calibrator": ["one.json"],
    "--reference": ["old.csv"],
    "--model": ["rows.csv"],
}
#: pairs of options that are tried in each way of using a command
PAIRS = 5
#: the ways of using each command
WAYS = {
    "fit": "fit rows.csv -s p -l y -m platt",
    "fit classes": "fit rows.csv -s p_* -l kind -m temperature --cv 0",
    "fit segments": "fit rows.csv -s p -l y -m platt --segment g --cv 0",
    "fit features": "fit rows.csv -s p -l y --features x --cv 0",
    "compare": "compare rows.csv -s p -l y -m platt",
    "compare classes": "compare rows.csv -s p_* -l kind -m temperature",
    "report": "report rows.csv -s p -l y -m platt -o out.html",
    "apply": "apply one.json rows.csv -o out.csv",
    "apply classes": "apply classes.json rows.csv -o out.csv",
    "apply segments": "apply segments.json rows.csv -o out.csv",
    "evaluate": "evaluate rows.csv -p p -l y --measures all --replicates 100",
    "evaluate weights": "evaluate rows.csv -p p -l y -w w --measures all",
    "evaluate no intervals": "evaluate rows.csv -p p -l y -w w --level 0",
    "evaluate measures": "evaluate rows.csv -p p -l y -w w --measures auc,log_loss",
    "evaluate classes": "evaluate rows.csv -p p_* -l kind",
    "evaluate classes measures": "evaluate rows.csv -p p_* -l kind -w w --measures auc",
    "evaluate segments": "evaluate rows.csv -p p -l y --segment g",
    "evaluate features": "evaluate rows.csv -p p -l y --features x --replicates 100",
    "plot": "plot rows.csv -p p -l y -o out.svg",
    "plot classes": "plot rows.csv -p p_* -l kind -o out.svg",
    "plot decision": "plot rows.csv -p p -l y --kind decision -o out.svg",
    "check old": "check rows.csv -r old.csv -s p -l y --json",
    "check calibrator": "check rows.csv -c one.json --json",
    "check classes": "check rows.csv -c classes.json --json",
    "monitor": "monitor state.json rows.csv -p p -l y",
    "monitor calibrator": "monitor state.json rows.csv -c one.json",
    "monitor segments": "monitor state.json rows.csv -p p -l y --segment g",
    "export sql": "export steps.json --to sql",
    "export onnx": "export one.json --to onnx -o out.onnx",
    "export python": "export one.json --to python",
    "export json": "export one.json --to json",
    "show": "show one.json",
}
FITS = (
    "fit rows.csv -s p -l y -m platt --cv 0 -o one.json",
    "fit rows.csv -s p -l y -m isotonic --cv 0 -o steps.json",
    "fit rows.csv -s v -l y -m platt --cv 0 -o margins.json",
    "fit rows.csv -s p_* -l kind -m temperature --cv 0 -o classes.json",
    "fit rows.csv -s p -l y -m platt --segment g --cv 0 -o segments.json",
)
COMMANDS = {name: parser().get_command(None, name) for name in parser().list_commands(None)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of everything, and calibrators fitted to them."""
    folder, rng, n = tmp_path_factory.mktemp("options"), np.random.default_rng(0), 240
    p, q, v, x = rng.uniform(0.01, 0.99, n), rng.random(n), rng.normal(size=n), rng.normal(size=n)
    shares = rng.dirichlet([1, 1, 1], n)
    columns = {
        "p": p,
        "q": q,
        "v": v,
        "x": x,
        "p_a": shares[:, 0],
        "p_b": shares[:, 1],
        "p_c": shares[:, 2],
        "y": (rng.random(n) < p**1.5).astype(int),
        "z": rng.integers(0, 2, n),
        "w": rng.integers(1, 4, n),
        "g": rng.choice(["r", "s"], n),
        "h": rng.choice(["t", "u"], n),
        "kind": np.array(list("abc"))[(shares.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)],
    }
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    (folder / "old.csv").write_text("\n".join(lines[:120]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in FITS:
            found = CliRunner().invoke(app, line.split())
            assert found.exit_code == 0, found.output
    return folder


@pytest.fixture
def outcome(folder, monkeypatch):
    """What comes of a command: None if it is refused; what it prints and writes."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # the same time in all files
    known = {path.name for path in folder.iterdir()}

    def run(words):
        found = CliRunner().invoke(app, words)
        made = sorted(path for path in Path().iterdir() if path.name not in known)
        written = [(path.name, path.read_bytes()) for path in made]
        for path in made:
            path.unlink()
        return None if found.exit_code else (found.output, written)

    return run


def others(line):
    """The words for each option of a command that its line does not have."""
    words = line.split()
    for option in COMMANDS[words[0]].params:
        name = next((name for name in option.opts if name.startswith("--")), None)
        if name in HOW or name is None or set(option.opts) & set(words):
            continue
        yield [name, *WORDS[name]]


@pytest.mark.parametrize("way", WAYS)
def test_no_option_is_ignored(way, outcome):
    words = WAYS[way].split()
    plain, alone = outcome(words), {}
    assert plain is not None
    for option in others(WAYS[way]):
        alone[tuple(option)] = found = outcome([*words, *option])
        assert found != plain, f"{option[0]} is ignored"
    taken = [option for option, found in alone.items() if found is not None]
    pairs = [(one, other) for one in taken for other in alone if other != one]
    for one, other in random.Random(way).sample(pairs, min(PAIRS, len(pairs))):
        assert outcome([*words, *one, *other]) != alone[one], f"{one[0]}: {other[0]} is ignored"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("monitor state.json rows.csv -c one.json -s p -s q", "one column of scores, but 2 came"),
        ("monitor state.json rows.csv -s p -l y", "--score goes with --calibrator"),
        ("monitor state.json rows.csv -c one.json -s p -p q", "--prob stands in place of --score"),
        ("evaluate rows.csv -p p -l y --segment g --level 0.5", "so --level would change nothing"),
        (
            "evaluate rows.csv -p p -l y --segment g -w w --weights counts --replicates 200",
            "so --replicates and --weights would change nothing",
        ),
        ("evaluate rows.csv -p p -l y --level 0 --replicates 200", "--level 0 asks for no"),
        ("evaluate rows.csv -p p -l y --level 0 -w w --weights counts", "--level 0 asks for no"),
        ("evaluate rows.csv -p p -l y --measures auc --replicates 200", "from random draws"),
        ("evaluate rows.csv -p p_* -l kind --replicates 200", "so --replicates would change"),
        ("apply margins.json rows.csv -o out.csv --on-range clip", "from -3.9 to 2.4"),
        ("evaluate rows.csv -p p -l y --weights counts", "says how a column of weights counts"),
        ("evaluate rows.csv -p p -l y --measures auc --bins 3", "--bins is for ECE and MCE"),
        ("check rows.csv -c one.json --weights counts", "says how a column of weights counts"),
        ("plot rows.csv -p p -l y --kind decision --bins 3 -o d.png", "has no bins"),
        ("fit rows.csv -s p -l y --features x --cells 16", "leave --cells out"),
        ("fit rows.csv -s p_* -l kind --allow-one-class", "--allow-one-class is for one column"),
    ],
)
def test_what_would_be_ignored_is_refused(line, words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    found = CliRunner().invoke(app, line.split())
    assert found.exit_code == 2 or isinstance(found.exception, ParameterError)
    assert words in str(found.exception) + " ".join(found.output.split())
    assert sorted(folder.iterdir()) == before
