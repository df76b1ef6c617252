"""Processes that forget mark, environment and parents within one look of a NodeManager."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.nm.nm_faults import gone

#: each forgets environment and parents, and its mark by another way
SURVIVORS = (
    "setsid env -i bash -c 'ulimit -Hx 100; ulimit -Sx 100; echo $$ > {file}; exec sleep 1000'",
    "setsid env -i bash -c 'ulimit -x 0; echo $$ > {file}; exec sleep 1000'",
    "setsid env -i prlimit --locks=unlimited:unlimited bash -c 'echo $$ > {file}; exec sleep 1000'",
    "setsid env -i su - root -c 'echo $$ > {file}; exec sleep 1000'",
    "su - root -c 'echo $$ > {file}; sleep 1000; sleep 1000'",
)


class Survivors:
    def __init__(self, folder: Path) -> None:
        self.files = [folder / f"pid{number}" for number in range(len(SURVIVORS))]
        self._script = folder / "survivors.sh"

    def command(self) -> str:
        """A program that ends as soon as all of them run."""
        lines = [
            f"({line.format(file=file)} </dev/null >/dev/null 2>&1 &) &"
            for line, file in zip(SURVIVORS, self.files, strict=True)
        ]
        lines += [f"until [ -s {file} ]; do sleep 0.01; done" for file in self.files]
        self._script.write_text("\n".join(lines) + "\n")
        return f"bash {self._script}"

    async def processes(self) -> list[psutil.Process]:
        """Those that are still there."""
        assert await gone(lambda: not all(file.exists() and file.read_text().strip() for file in self.files))
        numbers = [int(file.read_text()) for file in self.files]
        return [psutil.Process(number) for number in numbers if psutil.pid_exists(number)]


@pytest.fixture
def survivors(tmp_path: Path) -> Iterator[Survivors]:
    yield (found := Survivors(tmp_path))
    for file in found.files:
        with contextlib.suppress(OSError, ValueError, psutil.NoSuchProcess):
            process = psutil.Process(int(file.read_text()))
            if process.name() in ("sleep", "bash"):
                for each in (*process.children(), process):
                    each.kill()
