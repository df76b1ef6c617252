"""Row `stage-seek`: a reduce stage's reads from a disk that charges for each.

400 map outputs of 100 blocks of 16 KB behind our shuffle service, whose process the kernel lets read 1,000 times a
second, as ten turning disks would; five fetchers ask for 20 outputs at a time, as Hadoop's do, until every reducer has
its part. Theirs reads the outputs as they are, ours out of files of forty. One run each: the limit is the kernel's, and
holds whatever else the machine does. What merging took under the same limit is printed beside.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from benchmarks.riffle.seek_server import APPLICATION, FAN_IN, USER
from benchmarks.riffle.throttle import NoThrottle, read_throttle
from benchmarks.shuffle_client import MAPS_PER_REQUEST, Target, fetch_all, write_outputs
from nm.resources.directories import NodeDirectories
from nm.shuffle.jobs import job_id
from riffle_merger.plan.automatic import DiskShape, ShuffleShape, predicted_s

ROWS: Final = ("stage-seek",)
_READS_PER_S: Final = 1000
_MAPS: Final = 400
_REDUCES: Final = 100
_BLOCK: Final = 16 << 10
#: words after which there are merged files
_MERGED: Final = ("merge", "look")


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """No row where the kernel cannot throttle; what the automatic choice's model says instead is told."""
    if not options.wants(ROWS[0]):
        return [], {}
    maps = max(40, int(_MAPS * options.scale))
    shape = ShuffleShape(maps, _REDUCES, float(_REDUCES * _BLOCK), 1)
    disk = DiskShape(seek_s=1 / _READS_PER_S, bytes_per_s=500e6)
    model = {fan_in: predicted_s(shape, disk, fan_in) for fan_in in (1, 40)}
    with tempfile.TemporaryDirectory(prefix="yaq-seek-") as name:
        try:
            with read_throttle(Path(name), _READS_PER_S) as group:
                sides = {side: _stage(Path(name) / side, group, maps, side) for side in options.sides}
        except NoThrottle as missing:
            progress(f"stage-seek is not measured: {missing}; the model says {model[1]:.0f} s and {model[40]:.1f} s")
            return [], {}
    facts = {**sides, "model, s": f"{model[1]:.0f} unmerged, {model[40]:.1f} merged with half of the merging"}
    theirs = [sides["theirs"]["stage_s"]] if options.theirs else None
    ours = [sides["ours"]["stage_s"]] if options.ours else [0.0]
    return [make_row(ROWS[0], ours, theirs, "s", higher_is_better=False)], {ROWS[0]: facts}


def _stage(root: Path, group: Path, maps: int, side: str) -> dict[str, float]:
    """Seconds of one side's reduce stage, and what was read for it."""
    with SeekServer(root, group) as server:
        outputs = write_outputs(server.target, 0, maps, _REDUCES, _BLOCK)
        target = server.start()
        facts = server.ask(f"merge {FAN_IN}") if side == "ours" else {}
        seconds = fetch_all(target, outputs, maps_per_request=MAPS_PER_REQUEST, rounds=1, compares=True)
        progress(f"stage-seek: {side}: {seconds:.1f} s")
        return {"stage_s": seconds} | facts | server.ask("counts")


def _drop(folder: Path) -> None:
    """Outputs and merged files from the page cache, whoever read or wrote them."""
    for path in folder.rglob("*.out"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class SeekServer:
    """`seek_server` in a process of its own. Outputs are put where its target says before it starts."""

    def __init__(self, root: Path, group: Path, *prefix: str) -> None:
        """`group`: folder of a group of processes that it joins; `prefix`: words before its command."""
        self._root, self._group, self._prefix = root, group, prefix
        self._process: subprocess.Popen[str] | None = None
        folder = NodeDirectories([root], []).app_dir(root, USER, APPLICATION)
        self.target = Target("127.0.0.1", 0, job_id(APPLICATION), os.urandom(20), folder)

    def start(self) -> Target:
        given = {"root": str(self._root), "group": str(self._group), "secret": self.target.secret.hex()}
        command = [*self._prefix, sys.executable, "-m", "benchmarks.riffle.seek_server", json.dumps(given)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        port = json.loads(self._process.stdout.readline())["port"]
        _drop(self.target.folder)
        self.target = replace(self.target, port=port)
        return self.target

    def ask(self, word: str) -> dict[str, float]:
        assert self._process is not None
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        if word.startswith(_MERGED):
            _drop(self.target.folder)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.communicate()
