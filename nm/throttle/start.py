"""Makes the throttle at the start of the NodeManager, as its settings say."""

import asyncio
import logging
import os
from concurrent.futures import Executor as ThreadExecutor
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from nm.containers.runtime import ContainerRuntime
from nm.resources.groups import ContainerGroups
from nm.settings import NodeSettings, ThrottleKind
from nm.throttle.quota import CpuQuota, QuotaV1
from nm.throttle.quota_v2 import QuotaV2
from nm.throttle.throttle import Throttle

log = logging.getLogger(__name__)


async def make_throttle(
    settings: NodeSettings,
    runtime: ContainerRuntime,
    groups: ContainerGroups | None,
    threads: ThreadExecutor,
    undo: AsyncExitStack,
) -> Throttle | None:
    """Make one that holds nothing yet, None where the settings want none; `undo` takes back what it makes."""
    if settings.throttle is ThrottleKind.OFF:
        return None
    is_wanted = settings.throttle is ThrottleKind.AUTO
    opened = partial(open_quota, settings.local_dirs[0], groups, is_wanted=is_wanted)
    quota = await asyncio.get_running_loop().run_in_executor(threads, opened)
    if quota is not None:
        undo.push_async_callback(asyncio.to_thread, quota.close)
    return Throttle(
        runtime.containers, runtime.applications, quota=quota, threads=threads, processors=os.cpu_count() or 1
    )


def open_quota(local_dir: Path, groups: ContainerGroups | None, *, is_wanted: bool) -> CpuQuota | None:
    """Open what the kernel has, None where there is nothing of it; one line in the log says which. Blocking."""
    if not is_wanted:
        log.info("cores of applications are kept by signals (yaq.nm.throttle)")
        return None
    why: list[str] = []
    try:
        v1 = QuotaV1.open(local_dir)
    except (OSError, ValueError) as error:
        why.append(str(error))
    else:
        log.info("cores of applications are kept by the kernel, in control groups (v1) below %s", v1.root)
        return v1
    try:
        v2 = QuotaV2.open(groups) if groups is not None else None
    except (OSError, ValueError) as error:
        why.append(str(error))
    else:
        if v2 is not None:
            log.info("cores of applications are kept by the kernel, in control groups (v2) below %s", v2.root)
            return v2
        why.append("containers have no control groups of v2")
    log.info("cores of applications are kept by signals: %s", "; ".join(why))
    return None
