"""Application masters that are to come: the room that they need is kept from what waits.

A node whose queue is filled is never seen with room before its queue is empty: what ends is followed by what waits. So
a ResourceManager that has a master to place says so, and what ends next is followed by nothing. The master comes to
free room instead of behind the whole queue.
"""

from collections.abc import Mapping

from yaqd.model import ApplicationId, ContainerId, Resource


class ExpectedMasters:
    def __init__(self) -> None:
        self._rooms: dict[ApplicationId, Resource] = {}
        #: masters that are here
        self._here: dict[ContainerId, ApplicationId] = {}
        #: what is kept for those that are not
        self.room = Resource()

    def __bool__(self) -> bool:
        return bool(self._rooms)

    def expect(self, rooms: Mapping[ApplicationId, Resource]) -> None:
        """Expects these masters and no others. One that came meanwhile has its room."""
        here = set(self._here.values())
        self._set({app: room.floored() for app, room in rooms.items() if app not in here})

    def came(self, container_id: ContainerId) -> None:
        app = self._here[container_id] = container_id.application_id
        if app in self._rooms:
            self._set({other: room for other, room in self._rooms.items() if other != app})

    def gone(self, container_id: ContainerId) -> None:
        self._here.pop(container_id, None)

    def _set(self, rooms: dict[ApplicationId, Resource]) -> None:
        self._rooms = rooms
        self.room = sum(rooms.values(), Resource())
