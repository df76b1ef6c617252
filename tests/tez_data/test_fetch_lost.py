"""Map outputs that a shuffle service has lost: which of them a reducer reports."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tez_data.tez_shuffle_service import QUICK, Reducer, Service, attempt, cut, expected, lost_header, write_map
from tez_adapter.data import (
    FetchFailed,
    FetchFailure,
    MapLocation,
)


def test_a_rerun_attempt_replaces_a_lost_one(tmp_path: Path, service: Service) -> None:
    write_map(service.root, 0)
    write_map(service.root, 1, number=1)
    service.spoil = lambda name, header, segment: cut(name, header, segment) if name == attempt(1) else header + segment
    lost = threading.Event()

    def withdraw(_: FetchFailure) -> None:
        reducer.fetcher.withdraw(attempt(1))  # before it is tried again: a few milliseconds use up its tries
        lost.set()

    with Reducer(tmp_path, service, 2, on_failure=withdraw) as reducer:
        write_map(service.root, 1)
        reducer.add(1)
        reducer.add(0)
        assert lost.wait(20)
        reducer.add(1, number=1)
        assert reducer.fetcher.wait(20)
        assert reducer.values() == expected(2)


@pytest.mark.parametrize("says_which", [False, True])
def test_of_outputs_asked_for_together_the_lost_one_alone_is_reported(
    tmp_path: Path, service: Service, says_which: bool
) -> None:
    for index in range(5):
        write_map(service.root, index)
    service.lost.add(attempt(3))
    service.says_what_is_lost = says_which
    with Reducer(tmp_path, service, 5) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(5)))
        with pytest.raises(FetchFailed):
            reducer.fetcher.wait(20)
        assert {failure.location.map_index for failure in reducer.failures} == {3}
        assert max(map(len, service.requests)) == 5
        assert not says_which or len(service.requests) == 3  # all, and twice the lost one


def test_all_that_are_lost_are_reported_at_once(tmp_path: Path, service: Service) -> None:
    for index in range(5):
        write_map(service.root, index)
    service.lost |= {attempt(1), attempt(3)}
    service.says_what_is_lost = True
    with Reducer(tmp_path, service, 5) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(5)))
        with pytest.raises(FetchFailed):
            reducer.fetcher.wait(20)
        assert [failure.location.map_index for failure in reducer.failures][:4] == [1, 3, 1, 3]
        assert service.requests[1] == [attempt(1), attempt(3)]


def test_an_answer_that_is_cut_after_what_is_lost_reports_that_alone(tmp_path: Path, service: Service) -> None:
    for index in range(5):
        write_map(service.root, index)
    service.spoil = lambda name, header, segment: (
        lost_header(name) + header[:9] if name == attempt(1) else header + segment
    )
    with Reducer(tmp_path, service, 5, settings=replace(QUICK, tries_max=1)) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(5)))
        with pytest.raises(FetchFailed):
            reducer.fetcher.wait(20)
        assert {failure.location.map_index for failure in reducer.failures} == {1}


@pytest.mark.parametrize(
    "of_second",
    [
        pytest.param(lost_header(attempt(1)), id="what follows has a length"),
        pytest.param(lost_header(attempt(1)) + lost_header(attempt(0)), id="another was sent"),
        pytest.param(lost_header(attempt(0)), id="it was sent"),
    ],
)
def test_what_was_sent_or_has_a_length_is_not_lost(tmp_path: Path, service: Service, of_second: bytes) -> None:
    for index in range(3):
        write_map(service.root, index)
    service.spoil = lambda name, header, segment: of_second if name == attempt(1) else header + segment
    with Reducer(tmp_path, service, 3, settings=replace(QUICK, tries_max=1)) as reducer:
        reducer.fetcher.add(*(MapLocation(index, attempt(index), "127.0.0.1", service.port) for index in range(3)))
        with pytest.raises(FetchFailed, match=attempt(1)):
            reducer.fetcher.wait(20)
        reducer.fetcher.close()  # and all is reported
        assert [failure.location.map_index for failure in reducer.failures] == [1]
