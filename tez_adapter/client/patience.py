"""Outlasting a ResourceManager that went away: who waits for an application goes on once there is one again."""

import logging
import math
import time
from collections.abc import Callable
from typing import TypeVar

from tez_adapter.client.rm_client import RmUnavailable
from yaqd.config import Configuration
from yaqd.model import ApplicationId

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

KEY = "yarn.resourcemanager.connect.max-wait.ms"
#: between tries, each of which has waited for a connection already
_PAUSE_S = 0.2


class Patience:
    """Asks again for as long as `yarn.resourcemanager.connect.max-wait.ms` says; a negative value means for ever."""

    def __init__(
        self, conf: Configuration, application_id: ApplicationId, on_silence: Callable[[str], None] | None = None
    ) -> None:
        """`on_silence` is told once for each outage; without it the log is."""
        wait_ms = conf.get_duration_ms(KEY, 900_000)
        self._patience_s = wait_ms / 1000 if wait_ms >= 0 else math.inf
        self._application_id = application_id
        self._on_silence = on_silence or log.warning

    def ask(self, question: Callable[[], Answer], *, until: float = math.inf) -> Answer:
        """Ask until there is an answer.

        Raises RmUnavailable, which names the application, when none came in time or by `until` (on the monotonic
        clock).
        """
        began = time.monotonic()
        is_said = False
        while True:
            try:
                return question()
            except RmUnavailable as error:
                if time.monotonic() >= min(began + self._patience_s, until):
                    raise RmUnavailable(
                        f"{error}; {self._application_id} may go on, and does once the ResourceManager is back: "
                        f"yaq app status {self._application_id}"
                    ) from None
            if not is_said:
                is_said = True
                self._on_silence(f"the ResourceManager does not answer, trying for {self._length()}")
            time.sleep(_PAUSE_S)

    def _length(self) -> str:
        return "as long as it takes" if math.isinf(self._patience_s) else f"{self._patience_s:g} s"
