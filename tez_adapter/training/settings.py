"""What configuration says of jobs that train models."""

from dataclasses import dataclass
from typing import Final, Self

from tez_adapter.client.sizes import ContainerSize
from yaqd.config import Configuration
from yaqd.model import Resource
from yaqd.storage.paths import parent_of

DRIVER_MEMORY_KEY: Final = "yaq.ml.driver.memory-mb"
DRIVER_VCORES_KEY: Final = "yaq.ml.driver.vcores"
WORKER_MEMORY_KEY: Final = "yaq.ml.worker.memory-mb"
WORKER_VCORES_KEY: Final = "yaq.ml.worker.vcores"
INTERVAL_KEY: Final = "yaq.ml.checkpoint.interval"
BUDGET_KEY: Final = "yaq.ml.checkpoint.bytes-max"
STATE_KEY: Final = "yaq.ml.state.bytes-max"
GATHER_KEY: Final = "yaq.ml.worker.gather-wait"
STEP_KEY: Final = "yaq.ml.step.timeout"
KEPT_KEY: Final = "yaq.ml.kept-jobs"
ATTEMPTS_KEY: Final = "yaq.ml.max-attempts"
#: a message holds no more
_STATE_BYTES_MOST: Final = 100 << 20


def driver_size(conf: Configuration) -> ContainerSize:
    """Return the size of the driver, or of a script. Raises ConfigError."""
    return _size("driver", conf, DRIVER_MEMORY_KEY, DRIVER_VCORES_KEY)


def worker_size(conf: Configuration) -> ContainerSize:
    """Raises ConfigError."""
    return _size("worker", conf, WORKER_MEMORY_KEY, WORKER_VCORES_KEY)


def _size(what: str, conf: Configuration, memory_key: str, vcores_key: str) -> ContainerSize:
    resource = Resource(conf.get_int(memory_key, minimum=1), conf.get_int(vcores_key, minimum=1))
    return ContainerSize(what, resource, memory_key, vcores_key, {})


def training_folder(staging: str, job_id: str) -> str:
    """Return where a job's checkpoints and curve stay when its staging folder goes."""
    return f"{parent_of(parent_of(staging))}/.training/{job_id}"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    checkpoint_every_s: float
    #: of the checkpoints that a job keeps
    checkpoint_bytes_max: int
    #: of a state, and of the partials of one step together
    state_bytes_max: int
    gather_s: float
    #: of one call of a class's load or step; 0: for ever
    step_timeout_s: float
    #: failed attempts that fail the job, of the driver and of each worker
    max_attempts: int
    #: of which what they left is kept
    kept_jobs: int

    @classmethod
    def read(cls, conf: Configuration) -> Self:
        """Raises ConfigError."""
        state = conf.get_size_bytes(STATE_KEY, minimum=1)
        if state > _STATE_BYTES_MOST:
            raise conf.error(STATE_KEY, f"more than {_STATE_BYTES_MOST} bytes do not fit a message", "give less")
        return cls(
            checkpoint_every_s=conf.get_duration_ms(INTERVAL_KEY, minimum=0) / 1000,
            checkpoint_bytes_max=conf.get_size_bytes(BUDGET_KEY, minimum=0),
            state_bytes_max=state,
            gather_s=conf.get_duration_ms(GATHER_KEY, minimum=0) / 1000,
            step_timeout_s=conf.get_duration_ms(STEP_KEY, minimum=0) / 1000,
            kept_jobs=conf.get_int(KEPT_KEY, minimum=1),
            max_attempts=conf.get_int(ATTEMPTS_KEY, minimum=1),
        )
