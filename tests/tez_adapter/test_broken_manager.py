"""A part of the job manager that breaks ends the job with what broke it, and leaves nobody waiting."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tez_adapter.core import events as ev
from tez_adapter.core.states import JobState
from tez_adapter.master.ended import JobEnd
from tez_adapter.master.ending import Ending
from tez_adapter.master.job_manager import ApplicationMaster
from yaqd.config import Configuration
from yaqd.model import FinalApplicationStatus
from yaqd.proto import yarn_service_pb2 as pb


class Rm:
    """Takes a registration; its heartbeats or its clock break, as said."""

    def __init__(self, breaks: str) -> None:
        self._breaks = breaks
        self.told: list[tuple[FinalApplicationStatus, str]] = []

    async def register(self, *_: object) -> pb.RegisterApplicationMasterResponse:
        return pb.RegisterApplicationMasterResponse()

    async def run(self) -> None:
        if self._breaks == "heartbeats":
            raise AttributeError("'int' object has no attribute 'encode'")
        await asyncio.Event().wait()

    async def finish(self, status: FinalApplicationStatus, diagnostics: str, _: str) -> None:
        self.told.append((status, diagnostics))


class Files:
    job_id = "job_1_0001"

    def former_end(self) -> None:
        return None

    def setup(self, **_: object) -> None:
        pass

    abort = remove_staging = setup

    def leave(self, *_: object) -> None:
        pass


async def _drain(_: float) -> None:
    pass


@pytest.mark.parametrize("breaks", ["heartbeats", "ticks"])
async def test_what_breaks_a_part_of_the_job_manager_ends_the_job(breaks: str) -> None:
    rm, nodes = Rm(breaks), SimpleNamespace(drain=_drain)
    manager: Any = ApplicationMaster.__new__(ApplicationMaster)

    def dispatch(event: ev.Event) -> None:
        if isinstance(event, ev.AbortRequested):
            ending.end = JobEnd(JobState.FAILED, event.reason)
            manager._finished.set_result(None)
        elif breaks == "ticks" and asyncio.current_task() is not asked:
            raise KeyError("no such vertex")

    files: Any = Files()
    parts: Any = (files, rm, nodes)
    ending = Ending(*parts, commit_window_s=1.0, is_over=_never, dispatch=dispatch, history=lambda end: [])
    manager.__dict__ |= {
        "spec": SimpleNamespace(job_id="job_1_0001", reduces=0),
        "conf": Configuration.load(environ={}),
        "dispatch": dispatch,
        "_ending": ending,
        "_finished": asyncio.get_running_loop().create_future(),
        "_kind": SimpleNamespace(sizes=lambda reduces, conf: []),
        "_merging": None,
        "_rm": rm,
        "_server": SimpleNamespace(address=("127.0.0.1", 1)),
        "_service": None,
    }
    asked = asyncio.current_task()
    async with asyncio.timeout(20):
        await manager._converse()
    ((status, said),) = rm.told
    assert status is FinalApplicationStatus.FAILED
    why = {"heartbeats": "AttributeError(\"'int' object has no", "ticks": "KeyError('no such vertex')"}[breaks]
    assert said.startswith(f"a part of the job manager failed: {why}")


async def _never() -> bool:
    return False
