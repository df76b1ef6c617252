"""The ResourceManager's four ports: what each demands of those who connect."""

from dataclasses import dataclass

from rm.security.identities import Identities
from rm.settings.daemon import RmSettings
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
    scheduler: RpcServer

    @classmethod
    def make(
        cls, settings: RmSettings, limits: ServerLimits, identities: Identities, master_tokens: TokenSecrets
    ) -> "Servers":
        """Not started yet. Masters need their token; clients may show a delegation token."""

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
                settings.client_address,
                ApplicationClientProtocol.NAME,
                tokens=identities.delegations,
            ),
            tracker=server("node tracker", settings.tracker_address, ResourceTracker.NAME),
            admin=server(
                "administration",
                settings.admin_address,
                ResourceManagerAdministrationProtocol.NAME,
            ),
            scheduler=server(
                "application master service",
                settings.scheduler_address,
                ApplicationMasterProtocol.NAME,
                DistributedSchedulingAMProtocol.NAME,
                tokens=master_tokens,
                simple=False,
            ),
        )
