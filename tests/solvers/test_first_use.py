"""What the first use compiles: each kernel once, and little besides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from calibrant.cli.app import is_compiling
from calibrant.methods.venn_abers import _kernel as venn_abers
from calibrant.solvers import _jit

#: fits in a process of its own, and prints what was compiled: ours and the rest
FITS = """
import json, sys
import numpy as np
from numba.core import event
import calibrant as cal

class Names(event.Listener):
    def __init__(self):
        self.all = []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        self.all.append(function.__module__ + "." + function.__name__)
    def on_end(self, event):
        pass

rng = np.random.default_rng(0)
s = rng.random(600)
y = rng.random(600) < 0.2 + 2.4 * (s - 0.5) ** 2
with event.install_listener("numba:compile", Names()) as names:
    cal.METHOD().fit(s, y).calibrate(s[:3])
print(json.dumps(names.all))
"""


@pytest.mark.full  # it compiles all kernels
@pytest.mark.parametrize("method", ["VennAbers", "ENIR", "ELiTE", "ABB"])
def test_each_kernel_is_compiled_once_and_little_besides(method, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FITS.replace("METHOD", method)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr  # in Python nothing is said about it
    names = json.loads(done.stdout)
    ours = [name for name in names if name.startswith("calibrant.")]
    assert len(ours) > 2
    assert sorted(ours) == sorted(set(ours))
    # what numba has for NumPy's functions is compiled with every kernel that calls them
    assert len(names) - len(ours) <= 8, sorted(set(names) - set(ours))


def test_compiling_is_seen_from_another_thread(monkeypatch):
    def slow(x):
        total = 0.0
        for i in range(len(x)):
            total += np.sin(x[i]) ** 2 + np.arctan2(x[i], 2.0) if x[i] > 0.0 else np.sqrt(-x[i])
        return total

    monkeypatch.setattr(venn_abers, "slow", _jit.numba.njit(slow), raising=False)
    seen, work = [is_compiling()], threading.Thread(target=venn_abers.slow, args=(np.ones(3),))
    work.start()
    while work.is_alive():
        seen.append(is_compiling())
        time.sleep(0.001)
    seen.append(is_compiling())
    assert not seen[0]
    assert any(seen)
    assert not seen[-1]
