"""Long work beside the main thread: it ends when the wait does, and a failed start is no wait."""

from __future__ import annotations

import threading

import pytest

from calibrant import background
from calibrant.background import off_main_thread


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


def test_a_thread_that_cannot_start_is_no_endless_wait():
    class Refused(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError, match="can't start"):
        off_main_thread(lambda: None, stop=lambda: None, thread=Refused)
