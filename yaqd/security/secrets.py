"""The four kinds of token: who mints them, who verifies them, whom they name.

A password is the HMAC-SHA1 of the identifier's bytes as received; verifying is making it again. The ResourceManager
builds these classes on its RollingKeys, a NodeManager on the VerifierKeys it is given. Each serves an RpcServer as
its `TokenSecrets`.
"""

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from yaqd.ipc.errors import InvalidToken
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as pb
from yaqd.security.keys import MasterKey
from yaqd.security.token import Token, token_password
from yaqd.security.writable import BadWritable, WritableReader, encode_text

AM_RM_TOKEN: Final = "YARN_AM_RM_TOKEN"
NM_TOKEN: Final = "NMToken"
CONTAINER_TOKEN: Final = "ContainerToken"
JOB_TOKEN: Final = "mapreduce.job"
KINDS: Final = (AM_RM_TOKEN, NM_TOKEN, CONTAINER_TOKEN, JOB_TOKEN)

_JOB_KEY_BYTES: Final = 20

IdentifierT = TypeVar("IdentifierT", bound=Message)


class Keys(Protocol):
    """RollingKeys or VerifierKeys."""

    @property
    def current(self) -> MasterKey | None: ...
    @property
    def newest(self) -> MasterKey | None: ...
    def find(self, key_id: int) -> MasterKey | None: ...


def parse_identifier(kind: type[IdentifierT], identifier: bytes) -> IdentifierT:
    """Raises InvalidToken."""
    try:
        return kind.FromString(identifier)
    except DecodeError:
        raise InvalidToken(f"token identifier is not a {kind.__name__}") from None


def _password(keys: Keys, key_id: int, identifier: bytes, what: str) -> bytes:
    key = keys.find(key_id)
    if key is None:
        raise InvalidToken(f"{what} (its master key {key_id} is unknown or no longer valid)")
    return token_password(key.key, identifier)


def _current(keys: Keys) -> MasterKey:
    key = keys.current
    if key is None:
        raise InvalidToken("no master key has been received yet")
    return key


def _refuse_other_kind(kind: str | None, own: str) -> None:
    if kind is not None and kind != own:
        raise InvalidToken(f"token of kind {kind[:80]!r}, expected {own}")


class AMRMTokenSecrets:
    """Application masters to the ResourceManager. Only minted, not yet forgotten attempts are let in."""

    kind: Final = AM_RM_TOKEN

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._attempts: set[ApplicationAttemptId] = set()

    def mint(self, attempt_id: ApplicationAttemptId) -> Token:
        """Make a token with the newest key; the attempt may come in from now on."""
        key = self.keys.newest
        if key is None:
            raise InvalidToken("no master key")
        identifier = pb.AMRMTokenIdentifier(keyId=key.key_id)
        identifier.appAttemptId.CopyFrom(convert.attempt_id_pb(attempt_id))
        data = identifier.SerializeToString()
        self._attempts.add(attempt_id)
        return Token(data, token_password(key.key, data), self.kind, "")

    def forget(self, attempt_id: ApplicationAttemptId) -> None:
        """Forgets an attempt that is over: its token opens nothing any more."""
        self._attempts.discard(attempt_id)

    def is_outdated(self, identifier: bytes) -> bool:
        """Returns whether the holder should be sent a new token: its key is about to go."""
        key = self.keys.newest
        return key is not None and parse_identifier(pb.AMRMTokenIdentifier, identifier).keyId != key.key_id

    def password(self, kind: str | None, identifier: bytes) -> bytes:
        """Raises InvalidToken."""
        _refuse_other_kind(kind, self.kind)
        parsed = parse_identifier(pb.AMRMTokenIdentifier, identifier)
        attempt_id = convert.attempt_id(parsed.appAttemptId)
        if attempt_id not in self._attempts:
            raise InvalidToken(f"{attempt_id} not found in AMRMTokenSecretManager.")
        return _password(self.keys, parsed.keyId, identifier, f"Invalid AMRMToken from {attempt_id}")

    def attempt(self, identifier: bytes) -> ApplicationAttemptId:
        return convert.attempt_id(parse_identifier(pb.AMRMTokenIdentifier, identifier).appAttemptId)

    def user(self, identifier: bytes) -> str:
        return str(self.attempt(identifier))


class NMTokenSecrets:
    """Application masters (and the ResourceManager on their behalf) to one NodeManager.

    A NodeManager also remembers the key an attempt came with. So a long-lived application master is not locked out when
    its token outlives two roll-overs; `application_finished` ends that.
    """

    kind: Final = NM_TOKEN

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._remembered: dict[ApplicationAttemptId, MasterKey] = {}

    def mint(self, attempt_id: ApplicationAttemptId, node_id: NodeId, submitter: str) -> Token:
        key = _current(self.keys)
        identifier = pb.NMTokenIdentifier(appSubmitter=submitter, keyId=key.key_id)
        identifier.appAttemptId.CopyFrom(convert.attempt_id_pb(attempt_id))
        identifier.nodeId.CopyFrom(convert.node_id_pb(node_id))
        data = identifier.SerializeToString()
        return Token(data, token_password(key.key, data), self.kind, str(node_id))

    def attempt_started(self, identifier: bytes) -> None:
        """Remember the key of an attempt whose token has just been used to start containers."""
        parsed = parse_identifier(pb.NMTokenIdentifier, identifier)
        key = self.keys.find(parsed.keyId)
        if key is not None:
            self._remembered[convert.attempt_id(parsed.appAttemptId)] = key

    def application_finished(self, application_id: ApplicationId) -> None:
        for attempt_id in [a for a in self._remembered if a.application_id == application_id]:
            del self._remembered[attempt_id]

    def password(self, kind: str | None, identifier: bytes) -> bytes:
        """Raises InvalidToken."""
        _refuse_other_kind(kind, self.kind)
        parsed = parse_identifier(pb.NMTokenIdentifier, identifier)
        attempt_id = convert.attempt_id(parsed.appAttemptId)
        remembered = self._remembered.get(attempt_id)
        if remembered is not None and remembered.key_id == parsed.keyId:
            return token_password(remembered.key, identifier)
        what = f"Given NMToken for application : {attempt_id} seems to have been generated illegally."
        return _password(self.keys, parsed.keyId, identifier, what)

    def user(self, identifier: bytes) -> str:
        return str(convert.attempt_id(parse_identifier(pb.NMTokenIdentifier, identifier).appAttemptId))


class ContainerTokenSecrets:
    """The ResourceManager's word to a NodeManager about one container, carried by the application master."""

    kind: Final = CONTAINER_TOKEN

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def mint(self, identifier: pb.ContainerTokenIdentifier) -> Token:
        """Set the identifier's masterKeyId and sign it; the service is its nmHostAddr."""
        key = _current(self.keys)
        identifier.masterKeyId = key.key_id
        data = identifier.SerializeToString()
        return Token(data, token_password(key.key, data), self.kind, identifier.nmHostAddr)

    def password(self, kind: str | None, identifier: bytes) -> bytes:
        """Raises InvalidToken."""
        _refuse_other_kind(kind, self.kind)
        parsed = parse_identifier(pb.ContainerTokenIdentifier, identifier)
        what = f"Given Container {convert.container_id(parsed.containerId)} seems to have an illegally generated token."
        return _password(self.keys, parsed.masterKeyId, identifier, what)

    def user(self, identifier: bytes) -> str:
        return str(convert.container_id(parse_identifier(pb.ContainerTokenIdentifier, identifier).containerId))


class JobTokenSecrets:
    """Tasks to their job manager, and fetchers to shuffle services: one token per job, named by the job's id."""

    kind: Final = JOB_TOKEN

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random
        #: job id -> password
        self._passwords: dict[str, bytes] = {}

    def mint(self, job_id: str) -> Token:
        """Make the job's token with a key of its own; a second call returns the same token."""
        identifier = encode_text(job_id)
        if job_id not in self._passwords:
            self._passwords[job_id] = token_password(self._random(_JOB_KEY_BYTES), identifier)
        return Token(identifier, self._passwords[job_id], self.kind, job_id)

    def add(self, token: Token) -> None:
        """Accept a job's token that somebody else made. Raises InvalidToken."""
        _refuse_other_kind(token.kind, self.kind)
        self._passwords[self.user(token.identifier)] = token.password

    def forget(self, job_id: str) -> None:
        self._passwords.pop(job_id, None)

    def password(self, kind: str | None, identifier: bytes) -> bytes:
        """Raises InvalidToken."""
        _refuse_other_kind(kind, self.kind)
        job_id = self.user(identifier)
        password = self._passwords.get(job_id)
        if password is None:
            raise InvalidToken(f"no token is known for job {job_id[:80]!r}")
        return password

    def user(self, identifier: bytes) -> str:
        reader = WritableReader(identifier)
        try:
            job_id = reader.text()
        except BadWritable as error:
            raise InvalidToken(f"job token identifier: {error}") from None
        if reader.remaining:
            raise InvalidToken("job token identifier has bytes after the job id")
        return job_id
