"""A data-parallel training job as a class: the data lies in partitions, a model goes round.

    class Means(IterativeJob):
        def load(self, partition):
            return np.load(partition.open(partition.data[0]))

        def initial(self):
            return np.zeros(10)

        def step(self, state, partition):
            return gradient(state, partition)

        def combine(self, state, partials):
            return state - 0.1 * sum(p["gradient"] for p in partials), sum(p["loss"] for p in partials)

`load` and `step` run in workers, the others in one driver process. State and partials travel as
`yaqd.ml.arrays` has them: arrays, numbers, and dicts, lists and tuples of these. What a method is handed is read-only.
Partials come in the order of the partitions, so that the model does not depend on the number of workers.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar

#: computes `step` of a state on all partitions; the partials, in the order of the partitions
Evaluate = Callable[[Any], list[Any]]
#: opens a file for reading
Opener = Callable[[str], BinaryIO]


def open_here(path: str) -> BinaryIO:
    """Open a file of this machine."""
    return open(path, "rb")


@dataclass(frozen=True, slots=True)
class Partition:
    """One part of a job's data."""

    index: int
    #: partitions in all
    count: int
    #: files of this partition: those of the job (`--data`), dealt round
    data: tuple[str, ...] = ()
    #: for what is random in this partition; follows from the job's seed and the index
    seed: int = 0
    #: opens files on storage, too, where the job runs on a cluster or by `yaq ml local`
    opener: Opener = field(default=open_here, repr=False, compare=False)

    def open(self, path: str) -> BinaryIO:
        """Open one of `data` for reading: a file of this machine, or on HDFS. It is read in order, or at any place."""
        return self.opener(path)

    @classmethod
    def of(
        cls, index: int, count: int, data: Sequence[str] = (), seed: int = 0, *, opener: Opener = open_here
    ) -> "Partition":
        """Return partition `index` of a job with `count` of them, these files and this seed."""
        digest = hashlib.sha256(f"{seed}/{index}".encode()).digest()
        return cls(index, count, tuple(data[index::count]), int.from_bytes(digest[:8], "big"), opener)


class IterativeJob:
    """Base of data-parallel training jobs: `load`, `step`, and either `initial` and `combine`, or `run`; and `done`."""

    #: shown by `yaq ml list`; "" = the class's name
    name: ClassVar[str] = ""
    #: parts of the data, each in one worker; the most workers that are of use
    partitions: ClassVar[int] = 8
    #: calls of `combine`, unless the submission says another number
    iterations: ClassVar[int] = 100

    def __init__(
        self, params: Mapping[str, Any] | None = None, *, seed: int = 0, data: Sequence[str] = (), iterations: int = 0
    ) -> None:
        """`params` holds values by attribute name, as `yaqd.mapreduce.parse_params` gives them. `iterations`: 0 is
        what the class says."""
        self.__dict__.update(params or {})
        self.seed = seed
        self.data = tuple(data)
        #: how many are wanted
        self.limit = iterations or self.iterations

    def load(self, partition: Partition) -> Any:
        """Return the data of a partition, in any form. It stays in the worker for all iterations; its arrays are
        read-only."""
        raise NotImplementedError

    def step(self, state: Any, partition: Any) -> Any:
        """Return what this partition adds; `partition` is what `load` returned."""
        raise NotImplementedError

    def initial(self) -> Any:
        """Return the state that the first iteration begins with."""
        raise NotImplementedError

    def combine(self, state: Any, partials: Sequence[Any]) -> tuple[Any, float]:
        """Return the next state, and the loss of the state that was handed in."""
        raise NotImplementedError

    def run(self, evaluate: Evaluate) -> Any:
        """Train and return the last state: for an optimizer that calls the objective itself.

        `evaluate(state)` returns the partials of `step`, in the order of the partitions. Each iteration calls
        `yaqd.ml.report` with its loss. What it computes must follow from what `evaluate` returned and from the seed:
        a job that is started again is given the same answers.
        """
        raise NotImplementedError

    def done(self, state: Any) -> None:
        """Do what is left to do with the last state, such as writing the model where it is used. Runs once, in the
        driver; again where the driver is lost in it."""

    @classmethod
    def overrides_run(cls) -> bool:
        """Return whether the job trains by `run`."""
        return cls.run is not IterativeJob.run
