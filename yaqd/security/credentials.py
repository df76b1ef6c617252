"""Hadoop's token storage stream: what a container finds in its `container_tokens` file.

`HDTS`, a format byte, then tokens and secrets by alias, either as Writables (0, what everybody writes) or as one
delimited protobuf message (1). Spark hands over its whole growth buffer, so bytes after the counted entries are
ignored; everything else that does not add up is refused.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from google.protobuf.message import DecodeError

from yaqd.proto import credentials_pb2 as pb
from yaqd.security.token import Token
from yaqd.security.writable import BadWritable, WritableReader, encode_bytes, encode_text, encode_vint

_MAGIC: Final = b"HDTS"
_WRITABLE: Final = 0
_PROTOBUF: Final = 1
#: far beyond any real file; a length lie in a protobuf cannot make us hold more
CREDENTIALS_BYTES_MAX: Final = 16 << 20


class BadCredentials(ValueError):
    """Bytes that are not a credentials stream; the message says where it breaks."""


@dataclass(frozen=True, slots=True)
class Credentials:
    #: alias (usually the service) -> token, in file order
    tokens: dict[str, Token] = field(default_factory=dict)
    #: alias -> secret
    secrets: dict[str, bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Credentials(tokens={list(self.tokens)}, secrets={list(self.secrets)})"

    def token_of_kind(self, kind: str) -> Token | None:
        """Return the first token of a kind."""
        return next((token for token in self.tokens.values() if token.kind == kind), None)

    def with_token(self, alias: str, token: Token) -> Self:
        """Return a copy with one token more (or replaced); everything else stays untouched."""
        return type(self)({**self.tokens, alias: token}, dict(self.secrets))

    @classmethod
    def read(cls, data: bytes | memoryview) -> Self:
        """Parse a stream; no bytes at all are no credentials. Raises BadCredentials."""
        if len(data) == 0:
            return cls()
        if len(data) > CREDENTIALS_BYTES_MAX:
            raise BadCredentials(f"credentials of {len(data)} bytes, at most {CREDENTIALS_BYTES_MAX} are read")
        reader = WritableReader(data)
        try:
            if reader.raw(4) != _MAGIC:
                raise BadCredentials("not a credentials stream: it does not begin with HDTS")
            form = reader.raw(1)[0]
            if form == _WRITABLE:
                return cls._read_writable(reader)
            if form == _PROTOBUF:
                return cls._read_protobuf(reader)
        except (BadWritable, DecodeError) as error:
            raise BadCredentials(f"credentials stream is damaged: {error}") from None
        raise BadCredentials(f"credentials format {form} is unknown (0 and 1 are)")

    @classmethod
    def _read_writable(cls, reader: WritableReader) -> Self:
        tokens = {}
        for _ in range(_count(reader)):
            alias = reader.text()
            tokens[alias] = Token.from_writable(reader)
        secrets = {}
        for _ in range(_count(reader)):
            alias = reader.text()
            secrets[alias] = reader.byte_string()
        return cls(tokens, secrets)

    @classmethod
    def _read_protobuf(cls, reader: WritableReader) -> Self:
        message = pb.Credentials.FromString(reader.raw(_base128(reader)))
        if not message.IsInitialized():
            raise BadCredentials("credentials stream is damaged: required fields are missing")
        return cls(
            {entry.alias: Token.from_pb(entry.token) for entry in message.tokens},
            {entry.alias: entry.secret for entry in message.secrets},
        )

    def write(self) -> bytes:
        """Return the stream in the Writable form."""
        parts = [_MAGIC, bytes((_WRITABLE,)), encode_vint(len(self.tokens))]
        for alias, token in self.tokens.items():
            parts += (encode_text(alias), token.to_writable())
        parts.append(encode_vint(len(self.secrets)))
        for alias, secret in self.secrets.items():
            parts += (encode_text(alias), encode_bytes(secret))
        return b"".join(parts)

    def write_protobuf(self) -> bytes:
        """Return the stream in the protobuf form."""
        message = pb.Credentials()
        for alias, token in self.tokens.items():
            message.tokens.add(alias=alias, token=token.to_pb())
        for alias, secret in self.secrets.items():
            message.secrets.add(alias=alias, secret=secret)
        body = message.SerializeToString()
        length, prefix = len(body), bytearray()
        while length > 127:
            prefix.append(length & 0x7F | 0x80)
            length >>= 7
        prefix.append(length)
        return _MAGIC + bytes((_PROTOBUF,)) + prefix + body

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file. Raises BadCredentials (with the path) or OSError."""
        with Path(path).open("rb") as file:
            data = file.read(CREDENTIALS_BYTES_MAX + 1)
        try:
            return cls.read(data)
        except BadCredentials as error:
            raise BadCredentials(f"{path}: {error}") from None


def _count(reader: WritableReader) -> int:
    count = reader.vint()
    if not 0 <= count <= reader.remaining:  # every entry takes bytes, so a larger count is a lie
        raise BadWritable(f"{count} entries announced, {reader.remaining} bytes left")
    return count


def _base128(reader: WritableReader) -> int:
    value = 0
    for shift in range(0, 35, 7):
        byte = reader.raw(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value
    raise BadWritable("length of more than five bytes")
