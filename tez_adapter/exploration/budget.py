"""Checkpoints within their budget of bytes: the least promising trials' go first."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.runs import Run
from tez_adapter.exploration.store import TrialCheckpoints
from yaqd.policies.explore.facts import TrialState
from yaqd.storage import StorageError


class CheckpointBudget:
    def __init__(self, checkpoints: TrialCheckpoints, bytes_max: int) -> None:
        self._checkpoints, self._bytes_max = checkpoints, bytes_max
        #: bytes of those that are being written, by what is done when they are noted
        self._coming: dict[asyncio.Future[None], int] = {}

    @asynccontextmanager
    async def room(
        self, machine: ExplorationMachine, run: Run, size: int
    ) -> AsyncIterator[list[tuple[int, int]] | None]:
        """Keep room for one of this size until it is noted. Gives whose checkpoints make room; None: it does not fit.

        Where some must make room, it waits for those that are being written: these may be the least promising ones.
        """
        gone, fits = self.room_for(machine, run, size)
        while self._coming and (gone or not fits):
            await asyncio.wait(self._coming, return_when=asyncio.FIRST_COMPLETED)
            gone, fits = self.room_for(machine, run, size)
        noted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if fits:
            self._coming[noted] = size
        try:
            yield gone if fits else None
        finally:
            self._coming.pop(noted, None)
            noted.set_result(None)

    def room_for(self, machine: ExplorationMachine, run: Run, size: int) -> tuple[list[tuple[int, int]], bool]:
        """Return whose checkpoints make room for one of this size, by trial and iteration, and whether it fits then.

        Those of trials that have ended go first, then those of lower priority that wait.
        """
        kept = [one for one in machine.runs.values() if one.checkpoint is not None and one is not run]
        held = size + sum(one.checkpoint_bytes for one in kept) + sum(self._coming.values())
        states, priority = machine.trials.states, machine.trials.priority
        able = [
            one
            for one in kept
            if one.number != machine.best
            and (
                states[one.number] == TrialState.ENDED
                or (states[one.number] == TrialState.PARKED and priority[one.number] <= priority[run.number])
            )
        ]
        able.sort(key=lambda one: (states[one.number] != TrialState.ENDED, float(priority[one.number])))
        gone: list[tuple[int, int]] = []
        for one in able:
            if held <= self._bytes_max:
                break
            held -= one.checkpoint_bytes
            gone.append((one.number, one.checkpoint or 0))
        fits = held <= self._bytes_max
        return (gone if fits else []), fits

    def save(self, gone: Sequence[tuple[int, int]], run: Run, iteration: int, data: bytes) -> int:
        """Remove what is gone and write a checkpoint; return its bytes. Blocking. Raises StorageError."""
        for number, former in gone:
            self._checkpoints.delete(number, former)
        return self._checkpoints.save(run.number, iteration, data)

    def forget(self, number: int, iteration: int) -> None:
        """Remove a checkpoint that a later one has taken the place of. Blocking; one that cannot be removed stays."""
        with suppress(StorageError):
            self._checkpoints.delete(number, iteration)
