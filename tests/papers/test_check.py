"""Committed cells computed again: what differs is found, and only that."""

from __future__ import annotations

import argparse
import shutil

import pytest

from studies import experiment


@pytest.fixture(scope="module")
def check(root):
    return experiment(root, "papers.check")


@pytest.fixture(scope="module")
def cells(root):
    return experiment(root, "papers.cells")


@pytest.fixture(scope="module")
def made_with(root):
    return experiment(root, "papers.made_with")


@pytest.fixture(scope="module")
def papers(root):
    return experiment(root, "papers")


def told(folder, table, **options):
    given = {"share": 0.02, "longest": 60.0, "seed": 0, "jobs": 1, **options}
    return argparse.Namespace(into=folder, table=table, **given)


def test_figures_beyond_the_tolerance_are_found(check, cells):
    table = cells.Table("1", "One", lambda quick: [{"seed": 0}], dict, str, times=(" time",))
    cell = {"seed": 0}
    committed = {"seed": "0", "AUC": "0.9", "MCE": "", "PAV time": "3", "run": "a", "seconds": "1"}
    same = {"AUC": 0.9 * (1 + 1e-5), "MCE": float("nan"), "PAV time": 9.0}
    assert not check.differences(cell, committed, same, table, check.SAME)
    assert not check.differences(cell, committed, {**same, "AUC": 0.9004}, table, 1e-3)
    (far,) = check.differences(cell, committed, {**same, "AUC": 0.9004}, table, check.SAME)
    assert (far.figure, far.committed, far.found) == ("AUC", "0.9", "0.9004")
    assert far.apart == pytest.approx(0.0004 / 0.9004)
    (lost,) = check.differences(cell, committed, {"MCE": 0.0, "AUC": 0.9}, table, 0.1)
    assert (lost.figure, lost.committed) == ("MCE", "")
    (gone,) = check.differences(cell, committed, {"PAV time": 1.0}, table, 0.1)
    assert (gone.figure, gone.found) == ("AUC", "")


def test_figures_that_are_all_but_nothing_are_the_same(check, cells):
    table = cells.Table("1", "One", lambda quick: [{"seed": 0}], dict, str)
    assert not check.differences({"seed": 0}, {"bend": "2e-17"}, {"bend": -1e-16}, table, 1e-5)


@pytest.mark.parametrize(
    ("paper", "table", "cell", "name"),
    [
        ("bella2009", "2-3", {"model": "logistic regression"}, "logistic regression"),
        ("bella2009", "2-3", {"model": "tree"}, "naive Bayes, trees, neighbours"),
        ("naeini2015", "1e", {"reading": "all", "seed": 1}, "logistic regression"),
        ("naeini2015", "1f", {"seed": 1}, "naive Bayes, trees, neighbours"),
        ("naeini2015", "separate", {"problem": "Adult SVM"}, "support vectors"),
        ("niculescu2005", "figure1", {"style": "ID3"}, "boosting, networks"),
        ("niculescu2005", "2", {"learner": "stumps"}, "boosting, networks"),
    ],
)
def test_each_cell_has_the_tolerance_of_its_learner(check, paper, table, cell, name):
    assert check.learner(paper, table, cell) == name


def test_every_table_and_learner_of_the_tolerances_is_known(check, papers):
    assert set(check.LEARNERS.values()) | {check.REST} == set(check.TOLERANCES)
    for name, learners in check.OF_TABLES.items():
        assert set(learners) <= {table.name for table in papers.paper(name).tables}
        assert set(learners.values()) <= set(check.LEARNERS)


def test_a_draw_is_a_share_of_the_cells_that_do_not_take_too_long(check, cells, tmp_path):
    table = cells.Table("1", "One", lambda quick: [{"seed": s} for s in range(50)], dict, str)
    committed = cells.Journal(tmp_path / "t.csv", ["seed"])
    for seed in range(50):
        committed.add({"seed": seed}, {"x": 1}, 100.0 if seed < 10 else 0.1)
    one = check.draw(table, committed, told(None, None, share=0.1))
    assert len(one) == 4
    assert all(cell["seed"] >= 10 for cell in one)
    assert one == check.draw(table, committed, told(None, None, share=0.1))
    assert one != check.draw(table, committed, told(None, None, share=0.1, seed=1))
    assert len(check.draw(table, committed, told(None, None, share=1e-9))) == 1
    assert check.draw(table, committed, told(None, None, longest=0.01)) == []


@pytest.fixture
def committed(root, check, monkeypatch, tmp_path):
    """A copy of one table of the results, in place of the committed ones."""
    folder = tmp_path / "committed"
    folder.mkdir()
    name = "zadrozny2002_binning.csv"
    shutil.copy(root / "experiments" / "results" / name, folder / name)
    monkeypatch.setattr(check, "RESULTS", folder)
    return folder / name


def test_committed_cells_come_out_again(shared, check, papers, committed, tmp_path, capsys):
    into = tmp_path / "again"
    paper = [papers.paper("zadrozny2002")]
    assert check.check(paper, told(into, "binning")) == 0
    assert "| zadrozny2002 binning | 4 | 0 | " in capsys.readouterr().out
    assert len((into / committed.name).read_text(encoding="utf-8").splitlines()) == 5
    assert (into / "runs.csv").is_file()
    assert check.check(paper, told(into, "binning")) == 2
    assert "must be empty" in capsys.readouterr().out


def test_a_committed_figure_that_is_wrong_is_found(
    shared, check, papers, committed, tmp_path, capsys
):
    lines = committed.read_text(encoding="utf-8").splitlines()
    spoilt = [lines[0], *(_spoilt(line) for line in lines[1:])]
    committed.write_text("\n".join(spoilt) + "\n", encoding="utf-8")
    assert check.check([papers.paper("zadrozny2002")], told(tmp_path / "a", "binning")) == 1
    said = capsys.readouterr().out
    assert "| **no** |" in said
    assert ": above was 7, is " in said
    for figures, code in (("above", 0), ("PAV", 1)):
        listed = f"paper,table,figures,runs,why\nzadrozny2002,binning,{figures},unrecorded,older\n"
        (committed.parent / "stale.csv").write_text(listed, encoding="utf-8")
        into = tmp_path / figures
        assert check.check([papers.paper("zadrozny2002")], told(into, "binning")) == code
        said = capsys.readouterr().out
        assert ("| yes, but 4 in above, listed as stale: older |" in said) == (code == 0)


def _spoilt(line):
    *keys, _, last, seconds = line.split(",")
    return ",".join([*keys, "7", last, seconds])


# --- what runs were made with ---------------------------------------------------------------------


def test_a_run_is_recorded_once(made_with, tmp_path):
    name = made_with.record(tmp_path)
    assert made_with.record(tmp_path) == name
    (row,) = made_with.known_runs(tmp_path).values()
    assert row["run"] == name
    assert set(row) >= {"commit", "kernels", "Python", "calibrant", "numpy", "scikit-learn"}


def test_stale_cells_are_computed_again_in_place(cells, tmp_path):
    kept = cells.Journal(tmp_path / "t.csv", ["seed"])
    for seed in range(3):
        kept.add({"seed": seed}, {"x": 1}, 0.1)
    listed = [{"seed": seed} for seed in range(4)]
    assert kept.todo(listed) == [{"seed": 3}]
    assert kept.todo(listed, {""}) == listed
    kept.add({"seed": 1}, {"x": 2}, 0.1, "abc")
    again = cells.Journal(tmp_path / "t.csv", ["seed"])
    assert [cell["seed"] for cell in again.todo(listed, {""})] == [0, 2, 3]
    assert again.frame(listed)["x"].tolist() == [1, 2, 1]
    assert "run" not in again.frame(listed)


def test_what_is_listed_as_stale_is_there_and_is_of_these_runs(root, made_with, papers):
    """If this fails after `--stale`, the line of stale.csv has done its work: remove it."""
    run = experiment(root, "papers.run")
    folder = root / "experiments" / "results"
    for (paper, table), listed in made_with.stale(folder).items():
        found = papers.paper(paper)
        part = found.table(table)
        assert run.journal(folder, found, part).todo(part.cells(False), listed.runs)
        assert listed.why


def test_the_page_has_the_tolerances_and_says_what_is_stale(root, check, made_with):
    """If this fails, `python -m experiments all --only pages` mends it."""
    page = (root / "docs" / "evidence" / "papers" / "README.md").read_text(encoding="utf-8")
    assert check.tolerances_table() in page
    assert check.stale_words(made_with.stale(root / "experiments" / "results")) in page
    assert check.stale_words({}).endswith("none now.")
