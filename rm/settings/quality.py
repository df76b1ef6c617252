"""What the ResourceManager reads about cores of training jobs: the keys `yaq.quality.*`."""

from typing import Final

from rm.node_queues.orderings import family
from rm.scheduler.quality.spec import QualitySpec
from yaqd.config import Configuration
from yaqd.policies.quality.facts import MILLI
from yaqd.policies.quality.policies import QUALITY

_PREFIX: Final = "yaq.quality."
_LEAF: Final = "yaq.quality.leaf."
_CORES_MAX: Final = 1e6


def read_quality(conf: Configuration) -> QualitySpec | None:
    """Return how cores are divided; None: they are not. Raises ConfigError."""
    if not conf.get_bool(_PREFIX + "enabled"):
        return None
    cores = conf.get(_PREFIX + "cores") or "auto"
    milli = None if cores == "auto" else round(MILLI * conf.get_float(_PREFIX + "cores", minimum=0.05))
    return QualitySpec(
        policy=conf.get_named(_PREFIX + "policy", _known),
        leaves={path: conf.get_named(key, _known) for path, key in family(conf, _LEAF, ".policy")},
        epoch_s=conf.get_duration_ms(_PREFIX + "epoch", minimum=100, maximum=600_000) / 1000,
        unit=max(1, round(MILLI * conf.get_float(_PREFIX + "unit", minimum=0.001, maximum=1.0))),
        milli=milli,
        move_s=conf.get_duration_ms(_PREFIX + "move", minimum=0, maximum=600_000) / 1000,
        hand_back_s=conf.get_duration_ms(_PREFIX + "hand-back", minimum=1000, maximum=86_400_000) / 1000,
    )


def _known(name: str) -> str:
    """Raises UnknownPolicy."""
    QUALITY[name]
    return name
