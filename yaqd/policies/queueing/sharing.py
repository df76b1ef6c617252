"""Who has had less of the cluster than its share: deficit counters over actual use.

A scheduler that fills queues shares out places in line, but what its users see is what runs, and between the two stand
waits of different length and the reordering of what waits (Yaq, section 3.4.2). So each group (a capacity queue among
its siblings) has an account of the work that it was given: a task counts with what it should take when it is given, and
with what it took in the end. What a group was given short of its part of all is its deficit. The scheduler looks at it
beside what the groups hold, so that deficits even out whatever the nodes do.

What is owed is bounded: no group is owed, or owes, more than so many seconds of its part, so that a violation is made
up for and a long past is not. A group that wants nothing is owed nothing: its part goes to those that want it, and when
it comes back it begins as if it had been served all the time, as in start-time fair queueing.

Work is parts of the cluster times seconds. What is given costs the same however many groups there are; who begins or
ceases to want something costs a look at each.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Final

from yaqd.policies.queueing import limits

#: groups with an account; further ones are in no deficit
_MOST_GROUPS: Final = 100_000
#: shares are no smaller, so that each is a part of all, and no larger
_LEAST_SHARE: Final = 1e-6
_MOST_SHARE: Final = 1e6
#: work of one entry
_MOST_WORK: Final = 1e6


@dataclass(slots=True)
class _Account:
    share: float
    #: what it was given, and what it would have been in the time before it had an account
    work: float


class DeficitCounters:
    """The groups that want something, and what each is owed. What all of them are owed adds up to 0."""

    def __init__(self, most_owed_s: float) -> None:
        """`most_owed_s`: nobody is owed, or owes, more than its part of so many seconds; inf: no bound."""
        self._most_owed_s = limits.threshold(most_owed_s)
        self._accounts: dict[str, _Account] = {}
        self._shares = 0.0
        #: work by which all have been served, per unit of share
        self._served = 0.0

    def __contains__(self, group: str) -> bool:
        return group in self._accounts

    def want(self, group: str, share: float) -> None:
        """Note that the group wants something, and has such a share, in any unit that is the same for all."""
        share = min(max(share, _LEAST_SHARE), _MOST_SHARE) if share == share else _LEAST_SHARE
        account = self._accounts.get(group)
        if account is None:
            if len(self._accounts) < _MOST_GROUPS:
                self._accounts[group] = _Account(share, share * self._served)
                self._sum_shares()
        elif account.share != share:
            account.work += (share - account.share) * self._served
            account.share = share
            self._sum_shares()

    def rest(self, group: str) -> None:
        """Note that the group wants nothing any more. All the others forget what it is owed, and forgive what it
        owes."""
        account = self._accounts.pop(group, None)
        if account is None:
            return
        ahead = self._ahead(account)
        self._sum_shares()
        if self._accounts:
            self._served -= ahead / self._shares
        else:
            self._served = 0.0

    def give(self, group: str, work: float) -> None:
        """Note that the group was given so much; or less than nothing, when something took less than was thought."""
        account = self._accounts.get(group)
        if account is not None and isfinite(work):
            self._add(account, max(-_MOST_WORK, min(_MOST_WORK, work)))

    def deficit(self, group: str) -> float:
        """Return the work that the group is owed; negative: that it was given in advance."""
        account = self._accounts.get(group)
        if account is None:
            return 0.0
        most = self._most_owed_s * account.share / self._shares
        ahead = self._ahead(account)
        if not -most <= ahead <= most:
            part = 1.0 - account.share / self._shares
            within = most if ahead > 0.0 else -most
            self._add(account, (within - ahead) / part if part > 0.0 else 0.0)
            ahead = within
        return -ahead

    def _sum_shares(self) -> None:
        """Anew: adding and taking away again would leave what was rounded."""
        self._shares = sum([account.share for account in self._accounts.values()])

    def _ahead(self, account: _Account) -> float:
        return account.work - account.share * self._served

    def _add(self, account: _Account, work: float) -> None:
        account.work += work
        self._served += work / self._shares
