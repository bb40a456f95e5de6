"""The README as the package's page shows it: links to files of the repository are made whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def with_whole_links(text: str, home: str, ref: str) -> str:
    """Links to files as addresses of the repository at ``ref``, pictures as those of the files.

    >>> with_whole_links("![A](docs/a.png) [b](docs/b.md#c) [d](https://d.org)", "https://h", "v1")
    '![A](https://h/raw/v1/docs/a.png) [b](https://h/blob/v1/docs/b.md#c) [d](https://d.org)'
    """
    kept = r"(?![a-z]+:|#)"  # an address, or a place on the page itself
    text = re.sub(rf"(!\[[^\]]*\]\(){kept}", rf"\1{home}/raw/{ref}/", text)
    return re.sub(rf"((?<!!)\[(?:[^\[\]]|!\[[^\]]*\])*\]\(){kept}", rf"\1{home}/blob/{ref}/", text)


class ReadmeHook(MetadataHookInterface):
    """Fills in the project's readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the metadata of pyproject.toml."""
        version = re.search(
            r'^__version__ = "(.+)"$',
            Path(self.root, "src/calibrant/version.py").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if version is None:
            raise ValueError("src/calibrant/version.py must hold the version.")
        whole = with_whole_links(text, metadata["urls"]["Source"], f"v{version[1]}")
        metadata["readme"] = {"content-type": "text/markdown", "text": whole}
