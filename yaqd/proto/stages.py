"""The border for orders about stages. Whatever comes in has bounds when it leaves here."""

from typing import Final

from yaqd.model.stages import StagesOrder
from yaqd.proto import yarn_service_pb2 as service

#: stages of one order
SHARES_MAX: Final = 1000
_CONTAINERS_MAX: Final = 10_000_000


def stages_order(message: service.StagesOrder) -> StagesOrder:
    limit = _bounded(message.limit) if message.HasField("limit") else None
    shares = tuple((share.priority, _bounded(share.containers)) for share in message.shares[:SHARES_MAX])
    return StagesOrder(message.sequence, message.decides, limit, shares)


def stages_order_pb(order: StagesOrder) -> service.StagesOrder:
    message = service.StagesOrder(sequence=order.sequence, decides=order.decides, limit=order.limit)
    for priority, containers in order.shares[:SHARES_MAX]:
        message.shares.add(priority=priority, containers=containers)
    return message


def _bounded(number: int) -> int:
    return min(max(0, number), _CONTAINERS_MAX)
