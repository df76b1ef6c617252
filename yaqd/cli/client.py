"""The ResourceManager as commands see it: somebody waits at the keyboard, so its absence is said soon."""

from tez_adapter.client.rm_client import RmClient
from yaqd.config import Configuration

_PATIENCE_S = 1.0


def rm_client(conf: Configuration) -> RmClient:
    return RmClient(conf, patience_s=_PATIENCE_S)
