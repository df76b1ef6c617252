from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MergeRequest(_message.Message):
    __slots__ = ("job_id", "merge_id", "map_ids", "folder", "bytes", "replication")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    MERGE_ID_FIELD_NUMBER: _ClassVar[int]
    MAP_IDS_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    merge_id: str
    map_ids: _containers.RepeatedScalarFieldContainer[str]
    folder: str
    bytes: int
    replication: int
    def __init__(self, job_id: _Optional[str] = ..., merge_id: _Optional[str] = ..., map_ids: _Optional[_Iterable[str]] = ..., folder: _Optional[str] = ..., bytes: _Optional[int] = ..., replication: _Optional[int] = ...) -> None: ...

class MergeResponse(_message.Message):
    __slots__ = ("name", "path", "bytes", "partitions", "reads", "writes", "queued_ms", "run_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    QUEUED_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    bytes: int
    partitions: int
    reads: int
    writes: int
    queued_ms: int
    run_ms: int
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ..., bytes: _Optional[int] = ..., partitions: _Optional[int] = ..., reads: _Optional[int] = ..., writes: _Optional[int] = ..., queued_ms: _Optional[int] = ..., run_ms: _Optional[int] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("job_id", "merge_ids")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    MERGE_IDS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    merge_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_id: _Optional[str] = ..., merge_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("cancelled",)
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    cancelled: int
    def __init__(self, cancelled: _Optional[int] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("queued", "running", "queued_bytes", "budget_bytes", "used_bytes", "used_bytes_max", "merges", "failed", "cancelled", "merged_bytes", "reads", "writes", "busy_ms", "started_ms", "resident_bytes", "stalled_ms", "unfinished", "unfinished_max", "jobs")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_BYTES_FIELD_NUMBER: _ClassVar[int]
    BUDGET_BYTES_FIELD_NUMBER: _ClassVar[int]
    USED_BYTES_FIELD_NUMBER: _ClassVar[int]
    USED_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    MERGES_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    MERGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    BUSY_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STALLED_MS_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_MAX_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    queued: int
    running: int
    queued_bytes: int
    budget_bytes: int
    used_bytes: int
    used_bytes_max: int
    merges: int
    failed: int
    cancelled: int
    merged_bytes: int
    reads: int
    writes: int
    busy_ms: int
    started_ms: int
    resident_bytes: int
    stalled_ms: int
    unfinished: int
    unfinished_max: int
    jobs: _containers.RepeatedCompositeFieldContainer[JobStatus]
    def __init__(self, queued: _Optional[int] = ..., running: _Optional[int] = ..., queued_bytes: _Optional[int] = ..., budget_bytes: _Optional[int] = ..., used_bytes: _Optional[int] = ..., used_bytes_max: _Optional[int] = ..., merges: _Optional[int] = ..., failed: _Optional[int] = ..., cancelled: _Optional[int] = ..., merged_bytes: _Optional[int] = ..., reads: _Optional[int] = ..., writes: _Optional[int] = ..., busy_ms: _Optional[int] = ..., started_ms: _Optional[int] = ..., resident_bytes: _Optional[int] = ..., stalled_ms: _Optional[int] = ..., unfinished: _Optional[int] = ..., unfinished_max: _Optional[int] = ..., jobs: _Optional[_Iterable[_Union[JobStatus, _Mapping]]] = ...) -> None: ...

class JobStatus(_message.Message):
    __slots__ = ("job_id", "queued", "running", "merges", "failed", "merged_bytes")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    MERGES_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    MERGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    queued: int
    running: int
    merges: int
    failed: int
    merged_bytes: int
    def __init__(self, job_id: _Optional[str] = ..., queued: _Optional[int] = ..., running: _Optional[int] = ..., merges: _Optional[int] = ..., failed: _Optional[int] = ..., merged_bytes: _Optional[int] = ...) -> None: ...

class AddJobRequest(_message.Message):
    __slots__ = ("job_id", "password", "folders", "user")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    FOLDERS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    password: bytes
    folders: _containers.RepeatedScalarFieldContainer[str]
    user: str
    def __init__(self, job_id: _Optional[str] = ..., password: _Optional[bytes] = ..., folders: _Optional[_Iterable[str]] = ..., user: _Optional[str] = ...) -> None: ...

class AddJobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForgetJobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ForgetJobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
