"""Fixtures of the whole suite."""

from __future__ import annotations

import hashlib
import os
import signal
import tempfile
import warnings
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent


def _kernels() -> str:
    """A number that changes with the kernels, so that no older compiled code stands in for them."""
    package = ROOT / "src" / "calibrant"
    files = sorted([*package.rglob("_kernel*.py"), *(package / "solvers").glob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"calibrant-numba-{_kernels()}")
)

# a process for each core: threads of several that wait for each other are slower than one by far
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# a shell starts jobs in the background with Ctrl-C ignored; tests of interrupts need it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `make test` draws few examples of each property, `make test-all` many; in CI always the same ones
settings.register_profile(
    "quick",
    max_examples=8,
    derandomize="CI" in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

#: run by `make test-all` only: they start Java, build wheels, or run studies
ONLY_IN_FULL = (
    "papers/",
    "engines/test_spark.py",
    "project/test_joint_models.py",
    "project/test_wheel.py",
)
#: few but long tests: they come first, so that all processes end at about the same time
FIRST = ("engines/test_spark.py", "papers/", "project/", "cli/", "reports/", "auto/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the quick suite leaves out, and put long files first."""
    tests = ROOT / "tests"

    def place(item: pytest.Item) -> str:
        inside = item.path.is_relative_to(tests)
        return item.path.relative_to(tests).as_posix() if inside else ""

    for item in items:
        if place(item).startswith(ONLY_IN_FULL):
            item.add_marker(pytest.mark.full)
    items.sort(key=lambda item: not place(item).startswith(FIRST))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """A warning that points into the library, not at the line of its user, is an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module=r"calibrant[.]")
        return (yield)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the papers' datasets and reference outputs, where it is at hand."""
    folder = Path(os.environ.get("CALIBRANT_SHARED", ROOT.parent / "shared"))
    if not (folder / "golden").is_dir():
        pytest.skip(
            f"needs the reference data in {folder.name}/ beside the project (CALIBRANT_SHARED)"
        )
    return folder
