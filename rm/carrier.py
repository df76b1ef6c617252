"""Carries out what the scheduler decides: each decision in one place, whatever event led to it."""

from typing import assert_never

from rm.applications.life import Applications
from rm.applications.preemption import PreemptionMonitor
from rm.applications.quality import QualityMonitor
from rm.applications.stages import StagesMonitor
from rm.cluster import Cluster
from rm.scheduler.decisions import (
    AcceptApplication,
    Allocate,
    CoresTargeted,
    Decision,
    Preempt,
    RefuseApplication,
    StagesOrdered,
    Update,
    Warn,
)
from rm.services.updates import ContainerUpdates


class Carrier:
    def __init__(
        self,
        cluster: Cluster,
        applications: Applications,
        updates: ContainerUpdates,
        preemption: PreemptionMonitor,
        quality: QualityMonitor,
        stages: StagesMonitor,
    ) -> None:
        self._cluster = cluster
        self._applications = applications
        self._updates = updates
        self._preemption = preemption
        self._quality = quality
        self._stages = stages

    def carry_out(self, decision: Decision) -> None:
        match decision:
            case Allocate():
                self._cluster.allocate(decision)
            case Update():
                self._updates.granted(decision)
            case AcceptApplication():
                self._applications.accepted(decision)
            case RefuseApplication():
                self._applications.refused(decision)
            case Warn():
                self._preemption.warn(decision)
            case Preempt():
                self._preemption.kill(decision)
            case CoresTargeted():
                self._quality.targeted(decision)
            case StagesOrdered():
                self._stages.ordered(decision)
            case _:
                assert_never(decision)
