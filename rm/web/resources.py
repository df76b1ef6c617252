"""Amounts as Hadoop's REST shows them (ResourceInfo, ResourceInformationsInfo, PartitionResourcesInfo)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from yaqd.config.resource_types import ResourceType
from yaqd.model import Resource

_LARGEST: Final = 2**63 - 1


def resource_json(amount: Resource, types: Iterable[ResourceType]) -> dict[str, Any]:
    amounts = [("memory-mb", "Mi", amount.memory_mb), ("vcores", "", amount.vcores)]
    amounts += [(kind.name, "", amount.extras.get(kind.name, 0)) for kind in types]
    informations = [
        {
            "attributes": {},
            "maximumAllocation": _LARGEST,
            "minimumAllocation": 0,
            "name": name,
            "resourceType": "COUNTABLE",
            "units": unit,
            "value": value,
        }
        for name, unit, value in amounts
    ]
    shown = {"memory": amount.memory_mb, "vCores": amount.vcores}
    return shown | {"resourceInformations": {"resourceInformation": informations}}


def usages_json(amounts: Mapping[str, Resource], types: Iterable[ResourceType]) -> dict[str, Any]:
    """Write what is used, reserved and so on, by these names.

    There is one partition of nodes, without a label.
    """
    types = tuple(types)
    shown = {name: resource_json(amount, types) for name, amount in amounts.items()}
    return {"resourceUsagesByPartition": [{"partitionName": "", **shown}]}
