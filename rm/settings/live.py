"""What an administrator changes by editing a file and asking for it to be read again: who administrates, who may act
for whom, which groups users are in, the highest priority.

Each method reads the files off the event loop and raises ConfigError with nothing changed when they cannot be used.
"""

import asyncio

from rm.applications.life import Applications
from rm.security.identities import Identities
from yaqd.config import Configuration


class LiveSettings:
    def __init__(self, conf: Configuration, identities: Identities, applications: Applications) -> None:
        self._conf = conf
        self._identities = identities
        self._applications = applications

    async def _read(self) -> Configuration:
        return await asyncio.to_thread(self._conf.reread)

    async def administrators(self) -> None:
        """Read `yarn.admin.acl` again."""
        conf = await self._read()
        self._identities.access.set_administrators(conf.get("yarn.admin.acl") or "")

    async def proxy_users(self) -> None:
        """Read `hadoop.proxyuser.*` and `yarn.resourcemanager.proxyuser.*` again."""
        await asyncio.to_thread(self._identities.proxies.refresh, await self._read())

    async def services(self) -> None:
        """Read `hadoop-policy.xml` again."""
        await asyncio.to_thread(self._identities.services.refresh, await self._read())

    @property
    def has_service_lists(self) -> bool:
        return self._identities.services.enabled

    async def groups(self) -> None:
        """Read the fixed mapping again; what was looked up is forgotten."""
        self._identities.groups.refresh(await self._read())

    async def highest_priority(self) -> None:
        """Read `yarn.cluster.max-application-priority` again; applications keep what they have."""
        conf = await self._read()
        self._applications.priority_max = conf.get_int("yarn.cluster.max-application-priority")
