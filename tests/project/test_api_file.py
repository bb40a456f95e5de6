"""docs/reference/api.txt lists the public face; a change of it must be seen in review."""

from __future__ import annotations

import importlib.util


def test_the_list_of_public_signatures_is_current(root):
    """If this fails after a wanted change, run docs/scripts/make_api.py."""
    spec = importlib.util.spec_from_file_location(
        "make_api", root / "docs" / "scripts" / "make_api.py"
    )
    make_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_api)
    assert (root / "docs" / "reference" / "api.txt").read_text(encoding="utf-8") == make_api.text()
