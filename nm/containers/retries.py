"""Whether and when a container whose process failed is run again in place, as its launch context asks.

The rules of Hadoop's SlidingWindowRetryPolicy: never after success and never after a kill from outside; otherwise by
policy and exit code, as often as is granted, each time after the interval. With a validity interval, only failures
younger than that count.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from yaqd.proto import yarn_common_pb2 as pb

#: ended by somebody's SIGKILL or SIGTERM
_KILLED = (137, 143)
_FOR_EVER = -1
#: failures remembered where they age; a container that is granted more counts as granted this many
_REMEMBERED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """What the launch context grants; the default grants nothing."""

    #: None: whatever the exit code
    exit_codes: Collection[int] | None = ()
    #: -1: without end
    retries_max: int = 0
    interval_s: float = 0.0
    #: failures older than this are forgiven; None: never
    validity_s: float | None = None

    @classmethod
    def from_pb(cls, message: pb.ContainerRetryContext) -> "RetryPolicy":
        """Reads the message. One without its field set is the default; so is a policy that nobody knows."""
        has_codes = message.retry_policy == pb.RETRY_ON_SPECIFIC_ERROR_CODES
        if not has_codes and message.retry_policy != pb.RETRY_ON_ALL_ERRORS:
            return cls()
        validity_ms = message.failures_validity_interval
        return cls(
            exit_codes=frozenset(message.error_codes) if has_codes else None,
            retries_max=message.max_retries,
            interval_s=max(0, message.retry_interval) / 1000,
            validity_s=validity_ms / 1000 if validity_ms > 0 else None,
        )


class Retries:
    """One container's failures so far."""

    def __init__(self, policy: RetryPolicy, *, interval_min_s: float) -> None:
        self._policy = policy
        self._interval_s = max(policy.interval_s, interval_min_s)
        self._failed_at: deque[float] = deque(maxlen=_REMEMBERED_MAX)

    @property
    def may_grant(self) -> bool:
        """Whether some exit code could lead to another try."""
        return self._policy.exit_codes is None or bool(self._policy.exit_codes)

    def delay_after(self, exit_code: int, now: float) -> float | None:
        """Books the end of a process. Seconds until the container runs again; None: it is over."""
        policy = self._policy
        if exit_code == 0 or exit_code in _KILLED:
            return None
        if policy.exit_codes is not None and exit_code not in policy.exit_codes:
            return None
        if policy.retries_max == _FOR_EVER:
            return self._interval_s
        while policy.validity_s is not None and self._failed_at and now - self._failed_at[0] > policy.validity_s:
            self._failed_at.popleft()
        if len(self._failed_at) >= min(policy.retries_max, _REMEMBERED_MAX):
            return None
        self._failed_at.append(now)
        return self._interval_s
