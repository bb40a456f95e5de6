"""Lines of JSON as they come: columns are taken out of their text, and values put into it.

All by Spark's own expressions: its workers need no Python.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from calibrant.engines.spark import functions
from calibrant.engines.spark.file_frame import LINE, failure, not_text, quoted
from calibrant.engines.spark.folders import refuse_both
from calibrant.engines.spark.session import Spark
from calibrant.errors import import_extra

#: what Spark would take besides JSON
STRICT = {"allowSingleQuotes": "false"}
BLANKS = " \t\r"
#: the parts of a line of JSON; no group is tried twice, so that long strings need no stack
PART = r'(?s)"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|\s++|[^"{}\[\],:\s]++'


def json_lines(
    spark: Spark, found: list[str], wanted: Sequence[str], files: Sequence[str]
) -> tuple[Any, tuple[str, ...]]:
    """A frame of the lines of files and of the wanted columns, and the keys of all lines.

    Parameters
    ----------
    spark : Spark
    found : the files as Spark is told them
    wanted : names of columns, with or without the blanks around them
    files : the files' names, for messages

    Notes
    -----
    Columns have the types that Spark finds in all lines. Blank lines are left out. A line that is
    no object, or more than one, or has a key twice, makes the job fail with an InputError.
    """
    types = import_extra("pyspark.sql.types", extra="spark")
    reader = spark.session.read.options(lineSep="\n", recursiveFileLookup=True, mode="FAILFAST")
    schema = spark.call(partial(reader.options(**STRICT).json, found)).schema
    reader = spark.session.read.options(lineSep="\n").schema(f"{LINE} STRING")
    text = spark.call(partial(reader.text, found))
    folders = text.columns[1:]
    refuse_both(folders, schema.names, files[0])
    asked = {name.strip() for name in wanted}
    fields = [field for field in schema.fields if field.name.strip() in asked]
    line = functions.col(LINE)
    rows = text.filter(functions.trim(line, functions.lit(BLANKS)) != "")
    rows = rows.withColumn(LINE, _checked(line, files[0] if len(files) == 1 else "the files"))
    if not fields:
        return rows, tuple(schema.names)
    values = functions.from_json(line, types.StructType(fields), {**STRICT, "mode": "FAILFAST"})
    kept = [line, *(functions.col(quoted(name)) for name in folders)]
    row = f"calibrant_row_{secrets.token_hex(4)}"
    columns = [functions.col(row)[field.name].alias(field.name) for field in fields]
    frame = rows.select(*kept, values.alias(row)).select(*kept, *columns)
    return frame, tuple(schema.names)


def _checked(line: Any, what: str) -> Any:
    """The line; one that is not a single object, with every key once, makes the job fail."""
    # Spark reads one value and passes over what comes after it. Here the line is the first of two
    # in an array, and the other has a name that no line holds
    end = f"calibrant_{secrets.token_hex(8)}"
    array = functions.concat(functions.lit("["), line, functions.lit(f',{{"{end}":""}}]'))
    pair = functions.from_json(array, "array<map<string,string>>", STRICT)
    keys, last = (functions.map_keys(functions.get(pair, functions.lit(i))) for i in (0, 1))
    alone = keys.isNotNull() & functions.array_contains(last, end)
    twice = functions.size(keys) != functions.size(functions.array_distinct(keys))
    start = functions.left(line, functions.lit(80))
    one = failure(
        "string",
        f'{what} must hold one object in a line, but "',
        start,
        '" came. Drop or correct such lines.',
    )
    once = failure(
        "string",
        f"{what} must have every key once in a row, but one comes twice: ",
        start,
        ". Rename or drop one of them.",
    )
    return (
        functions.when(~functions.is_valid_utf8(line), not_text(what))
        .when(functions.coalesce(~alone, functions.lit(True)), one)
        .when(twice, once)
        .otherwise(line)
    )


# --- writing ------------------------------------------------------------------------------------


def with_members(line: Any, members: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """A line with more keys at its end, or other values for those that it has.

    Parameters
    ----------
    line : Column
    members : columns by their keys
    keys : those that some lines have; a value of theirs is replaced in its place

    Notes
    -----
    All other bytes stay.
    """
    added = []
    for name, column in members.items():
        array = functions.to_json(functions.array(column))  # numbers, words and null as JSON
        value = functions.substr(array, functions.lit(2), functions.length(array) - 2)
        member = functions.concat(functions.lit(json.dumps(name, ensure_ascii=False) + ":"), value)
        if name in keys:
            line = _set_member(line, name, value, member)
        else:
            added.append(member)
    return _appended(line, functions.concat_ws(",", *added)) if added else line


def _appended(line: Any, members: Any) -> Any:
    end = functions.length(functions.rtrim(line, functions.lit(BLANKS)))  # where the brace is
    start = functions.left(line, end - 1)
    comma = functions.when(start.rlike(r"^\s*\{\s*$"), "").otherwise(",")
    return functions.concat(start, comma, members, functions.substr(line, end))


def _set_member(line: Any, name: str, value: Any, member: Any) -> Any:
    """The line with one value replaced, or the key at the end where it is not there."""
    keys = functions.map_keys(functions.from_json(line, "map<string,string>", STRICT))
    place = functions.array_position(keys, name)
    parts = functions.regexp_extract_all(line, functions.lit(PART), functions.lit(0))
    # colons and commas of the object itself: after an odd number of them comes a value
    wanted = 2 * place - 1
    names = ("at", "depth", "marks", "first", "last")
    before = functions.struct(*(functions.lit(0).alias(name) for name in names))
    walked = functions.aggregate(parts, before, lambda state, part: _walk(state, part, wanted))
    first, last = walked["first"], walked["last"]
    replaced = functions.concat(
        functions.array_join(functions.slice(parts, functions.lit(1), first - 1), ""),
        value,
        functions.array_join(functions.slice(parts, last + 1, functions.size(parts) - last), ""),
    )
    return functions.when(place > 0, replaced).otherwise(_appended(line, member))


def _walk(state: Any, part: Any, wanted: Any) -> Any:
    """One part further: how deep it is, and whether it is the first or last of a value."""
    at, depth, marks = state["at"] + 1, state["depth"], state["marks"]
    opened, closed = part.isin("{", "["), part.isin("}", "]")
    own = depth == 1
    inside = (marks == wanted) & (functions.trim(part, functions.lit(BLANKS)) != "")
    inside = inside & ~(own & (part.isin(",", "}")))
    first = functions.when(inside & (state["first"] == 0), at).otherwise(state["first"])
    return functions.struct(
        at.alias("at"),
        (depth + opened.cast("int") - closed.cast("int")).alias("depth"),
        (marks + (own & part.isin(",", ":")).cast("int")).alias("marks"),
        first.alias("first"),
        functions.when(inside, at).otherwise(state["last"]).alias("last"),
    )
