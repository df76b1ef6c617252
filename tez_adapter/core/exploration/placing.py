"""Which trial is in which slot, which comes next there, and how trials leave.

A trial's process is in the container of one slot, its home. One that stopped in place goes on there. Where its home is
busy and another slot of the same host is free, it goes on at home and takes up the other slot. On another host it
begins anew from its checkpoint. Where the memory of one without a checkpoint is wanted, it waits as an image at home.
"""

from collections.abc import Callable, Sequence
from math import inf, isnan, nan
from typing import Any

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.rules import Rules
from tez_adapter.core.exploration.runs import Run, Slot, Slots, TrialPhase
from yaqd.policies.curves.samples import Floats


class Placing:
    def __init__(
        self,
        rules: Rules,
        decide: Callable[[ev.Decision], None],
        record: Callable[[dict[str, Any]], None],
        suspended: Callable[[float], None] = lambda took_s: None,
    ) -> None:
        """`suspended` hears how long each suspension took, s."""
        self._rules, self._decide, self._record, self._suspended = rules, decide, record, suspended
        self.slots = Slots()
        #: trials with a process
        self._live: dict[int, Run] = {}
        self._said_no_image = False
        self.now = 0.0

    def live(self) -> list[Run]:
        """Return the trials that have a process."""
        return list(self._live.values())

    @property
    def is_idle(self) -> bool:
        """Whether there are slots, and no trial is to begin in one."""
        return len(self.slots) > 0 and all(slot.following is None for slot in self.slots)

    # ---- in

    def hear(self, event: ev.Event, now: float) -> None:
        """Take notice of what happens and when; a report alone leaves all slots as they are."""
        self.now = now
        if not isinstance(event, ev.TrialReported):
            self.slots.changed()

    def leaves(self, run: Run) -> None:
        """Note that a trial is told to leave: another may be chosen for its slot."""
        run.phase, run.suspended_at = TrialPhase.LEAVING, self.now
        self.slots.left_by(run)

    def place(self, run: Run, free: list[Slot]) -> None:
        """Choose one of all free slots for a trial, and take it from them; there must be one."""
        self.slots.take(run, free)
        if run.params is None and not run.is_proposed:
            run.is_proposed = True
            self._decide(ev.Propose(run.number))

    def place_all(self, runs: Sequence[Run], free: list[Slot]) -> None:
        """Choose slots for trials, as many as are free at most: those first that stand stopped where a slot is free."""
        names = {slot.name for slot in free}
        for run in sorted(runs, key=lambda run: run.home not in names):
            self.place(run, free)

    def withdraw(self, run: Run) -> None:
        """Take back where a trial was to begin."""
        for slot in self.slots:
            if slot.following is run:
                slot.following = None

    def takes_back(self, run: Run) -> bool:
        """Let a trial go on that was to leave, where it was chosen again for its own slot."""
        slot = self.slots.get(run.slot)
        if slot is None or slot.following is not run:
            return False
        slot.following = None
        run.phase, run.suspended_at = TrialPhase.RUNNING, nan
        return True

    def clear(self) -> None:
        """Choose nobody any more."""
        for slot in self.slots:
            slot.following = None

    def advance(self) -> None:
        """Begin what follows in slots that were left."""
        for slot in self.slots.awaited():
            run = slot.following
            if run is None or run.params is None:
                continue
            if run.phase is TrialPhase.NONE:
                self._begin(run, slot)
            elif run.phase is TrialPhase.FROZEN:
                self._thaw(run, slot)

    def _begin(self, run: Run, slot: Slot) -> None:
        run.began(run.lap + 1, self.now)
        run.phase, run.home, run.checkpoint_at, run.answer = TrialPhase.RUNNING, slot.name, self.now, None
        self._take(run, slot)
        self._record({"do": "begin", "number": run.number, "lap": run.lap, "slot": slot.name, "now": self.now})
        self._decide(ev.BeginTrial(slot.name, run.number, run.lap))

    def _thaw(self, run: Run, slot: Slot) -> None:
        home = self.slots.get(run.home)
        if home is None or home.host != slot.host:
            self.evict(run)
            return
        run.phase = TrialPhase.RUNNING
        self._take(run, slot)
        if run.image_mb:
            run.deadline = self.now + self._rules.suspend_wait_s  # until it asks what is wanted of it
        self._record({"do": "thaw", "number": run.number, "slot": slot.name, "now": self.now})
        self._decide(ev.ThawTrial(run.home, run.number, run.lap))

    def _take(self, run: Run, slot: Slot) -> None:
        slot.running, slot.following, run.slot = run, None, slot.name
        run.deadline = inf
        self._live[run.number] = run

    # ---- out

    def leave(self, run: Run, answer: ev.Answer, within_s: float) -> ev.Answer:
        """Have a trial leave by this answer; return it."""
        run.phase, run.deadline = TrialPhase.LEAVING, self.now + within_s
        run.answer = answer
        return answer

    def suspension(self, run: Run, priority: Floats) -> ev.Answer:
        """Say how a parked trial leaves: with a checkpoint, or stopped in place where its memory fits.

        Those of lower priority that stand stopped there make room. One that fits nowhere ends and begins anew later.
        """
        if run.can_checkpoint and not self._rules.freezes_first:
            return ev.Answer(ev.Order.SUSPEND)
        there = [one for one in self._stopped_with(run) if not one.image_mb]
        there.sort(key=lambda one: float(priority[one.number]))
        held = run.memory_mb + sum(one.memory_mb for one in there)
        gone = []
        for one in there:
            if held <= self._rules.frozen_mb or priority[one.number] >= priority[run.number]:
                break
            held -= one.memory_mb
            gone.append(one)
        if held <= self._rules.frozen_mb:
            for one in gone:
                self._make_room(one)
            return ev.Answer(ev.Order.FREEZE)
        return ev.Answer(ev.Order.SUSPEND if run.can_checkpoint or self._fits_image(run) else ev.Order.LEAVE)

    def _stopped_with(self, run: Run) -> list[Run]:
        return [one for one in self.live() if one.home == run.home and one.phase is TrialPhase.FROZEN]

    def _fits_image(self, run: Run) -> bool:
        """Return whether a trial's memory can go to the disk of its container."""
        slot = self.slots.get(run.home)
        if slot is None or not slot.can_dump:
            if slot is not None and slot.cannot_dump:
                self._say_no_image(slot)
            return False
        held = sum(one.image_mb for one in self.live() if one.home == run.home and one is not run)
        return held + run.memory_mb <= self._rules.images_mb

    def _say_no_image(self, slot: Slot) -> None:
        if not self._said_no_image:
            self._said_no_image = True
            what = f"CRIU cannot be used on {slot.host}: {slot.cannot_dump}"
            self._decide(ev.Say(f"{what}: trials without checkpoints are stopped in memory only"))

    def _make_room(self, run: Run) -> None:
        """Have a stopped trial give its memory back: with a checkpoint, else as an image, else by its end."""
        if run.can_checkpoint or not self._fits_image(run):
            self.evict(run)
            return
        self.leave(run, ev.Answer(ev.Order.FREEZE), self._rules.suspend_wait_s)
        run.image_mb = run.memory_mb
        self._decide(ev.DumpTrial(run.home, run.number, run.lap))

    def image_failed(self, run: Run, error: str) -> None:
        """Note that a trial could not become an image, or not go on from it: no more are made there."""
        slot = self.slots.get(run.home)
        if slot is not None:
            slot.can_dump = False
        self._decide(ev.Say(f"trial {run.number} begins anew, as its image fails: {error}"))

    def evict(self, run: Run) -> None:
        """End a process that stands stopped: it makes a checkpoint first where it can."""
        if run.can_checkpoint:
            self.leave(run, ev.Answer(ev.Order.SUSPEND), self._rules.suspend_wait_s)
            self._decide(ev.ThawTrial(run.home, run.number, run.lap))
        else:
            self.kill(run)

    def kill(self, run: Run) -> None:
        """End a process, whatever it does."""
        run.phase, run.deadline = TrialPhase.LEAVING, inf
        self._decide(ev.KillTrial(run.home, run.number, run.lap))

    def woken(self, run: Run, lap: int) -> ev.Answer:
        """Answer a trial that was stopped in place and asks what is wanted of it now."""
        if run.lap != lap or run.phase is TrialPhase.NONE:
            return ev.LEAVE
        if run.phase is TrialPhase.FROZEN:
            return ev.Answer(ev.Order.FREEZE)
        if run.phase is not TrialPhase.RUNNING:
            return run.answer or ev.LEAVE
        run.deadline = inf
        return ev.Answer(ev.Order.CONTINUE)

    def frozen(self, run: Run, event: ev.TrialStopped) -> None:
        """Note that a trial has stopped in place: its slot is left.

        Of one that was to be suspended no checkpoint could be made. It makes room where its memory does not fit.
        """
        if event.error:
            self.image_failed(run, event.error)
            self.kill(run)
            return
        order = ev.Order.FREEZE if run.answer is None else run.answer.order
        if order is ev.Order.SUSPEND:
            run.can_checkpoint = False
            if sum(one.memory_mb for one in self._stopped_with(run)) + event.memory_mb > self._rules.frozen_mb:
                run.memory_mb = event.memory_mb
                self._make_room(run)
                return
        elif order is not ev.Order.FREEZE:
            return
        self._give_up(run)
        run.phase, run.memory_mb, run.slot, run.deadline = TrialPhase.FROZEN, event.memory_mb, "", inf
        run.image_mb = event.image_mb
        self._record({"do": "dumped" if event.image_mb else "frozen", "number": run.number, "now": self.now})

    def left(self, run: Run) -> None:
        """Note that a trial's process is over."""
        self._give_up(run)
        self._live.pop(run.number, None)
        run.freed()
        self._record({"do": "left", "number": run.number, "now": self.now})

    def _give_up(self, run: Run) -> None:
        slot = self.slots.get(run.slot)
        if slot is not None and slot.running is run:
            slot.running = None
            is_suspended = run.answer is not None and run.answer.order in (ev.Order.SUSPEND, ev.Order.FREEZE)
            if is_suspended and not isnan(run.suspended_at):
                self._suspended(self.now - run.suspended_at)
        run.suspended_at = nan

    def close(self, name: str) -> Run | None:
        """Note that a slot is wanted back; return the trial that was to begin there.

        What stands stopped there makes a checkpoint where it can.
        """
        slot = self.slots.get(name)
        if slot is None or slot.is_closing:
            return None
        slot.is_closing = True
        following, slot.following = slot.following, None
        for run in self.live():
            if run.home == name and run.phase is TrialPhase.FROZEN and run.can_checkpoint:
                self.evict(run)
        return following

    def is_closing(self, run: Run) -> bool:
        """Return whether a trial is to leave because its slot, or the one with its process, is wanted back."""
        slots = (self.slots.get(run.slot), self.slots.get(run.home))
        return run.can_checkpoint and any(slot is not None and slot.is_closing for slot in slots)

    def follows(self, run: Run) -> bool:
        """Return whether a slot is kept for a trial."""
        return any(slot.following is run for slot in self.slots)

    def released(self, wanted: int) -> list[Slot]:
        """Take out the slots that have no process and are wanted back, or are more than `wanted`; return them."""
        homes = {run.home for run in self.live()}
        idle = [slot for slot in self.slots if slot.running is None and slot.following is None]
        able = sorted((slot for slot in idle if slot.name not in homes), key=lambda slot: not slot.is_closing)
        closing = sum(slot.is_closing for slot in able)
        found = able[: max(closing, len(self.slots) - wanted)]
        for slot in found:
            self.slots.remove(slot.name)
        return found

    def lost(self, name: str) -> list[Run]:
        """Note that a slot is gone; return the trials that were in it or were to begin there."""
        slot = self.slots.remove(name)
        if slot is None:
            return []
        back = []
        for run in self.live():
            if run.home == name:
                back.append(run)
                self.left(run)
            elif run.slot == name:
                self.kill(run)
                back.append(run)
                self.left(run)
        return [*back, slot.following] if slot.following is not None and slot.following not in back else back
