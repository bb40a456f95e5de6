"""The text of a calibrator file: JSON that people can read, too."""

from __future__ import annotations

import json
from typing import Any

from calibrant.errors import InputError
from calibrant.estimators.fitted import Fitted
from calibrant.export.map_given import came, value_of

#: numbers on a line
PER_LINE = 5


def to_json(calibrator: Any) -> str:
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
    fitted = value_of(calibrator)
    if fitted is None:
        raise InputError(
            "calibrator must be a fitted calibrator or what load returns, but "
            f"{came(calibrator)} came. A bare map has to_dict()."
        )
    if not isinstance(fitted, Fitted):
        document, arrays = fitted.to_parts()
        if not arrays:
            return json_text(document)
        raise InputError(
            f"{fitted.method} cannot be one JSON text: it keeps calibration rows, which are arrays "
            "in a second file beside the JSON. Write both with calibrant.save."
        )
    return json_text(fitted.to_dict())


def json_text(document: dict[str, Any]) -> str:
    """A document as text, with a line for each member of an object, and for every few numbers.

    >>> print(json_text({"x": [0.5, 1.0], "terms": [["z", 2.0]]}), end="")
    {
     "x": [0.5, 1.0],
     "terms": [
      ["z", 2.0]
     ]
    }
    """
    try:
        return _text(document, "\n") + "\n"
    except (TypeError, ValueError) as wrong:
        raise InputError(f"this calibrator cannot be written as JSON: {wrong}") from wrong


def _text(value: Any, margin: str) -> str:
    inner = margin + " "
    if isinstance(value, dict) and value:
        parts = [f"{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{margin}}}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return f"[{inner}{f',{inner}'.join(_text(item, inner) for item in value)}{margin}]"
    if isinstance(value, list) and set(map(type, value)) == {float}:
        numbers = _plain(value)[1:-1].split(", ")
        starts = range(0, len(numbers), PER_LINE)
        lines = [", ".join(numbers[start : start + PER_LINE]) for start in starts]
        return f"[{f',{inner}'.join(lines)}]"
    return _plain(value)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
