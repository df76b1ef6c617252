"""Hyperparameters found on this machine: ours beside Default, EarlyTerm, ASHA and Bandit, and all beside their replay.

A cluster of two nodes with one slot each explores the same configurations in the same order under one policy after the
other. The policy alone differs, but that ours is told where rewards of landers begin. Order by order the first policy
to run moves on by one. Time: from the begin of the exploration until the first report of the target.

- `live-digits`: 60 perceptrons on scikit-learn's digits, 30 epochs of 2 core-seconds, target: the 7th best maximum.
- `live-lander`: 40 cross-entropy searches for LunarLander (`pip install 'gymnasium[box2d]'`), at most 40 epochs of 100
  episodes, solved at a mean reward of 200.
- `live-simulated`: each exploration replayed with the metrics and epoch times that were recorded of it, as a part of
  its live time; mean over orders, each policy.

`--runs N`: orders. `--scale S`: epochs of digits last S times as long; of either, fewer trials below 0.05.

    python -m benchmarks.hyperdrive.live_rows --only live-digits --runs 1 --scale 0.1
"""

import importlib.util
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.options import Options, parse_options, progress, show
from benchmarks.ours import OurCluster
from benchmarks.report import Row, spread
from benchmarks.stock.conf import NodeShape
from tez_adapter.client.exploration import submit_exploration
from tez_adapter.client.training import folder_of
from tez_adapter.exploration.store import read_records
from tez_adapter.exploration.terms import make_policy, metric_of, policy_terms
from tez_adapter.jobspec import Exploration
from yaqd.config import Configuration
from yaqd.ml.space import Params, Space
from yaqd.policies.curves.samples import Floats
from yaqd.sim.exploration.trace import explore
from yaqd.sim.workloads.exploration import Recorded

ROWS: Final = ("live-digits", "live-lander", "live-simulated")
LEAST: Final = {
    "live-digits": {"earlyterm": "1.5x", "default": "2.5x", "asha-stop": "1.1x"},
    "live-lander": {"default": "1.5x", "earlyterm": "shown (reported 1.26x)", "bandit": "shown (reported 2.07x)"},
}
_PROGRAMS: Final = Path(__file__).parents[2] / "yaqd" / "ml" / "examples" / "trials"
_SLOTS: Final = 2
_EPOCH_S: Final = 2.0
_RANK: Final = 7
_SEED: Final = 1
#: a scale below makes fewer trials too
_ALL_FROM: Final = 0.05
_TIMEOUT_S: Final = 8 * 3600.0
#: epochs of a configuration from which its own time counts in its replay
_KNOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Task:
    """What is explored."""

    row: str
    program: str
    trials: int
    #: all that does not depend on the policy
    terms: Exploration
    others: tuple[str, ...]


#: ours knows of rewards where they begin, and that most searches learn nothing; of digits no more than the others. The
#: level was chosen on orders 100 to 119
_OURS: Final[Mapping[str, Mapping[str, Any]]] = {"live-lander": {"kill": -100.0, "level": "0.45 0.1 0.0 0.3"}}


def digits(options: Options) -> Task:
    """Return the perceptrons, the target among them: each is trained here first, without its padding."""
    space = _space("digits")
    many = 60 if options.scale >= _ALL_FROM else 12
    values = np.array([_accuracies(params) for params in _drawn(space, many)])
    target = float(np.sort(values.max(axis=1))[-min(_RANK, many // 2)])
    terms = Exploration(
        "accuracy",
        target=target,
        slots=_SLOTS,
        epochs=values.shape[1],
        trials=many,
        arguments=("--epoch-seconds", str(_EPOCH_S * min(1.0, options.scale))),
    )
    return Task("live-digits", "digits", many, terms, ("earlyterm", "default", "asha-stop"))


def lander(options: Options) -> Task:
    many, epochs = (40, 40) if options.scale >= _ALL_FROM else (4, 2)
    terms = Exploration("reward", target=200.0, slots=_SLOTS, epochs=epochs, trials=many, lower=-500.0, upper=300.0)
    return Task("live-lander", "lander", many, terms, ("default", "earlyterm", "bandit"))


def _accuracies(params: Params) -> list[float]:
    from yaqd.ml.examples.trials.digits import EPOCHS, DigitsNetwork  # scikit-learn takes a second

    network = DigitsNetwork(params)
    return [network.trained() for _ in range(EPOCHS)]


def _space(name: str) -> Space:
    return Space.parse((_PROGRAMS / f"{name}.toml").read_text(), f"{name}.toml")


def _drawn(space: Space, many: int) -> list[Params]:
    rng = np.random.default_rng(_SEED)
    return [space.draw(rng) for _ in range(many)]


# ---------------------------------------------------------------------------------------------- live


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one live exploration: by trial of the order, its metrics and what each epoch took, s."""

    time_s: float
    is_lost: bool
    values: Mapping[int, list[float]]
    took_s: Mapping[int, list[float]]


def explored(task: Task, policy: str, order: list[int]) -> Found:
    """Explore on a cluster of two nodes that is started for it."""
    terms = terms_under(task, policy, order)
    with (
        tempfile.TemporaryDirectory(prefix="yaq-explore-") as folder,
        OurCluster(Path(folder) / "c", nodes=2, shape=NodeShape(memory_mb=3072, vcores=2)) as cluster,
    ):
        conf = Configuration.load(cluster.conf_dir)
        job = submit_exploration(conf, str(_PROGRAMS / f"{task.program}.py"), terms, memory_mb=1024)
        result = job.wait(timeout_s=_TIMEOUT_S)
        job.close()
        if not result.succeeded:
            raise RuntimeError(f"{task.row}, {policy}: {result.diagnostics}")
        return _found(read_records(conf, folder_of(conf, job.report().user, job.application_id)))


def terms_under(task: Task, policy: str, order: list[int]) -> Exploration:
    """Return what is submitted: the configurations of the task in this order, under a policy."""
    drawn = _drawn(_space(task.program), task.trials)
    lines = "\n".join(json.dumps(drawn[row]) for row in order)
    more = _OURS.get(task.row, {}) if policy == "index" else {}
    return replace(task.terms, policy=policy, generator="file", configurations=lines, **more)


def _found(records: list[dict[str, Any]]) -> Found:
    values: dict[int, list[float]] = {}
    took: dict[int, list[float]] = {}
    reports = [record for record in records if record["do"] == "report"]
    for record in reports:
        values.setdefault(record["number"], []).append(record["value"])
        took.setdefault(record["number"], []).append(record["took_s"])
    last = reports[-1]
    began_s = next(record["now"] for record in records if record["do"] == "begin")
    return Found(last["now"] - began_s, not any(record["reached"] for record in reports), values, took)


# ---------------------------------------------------------------------------------------------- replayed


def replayed(task: Task, policy: str, order: list[int], recorded: Recorded) -> float:
    """Return the time of an exploration in the simulator, s."""
    terms = terms_under(task, policy, order)
    return explore(recorded, np.array(order), policy_terms(terms), make_policy(terms)).time_s


def recorded_of(task: Task, founds: list[tuple[list[int], Found]]) -> Recorded:
    """Return what was seen of each configuration in any exploration; what nobody saw stays as it was last."""
    values: Floats = np.full((task.trials, task.terms.epochs), np.nan)
    taken: dict[int, list[float]] = {}
    risen = metric_of(task.terms).risen
    for order, found in founds:
        for number, seen in found.values.items():
            row = order[number]
            if np.isnan(values[row, len(seen) - 1]):
                values[row, : len(seen)] = [risen(value) for value in seen]
            taken.setdefault(row, []).extend(found.took_s[number])
    # of a few epochs the first would count too much, in which the program starts
    usual_s = statistics.median(second for each in taken.values() for second in each)
    known = {row: each for row, each in taken.items() if len(each) >= _KNOWN}
    epoch_s = np.array([statistics.median(known.get(row, [usual_s])) for row in range(task.trials)])
    return Recorded(task.row, _filled(values), epoch_s, np.zeros((task.trials, 0)))


def timed_as(recorded: Recorded, order: list[int], found: Found) -> Recorded:
    """Return the same metrics with the epoch times of one exploration; epochs that it did not run take the usual time.

    Epochs that are padded to one length end together. Only their own times say which report came first, and so which
    trial went on.
    """
    epoch_s = np.repeat(recorded.epoch_s[:, None], recorded.epochs, axis=1)
    for number, took_s in found.took_s.items():
        epoch_s[order[number], : len(took_s)] = took_s
    return replace(recorded, epoch_s=epoch_s)


def _filled(values: Floats) -> Floats:
    found = values.copy()
    found[np.isnan(found[:, 0]), 0] = 0.0
    for epoch in range(1, found.shape[1]):
        missing = np.isnan(found[:, epoch])
        found[missing, epoch] = found[missing, epoch - 1]
    return found


# ---------------------------------------------------------------------------------------------- rows


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    for row, make in (("live-digits", digits), ("live-lander", lander)):
        if not options.wants(row) and not options.wants("live-simulated"):
            continue
        if row == "live-lander" and importlib.util.find_spec("gymnasium") is None:
            progress("live-lander does not run here: pip install 'gymnasium[box2d]'")
            continue
        task = make(options)
        progress(f"{row}: {task.trials} configurations, target {task.terms.target:g}")
        _one(task, options, rows, beside)
    return rows, beside


def orders(task: Task, many: int) -> list[list[int]]:
    return [np.random.default_rng((_SEED, at)).permutation(task.trials).tolist() for at in range(many)]


def _one(task: Task, options: Options, rows: list[Row], beside: dict[str, Mapping[str, Any]]) -> None:
    policies = ("index", *(task.others if options.theirs else ()))
    found: dict[str, list[Found]] = {policy: [] for policy in policies}
    chosen = orders(task, options.runs)
    for at, order in enumerate(chosen):
        for turn in range(len(policies)):
            policy = policies[(at + turn) % len(policies)]
            one = explored(task, policy, order)
            found[policy].append(one)
            progress(f"{task.row}, order {at + 1}, {policy}: {one.time_s:.1f} s{', lost' if one.is_lost else ''}")
    report(task, chosen, found, rows, beside)


def report(
    task: Task,
    chosen: list[list[int]],
    found: Mapping[str, list[Found]],
    rows: list[Row],
    beside: dict[str, Mapping[str, Any]],
) -> None:
    """Add the rows of a task to those of others."""
    seen = [(order, each[at]) for each in found.values() for at, order in enumerate(chosen)]
    recorded = recorded_of(task, seen)
    ours_s = statistics.fmean(one.time_s for one in found["index"])
    for policy, each in found.items():
        times = [one.time_s for one in each]
        mean_s = statistics.fmean(times)
        if policy != "index":
            row = f"{task.row}-{policy}"
            ratios = [other / own.time_s for other, own in zip(times, found["index"], strict=True)]
            rows.append(Row(row, ours_s, mean_s, "s", mean_s / ours_s, spread(ratios), len(each)))
            beside[row] = {
                "at least": LEAST[task.row][policy],
                "by order": " ".join(f"{ratio:.2f}x" for ratio in ratios),
                "lost, ours and theirs": [sum(one.is_lost for one in side) for side in (found["index"], each)],
            }
        again = [
            replayed(task, policy, order, timed_as(recorded, order, one))
            for order, one in zip(chosen, each, strict=True)
        ]
        row = f"live-simulated-{task.program}-{policy}"
        part = statistics.fmean(again) / mean_s
        rows.append(Row(row, statistics.fmean(again), mean_s, "s", part, 0.0, len(again)))
        beside[row] = {
            "within": "0.87 to 1.13",
            "live": [round(s, 1) for s in times],
            "simulated": [round(s, 1) for s in again],
        }


def main() -> int:
    options = parse_options("hyperdrive.live_rows", "Hyperparameters are found live.", ROWS, runs=3)
    return show(*measure(options), options)


if __name__ == "__main__":
    sys.exit(main())
