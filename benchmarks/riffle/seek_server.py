"""A node's shuffle service alone, in a group of processes whose reads the kernel throttles: `stage-seek`'s server.

Reads one JSON object from its command line; answers each line of its standard input with one of JSON: `merge N` merges
all outputs, N to a file, and has them served; `look` has merged files served that others made; `counts` tells what was
read. It ends with its input. Neither side is helped by the page cache: files are dropped from it first, and nothing is
read ahead.
"""

import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from nm.resources.directories import NodeDirectories
from nm.shuffle import files
from nm.shuffle.jobs import ShuffleJobs, job_id
from nm.shuffle.limits import ShuffleLimits
from nm.shuffle.merged.scan import FolderScan
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.server import ShuffleService
from riffle_merger.merger.merge import READERS, MergeOrder, buffers_for, merge
from riffle_merger.merger.pool import BufferPool
from yaqd.model import ApplicationId
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.writable import encode_text

APPLICATION: Final = ApplicationId(1_700_000_000_000, 1)
USER: Final = "bench"
FAN_IN: Final = 40
_BUDGET: Final = 256 << 20
#: what clients may take to leave
_LEAVE_S: Final = 30.0


class _RandomReads(files.OpenFile):
    """Nothing is read ahead."""

    def __init__(self, descriptor: int, lock: Any) -> None:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        super().__init__(descriptor, lock)


def _main() -> None:
    given = json.loads(sys.argv[1])
    root = Path(given["root"])
    Path(given["group"], "cgroup.procs").write_text(str(os.getpid()))
    files.OpenFile = _RandomReads  # type: ignore[misc]
    directories = NodeDirectories([root], [])
    app_dir = directories.app_dir(root, USER, APPLICATION)
    outputs = MapOutputs(directories, index_cache_bytes=64 << 20)
    jobs, job = ShuffleJobs(), job_id(APPLICATION)
    token = Token(encode_text(job), bytes.fromhex(given["secret"]), JOB_TOKEN, job).to_writable()
    of_job = jobs.add(APPLICATION, USER, token)
    service = ShuffleService("127.0.0.1", 0, jobs=jobs, outputs=outputs, limits=ShuffleLimits(100, True, 5.0))
    service.start()
    print(json.dumps({"port": service.port}), flush=True)
    for line in sys.stdin:
        answer: dict[str, Any] = {}
        word, *numbers = line.split()
        if word == "merge":
            answer = _merge(app_dir, *map(int, numbers))
        if word in ("merge", "look"):
            scan = FolderScan([app_dir], lambda map_id: outputs.load(of_job, map_id), counts=outputs.files.counts)
            for file in scan.scan().merged:
                service.publish(job, file)
        deadline = time.monotonic() + _LEAVE_S
        while word == "counts" and service.statistics.connections:
            # clients have their bytes before the service has counted them, and then they leave
            if time.monotonic() > deadline:
                raise TimeoutError(f"{service.statistics.connections} clients are still connected after {_LEAVE_S:g} s")
            time.sleep(0.005)
        reads, of_files = service.statistics.reads, outputs.files.counts
        found = {"reads": reads.reads, "bytes": reads.read_bytes, "opens": of_files.opens}
        found |= {"index_reads": of_files.index_reads, "index_bytes": of_files.index_bytes}
        print(json.dumps(answer | found), flush=True)
    service.stop()


def _merge(app_dir: Path, fan_in: int) -> dict[str, Any]:
    names = sorted(path.name for path in (app_dir / "output").iterdir())
    pool, started, done = BufferPool(_BUDGET), time.perf_counter(), Counter[str]()
    with ThreadPoolExecutor(READERS) as reader:
        for number, at in enumerate(range(0, len(names), fan_in)):
            order = MergeOrder(f"{number}", (app_dir,), tuple(names[at : at + fan_in]), sync=True)
            buffers = buffers_for(fan_in, _BUDGET, pool)
            merged = merge(order, pool, buffers, reader=reader, is_cancelled=lambda: False)
            done += Counter(merges=1, reads=merged.reads, writes=merged.writes, bytes=merged.bytes)
    facts = {f"merge_{name}": float(count) for name, count in done.items()}
    requests = {"merge_requests": done["reads"] + done["writes"]}
    return {"merge_s": time.perf_counter() - started} | requests | facts


if __name__ == "__main__":
    _main()
