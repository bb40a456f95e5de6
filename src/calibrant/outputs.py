"""How results are written to files: whole or not at all, and never over a file that is read."""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import IO, NamedTuple

from calibrant.errors import InputError
from calibrant.running import signals_delayed

Name = str | os.PathLike[str]

WINDOWS = os.name == "nt"
#: how Windows marks the long form of a path, which other programs need not know
_LONG = "\\\\?\\"

#: how many may write the same output at once under names with locks. Where no lock can be made
#: (Windows says no earlier that a folder is protected) each of them seems to be held
MOST_WRITERS = 100
#: outputs that only this process writes, as far as it has seen; and how many of them it remembers
_ALONE: set[str] = set()
MOST_ALONE = 1000
#: the name that stands for standard input and standard output, where a command takes one
STANDARD = "-"


@contextmanager
def whole_file(path: Name) -> Iterator[Path]:
    """An empty file beside ``path`` that takes its place at the end, or vanishes on any error.

    What a killed process left of the same output is removed, at the latest by the first write of
    the next process.

    Links are followed: the link stays, and what it leads to is replaced. The new file has the mode
    and, where allowed, the owner of the one that it replaces. A pipe or a device is never replaced:
    then the name is ``path`` itself, which is written to directly.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp()) / "out.txt"
    >>> with whole_file(out) as temporary:
    ...     _ = temporary.write_text("done")
    >>> out.read_text(), len(list(out.parent.iterdir()))
    ('done', 1)
    """
    target = find_target(path)
    if target.stream:
        with _open_stream(target.path):
            yield target.path
        return
    final = target.path
    mode = 0o666 if target.old is None else 0o600  # less the umask; no one else reads it meanwhile
    with reserved_name(final) as temporary:
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            yield temporary
            with temporary.open("r+b") as stream:
                os.fsync(stream.fileno())  # some disks say only now that they are full
            _move_into_place(temporary, target)
        finally:
            with suppress(PermissionError):  # on Windows of a writer that has not let go
                temporary.unlink(missing_ok=True)


def write_whole(path: Name, content: bytes | str) -> None:
    """Write a file, whole or not at all; see `whole_file`. Text is UTF-8."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = find_target(path)
    if target.stream:  # once: a second stream would wait forever for a reader that went away
        with _open_stream(target.path) as stream:
            stream.write(data)
        return
    with whole_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(data)


@contextmanager
def reserved_name(final: Path) -> Iterator[Path]:
    """A free name for a temporary file beside an output, which no other writer of it takes.

    Each of these names has a lock beside it. If nobody holds the lock, the writer is gone.
    """
    for number in range(MOST_WRITERS):
        place = _temporary_name(final, str(number))
        with _locked(place.with_suffix(".lock")) as alone:
            if alone is None:  # no locks on this disk: then nothing tells what is stale
                break
            if alone and _remove_path(place):
                _remove_stale(final, number)
                yield place
                return
    yield _temporary_name(final, secrets.token_hex(4))


def _temporary_name(final: Path, word: str) -> Path:
    """The path of a temporary file beside an output; ``word`` is a part of its name."""
    return final.with_name(f".{final.name[:45]}.calibrant-{_machine()}-{word}.tmp")


def _machine() -> str:
    """Letters that identify this machine.

    On some shared disks (NFS, Lustre) locks keep out only processes of the same machine.
    """
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _remove_stale(final: Path, own: int) -> None:
    """Remove what killed processes left under the names after one's own.

    Names beyond the first are used only by writers at the same time. A process that finds no other
    writer does not look again, unless it writes the output twice at the same time itself.
    """
    output = os.path.abspath(final)
    if own:
        _ALONE.discard(output)
    elif output in _ALONE:
        return
    alone = own == 0
    for number in range(own + 1, MOST_WRITERS):
        place = _temporary_name(final, str(number))
        if os.path.lexists(place.with_suffix(".lock")):  # of some numbers the writer has ended well
            alone = False
            with _locked(place.with_suffix(".lock")) as free:
                if free:
                    _remove_path(place)
    if alone and len(_ALONE) < MOST_ALONE:
        _ALONE.add(output)


def _remove_path(path: Path) -> bool:
    """Remove a file or a folder with its content. Whether nothing is left there."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
    return not os.path.lexists(path)


@contextmanager
def _locked(lock: Path) -> Iterator[bool | None]:
    """Whether this process got the lock of a file, which is removed at the end; see `try_lock`."""
    try:
        number = os.open(lock, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:  # that of another user, or a link or folder of theirs
        yield False
        return
    alone = try_lock(number)
    if alone and not is_same_file(lock, number):
        alone = False
    try:
        yield alone
    finally:
        if alone is not False and not WINDOWS:
            _remove_path(lock)
        os.close(number)
        if alone is not False and WINDOWS:  # where no open file can be removed
            _remove_path(lock)


def is_same_file(path: Path, number: int) -> bool:
    """Whether an open file is still the one at this path: its owner may just have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(number))
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    def try_lock(number: int) -> bool | None:
        """Take the system's own lock of an open file, which goes with the process.

        False if another one has it; None on a file system without locks.
        """
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(number: int) -> bool | None:
        """Take the system's own lock of an open file, which goes with the process.

        False if another one has it; None on a file system without locks.
        """
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True


def _move_into_place(new: Path, target: OutputTarget) -> None:
    """Replace the old file by the new one, which gets its mode and, where allowed, its owner.

    Windows refuses that while a program has the old file open. A virus scanner, which opens every
    new file, closes it after a moment.
    """
    final, old = target
    if old is not None and hasattr(os, "chown"):
        with suppress(OSError):  # only some may change the group, and only root the owner
            os.chown(new, -1, old.st_gid)
            os.chown(new, old.st_uid, -1)
    if old is not None:
        with suppress(OSError):  # some disks know no modes
            new.chmod(stat.S_IMODE(old.st_mode))
    for left in reversed(range(10)):
        try:
            new.replace(final)
            return
        except PermissionError as wrong:
            if not WINDOWS:
                raise
            if not left:
                raise InputError(
                    f"the output {final} cannot be replaced: another program has it open. Close "
                    "it there, or name another file."
                ) from wrong
        time.sleep(0.1)


@contextmanager
def _open_stream(path: Path) -> Iterator[IO[bytes]]:
    """An open pipe or device; waits for the reader of a pipe."""
    try:
        with path.open("wb") as stream:
            yield stream
    except BrokenPipeError as gone:
        raise InputError(
            f"the output {path} was not written whole: the reader of the pipe went away."
        ) from gone


# --- Temporary files and folders ------------------------------------------------------------------


class TemporaryFolder(tempfile.TemporaryDirectory[str]):
    """A folder for temporary files; what killed processes left of such folders is removed first.

    >>> with TemporaryFolder() as folder:
    ...     Path(folder).name[:10], len(os.listdir(folder))  # the lock alone
    ('calibrant-', 1)
    """

    def __init__(self) -> None:
        with signals_delayed():
            tempfile.gettempdir()  # the first call writes a file there, to see whether it can
        _remove_stale_folders()
        with signals_delayed():
            while True:
                super().__init__(prefix=_FOLDERS, ignore_cleanup_errors=True)
                lock = Path(self.name) / _folder_lock()
                self._lock = lock.open("wb")
                number = self._lock.fileno()
                if try_lock(number) is not False and is_same_file(lock, number):
                    return
                self.cleanup()  # another process took it for one that was left

    def cleanup(self) -> None:
        """Remove the folder, and let its lock go."""
        with signals_delayed():
            self._lock.close()  # Windows removes no open file
            super().cleanup()


#: how folders of temporary files begin
_FOLDERS = "calibrant-"


def _folder_lock() -> str:
    """The name of the lock file that this machine puts into each of its temporary folders."""
    return f"temporary-folder-{_machine()}.lock"


def _remove_stale_folders() -> None:
    """Remove the temporary folders of processes that are gone: nobody holds their locks."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    for folder in list(Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*")):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != user:
                continue
            with (folder / _folder_lock()).open("rb+") as lock:
                gone = try_lock(lock.fileno())
                if gone:  # held until all is gone: a folder that was just made has no lock yet
                    shutil.rmtree(folder, ignore_errors=True)
            if gone and WINDOWS:  # where no open file can be removed
                shutil.rmtree(folder, ignore_errors=True)


def private_file(path: Name) -> IO[bytes]:
    """A new open file that only this user can read, for copies of data in temporary folders."""
    return open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")


# --- Where an output goes -------------------------------------------------------------------------


class OutputTarget(NamedTuple):
    """Where an output goes: its path with links followed, and what is there now.

    Parameters
    ----------
    path : Path
    old : what `os.stat` says of it; None for a new file
    """

    path: Path
    old: os.stat_result | None

    @property
    def stream(self) -> bool:
        """Whether it is a pipe or a device, which is written to and never replaced."""
        return self.old is not None and not stat.S_ISREG(self.old.st_mode)


def find_target(path: Name) -> OutputTarget:
    """The target of an output, if a file can be written there; else an InputError that says why.

    Links are followed. Nothing is opened: a check costs nothing, also on a pipe.

    >>> find_target("/").path
    Traceback (most recent call last):
        ...
    calibrant.errors.InputError: the output must be a file, but / is a folder.
    """
    place = Path(path)
    if "\0" in str(place):
        raise InputError(f"{str(place)!r} cannot be the name of a file.")
    old = stat_of(place)
    folder = os.fspath(path).endswith(("/", os.sep))
    if folder or (old is not None and stat.S_ISDIR(old.st_mode)):
        raise InputError(f"the output must be a file, but {os.fspath(path)} is a folder.")
    if old is not None and not stat.S_ISREG(old.st_mode):
        if not (stat.S_ISFIFO(old.st_mode) or stat.S_ISCHR(old.st_mode)):
            raise InputError(
                f"the output must be a file or a pipe, but {place} is a disk or socket."
            )
        _refuse_protected(place)
        return OutputTarget(place, old)
    final = follow_links(place)
    check_output_folder(final.parent)
    if old is not None:
        _refuse_protected(final)
    return OutputTarget(final, old)


def follow_links(path: Path) -> Path:
    """The path to which a link, or a chain of links, leads; it need not exist."""
    seen: set[Path] = set()
    while os.path.islink(path):
        if path in seen:
            raise InputError(
                f"the output {path} is a loop of links, which leads to no file. Name another."
            )
        seen.add(path)
        folder = Path(os.path.realpath(path.parent))
        if folder.name == "fd" and folder.is_relative_to("/proc"):
            raise InputError(_OPENED.format(path))
        path = folder / _short_path(os.readlink(path))
    if path.parent.as_posix() == "/dev/fd":  # where macOS has no links to what is opened
        raise InputError(_OPENED.format(path))
    return path


#: what to say of a full disk
NO_SPACE = (
    "No space left on device: the output was not written. Free some, or write to another disk."
)
_OPENED = "the output {} is a file that another program has opened. Name that file."


def _short_path(path: str) -> str:
    r"""The path without the prefix that Windows puts before the targets of links.

    >>> print(_short_path(r"\\?\C:\data\c.json"), _short_path(r"\\?\UNC\host\data"))
    C:\data\c.json \\host\data
    """
    if path.startswith(_LONG + "UNC\\"):
        return "\\\\" + path[len(_LONG) + 4 :]
    return path.removeprefix(_LONG)


def check_output_folder(folder: Path) -> None:
    """Refuse an output's folder that does not exist or cannot be written to."""
    found = stat_of(folder)
    if found is None or not stat.S_ISDIR(found.st_mode):
        raise InputError(f"the output's folder {folder} does not exist. Make it first.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"the output's folder {folder} cannot be written to.")


def _refuse_protected(path: Path) -> None:
    """Refuse an output that exists and may not be written to."""
    if not os.access(path, os.W_OK):
        allow = "attrib -r" if WINDOWS else "chmod u+w"
        raise InputError(
            f"the output {path} is there and may not be written to. Name another, or allow it: "
            f"{allow} {path}"
        )


def path_of_url(rest: str, *, windows: bool = WINDOWS) -> Path:
    """The path of a file on this machine, from what is behind ``file:`` in its URL.

    >>> path_of_url("///tmp/a.csv").as_posix()
    '/tmp/a.csv'
    >>> path_of_url("///C:/a.csv", windows=True).as_posix()
    'C:/a.csv'
    """
    bare = rest.lstrip("/")
    drive = windows and re.match("[A-Za-z]:", bare)
    return Path(bare if drive else f"/{bare}")


def path_here(name: Name) -> Path | None:
    """The path of a file on this machine, also of a URL of one; None for one elsewhere.

    A Path is never a URL: only words are.
    """
    if not isinstance(name, str) or os.path.exists(name):
        return Path(name)
    scheme, colon, rest = name.partition(":")
    if not (colon and rest.startswith("/") and re.fullmatch("[A-Za-z][A-Za-z0-9+.-]+", scheme)):
        return Path(name)
    return path_of_url(rest) if scheme.lower() == "file" else None


def stat_of(path: Path) -> os.stat_result | None:
    """What `os.stat` says of a path, links followed; None if nothing is there."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as wrong:
        raise InputError(f"{path} cannot be looked at: {wrong.strerror}.") from wrong


# --- Outputs that would overwrite an input or one another -----------------------------------------


def check_different_files(written: Mapping[str, Name], read: Iterable[Name] = ()) -> None:
    """Refuse outputs that are one file, and outputs that are a file that is read.

    Parameters
    ----------
    written : paths of outputs by what each is called in an error
        A folder stands for all files in it.
    read : paths of inputs

    Notes
    -----
    Files are told by what they are, not by how they are spelled: links of both kinds, and names
    that differ in case where that makes no difference, are seen through. Of two files that are
    still to be made the names must differ in more than case.

    >>> check_different_files({"--output": "a.json", "--report": "./A.json"})
    Traceback (most recent call last):
        ...
    calibrant.errors.InputError: --output and --report must be different files, but both are A.json.
    """
    paths = {what: Path(path) for what, path in written.items()}
    outputs = [(what, path, _file_identity(path), path.is_dir()) for what, path in paths.items()]
    for (first, _, one, _), (second, path, other, _) in combinations(outputs, 2):
        if one == other:
            raise InputError(f"{first} and {second} must be different files, but both are {path}.")
    for source in map(Path, read):
        came = _file_identity(source)
        for what, _, own, folder in outputs:
            above = Path(os.path.realpath(source)).parents if folder else ()
            if own == came or own in map(_file_identity, above):
                raise InputError(
                    f"{what} must be another file than {source}, which is read: it would be lost. "
                    "Name another."
                )


def _file_identity(path: Path) -> tuple[int | bool, int | str]:
    """A key that is the same for two paths of one file, and differs for different files.

    It is the file's number on its disk. Of a file that is still to be made, or on a disk without
    numbers, it is the absolute path in one spelling, as file systems that ignore case compare it.
    """
    found = stat_of(path)
    if found is not None and found.st_ino:
        return found.st_dev, found.st_ino
    return found is None, unicodedata.normalize("NFC", os.path.realpath(path)).casefold()
