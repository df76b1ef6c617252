"""The merger's RPC server: who may ask for what, and the merger's answers as messages."""

import asyncio
import os
import re
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psutil

from riffle_merger.format.merged import is_safe_name
from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.merger.merger import Merger, Shared
from riffle_merger.remote.merge import RemoteMerged
from riffle_merger.service.protocol import MergeCancelled, MergeFailed, MergeRefused, RiffleMergerProtocol
from yaqd.ipc import Caller, RpcServer, ServerLimits
from yaqd.ipc.errors import AccessControl
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import JOB_TOKEN, Token
from yaqd.security.secrets import JobTokenSecrets
from yaqd.security.writable import encode_text

#: the name under which the node itself comes in; no job has it
NODE: Final = "node"
_JOB_ID = re.compile(r"job_\d{1,20}_\d{1,20}\Z", re.ASCII)
_PASSWORD_BYTES_MAX = 1024
#: at once, to the merger of a node: it has a client in each of its jobs' managers
NODE_CONNECTIONS_MAX: Final = 1000


def node_token(secret: bytes) -> Token:
    """Makes the token of the node, which proves it by the secret it gave the merger at its start."""
    return Token(encode_text(NODE), secret, JOB_TOKEN, "")


class MergerService:
    def __init__(self, merger: Merger, *, secret: bytes, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)):
        self._merger = merger
        self._started_ms = now_ms()
        self.secrets = JobTokenSecrets(lambda count: b"\0" * count)  # nothing is minted here
        self.secrets.add(node_token(secret))

    async def listen(self, host: str, port: int = 0, *, connections_max: int = NODE_CONNECTIONS_MAX) -> RpcServer:
        """Answers there from now on, to those alone who prove a token of `secrets`."""
        rpc = RpcServer(
            name="merger",
            host=host,
            port=port,
            token_secrets=self.secrets,
            allow_simple=False,
            limits=ServerLimits(connections_max=connections_max),
        )
        rpc.register(RiffleMergerProtocol.merge, self.merge)
        rpc.register(RiffleMergerProtocol.cancel, self.cancel)
        rpc.register(RiffleMergerProtocol.status, self.status)
        rpc.register(RiffleMergerProtocol.addJob, self.add_job)
        rpc.register(RiffleMergerProtocol.forgetJob, self.forget_job)
        await rpc.start()
        return rpc

    async def merge(self, request: pb.MergeRequest, caller: Caller) -> pb.MergeResponse:
        self._admit(caller, request.job_id)
        if not is_safe_name(request.merge_id):
            raise MergeRefused(f"{request.merge_id[:80]!r} is no name of a merge")
        shared = (
            Shared(request.folder, request.bytes, max(0, min(request.replication, 512))) if request.folder else None
        )
        if shared is not None and not shared.folder.startswith("hdfs://"):
            raise MergeRefused(f"{request.folder[:80]!r} is no folder on HDFS")
        try:
            done = await self._merger.merge(request.job_id, request.merge_id, request.map_ids, shared)
        except NotMergeable as error:
            raise MergeRefused(str(error)) from None
        except Cancelled as error:
            raise MergeCancelled(str(error)) from None
        except MergeError as error:
            raise MergeFailed(str(error)) from None
        merged = done.merged
        return pb.MergeResponse(
            name=merged.name if isinstance(merged, RemoteMerged) else merged.path.stem,
            path=f"{request.folder}/{merged.name}" if isinstance(merged, RemoteMerged) else str(merged.path),
            bytes=done.merged.bytes,
            partitions=done.merged.partitions,
            reads=done.merged.reads,
            writes=done.merged.writes,
            queued_ms=int(done.queued_s * 1000),
            run_ms=int(done.run_s * 1000),
        )

    def cancel(self, request: pb.CancelRequest, caller: Caller) -> pb.CancelResponse:
        self._admit(caller, request.job_id)
        named = list(request.merge_ids) or None
        return pb.CancelResponse(cancelled=self._merger.cancel(request.job_id, named))

    def status(self, request: pb.StatusRequest, caller: Caller) -> pb.StatusResponse:
        merger, queue, total = self._merger, self._merger.queue, self._merger.statistics
        response = pb.StatusResponse(
            queued=queue.waiting,
            running=queue.running,
            queued_bytes=queue.waiting_bytes,
            budget_bytes=queue.budget_bytes,
            used_bytes=queue.used_bytes,
            used_bytes_max=queue.used_bytes_max,
            merges=total.merges,
            failed=total.failed,
            cancelled=total.cancelled,
            merged_bytes=total.merged_bytes,
            reads=total.reads,
            writes=total.writes,
            busy_ms=int(total.busy_s * 1000),
            started_ms=self._started_ms,
            resident_bytes=psutil.Process().memory_info().rss,
            stalled_ms=int(merger.stalled_s * 1000),
            unfinished=merger.unfinished,
            unfinished_max=merger.unfinished_max,
        )
        for job_id, of_job in merger.jobs().items():
            if caller.user in (NODE, job_id):
                queued, running = queue.counts(job_id)
                response.jobs.add(
                    job_id=job_id,
                    queued=queued,
                    running=running,
                    merges=of_job.merges,
                    failed=of_job.failed,
                    merged_bytes=of_job.merged_bytes,
                )
        return response

    def add_job(self, request: pb.AddJobRequest, caller: Caller) -> pb.AddJobResponse:
        self._admit(caller, NODE)
        if not _JOB_ID.match(request.job_id):
            raise MergeRefused(f"{request.job_id[:80]!r} is no job id")
        if not 0 < len(request.password) <= _PASSWORD_BYTES_MAX:
            raise MergeRefused("a job token without a password")
        folders = [Path(folder) for folder in request.folders]
        self.serve_job(request.job_id, request.password, folders, request.user)
        return pb.AddJobResponse()

    def serve_job(self, job_id: str, password: bytes, folders: Sequence[Path], user: str) -> None:
        """Lets the job, which proves this password, ask from now on; its outputs are in these folders."""
        self.secrets.add(Token(encode_text(job_id), password, JOB_TOKEN, ""))
        self._merger.add_job(job_id, folders, user)

    def forget_job(self, request: pb.ForgetJobRequest, caller: Caller) -> pb.ForgetJobResponse:
        self._admit(caller, NODE)
        if request.job_id != NODE:
            self.secrets.forget(request.job_id)
            self._merger.forget_job(request.job_id)
        return pb.ForgetJobResponse()

    @staticmethod
    def _admit(caller: Caller, job_id: str) -> None:
        """The node may ask for all, a job for itself."""
        if caller.auth != "TOKEN" or caller.user not in (NODE, job_id):
            raise AccessControl(f"{caller.user} has no say in {job_id[:80]}")


async def end_within(deadline_s: float, rpc: RpcServer, merger: Merger) -> None:
    """Ends the process by force where a thread of the merger hangs in a disk: the interpreter would wait for it."""
    try:
        async with asyncio.timeout(deadline_s):
            await rpc.stop()
            await merger.close()
    except TimeoutError:
        os._exit(1)


def limit_process(*, memory_bytes: int, niceness: int, is_idle_io: bool) -> None:
    """Limits the process before any thread starts: it yields to tasks, and cannot eat the node."""
    process = psutil.Process()
    process.nice(niceness)
    if is_idle_io:
        process.ionice(psutil.IOPRIO_CLASS_IDLE)
    else:
        process.ionice(psutil.IOPRIO_CLASS_BE, 7)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
