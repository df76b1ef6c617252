"""Drives a local exploration: the policy decides after each report, and processes are begun, suspended and ended.

A report is answered when the policy has decided. So which trials run on does not depend on how fast this process is.
"""

import contextlib
import math
import selectors
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from tez_adapter.exploration.generators.generator import Generator
from tez_adapter.exploration.joins.begun import Begun
from tez_adapter.exploration.joins.style import Joined
from tez_adapter.exploration.local.forking import TrialForker
from tez_adapter.exploration.local.process import TrialProcess
from tez_adapter.exploration.local.records import LocalTrial
from tez_adapter.exploration.local.saved import SavedTrials
from tez_adapter.exploration.local.shown import shown
from tez_adapter.exploration.terms import metric_of
from tez_adapter.exploration.view import ExplorationView
from tez_adapter.jobspec import Exploration
from yaqd.ml.reporting import usable_cores
from yaqd.policies.explore.facts import Action, ExplorePolicy, Guide, Start, Trials, TrialState, Why
from yaqd.policies.explore.metric import Limit, Solved

#: a trial that was told to stop may take so long to end
GRACE_S: Final = 10.0
#: a trial that a signal has ended begins again so often
KILLS_MAX: Final = 3
#: so many failures without any report end the exploration
FAILURES_MAX: Final = 10
CHECKPOINTS_MAX: Final = 4 << 30
#: part of the memory that trials may hold that are stopped in place
_STOPPED_PART: Final = 0.25
_TICK_S: Final = 1.0


class LocalExploration:
    """One exploration. `run` goes to its end; `view` shows it at any time."""

    def __init__(
        self,
        terms: Exploration,
        joined: Joined,
        generator: Generator,
        policy: ExplorePolicy,
        folder: Path,
        *,
        guide: Guide | None = None,
        name: str = "",
        heard: Callable[[LocalTrial], None] = lambda trial: None,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`folder`: for the programs' output and the checkpoints. `heard`: is told of a trial that reported or ended.
        `note`: is told what is wrong, in a line each."""
        self._terms, self._joined, self._generator, self._policy = terms, joined, generator, policy
        self._folder, self._name = folder, name
        self._heard, self._note = heard, note
        self._metric = metric_of(terms)
        self._limits = [Limit(*limit) for limit in terms.limits]
        self._solved = Solved.parse(terms.solved) if terms.solved else None
        many = terms.trials if generator.size is None else min(terms.trials, generator.size)
        self._trials = Trials(many, terms.epochs, guide)
        self._records = [LocalTrial(number) for number in range(many)]
        self._saved = SavedTrials(folder, CHECKPOINTS_MAX)
        self._stopped_max = _STOPPED_PART * psutil.virtual_memory().total
        self._free = list(range(terms.slots))
        #: trials that are to run as soon as a slot is free
        self._queue: deque[Start] = deque()
        self._forker = TrialForker(joined.path, threads=max(1, int(usable_cores() // terms.slots)))
        self._selector = selectors.DefaultSelector()
        self._begin = time.monotonic()
        self._notices: list[str] = []
        self._winner: int | None = None
        self._reached_s: float | None = None
        self._ending = ""

    @property
    def _now(self) -> float:
        return time.monotonic() - self._begin

    def run(self) -> ExplorationView:
        """Run to the end: target, time, or no trial left. No process is left, whatever ends it."""
        try:
            self._fill()
            while not self._ending:
                self._wait()
                self._fill()
                self._look_at_end()
            self._let_winner_end()
        finally:
            for record in self._records:
                self._drop(record)
                if self._trials.states[record.number] == TrialState.RUNNING:
                    self._trials.states[record.number] = TrialState.PARKED if record.values else TrialState.FRESH
            self._selector.close()
            self._generator.close()
            self._forker.close()
        return self.view()

    # ---- what happens

    def _wait(self) -> None:
        until = min((record.ends_at_s for record in self._records if record.process is not None), default=math.inf)
        if self._terms.max_time_s > 0:
            until = min(until, self._terms.max_time_s)
        for key, _ in self._selector.select(min(max(0.0, until - self._now), _TICK_S)):
            self._hear(key.data)
        for record in self._records:
            if record.process is not None and self._now >= record.ends_at_s:
                self._drop(record)

    def _hear(self, record: LocalTrial) -> None:
        if record.process is None:
            return
        try:
            message, data = record.process.wire.receive()
        except (OSError, ValueError):
            self._died(record)
            return
        if message.get("say") == "report":
            self._reported(
                record, int(message["iteration"]), message["metrics"], bool(message["saves"]), message["took_s"]
            )
        elif message.get("say") == "suspended":
            self._keep(record, data)
        elif message.get("say") == "ended":
            self._ended(record, str(message["failure"]))

    def _reported(
        self, record: LocalTrial, iteration: int, metrics: dict[str, float], saves: bool, took_s: float
    ) -> None:
        process, number, trials = record.process, record.number, self._trials
        assert process is not None
        value = metrics.get(self._terms.metric)
        record.names.update(metrics)
        if trials.states[number] == TrialState.ENDED:
            process.answer("stop")
            return
        if value is None or (record.iteration is not None and iteration <= record.iteration):
            self._note_odd(record, iteration, value)
            process.answer("continue")
            return
        record.iteration = iteration
        record.seen += 1
        if record.base + record.seen <= trials.counts[number]:
            process.answer("continue")  # it is known already: the trial began again
            return
        now = self._now
        record.values.append(float(value))
        trials.report(number, self._metric.risen(float(value)), took_s)
        self._policy.reported(trials, number, now)
        if self._is_reached(record, metrics):
            self._win(record)
            return
        verdict = self._policy.iterated(trials, number, now)
        record.judged(verdict.why, verdict.value, verdict.bound)
        state = trials.settle(number, verdict)
        if verdict.action is not Action.CONTINUE or state is TrialState.ENDED:
            self._generator.told(number, record.params, float(trials.best[number]), state is TrialState.ENDED)
        if state is TrialState.RUNNING:
            process.answer("continue")
        elif state is TrialState.ENDED:
            process.answer("stop")
            record.ends_at_s = self._now + GRACE_S
        else:
            self._park(record, saves)
        self._heard(record)

    def _note_odd(self, record: LocalTrial, iteration: int, value: float | None) -> None:
        if value is None:
            known = ", ".join(sorted(record.names)) or "none"
            self._say(f"a report has no {self._terms.metric} (it has {known}): such reports are left out")
        else:
            self._say("iterations must rise within a trial: reports that go back or repeat are left out")

    def _is_reached(self, record: LocalTrial, metrics: dict[str, float]) -> bool:
        if not all(limit.holds(metrics) for limit in self._limits):
            return False
        if self._solved is not None:
            return self._solved.holds(record.values)
        target, value = self._terms.target, record.values[-1]
        if target is None or not math.isfinite(value):
            return False
        return value <= target if self._metric.is_better_low else value >= target

    def _win(self, record: LocalTrial) -> None:
        assert record.process is not None
        self._winner, self._reached_s = record.number, self._now
        what = self._solved or f"{self._terms.metric} {record.values[-1]:.6g}"
        self._ending = f"trial {record.number} reached the target: {what}"
        self._close(record, Why.REACHED, record.values[-1], math.nan if self._solved else self._terms.target)
        record.process.answer("stop")
        self._heard(record)

    # ---- suspending and going on

    def _park(self, record: LocalTrial, saves: bool) -> None:
        """Suspend a trial, unless the policy would let it go on in the room that it leaves."""
        assert record.process is not None
        starts = self._allocated()
        own = next((start for start in starts if start.number == record.number), None)
        self._queue.extend(start for start in starts if start is not own)
        if own is not None:
            record.judged(own.why, own.value, own.bound)
            record.process.answer("continue")
            return
        if saves:
            record.process.answer("suspend")
            record.ends_at_s = self._now + 6 * GRACE_S
        else:
            record.process.stop()
            self._leave_slot(record)
            self._make_room()

    def _keep(self, record: LocalTrial, data: bytes) -> None:
        """Keep the checkpoint of a suspended trial."""
        number = record.number
        priority = {each: float(self._trials.priority[each]) for each in range(len(self._trials))}
        try:
            for dropped in self._saved.put(number, record.base + record.seen, data, priority):
                self._say(f"checkpoints are over their budget: trial {dropped} begins anew when it goes on")
        except OSError as error:
            self._say(f"the checkpoint of trial {number} is not kept: {error.strerror or error}")
        self._drop(record)

    def _make_room(self) -> None:
        """End stopped trials, the least promising first, while they hold too much memory."""
        held = [record for record in self._records if record.process is not None and record.process.is_stopped]
        held.sort(key=lambda record: float(self._trials.priority[record.number]))
        sizes = {record.number: record.process.memory() for record in held if record.process is not None}
        while held and sum(sizes[record.number] for record in held) > self._stopped_max:
            least = held.pop(0)
            self._say(f"stopped trials hold too much memory: trial {least.number} begins anew when it goes on")
            self._drop(least)

    def _allocated(self) -> list[Start]:
        """Let the policy choose trials for what is free, and count them as running."""
        running = int((self._trials.states == TrialState.RUNNING).sum())
        free = self._terms.slots - running
        starts = self._policy.allocate(self._trials, free, self._now) if free > 0 else []
        for start in starts:
            self._trials.start(start.number)
        return starts

    def _fill(self) -> None:
        """Choose trials for free slots and begin those whose slot is there."""
        if self._ending:
            return
        self._queue.extend(self._allocated())
        for _ in range(len(self._queue)):
            start = self._queue.popleft()
            record = self._records[start.number]
            if self._trials.states[start.number] == TrialState.ENDED:
                continue
            is_leaving = record.process is not None and not record.process.is_stopped
            if not self._free or is_leaving:
                self._queue.append(start)
                continue
            record.judged(start.why, start.value, start.bound)
            record.slot = self._free.pop(0)
            self._start(record)

    def _start(self, record: LocalTrial) -> None:
        if record.process is not None:
            self._selector.register(record.process.wire, selectors.EVENT_READ, record)
            record.process.go_on()
            record.process.answer("continue")
            return
        if record.params is None:
            record.params = self._generator.propose(record.number)
        saved = self._saved.get(record.number)
        record.base, checkpoint = saved if saved is not None else (0, None)
        record.seen, record.iteration = 0, None
        terms = self._terms
        begun = Begun(
            record.number, record.params or {}, terms.metric, terms.pattern, terms.epochs, record.base, terms.seed
        )
        log = self._folder / f"trial-{record.number}.log"
        record.process = TrialProcess(self._forker, self._joined, terms.arguments, begun, checkpoint, log=log)
        record.begun += 1
        self._selector.register(record.process.wire, selectors.EVENT_READ, record)

    # ---- ends

    def _ended(self, record: LocalTrial, failure: str) -> None:
        """Note that a program has ended by itself, or has failed."""
        self._drop(record)
        self._saved.drop(record.number)
        if not failure and not record.values:
            known = f"it has {', '.join(sorted(record.names))}" if record.names else "it reported nothing"
            failure = f"no report with {self._terms.metric}: {known}"
        if self._trials.states[record.number] != TrialState.ENDED:
            why = Why.FAILED if failure else Why.LEFT
            self._close(record, why, len(record.values), self._terms.epochs)
        if failure:
            record.failure = failure
            self._say(f"trial {record.number} failed: {failure}")
        self._heard(record)

    def _close(self, record: LocalTrial, why: Why, value: float, bound: float | None) -> None:
        """Note that a trial has ended for good."""
        self._trials.states[record.number] = TrialState.ENDED
        record.judged(why, value, math.nan if bound is None else bound)
        self._generator.told(record.number, record.params, float(self._trials.best[record.number]), True)

    def _died(self, record: LocalTrial) -> None:
        """Begin a trial again whose process has gone without a word, but not for ever."""
        code = self._drop(record)
        state = self._trials.states[record.number]
        if state == TrialState.ENDED:
            return
        record.killed += 1
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if record.killed > KILLS_MAX:
            self._ended(record, f"its process {how}, {record.killed} times")
        elif state == TrialState.RUNNING and not any(start.number == record.number for start in self._queue):
            self._say(f"the process of trial {record.number} {how}: it begins again")
            self._trials.states[record.number] = TrialState.PARKED
            self._trials.start(record.number)
            self._queue.appendleft(Start(record.number, record.why, record.value, record.bound))

    def _drop(self, record: LocalTrial) -> int:
        """End a trial's process, if it has one, and free its slot; return its exit status."""
        process = record.process
        if process is None:
            return 0
        self._leave_slot(record)
        record.process = None
        record.ends_at_s = math.inf
        return process.end()

    def _leave_slot(self, record: LocalTrial) -> None:
        assert record.process is not None
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(record.process.wire)
        if record.slot is not None:
            self._free.append(record.slot)
            self._free.sort()
            record.slot = None

    def _look_at_end(self) -> None:
        if self._ending:
            return
        failed = [record for record in self._records if record.failure]
        if 0 < self._terms.max_time_s <= self._now:
            self._ending = f"{self._terms.max_time_s:g} s are over"
        elif (self._trials.states == TrialState.ENDED).all() and not any(r.process for r in self._records):
            self._ending = "all trials failed" if len(failed) == len(self._records) else "no trial is left"
        elif not self._queue and not any(r.holds_slot for r in self._records):
            self._ending = "the policy starts no further trial"
        elif len(failed) >= FAILURES_MAX and not any(record.values for record in self._records):
            self._ending = f"the first {len(failed)} trials failed"

    def _let_winner_end(self) -> None:
        """Let the program that reached the target end by itself, as it may write its model then."""
        if self._winner is None:
            return
        record = self._records[self._winner]
        until = self._now + GRACE_S
        while record.process is not None and (left := until - self._now) > 0:
            for key, _ in self._selector.select(left):
                if key.data is record:
                    self._hear(record)

    def _say(self, line: str) -> None:
        if line not in self._notices:
            self._notices.append(line)
            self._note(line)

    def view(self) -> ExplorationView:
        """Return how it stands."""
        return shown(
            self._terms,
            self._name,
            self._trials,
            self._records,
            self._notices,
            now_s=self._now,
            ending=self._ending,
            winner=self._winner,
            reached_s=self._reached_s,
        )
