"""No command writes to a file that it reads, or to one twice, or over what is no file."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import stat
import subprocess
import sys
import threading
import typing
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli.app import parser
from cli.test_commands import plain_terminal, run  # noqa: F401
from project.test_writing_files import Reader, mode, root_only

FIT = ("-s", "s", "-l", "y", "-m", "platt")
PROBABILITIES = ("-p", "s", "-l", "y")
#: each command that writes: its words, the files that it reads, and its outputs with their endings
WRITERS: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]] = {
    "fit": (
        ("a.csv", "b.csv", *FIT),
        ("a.csv", "b.csv"),
        {"--output": ".json", "--plot": ".png", "--report": ".html"},
    ),
    "report": (
        ("[ab].csv", *FIT),
        ("a.csv", "b.csv"),
        {"--output": ".html", "--save": ".json"},
    ),
    "apply": (("c.json", "[ab].csv"), ("c.json", "a.csv", "b.csv"), {"--output": ".csv"}),
    "plot": (("[ab].csv", *PROBABILITIES), ("a.csv", "b.csv"), {"--output": ".png"}),
    "check": (
        ("a.csv", "-r", "[b].csv", "-c", "c.json", "-s", "s", "-l", "y"),
        ("a.csv", "b.csv", "c.json"),
        {"--update": ".json"},
    ),
    "monitor": (
        ("state.json", "a.csv", "b.csv", "--prob", "s", "-l", "y"),
        ("a.csv", "b.csv"),
        {"--plot": ".png", "--report": ".html"},
    ),
    "export": (
        ("c.json", "--to", "onnx", "--model", "m.onnx"),
        ("c.json", "m.onnx", "m.weights"),
        {"--output": ".onnx"},
    ),
}
#: options and arguments that name what is read, or what is the command's own
READ = {"files", "calibrator", "reference", "model", "folder", "state"}


@pytest.fixture
def files(tmp_path) -> dict[str, bytes]:
    """Data, a calibrator and a model in the folder of the test, and what they hold."""
    rng = np.random.default_rng(0)
    s = rng.random((2, 60)).round(3)
    for name, column in zip(("a.csv", "b.csv"), s, strict=True):
        lines = (f"{x},{int(rng.random() < x**2)}" for x in column)
        (tmp_path / name).write_text("\n".join(("s,y", *lines)) + "\n")
    fitted = cal.Platt().fit(s[0], rng.random(60) < s[0]).to_fitted()
    facts = {"score_column": "s", "label_column": "y"}
    cal.save(dataclasses.replace(fitted, provenance=facts), tmp_path / "c.json")
    _model(tmp_path)
    return {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def _model(folder: Path) -> None:
    """An ONNX model whose weights are in a file of their own."""
    onnx = pytest.importorskip("onnx")
    weights = onnx.numpy_helper.from_array(np.eye(2, dtype=np.float32), "w")
    shape = {name: onnx.helper.make_tensor_value_info(name, 1, ["n", 2]) for name in ("x", "p")}
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["p"])
    graph = onnx.helper.make_graph([node], "g", [shape["x"]], [shape["p"]], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(
        model, folder / "m.onnx", save_as_external_data=True, location="m.weights", size_threshold=0
    )
    assert (folder / "m.weights").exists()


def unchanged(folder: Path, files: dict[str, bytes]) -> bool:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name in files
    } == files


def targets() -> list[tuple[str, str, str]]:
    return [
        (command, option, source)
        for command, (_, sources, options) in WRITERS.items()
        for option in options
        for source in sources
    ]


def test_every_option_that_names_an_output_is_tested():
    group = parser()
    found = {
        (command, f"--{name}")
        for command in group.list_commands(None)
        for name, kind in typing.get_type_hints(group.get_command(None, command).callback).items()
        if name not in READ and (name == "output" or Path in (kind, *typing.get_args(kind)))
    }
    assert found == {(name, option) for name, (_, _, all_) in WRITERS.items() for option in all_}


@pytest.mark.parametrize(("command", "option", "source"), targets())
def test_no_input_is_written_to(run, files, tmp_path, command, option, source):  # noqa: F811
    words, _, outputs = WRITERS[command]
    ending = outputs[option]
    Path(f"soft{ending}").symlink_to(source)
    Path("far").mkdir()
    Path(f"far/hard{ending}").hardlink_to(source)
    needed = () if option == "--output" or "--output" not in outputs else ("-o", "page.html")
    spellings = [f"soft{ending}", f"far/../far/hard{ending}"]
    if source.endswith(ending) or ending == ".json":
        spellings += [source, f"./far/../{source}", str(tmp_path / source)]
    for name in spellings:
        code, out, err = run(command, *words, *needed, option, name)
        assert (code, out) == (2, ""), name
        assert f"{option} must be another file than {source}, which is read" in _line(err)
    assert unchanged(tmp_path, files)
    assert not Path("page.html").exists()


def _line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("command", ["fit", "report"])
def test_no_file_is_written_twice(run, files, tmp_path, command):  # noqa: F811
    words, _, outputs = WRITERS[command]
    Path("to.html").symlink_to("one")
    Path("to.png").symlink_to("one")
    Path("to.json").symlink_to("one")
    pairs = list(itertools.combinations(outputs, 2))
    assert pairs
    for one, other in pairs:
        needed = () if "--output" in (one, other) else ("-o", "x.json")
        names = (f"to{outputs[one]}", f"to{outputs[other]}")
        code, _, err = run(command, *words, *needed, one, names[0], other, names[1])
        assert code == 2
        assert f"{one} and {other} must be different files" in _line(err)
    if command == "report":  # names that some file systems take for one
        code, _, err = run(command, *words, "-o", "Page.html", "--save", "page.HTML")
        assert code == 2
        assert "must be different files" in _line(err)
    assert {path.name for path in tmp_path.iterdir()} == {*files, "to.html", "to.png", "to.json"}
    assert unchanged(tmp_path, files)


def test_the_default_output_is_no_exception(run, files, tmp_path):  # noqa: F811
    rows = [{"s": i / 40, "y": i % 3 > 0} for i in range(40)]
    text = "\n".join(map(json.dumps, rows))
    Path("calibrator.json").write_text(text)
    code, _, err = run("fit", "calibrator.json", *FIT)
    assert code == 2
    assert "--output must be another file than calibrator.json" in _line(err)
    assert Path("calibrator.json").read_text() == text


def test_other_files_are_still_replaced(run, files, tmp_path):  # noqa: F811
    for command, (words, _, outputs) in WRITERS.items():
        if command not in ("fit", "apply", "plot"):
            continue
        given = [(option, f"old-{command}{option}{ending}") for option, ending in outputs.items()]
        for _, name in given:
            Path(name).write_text("old")
            Path(name).chmod(0o640)
        code, _, err = run(command, *words, *itertools.chain(*given))
        assert (code, err) == (0, ""), command
        for _, name in given:
            assert Path(name).read_bytes() != b"old"
            assert mode(Path(name)) == 0o640
    assert unchanged(tmp_path, files)


def test_names_that_look_like_patterns_or_urls(run, files, tmp_path):  # noqa: F811
    Path("ab:").mkdir()
    for name, given in {
        "x{1,2}.csv": "x{1,2}.c*",
        "ab:/x.csv": "ab:/x.csv",
        "[a].csv": "[a].csv",
    }.items():
        Path(name).write_bytes(files["b.csv"])
        code, _, err = run("fit", given, *FIT, "-o", name)
        assert code == 2
        assert f"--output must be another file than {name}" in _line(err)
        assert Path(name).read_bytes() == files["b.csv"]
    code, _, err = run("fit", "a.csv", *FIT, "-o", "s3a://bucket/c.json")
    assert code == 2
    assert "folder s3a:/bucket does not exist" in _line(err)


def test_spark_keeps_to_the_rule_before_it_starts(run, files, tmp_path):  # noqa: F811
    """Folders, URLs of files on this machine and Spark's own patterns are seen through."""
    Path("day").mkdir()
    Path("day/a.csv").hardlink_to("a.csv")
    Path("link.parquet").symlink_to("day", target_is_directory=True)
    here = f"file://{tmp_path}"
    for names in (
        ("a.csv",),
        ("day",),
        ("link.parquet",),
        (f"{here}/a.csv",),
        (f"file:{tmp_path}/a.csv",),
        (f"{here}/{{b,a}}.csv",),
        (f"{here}/[a].c*",),
        ("s3a://bucket/x.csv", "b.csv", "a.csv"),
    ):
        code, _, err = run("fit", *names, *FIT, "--engine", "spark", "-o", "a.csv")
        assert code == 2, names
        assert "--output must be another file than" in _line(err)
    for output in ("day", "link.parquet", f"{here}/day", f"{here}/a.csv"):
        words = ("c.json", "day/a.csv", "--engine", "spark", "-o", output)
        code, _, err = run("apply", *words)
        assert code == 2, output
        assert "--output must be another file than day/a.csv" in _line(err)
    Path("c.csv").mkdir()
    Path("c.csv/inner.json").write_bytes(files["c.json"])
    code, _, err = run("apply", "c.csv/inner.json", "b.csv", "--engine", "spark", "-o", "c.csv")
    assert code == 2
    assert "must be another file than c.csv/inner.json" in _line(err)
    assert unchanged(tmp_path, files)


# --- what is no file ----------------------------------------------------------------------------


def test_outputs_go_through_pipes(run, files, tmp_path):  # noqa: F811
    pipes = {name: Reader(tmp_path / name) for name in ("c", "r.html", "p.png", "o.csv", "o.sql")}
    assert run("fit", "a.csv", *FIT, "-o", "c", "--report", "r.html", "--plot", "p.png")[0] == 0
    assert run("apply", "c.json", "[ab].csv", "-o", "o.csv")[0] == 0
    code, out, _ = run("export", "c.json", "--to", "sql", "-o", "o.sql", "--json")
    assert code == 0
    got = {name: pipe.all() for name, pipe in pipes.items()}
    assert json.loads(got["c"])["method"] == "Platt"
    assert got["r.html"].startswith(b"<!")
    assert got["p.png"].startswith(b"\x89PNG")
    assert len(got["o.csv"].splitlines()) == 121
    assert got["o.csv"].startswith(b"s,y,probability\n")
    assert json.loads(out)["bytes"] == len(got["o.sql"]) > 0
    assert all(stat.S_ISFIFO(os.stat(name).st_mode) for name in pipes)
    assert {path.name for path in tmp_path.iterdir()} == {*files, *pipes}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_what_comes_out_of_a_pipe_is_the_file(run, files, tmp_path, ending):  # noqa: F811
    assert run("apply", "c.json", "a.csv", "-o", f"plain{ending}")[0] == 0
    pipe = Reader(tmp_path / f"pipe{ending}")
    assert run("apply", "c.json", "a.csv", "-o", f"pipe{ending}")[0] == 0
    assert pipe.all() == Path(f"plain{ending}").read_bytes()


def test_a_pipe_is_not_written_to_compressed(run, files, tmp_path):  # noqa: F811
    os.mkfifo("o.csv.gz")
    code, _, err = run("apply", "c.json", "a.csv", "-o", "o.csv.gz")
    assert code == 2
    assert "o.csv.gz is a pipe or a device, which is not written to compressed" in _line(err)


def test_a_reader_that_goes_away_is_an_error(run, files, tmp_path):  # noqa: F811
    lines = (f"{i / 60_000},{i % 2}" for i in range(60_000))
    Path("big.csv").write_text("\n".join(("s,y", *lines)) + "\n")
    os.mkfifo("o.csv")

    def hasty() -> None:
        with open("o.csv", "rb") as stream:
            stream.read(10)

    reader = threading.Thread(target=hasty, daemon=True)
    reader.start()
    code, _, err = run("apply", "c.json", "big.csv", "-o", "o.csv")
    reader.join(20)
    assert code == 2
    assert "not written whole: the reader of the pipe went away" in _line(err)


@root_only
def test_devices_stay_devices(run, files, tmp_path):  # noqa: F811
    try:
        os.mknod("null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod("full.csv", stat.S_IFCHR | 0o666, os.makedev(1, 7))
        open("null", "wb").close()
    except OSError:
        pytest.skip("this machine lets no one make devices")
    Path("null.csv").symlink_to("null")
    assert run("fit", "a.csv", *FIT, "-o", "null")[0] == 0
    assert run("apply", "c.json", "a.csv", "-o", "null.csv")[0] == 0
    for words in (("fit", "a.csv", *FIT), ("apply", "c.json", "a.csv")):
        code, _, err = run(*words, "-o", "full.csv")
        assert code == 2
        assert "No space left on device" in _line(err)
    assert all(stat.S_ISCHR(os.stat(name).st_mode) for name in ("null", "full.csv"))
    assert Path("null.csv").is_symlink()


def test_a_link_stays_a_link(run, files, tmp_path):  # noqa: F811
    Path("store").mkdir()
    for name in ("c.json", "o.csv"):
        Path(f"to-{name}").symlink_to(f"store/{name}")
    assert run("fit", "a.csv", *FIT, "-o", "to-c.json")[0] == 0
    assert run("apply", "to-c.json", "b.csv", "-o", "to-o.csv")[0] == 0
    assert Path("to-c.json").is_symlink()
    assert Path("to-o.csv").is_symlink()
    assert {path.name for path in Path("store").iterdir()} == {"c.json", "o.csv"}
    code, _, err = run("apply", "c.json", "store/o.csv", "-o", "to-o.csv", "--overwrite-column")
    assert code == 2
    assert "must be another file than" in _line(err)


def test_folders_are_refused_as_files(run, files, tmp_path):  # noqa: F811
    Path("folder").mkdir()
    for ending in (".json", ".png", ".html", ".csv", ".onnx"):
        Path(f"dir{ending}").symlink_to("folder", target_is_directory=True)
    for command, (words, _, outputs) in WRITERS.items():
        for option, ending in outputs.items():
            needed = () if option == "--output" or "--output" not in outputs else ("-o", "o.html")
            code, _, err = run(command, *words, *needed, option, f"dir{ending}")
            assert code == 2
            assert f"must be a file, but dir{ending} is a folder" in _line(err)


def test_a_full_disk_leaves_what_was_there(files, tmp_path):
    """A limit on the size of files stands for the disk's; DuckDB writes here, not Python."""
    lines = (f"{i / 9000},{i % 2}" for i in range(9000))
    Path("big.csv").write_text("\n".join(("s,y", *lines)) + "\n")
    Path("o.csv").write_text("old")
    before = {path.name for path in tmp_path.iterdir()}
    program = (
        "import resource, sys\n"
        "from calibrant.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))\n"
        "for out in ('o.csv', 'o.parquet'):\n"
        "    try:\n"
        "        main(['apply', 'c.json', 'big.csv', '-o', out])\n"
        "    except SystemExit as left:\n"
        "        print(left.code)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "2"]
    assert done.stderr.count("error: ") == 2
    assert {path.name for path in tmp_path.iterdir()} == before
    assert Path("o.csv").read_text() == "old"


# --- the demonstration --------------------------------------------------------------------------


def test_demo_replaces_nothing_unasked(run, tmp_path):  # noqa: F811
    Path("mine").mkdir()
    Path("mine/scores.csv").write_text("precious")
    Path("mine/report.html").symlink_to("no where")
    code, out, err = run("demo", "mine")
    assert (code, out) == (2, "")
    assert "already has scores.csv, report.html. Name another folder" in _line(err)
    assert "--force" in err
    assert Path("mine/scores.csv").read_text() == "precious"
    assert {path.name for path in Path("mine").iterdir()} == {"scores.csv", "report.html"}
    code, _, err = run("demo", "mine/scores.csv")
    assert code == 2
    assert "must be a folder, but it is a file" in _line(err)


def test_a_name_that_ends_in_a_slash_is_no_file(run, files, tmp_path):  # noqa: F811
    code, _, err = run("apply", "c.json", "a.csv", "-o", "new.csv/")
    assert code == 2
    assert "must be a file, but new.csv/ is a folder" in _line(err)
    with pytest.raises(cal.errors.InputError, match=r"new\.json/ is a folder"):
        cal.save(cal.load("c.json"), "new.json/")
    assert not list(tmp_path.glob("new*"))
