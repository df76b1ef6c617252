"""Between the messages and the distributed scheduler's words. What a message says is bounded before it is believed."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from nm.distributed import NodeOffer, Place
from nm.node_queue.words import NEVER_RAN
from yaqd.ipc.errors import InvalidResourceRequest
from yaqd.model import ANY_HOST, ContainerId, ExitStatus
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.queueing import limits
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb

#: containers one ask may want; more is a mistake or an attack
_COUNT_MAX: Final = 10_000_000
#: how a container ends that its node gives up
_GIVEN_UP: Final = (ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, ExitStatus.PREEMPTED)
#: published nodes that are read
_NODES_MAX: Final = 10_000


def is_ours(ask: common.ResourceRequest) -> bool:
    """Returns whether the proxy answers this request: it asks for opportunistic containers."""
    return ask.execution_type_request.execution_type == common.OPPORTUNISTIC


def ask_rows(asks: Iterable[common.ResourceRequest]) -> tuple[AskRow, ...]:
    """Raises InvalidResourceRequest."""
    rows = []
    for ask in asks:
        count, amount = ask.num_containers, convert.resource(ask.capability)
        if not 0 <= count <= _COUNT_MAX:
            raise InvalidResourceRequest(f"Invalid resource request, num_containers is {count}")
        if amount != amount.floored():
            raise InvalidResourceRequest(f"Invalid resource request, {amount} is negative")
        name = ask.resource_name or ANY_HOST
        rows.append(AskRow(ask.priority.priority, ask.allocation_request_id, name, amount, count, ask.relax_locality))
    return tuple(rows)


def rows_of(container: common.Container, wanted_by: server.PlacedFor | None) -> tuple[AskRow, ...]:
    """Returns the rows that ask for such a container again where it was wanted; anywhere, if that was not kept."""
    wanted_by = wanted_by or server.PlacedFor(names=[ANY_HOST])
    strict = frozenset(wanted_by.strict)
    key = container.priority.priority, container.allocation_request_id
    amount = convert.resource(container.resource)
    return tuple(AskRow(*key, name, amount, 1, name not in strict) for name in wanted_by.names)


def placed_for(place: Place) -> server.PlacedFor:
    """Returns what the proxy keeps of a place until the master has its container."""
    rows = place.wanted_by
    strict = [row.resource_name for row in rows if not row.relax_locality]
    return server.PlacedFor(container=place.container_id.id, names=[row.resource_name for row in rows], strict=strict)


def ask_pb(row: AskRow) -> common.ResourceRequest:
    message = common.ResourceRequest(
        resource_name=row.resource_name,
        num_containers=row.count,
        allocation_request_id=row.allocation_request_id,
        relax_locality=row.relax_locality,
    )
    message.priority.priority = row.priority
    convert.put_resource(message.capability, row.capability)
    message.execution_type_request.execution_type = common.OPPORTUNISTIC
    return message


def placement_pb(place: Place) -> pb.ProxyPlacement:
    """Writes a place for the ResourceManager, which shows it in `yaq explain`."""
    message = pb.ProxyPlacement(rule=place.rule, behind=place.behind)
    convert.put_container_id(message.container_id, place.container_id)
    if place.estimate_s is not None:
        message.estimate_ms = milliseconds(place.estimate_s)
    if place.wait_s is not None:
        message.wait_ms = milliseconds(place.wait_s)
    return message


def milliseconds(seconds: float) -> int:
    """Converts seconds for a message; a longer time than `limits.LONGEST_S` is cut to that."""
    return int(1000 * min(seconds, limits.LONGEST_S))


def most_wait_s(registration: pb.RegisterDistributedSchedulingAMResponse) -> float | None:
    """Reads how long the master's containers may wait, s; None: as long as it takes."""
    return registration.yaq_most_wait_ms / 1000 if registration.HasField("yaq_most_wait_ms") else None


def unserved(statuses: Iterable[common.ContainerStatus]) -> frozenset[ContainerId]:
    """Returns the containers that their node gave up before they ran. Hadoop says so in words alone."""
    return frozenset(
        convert.container_id(status.container_id)
        for status in statuses
        if status.exit_status in _GIVEN_UP and any(words in status.diagnostics for words in NEVER_RAN)
    )


def lowered(
    rows: Iterable[AskRow], given: Iterable[common.Container], placed_for: Iterable[server.PlacedFor]
) -> tuple[AskRow, ...]:
    """Takes off a repeated request's rows what was given for it and has not been seen by the master."""
    names = {wanted_by.container: wanted_by.names for wanted_by in placed_for}
    counts: dict[tuple[int, int, str], int] = {}
    for container in given:
        for name in names.get(container.id.id, (ANY_HOST, container.nodeId.host)):
            key = (container.priority.priority, container.allocation_request_id, name)
            counts[key] = counts.get(key, 0) + 1
    return tuple(
        replace(r, count=max(0, r.count - taken))
        if (taken := counts.get((r.priority, r.allocation_request_id, r.resource_name), 0))
        else r
        for r in rows
    )


def offers(nodes: Iterable[pb.RemoteNode]) -> tuple[NodeOffer, ...]:
    found = []
    for message, _ in zip(nodes, range(_NODES_MAX), strict=False):
        wait_s = None
        if message.HasField("yaq_wait_ms"):
            wait_s = limits.duration(message.yaq_wait_ms / 1000)
        found.append(
            NodeOffer(
                node_id=convert.node_id(message.node_id),
                http_address=message.http_address,
                rack=message.rack_name,
                partition=message.node_partition,
                wait_s=wait_s,
                free=convert.resource(message.yaq_free).floored() if message.HasField("yaq_free") else None,
                queued=max(0, message.yaq_queued) if message.HasField("yaq_queued") else None,
                queue_max=max(0, message.yaq_queue_max) if message.HasField("yaq_queue_max") else None,
                reads_tasks=message.yaq_reads_tasks,
                slots=max(0, message.yaq_slots),
            )
        )
    return tuple(found)
