"""DIGEST-MD5 against a vector of Hadoop's, both sides against each other, and strangers against the parser."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.ipc.errors import SaslFailure
from yaqd.ipc.sasl import Digest, DigestClient, DigestResponse, challenge, parse_directives

NONCE = "abc123=="
CNONCE = "cCN3spE4aQ+XtNfbmSJs3W35P2rPhcqux8GWN/Am"


def test_proofs_of_a_java_peer() -> None:
    digest = Digest(username="Q2k+/w==", password="cHdk", nonce=NONCE, cnonce=CNONCE)
    assert digest.response() == "381d89f6914c1eb99c040a20bfe80c48"
    assert digest.rspauth() == "fa198c997ee183a81091d8039129cb58"


def test_our_client_sends_what_a_java_client_sends() -> None:
    client = DigestClient(base64.b64decode("Q2k+/w=="), b"pwd", CNONCE)
    sent = parse_directives(client.respond(challenge(NONCE)))
    assert sent == {
        "charset": "utf-8",
        "username": "Q2k+/w==",
        "realm": "default",
        "nonce": NONCE,
        "nc": "00000001",
        "cnonce": CNONCE,
        "digest-uri": "/default",
        "maxbuf": "65536",
        "response": "381d89f6914c1eb99c040a20bfe80c48",
        "qop": "auth",
    }


secrets = st.binary(min_size=1, max_size=100)


@given(secrets, secrets, st.binary(max_size=24))
def test_both_sides_agree(identifier: bytes, password: bytes, seed: bytes) -> None:
    nonce, cnonce = base64.b64encode(b"s" + seed).decode(), base64.b64encode(b"c" + seed).decode()
    client = DigestClient(identifier, password, cnonce)
    answer = DigestResponse.parse(client.respond(challenge(nonce)), nonce)
    assert answer.identifier == identifier
    proof = answer.verify(password, nonce)
    assert proof is not None
    client.check(proof)


@given(secrets, secrets, secrets)
def test_another_password_is_noticed_by_both_sides(identifier: bytes, password: bytes, other: bytes) -> None:
    if password == other:
        return
    client = DigestClient(identifier, password, CNONCE)
    message = client.respond(challenge(NONCE))
    assert DigestResponse.parse(message, NONCE).verify(other, NONCE) is None
    imposter = DigestClient(identifier, other, CNONCE)
    proof = DigestResponse.parse(imposter.respond(challenge(NONCE)), NONCE).verify(other, NONCE)
    assert proof is not None
    with pytest.raises(SaslFailure, match="did not prove"):
        client.check(proof)


def test_an_answer_to_another_nonce_is_a_replay() -> None:
    message = DigestClient(b"id", b"pw", CNONCE).respond(challenge("old"))
    with pytest.raises(SaslFailure, match="nonce"):
        DigestResponse.parse(message, "new")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('realm="default"', 'realm="else"', "realm"),
        ("nc=00000001", "nc=00000002", "nc"),
        ('digest-uri="/default"', 'digest-uri="hdfs/default"', "digest-uri"),
        ("qop=auth", "qop=auth-conf", "qop"),
        ('username="aWQ="', 'username="*"', "Base64"),
        ('username="aWQ="', 'username=""', "user name"),
    ],
)
def test_every_fixed_directive_is_checked(old: str, new: str, named: str) -> None:
    message = DigestClient(b"id", b"pw", CNONCE).respond(challenge(NONCE)).decode()
    assert old in message
    with pytest.raises(SaslFailure, match=named):
        DigestResponse.parse(message.replace(old, new).encode(), NONCE)


def test_directives_come_in_any_order_quoted_or_not() -> None:
    text = rb'qop = auth , nonce="a\"b\\c",realm=default,charset=utf-8,'
    assert parse_directives(text) == {"qop": "auth", "nonce": 'a"b\\c', "realm": "default", "charset": "utf-8"}


@pytest.mark.parametrize(
    "challenge_text",
    [b'realm="x",nonce="n",qop="auth",algorithm=md5-sess', b'nonce="n",qop="auth-conf",algorithm=md5-sess', b"", b"="],
)
def test_challenges_the_client_cannot_answer(challenge_text: bytes) -> None:
    with pytest.raises(SaslFailure):
        DigestClient(b"id", b"pw", CNONCE).respond(challenge_text)


@pytest.mark.parametrize("proof", [b"", b"rspauth=", b"rspauth=00000000000000000000000000000000", b"rspauth"])
def test_a_server_without_proof_is_refused(proof: bytes) -> None:
    client = DigestClient(b"id", b"pw", CNONCE)
    client.respond(challenge(NONCE))
    with pytest.raises(SaslFailure):
        client.check(proof)


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_fail_as_sasl(message: bytes) -> None:
    for parse in (parse_directives, lambda m: DigestResponse.parse(m, NONCE)):
        try:
            parse(message)
        except SaslFailure:
            pass


def test_endless_directives_are_cut_off() -> None:
    with pytest.raises(SaslFailure, match="too long"):
        parse_directives(b"a=b," * 100_000)
