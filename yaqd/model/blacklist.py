"""How much of the cluster a master may name as to be avoided."""

from collections.abc import Collection, Sequence
from typing import Final

from yaqd.model.states import ANY_HOST

#: hosts and racks that one attempt avoids, and how long each name is, characters
_NAMES_MAX: Final = 10_000
_NAME_MAX: Final = 255


def refusal(avoided: Collection[str], additions: Sequence[str], removals: Sequence[str]) -> str | None:
    """Return why these changes of what is avoided cannot be; None: they can. Hadoop refuses `*` in the same words."""
    if ANY_HOST in additions:
        return f"Cannot add {ANY_HOST} to the blacklist!"
    if any(len(name) > _NAME_MAX for name in additions):
        return f"Cannot add a name of more than {_NAME_MAX} characters to the blacklist"
    if (
        len(avoided) + len(additions) > _NAMES_MAX
        and len({*avoided}.difference(removals).union(additions)) > _NAMES_MAX
    ):
        return f"The blacklist would hold more than {_NAMES_MAX} names: remove some"
    return None
