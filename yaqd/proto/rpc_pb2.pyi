from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RpcKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RPC_BUILTIN: _ClassVar[RpcKind]
    RPC_WRITABLE: _ClassVar[RpcKind]
    RPC_PROTOCOL_BUFFER: _ClassVar[RpcKind]

class RpcOperation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RPC_FINAL_PACKET: _ClassVar[RpcOperation]
    RPC_CONTINUATION_PACKET: _ClassVar[RpcOperation]
    RPC_CLOSE_CONNECTION: _ClassVar[RpcOperation]
RPC_BUILTIN: RpcKind
RPC_WRITABLE: RpcKind
RPC_PROTOCOL_BUFFER: RpcKind
RPC_FINAL_PACKET: RpcOperation
RPC_CONTINUATION_PACKET: RpcOperation
RPC_CLOSE_CONNECTION: RpcOperation

class CallerContext(_message.Message):
    __slots__ = ("context", "signature")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    context: str
    signature: bytes
    def __init__(self, context: _Optional[str] = ..., signature: _Optional[bytes] = ...) -> None: ...

class TraceInfo(_message.Message):
    __slots__ = ("traceId", "parentId", "spanContext")
    TRACEID_FIELD_NUMBER: _ClassVar[int]
    PARENTID_FIELD_NUMBER: _ClassVar[int]
    SPANCONTEXT_FIELD_NUMBER: _ClassVar[int]
    traceId: int
    parentId: int
    spanContext: bytes
    def __init__(self, traceId: _Optional[int] = ..., parentId: _Optional[int] = ..., spanContext: _Optional[bytes] = ...) -> None: ...

class RpcRequestHeader(_message.Message):
    __slots__ = ("rpcKind", "rpcOp", "callId", "clientId", "retryCount", "traceInfo", "callerContext", "stateId", "routerFederatedState")
    RPCKIND_FIELD_NUMBER: _ClassVar[int]
    RPCOP_FIELD_NUMBER: _ClassVar[int]
    CALLID_FIELD_NUMBER: _ClassVar[int]
    CLIENTID_FIELD_NUMBER: _ClassVar[int]
    RETRYCOUNT_FIELD_NUMBER: _ClassVar[int]
    TRACEINFO_FIELD_NUMBER: _ClassVar[int]
    CALLERCONTEXT_FIELD_NUMBER: _ClassVar[int]
    STATEID_FIELD_NUMBER: _ClassVar[int]
    ROUTERFEDERATEDSTATE_FIELD_NUMBER: _ClassVar[int]
    rpcKind: RpcKind
    rpcOp: RpcOperation
    callId: int
    clientId: bytes
    retryCount: int
    traceInfo: TraceInfo
    callerContext: CallerContext
    stateId: int
    routerFederatedState: bytes
    def __init__(self, rpcKind: _Optional[_Union[RpcKind, str]] = ..., rpcOp: _Optional[_Union[RpcOperation, str]] = ..., callId: _Optional[int] = ..., clientId: _Optional[bytes] = ..., retryCount: _Optional[int] = ..., traceInfo: _Optional[_Union[TraceInfo, _Mapping]] = ..., callerContext: _Optional[_Union[CallerContext, _Mapping]] = ..., stateId: _Optional[int] = ..., routerFederatedState: _Optional[bytes] = ...) -> None: ...

class RpcResponseHeader(_message.Message):
    __slots__ = ("callId", "status", "serverIpcVersionNum", "exceptionClassName", "errorMsg", "errorDetail", "clientId", "retryCount", "stateId", "routerFederatedState")
    class RpcStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SUCCESS: _ClassVar[RpcResponseHeader.RpcStatus]
        ERROR: _ClassVar[RpcResponseHeader.RpcStatus]
        FATAL: _ClassVar[RpcResponseHeader.RpcStatus]
    SUCCESS: RpcResponseHeader.RpcStatus
    ERROR: RpcResponseHeader.RpcStatus
    FATAL: RpcResponseHeader.RpcStatus
    class RpcErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ERROR_APPLICATION: _ClassVar[RpcResponseHeader.RpcErrorCode]
        ERROR_NO_SUCH_METHOD: _ClassVar[RpcResponseHeader.RpcErrorCode]
        ERROR_NO_SUCH_PROTOCOL: _ClassVar[RpcResponseHeader.RpcErrorCode]
        ERROR_RPC_SERVER: _ClassVar[RpcResponseHeader.RpcErrorCode]
        ERROR_SERIALIZING_RESPONSE: _ClassVar[RpcResponseHeader.RpcErrorCode]
        ERROR_RPC_VERSION_MISMATCH: _ClassVar[RpcResponseHeader.RpcErrorCode]
        FATAL_UNKNOWN: _ClassVar[RpcResponseHeader.RpcErrorCode]
        FATAL_UNSUPPORTED_SERIALIZATION: _ClassVar[RpcResponseHeader.RpcErrorCode]
        FATAL_INVALID_RPC_HEADER: _ClassVar[RpcResponseHeader.RpcErrorCode]
        FATAL_DESERIALIZING_REQUEST: _ClassVar[RpcResponseHeader.RpcErrorCode]
        FATAL_VERSION_MISMATCH: _ClassVar[RpcResponseHeader.RpcErrorCode]
        FATAL_UNAUTHORIZED: _ClassVar[RpcResponseHeader.RpcErrorCode]
    ERROR_APPLICATION: RpcResponseHeader.RpcErrorCode
    ERROR_NO_SUCH_METHOD: RpcResponseHeader.RpcErrorCode
    ERROR_NO_SUCH_PROTOCOL: RpcResponseHeader.RpcErrorCode
    ERROR_RPC_SERVER: RpcResponseHeader.RpcErrorCode
    ERROR_SERIALIZING_RESPONSE: RpcResponseHeader.RpcErrorCode
    ERROR_RPC_VERSION_MISMATCH: RpcResponseHeader.RpcErrorCode
    FATAL_UNKNOWN: RpcResponseHeader.RpcErrorCode
    FATAL_UNSUPPORTED_SERIALIZATION: RpcResponseHeader.RpcErrorCode
    FATAL_INVALID_RPC_HEADER: RpcResponseHeader.RpcErrorCode
    FATAL_DESERIALIZING_REQUEST: RpcResponseHeader.RpcErrorCode
    FATAL_VERSION_MISMATCH: RpcResponseHeader.RpcErrorCode
    FATAL_UNAUTHORIZED: RpcResponseHeader.RpcErrorCode
    CALLID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SERVERIPCVERSIONNUM_FIELD_NUMBER: _ClassVar[int]
    EXCEPTIONCLASSNAME_FIELD_NUMBER: _ClassVar[int]
    ERRORMSG_FIELD_NUMBER: _ClassVar[int]
    ERRORDETAIL_FIELD_NUMBER: _ClassVar[int]
    CLIENTID_FIELD_NUMBER: _ClassVar[int]
    RETRYCOUNT_FIELD_NUMBER: _ClassVar[int]
    STATEID_FIELD_NUMBER: _ClassVar[int]
    ROUTERFEDERATEDSTATE_FIELD_NUMBER: _ClassVar[int]
    callId: int
    status: RpcResponseHeader.RpcStatus
    serverIpcVersionNum: int
    exceptionClassName: str
    errorMsg: str
    errorDetail: RpcResponseHeader.RpcErrorCode
    clientId: bytes
    retryCount: int
    stateId: int
    routerFederatedState: bytes
    def __init__(self, callId: _Optional[int] = ..., status: _Optional[_Union[RpcResponseHeader.RpcStatus, str]] = ..., serverIpcVersionNum: _Optional[int] = ..., exceptionClassName: _Optional[str] = ..., errorMsg: _Optional[str] = ..., errorDetail: _Optional[_Union[RpcResponseHeader.RpcErrorCode, str]] = ..., clientId: _Optional[bytes] = ..., retryCount: _Optional[int] = ..., stateId: _Optional[int] = ..., routerFederatedState: _Optional[bytes] = ...) -> None: ...

class UserInformation(_message.Message):
    __slots__ = ("effectiveUser", "realUser")
    EFFECTIVEUSER_FIELD_NUMBER: _ClassVar[int]
    REALUSER_FIELD_NUMBER: _ClassVar[int]
    effectiveUser: str
    realUser: str
    def __init__(self, effectiveUser: _Optional[str] = ..., realUser: _Optional[str] = ...) -> None: ...

class IpcConnectionContext(_message.Message):
    __slots__ = ("userInfo", "protocol")
    USERINFO_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    userInfo: UserInformation
    protocol: str
    def __init__(self, userInfo: _Optional[_Union[UserInformation, _Mapping]] = ..., protocol: _Optional[str] = ...) -> None: ...

class RequestHeader(_message.Message):
    __slots__ = ("methodName", "declaringClassProtocolName", "clientProtocolVersion")
    METHODNAME_FIELD_NUMBER: _ClassVar[int]
    DECLARINGCLASSPROTOCOLNAME_FIELD_NUMBER: _ClassVar[int]
    CLIENTPROTOCOLVERSION_FIELD_NUMBER: _ClassVar[int]
    methodName: str
    declaringClassProtocolName: str
    clientProtocolVersion: int
    def __init__(self, methodName: _Optional[str] = ..., declaringClassProtocolName: _Optional[str] = ..., clientProtocolVersion: _Optional[int] = ...) -> None: ...

class RpcSasl(_message.Message):
    __slots__ = ("version", "state", "token", "auths")
    class SaslState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SUCCESS: _ClassVar[RpcSasl.SaslState]
        NEGOTIATE: _ClassVar[RpcSasl.SaslState]
        INITIATE: _ClassVar[RpcSasl.SaslState]
        CHALLENGE: _ClassVar[RpcSasl.SaslState]
        RESPONSE: _ClassVar[RpcSasl.SaslState]
        WRAP: _ClassVar[RpcSasl.SaslState]
    SUCCESS: RpcSasl.SaslState
    NEGOTIATE: RpcSasl.SaslState
    INITIATE: RpcSasl.SaslState
    CHALLENGE: RpcSasl.SaslState
    RESPONSE: RpcSasl.SaslState
    WRAP: RpcSasl.SaslState
    class SaslAuth(_message.Message):
        __slots__ = ("method", "mechanism", "protocol", "serverId", "challenge")
        METHOD_FIELD_NUMBER: _ClassVar[int]
        MECHANISM_FIELD_NUMBER: _ClassVar[int]
        PROTOCOL_FIELD_NUMBER: _ClassVar[int]
        SERVERID_FIELD_NUMBER: _ClassVar[int]
        CHALLENGE_FIELD_NUMBER: _ClassVar[int]
        method: str
        mechanism: str
        protocol: str
        serverId: str
        challenge: bytes
        def __init__(self, method: _Optional[str] = ..., mechanism: _Optional[str] = ..., protocol: _Optional[str] = ..., serverId: _Optional[str] = ..., challenge: _Optional[bytes] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AUTHS_FIELD_NUMBER: _ClassVar[int]
    version: int
    state: RpcSasl.SaslState
    token: bytes
    auths: _containers.RepeatedCompositeFieldContainer[RpcSasl.SaslAuth]
    def __init__(self, version: _Optional[int] = ..., state: _Optional[_Union[RpcSasl.SaslState, str]] = ..., token: _Optional[bytes] = ..., auths: _Optional[_Iterable[_Union[RpcSasl.SaslAuth, _Mapping]]] = ...) -> None: ...
