"""The frame of the papers' tables: nothing finished is lost, nothing published is made up."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import textwrap
import time
import types

import numpy as np
import pandas as pd
import pytest

from studies import experiment


@pytest.fixture(scope="module")
def cells(root):
    return experiment(root, "papers.cells")


@pytest.fixture(scope="module")
def run(root):
    return experiment(root, "papers.run")


@pytest.fixture(scope="module")
def render(root):
    return experiment(root, "papers.render")


@pytest.fixture(scope="module")
def beside(root):
    return experiment(root, "papers.beside")


@pytest.fixture(scope="module")
def published(root):
    return experiment(root, "papers.published")


@pytest.fixture
def toy(cells, run, root):
    """A paper of one table: five cells, of which the quick run has two."""
    counted = []

    def one(kind, seed):
        counted.append((kind, seed))
        if kind == "gone":
            raise experiment(root, "data").DataMissingError("put gone.csv there")
        if kind == "bad":
            raise ZeroDivisionError("no rows")
        return {"AUC": 0.5 + seed / 100, **({"extra": "word, with comma"} if seed == 2 else {})}

    def listed(quick):
        return [{"kind": "ok", "seed": seed} for seed in range(2 if quick else 5)]

    table = cells.Table("1", "One", listed, one, lambda frame: f"mean {frame['AUC'].mean():.3f}")
    claim = cells.Claim("It works.", "yes", "yes", True).resting_on("1", selection="seed 1")
    paper = cells.Paper("toy2000", "A toy", (table,), lambda found: [claim], "Notes.")
    module = types.ModuleType("experiments.papers.toy2000")
    module.PAPER, module.counted = paper, counted
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "experiments.papers.toy2000", module)
        yield module


def _run(run, toy, folder, quick=False):
    with run.Workers(1) as workers:
        return run.run_table(toy.PAPER, toy.PAPER.tables[0], folder, quick, workers)


def test_a_finished_cell_is_not_computed_again(run, toy, tmp_path):
    assert _run(run, toy, tmp_path, quick=True).done == 2
    assert _run(run, toy, tmp_path).done == 3
    assert _run(run, toy, tmp_path).done == 0
    assert toy.counted == [("ok", seed) for seed in range(5)]
    found = run.results(tmp_path, toy.PAPER)["1"]
    assert found["seed"].tolist() == [0, 1, 2, 3, 4]
    assert found["AUC"].tolist() == [0.5, 0.51, 0.52, 0.53, 0.54]
    assert found["extra"].tolist()[2] == "word, with comma"
    assert found.columns[-1] == "seconds"
    assert not list(tmp_path.glob("*.part"))


def test_a_line_torn_by_an_interrupt_is_dropped_and_computed_again(run, toy, tmp_path):
    _run(run, toy, tmp_path)
    path = tmp_path / "toy2000_1.csv"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole[:-9], encoding="utf-8")
    toy.counted.clear()
    assert _run(run, toy, tmp_path).done == 1
    assert toy.counted == [("ok", 4)]
    assert len(run.results(tmp_path, toy.PAPER)["1"]) == 5


def test_rows_found_in_any_order_are_kept_in_the_order_of_the_table(cells, tmp_path):
    kept = cells.Journal(tmp_path / "t.csv", ["seed"])
    for seed in (2, 0, 1):
        kept.add({"seed": seed}, {"x": seed / 3}, 0.1)
    listed = [{"seed": seed} for seed in range(3)]
    assert kept.frame(listed)["seed"].tolist() == [0, 1, 2]  # a killed run has not sorted them
    kept.sort(listed)
    assert pd.read_csv(tmp_path / "t.csv")["seed"].tolist() == [0, 1, 2]
    again = cells.Journal(tmp_path / "t.csv", ["seed"])
    assert again.frame(listed)["x"].tolist() == [0, 0.333333, 0.666667]


def test_cells_that_a_table_has_no_more_are_kept_but_not_shown(run, toy, cells, tmp_path):
    _run(run, toy, tmp_path)
    old = toy.PAPER.tables[0]
    listed = [{"kind": "ok", "seed": seed} for seed in (3, 1, 7)]
    table = cells.Table("1", "One", lambda quick: listed, old.run, old.page)
    toy.PAPER = cells.Paper("toy2000", "A toy", (table,), toy.PAPER.claims, "")
    assert run.results(tmp_path, toy.PAPER)["1"]["seed"].tolist() == [3, 1]
    assert _run(run, toy, tmp_path).done == 1
    assert run.results(tmp_path, toy.PAPER)["1"]["seed"].tolist() == [3, 1, 7]
    assert len(pd.read_csv(tmp_path / "toy2000_1.csv")) == 6


def test_a_file_of_another_table_is_refused(cells, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="lacks seed"):
        cells.Journal(tmp_path / "t.csv", ["seed"])


def test_missing_data_and_failures_are_told_and_the_rest_goes_on(run, toy, cells, tmp_path):
    old = toy.PAPER.tables[0]
    kinds = ["gone", "ok", "bad", "gone"]
    listed = [{"kind": kind, "seed": seed} for seed, kind in enumerate(kinds)]
    table = cells.Table("1", "One", lambda quick: listed, old.run, old.page)
    toy.PAPER = cells.Paper("toy2000", "A toy", (table,), toy.PAPER.claims, "")
    outcome = _run(run, toy, tmp_path)
    assert outcome.done == 1
    assert outcome.missing == ("put gone.csv there",)
    (failure,) = outcome.failed
    assert "ZeroDivisionError: no rows" in failure


def test_the_cost_of_a_full_run_is_told_from_what_there_is(run, toy, tmp_path):
    _run(run, toy, tmp_path, quick=True)
    ((name, all_cells, done, spent, ahead),) = run.cost(tmp_path, toy.PAPER)
    assert (name, all_cells, done) == ("1", 5, 2)
    assert ahead == pytest.approx(1.5 * spent, rel=0.01)


def test_the_cost_grows_with_the_work(run, cells, tmp_path):
    listed = [{"kind": k, "steps": s, "seed": 0} for k in "ab" for s in (1, 10)]
    table = cells.Table("1", "One", lambda quick: listed, dict, str, work="steps")
    paper = cells.Paper("toy2000", "A toy", (table,), lambda found: [], "")
    kept = run.journal(tmp_path, paper, table)
    kept.add(listed[0], {"x": 1}, 36.0)
    kept.add({"kind": "gone", "steps": 1, "seed": 0}, {"x": 1}, 999.0)  # of an older table
    ((_, all_cells, done, spent, ahead),) = run.cost(tmp_path, paper)
    assert (all_cells, done, spent) == (4, 1, 0.01)
    assert ahead == pytest.approx(0.01 * (10 + 1 + 10))


def test_pages_say_what_they_rest_on(run, render, toy, tmp_path):
    _run(run, toy, tmp_path, quick=True)
    render.render(toy.PAPER, tmp_path, render.blocks(render.judged(toy.PAPER, tmp_path)))
    text = (tmp_path / "toy2000.md").read_text(encoding="utf-8")
    assert "| It works. | yes | yes | 2 of 5 (40 %); seed 1 | yes |  |" in text
    assert "mean 0.505" in text
    assert text.count("*From 2 of 5 (40 %) cells of the full run.*") == 1
    _run(run, toy, tmp_path)
    assert "all 5; seed 1" in render.blocks(render.judged(toy.PAPER, tmp_path))["claims"]


def test_a_claim_of_no_table_rests_on_nothing(render, cells, toy, tmp_path):
    found = render.judged(toy.PAPER, tmp_path)
    assert found.rests_on(cells.Claim("It is private.", "1", "–", None)) == "–"


def test_shares_in_sentences_are_filled_from_results(run, render, toy, tmp_path):
    _run(run, toy, tmp_path, quick=True)
    papers = {"toy2000": render.judged(toy.PAPER, tmp_path)}
    text = (
        "On <!-- from toy2000 1 -->old<!-- /from --> and <!-- from toy2000 all --><!-- /from -->: "
        "<!-- verdicts toy2000 -->none<!-- /verdicts -->."
    )
    filled = render.fill_shares(text, papers)
    assert filled.count("2 of 5 (40 %)") == 2
    assert "-->old<" not in filled
    assert "1 hold, 0 do not, 0 cannot be judged" in filled
    assert render.fill_shares(filled, papers) == filled
    with pytest.raises(KeyError, match="table '9' of toy2000; it has 1"):
        render.fill_shares("<!-- from toy2000 9 --><!-- /from -->", papers)


def test_the_summary_counts_every_claim_of_every_paper(root, render):
    """If this fails after a run, `python -m experiments all --only pages` mends it."""
    summary, papers = experiment(root, "papers.summary"), experiment(root, "papers")
    every = {n: render.judged(papers.paper(n), root / "experiments" / "results") for n in NAMES}
    ordered = [every[name] for name in papers.NAMES]
    text = summary.summary(ordered)
    assert len(text.splitlines()) == 2 + len(NAMES) + 1
    held = sum(
        claim.holds is True and not claim.text.startswith("…")
        for found in ordered
        for claim in found.claims
    )
    assert f"| all | {held} | " in text
    page = (root / "docs" / "evidence" / "papers" / f"{summary.NAME}.md").read_text(
        encoding="utf-8"
    )
    assert page == render.fill(page, {"summary": text})
    for name in NAMES:  # the site shows the claims of each paper here
        assert f"<!-- fold experiments/results/{name}.md: What the paper claims -->" in page
    told = [
        path
        for path in (root / "docs").rglob("*.md")
        if "<!-- from " in path.read_text(encoding="utf-8")
    ]
    assert len(told) > 5
    for path in told:
        docs = path.read_text(encoding="utf-8")
        assert docs == render.fill_shares(docs, every), path


def test_blocks_of_a_page_are_filled_from_results(render):
    text = "# T\n\n<!-- claims -->\nold\n<!-- end -->\n\nprose\n\n<!-- table 1 -->\n<!-- end -->\n"
    parts = {"claims": "new", "table 1": "| a |"}
    filled = render.fill(text, parts)
    assert "<!-- claims -->\n\nnew\n\n<!-- end -->" in filled
    assert "prose" in filled
    assert "old" not in filled
    assert render.fill(filled, parts) == filled
    with pytest.raises(KeyError, match="'table 1'"):
        render.fill(text, {"claims": "new"})


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def command(root, monkeypatch):
    main = experiment(root, "__main__")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["experiments", *map(str, words)])
        return main.main()

    return call


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bella2009", "--table", "9"], r"one of 1, 2-3, .* for bella2009, but '9' came"),
        (["all", "--table", "1"], "--table needs the paper"),
        (["bella2009", "--check", "--share", "0"], "--share must be above 0 and at most 1"),
        (["bella2009", "--jobs", "0"], "--jobs must be at least 1, but 0 came"),
        (["bella2010"], "invalid choice: 'bella2010'"),
    ],
)
def test_what_the_command_does_not_know_is_refused(command, capsys, words, said):
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2
    assert re.search(said, capsys.readouterr().err)


def test_a_folder_that_cannot_be_written_to_is_told_before_hours_of_work(command, capsys, tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        assert command("bella2009", "--table", "1", "--into", folder) == 2
        assert "name another folder by --into" in capsys.readouterr().err


def forget_datasets():
    ours = [module for name, module in sys.modules.items() if name.startswith("experiments")]
    for value in [value for module in ours for value in vars(module).values()]:
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def test_without_data_each_dataset_is_told_and_the_page_is_written(
    command, capsys, monkeypatch, tmp_path
):
    forget_datasets()  # that tests before this one may have read
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "nowhere"))
    words = ("bella2009", "--table", "1", "--jobs", 1, "--into", tmp_path / "new" / "results")
    assert command(*words) == 0
    said = capsys.readouterr().out
    assert "bella2009 1: 0 cells" in said
    assert "left out: labor is missing: the datasets must be in" in said
    page = (tmp_path / "new" / "results" / "bella2009.md").read_text(encoding="utf-8")
    assert "*Not run yet.*" in page
    assert "*From 0 of 20 (0 %) cells of the full run.*" in page


SLOW_TOY = """
import sys, time, types
from pathlib import Path
sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else {root!r})
from experiments.papers.cells import Paper, Table
def one(seed):
    time.sleep(0.4)
    return {{"x": seed}}
def listed(quick):
    return [{{"seed": seed}} for seed in range(200)]
table = Table("1", "One", listed, one, lambda frame: "")
module = types.ModuleType("experiments.papers.slow2000")
module.PAPER = Paper("slow2000", "Slow", (table,), lambda found: [], "")
sys.modules["experiments.papers.slow2000"] = module
if __name__ == "__main__":
    from experiments.papers.run import Workers, run_table
    with Workers({jobs}) as workers:
        print("ready", flush=True)
        print(run_table(module.PAPER, table, Path({folder!r}), False, workers).done, flush=True)
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_what_is_finished(root, tmp_path, jobs):
    script = tmp_path / "slow.py"
    text = SLOW_TOY.format(root=str(root), folder=str(tmp_path), jobs=jobs)
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    kept = tmp_path / "slow2000_1.csv"
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while not (kept.is_file() and len(kept.read_text(encoding="utf-8").splitlines()) > 2):
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "finished and kept" in said
    done = int(said.splitlines()[-1])
    assert 2 <= done < 100
    assert pd.read_csv(kept)["x"].tolist() == list(range(done))


def test_a_second_interrupt_ends_everything(root, tmp_path):
    script = tmp_path / "slow.py"
    text = SLOW_TOY.format(root=str(root), folder=str(tmp_path), jobs=2).replace("0.4", "300")
    script.write_text(textwrap.dedent(text), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        assert "finished and kept" in process.stdout.readline()
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert not list(tmp_path.glob("*.csv"))


# --- published beside ours ------------------------------------------------------------------------


def test_a_figure_is_within_the_interval_of_one_more_run(beside):
    runs = [0.4, 0.5, 0.6] * 10  # mean .5
    sd = float(np.std(runs, ddof=1))
    far = 2.7564 * sd * math.sqrt(1 + 1 / 30)  # Student's quantile of 29
    assert beside.beside(0.5, runs).reach == pytest.approx(far, rel=1e-4)
    assert beside.beside(0.5 + far + 0.0004, runs).within is True  # rounding of the third digit
    assert beside.beside(0.5 + far + 0.0006, runs).within is False
    assert beside.beside(math.nan, runs).within is None
    assert beside.beside(0.5, [0.5]).within is None
    assert beside.beside(math.nan, runs).printed == "not legible in our copy"
    assert beside.beside(0.5, [math.nan, 0.5, 0.7]).runs == 2
    assert beside.beside(0.5, []).runs == 0
    assert beside.beside(0.5, runs)._replace(published_sd=0.04).printed == "0.500 ± 0.040"
    assert beside.beside(np.float64(0.9), np.array(runs)).within is False
    exact = beside.beside(0.5, [0.5, 0.5])
    assert exact.within is True
    assert beside.beside(0.6, [0.5, 0.5]).within is False


@pytest.mark.parametrize(("runs", "repetitions"), [(3, 1), (10, 1), (200, 1), (3, 3), (10, 10)])
def test_a_perfect_replication_is_within_as_often_as_is_said(beside, runs, repetitions):
    rng = np.random.default_rng(0)
    ours = rng.normal(size=(4000, runs))
    theirs = rng.normal(size=(4000, repetitions)).mean(axis=1)
    found = [
        beside.beside(value, row, digits=9, repetitions=repetitions).within
        for value, row in zip(theirs, ours, strict=True)
    ]
    assert np.mean(found) == pytest.approx(beside.LEVEL, abs=0.006)  # nearly four standard errors


def test_few_runs_can_refute_but_not_confirm(beside):
    few, many = [0.4, 0.5, 0.6], [0.4, 0.5, 0.6] * 4
    assert beside.is_repeated([beside.beside(0.5, many)]) is True
    assert beside.is_repeated([beside.beside(0.5, few)]) is None
    assert beside.is_repeated([beside.beside(9.9, few)]) is False
    said = beside.told_within([beside.beside(0.5, few)])
    assert "99% prediction interval of a run (3 runs: mean ± 11.5 sd)" in said
    assert "so few runs" in said
    said = beside.told_within([beside.beside(0.5, few), beside.beside(0.5, many)])
    assert "(3 to 12 runs: mean ± 3.2 to 11.5 sd)" in said
    assert "so few runs" not in beside.told_within([beside.beside(0.5, many)])
    assert beside.told_within([beside.beside(math.nan, many)]) == ""


def test_published_means_are_judged_by_the_difference_of_means(beside):
    runs = [0.4, 0.5, 0.6] * 10  # mean .5
    sd = float(np.std(runs, ddof=1))
    alike = beside.beside(0.55, runs, repetitions=30)
    assert alike.reach == pytest.approx(2.7564 * sd * math.sqrt(2 / 30), rel=1e-4)
    assert beside.beside(0.56, runs, repetitions=30).within is False
    assert beside.beside(0.56, runs, repetitions=30).within_a_run is True
    theirs = beside.beside(0.56, runs, repetitions=30)._replace(published_sd=0.2)
    assert theirs.within is True  # the paper's own runs vary more
    cells = [alike, beside.beside(0.56, runs, repetitions=30)]
    assert beside.counted(cells) == (
        "1 of 2 within the 99% interval of the difference of means (2 of 2 within that of one run)"
    )
    assert beside.is_repeated(cells) is False
    assert beside.is_repeated(cells[:1]) is True
    assert beside.is_repeated([]) is None
    assert "within the interval of a difference of means" in beside.tall({"AUC": {"a": alike}})


def test_order_of_methods(beside):
    published = {"a": 0.1, "b": 0.2, "c": 0.2, "d": 0.4, "e": math.nan}
    ours = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 2.5, "e": 0.0, "f": 9.0}
    assert beside.order_kept(published, ours) == (4, 5)  # b and c are equal there; c and d turned


def test_tables_beside(beside):
    cells = {"a": beside.beside(0.1, [0.1, 0.2]), "b": beside.beside(0.9, [0.3, 0.301])}
    tall = beside.tall({"AUC": cells})
    assert "| AUC | a | 0.100 | 0.150 ± 0.071 | yes | 1 of 1 pairs |" in tall
    assert "|  | b | 0.900 | 0.300 ± 0.001 | no |  |" in tall
    wide = beside.wide({"adult": cells})
    assert "| adult | 0.100 / 0.150 ± 0.071 | 0.900 / 0.300 ± 0.001 † | 1 of 1 pairs |" in wide


def test_footnotes_say_what_is_positive_and_who_says_so(beside):
    said = "adult: positive is >50K, income above $50,000 (11,687 of 48,842 rows), as Naeini 2015"
    silent = "What is positive, which no paper says, in the usual reading: "
    spam = "spambase: 1, spam (1,813 of 4,601 rows)"
    sick = "sick: sick (231 of 3,772 rows)"
    assert beside.positives(["adult"]) == f"{said} says."
    assert beside.positives(["spambase", "adult", "sick"]) == (
        f"{said} says. {silent}{spam}; {sick}."
    )


# --- the published figures ------------------------------------------------------------------------

TEXTS = {
    "naeini2015": "000", "niculescu2005": "001", "bella2009": "002", "naeini2018": "003",
    "zadrozny2002": "004",
}  # fmt: skip


def test_every_published_figure_stands_on_its_line_of_the_paper(shared, published):
    """Figures as they are printed; percentages of the claims and marks of tests in other words."""
    lines = {}
    for paper, number in TEXTS.items():
        (path,) = (shared / "papers").glob(f"{number}_*.txt")
        lines[paper] = path.read_text(encoding="utf-8").split("\n")
    found = published.everything()
    figures = found[found["value"].str.fullmatch(r"-?[\d.]+", na=False)]
    figures = figures[~figures["measure"].str.endswith("superior")]
    assert len(figures) > 1000
    for row in figures.itertuples():
        line = lines[row.paper][row.line - 1].replace("- **", "-").replace("- <b>", "-")
        wanted = row.value.lstrip("-")
        if row.table == "claims" and float(wanted) < 1:
            wanted = f"{round(100 * float(wanted))}%"
        assert wanted in re.sub(r"</?b>", "", line), (row.paper, row.table, row.value)
    spreads = found[found["sd"].notna()]
    assert len(spreads) == 12


def test_a_published_figure_by_its_words(published):
    assert published.figure("naeini2015", "1c", method="ABB", measure="RMSE") == 0.343
    with pytest.raises(KeyError, match="must be one"):
        published.figure("naeini2015", "1c", method="ABB")
    with pytest.raises(KeyError, match="no table"):
        published.published("naeini2015", "9")
    lost = published.published("naeini2015", "1j").query("measure == 'AUC'")
    assert lost["value"].isna().all()


# --- what is committed ----------------------------------------------------------------------------

NAMES = tuple(TEXTS)


def test_every_paper_is_there(root):
    assert set(experiment(root, "papers").NAMES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_pages_and_documentation_are_those_of_the_results(root, render, name):
    """If this fails after a run, `python -m experiments all --only pages` mends it."""
    paper, folder = experiment(root, "papers").paper(name), root / "experiments" / "results"
    page = (folder / f"{name}.md").read_text(encoding="utf-8")
    parts = render.blocks(render.judged(paper, folder))
    assert page == render.page(paper, parts)
    docs = (root / "docs" / "evidence" / "papers" / f"{name}.md").read_text(encoding="utf-8")
    folds = re.findall(r"^<!-- fold (.+) -->$", docs, flags=re.MULTILINE)
    assert sorted(folds) == sorted(f"table {table.name}" for table in paper.tables)
    assert f"experiments/results/{name}.md" in docs


#: what pages say of results that are not all there
UNFINISHED = re.compile(r"quick run|not (yet )?run|rest of the run|so far|not there yet", re.I)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_blames_no_unfinished_run_where_all_cells_are_there(root, render, name):
    found = render.judged(experiment(root, "papers").paper(name), root / "experiments" / "results")
    page = (root / "docs" / "evidence" / "papers" / f"{name}.md").read_text(encoding="utf-8")
    parts = render.blocks(found)
    if all(done == total for done, total in found.cells.values()):
        for text in (page, parts["claims"]):
            assert not UNFINISHED.search(text), UNFINISHED.search(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_read_in_minutes(root, name):
    page = (root / "docs" / "evidence" / "papers" / f"{name}.md").read_text(encoding="utf-8")
    own = re.sub(r"<!--.*?-->|!\[[^]]*\]\([^)]*\)", "", page)  # without pictures and marks
    words = re.findall(r"\w\S*", re.sub(r"\]\([^)]*\)", "]", own))
    assert 500 <= len(words) <= 900, len(words)


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_run_is_a_part_of_the_full_one_and_is_committed(root, run, name):
    paper, folder = experiment(root, "papers").paper(name), root / "experiments" / "results"
    assert paper.name == name
    names = [table.name for table in paper.tables]
    assert len(set(names)) == len(names)
    for table in paper.tables:
        quick, full = table.cells(True), table.cells(False)
        assert quick
        assert all(list(cell) == table.keys for cell in full)
        told = [tuple(cell.items()) for cell in full]
        assert len(set(told)) == len(told)
        assert {tuple(cell.items()) for cell in quick} <= set(told)
        assert not run.journal(folder, paper, table).todo(quick), table.name
