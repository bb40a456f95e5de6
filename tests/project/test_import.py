"""Importing costs milliseconds, and what is not used is not loaded."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cal
from calibrant.losses import plain_expit

HEAVY = {"sklearn", "numba", "pandas", "polars", "pyarrow", "matplotlib", "duckdb", "typer", "rich"}


def modules_after(code, tmp_path):
    script = f"{code}\nimport sys\nprint(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import calibrant",
        "import calibrant; dir(calibrant); calibrant.errors.InputError",
        "import calibrant as cal; cal.maps.Piecewise.step([0.5], [0, 1])([0.3])",
        "import calibrant as cal; cal.load('c.json').predict_proba([0.2])",
        "import calibrant as cal; cal.save(cal.load('c.json'), 'd.json')",
        "import calibrant as cal; cal.ScoreTable.from_arrays([0.1, 0.2], [0, 1])",
    ],
)
def test_light_uses_import_nothing_heavy(code, tmp_path):
    cal.save(cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), tmp_path / "c.json")
    assert not modules_after(code, tmp_path) & HEAVY


def test_methods_without_a_kernel_do_not_pay_for_numba(tmp_path):
    names = ["Platt", "Isotonic", "Histogram", "Beta", "Temperature", "Uncalibrated", "Rescale"]
    fits = "; ".join(f"cal.{name}().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])" for name in names)
    loaded = modules_after(f"import calibrant as cal; {fits}", tmp_path)
    # scikit-learn itself imports pandas where that is installed
    assert not loaded & {"numba", "matplotlib", "duckdb", "typer", "rich"}


def test_public_names_are_there_and_typed():
    for name in cal.__all__:
        assert getattr(cal, name) is not None
        assert name in dir(cal)
    with pytest.raises(AttributeError, match="no attribute 'Plat'"):
        cal.Plat  # noqa: B018


def test_a_missing_extra_names_the_pip_command():
    from calibrant.errors import import_extra

    with pytest.raises(cal.errors.MissingExtraError, match=r"pip install 'calibrant\[cli\]'"):
        import_extra("no_such_package.inside", extra="cli")


def test_no_process_wide_state_is_changed(tmp_path):
    code = (
        "import warnings, numpy as np, scipy.optimize, sklearn.base, narwhals\n"
        "before = np.geterr(), list(warnings.filters)\n"
        "import calibrant as cal\n"
        "for c in (cal.Platt(), cal.Beta(), cal.Isotonic(), cal.Histogram(bins='auto')):\n"
        "    c.fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).predict([0.3])\n"
        "assert (np.geterr(), list(warnings.filters)) == before\n"
    )
    modules_after(code, tmp_path)


#: nothing can be imported but the standard library, NumPy, ourselves, and what is named
ALONE = """
import json, sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in {*sys.stdlib_module_names, "numpy", "calibrant", *ALLOWED}:
            raise ImportError(f"{top} is not installed here")

sys.meta_path.insert(0, Wall())
import calibrant as cal
import numpy as np

rows = json.load(open("rows.json"))
found = {}
for file, scores in rows.items():
    fitted = cal.load(file)
    of_lists = fitted.predict_proba(scores)
    assert (fitted.predict_proba(np.array(scores)) == of_lists).all()
    assert len(fitted.predict(scores)) == len(scores)
    cal.save(fitted, "again.json")
    assert cal.load("again.json") == fitted
    found[file] = [value.hex() for value in of_lists.ravel().tolist()]
print(json.dumps(found))
"""


def alone(allowed, folder):
    """What saved calibrators give where little is installed."""
    done = subprocess.run(
        [sys.executable, "-c", f"ALLOWED = {allowed!r}\n{ALONE}"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.full
def test_numpy_alone_loads_and_applies_bit_for_bit(tmp_path):
    rng = np.random.default_rng(0)
    p, z = rng.random(400), rng.normal(0.0, 3.0, (400, 6))
    y, classes = (rng.random(400) < p).astype(int), np.arange(400) % 6
    new, rows = rng.random(50).tolist(), rng.normal(0.0, 3.0, (20, 6))
    shares = (np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)).tolist()
    one = [cal.Platt(), cal.Beta(), cal.Isotonic(), cal.BLS(), cal.ENIR(), cal.VennAbers()]
    several = [
        cal.Temperature(),
        cal.MatrixScaling(),
        cal.CodedCalibrator(cal.Platt()),
        cal.CodedCalibrator(cal.Platt(), code="all_pairs", combine="coupling"),
    ]
    fits = [(c.fit(p, y), new) for c in one]
    fits += [(c.fit(z, classes), rows.tolist()) for c in several[:3]]
    pairs = rng.normal(0.0, 3.0, (400, 15))
    fits.append((several[3].fit(pairs, classes), pairs[:20].tolist()))
    fits.append(
        (cal.Dirichlet().fit(np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), classes), shares)
    )
    wanted, questions = {}, {}
    for i, (c, scores) in enumerate(fits):
        cal.save(c, tmp_path / f"{i}.json")
        questions[f"{i}.json"] = scores
        wanted[f"{i}.json"] = [v.hex() for v in c.predict_proba(scores).ravel().tolist()]
    (tmp_path / "rows.json").write_text(json.dumps(questions))
    assert alone([], tmp_path) == wanted
    assert alone(["scipy"], tmp_path) == wanted


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("Isotonic", "scipy", "scipy"),
        ("evaluate", "scipy", "scipy"),
        ("Platt", "sklearn", "scikit-learn"),
        ("ENIR", "numba", "numba"),
    ],
)
def test_what_needs_a_package_that_is_missing_says_how_to_install_it(name, module, package):
    code = f"import sys; sys.modules[{module!r}] = None\nimport calibrant as cal\ncal.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    wanted = f"calibrant.{name} needs the package {package!r}, which is not installed. Install it "
    assert f"ModuleNotFoundError: {wanted}with: pip install {package} (" in done.stderr


def test_the_sigmoid_without_scipy_is_scipys_bit_for_bit():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, 100_000, dtype=np.uint64).view(np.float64)
    edge = 709.782712893384
    f = np.concatenate(
        (
            bits[np.isfinite(bits)],
            *(rng.normal(0.0, size, 50_000) for size in (0.01, 1.0, 20.0, 400.0)),
            np.nextafter(-edge, [-np.inf, np.inf]),
            [0.0, -0.0, np.inf, -np.inf, edge, -edge, 5e-324, -5e-324, -745.2, 36.7, 1e308, -1e308],
        )
    )
    assert np.array_equal(plain_expit(f).view(np.int64), expit(f).view(np.int64))
    assert np.isnan(plain_expit(np.array([np.nan]))).all()
    assert plain_expit(f.reshape(-1, 2)).shape == (len(f) // 2, 2)
    assert plain_expit(np.float64(0.0)) == 0.5


def test_the_package_runs_as_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == f"calibrant {cal.__version__}\n"
