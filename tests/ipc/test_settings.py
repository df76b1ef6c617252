"""The configuration reaches servers and clients."""

import pytest

from yaqd.config import ConfigError, Configuration
from yaqd.ipc import ClientLimits, RetryPolicy, ServerLimits, client_options, server_limits


def conf(**overrides: str) -> Configuration:
    keys = {key.replace("__", "-").replace("_", "."): value for key, value in overrides.items()}
    return Configuration.load(None, overrides=keys, environ={})


def test_the_shipped_values_are_the_classes_own() -> None:
    assert server_limits(conf()) == ServerLimits()
    options = client_options(conf())
    assert options["timeout_s"] == 120.0
    assert options["limits"] == ClientLimits(idle_timeout_s=10.0)
    assert options["connect_retries"] == RetryPolicy(attempts=11, first_delay_s=0.1, delay_max_s=1.0)


def test_keys_have_their_effect() -> None:
    changed = conf(ipc_maximum_data_length="2048", yaq_ipc_server_idle__timeout__ms="5000")
    assert server_limits(changed) == ServerLimits(frame_bytes_max=2048, idle_timeout_s=5.0)


@pytest.mark.parametrize("value", ["0", "-1", "many", "3g"])
def test_impossible_values_name_the_key(value: str) -> None:
    with pytest.raises(ConfigError, match=r"ipc\.maximum\.data\.length"):
        server_limits(conf(ipc_maximum_data_length=value))
