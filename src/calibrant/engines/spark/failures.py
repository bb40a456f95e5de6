"""What Spark says when something fails, in one line of ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

#: how a message that our own expressions raise begins
RAISED = "calibrant: "

#: what to do where no cluster answers
CHECK = "Check its address, and that it runs."

#: an AnalysisException is a mistake of the program, except for these conditions of the data
OF_DATA = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "FAILED_READ_FILE", "COLUMN_ALREADY_EXISTS")

#: patterns of Spark's messages, and our words for them; the first that fits is used. {} stands for
#: the file, \\1 for what the pattern has found
KNOWN: dict[str, str] = {
    rf"{RAISED}(.+?)(?: SQLSTATE: \w+)?(?:\n|$)": r"\1",
    r"(No space left on device|Disk quota exceeded)": (
        r"\1: free some, or write elsewhere. Spark also spills, to the folder named by TMPDIR."
    ),
    r"AccessControlException|Permission denied|Mkdirs failed to create": (
        "a file or folder cannot be read or written: permission denied. Check its owner and mode."
    ),
    r"OutOfMemoryError|maxResultSize": (
        "the work needs more memory than is allowed. Raise the memory limit, use fewer threads, or "
        "take fewer cells."
    ),
    r"Malformed CSV record: (.{0,80}?) ?(?:SQLSTATE|\n|$)": (
        r"{}: a line has more or fewer fields than the header: '\1'. Quote fields that hold the "
        "separator, and drop lines that are not data."
    ),
    r"Length of parsed input \(\d+\) exceeds|maximum number of characters": (
        "{} has a field of more than a million characters. Most often a quote was not closed: "
        "close or double it."
    ),
    r"Unescaped quote character": (
        "{} has a quote inside a quoted field, or one that does not end. Double those within "
        "fields, and close the others."
    ),
    r"CSV header does not conform to the schema": (
        "all files must have the same columns in the same order, but {} differs. Use one by one."
    ),
    r"JsonParseException: ([^\n]{0,60})|JsonEOFException: ([^\n]{0,60})": (
        r"{} holds a line that is no JSON: \1\2."
    ),
    r"INVALID_JSON_RECORD_TYPE": (
        'files of JSON must hold objects such as {"score": 0.5}, but something else came. Drop it.'
    ),
    r"COLUMN_ALREADY_EXISTS\] The column `(.+?)` already": (
        r"every column or key must come once in a row, but '\1' comes twice. Rename or drop one of "
        "them."
    ),
    r"MALFORMED_RECORD_IN_PARSING": "{} holds a line that cannot be read.",
    r"is not a Parquet file|CANNOT_READ_FILE_FOOTER": "{} is not a Parquet file, or is damaged.",
    r"(?:Path does not exist: |File does not exist: |FileNotFoundException: File )(\S+?)\.?\s": (
        r"there is no file \1 (on a cluster, every machine must see it)."
    ),
    r"not a gzip file|ZipException|EOFException|incorrect header|invalid (block|stored|code)": (
        "{} cannot be read: it is no gzip file, damaged or cut short."
    ),
    r"Class (\S+FileSystem) not found|No FileSystem for scheme": (
        "Spark cannot reach this kind of URL without a package for it: name it by the setting "
        "spark.jars.packages, for example org.apache.hadoop:hadoop-aws:3.4.2 for s3a://."
    ),
    r"Call From \S+ to (\S+) failed|UnknownHostException: (\S+)": r"nothing answers at \1\2.",
    r"ExecutorLostFailure|executor .{0,40} exited|All masters are unresponsive": (
        "the cluster lost the processes that did the work, more often than it tries again. Look "
        "into its logs; often their memory is too small."
    ),
    r"Py4JNetworkError|Connection(Refused|Reset)Error|Answer from Java side is empty": (
        "the Spark driver ended unexpectedly; most often its memory was too small. Raise the "
        "memory limit."
    ),
}


def reworded(error: BaseException) -> str | None:
    """An error of Spark in our words; None if it is a mistake of the program, to be left loud."""
    if not _is_sparks(error) or _is_ours(error):
        return None
    text = "\n".join([*_messages(error), type(error).__name__])
    at = re.search(r"(?:while reading file|CSV file:) (\S+?)\.?(?:\s|$)", text)
    file = name_of(at[1]) if at else "a file or folder"
    for expression, words in KNOWN.items():
        match = re.search(expression, text)
        if match:
            return match.expand(words).replace("{}", file).strip()
    return f"Spark could not do the work: {_first_line(text)}"


def why_not_started(error: BaseException, log: Path, master: str) -> str:
    """Why there is no session: what is wrong with Java, with the settings, or with the master."""
    try:
        said = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        said = ""
    if "UnsupportedClassVersionError" in said:
        return "Spark needs Java 17 or newer, but an older one was found. Set JAVA_HOME."
    text = "\n".join(_messages(error))
    lost = re.search("unresponsive|UnknownHost|Failed to connect|refused", said + text)
    if lost and not master.startswith("local"):
        return f"no Spark cluster answers at {master}. {CHECK}"
    told = re.search(r"^.*(?:Error|Exception)\b.*\n?.*", said, re.MULTILINE)
    why = told[0] if told else _first_line(text)
    return f"Spark could not be started as {master}: {' '.join(why.split())[:300]}"


def name_of(url: str) -> str:
    """The last part of a path or URL, for messages.

    >>> name_of("hdfs://host/data/part-0.csv")
    'part-0.csv'
    """
    return url.rstrip("/").rsplit("/", 1)[-1]


def _is_sparks(error: BaseException) -> bool:
    homes = {cls.__module__.split(".", maxsplit=1)[0] for cls in type(error).__mro__}
    return bool(homes & {"pyspark", "py4j"}) or isinstance(error, ConnectionError)


def _is_ours(error: BaseException) -> bool:
    """Names and types that do not fit: the query is wrong, not the data."""
    if type(error).__name__ not in ("AnalysisException", "ParseException"):
        return False
    condition = getattr(error, "getCondition", lambda: None)() or ""
    return not condition.startswith(OF_DATA)


def _messages(error: BaseException) -> list[str]:
    """The message of an error and of all that caused it, on the side of Java too."""
    found = [str(error)]
    cause: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(20):
        if cause is None:
            break
        try:
            found.append(str(cause.toString()))
            cause = cause.getCause()
        except Exception:  # the driver is gone, and its objects with it
            break
    return found


def _first_line(text: str) -> str:
    """The first line that says something: not that of the bridge, no class names."""
    for line in text.splitlines():
        words = re.sub(r"^(: )?([\w.$]+(Exception|Error): )+", "", line.strip())
        if words and not words.startswith("An error occurred while calling"):
            return words[:300]
    return "no reason was given"
