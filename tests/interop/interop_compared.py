"""The stock `yarn` command on two clusters alike in state, ours and a stock one: what it prints, word for word."""

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.stock.clients import ClientRun, StockClients
from tests.interop.interop_master import await_value

Made = TypeVar("Made")
_PATIENCE_S = 15.0
#: What differs from run to run or from machine to machine, in the order in which it is taken out.
_VARYING = (
    (r"(application|appattempt|container|job)_\d+(_\d+)*", r"\1_ID"),
    (r"(http://)?(127\.0\.0\.\d|localhost|vm|[\w.-]+/127\.0\.0\.\d)([:_]\d+)?", "ADDRESS"),
    (r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d [+\-]?\w+ \d{4}", "TIME"),
    (r"\w{3} \d\d-\w{3}-\d{4} \d\d:\d\d:\d\d[\w ]*|\d\d-\w{3}-\d{4} \d\d:\d\d:\d\d", "TIME"),
    (r"\b1[67]\d{11}\b|\d{4}-\d\d-\d\dT[\d:.]+[+\-]\d{4}", "TIME"),
    (r"\d+ MB-seconds, \d+ vcore-seconds", "HELD"),
    (r"(Resource Utilization by \w+ :).*", r"\1 USED"),
    (r"Last-Health-Update : .*", "Last-Health-Update : TIME"),
    # what masters log, and what nodes list and write of a launch, is as long as it is
    (r"(AppMaster\.\w+|directory\.info|launch_container\.sh|prelaunch\.out)\s+\d+", r"\1 LENGTH"),
    (r"=+", "="),
    (r"[ \t]+", " "),
)
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d |\s+at |\t\.\.\. |Caused by: ")


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster, and what the words of a command line that stand for something of its own are on it."""

    clients: StockClients
    names: Mapping[str, str]

    def run(self, command: str) -> tuple[int, str]:
        """Exit code and normalized output of one `yarn` command line."""
        words = [self.names.get(word, word) for word in command.split()]
        run = self.clients.yarn(words[0], *words[1:])
        return run.exit_code, normalized(run)


def both(ours: Callable[[], Made], stock: Callable[[], Made]) -> tuple[Made, Made]:
    """At the same time: a command line is mostly the start of its virtual machine."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(ours), pool.submit(stock)
        return first.result(), second.result()


def compare(sides: tuple[Side, Side], command: str) -> str:
    """Fails unless both print the same, with the same exit code; what they print."""
    ours, stock = sides
    printed, expected = both(lambda: ours.run(command), lambda: stock.run(command))
    assert printed == expected, f"{command}: ours {printed[0]}\n{printed[1]}\nstock {expected[0]}\n{expected[1]}"
    return printed[1]


def compare_soon(sides: tuple[Side, Side], command: str) -> str:
    """The same for what comes with the nodes' next heartbeats, which do not come at the same time."""
    ours, stock = sides

    def same() -> bool | None:
        printed, expected = both(lambda: ours.run(command), lambda: stock.run(command))
        return printed == expected or None

    with suppress(TimeoutError):
        await_value("both to print the same", same, _PATIENCE_S)
    return compare(sides, command)


def normalized(run: ClientRun) -> str:
    """Output and errors without log lines, stack traces and whatever names one cluster; lines in one order."""
    errors = [line for line in run.stderr.splitlines() if not _LOG_LINE.match(line)]
    return normalized_text("\n".join([*run.stdout.splitlines(), *errors]))


def normalized_text(text: str) -> str:
    for pattern, word in _VARYING:
        text = re.sub(pattern, word, text)
    return "\n".join(sorted(line.strip() for line in text.splitlines() if line.strip()))
