"""Calibrators as files: JSON, and a second file of arrays if the calibrator keeps rows."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.documents import (
    brief,
    evaluation_facts,
    read_document,
    read_notes,
    read_period,
)
from calibrant.errors import InputError
from calibrant.fitting.fitted import (
    FORMAT,
    OLD_FORMAT,
    Fitted,
    FittedCalibrator,
    name_type,
    to_fitted_value,
)
from calibrant.outputs import find_target, write_whole


def save(
    calibrator: FittedCalibrator,
    path: str | os.PathLike[str],
    *,
    period: Any = None,
    evaluation: Any = None,
    notes: Any = None,
) -> None:
    """Write a fitted calibrator to a JSON file, whole or not at all.

    Parameters
    ----------
    calibrator : fitted calibrator or Fitted
        For a `CalibratedClassifier` pass its ``to_fitted()``: the model is not written.
    path : path of the file
    period : str, or a pair of dates or ISO texts, optional
        The time that the data of the fit are from.
    evaluation : what `evaluate` returns, optional
        Its numbers and intervals are kept as the measures before and after.
    notes : str or list of str, optional
        What a reader of the file should know.

    Notes
    -----
    The last three go into the ``provenance`` of the file, beside the library's version, the method
    with its parameters, and the amount of data. The data are not in the file, but the knots of
    steps and lines are scores of the fit, or lie between two of them.

    A calibrator that is a map of the score is one JSON file, and so is one of trees
    (`FeatureCalibrator`). One that keeps calibration rows
    (`SimilarityBinning`, `ACP`) writes their arrays to a second file beside it, named like it with
    a part of its own checksum and ``.npz``. Keep the two together. Saving again replaces both: the
    JSON file, written last, decides which arrays count, so an interrupted save leaves the old pair.

    A file that is replaced keeps its mode. A link stays a link: what it leads to is replaced, and
    arrays lie there, too. A pipe or a device is written to. O(size of the map).

    Examples
    --------
    >>> import calibrant as cal, tempfile, os
    >>> c = cal.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "c.json")
    >>> cal.save(c, path, period=("2024-01-01", "2024-03-31"))
    >>> bool((cal.load(path).calibrate([0.3]) == c.calibrate([0.3])).all())
    True
    >>> cal.load(path).provenance["period"]
    ('2024-01-01', '2024-03-31')
    """
    fitted, facts = to_fitted_value(calibrator), dict[str, Any]()
    if fitted is None:
        raise InputError(
            f"only a fitted calibrator or a Fitted can be saved, but {name_type(calibrator)} came."
        )
    target = find_target(path)
    file = target.path
    if period is not None:
        facts["period"] = read_period(period)
    if evaluation is not None:
        facts["measures"] = evaluation_facts(evaluation, "as given when the calibrator was saved")
    if notes is not None:
        facts["notes"] = read_notes(notes)
    if facts:
        fitted = replace(fitted, provenance={**fitted.provenance, **facts})
    old = None if target.old is None or target.stream else _array_path_of_file(file)
    document, arrays = fitted.to_dict(), fitted.rule.arrays
    if not arrays:
        _write_json(file, document)
        if old is not None:
            old.unlink(missing_ok=True)
        return
    if target.stream:
        raise InputError(
            f"{fitted.method} is saved as two files, but {path} is a pipe or a device. Name a file."
        )
    content = npz_of_arrays(arrays)
    checksum = hashlib.sha256(content).hexdigest()
    beside = file.with_name(f"{file.name}.{checksum[:12]}.npz")
    entry = {"file": beside.name, "sha256": checksum}
    first = {name: document[name] for name in ("format", "version")}
    document = {**first, "arrays": entry, **document}
    existed = beside.exists()
    write_whole(beside, content)
    try:
        _write_json(file, document)
    except BaseException:
        if not existed:
            beside.unlink(missing_ok=True)
        raise
    if old is not None and old.name != beside.name:
        old.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Fitted:
    """Read a calibrator file. Only data is read; nothing in the file is ever executed.

    Parameters
    ----------
    path : path of the file
        As `save` wrote it; a file of arrays must lie beside it.

    Returns
    -------
    Fitted
        Its ``provenance`` says where it came from, see `save`.

    Notes
    -----
    A file that is foreign, damaged or of a newer format is an InputError that says why. A map that
    was read is a map that works: whatever the file, finite scores get probabilities.
    O(size of the file).

    Examples
    --------
    >>> import calibrant as cal, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "c.json")
    >>> cal.save(cal.Isotonic().fit([0.1, 0.9], [0, 1]), path)
    >>> cal.load(path).method, cal.load(path).provenance["weight"]
    ('Isotonic', 2.0)
    """
    file = Path(path)
    document = read_document(file)
    try:
        keeps_arrays = isinstance(document, dict) and "arrays" in document
        arrays = _read_arrays(file, document["arrays"]) if keeps_arrays else {}
        return Fitted.from_dict(document, arrays)
    except InputError as wrong:
        raise InputError(f"{file}: {wrong}") from wrong


def _write_json(file: Path, document: dict[str, Any]) -> None:
    """Write the JSON file of a calibrator, whole or not at all."""
    try:
        content = json_text(document).encode("utf-8")
    except UnicodeEncodeError as wrong:
        raise InputError(f"this calibrator cannot be written as JSON: {wrong}") from wrong
    write_whole(file, content)


# --- The file of arrays beside it -----------------------------------------------------------------


def _read_arrays(file: Path, entry: Any) -> dict[str, NDArray[Any]]:
    """The arrays of the file that a JSON file names. They are refused if their checksum differs."""
    beside = _array_path(file, entry)
    if beside is None:
        raise InputError("the file is damaged: it names no file of arrays.")
    if not beside.exists():  # nor need a link to the JSON file have one to the arrays beside it
        beside = file.resolve().with_name(beside.name)
    try:
        if not stat.S_ISREG(beside.stat().st_mode):  # a pipe or a device may have no end
            raise InputError(f"{beside.name} must be a file, but it is a folder, pipe or device.")
        content = beside.read_bytes()
    except FileNotFoundError as missing:
        raise InputError(
            f"the arrays must lie beside it in {beside.name}, but there is no such file. Copy both."
        ) from missing
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise InputError(f"{beside.name} is not what was saved with it: the checksum differs.")
    try:
        return arrays_of_npz(content)
    except InputError as wrong:
        raise InputError(f"{beside.name}: {wrong}") from wrong


def _array_path(file: Path, entry: Any) -> Path | None:
    """The path of the file of arrays that the ``entry`` of a JSON file names; None if it is wrong.

    It must be a plain name in the same folder.
    """
    name = entry.get("file") if isinstance(entry, dict) else None
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".npz"):
        return None
    return None if "\0" in name else file.with_name(name)


def _array_path_of_file(file: Path) -> Path | None:
    """The path of the arrays that belong to a calibrator file; None if it has none."""
    try:
        with file.open("rb") as stream:
            head = stream.read(100)  # both words come first
        if OLD_FORMAT.encode() not in head and b'"arrays"' not in head:
            return None
        document = read_document(file)
    except (OSError, InputError):
        return None
    if not isinstance(document, dict) or document.get("format") not in (FORMAT, OLD_FORMAT):
        return None
    found = _array_path(file, document.get("arrays"))
    return found if found is not None and found.name.startswith(file.name + ".") else None


# --- Named arrays as the bytes of an .npz file and back: plain numbers only -----------------------
# `numpy.load` trusts the header of a file, even one that promises a terabyte. Here an array must be
# of one of a few kinds, not compressed, and as long as its header says. Anything else is refused
# before memory is asked for.


#: what a saved array may hold
KINDS = {text: np.dtype(text) for text in ("<f8", "<i8", "<i4", "|b1")}
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    r"\{'descr': '([<|]\w\d)', 'fortran_order': (False|True), 'shape': \(([\d, ]{0,99})\), \} *\n"
)
#: the errors that reading a damaged archive may raise
BROKEN = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


def npz_of_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of an .npz file of these arrays.

    >>> arrays_of_npz(npz_of_arrays({"a": np.arange(3.0)}))
    {'a': array([0., 1., 2.])}
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # np.savez refuses objects only from NumPy 2.1 on
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return stream.getvalue()


def arrays_of_npz(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file that `npz_of_arrays` made; anything else is refused with a reason.

    Cost: O(bytes) of time and memory, whatever the file says of itself.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            names = {one.filename for one in members}
            if any(one.compress_type != zipfile.ZIP_STORED or one.flag_bits & 1 for one in members):
                raise InputError("it must hold plain arrays, not compressed or encrypted ones.")
            if len(names) < len(members) or not all(name.endswith(".npy") for name in names):
                raise InputError(
                    "it must hold arrays of different names, each a .npy, and nothing else."
                )
            if sum(one.file_size for one in members) > len(content):  # entries may share bytes
                raise InputError("its arrays are larger than the file that holds them.")
            return {
                one.filename[:-4]: _read_array(archive.read(one), one.filename) for one in members
            }
    except InputError:
        raise
    except BROKEN as wrong:
        reason = str(wrong)[:200] or "it is cut short"  # names in it may be of any length
        raise InputError(f"it does not hold arrays: {reason}") from wrong


def _read_array(content: bytes, filename: str) -> NDArray[Any]:
    """The array in one member of an archive. A header that does not match its bytes is refused."""
    name = brief(filename)
    if not content.startswith(MAGIC):
        raise InputError(f"it does not hold arrays of format version 1.0, but {name}.")
    start = len(MAGIC) + 2
    (length,) = struct.unpack_from("<H", content, len(MAGIC))
    header = HEADER.fullmatch(content[start : start + length].decode("latin-1"))
    kind = None if header is None else KINDS.get(header[1])
    if header is None or kind is None:
        raise InputError(f"it does not hold arrays of plain numbers, but {name}.")
    shape = tuple(int(size) for size in header[3].replace(",", " ").split())
    data = content[start + length :]
    if prod(shape) * kind.itemsize != len(data):
        raise InputError(f"its {name} says that its shape is {shape}, but holds {len(data)} bytes.")
    if kind.kind == "b" and np.frombuffer(data, dtype=np.uint8).max(initial=0) > 1:
        raise InputError(f"its {name} holds bytes that are neither false nor true.")
    array = np.frombuffer(data, dtype=kind)
    return array.reshape(shape, order="F" if header[2] == "True" else "C")


# --- The text of a calibrator file: JSON that people can read, too --------------------------------


#: numbers on a line
PER_LINE = 5


def to_json(calibrator: FittedCalibrator) -> str:
    """The calibrator as JSON: the text of the file that `save` writes.

    Parameters
    ----------
    calibrator : fitted calibrator, or Fitted (what `load` returns)

    Returns
    -------
    str
        One JSON object and a line break. Floats are written so that they are read back bit for
        bit; what each field means is in ``docs/reference/format.md``, and a JSON schema beside it.

    Notes
    -----
    O(size of the map).

    Examples
    --------
    >>> from calibrant.maps import Piecewise
    >>> fitted = Fitted(Piecewise.step([0.5], [0.1, 0.8]), ("ham", "spam"), "spam")
    >>> json.loads(to_json(fitted))["map"]["kind"]
    'piecewise'
    """
    fitted = to_fitted_value(calibrator)
    if fitted is None:
        raise InputError(
            "calibrator must be a fitted calibrator or what load returns, but "
            f"{name_type(calibrator)} came. A bare map has to_dict()."
        )
    if fitted.rule.arrays:
        raise InputError(
            f"{fitted.method} cannot be one JSON text: it keeps calibration rows, which are arrays "
            "in a second file beside the JSON. Write both with calibrant.save."
        )
    return json_text(fitted.to_dict())


def json_text(document: dict[str, Any]) -> str:
    """A document as JSON text, with a line for each member of an object, and for every few numbers.

    >>> print(json_text({"x": [0.5, 1.0], "terms": [["z", 2.0]]}), end="")
    {
     "x": [0.5, 1.0],
     "terms": [
      ["z", 2.0]
     ]
    }
    """
    try:
        return _indented(document, "\n") + "\n"
    except (TypeError, ValueError) as wrong:
        raise InputError(f"this calibrator cannot be written as JSON: {wrong}") from wrong


def _indented(value: Any, margin: str) -> str:
    """A value as JSON text; ``margin`` is a line break and the blanks before its lines."""
    inner = margin + " "
    if isinstance(value, dict) and value:
        parts = [f"{json.dumps(key)}: {_indented(item, inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{margin}}}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return f"[{inner}{f',{inner}'.join(_indented(item, inner) for item in value)}{margin}]"
    if isinstance(value, list) and set(map(type, value)) == {float}:
        numbers = _on_one_line(value)[1:-1].split(", ")
        starts = range(0, len(numbers), PER_LINE)
        lines = [", ".join(numbers[start : start + PER_LINE]) for start in starts]
        return f"[{f',{inner}'.join(lines)}]"
    return _on_one_line(value)


def _on_one_line(value: Any) -> str:
    """A value as JSON text on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
