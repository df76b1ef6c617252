"""A control group for each container, below one of the NodeManager's own, where cgroup v2 can be written.

No process of a container leaves its group by itself, whatever it does to its environment, parents and limits. So all
are found, their memory counts, and one word to the kernel (cgroup.kill, Linux 5.14) ends them. No controller is used
but where cores of applications are bounded (`nm.throttle.quota_v2`). An application's groups are below its own then.
One that may write to the hierarchy can leave the group on purpose, as root's login sessions do under systemd. Such a
process is told by what tells it without groups.
"""

import asyncio
import contextlib
import hashlib
import logging
import math
import os
import select
import subprocess
import time
from pathlib import Path

from nm.warm.groups import kill

log = logging.getLogger(__name__)

_TRIAL_TIMEOUT_S = 10.0
_CLOSE_S = 2.0


class ContainerGroup:
    """One container's, which its first process makes."""

    def __init__(self, root: Path, name: str, issued: set[str]) -> None:
        self.folder = root / name
        self._name = name
        self._issued = issued

    def pids(self) -> list[int]:
        """Lists all processes in the group. Blocking, shortly."""
        return _pids(self.folder)

    def kill(self) -> None:
        kill(str(self.folder))

    async def remove(self) -> None:
        """Kills all in it. What cannot be removed now is by a later sweep."""
        if not _removed(self.folder):
            await asyncio.to_thread(_cleared, self.folder)
        self._issued.discard(self._name)


class ContainerGroups:
    def __init__(self, root: Path, record: Path) -> None:
        self.root = root
        self._record = record
        #: names of those that are in use
        self._issued: set[str] = set()
        self._sequence = 0
        #: an application's groups are below one of its own, and those of these stay while they are empty
        self.by_application = False
        self.bounded: set[str] = set()

    @classmethod
    def open(cls, local_dir: Path) -> "ContainerGroups":
        """Kills what another life of this NodeManager left. Blocking. Raises OSError where groups cannot be used."""
        mount, own = _own_group()
        root = own / f"yaqd-{hashlib.blake2b(os.fsencode(local_dir), digest_size=6).hexdigest()}"
        record = local_dir / "nmPrivate" / "cgroup"
        former = _recorded(record, mount, root.name)
        for left in {root, former} - {None}:
            if left is not None and left.exists() and not _cleared(left):
                log.warning("processes %s, which containers left behind, cannot be killed", _pids(left))
        root.mkdir(exist_ok=True)
        try:
            _try_out(root / "trial")
        except OSError:
            _removed(root)
            raise
        return cls(root, record)

    def remember(self) -> None:
        """Records the root for another life in another session. Blocking.

        In the same session that life finds the groups without it.
        """
        with contextlib.suppress(OSError):
            self._record.write_text(f"{self.root}\n")

    def group(self, container: str, application: str = "") -> ContainerGroup:
        """Names another group for each start of the container; without `application` it is nobody's, as a master's."""
        self._sequence += 1
        name = f"{container}.{self._sequence}"
        if self.by_application and application:
            name = f"{application}/{name}"
        self._issued.add(name)
        return ContainerGroup(self.root, name, self._issued)

    def sweep(self) -> None:
        """Ends and removes what is nobody's any more. Blocking."""
        with contextlib.suppress(OSError):
            for name in _folders(self.root):
                if name in self._issued:
                    continue
                if name not in self.bounded and not any(one.startswith(f"{name}/") for one in list(self._issued)):
                    _removed(self.root / name)
                    continue
                for below in _folders(self.root / name):
                    if f"{name}/{below}" not in self._issued:
                        _removed(self.root / name / below)

    def close(self) -> None:
        """Ends all that is in any group, and removes them. Blocking."""
        if not _cleared(self.root):
            log.warning("%s cannot be removed: processes %s", self.root, _pids(self.root))


def open_groups(local_dir: Path, *, is_wanted: bool) -> ContainerGroups | None:
    """Opens the groups; None where they are not to be used, or cannot be. Blocking.

    One line in the log says which.
    """
    if not is_wanted:
        log.info("containers have no control groups (yaq.nm.containers.cgroups): marks tell their processes")
        return None
    try:
        groups = ContainerGroups.open(local_dir)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.info("containers have no control groups (%s): marks tell their processes", error)
        return None
    log.info("containers have control groups below %s", groups.root)
    return groups


def _folders(place: Path) -> list[str]:
    return [entry.name for entry in os.scandir(place) if entry.is_dir()]


def _own_group() -> tuple[Path, Path]:
    """Where cgroup v2 is mounted, and the group that this process is in. Raises OSError."""
    group = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line[:3] == "0::"), None)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.split()[0] == "cgroup2" and group is not None:
            top, mount = fields.split()[3:5]
            path = Path(group)
            if path.is_relative_to(top) and ".." not in path.parts:
                return Path(mount), Path(mount) / path.relative_to(top)
    raise FileNotFoundError("no cgroup v2 is mounted that this process is in")


def _recorded(record: Path, mount: Path, name: str) -> Path | None:
    """Where groups were in the life before."""
    try:
        path = Path(record.read_text().strip())
    except (OSError, ValueError):
        return None
    return path if path.name == name and path.is_relative_to(mount) and ".." not in path.parts else None


def _try_out(trial: Path) -> None:
    """Raises OSError where no process can be moved to a group and killed there."""
    trial.mkdir()
    if not (trial / "cgroup.kill").exists():
        raise FileNotFoundError("no cgroup.kill, which Linux has since 5.14")
    command = ["/bin/sh", "-c", 'echo 0 >"$0"', str(trial / "cgroup.procs")]
    done = subprocess.run(command, capture_output=True, timeout=_TRIAL_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise PermissionError(done.stderr.decode(errors="replace").strip()[:300] or "no process can be moved")
    trial.rmdir()


def _pids(folder: Path) -> list[int]:
    found: list[int] = []
    for place, _, _ in os.walk(folder):
        with contextlib.suppress(OSError), open(f"{place}/cgroup.procs", "rb") as file:
            found += [pid for pid in map(int, file.read().split()) if pid]
    return found


def _removed(folder: Path) -> bool:
    """Kills what is in it first; False where it is still there."""
    kill(str(folder))
    for place, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(place)  # noqa: PTH106
    return not folder.exists()


def _cleared(folder: Path) -> bool:
    """The same, once what is killed has ended."""
    return _removed(folder) or (_is_emptied(folder, _CLOSE_S) and _removed(folder))


def _is_emptied(folder: Path, timeout_s: float) -> bool:
    """Waits until no process is in it."""
    deadline = time.monotonic() + timeout_s
    with contextlib.suppress(FileNotFoundError), (folder / "cgroup.events").open("rb", buffering=0) as events:
        poll = select.poll()
        poll.register(events, select.POLLPRI)
        while b"populated 0" not in os.pread(events.fileno(), 4096, 0):
            if (left_s := deadline - time.monotonic()) <= 0:
                return False
            poll.poll(math.ceil(1000 * left_s))
    return True
