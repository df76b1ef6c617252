"""A token: an identifier that says who, a password that proves it, and where it counts."""

import hmac
from dataclasses import replace
from functools import lru_cache
from typing import Self

from yaqd.model.values import value
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.security.writable import WritableReader, encode_bytes, encode_text


@value()
class Token:
    #: serialized message or Writable, by kind; opaque to whoever only carries the token
    identifier: bytes
    #: HMAC-SHA1 of the identifier under the issuer's key, 20 bytes
    password: bytes
    #: "NMToken", "YARN_AM_RM_TOKEN", ...
    kind: str
    #: `ip:port` of the server it is for; "" where the holder fills it in
    service: str

    def __repr__(self) -> str:
        return f"Token(kind={self.kind!r}, service={self.service!r})"  # never the password

    def with_service(self, service: str) -> Self:
        return replace(self, service=service)

    def to_pb(self) -> pb.Token:
        message = pb.Token()
        self.put(message)
        return message

    def put(self, message: pb.Token) -> None:
        """Fill a field of a larger message."""
        message.identifier = self.identifier
        message.password = self.password
        message.kind = self.kind
        message.service = self.service

    @classmethod
    def from_pb(cls, message: pb.Token) -> Self:
        return cls(message.identifier, message.password, message.kind, message.service)

    def to_writable(self) -> bytes:
        return (
            encode_bytes(self.identifier)
            + encode_bytes(self.password)
            + encode_text(self.kind)
            + encode_text(self.service)
        )

    @classmethod
    def from_writable(cls, reader: WritableReader) -> Self:
        """Raises BadWritable."""
        return cls(reader.byte_string(), reader.byte_string(), reader.text(), reader.text())


def token_password(key: bytes, identifier: bytes) -> bytes:
    """Return the password of an identifier under a key."""
    state = _keyed(key).copy()
    state.update(identifier)
    return state.digest()


@lru_cache(maxsize=64)
def _keyed(key: bytes) -> hmac.HMAC:
    """The state after the key, which is the same for every identifier: a third of the work."""
    return hmac.new(key, digestmod="sha1")
