"""What a master was ordered beside its containers."""

from yaqd.model.stages import StagesOrder
from yaqd.model.training import CoresOrder


class Orders:
    """The newest order of each kind, and the one that the master was told."""

    __slots__ = ("cores", "cores_told", "stages", "stages_told", "understood")

    def __init__(self) -> None:
        #: kinds that both the master and this ResourceManager know how to speak of (yaqd.proto.words)
        self.understood: frozenset[str] = frozenset()
        self.cores: CoresOrder | None = None
        self.cores_told: CoresOrder | None = None
        self.stages: StagesOrder | None = None
        self.stages_told: StagesOrder | None = None
