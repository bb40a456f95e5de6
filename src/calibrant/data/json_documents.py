"""JSON files, read strictly: no value that two readers could take for two things."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from calibrant.data.json_facts import shown
from calibrant.errors import InputError

LARGEST_FILE = 1 << 30
#: the first bytes of files that are not UTF-8 text, and what to do about them
FOREIGN = {
    b"\x1f\x8b": "it is compressed by gzip. Unpack it first",
    b"PK\x03\x04": "it is a zip archive. Unpack it first",
    b"\x80": "it may be a pickle, which is never loaded. Save the calibrator with calibrant.save",
    b"\xff\xfe": "it is UTF-16. Convert it to UTF-8",
    b"\xfe\xff": "it is UTF-16. Convert it to UTF-8",
    b"\xef\xbb\xbf": "it begins with a byte order mark. Convert it to UTF-8 without one",
}
#: the escape of a surrogate; only two of them in the right order are a character
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_document(file: Path, what: str = "a calibrator file") -> Any:
    """What a JSON file holds, read strictly: anything doubtful is refused with the reason.

    ``what`` is what the file should be.
    """
    content = _read_bytes(file, what)
    for start, reason in FOREIGN.items():
        if content.startswith(start):
            raise InputError(f"{file} is not {what}: {reason}.")
    try:
        text = content.decode("utf-8")
        document = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_without_twins
        )
        if SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except InputError as wrong:
        raise InputError(f"{file}: {wrong}") from wrong
    except RecursionError as wrong:
        raise InputError(f"{file} is not {what}: it nests too deeply.") from wrong
    except ValueError as wrong:  # of JSON, of UTF-8, of integers with too many digits
        raise InputError(f"{file} is not {what}: {wrong}") from wrong
    return document


def _read_bytes(file: Path, what: str) -> bytes:
    """What is in a file, unless it is far too large."""
    if "\0" in str(file):
        raise InputError(f"{shown(str(file))} cannot be the name of a file.")
    with file.open("rb") as stream:
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise InputError(f"{file} is larger than 1 GiB: this is not {what}.")
    return content


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated names, of which readers may take the first or the last."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in made if names.count(name) > 1)
        raise InputError(f"the file is damaged: {shown(twin)} occurs twice in one object.")
    return made


def _refuse_constant(name: str) -> float:
    raise InputError(f"the file is damaged: numbers must be finite, but {name} came.")
