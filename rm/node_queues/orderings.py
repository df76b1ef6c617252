"""In which order nodes start what waits: one for the cluster, others for the nodes of single hosts and for leaf queues.

A leaf queue's own settings hold when it is its turn at a node, whatever the node's are, so they need turns of queues
(`yaq.queue.scope`). What a host or a leaf queue does not set is the cluster's.
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from yaqd.config import Configuration
from yaqd.config.catalogue import documentation, documented_names
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.order import Ordering, Scope

_CLUSTER: Final = "yaq.queue."
_NODE: Final = "yaq.queue.node."
_LEAF: Final = "yaq.queue.leaf."
#: what can be set for one host and for one leaf queue, beside other things
_PARTS: Final = ("order", "starve-ms", "starve-ratio")
#: all that can be set for them
_OF_NODE: Final = ("bound", "target-utilization", *_PARTS)
_OF_LEAF: Final = ("enabled", *_PARTS)
#: a longer time is none, and would not fit the messages to the nodes
MS_MAX: Final = int(limits.LONGEST_S * 1000)


@dataclass(frozen=True, slots=True)
class Orderings:
    cluster: Ordering
    hosts: Mapping[str, Ordering]
    #: by path
    leaves: Mapping[str, Ordering]

    @classmethod
    def read(cls, conf: Configuration) -> "Orderings":
        """Raises ConfigError."""
        scope = conf.get_choice("yaq.queue.scope", tuple(Scope))
        cluster = _with(conf, "yaq.queue.", Ordering("fifo", math.inf, math.inf, scope))
        for part in _PARTS if scope != Scope.QUEUE else ():
            for _, key in family(conf, _LEAF, f".{part}"):
                raise conf.error(key, f"needs turns of queues, and yaq.queue.scope is {scope}", "set it to queue")
        return cls(cluster, _own(conf, _NODE, cluster), _own(conf, _LEAF, cluster))

    def at(self, host: str) -> Ordering:
        return self.hosts.get(host, self.cluster)


def family(conf: Configuration, prefix: str, suffix: str) -> list[tuple[str, str]]:
    """Returns what stands between `prefix` and `suffix` in each such key, and the key.

    A key without a value sets nothing, as everywhere.
    """
    keys = [key for key, text in conf.items() if key.startswith(prefix) and key.endswith(suffix) and text.strip()]
    return [(key[len(prefix) : len(key) - len(suffix)], key) for key in keys]


def check_names(conf: Configuration, leaves: Iterable[str]) -> None:
    """Raises ConfigError for what would silently do nothing: a setting of a leaf queue that is not there, and one of
    the cluster, a leaf queue or a host that is no setting."""
    for name, key in family(conf, _CLUSTER, ""):
        if documentation(key) is None and not key.startswith((_LEAF, _NODE)):
            near = difflib.get_close_matches(
                key, [known for known in documented_names() if known.startswith(_CLUSTER)], 1
            )
            meant = f"did you mean {near[0]}?" if near else "docs/configuration.md has all of them"
            raise conf.error(key, f"there is no setting {name}", meant)
    for prefix, parts in ((_LEAF, _OF_LEAF), (_NODE, _OF_NODE)):
        for name, key in family(conf, prefix, ""):
            part = name.rpartition(".")[2]
            if part not in parts:
                near = difflib.get_close_matches(part, parts, 1)
                meant = f"did you mean {near[0]}? " if near else ""
                raise conf.error(key, f"there is no setting {part}", f"{meant}the settings are {', '.join(parts)}")
    known = set(leaves)
    for part in _OF_LEAF:
        for path, key in family(conf, _LEAF, f".{part}"):
            if path not in known:
                names = ", ".join(sorted(known)[:20])
                raise conf.error(key, f"there is no leaf queue {path}", f"the leaf queues are {names}")


def named_hosts(conf: Configuration) -> dict[str, str]:
    """Returns the hosts that have settings of their own, and the first key of each."""
    hosts: dict[str, str] = {}
    for part in _OF_NODE:
        for host, key in family(conf, _NODE, f".{part}"):
            hosts.setdefault(host, key)
    return hosts


def _own(conf: Configuration, prefix: str, cluster: Ordering) -> dict[str, Ordering]:
    names = dict.fromkeys(name for part in _PARTS for name, _ in family(conf, prefix, f".{part}"))
    found = {name: _with(conf, f"{prefix}{name}.", cluster) for name in names}
    return {name: ordering for name, ordering in found.items() if ordering != cluster}


def _with(conf: Configuration, prefix: str, others: Ordering) -> Ordering:
    """The same but for what has these keys."""

    def is_set(part: str) -> bool:
        return bool((conf.get(prefix + part) or "").strip())

    starve_s, ratio = others.starve_s, others.starve_ratio
    if is_set("starve-ms"):
        starve_s = conf.get_duration_ms(f"{prefix}starve-ms", minimum=0, maximum=MS_MAX) / 1000
    if is_set("starve-ratio"):
        ratio = conf.get_float(f"{prefix}starve-ratio", minimum=0.0)
    changed = replace(others, starve_s=starve_s, starve_ratio=ratio)
    if not is_set("order"):
        return changed
    return conf.get_named(f"{prefix}order", lambda name: Ordering(name, starve_s, ratio, others.scope))
