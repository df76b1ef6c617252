"""`python -m benchmarks.stock fetch|start|stop`: stock Hadoop by hand; `scripts/hadoop.sh` calls it."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from .artifacts import StockUnavailable, fetch
from .daemons import StockHdfs, StockYarn
from .processes import StockFailure, end_processes_under

_STOP_TIMEOUT_S = 15.0


def main() -> int:
    """Runs one command; 2 where the machine or the call is not right."""
    parser = argparse.ArgumentParser(prog="hadoop.sh", description="stock Hadoop on this machine, for comparison")
    parser.add_argument("command", choices=("fetch", "start", "stop"))
    parser.add_argument("--dir", type=Path, help="folder of the running daemons (start, stop)")
    parser.add_argument("--hdfs-only", action="store_true", help="start a NameNode and a DataNode and no YARN")
    parser.add_argument("--nodes", type=int, default=2, help="NodeManagers to start (default 2)")
    given = parser.parse_args()
    if given.command != "fetch" and given.dir is None:
        parser.error(f"{given.command} needs --dir")
    try:
        if given.command == "fetch":
            print(fetch().directory)
        elif given.command == "start":
            _start(given.dir.absolute(), given.nodes, given.hdfs_only)
        else:
            _stop(given.dir.absolute())
    except (StockUnavailable, StockFailure, OSError) as problem:
        print(f"hadoop.sh {given.command}: {problem}", file=sys.stderr)
        return 2
    return 0


def _start(directory: Path, nodes: int, hdfs_only: bool) -> None:
    pids = directory / "pids"
    if pids.exists():
        raise StockFailure(f"{directory} already holds a cluster: stop it first, or choose another folder")
    jars = fetch()
    hdfs = StockHdfs(jars, directory / "hdfs", survives=True)
    hdfs.start()
    daemons = list(hdfs.daemons.values())
    conf_dir = hdfs.conf_dir
    if not hdfs_only:
        yarn = StockYarn(jars, directory / "yarn", hdfs=hdfs, nodes=nodes, survives=True)
        yarn.start()
        daemons += yarn.daemons.values()
        conf_dir = yarn.conf_dir
    pids.write_text("".join(f"{daemon.pid} {daemon.name}\n" for daemon in daemons))
    print(f"export HADOOP_CONF_DIR={conf_dir}")


def _stop(directory: Path) -> None:
    pids = directory / "pids"
    if not pids.exists():
        raise StockFailure(f"no stock Hadoop was started in {directory}")
    for line in reversed(pids.read_text().splitlines()):
        pid, name = line.split(maxsplit=1)
        _end(int(pid), name)
    end_processes_under(directory)
    pids.unlink()


def _end(pid: int, name: str) -> None:
    """Ends one daemon, unless its number now belongs to another program."""
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while _is_java(pid):
        os.kill(pid, signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
        time.sleep(0.1)
    print(f"stopped {name}", file=sys.stderr)


def _is_java(pid: int) -> bool:
    try:
        return b"org.apache.hadoop" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
