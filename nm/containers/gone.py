"""Containers that have left this node, known by name for a while: a late call about one gets an answer of its own."""

from typing import Final

from yaqd.model import ContainerId

_KEPT_S: Final = 600.0
_KEPT_MAX: Final = 100_000


class GoneContainers:
    """Times are seconds on the caller's clock."""

    def __init__(self) -> None:
        #: when each left, oldest first
        self._left_at: dict[ContainerId, float] = {}

    def add(self, container_id: ContainerId, now: float) -> None:
        while self._left_at and (len(self._left_at) >= _KEPT_MAX or now - next(iter(self._left_at.values())) > _KEPT_S):
            del self._left_at[next(iter(self._left_at))]
        self._left_at[container_id] = now

    def has(self, container_id: ContainerId, now: float) -> bool:
        at = self._left_at.get(container_id)
        return at is not None and now - at < _KEPT_S
