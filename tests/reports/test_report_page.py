"""The page in a real browser: toggles, keys, colours, paper, and no script."""

from __future__ import annotations

import html
import itertools
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.reports.report import calibration_report
from chromium import BROWSER, Browser
from reports.test_reports import NASTY, nasty_report

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium on the PATH")

VISIBLE = "document.querySelector('{}').getClientRects().length > 0"


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    z = rng.normal(-0.5, 1.8, 2000)
    y = np.where(rng.random(2000) < 1 / (1 + np.exp(-z)), "yes", "no")
    return 1 / (1 + np.exp(-2.5 * z)), y


@pytest.fixture(scope="module")
def made(data):
    named = {"Platt": cal.Platt(), "steps": cal.Isotonic(smoothing="laplace"), "beta": cal.Beta()}
    return calibration_report(
        *data, calibrator=named, segments=np.arange(2000) % 3, source="scores.csv"
    )


@pytest.fixture(scope="module")
def file(made, tmp_path_factory):
    return made.save(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def page(browser, file):
    one = browser.open(file)
    yield one
    problems = one.problems()
    one.close()
    assert problems == []


def sees(page, selector):
    return page.run(VISIBLE.format(selector))


def test_the_verdict_comes_first_and_all_sections_are_there(page, made):
    text = page.run("document.body.innerText")
    places = [text.index(sentence) for sentence in made.verdict]
    heads = [
        "Leaderboard",
        "Before and after",
        "Every method",
        "Measures",
        "Segments",
        "How to apply it",
        "Where this comes from",
    ]
    places += [text.index(f"\n{head}\n") for head in heads]
    assert places == sorted(places)
    assert page.run("document.title") == made.title
    assert made.facts["fingerprint of the data"] in text
    for method in made.methods:
        assert method.name in text
    assert page.run("document.querySelectorAll('#leaderboard tbody tr').length") == 4


def test_methods_can_be_hidden_and_shown(page, made):
    places = {method.name: i for i, method in enumerate(made.methods)}
    platt, steps = places["Platt"], places["steps"]
    chosen = next(i for i, m in enumerate(made.methods) if m.chosen)
    shown = [sees(page, f".axes-plain .series-{i}") for i in range(4)]
    assert shown == [i in (0, chosen) for i in range(4)]
    page.click(f"label[for=show-{steps}]")
    assert sees(page, f".axes-plain .series-{steps}")
    page.click("label[for=show-0]")
    assert not sees(page, ".axes-plain .series-0")
    page.click("[data-show=all]")
    assert all(sees(page, f".axes-plain .series-{i}") for i in range(4))
    page.click("[data-show=pair]")
    assert [sees(page, f".axes-plain .series-{i}") for i in range(4)] == shown
    assert platt != steps


def test_axes_can_be_changed(page):
    assert sees(page, ".axes-plain svg")
    assert not sees(page, ".axes-odds svg")
    page.click("label[for=axes-odds]")
    assert sees(page, ".axes-odds svg")
    assert not sees(page, ".axes-plain svg")


def test_values_appear_under_the_mouse(page, made):
    curve = made.raw.curve
    assert page.run("document.getElementById('tip').hidden")
    page.point_at(".axes-plain .series-0 .point:nth-of-type(4)")
    text = page.run("document.getElementById('tip').innerText")
    lines = text.split("\n")
    assert lines[0] == "scores as they are"
    at = int(np.argmin(np.abs(curve.mean_p - float(lines[1].split()[-1]))))
    assert lines[1] == f"predicted {curve.mean_p[at]:.3f}"
    assert lines[2] == f"observed {curve.fraction[at]:.3f}"
    assert lines[3] == f"95 % interval {curve.lower[at]:.3f} to {curve.upper[at]:.3f}"
    assert lines[4] == f"weight {curve.weight[at]:g}"
    page("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert page.run("document.getElementById('tip').hidden")


def test_everything_works_by_keyboard(page):
    focus = "(document.activeElement.id || document.activeElement.getAttribute('class') || '')"
    reached = []
    while len(reached) < 60 and (len(reached) < 2 or reached[-1] != "theme-auto"):
        page.key("Tab")  # once around
        reached.append(page.run(focus))
    assert reached[0] == reached[-1] == "theme-auto"
    assert {"show-0", "show-1", "axes-plain", "point"} <= set(reached)
    assert reached.count("point") == 2  # one stop for each series that is shown
    page.run("document.getElementById('show-0').focus()")
    page.key(" ")
    assert not sees(page, ".axes-plain .series-0")
    page.key(" ")
    page.run("document.querySelector('.axes-plain .series-0 .point').focus()")
    label = "document.activeElement.getAttribute('aria-label')"
    first = page.run(label)
    assert not page.run("document.getElementById('tip').hidden")
    page.key("ArrowRight")
    second = page.run(label)
    assert first != second
    assert second.startswith("scores as they are, predicted")
    page.key("ArrowLeft")
    assert page.run(label) == first
    page.key("End")
    last = page.run(label)
    page.key("ArrowRight")
    assert page.run(label) == last
    page.key("ArrowUp")
    assert not page.run(label).startswith("scores as they are")
    page.key("Escape")
    assert page.run("document.getElementById('tip').hidden")
    page.run("document.getElementById('theme-light').focus()")
    page.key("ArrowRight")
    assert page.run("document.getElementById('theme-dark').checked")


def test_names_for_those_who_do_not_see(page):
    nameless = page.run(
        """Array.from(document.querySelectorAll(
          'svg[role], [role=group], [role=region], [role=img], input, button')).filter(e =>
          !(e.getAttribute('aria-label') || e.innerText || e.labels && e.labels.length)).length"""
    )
    assert nameless == 0
    assert page.run("document.documentElement.lang") == "en"
    levels = page.run("Array.from(document.querySelectorAll('h1,h2,h3')).map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    twice = page.run(
        "(ids => ids.length - new Set(ids).size)"
        "(Array.from(document.querySelectorAll('[id]')).map(e => e.id))"
    )
    assert twice == 0


def luminance(colour):
    r, g, b = (int(v) / 255 for v in re.findall(r"\d+", colour)[:3])
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (r, g, b)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(page, selector):
    """Of a text against the nearest background that is not transparent."""
    front, back = page.run(
        f"""(() => {{
        let e = document.querySelector('{selector}');
        const front = getComputedStyle(e).color, back = x => getComputedStyle(x).backgroundColor;
        while (back(e) === 'rgba(0, 0, 0, 0)') e = e.parentElement;
        return [front, back(e)]; }})()"""
    )
    light, dark = sorted((luminance(front), luminance(back)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


TEXTS = (".todo", ".why", ".how", "small", "td.better", "thead th", ".badge", "pre", "dt")


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_system_and_can_be_chosen(browser, file, dark):
    page = browser.open(file, dark=dark)
    back = "getComputedStyle(document.body).backgroundColor"
    assert (luminance(page.run(back)) < 0.1) is dark
    assert {s: c for s in TEXTS if (c := contrast(page, s)) < 4.5} == {}
    page.click(f"label[for=theme-{'light' if dark else 'dark'}]")
    assert (luminance(page.run(back)) < 0.1) is not dark
    assert {s: c for s in TEXTS if (c := contrast(page, s)) < 4.5} == {}
    page.click("label[for=theme-auto]")
    assert (luminance(page.run(back)) < 0.1) is dark
    assert page.problems() == []
    page.close()


def test_without_javascript_all_is_there(browser, file, made):
    page = browser.open(file, scripts=False)
    text = page.run("document.body.innerText")
    assert page.run("document.documentElement.className") == ""
    for word in (*made.verdict, "Leaderboard", "How to apply it", "Segments"):
        assert word in text
    pictures = page.run(
        "Array.from(document.querySelectorAll('#gallery svg')).filter("
        "e => e.getClientRects().length).length"
    )
    assert pictures == len(made.methods)
    titles = page.run("document.querySelectorAll('.axes-plain .point title').length")
    assert titles == sum(len(method.curve) for method in made.methods)
    assert not sees(page, "[data-show]")  # what needs a script is not offered
    page.click("label[for=show-0]")  # but methods can still be hidden
    assert not sees(page, ".axes-plain .series-0")
    page.close()


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_runs_out_of_the_page(browser, file, width):
    page = browser.open(file, width=width, height=800)
    assert page.run("document.documentElement.scrollWidth") <= width
    page.close()


def test_wide_tables_scroll_in_their_frame_with_a_shadow(browser, file):
    page = browser.open(file, width=390, height=800)
    wide = page.run(
        "Array.from(document.querySelectorAll('.scroll'))"
        ".filter(e => e.scrollWidth > e.clientWidth)"
        ".map(e => [e.clientWidth, getComputedStyle(e).backgroundImage.split('gradient').length])"
    )
    assert wide
    assert all(inside <= 390 and parts == 5 for inside, parts in wide)
    page.close()


def test_it_prints_well(browser, file):
    page = browser.open(file, dark=True)
    page.media("print", dark=True)
    assert luminance(page.run("getComputedStyle(document.body).backgroundColor")) > 0.9
    assert luminance(page.run("getComputedStyle(document.body).color")) < 0.1
    for selector in (".choice", "[data-show]", "[data-copy]", "details", "#tip"):
        assert not sees(page, selector), selector
    page.resize(673, 900)  # a sheet of A4 between its margins
    assert page.run("document.documentElement.scrollWidth") <= 673
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 2 <= sheets <= 8
    page.close()


def test_copying_code_says_so(page):
    page.click("[data-copy]")
    page.run("new Promise(done => setTimeout(done, 100))")
    assert page.run("document.querySelector('[data-copy]').innerText") in ("Copied", "Selected")


def test_nasty_names_do_nothing(browser, data, tmp_path):
    page = browser.open(nasty_report(data).save(tmp_path / "nasty.html"))
    assert page.problems() == []
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.run("document.title").strip() == NASTY[5]
    assert page.run("JSON.parse(document.getElementById('data').textContent).title") == NASTY[5]
    names = page.run(
        "Array.from(document.querySelectorAll('#leaderboard tbody th')).map(e => e.innerText)"
    )
    assert any(name.strip().startswith(NASTY[0]) for name in names)
    page.point_at(".axes-plain .series-1 .point")
    assert page.run("document.getElementById('tip').children.length") == 0
    for width in (390, 1280):
        page.resize(width, 800)
        assert page.run("document.documentElement.scrollWidth") <= width
    page.close()


def test_nothing_is_asked_of_the_network(file):
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href|action)\s*=|url\(|@import|https?://|//[a-z]""", text)
    assert "default-src 'none'" in html.unescape(text)


def test_the_policy_lets_only_our_script_run(browser, file, tmp_path):
    text = file.read_text(encoding="utf-8")
    other = tmp_path / "other.html"
    other.write_text(
        text.replace("</body>", "<script>document.title = 'broken'</script></body>"),
        encoding="utf-8",
    )
    page = browser.open(other)
    assert page.run("document.title") == "Calibration of score"
    assert page.run("document.documentElement.className") == "js"
    page.close()


@pytest.mark.full
def test_several_classes_and_margins_have_pages_too(browser, data, tmp_path):
    rng = np.random.default_rng(13)
    z = rng.normal(0, 1.5, (800, 3))
    codes = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p, y = data
    pages = {
        "classes": calibration_report(2 * z, codes, calibrator=cal.Temperature()),
        "margins": calibration_report(np.log(p) - np.log1p(-p), y, calibrator=cal.Isotonic()),
        "rare": calibration_report(p / 50, rng.random(len(p)) < p / 50, calibrator=cal.Platt()),
    }
    for name, made in pages.items():
        page = browser.open(made.save(tmp_path / f"{name}.html"))
        assert made.verdict[0] in page.run("document.body.innerText")
        assert page.problems() == []
        page.close()
