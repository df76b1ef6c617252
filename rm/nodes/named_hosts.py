"""Hosts that have settings of their own (`yaq.queue.node.HOST.*`) and no node: misspelt, or not there yet.

A node may join at any time, so such a setting is never refused; the log says so once for each reading of the files,
when nodes have had the time to register.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

log = logging.getLogger(__name__)

#: nodes that were there before the ResourceManager have registered with it by then
PATIENCE_S: Final = 60.0
_SHOWN_MAX: Final = 10


class NamedHosts:
    def __init__(self, hosts: Callable[[], Iterable[str]], now: float) -> None:
        """`hosts`: of all nodes heard of; `now`: the ResourceManager's start, s."""
        self._hosts = hosts
        self._patient_until = now + PATIENCE_S
        self._named: Mapping[str, str] = {}

    def read(self, named: Mapping[str, str]) -> None:
        """Take these settings from now on: by host, where its first one stands."""
        self._named = named

    def check(self, now: float) -> None:
        if not self._named or now < self._patient_until:
            return
        named, self._named = self._named, {}
        present = set(self._hosts())
        shown = ", ".join(sorted(present)[:_SHOWN_MAX]) + (", ..." if len(present) > _SHOWN_MAX else "")
        for host, place in named.items():
            if host not in present:
                log.warning(
                    "%s: no node of host %s has registered, so it does nothing yet; nodes are at: %s",
                    *(place, host, shown or "no host"),
                )
