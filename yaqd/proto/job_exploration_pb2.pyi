from yaqd.proto import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SlotTurnRequest(_message.Message):
    __slots__ = ("attempt", "host", "heard", "wait_ms", "can_dump", "cannot_dump")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    CAN_DUMP_FIELD_NUMBER: _ClassVar[int]
    CANNOT_DUMP_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    host: str
    heard: int
    wait_ms: int
    can_dump: bool
    cannot_dump: str
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., host: _Optional[str] = ..., heard: _Optional[int] = ..., wait_ms: _Optional[int] = ..., can_dump: _Optional[bool] = ..., cannot_dump: _Optional[str] = ...) -> None: ...

class SlotTurnResponse(_message.Message):
    __slots__ = ("orders", "leave")
    ORDERS_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    orders: _containers.RepeatedCompositeFieldContainer[SlotOrder]
    leave: bool
    def __init__(self, orders: _Optional[_Iterable[_Union[SlotOrder, _Mapping]]] = ..., leave: _Optional[bool] = ...) -> None: ...

class SlotOrder(_message.Message):
    __slots__ = ("sequence", "action", "trial")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BEGIN: _ClassVar[SlotOrder.Action]
        THAW: _ClassVar[SlotOrder.Action]
        KILL: _ClassVar[SlotOrder.Action]
        DUMP: _ClassVar[SlotOrder.Action]
    BEGIN: SlotOrder.Action
    THAW: SlotOrder.Action
    KILL: SlotOrder.Action
    DUMP: SlotOrder.Action
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    action: SlotOrder.Action
    trial: TrialRef
    def __init__(self, sequence: _Optional[int] = ..., action: _Optional[_Union[SlotOrder.Action, str]] = ..., trial: _Optional[_Union[TrialRef, _Mapping]] = ...) -> None: ...

class TrialRef(_message.Message):
    __slots__ = ("number", "lap")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LAP_FIELD_NUMBER: _ClassVar[int]
    number: int
    lap: int
    def __init__(self, number: _Optional[int] = ..., lap: _Optional[int] = ...) -> None: ...

class TrialChangedRequest(_message.Message):
    __slots__ = ("attempt", "trial", "change", "error", "is_killed", "memory_mb", "image_mb")
    class Change(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ENDED: _ClassVar[TrialChangedRequest.Change]
        STOPPED: _ClassVar[TrialChangedRequest.Change]
    ENDED: TrialChangedRequest.Change
    STOPPED: TrialChangedRequest.Change
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    IS_KILLED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    IMAGE_MB_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    trial: TrialRef
    change: TrialChangedRequest.Change
    error: str
    is_killed: bool
    memory_mb: int
    image_mb: int
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., trial: _Optional[_Union[TrialRef, _Mapping]] = ..., change: _Optional[_Union[TrialChangedRequest.Change, str]] = ..., error: _Optional[str] = ..., is_killed: _Optional[bool] = ..., memory_mb: _Optional[int] = ..., image_mb: _Optional[int] = ...) -> None: ...

class TrialChangedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TrialBeginRequest(_message.Message):
    __slots__ = ("attempt", "trial")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    trial: TrialRef
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., trial: _Optional[_Union[TrialRef, _Mapping]] = ...) -> None: ...

class TrialBeginResponse(_message.Message):
    __slots__ = ("leave", "params", "epochs", "iteration", "checkpoint", "checkpoint_iteration", "checkpoint_epoch")
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ITERATION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_EPOCH_FIELD_NUMBER: _ClassVar[int]
    leave: bool
    params: str
    epochs: int
    iteration: int
    checkpoint: bytes
    checkpoint_iteration: int
    checkpoint_epoch: int
    def __init__(self, leave: _Optional[bool] = ..., params: _Optional[str] = ..., epochs: _Optional[int] = ..., iteration: _Optional[int] = ..., checkpoint: _Optional[bytes] = ..., checkpoint_iteration: _Optional[int] = ..., checkpoint_epoch: _Optional[int] = ...) -> None: ...

class TrialReportRequest(_message.Message):
    __slots__ = ("attempt", "trial", "iteration", "value", "metrics", "took_us", "can_checkpoint", "memory_mb", "left_out", "drawn")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    TOOK_US_FIELD_NUMBER: _ClassVar[int]
    CAN_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    DRAWN_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    trial: TrialRef
    iteration: int
    value: float
    metrics: _containers.RepeatedCompositeFieldContainer[NamedNumber]
    took_us: int
    can_checkpoint: bool
    memory_mb: int
    left_out: int
    drawn: str
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., trial: _Optional[_Union[TrialRef, _Mapping]] = ..., iteration: _Optional[int] = ..., value: _Optional[float] = ..., metrics: _Optional[_Iterable[_Union[NamedNumber, _Mapping]]] = ..., took_us: _Optional[int] = ..., can_checkpoint: _Optional[bool] = ..., memory_mb: _Optional[int] = ..., left_out: _Optional[int] = ..., drawn: _Optional[str] = ...) -> None: ...

class NamedNumber(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class TrialReportResponse(_message.Message):
    __slots__ = ("order", "wants_checkpoint")
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CONTINUE: _ClassVar[TrialReportResponse.Order]
        SUSPEND: _ClassVar[TrialReportResponse.Order]
        FREEZE: _ClassVar[TrialReportResponse.Order]
        STOP: _ClassVar[TrialReportResponse.Order]
        LEAVE: _ClassVar[TrialReportResponse.Order]
    CONTINUE: TrialReportResponse.Order
    SUSPEND: TrialReportResponse.Order
    FREEZE: TrialReportResponse.Order
    STOP: TrialReportResponse.Order
    LEAVE: TrialReportResponse.Order
    ORDER_FIELD_NUMBER: _ClassVar[int]
    WANTS_CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    order: TrialReportResponse.Order
    wants_checkpoint: bool
    def __init__(self, order: _Optional[_Union[TrialReportResponse.Order, str]] = ..., wants_checkpoint: _Optional[bool] = ...) -> None: ...

class KeepCheckpointRequest(_message.Message):
    __slots__ = ("attempt", "trial", "iteration", "checkpoint")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    trial: TrialRef
    iteration: int
    checkpoint: bytes
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., trial: _Optional[_Union[TrialRef, _Mapping]] = ..., iteration: _Optional[int] = ..., checkpoint: _Optional[bytes] = ...) -> None: ...

class KeepCheckpointResponse(_message.Message):
    __slots__ = ("is_kept",)
    IS_KEPT_FIELD_NUMBER: _ClassVar[int]
    is_kept: bool
    def __init__(self, is_kept: _Optional[bool] = ...) -> None: ...

class TrialWokenRequest(_message.Message):
    __slots__ = ("attempt", "trial")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    attempt: _job_pb2.AttemptRef
    trial: TrialRef
    def __init__(self, attempt: _Optional[_Union[_job_pb2.AttemptRef, _Mapping]] = ..., trial: _Optional[_Union[TrialRef, _Mapping]] = ...) -> None: ...

class ExplorationStatusRequest(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class TrialStatus(_message.Message):
    __slots__ = ("number", "state", "params", "values", "spent_s", "why", "value", "bound", "slot", "is_stopped", "begun", "failure", "priority", "checkpoint_iteration", "broken", "begun_s", "reported_s")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SPENT_S_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    IS_STOPPED_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_ITERATION_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    BEGUN_S_FIELD_NUMBER: _ClassVar[int]
    REPORTED_S_FIELD_NUMBER: _ClassVar[int]
    number: int
    state: int
    params: str
    values: _containers.RepeatedScalarFieldContainer[float]
    spent_s: float
    why: int
    value: float
    bound: float
    slot: int
    is_stopped: bool
    begun: int
    failure: str
    priority: float
    checkpoint_iteration: int
    broken: _containers.RepeatedScalarFieldContainer[int]
    begun_s: float
    reported_s: float
    def __init__(self, number: _Optional[int] = ..., state: _Optional[int] = ..., params: _Optional[str] = ..., values: _Optional[_Iterable[float]] = ..., spent_s: _Optional[float] = ..., why: _Optional[int] = ..., value: _Optional[float] = ..., bound: _Optional[float] = ..., slot: _Optional[int] = ..., is_stopped: _Optional[bool] = ..., begun: _Optional[int] = ..., failure: _Optional[str] = ..., priority: _Optional[float] = ..., checkpoint_iteration: _Optional[int] = ..., broken: _Optional[_Iterable[int]] = ..., begun_s: _Optional[float] = ..., reported_s: _Optional[float] = ...) -> None: ...

class ExplorationStatusResponse(_message.Message):
    __slots__ = ("version", "trials", "now_s", "is_over", "ending", "winner", "reached_s", "slots", "terms", "name", "notices", "started")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    NOW_S_FIELD_NUMBER: _ClassVar[int]
    IS_OVER_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    WINNER_FIELD_NUMBER: _ClassVar[int]
    REACHED_S_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    version: int
    trials: _containers.RepeatedCompositeFieldContainer[TrialStatus]
    now_s: float
    is_over: bool
    ending: str
    winner: int
    reached_s: float
    slots: int
    terms: str
    name: str
    notices: _containers.RepeatedScalarFieldContainer[str]
    started: float
    def __init__(self, version: _Optional[int] = ..., trials: _Optional[_Iterable[_Union[TrialStatus, _Mapping]]] = ..., now_s: _Optional[float] = ..., is_over: _Optional[bool] = ..., ending: _Optional[str] = ..., winner: _Optional[int] = ..., reached_s: _Optional[float] = ..., slots: _Optional[int] = ..., terms: _Optional[str] = ..., name: _Optional[str] = ..., notices: _Optional[_Iterable[str]] = ..., started: _Optional[float] = ...) -> None: ...

class StopExplorationRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StopExplorationResponse(_message.Message):
    __slots__ = ("begins_anew",)
    BEGINS_ANEW_FIELD_NUMBER: _ClassVar[int]
    begins_anew: bool
    def __init__(self, begins_anew: _Optional[bool] = ...) -> None: ...
