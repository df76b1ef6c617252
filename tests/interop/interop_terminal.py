"""Programs that draw on a terminal, on one that nobody looks at."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks.stock.clients import YARN_COMMANDS, StockClients
from benchmarks.stock.processes import CLIENT_JVM, java_command, java_environment

_PATIENCE_S = 120.0
#: how `yarn top` is told the size of its terminal, which draws every second
TOP = ("-cols", "160", "-rows", "30", "-delay", "1")


class Terminal:
    """A running program's."""

    def __init__(self, end: int, program: "subprocess.Popen[bytes]") -> None:
        self._end = end
        self._program = program

    def drawn(self, enough: Callable[[str], bool]) -> str:
        """What came until `enough(text)`; fails after two minutes."""
        text, deadline = "", time.monotonic() + _PATIENCE_S
        while not enough(text):
            assert time.monotonic() < deadline, text[-3000:]
            if select.select([self._end], [], [], 0.2)[0]:
                try:
                    text += os.read(self._end, 1 << 16).decode(errors="replace")
                except OSError:  # the other end is closed
                    return text
        return text

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def rest(self) -> tuple[int, str]:
        """The exit code, once the program has ended, and what it still wrote."""
        text = self.drawn(lambda text: False)
        return self._program.wait(10), text


@contextmanager
def on_terminal(clients: StockClients, name: str, *words: str) -> Iterator[Terminal]:
    """`yarn NAME WORDS`; killed at the end, unless it has ended."""
    main, prefix = YARN_COMMANDS[name]
    command = java_command(clients.jars, clients.conf_dir, CLIENT_JVM, main, [*prefix, *words])
    environment = java_environment(clients.jars, clients.conf_dir) | {"TERM": "xterm"}
    ours, theirs = pty.openpty()
    program = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield Terminal(ours, program)
    finally:
        program.kill()
        program.wait()
        os.close(ours)
