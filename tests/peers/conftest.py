"""What scikit-learn's own tests take from its own fixtures, and which of them are known to fail."""

from __future__ import annotations

import numpy as np
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the failures that a file of this folder lists; with ``xfail_strict`` a test that
    passes nevertheless breaks the build, too."""
    for item in items:
        reasons = getattr(getattr(item, "module", None), "FAILURES", {})
        for reason, names in reasons.items():
            if item.originalname in names or item.name.startswith(tuple(cut(names))):
                item.add_marker(pytest.mark.xfail(reason=reason))


def cut(names: tuple[str, ...]) -> list[str]:
    """The names that say which cases of a test are meant: those with the beginning of a case."""
    return [name for name in names if "[" in name]


@pytest.fixture
def pyplot():
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture
def global_dtype():
    return np.float64
