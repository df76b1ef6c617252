"""What can be killed on a cluster of this machine, and what is left of jobs that are over."""

import os
import random
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from yaqd.cli.local.processes import ProcessIdentity, processes_working_under

_CONTAINER = re.compile(r"container_(?:e\d+_)?\d+_\d+_\d+_(\d+)")
_KINDS = {"task": 10, "master": 5, "nodemanager": 3, "resourcemanager": 2}


@dataclass(frozen=True, slots=True)
class Kill:
    kind: str
    pid: int


def container_processes(cluster: Path) -> list[tuple[int, str]]:
    """Pids with the folders of the containers that they work in."""
    found = []
    for process in processes_working_under(cluster / "nodes"):
        try:
            folder = str(Path(f"/proc/{process.pid}/cwd").readlink())
        except OSError:
            continue
        if _CONTAINER.search(folder):
            found.append((process.pid, folder))
    return found


def kill_something(cluster: Path, draw: random.Random, *, spares_daemons: bool) -> Kill | None:
    """SIGKILL to a process of a kind that is drawn; None where there is none of it now."""
    containers = container_processes(cluster)
    numbers = {pid: int(_CONTAINER.findall(folder)[-1]) for pid, folder in containers}
    there = {
        "task": [pid for pid, number in numbers.items() if number != 1],
        "master": [pid for pid, number in numbers.items() if number == 1],
        "nodemanager": _daemons(cluster, "nodemanager-*"),
        "resourcemanager": _daemons(cluster, "resourcemanager"),
    }
    kind = draw.choices(list(_KINDS), list(_KINDS.values()))[0]
    if not there[kind] or (spares_daemons and kind.endswith("manager")):
        return None
    pid = draw.choice(sorted(there[kind]))
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return None
    return Kill(kind, pid)


def restart(cluster: Path) -> str:
    """Starts the daemons that died; "" or what was wrong."""
    command = [sys.executable, "-m", "yaqd.cli", "cluster", "start", "--dir", str(cluster), "--timeout", "120"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


def left_over(cluster: Path, outputs: list[Path]) -> list[str]:
    """Processes of containers, staging folders, half-made outputs and local folders: of a cluster at rest, none."""
    left = [f"process {pid} in {folder}" for pid, folder in container_processes(cluster)]
    left += [f"staging {path}" for path in (cluster / "staging").glob("*/.staging/*")]
    left += [f"output {path}" for output in outputs for path in output.glob("_temporary")]
    left += [f"output {path}" for output in outputs for path in output.glob(".*") if path.suffix != ".crc"]
    nodes = cluster / "nodes"
    left += [f"local folder {path}" for path in nodes.glob("*/local/usercache/*/appcache/application_*")]
    left += [f"private folder {path}" for path in nodes.glob("*/local/nmPrivate/application_*")]
    return left


def _daemons(cluster: Path, name: str) -> list[int]:
    found = (ProcessIdentity.read(file) for file in sorted((cluster / "run").glob(f"{name}.pid")))
    return [process.pid for process in found if process is not None and process.is_alive()]
