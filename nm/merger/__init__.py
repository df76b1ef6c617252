"""The merger of map outputs beside this node's shuffle service: its settings, and the process that is kept alive."""

from nm.merger.process import MergerProcess, MergerUnavailable
from nm.merger.settings import MergerProcessSettings

__all__ = ["MergerProcess", "MergerProcessSettings", "MergerUnavailable"]
