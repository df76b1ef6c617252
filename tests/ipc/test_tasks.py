"""Tasks beside their owner: none ends with another's error, and all end with their owner."""

import asyncio

import pytest

from yaqd.ipc.tasks import TaskSet


async def fail() -> None:
    raise ValueError("broken on purpose")


async def test_one_that_fails_is_told_and_ends_no_other() -> None:
    told: list[BaseException] = []
    own: list[BaseException] = []
    tasks = TaskSet(told.append)
    slow = tasks.start(asyncio.sleep(0.01, "done"))
    tasks.start(fail())
    tasks.start(fail(), on_error=own.append)
    assert tasks
    await tasks.wait()
    assert not tasks and slow.result() == "done"
    assert [str(error) for error in told] == [str(error) for error in own] == ["broken on purpose"]


async def test_waiting_includes_what_is_started_meanwhile_and_has_an_end() -> None:
    tasks, ran = TaskSet(), []

    async def first() -> None:
        await asyncio.sleep(0)
        tasks.start(second())

    async def second() -> None:
        await asyncio.sleep(0)
        ran.append("second")

    tasks.start(first())
    await tasks.wait()
    assert ran == ["second"]
    tasks.start(asyncio.sleep(60))
    await tasks.wait(0.01)
    assert tasks, "waiting ends none"
    await tasks.end()
    assert not tasks


async def test_as_a_context_it_leaves_none_behind() -> None:
    with pytest.raises(KeyError):
        async with TaskSet() as tasks:
            task = tasks.start(asyncio.sleep(60))
            raise KeyError
    assert task.cancelled()


async def test_one_that_has_ended_does_not_count_before_it_is_taken_out() -> None:
    """`not tasks` asked by who runs in the same turn of the loop must not think that there is one still."""
    tasks = TaskSet()
    task = tasks.start(asyncio.sleep(0))
    while not task.done():  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert not tasks
