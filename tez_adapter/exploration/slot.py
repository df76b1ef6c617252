"""A slot of an exploration: carries out what its job manager orders, and tells it what becomes of the trials."""

import logging
import os
import signal
import threading
from typing import Final

from tez_adapter.exploration.criu import Criu
from tez_adapter.exploration.nursery import Nursery
from tez_adapter.exploration.settings import ExplorationSettings
from tez_adapter.exploration.trial import image_folder, run_trial, trial_folder
from tez_adapter.protocol import ExplorationProtocol
from tez_adapter.tasks import own_folder
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.forked import adopt_orphans, end_children
from tez_adapter.tasks.runners import Workplace
from tez_adapter.tasks.shuffle_input import NoLongerWanted
from tez_adapter.tasks.task_output import TaskFiles
from yaqd.ipc import RemoteException, RpcError
from yaqd.proto import job_exploration_pb2 as pb

log = logging.getLogger(__name__)

_WAIT_MS: Final = 5000
_HOST: Final = "NM_HOST"
_LOST: Final = 1


def run(attempt: TaskAttempt, at: Workplace) -> TaskFiles | None:
    """Run trials until the slot is not wanted any more: NoLongerWanted."""
    adopt_orphans()  # what trials have started, should the process that forks them be killed
    # before anything else: the thread that reports to the job manager does nothing for a second yet
    nursery = Nursery(
        lambda number, lap: run_trial(attempt, at, number, lap),
        at.shared,
        lambda number, lap: own_folder.leave(trial_folder(at, number, lap)),
    )
    try:
        _Slot(attempt, at, nursery).run()
    finally:
        nursery.close()
    return None


class _Slot:
    def __init__(self, attempt: TaskAttempt, at: Workplace, nursery: Nursery) -> None:
        self._attempt, self._at, self._nursery = attempt, at, nursery
        #: it is not wanted any more, so that its trials end with it
        self._has_left = False
        self._criu = Criu.find() if ExplorationSettings.read(attempt.conf).images_mb else Criu()
        if self._criu.problem:
            log.warning(
                "CRIU cannot be used here: %s: trials without checkpoints are stopped in memory only",
                self._criu.problem,
            )

    def run(self) -> None:
        threading.Thread(target=self._listen, name="trials", daemon=True).start()
        host, heard = os.environ.get(_HOST, ""), 0
        while True:
            request = pb.SlotTurnRequest(attempt=self._attempt.ref, host=host, heard=heard, wait_ms=_WAIT_MS)
            request.can_dump, request.cannot_dump = bool(self._criu.path), self._criu.problem
            response = self._at.client.call(ExplorationProtocol.slotTurn, request, idempotent=True)
            if response.leave:
                self._has_left = True
                raise NoLongerWanted
            for order in response.orders:
                self._obey(order)
                heard = order.sequence
                self._attempt.moved()

    def _obey(self, order: pb.SlotOrder) -> None:
        number, lap = order.trial.number, order.trial.lap
        if order.action == pb.SlotOrder.BEGIN:
            self._nursery.begin(number, lap)
        elif order.action == pb.SlotOrder.THAW:
            self._nursery.signal(number, lap, signal.SIGCONT)
        elif order.action == pb.SlotOrder.DUMP:
            self._nursery.dump(number, lap, self._criu.path, image_folder(self._at, number, lap))
        else:
            self._nursery.signal(number, lap, signal.SIGKILL)

    def _listen(self) -> None:
        """In a thread: tell the job manager what became of trials. Without it, or without trials, the slot ends."""
        try:
            with self._at.connect() as client:
                while (message := self._nursery.receive()) is not None:
                    trial = pb.TrialRef(number=message["number"], lap=message["lap"])
                    request = pb.TrialChangedRequest(attempt=self._attempt.ref, trial=trial)
                    if message["is"] == "stopped":
                        request.change = pb.TrialChangedRequest.STOPPED
                        request.memory_mb, request.image_mb = message["memory_mb"], message["image_mb"]
                        request.error = message["error"]
                    else:
                        request.change = pb.TrialChangedRequest.ENDED
                        request.error, request.is_killed = message["error"], message["is_killed"]
                    client.call(ExplorationProtocol.trialChanged, request, idempotent=True)
        except (OSError, RpcError, RemoteException) as error:
            if not self._has_left:
                log.error("the slot ends: %s", error)
        if self._has_left:
            return
        end_children(0.0)
        os._exit(_LOST)
