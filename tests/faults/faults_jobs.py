"""Jobs whose output is known: ours, streaming, and stock MapReduce's word count and sort."""

import os
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.stock.clients import StockClients
from benchmarks.stock.processes import CLIENT_JVM, java_command, java_environment

#: attempts that kills cost must not make a job fail
ATTEMPTS = 50
_TRIES = {
    "mapreduce.map.maxattempts": ATTEMPTS,
    "mapreduce.reduce.maxattempts": ATTEMPTS,
    "mapreduce.am.max-attempts": ATTEMPTS,
    # a node that many were killed on is as good as before
    "yarn.app.mapreduce.am.job.node-blacklisting.enable": "false",
    "mapreduce.job.maxtaskfailures.per.tracker": ATTEMPTS,
}
_COUNT = """
import time
from yaqd.mapreduce import Job


class Count(Job):
    def map(self, key, value):
        time.sleep(0.004)  # so that there is a task to kill
        for word in value.split():
            yield word, 1

    def reduce(self, key, values):
        time.sleep(0.002)
        yield key, sum(values)
"""
_SORT = """
import time
from yaqd.mapreduce import Job


class Sort(Job):
    partitioner = "range"

    def map(self, key, value):
        time.sleep(0.002)
        yield value, None
"""
_APPLICATION = re.compile(r"application_\d+_\d+")
_LINES = 900


@dataclass(slots=True)
class Started:
    """A job on its way: the command that waits for it, and what its output must be."""

    name: str
    process: "subprocess.Popen[bytes]"
    said: Path
    output: Path
    expected: Counter[bytes]

    def application(self) -> str | None:
        """The id that it was acknowledged under, once it was."""
        found = _APPLICATION.search(self.said.read_text(errors="replace"))
        return found[0] if found else None

    def is_right(self) -> bool:
        lines: Counter[bytes] = Counter()
        for part in self.output.glob("part-*"):
            lines.update(part.read_bytes().splitlines())
        return (self.output / "_SUCCESS").exists() and lines == self.expected


@dataclass(slots=True)
class Jobs:
    """Starts jobs on one cluster, each with an output of its own."""

    folder: Path
    conf_dir: Path
    clients: StockClients | None
    draw: random.Random
    started: int = 0
    words: Counter[bytes] = field(default_factory=Counter)
    lines: Counter[bytes] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        source = random.Random(7)
        (self.folder / "input").mkdir(parents=True)
        for number in range(4):
            lines = [b" ".join(b"w%d" % source.randrange(200) for _ in range(6)) for _ in range(_LINES)]
            (self.folder / "input" / f"{number}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
            self.lines.update(lines)
            self.words.update(word for line in lines for word in line.split())
        (self.folder / "count.py").write_text(_COUNT)
        (self.folder / "sort.py").write_text(_SORT)

    def start(self, *, stock: bool) -> Started:
        kinds = ("stock word count", "stock sort") if stock else ("count", "sort", "streaming")
        kind = self.draw.choice(kinds)
        self.started += 1
        output = self.folder / f"out-{self.started}"
        said = self.folder / f"said-{self.started}"
        counted = Counter(b"%b\t%d" % item for item in self.words.items())
        stock_lines = Counter({line + b"\t": count for line, count in self.lines.items()})
        expected = {"sort": self.lines, "stock sort": stock_lines}.get(kind, counted)
        with said.open("wb") as file:
            process = subprocess.Popen(
                self._command(kind, output),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=self.folder,
                env=self._environment(stock),
            )
        return Started(f"{self.started} {kind}", process, said, output, expected)

    def _command(self, kind: str, output: Path) -> list[str]:
        source = str(self.folder / "input")
        tries = [word for key, value in _TRIES.items() for word in ("-D", f"{key}={value}")]
        if kind.startswith("stock"):
            assert self.clients is not None
            return self._stock_command(kind, source, output, tries)
        yaq = [sys.executable, "-m", "yaqd.cli", "mr"]
        tries += ["-D", "mapreduce.input.fileinputformat.split.maxsize=8000"]
        if kind == "streaming":
            mapper = "awk '{for (i = 1; i <= NF; i++) print $i \"\\t\" 1}'"
            reducer = "awk '{count[$1] += $2} END {for (word in count) print word \"\\t\" count[word]}'"
            places = ["-input", source, "-output", str(output), "-mapper", mapper, "-reducer", reducer]
            return [*yaq, "streaming", *tries, "-D", "mapreduce.job.reduces=2", *places]
        name = {"count": "count.py:Count", "sort": "sort.py:Sort"}[kind]
        return [*yaq, "submit", name, "--input", source, "--output", str(output), "--reduces", "2", *tries]

    def _stock_command(self, kind: str, source: str, output: Path, tries: list[str]) -> list[str]:
        assert self.clients is not None
        jars = self.clients.jars
        program, own = ("wordcount", []) if kind == "stock word count" else ("sort", _text_sort())
        words = [str(jars.jar("hadoop-mapreduce-examples")), program, "-D", "mapreduce.job.reduces=2", *tries, *own]
        return java_command(
            jars, self.conf_dir, CLIENT_JVM, "org.apache.hadoop.util.RunJar", [*words, source, str(output)]
        )

    def _environment(self, stock: bool) -> dict[str, str]:
        if stock:
            assert self.clients is not None
            return java_environment(self.clients.jars, self.conf_dir)
        return {**os.environ, "HADOOP_CONF_DIR": str(self.conf_dir)}


def _text_sort() -> list[str]:
    """The sort example on lines of text: line as key, nothing as value."""
    formats = "org.apache.hadoop.mapreduce.lib"
    return [
        *("-inFormat", f"{formats}.input.KeyValueTextInputFormat"),
        *("-outFormat", f"{formats}.output.TextOutputFormat"),
        *("-outKey", "org.apache.hadoop.io.Text", "-outValue", "org.apache.hadoop.io.Text"),
    ]
