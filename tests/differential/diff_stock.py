"""Stock Hadoop Streaming, one job after the other: its local job runner in one virtual machine, or stock daemons that
one submits to.
"""

import base64
import queue
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.conf import NodeShape, write_site
from benchmarks.stock.daemons import StockYarn
from benchmarks.stock.processes import CLIENT_JVM, java_command, java_environment

_STREAMING = "hadoop-streaming"
_JOBS_A_MACHINE = 60
#: nobody waits for a job that is over
_POLLS = {
    "mapreduce.client.progressmonitor.pollinterval": 20,
    "mapreduce.client.completion.pollinterval": 20,
}
_LOCAL = {
    "mapreduce.framework.name": "local",
    "fs.defaultFS": "file:///",
    # each job has a block size of its own, which a file system kept from another would not know
    "fs.file.impl.disable.cache": "true",
    **_POLLS,
    "mapreduce.task.io.sort.mb": 16,
    "mapreduce.reduce.memory.totalbytes": 64 << 20,
}
#: of jobs on daemons; an attempt more than there are tasks is one that was needed
_SUBMITTED = {**_POLLS, "mapreduce.map.speculative": "false", "mapreduce.reduce.speculative": "false"}
_SHAPE = NodeShape(memory_mb=8192, vcores=6)
#: each takes a virtual machine for its map
_FILES_MAX = 40


@contextmanager
def stock_streaming(jars: HadoopJars, folder: Path, *, daemons: bool) -> Iterator["StockStreaming"]:
    """`daemons`: on a ResourceManager, a NodeManager and a JobHistoryServer, started for it."""
    if not daemons:
        conf = folder / "stock-conf"
        conf.mkdir()
        write_site(conf / "core-site.xml", {**_LOCAL, "hadoop.tmp.dir": folder / "stock-tmp"})
        with StockStreaming(jars, folder, conf, on_daemons=False) as local:
            yield local
        return
    with (
        StockYarn(jars, folder / "stock-yarn", nodes=1, shape=_SHAPE) as yarn,
        StockStreaming(jars, folder, yarn.conf_dir, on_daemons=True) as submitting,
    ):
        yield submitting


class StockStreaming:
    """Answers `run` with the exit code, the state and the counters of one job; one at a time."""

    def __init__(self, jars: HadoopJars, folder: Path, conf: Path, *, on_daemons: bool) -> None:
        self.on_daemons = on_daemons
        source = str(Path(__file__).with_name("StockStreaming.java"))
        self._command = java_command(jars, conf, (*CLIENT_JVM, "-Xmx2g"), source, [])
        self._environment = java_environment(jars, conf)
        self._folder = folder
        self._lock = threading.Lock()
        self._machine: _Machine | None = None

    def run(self, words: Sequence[str], timeout_s: float = 240.0) -> tuple[int, str, dict[str, dict[str, int]]]:
        """One job by its command line; TimeoutError, and a new machine for the next, where it does not end."""
        if self.on_daemons:
            words = [word for key, value in _SUBMITTED.items() for word in ("-D", f"{key}={value}")] + list(words)
        with self._lock:
            if self._machine is not None and self._machine.jobs >= _JOBS_A_MACHINE:
                self._end()
            if self._machine is None:
                self._machine = _Machine(self._command, self._environment, self._folder)
            try:
                answer = self._machine.run(words, timeout_s)
            except BaseException:
                self._end()
                raise
        code, *rest = answer.split("\t")
        counters: dict[str, dict[str, int]] = defaultdict(dict)
        for word in rest[1:]:
            group, counter, value = word.split(" ")
            counters[_decoded(group)][_decoded(counter)] = int(value)
        return int(code), rest[0] if rest else "", counters

    def takes(self, files: int) -> bool:
        """Whether a job with so many input files ends in reasonable time."""
        return not self.on_daemons or files <= _FILES_MAX

    def _end(self) -> None:
        if self._machine is not None:
            self._machine.close()
            self._machine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class _Machine:
    """One virtual machine. What jobs leave in it fills its memory after some two hundred."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.jobs = 0
        self._log = folder / "stock.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env=dict(environment),
            )
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()
        self._next(120.0)

    def run(self, words: Sequence[str], timeout_s: float) -> str:
        self.jobs += 1
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(base64.b64encode(word.encode()).decode() or "-" for word in words) + "\n")
        self._process.stdin.flush()
        return self._next(timeout_s)

    def _next(self, timeout_s: float) -> str:
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"stock Hadoop has not answered for {timeout_s:.0f} s: see {self._log}") from None
        if answer is None:
            raise RuntimeError(f"stock Hadoop ended: see {self._log}")
        return answer

    def _listen(self, said: IO[str]) -> None:
        for line in said:
            if line.startswith("@@ "):
                self._answers.put(line[3:].rstrip("\n"))
        self._answers.put(None)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def _decoded(word: str) -> str:
    return base64.b64decode(word).decode()
