"""What processes really hold: PSS (own pages, plus their share of those in common) from /proc, sampled over a run.

RSS counts the pages that forked processes share once for each of them, so it would charge a warm task for its parent.
"""

import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

_INTERVAL_S = 0.5
_MB = 1024.0


@dataclass(slots=True)
class Peak:
    """The most that the processes of one name held."""

    #: Largest single process, MB of PSS.
    largest_mb: float = 0.0
    #: Largest sum over the processes of this name at one moment, MB of PSS.
    together_mb: float = 0.0
    #: Most processes at one moment.
    processes: int = 0


class MemorySampler:
    """Samples every process that descends from `roots` or works under `folders`, while it is entered."""

    def __init__(self, roots: Iterable[int], folders: Iterable[Path] = ()) -> None:
        self._roots = set(roots)
        self._folders = tuple(folder.resolve() for folder in folders)
        self._peaks: dict[str, Peak] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def summary(self) -> dict[str, str]:
        """By process name: peak MB of PSS of the largest, and of all together where there were several."""
        return {
            name: f"{peak.largest_mb:.0f} MB"
            + (f" (up to {peak.processes}, {peak.together_mb:.0f} MB together)" if peak.processes > 1 else "")
            for name, peak in sorted(self._peaks.items())
        }

    def _run(self) -> None:
        while True:
            self.sample()
            if self._ended.wait(_INTERVAL_S):
                return

    def sample(self) -> None:
        """Takes one sample now."""
        found: dict[str, list[float]] = {}
        for pid in self._pids():
            name = process_name(pid)
            pss = pss_mb(pid)
            if name and pss is not None:
                found.setdefault(name, []).append(pss)
        for name, sizes in found.items():
            peak = self._peaks.setdefault(name, Peak())
            peak.largest_mb = max(peak.largest_mb, *sizes)
            peak.together_mb = max(peak.together_mb, sum(sizes))
            peak.processes = max(peak.processes, len(sizes))

    def _pids(self) -> set[int]:
        children: dict[int, list[int]] = {}
        members = set(self._roots)
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            pid = int(entry.name)
            try:
                status = (entry / "stat").read_text()
                children.setdefault(int(status.rpartition(")")[2].split()[1]), []).append(pid)
                cwd = (entry / "cwd").readlink()
            except OSError:
                continue
            if any(cwd.is_relative_to(folder) for folder in self._folders):
                members.add(pid)
        waiting = list(members)
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in members:
                    members.add(child)
                    waiting.append(child)
        return members - {os.getpid()}


def pss_mb(pid: int) -> float | None:
    """Proportional set size of one process in MB; None once it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / _MB if found else None


def process_name(pid: int) -> str:
    """A short name: a Java main class, a Python module, or the program; empty for shells that only wait."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").strip("\0").split("\0")
    except OSError:
        return ""
    program = Path(words[0]).name if words[0] else ""
    if program == "java":
        mains = [word for word in words[1:] if word.startswith("org.apache.")]
        return mains[0].rpartition(".")[2] if mains else "java"
    if program.startswith("python"):
        return _python_name(pid, words)
    return "" if program in ("bash", "sh", "setsid") else program


def _python_name(pid: int, words: list[str]) -> str:
    try:
        if Path(f"/proc/{pid}/cwd").readlink().name.startswith("container_"):
            return "Python in a container"
    except OSError:
        return ""
    if "-m" in words:
        module = words.index("-m") + 1
        return " ".join(words[module : module + 2])
    if "-c" in words:
        runs = re.search(r"^from (\S+) import", words[words.index("-c") + 1], re.MULTILINE)
        return runs[1] if runs else "python -c"
    scripts = [word for word in words[1:] if not word.startswith("-")]
    return Path(scripts[0]).name if scripts else "python"
