"""What the ResourceManager reads about leaf queues that decide by stages: the keys `yaq.clotho.*`. Blocking."""

from base64 import b64encode
from pathlib import Path
from typing import Final

from rm.scheduler.stages.spec import StagesSpec
from yaqd.config import Configuration
from yaqd.config.stage_weights import shipped_weights
from yaqd.policies.clotho.policies import LEARNED, Chooser
from yaqd.policies.clotho.weights import BYTES_MAX

_PREFIX: Final = "yaq.clotho."
_WEIGHTS: Final = "yaq.clotho.weights"


def read_stages(conf: Configuration) -> StagesSpec:
    """Return how queues decide by stages. Raises ConfigError."""
    policy = conf.get_named(_PREFIX + "policy", Chooser.check)
    return StagesSpec(
        policy,
        b64encode(_weights(conf)).decode() if policy == LEARNED else "",
        conf.get_duration_ms(_PREFIX + "interval-ms", minimum=0, maximum=60_000) / 1000,
        conf.get_duration_ms(_PREFIX + "move", minimum=0, maximum=600_000) / 1000,
    )


def _weights(conf: Configuration) -> bytes:
    """Return the learned policy's weights. Whoever decides by them verifies them, and does without bad ones."""
    path = (conf.get(_WEIGHTS) or "").strip()
    if not path:
        return shipped_weights()
    try:
        with Path(path).open("rb") as file:
            return file.read(BYTES_MAX + 1)
    except OSError as error:
        fix = "name a file that `yaq clotho train` wrote"
        raise conf.error(_WEIGHTS, f"cannot be read: {error.strerror}", fix) from None
