"""One process at a time on a file that is read, changed and written again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import InputError


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Keep other processes from the same work on a file; an InputError while one is at it.

    The lock is the system's own, on a file beside the state that is removed at the end. It goes
    with its process, so that a job that was killed keeps nobody out.
    """
    beside = state.with_name(f"{state.name}.lock")
    with open(os.open(beside, os.O_CREAT | os.O_RDWR, 0o600), "rb+") as stream:
        if not (_taken(stream.fileno()) and _is_there(beside, stream.fileno())):
            raise InputError(
                f"only one command at a time may work on {state}, but another one does now. "
                "Nothing was changed: run this one again when that one is done."
            )
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file; an old one keeps nobody out
                beside.unlink()


def _is_there(path: Path, number: int) -> bool:
    """Whether an open file is still the one of that name: its owner may just have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(number))
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _taken(number: int) -> bool:
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(number: int) -> bool:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks keeps nobody out
            return True
        return True
