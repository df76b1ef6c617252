"""Requests that are damaged, too large or too many leave the ResourceManager's web server as it was."""

import asyncio
import logging
import random

import pytest

from tests.rm.rm_browser import web
from tests.rm.rm_harness import LOOPBACK
from yaqd.web.server import _OneLinePerPeer


async def test_host_header_is_never_believed() -> None:
    async with web() as (rm, browse):
        app_id = await rm.submit()
        for path in ("/", f"/proxy/{app_id}/", f"/cluster/app/{app_id}"):
            answer, text = await browse(path, Host="evil.example")
            assert "evil.example" not in text + str(answer.headers)


async def test_oversized_and_malformed_requests_end_their_connection() -> None:
    async with web({"hadoop.http.idle_timeout.ms": "300"}) as (_, browse):

        async def send(data: bytes) -> bytes:
            reader, writer = await asyncio.open_connection(LOOPBACK, browse.port)
            writer.write(data)
            try:
                return await asyncio.wait_for(reader.read(), 10)
            except ConnectionError:
                return b""
            finally:
                writer.close()

        assert b" 400 " in (await send(b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n")).splitlines()[0]
        assert b" 400 " in (await send(b"GET / HTTP/1.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n")).splitlines()[0]
        assert b" 400 " in (await send(b"\x00\x01hrpc\r\n\r\n")).splitlines()[0]
        # never finished: closed when the time for it is over, with nothing or a refusal
        assert b"200" not in await send(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert b"200" not in await send(b"")


async def test_mutated_requests_are_answered_or_dropped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(20)
    async with web() as (rm, browse):
        app_id = await rm.submit()
        whole = f"GET /proxy/{app_id}/x?user.name=bob HTTP/1.1\r\nHost: a\r\nCookie: hadoop.auth=u\r\n\r\n".encode()

        async def send() -> bytes:
            data = bytearray(whole)
            for _ in range(chance.randrange(1, 6)):
                at = chance.randrange(len(data))
                data[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
            reader, writer = await asyncio.open_connection(LOOPBACK, browse.port)
            try:
                writer.write(data)
                return await asyncio.wait_for(reader.readline(), 0.1)
            except (TimeoutError, ConnectionError):
                return b""
            finally:
                writer.close()

        for _ in range(10):
            answers = await asyncio.gather(*(send() for _ in range(20)))
            assert {line.split(b" ")[1] for line in answers if line} <= {b"302", b"400", b"404", b"405"}
        assert (await browse("/cluster"))[0].status == 200
    said = [record for record in caplog.records if record.name.startswith("yaqd.web")]
    assert len(said) <= 1 and all(record.exc_info is None for record in said)


def test_faults_of_ours_leave_one_trace_per_peer_and_minute() -> None:
    now = 1000.0
    quiet = _OneLinePerPeer(lambda: now)

    def is_told(error: Exception, peer: str) -> bool:
        said = (type(error), error, None)
        record = logging.LogRecord("x", logging.ERROR, "", 0, "Error handling request from %s", (peer,), said)
        told = quiet.filter(record)
        assert not told or (record.exc_info is None) == isinstance(error, ConnectionError)
        return bool(told)

    fault = ValueError("unforeseen")
    assert [is_told(fault, peer) for peer in ("a", "a", "b", "a")] == [True, False, True, False]
    assert is_told(ConnectionResetError(), "a") and not is_told(ConnectionResetError(), "a")
    now += 60
    assert is_told(fault, "a")


async def test_connections_are_bounded() -> None:
    async with web({"yaq.web.connections-max": "3"}) as (_, browse):
        held = [await asyncio.open_connection(LOOPBACK, browse.port) for _ in range(3)]
        for reader, writer in held:
            writer.write(b"GET /cluster HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in await reader.readline()
        reader, writer = await asyncio.open_connection(LOOPBACK, browse.port)
        writer.write(b"GET /cluster HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            assert await asyncio.wait_for(reader.read(), 10) == b""
        except ConnectionError:
            pass
        for _, writer in held:
            writer.close()
