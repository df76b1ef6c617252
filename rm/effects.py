"""What the core asks of the world: values that `rm.daemon` carries out in one place, in the order they come.

Each outcome returns to the core as a call: `application_stored`, `conclusion_stored`, `master_launched`, …
"""

from dataclasses import dataclass

from rm.applications.records import Application, Attempt


@dataclass(frozen=True, slots=True)
class StoreSubmission:
    """Write the application down BEFORE its submission is acknowledged."""

    application: Application


@dataclass(frozen=True, slots=True)
class StoreChange:
    """Write down its priority, queue and lifetime BEFORE the change is acknowledged."""

    application: Application


@dataclass(frozen=True, slots=True)
class StoreAttempt:
    """Note that an attempt with this number was begun; nobody waits for it."""

    application: Application
    number: int


@dataclass(frozen=True, slots=True)
class NoteAttempt:
    """Write down what is known of an attempt; nobody waits for it."""

    application: Application
    number: int
    record: str


@dataclass(frozen=True, slots=True)
class StoreConclusion:
    """Write down how the application ended BEFORE anybody is told."""

    application: Application


@dataclass(frozen=True, slots=True)
class StoreUse:
    """Note what the application has used, as far as it has; nobody waits for it."""

    application: Application


@dataclass(frozen=True, slots=True)
class ForgetApplication:
    """Delete it from the store."""

    application: Application


@dataclass(frozen=True, slots=True)
class LaunchMaster:
    """Start the attempt's master in its container."""

    attempt: Attempt


StoreEffect = (
    StoreSubmission | StoreChange | StoreAttempt | NoteAttempt | StoreConclusion | StoreUse | ForgetApplication
)
Effect = StoreEffect | LaunchMaster
