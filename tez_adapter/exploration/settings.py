"""What configuration says of explorations."""

from dataclasses import dataclass
from math import inf
from typing import Final, Self

from tez_adapter.client.sizes import ContainerSize
from tez_adapter.training.settings import TrainingSettings
from yaqd.config import Configuration
from yaqd.model import Resource

SLOT_MEMORY_KEY: Final = "yaq.ml.explore.slot.memory-mb"
SLOT_VCORES_KEY: Final = "yaq.ml.explore.slot.vcores"
SUSPEND_KEY: Final = "yaq.ml.explore.suspend"
STOPPED_KEY: Final = "yaq.ml.explore.stopped-memory-mb"
IMAGES_KEY: Final = "yaq.ml.explore.images-mb"
CHECKPOINTS_KEY: Final = "yaq.ml.explore.checkpoint.bytes-max"
INTERVAL_KEY: Final = "yaq.ml.explore.checkpoint.interval"
STOP_WAIT_KEY: Final = "yaq.ml.explore.stop-wait"
SUSPEND_WAIT_KEY: Final = "yaq.ml.explore.suspend-wait"
LOSSES_KEY: Final = "yaq.ml.explore.trial-attempts"
#: how a trial leaves its slot
CHECKPOINT, STOP = "checkpoint", "stop"


def slot_size(conf: Configuration) -> ContainerSize:
    """Return the size of a slot's container. Raises ConfigError."""
    resource = Resource(conf.get_int(SLOT_MEMORY_KEY, minimum=1), conf.get_int(SLOT_VCORES_KEY, minimum=1))
    return ContainerSize("slot", resource, SLOT_MEMORY_KEY, SLOT_VCORES_KEY, {})


@dataclass(frozen=True, slots=True)
class ExplorationSettings:
    #: process groups are stopped in place also where checkpoints can be made
    freezes_first: bool
    #: of the trials that stand stopped in one container
    stopped_mb: int
    #: disk for the images of stopped trials in one container; 0: none are made
    images_mb: int
    #: of all trials' checkpoints together
    checkpoints_bytes_max: int
    #: of one: a message holds no more
    checkpoint_bytes_max: int
    checkpoint_every_s: float
    stop_wait_s: float
    suspend_wait_s: float
    #: processes of one trial that may be lost
    losses_max: int
    training: TrainingSettings

    @classmethod
    def read(cls, conf: Configuration) -> Self:
        """Raises ConfigError."""
        how = conf.require(SUSPEND_KEY)
        if how not in (CHECKPOINT, STOP):
            raise conf.error(SUSPEND_KEY, f"{how!r} is no way to suspend", f"give {CHECKPOINT} or {STOP}")
        training = TrainingSettings.read(conf)
        return cls(
            freezes_first=how == STOP,
            stopped_mb=conf.get_int(STOPPED_KEY, minimum=0),
            images_mb=conf.get_int(IMAGES_KEY, minimum=0),
            checkpoints_bytes_max=conf.get_size_bytes(CHECKPOINTS_KEY, minimum=0),
            checkpoint_bytes_max=training.state_bytes_max,
            checkpoint_every_s=conf.get_duration_ms(INTERVAL_KEY, minimum=0) / 1000 or inf,
            stop_wait_s=conf.get_duration_ms(STOP_WAIT_KEY, minimum=0) / 1000,
            suspend_wait_s=conf.get_duration_ms(SUSPEND_WAIT_KEY, minimum=1) / 1000,
            losses_max=conf.get_int(LOSSES_KEY, minimum=1) - 1,
            training=training,
        )
