"""A short run of the fuzzer: hostile peers at every port of a real cluster while good clients are served."""

from pathlib import Path
from random import Random

import pytest

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.request import RequestRefused, parse_request
from tests.hostile.fuzz_corpus import split
from tests.hostile.fuzz_mutations import calls_script, http_script, opening_script
from tests.hostile.fuzz_run import fuzz


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_hostile_peers_at_every_port(tmp_path: Path) -> None:
    report = fuzz(tmp_path, frames=27_000, seed=7, rounds=1)
    assert not report.complaints, "\n".join(report.lines())
    assert report.frames >= 27_000
    assert len(report.tallies) == 9 and all(tally.frames >= 2_500 for tally in report.tallies.values())


def test_queries_say_what_numbers_must_not_be() -> None:
    """Whatever a request line says, the shuffle's parser refuses it: another exception would leave it unanswered."""
    head = b"name: mapreduce\r\nversion: 1.0.0\r\nUrlHash: AAAA"
    request = b"GET /mapOutput?job=job_1_0001&reduce=0&map=a HTTP/1.1\r\n" + head + b"\r\n\r\n"
    seen = 0
    for n in range(1000):
        for chunk in http_script([request], Random(n)).chunks:
            seen += b"reduce=" + b"0" * 12 + b"9" * 5000 in chunk
            with pytest.raises(RequestRefused):
                parse_request(chunk.partition(b"\r\n\r\n")[0], port=1, jobs=ShuffleJobs())
    assert seen


def test_the_same_seed_gives_the_same_frames() -> None:
    from yaqd.ipc.client_connection import ClientConnection
    from yaqd.proto import yarn_service_pb2 as service
    from yaqd.proto.protocols import ApplicationClientProtocol

    client = ClientConnection(user="alice", protocol=ApplicationClientProtocol.NAME, client_id=bytes(16), random=bytes)
    data = client.start()
    for name in ("a", "b", "c"):
        data += client.request(ApplicationClientProtocol.getQueueInfo, service.GetQueueInfoRequest(queueName=name))[1]
    conversation = split(data)
    assert (len(conversation.opening), len(conversation.calls)) == (2, 3)
    runs = [
        [(calls_script(conversation, Random(n)), opening_script(conversation, Random(n))) for n in range(300)]
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert sum(calls != conversation.calls[: len(calls)] for (calls, _, _), _ in runs[0]) > 200
    assert any(breaks for (_, breaks, _), _ in runs[0]) and any(not breaks for (_, breaks, _), _ in runs[0])
