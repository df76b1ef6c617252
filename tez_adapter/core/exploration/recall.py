"""An exploration that goes on after its job manager was lost: the records of the earlier attempt, gone through again.

The policy gets the same calls with the same numbers, so it knows all that it knew: rungs, chances, labels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.records import reached_text
from tez_adapter.core.exploration.runs import Run
from yaqd.policies.explore.facts import Action, Start, TrialState, Verdict, Why

#: records that end an exploration; one that resumes it does without
ENDS = frozenset(("stop", "over"))

Record = Mapping[str, Any]


def recall(machine: ExplorationMachine, records: Sequence[Record]) -> None:
    """Go through records. Raises ValueError, KeyError, TypeError and IndexError for those of something else."""
    for record in records:
        _recall(machine, record)
    machine.take_up()


def _recall(machine: ExplorationMachine, record: Record) -> None:
    number = int(record.get("number", -1))
    match record["do"]:
        case "allocate":
            machine.policy.allocate(machine.trials, int(record["free"]), float(record["now"]))
            for row in record["starts"]:
                machine.started(Start(int(row[0]), Why(int(row[1])), float(row[2]), float(row[3])))
        case "params" if record["params"] is None:
            machine.no_more(number)
        case "params":
            machine.runs[number].params = record["params"]
        case "drawn":
            machine.runs[number].drawn = record["values"]
        case "report":
            _recall_report(machine, machine.runs[number], record)
        case "checkpoint":
            run = machine.runs[number]
            run.checkpoint, run.checkpoint_bytes = int(record["iteration"]), int(record["bytes"])
        case "checkpoint-lost":
            machine.runs[number].checkpoint = None
        case "begin":
            machine.runs[number].began(int(record["lap"]), float(record["now"]))
        case "loss":
            machine.runs[number].losses += 1
        case "ended":
            run, why = machine.runs[number], Why(int(record["why"]))
            run.error = str(record["error"])
            run.verdict = Verdict(Action.TERMINATE, why, int(machine.trials.counts[number]), machine.trials.epochs)
            machine.trials.settle(number, run.verdict)
        case "stop":
            machine.ending = str(record["reason"])
        case "over":
            machine.over = ev.EndExploration(bool(record["succeeded"]), str(record["text"]))
            if machine.winner is None and record["winner"] is not None:
                machine.winner, machine.reached_s = int(record["winner"]), float(record["now"])


def settled(machine: ExplorationMachine, now: float) -> list[dict[str, Any]]:
    """Return the records that end a resumed exploration at once where there is nothing left for it to do.

    `now`: its own time, s. What an earlier job reported counts against the target that is asked now.
    """
    winner, most_s = _reached_already(machine), machine.rules.terms.max_time_s
    works = machine.findings.works(machine.runs.values())
    if winner is not None:
        text = reached_text(winner)
    elif now >= most_s:
        text = f"the time is over: {most_s:g} s; resume it with a longer --max-time"
    elif (machine.trials.states == TrialState.ENDED).all():
        text = "all trials have ended, so none can go on; begin a new exploration, with other --trials or --epochs"
    else:
        return []
    over = {"do": "over", "succeeded": works, "text": text, "winner": winner, "now": now}
    _recall(machine, over)
    return [over]


def _reached_already(machine: ExplorationMachine) -> int | None:
    """Return the best of the trials whose reports are what is looked for; None: none is."""
    rules = machine.rules
    window = 1 if rules.solved is None else rules.solved.window
    found = [
        run.number
        for run in machine.runs.values()
        if any(
            epoch not in run.broken and rules.is_reached(run.shown[max(0, epoch - window) : epoch])
            for epoch in range(1, len(run.shown) + 1)
        )
    ]
    return max(found, key=lambda number: float(machine.trials.best[number]), default=None)


def _recall_report(machine: ExplorationMachine, run: Run, record: Record) -> None:
    now, trials = float(record["now"]), machine.trials
    run.can_checkpoint = bool(record["can"])
    event = ev.TrialReported(
        run.number,
        run.lap,
        int(record["iteration"]),
        float(record["value"]),
        float(record["took_s"]),
        record["metrics"],
    )
    # the target may be another one than it was then
    machine.noted(run, event, machine.rules.counted(event.value, event.metrics), now)
    machine.policy.reported(trials, run.number, now)
    action, why, value, bound, priority = record["verdict"]
    if record["reached"]:
        machine.winner, machine.reached_s, machine.ending = run.number, now, reached_text(run.number)
    else:
        machine.policy.iterated(trials, run.number, now)
    run.verdict = Verdict(Action(action), Why(why), float(value), float(bound), float(priority))
    trials.settle(run.number, run.verdict)
