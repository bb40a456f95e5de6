"""Fits of small matrices use one thread, and leave the number of threads as they found it."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import calibrant as cal
from calibrant.kernels.blas_threads import one_thread


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def countable():
    if not blas_threads():
        pytest.skip("NumPy's BLAS is none whose threads can be counted")


def test_nested_limits_are_lifted_by_the_outermost():
    before = blas_threads()
    with one_thread():
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_in_a_thread_of_its_own():
    before = blas_threads()
    seen: list[set[int]] = []

    def other():
        with one_thread():
            seen.append(blas_threads())
        seen.append(blas_threads())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(30)
    assert seen == [{1}, before]
    assert blas_threads() == before


@pytest.mark.parametrize("calibrator", [cal.BLS(), cal.Spline()], ids=["BLS", "Spline"])
def test_a_fit_that_fails_leaves_nothing_behind(calibrator, monkeypatch):
    before = blas_threads()
    seen = []

    def fail(*_):
        seen.append(blas_threads())
        raise RuntimeError("on purpose")

    monkeypatch.setattr(f"{type(calibrator).__module__}._axis", fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        calibrator.fit(np.linspace(0, 1, 40), np.arange(40) % 2)
    assert seen == [{1}]
    assert blas_threads() == before
