"""The proxy put together from the configuration and the node's parts."""

import time
from pathlib import Path

from nm.admission import admission
from nm.amrm_proxy.mint import ProxyMint
from nm.amrm_proxy.proxy import AmrmProxy
from nm.amrm_proxy.session import Estimates
from nm.amrm_proxy.settings import ProxySettings
from nm.registration import NodeRegistration
from yaqd.config import Configuration
from yaqd.ipc import server_limits
from yaqd.proto.protocols import ApplicationMasterProtocol

_FOLDER = "amrmproxy"


def make_proxy(
    conf: Configuration,
    *,
    local_dir: Path,
    host: str,
    registration: NodeRegistration,
    estimates: Estimates,
) -> AmrmProxy | None:
    """Makes the proxy without starting it; None where the configuration wants none. Raises ConfigError."""
    settings = ProxySettings.read(conf)
    if settings is None:
        return None
    mint = ProxyMint(registration, lambda: int(time.time() * 1000))
    return AmrmProxy(
        settings,
        host=host,
        folder=local_dir / _FOLDER,
        mint=mint,
        estimates=estimates,
        limits=server_limits(conf),
        service_acl=admission(conf, ApplicationMasterProtocol.NAME),
    )
