"""One process at a time on a file that is read, changed and written again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import InputError
from calibrant.outputs import is_still, try_lock


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Keep other processes from the same work on a file; an InputError while one is at it.

    The lock is the system's own, on a file beside the state that is removed at the end. It goes
    with its process, so that a job that was killed keeps nobody out.
    """
    beside = state.with_name(f"{state.name}.lock")
    with open(os.open(beside, os.O_CREAT | os.O_RDWR, 0o600), "rb+") as stream:
        # a file system without locks keeps nobody out
        if try_lock(stream.fileno()) is False or not is_still(beside, stream.fileno()):
            raise InputError(
                f"only one command at a time may work on {state}, but another one does now. "
                "Nothing was changed: run this one again when that one is done."
            )
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file; an old one keeps nobody out
                beside.unlink()
