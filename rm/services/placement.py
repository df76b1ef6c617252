"""SchedulingRequests on the wire: constraints and tags read, requests kept or refused, refusals told.

`yarn.resourcemanager.placement-constraints.handler` says how: `disabled` refuses them as Hadoop's default does,
`scheduler` keeps each until there is a place that its constraint allows. `placement-processor` gives up after a few of
the master's heartbeats and says which could not be placed.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rm.applications.records import Attempt, TriedRequest
from rm.cluster import Cluster
from rm.scheduler.events import Asked
from rm.scheduler.view.calculators import InvalidAsk
from yaqd.config import Configuration
from yaqd.ipc.errors import InvalidResourceRequest, YarnError
from yaqd.model import ANY_HOST, Resource
from yaqd.policies.asks.placement import SELF, Both, Constraint, ConstraintScope, Either, Placement, Single, Target
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.asks.table import TooManyAsks
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb

log = logging.getLogger(__name__)

KEY: Final = "yarn.resourcemanager.placement-constraints.handler"
_RETRIES: Final = "yarn.resourcemanager.placement-constraints.retry-attempts"
_PARTITION: Final = "yarn_node_partition/"
_NO_MAXIMUM: Final = 2**31 - 1
_COUNT_MAX: Final = 1_000_000
#: constraints in one, tags in a request, characters of a tag
_NODES_MAX: Final = 1000
_TAGS_MAX: Final = 100
_TAG_CHARS_MAX: Final = 1000
_NEVER: Final = Either(())

#: priority, allocation request id
_Key = tuple[int, int]


class Handler(StrEnum):
    DISABLED = "disabled"
    SCHEDULER = "scheduler"
    PROCESSOR = "placement-processor"


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    handler: Handler
    #: how often the processor tries before it gives a request back
    attempts: int

    @classmethod
    def read(cls, conf: Configuration) -> "PlacementSettings":
        """Raises ConfigError."""
        value = (conf.get(KEY) or "").strip()
        if value not in tuple(Handler):
            raise conf.error(KEY, "is no handler", f"write one of {', '.join(Handler)}")
        return cls(Handler(value), conf.get_int(_RETRIES, minimum=1))


class PlacementRequests:
    def __init__(self, cluster: Cluster, settings: PlacementSettings) -> None:
        self._cluster = cluster
        self._settings = settings

    # ---- registration

    def register(self, attempt: Attempt, request: pb.RegisterApplicationMasterRequest) -> None:
        """Keep the constraints that the master gives for its tags; raises YarnError when there may be none."""
        if not request.placement_constraints:
            return
        if self._settings.handler is Handler.DISABLED:
            raise YarnError(
                "Found non empty placement constraints map in RegisterApplicationMasterRequest for application="
                f"{attempt.id}, but the configured {KEY} cannot handle placement constraints. Rejecting this "
                "registerApplicationMaster operation"
            )
        for entry in list(request.placement_constraints)[:_NODES_MAX]:
            tags = list(entry.allocation_tags)
            if len(tags) != 1:
                log.warning("%s: a constraint for the tags %s is not for one tag, and ignored", attempt.id, tags[:5])
                continue
            attempt.constraints[tags[0][:_TAG_CHARS_MAX]] = read_constraint(entry.placement_constraint)

    # ---- allocate

    def read(self, attempt: Attempt, request: pb.AllocateRequest) -> tuple[AskRow, ...]:
        """Read what is asked for. Raises YarnError for what cannot be taken in."""
        if attempt.placed_keys:
            self._check_keys(attempt, request.ask)
        if not request.scheduling_requests:
            return ()
        if self._settings.handler is Handler.DISABLED:
            raise YarnError(
                f"Found non empty SchedulingRequest in AllocateRequest for application={attempt.id}, but the "
                f"configured {KEY} cannot handle placement constraints. Rejecting this allocate operation"
            )
        return tuple(self._row(attempt, asked) for asked in request.scheduling_requests)

    def take_in(self, attempt: Attempt, request: pb.AllocateRequest, rows: tuple[AskRow, ...]) -> None:
        """Hand the scheduler what `read` has read."""
        if not rows:
            return
        attempt.placed_keys.update((row.priority, row.allocation_request_id) for row in rows)
        if self._settings.handler is Handler.PROCESSOR:
            for row, asked in zip(rows, request.scheduling_requests, strict=True):
                attempt.tried[(row.priority, row.allocation_request_id)] = TriedRequest(asked)
        try:
            self._cluster.schedule(Asked(attempt.id, rows))
        except TooManyAsks as error:
            raise InvalidResourceRequest(str(error)) from None

    def hand_out(self, attempt: Attempt, response: pb.AllocateResponse) -> None:
        """Tell which requests were given up."""
        scheduled = self._cluster.scheduler.facts.attempt(attempt.id) if attempt.tried else None
        for key, tried in list(attempt.tried.items()):
            ask = scheduled.asks.get(key) if scheduled is not None else None
            if ask is None or not ask.pending:
                del attempt.tried[key]
                continue
            tried.times += 1
            if tried.times < self._settings.attempts:
                continue
            del attempt.tried[key]
            rejected = response.rejected_scheduling_requests.add(reason=common.RRP_COULD_NOT_PLACE_ON_NODE)
            rejected.request.CopyFrom(tried.request)
            rejected.request.resourceSizing.numAllocations = ask.pending
            log.info("%s: no place for %d containers of request %s", attempt.id, ask.pending, key)
            self._cluster.schedule(Asked(attempt.id, (AskRow(*key, ANY_HOST, ask.capability, 0),)))

    def _check_keys(self, attempt: Attempt, asks: Iterable[common.ResourceRequest]) -> None:
        for ask in asks:
            key = (ask.priority.priority, ask.allocation_request_id)
            if key in attempt.placed_keys:
                raise YarnError(
                    "not be able to handle ResourceRequest, there exists a SchedulingRequest with the same scheduler "
                    f"key={_key_text(key)}, please send ResourceRequest with a different allocationId and priority"
                )

    def _row(self, attempt: Attempt, asked: common.SchedulingRequest) -> AskRow:
        key = (asked.priority.priority, asked.allocationRequestId)

        def refuse(why: str) -> YarnError:
            return YarnError(f"AppId={attempt.app.id} Key={_key_text(key)}. Exception message:{why}")

        if not asked.HasField("resourceSizing") or not asked.resourceSizing.HasField("resources"):
            raise refuse("No ResourceSizing found in the scheduling request, please double check")
        if asked.executionType.execution_type != common.GUARANTEED:
            raise refuse("Only GUARANTEED execution type is supported.")
        count, amount = asked.resourceSizing.numAllocations, convert.resource(asked.resourceSizing.resources)
        if not 0 <= count <= _COUNT_MAX:
            raise YarnError("numAllocation in ResourceSizing field must be >= 0, updating schedulingRequest failed.")
        self._check_amount(amount)
        row = AskRow(*key, ANY_HOST, amount, count, placement=self._placement(attempt, asked))
        self._check_unchanged(attempt, key, row)
        return row

    def _check_amount(self, amount: Resource) -> None:
        scheduler = self._cluster.scheduler
        try:
            scheduler.facts.bounds.check(amount, scheduler.maximum_allocation())
        except InvalidAsk as error:
            raise InvalidResourceRequest(str(error)) from None

    def _check_unchanged(self, attempt: Attempt, key: _Key, row: AskRow) -> None:
        scheduler = self._cluster.scheduler
        scheduled = scheduler.facts.attempt(attempt.id)
        known = scheduled.asks.get(key) if scheduled is not None else None
        if known is None or not known.pending or not row.count:
            return
        if known.placement != row.placement or known.capability != scheduler.normalized(row.capability):
            raise YarnError(
                "Invalid updated SchedulingRequest added to scheduler,  we only allows changing numAllocations for the "
                "updated SchedulingRequest, if any fields need to be updated, please cancel the old request (by "
                "setting numAllocations to 0) and send a SchedulingRequest with different combination of "
                "priority/allocationId"
            )

    def _placement(self, attempt: Attempt, asked: common.SchedulingRequest) -> Placement:
        """Its own constraint and what the master registered for its tags: both must hold."""
        tags = tuple(sorted({tag[:_TAG_CHARS_MAX] for tag in list(asked.allocationTags)[:_TAGS_MAX]}))
        constraints: list[Constraint] = []
        if asked.HasField("placementConstraint"):
            constraints.append(read_constraint(asked.placementConstraint))
        if len(tags) == 1 and tags[0] in attempt.constraints:
            constraints.append(attempt.constraints[tags[0]])
        whole = constraints[0] if len(constraints) == 1 else Both(tuple(constraints))
        return Placement(tags, whole if constraints else None)


def _key_text(key: _Key) -> str:
    return f"SchedulerRequestKey{{priority={key[0]}, allocationRequestId={key[1]}, containerToUpdate=null}}"


def read_constraint(message: common.PlacementConstraint) -> Constraint:
    """Raises YarnError for more than a thousand in one."""
    return _read(message, [_NODES_MAX])


def _read(message: common.PlacementConstraint, budget: list[int]) -> Constraint:
    budget[0] -= 1
    if budget[0] < 0:
        raise YarnError(f"a placement constraint of more than {_NODES_MAX} parts")
    if message.HasField("simpleConstraint"):
        return _read_single(message.simpleConstraint)
    composite = message.compositeConstraint
    children = tuple(_read(child, budget) for child in composite.childConstraints)
    if composite.compositeType == common.AND:
        return Both(children)
    if composite.compositeType == common.OR:
        return Either(children)
    return _NEVER  # Hadoop's schedulers know no delays either


def _read_single(message: common.SimplePlacementConstraint) -> Constraint:
    try:
        scope = ConstraintScope(message.scope.lower())
    except ValueError:
        return Both(())  # Hadoop checks nothing for a scope it does not know
    targets = []
    for target in message.targetExpressions:
        if target.targetType == common.ALLOCATION_TAG:
            tags = tuple(tag[:_TAG_CHARS_MAX] for tag in list(target.targetValues)[:_TAGS_MAX])
            targets.append(Target(target.targetKey or SELF, tags))
        elif target.targetType == common.NODE_ATTRIBUTE and not _is_met_without_attributes(message, target):
            return _NEVER
    maximum = None if message.maxCardinality == _NO_MAXIMUM else message.maxCardinality
    return Single(scope, message.minCardinality, maximum, tuple(targets))


def _is_met_without_attributes(
    message: common.SimplePlacementConstraint, target: common.PlacementConstraintTarget
) -> bool:
    """Nodes have the default partition and no attributes."""
    if target.targetKey == _PARTITION:
        return all(not value for value in target.targetValues)
    return message.attributeOpCode == common.NE
