"""Old names work, say since when and until when, and point at the line that uses them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
import warnings

import pytest

from calibrant.deprecation import Deprecation, moved_names, renamed_function, renamed_parameters
from calibrant.errors import ParameterError
from calibrant.lazy_names import lazy_names

WHEN = Deprecation(since="0.3", until="0.5")
WORDS = "is deprecated since 0.3 and goes away in 0.5: use"


def total(values, *, weight=1.0):
    """The sum."""
    return sum(values) * weight


def test_a_function_by_its_old_name():
    add = renamed_function("add", total, WHEN)
    with pytest.warns(FutureWarning, match=f"^add {WORDS} total\\.$") as said:
        assert add([1, 2], weight=2.0) == 6.0
    assert said[0].filename == __file__
    assert (add.__name__, add.__doc__) == ("add", "The sum.")
    with pytest.warns(FutureWarning, match=r"use cal\.total\.$"):
        renamed_function("add", total, WHEN, new="cal.total")([1])


def test_a_parameter_by_its_old_name():
    add = renamed_parameters({"w": "weight"}, WHEN)(total)
    with pytest.warns(FutureWarning, match=f"^w= of total {WORDS} weight=\\.$") as said:
        assert add([1, 2], w=2.0) == 6.0
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert add([1, 2], weight=2.0) == 6.0
        with pytest.raises(ParameterError, match="total takes weight or its old name w, but both"):
            add([1], w=1.0, weight=2.0)
        with pytest.raises(TypeError):
            add([1], other=2.0)


def test_a_parameter_of_a_constructor_is_said_by_its_class():
    class Bins:
        @renamed_parameters({"n_bins": "bins"}, WHEN)
        def __init__(self, *, bins=10):
            self.bins = bins

    with pytest.warns(FutureWarning, match=f"^n_bins= of Bins {WORDS} bins=\\.$"):
        assert Bins(n_bins=3).bins == 3


def test_a_name_of_a_module(monkeypatch):
    module = types.ModuleType("room")
    module.__getattr__ = moved_names("room", {"add": ("room.total", lambda: total)}, WHEN)
    monkeypatch.setitem(sys.modules, "room", module)
    with pytest.warns(FutureWarning, match=f"^room\\.add {WORDS} room\\.total\\.$") as said:
        assert module.add is total
    assert said[0].filename == __file__
    with pytest.raises(AttributeError, match="module 'room' has no attribute 'other'"):
        _ = module.other


def test_a_name_beside_lazy_names():
    get = lazy_names("calibrant")[0]
    both = moved_names("calibrant", {"report": ("cal.calibration_report", lambda: 1)}, WHEN, get)
    assert both("Platt").__name__ == "Platt"
    with pytest.warns(FutureWarning, match=r"^calibrant\.report"):
        assert both("report") == 1
    with pytest.raises(AttributeError, match="'calibrant' has no attribute 'other'"):
        both("other")


def test_python_shows_it_once_for_each_line(tmp_path):
    """With no filter set, as a user runs it, in a module that is not ``__main__``."""
    (tmp_path / "job.py").write_text(
        "from calibrant.deprecation import Deprecation, renamed_function\n"
        "old = renamed_function('old', abs, Deprecation('0.3', '0.5'))\n"
        "for i in range(3):\n"
        "    old(i)\n"
        "old(4)\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-c", "import job"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if "FutureWarning" in line]
    assert [line.rpartition("job.py:")[2].partition(":")[0] for line in lines] == ["4", "5"]


def test_nothing_heavy_is_needed():
    found = importlib.util.find_spec("calibrant.deprecation")
    text = found.loader.get_data(found.origin).decode()
    assert "numpy" not in text
