from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Counter(_message.Message):
    __slots__ = ("group", "name", "value")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    group: str
    name: str
    value: int
    def __init__(self, group: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class AttemptRef(_message.Message):
    __slots__ = ("vertex", "index", "number")
    VERTEX_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    vertex: int
    index: int
    number: int
    def __init__(self, vertex: _Optional[int] = ..., index: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("container_id", "wait_ms")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    container_id: str
    wait_ms: int
    def __init__(self, container_id: _Optional[str] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("action", "task")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        WAIT: _ClassVar[GetTaskResponse.Action]
        RUN: _ClassVar[GetTaskResponse.Action]
        EXIT: _ClassVar[GetTaskResponse.Action]
    WAIT: GetTaskResponse.Action
    RUN: GetTaskResponse.Action
    EXIT: GetTaskResponse.Action
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    action: GetTaskResponse.Action
    task: TaskDescription
    def __init__(self, action: _Optional[_Union[GetTaskResponse.Action, str]] = ..., task: _Optional[_Union[TaskDescription, _Mapping]] = ...) -> None: ...

class TaskDescription(_message.Message):
    __slots__ = ("attempt", "attempt_id", "kind", "split", "inputs")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MAP: _ClassVar[TaskDescription.Kind]
        REDUCE: _ClassVar[TaskDescription.Kind]
        DRIVER: _ClassVar[TaskDescription.Kind]
        WORKER: _ClassVar[TaskDescription.Kind]
        SLOT: _ClassVar[TaskDescription.Kind]
    MAP: TaskDescription.Kind
    REDUCE: TaskDescription.Kind
    DRIVER: TaskDescription.Kind
    WORKER: TaskDescription.Kind
    SLOT: TaskDescription.Kind
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    attempt_id: str
    kind: TaskDescription.Kind
    split: str
    inputs: int
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., kind: _Optional[_Union[TaskDescription.Kind, str]] = ..., split: _Optional[str] = ..., inputs: _Optional[int] = ...) -> None: ...

class StatusUpdateRequest(_message.Message):
    __slots__ = ("attempt", "progress", "moved", "status", "counters")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    progress: float
    moved: bool
    status: str
    counters: _containers.RepeatedCompositeFieldContainer[Counter]
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ..., progress: _Optional[float] = ..., moved: _Optional[bool] = ..., status: _Optional[str] = ..., counters: _Optional[_Iterable[_Union[Counter, _Mapping]]] = ...) -> None: ...

class StatusUpdateResponse(_message.Message):
    __slots__ = ("stop",)
    STOP_FIELD_NUMBER: _ClassVar[int]
    stop: bool
    def __init__(self, stop: _Optional[bool] = ...) -> None: ...

class TaskDoneRequest(_message.Message):
    __slots__ = ("attempt", "counters", "phases", "notes")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    PHASES_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    counters: _containers.RepeatedCompositeFieldContainer[Counter]
    phases: _containers.RepeatedCompositeFieldContainer[Phase]
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ..., counters: _Optional[_Iterable[_Union[Counter, _Mapping]]] = ..., phases: _Optional[_Iterable[_Union[Phase, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class Phase(_message.Message):
    __slots__ = ("name", "ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    ms: int
    def __init__(self, name: _Optional[str] = ..., ms: _Optional[int] = ...) -> None: ...

class TaskDoneResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TaskFailedRequest(_message.Message):
    __slots__ = ("attempt", "error", "fatal")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FATAL_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    error: str
    fatal: bool
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ..., error: _Optional[str] = ..., fatal: _Optional[bool] = ...) -> None: ...

class TaskFailedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CanCommitRequest(_message.Message):
    __slots__ = ("attempt",)
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ...) -> None: ...

class CanCommitResponse(_message.Message):
    __slots__ = ("granted",)
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    granted: bool
    def __init__(self, granted: _Optional[bool] = ...) -> None: ...

class GetMapCompletionEventsRequest(_message.Message):
    __slots__ = ("attempt", "wait_ms")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    wait_ms: int
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ..., wait_ms: _Optional[int] = ..., **kwargs) -> None: ...

class MapCompletionEvent(_message.Message):
    __slots__ = ("attempt", "attempt_id", "host", "port", "node", "available", "merged", "channel")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    attempt_id: str
    host: str
    port: int
    node: str
    available: bool
    merged: str
    channel: int
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., node: _Optional[str] = ..., available: _Optional[bool] = ..., merged: _Optional[str] = ..., channel: _Optional[int] = ...) -> None: ...

class GetMapCompletionEventsResponse(_message.Message):
    __slots__ = ("events", "stop", "given_up")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    GIVEN_UP_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[MapCompletionEvent]
    stop: bool
    given_up: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, events: _Optional[_Iterable[_Union[MapCompletionEvent, _Mapping]]] = ..., stop: _Optional[bool] = ..., given_up: _Optional[_Iterable[int]] = ...) -> None: ...

class FetchFailedRequest(_message.Message):
    __slots__ = ("attempt", "sources", "reason")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    attempt: AttemptRef
    sources: _containers.RepeatedCompositeFieldContainer[AttemptRef]
    reason: str
    def __init__(self, attempt: _Optional[_Union[AttemptRef, _Mapping]] = ..., sources: _Optional[_Iterable[_Union[AttemptRef, _Mapping]]] = ..., reason: _Optional[str] = ...) -> None: ...

class FetchFailedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetJobStatusRequest(_message.Message):
    __slots__ = ("with_counters",)
    WITH_COUNTERS_FIELD_NUMBER: _ClassVar[int]
    with_counters: bool
    def __init__(self, with_counters: _Optional[bool] = ...) -> None: ...

class VertexProgress(_message.Message):
    __slots__ = ("name", "tasks", "pending", "running", "done", "failed", "killed", "progress")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    KILLED_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    tasks: int
    pending: int
    running: int
    done: int
    failed: int
    killed: int
    progress: float
    def __init__(self, name: _Optional[str] = ..., tasks: _Optional[int] = ..., pending: _Optional[int] = ..., running: _Optional[int] = ..., done: _Optional[int] = ..., failed: _Optional[int] = ..., killed: _Optional[int] = ..., progress: _Optional[float] = ...) -> None: ...

class GetJobStatusResponse(_message.Message):
    __slots__ = ("state", "progress", "vertices", "counters", "diagnostics", "exit_code", "notices", "notices_total")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    NOTICES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    state: str
    progress: float
    vertices: _containers.RepeatedCompositeFieldContainer[VertexProgress]
    counters: _containers.RepeatedCompositeFieldContainer[Counter]
    diagnostics: str
    exit_code: int
    notices: _containers.RepeatedScalarFieldContainer[str]
    notices_total: int
    def __init__(self, state: _Optional[str] = ..., progress: _Optional[float] = ..., vertices: _Optional[_Iterable[_Union[VertexProgress, _Mapping]]] = ..., counters: _Optional[_Iterable[_Union[Counter, _Mapping]]] = ..., diagnostics: _Optional[str] = ..., exit_code: _Optional[int] = ..., notices: _Optional[_Iterable[str]] = ..., notices_total: _Optional[int] = ...) -> None: ...

class KillJobRequest(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class KillJobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MergerRunsRequest(_message.Message):
    __slots__ = ("container_id", "port", "wait_ms")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    container_id: str
    port: int
    wait_ms: int
    def __init__(self, container_id: _Optional[str] = ..., port: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class MergerRunsResponse(_message.Message):
    __slots__ = ("is_over",)
    IS_OVER_FIELD_NUMBER: _ClassVar[int]
    is_over: bool
    def __init__(self, is_over: _Optional[bool] = ...) -> None: ...
