"""The process group of one trial of a local exploration: begun, stopped in place, taken up again, ended."""

import contextlib
import signal
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tez_adapter.exploration.joins.begun import Begun
from tez_adapter.exploration.joins.style import Joined
from tez_adapter.exploration.local.child import CHECKPOINT_MAX
from tez_adapter.exploration.local.forking import TrialForker
from tez_adapter.exploration.local.wire import Wire
from tez_adapter.exploration.nursery import group_memory_mb, signal_group

#: in the middle of a frame a trial may be silent for so long
_FRAME_S: Final = 60.0


class TrialProcess:
    """A trial's process and what it started, in a group of their own."""

    def __init__(
        self,
        forker: TrialForker,
        joined: Joined,
        arguments: tuple[str, ...],
        begun: Begun,
        lap: int,
        checkpoint: bytes | None,
        *,
        log: Path,
    ) -> None:
        """Start it. `lap`: counts the processes of the trial. `log`: gets what the program prints. Raises OSError."""
        self.number, self.lap = begun.number, lap
        self._forker = forker
        #: reports without the metric
        self.left_out = 0
        #: iteration of its last report
        self.last: int | None = None
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.pid = forker.begin(theirs, log)
            except OSError:
                ours.close()
                raise
        ours.settimeout(_FRAME_S)
        self.wire = Wire(ours, bytes_max=CHECKPOINT_MAX)
        told: dict[str, Any] = {
            "begun": asdict(begun),
            "joined": asdict(joined),
            "arguments": list(arguments),
            "goes_on": checkpoint is not None,
        }
        with contextlib.suppress(OSError):  # it has ended already: the next receive says so
            self.wire.send(told, checkpoint or b"")

    def answer(self, say: str, *, wants_checkpoint: bool = False) -> None:
        """Answer the report that it waits for."""
        with contextlib.suppress(OSError):
            self.wire.send({"say": say, "wants_checkpoint": wants_checkpoint})

    def stop(self) -> None:
        """Stop the group in place; it keeps its memory and no processor."""
        signal_group(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Take the group up again; it still waits for the answer to its report."""
        signal_group(self.pid, signal.SIGCONT)

    def memory_mb(self) -> int:
        """Return the resident memory of the group, MB."""
        return group_memory_mb(self.pid)

    def end(self) -> int:
        """End the group at once; return the exit status of the trial, as `subprocess` has it."""
        self.wire.close()
        return self._forker.end(self.pid)
