"""The merger's state as the node's REST answer."""

from typing import Any

from aiohttp import web

from nm.merger.process import MergerProcess, MergerUnavailable
from yaqd.ipc import RemoteException, RpcError
from yaqd.proto import riffle_pb2 as pb

_NUMBERS = tuple(field.name for field in pb.StatusResponse.DESCRIPTOR.fields if field.name != "jobs")
_OF_JOB = tuple(field.name for field in pb.JobStatus.DESCRIPTOR.fields)


class MergerPage:
    def __init__(self, merger: MergerProcess | None) -> None:
        self._merger = merger

    async def answer(self, _: web.Request) -> web.Response:
        """Answers `{"merger": {"enabled", "up", "starting", "restarts", ...}}`; the numbers are there when it is up."""
        return web.json_response({"merger": await self._facts()})

    async def _facts(self) -> dict[str, Any]:
        if self._merger is None:
            return {"enabled": False, "up": False}
        facts: dict[str, Any] = {
            "enabled": True,
            "up": False,
            "starting": self._merger.is_starting,
            "restarts": self._merger.restarts,
            "pid": self._merger.pid,
            "port": self._merger.port,
        }
        try:
            status = await self._merger.status()
        except (MergerUnavailable, RemoteException, RpcError):
            return facts
        facts |= {_camel(name): getattr(status, name) for name in _NUMBERS}
        facts["jobs"] = [{_camel(name): getattr(job, name) for name in _OF_JOB} for job in status.jobs]
        facts["up"] = True
        return facts


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
