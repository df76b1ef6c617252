"""An exploration's machine: events in, records and decisions out.

It asks the policy at the same points as the simulator does. When a trial is parked or ends, the next one for its slot
is chosen at once and begins when the slot is left. So what is decided does not depend on how long a suspend takes. A
trial that is parked and chosen again at once just goes on.
"""

from collections.abc import Callable
from typing import Any

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.findings import Findings
from tez_adapter.core.exploration.placing import Placing
from tez_adapter.core.exploration.records import never_text, reached_text, report_record
from tez_adapter.core.exploration.rules import Rules
from tez_adapter.core.exploration.runs import Run, Slot, TrialPhase
from yaqd.policies.explore.facts import Action, ExplorePolicy, Start, Trials, TrialState, Verdict, Why

#: a process that was to be killed is killed again, s
_KILL_AGAIN_S = 5.0
_CONTINUE = ev.Answer(ev.Order.CONTINUE)
#: events after which the policy may have something to start
_NEWS = frozenset((ev.SlotCame, ev.SlotGone, ev.SlotClosing, ev.ParamsCame, ev.TrialReported))


class ExplorationMachine:
    def __init__(self, policy: ExplorePolicy, trials: Trials, rules: Rules) -> None:
        self.policy, self.trials, self.rules = policy, trials, rules
        self.runs: dict[int, Run] = {}
        self._out = ev.Outcome()
        self._now = 0.0
        self.placing = Placing(rules, self._decide, self._record, trials.suspended)
        #: trials that run for the policy and have lost their process, in the order in which they go on
        self.interrupted: list[Run] = []
        #: the trial that reached the target
        self.winner: int | None = None
        #: when it did, s
        self.reached_s: float | None = None
        #: why no further trial begins; "": they do
        self.ending = ""
        self._end_by = 0.0
        self.over: ev.EndExploration | None = None
        #: the policy had nothing more to start when it was asked last
        self._is_dry = False
        self.findings = Findings(rules)
        #: the policy is to be asked for trials, once for each event
        self._has_news = False
        #: counts changes of trials
        self.version = 0
        self._handlers: dict[type, Callable[..., None]] = {
            ev.SlotCame: self._on_slot_came,
            ev.SlotGone: self._on_slot_gone,
            ev.SlotClosing: self._on_slot_closing,
            ev.ParamsCame: self._on_params,
            ev.TrialReported: self._on_report,
            ev.ReportLeftOut: self._on_left_out,
            ev.CheckpointKept: self._on_kept,
            ev.CheckpointLost: self._on_lost,
            ev.TrialStopped: self._on_stopped,
            ev.TrialOver: self._on_trial_over,
            ev.StopAsked: self._on_stop,
            ev.ClockTicked: self._on_time,
        }

    def handle(self, event: ev.Event, now: float) -> ev.Outcome:
        """Return what follows from an event. `now`: seconds since the exploration began."""
        self._out, self._now = ev.Outcome(), now
        self.placing.hear(event, now)
        self._has_news = type(event) in _NEWS
        if self.over is None:
            self._handlers[type(event)](event)
            if self._has_news and not self.ending:
                self._fill()
            self.placing.advance()
            self._end_if_done()
        elif isinstance(event, ev.SlotCame | ev.TrialReported | ev.ReportLeftOut):
            self._decide(ev.LEAVE)
        return self._out

    def run(self, number: int) -> Run:
        """Return what is known of a trial that was started. Raises KeyError."""
        return self.runs[number]

    # ---- slots

    def _on_slot_came(self, event: ev.SlotCame) -> None:
        self.placing.slots.add(Slot(event.slot, event.host, event.can_dump, event.cannot_dump))

    def _on_slot_gone(self, event: ev.SlotGone) -> None:
        ran = {run.number for run in self.placing.live() if run.phase is TrialPhase.RUNNING}
        for run in self.placing.lost(event.slot):
            self._touch(run)
            if not self._runs(run) or self.placing.follows(run) or run in self.interrupted:
                continue
            if not (event.error and run.number in ran) or self._goes_on(run, event.error):
                self.interrupted.append(run)

    def _goes_on(self, run: Run, error: str, what: str = "is taken up again") -> bool:
        """Note that a trial's process was lost, or failed to leave; return False where that came too often."""
        if run.losses >= self.rules.losses_max:
            self.placing.withdraw(run)
            self._ended_by_itself(run, error)
            return False
        run.losses += 1
        self._record({"do": "loss", "number": run.number, "error": error})
        self._decide(ev.Say(f"trial {run.number} {what}: {error}"))
        return True

    def _on_slot_closing(self, event: ev.SlotClosing) -> None:
        following = self.placing.close(event.slot)
        if following is not None and self._runs(following):
            self.interrupted.insert(0, following)

    # ---- which trials run

    def _fill(self) -> None:
        """Give free slots to trials that were interrupted, then to those that the policy chooses."""
        self._has_news = False
        free = self.placing.slots.free()
        while self.interrupted and free:
            self.placing.place(self.interrupted.pop(0), free)
        if not free:
            return
        starts = self.policy.allocate(self.trials, len(free), self._now)[: len(free)]
        self._is_dry = not starts
        rows = [[start.number, int(start.why), start.value, start.bound] for start in starts]
        self._record({"do": "allocate", "free": len(free), "now": self._now, "starts": rows})
        self.placing.place_all([self.started(start) for start in starts], free)

    def started(self, start: Start) -> Run:
        """Note that the policy starts a trial; return what is known of it."""
        self.trials.start(start.number)
        run = self.runs.setdefault(start.number, Run(start.number))
        run.verdict = Verdict(Action.CONTINUE, start.why, start.value, start.bound)
        self._touch(run)
        return run

    def _on_params(self, event: ev.ParamsCame) -> None:
        run = self.runs[event.number]
        if run.params is not None:
            return
        self._record({"do": "params", "number": event.number, "params": event.params})
        if event.params is not None:
            run.params = event.params
            return
        self.placing.withdraw(run)
        self.no_more(event.number)

    def no_more(self, number: int) -> None:
        """End what the generator has no values for: this trial, and all that would come after it."""
        self.trials.states[self.trials.states == TrialState.FRESH] = TrialState.ENDED
        self.trials.states[number] = TrialState.ENDED

    def _runs(self, run: Run) -> bool:
        return bool(self.trials.states[run.number] == TrialState.RUNNING)

    # ---- reports

    def _on_report(self, event: ev.TrialReported) -> None:
        stale, run = self.stale(event), self.runs.get(event.number)
        if stale is not None or run is None:
            self._decide(stale or ev.LEAVE)
        elif event.iteration <= run.iteration:
            self._decide(run.answer or _CONTINUE)
        else:
            run.can_checkpoint, run.memory_mb, run.image_mb = event.can_checkpoint, event.memory_mb, 0
            risen = self.rules.counted(event.value, event.metrics)
            self._out.decisions += map(ev.Say, self.findings.odd(event, risen))
            if event.drawn != run.drawn:
                run.drawn = event.drawn
                self._record({"do": "drawn", "number": run.number, "values": run.drawn})
            verdict, reached = self._judge(run, event, risen)
            self._record(report_record(event, self._now, verdict, reached=reached))
            run.answer = self._answer(run, verdict, reached=reached)
            self._decide(run.answer)
            self._touch(run)

    def stale(self, event: ev.TrialReported | ev.ReportLeftOut) -> ev.Answer | None:
        """Return the answer to a process whose reports count no more; None: they count."""
        run = self.runs.get(event.number)
        if run is None or run.lap != event.lap or run.phase in (TrialPhase.NONE, TrialPhase.FROZEN):
            return ev.LEAVE
        return run.answer or _CONTINUE if run.phase is TrialPhase.LEAVING or not self._runs(run) else None

    def _judge(self, run: Run, event: ev.TrialReported, risen: float) -> tuple[Verdict, bool]:
        """Let the policy judge the epoch; return its verdict, and whether the exploration is done with it."""
        self.noted(run, event, risen, self._now)
        self.policy.reported(self.trials, run.number, self._now)
        if len(run.shown) not in run.broken[-1:] and self.rules.is_reached(run.shown):
            return Verdict(Action.TERMINATE, Why.REACHED, event.value, self.rules.goal), True
        return self.policy.iterated(self.trials, run.number, self._now), False

    def _answer(self, run: Run, verdict: Verdict, *, reached: bool) -> ev.Answer:
        run.verdict, state = verdict, self.trials.settle(run.number, verdict)
        self._decide(ev.TellGenerator(run.number, self.trials.score(run.number), state == TrialState.ENDED))
        if reached:
            self._win(run)
        moves = state == TrialState.RUNNING and self.placing.is_closing(run)
        if moves or (self.ending and state != TrialState.ENDED):
            # when the exploration ends, or its slot is wanted back
            parting = ev.Answer(ev.Order.SUSPEND if run.can_checkpoint else ev.Order.STOP)
            return self.placing.leave(run, parting, self.rules.suspend_wait_s)
        if state == TrialState.RUNNING:
            return ev.Answer(ev.Order.CONTINUE, self._is_checkpoint_due(run))
        self.placing.leaves(run)
        if not self.ending:
            self._fill()
        if state == TrialState.PARKED and self.placing.takes_back(run):
            return ev.Answer(ev.Order.CONTINUE, self._is_checkpoint_due(run))
        if state == TrialState.ENDED:
            wanted = reached and run.can_checkpoint
            return self.placing.leave(run, ev.Answer(ev.Order.STOP, wanted), self.rules.stop_wait_s)
        return self.placing.leave(run, self.placing.suspension(run, self.trials.priority), self.rules.suspend_wait_s)

    def _is_checkpoint_due(self, run: Run) -> bool:
        if not run.can_checkpoint or self._now - run.checkpoint_at < self.rules.checkpoint_every_s:
            return False
        run.checkpoint_at = self._now
        return True

    def noted(self, run: Run, event: ev.TrialReported, risen: float, now: float) -> None:
        """Note what a trial reported."""
        held = self.rules.keeps_limits(event.metrics)
        self.trials.report(run.number, risen, event.took_s)
        run.reported(event.iteration, event.value, now, held=held)
        self.findings.heard(run.number, risen, held=held)

    def _on_left_out(self, event: ev.ReportLeftOut) -> None:
        """A report without the metric. A trial that never has it fails; where none ever had it, so do all."""
        stale, run = self.stale(event), self.runs.get(event.number)
        if stale is not None or run is None:
            self._decide(stale or ev.LEAVE)
            return
        self._out.decisions += map(ev.Say, self.findings.absent(event))
        if run.shown or event.many < self.trials.epochs:
            self._decide(_CONTINUE)
            return
        text, self._has_news = never_text(event, self.rules.metric_name), True
        self._decide(self.placing.leave(run, ev.Answer(ev.Order.STOP), self.rules.stop_wait_s))
        if self.findings.has_reported:
            self._ended_by_itself(run, text)
        else:
            self._finish(False, f"trial {run.number} failed: {text}")

    def woken(self, number: int, lap: int) -> ev.Answer:
        """Answer a trial that was stopped in place and asks what is wanted of it now."""
        run = self.runs.get(number)
        return ev.LEAVE if run is None or self.over is not None else self.placing.woken(run, lap)

    # ---- checkpoints and processes

    def _on_kept(self, event: ev.CheckpointKept) -> None:
        run = self.runs[event.number]
        run.checkpoint, run.checkpoint_bytes, run.checkpoint_at = event.iteration, event.bytes, self._now
        fields = {"number": event.number, "iteration": event.iteration, "bytes": event.bytes}
        self._record({"do": "checkpoint", "now": self._now, **fields})

    def _on_lost(self, event: ev.CheckpointLost) -> None:
        run = self.runs[event.number]
        run.checkpoint, run.checkpoint_bytes = None, 0
        self._record({"do": "checkpoint-lost", "number": event.number})

    def _on_stopped(self, event: ev.TrialStopped) -> None:
        run = self.runs.get(event.number)
        if run is None or run.lap != event.lap:
            return
        if run.phase is TrialPhase.LEAVING and self.ending:
            self.placing.kill(run)
        elif run.phase is TrialPhase.LEAVING:
            self.placing.frozen(run, event)
            self._touch(run)
        elif run.phase is TrialPhase.RUNNING:  # by somebody else, who does not know that it would stay so
            self._decide(ev.ThawTrial(run.home, run.number, run.lap))

    def _on_trial_over(self, event: ev.TrialOver) -> None:
        run = self.runs.get(event.number)
        if run is None or run.lap != event.lap or run.phase is TrialPhase.NONE:
            return
        was_running = self._has_news = run.phase is TrialPhase.RUNNING
        makes_room = run.makes_room(self.trials.states[run.number], ending=bool(self.ending))
        went_on = bool(was_running and run.image_mb and event.error)  # from an image that may be to blame
        if went_on:
            self.placing.image_failed(run, event.error)
        self.placing.left(run)
        self._touch(run)
        if was_running and self._runs(run) and not self.ending:
            if not went_on and not event.is_killed:
                self._ended_by_itself(run, event.error)
            elif went_on or self._goes_on(run, event.error):
                self.interrupted.append(run)
            return
        if event.error and not event.is_killed and makes_room:  # it goes on from an earlier checkpoint
            self._goes_on(run, event.error, "failed as it was suspended")
        if self._runs(run) and not self.ending and not self.placing.follows(run):
            self._has_news = True
            self.interrupted.append(run)

    def _ended_by_itself(self, run: Run, error: str) -> None:
        count = int(self.trials.counts[run.number])
        if not count and not error:
            error = f"its program ended and reported no {self.rules.metric_name}"
        why = Why.FAILED if error else Why.LEFT
        run.error = error
        run.verdict = Verdict(Action.TERMINATE, why, count, self.trials.epochs)
        self._record({"do": "ended", "number": run.number, "why": int(why), "error": error})
        self.trials.settle(run.number, run.verdict)
        self._decide(ev.TellGenerator(run.number, self.trials.score(run.number), True))
        if error and (why_all := self.findings.failed(error, len(self.trials))):
            self._finish(False, why_all)

    # ---- the end

    def _win(self, run: Run) -> None:
        self.winner, self.reached_s = run.number, self._now
        self._begin_end(reached_text(run.number), self.rules.stop_wait_s)
        for other in self.placing.live():
            if other is not run:
                self.placing.kill(other)

    def _on_stop(self, event: ev.StopAsked) -> None:
        if not self.ending:
            self._begin_end(event.reason, self.rules.end_wait_s)
            self._record({"do": "stop", "reason": event.reason})
            for run in self.placing.live():
                if run.phase is TrialPhase.FROZEN:
                    self.placing.evict(run)

    def _begin_end(self, reason: str, wait_s: float) -> None:
        self.ending, self._end_by = reason, self._now + wait_s
        self.interrupted.clear()
        self.placing.clear()

    def _on_time(self, _: ev.ClockTicked) -> None:
        for run in self.placing.live():
            if self._now >= run.deadline:
                run.deadline = self._now + _KILL_AGAIN_S
                self._decide(ev.KillTrial(run.home, run.number, run.lap))
        self._release_slots()
        if not self.ending and self._now >= self.rules.terms.max_time_s:
            self._on_stop(ev.StopAsked(f"the time is over: {self.rules.terms.max_time_s:g} s"))

    @property
    def slots_wanted(self) -> int:
        """Slots that are of use: no more than there are trials that have not ended."""
        return min(self.rules.terms.slots, max(1, int((self.trials.states != TrialState.ENDED).sum())))

    @property
    def progress(self) -> float:
        """How far it is, 0..1: by the trials that have ended, or by its time."""
        ended = float((self.trials.states == TrialState.ENDED).mean())
        return 1.0 if self.over is not None else max(ended, min(1.0, self._now / self.rules.terms.max_time_s))

    def _release_slots(self) -> None:
        for slot in self.placing.released(self.slots_wanted):
            self._decide(ev.ReleaseSlot(slot.name))

    def _end_if_done(self) -> None:
        if self.over is not None:
            return
        live = self.placing.live()
        if self.ending and (not live or self._now >= self._end_by):
            for run in live:
                self.placing.kill(run)
            self._finish(self.findings.has_reported, self.ending)
        elif self._is_dry and self.placing.is_idle and not (live or self.ending or self.interrupted):
            waits = bool((self.trials.states == TrialState.PARKED).any())
            self._finish(*self.findings.end(self.runs.values(), waits=waits))

    def _finish(self, succeeded: bool, text: str) -> None:
        self.over = ev.EndExploration(succeeded, text)
        self._record({"do": "over", "succeeded": succeeded, "text": text, "winner": self.winner})
        self._decide(self.over)

    # ---- parts

    def _decide(self, decision: ev.Decision) -> None:
        self._out.decisions.append(decision)

    def _record(self, record: dict[str, Any]) -> None:
        self._out.records.append(record)

    def _touch(self, run: Run) -> None:
        self.version += 1
        run.version = self.version

    @property
    def best(self) -> int | None:
        """The trial that reached the target; without one the best that keeps the limits."""
        return self.findings.best if self.winner is None else self.winner

    # ---- after a restart (`recall.py`)

    def take_up(self) -> None:
        """Have trials go on that ran when the records end."""
        running = [run for run in self.runs.values() if self._runs(run)]
        self.interrupted = [] if self.ending or self.over is not None else running
        for run in self.runs.values():
            self._touch(run)
        self._out = ev.Outcome()
