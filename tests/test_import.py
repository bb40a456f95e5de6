"""Importing costs milliseconds, and what is not used is not loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

import calibrant as cal

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
        "import calibrant; dir(calibrant); calibrant.InputError",
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
    names = ["Platt", "Isotonic", "Histogram", "Beta", "Temperature", "Identity", "Rescale"]
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

    with pytest.raises(cal.MissingExtraError, match=r"pip install 'calibrant\[cli\]'"):
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
