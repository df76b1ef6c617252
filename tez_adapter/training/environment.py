"""The channel of a program that a training script starts as a process of its own: found by the environment.

The script's own process has its channel handed in. What it starts (a launcher's workers, a shell's `python train.py`)
finds in the environment which job manager to report to, and the job's token in the container's credentials file.
"""

import atexit
import os
from pathlib import Path
from typing import Final

from tez_adapter.jobspec import JOB_FILE, JobSpec, Training
from tez_adapter.protocol import TrainingProtocol
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.runners import Workplace
from tez_adapter.training.channel import JobManagerChannel
from tez_adapter.training.settings import TrainingSettings
from yaqd.ipc import BlockingRpcClient
from yaqd.ml.reporting import VARIABLE
from yaqd.proto import job_pb2
from yaqd.proto import job_training_pb2 as pb
from yaqd.security import Credentials, JobTokenSecrets

ENTRY: Final = f"{__name__}:channel"
#: host:port of the job manager, and the attempt's vertex, index and number
_MANAGER: Final = "YAQ_REPORT_MANAGER"
_ATTEMPT: Final = "YAQ_REPORT_ATTEMPT"
_JOB: Final = "YAQ_REPORT_JOB"
_TIMEOUT_S: Final = 60.0


def put_into_environment(attempt: TaskAttempt, at: Workplace) -> None:
    """Have processes that this one starts report as this attempt does."""
    ref = attempt.ref
    os.environ[VARIABLE] = ENTRY
    os.environ[_MANAGER] = f"{at.client.host}:{at.client.port}"
    os.environ[_ATTEMPT] = f"{ref.vertex}.{ref.index}.{ref.number}"
    os.environ[_JOB] = str(at.folder / JOB_FILE)


def channel() -> JobManagerChannel:
    """Return the channel that the environment describes. KeyError: it does not; RpcError: nobody answers."""
    spec = JobSpec.read(Path(os.environ[_JOB]))
    token = Credentials.load(os.environ["HADOOP_TOKEN_FILE_LOCATION"]).token_of_kind(JobTokenSecrets.kind)
    host, _, port = os.environ[_MANAGER].rpartition(":")
    vertex, index, number = map(int, os.environ[_ATTEMPT].split("."))
    ref = job_pb2.AttemptRef(vertex=vertex, index=index, number=number)

    def connect() -> BlockingRpcClient:
        return BlockingRpcClient(host, int(port), user=spec.user, token=token, timeout_s=_TIMEOUT_S)

    with connect() as client:
        begun = client.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=ref), idempotent=True)
    found = JobManagerChannel(
        connect,
        ref,
        begun,
        spec.training or Training(),
        checkpoint_bytes_max=TrainingSettings.read(spec.configuration()).state_bytes_max,
    )
    atexit.register(found.close)
    return found
