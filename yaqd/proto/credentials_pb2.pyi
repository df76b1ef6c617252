from yaqd.proto import yarn_common_pb2 as _yarn_common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CredentialsKV(_message.Message):
    __slots__ = ("alias", "token", "secret")
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    alias: str
    token: _yarn_common_pb2.Token
    secret: bytes
    def __init__(self, alias: _Optional[str] = ..., token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ..., secret: _Optional[bytes] = ...) -> None: ...

class Credentials(_message.Message):
    __slots__ = ("tokens", "secrets")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[CredentialsKV]
    secrets: _containers.RepeatedCompositeFieldContainer[CredentialsKV]
    def __init__(self, tokens: _Optional[_Iterable[_Union[CredentialsKV, _Mapping]]] = ..., secrets: _Optional[_Iterable[_Union[CredentialsKV, _Mapping]]] = ...) -> None: ...
