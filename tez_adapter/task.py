"""The task process: asks its job manager for one task after another and runs them.

Starts warm (forked, `main` called) or cold (`python -m`). Blocking throughout: a task has one thing to do. What goes
wrong in the user's code is reported with its own traceback and its split; then the process ends, because
nobody knows in what state the user's modules are.
"""

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tez_adapter.attempt import Attempt, Reporter
from tez_adapter.failure import Failure, describe_failure
from tez_adapter.jobspec import JOB_FILE, JobKind, JobSpec
from tez_adapter.protocol import TaskUmbilicalProtocol
from tez_adapter.shuffle_input import NoLongerWanted
from tez_adapter.task_output import PartFile
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcError
from yaqd.mapreduce import Job
from yaqd.proto import job_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets, Token

log = logging.getLogger(__name__)

_WAIT_MS = 2000
_TIMEOUT_S = 60.0


class TaskProcess:
    def __init__(self, address: tuple[str, int], environ: Mapping[str, str]) -> None:
        self._address = address
        self._container = environ["CONTAINER_ID"]
        token = Credentials.load(environ["HADOOP_TOKEN_FILE_LOCATION"]).token_of_kind(JobTokenSecrets.kind)
        if token is None:
            raise RuntimeError("the container's credentials hold no job token")
        self._token: Token = token
        self._spec = JobSpec.read(Path(JOB_FILE))
        self._conf = self._spec.configuration()
        self._job: tuple[type[Job], dict[str, Any]] | None = None
        self._client = self._connect()

    def _connect(self) -> BlockingRpcClient:
        return BlockingRpcClient(*self._address, user=self._spec.user, token=self._token, timeout_s=_TIMEOUT_S)

    def run(self) -> int:
        """Until the job manager says to end."""
        request = pb.GetTaskRequest(container_id=self._container, wait_ms=_WAIT_MS)
        while True:
            response = self._client.call(TaskUmbilicalProtocol.getTask, request, idempotent=True)
            if response.action == pb.GetTaskResponse.EXIT:
                self._client.close()
                return 0
            if response.action == pb.GetTaskResponse.RUN and not self._run_attempt(response.task):
                self._client.close()
                return 1

    def _run_attempt(self, description: pb.TaskDescription) -> bool:
        """Whether the process may go on with another task."""
        attempt = Attempt(description, self._spec, self._conf)
        log.info("%s starts", attempt.name)
        part: PartFile | None = None
        try:
            with Reporter(attempt, self._connect):
                part = self._work(attempt)
                if part is not None and not self._may_commit(attempt):
                    part.abort()
                    log.warning("%s may not commit: another attempt has taken its place", attempt.name)
                    return False
                if part is not None:
                    part.commit()
        except NoLongerWanted:
            log.warning("%s is no longer wanted", attempt.name)
            return False
        except (RpcError, RemoteException):
            raise
        except BaseException as error:
            self._report_failure(attempt, describe_failure(attempt, error))
            return False
        done = pb.TaskDoneRequest(
            attempt=attempt.ref,
            counters=attempt.counter_messages(),
            phases=attempt.phases(),
            notes=attempt.notes(),
        )
        self._client.call(TaskUmbilicalProtocol.taskDone, done, idempotent=True)
        log.info("%s is done", attempt.name)
        return True

    def _work(self, attempt: Attempt) -> PartFile | None:
        """What it does to the end, but for the commit of its output file, where it has one."""
        part = self._computed(attempt)
        if attempt.is_map and self._spec.reduces:
            from tez_adapter.shared_outputs import publish_output

            publish_output(attempt)
        return part

    def _computed(self, attempt: Attempt) -> PartFile | None:
        if self._spec.kind is JobKind.STREAMING:
            from tez_adapter.streaming import run_streaming

            return run_streaming(attempt, self._client, self._token.password)
        job_class, params = self._job_class()
        if attempt.is_map:
            from tez_adapter.map_task import run_map

            return run_map(attempt, job_class, params)
        from tez_adapter.reduce_task import run_reduce

        return run_reduce(attempt, job_class, params, self._client, self._token.password)

    def _job_class(self) -> tuple[type[Job], dict[str, Any]]:
        """Imported once per process."""
        if self._job is None:
            from tez_adapter.scripts import add_import_path
            from yaqd.mapreduce import load_job, parse_params

            sys.path.insert(0, str(Path.cwd()))
            for name in self._spec.py_files:
                add_import_path(Path(name))
            job_class = load_job(self._spec.script, self._spec.class_name)
            self._job = job_class, parse_params(job_class, self._spec.conf)
        return self._job

    def _may_commit(self, attempt: Attempt) -> bool:
        request = pb.CanCommitRequest(attempt=attempt.ref)
        return self._client.call(TaskUmbilicalProtocol.canCommit, request, idempotent=True).granted

    def _report_failure(self, attempt: Attempt, failure: Failure) -> None:
        print(failure.text, file=sys.stderr, flush=True)
        request = pb.TaskFailedRequest(
            attempt=attempt.ref, error=failure.text, fatal=failure.fatal, process_lives=False
        )
        self._client.call(TaskUmbilicalProtocol.taskFailed, request, idempotent=True)


def main(argv: list[str]) -> int:
    """argv: the job manager's host:port."""
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    faulthandler.register(signal.SIGQUIT)  # OUTPUT_THREAD_DUMP of signalToContainer, as a JVM answers it
    host, _, port = argv[0].rpartition(":")
    try:
        return TaskProcess((host, int(port)), os.environ).run()
    except (RpcError, RemoteException) as error:
        log.error("lost the job manager at %s: %s", argv[0], error)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
