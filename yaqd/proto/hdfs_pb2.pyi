from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FsAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NONE: _ClassVar[FsAction]
    EXECUTE: _ClassVar[FsAction]
    WRITE: _ClassVar[FsAction]
    WRITE_EXECUTE: _ClassVar[FsAction]
    READ: _ClassVar[FsAction]
    READ_EXECUTE: _ClassVar[FsAction]
    READ_WRITE: _ClassVar[FsAction]
    PERM_ALL: _ClassVar[FsAction]
NONE: FsAction
EXECUTE: FsAction
WRITE: FsAction
WRITE_EXECUTE: FsAction
READ: FsAction
READ_EXECUTE: FsAction
READ_WRITE: FsAction
PERM_ALL: FsAction

class ExtendedBlock(_message.Message):
    __slots__ = ("poolId", "blockId", "generationStamp", "numBytes")
    POOLID_FIELD_NUMBER: _ClassVar[int]
    BLOCKID_FIELD_NUMBER: _ClassVar[int]
    GENERATIONSTAMP_FIELD_NUMBER: _ClassVar[int]
    NUMBYTES_FIELD_NUMBER: _ClassVar[int]
    poolId: str
    blockId: int
    generationStamp: int
    numBytes: int
    def __init__(self, poolId: _Optional[str] = ..., blockId: _Optional[int] = ..., generationStamp: _Optional[int] = ..., numBytes: _Optional[int] = ...) -> None: ...

class DatanodeID(_message.Message):
    __slots__ = ("ipAddr", "hostName", "datanodeUuid", "xferPort", "infoPort", "ipcPort")
    IPADDR_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    DATANODEUUID_FIELD_NUMBER: _ClassVar[int]
    XFERPORT_FIELD_NUMBER: _ClassVar[int]
    INFOPORT_FIELD_NUMBER: _ClassVar[int]
    IPCPORT_FIELD_NUMBER: _ClassVar[int]
    ipAddr: str
    hostName: str
    datanodeUuid: str
    xferPort: int
    infoPort: int
    ipcPort: int
    def __init__(self, ipAddr: _Optional[str] = ..., hostName: _Optional[str] = ..., datanodeUuid: _Optional[str] = ..., xferPort: _Optional[int] = ..., infoPort: _Optional[int] = ..., ipcPort: _Optional[int] = ...) -> None: ...

class DatanodeInfo(_message.Message):
    __slots__ = ("id", "location")
    ID_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    id: DatanodeID
    location: str
    def __init__(self, id: _Optional[_Union[DatanodeID, _Mapping]] = ..., location: _Optional[str] = ...) -> None: ...

class LocatedBlock(_message.Message):
    __slots__ = ("b", "offset", "locs", "corrupt")
    B_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOCS_FIELD_NUMBER: _ClassVar[int]
    CORRUPT_FIELD_NUMBER: _ClassVar[int]
    b: ExtendedBlock
    offset: int
    locs: _containers.RepeatedCompositeFieldContainer[DatanodeInfo]
    corrupt: bool
    def __init__(self, b: _Optional[_Union[ExtendedBlock, _Mapping]] = ..., offset: _Optional[int] = ..., locs: _Optional[_Iterable[_Union[DatanodeInfo, _Mapping]]] = ..., corrupt: _Optional[bool] = ...) -> None: ...

class LocatedBlocks(_message.Message):
    __slots__ = ("fileLength", "blocks", "underConstruction", "lastBlock", "isLastBlockComplete")
    FILELENGTH_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    UNDERCONSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    LASTBLOCK_FIELD_NUMBER: _ClassVar[int]
    ISLASTBLOCKCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    fileLength: int
    blocks: _containers.RepeatedCompositeFieldContainer[LocatedBlock]
    underConstruction: bool
    lastBlock: LocatedBlock
    isLastBlockComplete: bool
    def __init__(self, fileLength: _Optional[int] = ..., blocks: _Optional[_Iterable[_Union[LocatedBlock, _Mapping]]] = ..., underConstruction: _Optional[bool] = ..., lastBlock: _Optional[_Union[LocatedBlock, _Mapping]] = ..., isLastBlockComplete: _Optional[bool] = ...) -> None: ...

class GetBlockLocationsRequest(_message.Message):
    __slots__ = ("src", "offset", "length")
    SRC_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    src: str
    offset: int
    length: int
    def __init__(self, src: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class GetBlockLocationsResponse(_message.Message):
    __slots__ = ("locations",)
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    locations: LocatedBlocks
    def __init__(self, locations: _Optional[_Union[LocatedBlocks, _Mapping]] = ...) -> None: ...

class CheckAccessRequest(_message.Message):
    __slots__ = ("path", "mode")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    path: str
    mode: FsAction
    def __init__(self, path: _Optional[str] = ..., mode: _Optional[_Union[FsAction, str]] = ...) -> None: ...

class CheckAccessResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AppendRequest(_message.Message):
    __slots__ = ("src", "clientName")
    SRC_FIELD_NUMBER: _ClassVar[int]
    CLIENTNAME_FIELD_NUMBER: _ClassVar[int]
    src: str
    clientName: str
    def __init__(self, src: _Optional[str] = ..., clientName: _Optional[str] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AbandonBlockRequest(_message.Message):
    __slots__ = ("b", "src", "holder")
    B_FIELD_NUMBER: _ClassVar[int]
    SRC_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    b: ExtendedBlock
    src: str
    holder: str
    def __init__(self, b: _Optional[_Union[ExtendedBlock, _Mapping]] = ..., src: _Optional[str] = ..., holder: _Optional[str] = ...) -> None: ...

class AbandonBlockResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompleteRequest(_message.Message):
    __slots__ = ("src", "clientName")
    SRC_FIELD_NUMBER: _ClassVar[int]
    CLIENTNAME_FIELD_NUMBER: _ClassVar[int]
    src: str
    clientName: str
    def __init__(self, src: _Optional[str] = ..., clientName: _Optional[str] = ...) -> None: ...

class CompleteResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: bool
    def __init__(self, result: _Optional[bool] = ...) -> None: ...

class RecoverLeaseRequest(_message.Message):
    __slots__ = ("src", "clientName")
    SRC_FIELD_NUMBER: _ClassVar[int]
    CLIENTNAME_FIELD_NUMBER: _ClassVar[int]
    src: str
    clientName: str
    def __init__(self, src: _Optional[str] = ..., clientName: _Optional[str] = ...) -> None: ...

class RecoverLeaseResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: bool
    def __init__(self, result: _Optional[bool] = ...) -> None: ...
