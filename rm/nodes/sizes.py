"""Sizes that an administrator gives nodes in `dynamic-resources.xml`, whatever the nodes say of themselves.

As Hadoop's DynamicResourceConfiguration has it: `yarn.resource.dynamic.nodes` names nodes as `host:port`, further keys
say what each of them has. Read at the start and by refreshNodesResources.
"""

from collections.abc import Mapping
from typing import Final

from yaqd.config import Configuration
from yaqd.config.resource_types import SIZES_FILE
from yaqd.model import BadIdentifier, NodeId, Resource

_PREFIX: Final = "yarn.resource.dynamic."
_NODES: Final = f"{_PREFIX}nodes"
#: what Hadoop's NodeManagers have when nobody says
_MEMORY_MB: Final = 8192
_VCORES: Final = 8

NodeSizes = Mapping[NodeId, Resource]


def read_node_sizes(conf: Configuration) -> NodeSizes:
    """Read the file as it is now; nothing where there is none. Blocking. Raises ConfigError."""
    sizes = conf.with_file(SIZES_FILE)
    found = {}
    for name in sizes.get_list(_NODES):
        try:
            node = NodeId.parse(name)
        except BadIdentifier:
            raise sizes.error(_NODES, f"{name} is no node", "name each node as host:port") from None
        found[node] = Resource(
            sizes.get_int(f"{_PREFIX}{name}.memory", _MEMORY_MB, minimum=0),
            sizes.get_int(f"{_PREFIX}{name}.vcores", _VCORES, minimum=0),
        )
    return found
