"""Calibrators as files: JSON, with an .npz of arrays beside it where the calibrator keeps rows."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import secrets
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.fitted import Fitted
from calibrant.local.rule import FORMAT as LOCAL
from calibrant.local.rule import LocalFitted

__all__ = ["load", "save"]

LARGEST_FILE = 1 << 30


def save(calibrator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator to a JSON file, whole or not at all.

    Parameters
    ----------
    calibrator : fitted calibrator, Fitted or LocalFitted
    path : path of the file

    Notes
    -----
    A calibrator that is a map of the score is one JSON file. One that keeps calibration rows
    (`SimilarityBinning`, `ACP`) writes their arrays to a second file beside it, named like it with
    a part of its own checksum and ``.npz``. Keep the two together. Saving again replaces both: the
    JSON file, written last, decides which arrays count, so an interrupted save leaves the old pair.

    Examples
    --------
    >>> import calibrant as cal, tempfile, os
    >>> c = cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "c.json")
    >>> cal.save(c, path)
    >>> bool((cal.load(path).calibrate([0.3]) == c.calibrate([0.3])).all())
    True
    """
    if not hasattr(calibrator, "to_fitted"):
        raise InputError(
            f"only a fitted calibrator or a Fitted can be saved, but {type(calibrator).__name__} "
            "came."
        )
    file, fitted = Path(path), calibrator.to_fitted()
    old = _arrays_of(file)
    if not isinstance(fitted, LocalFitted):
        _write_json(file, fitted.to_dict())
        if old is not None:
            old.unlink(missing_ok=True)
        return
    document, arrays = fitted.to_parts()
    content = _packed(arrays)
    checksum = hashlib.sha256(content).hexdigest()
    beside = file.with_name(f"{file.name}.{checksum[:12]}.npz")
    document["arrays"] = {"file": beside.name, "sha256": checksum}
    existed = beside.exists()
    write_atomically(beside, content)
    try:
        _write_json(file, document)
    except BaseException:
        if not existed:
            beside.unlink(missing_ok=True)
        raise
    if old is not None and old.name != beside.name:
        old.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Fitted | LocalFitted:
    """Read a calibrator file. Only data is read; nothing in the file is ever executed."""
    file = Path(path)
    document = _read_json(file)
    try:
        if isinstance(document, dict) and document.get("format") == LOCAL:
            return LocalFitted.from_parts(document, _read_arrays(file, document.get("arrays")))
        return Fitted.from_dict(document)
    except RecursionError as wrong:
        raise InputError(f"{file} is not a calibrator file: it nests too deeply.") from wrong
    except InputError as wrong:
        raise InputError(f"{file}: {wrong}") from wrong


def _write_json(file: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(file, (text + "\n").encode("utf-8"))


def _read_json(file: Path) -> Any:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise InputError(f"{file} is larger than 1 GiB: this is not a calibrator.")
        text = file.read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as wrong:
        raise InputError(f"{file} is not a calibrator file: {wrong}") from wrong


def _packed(arrays: dict[str, NDArray[Any]]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def _read_arrays(file: Path, entry: Any) -> dict[str, NDArray[Any]]:
    """The arrays that a JSON file names, if they are what was saved with it."""
    beside = _beside(file, entry)
    if beside is None:
        raise InputError("the file is damaged: it names no file of arrays.")
    try:
        content = beside.read_bytes()
    except FileNotFoundError as missing:
        raise InputError(
            f"the arrays must lie beside it in {beside.name}, but there is no such file. Copy both."
        ) from missing
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise InputError(f"{beside.name} is not what was saved with it: the checksum differs.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if any(part.compress_type != zipfile.ZIP_STORED for part in packed.infolist()):
                raise InputError(f"{beside.name} must hold plain arrays, not compressed ones.")
        with np.load(io.BytesIO(content), allow_pickle=False) as parts:
            return {name: parts[name] for name in parts.files}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, KeyError) as wrong:
        raise InputError(f"{beside.name} does not hold arrays: {wrong}") from wrong


def _beside(file: Path, entry: Any) -> Path | None:
    """The file of arrays: always a plain name in the same folder."""
    name = entry.get("file") if isinstance(entry, dict) else None
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".npz"):
        return None
    return file.with_name(name)


def _arrays_of(file: Path) -> Path | None:
    """The file of arrays that an existing calibrator file uses, if it is one of ours."""
    try:
        document = _read_json(file)
    except (OSError, InputError):
        return None
    if not isinstance(document, dict) or document.get("format") != LOCAL:
        return None
    found = _beside(file, document.get("arrays"))
    return found if found is not None and found.name.startswith(file.name + ".") else None


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name in the same folder and rename, so that no reader sees half."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InputError(f"the file is damaged: the number {text} is out of range.")
    return value


def _refuse_constant(name: str) -> float:
    raise InputError(f"the file is damaged: numbers must be finite, but {name} came.")
