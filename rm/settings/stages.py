"""What the ResourceManager reads about leaf queues that decide by stages: the keys `yaq.clotho.*`. Blocking."""

from base64 import b64encode
from typing import Final

from rm.scheduler.stages.spec import StagesSpec
from yaqd.config import Configuration
from yaqd.config.stage_weights import REMEDY, WEIGHTS_KEY, configured_weights
from yaqd.policies.clotho.policies import LEARNED, Chooser
from yaqd.policies.clotho.weights import BYTES_MAX, WeightsError, unpack

_PREFIX: Final = "yaq.clotho."


def read_stages(conf: Configuration) -> StagesSpec:
    """Return how queues decide by stages. Raises ConfigError."""
    policy = conf.get_named(_PREFIX + "policy", Chooser.check)
    return StagesSpec(
        policy,
        b64encode(configured_weights(conf, BYTES_MAX + 1)).decode() if policy == LEARNED else "",
        conf.get_duration_ms(_PREFIX + "interval-ms", minimum=0, maximum=60_000) / 1000,
        conf.get_duration_ms(_PREFIX + "move", minimum=0, maximum=600_000) / 1000,
    )


def verify_weights(conf: Configuration) -> None:
    """Raise ConfigError where the learned policy would decide by weights that do not load.

    A start does without them; a check and a refresh name them.
    """
    if conf.get_named(_PREFIX + "policy", Chooser.check) != LEARNED:
        return
    try:
        unpack(configured_weights(conf, BYTES_MAX + 1))
    except WeightsError as error:
        raise conf.error(WEIGHTS_KEY, f"has no weights that load: {error}", REMEDY) from None
