"""The built wheel installs without extras, imports, fits, and carries its types."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile

import pytest

import calibrant as cal

HOME = "https://github.com/calibrant/calibrant"

SCRIPT = """
import sys
import calibrant as cal
c = cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
cal.save(c, "c.json")
print(cal.__file__, cal.load("c.json").calibrate([0.5]).round(3).tolist())
try:
    cal.reliability_diagram([0, 1], [0.2, 0.7])
except cal.errors.MissingExtraError as missing:
    print(missing)
"""


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(out),
            str(root),
        ],
        check=True,
        capture_output=True,
    )
    (built,) = out.glob("*.whl")
    return built


def test_contents(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "calibrant/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [n for n in names if not n.startswith(("calibrant/", "calibrant-"))]


def test_works_without_extras(wheel, tmp_path):
    """A new environment that sees the core dependencies, but neither extras nor the source."""
    home = tmp_path / "env"
    venv.create(home, with_pip=False)
    site = (
        next((home / "lib").glob("python*/site-packages"))
        if sys.platform != "win32"
        else home / "Lib/site-packages"
    )
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    block = "\n".join(
        f"sys.modules[{name!r}] = None"
        for name in (
            "matplotlib",
            "duckdb",
            "typer",
            "rich",
            "pyarrow",
            "pandas",
            "polars",
        )
    )
    import numpy

    core = str(__import__("pathlib").Path(numpy.__file__).parent.parent)
    code = f"import sys; sys.path.append({core!r})\n{block}\n{SCRIPT}"
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(site) in done.stdout
    assert "pip install 'calibrant[cli]'" in done.stdout


def test_the_wheel_is_typed(wheel, tmp_path):
    """mypy reads the installed package's types through py.typed."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (tmp_path / "user.py").write_text(
        "import calibrant as cal\n"
        "reveal_type(cal.load('c.json'))\n"
        "reveal_type(cal.Platt().fit([0.1], [1]).predict_proba([0.2]))\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--cache-dir",
            str(tmp_path / "cache"),
            "--config-file",
            "",
            "user.py",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPYPATH": "", "PYTHONPATH": str(site), "PATH": ""},
        check=False,
    )
    assert 'Revealed type is "calibrant.fitting.fitted.Fitted"' in done.stdout, (
        done.stdout + done.stderr
    )
    assert "ndarray" in done.stdout


def test_the_links_of_the_readme_are_whole(wheel):
    """The page of the package is not beside the files that README.md links to."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        text = archive.read(name).decode("utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []
    at = {link.split("/")[6] for link in links if link.startswith(f"{HOME}/")}
    assert at == {f"v{cal.__version__}"}
    assert f"Project-URL: Source, {HOME}\n" in text
