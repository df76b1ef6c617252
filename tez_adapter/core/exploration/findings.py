"""What reports and failures show of an exploration as a whole: its best trial, what is odd, whether anything works."""

from collections.abc import Collection, Iterable
from math import inf, isfinite

from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.records import absent_text, limit_text, odd_text, scale_text
from tez_adapter.core.exploration.rules import Rules
from tez_adapter.core.exploration.runs import Run


class Findings:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        #: the trial with the best metric that keeps the limits; None before there is one
        self.best: int | None = None
        self._best_risen = -inf
        #: some trial has reported the metric
        self.has_reported = False
        #: trials in a row that failed before that, and the first one's error
        self._failed = 0
        self._first_error = ""
        self._said: set[str] = set()

    def heard(self, number: int, risen: float, *, held: bool) -> None:
        """Note a report. `risen`: the metric as policies see it. `held`: it keeps the limits."""
        self.has_reported = True
        if held and isfinite(risen) and risen > self._best_risen:
            self.best, self._best_risen = number, risen

    def odd(self, event: ev.TrialReported, risen: float) -> list[str]:
        """Return what is to be said of a report, each thing once: a metric that is no number or beyond a bound, a
        limit's that is missing."""
        lines = []
        if not self._rules.metric.is_within(event.value) or not isfinite(event.value):
            about = f"odd {isfinite(event.value)} {isfinite(risen)}"
            lines += self._once(about, odd_text(event, risen, self._rules.metric_name))
        elif self._rules.takes_unit and not 0.0 <= risen <= 1.0:
            lines += self._once("scale", scale_text(event, self._rules.metric_name))
        for limit in self._rules.limits:
            if limit.name not in event.metrics:
                lines += self._once(limit.name, limit_text(limit.name, list(event.metrics)))
        return lines

    def absent(self, event: ev.ReportLeftOut) -> list[str]:
        """Return what is to be said of a report without the metric, once."""
        return self._once("absent", absent_text(event, self._rules.metric_name))

    def failed(self, error: str, trials: int) -> str:
        """Note that a trial failed; return why the exploration has, "" where it goes on. `trials`: of all."""
        if self.has_reported:
            return ""
        self._failed += 1
        self._first_error = self._first_error or error
        if self._failed < min(self._rules.hopeless, trials):
            return ""
        return f"{self._failed} trials failed and none reported anything: {self._first_error}"

    def works(self, runs: Iterable[Run]) -> bool:
        """Return whether some trial has reported the metric, and not all have failed."""
        return self.has_reported and not all(run.error for run in runs if run.params is not None)

    def end(self, runs: Collection[Run], *, waits: bool) -> tuple[bool, str]:
        """Return whether an exploration without a winner has succeeded that has nothing to start, and why it ends.

        `waits`: some trial has epochs left.
        """
        errors = [run.error for run in runs if run.params is not None]
        if errors and all(errors):
            return False, f"all {len(errors)} trials failed, as the first one: {errors[0]}"
        return True, "no trial is worth another epoch" if waits else "all trials have ended"

    def _once(self, about: str, line: str) -> list[str]:
        if about in self._said:
            return []
        self._said.add(about)
        return [line]
