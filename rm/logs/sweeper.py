"""A process that deletes files for this daemon: a request as JSON goes in, the last line that comes out is its answer.

A file system that hangs is left behind by killing it.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any, Final

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 3600.0


async def run_sweeper(command: Sequence[str], request: dict[str, Any], otherwise: str) -> dict[str, Any] | None:
    """Run the process and return its answer. Raises OSError.

    None where it gave no answer, which is logged as `otherwise`.
    """
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            out, _ = await child.communicate(json.dumps(request).encode())
    except TimeoutError:
        log.warning("%s: the file system did not answer within %g s", otherwise, _TIMEOUT_S)
        return None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    try:
        found = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        found = None
    if not isinstance(found, dict):
        log.warning("%s: the process for it ended without an answer", otherwise)
        return None
    return found
