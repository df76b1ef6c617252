"""Who has had less of the cluster than its share, and for how long: deficit counters over actual use.

A scheduler that fills queues shares out places in line; what its users see is what runs, and reordering lets some run
before others (Yaq, section 3.4.2). Here each group (a capacity queue, a user) has a share, each start and end is
counted, and a group that wants more while it holds a whole slot less than its share is in deficit. Reordering is free
as long as no deficit is older than ST; then the turn is the debtor's, the largest deficit first. Where running tasks
may be preempted `surplus` says whose, so that no deficit outlasts ST; without preemption it ends with the next task.

An idle group's share goes to those that want it, in proportion: a deficit begins when the group wants something.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from yaqd.policies.queueing import limits

#: groups remembered: users come and go
_MOST_GROUPS: Final = 10_000
_MOST_SLOTS: Final = 1e12
#: a slot, less what sums of shares are wrong by
_ONE_SLOT: Final = 1.0 - 1e-9


@dataclass(slots=True)
class _Account:
    share: float
    #: what it holds, slots
    used: float = 0.0
    #: what it would take besides, slots
    wanted: float = 0.0
    #: what it lacks of its share, slots; negative: has beyond it
    lacks: float = 0.0
    #: slot-seconds it has been kept from since its deficit began
    deficit: float = 0.0
    #: inf: in no deficit
    since: float = inf

    @property
    def is_short(self) -> bool:
        """Nobody lacks more than it wants, and less than a slot cannot be given."""
        return min(self.lacks, self.wanted) >= _ONE_SLOT


class DeficitCounters:
    """Events in (`use`, `want`), whose turn out. The first of a moment costs O(groups), whatever the cluster holds."""

    def __init__(
        self, shares: Mapping[str, float], starve_s: float, *, capacity: float, default_share: float = 1.0
    ) -> None:
        """`shares` by group, in any unit; a group that is not named has `default_share`. `starve_s` is ST, `capacity`
        the slots that are shared out."""
        self._shares = {group: limits.threshold(share) for group, share in shares.items()}
        self._default_share = limits.threshold(default_share)
        self._starve_s = limits.threshold(starve_s)
        self._capacity = _slots(capacity)
        self._accounts: dict[str, _Account] = {}
        self._now = -inf
        #: has anything changed since what each lacks was worked out?
        self._changed = False

    def resize(self, capacity: float, now: float) -> None:
        """So many slots are shared out from now on."""
        self._advance(now)
        self._capacity = _slots(capacity)
        self._changed = True

    def use(self, group: str, slots: float, now: float) -> None:
        """The group holds so many slots from now on, of the resources that actually run."""
        self._set(group, now, used=slots)

    def want(self, group: str, slots: float, now: float) -> None:
        """It would take so many more."""
        self._set(group, now, wanted=slots)

    def turn(self, candidates: Iterable[str], now: float) -> str | None:
        """The candidate that has been in deficit for more than ST and by most; None: order as you like."""
        self._advance(now)
        self._weigh()
        overdue = [group for group in candidates if self._is_overdue(group)]
        # the longer in deficit of two equal ones, the first by name of two such
        return min(overdue, key=lambda g: (-self.deficit(g), self._accounts[g].since, g), default=None)

    def deficit(self, group: str) -> float:
        """Slot-seconds that the group has been kept from since its deficit began, as of the last event."""
        account = self._accounts.get(group)
        return account.deficit if account is not None else 0.0

    def surplus(self, groups: Iterable[str]) -> str | None:
        """Of these the group to take a slot from: the one furthest beyond its share, by a whole slot at least."""
        self._weigh()
        beyond = [g for g in groups if g in self._accounts and self._accounts[g].lacks <= -_ONE_SLOT]
        return min(beyond, key=lambda g: (self._accounts[g].lacks, g), default=None)

    def _is_overdue(self, group: str) -> bool:
        account = self._accounts.get(group)
        return account is not None and self._now - account.since > self._starve_s and account.is_short

    # Bookkeeping ------------------------------------------------------------------------------------------------------

    def _set(self, group: str, now: float, *, used: float | None = None, wanted: float | None = None) -> None:
        self._advance(now)
        account = self._accounts.get(group)
        if account is None:
            if len(self._accounts) >= _MOST_GROUPS:
                self._forget_idle()
            account = self._accounts[group] = _Account(self._shares.get(group, self._default_share))
        if used is not None:
            account.used = _slots(used)
        if wanted is not None:
            account.wanted = _slots(wanted)
        self._changed = True

    def _advance(self, now: float) -> None:
        """Counts the time since the last event. What counts is how each moment ended: slots change hands within one.

        A clock that went backwards adds nothing, and what is owed since later is owed since then.
        """
        if now == self._now or now != now:
            return
        self._weigh()
        passed = now - self._now
        for account in self._accounts.values():
            if not account.is_short:
                account.since, account.deficit = inf, 0.0
                continue
            if account.since == inf:
                account.since = self._now
            if 0.0 < passed < inf:
                account.deficit += account.lacks * passed
            account.since = min(account.since, now)
        self._now = now

    def _weigh(self) -> None:
        """What each lacks now of its part of all slots, among those that use or want something."""
        if not self._changed:
            return
        self._changed = False
        shares = sum(a.share for a in self._accounts.values() if a.used > 0.0 or a.wanted > 0.0)
        for account in self._accounts.values():
            due = self._capacity * account.share / shares if shares > 0.0 else 0.0
            account.lacks = due - account.used

    def _forget_idle(self) -> None:
        idle = [group for group, account in self._accounts.items() if not account.used and not account.wanted]
        for group in idle:
            del self._accounts[group]


def _slots(count: float) -> float:
    return min(count, _MOST_SLOTS) if count > 0.0 else 0.0
