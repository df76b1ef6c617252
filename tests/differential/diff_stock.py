"""Stock Hadoop Streaming in one virtual machine: its local job runner, one job after the other."""

import base64
import subprocess
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.conf import write_site
from benchmarks.stock.processes import CLIENT_JVM, java_command, java_environment

_STREAMING = "hadoop-streaming"
_AT_ONCE = 1
#: nobody waits for a job that is over
_LOCAL = {
    "mapreduce.framework.name": "local",
    "fs.defaultFS": "file:///",
    # each job has a block size of its own, which a file system kept from another would not know
    "fs.file.impl.disable.cache": "true",
    "mapreduce.client.progressmonitor.pollinterval": 20,
    "mapreduce.client.completion.pollinterval": 20,
    "mapreduce.task.io.sort.mb": 16,
    "mapreduce.reduce.memory.totalbytes": 64 << 20,
}


class StockStreaming:
    """Answers `run` with the exit code, the state and the counters of one job."""

    def __init__(self, jars: HadoopJars, folder: Path) -> None:
        conf = folder / "stock-conf"
        conf.mkdir()
        write_site(conf / "core-site.xml", {**_LOCAL, "hadoop.tmp.dir": folder / "stock-tmp"})
        source = str(Path(__file__).with_name("StockStreaming.java"))
        command = java_command(jars, conf, (*CLIENT_JVM, "-Xmx2g"), source, [str(_AT_ONCE)])
        self.log = folder / "stock.log"
        self._pending: dict[str, Future[str]] = {}
        self._ready: Future[str] = Future()
        self._lock = threading.Lock()
        self._last = 0
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env=java_environment(jars, conf),
            )
        threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True).start()

    def run(self, words: Sequence[str], timeout_s: float = 240.0) -> tuple[int, str, dict[str, dict[str, int]]]:
        """One job by its command line."""
        self._ready.result(120.0)
        encoded = [base64.b64encode(word.encode()).decode() or "-" for word in words]
        answer: Future[str] = Future()
        with self._lock:
            self._last += 1
            name = str(self._last)
            self._pending[name] = answer
            assert self._process.stdin is not None
            self._process.stdin.write(" ".join([name, *encoded]) + "\n")
            self._process.stdin.flush()
        code, *rest = answer.result(timeout_s).split("\t")
        counters: dict[str, dict[str, int]] = defaultdict(dict)
        for word in rest[1:]:
            group, counter, value = word.split(" ")
            counters[_decoded(group)][_decoded(counter)] = int(value)
        return int(code), rest[0] if rest else "", counters

    def _listen(self, said: IO[str]) -> None:
        for line in said:
            if not line.startswith("@@ "):
                continue
            word, _, answer = line[3:].rstrip("\n").partition("\t")
            if word == "ready":
                self._ready.set_result(word)
            else:
                self._pending.pop(word).set_result(answer)
        for waiting in (self._ready, *self._pending.values()):
            if not waiting.done():
                waiting.set_exception(RuntimeError(f"stock Hadoop ended: see {self.log}"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()


def _decoded(word: str) -> str:
    return base64.b64decode(word).decode()
