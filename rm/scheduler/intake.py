"""Taking a master's rows in: what they change, and which of them are for opportunistic containers."""

from collections.abc import Callable
from dataclasses import replace

from rm.scheduler.asks import AskKey, AskTable
from rm.scheduler.events import AskRow
from yaqd.model import ANY_HOST, ExecutionType, Resource


def take_in(
    asks: AskTable, rows: tuple[AskRow, ...], normalized: Callable[[Resource], Resource], now: float
) -> dict[AskKey, list[str]]:
    """The asks that the rows change, and the names that came with each or wait to be looked at with it."""
    touched: dict[AskKey, list[str]] = {}
    last: AskKey | None = None
    names: list[str] = []
    asked, size = None, Resource()
    for row in rows:
        key = (row.priority, row.allocation_request_id)
        if key != last:
            last, names = key, touched.setdefault(key, [])
        if row.capability is not asked:
            asked = row.capability
            size = normalized(asked)
        if row.resource_name != ANY_HOST:
            asks.put(row, size, now)
            names.append(row.resource_name)
            continue
        known = asks.get(key)
        was_pending = known is None or known.pending
        asks.put(row, size, now)
        if known is not None and not was_pending:
            names.extend(n for n in known.counts if n != ANY_HOST)
    return touched


def split(rows: tuple[AskRow, ...], *, gives_opportunistic: bool) -> tuple[tuple[AskRow, ...], tuple[AskRow, ...]]:
    """Guaranteed and opportunistic asks; all are guaranteed where opportunistic containers are not given."""
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
