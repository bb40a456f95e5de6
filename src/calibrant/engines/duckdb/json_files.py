"""JSON files: every row is kept as the text that it came as, and columns are taken out of it.

DuckDB's own columns of JSON would turn ``"20-01-02"`` into a date and 10**30 into a float.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.engines.duckdb.source import Source, literal, pattern
from calibrant.errors import InputError, import_extra

Query = Callable[[str], list[tuple[Any, ...]]]

#: the column with a row's text
LINE = "json"
#: rows whose keys give the order of the columns; keys that come later are sorted
HEAD = 1_000

WHOLE = {"UBIGINT", "BIGINT"}
BLANKS = " \t\n\r"


def json_source(
    query: Query, path: Path, layout: str, wanted: Sequence[str], *, every: bool = False
) -> Source:
    """The keys of a JSON file's objects, and the types of those wanted.

    Parameters
    ----------
    query : runs SQL
    path : Path
    layout : {"newline_delimited", "auto"}
    wanted : names of columns
        The others have the type JSON, unless ``every`` type shall be known.
    """
    relation = f"read_json_objects({pattern(path)}, format='{layout}', hive_partitioning=false)"
    names = _keys(query, path, relation)
    asked = {name.strip() for name in wanted}
    typed = [name for name in names if every or name.strip() in asked]
    rows, found = _types(query, path, relation, typed)
    types = tuple(found.get(name, "JSON") for name in names)
    columns = tuple(map(_column, names, types))
    return Source(path, "json", names, columns, types, relation, rows=rows)


def key_of(name: str) -> str:
    """Where a key's value is, as SQL.

    >>> key_of("a/b")
    "'/a~1b'"
    """
    return literal("/" + name.replace("~", "~0").replace("/", "~1"))


def _keys(query: Query, path: Path, relation: str) -> tuple[str, ...]:
    """All keys of all objects, in the order of the first rows."""
    first = query(f"SELECT json_keys({LINE}) FROM {relation} LIMIT {HEAD}")
    names = dict.fromkeys(key for (keys,) in first for key in keys)
    others = query(f"SELECT DISTINCT unnest(json_keys({LINE})) FROM {relation}")
    names.update(dict.fromkeys(sorted(key for (key,) in others if key not in names)))
    if not first:
        raise InputError(f"{path.name} is empty. It must hold named columns and rows of data.")
    return tuple(names)


def _types(query: Query, path: Path, relation: str, names: list[str]) -> tuple[int, dict[str, str]]:
    """How many rows there are, and the SQL type of each column, told from all its values.

    Every row must be an object, with every key once.
    """
    keys = f"json_keys({LINE})"
    asked = [
        "count(*)",
        f"count(*) FILTER (json_type({LINE}) <> 'OBJECT')",
        f"count(*) FILTER (len({keys}) <> len(list_distinct({keys})))",
    ]
    for name in names:
        kind, value = f"json_type({LINE}, {key_of(name)})", f"{LINE} ->> {key_of(name)}"
        asked.append(f"list(DISTINCT {kind}) FILTER ({kind} <> 'NULL')")
        large = f"({kind} = 'UBIGINT' AND TRY_CAST({value} AS BIGINT) IS NULL)"
        larger = f"({kind} = 'DOUBLE' AND regexp_full_match({value}, '-?[0-9]+'))"
        asked.append(f"coalesce(bool_or({large} OR {larger}), false)")
    rows, other, twice, *found = query(f"SELECT {', '.join(asked)} FROM {relation}")[0]
    if other:
        raise InputError(
            f'{path.name} must hold objects such as {{"score": 0.5}}, but {other:,} rows are '
            "something else. Drop them."
        )
    if twice:
        raise InputError(
            f"{path.name} must have every key once in a row, but {twice:,} rows have one twice. "
            "Rename or drop one of them."
        )
    pairs = zip(found[::2], found[1::2], strict=True)
    types = {
        name: _type(set(kinds or ()), large)
        for name, (kinds, large) in zip(names, pairs, strict=True)
    }
    return rows, types


def _type(kinds: set[str], large: bool) -> str:
    if not kinds:
        return "JSON"
    if kinds <= WHOLE:
        return "JSON" if large else "BIGINT"
    if kinds <= {*WHOLE, "DOUBLE"}:
        return "JSON" if large else "DOUBLE"
    if len(kinds) == 1:
        return {"OBJECT": "STRUCT", "ARRAY": "JSON[]"}.get(*kinds, *kinds)
    return "JSON"


def _column(name: str, kind: str) -> str:
    """SQL of a column: a value of its type, or JSON where it has none."""
    if kind in ("BIGINT", "DOUBLE", "BOOLEAN"):
        return f"({LINE} ->> {key_of(name)})::{kind}"
    if kind == "VARCHAR":
        return f"({LINE} ->> {key_of(name)})"
    return f"nullif({LINE} -> {key_of(name)}, 'null'::JSON)"


# --- writing ------------------------------------------------------------------------------------


def appended(members: Mapping[str, str]) -> str:
    """SQL of a row's text with more keys at its end, their values given as SQL of JSON.

    All other bytes stay. Line ends can stand only between the parts of a row, and become blanks.
    """
    start = f"left({one_line()}, -1)"
    comma = f"CASE WHEN regexp_full_match({start}, '\\{{\\s*') THEN '' ELSE ',' END"
    listed = [
        f"{literal(json.dumps(name, ensure_ascii=False) + ':')} || coalesce({value}, 'null')"
        for name, value in members.items()
    ]
    joined = " || ',' || ".join(listed)
    return f"{start} || {comma} || {joined} || '}}'"


def one_line() -> str:
    """SQL of a row's text without line ends."""
    return f"translate({LINE}::VARCHAR, chr(10) || chr(13), '  ')"


def set_member(text: str, name: str, value: str) -> str:
    """An object's text with one value replaced, or the key at the end where it is not there.

    >>> set_member('{"a": 1.50, "b":[1 ,2]}', "b", "0.5")
    '{"a": 1.50, "b":0.5}'
    >>> set_member('{ }', "b", "0.5"), set_member('{"a":1}', "b", "0.5")
    ('{ "b":0.5}', '{"a":1,"b":0.5}')
    """
    decode = json.JSONDecoder().raw_decode
    place = _after(text, text.index("{") + 1)
    empty = text[place] == "}"
    while text[place] != "}":
        key, place = decode(text, place)
        start = _after(text, _after(text, place) + 1)
        end = decode(text, start)[1]
        if key == name:
            return text[:start] + value + text[end:]
        place = _after(text, end)
        if text[place] == ",":
            place = _after(text, place + 1)
    comma = "" if empty else ","
    return f"{text[:place]}{comma}{json.dumps(name, ensure_ascii=False)}:{value}{text[place:]}"


def _after(text: str, place: int) -> int:
    """The next place that is not blank."""
    while text[place] in BLANKS:
        place += 1
    return place


def member_setter() -> Callable[..., Any]:
    """A function of Arrow columns: lines of JSON, a key, and its new values in them."""
    pyarrow = import_extra("pyarrow", extra="cli")

    def of_lines(lines: Any, names: Any, values: Any) -> Any:
        rows = zip(lines.to_pylist(), names.to_pylist(), values.to_pylist(), strict=True)
        return pyarrow.array([set_member(*row) for row in rows])

    return of_lines
