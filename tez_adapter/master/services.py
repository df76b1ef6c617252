"""What a kind of job serves beside the umbilical: to its own processes, to its clients, to the ResourceManager."""

from typing import Any

from tez_adapter.exploration.service import ExplorationService
from tez_adapter.jobspec import JobSpec
from tez_adapter.training.service import TrainingService


def service_of(spec: JobSpec, *arguments: Any, **more: Any) -> TrainingService | ExplorationService | None:
    """Return the service of a job; None where its kind has none. Made in the event loop."""
    return TrainingService.of(spec, *arguments, **more) or ExplorationService.of(spec, *arguments, **more)
