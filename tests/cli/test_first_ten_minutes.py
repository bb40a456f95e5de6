"""The first ten minutes on the command line: what goes wrong then, and what is said of it."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.cli.app import as_command_options
from calibrant.cli.checking import locked
from calibrant.cli.reading import ColumnLook, label_rank
from calibrant.engines.files import PAIRS, classes_of, is_calibrator, partner_of
from calibrant.errors import InputError, RangeWarning
from sheets import write_xlsx

FAST = ("-m", "platt", "--cv", "0")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command line here: (exit code, stdout, stderr); ``stdin`` is what is piped in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")

    def go(*words: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with warnings.catch_warnings():
            warnings.simplefilter("default", RangeWarning)  # as it is outside of tests
            with pytest.raises(SystemExit) as left:
                main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


def write(name: str, **columns) -> None:
    lines = zip(*columns.values(), strict=True)
    text = [",".join(columns), *(",".join(map(str, line)) for line in lines)]
    Path(name).write_text("\n".join(text) + "\n")


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.random(n).round(6)
    return s, (rng.random(n) < s**2).astype(int)


def three_classes(n=60) -> dict[str, list]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], n)
    kind = ["abc"[rng.choice(3, p=row)] for row in p]
    return {**{f"p_{c}": p[:, i].tolist() for i, c in enumerate("abc")}, "kind": kind}


# --- one class ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "options", "classes", "positive"),
    [
        ("yes", (), ["no", "yes"], "yes"),
        ("NO", (), ["NO", "YES"], "YES"),
        ("bought", ("--pos-label", "bought"), ["bought", "not bought"], "bought"),
        ("stayed", ("--pos-label", "left"), ["left", "stayed"], "left"),
        ("1", (), [0, 1], 1),
    ],
)
def test_one_class_of_words_is_fitted_like_one_of_numbers(run, word, options, classes, positive):
    write("s.csv", score=rows()[0], label=[word] * 200)
    code, _, err = run("fit", "s.csv", "-m", "platt", "-o", "c.json", *options)
    assert code == 2
    assert "--allow-one-class" in err
    code, _, err = run("fit", "s.csv", *FAST, "-o", "c.json", "--allow-one-class", *options)
    assert code == 0, err
    saved = json.loads(Path("c.json").read_text())
    assert (saved["classes"], saved["pos_label"]) == (classes, positive)


def test_one_word_that_may_be_either_label_is_refused_with_what_to_add(run):
    write("s.csv", score=rows()[0], label=["bought"] * 200)
    code, _, err = run("fit", "s.csv", *FAST, "--allow-one-class")
    assert code == 2
    assert "only one class came: 'bought'" in err
    assert "add --pos-label bought" in err
    assert "--pos-label with its name" in err


def test_every_yes_has_a_no_and_no_word_is_both():
    assert not {yes for yes, _ in PAIRS} & {no for _, no in PAIRS}
    assert partner_of("Ja") == "Nein"
    assert partner_of("OUI") == "NON"
    assert partner_of(1) is None


def test_labels_that_are_not_one_word_are_read_as_before():
    assert classes_of({"0": 0, "1": 1}, "y").classes == (0, 1)
    with pytest.raises(InputError, match="must be one of"):
        classes_of({"a": "a", "b": "b"}, "y", "c")


def test_a_column_called_label_is_taken_though_it_holds_one_value():
    assert label_rank(ColumnLook("label", ("1", "1"))) == 1
    assert label_rank(ColumnLook("status", ("1", "1"))) == 0
    assert label_rank(ColumnLook("x", ("1", "1"))) == 0
    assert label_rank(ColumnLook("churned", ("yes", "yes"))) == 1
    assert label_rank(ColumnLook("status", ("active", "active"))) == 0
    assert label_rank(ColumnLook("x", ("yes", "yes"))) == 0


def test_a_file_of_column_names_alone_is_told_as_such(run):
    Path("s.csv").write_text("score,label\n")
    assert run("fit", "s.csv")[2].startswith("error: the file must hold rows of data, but only")


# --- several classes ----------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["p_a,p_b,p_c", "a=p_a, b=p_b, c=p_c"])
def test_columns_may_be_separated_by_commas(run, words):
    write("s.csv", **three_classes())
    code, _, err = run("fit", "s.csv", "-s", words, *FAST, "-o", "c.json")
    assert code == 0, err
    assert json.loads(Path("c.json").read_text())["provenance"]["score_columns"] == [
        "p_a",
        "p_b",
        "p_c",
    ]


def test_a_column_whose_name_holds_a_comma_is_one_column(run):
    s, y = rows()
    Path("s.csv").write_text(
        '"p,q",label\n' + "".join(f"{a},{b}\n" for a, b in zip(s, y, strict=True))
    )
    code, _, err = run("fit", "s.csv", "-s", "p,q", *FAST, "-o", "c.json")
    assert code == 0, err
    assert json.loads(Path("c.json").read_text())["provenance"]["score_column"] == "p,q"


def test_evaluate_finds_what_apply_wrote_for_several_classes(run):
    write("s.csv", **three_classes())
    assert run("fit", "s.csv", "-s", "p_*", *FAST, "-o", "c.json")[0] == 0
    assert run("apply", "c.json", "s.csv", "-o", "out.csv")[0] == 0
    code, out, err = run("evaluate", "out.csv", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["score_columns"] == ["probability_a", "probability_b", "probability_c"]
    assert found["guessed"] == ["score", "label"]
    code, out, err = run("evaluate", "-", "--json", stdin=Path("out.csv").read_bytes())
    assert code == 0, err
    assert json.loads(out)["after"] == found["after"]
    assert run("plot", "out.csv", "-o", "r.svg")[0] == 0


def test_columns_of_other_probabilities_are_not_taken_for_classes(run):
    s, y = rows()
    write("s.csv", probability_old=s, probability_new=s, probability_next=s, label=y)
    code, _, err = run("evaluate", "s.csv")
    assert code == 2
    assert "may be 'probability_old' or 'probability_new' or 'probability_next'" in err


def test_a_pattern_works_on_a_pipe(run):
    write("s.csv", **three_classes())
    data = Path("s.csv").read_bytes()
    code, _, err = run("fit", "-", "-s", "p_*", *FAST, "-o", "c.json", stdin=data)
    assert code == 0, err


def test_export_says_which_columns_a_query_of_several_classes_keeps(run):
    write("s.csv", **three_classes())
    assert run("fit", "s.csv", "-s", "p_*", *FAST, "-o", "c.json")[0] == 0
    _, out, err = run("export", "c.json", "--to", "sql")
    assert "gives p_a, p_b, p_c" in err
    assert "--keep COL" in err
    assert "r.p_a" in out
    assert run("export", "c.json", "--to", "sql", "--keep", "id")[2] == ""
    assert run("export", "c.json", "--to", "sql", "-s", "p_c,p_b,p_a", "--keep", "id")[0] == 0


# --- another scale ------------------------------------------------------------------------------


def test_probabilities_for_a_calibrator_of_percentages_are_warned_of(run):
    s, y = rows()
    write("percent.csv", score=(100 * s).round(4), label=y)
    write("s.csv", score=s, label=y)
    assert run("fit", "percent.csv", *FAST, "-o", "c.json")[0] == 0
    code, _, err = run("apply", "c.json", "s.csv", "-o", "out.csv")
    assert code == 0
    assert "warning: the scores of column 'score' look like probabilities" in err
    assert "--on-range allow" in err
    assert run("apply", "c.json", "s.csv", "-o", "out.csv", "--on-range", "allow")[2] == ""
    assert run("apply", "c.json", "percent.csv", "-o", "out.csv")[2] == ""


def test_warnings_are_lines_in_the_words_of_the_command_line(run):
    s, y = rows()
    write("points.csv", score=(300 + 550 * s).round(), label=y)
    write("s.csv", score=s, label=y)
    assert run("fit", "points.csv", *FAST, "-o", "c.json")[0] == 0
    _, _, err = run("apply", "c.json", "s.csv", "-o", "out.csv")
    assert err.startswith("warning: most scores of column 'score' lie beyond")
    assert "--on-range allow" in err
    assert err.count("\n") == 1  # no class, no file, no line of Python


def test_errors_speak_of_options(run):
    s, y = rows()
    write("s.csv", score=s, label=y)
    write("points.csv", score=(300 + 550 * s).round(), label=y)
    assert run("fit", "s.csv", *FAST, "-o", "c.json")[0] == 0
    err = run("apply", "c.json", "points.csv", "-o", "out.csv")[2]
    assert "--on-range clip" in err
    assert "on_range" not in err
    assert run("fit", "s.csv", "--cv", "1")[2].startswith("error: --cv must be")
    assert run("check", "s.csv", "-c", "c.json", "--least", "9")[2].startswith("error: --least ")


def test_a_remedy_on_the_command_line_is_no_map_of_python(run):
    s, y = rows(3000)
    write("s.csv", score=s, label=y)
    assert run("fit", "s.csv", *FAST, "-o", "c.json")[0] == 0
    odds = 3 * s**2 / (1 - s**2)
    rng = np.random.default_rng(1)
    write("new.csv", score=s, label=(rng.random(3000) < odds / (1 + odds)).astype(int))
    _, out, _ = run("check", "new.csv", "-c", "c.json")
    assert "to the logit: calibrant check --calibrator JSON --update OUT does." in out
    assert "Logistic" not in out + run("check", "new.csv", "-c", "c.json", "--json")[1]


def test_files_and_columns_are_not_taken_for_arguments():
    options = {"level": "--level", "score": "--score"}
    for said in ("there is no file level=3.csv.", "no column 'score=1'", "a/level=3/b.csv"):
        assert as_command_options(said, options) == said
    assert as_command_options("weights=2 and level=0.5.", options) == "weights=2 and --level 0.5."
    text = "mends 97 % of it: calibrant.adjust_prior(p, positive_weight=2.5)."
    assert as_command_options(text, {}) == "mends 97 % of it."
    page = "Say direction=\"falling\" (--direction falling), or pos_label='no' (--pos-label no)."
    assert as_command_options(page, {}) == "Say --direction falling, or --pos-label no."


# --- files in each other's place ----------------------------------------------------------------


def test_swapped_files_are_told_in_the_right_order(run):
    s, y = rows()
    write("s.csv", score=s, label=y)
    assert run("fit", "s.csv", *FAST, "-o", "c.json")[0] == 0
    code, _, err = run("apply", "s.csv", "c.json", "-o", "out.csv")
    assert code == 2
    assert "c.json looks like a calibrator, and s.csv does not" in err
    assert "calibrant apply c.json s.csv -o out.csv" in err
    for words in (("c.json", "-c", "s.csv"), ("c.json", "s.csv")):
        assert "calibrant check s.csv --calibrator c.json" in run("check", *words)[2]
    assert "--calibrator c.json" in run("monitor", "c.json", "s.csv")[2]


@pytest.mark.parametrize("command", ["fit", "evaluate", "compare"])
def test_a_calibrator_is_no_data(run, command):
    s, y = rows()
    write("s.csv", score=s, label=y)
    assert run("fit", "s.csv", *FAST, "-o", "c.json")[0] == 0
    code, _, err = run(command, "c.json")
    assert code == 2
    assert "c.json is a calibrator" in err
    assert len(err) < 200


def test_data_are_no_calibrator(run):
    s, y = rows()
    write("s.csv", score=s, label=y)
    for words in (("show", "s.csv"), ("export", "s.csv", "--to", "sql")):
        code, _, err = run(*words)
        assert code == 2
        assert "s.csv looks like a file of data" in err
    Path("folder").mkdir()
    assert "folder is a folder" in run("show", "folder")[2]
    assert not is_calibrator("folder")


# --- the wrong way ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "isotonic"])
def test_a_constant_for_scores_that_run_the_wrong_way_is_not_saved(run, method):
    s, y = rows()
    write("s.csv", score=1 - s, label=y)
    code, _, err = run("fit", "s.csv", "-m", method, "--cv", "0", "-o", "c.json")
    assert code == 2
    assert "run the wrong way" in err
    assert "Say --direction falling. Is it 0 that is meant? Say --pos-label 0." in err
    assert "add --pos-label 1" in err
    assert not Path("c.json").exists()
    copied = shlex.split(err.split("`")[-2])
    assert copied[-2:] == ["--direction", "falling"]
    assert run(*copied[1:])[0] == 0
    for label in (0, 1):
        words = ("-m", method, "--cv", "0", "-o", "c.json", "--pos-label", label)
        assert run("fit", "s.csv", *words)[0] == 0


def test_a_report_does_not_save_a_constant_for_scores_that_run_the_wrong_way(run):
    s, y = rows()
    write("s.csv", score=1 - s, label=y)
    words = ("report", "s.csv", "-m", "isotonic", "-o", "r.html")
    code, _, err = run(*words, "--save", "c.json")
    assert code == 2
    assert "Say --direction falling. Is it 0 that is meant? Say --pos-label 0." in err
    assert "add --pos-label 1" in err
    assert not Path("c.json").exists()
    assert not Path("r.html").exists()
    assert run(*words)[0] == 0
    assert "Nothing to apply" in Path("r.html").read_text(encoding="utf-8")
    assert run(*words, "--save", "c.json", "--pos-label", 1)[0] == 0
    assert Path("c.json").exists()


def test_a_falling_map_of_scores_that_run_the_wrong_way_is_saved(run):
    s, y = rows()
    write("s.csv", score=1 - s, label=y)
    code, out, _ = run("fit", "s.csv", *FAST, "-o", "c.json")
    assert code == 0
    assert out.startswith("These scores run the wrong way")


# --- files as people have them ------------------------------------------------------------------


def test_probabilities_are_written_with_the_decimal_mark_of_the_scores(run):
    s, y = rows()
    lines = [f"{p:.4f};{label}".replace(".", ",") for p, label in zip(s, y, strict=True)]
    Path("s.csv").write_text("\n".join(["score;label", *lines]), encoding="utf-8")
    assert run("fit", "s.csv", *FAST, "-o", "c.json")[0] == 0
    assert run("apply", "c.json", "s.csv", "-o", "out.csv")[0] == 0
    header, first, *_ = Path("out.csv").read_text(encoding="utf-8").splitlines()
    assert header == "score;label;probability"
    assert re.fullmatch(r"0,\d+;[01];0,\d+", first), first
    again = cal.load("c.json").calibrate([float(first.split(";")[0].replace(",", "."))])
    assert float(first.split(";")[2].replace(",", ".")) == again[0]
    for options in ((), ("--decimal", ",")):
        code, out, err = run("evaluate", "out.csv", *options)
        assert code == 0, err
        assert "log loss" in out
    assert run("apply", "c.json", "s.csv", "-o", "out.parquet")[0] == 0  # numbers stay numbers
    assert run("evaluate", "out.parquet")[0] == 0


def test_columns_of_one_name_and_three_labels_are_told(run):
    s, y = rows()
    both = zip(s, y, strict=True)
    Path("two.csv").write_text(
        "\n".join(["score,score,label", *(f"{p:.3f},{1 - p:.3f},{label}" for p, label in both)]),
        encoding="utf-8",
    )
    code, _, err = run("fit", "two.csv")
    assert code == 2
    assert "Several columns are called 'score': rename them." in err
    words = np.where(np.arange(len(s)) % 9 == 0, "maybe", np.where(y == 1, "yes", "no"))
    write("three.csv", score=s, churned=words)
    code, _, err = run("fit", "three.csv")
    assert code == 2
    assert "The column 'churned' has more than two labels: keep the rows of two" in err
    assert "'maybe'" in err


def test_labels_that_differ_only_in_case_are_told(run):
    s, y = rows()
    words = np.where(np.arange(len(s)) % 9 == 0, "Yes", np.where(y == 1, "yes", "no"))
    write("case.csv", score=s, churned=words)
    code, _, err = run("fit", "case.csv")
    assert code == 2
    assert "has more than two labels. 'Yes' and 'yes' differ only in case: spell them alike." in err
    assert "keep the rows" not in err
    code, _, err = run("fit", "case.csv", "-l", "churned")
    assert code == 2
    assert "at least 3 came: 'Yes', 'no', 'yes'. 'Yes' and 'yes' differ only in case" in err


@pytest.mark.parametrize("more", [(), ("months",)])
def test_a_title_above_the_names_of_a_sheet_is_told(run, more):
    s, y = rows(40)
    cells = [["score", "churned", *more]]
    cells += [
        [p, label, *(7 for _ in more)] for p, label in zip(s.tolist(), y.tolist(), strict=True)
    ]
    title = ["Scores of March", *(None for _ in cells[0][1:])]
    write_xlsx(Path("title.xlsx"), {"March": [title, *cells]})
    said = "Columns without a name: the names must be in the first row of the sheet or file."
    for words in ((), ("-s", "score", "-l", "churned")):
        code, _, err = run("fit", "title.xlsx", *words)
        assert code == 2
        assert said in err
        assert "Several columns are called" not in err
    index = [["", "a", "b"], *([i, *row[:2]] for i, row in enumerate(cells[1:]))]
    write_xlsx(Path("index.xlsx"), {"March": index})
    assert said not in run("fit", "index.xlsx", "-s", "score")[2]


def test_all_rows_that_would_be_dropped_are_counted(run):
    s, y = rows()
    score = ["" if i < 5 else p for i, p in enumerate(s)]
    label = ["" if 3 <= i < 12 else "yes" if one else "no" for i, one in enumerate(y)]
    write("gaps.csv", score=score, churned=label)
    code, _, err = run("fit", "gaps.csv", *FAST)
    assert code == 2
    assert "5 of 200 rows are missing" in err
    assert "In all, 12 rows have no score or no label: drop them with --missing drop" in err
    code, _, err = run("fit", "gaps.csv", "--missing", "drop", *FAST)
    assert code == 0
    assert "12 of 200 rows were dropped: no score or no label there" in err


def test_weights_that_are_dropped_are_not_what_is_wrong(run):
    s, y = rows()
    weight = ["", -1, *[1] * (len(s) - 2)]
    write("w.csv", score=s, label=y, w=weight)
    code, _, err = run("fit", "w.csv", "-w", "w", "--missing", "drop", *FAST)
    assert code == 2
    assert "weight column 'w' must be at least 0" in err


# --- the monitor's state ------------------------------------------------------------------------


def test_two_commands_do_not_work_on_one_state_at_once(run):
    s, y = rows()
    write("s.csv", score=s, label=y)
    words = ("monitor", "state.json", "s.csv", "-p", "score", "-l", "label")
    with locked(Path("state.json")):
        code, _, err = run(*words)
        assert code == 2
        assert "another one does now" in err
        assert Path("state.json.lock").exists()
    assert not Path("state.json").exists()
    assert run(*words, "--alpha", "1%")[0] == 0
    assert not Path("state.json.lock").exists()


def test_a_monitor_of_a_calibrator_does_not_take_scores_for_probabilities(run):
    s, y = rows()
    write("s.csv", score=s, label=y)
    assert run("fit", "s.csv", *FAST, "-o", "c.json")[0] == 0
    assert run("monitor", "state.json", "s.csv", "-c", "c.json")[0] == 0
    before = Path("state.json").read_bytes()
    code, _, err = run("monitor", "state.json", "s.csv", "-l", "label")
    assert code == 2
    assert "state.json watches a calibrator: name it with --calibrator FILE" in err
    assert Path("state.json").read_bytes() == before
    assert run("monitor", "state.json", "s.csv", "--prob", "score", "-l", "label")[0] == 0


def test_a_lock_that_a_killed_job_left_keeps_nobody_out(tmp_path):
    left = tmp_path / "state.json.lock"
    left.touch()
    with locked(tmp_path / "state.json"):
        assert left.exists()
    assert not left.exists()


@pytest.mark.parametrize("word", ["20%", "20 %", "0.2", "0,2"])
def test_a_probability_is_read_as_people_write_it(run, word):
    s, y = rows()
    write("s.csv", score=s, label=y)
    assert run("fit", "s.csv", *FAST, "-o", "c.json")[0] == 0
    code, out, err = run("show", "c.json", "--at", word)
    assert code == 0, err
    assert "has probability 0.2;" in out


# --- words --------------------------------------------------------------------------------------


def test_several_methods_were_and_one_was_not_chosen(run):
    s, y = rows(600)
    s = np.where((s < 0.2) & (y == 0), 0.0, s)  # a zero that was right so far
    write("s.csv", score=s, label=y)
    _, out, _ = run("compare", "s.csv", "-m", "isotonic")
    said = " ".join(out.split())
    assert re.search(r"\w+, \w+ give exact 0 or 1, and so were not chosen", said), said
    _, out, _ = run("compare", "s.csv", "-m", "platt")
    assert "uncalibrated gives exact 0 or 1, and so was not chosen" in " ".join(out.split())
