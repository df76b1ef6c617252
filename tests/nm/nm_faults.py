"""Waiting for things to be gone, and a NodeManager in a process of its own to be killed."""

import asyncio
from collections.abc import Callable
from typing import Any


async def gone(condition: Callable[[], Any], timeout_s: float = 10.0) -> bool:
    """True once the condition is false: for what no heartbeat tells, such as processes of the kernel's."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.005)
    return True
