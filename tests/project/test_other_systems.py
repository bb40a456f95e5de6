"""What Windows and macOS do differently, acted out on this system."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
import typer

from calibrant import errors as shell_words
from calibrant import outputs
from calibrant.cli import PLAIN, main
from calibrant.cli import app as cli_app
from calibrant.engines import files as data_files
from calibrant.engines.duckdb import _reworded
from calibrant.engines.spark import require_java
from calibrant.engines.spark_files import local_url
from calibrant.errors import InputError, MissingExtraError, import_extra
from calibrant.outputs import (
    check_different_files,
    find_target,
    follow_links,
    whole_file,
    write_whole,
)


@pytest.fixture
def windows(monkeypatch):
    for module in (outputs, shell_words, cli_app):
        monkeypatch.setattr(module, "WINDOWS", True)
    monkeypatch.setattr(outputs.time, "sleep", lambda seconds: None)


# --- files ----------------------------------------------------------------------------------------


def held_open(monkeypatch, times):
    """Refuse to replace a file so many times, as Windows does while it is open elsewhere."""
    real, refused = Path.replace, []

    def replace(self, target):
        if len(refused) < times:
            refused.append(target)
            raise PermissionError(errno.EACCES, "Access is denied", str(self), 5, str(target))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    return refused


def test_an_output_that_is_open_elsewhere(windows, monkeypatch, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    held_open(monkeypatch, 1000)
    with pytest.raises(InputError, match=r"out\.csv cannot be replaced: another program has it"):
        write_whole(out, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert out.read_text() == "old"


def test_a_scanner_lets_go_after_a_moment(windows, monkeypatch, tmp_path):
    refused = held_open(monkeypatch, 3)
    write_whole(tmp_path / "out.csv", "new")
    assert (len(refused), (tmp_path / "out.csv").read_text()) == (3, "new")


def test_elsewhere_a_refusal_is_told_as_it_came(monkeypatch, tmp_path):
    refused = held_open(monkeypatch, 1000)
    with pytest.raises(PermissionError):
        write_whole(tmp_path / "out.csv", "new")
    assert len(refused) == 1


def test_a_file_that_cannot_be_removed_hides_no_error(monkeypatch, tmp_path):
    def unlink(self, missing_ok=False):
        raise PermissionError(errno.EACCES, "the file is in use")

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(RuntimeError, match="first"), whole_file(tmp_path / "out.csv"):
        raise RuntimeError("first")


def test_what_to_do_about_a_protected_file(windows, monkeypatch, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != out)
    with pytest.raises(InputError, match=r"or allow it: attrib -r .*out\.csv"):
        find_target(out)


def without_numbers(monkeypatch):
    """Let every file have the number 0, as on some disks of a network."""
    real = Path.stat

    def unnumbered(self, **options):
        found = list(real(self, **options))
        found[stat.ST_INO] = 0
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", unnumbered)


def test_files_without_numbers_are_told_by_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        Path(name).write_text("s,y\n1,0\n")
    without_numbers(monkeypatch)
    found = data_files.find_files(["a.csv", "b.csv", "./a.csv"])
    assert [path.name for path in found] == ["a.csv", "b.csv"]
    check_different_files({"--output": "a.csv"}, ["b.csv"])
    with pytest.raises(InputError, match="must be another file"):
        check_different_files({"--output": "a.csv"}, ["./a.csv"])


def test_what_is_opened_already_on_macos():
    with pytest.raises(InputError, match="a file that another program has opened"):
        follow_links(Path("/dev/fd/987654"))


# --- words ----------------------------------------------------------------------------------------


def test_words_to_copy_are_in_double_quotes(windows):
    quoted = [
        shell_words.shell_quoted(word) for word in ("C:\\data\\c.json", "my file.csv", "a,b", 'x"y')
    ]
    assert quoted == ["C:\\data\\c.json", '"my file.csv"', '"a,b"', '"x\\"y"']
    with pytest.raises(MissingExtraError, match=r'pip install "calibrant\[cli\]"'):
        import_extra("no_such_package", extra="cli")


def test_words_to_copy_elsewhere():
    assert shell_words.shell_quoted("my file.csv") == "'my file.csv'"


@pytest.mark.parametrize("letters", ["cp1252", "cp437", "ascii"])
def test_letters_that_the_terminal_lacks(monkeypatch, letters):
    out = io.TextIOWrapper(io.BytesIO(), encoding=letters)
    monkeypatch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as ended:
        main(["methods"])
    assert ended.value.code == 0
    out.write("0.63 → 0.44, −30 % λ")
    out.flush()
    said = out.buffer.getvalue().decode(letters)
    assert said.splitlines()[-1].startswith("0.63 -> 0.44, -30 % ")
    assert all(plain.isascii() for plain in PLAIN.values())


def test_the_reader_of_a_pipe_went_away(windows):
    group = cli_app.Commands(name="x", callback=None)

    def fails(self, ctx):
        raise OSError(errno.EINVAL, "Invalid argument")

    assert cli_app._is_lost_pipe(OSError(errno.EINVAL, "Invalid argument"))
    assert not cli_app._is_lost_pipe(OSError(errno.EINVAL, "Invalid argument", "a:b.csv"))
    assert not cli_app._is_lost_pipe(InputError("no"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_app.TyperGroup, "invoke", fails)
        patch.setattr(sys, "stdout", io.StringIO())  # no file: nothing to let go
        with pytest.raises(typer.Exit) as left:
            group.invoke(None)
    assert left.value.exit_code == 141


@pytest.mark.parametrize(
    "message",
    [
        'IO Error: Could not write file "x": There is not enough space on the disk.',
        "x: No space left on device",
    ],
)
def test_a_full_disk(message):
    assert _reworded(Exception(message)).startswith("No space left on device")


# --- Spark ----------------------------------------------------------------------------------------


class WindowsPath(SimpleNamespace):
    def absolute(self):
        return PurePosixPath("C:/data/a.csv")


def test_a_drive_in_a_url():
    assert local_url(WindowsPath()) == "file:///C:/data/a.csv"
    assert local_url(Path("/data/a.csv")) == "file:///data/a.csv"


def test_java_is_found_by_its_folder(monkeypatch, tmp_path):
    java = tmp_path / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    java.parent.mkdir()
    java.write_text("")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    require_java()
    java.unlink()
    with pytest.raises(MissingExtraError, match="there is no java in JAVA_HOME"):
        require_java()


# --- what no file of ours may do ------------------------------------------------------------------


def test_text_is_never_read_in_the_letters_of_the_system(root):
    """`open`, `read_text` and `write_text` of text name their encoding."""
    import ast

    for path in (root / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            given = {keyword.arg for keyword in node.keywords}
            if called in ("read_text", "write_text"):
                assert "encoding" in given, (path, node.lineno)
            if called == "open" and not isinstance(getattr(node.func, "value", None), ast.Name):
                modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
                assert any("b" in str(mode) for mode in modes) or "encoding" in given, (
                    path,
                    node.lineno,
                )


LACKING = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "msvcrt", "winreg"}


def imported_everywhere(tree):
    """The modules that a file imports, but for those below a question for `sys.platform`."""
    import ast

    if isinstance(tree, ast.If) and "sys.platform" in ast.unparse(tree.test):
        return
    if isinstance(tree, ast.Import):
        yield from (alias.name for alias in tree.names)
    if isinstance(tree, ast.ImportFrom):
        yield tree.module
    for below in ast.iter_child_nodes(tree):
        yield from imported_everywhere(below)


def test_no_module_that_one_system_lacks_is_imported_unasked(root):
    import ast

    for path in (root / "src").rglob("*.py"):
        found = set(imported_everywhere(ast.parse(path.read_text(encoding="utf-8"))))
        assert not LACKING & found, path
    asked = "import sys\nif sys.platform == 'win32':\n    import msvcrt\nelse:\n    import fcntl\n"
    assert set(imported_everywhere(ast.parse(asked))) == {"sys"}
    assert set(imported_everywhere(ast.parse("def f():\n    import fcntl\n"))) == {"fcntl"}
