#!/usr/bin/env python3
"""Makes the pictures of docs/images anew: what the real commands show in a terminal. Needs the project installed.

python scripts/pictures.py          demo.svg and top.svg; starts two clusters, one after the other, for a minute
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from yaqd.cli.top import table

IMAGES = Path(__file__).resolve().parents[1] / "docs/images"
YAQ = Path(sys.executable).with_name("yaq")
WIDTH = 100
BUSY_S = 12
#: more than this machine may have, so that several of the tasks, which sleep, run at a time
_CORES = "yarn.nodemanager.resource.cpu-vcores"
#: a font from elsewhere, which a page should not ask for
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def in_terminal(*words: str) -> str:
    """Return what a command writes to a terminal of WIDTH columns."""
    pieces: list[bytes] = []

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 65536)
        pieces.append(data)
        return data

    os.environ |= {"COLUMNS": str(WIDTH), "LINES": "60", "TERM": "xterm-256color"}
    with open(os.devnull, "w") as nowhere:
        kept = os.dup(1)
        os.dup2(nowhere.fileno(), 1)
        try:
            status = pty.spawn([str(YAQ), *words], read)
        finally:
            os.dup2(kept, 1)
    text = b"".join(pieces).decode()
    if status:
        sys.exit(f"yaq {' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}:\n{text}")
    return text


def last_state(text: str) -> str:
    """Return the lines as they stand at the end, colours included: progress bars go up and write over themselves."""
    lines, row = [""], 0
    for piece in re.split(r"(\n|\r|\x1b\[[0-9;?]*[A-HJKlhsu])", text):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece.startswith("\x1b[") and piece.endswith("A"):
            row = max(0, row - int(piece[2:-1] or 1))
        elif piece.endswith("K") and piece.startswith("\x1b["):
            lines[row] = ""
        elif piece == "\r" or (piece.startswith("\x1b[") and piece[-1] in "BCDEFGHJlhsu"):
            continue
        else:
            lines[row] += piece
    return "\n".join(lines)


def save(name: str, title: str, shown: Any) -> None:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(shown)
        IMAGES.mkdir(exist_ok=True)
        svg = _FONT.sub("", console.export_svg(title=title, unique_id=name))
    (IMAGES / f"{name}.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")
    print(IMAGES / f"{name}.svg")


def demo() -> None:
    """Show what the demo prints, without its attempts, counters and folders."""
    lines = last_state(in_terminal("demo", "--top", "5")).split("\n")
    begins = [Text.from_ansi(line).plain for line in lines]
    left_out = next(i for i, line in enumerate(begins) if line.startswith("attempt "))
    goes_on = next(i for i, line in enumerate(begins) if line.startswith("step "))
    save("demo", "scripts/demo.sh", Text.from_ansi("\n".join([*lines[:left_out], "...", *lines[goes_on:]])))


def top() -> None:
    """Show the table of `yaq top` on a cluster of three nodes with more tasks than fit, as it is in a terminal."""
    with tempfile.TemporaryDirectory(prefix="yaqd-pictures-") as folder:
        environment = os.environ | {"HADOOP_CONF_DIR": f"{folder}/c/conf"}

        def yaq(*words: str) -> str:
            return subprocess.run([YAQ, *words], env=environment, check=True, capture_output=True, text=True).stdout

        yaq("cluster", "start", "--dir", f"{folder}/c", "--nodes", "3", "-D", f"{_CORES}=4")
        try:
            yaq(
                "run", "-n", "6", "--memory", "256", "--", "sleep", "1"
            )  # how long such tasks run is known from here on
            yaq("run", "-n", "120", "--memory", "512", "--no-wait", "--", "sleep", "4")
            time.sleep(BUSY_S)
            nodes = json.loads(yaq("top", "--json"))
        finally:
            yaq("cluster", "stop", "--dir", f"{folder}/c")
    save("top", "yaq top", table(sorted(nodes, key=lambda node: str(node["id"])), WIDTH))


if __name__ == "__main__":
    demo()
    top()
