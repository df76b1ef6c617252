"""Containers that outlive their master: the next attempt takes them over, where the application asked for that.

As Hadoop does for `keep_containers_across_application_attempts` (CapacityScheduler.doneApplicationAttempt,
RMAppAttemptImpl.transferStateFromAttempt): what runs goes on, and what has not started yet is ended. The new master
hears how containers ended, also what the old one may not have heard.
"""

from rm.applications.records import Attempt, RmContainer


def outlives(container: RmContainer) -> bool:
    """Return whether the container stays, when its attempt's containers are kept."""
    return container.is_started


def hand_over(old: Attempt, new: Attempt) -> None:
    """Hand what is left of the attempt that failed over to the next."""
    for container in old.containers.values():
        container.attempt = new
    new.containers, old.containers = old.containers, {}
    new.completions = [*old.told_completions, *old.completions]
    old.told_completions, old.completions = [], []
    new.updated, old.updated = old.updated, {}
    new.notices, old.notices = old.notices, {}
