"""What a NodeManager that was killed left on this machine: its containers are killed, their files deleted.

Normally the forkers kill all containers when their NodeManager dies; this finds those that lost their forker too, by
the names of their pid files. Nothing of a former life is reused, so its folders are moved out of the way at once and
deleted in the background.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from nm.resources.processes import kill_leftovers

log = logging.getLogger(__name__)

_OLD = "_DEL_"


def clear_leftovers(local_dirs: tuple[Path, ...], delete: Callable[[Path], None]) -> None:
    """Kills what an earlier NodeManager left running and deletes its files. Blocking, short.

    A folder on a broken disk stays as it is.
    """
    stamp = int(time.time() * 1000)
    kill_leftovers(
        pid_file
        for root in local_dirs
        for pid_file in (root / "nmPrivate").glob("application_*/container_*/container_*.pid")
    )
    for root in local_dirs:
        try:
            for name in ("nmPrivate", "usercache", "filecache"):
                if (root / name).exists():
                    (root / name).rename(root / f"{name}{_OLD}{stamp}")
        except OSError as error:
            log.warning("%s: %s", root, error.strerror)
        for path in sorted(root.glob(f"*{_OLD}*")):
            delete(path)
