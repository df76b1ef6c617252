"""The processes of a local job's tasks: one that is forked before anything is loaded, and forks each task's.

Who runs the job loads its program, asks file systems, looks at sampled records; the tasks see nothing of that. They
share its terminal, so that a debugger works in them.
"""

import atexit
import os
import pickle
import signal
import socket
import struct
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from riffle_merger.format.index import SpillIndex
from riffle_merger.format.output import INDEX_NAME, OUTPUT_NAME
from tez_adapter.data import ReduceInput
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.tasks import own_folder
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.failure import describe_death
from tez_adapter.tasks.forked import Ended, adopt_orphans, die_with, end_by, end_children, run_in_child
from tez_adapter.tasks.map_task import run_map
from tez_adapter.tasks.outcome import outcome_of, told_by
from tez_adapter.tasks.reduce_task import reduce_from
from tez_adapter.tasks.runners import import_runners
from tez_adapter.tasks.shared_imports import SHARE_KEY, SharedImports
from tez_adapter.tasks.task_output import Committed
from yaqd.config import Configuration
from yaqd.mapreduce import Job, JobError
from yaqd.model import steady_hash
from yaqd.proto import job_pb2 as pb

#: gives what runs a task, in each task anew; what it is given is told the program's file before that is loaded
Load = Callable[[Callable[[Path], None]], "Work"]
#: runs a task to its end; what is to be committed
Work = Callable[["LocalAttempt", "LocalTask"], Committed | None]

#: signals that end the job's process, which may have handlers for them
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: between SIGTERM and SIGKILL for what a task has left running: yarn.nodemanager.sleep-delay-before-sigkill.ms
_GRACE_S: Final = 0.25
_LENGTH: Final = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class LocalTask:
    #: a serialized TaskDescription
    description: bytes
    spec: JobSpec
    #: where what travels with the job lies; None: nothing does
    files: Path | None
    #: where tasks work, map outputs lie and what memory does not hold goes
    folder: Path
    #: reduce: folders of map outputs
    outputs: tuple[str, ...] = ()

    @property
    def own_folder(self) -> Path:
        name = pb.TaskDescription.FromString(self.description).attempt_id
        return own_folder.own_folder(self.folder, name)


class LocalAttempt(TaskAttempt):
    """An attempt whose map output, and what memory does not hold, goes below a folder of this run."""

    def __init__(self, description: pb.TaskDescription, spec: JobSpec, conf: Configuration, folder: Path) -> None:
        super().__init__(description, spec, conf)
        self.work_folder = folder

    def local_folders(self) -> list[Path]:
        return [self.work_folder]


class LocalTasks:
    """Runs tasks, one at a time, each in a process of its own; a context. Make it before the program is loaded."""

    def __init__(self, load: Load, conf: Configuration, *, prints_aside: bool = False) -> None:
        """`prints_aside`: what tasks print goes to standard error."""
        self._has_ended = False
        self._ours, theirs = socket.socketpair()
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # what they do here is not done by the copy
        try:
            self._pid = os.fork()
            if self._pid == 0:
                self._ours.close()
                if prints_aside:
                    os.dup2(2, 1)
                _serve(theirs, load, conf, parent, before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def __enter__(self) -> "LocalTasks":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        """The task that runs is killed; when this returns there is none."""
        if self._has_ended:
            return
        self._ours.close()
        os.kill(self._pid, signal.SIGTERM)
        os.waitpid(self._pid, 0)
        self._has_ended = True

    def run(self, task: LocalTask) -> Ended:
        """Run the task and return how its process ended.

        Raises JobError where there is nobody any more to start it. Where the wait for it is interrupted there are no
        tasks afterwards.
        """
        try:
            _send(self._ours, pickle.dumps(task))
            answer = _receive(self._ours)
        except OSError:
            answer = None
        except BaseException:
            self._end()  # it would go on writing where the job's own process clears up
            raise
        if answer is None:
            raise JobError("the process that starts the tasks is gone: something on this machine has killed it")
        ended: Ended = pickle.loads(answer)
        return ended


class TaskFailed(JobError):
    """One task, which the job may be able to do without."""


def done_by(tasks: LocalTasks, task: LocalTask, conf: Configuration) -> pb.TaskDoneRequest:
    """Run a task and return what it tells at its end. Raises TaskFailed, with the author's traceback in `detail`."""
    ended = tasks.run(task)
    told = told_by(ended.outcome) if ended.outcome is not None else None
    if isinstance(told, pb.TaskDoneRequest):
        return told
    attempt = LocalAttempt(pb.TaskDescription.FromString(task.description), task.spec, conf, task.folder)
    text = told.error if told is not None else describe_death(attempt, ended.code).text
    message, _, detail = text.partition("\n")
    raise TaskFailed(message, detail=detail)


def _serve(connection: socket.socket, load: Load, conf: Configuration, parent: int, mask: set[Any]) -> NoReturn:
    """Until the job's process closes the connection or is gone. `mask`: signals that are to be blocked from now on."""
    try:
        at_hangup = signal.getsignal(signal.SIGHUP)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it is the job's process that is interrupted
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        die_with(parent)
        adopt_orphans()  # what a task has started ends with it, as on a node
        _forget_exit_functions()
        steady_hash.install()
        import_runners(JobKind.MAPREDUCE)
        shared = SharedImports(is_on=conf.get_bool(SHARE_KEY))
        while (request := _receive(connection)) is not None:
            task: LocalTask = pickle.loads(request)

            def work(task: LocalTask = task) -> bytes:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                if at_hangup is not signal.SIG_IGN:
                    signal.signal(signal.SIGHUP, signal.SIG_DFL)
                connection.close()
                return shared.with_report(_outcome(task, lambda: load(shared.try_out), conf))

            shared.load()
            try:
                ended = run_in_child(work, told_with=signal.SIGKILL, afterwards=lambda: end_children(_GRACE_S))
            finally:
                own_folder.leave(task.own_folder)
            if ended.is_told:
                end_by(signal.SIGTERM)
            if ended.outcome is not None:
                ended = replace(ended, outcome=shared.learn(ended.outcome))
            _send(connection, pickle.dumps(ended))
    except OSError:
        pass
    os._exit(0)


def _forget_exit_functions() -> None:
    """What the job's process has registered is for that one's end: it may remove folders."""
    atexit._clear()
    finalize: Any = weakref.finalize
    finalize._registry.clear()
    finalize._registered_with_atexit = False  # so that the program's own are run again


def _outcome(task: LocalTask, load: Callable[[], Work], conf: Configuration) -> bytes:
    attempt = LocalAttempt(pb.TaskDescription.FromString(task.description), task.spec, conf, task.folder)

    def work() -> Committed | None:
        run = load()
        own_folder.make(task.own_folder, task.files)
        own_folder.enter(task.own_folder)
        return run(attempt, task)

    return outcome_of(attempt, work, lambda: True)


def work_of(job_class: type[Job], params: dict[str, Any]) -> Work:
    """Return what runs the tasks of a MapReduce job."""

    def work(attempt: LocalAttempt, task: LocalTask) -> Committed | None:
        if attempt.is_map:
            return run_map(attempt, job_class, params)
        return reduce_from(
            attempt, job_class, params, task.folder, lambda sink: add_parts(sink, task.outputs, attempt.index)
        )

    return work


def add_parts(sink: ReduceInput, folders: Iterable[str | Path], part: int) -> None:
    """Give an input its part of each map output that lies in one of these folders."""
    for name in folders:
        entry = SpillIndex.load(Path(name, INDEX_NAME))[part]
        sink.add_file(Path(name, OUTPUT_NAME), entry.start, entry.part_length)


def _send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(message)) + message)


def _receive(connection: socket.socket) -> bytes | None:
    """The next message; None at the end."""
    head = _receive_exactly(connection, _LENGTH.size)
    return None if head is None else _receive_exactly(connection, _LENGTH.unpack(head)[0])


def _receive_exactly(connection: socket.socket, count: int) -> bytes | None:
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(min(count - len(received), 1 << 20))
        if not piece:
            return None
        received += piece
    return bytes(received)
