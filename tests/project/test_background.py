"""Long work beside the main thread: it ends when the wait does, and a failed start is no wait."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from calibrant import running as background
from calibrant.outputs import TemporaryFolder
from calibrant.running import off_main_thread, stoppable


def test_results_and_errors_come_back():
    assert off_main_thread(lambda: 6 * 7) == 42
    with pytest.raises(ZeroDivisionError):
        off_main_thread(lambda: 1 / 0)


def test_an_interrupt_stops_the_work():
    asked = threading.Event()

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        off_main_thread(asked.wait, meanwhile=interrupt, every=0.01, stop=asked.set)
    assert asked.is_set()


def test_an_interrupt_while_the_thread_starts_stops_the_work():
    asked, ended = threading.Event(), threading.Event()

    class Interrupted(threading.Thread):
        def start(self):
            super().start()
            raise KeyboardInterrupt

    def work():
        asked.wait()
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        off_main_thread(work, stop=asked.set, thread=Interrupted)
    assert ended.is_set()


def test_an_interrupt_before_the_thread_starts_does_no_work():
    begun = []

    class Interrupted(threading.Thread):
        def start(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        off_main_thread(lambda: begun.append(1), stop=lambda: None, thread=Interrupted)
    assert begun == []


def test_work_that_does_not_stop_is_left_behind(monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(background, "LONGEST_STOP", 0.2)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        off_main_thread(release.wait, meanwhile=interrupt, every=0.01, stop=lambda: None)
    release.set()


def test_the_process_ends_at_once_where_work_goes_on():
    pytest.importorskip("duckdb")
    # Python that ends by itself aborts here (exit code -6): a thread ends inside DuckDB's C++
    program = """
import atexit, sys, time
import duckdb
from calibrant.running import exit_with, off_main_thread

def work():
    session = duckdb.connect()
    while True:
        session.sql("select sum(i) from range(100000) t(i)").fetchall()

def stop_after_a_while():
    if time.monotonic() > end:
        sys.exit(143)

atexit.register(print, "put away")
end = time.monotonic() + 0.3
try:
    off_main_thread(work, meanwhile=stop_after_a_while, every=0.01)
except SystemExit as stopped:
    exit_with(stopped.code)
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "put away\n", "")


def test_a_thread_that_cannot_start_is_no_endless_wait():
    class Refused(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError, match="can't start"):
        off_main_thread(lambda: None, stop=lambda: None, thread=Refused)


STOPS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]


@pytest.mark.parametrize(("stop", "error"), STOPS)
def test_a_signal_waits_for_the_end_of_an_import(stop, error, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = (
        f"import signal, time\nsignal.raise_signal({int(stop)})\ntime.sleep(0.05)\nwhole = True\n"
    )
    (tmp_path / "slow_to_import.py").write_text(text)

    def work():
        importlib.import_module("slow_to_import")
        time.sleep(10)

    with stoppable(), pytest.raises(error):
        work()
    assert sys.modules.pop("slow_to_import").whole


@pytest.mark.parametrize(("stop", "error"), STOPS)
def test_a_signal_in_a_finaliser_is_not_lost(stop, error):
    class Dying:
        def __del__(self):
            signal.raise_signal(stop)
            time.sleep(0)

    def work():
        Dying()
        time.sleep(10)

    with stoppable(), pytest.raises(error):
        work()


@pytest.mark.parametrize(("stop", "error"), STOPS)
@pytest.mark.parametrize("step", ["mkdir", "unlink", "rmdir"])
def test_a_signal_leaves_no_half_of_a_temporary_folder(stop, error, step, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real = getattr(os, step)

    def signalled(*given, **options):
        done = real(*given, **options)
        signal.raise_signal(stop)
        return done

    def work():
        monkeypatch.setattr(os, step, signalled)
        with TemporaryFolder():
            pass
        monkeypatch.undo()
        time.sleep(10)

    with stoppable(), pytest.raises(error):
        work()
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_signals_are_handled_as_before_at_the_end():
    before = [signal.getsignal(stop) for stop, _ in STOPS]
    with stoppable():
        assert all(callable(signal.getsignal(stop)) for stop, _ in STOPS)
    assert [signal.getsignal(stop) for stop, _ in STOPS] == before


def test_a_signal_that_is_ignored_stays_so():
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stoppable():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, usual)
