"""The queues as Hadoop's REST shows them (CapacitySchedulerInfo, CapacitySchedulerQueueInfo, -LeafQueueInfo, UserInfo).

What the queues here do not have is shown as stock shows it where nobody uses it: weights, labels, queues that are made
by themselves. `health` of the root is not there.
"""

from typing import Any, Final

from rm.cluster import Cluster
from rm.scheduler.facts import QueueView, UserView
from rm.scheduler.queues.spec import QueueState
from rm.services.queue_statistics import queue_statistics
from rm.web.resources import resource_json, usages_json
from yaqd.model import Resource
from yaqd.proto import yarn_common_pb2 as common

#: Hadoop has a limit here on applications that run at a time; these queues have none
_UNLIMITED: Final = 2**31 - 1
_NO_TEMPLATES: Final[dict[str, Any]] = {
    "autoQueueTemplateProperties": {},
    "autoQueueParentTemplateProperties": {},
    "autoQueueLeafTemplateProperties": {},
}


class QueueInfo:
    """Made for one answer."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._facts = cluster.scheduler.facts
        self._types = cluster.resource_types

    def scheduler(self) -> dict[str, Any]:
        """Return the root, with all below it."""
        root = self._facts.root
        shown = {"type": "capacityScheduler", **self._shares(root), "queueName": root.spec.name}
        shown |= {"queueCapacityVectorInfo": _vector(root.spec.capacity * 100)}
        shown |= {"queuePath": root.path, "maxParallelApps": _UNLIMITED, "isAbsoluteResource": False}
        return shown | {"queues": self._children(root), "capacities": self._capacities(root), **self._rules(root)}

    def _children(self, queue: QueueView) -> dict[str, Any]:
        return {"queue": [self._queue(child) for child in queue.children]}

    def _queue(self, queue: QueueView) -> dict[str, Any]:
        statistics = queue_statistics(queue, self._cluster)
        shown: dict[str, Any] = {"type": "capacitySchedulerLeafQueueInfo"} if queue.is_leaf else {}
        shown |= {"queuePath": queue.path, **self._shares(queue), **self._absolute(queue)}
        shown |= {
            "numApplications": sum(len(leaf.applications) for leaf in queue.walk()),
            "maxParallelApps": _UNLIMITED,
            "queueName": queue.spec.name,
            "isAbsoluteResource": False,
            "state": QueueState(queue.spec.state).name,
            "resourcesUsed": self._amount(queue.used),
            "hideReservationQueues": False,
            "nodeLabels": ["*"],
            "allocatedContainers": queue.containers,
            "reservedContainers": statistics.reservedContainers,
            "pendingContainers": statistics.pendingContainers,
            "capacities": self._capacities(queue),
            "resources": self._resources(queue, statistics),
            "minEffectiveCapacity": self._amount(self._least(queue)),
            "maxEffectiveCapacity": self._amount(self._most(queue)),
            **self._rules(queue),
        }
        return shown | (self._leaf(queue) if queue.is_leaf else {"queues": self._children(queue)})

    def _leaf(self, leaf: QueueView) -> dict[str, Any]:
        spec = leaf.spec
        return {
            "numActiveApplications": leaf.masters,
            "numPendingApplications": len(leaf.applications) - leaf.masters,
            "numContainers": leaf.containers,
            "maxApplications": spec.maximum_applications,
            "maxApplicationsPerUser": spec.maximum_user_applications,
            "userLimit": spec.minimum_user_limit * 100,
            "users": {"user": [self._user(leaf, user) for user in leaf.users.values()]} if leaf.users else {},
            "userLimitFactor": spec.user_limit_factor,
            "configuredMaxAMResourceLimit": spec.maximum_am_share,
            "AMResourceLimit": self._amount(self._facts.masters_limit(leaf)),
            "usedAMResource": self._amount(leaf.masters_used),
            "userAMResourceLimit": self._amount(self._facts.user_masters_limit(leaf)),
            "preemptionDisabled": spec.preemption_disabled,
            "intraQueuePreemptionDisabled": True,
            "defaultPriority": spec.default_priority,
            "isAutoCreatedLeafQueue": False,
            "maxApplicationLifetime": spec.maximum_lifetime_s,
            "defaultApplicationLifetime": spec.default_lifetime_s,
        }

    def _user(self, leaf: QueueView, user: UserView) -> dict[str, Any]:
        limit, nothing = self._facts.user_masters_limit(leaf), Resource()
        amounts = {"used": user.used, "reserved": nothing, "pending": nothing, "amUsed": user.masters_used}
        return {
            "username": user.name,
            "resourcesUsed": self._amount(user.used),
            "numPendingApplications": user.applications - user.masters,
            "numActiveApplications": user.masters,
            "AMResourceUsed": self._amount(user.masters_used),
            "userResourceLimit": self._amount(self._facts.user_limit(leaf)),
            "resources": usages_json(amounts | {"amLimit": limit, "userAmLimit": nothing}, self._types),
            "userWeight": 1.0,
            "isActive": user.waiting > 0,
        }

    # ---- what all queues have

    def _shares(self, queue: QueueView) -> dict[str, Any]:
        spec = queue.spec
        part = self._facts.share(queue.used) * 100
        return {
            "capacity": spec.capacity * 100,
            "usedCapacity": part / spec.absolute_capacity if spec.absolute_capacity > 0 else 0.0,
            "maxCapacity": spec.maximum_capacity * 100,
            "weight": -1.0,
            "normalizedWeight": 0.0,
        }

    def _absolute(self, queue: QueueView) -> dict[str, Any]:
        return {
            "absoluteCapacity": queue.spec.absolute_capacity * 100,
            "absoluteMaxCapacity": queue.spec.absolute_maximum * 100,
            "absoluteUsedCapacity": self._facts.share(queue.used) * 100,
        }

    def _capacities(self, queue: QueueView) -> dict[str, Any]:
        nothing = self._amount(Resource())
        shown = {
            "partitionName": "",
            "queueCapacityVectorInfo": _vector(queue.spec.capacity * 100),
            **self._shares(queue),
            **self._absolute(queue),
            "maxAMLimitPercentage": queue.spec.maximum_am_share * 100 if queue.is_leaf else 0.0,
            "configuredMinResource": nothing,
            "configuredMaxResource": nothing,
            "effectiveMinResource": self._amount(self._least(queue)),
            "effectiveMaxResource": self._amount(self._most(queue)),
        }
        return {"queueCapacitiesByPartition": [shown]}

    def _resources(self, queue: QueueView, statistics: common.QueueStatistics) -> dict[str, Any]:
        leaves = [leaf for leaf in queue.walk() if leaf.is_leaf]
        amounts = {
            "used": queue.used,
            "reserved": Resource(statistics.reservedMemoryMB, statistics.reservedVCores),
            "pending": Resource(statistics.pendingMemoryMB, statistics.pendingVCores),
            "amUsed": sum((leaf.masters_used for leaf in leaves), Resource()),
        }
        if queue.is_leaf:
            limits = self._facts.masters_limit(queue), self._facts.user_masters_limit(queue)
            amounts |= {"amLimit": limits[0], "userAmLimit": limits[1]}
        else:
            amounts |= dict.fromkeys(("amLimit", "userAmLimit"), Resource())
        return usages_json(amounts, self._types)

    def _rules(self, queue: QueueView) -> dict[str, Any]:
        spec = queue.spec
        acls = {"ADMINISTER_QUEUE": spec.administer_acl, "APPLICATION_MAX_PRIORITY": "*", "SUBMIT_APP": spec.submit_acl}
        return {
            "maximumAllocation": self._amount(self._cluster.scheduler.facts.bounds.maximum),
            "queueAcls": {"queueAcl": [{"accessType": k, "accessControlList": v} for k, v in acls.items()]},
            "queuePriority": 0,
            "orderingPolicyInfo": spec.ordering if queue.is_leaf else "utilization",
            "mode": "percentage",
            "queueType": "leaf" if queue.is_leaf else "parent",
            "creationMethod": "static",
            "autoCreationEligibility": "off",
            **({"autoCreateChildQueueEnabled": False, "leafQueueTemplate": {}} if queue.parent is not None else {}),
            **_NO_TEMPLATES,
        }

    def _least(self, queue: QueueView) -> Resource:
        return _part(self._facts.total, queue.spec.absolute_capacity)

    def _most(self, queue: QueueView) -> Resource:
        return queue.limit or self._facts.total

    def _amount(self, amount: Resource) -> dict[str, Any]:
        return resource_json(amount, self._types)


def _part(total: Resource, share: float) -> Resource:
    extras = {name: int(value * share) for name, value in total.extras.items()}
    return Resource(int(total.memory_mb * share), int(total.vcores * share), extras)


def _vector(percent: float) -> dict[str, Any]:
    values = dict.fromkeys(("memory-mb", "vcores"), f"{percent}%")
    return {
        "configuredCapacityVector": f"[{','.join(f'{name}={value}' for name, value in values.items())}]",
        "capacityVectorEntries": [{"resourceName": name, "resourceValue": value} for name, value in values.items()],
    }
