"""What a client asks a container to be: its launch context, read once from the message.

Everything here is the client's word. Sizes and times are checked where they are used. Names that become paths are
checked here, so that no later step meets a link that leaves the container's folder.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from nm.containers.retries import RetryPolicy
from yaqd.model import LocalResourceType, LocalResourceVisibility
from yaqd.policies.queueing.left import StageLeft, bounded, told
from yaqd.proto import yarn_common_pb2 as pb

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_MAX_RESOURCES = 10_000
_MAX_LINK_LENGTH = 1024
_ACL_NAMES = {pb.APPACCESS_VIEW_APP: "VIEW_APP", pb.APPACCESS_MODIFY_APP: "MODIFY_APP"}


class BadLaunchContext(ValueError):
    """The launch context cannot be carried out; the text says which part and why."""


@dataclass(frozen=True, slots=True)
class LocalResource:
    """One file that must be on the node before the container runs."""

    #: path of the link below the container's work folder
    link: str
    #: where it comes from, a full URI or a path on the default file system
    url: str
    #: modification time at the source in epoch ms; a source that differs is refused
    timestamp_ms: int
    #: bytes; -1 when the client does not know
    size: int
    type: LocalResourceType
    visibility: LocalResourceVisibility
    #: for PATTERN: regular expression that names the entries to unpack; empty means all
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class LaunchContext:
    resources: tuple[LocalResource, ...] = ()
    #: credentials stream as the client wrote it; may be empty
    tokens: bytes = b""
    #: data for auxiliary services by service name
    service_data: Mapping[str, bytes] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    #: who may see and change the application, by VIEW_APP and MODIFY_APP; one text each, as Hadoop writes it
    acls: Mapping[str, str] = field(default_factory=dict)
    #: whether it is run again where it fails
    retry_policy: RetryPolicy = RetryPolicy()
    #: what is left of its job, as the master says; None: it says nothing
    left: tuple[StageLeft, ...] | None = None

    @classmethod
    def from_pb(cls, message: pb.ContainerLaunchContext) -> "LaunchContext":
        """Raises BadLaunchContext for names that cannot be environment variables or links."""
        if len(message.localResources) > _MAX_RESOURCES:
            raise BadLaunchContext(
                f"{len(message.localResources)} local resources, at most {_MAX_RESOURCES} are taken: ship an archive"
            )
        environment = {entry.key: entry.value for entry in message.environment}
        for name, value in environment.items():
            if not _ENVIRONMENT_NAME.match(name):
                raise BadLaunchContext(f"environment variable name {name[:80]!r} is not a shell name: rename it")
            if "\0" in value:
                raise BadLaunchContext(f"environment variable {name} holds a NUL character")
        resources = tuple(local_resource(entry.key, entry.value) for entry in message.localResources)
        _refuse_nested({resource.link for resource in resources})
        return cls(
            resources=resources,
            tokens=message.tokens,
            service_data={entry.key: entry.value for entry in message.service_data},
            environment=environment,
            commands=tuple(message.command),
            acls={_ACL_NAMES[entry.accessType]: entry.acl for entry in message.application_ACLs},
            retry_policy=RetryPolicy.from_pb(message.container_retry_context),
            left=bounded(map(told, message.yaq_left.stages)) if message.HasField("yaq_left") else None,
        )


def local_resource(link: str, message: pb.LocalResource) -> LocalResource:
    """Raises BadLaunchContext when the link leaves the container's folder or the URL names nothing."""
    return LocalResource(
        link=_checked_link(link),
        url=_url(message.resource),
        timestamp_ms=message.timestamp,
        size=message.size if message.HasField("size") else -1,
        type=LocalResourceType(message.type) if message.HasField("type") else LocalResourceType.FILE,
        visibility=(
            LocalResourceVisibility(message.visibility)
            if message.HasField("visibility")
            else LocalResourceVisibility.APPLICATION
        ),
        pattern=message.pattern,
    )


def _checked_link(link: str) -> str:
    path = PurePosixPath(link)
    if not link or len(link) > _MAX_LINK_LENGTH or "\0" in link or "\n" in link:
        raise BadLaunchContext(f"local resource name {link[:80]!r} cannot be a file name")
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise BadLaunchContext(f"local resource name {link[:80]!r} leaves the container's folder: use a relative name")
    return str(path)


def _refuse_nested(links: Set[str]) -> None:
    """A link below another would be made inside the folder that the other points to, which containers share."""
    for link in links:
        for parent in PurePosixPath(link).parents:
            if str(parent) in links:
                raise BadLaunchContext(
                    f"local resource name {link[:80]!r} lies inside another, {str(parent)[:80]!r}: rename one of them"
                )


def _url(message: pb.URL) -> str:
    """The URL as one text; the port is -1 on the wire when there is none."""
    path = message.file
    if not path or "\0" in path:
        raise BadLaunchContext(f"local resource without a path: {path[:80]!r}")
    if not message.scheme:
        return path
    host = message.host
    if message.userInfo:
        host = f"{message.userInfo}@{host}"
    if message.port > 0:
        host = f"{host}:{message.port}"
    return f"{message.scheme}://{host}{path if path.startswith('/') else '/' + path}"
