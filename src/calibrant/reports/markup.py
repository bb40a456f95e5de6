"""HTML and SVG as text, where whatever is not markup already is escaped.

Names of columns, labels and files come from data: nothing of them may become a tag, an attribute, a
script or a line that ends one.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any

#: control characters and halves of surrogate pairs, which no page may hold
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
#: elements that have no content
_VOID = frozenset({"br", "circle", "input", "line", "meta", "path", "polygon", "polyline", "rect"})
#: those of them that belong to SVG are closed in themselves
_CLOSED = _VOID - {"br", "input", "meta"}


class Markup(str):
    """Text that is markup: made by `element` and `join`, never from data."""

    __slots__ = ()


def cleaned(text: Any) -> str:
    """A text that a page may hold: what has no place in HTML becomes the replacement character.

    >>> cleaned("a" + chr(0) + "b").encode("unicode_escape")
    b'a\\\\ufffdb'
    """
    return _FORBIDDEN.sub("\ufffd", str(text))


def _escaped(child: Any) -> str:
    return child if isinstance(child, Markup) else html.escape(cleaned(child))


def join(parts: Iterable[Any], between: str = "") -> Markup:
    """Parts one after the other, each escaped unless it is markup.

    >>> join(["<", element("br")])
    '&lt;<br>'
    """
    return Markup(_escaped(between).join(_escaped(part) for part in parts))


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element with escaped children and attributes.

    An underscore in the name of an attribute stands for a hyphen, and one at its end for nothing:
    ``class_`` is class. An attribute of value None or False is left out, one of value True stands
    alone.

    >>> element("p", "a < b", title='"><script>', data_show="all", hidden=True, id=None)
    '<p title="&quot;&gt;&lt;script&gt;" data-show="all" hidden>a &lt; b</p>'
    """
    words = [name]
    for key, value in attributes.items():
        called = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(called)
        elif value is not None and value is not False:
            words.append(f'{called}="{html.escape(cleaned(value))}"')
    head = " ".join(words)
    if name in _VOID:
        return Markup(f"<{head}/>" if name in _CLOSED else f"<{head}>")
    return Markup(f"<{head}>{join(children)}</{name}>")


def script_json(document: Any) -> Markup:
    """JSON that can stand inside a script element: no ``<``, ``>`` or ``&`` is left in it.

    >>> script_json({"</script>": 1})
    '{"\\\\u003c/script\\\\u003e":1}'
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
