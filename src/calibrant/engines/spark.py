"""One Spark session for one job: quiet, interruptible, and speaking in our words."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from calibrant.errors import InputError, MissingExtraError, ParameterError, import_extra
from calibrant.outputs import TemporaryFolder
from calibrant.running import off_main_thread

T = TypeVar("T")

#: called now and then with the fraction that is done, 0 to 1
Progress = Callable[[float], None]

MASTER = re.compile(r"local(-cluster)?(\[.*\])?$|yarn$|(spark|k8s|mesos)://.+$")
SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT])(?:I?B)?\s*$", re.IGNORECASE)
MEGABYTES = {"k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20}
#: Spark starts with no less
LEAST = 512


class Spark:
    """A quiet Spark session for one job, which removes all that it leaves on disk.

    A session that is already active is used as it is, and left open.

    Parameters
    ----------
    master : str, default="local[*]"
        ``local[*]`` for all cores of this machine, ``spark://host:7077``, ``yarn``, ``k8s://...``
        or ``local-cluster[2,1,1024]`` for a cluster.
    threads : int, optional
        How many cores of this machine to use, with a local master.
    memory : str, optional
        Such as ``"2GB"``: of the one process of a local master, of each executor otherwise.
        Default: 1 GB and 256 MB per core, at most 80 % of the machine's memory; the cluster's own.
    progress : callable, optional
        Called a few times a second with the fraction of tasks done.
    config : mapping, optional
        Settings of Spark by name, which come before ours.

    Attributes
    ----------
    session : pyspark.sql.SparkSession
    started : bool
        Whether the session was started here, and is stopped by `close`.

    Notes
    -----
    Whatever Spark logs goes to a file in a temporary folder, which is removed at the end with all
    that was spilled. The time zone is the machine's.
    """

    def __init__(
        self,
        master: str = "local[*]",
        *,
        threads: int | None = None,
        memory: str | None = None,
        progress: Progress | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self._sql = import_extra("pyspark.sql", extra="spark")
        self._progress = progress
        self._gateway: Any = None
        self.session: Any = self._sql.SparkSession.getActiveSession()
        self.started = self.session is None
        if not self.started:
            return
        settings = _spark_settings(master, threads, memory)
        require_java()
        _refuse_absent_cluster(master)
        self._folder = TemporaryFolder()
        try:
            self._start({**settings, **(config or {})})
        except BaseException:
            self.close()
            raise

    def _start(self, settings: Mapping[str, str]) -> None:
        pyspark = import_extra("pyspark", extra="spark")
        gateways = import_extra("pyspark.java_gateway", extra="spark")
        folder = Path(self._folder.name)
        conf = pyspark.SparkConf(loadDefaults=False)
        conf.set("spark.local.dir", str(folder / "local"))
        conf.set("spark.sql.warehouse.dir", (folder / "warehouse").as_uri())
        conf.setAll(settings.items())
        log = folder / "log.txt"
        main = threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGINT) if main else None  # no other thread may set it
        try:
            with log.open("wb") as stream, _interrupts_later(handler):
                mute = {"stdout": stream, "stderr": subprocess.STDOUT}
                self._gateway = gateways.launch_gateway(conf, mute)
            # what spark-defaults.conf and the command line of spark-submit hold is known by now
            with warnings.catch_warnings():  # of a pandas that is not used here
                warnings.filterwarnings("ignore", "PySpark does not yet fully", FutureWarning)
                context = pyspark.SparkContext(conf=conf, gateway=self._gateway)
            self.session = self._sql.SparkSession(context)
        except Exception as wrong:
            raise InputError(why_not_started(wrong, log, settings["spark.master"])) from wrong
        finally:
            if handler is not None:  # Spark's own would stay after its end
                signal.signal(signal.SIGINT, handler)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the session, if it was started here, and remove its files."""
        if not self.started:
            return
        logs = None
        if self.session is not None:
            with suppress(Exception):  # the driver may have died, which was told already
                context = self.session.sparkContext
                if context.master.startswith("local-cluster"):  # its workers remove no logs
                    homes = import_extra("pyspark.find_spark_home", extra="spark")
                    logs = Path(homes._find_spark_home(), "work", context.applicationId)
                self.session.stop()
            self.session = None
        if self._gateway is not None:
            _shut_down(self._gateway)
            self._gateway = None
        if logs is not None:
            shutil.rmtree(logs, ignore_errors=True)
            with suppress(OSError):  # others are there
                logs.parent.rmdir()
        self._folder.cleanup()

    # --- running --------------------------------------------------------------------------------

    def call(self, work: Callable[[], T]) -> T:
        """The result of some work with Spark. It runs on another thread, so that Ctrl-C works at
        once.

        Whatever Spark does in it is one group of jobs: its tasks are what the progress counts,
        and an interruption cancels them and waits for their end.
        """
        context, group = self.session.sparkContext, f"calibrant-{secrets.token_hex(8)}"
        most = 0.0

        def grouped() -> T:
            context.setJobGroup(group, "calibrant", interruptOnCancel=True)
            with _no_printed_errors():
                return work()

        def show_progress() -> None:
            nonlocal most
            if self._progress:
                with suppress(Exception):  # a lost driver is told by the work itself
                    most = max(most, _share_of_tasks_done(context.statusTracker(), group))
                self._progress(most)

        try:
            return off_main_thread(
                grouped,
                meanwhile=show_progress,
                every=0.2,
                stop=lambda: context.cancelJobGroup(group),
                # Spark ties a group to a thread; this kind also closes its line to the JVM
                thread=import_extra("pyspark", extra="spark").InheritableThread,
            )
        except Exception as error:
            words = reworded(error)
            if words is None:
                raise
            raise InputError(words) from error
        except BaseException:
            _wait_for_tasks(context)
            raise


def _wait_for_tasks(context: Any, seconds: float = 5.0) -> None:
    """Wait until cancelled tasks have ended, since they may still write files."""
    ends = time.monotonic() + seconds
    with suppress(Exception, KeyboardInterrupt):  # a lost driver has no tasks
        tracker = context._jsc.sc().statusTracker()
        while time.monotonic() < ends:
            if not any(info.numRunningTasks() for info in tracker.getExecutorInfos()):
                return
            time.sleep(0.05)


# --- settings -----------------------------------------------------------------------------------


def require_java() -> None:
    """Refuse to go on where there is no Java.

    As Spark's scripts do, JAVA_HOME is believed before the PATH.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        # by its folder: only then java.exe is found, too
        found, where = shutil.which("java", path=str(Path(home) / "bin")), f"JAVA_HOME ({home})"
    else:
        found, where = shutil.which("java"), "the PATH"
    if found is None:
        raise MissingExtraError(
            f"Spark needs Java 17 or newer, but there is no java in {where}. Install it, for "
            "example openjdk-17-jre-headless, or use the engine duckdb, which needs none."
        )


def _refuse_absent_cluster(master: str) -> None:
    """Refuse a cluster that does not answer. Spark would wait for it a minute and more."""
    places = re.findall(r"(?:spark://|,)([^,:]+|\[[^]]+\]):([0-9]+)", master)
    for host, port in places:
        with suppress(OSError):
            socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
            return
    if places and master.startswith("spark://"):
        raise InputError(f"no Spark cluster answers at {master}. {CHECK}")


def _spark_settings(master: str, threads: int | None, memory: str | None) -> dict[str, str]:
    """The settings of Spark for this master, number of threads and memory."""
    if not MASTER.match(master):
        raise ParameterError(
            "master must be local[*], local[n], local-cluster[n,cores,MB], spark://host:port, yarn "
            f"or k8s://host:port, but {master!r} came."
        )
    local = not master.startswith("local-cluster") and master.startswith("local")
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ParameterError(
                f"threads must be a whole number of at least 1, but {threads!r} came."
            )
        if not local:
            raise ParameterError(
                f"threads must be left out with the master {master}, which has its own cores."
            )
        master = f"local[{threads}]"
    settings = {
        "spark.app.name": "calibrant",
        "spark.master": master,
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.caseSensitive": "true",  # files may have columns p and P
    }
    if local:
        here = "127.0.0.1"  # also where the machine's own name leads nowhere
        settings |= {"spark.driver.bindAddress": here, "spark.driver.host": here}
        megabytes = 1000 + 256 * (threads or os.cpu_count() or 1)
        with suppress(AttributeError, ValueError, OSError):  # not told by every system
            machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
            megabytes = max(LEAST, min(megabytes, int(0.8 * machine)))
        settings["spark.driver.memory"] = _java_memory(memory) if memory else f"{megabytes}m"
    elif memory:
        settings["spark.executor.memory"] = _java_memory(memory)
    return settings


def _java_memory(memory: str) -> str:
    """A size such as "2GB" as Java wants it.

    >>> _java_memory("2GB"), _java_memory("1.5 g")
    ('2048m', '1536m')
    """
    match = SIZE.match(memory)
    megabytes = float(match[1]) * MEGABYTES[match[2].lower()] if match else 0.0
    if megabytes < LEAST:
        raise ParameterError(
            f"memory must be a size such as '2GB', and at least {LEAST}MB for Spark, but "
            f"{memory!r} came."
        )
    return f"{round(megabytes)}m"


# --- the process behind the session -------------------------------------------------------------


@contextmanager
def _no_printed_errors() -> Iterator[None]:
    """Keep PySpark from printing errors that it raises as well."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # a version that does not print it
        yield
        return
    loggers = [PySparkLogger.getLogger(f"{of}QueryContextLogger") for of in ("SQL", "DataFrame")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextmanager
def _interrupts_later(handler: Any) -> Iterator[None]:
    """Put off a Ctrl-C until the end of the block, so that no Java process is left behind.

    A second one is not kept. ``handler`` is what Ctrl-C does otherwise, None on another thread.
    """
    kept: list[Any] = []

    def keep(number: int, at: Any) -> None:
        kept.append((number, at))
        if len(kept) > 1:
            raise KeyboardInterrupt

    if handler is not None:
        signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if kept and callable(handler):
        handler(*kept[0])


def _shut_down(gateway: Any) -> None:
    """End the Java process that was started here."""
    context = import_extra("pyspark", extra="spark").SparkContext
    active = context._active_spark_context
    if active is not None and active._gateway is gateway:  # begun, but no session came of it
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a driver that is gone
            active.stop()
        context._active_spark_context = None
    if context._gateway is gateway:
        context._gateway = context._jvm = None
    with suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    if process is None:
        return
    with suppress(OSError):
        process.stdin.close()  # by which the JVM learns that it is time to go
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _share_of_tasks_done(tracker: Any, group: str) -> float:
    """The share of a job group's known tasks that are done."""
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
    ids = {int(stage) for job in jobs for stage in job.stageIds}
    stages = [stage for stage in map(tracker.getStageInfo, ids) if stage is not None]
    total = sum(stage.numTasks for stage in stages)
    return sum(stage.numCompletedTasks for stage in stages) / total if total else 0.0


# --- What Spark says when something fails, in one line of ours ------------------------------------


#: what to do where no cluster answers
CHECK = "Check its address, and that it runs."

#: an AnalysisException is a mistake of the program, except for these conditions of the data
OF_DATA = (
    "PATH_NOT_FOUND",
    "PATH_ALREADY_EXISTS",
    "UNABLE_TO_INFER_SCHEMA",
    "FAILED_READ_FILE",
    "COLUMN_ALREADY_EXISTS",
)

#: patterns of Spark's messages, and our words for them; the first that fits is used. {} stands for
#: the file, \\1 for what the pattern has found
KNOWN: dict[str, str] = {
    r"value '(.*?)' of the type \"STRING\" cannot be cast to \"DOUBLE\"": (
        r"numbers must be there, but '\1' came. Correct or drop such rows; decimals have a point, "
        "fractions no %. The engine duckdb reads decimal commas and percentages, too."
    ),
    r"PATH_ALREADY_EXISTS\] Path (\S+) already exists": (
        r"the output \1 is there already. Name another, or let it be replaced: --force."
    ),
    r"UNABLE_TO_INFER_SCHEMA": (
        "there must be files with rows of data, but none came. Spark passes over names that begin "
        "with _ or a dot."
    ),
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
    """The message of a Spark error in our words; None if it is a mistake of this program."""
    homes = {cls.__module__.split(".", maxsplit=1)[0] for cls in type(error).__mro__}
    if not homes & {"pyspark", "py4j"} and not isinstance(error, ConnectionError):
        return None
    if type(error).__name__ in ("AnalysisException", "ParseException"):
        condition = getattr(error, "getCondition", lambda: None)() or ""
        if not condition.startswith(OF_DATA):  # names and types that do not fit
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
    """The error text for a session that did not start: Java, the settings, or the master."""
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


def _messages(error: BaseException) -> list[str]:
    """The messages of an error and of its causes, in Python and in Java."""
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
    """The first line of a message that says something to people."""
    for line in text.splitlines():
        words = re.sub(r"^(: )?([\w.$]+(Exception|Error): )+", "", line.strip())
        if words and not words.startswith("An error occurred while calling"):
            return words[:300]
    return "no reason was given"
