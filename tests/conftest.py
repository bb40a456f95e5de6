"""Fixtures of the whole suite."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# compiled kernels of this run only: a stale cache must not stand in for the code under test
os.environ.setdefault("NUMBA_CACHE_DIR", tempfile.mkdtemp(prefix="calibrant-numba-"))

settings.register_profile(
    "suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("thorough", parent=settings.get_profile("suite"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

ROOT = Path(__file__).resolve().parent.parent


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
