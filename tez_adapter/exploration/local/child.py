"""The process of one trial of a local exploration, once it is forked."""

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from tez_adapter.exploration.joins.begun import Begun, TrialError
from tez_adapter.exploration.joins.run import run_joined
from tez_adapter.exploration.joins.style import Joined
from tez_adapter.exploration.local.wire import Wire
from yaqd.ml.channel import Said, made
from yaqd.ml.reporting import set_channel, usable_cores
from yaqd.ml.trial import begin_trial, trial

#: what a checkpoint may have
CHECKPOINT_MAX: Final = (1 << 32) - 1


class LocalTrialChannel:
    """Carries the reports of this trial. Each waits until the exploration has decided."""

    def __init__(self, wire: Wire, checkpoint: bytes | None) -> None:
        self._wire, self._checkpoint = wire, checkpoint
        self._pid = os.getpid()
        self._since = time.monotonic()

    def report(
        self,
        iteration: int,
        loss: float | None,
        checkpoint: Callable[[], bytes] | None,
        metrics: Mapping[str, float],
    ) -> Said:
        """Take one report; it does not return where the trial is suspended."""
        if os.getpid() != self._pid:
            return Said(usable_cores())  # a copy that the program has forked: the wire is not its own
        numbers = dict(metrics) if loss is None else {"loss": loss, **metrics}
        took_s = time.monotonic() - self._since
        self._wire.send(
            {
                "say": "report",
                "iteration": iteration,
                "metrics": numbers,
                "saves": checkpoint is not None,
                "took_s": took_s,
                "drawn": trial.drawn,
            }
        )
        answer, _ = self._wire.receive()
        suspends = answer["say"] == "suspend"
        if checkpoint is not None and (suspends or answer["wants_checkpoint"]):
            self._keep(iteration, checkpoint)
        if suspends or answer["say"] == "leave":
            _leave()
        self._since = time.monotonic()
        return Said(usable_cores(), stop=answer["say"] == "stop")

    def _keep(self, iteration: int, checkpoint: Callable[[], bytes]) -> None:
        data = made(checkpoint)
        if len(data) > CHECKPOINT_MAX:
            raise ValueError(f"a checkpoint of {len(data)} bytes: at most {CHECKPOINT_MAX} are kept")
        self._wire.send({"say": "checkpoint", "iteration": iteration}, data)

    def last_checkpoint(self) -> bytes | None:
        """Return what the trial was suspended with."""
        return self._checkpoint


def _leave() -> None:
    """End this process at once: what a program catches must not keep a suspended trial alive."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run_child(fd: int) -> None:
    """Run the trial that the first frame tells of, and say how it ended."""
    wire = Wire(socket.socket(fileno=fd), bytes_max=CHECKPOINT_MAX)
    told, checkpoint = wire.receive()
    begun = Begun(**told["begun"])
    set_channel(LocalTrialChannel(wire, checkpoint if told["goes_on"] else None))
    begin_trial(begun.number, begun.params, begun.epoch)
    failure, detail = "", ""
    try:
        run_joined(Joined(**told["joined"]), told["arguments"], begun)
    except TrialError as error:
        failure, detail = str(error), error.detail
    sys.stdout.flush()
    if detail:
        print(detail, file=sys.stderr, flush=True)
    wire.send({"say": "ended", "failure": failure, "detail": detail})
