"""Kernels compile or run as plain Python with the same results."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from calibrant.solvers import _jit


@pytest.mark.full
def test_kernels_without_compilation(root):
    """The small checks of the kernels, in a process where numba compiles nothing."""
    chosen = (
        "enumeration or gauss or text_variant or simplify or settled or few_scores or steps_are "
        "or rational or parabolas_are"
    )
    methods = [f"tests/methods/test_{name}.py" for name in ("binning", "elite", "near_isotonic")]
    files = ["tests/solvers/test_banded_qp.py", *methods]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *files, "-q", "-k", chosen],
        cwd=root,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_without_a_folder_for_the_cache_kernels_still_compile(monkeypatch):
    plain = numba.njit

    def no_locator(function, **options):
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return plain(function, **options)

    monkeypatch.setattr(numba, "njit", no_locator)
    compiled = _jit.jit(lambda x: x.sum())
    assert compiled(np.arange(4.0)) == 6.0
