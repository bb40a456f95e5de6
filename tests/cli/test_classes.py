"""Several classes on the command line, from fit to check: a column of scores for each class."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import softmax

import calibrant as cal
from calibrant.cli import main
from calibrant.cli.sources import load_map
from calibrant.fitting.registry import METHODS, OF_CLASSES
from calibrant.metrics import evaluate

KINDS = np.array(["ape", "bee", "cat"])
#: as in the files: another order than that of the classes
ORDER = ("p_cat", "p_ape", "p_bee")
ALL = ("--score", "p_*", "--label", "kind")


def animals(n: int, seed: int = 0):
    """Overconfident probabilities (sorted classes), and the codes of what came."""
    rng = np.random.default_rng(seed)
    z = 1.2 * rng.normal(size=(n, 3))
    p = softmax(z, axis=1)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return softmax(2.2 * z + [0.4, 0.0, -0.3], axis=1).round(9), y


def write_csv(path: Path, p, y, separator: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream, delimiter=separator, lineterminator="\n")
        out.writerow(["id", *ORDER, "kind", "w"])
        for i, (row, code) in enumerate(zip(p.tolist(), y, strict=True)):
            out.writerow([f"{i:05d}", row[2], row[0], row[1], KINDS[code], 1 + i % 3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Rows to fit to, new rows, and a calibrator of the first."""
    folder = tmp_path_factory.mktemp("animals")
    p, y = animals(400)
    write_csv(folder / "old.csv", p, y)
    write_csv(folder / "new.csv", *animals(200, seed=1))
    fitted = cal.VectorScaling(classes=list(KINDS)).fit(p, KINDS[y])
    facts = {"score_columns": ["p_ape", "p_bee", "p_cat"], "label_column": "kind"}
    known = fitted.to_fitted()
    cal.save(replace(known, provenance={**known.provenance, **facts}), folder / "c.json")
    return folder


@pytest.fixture
def run(capsys, monkeypatch, tmp_path, folder):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    for name in ("old.csv", "new.csv", "c.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())

    def go(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return go


def refused(run, *words: object) -> str:
    code, out, err = run(*words)
    assert code == 2, (out, err)
    return " ".join(err.split())


# --- fit ----------------------------------------------------------------------------------------


def test_fit_says_which_column_is_which_what_improved_and_how_to_go_on(run):
    code, out, err = run("fit", "old.csv", *ALL)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("Columns: p_ape is 'ape', p_bee is 'bee', p_cat is 'cat'.")
    assert "--score CLASS=COLUMN" in lines[0]
    assert lines[1].startswith("AutoCalibrator fitted to 400 rows of old.csv: ")
    assert "% 'ape'" in lines[1]
    assert " was chosen. On rows it had not seen (400 rows, 5 folds), it gains " in out
    assert "The most probable class of each row:" in out
    assert "class-wise ECE" in out
    assert "Log loss fell from" in out
    assert "out of fold (5 folds)" in out
    assert "Apply it: calibrant apply calibrator.json NEW.csv -o OUT.csv" in out
    fitted = cal.load("calibrator.json")
    assert fitted.classes == ("ape", "bee", "cat")
    assert fitted.provenance["score_columns"] == ("p_ape", "p_bee", "p_cat")
    assert fitted.provenance["rows"] == 400
    assert fitted.provenance["measures"]["after"]["log_loss"] > 0
    p, y = animals(400)
    assert fitted.map == cal.AutoCalibrator().fit(p, KINDS[y]).map_


@pytest.mark.parametrize(
    "words",
    [
        ("-s", "p_bee", "-s", "p_ape", "-s", "p_cat"),
        ("-s", "p_[abc]*"),
        ("-s", "cat=p_cat", "-s", "p_bee", "-s", "ape=p_ape"),
    ],
)
def test_columns_in_any_order_and_by_any_words_give_one_map(run, words):
    assert run("fit", "old.csv", *words, "-l", "kind", "-m", "vector", "--cv", 0)[0] == 0
    assert cal.load("calibrator.json").map == cal.load("c.json").map


def test_columns_that_were_said_are_taken_as_said(run):
    words = ("-s", "ape=p_bee", "-s", "bee=p_ape", "-s", "p_cat")
    assert run("fit", "old.csv", *words, "-l", "kind", "-m", "vector", "--cv", 0)[0] == 0
    p, y = animals(400)
    ours = cal.VectorScaling().fit(p[:, [1, 0, 2]], KINDS[y])
    assert cal.load("calibrator.json").map == ours.map_


@pytest.mark.full
def test_every_method_takes_several_classes(run):
    p, y = animals(400)
    for name in METHODS | OF_CLASSES:
        if name in ("auto", "abb", "elite", "enir", "sbb"):  # the first is above, others are slow
            continue
        code, _, err = run("fit", "old.csv", *ALL, "-m", name, "--cv", 0)
        assert (code, err) == (0, ""), name
        assert cal.load("calibrator.json").predict_proba(p).shape == (400, 3)
    run("fit", "old.csv", *ALL, "-m", "isotonic", "--param", "smoothing=laplace", "--cv", 0)
    ours = cal.CodedCalibrator(cal.Isotonic(smoothing="laplace")).fit(p, KINDS[y])
    assert cal.load("calibrator.json").map == ours.map_


def test_out_of_fold_figures_are_those_of_rows_held_out(run):
    code, out, _ = run("fit", "old.csv", *ALL, "-m", "platt", "--cv", 4, "-w", "w", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["folds"] == 4
    assert found["provenance"]["weight_column"] == "w"
    p, y = animals(400)
    w = 1 + np.arange(400) % 3
    from calibrant.data.score_matrix import read_matrix
    from calibrant.fitting.held_out import HeldOutMatrix

    matrix, classes = read_matrix(p, KINDS[y], w)
    pairs = HeldOutMatrix.of_matrix(matrix, classes, 4).pairs
    after = np.empty_like(p)
    for train, test in pairs:
        one = cal.CodedCalibrator(cal.Platt()).fit(p[train], KINDS[y[train]], w[train])
        after[test] = one.predict_proba(p[test], on_range="allow")
    expected = evaluate(KINDS[y], after, raw=p, sample_weight=w, level=None)
    for side in ("before", "after"):
        figures = {name: found["evaluation"][side][name] for name in ("log_loss", "brier")}
        assert figures == pytest.approx({n: getattr(expected, side)[n] for n in figures}, rel=1e-9)


def test_the_automatic_choice_keeps_what_its_folds_said():
    p, y = animals(300)
    auto = cal.AutoCalibrator().fit(p, KINDS[y])
    assert set(auto.oof_) == {row.name for row in auto.leaderboard_.rows}
    held = auto.oof_["mixture"]
    own = held.scores[np.arange(len(held)), held.codes]
    assert auto.leaderboard_["mixture"].log_loss == pytest.approx(-np.log(own).mean(), rel=1e-9)


def test_fit_draws_and_writes_a_page(run):
    words = ("-m", "vector", "--plot", "r.svg", "--report", "r.html")
    assert run("fit", "old.csv", *ALL, *words)[0] == 0
    picture = Path("r.svg").read_text()
    assert all(f"<!-- {name} -->" in picture for name in ("top label", *KINDS))
    page = Path("r.html").read_text()
    assert "calibrant apply calibrator.json NEW.csv -o OUT.csv" in page
    assert "3 classes" in page


def counted_fits(monkeypatch, method):
    fits = []
    learn = method._fit
    monkeypatch.setattr(method, "_fit", lambda self, rows: fits.append(1) or learn(self, rows))
    return fits


@pytest.mark.parametrize("method", ["auto", "vector"])
def test_a_page_beside_a_fit_judges_nothing_again(run, monkeypatch, method):
    kind = cal.VectorScaling if method == "vector" else cal.Temperature
    fits = counted_fits(monkeypatch, kind)
    assert run("fit", "old.csv", *ALL, "-m", method)[0] == 0
    alone = len(fits)
    code, out, _ = run("fit", "old.csv", *ALL, "-m", method, "--report", "r.html", "--json")
    assert (code, len(fits)) == (0, 2 * alone)
    after, page = json.loads(out)["evaluation"]["after"], Path("r.html").read_text()
    for name in ("log_loss", "auc", "top_label_ece"):
        assert f"{after[name]:.4f}"[:6] in page


def test_auc_is_one_figure_everywhere(run):
    _, out, _ = run("fit", "old.csv", *ALL, "--json")
    found = json.loads(out)
    p, y = animals(400)
    whole = cal.evaluate(KINDS[y], p, level=None).after["auc"]
    assert found["evaluation"]["before"]["auc"] == pytest.approx(whole, abs=1e-12)
    rows = {row["name"]: row["auc"] for row in found["leaderboard"]["rows"]}
    assert rows["uncalibrated"] == pytest.approx(whole, abs=1e-12)
    assert found["evaluation"]["after"]["auc"] == pytest.approx(rows[found["chosen"]], abs=1e-12)


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "old.csv", "-s", "p_*", "-m", "vector", "--cv", 0),
        ("compare", "old.csv", "-s", "p_*", "-m", "vector"),
        ("evaluate", "old.csv", "-p", "p_*", "--level", 0),
        ("plot", "old.csv", "-p", "p_*", "-o", "r.png"),
        ("report", "old.csv", "-s", "p_*", "-m", "vector", "-o", "r.html"),
    ],
)
def test_the_labels_are_guessed_and_said_in_the_line_of_the_columns(run, words):
    code, out, _ = run(*words)
    assert code == 0
    said = " ".join(out.split())
    assert said.startswith(
        "Columns: label = `kind`, p_ape is 'ape', p_bee is 'bee', p_cat is 'cat'. To name others: "
        "--label COL, --"
    )


def test_labels_are_guessed_by_their_values_or_by_their_name(run):
    p, y = animals(60)
    rows = [
        f"{','.join(map(str, a))},{KINDS[c]},{KINDS[(c + 1) % 3]}"
        for a, c in zip(p, y, strict=True)
    ]
    head = "p_ape,p_bee,p_cat"
    Path("g.csv").write_text("\n".join([f"{head},zoo,kind_predicted", *rows]))
    _, out, _ = run("fit", "g.csv", "-s", "p_*", "-m", "vector", "--cv", 0, "--json")
    assert json.loads(out)["provenance"]["label_column"] == "zoo"
    assert json.loads(out)["provenance"]["guessed"] == ["label"]
    Path("g.csv").write_text("\n".join([f"{head},zoo,place", *rows]))
    said = refused(run, "fit", "g.csv", "-s", "p_*")
    assert "The column of labels may be 'zoo' or 'place': name it with --label COL." in said
    Path("g.csv").write_text("\n".join([f"{head},zoo,kind", *rows]))
    _, out, _ = run("fit", "g.csv", "-s", "p_*", "-m", "vector", "--cv", 0, "--json")
    assert json.loads(out)["provenance"]["label_column"] == "kind"


QUICK = ("-m", "vector", "--cv", 0)


def priorities(path: str, columns: str, **beside) -> None:
    """Probabilities of three classes in columns of these names, and labels ``priority`` last."""
    p, y = animals(120)
    words = np.array(["low", "medium", "high"])
    largest = words[p.argmax(axis=1)]
    more = {name: largest if made is None else made(words, y) for name, made in beside.items()}
    lines = [",".join([columns, *more, "priority"])]
    for i, row in enumerate(p.tolist()):
        lines.append(",".join([*map(str, row), *(v[i] for v in more.values()), words[y[i]]]))
    Path(path).write_text("\n".join(lines))


@pytest.mark.parametrize(
    "columns",
    [
        "prob_low,prob_medium,prob_high",
        "LOW_score,Medium_score,High_SCORE",
        "low,medium,high",
        "x-low.1,x-medium.1,x-high.1",
    ],
)
def test_columns_called_by_the_classes_are_found_first(run, columns):
    priorities("t.csv", columns)
    names = columns.split(",")
    code, out, _ = run("fit", "t.csv", *QUICK)
    assert code == 0
    said = " ".join(out.split())
    assert said.startswith("Columns: label = `priority`, ")
    assert f"{names[2] if '-' not in columns else '`x-high.1`'} is 'high'" in said
    facts = cal.load("calibrator.json").provenance
    assert list(facts["score_columns"]) == [names[2], names[0], names[1]]
    assert list(facts["guessed"]) == ["score", "label"]


@pytest.mark.parametrize(
    "words",
    [
        ("fit", *QUICK),
        ("compare", "-m", "vector"),
        ("evaluate", "--level", 0),
        ("plot", "-o", "r.png"),
        ("report", "-m", "vector", "-o", "r.html"),
    ],
)
def test_every_command_finds_the_columns_of_classes(run, words):
    priorities("t.csv", "prob_low,prob_medium,prob_high", predicted=None)
    code, out, _ = run(words[0], "t.csv", *words[1:])
    assert code == 0
    assert " ".join(out.split()).startswith(
        "Columns: label = `priority`, prob_high is 'high', prob_low is 'low', prob_medium is "
        "'medium'."
    )


@pytest.mark.parametrize("words", [(), ("--score", "prob_*")])
def test_the_class_of_the_largest_score_is_no_label(run, words):
    priorities("t.csv", "prob_low,prob_medium,prob_high", decision=None)
    code, out, _ = run("fit", "t.csv", *words, *QUICK)
    assert code == 0
    said = " ".join(out.split())
    assert said.startswith(
        "Columns: label = `priority` (`decision` holds a prediction: the class of the largest "
        "score in nearly every row), prob_high is 'high'"
    )
    text = Path("t.csv").read_text().replace("priority", "client")  # never a label
    Path("t.csv").write_text(text)
    said = refused(run, "fit", "t.csv", *words)
    assert "`decision` seems to hold a prediction" in said
    Path("t.csv").write_text(text.replace("decision", "label"))
    code, out, _ = run("fit", "t.csv", *words, *QUICK)
    assert out.startswith("Columns: label = `label`")


def test_two_columns_of_labels_or_of_scores_that_fit_equally_are_named(run):
    priorities("t.csv", "prob_low,prob_medium,prob_high", urgency=lambda w, y: w[(y + 1) % 3])
    for words in ((), ("--score", "prob_*")):
        said = refused(run, "fit", "t.csv", *words)
        assert "The column of labels may be 'urgency' or 'priority': name it with --label" in said
    _, out, _ = run("fit", "t.csv", "--label", "urgency", *QUICK)
    assert out.startswith("Columns: prob_high is 'high'")
    head, *rows = Path("old.csv").read_text().splitlines()
    lines = [f"{row},{','.join(row.split(',')[1:4])}" for row in rows]
    Path("t.csv").write_text("\n".join([f"{head},q_cat,q_ape,q_bee", *lines]))
    said = refused(run, "fit", "t.csv")
    assert "for each class may be 'p_ape', 'p_bee', 'p_cat' or 'q_ape', 'q_bee', 'q_cat'" in said


def test_features_that_are_called_by_classes_are_no_scores(run):
    rng = np.random.default_rng(0)
    lines = ["score,churned,plan,is_basic,is_plus,is_pro,v1,v2,v3,stage"]
    for i in range(90):
        s, plan = rng.random(), i % 3
        dummies = ",".join(str(int(plan == k)) for k in range(3))
        values = ",".join(f"{v:.3f}" for v in rng.normal(size=3))
        name = ("basic", "plus", "pro")[plan]
        lines.append(f"{s:.4f},{int(rng.random() < s)},{name},{dummies},{values},{1 + i % 3}")
    Path("t.csv").write_text("\n".join(lines))
    code, _, err = run("fit", "t.csv", "-m", "platt", "--cv", 0)
    assert code == 0
    assert err.startswith("note: score = `score`, label = `churned`")


def test_a_calibrator_of_one_score_is_checked_on_its_own_column(run):
    text = Path("old.csv").read_text().replace(",3\n", ",2\n")  # two classes
    Path("two.csv").write_text(text)
    assert run("fit", "two.csv", "-s", "p_ape", "-l", "w", "-m", "platt", "--cv", 0)[0] == 0
    _, out, _ = run("check", "two.csv", "--calibrator", "calibrator.json", "--json")
    assert json.loads(out)["score_column"] == "p_ape"


def test_few_rows_of_a_class_are_said_first(run):
    lines = Path("old.csv").read_text().splitlines()
    cats = [line for line in lines if ",cat," in line]
    Path("few.csv").write_text("\n".join([line for line in lines if line not in cats[4:]]))
    code, out, err = run("fit", "few.csv", *ALL)
    assert (code, err) == (0, "")
    said = "Fewer than 10 rows of 'cat' (4): what is said of such a class is mostly chance."
    assert said in out.splitlines()[1]
    for words in (("compare", "few.csv", *ALL, "-m", "platt"), ("report", "few.csv", *ALL)):
        code, out, err = run(*words, *(("-o", "r.html") if words[0] == "report" else ()))
        assert (code, err) == (0, "")


def test_methods_say_which_take_several_columns(run):
    _, out, _ = run("methods")
    assert "For several classes" in out
    assert all(name in out for name in OF_CLASSES)
    listed = {one["name"]: one["columns"] for one in json.loads(run("methods", "--json")[1])}
    assert listed["vector"] == "several"
    assert listed["platt"] == "one or several"
    text = refused(run, "fit", "old.csv", "-s", "p_ape", "-l", "w", "-m", "vector")
    assert "'vector' is for several classes" in text


# --- one score stays as it was ------------------------------------------------------------------


def test_one_score_is_one_score_whatever_its_name(run):
    rows = ["p(y=1),y", *(f"0.{i % 9 + 1},{(i * 7) % 3 % 2}" for i in range(60))]
    Path("one.csv").write_text("\n".join(rows))
    code, out, _ = run("fit", "one.csv", "-s", "p(y=1)", "-l", "y", "-m", "platt")
    assert code == 0
    assert not out.startswith("Columns")
    assert cal.load("calibrator.json").provenance["score_column"] == "p(y=1)"
    assert run("fit", "one.csv", "-s", "p*", "-l", "y", "-m", "platt")[0] == 0  # one column


def test_one_score_of_several_classes_is_told_of_the_way(run):
    text = refused(run, "fit", "old.csv", "-s", "p_ape", "-l", "kind")
    assert "at least 3 came: 'ape', 'bee', 'cat'" in text
    assert "a column of scores for each class" in text


# --- apply --------------------------------------------------------------------------------------


def test_apply_adds_a_column_for_each_class_and_leaves_the_rest(run):
    code, out, err = run("apply", "c.json", "new.csv", "-o", "out.csv")
    assert (code, err) == (0, "")
    assert "200 rows written to out.csv" in out
    assert "'probability_ape' is the probability of 'ape'" in out
    before = Path("new.csv").read_text().splitlines()
    after = Path("out.csv").read_text().splitlines()
    assert after[0] == before[0] + ",probability_ape,probability_bee,probability_cat"
    assert all(new.startswith(old + ",") for old, new in zip(before, after, strict=True))
    p, _ = animals(200, seed=1)
    want = load_map(Path("c.json")).predict_proba(p)
    got = np.array([line.split(",")[-3:] for line in after[1:]], dtype=float)
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=0)


def test_apply_names_its_columns_and_reads_others(run):
    text = Path("new.csv").read_text().replace("p_cat,p_ape,p_bee", "C,A,B")
    Path("renamed.csv").write_text(text)
    words = ("-s", "ape=A", "-s", "bee=B", "-s", "cat=C", "--into", "q")
    _, out, _ = run("apply", "c.json", "renamed.csv", "-o", "out.jsonl", *words, "--json")
    told = json.loads(out)
    assert told["scores"] == ["A", "B", "C"]
    assert told["columns"] == ["q_ape", "q_bee", "q_cat"]
    first = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert list(first)[-3:] == told["columns"]
    assert sum(first[name] for name in told["columns"]) == pytest.approx(1)
    assert "has no column 'p_ape'" in refused(run, "apply", "c.json", "renamed.csv", "-o", "o.csv")
    text = refused(run, "apply", "c.json", "renamed.csv", "-o", "o.csv", "-s", "A", "-s", "B")
    assert "one column for each of the 3 classes of the calibrator" in text
    assert "Columns: 'A', 'B'. Classes: 'ape', 'bee', 'cat'." in text


def test_apply_and_check_take_the_names_of_the_fit_in_any_order(run):
    P = np.random.default_rng(0).dirichlet([1, 2, 3], 200)
    labels = np.array(["a", "b", "c"])[P.argmax(axis=1)]
    scores = pa.table(dict(zip("xyz", P.T, strict=True)))
    cal.save(cal.VectorScaling().fit(scores, labels), "d.json")
    rows = [("x", "y", "z", "kind"), *zip(*P.T, labels, strict=True)]
    Path("xyz.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))

    def applied(*columns):
        words = [word for column in columns for word in ("-s", column)]
        assert run("apply", "d.json", "xyz.csv", "-o", "o.csv", *words)[0] == 0
        return Path("o.csv").read_text()

    assert applied("z", "x", "y") == applied("x,z,y") == applied()
    assert applied("a=z", "b=y", "c=x") != applied()  # what is said of a class goes before
    words = ("-c", "d.json", "-l", "kind", "-s", "z", "-s", "x", "-s", "y")
    assert run("check", "xyz.csv", *words, "--json")[0] == 0


def test_a_calibrator_that_does_not_know_its_columns_asks(run):
    cal.save(cal.VectorScaling().fit(*animals(200)), "bare.json")
    text = refused(run, "apply", "bare.json", "new.csv", "-o", "o.csv")
    assert "does not know the columns of scores" in text
    assert "--score '0=COLUMN'" in text


def test_columns_of_answers_are_no_scores_of_classes(run):
    p, y = animals(60)
    code = [[1, 1, 1, -1], [1, -1, -1, 1], [-1, 1, -1, 1]]
    cal.save(cal.CodedCalibrator(cal.Platt(), code=code).fit(np.c_[p, p[:, 0]], y), "e.json")
    text = refused(run, "apply", "e.json", "new.csv", "-o", "o.csv", "-s", "p_*")
    assert "reads 4 columns, which are no scores of its 3 classes" in text


def test_apply_to_rows_that_cannot_be(run):
    lines = Path("new.csv").read_text().splitlines()

    def changed(row: int, text: str) -> None:
        Path("bad.csv").write_text("\n".join([*lines[:row], text, *lines[row + 1 :]]) + "\n")

    words = ("apply", "c.json", "bad.csv", "-o", "o.csv")
    changed(3, "00002,0.5,,0.25,bee,1")
    text = refused(run, *words)
    assert "score column 'p_ape' must be complete: 1 of 200 rows are missing" in text
    assert "data row 3 of bad.csv" in text
    assert run(*words, "--on-missing", "null")[0] == 0
    assert Path("o.csv").read_text().splitlines()[3] == "00002,0.5,,0.25,bee,1,,,"
    changed(5, "00004,0.5,oops,0.25,bee,1")
    assert "'oops' in data row 5" in refused(run, *words)
    assert "'oops' in data row 5" in refused(run, *words, "--on-missing", "null")
    changed(7, "00006,50,25,25,bee,1")
    assert "must be probabilities in [0, 1]" in refused(run, *words)
    changed(7, "00006,0.5,0.25,0.2,bee,1")
    text = refused(run, *words)
    assert "score columns 'p_ape', 'p_bee', 'p_cat' must be probabilities" in text
    assert "1 of 200 rows is not (first: data row 7 of bad.csv: 0.25, 0.2, 0.5, sum 0.95)" in text
    assert not Path("bad.out").exists()
    assert run(*words, "--on-range", "allow")[0] == 0


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "csv.gz"])
def test_apply_reads_and_writes_every_kind_in_order(run, kind):
    p, y = animals(3000, seed=2)
    table = pa.table({"p_bee": p[:, 1], "p_ape": p[:, 0], "p_cat": p[:, 2], "kind": KINDS[y]})
    pq.write_table(table, "new.parquet")
    assert run("apply", "c.json", "new.parquet", "-o", f"out.{kind}")[0] == 0
    again = run("apply", "c.json", f"out.{kind}", "-o", "again.parquet", "--into", "q")
    assert again[0] == 0, again
    want = cal.load("c.json").predict_proba(p)
    found = pq.read_table("again.parquet")
    for name, column in (("q_ape", 0), ("q_bee", 1), ("q_cat", 2)):
        np.testing.assert_allclose(found[name].to_numpy(), want[:, column], rtol=1e-14)


def test_apply_replaces_columns_only_if_allowed(run):
    run("apply", "c.json", "new.csv", "-o", "out.jsonl")
    text = refused(run, "apply", "c.json", "out.jsonl", "-o", "o.jsonl")
    assert "already has a column 'probability_ape'" in text
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    for line in lines:
        line["probability_bee"] = "old"
    Path("old.jsonl").write_text("\n".join(map(json.dumps, lines)))
    code, _, err = run("apply", "c.json", "old.jsonl", "-o", "o.jsonl", "--overwrite-column")
    assert (code, err) == (0, "")
    first, second = (Path(name).read_text().splitlines() for name in ("out.jsonl", "o.jsonl"))
    assert list(map(json.loads, second)) == list(map(json.loads, first))


def test_apply_keeps_times_with_a_zone(run):
    p, _ = animals(50)
    zone = pa.array([0] * 50, pa.timestamp("us", tz="Europe/Rome"))
    columns = {"p_ape": p[:, 0], "at": zone, "p_bee": p[:, 1], "p_cat": p[:, 2]}
    pq.write_table(pa.table(columns), "rare.parquet")
    assert run("apply", "c.json", "rare.parquet", "-o", "o.parquet")[0] == 0
    found = pq.read_table("o.parquet")
    assert found["at"].cast(zone.type).to_pylist() == zone.to_pylist()  # the same instants, in UTC
    want = cal.load("c.json").predict_proba(p)
    np.testing.assert_allclose(found["probability_cat"].to_numpy(), want[:, 2], rtol=1e-14)


# --- evaluate, plot, compare, report, export ------------------------------------------------------


def test_evaluate_is_that_of_the_library(run):
    run("apply", "c.json", "new.csv", "-o", "out.csv")
    words = ("-p", "probability_*", "--raw", "p_*", "-l", "kind", "-w", "w")
    code, out, err = run("evaluate", "out.csv", *words, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    p, y = animals(200, seed=1)
    after = cal.load("c.json").predict_proba(p)
    ours = evaluate(KINDS[y], after, raw=p, sample_weight=1 + np.arange(200) % 3)
    assert found["after"] == pytest.approx(ours.after, rel=1e-9)
    assert found["before"] == pytest.approx(ours.before, rel=1e-9)
    assert found["score_columns"] == ["probability_ape", "probability_bee", "probability_cat"]
    code, out, _ = run("evaluate", "out.csv", *words)
    assert "Columns: probability_ape is 'ape'" in out
    assert "To name others: --prob CLASS=COLUMN" in out
    assert "top-label ECE from" in out


def test_evaluate_refuses_rows_that_are_no_distributions(run):
    lines = Path("new.csv").read_text().splitlines()
    Path("bad.csv").write_text("\n".join([*lines[:9], "00008,0.5,0.25,0.2,bee,1", *lines[10:]]))
    text = refused(run, "evaluate", "bad.csv", "-p", "p_*", "-l", "kind")
    assert "probability columns 'p_ape', 'p_bee', 'p_cat' must be probabilities" in text
    assert "first: data row 9 of bad.csv: 0.25, 0.2, 0.5, sum 0.95" in text
    assert "--segment is for one column" in refused(
        run, "evaluate", "new.csv", "-p", "p_*", "-l", "kind", "--segment", "w"
    )
    assert "--raw must name one column" in refused(
        run, "evaluate", "new.csv", "-p", "p_ape", "--raw", "p_bee", "--raw", "p_cat", "-l", "kind"
    )


def test_a_class_that_did_not_come_can_be_named(run):
    lines = [line for line in Path("new.csv").read_text().splitlines() if ",cat," not in line]
    Path("two.csv").write_text("\n".join(lines))
    text = refused(run, "evaluate", "two.csv", "-p", "p_*", "-l", "kind")
    assert "Columns: 'p_cat', 'p_ape', 'p_bee'. Classes: 'ape', 'bee'." in text
    assert "for example: --prob ape=p_ape --prob bee=p_bee --prob CLASS=p_cat" in text
    words = ("-p", "p_ape", "-p", "p_bee", "-p", "cat=p_cat")
    code, out, _ = run("evaluate", "two.csv", *words, "-l", "kind")
    assert code == 0
    assert "3 classes" in out


def test_plot_draws_a_panel_for_each_class(run):
    code, out, _ = run("plot", "new.csv", "-p", "p_*", "-l", "kind", "-o", "r.png", "--json")
    assert code == 0
    assert json.loads(out)["score_columns"] == ["p_ape", "p_bee", "p_cat"]
    assert Path("r.png").read_bytes().startswith(b"\x89PNG")


def test_plot_draws_the_scores_before_beside(run):
    assert run("apply", "c.json", "new.csv", "-o", "o.csv")[0] == 0
    words = ("-p", "probability_*", "--raw", "p_*", "-l", "kind", "-o", "r.svg")
    assert run("plot", "o.csv", *words)[0] == 0
    picture = Path("r.svg").read_text()
    assert "<!-- before -->" in picture
    assert "<!-- calibrated -->" in picture
    assert run("fit", "old.csv", *ALL, "-m", "vector", "--plot", "f.svg")[0] == 0
    assert "<!-- before -->" in Path("f.svg").read_text()


@pytest.mark.full
def test_compare_judges_methods_of_classes_beside_the_mixture(run):
    words = ("-m", "vector", "-m", "platt", "-m", "structured", "--cv", 3)
    code, out, _ = run("compare", "old.csv", *ALL, *words, "--json")
    assert code == 0
    found = json.loads(out)
    names = {row["name"] for row in found["leaderboard"]["rows"]}
    assert {"mixture", "uncalibrated", "vector", "one-vs-rest platt"} <= names
    assert {"structured", "StructuredScaling"} <= names  # the member, and what was asked for
    assert found["classes"] == ["ape", "bee", "cat"]


def test_report_writes_a_page_and_the_calibrator(run):
    words = ("-m", "vector", "-o", "r.html", "--save", "best.json")
    code, out, _ = run("report", "old.csv", *ALL, *words)
    assert code == 0
    assert "The page: r.html" in out
    assert "one-vs-rest BLS" in Path("r.html").read_text()
    assert run("apply", "best.json", "new.csv", "-o", "o.csv")[0] == 0
    assert cal.load("best.json").expects.probabilities


def test_export_knows_the_columns_and_takes_others(run):
    code, out, err = run("export", "c.json", "--to", "sql")
    assert code == 0
    assert "--keep COL" in err  # no other columns of the table are in the query
    assert all(f"r.{column}" in out for column in ORDER)
    assert "probability_cat" in out
    named = run("export", "c.json", "--to", "sql", "-s", "cat=z", "-s", "ape=x", "-s", "bee=y")
    ordered = run("export", "c.json", "--to", "sql", "-s", "x", "-s", "y", "-s", "z")
    assert named[1] == ordered[1]
    assert "in the order" not in named[2]
    assert "in the order of the classes: x is 'ape', y is 'bee', z is 'cat'" in ordered[2]
    for target, name in (("python", "f.py"), ("onnx", "f.onnx"), ("json", "f.json")):
        assert run("export", "c.json", "--to", target, "-o", name)[0] == 0


def test_export_takes_the_names_of_the_fit_in_any_order(run):
    P = np.random.default_rng(0).dirichlet([1, 2, 3], 200)
    scores = pa.table(dict(zip("xyz", P.T, strict=True)))
    labels = np.array(["a", "b", "c"])[P.argmax(axis=1)]
    cal.save(cal.VectorScaling().fit(scores, labels), "d.json")

    def sql(*columns):
        words = [word for column in columns for word in ("-s", column)]
        code, out, err = run("export", "d.json", "--to", "sql", "--keep", "id", *words)
        assert code == 0
        assert "in the order of the classes" not in err
        return out

    assert sql("z", "x", "y") == sql("x", "y", "z") == sql()
    assert sql("a=z", "b=y", "c=x") != sql()  # what is said of a class goes before


def test_show_tells_the_columns(run):
    _, out, _ = run("show", "c.json")
    assert "score columns" in out
    assert "p_ape" in out


# --- check --------------------------------------------------------------------------------------


def test_check_finds_nothing_where_nothing_changed(run):
    code, out, err = run("check", "new.csv", "-c", "c.json", "--exit-code")
    assert (code, err) == (0, "")
    assert "No change was found in any of the 3 classes" in out
    assert "Keep the calibrator." in out


def test_check_finds_the_class_that_changed(run):
    p, y = animals(1500, seed=3)
    more = np.where((y != 2) & (np.random.default_rng(0).random(1500) < 0.3), 2, y)
    write_csv(Path("now.csv"), p, more)
    code, out, _ = run("check", "now.csv", "-c", "c.json", "--exit-code")
    assert code == 3
    assert "A change was found in" in out
    assert "'cat'" in out
    assert "Fit one: calibrant fit now.csv -s ape=p_ape" in out
    code, out, _ = run("check", "now.csv", "-c", "c.json", "--json")
    found = json.loads(out)
    assert found["recommendation"] == "new map"
    assert found["correction"] == "holm"
    assert "cat" in found["found"]
    assert len(found["by_class"]) == 3


def test_swapped_columns_are_said_first_by_every_command(run):
    text = Path("new.csv").read_text()
    Path("mixed.csv").write_text(text.replace("p_cat,p_ape,p_bee", "p_ape,p_cat,p_bee"))
    for words in (
        ("fit", "mixed.csv", *ALL, "-m", "vector"),
        ("compare", "mixed.csv", *ALL, "-m", "vector"),
        ("report", "mixed.csv", *ALL, "-m", "vector", "-o", "r.html"),
        ("evaluate", "mixed.csv", "-p", "p_*", "-l", "kind"),
        ("check", "mixed.csv", "-c", "c.json"),
    ):
        code, out, _ = run(*words)
        said = " ".join(out.split())
        assert code == 0
        assert said.count("Columns look swapped: ") == 1, words
        assert "better" not in said.replace("no change is called better", "")


def test_check_refuses_what_it_cannot_answer(run):
    text = refused(run, "check", "new.csv", "-r", "old.csv", *ALL)
    assert "checked against a calibrator, not against old rows" in text
    assert "cannot be updated" in refused(
        run, "check", "new.csv", "-c", "c.json", "--update", "u.json"
    )
    rows = Path("new.csv").read_text().replace(",bee,", ",wasp,")
    Path("other.csv").write_text(rows)
    text = refused(run, "check", "other.csv", "-c", "c.json")
    assert "must hold only the classes ['ape', 'bee', 'cat'], but 'wasp' came" in text


# --- bad input ----------------------------------------------------------------------------------


def test_bad_rows_are_told_by_column_row_and_remedy(run):
    lines = Path("old.csv").read_text().splitlines()
    bad = {
        "00004,0.5,,0.25,bee,1": "score column 'p_ape' must be complete: 1 of 400 rows are missing "
        "(first: data row 5 of bad.csv). Drop those rows with --missing drop",
        "00004,0.5,x,0.25,bee,1": "score column 'p_ape' must be numbers: 1 of 400 rows hold "
        "something else (first: 'x' in data row 5 of bad.csv)",
        "00004,0.5,inf,0.25,bee,1": "score column 'p_ape' must be finite",
        "00004,0.5,0.1,0.25,,1": "label column 'kind' must be complete: 1 of 400 rows",
        "00004,0.5,0.1,0.25,bee,-1": "weight column 'w' must be at least 0: 1 of 400 rows",
    }
    for line, said in bad.items():
        Path("bad.csv").write_text("\n".join([*lines[:5], line, *lines[6:]]))
        assert said in refused(run, "fit", "bad.csv", *ALL, "-w", "w", "-m", "vector"), line


def test_a_column_that_is_not_there_is_told_by_its_role(run):
    text = refused(run, "fit", "old.csv", "-s", "p_*", "-l", "Kind")
    assert "old.csv has no column 'Kind' (label)" in text
    assert "Did you mean 'kind'?" in text
    assert "no column 'v' (weight)" in refused(run, "fit", "old.csv", *ALL, "-w", "v")
    assert "no column matches 'q_*'" in refused(run, "fit", "old.csv", "-s", "q_*", "-l", "kind")


def test_columns_that_do_not_fit_the_classes_are_refused(run):
    text = refused(run, "fit", "old.csv", "-s", "p_ape", "-s", "p_bee", "-l", "kind")
    assert "Columns: 'p_ape', 'p_bee'. Classes: 'ape', 'bee', 'cat'." in text
    text = refused(run, "fit", "old.csv", "-s", "w", "-s", "id", "-s", "p_ape", "-l", "kind")
    example = "--score ape=p_ape --score bee=w --score cat=id"
    assert f"Say which is which, for example: {example}" in text
    text = refused(run, "fit", "old.csv", "-s", "kind", "-s", "p_ape", "-s", "p_bee", "-l", "kind")
    assert "score and label must be different columns" in text
    assert "soft labels" in refused(
        run, "fit", "old.csv", "-s", "w", "-s", "p_ape", "-s", "p_cat", "-l", "p_bee"
    )
    assert "--pos-label is for one column" in refused(
        run, "fit", "old.csv", *ALL, "--pos-label", "ape"
    )


def test_spark_is_refused_with_the_way_round(run, monkeypatch):
    from calibrant.data.lazy import Names
    from calibrant.engines.open_engine import Engine
    from calibrant.errors import InputError

    other = Engine(lambda: None, spark=True)
    for ask in (
        lambda: other.columns(["old.csv"]),
        lambda: other.rows_to_hold(["old.csv"], [], Names("kind", "kind")),
    ):
        with pytest.raises(InputError, match=r"by DuckDB only.*export --to sql --dialect spark"):
            ask()


def test_how_numbers_are_written_is_remembered_of_the_scores(run):
    p, y = animals(60)
    text = "\n".join(
        f"{a:.4f};{b:.4f};{c:.4f};{KINDS[code]}" for (a, b, c), code in zip(p, y, strict=True)
    )
    Path("de.csv").write_text("p_ape;p_bee;p_cat;kind\n" + text.replace(".", ",") + "\n")
    for told in ((), ("--decimal", ",")):
        code, out, _ = run("fit", "de.csv", *ALL, "-m", "vector", "--cv", 0, "--json", *told)
        assert code == 0
        found = json.loads(out)["provenance"]["numbers_written"]
        assert found == [f"'p_{kind}' with a decimal comma" for kind in KINDS]


def test_no_row_with_a_label_is_left(run):
    Path("n.csv").write_text("p_ape,p_bee,p_cat,kind\n0.1,0.2,0.7,\n0.5,0.2,0.3,NA\n")
    said = refused(run, "fit", "n.csv", *ALL, "--missing", "drop")
    assert "n.csv must hold rows with a score and a label: none is left." in said


def test_rows_that_look_like_probabilities_but_are_not_are_told(run):
    p, y = animals(300)
    write_csv(Path("off.csv"), (0.9 * p).round(6), y)
    _, out, _ = run("fit", "off.csv", *ALL, "-m", "vector")
    assert "look: all scores are in [0, 1], but 300 of 300 rows do not sum to 1" in out
    write_csv(Path("percent.csv"), (100 * p).round(6), y)
    said = refused(run, "fit", "percent.csv", *ALL, "-m", "vector")
    assert "each row sums to 100: they look like percentages. Divide them by 100." in said
    write_csv(Path("rounded.csv"), p.round(2), y)
    code, out, _ = run("fit", "rounded.csv", *ALL, "-m", "vector")
    assert code == 0
    assert "look:" not in out
    write_csv(Path("logits.csv"), np.log(p).round(6), y)
    _, out, _ = run("fit", "logits.csv", *ALL, "-m", "vector")
    assert "look:" not in out


def test_columns_counted_from_1_and_labels_from_0_are_paired_in_order(run):
    p, y = animals(300)
    codes = np.unique(y, return_inverse=True)[1]
    rows = [",".join(map(str, [*row, own])) for row, own in zip(p, codes, strict=True)]
    Path("from1.csv").write_text("\n".join(["p_1,p_2,p_3,kind", *rows]))
    said = refused(run, "fit", "from1.csv", "--score", "p_*", "--label", "kind")
    assert "--score 0=p_1 --score 1=p_2 --score 2=p_3" in said


def test_more_scores_than_memory_holds_are_refused(run, monkeypatch):
    from calibrant.engines import duckdb_rows

    monkeypatch.setattr(duckdb_rows, "MOST_NUMBERS", 1000)
    text = refused(run, "fit", "old.csv", *ALL)
    assert "held in memory, so there must be at most 1,000" in text


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "parquet", "csv.gz", "semicolon"])
def test_files_of_every_kind_are_read_alike(run, kind):
    p, y = animals(400)
    if kind == "semicolon":
        path = Path("old2.csv")
        write_csv(path, p, y, ";")
    else:
        path = Path(f"old2.{kind}")
        run("apply", "c.json", "old.csv", "-o", path)
    assert run("fit", path, "-s", "p_*", "-l", "kind", "-m", "vector", "--cv", 0)[0] == 0
    assert cal.load("calibrator.json").map == cal.load("c.json").map


def test_labels_that_are_numbers_keep_their_type(run):
    p, y = animals(300)
    table = pa.table({"s1": p[:, 0], "s2": p[:, 1], "s3": p[:, 2], "y": y + 1.0})
    pq.write_table(table, "n.parquet")
    assert run("fit", "n.parquet", "-s", "s?", "-l", "y", "-m", "vector", "--cv", 0)[0] == 0
    assert cal.load("calibrator.json").classes == (1.0, 2.0, 3.0)
    assert run("apply", "calibrator.json", "n.parquet", "-o", "o.csv")[0] == 0
    assert Path("o.csv").read_text().startswith("s1,s2,s3,y,probability_1.0,")


def test_rows_that_lack_any_score_or_weight_are_counted_and_dropped_together(run):
    header, *lines = Path("old.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    for row, column in ((0, 1), (1, 2), (1, 3), (2, -2), (3, -1)):
        cells[row][column] = ""
    Path("gaps.csv").write_text("\n".join([header, *map(",".join, cells)]) + "\n")
    asked = ("gaps.csv", *ALL, "-w", "w", "-m", "vector")
    told = "In all, 4 rows have no score or no weight or no label: drop them with --missing drop"
    assert told in refused(run, "fit", *asked)
    code, out, err = run("fit", *asked, "--missing", "drop", "--json")
    assert code == 0, err
    found = json.loads(out)["provenance"]
    assert (found["rows"], found["rows_dropped"]) == (396, 4)


def test_a_monitor_sends_several_classes_to_the_check(run):
    assert run("fit", "old.csv", *ALL, "-m", "vector", "-o", "c.json")[0] == 0
    text = refused(run, "monitor", "state.json", "new.csv", "-c", "c.json")
    assert "Use calibrant check, which checks each class against the rest." in text
    assert not Path("state.json").exists()


def test_decimal_commas_and_missing_cells_of_several_classes(run):
    lines = Path("old.csv").read_text().splitlines()
    text = [line.replace(",", ";").replace(".", ",") for line in lines]
    cells = text[5].split(";")
    text[5] = ";".join([cells[0], "", *cells[2:]])
    Path("commas.csv").write_text("\n".join(text) + "\n")
    assert "--missing drop" in refused(run, "fit", "commas.csv", *ALL, "-m", "vector")
    code, out, err = run("fit", "commas.csv", *ALL, "-m", "vector", "--missing", "drop", "--json")
    assert code == 0, err
    told = json.loads(out)["provenance"]
    assert (told["rows"], told["rows_dropped"]) == (399, 1)
    fitted = cal.load("calibrator.json")
    code, _, err = run(
        "apply", "calibrator.json", "commas.csv", "-o", "out.csv", "--on-missing", "null"
    )
    assert code == 0, err
    first = Path("out.csv").read_text().splitlines()[1].split(";")
    scores = [float(first[i].replace(",", ".")) for i in (1, 2, 3)]
    names = Path("out.csv").read_text().splitlines()[0].split(";")
    order = [names.index(f"p_{label}") - 1 for label in fitted.classes]
    expected = fitted.predict_proba(np.array([[scores[i] for i in order]]))[0]
    np.testing.assert_array_equal([float(v.replace(",", ".")) for v in first[-3:]], expected)
    assert Path("out.csv").read_text().splitlines()[5].endswith(";;;")
