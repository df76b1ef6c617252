"""Merged map outputs that are damaged or lost: what is served is right, or said to be lost."""

import hashlib
import http.client
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nm.shuffle.merged.segment import MergedFile
from tests.nm.nm_merged_served import DAMAGE, LIMITS, MAPS, REDUCES, flip, lose, serving, write
from tests.nm.nm_shuffle_served import (
    JOB,
    Served,
    fetch,
    segments,
    settle,
)
from yaqd.security.writable import encode_text, encode_vlong

SEVERAL = "several map outputs are lost"


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """Parameter: how many seconds what nobody asks for is kept; as the time-out, by itself more than a test takes."""
    with serving(tmp_path, kept_s=getattr(request, "param", 60)) as served:
        yield served


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [False, True], ids=["never-read", "index-read-before"])
@pytest.mark.parametrize("damage", DAMAGE, ids=[damage.__name__ for damage in DAMAGE])
@pytest.mark.parametrize("length", [5000, 40_000, 120_000])
def test_damage_is_never_served(
    served: Served, damage: Callable[[MergedFile], None], length: int, is_known: bool
) -> None:
    write(served, length)
    before = [fetch(served, reduce, MAPS) for reduce in range(REDUCES)]
    file = served.merge("all", MAPS)
    if is_known:
        fetch(served, 0, MAPS[:1])
        served.outputs.files.forget(file.path)
    damage(file)
    assert [fetch(served, reduce, MAPS) for reduce in range(REDUCES)] == before
    if damage is flip:
        settle(served)
        assert 0 < served.service.statistics.reads.fallbacks <= len(MAPS)
    assert [fetch(served, reduce, MAPS) for reduce in range(REDUCES)] == before


@pytest.mark.parametrize("is_damaged", [False, True], ids=["whole", "another-map-damaged"])
@pytest.mark.parametrize("length", [5000, 120_000])
def test_a_lost_original_is_answered_from_its_copy(served: Served, length: int, is_damaged: bool) -> None:
    write(served, length)
    before = [fetch(served, reduce, MAPS) for reduce in range(REDUCES)]
    file = served.merge("all", MAPS)
    served.outputs.forget_job(JOB)
    shutil.rmtree(served.output_dir / MAPS[4])
    if is_damaged:
        flip(file)  # in the middle partition, which is not where the lost map's segment lies
    assert [fetch(served, reduce, MAPS) for reduce in range(REDUCES)] == before
    assert [fetch(served, reduce, [MAPS[4]]) for reduce in range(REDUCES)]


def test_of_what_is_lost_in_both_places_nothing_else_is_held_back(served: Served) -> None:
    """A stock reducer reports the first map whose lengths cannot be and no other, and of a header that names no map all
    that it has not got."""
    write(served, 5000)
    file = served.merge("all", MAPS)
    lose(file)
    for lost in (4, 7):
        shutil.rmtree(served.output_dir / MAPS[lost])
    others = [m for m in MAPS if m not in (MAPS[4], MAPS[7])]
    response, body = served.get(served.target(MAPS, 1))
    assert response.status == 200
    found = segments(body)
    assert [row[0] for row in found] == [*others, SEVERAL, MAPS[4], MAPS[7]]
    assert [row[1:4] for row in found[-3:]] == [(-1, -1, 1)] * 3
    assert fetch(served, 1, others) == hashlib.sha256(b"".join(as_sent(*row) for row in found[:-3])).hexdigest()
    response, body = served.get(served.target([MAPS[7]], 1))  # by itself too, since it was there
    assert (response.status, segments(body)) == (200, [(MAPS[7], -1, -1, 1, b"")])
    settle(served)
    assert served.service.statistics.segments == 2 * len(others)


def as_sent(map_id: str, part: int, raw: int, reduce: int, data: bytes) -> bytes:
    return encode_text(map_id) + encode_vlong(part) + encode_vlong(raw) + encode_vlong(reduce) + data


@pytest.mark.parametrize("length", [5000, 40_000])
@pytest.mark.parametrize("is_merged", [False, True])
@pytest.mark.parametrize("keeps_open", ["nobody", "client", "service"])
def test_an_answer_that_cannot_go_on_says_which_segment_is_lost(
    tmp_path: Path, length: int, is_merged: bool, keeps_open: str
) -> None:
    """It was there when the length of the answer was told; all before it is sent, and then the connection ends, whoever
    would have it kept: idle ones last longer here than a client waits."""
    limits = replace(LIMITS, keep_alive=keeps_open == "service", keep_alive_timeout_s=60)
    with serving(tmp_path, limits) as served:
        see_what_is_lost(served, length, is_merged, "&keepAlive=true" if keeps_open == "client" else "")


def see_what_is_lost(served: Served, length: int, is_merged: bool, more: str) -> None:
    write(served, length)
    at, lost = len(MAPS) // 2, MAPS[len(MAPS) // 2]
    if is_merged:
        flip(served.merge("all", MAPS))  # in the middle partition, and there in this map's
    assert fetch(served, 1 - is_merged, MAPS)  # what the indexes say is known
    settle(served)
    served.outputs.files.forget(served.output_dir / lost / "file.out")
    shutil.rmtree(served.output_dir / lost)
    with pytest.raises(http.client.IncompleteRead) as caught:
        served.get(served.target(MAPS, 1, more))
    found = segments(caught.value.partial)
    assert [row[0] for row in found] == MAPS[: at + 1]
    assert found[-1] == (lost, -1, -1, 1, b"") and all(row[1] == length + 5 for row in found[:-1])
