"""Cases of jobs that are graphs of stages: one policy on the sequences of a setting."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from yaqd.config.stage_weights import Objective, shipped_weights
from yaqd.model.values import value
from yaqd.policies.clotho.facts import StagePolicy
from yaqd.policies.clotho.learned import Learned
from yaqd.policies.clotho.policies import STAGES
from yaqd.sim.stages.rules import Finished, Rules
from yaqd.sim.stages.settings import SETTINGS
from yaqd.sim.stages.world import run_load
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.graphs import GraphLoad, GraphSet, draw_graphs
from yaqd.sim.workloads.tpch import find_tpch, tpch

STAGING_NAMES: Final = {
    "stage_jct_s": "completion time of jobs that are graphs, mean over sequences (s)",
    "stage_makespan_s": "until the last job is over, mean over sequences (s)",
    "stage_decisions": "decisions in a sequence, mean",
}
#: of the learned policy's names: which weights
LEARNED: Final[dict[str, Objective]] = {"clotho": "mean", "clotho-makespan": "makespan", "clotho-unseen": "unseen"}
_DRAWN_SEED: Final = 1


@value()
class StagingDrawn:
    """Which sequences of graphs run."""

    setting: str
    graphs: Literal["tpch", "drawn"] = "tpch"
    #: sequences; 0: as many as are reported
    seeds: int = 0

    @property
    def name(self) -> str:
        """What runs, for tables."""
        return f"{self.setting}, graphs of {self.graphs}"


@value()
class StagingCase:
    """One policy on one setting."""

    label: str
    workload: StagingDrawn
    policy: str
    #: the policy's own, by name
    options: tuple[tuple[str, float], ...] = ()
    #: read by what searches limits; there are none to search here
    limits: tuple[int, ...] = ()

    @property
    def conditions(self) -> str:
        """The workload in words."""
        measured = SETTINGS[self.workload.setting]
        many = self.workload.seeds or measured.seeds
        rules = measured.rules
        return f"{self.workload.name}, {many} sequences, {rules.slots} slots, moves of {rules.move_s:g} s"

    def smaller(self, part: int) -> "StagingCase":
        """Return the same on a part of the sequences."""
        many = self.workload.seeds or SETTINGS[self.workload.setting].seeds
        return replace(self, workload=replace(self.workload, seeds=max(1, many // (2 * part))))


def missing_graphs(cases: Sequence[object]) -> str | None:
    """Return what these cases need and is not on this machine; None: nothing."""
    if any(isinstance(case, StagingCase) and case.workload.graphs == "tpch" for case in cases):
        try:
            find_tpch()
        except WorkloadError as error:
            return str(error)
    return None


def stage_policy(case: StagingCase) -> StagePolicy:
    """Return the case's policy. Raises ValueError where its weights do not load, or no policy has its name."""
    if case.policy in LEARNED:
        return Learned(shipped_weights(LEARNED[case.policy]), note=_refuse)
    return STAGES[case.policy](**dict(case.options))


def _refuse(line: str) -> None:
    raise ValueError(line)


def run_staging(case: StagingCase, seed: int) -> tuple[dict[str, float], tuple[float, ...]]:
    """Return the case's numbers, and each job's completion time in s. `seed`: 1 has the sequences that are reported.

    The compiled simulator runs where numba is installed, the plain one elsewhere: both decide alike. Raises ValueError
    where the graphs are not there.
    """
    try:
        graphs: GraphSet = tpch(find_tpch()) if case.workload.graphs == "tpch" else draw_graphs(_DRAWN_SEED)
    except WorkloadError as error:
        raise ValueError(str(error)) from None
    measured = SETTINGS[case.workload.setting]
    loads = measured.loads(graphs, case.workload.seeds or None, seed - 1)
    found = _compiled(case, loads, measured.rules)
    if found is None:
        found = [run_load(load, stage_policy(case), measured.rules) for load in loads]
    numbers = {
        "stage_jct_s": np.mean([run.mean_s for run in found]),
        "stage_makespan_s": np.mean([run.makespan_s for run in found]),
        "stage_decisions": np.mean([run.decisions for run in found]),
    }
    times = tuple(float(took) for run in found for took in run.took_s)
    return {name: float(number) for name, number in numbers.items()}, times


def _compiled(case: StagingCase, loads: list[GraphLoad], rules: Rules) -> list[Finished] | None:
    try:
        from yaqd.sim.stages.measuring import contender_of, run_contender, run_weights
    except ImportError:
        return None
    from yaqd.policies.clotho.weights import unpack

    if case.policy in LEARNED:
        return run_weights(unpack(shipped_weights(LEARNED[case.policy])).flat(), loads, rules)
    contender = contender_of(case.policy, dict(case.options))
    return None if contender is None else run_contender(contender, loads, rules)
