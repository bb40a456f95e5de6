"""Fits of small matrices use one thread, and leave the number of threads as they found it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import calibrant as cal
from calibrant.solvers.threads import one_thread


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def set_threads(number):
    """Set the number on a thread that ends: threadpoolctl lets no other one set it before that."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threadpool_limits, number, "blas").result()


@pytest.fixture(autouse=True)
def three_threads():
    before = blas_threads()
    set_threads(3)
    if blas_threads() != {3}:
        pytest.skip("NumPy's BLAS is none whose threads can be set for the whole process")
    yield
    set_threads(min(before))


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


def test_the_last_of_several_threads_restores():
    before = blas_threads()
    entered, left, done = (threading.Event() for _ in range(3))

    def other():
        with one_thread():
            entered.set()
            left.wait(30)
            seen.append(blas_threads())
        done.set()

    seen: list[set[int]] = []
    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert entered.wait(30)
    seen.append(blas_threads())
    left.set()
    assert done.wait(30)
    assert seen == [{1}, {1}]
    assert blas_threads() == before
    thread.join(30)


def test_blocks_that_overlap_in_any_order_leave_the_number_as_it_was():
    before = blas_threads()

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            with one_thread():
                time.sleep(rng.random() * 1e-3)
                assert blas_threads() == {1}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert blas_threads() == before


@pytest.mark.parametrize("calibrator", [cal.BLS(), cal.Spline()], ids=["BLS", "Spline"])
def test_a_fit_that_fails_leaves_nothing_behind(calibrator, monkeypatch):
    before = blas_threads()
    seen = []

    def fail(*_):
        seen.append(blas_threads())
        raise RuntimeError("on purpose")

    axis = "ScoreAxis" if isinstance(calibrator, cal.BLS) else "_Axis"
    monkeypatch.setattr(f"{type(calibrator).__module__}.{axis}.of", fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        calibrator.fit(np.linspace(0, 1, 40), np.arange(40) % 2)
    assert seen == [{1}]
    assert blas_threads() == before
