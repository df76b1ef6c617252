"""Taking a master's rows in: what they change, and which of them are for opportunistic containers."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import attrgetter

from rm.scheduler.events import Asked
from yaqd.model import ANY_HOST, ExecutionType, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.asks.table import Ask, AskKey, AskTable

_key: Callable[[AskRow], AskKey] = attrgetter("priority", "allocation_request_id")


def take_in(
    asks: AskTable,
    rows: tuple[AskRow, ...],
    normalized: Callable[[Resource], Resource],
    now: float,
    carried: dict[AskKey, list[str]],
) -> dict[AskKey, list[str]]:
    """Take rows in. Return the asks that they change, each with the names of hosts and racks to look at.

    Those names came with the ask. Where it wanted nothing before, all names that it has are looked at. `carried`: what
    an earlier part of the call left of the ask that goes on here.
    """
    touched = dict(carried)
    ask: Ask | None = None  # most rows belong to the ask that the row before belonged to
    priority = request_id = 0
    names: list[str] = []
    asked, size = None, Resource()
    for row in rows:
        if ask is None or row.priority != priority or row.allocation_request_id != request_id:
            priority, request_id = key = row.priority, row.allocation_request_id
            names, ask = touched.setdefault(key, []), asks.get(key)
        if row.capability is not asked:
            asked = row.capability
            size = normalized(asked)
        is_known, was_pending = ask is not None, ask is None or ask.pending
        if ask is not None:
            asks.put_more(ask, row, size, now)
        else:
            ask = asks.put(row, size, now)
        if row.resource_name != ANY_HOST:
            names.append(row.resource_name)
        elif is_known and not was_pending:
            names.extend(n for n in ask.counts if n != ANY_HOST)
        if not ask.counts:  # nothing is left of it
            ask = None
    return touched


def parts(asked: Asked, size: int, *, gives_opportunistic: bool) -> Iterator[Asked]:
    """Yield the call in parts of at most `size` guaranteed rows. Told one after the other, they give the same in the
    same order.

    Asks are served in the order of their keys, so each part has the rows that come next. An ask with rows left for the
    next part is not served yet. Opportunistic asks come first, all together, as a call is given so many of them at
    most.
    """
    guaranteed, spare = split(asked.rows, gives_opportunistic=gives_opportunistic)
    rows = sorted(guaranteed, key=_key)
    if spare:
        yield replace(asked, rows=spare)
    for at in range(0, len(rows), size):
        part, following = tuple(rows[at : at + size]), rows[at + size : at + size + 1]
        goes_on = bool(following) and _key(following[0]) == _key(part[-1])
        if spare or at:
            yield Asked(asked.attempt_id, part, continues=True, goes_on=goes_on)
        else:
            yield replace(asked, rows=part, goes_on=goes_on)


def split(rows: tuple[AskRow, ...], *, gives_opportunistic: bool) -> tuple[tuple[AskRow, ...], tuple[AskRow, ...]]:
    """Return guaranteed and opportunistic rows; all are guaranteed where opportunistic containers are not given."""
    guaranteed = ExecutionType.GUARANTEED
    for row in rows:
        if row.execution_type is not guaranteed:
            break
    else:
        return rows, ()
    if not gives_opportunistic:
        return tuple(replace(row, execution_type=ExecutionType.GUARANTEED) for row in rows), ()
    spare = tuple(row for row in rows if row.execution_type is ExecutionType.OPPORTUNISTIC)
    return tuple(row for row in rows if row.execution_type is ExecutionType.GUARANTEED), spare
