"""A process for each piece of work: a fork of one that has run nothing of the user's, and waits for it.

So each task finds modules, globals, caches, signal handlers, open files and random numbers as they are in a process
that has just begun. That holds whatever the task before it left behind, and however that one ended. The user's program
is loaded in the child too: a copy of a loaded program would share its open files' positions, its connections, its file
names.

Whoever forks has one thread, always: a copy of a lock that another thread holds would stay locked for ever.
"""

import atexit
import ctypes
import gc
import math
import os
import select
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Final, NoReturn

from yaqd.model.child_processes import children_of

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LENGTH: Final = struct.Struct(">I")
_READ_BYTES: Final = 1 << 16
#: what an interpreter exits with when it cannot flush
_EXIT_UNFLUSHED: Final = 120
_EXIT_INTERRUPTED: Final = 130
#: a killed process is gone soon after
_KILLED_WITHIN_S: Final = 1.0

#: in a child: its own number
_child = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended."""

    #: its exit status; the signal that killed it, negative
    code: int
    #: what its work returned; None where it ended before that
    outcome: bytes | None
    #: this process was told to end meanwhile
    is_told: bool


def run_in_child(
    work: Callable[[], bytes],
    *,
    told_with: signal.Signals = signal.SIGTERM,
    afterwards: Callable[[], None] = lambda: None,
) -> Ended:
    """Do the work in a child and wait for the child's end. A SIGTERM to this process reaches the child as `told_with`.
    It waits while `afterwards` runs, once the child has ended.

    The child stays in this process's group and session, and dies with this process. It ends as an interpreter does:
    threads joined, exit functions called, output flushed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # a collection in the child would copy the pages of all that is shared
    receiver, sender = os.pipe()
    parent = os.getpid()
    try:
        with _handing_on(told_with) as told:
            told.child = os.fork()
            if told.child == 0:
                os.close(receiver)
                _run(work, sender, parent, told.mask)
            if told.is_told:
                os.kill(told.child, told_with)
            signal.pthread_sigmask(signal.SIG_SETMASK, told.mask)
            os.close(sender)
            sender = -1
            received = _receive(receiver, told.child)
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
            code = os.waitstatus_to_exitcode(os.waitpid(told.child, 0)[1])
            afterwards()
            return Ended(code, _outcome(received), told.is_told)
    finally:
        os.close(receiver)
        if sender >= 0:
            os.close(sender)


@dataclass(slots=True)
class _Told:
    """Whether this process was told to end, and which child hears of it."""

    told_with: signal.Signals
    #: the signals that were blocked before
    mask: set[int]
    child: int = 0
    is_told: bool = False

    def tell(self, number: int, frame: FrameType | None) -> None:
        self.is_told = True
        if self.child:
            os.kill(self.child, self.told_with)  # it is not reaped yet, so the number is its own


@contextmanager
def _handing_on(told_with: signal.Signals) -> Iterator[_Told]:
    """Blocks SIGTERM, and hands it on to the child from when it is let through. Puts both back at the end."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    told = _Told(told_with, mask)
    # before the fork: where this process has other threads, one of them may take the signal
    former = signal.signal(signal.SIGTERM, told.tell)
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, former)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def end_by(number: signal.Signals) -> NoReturn:
    """Die of the signal, as this process would have without a handler."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def die_with(parent: int) -> None:
    """Have this process killed when its parent is gone; at once where that has happened already."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def adopt_orphans() -> None:
    """Adopt processes below this one when their parents are gone, from now on."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children(grace_s: float) -> None:
    """Ends all children of this process, and what was theirs: by SIGTERM, and after the grace by SIGKILL. What cannot
    be ended, such as another user's process, is let be."""
    for number, within_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILLED_WITHIN_S)):
        deadline = time.monotonic() + within_s
        told: set[int] = set()
        while _has_children() and (left_s := deadline - time.monotonic()) > 0:
            children = children_of(os.getpid())
            for child in children - told:
                with suppress(PermissionError):
                    os.kill(child, number)  # it is not reaped yet, so the number is its own
            told |= children
            _wait_for_one(children, left_s)


def _wait_for_one(children: set[int], timeout_s: float) -> None:
    """Returns when one of them has ended: what it has started are this process's own then."""
    with ExitStack() as opened:
        poll = select.poll()
        for child in children:
            descriptor = os.pidfd_open(child)
            opened.callback(os.close, descriptor)
            poll.register(descriptor, select.POLLIN)
        poll.poll(math.ceil(1000 * timeout_s))


def _has_children() -> bool:
    """Whether there are any, once those that have ended are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def end_copy() -> None:
    """End the process if the child's program has forked it; anywhere else, do nothing.

    Such a copy has come back to where the child is at work, whose files and connections are not its own. It ends as the
    process that it is.
    """
    if not _child or os.getpid() == _child:
        return
    error = sys.exception()
    code: object = 1
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
    elif error is not None:
        traceback.print_exc()
    else:
        print("a process that the job has forked returned to its task: end it with os._exit()", file=sys.stderr)
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code & 0xFF)


@contextmanager
def or_undo(undo: Callable[[], None]) -> Iterator[None]:
    """Undo what the context has begun where it fails; not in a copy of this process."""
    try:
        yield
        end_copy()
    except BaseException:
        end_copy()
        undo()
        raise


def has_threads() -> bool:
    """Return whether the program has started threads that an interpreter would wait for at its end."""
    return any(thread is not threading.main_thread() and not thread.daemon for thread in threading.enumerate())


def join_threads() -> None:
    """Returns when these threads have ended."""
    threading._shutdown()  # type: ignore[attr-defined]


def leave(code: int) -> NoReturn:
    """End as an interpreter does, without taking libraries down."""
    try:
        join_threads()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        code = code or _EXIT_UNFLUSHED
    os._exit(code)


def _run(work: Callable[[], bytes], sender: int, parent: int, mask: set[signal.Signals | int]) -> NoReturn:
    global _child
    try:
        _child = os.getpid()
        die_with(parent)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _reseed()
        outcome = work()
        end_copy()
        with suppress(OSError):  # the program has closed what is not its own: its end says the rest
            data = memoryview(_LENGTH.pack(len(outcome)) + outcome)
            while data:
                data = data[os.write(sender, data) :]
    except KeyboardInterrupt:
        end_copy()
        os._exit(_EXIT_INTERRUPTED)
    except BaseException:
        end_copy()
        traceback.print_exc()
        leave(1)
    leave(0)


def _reseed() -> None:
    """Gives the child its own random sequence."""
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            sys.modules[name].seed()


def _receive(pipe: int, child: int) -> bytes:
    """What the child writes until its end; what it has forked itself may hold the pipe open for longer."""
    received = b""
    ended = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(ended, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if pipe in ready:
                piece = os.read(pipe, _READ_BYTES)
                received += piece
                if not piece:
                    poll.unregister(pipe)
            elif ended in ready:
                return received
    finally:
        os.close(ended)


def _outcome(received: bytes) -> bytes | None:
    """None for one that was cut off."""
    body = received[_LENGTH.size :]
    whole = len(received) >= _LENGTH.size and len(body) == _LENGTH.unpack(received[: _LENGTH.size])[0]
    return body if whole else None
