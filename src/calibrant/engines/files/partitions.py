"""Folders named NAME=VALUE: columns that stand in the path of a file and not in the file."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from calibrant.errors import InputError

#: how a missing value is written
ABSENT = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})$")


def partitions_of(path: Path) -> dict[str, str | None]:
    """What the folders of a path say, by name.

    >>> partitions_of(Path("sales/day=2024-05-01/land=fr%2Fca/x.parquet"))
    {'day': '2024-05-01', 'land': 'fr/ca'}
    """
    pairs = (part.split("=", 1) for part in path.parent.parts if not part.startswith("="))
    said: dict[str, str] = {}
    for name, value in (map(unquote, pair) for pair in pairs if len(pair) == 2):
        if said.setdefault(name, value) != value:
            raise InputError(
                f"the folders of {path} must say one thing of {name!r}, but they say "
                f"{said[name]!r} and {value!r}. Rename one of them."
            )
    return {name: None if value == ABSENT else value for name, value in said.items()}
