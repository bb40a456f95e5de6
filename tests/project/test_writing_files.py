"""Where results are written: whole or not at all, through links and pipes, never over an input."""

from __future__ import annotations

import ast
import errno
import os
import platform
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant import outputs
from calibrant.cli.sources import OutputOption, check_places
from calibrant.errors import InputError
from calibrant.outputs import (
    TemporaryFolder,
    check_different_files,
    check_output_folder,
    find_target,
    follow_links,
    reserved_name,
    whole_file,
    write_whole,
)

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Reader:
    """What comes out of a pipe, read by a thread."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.got = b""
        self.thread = threading.Thread(target=self._read, args=(path,), daemon=True)
        self.thread.start()

    def _read(self, path: Path) -> None:
        self.got = path.read_bytes()

    def all(self) -> bytes:
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.got


# --- the mode, the owner, links -----------------------------------------------------------------


def test_a_new_file_has_the_mode_of_the_umask(tmp_path):
    for umask in (0o022, 0o077, 0o002):
        former = os.umask(umask)
        try:
            write_whole(tmp_path / f"{umask}.txt", "x")
        finally:
            os.umask(former)
        assert mode(tmp_path / f"{umask}.txt") == 0o666 & ~umask


@pytest.mark.parametrize("was", [0o600, 0o640, 0o666, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, was):
    path = tmp_path / "x.txt"
    path.write_text("old")
    path.chmod(was)
    write_whole(path, "new")
    assert (path.read_text(), mode(path)) == ("new", was)


def test_nobody_else_can_read_it_meanwhile(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    path.chmod(0o600)
    with whole_file(path) as temporary:
        assert mode(temporary) == 0o600


@root_only
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    write_whole(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_text()) == (1234, 2345, "new")


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path, there):
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "real.txt"
    if there:
        target.write_text("old")
        target.chmod(0o600)
    (tmp_path / "middle").symlink_to("far/real.txt")
    (tmp_path / "link.txt").symlink_to(tmp_path / "middle")
    write_whole(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert target.read_text() == "new"
    assert not there or mode(target) == 0o600
    assert names(tmp_path / "far") == ["real.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    (tmp_path / "link").symlink_to("x.txt")
    for place in (path, tmp_path / "link", tmp_path / "none"):
        with pytest.raises(ZeroDivisionError), whole_file(place) as temporary:
            1 / temporary.write_text("")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["link", "x.txt"]


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    """A limit on the size of files stands for the disk's."""
    (tmp_path / "old.txt").write_text("old")
    program = (
        "import resource, sys\n"
        "from calibrant.outputs import write_whole\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))\n"
        "for name in ('old.txt', 'new.txt'):\n"
        "    try:\n"
        "        write_whole(name, b'x' * 100_000)\n"
        "    except OSError as wrong:\n"
        "        print(wrong.strerror)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["File too large"] * 2
    assert names(tmp_path) == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 5000


# --- what is no file ----------------------------------------------------------------------------


def test_a_pipe_is_written_to_and_stays(tmp_path):
    reader = Reader(tmp_path / "pipe")
    write_whole(tmp_path / "pipe", "through")
    assert reader.all() == b"through"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("many", [0, 1])
def test_a_reader_that_goes_away_is_said(tmp_path, many):
    os.mkfifo(tmp_path / "pipe")

    def hasty() -> None:
        with (tmp_path / "pipe").open("rb") as stream:
            stream.read(many)

    reader = threading.Thread(target=hasty, daemon=True)
    reader.start()
    with pytest.raises(InputError, match="was not written whole: the reader of the pipe went away"):
        write_whole(tmp_path / "pipe", b"x" * 1_000_000)
    reader.join(20)
    assert names(tmp_path) == ["pipe"]


@root_only
@pytest.mark.parametrize(("minor", "full"), [(3, False), (7, True)])
def test_a_device_is_written_to_and_stays(tmp_path, minor, full):
    """Devices of our own, made like /dev/null and /dev/full."""
    path = tmp_path / "device"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError:
        pytest.skip("this machine lets no one make devices")
    (tmp_path / "link").symlink_to("device")
    for place in (path, tmp_path / "link"):
        if full:
            with pytest.raises(OSError, match="No space left"):
                write_whole(place, "x")
        else:
            write_whole(place, "x")
    assert stat.S_ISCHR(path.stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == ["device", "link"]


@root_only
def test_a_disk_is_never_written_to(tmp_path):
    path = tmp_path / "disk"
    try:
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, 250))
    except OSError:
        pytest.skip("this machine lets no one make devices")
    with pytest.raises(InputError, match="is a disk or socket"):
        write_whole(path, "x")


def test_a_folder_or_no_folder_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "lost").symlink_to("no/where.txt")
    (tmp_path / "file").write_text("")
    for name, said in {
        ".": "must be a file, but .* is a folder",
        "link": "must be a file, but .* is a folder",
        "no/x": r"folder .*no does not exist\. Make it first",
        "lost": r"folder .*no does not exist\. Make it first",
        "file/x": r"folder .*file does not exist\. Make it first",
        "a\0b": "cannot be the name of a file",
    }.items():
        with pytest.raises(InputError, match=said):
            find_target(tmp_path / name)


def test_what_cannot_be_looked_at_is_refused(tmp_path, monkeypatch):
    (tmp_path / "round").symlink_to("round")
    for name, why in {"round": "symbolic links", "n" * 300: "too long"}.items():
        for use in (find_target, lambda path: check_different_files({"--output": "new"}, [path])):
            with pytest.raises(InputError, match=rf"cannot be looked at: .*{why}"):
                use(tmp_path / name)

    def closed(path, **_):  # as for anyone but root
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "stat", closed)
    with pytest.raises(InputError, match=r"x cannot be looked at: Permission denied\."):
        find_target(tmp_path / "x")
    with pytest.raises(InputError, match=r"cannot be looked at: Permission denied\."):
        check_output_folder(tmp_path)


def test_links_that_lead_back_to_themselves_have_no_end(tmp_path):
    for name, leads in {"a": "b", "b": "sub/../a", "own": "own", "to": "a"}.items():
        (tmp_path / name).symlink_to(leads)
    (tmp_path / "sub").mkdir()
    for name in ("a", "b", "own", "to"):
        with pytest.raises(InputError, match=r"is a loop of links.*Name another"):
            follow_links(tmp_path / name)
        with pytest.raises(InputError, match="is a loop of links"):
            check_places({"--output": OutputOption(tmp_path / name, folder=True)}, [])
    with pytest.raises(InputError, match="too long"):
        check_places({"--output": OutputOption(tmp_path / ("n" * 300), folder=True)}, [])
    (tmp_path / "there").write_text("")
    with pytest.raises(InputError, match="too long"):
        check_places({"--output": OutputOption(tmp_path / "there")}, ["n" * 300])


def test_a_protected_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")
    # as for anyone but root
    monkeypatch.setattr(os, "access", lambda place, _: Path(place) != path)
    with pytest.raises(InputError, match=r"may not be written to.*chmod u\+w"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    monkeypatch.setattr(os, "access", lambda place, _: Path(place) != tmp_path)
    with pytest.raises(InputError, match=r"folder .* cannot be written to"):
        write_whole(tmp_path / "new", "new")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
def test_an_open_file_is_not_replaced_under_its_owner(tmp_path):
    log = tmp_path / "log"
    log.write_text("long story\n")
    with log.open("ab") as stream, pytest.raises(InputError, match="Name that file"):
        write_whole(f"/proc/self/fd/{stream.fileno()}", "x")
    assert log.read_text() == "long story\n"
    read, write = os.pipe()
    write_whole(f"/proc/self/fd/{write}", "x")
    os.close(write)
    assert os.read(read, 10) == b"x"
    os.close(read)


# --- apart --------------------------------------------------------------------------------------


def test_every_way_to_name_one_file_is_seen_through(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("x")
    Path("hard.csv").hardlink_to("data.csv")
    Path("soft.csv").symlink_to("data.csv")
    Path("inner").mkdir()
    Path("door").symlink_to("inner", target_is_directory=True)
    Path("other.csv").write_text("x")
    for name in ("data.csv", "./data.csv", tmp_path / "data.csv", "hard.csv", "soft.csv"):
        for turned in ((name, "data.csv"), ("data.csv", name)):
            with pytest.raises(InputError, match=r"must be another file than .*it would be lost"):
                check_different_files({"--output": turned[0]}, [turned[1]])
        with pytest.raises(InputError, match="--a and --b must be different files"):
            check_different_files({"--a": name, "--b": "data.csv"})
    check_different_files({"--a": "other.csv", "--b": "new.csv"}, ["data.csv", "none.csv"])
    for one, other in (("new", "door/../new"), ("New", "nEW"), ("é", "e\u0301"), ("a/b", "A/B")):
        with pytest.raises(InputError, match="must be different files"):
            check_different_files({"--a": one, "--b": other})
    with pytest.raises(InputError, match="must be different files"):
        check_different_files({"--a": "inner/x", "--b": "door/x"})
    Path("lost").symlink_to("to come")
    with pytest.raises(InputError, match="must be different files"):
        check_different_files({"--a": "lost", "--b": "to come"})
    with pytest.raises(InputError, match=r"must be another file than none\.csv"):
        check_different_files({"--a": "none.csv"}, ["none.csv"])


def test_a_folder_that_is_replaced_holds_no_input(tmp_path):
    (tmp_path / "out.csv" / "deep").mkdir(parents=True)
    (tmp_path / "out.csv" / "deep" / "in.csv").write_text("x")
    (tmp_path / "link.csv").symlink_to(tmp_path / "out.csv" / "deep" / "in.csv")
    for source in ("link.csv", "out.csv/deep/in.csv", "out.csv"):
        with pytest.raises(InputError, match="must be another file than"):
            check_different_files({"the output": tmp_path / "out.csv"}, [tmp_path / source])
    (tmp_path / "in.csv").write_text("x")
    check_different_files({"the output": tmp_path / "out.csv"}, [tmp_path / "in.csv"])


# --- the writers --------------------------------------------------------------------------------


@pytest.fixture
def local():
    rng = np.random.default_rng(0)
    s = rng.random(40)
    features = rng.normal(size=(40, 2))
    return cal.SimilarityBinning(gate=False, k=5).fit(s, rng.random(40) < s, features=features)


def test_a_calibrator_goes_through_a_pipe(tmp_path):
    fitted = cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    reader = Reader(tmp_path / "pipe")
    cal.save(fitted, tmp_path / "pipe")
    (tmp_path / "c.json").write_bytes(reader.all())
    assert cal.load(tmp_path / "c.json") == fitted.to_fitted()


def test_two_files_do_not_go_through_a_pipe(tmp_path, local):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"two files, .* pipe .* Name a file"):
        cal.save(local, tmp_path / "pipe")
    assert names(tmp_path) == ["pipe"]


def test_two_files_through_a_link_lie_together(tmp_path, local):
    (tmp_path / "store").mkdir()
    (tmp_path / "c.json").symlink_to("store/real.json")
    cal.save(local, tmp_path / "c.json")
    assert names(tmp_path) == ["c.json", "store"]
    assert len(names(tmp_path / "store")) == 2
    assert cal.load(tmp_path / "c.json") == cal.load(tmp_path / "store" / "real.json")
    cal.save(cal.Platt().fit([0.1, 0.9, 0.5], [0, 1, 1]), tmp_path / "c.json")
    assert names(tmp_path / "store") == ["real.json"]


def test_two_files_behind_two_links_are_found(tmp_path, local):
    """As some stores of models keep them: each under its checksum elsewhere."""
    (tmp_path / "store").mkdir()
    cal.save(local, tmp_path / "c.json")
    expected = cal.load(tmp_path / "c.json")
    for number, name in enumerate(names(tmp_path)[:2]):
        (tmp_path / name).rename(tmp_path / "store" / str(number))
        (tmp_path / name).symlink_to(tmp_path / "store" / str(number))
    assert cal.load(tmp_path / "c.json") == expected


def test_a_report_is_refused_before_the_work(tmp_path, monkeypatch):
    data = tmp_path / "data.csv"
    data.write_text("precious")
    s = np.linspace(0.01, 0.99, 60)
    y = np.arange(60) % 3 > 0
    for output, said in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "r.html", "does not exist"),
        (data, "must be another file than"),
    ):
        for source in (str(data), [data], {"files": [str(data)]}):
            if output != data and source != str(data):
                continue
            with pytest.raises(InputError, match=said):
                cal.calibration_report(s, y, calibrator=_Unwanted(), source=source, output=output)
    assert data.read_text() == "precious"
    assert names(tmp_path) == ["data.csv"]


class _Unwanted(cal.Platt):
    """A calibrator that must not be fitted."""

    def _fit(self, table):
        raise AssertionError("the work began")


def test_no_other_place_writes_files(root):
    """The log of Spark's own process and the copy of a file in UTF-8, in folders of their own, are
    no outputs; nor is a lock, or what is packed in memory."""
    found = {
        path.relative_to(root / "src" / "calibrant").as_posix()
        for path in (root / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and _writes(node)
    }
    no_outputs = {"engines/spark.py", "engines/files.py", "cli/checking.py", "fitting/files.py"}
    assert found == {"outputs.py", *no_outputs}


def _writes(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    words = [word.value for word in call.args if isinstance(word, ast.Constant)]
    modes = [word for word in words if isinstance(word, str) and set(word) <= set("rwaxbt+")]
    opened = name == "open" and any(set("wax+") & set(word) for word in modes)
    return opened or name in ("write_text", "write_bytes", "mkstemp", "NamedTemporaryFile")


# --- what killed processes leave ----------------------------------------------------------------

KILLED = """
import os, signal, sys
from calibrant.outputs import TemporaryFolder, whole_file
with whole_file("out.csv"), whole_file("out.csv"), TemporaryFolder(), whole_file("other.csv"):
    print("up", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def writer(tmp_path, monkeypatch):
    """Another process that writes, and is killed on a word."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "up\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(tmp_path, writer):
    in_use = {path.name for path in tmp_path.rglob("*")}
    assert len(in_use) == 1 + 3 * 2 + 2  # names and locks of three files, a folder and its lock
    write_whole(tmp_path / "out.csv", "ours")
    with TemporaryFolder() as folder:
        assert {path.name for path in tmp_path.rglob("*")} == {
            *in_use,
            "out.csv",
            Path(folder).name,
        }
    writer.communicate("now\n")
    write_whole(tmp_path / "out.csv", "ours again")
    with TemporaryFolder():
        pass
    assert not list((tmp_path / "tmp").iterdir())
    assert len(list(tmp_path.glob(".out.csv*"))) == 0
    assert len(list(tmp_path.glob(".other.csv*"))) == 2  # nobody wrote that one again
    assert (tmp_path / "out.csv").read_text() == "ours again"


def test_what_a_killed_process_left_is_removed_behind_one_that_ended_well(tmp_path):
    with ExitStack() as writers:
        places = [writers.enter_context(whole_file(tmp_path / "o.csv")) for _ in range(4)]
        locks = [path for path in tmp_path.iterdir() if path.suffix == ".lock"]
    for path in (places[1], places[3], *locks):  # as if the second and the fourth were killed
        if path.stem in (places[1].stem, places[3].stem):
            path.touch()
    write_whole(tmp_path / "o.csv", "ours")
    assert names(tmp_path) == ["o.csv"]


def test_a_lone_writer_looks_once_for_what_others_left(tmp_path, monkeypatch):
    looked = []
    found = os.path.lexists
    monkeypatch.setattr(os.path, "lexists", lambda path: looked.append(path) or found(path))
    counts = []
    for text in ("one", "two", "three"):
        looked.clear()
        write_whole(tmp_path / "o.csv", text)
        counts.append(sum(Path(path).suffix == ".lock" for path in looked))
    assert counts[0] > 90
    assert max(counts[1:]) <= 1
    with whole_file(tmp_path / "o.csv"), whole_file(tmp_path / "o.csv"):
        pass  # from here on another one may be killed
    looked.clear()
    write_whole(tmp_path / "o.csv", "four")
    assert sum(Path(path).suffix == ".lock" for path in looked) > 90


def test_a_folder_that_a_killed_process_left_is_removed(tmp_path):
    with ExitStack() as writers:
        places = [writers.enter_context(reserved_name(tmp_path / "o.csv")) for _ in range(3)]
        for place in places:
            (place / "parts").mkdir(parents=True)
            (place / "parts" / "one").write_text("x")
        locks = [place.with_suffix(".lock") for place in places]
        with reserved_name(tmp_path / "o.csv") as another:
            assert another not in places
        assert all((place / "parts" / "one").exists() for place in places)  # in use
    for lock in locks:  # as if all three were killed
        lock.touch()
    with reserved_name(tmp_path / "o.csv") as place:
        assert not place.exists()
    assert names(tmp_path) == []


def test_a_folder_is_removed_under_its_lock(tmp_path, monkeypatch):
    """One that was just made has no lock yet, and must not be taken for one that was left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = TemporaryFolder()
    left._lock.close()  # as if its process were killed
    (lock,) = Path(left.name).iterdir()
    remove, held = shutil.rmtree, []

    def watched(path, **options):
        if Path(path) == Path(left.name):
            with lock.open("rb+") as stream:
                held.append(outputs.try_lock(stream.fileno()) is False)
        remove(path, **options)

    monkeypatch.setattr(outputs.shutil, "rmtree", watched)
    with TemporaryFolder() as folder:
        assert names(tmp_path) == [Path(folder).name]
    monkeypatch.undo()
    left.cleanup()
    assert held == [True]


def test_what_another_machine_writes_stays(tmp_path, monkeypatch):
    """Locks of some shared disks are known to the processes of one machine only."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with monkeypatch.context() as there:
        there.setattr(platform, "node", lambda: "another")
        writer, folder = whole_file(tmp_path / "o.csv"), TemporaryFolder()
        place = writer.__enter__()
    place.write_text("theirs")
    monkeypatch.setattr(outputs, "try_lock", lambda number: True)
    write_whole(tmp_path / "o.csv", "ours")
    with TemporaryFolder():
        pass
    assert place.read_text() == "theirs"
    assert Path(folder.name).is_dir()
    folder.cleanup()
    writer.__exit__(None, None, None)
    assert names(tmp_path) == ["o.csv"]
    assert (tmp_path / "o.csv").read_text() == "theirs"


def test_what_lies_in_the_place_of_a_lock_is_neither_followed_nor_an_error(tmp_path):
    with whole_file(tmp_path / "o.csv") as first, whole_file(tmp_path / "o.csv") as second:
        pass
    first.with_suffix(".lock").symlink_to(tmp_path / "elsewhere")
    second.with_suffix(".lock").mkdir()
    write_whole(tmp_path / "o.csv", "ours")
    assert (tmp_path / "o.csv").read_text() == "ours"
    assert not (tmp_path / "elsewhere").exists()


def test_other_folders_of_such_a_name_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "calibrant-demo").mkdir()
    (tmp_path / "calibrant-demo" / "scores.csv").write_text("p,y\n")
    with TemporaryFolder():
        pass
    assert names(tmp_path / "calibrant-demo") == ["scores.csv"]


def test_two_writers_of_one_output_do_not_meet(tmp_path):
    with whole_file(tmp_path / "o.csv") as one, whole_file(tmp_path / "o.csv") as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"o.csv": "one"}


def test_a_disk_without_locks_takes_outputs(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "try_lock", lambda number: None)
    with whole_file(tmp_path / "o.csv") as one, whole_file(tmp_path / "o.csv") as other:
        assert one != other
    assert [path.name for path in tmp_path.iterdir()] == ["o.csv"]


def test_writers_on_threads_take_turns_in_names(tmp_path):
    def write(number):
        for _ in range(20):
            write_whole(tmp_path / "o.csv", str(number) * 100)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert [path.name for path in tmp_path.iterdir()] == ["o.csv"]
    assert len(set((tmp_path / "o.csv").read_text())) == 1


def test_a_folder_that_lets_no_lock_be_made_is_an_error_and_no_endless_search(
    tmp_path, monkeypatch
):
    """Windows and sandboxes say only on opening that a folder may not be written to."""
    calls = []

    def refused(path, *args, **options):
        calls.append(path)
        assert len(calls) < 1000
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(outputs.os, "open", refused)
    with pytest.raises(PermissionError):
        write_whole(tmp_path / "o.csv", b"x")
    assert not list(tmp_path.iterdir())
