"""Makes the throttle at the start of the NodeManager, as its settings say."""

import asyncio
import os
from concurrent.futures import Executor as ThreadExecutor
from contextlib import AsyncExitStack
from functools import partial

from nm.containers.runtime import ContainerRuntime
from nm.settings import NodeSettings, ThrottleKind
from nm.throttle.quota import open_quota
from nm.throttle.throttle import Throttle


async def make_throttle(
    settings: NodeSettings, runtime: ContainerRuntime, threads: ThreadExecutor, undo: AsyncExitStack
) -> Throttle | None:
    """Make one that holds nothing yet, None where the settings want none; `undo` takes back what it makes."""
    if settings.throttle is ThrottleKind.OFF:
        return None
    is_wanted = settings.throttle is ThrottleKind.AUTO
    opened = partial(open_quota, settings.local_dirs[0], is_wanted=is_wanted)
    quota = await asyncio.get_running_loop().run_in_executor(threads, opened)
    if quota is not None:
        undo.push_async_callback(asyncio.to_thread, quota.close)
    return Throttle(
        runtime.containers, runtime.applications, quota=quota, threads=threads, processors=os.cpu_count() or 1
    )
