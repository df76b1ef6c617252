"""What an experiment is: data. Cases to run (workload, cluster, system) and rows to read off them.

Nothing here runs anything: an experiment can be listed, checked and changed in one place, and whoever wants another
writes a value of `Experiment` and hands it to `run_experiment`.
"""

from dataclasses import field
from typing import Literal

from yaqd.model.values import value
from yaqd.sim.experiments.exploring import ExploreCase
from yaqd.sim.experiments.staging import StagingCase
from yaqd.sim.experiments.training import PredictionCase, TrainingCase
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workloads import Drawn


@value()
class Case:
    """One system under one workload; a line in the table and a curve in the plot."""

    label: str
    workload: Drawn
    shape: ClusterShape
    system: System
    #: the run ends here, s of simulated time; None: when every job is over
    horizon_s: float | None = None
    #: utilization and shares are taken from here on, s
    warm_up_s: float = 0.0
    #: there is more work than slots until the last task starts, and slots used are counted until then
    is_saturated: bool = False
    #: values of `System.jobs_at_once` among which this system's best is searched, by `Experiment.tuned_by`
    limits: tuple[int, ...] = ()


#: what an experiment may run
AnyCase = Case | TrainingCase | PredictionCase | ExploreCase | StagingCase


@value()
class Measure:
    """A number read off one case; with `against`, that case's number divided by this one's (how many times less)."""

    metric: str
    case: str
    against: str | None = None
    #: what is divided: so many times the other case's number, and so much more
    times: float = 1.0
    plus: float = 0.0
    #: of the means over all seeds, in place of the middle of the seeds' own numbers
    is_of_means: bool = False
    #: more cases to hold it against: the smallest mean of these and `against` counts; with `is_of_means`
    or_against: tuple[str, ...] = ()
    #: metric by which that case is chosen among these; None: the one that is read
    chosen_by: str | None = None


@value()
class Row:
    """A line of the comparison: what the paper reports and where to read ours."""

    id: str
    what: str
    measure: Measure
    #: None: the paper draws a figure and gives no number
    reported: float | None = None
    unit: str = "x"
    #: `at-least` and `at-most`: as good as reported; `near`: within `tolerance` of it; `shown`: no claim
    sense: Literal["at-least", "at-most", "near", "shown"] = "at-least"
    #: what is claimed, where that is not what was reported; with `at-least` and `at-most`
    bound: float | None = None
    #: relative; what counts as reached
    tolerance: float = 0.0
    digits: int = 2
    #: why it falls short, where it does and the reason was found
    reason: str = ""


@value()
class Plot:
    """A figure. `cdf`: of job completion times; `bars`: one metric by case; `lines`: a metric over a number in the
    cases' labels; `matrix`: a metric by two words in the labels; `shares`: each queue's part of the slots over time;
    `course`: the mean loss over time."""

    kind: Literal["cdf", "bars", "lines", "matrix", "shares", "course"]
    name: str
    title: str
    #: of `bars`, `lines` and `matrix`
    metric: str = "jct_median"
    axis: str = ""
    #: cases drawn; empty: all
    cases: tuple[str, ...] = ()
    #: of `lines`: what the number is
    x_axis: str = ""
    #: values the paper reports, by case
    reported: tuple[tuple[str, float], ...] = ()
    log: bool = False


@value()
class Experiment:
    name: str
    title: str
    #: where the paper has it
    source: str
    cases: tuple[AnyCase, ...]
    rows: tuple[Row, ...] = ()
    plots: tuple[Plot, ...] = ()
    seeds: int = 3
    #: metric that a searched limit makes smallest
    tuned_by: str = "sub_median"
    notes: tuple[str, ...] = ()
    #: of the table of systems: metric, heading, digits; empty: those of a cluster that runs tasks
    columns: tuple[tuple[str, str, int], ...] = ()


@value()
class Run:
    """One case with one seed."""

    label: str
    seed: int
    #: jobs at once, where it was searched
    limit: int | None
    metrics: dict[str, float]
    #: completion times, s: the sample behind the curves
    jct: tuple[float, ...] = ()
    #: of training jobs: the mean loss in each window
    course: tuple[float, ...] = ()
    #: by queue: part of the slots in each window
    shares: dict[str, tuple[float, ...]] = field(default_factory=dict)
