"""The ResourceManager's four ports: what each demands of those who connect."""

from dataclasses import dataclass

from rm.security.access import Access
from rm.security.identities import Identities
from rm.settings.daemon import RmSettings
from yaqd.config.reach import reach_line
from yaqd.ipc import RpcServer
from yaqd.ipc.limits import ServerLimits
from yaqd.ipc.wire import TokenSecrets
from yaqd.proto.protocols import (
    ApplicationClientProtocol,
    ApplicationMasterProtocol,
    DistributedSchedulingAMProtocol,
    ResourceManagerAdministrationProtocol,
    ResourceTracker,
)


@dataclass(frozen=True, slots=True)
class Servers:
    client: RpcServer
    tracker: RpcServer
    admin: RpcServer
    masters: RpcServer

    @classmethod
    def make(
        cls, settings: RmSettings, limits: ServerLimits, identities: Identities, master_tokens: TokenSecrets
    ) -> "Servers":
        """Make the servers, not started yet. Masters need their token; clients may show a delegation token."""

        def server(
            name: str,
            address: tuple[str, int],
            *protocols: str,
            tokens: TokenSecrets | None = None,
            simple: bool = True,
        ) -> RpcServer:
            return RpcServer(
                name=f"ResourceManager {name}",
                host=settings.listen_host(address),
                port=address[1],
                token_secrets=tokens,
                allow_simple=simple,
                limits=limits,
                service_acl=identities.admission(protocols),
            )

        return cls(
            client=server(
                "client service",
                settings.addresses.client,
                ApplicationClientProtocol.NAME,
                tokens=identities.delegations,
            ),
            tracker=server("node tracker", settings.addresses.tracker, ResourceTracker.NAME),
            admin=server(
                "administration",
                settings.addresses.admin,
                ResourceManagerAdministrationProtocol.NAME,
            ),
            masters=server(
                "application master service",
                settings.addresses.scheduler,
                ApplicationMasterProtocol.NAME,
                DistributedSchedulingAMProtocol.NAME,
                tokens=master_tokens,
                simple=False,
            ),
        )

    def all(self) -> tuple[RpcServer, ...]:
        return self.client, self.masters, self.tracker, self.admin

    def ready_line(self, settings: RmSettings, web_port: int) -> str:
        """Return where others connect to, once all of them listen."""
        at = {
            "client": (settings.addresses.client, self.client.port),
            "scheduler": (settings.addresses.scheduler, self.masters.port),
            "tracker": (settings.addresses.tracker, self.tracker.port),
            "admin": (settings.addresses.admin, self.admin.port),
            "web": ((settings.web.address_host, 0), web_port),
        }
        return " ".join(["ResourceManager ready", *(f"{what}={host}:{port}" for what, ((host, _), port) in at.items())])

    def reach_line(self, web: tuple[str, int], access: Access) -> str:
        """Return what is open to whom."""
        servers = zip(("clients", "masters", "nodes", "administration"), self.all(), strict=True)
        listening = [*((what, *server.address) for what, server in servers), ("web", *web)]
        acls = "only by whom the access lists name" if access.enabled else "by everybody (yarn.acl.enable is false)"
        who = f"Administrators: {access.administrators}; applications are seen and killed {acls}"
        return reach_line("ResourceManager", listening, who)
