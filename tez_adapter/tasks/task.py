"""The task process: asks its job manager for one task after another, and has a child of its own run each.

Starts warm (forked, `main` called) or cold (`python -m`). It loads nothing of the user's and has one thread (see
`tez_adapter.tasks.forked`), so it outlives whatever becomes of a task, and tells the job manager. Blocking throughout:
it has one thing to do.
"""

import errno
import faulthandler
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tez_adapter.core.states import EXIT_NO_ROOM
from tez_adapter.jobspec import JOB_FILE, JobKind, JobSpec
from tez_adapter.protocol import TaskUmbilicalProtocol
from tez_adapter.tasks import own_folder
from tez_adapter.tasks.attempt import Reporter, TaskAttempt
from tez_adapter.tasks.failure import describe_death
from tez_adapter.tasks.forked import end_by, run_in_child
from tez_adapter.tasks.outcome import Told, outcome_of, told_by
from tez_adapter.tasks.runners import RUNNERS, Workplace, import_runners
from tez_adapter.tasks.shared_imports import SHARE_KEY, SharedImports
from tez_adapter.tasks.task_output import Committed
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcError
from yaqd.model import steady_hash
from yaqd.model.hash_seed import VARIABLE, hash_seed
from yaqd.proto import job_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets, Token

log = logging.getLogger(__name__)

_WAIT_MS = 2000
#: what one process for all tasks would have found out once, each of them meets anew
_PATIENCE = {"yaq.storage.hdfs.connect-wait": "60s"}
_TIMEOUT_S = 60.0
#: a SIGTERM to a container's processes reaches them one after the other
_TOLD_WITHIN_S = 1.0


class TaskProcess:
    def __init__(self, address: tuple[str, int], environ: Mapping[str, str]) -> None:
        self._address = address
        self._container = environ["CONTAINER_ID"]
        token = Credentials.load(environ["HADOOP_TOKEN_FILE_LOCATION"]).token_of_kind(JobTokenSecrets.kind)
        if token is None:
            raise RuntimeError("the container's credentials hold no job token")
        self._token: Token = token
        #: the container's folder
        self._base = Path.cwd()
        self._spec = JobSpec.read(Path(JOB_FILE))
        conf = self._spec.configuration()
        self._conf = conf.with_overrides({k: v for k, v in _PATIENCE.items() if k not in self._spec.conf})
        self._client = self._connect()
        import_runners(self._spec.kind)
        self._shared = SharedImports(
            is_on=conf.get_bool(SHARE_KEY), is_strict=self._spec.kind is not JobKind.EXPLORATION
        )

    def _connect(self) -> BlockingRpcClient:
        return BlockingRpcClient(*self._address, user=self._spec.user, token=self._token, timeout_s=_TIMEOUT_S)

    def run(self) -> int:
        """Run tasks until the job manager says to end."""
        request = pb.GetTaskRequest(container_id=self._container, wait_ms=_WAIT_MS)
        while True:
            response = self._client.call(TaskUmbilicalProtocol.getTask, request, idempotent=True)
            if response.action == pb.GetTaskResponse.EXIT:
                self._client.close()
                return 0
            if response.action == pb.GetTaskResponse.RUN:
                self._run(response.task)

    def _run(self, description: pb.TaskDescription) -> None:
        name = description.attempt_id
        log.info("%s starts", name)
        self._shared.load()
        folder = own_folder.own_folder(self._base, name)
        try:
            own_folder.make(folder, self._base)
            ended = run_in_child(lambda: self._shared.with_report(self._outcome(description, folder)))
        finally:
            own_folder.leave(folder)
        if ended.is_told:
            end_by(signal.SIGTERM)  # it is the container that is to end, and not the task that has failed
        if ended.code == -signal.SIGTERM:
            time.sleep(_TOLD_WITHIN_S)  # who ends the container tells this process, too, which then ends here
        told: Told | None
        if ended.outcome is None:
            failure = describe_death(TaskAttempt(description, self._spec, self._conf), ended.code)
            told = pb.TaskFailedRequest(attempt=description.attempt, error=failure.text, fatal=failure.fatal)
        else:
            told = told_by(self._shared.learn(ended.outcome))
        if isinstance(told, pb.TaskDoneRequest):
            self._client.call(TaskUmbilicalProtocol.taskDone, told, idempotent=True)
            log.info("%s is done", name)
        elif told is not None:
            print(told.error, file=sys.stderr, flush=True)
            self._client.call(TaskUmbilicalProtocol.taskFailed, told, idempotent=True)
        else:
            log.warning("%s is no longer wanted: another attempt has taken its place, or the job is over", name)

    def _outcome(self, description: pb.TaskDescription, folder: Path) -> bytes:
        """In the child."""
        own_folder.enter(folder)
        faulthandler.register(signal.SIGQUIT)  # OUTPUT_THREAD_DUMP of signalToContainer, as a JVM answers it
        self._client.close()  # the parent's
        attempt = TaskAttempt(description, self._spec, self._conf)
        with self._connect() as client, Reporter(attempt, self._connect):
            return outcome_of(attempt, lambda: self._work(attempt, client), lambda: _may_commit(attempt, client))

    def _work(self, attempt: TaskAttempt, client: BlockingRpcClient) -> Committed | None:
        """What it does to the end, but for the commit of its output, where it has some."""
        run = RUNNERS[self._spec.kind].load()
        part = run(attempt, Workplace(client, self._token.password, self._base, self._shared, self._connect))
        if attempt.is_map and self._spec.reduces:
            from tez_adapter.merging.shared_outputs import publish_output

            publish_output(attempt)
        return part


def _may_commit(attempt: TaskAttempt, client: BlockingRpcClient) -> bool:
    request = pb.CanCommitRequest(attempt=attempt.ref)
    return client.call(TaskUmbilicalProtocol.canCommit, request, idempotent=True).granted


def main(argv: list[str]) -> int:
    """Run the tasks of the job whose manager listens at `argv[0]`, host:port."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # the group's, for the child to answer
    os.environ[VARIABLE] = hash_seed(os.environ)  # for the programs that it starts
    steady_hash.install()
    host, _, port = argv[0].rpartition(":")
    try:
        return TaskProcess((host, int(port)), os.environ).run()
    except (RpcError, RemoteException) as error:
        log.error("lost the job manager at %s: %s", argv[0], error)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        log.error("no room for a task's folder: %s", error)
        return EXIT_NO_ROOM


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
