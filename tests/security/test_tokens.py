"""Keys that roll, tokens that hold, and those that must not."""

import hashlib
import hmac
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.ipc.errors import InvalidContainer, InvalidToken, YarnError
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as pb
from yaqd.security import (
    AMRMTokenSecrets,
    ContainerTokenSecrets,
    JobTokenSecrets,
    MasterKey,
    NMTokenSecrets,
    RollingKeys,
    Token,
    VerifierKeys,
    check_container_password,
    check_container_token,
    check_nm_token,
    parse_identifier,
)

APP = ApplicationId(1_700_000_000_000, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
OTHER = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 2), 1)
NODE = NodeId("127.0.0.1", 8041)


class Random:
    """Different bytes each time, the same in every run."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, count: int) -> bytes:
        self.calls += 1
        return hashlib.sha256(str(self.calls).encode()).digest()[:count]


def keys(now: float = 0.0) -> RollingKeys:
    return RollingKeys(now=now, random=Random(), interval_s=100.0, activation_s=10.0)


def node_keys(issuer: RollingKeys) -> VerifierKeys:
    verifier = VerifierKeys()
    verifier.set_current(issuer.current)
    return verifier


def container_identifier() -> pb.ContainerTokenIdentifier:
    identifier = pb.ContainerTokenIdentifier(
        nmHostAddr=str(NODE), appSubmitter="alice", expiryTimeStamp=600_000, rmIdentifier=1_700_000_000_000
    )
    convert.put_container_id(identifier.containerId, ContainerId.make(ATTEMPT, 2))
    return identifier


def test_a_key_is_shown_before_it_is_used_and_verifies_until_the_next_one_is() -> None:
    ring = keys()
    first = ring.current
    assert not ring.roll(99.9) and ring.next is None and ring.newest == first
    assert ring.roll(100.0)
    second = ring.next
    assert second is not None and second.key_id == first.key_id + 1 and ring.current == first and ring.newest == second
    assert not ring.roll(109.9)
    assert ring.find(first.key_id) == first and ring.find(second.key_id) == second
    assert ring.roll(110.0)
    assert ring.current == second and ring.next is None
    assert ring.find(first.key_id) is None and ring.find(second.key_id) == second


@given(st.lists(st.floats(0, 5000), max_size=60))
def test_there_is_always_a_current_key_and_ids_only_grow(times: list[float]) -> None:
    ring = keys()
    ids = [ring.current.key_id]
    for now in sorted(times):
        ring.roll(now)
        ids.append(ring.current.key_id)
        known = [key.key_id for key in (ring.current, ring.next) if key is not None]
        assert known == sorted(set(known))
    assert ids == sorted(ids)


def test_a_node_keeps_the_previous_key_and_ignores_a_known_id() -> None:
    ring = VerifierKeys()
    ring.set_current(MasterKey(1, b"a"))
    ring.set_current(MasterKey(1, b"something else"))
    assert ring.current == MasterKey(1, b"a") and ring.previous is None
    ring.set_current(MasterKey(2, b"b"))
    ring.set_current(MasterKey(2, b"b"))
    assert ring.previous == MasterKey(1, b"a")
    ring.set_current(MasterKey(3, b"c"))
    assert ring.find(1) is None and ring.find(2) == MasterKey(2, b"b")


def test_key_ids_wrap_like_javas_integers() -> None:
    ring = keys()
    ring.current = MasterKey(2**31 - 1, b"k")
    ring.roll(100.0)
    assert ring.next is not None and ring.next.key_id == -(2**31)
    assert MasterKey.from_pb(ring.next.to_pb()) == ring.next


def test_a_key_that_is_used_before_all_know_it_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        RollingKeys(now=0, random=Random(), interval_s=10, activation_s=10)


def test_a_password_is_hmac_sha1_of_the_identifier() -> None:
    ring = keys()
    token = NMTokenSecrets(ring).mint(ATTEMPT, NODE, "alice")
    assert token.password == hmac.new(ring.current.key, token.identifier, hashlib.sha1).digest()
    assert (token.kind, token.service) == ("NMToken", "127.0.0.1:8041")
    assert Token.from_pb(token.to_pb()) == token


def test_amrm_tokens_let_in_live_attempts_only_and_follow_the_keys() -> None:
    ring = keys()
    secrets = AMRMTokenSecrets(ring)
    token = secrets.mint(ATTEMPT)
    assert (token.kind, token.service) == ("YARN_AM_RM_TOKEN", "")
    assert secrets.password(None, token.identifier) == token.password
    assert secrets.user(token.identifier) == "appattempt_1700000000000_0001_000001"
    assert secrets.attempt(token.identifier) == ATTEMPT

    ring.roll(100.0)  # the next key exists: the holder is due for a new token, the old one still works
    assert secrets.is_outdated(token.identifier)
    renewed = secrets.mint(ATTEMPT)
    assert not secrets.is_outdated(renewed.identifier)
    for held in (token, renewed):
        assert secrets.password(None, held.identifier) == held.password

    ring.roll(110.0)  # the next key is in use: who has not renewed by now is out
    assert secrets.password(None, renewed.identifier) == renewed.password
    with pytest.raises(InvalidToken, match=f"Invalid AMRMToken from {ATTEMPT}"):
        secrets.password(None, token.identifier)

    secrets.forget(ATTEMPT)
    for held in (token, renewed):
        with pytest.raises(InvalidToken, match="not found"):
            secrets.password(None, held.identifier)
    with pytest.raises(InvalidToken, match="kind"):
        secrets.password("NMToken", token.identifier)


def test_a_node_verifies_nm_tokens_across_one_roll_over_and_longer_for_who_has_started() -> None:
    ring = keys()
    issuer, verifier_keys = NMTokenSecrets(ring), node_keys(ring)
    node = NMTokenSecrets(verifier_keys)
    token = issuer.mint(ATTEMPT, NODE, "alice")
    idle = issuer.mint(OTHER, NODE, "bob")
    node.attempt_started(token.identifier)
    for turn in (1, 2):
        ring.roll(100.0 * turn)
        ring.roll(100.0 * turn + 10)
        verifier_keys.set_current(ring.current)
        if turn == 1:
            assert node.password(None, idle.identifier) == idle.password
    assert node.password(None, token.identifier) == token.password
    with pytest.raises(InvalidToken, match="no longer valid"):
        node.password(None, idle.identifier)
    node.application_finished(APP)
    with pytest.raises(InvalidToken):
        node.password(None, token.identifier)


def test_a_node_without_keys_verifies_nothing() -> None:
    token = NMTokenSecrets(keys()).mint(ATTEMPT, NODE, "alice")
    with pytest.raises(InvalidToken):
        NMTokenSecrets(VerifierKeys()).password(None, token.identifier)
    with pytest.raises(InvalidToken, match="no master key"):
        NMTokenSecrets(VerifierKeys()).mint(ATTEMPT, NODE, "alice")


def test_nm_tokens_are_for_one_attempt_and_one_node() -> None:
    token = NMTokenSecrets(keys()).mint(ATTEMPT, NODE, "alice")
    identifier = parse_identifier(pb.NMTokenIdentifier, token.identifier)
    check_nm_token(identifier, user=str(ATTEMPT), node_id=NODE)
    with pytest.raises(InvalidToken, match="is not the caller's"):
        check_nm_token(identifier, user=str(OTHER), node_id=NODE)
    for node in (NodeId("127.0.0.1", 8042), NodeId("localhost", 8041)):
        with pytest.raises(InvalidToken, match="is not valid for current node manager"):
            check_nm_token(identifier, user=str(ATTEMPT), node_id=node)


def test_container_tokens_are_signed_as_they_stand() -> None:
    ring = keys()
    token = ContainerTokenSecrets(ring).mint(container_identifier())
    node = ContainerTokenSecrets(node_keys(ring))
    assert token.service == str(NODE)
    assert parse_identifier(pb.ContainerTokenIdentifier, token.identifier).masterKeyId == ring.current.key_id
    address = str(NODE)
    assert check_container_password(token.to_pb(), node, node_address=address).appSubmitter == "alice"

    def refused(token: Token, why: str, node_address: str = address) -> None:
        with pytest.raises(InvalidToken, match=why):
            check_container_password(token.to_pb(), node, node_address=node_address)

    changed = parse_identifier(pb.ContainerTokenIdentifier, token.identifier)
    changed.resource.memory = 1 << 40
    forged = Token(changed.SerializeToString(), token.password, token.kind, token.service)
    refused(forged, "Invalid container token used for starting container on : 127.0.0.1:8041")
    foreign = ContainerTokenSecrets(RollingKeys(now=0, random=lambda n: bytes(n))).mint(container_identifier())
    refused(foreign, "master key")
    refused(Token(b"\xff\xff", b"", "ContainerToken", ""), "not a ContainerTokenIdentifier")
    refused(Token(token.identifier, token.password, "NMToken", ""), "kind")
    refused(token, "identifier is not valid for current Node manager. Expected : localhost:8041", "localhost:8041")


def test_fields_beyond_the_known_ones_stay_last_and_keep_the_password() -> None:
    """What a newer ResourceManager adds must survive a stock peer's parse and serialize."""
    identifier = pb.ContainerTokenIdentifier.FromString(
        container_identifier().SerializeToString() + b"\x92\xf1\x04\x03new"  # field 10002
    )
    token = ContainerTokenSecrets(keys()).mint(identifier)
    assert token.identifier.endswith(b"\x92\xf1\x04\x03new")
    again = parse_identifier(pb.ContainerTokenIdentifier, token.identifier)
    assert again.SerializeToString() == token.identifier


def check(identifier: pb.ContainerTokenIdentifier, **changes: object) -> None:
    arguments = {"caller": ATTEMPT, "rm_identifier": 1_700_000_000_000, "now_ms": 600_000}
    check_container_token(identifier, **{**arguments, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"caller": OTHER}, YarnError, f"NMToken for application attempt : {OTHER} was used for starting container"),
        ({"rm_identifier": 1}, InvalidContainer, "rejected as it is allocated by a previous RM"),
        ({"now_ms": 600_001}, YarnError, "This token is expired. current time is 600001 found 600000"),
    ],
)
def test_what_a_node_refuses_in_a_genuine_container_token(
    changes: dict[str, object], error: type[YarnError], why: str
) -> None:
    check(container_identifier())
    with pytest.raises(error, match=re.escape(why)) as refused:
        check(container_identifier(), **changes)
    assert type(refused.value) is error


def test_job_tokens_are_one_per_job() -> None:
    manager = JobTokenSecrets(Random())
    token = manager.mint("job_1_0001")
    assert manager.mint("job_1_0001") == token
    assert (token.identifier, token.kind, token.service) == (b"\x0ajob_1_0001", "mapreduce.job", "job_1_0001")
    assert manager.mint("job_1_0002").password != token.password

    service = JobTokenSecrets(Random())
    with pytest.raises(InvalidToken, match="job_1_0001"):
        service.password(None, token.identifier)
    service.add(token)
    assert service.password(None, token.identifier) == token.password
    assert service.user(token.identifier) == "job_1_0001"
    service.forget("job_1_0001")
    with pytest.raises(InvalidToken):
        service.password(None, token.identifier)
    for damaged in (b"", b"\x0ajob", token.identifier + b"x"):
        with pytest.raises(InvalidToken):
            manager.password(None, damaged)


SECRETS = st.sampled_from([AMRMTokenSecrets, NMTokenSecrets, ContainerTokenSecrets])


@given(SECRETS, st.binary(max_size=60))
def test_any_identifier_has_a_password_or_is_an_invalid_token(kind: type, identifier: bytes) -> None:
    secrets = kind(keys())
    for look in (lambda: secrets.password(None, identifier), lambda: secrets.user(identifier)):
        try:
            look()
        except InvalidToken:
            pass
