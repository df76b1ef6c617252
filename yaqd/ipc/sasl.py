"""DIGEST-MD5 (RFC 2831) exactly as Hadoop uses it: a token proves itself without its password on the wire.

User name and password are the Base64 of the token's identifier and password. Realm and digest-uri are fixed, qop is
`auth`, the nonce is fresh per connection. Both sides prove that they know the password; all comparisons take constant
time. MD5 is Java's choice, not ours: a peer that does not compute it this way cannot connect.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final, Self

from yaqd.ipc.errors import SaslFailure

REALM: Final = "default"
SERVER_ID: Final = "default"
DIGEST_URI: Final = "/default"
MECHANISM: Final = "DIGEST-MD5"
_NONCE_COUNT: Final = "00000001"
_QOP: Final = "auth"
#: far more than any token identifier in Base64 needs
_MESSAGE_BYTES_MAX: Final = 32 << 10
_DIRECTIVE: Final = re.compile(r'\s*([A-Za-z-]{1,32})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]*))\s*(?:,|\Z)', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def parse_directives(message: bytes) -> dict[str, str]:
    """Parse `name=value,name="value"` in any order. Raises SaslFailure."""
    if len(message) > _MESSAGE_BYTES_MAX:
        raise SaslFailure(f"digest message of {len(message)} bytes is too long")
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise SaslFailure("digest message is not UTF-8") from None
    directives: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _DIRECTIVE.match(text, position)
        if match is None:
            raise SaslFailure(f"digest message is malformed at character {position}")
        name = match[1].lower()
        if name in directives:
            raise SaslFailure(f"digest directive {name} given twice")
        directives[name] = match[3] if match[2] is None else _ESCAPE.sub(r"\1", match[2])
        position = match.end()
    return directives


def _md5(data: bytes) -> "hashlib._Hash":
    return hashlib.md5(data, usedforsecurity=False)


@dataclass(frozen=True, slots=True)
class Digest:
    """The agreed parameters of one exchange, from which both proofs follow."""

    username: str
    password: str
    nonce: str
    cnonce: str
    nonce_count: str = _NONCE_COUNT

    def _proof(self, a2: str) -> str:
        secret = _md5(f"{self.username}:{REALM}:{self.password}".encode()).digest()
        a1 = secret + f":{self.nonce}:{self.cnonce}".encode()
        keyed = f"{_md5(a1).hexdigest()}:{self.nonce}:{self.nonce_count}:{self.cnonce}:{_QOP}:"
        return _md5((keyed + _md5(a2.encode()).hexdigest()).encode()).hexdigest()

    def response(self) -> str:
        """Return the client's proof, 32 hexadecimal digits."""
        return self._proof(f"AUTHENTICATE:{DIGEST_URI}")

    def rspauth(self) -> str:
        """Return the server's proof, 32 hexadecimal digits."""
        return self._proof(f":{DIGEST_URI}")


def encode_secret(value: bytes) -> str:
    return base64.b64encode(value).decode()


def challenge(nonce: str) -> bytes:
    """Return the server's opening message."""
    return f'realm="{REALM}",nonce="{nonce}",qop="{_QOP}",charset=utf-8,algorithm=md5-sess'.encode()


@dataclass(frozen=True, slots=True)
class DigestResponse:
    """A client's answer to the challenge, its form checked, its proof not yet."""

    identifier: bytes
    username: str
    cnonce: str
    response: str

    @classmethod
    def parse(cls, message: bytes, nonce: str) -> Self:
        """Raises SaslFailure unless every directive is what Hadoop's fixed parameters allow."""
        given = parse_directives(message)
        expected = {"realm": REALM, "nonce": nonce, "nc": _NONCE_COUNT, "digest-uri": DIGEST_URI, "qop": _QOP}
        for name, value in expected.items():
            if not hmac.compare_digest(given.get(name, "").encode(), value.encode()):
                raise SaslFailure(f"digest directive {name} is missing or not the one of this connection")
        username, cnonce = given.get("username", ""), given.get("cnonce", "")
        if not username or not cnonce:
            raise SaslFailure("digest response lacks a user name or a nonce of the client")
        try:
            identifier = base64.b64decode(username, validate=True)
        except (binascii.Error, ValueError):
            raise SaslFailure("user name of the digest response is not Base64") from None
        return cls(identifier, username, cnonce, given.get("response", ""))

    def verify(self, password: bytes, nonce: str) -> bytes | None:
        """Return the server's proof to send back, or None when the client does not know the password."""
        digest = Digest(self.username, encode_secret(password), nonce, self.cnonce)
        if not hmac.compare_digest(digest.response().encode(), self.response.encode()):
            return None
        return f"rspauth={digest.rspauth()}".encode()


class DigestClient:
    """The client's half: answer a challenge, then check the server's proof."""

    def __init__(self, identifier: bytes, password: bytes, cnonce: str) -> None:
        self._username = encode_secret(identifier)
        self._password = encode_secret(password)
        self._cnonce = cnonce
        self._digest: Digest | None = None

    def respond(self, message: bytes) -> bytes:
        """Return the answer to the server's challenge. Raises SaslFailure."""
        given = parse_directives(message)
        nonce = given.get("nonce", "")
        if not nonce or '"' in nonce or "\\" in nonce:
            raise SaslFailure("challenge without a usable nonce")
        if given.get("realm", REALM) != REALM or given.get("algorithm", "") != "md5-sess":
            raise SaslFailure("challenge for another realm or algorithm")
        if _QOP not in given.get("qop", _QOP).replace(" ", "").split(","):
            raise SaslFailure("server does not offer qop=auth (hadoop.rpc.protection must be authentication)")
        self._digest = Digest(self._username, self._password, nonce, self._cnonce)
        return (
            f'charset=utf-8,username="{self._username}",realm="{REALM}",nonce="{nonce}",nc={_NONCE_COUNT},'
            f'cnonce="{self._cnonce}",digest-uri="{DIGEST_URI}",maxbuf=65536,'
            f"response={self._digest.response()},qop={_QOP}"
        ).encode()

    def check(self, message: bytes) -> None:
        """Check the server's proof. Raises SaslFailure when it is missing or wrong."""
        if self._digest is None:
            raise SaslFailure("server claims success before the client answered a challenge")
        proof = parse_directives(message).get("rspauth", "")
        if not hmac.compare_digest(proof.encode(), self._digest.rspauth().encode()):
            raise SaslFailure("server did not prove that it knows the token")
