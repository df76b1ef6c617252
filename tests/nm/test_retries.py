"""Containers that are run again in place: the rules, and a node that follows them."""

from pathlib import Path

import pytest

from nm.containers.retries import Retries, RetryPolicy
from nm.containers.states import Stage
from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from yaqd.model import ContainerSubState, ExitStatus
from yaqd.proto import yarn_common_pb2 as common


def _retries(*, interval_min_s: float = 0.0, **fields: object) -> Retries:
    message = common.ContainerRetryContext(retry_policy=common.RETRY_ON_ALL_ERRORS, **fields)  # type: ignore[arg-type]
    return Retries(RetryPolicy.from_pb(message), interval_min_s=interval_min_s)


def test_nobody_is_run_again_unasked() -> None:
    assert Retries(RetryPolicy.from_pb(common.ContainerRetryContext()), interval_min_s=0).delay_after(1, 0.0) is None


@pytest.mark.parametrize("exit_code", [0, 137, 143])
def test_success_and_kills_are_final(exit_code: int) -> None:
    assert _retries(max_retries=-1).delay_after(exit_code, 0.0) is None


def test_as_often_as_granted_and_not_sooner_than_the_node_allows() -> None:
    retries = _retries(max_retries=2, retry_interval=300, interval_min_s=1.0)
    assert [retries.delay_after(1, 0.0) for _ in range(3)] == [1.0, 1.0, None]


def test_without_end() -> None:
    retries = _retries(max_retries=-1, retry_interval=2500)
    assert {retries.delay_after(9, 0.0) for _ in range(1000)} == {2.5}


def test_failures_that_are_old_enough_are_forgiven() -> None:
    retries = _retries(max_retries=1, failures_validity_interval=10_000)
    ends = [retries.delay_after(1, at) for at in (0.0, 11.0, 15.0)]
    assert ends == [0.0, 0.0, None]


def test_named_exit_codes_alone() -> None:
    message = common.ContainerRetryContext(
        retry_policy=common.RETRY_ON_SPECIFIC_ERROR_CODES, error_codes=[4], max_retries=3
    )
    retries = Retries(RetryPolicy.from_pb(message), interval_min_s=0)
    assert (retries.delay_after(4, 0.0), retries.delay_after(5, 0.0)) == (0.0, None)


def _again(command: str, interval_ms: int = 0) -> common.ContainerLaunchContext:
    context = launch_context(command)
    context.container_retry_context.retry_policy = common.RETRY_ON_ALL_ERRORS
    context.container_retry_context.max_retries = 5
    context.container_retry_context.retry_interval = interval_ms
    return context


@pytest.mark.slow
async def test_failed_process_is_run_again_in_its_folder(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path
) -> None:
    one = container_id(1)
    await master.run(one, _again(f"echo $PWD >> {tmp_path}/runs; test -e been || {{ touch been; exit 1; }}"))
    assert (await rm.end_of(one)).exit_status == 0
    first, second = (tmp_path / "runs").read_text().splitlines()
    assert first == second
    node.runtime.validate()


async def test_container_that_waits_to_run_again_can_be_killed(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    one = container_id(1)
    await master.run(one, _again("false", interval_ms=3_600_000))
    await rm.until(lambda: node.runtime.containers[one].stage is Stage.RELAUNCHING)
    await rm.until(lambda: rm.sub_state(one) == ContainerSubState.SCHEDULED)
    await master.stop(one)
    assert (await rm.end_of(one)).exit_status == ExitStatus.KILLED_BY_APPMASTER
