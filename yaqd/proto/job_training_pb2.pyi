from yaqd.proto import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TrainingPoint(_message.Message):
    __slots__ = ("iteration", "loss", "at_ms", "metrics", "cores")
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    iteration: int
    loss: float
    at_ms: int
    metrics: _containers.RepeatedCompositeFieldContainer[TrainingMetric]
    cores: float
    def __init__(self, iteration: _Optional[int] = ..., loss: _Optional[float] = ..., at_ms: _Optional[int] = ..., metrics: _Optional[_Iterable[_Union[TrainingMetric, _Mapping]]] = ..., cores: _Optional[float] = ...) -> None: ...

class TrainingMetric(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class TrainingReportRequest(_message.Message):
    __slots__ = ("attempt", "points", "dropped", "checkpoint", "checkpoint_iteration", "cpu_ms")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ITERATION_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    points: _containers.RepeatedCompositeFieldContainer[TrainingPoint]
    dropped: int
    checkpoint: bytes
    checkpoint_iteration: int
    cpu_ms: int
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., points: _Optional[_Iterable[_Union[TrainingPoint, _Mapping]]] = ..., dropped: _Optional[int] = ..., checkpoint: _Optional[bytes] = ..., checkpoint_iteration: _Optional[int] = ..., cpu_ms: _Optional[int] = ...) -> None: ...

class TrainingReportResponse(_message.Message):
    __slots__ = ("cores", "stop", "wants_checkpoint")
    CORES_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    WANTS_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    cores: float
    stop: bool
    wants_checkpoint: bool
    def __init__(self, cores: _Optional[float] = ..., stop: _Optional[bool] = ..., wants_checkpoint: _Optional[bool] = ...) -> None: ...

class TrainingBeginRequest(_message.Message):
    __slots__ = ("attempt",)
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ...) -> None: ...

class TrainingBeginResponse(_message.Message):
    __slots__ = ("checkpoint", "checkpoint_iteration", "cores")
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ITERATION_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    checkpoint: bytes
    checkpoint_iteration: int
    cores: float
    def __init__(self, checkpoint: _Optional[bytes] = ..., checkpoint_iteration: _Optional[int] = ..., cores: _Optional[float] = ...) -> None: ...

class EvaluateRequest(_message.Message):
    __slots__ = ("attempt", "iteration", "state", "wait_ms")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    iteration: int
    state: bytes
    wait_ms: int
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., iteration: _Optional[int] = ..., state: _Optional[bytes] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class EvaluateResponse(_message.Message):
    __slots__ = ("is_done", "partials", "wants_state")
    IS_DONE_FIELD_NUMBER: _ClassVar[int]
    PARTIALS_FIELD_NUMBER: _ClassVar[int]
    WANTS_STATE_FIELD_NUMBER: _ClassVar[int]
    is_done: bool
    partials: _containers.RepeatedScalarFieldContainer[bytes]
    wants_state: bool
    def __init__(self, is_done: _Optional[bool] = ..., partials: _Optional[_Iterable[bytes]] = ..., wants_state: _Optional[bool] = ...) -> None: ...

class TrainedRequest(_message.Message):
    __slots__ = ("attempt", "iteration", "state")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    iteration: int
    state: bytes
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., iteration: _Optional[int] = ..., state: _Optional[bytes] = ...) -> None: ...

class TrainedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkRequest(_message.Message):
    __slots__ = ("attempt", "node", "loaded", "step", "partials", "wait_ms", "cpu_us", "late")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    LOADED_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PARTIALS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    CPU_US_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    node: str
    loaded: _containers.RepeatedScalarFieldContainer[int]
    step: int
    partials: _containers.RepeatedCompositeFieldContainer[Partial]
    wait_ms: int
    cpu_us: int
    late: str
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., node: _Optional[str] = ..., loaded: _Optional[_Iterable[int]] = ..., step: _Optional[int] = ..., partials: _Optional[_Iterable[_Union[Partial, _Mapping]]] = ..., wait_ms: _Optional[int] = ..., cpu_us: _Optional[int] = ..., late: _Optional[str] = ...) -> None: ...

class Partial(_message.Message):
    __slots__ = ("partition", "value")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    partition: int
    value: bytes
    def __init__(self, partition: _Optional[int] = ..., value: _Optional[bytes] = ...) -> None: ...

class WorkResponse(_message.Message):
    __slots__ = ("action", "step", "partitions", "version", "keep", "iteration")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        WAIT: _ClassVar[WorkResponse.Action]
        STEP: _ClassVar[WorkResponse.Action]
        LEAVE: _ClassVar[WorkResponse.Action]
    WAIT: WorkResponse.Action
    STEP: WorkResponse.Action
    LEAVE: WorkResponse.Action
    ACTION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    action: WorkResponse.Action
    step: int
    partitions: _containers.RepeatedScalarFieldContainer[int]
    version: str
    keep: _containers.RepeatedScalarFieldContainer[int]
    iteration: int
    def __init__(self, action: _Optional[_Union[WorkResponse.Action, str]] = ..., step: _Optional[int] = ..., partitions: _Optional[_Iterable[int]] = ..., version: _Optional[str] = ..., keep: _Optional[_Iterable[int]] = ..., iteration: _Optional[int] = ...) -> None: ...

class PullStateRequest(_message.Message):
    __slots__ = ("attempt", "version")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    version: str
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., version: _Optional[str] = ...) -> None: ...

class PullStateResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: bytes
    def __init__(self, state: _Optional[bytes] = ...) -> None: ...

class TrainingStatusRequest(_message.Message):
    __slots__ = ("known", "curve_version")
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    CURVE_VERSION_FIELD_NUMBER: _ClassVar[int]
    known: int
    curve_version: int
    def __init__(self, known: _Optional[int] = ..., curve_version: _Optional[int] = ...) -> None: ...

class TrainingStatusResponse(_message.Message):
    __slots__ = ("name", "iteration", "iterations_expected", "loss", "normalized", "cores", "workers", "workers_wanted", "partitions", "checkpoint_iteration", "state_sha256", "curve", "curve_version", "cpu_ms_per_iteration", "started_ms", "reports", "dropped", "is_alone", "odd_loss", "odd_since")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_EXPECTED_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    NORMALIZED_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_WANTED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ITERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_SHA256_FIELD_NUMBER: _ClassVar[int]
    CURVE_FIELD_NUMBER: _ClassVar[int]
    CURVE_VERSION_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_PER_ITERATION_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    IS_ALONE_FIELD_NUMBER: _ClassVar[int]
    ODD_LOSS_FIELD_NUMBER: _ClassVar[int]
    ODD_SINCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    iteration: int
    iterations_expected: int
    loss: float
    normalized: float
    cores: float
    workers: int
    workers_wanted: int
    partitions: int
    checkpoint_iteration: int
    state_sha256: str
    curve: _containers.RepeatedCompositeFieldContainer[TrainingPoint]
    curve_version: int
    cpu_ms_per_iteration: float
    started_ms: int
    reports: int
    dropped: int
    is_alone: bool
    odd_loss: float
    odd_since: int
    def __init__(self, name: _Optional[str] = ..., iteration: _Optional[int] = ..., iterations_expected: _Optional[int] = ..., loss: _Optional[float] = ..., normalized: _Optional[float] = ..., cores: _Optional[float] = ..., workers: _Optional[int] = ..., workers_wanted: _Optional[int] = ..., partitions: _Optional[int] = ..., checkpoint_iteration: _Optional[int] = ..., state_sha256: _Optional[str] = ..., curve: _Optional[_Iterable[_Union[TrainingPoint, _Mapping]]] = ..., curve_version: _Optional[int] = ..., cpu_ms_per_iteration: _Optional[float] = ..., started_ms: _Optional[int] = ..., reports: _Optional[int] = ..., dropped: _Optional[int] = ..., is_alone: _Optional[bool] = ..., odd_loss: _Optional[float] = ..., odd_since: _Optional[int] = ...) -> None: ...

class StopTrainingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopTrainingResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
