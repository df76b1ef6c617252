"""One attempt as the process that runs it sees it: its description, its counters, its reports to the job manager.

Reports leave from a light thread over a connection of its own, so that a slow map function does not look dead; but
only what the task itself moves (records, bytes) counts as progress, so that a hanging one does.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from operator import index
from pathlib import Path

from tez_adapter.client.sizes import sort_mb
from tez_adapter.jobspec import JobSpec
from tez_adapter.protocol import SHARED_FOLDER, TaskUmbilicalProtocol
from tez_adapter.tasks.usage import Usage
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcError
from yaqd.mapreduce import JobError
from yaqd.mapreduce.counters import FILE_SYSTEM_GROUP, TASK_GROUP, Counters, FileSystemCounter, TaskCounter
from yaqd.model.endings import as_utf8
from yaqd.proto import job_pb2 as pb
from yaqd.storage import FileRange, storage_notes, storage_statistics

log = logging.getLogger(__name__)

_REPORT_EVERY_S = 1.0
_STATUS_CHARS_MAX = 1000
#: reports in a row that fail before the process gives up: its job manager is gone
_LOST_MAX = 10
#: of our own: told to end by the job manager
EXIT_UNWANTED = 143


class TaskAttempt:
    def __init__(self, description: pb.TaskDescription, spec: JobSpec, conf: Configuration) -> None:
        self.description = description
        self.spec = spec
        self.conf = conf
        self.ref = description.attempt
        self.name = description.attempt_id
        self.counters = Counters(conf.get_int("mapreduce.job.counters.max", 120, minimum=1))
        #: the container's; the job's code may go elsewhere
        self.work_folder = Path.cwd()
        #: what the data path counts, by TaskCounter's names
        self.tallies: dict[str, int] = {}
        self._storage_before = storage_statistics()
        self._usage = Usage()
        self._notes_before = len(storage_notes())
        #: 0..1
        self.progress = 0.0
        self.status = ""
        #: map: the piece of a file that it reads at present, once it reads
        self.reading: Callable[[], FileRange] | None = None
        #: raised by everything that is done; a report compares it with what it saw last
        self.moves = 0
        self._phases: dict[str, int] = {}
        self._phase_started = time.monotonic()

    @property
    def is_map(self) -> bool:
        return self.description.kind == pb.TaskDescription.MAP

    @property
    def index(self) -> int:
        return self.ref.index

    def moved(self, progress: float | None = None) -> None:
        self.moves += 1
        if progress is not None:
            self.progress = progress

    def end_phase(self, name: str) -> None:
        """Note that what has happened since the last call was this phase."""
        now = time.monotonic()
        self._phases[name] = int((now - self._phase_started) * 1000)
        self._phase_started = now

    def phases(self) -> list[pb.Phase]:
        return [pb.Phase(name=name, ms=ms) for name, ms in self._phases.items()]

    def notes(self) -> tuple[str, ...]:
        """Return what was odd about its input, and no error."""
        return storage_notes()[self._notes_before :]

    def counter_messages(self) -> list[pb.Counter]:
        """Return every counter with its value so far. Raises JobError for a value that cannot be one."""
        found = {(cell.group, cell.name): cell.value for cell in list(self.counters)}
        for scheme, total in storage_statistics().items():
            used = total.since(self._storage_before.get(scheme))
            for counter in FileSystemCounter:
                found[(FILE_SYSTEM_GROUP, counter.of_scheme(scheme))] = getattr(used, counter.value.lower())
        if self.is_map:
            found[(TASK_GROUP, TaskCounter.SPLIT_RAW_BYTES)] = len(self.description.split.encode())
        for name, value in (*self.tallies.items(), *self._usage.counters(is_map=self.is_map).items()):
            found[(TASK_GROUP, name)] = found.get((TASK_GROUP, name), 0) + value
        return [_counter(group, name, value) for (group, name), value in sorted(found.items())]

    def local_folders(self) -> list[Path]:
        """List the application's folders on this node's disks."""
        return [Path(p) for p in os.environ.get("LOCAL_DIRS", str(self.work_folder)).split(",") if p]

    def output_folder(self, name: str = "") -> Path:
        """Return where its map output goes: the shuffle service looks there. `name`: of one of several.

        Output on its way to HDFS has a folder of its own.
        """
        if SHARED_FOLDER in os.environ:
            return self.work_folder / "output" / (name or self.name)
        folders = self.local_folders()
        return folders[self.index % len(folders)] / "output" / (name or self.name)

    def sort_bytes(self) -> int:
        """Return the memory for sorting and merging: as configured, at most half of what the container has."""
        kind = "map" if self.is_map else "reduce"
        container_mb = self.conf.get_int(f"mapreduce.{kind}.memory.mb", 1024, minimum=1)
        return min(sort_mb(self.conf), max(1, container_mb // 2)) << 20


def _counter(group: str, name: str, value: object) -> pb.Counter:
    try:
        return pb.Counter(group=group, name=name, value=index(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise JobError(f"counter {name!r} of {group!r} is {value!r}: count in whole numbers of 64 bits") from None


class Reporter:
    """Tells the job manager how an attempt goes; a context around its run."""

    def __init__(self, attempt: TaskAttempt, connect: Callable[[], BlockingRpcClient]) -> None:
        self._attempt = attempt
        self._connect = connect
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def __enter__(self) -> "Reporter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _counters(self) -> list[pb.Counter]:
        """None where one cannot be sent: the attempt's end tells of it."""
        try:
            return self._attempt.counter_messages()
        except JobError:
            return []

    def _run(self) -> None:
        if self._done.wait(_REPORT_EVERY_S):
            return
        seen = lost = 0
        with self._connect() as client:
            while True:
                moves = self._attempt.moves
                try:
                    response = client.call(
                        TaskUmbilicalProtocol.statusUpdate,
                        pb.StatusUpdateRequest(
                            attempt=self._attempt.ref,
                            progress=self._attempt.progress,
                            moved=moves != seen,
                            status=as_utf8(str(self._attempt.status)[:_STATUS_CHARS_MAX]),
                            counters=self._counters(),
                        ),
                        idempotent=True,
                    )
                    seen, lost = moves, 0
                    if response.stop:
                        log.warning("%s is no longer wanted", self._attempt.name)
                        os._exit(EXIT_UNWANTED)
                except (RpcError, RemoteException) as error:
                    lost += 1
                    if lost >= _LOST_MAX:
                        log.error("the job manager is gone: %s", error)
                        os._exit(1)
                if self._done.wait(_REPORT_EVERY_S):
                    return
