"""The evaluator page in a real browser: the numbers of calibrate, and reasons for bad files."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.fitting.files import to_json
from calibrant.fitting.fitted import Fitted
from chromium import BROWSER, Browser
from fitting.test_format import SMALL, changed, labelled, refusal
from reports.test_report_page import contrast, luminance
from subjects import (
    ENDS,
    JUMP,
    LINE,
    ROWS,
    SEGMENTED,
    SHAPES,
    UP,
    fitted,
    fitted_segments,
    fitted_vector,
    vector_rows,
)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium on the PATH")


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.fixture(scope="module")
def path(root):
    return root / "docs" / "reference" / "evaluator.html"


@pytest.fixture
def page(browser, path):
    one = browser.open(path)
    yield one
    problems = one.problems()
    one.close()
    assert problems == []


def choose(page, file):
    """Choose a file as a user does, and wait until it is read."""
    root = page("DOM.getDocument")["root"]["nodeId"]
    node = page("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    page("DOM.setFileInputFiles", files=[str(file)], nodeId=node)
    wait(page)


def wait(page):
    page.run(
        "new Promise(done => { const look = () => $('loaded').hidden && $('error').hidden"
        " ? setTimeout(look, 10) : done(); setTimeout(look, 30); })"
    )


def typed(page, lines):
    """The table after these lines were typed."""
    page.run(
        f"$('scores').value = {json.dumps(chr(10).join(lines))};"
        "$('scores').dispatchEvent(new Event('input'))"
    )
    return page.run(
        "Array.from($('result').tBodies[0].rows).map("
        "row => Array.from(row.cells).slice(1).map(cell => cell.textContent))"
    )


def evaluated(page, calibrator, rows, segment=-1):
    """What the page's own evaluator makes of scores or rows."""
    return page.run(
        f"(c => {json.dumps(rows)}.map(s => Calibrator.calibrate(c, s, {segment})))"
        f"(Calibrator.load({json.dumps(to_json(calibrator))}))"
    )


def shown(page, selector):
    return page.run(f"document.querySelector('{selector}').getClientRects().length > 0")


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "margins"),
    [("isotonic", False), ("platt", True), ("beta", False), ("spline", False), ("bls-band", True)],
)
def test_a_file_is_read_shown_and_evaluated(page, tmp_path, name, margins):
    c = fitted(name, margins)
    cal.save(c, tmp_path / "calibrator.json")
    choose(page, tmp_path / "calibrator.json")
    text = page.run("document.body.innerText")
    assert type(c).__name__ in text
    assert "yes (the other label: no)" in text
    assert cal.__version__ in text
    assert shown(page, "svg .curve")
    scores = np.linspace(-4, 4, 21) if margins else np.linspace(0, 1, 21)
    got = [float(p) for (p,) in typed(page, [repr(s) for s in scores.tolist()])]
    assert np.abs(got - c.calibrate(scores, on_range="allow")).max() <= 1e-12
    assert page.run("document.querySelectorAll('svg .given').length") > 3


def test_a_file_can_be_dropped(page):
    page.run(
        "(() => { const held = new DataTransfer();"
        f"held.items.add(new File([{json.dumps(to_json(fitted('isotonic')))}], 'dropped.json'));"
        "const drop = new DragEvent('drop', {dataTransfer: held, bubbles: true});"
        "document.body.dispatchEvent(drop); })()"
    )
    wait(page)
    assert shown(page, "svg .curve")
    assert "dropped.json" in page.run("$('name').textContent")


def test_every_shape_of_map(page):
    scores = [*np.random.default_rng(0).normal(0, 2, 20).tolist(), *ENDS]
    for name, map_ in SHAPES.items():
        got = evaluated(page, labelled(map_), scores)
        assert np.abs(np.array(got) - map_(scores)).max() <= 1e-12, name


def test_steps_are_equal_to_the_last_bit(page):
    c = fitted("isotonic")
    scores = [*c.map_.x.tolist(), *np.nextafter(c.map_.x, -np.inf).tolist()]
    assert evaluated(page, c, scores) == c.calibrate(scores, on_range="allow").tolist()


def test_rows_of_scores(page, tmp_path):
    z = np.random.default_rng(1).normal(0, 2, (10, 3))
    rows = np.concatenate((z, 1e3 * z, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)))
    for name, map_ in ROWS.items():
        if not re.search("coupling|least_squares|pairwise", to_json(labelled(map_))):
            got = evaluated(page, labelled(map_), rows.tolist())
            assert np.abs(np.array(got) - map_(rows)).max() <= 1e-12, name
    for name in ("matrix", "labels", "one against all"):
        c = fitted_vector(name)
        cal.save(c, tmp_path / "c.json")
        choose(page, tmp_path / "c.json")
        assert not shown(page, "#picture")
        rows = vector_rows(name)[0][:5]
        got = typed(page, [", ".join(map(repr, row)) for row in rows.tolist()])
        wanted = c.to_fitted().predict_proba(rows, on_range="allow")
        assert np.abs(np.array(got, dtype=float) - wanted).max() <= 1e-12


def test_segments_of_several_columns(page, tmp_path):
    rng = np.random.default_rng(4)
    p, a, b = rng.random(600).round(2), rng.choice(["x", "y"], 600), rng.integers(0, 3, 600)
    c = cal.SegmentedCalibrator(shrinkage=20.0)
    c.fit(p, rng.random(600) < np.where(a == "x", p, p**2), segments=[a, b])
    for i, key in enumerate(c.map_.keys):
        got = evaluated(page, c, [0.1, 0.45, 0.7], i)
        assert np.abs(np.array(got) - c.map_.member(key)([0.1, 0.45, 0.7])).max() <= 1e-12
    cal.save(c, tmp_path / "c.json")
    choose(page, tmp_path / "c.json")
    assert "x / 1" in page.run("$('segment').textContent")


def test_segments_can_be_chosen(page, tmp_path):
    for map_ in SEGMENTED.values():
        for i, key in enumerate(map_.keys):
            got = evaluated(page, labelled(map_), [0.1, 0.45, 0.7], i)
            assert np.abs(np.array(got) - map_([0.1, 0.45, 0.7], [key] * 3)).max() <= 1e-12
    c = fitted_segments(cal.Isotonic())
    cal.save(c, tmp_path / "c.json")
    choose(page, tmp_path / "c.json")
    before = typed(page, ["0.4"])
    assert float(before[0][0]) == c.map_.default([0.4])[0]
    at = c.map_.keys.index("it")
    page.run(f"$('segment').value = {at}; $('segment').dispatchEvent(new Event('change'))")
    assert abs(float(typed(page, ["0.4"])[0][0]) - c.calibrate([0.4], segments=["it"])[0]) <= 1e-15


def test_what_is_no_score_says_so(page, tmp_path):
    cal.save(fitted("beta"), tmp_path / "c.json")
    choose(page, tmp_path / "c.json")
    got = typed(page, ["0.5", "abc", "0.1 0.2", "NaN", "1e999", "", "0x", "-3"])
    assert [row[0].startswith("must be one finite number") for row in got] == [
        *(False, True, True, True, True, True),
        False,
    ]
    assert len(typed(page, ["0.5"] * 600)) == 500
    assert "first 500 of 600" in page.run("$('rest').innerText")


def test_the_value_under_the_pointer(page, tmp_path):
    cal.save(fitted("beta"), tmp_path / "c.json")
    choose(page, tmp_path / "c.json")
    page.point_at("#plot svg")
    told = page.run("$('read').textContent")
    score, p = (float(v) for v in re.findall(r"[\d.]+(?:e-\d+)?", told))
    assert abs(p - fitted("beta").calibrate([score])[0]) < 0.01


# --- bad files ------------------------------------------------------------------------------------


def damaged():
    good = json.loads(to_json(labelled(JUMP)))
    yield "", "not JSON"
    yield "{", "not JSON"
    yield "[]", 'its "format" must be'
    yield "null", 'its "format" must be'
    yield json.dumps(good | {"version": 3}), "version must be 1 or 2"
    yield json.dumps(good | {"score_range": {"kind": "x"}}), "score_range"
    yield json.dumps(good | {"format": "calibrant-local"}), "needs more of a row than its score"
    yield json.dumps(good | {"map": {"kind": "bins", "version": 1}}), "needs more of a row"
    yield json.dumps(good | {"classes": ["a"]}), "two labels"
    yield json.dumps(good | {"map": {"kind": "toString", "version": 1}}), "does not know"
    yield (
        json.dumps(good | {"map": good["map"] | {"x": [3.0, 2.0, 1.0]}}),
        "must ascend, but 2 follows 3",
    )
    yield json.dumps(good | {"map": good["map"] | {"left": [0.5]}}), "same length"
    yield json.dumps(good | {"map": good["map"] | {"kind": "new"}}), 'not know: "new"'
    yield json.dumps(good | {"map": good["map"] | {"version": 7}}), "newer calibrant"
    yield to_json(fitted_vector("pairs")), "needs a solver"


def test_bad_files_get_a_reason(page, tmp_path):
    for i, (text, reason) in enumerate(damaged()):
        file = tmp_path / f"bad_{i}.json"
        file.write_text(text, encoding="utf-8")
        choose(page, file)
        told = page.run("$('error').innerText")
        assert told.startswith(f"bad_{i}.json cannot be used: "), told
        assert reason in told
        assert not shown(page, "#loaded")
    cal.save(labelled(LINE), tmp_path / "good.json")
    choose(page, tmp_path / "good.json")
    assert not shown(page, "#error")
    assert shown(page, "#loaded")


def test_what_the_page_takes_it_can_evaluate(page):
    """Whatever is changed in a file: a reason, or finite probabilities."""
    checked = (
        "text => { try { const c = Calibrator.load(text); const row = Calibrator.isRow(c);"
        "const s = row ? Array(Calibrator.width(c.map)).fill(0.4) : 0.4;"
        "const fine = [Calibrator.calibrate(c, s)].flat().every(p => p >= 0 && p <= 1 + 1e-12);"
        "return fine ? '' : 'odd';"
        "} catch (wrong) { return wrong instanceof Calibrator.Refused ? wrong.message : 'broken: '"
        " + wrong; } }"
    )
    for name, map_ in SMALL.items():
        documents = [
            (path, value, other)
            for path, value, other in changed(json.loads(to_json(labelled(map_))))
            if path[0] not in ("method", "params", "provenance")
        ]
        texts = [json.dumps(other) for _, _, other in documents]
        told = page.run(f"{json.dumps(texts)}.map({checked})")
        for (path, value, other), answer in zip(documents, told, strict=True):
            assert answer != "odd", (name, path, value)
            assert not answer.startswith("broken"), (name, path, value, answer)
            if refusal(other) is None and "solver" not in answer:
                assert answer == "", (name, path, value)


NASTY = ["<img src=x onerror=alert(1)>", "</script><script>document.title='broken'</script>"]


def test_nasty_labels_do_nothing(page, tmp_path):
    c = Fitted(UP, tuple(sorted(NASTY)), NASTY[0], NASTY[1], {NASTY[0]: NASTY[1]}, {NASTY[1]: [1]})
    cal.save(c, tmp_path / "c.json")
    choose(page, tmp_path / "c.json")
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 1
    assert page.run("document.title") == "Calibrator evaluator"
    assert NASTY[0] in page.run("$('summary').innerText")
    page.resize(360, 800)
    assert page.run("document.documentElement.scrollWidth") <= 360


# --- looks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_fits_any_screen_in_both_colours(browser, path, tmp_path, width, dark):
    page = browser.open(path, width=width, height=800, dark=dark)
    assert (luminance(page.run("getComputedStyle(document.body).backgroundColor")) < 0.1) is dark
    for calibrator in (fitted("bls"), fitted_segments(), fitted_vector("matrix")):
        cal.save(calibrator, tmp_path / "c.json")
        choose(page, tmp_path / "c.json")
        assert page.run("document.documentElement.scrollWidth") <= width
        for selector in ("p", "dt", "dd", "#drop strong", "th", "td", "textarea", "summary"):
            assert contrast(page, selector) >= 4.5, selector
    assert page.problems() == []
    page.close()


def test_it_works_by_keyboard_and_has_names(page, tmp_path):
    page.key("Tab")
    assert page.run("document.activeElement.id") == "file"
    cal.save(fitted_segments(), tmp_path / "c.json")
    choose(page, tmp_path / "c.json")
    nameless = page.run(
        "Array.from(document.querySelectorAll('svg, input, select, textarea, [role=region]'))"
        ".filter(e => !(e.getAttribute('aria-label') || e.labels && e.labels.length)).length"
    )
    assert nameless == 0
    assert page.run("document.documentElement.lang") == "en"


@pytest.mark.full
def test_nothing_is_asked_of_the_network(path):
    text = path.read_text(encoding="utf-8")
    links = set(re.findall(r"https?://[^\s\"']+", text))
    assert links == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}  # names only
    assert not re.search(r"(?:src|href|action)\s*=|url\(|@import|fetch\(|XMLHttp|WebSocket", text)
    assert "default-src 'none'" in text
