"""One run: record, play hostile conversations to every port in turn, measure, judge."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.hostile.fuzz_cluster import FuzzCluster, Health
from tests.hostile.fuzz_corpus import Corpus
from tests.hostile.fuzz_driver import Door, Tally, play
from tests.hostile.fuzz_good_clients import GoodClients
from tests.hostile.fuzz_mutations import Script, calls_script, http_script, opening_script

_MB = 1 << 20
#: enough to see what is wrong; each has cost the time that a server has to hang up
_VIOLATIONS_MAX = 10
#: turns without one frame, each after the application and the cluster were found well
_IN_VAIN_MAX = 20
#: pools of threads and connections among daemons come and go; a leak would keep one for each of thousands of scripts
_DESCRIPTORS_MAX = 16
_GROWTH_MAX_BYTES = 64 * _MB
_ANSWER_MAX_S = 10.0
#: one per peer, minute and server of the three daemons, with room for what the cluster says of its own fate
_LINES_PER_MINUTE_MAX = 300
#: these make up nodes and applications, after which the cluster has to settle
_UNSETTLING = ("admin", "tracker")
Note = Callable[[str], None]
#: a record of ours with a traceback; what a job's own diagnostics tell of its master is not
_FAULT = re.compile(r"^\S+ \S+ (?:ERROR|CRITICAL) .*\nTraceback.*(?:\n .*)*(?:\n\w.*)?", re.MULTILINE)


@dataclass(slots=True)
class Report:
    seed: int
    tallies: dict[str, Tally] = field(default_factory=dict)
    seconds: float = 0.0
    before: dict[str, Health] = field(default_factory=dict)
    #: after a tenth of the frames: caches are warm, what grows from here on grows for ever
    warm: dict[str, Health] = field(default_factory=dict)
    after: dict[str, Health] = field(default_factory=dict)
    log_lines: int = 0
    waits_s: list[tuple[float, str]] = field(default_factory=list)
    #: what must not be; empty when all is well
    complaints: list[str] = field(default_factory=list)

    @property
    def frames(self) -> int:
        return sum(tally.frames for tally in self.tallies.values())

    def lines(self) -> Iterator[str]:
        yield f"{'target':<12}{'frames':>10}{'connections':>13}{'MB sent':>9}{'MB back':>9}{'turned away':>13}"
        for name, t in self.tallies.items():
            yield (
                f"{name:<12}{t.frames:>10}{t.connections:>13}{t.sent_bytes / _MB:>9.1f}{t.received_bytes / _MB:>9.1f}"
                f"{t.turned_away:>13}"
            )
        yield f"{'all':<12}{self.frames:>10} frames in {self.seconds:.0f} s, seed {self.seed}"
        for name, start in self.before.items():
            warm, end = self.warm[name], self.after[name]
            yield (
                f"{name}: PSS {start.pss_bytes / _MB:.0f} MB, warm {warm.pss_bytes / _MB:.0f}, "
                f"end {end.pss_bytes / _MB:.0f}; descriptors {start.descriptors}, end {end.descriptors}"
            )
        waits = sorted(wait_s for wait_s, _ in self.waits_s)
        yield (
            f"good clients: {len(waits)} answers, half within {waits[len(waits) // 2] * 1000:.0f} ms, "
            f"99% within {waits[len(waits) * 99 // 100] * 1000:.0f} ms, slowest {waits[-1] * 1000:.0f} ms "
            f"({max(self.waits_s)[1]})"
        )
        yield f"the daemons logged {self.log_lines} warnings"
        yield from (f"WRONG: {complaint}" for complaint in self.complaints)


def scripts(corpus: Corpus, server: str, *, is_admitted: bool, seed: str) -> Iterator[Script]:
    """Endless hostile conversations for one target. The same seed and recordings give the same ones."""
    for index in range(1 << 62):
        random = Random(f"{seed}:{index}")
        if server in corpus.http:
            yield http_script(corpus.http[server], random)
            continue
        conversation = random.choice(corpus.rpc[server])
        if not is_admitted:
            yield opening_script(conversation, random)
            continue
        chunks, breaks, what = calls_script(conversation, random)
        yield Script(chunks, breaks, what)


class Run:
    def __init__(
        self, cluster: FuzzCluster, corpus: Corpus, *, frames: int, seed: int, rounds: int, note: Note
    ) -> None:
        self._note = note
        self._cluster = cluster
        self._corpus = corpus
        self._frames = frames
        self._rounds = rounds
        self._report = Report(seed)
        self._streams: dict[str, Iterator[Script]] = {}

    def run(self) -> Report:
        report, cluster = self._report, self._cluster
        lines_before, began = len(cluster.warnings()), time.monotonic()
        report.before = cluster.health()
        with GoodClients(cluster) as clients:
            for number in range(self._rounds):
                self._round(number)
                if number == 0:
                    report.warm = cluster.health()
        report.seconds = time.monotonic() - began
        cluster.run_job("after-out")
        report.waits_s = clients.waits_s
        report.after = self._idle_health()
        report.log_lines = len(cluster.warnings()) - lines_before
        self._judge(clients)
        return report

    def _round(self, number: int) -> None:
        cluster = self._cluster
        for target in list(cluster.doors()):
            cluster.stay()
            began = time.monotonic()
            self._attack(target, (number + 1) * self._frames // self._rounds)
            took_s = time.monotonic() - began
            self._note(f"round {number + 1}: {target}: {self._report.tallies[target].frames} frames, {took_s:.1f} s")
            cluster.health()
            if target in _UNSETTLING:
                cluster.settle()

    def _attack(self, target: str, frames: int) -> None:
        """Bring the target to its share of `frames` in all."""
        targets = list(self._cluster.doors())
        tally = self._report.tallies.setdefault(target, Tally())
        share = frames // len(targets)
        in_vain = 0
        while tally.frames < share and len(tally.violations) < _VIOLATIONS_MAX and in_vain < _IN_VAIN_MAX:
            before = tally.frames
            server, door = self._cluster.doors()[target]
            goal = min(share, tally.frames + 4000)
            asyncio.run(self._play(target, server, door, tally, goal))
            if tally.frames < goal:
                self._cluster.stay()  # a call was good enough to end the application: take the next one
            in_vain = in_vain + 1 if tally.frames == before else 0
            if in_vain:
                self._cluster.settle()
        if in_vain == _IN_VAIN_MAX:
            self._report.complaints.append(f"{target}: nobody was let in, {in_vain} times one after another")

    async def _play(self, target: str, server: str, door: Door, tally: Tally, goal: int) -> None:
        away = tally.turned_away

        def is_over() -> bool:
            return tally.frames >= goal or tally.turned_away - away > 50

        # a quarter of the connections never gets past the door
        stream = self._stream(target, server, is_admitted=True)
        strangers = self._stream(target, server, is_admitted=False)
        bare, stuck = Door(door.host, door.port), self._cluster.dump_stacks
        stop = tally.frames + (goal - tally.frames) // 4
        if server in self._corpus.http:
            await play(bare, stream, tally, is_over, stuck)
            return
        await play(bare, strangers, tally, lambda: tally.frames >= stop, stuck)
        if door.token is None:
            opened = self._opened(server, stream)
            await play(bare, opened, tally, is_over, stuck)
        else:
            await play(door, stream, tally, is_over, stuck)

    def _stream(self, target: str, server: str, *, is_admitted: bool) -> Iterator[Script]:
        name = f"{target}:{'calls' if is_admitted else 'openings'}"
        if name not in self._streams:
            seed = f"{self._report.seed}:{name}"
            self._streams[name] = scripts(self._corpus, server, is_admitted=is_admitted, seed=seed)
        return self._streams[name]

    def _opened(self, server: str, stream: Iterator[Script]) -> Iterator[Script]:
        """The scripts behind an opening that a port without tokens accepts."""
        opening = next(c.opening for c in self._corpus.rpc[server] if len(c.opening) == 2)
        for script in stream:
            yield Script((*opening, *script.chunks), script.breaks, script.what)

    def _idle_health(self) -> dict[str, Health]:
        """Once the last connections are gone, or after some seconds."""
        deadline = time.monotonic() + 10
        while True:
            health = self._cluster.health()
            more = [h.descriptors - self._report.before[name].descriptors for name, h in health.items()]
            if max(more) <= _DESCRIPTORS_MAX or time.monotonic() > deadline:
                return health
            time.sleep(0.2)

    def _judge(self, clients: GoodClients) -> None:
        report = self._report
        complain = report.complaints.append
        for target, tally in report.tallies.items():
            for what, script in tally.violations[:3]:
                complain(f"{target}: {what}: {script.what}: {b''.join(script.chunks)[:300]!r}")
        for name, health in report.after.items():
            if health.pss_bytes > report.warm[name].pss_bytes + _GROWTH_MAX_BYTES:
                complain(f"{name} grew by {(health.pss_bytes - report.warm[name].pss_bytes) / _MB:.0f} MB")
            if health.descriptors > report.before[name].descriptors + _DESCRIPTORS_MAX:
                complain(f"{name} keeps {health.descriptors - report.before[name].descriptors} descriptors")
        if clients.failures:
            complain(f"{len(clients.failures)} good calls failed, the first: {clients.failures[0]}")
        slowest_s, name = max(clients.waits_s)
        if slowest_s > _ANSWER_MAX_S:
            complain(f"a good client of {name} waited {slowest_s:.1f} s")
        allowed = _LINES_PER_MINUTE_MAX * (report.seconds / 60 + 1)
        if report.log_lines > allowed:
            complain(f"{report.log_lines} warnings logged, at most {allowed:.0f} are expected; the most frequent:")
            report.complaints += [f"{n} times: {line}" for line, n in self._frequent()]
        faults = _FAULT.findall("\n".join(self._cluster.log_lines()))
        report.complaints += [f"{len(faults)} faults in the logs, the first: {faults[0]}"] if faults else []
        report.complaints += [f"a job manager failed, see {path}" for path in self._cluster.master_tracebacks()[:3]]

    def _frequent(self) -> list[tuple[str, int]]:
        shapes = Counter(re.sub(r"\d+", "#", line)[:160] for line in self._cluster.warnings())
        return shapes.most_common(8)


def fuzz(folder: Path, *, frames: int, seed: int, rounds: int, note: Note = lambda text: None) -> Report:
    """Run against a cluster of its own under `folder`; `note` hears how far it is."""
    with FuzzCluster(folder) as cluster:
        corpus = cluster.record()
        note(f"recorded {corpus}")
        return Run(cluster, corpus, frames=frames, seed=seed, rounds=rounds, note=note).run()
