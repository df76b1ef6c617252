"""What a job manager finds around it: the container that it runs in, its credentials, and where it talks to whom."""

import secrets
from collections.abc import Mapping

from yaqd.config import Configuration
from yaqd.ipc import RpcServer
from yaqd.model import ContainerId
from yaqd.security import Credentials, JobTokenSecrets, Token


class CannotStart(Exception):
    """The container's surroundings are not those of an application master."""


def who_am_i(environ: Mapping[str, str]) -> tuple[ContainerId, Credentials]:
    """Raises CannotStart."""
    try:
        return ContainerId.parse(environ["CONTAINER_ID"]), Credentials.load(environ["HADOOP_TOKEN_FILE_LOCATION"])
    except KeyError as missing:
        raise CannotStart(f"{missing} is not set: this is not a YARN container") from None


def token_of(credentials: Credentials, kind: str, name: str) -> Token:
    """Raises CannotStart, with the name that people know it by."""
    token = credentials.token_of_kind(kind)
    if token is None:
        raise CannotStart(f"the credentials hold no {name}")
    return token


def job_server(credentials: Credentials, environ: Mapping[str, str]) -> RpcServer:
    """Makes the server for the job's tasks and clients, who show its token; not listening yet. Raises CannotStart."""
    tokens = JobTokenSecrets(secrets.token_bytes)
    tokens.add(token_of(credentials, JobTokenSecrets.kind, "job token"))
    return RpcServer(name="job manager", host=environ.get("NM_HOST", "127.0.0.1"), token_secrets=tokens)


def scheduler_address(conf: Configuration, environ: Mapping[str, str]) -> tuple[str, int]:
    """Returns the address of the proxy at this node, where there is one: the token is good there alone."""
    proxy = environ.get("YAQ_SCHEDULER_ADDRESS")
    if proxy is None:
        return conf.get_address("yarn.resourcemanager.scheduler.address")
    host, _, port = proxy.rpartition(":")
    return host, int(port)
