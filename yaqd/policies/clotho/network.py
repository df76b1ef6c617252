"""The network: embeds stages, jobs and the cluster, scores stages, and says how many containers each job should have.

Messages go from stages that nothing waits for to those that others wait for: x_i = g(sum of f(x_j) over j that wait for
i) + x_i. Each job sums up its stages, the cluster its jobs, with f and g of their own. Jobs that did not change keep
what was worked out of them. Sums are in float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, log1p
from typing import Final, NamedTuple

import numpy as np

from yaqd.policies.clotho.facts import Scene, StageJob
from yaqd.policies.clotho.known import (
    CHAIN,
    CHAIN_WORK,
    CLAIMABLE,
    EST,
    OPEN,
    WAIT,
    Block,
    Chains,
    block_of,
    chains_of,
    choosable,
)
from yaqd.policies.clotho.shapes import CLUSTER, EMB, HEAD, LEAK, RAW, WIDE
from yaqd.policies.clotho.weights import is_linear
from yaqd.policies.curves.samples import Bools, Floats, Ints

#: messages of jobs are summed up in units of this many jobs
_JOBS: Final = 8.0
_EXPONENT_MAX: Final = 12.0
#: scores nearer than this, or than this part of them, are equal: the earlier stage goes first
TIE: Final = 1e-9
_SPARE: Final = 64
#: columns of a job's row: plain facts, then message to the cluster, then what heads add
_WORK, _LONGEST, _WHOLE, _UNCLAIMED, _CLAIMS, _OPEN_CLAIMS, _HAS, _IDLE = range(8)
_TOLD: Final = 8
_SCORE_ADDS: Final = _TOLD + EMB
_LIMIT_ADDS: Final = _SCORE_ADDS + HEAD
_FACTS: Final = 6


class _Kept(NamedTuple):
    job: StageJob
    #: slots and the duration that unknown ones count for: what it was worked out with
    under: tuple[int, float]
    row: Floats
    #: choosable stages: number, facts, what the score adds
    stages: Ints
    facts: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What the network says of a scene; stages are those that may be chosen, end to end."""

    job: Ints
    stage: Ints
    claimable: Ints
    score: Floats
    #: by job: containers that it should have, and that it has
    limit: Floats
    has: Floats
    #: by job: the logarithm behind the limit
    logarithm: Floats


def _leak(x: Floats) -> Floats:
    return np.maximum(x, x * LEAK)


class Network:
    """Scores scenes with given weights, which are of the right shapes (`weights.py`)."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        self._w: Final = {name: np.asarray(array, dtype=np.float64) for name, array in weights.items()}
        #: layers that count for nothing are not worked out
        self._is_linear: Final = is_linear(self._w)
        self._kept: dict[int, _Kept] = {}

    def scores(self, scene: Scene) -> Scores:
        """Return scores of all stages that may be chosen, and limits of all jobs."""
        kept = self._look(scene)
        rows = np.stack([one.row for one in kept])
        cluster, wanting, mean_s = self._cluster(scene, rows)
        logarithm = self._limits(scene, rows, cluster, wanting, mean_s)
        limit = np.clip(np.ceil(np.exp(np.minimum(logarithm, _EXPONENT_MAX)) - 1e-6), 1.0, float(scene.slots))
        job = np.repeat(np.arange(len(kept)), [len(one.stages) for one in kept])
        facts = np.concatenate([one.facts for one in kept])
        score = self._stages(scene, rows, cluster, wanting, limit, job, facts)
        return Scores(
            job,
            np.concatenate([one.stages for one in kept]),
            facts[:, CLAIMABLE].astype(np.int64),
            score,
            limit,
            rows[:, _HAS],
            logarithm,
        )

    # ------------------------------------------------------------------------------------------ layers

    def _two(self, name: str, x: Floats) -> Floats:
        w = self._w
        hidden = _leak(x @ w[f"{name}_hidden"] + w[f"{name}_hidden_bias"])
        return np.asarray(hidden @ w[f"{name}_out"] + w[f"{name}_out_bias"])

    def _look(self, scene: Scene) -> list[_Kept]:
        kept, under = self._kept, (scene.slots, scene.unknown_s)
        new = [
            job for job in scene.jobs if (old := kept.get(id(job))) is None or old.job is not job or old.under != under
        ]
        if new:
            for one in self._embed(new, scene):
                kept[id(one.job)] = one
        if len(kept) > 2 * len(scene.jobs) + _SPARE:
            live = {id(job) for job in scene.jobs}
            self._kept = kept = {number: one for number, one in kept.items() if number in live}
        return [kept[id(job)] for job in scene.jobs]

    def _embed(self, jobs: Sequence[StageJob], scene: Scene) -> list[_Kept]:
        block = block_of(jobs, scene.unknown_s)
        chains = chains_of(block)
        chosen, number, facts, cuts = choosable(block, chains)
        rows = _job_rows(jobs, chains)
        if not self._is_linear:
            rows, adds = self._embed_block(block, chains, rows, scene.slots, chosen)
            facts = np.concatenate((facts, adds), axis=1)
        # cut, not copied: the parts of a block are kept about as long as each other
        under = (scene.slots, scene.unknown_s)
        each = zip(jobs, rows, cuts[:-1], cuts[1:], strict=True)
        return [_Kept(job, under, row, number[low:high], facts[low:high]) for job, row, low, high in each]

    def _embed_block(
        self, block: Block, chains: Chains, plain: Floats, slots: int, chosen: Ints
    ) -> tuple[Floats, Floats]:
        """Return rows of jobs, and what the score adds for the stages chosen."""
        raw = _stage_features(block, chains, slots)
        own = self._pass_messages(block, _leak(raw @ self._w["enter"] + self._w["enter_bias"]))
        both = np.concatenate((raw, own), axis=1)
        told = np.where((block.unfinished > 0)[:, None], self._two("job_f", both), 0.0)
        embedding = self._two("job_g", np.add.reduceat(told, block.begin, axis=0))
        message = self._two("cluster_f", np.concatenate((_job_features(plain, slots), embedding), axis=1))
        adds = (embedding @ self._w["score_job"], embedding @ self._w["limit_job"])
        return np.concatenate((plain, message, *adds), axis=1), both[chosen] @ self._w["score_stage"]

    def _pass_messages(self, block: Block, own: Floats) -> Floats:
        """Return embeddings of stages; `own` is what they begin with."""
        for level in block.levels:
            told = self._two("stage_f", own[level.child])
            own[level.parent] += self._two("stage_g", np.add.reduceat(told, level.first, axis=0))
        return own

    def _cluster(self, scene: Scene, rows: Floats) -> tuple[Floats, float, float]:
        """Return the embedding of the cluster, how many jobs want containers, and the mean work of all, s."""
        many = len(rows)
        wanting = float((rows[:, _UNCLAIMED] > 0).sum())
        mean_s = float(rows[:, _WORK].sum()) / many
        if self._is_linear:
            return np.empty(0), wanting, mean_s
        x = np.empty(EMB + CLUSTER)
        x[:EMB] = rows[:, _TOLD : _TOLD + EMB].sum(axis=0) / _JOBS
        x[EMB:] = (
            log1p(many) / 3.0,
            log1p(wanting) / 3.0,
            log1p(mean_s) / 8.0,
            log(scene.slots / 50.0),
            log1p(scene.move_s),
            float(rows[:, _IDLE].sum()) / scene.slots,
        )
        return self._two("cluster_g", x), wanting, mean_s

    def _limits(self, scene: Scene, rows: Floats, cluster: Floats, wanting: float, mean_s: float) -> Floats:
        w, work = self._w, rows[:, _WORK]
        ones, size, many = np.ones(len(rows)), np.log1p(work), log(max(wanting, 1.0))
        x = np.stack(
            (
                ones,
                size,
                ones * many,
                ones * log(scene.slots / 50.0),
                np.log((1.0 + work) / (1.0 + mean_s)),
                np.log((1.0 + work) / (1.0 + rows[:, _LONGEST])),
                ones * log1p(scene.move_s),
                1.0 - work / np.maximum(rows[:, _WHOLE], 1e-9),
                np.log1p(rows[:, _UNCLAIMED]),
                np.log1p(rows[:, _OPEN_CLAIMS]),
                np.log1p(rows[:, _WHOLE]),
                size * size / 8.0,
                size * many / 4.0,
                np.log1p(rows[:, _LONGEST]),
                ones * many * many / 2.0,
            ),
            axis=1,
        )
        if self._is_linear:
            return np.asarray(x @ w["limit_linear"])
        hidden = rows[:, _LIMIT_ADDS : _LIMIT_ADDS + HEAD] + (cluster @ w["limit_cluster"] + w["limit_bias"])
        hidden = _leak(hidden + x @ w["limit_wide"])
        return np.asarray(x @ w["limit_linear"] + hidden @ w["limit_out"])

    def _stages(
        self, scene: Scene, rows: Floats, cluster: Floats, wanting: float, limit: Floats, job: Ints, facts: Floats
    ) -> Floats:
        w, row = self._w, rows[job]
        work, has = row[:, _WORK], row[:, _HAS]
        x = np.empty((len(job), WIDE))
        is_own = (job == scene.source).astype(np.float64)
        x[:, 0] = -work / 100.0
        x[:, 1] = -np.log1p(work)
        x[:, 2] = is_own
        x[:, 3] = facts[:, OPEN]
        x[:, 4] = is_own * facts[:, OPEN]
        x[:, 5] = facts[:, CHAIN] / np.maximum(row[:, _LONGEST], 1e-9)
        x[:, 6] = facts[:, CHAIN_WORK] / np.maximum(work, 1e-9)
        x[:, 7] = np.minimum(facts[:, CLAIMABLE], scene.free) / max(scene.free, 1)
        x[:, 8] = np.log(0.01 + facts[:, EST])
        x[:, 9] = np.minimum(has / limit[job], 3.0)
        x[:, 10] = np.log1p(has)
        x[:, 11] = -np.minimum(facts[:, WAIT], 30.0) / 10.0
        x[:, 12] = is_own * log1p(scene.move_s)
        x[:, 13] = 1.0 - work / np.maximum(row[:, _WHOLE], 1e-9)
        x[:, 14] = has == 0
        x[:, 15] = np.log((1.0 + work) / (1.0 + has))
        x[:, 16] = is_own * (has > limit[job])
        x[:, 17] = is_own * np.maximum(np.log(np.maximum(has, 1.0) / limit[job]), 0.0)
        many = log(max(wanting, 1.0))
        x[:, 18] = np.log1p(row[:, _UNCLAIMED])
        x[:, 19] = x[:, 1] * many / 2.0
        x[:, 20] = x[:, 10] * many / 2.0
        x[:, 21] = is_own * x[:, 8]
        x[:, 22] = np.log1p(row[:, _LONGEST])
        x[:, 23] = is_own * many
        x[:, 24] = np.log1p(facts[:, EST] * facts[:, CLAIMABLE])
        if self._is_linear:
            return np.asarray(x @ w["score_linear"])
        hidden = row[:, _SCORE_ADDS : _SCORE_ADDS + HEAD] + facts[:, _FACTS : _FACTS + HEAD]
        hidden = _leak(hidden + x @ w["score_wide"] + (cluster @ w["score_cluster"] + w["score_bias"]))
        return np.asarray(x @ w["score_linear"] + hidden @ w["score_out"])


def _stage_features(block: Block, chains: Chains, slots: int) -> Floats:
    x = np.empty((len(block.owner), RAW))
    x[:, 0] = np.log1p(block.unclaimed) / 5.0
    x[:, 1] = np.log1p(block.unfinished) / 5.0
    x[:, 2] = block.running / slots
    x[:, 3] = np.log(0.01 + block.est_s) / 3.0
    x[:, 4] = np.log1p(block.est_s * block.unfinished) / 8.0
    x[:, 5] = block.is_open
    x[:, 6] = block.coming / slots
    x[:, 7] = np.log1p(chains.chain_s) / 5.0
    return x


def _job_rows(jobs: Sequence[StageJob], chains: Chains) -> Floats:
    held = np.array([(job.containers, job.idle) for job in jobs], dtype=np.float64)
    return np.column_stack((chains.work_s, chains.longest_s, chains.whole_s, chains.tasks, held))


def _job_features(rows: Floats, slots: int) -> Floats:
    return np.stack(
        (
            np.log1p(rows[:, _WORK]) / 8.0,
            np.log1p(rows[:, _LONGEST]) / 5.0,
            rows[:, _HAS] / slots,
            rows[:, _IDLE] / slots,
            np.log1p(rows[:, _UNCLAIMED]) / 6.0,
            np.log1p(rows[:, _CLAIMS]) / 6.0,
            np.log1p(rows[:, _OPEN_CLAIMS]) / 6.0,
            1.0 - rows[:, _WORK] / np.maximum(rows[:, _WHOLE], 1e-9),
        ),
        axis=1,
    )


def allowed(scores: Scores, source: int) -> Bools:
    """Return which stages may have containers by their job's limit; a job may always keep what it has."""
    return np.asarray((scores.job == source) | (scores.has < scores.limit)[scores.job])


def softmax(values: Floats, mask: Bools) -> Floats:
    """Return probabilities of what the mask leaves; where it leaves nothing, zeros."""
    if not mask.any():
        return np.zeros(len(values))
    raised = np.where(mask, np.exp(np.where(mask, values, -np.inf) - values[mask].max()), 0.0)
    return np.asarray(raised / raised.sum())


def limit_chances(logarithm: float, least: int, slots: int, sharpness: float = 8.0) -> Floats:
    """Return the probability of each limit from 1 to `slots`; those below `least` have none.

    The likeliest is the one whose logarithm is nearest to what the network says.
    """
    limits = np.arange(1, slots + 1)
    return softmax(-sharpness * (np.log(limits) - logarithm) ** 2, limits >= min(least, slots))
