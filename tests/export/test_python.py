"""The text of `to_python`, run with nothing but the standard library: the numbers of calibrate."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors import InputError, ParameterError
from calibrant.export.python import helpers, to_python
from calibrant.fitting.fitted import Fitted
from calibrant.maps import Chain, Coded, Identity, Logistic, Map, Piecewise, Segmented
from calibrant.rules.combiners import combine_rows
from cases import CASES
from methods.test_combine import problems
from strategies import MAPS
from subjects import (
    BOTH,
    FALL,
    HILL,
    JUMP,
    LINE,
    MANY,
    ROWS,
    SEGMENTED,
    SHAPES,
    UP,
    VECTORS,
    fitted,
    fitted_segments,
    fitted_vector,
    telling,
    vector_rows,
    wavering,
)

#: how far Python's exp and log may move a formula; and a steep line of a logarithm
TOL, STEEP = 4e-16, 2e-14
ALLOWED = {"__future__", "bisect", "math"}


def only_standard(name, *rest):
    assert name in ALLOWED, name
    return __import__(name, *rest)


def run(text, name="calibrate"):
    """The function of a text, in a world that knows no other modules."""
    ast.parse(text, feature_version=(3, 8))
    known = {"__builtins__": {**vars(builtins), "__import__": only_standard}}
    exec(compile(text, "text", "exec"), known)
    return known[name]


def far(got, wanted):
    return np.abs(np.array(got) - wanted).max()


# --- one score ------------------------------------------------------------------------------------


@pytest.mark.parametrize("margins", [False, True], ids=["probabilities", "margins"])
@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_every_method_as_calibrate(name, margins):
    c = fitted(name, margins)
    calibrate = run(to_python(c))
    scores = telling(c.map_, margins)
    got = [calibrate(s) for s in scores.tolist()]
    if isinstance(c.map_, Piecewise) and c.map_.is_step:
        assert got == c.map_(scores).tolist()
    assert far(got, c.map_(scores)) <= (TOL if isinstance(c.map_, Logistic) else STEEP)
    assert all(type(p) is float for p in got)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_as_the_map(shape):
    map_ = SHAPES[shape]
    calibrate = run(to_python(map_))
    scores = np.concatenate((telling(map_, False), telling(map_, True)))
    tol = TOL if isinstance(map_, Logistic) else STEEP
    assert far([calibrate(s) for s in scores.tolist()], map_(scores)) <= tol


@pytest.mark.parametrize(
    "map_",
    [
        JUMP,
        BOTH,
        LINE,
        MANY,
        SHAPES["far"],
        SHAPES["farther"],
        SHAPES["steps on the logit scale"],
        SHAPES["knots with the same border"],
        SHAPES["mixture of steps"],
        SHAPES["many steps of a falling sigmoid"],
        SHAPES["steps of a mixture of sigmoids"],
        SHAPES["long chain"],
    ],
    ids=repr,
)
def test_what_needs_no_logarithm_is_equal_to_the_last_bit(map_):
    calibrate = run(to_python(map_))
    scores = np.concatenate((telling(map_, False), telling(map_, True)))
    assert [calibrate(s) for s in scores.tolist()] == map_(scores).tolist()


@given(map_=MAPS, more=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5))
def test_random_maps(map_, more):
    calibrate = run(to_python(map_))
    scores = np.concatenate((telling(map_, False, 10), telling(map_, True, 10), more))
    got = np.array([calibrate(s) for s in scores.tolist()])
    wrong = scores[np.abs(got - map_(scores)) > STEEP]
    assert wavering(map_, wrong).all(), wrong


def test_many_knots_stay_quick_and_right():
    x = np.unique(np.random.default_rng(0).random(20_000))
    map_ = Piecewise.step(x, np.random.default_rng(1).random(len(x) + 1))
    calibrate = run(to_python(map_))
    assert [calibrate(s) for s in x[::50].tolist()] == map_(x[::50]).tolist()


def test_a_jump_that_rounding_could_miss_is_refused():
    with pytest.raises(InputError, match=r"neither rise nor fall.*cannot be written as Python"):
        to_python(Chain((HILL, JUMP)))


@pytest.mark.parametrize("wrong", [None, float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_a_value_error(wrong):
    with pytest.raises(ValueError, match="finite"):
        run(to_python(UP))(wrong)
    with pytest.raises(ValueError, match="finite"):
        run(to_python(ROWS["columns"]))([0.1, wrong, 0.2])


def test_numbers_of_other_kinds_are_taken_and_text_is_not():
    calibrate = run(to_python(UP))
    assert calibrate(1) == calibrate(np.float32(1)) == calibrate(np.int64(1)) == calibrate(1.0)
    with pytest.raises(TypeError):
        calibrate("0.5")


# --- segments -------------------------------------------------------------------------------------


def compare_segments(map_, segments):
    calibrate = run(to_python(map_))
    scores = np.concatenate((telling(map_, False, 20), telling(map_, True, 20)))
    for segment in segments:
        wanted = map_(scores, [segment] * len(scores))
        assert far([calibrate(s, segment) for s in scores.tolist()], wanted) <= STEEP


@pytest.mark.parametrize("name", SEGMENTED)
def test_every_segment_as_the_map(name):
    map_ = SEGMENTED[name]
    other = {"numbers": [99, 1.0, True], "both": [99, "x"], "none": [99, "x"]}
    compare_segments(map_, [*map_.keys, *other.get(name, ["x", ""])])


@pytest.mark.parametrize("own", [None, cal.Isotonic(), cal.Quadratic()], ids=repr)
def test_fitted_segments(own):
    c = fitted_segments(own)
    calibrate = run(to_python(c))
    scores = telling(c.map_, False, 40)
    for segment in ("de", "fr", "it", "lu"):
        wanted = c.map_(scores, [segment] * len(scores))
        assert far([calibrate(s, segment) for s in scores.tolist()], wanted) <= STEEP


@pytest.mark.parametrize("wrong", [None, 0.5, float("nan"), float("inf"), [1], 2.0**60])
def test_what_names_no_segment_is_a_value_error(wrong):
    for map_ in SEGMENTED.values():
        with pytest.raises(ValueError, match="segment must be among"):
            run(to_python(map_))(0.5, wrong)


def test_text_where_numbers_are_known_is_a_value_error():
    with pytest.raises(ValueError, match="among numbers, but '1'"):
        run(to_python(SEGMENTED["numbers"]))(0.5, "1")
    with pytest.raises(ValueError, match="among text, but 1"):
        run(to_python(SEGMENTED["words"]))(0.5, 1)


# --- several classes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VECTORS)
def test_every_vector_calibrator_as_predict_proba(name):
    c = fitted_vector(name)
    text = to_python(c)
    scores = vector_rows(name)[0][:40]
    if "pairs" in name:
        scores = np.column_stack([scores[:, 0], scores[:, 1] / 3, scores[:, 2] * 2])
    got = [run(text)(row) for row in scores.tolist()]
    wanted = c.to_fitted().predict_proba(scores, on_range="allow")
    assert far(got, wanted) <= 1e-9
    if "pairs" not in name and "coupled" not in name:
        assert far(got, wanted) <= 2e-15
    known = {}
    exec(text, known)
    assert known["CLASSES"] == c.to_fitted().classes


@pytest.mark.parametrize("name", ROWS)
def test_every_row_map_as_the_map(name):
    map_ = ROWS[name]
    calibrate = run(to_python(map_))
    rng = np.random.default_rng(3)
    z = np.concatenate((rng.normal(0, 2, (40, map_.n_columns)), np.zeros((1, map_.n_columns))))
    rows = np.concatenate((z, 1e3 * z, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)))
    assert far([calibrate(row) for row in rows.tolist()], map_(rows)) <= 1e-9


@given(problem=problems(rows=1))
def test_any_code_is_solved_as_ours(problem):
    r, code, weights = problem
    maps = (Identity(),) * code.shape[1]
    for combine in ("least_squares", "coupling"):
        map_ = Coded(code, maps, combine, weights)
        got = np.array(run(to_python(map_))(r[0].tolist()))
        wanted = combine_rows(combine, r, code, weights)[0]
        if np.abs(got - wanted).max() <= 1e-9:
            continue
        # the minimum is not unique: another one must be as low
        assert abs(got.sum() - 1) <= 1e-12
        assert got.min() >= 0
        assert (
            abs(
                objective(combine, got, r[0], code, weights)
                - objective(combine, wanted, r[0], code, weights)
            )
            <= 1e-9
        )


def objective(combine, p, r, code, weights):
    from twins import combine as naive

    function = {"least_squares": naive.squares, "coupling": naive.divergence}[combine]
    with np.errstate(divide="ignore", invalid="ignore"):
        return function(np.maximum(p, 1e-60), r, code, weights / weights.max())


def test_rows_of_a_wrong_length_or_no_distribution_are_refused():
    with pytest.raises(ValueError, match="3 scores must come, but 2"):
        run(to_python(ROWS["softmax"]))([0.1, 0.2])
    c = fitted_vector("temperature of probabilities")
    with pytest.raises(ValueError, match="of the sum 1"):
        run(to_python(c))([3.0, -1.0, 0.5])


# --- the text -------------------------------------------------------------------------------------

NASTY = ['"""', "\\", "\n", "'''\nimport os", "\x00", "{name}", "%s", "\u202e", "é", "#" * 500]


def nasty_texts():
    for i, label in enumerate(NASTY):
        other = NASTY[i - 1]
        classes = tuple(sorted((label, other)))
        yield to_python(Fitted(JUMP, classes, label, label, {}, {"calibrant": other}))
    yield to_python(Segmented(LINE, tuple(NASTY), (UP,) * len(NASTY)))
    yield to_python(Fitted(ROWS["softmax"], tuple(NASTY[:3]), None, NASTY[3]))


def test_nasty_names_are_only_names():
    for text in nasty_texts():
        text.encode("utf-8")
        tree = ast.parse(text)
        kinds = (ast.Expr, ast.ImportFrom, ast.Import, ast.Assign, ast.FunctionDef)
        assert all(isinstance(node, kinds) for node in tree.body)
        assert sum(isinstance(node, ast.Expr) for node in tree.body) == 1  # the docstring
        run(text)
    last = run(text)
    assert last is not None


def test_nasty_segments_find_their_own():
    map_ = Segmented(
        LINE, tuple(NASTY), tuple(Piecewise.constant(i / 20) for i in range(len(NASTY)))
    )
    calibrate = run(to_python(map_))
    assert [calibrate(0.3, key) for key in NASTY] == [i / 20 for i in range(len(NASTY))]


def test_labels_keep_their_types():
    for classes in ((False, True), (0, 1), ("0", "1"), (0.5, 1.5)):
        text = to_python(Fitted(JUMP, classes, classes[1]))
        doc = ast.get_docstring(ast.parse(text).body[-1])
        shown = [label if label in ("0", "1") else repr(label) for label in classes]
        assert f"probability of {shown[1]} (not {shown[0]})" in doc


def test_texts_pass_the_linter_and_fit_a_screen(tmp_path):
    subjects = [
        *SHAPES.values(),
        *SEGMENTED.values(),
        *ROWS.values(),
        fitted("beta"),
        fitted("bls"),
    ]
    for i, subject in enumerate(subjects):
        (tmp_path / f"text_{i}.py").write_text(to_python(subject), encoding="utf-8")
    for i, text in enumerate(nasty_texts()):
        (tmp_path / f"nasty_{i}.py").write_text(text, encoding="utf-8")
    options = ["--isolated", "--no-cache", "--target-version", "py38"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *options, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for path in tmp_path.glob("text_*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert max(map(len, lines)) <= 100, max(lines, key=len)
        assert not any(line != line.rstrip() for line in lines)


def test_it_runs_where_nothing_is_installed(tmp_path):
    path = tmp_path / "risk.py"
    path.write_text(to_python(fitted("beta"), name="risk"), encoding="utf-8")
    code = "import risk, sys; print(risk.risk(0.3)); assert 'numpy' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert abs(float(done.stdout) - fitted("beta").calibrate([0.3])[0]) <= TOL


def test_the_docstring_says_what_it_is():
    tree = ast.parse(to_python(fitted("beta")))
    assert "(Beta)" in ast.get_docstring(tree)
    assert f"calibrant {cal.__version__}" in ast.get_docstring(tree)
    doc = ast.get_docstring(tree.body[-1])
    assert doc.startswith("The calibrated probability of yes (not no) for one score.")
    assert "1 segment is known" in to_python(Segmented(UP, ("a",), (UP,)))
    assert "2 segments are known" in to_python(Segmented(UP, ("a", "b"), (UP, UP)))


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "1a",
        "a b",
        "class",
        "None",
        "_hidden",
        "é",
        "ｍath",
        "math",
        "bisect",
        "min",
        "CLASSES",
        3,
    ],
)
def test_names_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError, match="name must"):
        to_python(UP, name=wrong)


def test_any_plain_name_will_do():
    for name in ("risk", "score", "match", "Calibrate2", "own", "z", "value"):
        assert run(to_python(FALL, name=name), name)(0.5) == run(to_python(FALL))(0.5)


def test_a_fitted_value_and_a_map_do_as_well():
    c = fitted("isotonic")
    for form in (c, c.to_fitted(), c.map_):
        assert run(to_python(form))(0.3) == c.calibrate([0.3])[0]


def test_what_is_no_calibrator_is_refused():
    with pytest.raises(InputError, match="must be a fitted calibrator"):
        to_python("c.json")
    with pytest.raises(InputError, match="but the class Isotonic came"):
        to_python(cal.Isotonic)
    with pytest.raises(InputError, match="but the class Isotonic came"):
        cal.to_json(cal.Isotonic)
    rng = np.random.default_rng(0)
    features = rng.random((60, 2))
    local = cal.SimilarityBinning(gate=False, k=5).fit(
        rng.random(60), np.arange(60) % 2, features=features
    )
    with pytest.raises(InputError, match=r"cannot be exported.*features"):
        to_python(local)

    class Odd(Map):
        kind = "odd"

        def __call__(self, scores):
            return scores

    with pytest.raises(InputError, match="'odd' cannot be written as Python"):
        to_python(Odd())


def test_helpers_stand_for_themselves():
    """Nothing but the standard library, and no name of this package."""
    tree = ast.parse(Path(helpers.__file__).read_text(encoding="utf-8"))
    imported = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in imported] == [
        "from __future__ import annotations",
        "import math",
    ]
    ast.parse(ast.unparse(tree), feature_version=(3, 8))
