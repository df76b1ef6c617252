"""The paper's experiments by name, each declared as data, run by one function."""

from typing import Final

from yaqd.sim.experiments.baselines import BASELINES
from yaqd.sim.experiments.clotho import CLOTHO
from yaqd.sim.experiments.guards import GUARDS, REBALANCING
from yaqd.sim.experiments.headline import CENTRAL, DISTRIBUTED
from yaqd.sim.experiments.hyperdrive import HYPERDRIVE
from yaqd.sim.experiments.longest import LONGEST
from yaqd.sim.experiments.model import Case, Experiment, Measure, Plot, Row, Run
from yaqd.sim.experiments.ordering import ESTIMATES, HEAVY_TAIL, MATRIX, ORDERING, PLACEMENT, STARVATION
from yaqd.sim.experiments.queue_length import BOUNDING, UTILIZATION
from yaqd.sim.experiments.runner import quick, run_experiment
from yaqd.sim.experiments.sharing import SHARES
from yaqd.sim.experiments.slaq import SLAQ
from yaqd.sim.experiments.structure import GRAPHS, PLACES, SIZES

EXPERIMENTS: Final = {
    experiment.name: experiment
    for experiment in (
        UTILIZATION,
        BOUNDING,
        PLACEMENT,
        ORDERING,
        MATRIX,
        STARVATION,
        SHARES,
        CENTRAL,
        DISTRIBUTED,
        HEAVY_TAIL,
        ESTIMATES,
        BASELINES,
        GUARDS,
        REBALANCING,
        GRAPHS,
        SIZES,
        PLACES,
        LONGEST,
        *SLAQ,
        *HYPERDRIVE,
        *CLOTHO,
    )
}

__all__ = ["EXPERIMENTS", "Case", "Experiment", "Measure", "Plot", "Row", "Run", "quick", "run_experiment"]
