"""What a job still wants of opportunistic containers, summed up for its ResourceManager."""

from typing import Final

from yaqd.model import ANY_HOST, Resource
from yaqd.policies.asks.table import AskTable

#: asks with strict places are told apart by so many sizes and places, and of each so many places are named
_BOUND_MAX: Final = 200
_PLACES_MAX: Final = 100


def wanted_by_size(asks: AskTable) -> dict[tuple[int, Resource], int]:
    """Count what is wanted by priority and size."""
    counts: dict[tuple[int, Resource], int] = {}
    for ask in asks:
        if ask.pending:
            key = ask.key[0], ask.capability
            counts[key] = counts.get(key, 0) + ask.pending
    return counts


def wanted_at(asks: AskTable) -> dict[tuple[Resource, tuple[str, ...]], int]:
    """Count what insists on places, by size and by the hosts and racks of which any will do.

    Of the last of very many asks no places are named.
    """
    counts: dict[tuple[Resource, tuple[str, ...]], int] = {}
    for ask in asks:
        if ask.pending and not ask.allows(ANY_HOST):
            places = tuple(sorted(ask.places())) if len(counts) < _BOUND_MAX else ()
            key = ask.capability, places[:_PLACES_MAX]
            counts[key] = counts.get(key, 0) + ask.pending
    return counts
