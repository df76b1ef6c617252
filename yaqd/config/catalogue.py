"""Every key that this project documents: the shipped defaults and the shipped queues, as one list.

A name with `*` in it stands for a family of keys (`yarn.scheduler.capacity.*.capacity`): it explains them and sets
none.
"""

import difflib
import re
from functools import lru_cache

from yaqd.config.defaults import QUEUES_FILE, shipped_dir, shipped_properties
from yaqd.config.xmlfile import Property, read_properties


@lru_cache(maxsize=1)
def documented() -> tuple[Property, ...]:
    return (*shipped_properties(), *read_properties(shipped_dir() / QUEUES_FILE))


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Property]:
    return {found.name: found for found in documented() if "*" not in found.name}


@lru_cache(maxsize=1)
def _families() -> list[tuple[re.Pattern[str], Property]]:
    families = (found for found in documented() if "*" in found.name)
    return [(re.compile(re.escape(found.name).replace(r"\*", ".+")), found) for found in families]


def documentation(name: str) -> Property | None:
    """Return the entry that explains this key, its own or its family's."""
    own = _by_name().get(name)
    if own is not None:
        return own
    return next((found for pattern, found in _families() if pattern.fullmatch(name)), None)


def documented_names() -> list[str]:
    return list(_by_name())


def near_in_family(name: str, alike: float) -> str | None:
    """Return this name with another last part, where that makes it one of a family's."""
    head, _, last = name.rpartition(".")
    split = (found.name.partition(".*.") for _, found in _families())
    tails = [tail for before, _, tail in split if tail and "*" not in tail and head.startswith(f"{before}.")]
    near = difflib.get_close_matches(last, tails, 1, alike)
    return f"{head}.{near[0]}" if near else None
