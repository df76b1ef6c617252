"""A local exploration: the machine of a live one decides (`tez_adapter/core/exploration`), and this carries it out.

Its slots are numbers, its containers one process that forks the trials. A report is answered when it is decided. So
which trials run on does not depend on how fast this process is.
"""

import contextlib
import selectors
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.runs import Run
from tez_adapter.exploration.beginnings import make_machine
from tez_adapter.exploration.joins.begun import Begun
from tez_adapter.exploration.joins.style import Joined
from tez_adapter.exploration.local.forking import TrialForker
from tez_adapter.exploration.local.process import TrialProcess
from tez_adapter.exploration.local.saved import SavedTrials
from tez_adapter.exploration.local.shown import shown
from tez_adapter.exploration.nursery import how_it_ended
from tez_adapter.exploration.settings import ExplorationSettings
from tez_adapter.exploration.view import ExplorationView
from tez_adapter.jobspec import Exploration
from yaqd.ml.channel import back_text
from yaqd.ml.reporting import usable_cores

_HERE: Final = "here"
#: the machine hears of the time so often, s
_TICK_S: Final = 0.25
_SAID: Final[Mapping[ev.Order, str]] = {
    ev.Order.CONTINUE: "continue",
    ev.Order.SUSPEND: "suspend",
    ev.Order.STOP: "stop",
    ev.Order.LEAVE: "leave",
}


class LocalExploration:
    """One exploration. `run` goes to its end; `view` shows it at any time."""

    def __init__(
        self,
        terms: Exploration,
        joined: Joined,
        settings: ExplorationSettings,
        folder: Path,
        *,
        name: str = "",
        heard: Callable[[Run], None] = lambda run: None,
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`folder`: for the programs' output and the checkpoints. `heard`: is told of a trial that reported. `note`: is
        told what is wrong, in a line each. Raises ValueError, JobError and GeneratorError."""
        self._terms, self._joined, self._folder, self._name = terms, joined, folder, name
        self._heard, self._note = heard, note
        self._notices: list[str] = []
        self._machine, self._generator = make_machine(terms, settings, note=self._say)
        self._saved = SavedTrials(folder, settings.checkpoints_bytes_max)
        self._forker = TrialForker(joined.path, threads=max(1, int(usable_cores() // terms.slots)))
        self._processes: dict[int, TrialProcess] = {}
        self._selector = selectors.DefaultSelector()
        self._events: deque[ev.Event] = deque()
        self._begin = time.monotonic()
        self._ticked_s = 0.0
        self._is_interrupted = self._said_back = False

    @property
    def _is_over(self) -> bool:
        """Whether it has ended. Nothing goes on later here, so no checkpoint of what runs is waited for."""
        machine = self._machine
        return machine.over is not None or (bool(machine.ending) and machine.winner is None)

    @property
    def has_failed(self) -> bool:
        """Whether it has ended because its trials failed."""
        return self._machine.over is not None and not self._machine.over.succeeded

    @property
    def _now(self) -> float:
        return time.monotonic() - self._begin

    def run(self) -> ExplorationView:
        """Run to the end: target, time, or no trial left. No process is left, whatever ends it."""
        try:
            for slot in range(self._terms.slots):
                self._do(ev.SlotCame(str(slot), _HERE))
            while not self._is_over:
                for key, _ in self._selector.select(_TICK_S):
                    self._hear(key.data)
                if self._now - self._ticked_s >= _TICK_S:
                    self._ticked_s = self._now
                    self._do(ev.ClockTicked())
        except KeyboardInterrupt:
            self._is_interrupted = True
            raise
        finally:
            for process in list(self._processes.values()):
                self._end(process)
            self._selector.close()
            self._generator.close()
            self._forker.close()
        return self.view()

    def view(self) -> ExplorationView:
        """Return how it stands."""
        ending = "it was interrupted" if self._is_interrupted else ""
        return shown(self._machine, self._terms, self._name, self._now, self._notices, ending)

    # ---- events in

    def _do(self, event: ev.Event) -> None:
        """Let the machine handle an event, and those that come of it."""
        self._events.append(event)
        while self._events:
            outcome = self._machine.handle(self._events.popleft(), self._now)
            for decision in outcome.decisions:
                self._carry_out(decision)

    def _hear(self, process: TrialProcess) -> None:
        if self._processes.get(process.number) is not process:
            return
        try:
            message, data = process.wire.receive()
        except (OSError, ValueError):
            code = self._end(process)
            self._do(ev.TrialOver(process.number, process.lap, how_it_ended(code), is_killed=code != 0))
            return
        if message["say"] == "report":
            self._report(process, message)
        elif message["say"] == "checkpoint":
            self._keep(process, int(message["iteration"]), data)
        else:
            self._end(process)
            failure = str(message["failure"])
            # one that failed as it was suspended may go on: the machine says so
            state, ending = self._machine.trials.states[process.number], bool(self._machine.ending)
            if failure and not self._machine.run(process.number).makes_room(state, ending=ending):
                self._say(f"trial {process.number} failed: {failure}")
            self._do(ev.TrialOver(process.number, process.lap, failure))

    def _report(self, process: TrialProcess, message: dict[str, Any]) -> None:
        metrics, saves, iteration = message["metrics"], bool(message["saves"]), int(message["iteration"])
        if process.last is not None and iteration <= process.last and not self._said_back:
            self._said_back = True
            self._say(f"trial {process.number}: {back_text(iteration, process.last)}")
        process.last = iteration
        event: ev.TrialReported | ev.ReportLeftOut
        if self._terms.metric in metrics:
            event = ev.TrialReported(
                process.number,
                process.lap,
                iteration,
                metrics[self._terms.metric],
                float(message["took_s"]),
                metrics,
                saves,
                0 if saves else process.memory_mb(),
                message["drawn"],
            )
        else:
            process.left_out += 1
            event = ev.ReportLeftOut(process.number, process.lap, tuple(metrics), process.left_out)
        outcome = self._machine.handle(event, self._now)
        self._answer(process, outcome.answer)
        for decision in outcome.decisions:
            self._carry_out(decision)
        self._heard(self._machine.run(process.number))
        if self._events:
            self._do(self._events.popleft())

    def _answer(self, process: TrialProcess, answer: ev.Answer) -> None:
        if answer.order is ev.Order.FREEZE:
            process.stop()
            self._events.append(ev.TrialStopped(process.number, process.lap, process.memory_mb()))
        else:
            process.answer(_SAID[answer.order], wants_checkpoint=answer.wants_checkpoint)

    def _keep(self, process: TrialProcess, iteration: int, data: bytes) -> None:
        """Keep a checkpoint; those that must make room for it are the least promising."""
        run, priority = self._machine.run(process.number), self._machine.trials.priority
        epochs = sum(one <= iteration for one in run.iterations)
        try:
            dropped = self._saved.put(run.number, epochs, data, dict(enumerate(priority.tolist())))
        except OSError as error:
            self._say(f"the checkpoint of trial {run.number} is not kept: {error.strerror or error}")
            return
        self._do(ev.CheckpointKept(run.number, iteration, len(data)))
        for number in dropped:
            self._say(f"checkpoints are over their budget: trial {number} begins anew when it goes on")
            self._do(ev.CheckpointLost(number))

    # ---- decisions out

    def _carry_out(self, decision: ev.Decision) -> None:
        match decision:
            case ev.Propose(number):
                self._events.append(ev.ParamsCame(number, self._generator.propose(number)))
            case ev.BeginTrial(_, number, lap):
                self._start(number, lap)
            case ev.ThawTrial(_, number, lap) if number in self._processes:
                self._processes[number].go_on()
                self._answer(self._processes[number], self._machine.woken(number, lap))
            case ev.KillTrial(_, number, lap) if number in self._processes:
                self._end(self._processes[number])
                self._events.append(ev.TrialOver(number, lap, "it was ended", is_killed=True))
            case ev.TellGenerator(number, value, is_final):
                self._generator.told(number, self._machine.run(number).params or {}, value, is_final)
            case ev.Say(line):
                self._say(line)

    def _start(self, number: int, lap: int) -> None:
        run, terms = self._machine.run(number), self._terms
        saved = self._saved.get(number) if run.checkpoint is not None else None
        if saved is None and run.checkpoint is not None:
            self._events.append(ev.CheckpointLost(number))
        epochs, checkpoint = saved if saved is not None else (0, None)
        begun = Begun(number, run.params or {}, terms.metric, terms.pattern, terms.epochs, epochs, terms.seed)
        log = self._folder / f"trial-{number}.log"
        process = TrialProcess(self._forker, self._joined, terms.arguments, begun, lap, checkpoint, log=log)
        self._processes[number] = process
        self._selector.register(process.wire, selectors.EVENT_READ, process)

    def _end(self, process: TrialProcess) -> int:
        """End a trial's processes; return the exit status of its first one."""
        del self._processes[process.number]
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(process.wire)
        return process.end()

    def _say(self, line: str) -> None:
        if line not in self._notices:
            self._notices.append(line)
            self._note(line)
