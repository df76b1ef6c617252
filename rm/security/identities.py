"""Who may be whom and do what, put together from the configuration: groups, proxy users, access lists, delegation
tokens.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rm.clock import Clock
from rm.scheduler.facts import Facts
from rm.security.access import Access
from rm.settings.daemon import RmSettings
from rm.store.delegation import DelegationStore
from rm.store.state_store import StateStore
from yaqd.config import Configuration
from yaqd.ipc import Caller
from yaqd.ipc.server_connection import ServiceAcl
from yaqd.security.delegation import DelegationTokens
from yaqd.security.group_lookups import GroupLookups
from yaqd.security.groups import Groups, unix_groups
from yaqd.security.impersonation import ProxyUsers
from yaqd.security.service_acls import ServiceAcls


@dataclass(frozen=True, slots=True)
class Identities:
    groups: Groups
    proxies: ProxyUsers
    services: ServiceAcls
    access: Access
    delegations: DelegationTokens
    delegation_store: DelegationStore

    @classmethod
    def read(
        cls, conf: Configuration, settings: RmSettings, store: StateStore, facts: Facts, clock: Clock
    ) -> "Identities":
        """Read the configuration and the store. Blocking. Raises ConfigError, StateStoreError."""
        groups = Groups.read(conf)
        groups_of = GroupLookups(groups, unix_groups)
        access = Access(
            facts,
            enabled=settings.acls,
            administrators=settings.administrators,
            daemon_user=settings.user,
            groups_of=groups_of,
        )
        delegation_store = DelegationStore(store)
        keys, tokens = delegation_store.load()
        delegations = DelegationTokens(
            settings.delegation, now_ms=clock.wall_ms, random=os.urandom, keys=keys, tokens=tokens
        )
        proxies, services = ProxyUsers(conf, groups_of), ServiceAcls(conf, groups_of)
        return cls(groups, proxies, services, access, delegations, delegation_store)

    def admission(self, protocols: Sequence[str]) -> ServiceAcl:
        """Return what a server that serves these asks of each connection. It raises Authorization, NotYetKnown."""

        def admit(caller: Caller, protocol: str) -> None:
            self.proxies.check(caller)
            self.services.check(caller, protocol, protocols)

        return admit

    def roll(self, now: float) -> None:
        """Roll keys and tokens whose time has come; when the store is started, then once a second."""
        self.delegation_store.roll(self.delegations)
