"""What the shuffle service counts."""

from dataclasses import dataclass, field

from nm.shuffle.answer import ReadCounts


@dataclass(slots=True)
class JobCounts:
    """What one job's reducers asked for, and what it took."""

    segments: int = 0
    reads: ReadCounts = field(default_factory=ReadCounts)


@dataclass(slots=True)
class ShuffleStatistics:
    connections: int = 0
    requests: int = 0
    refused: int = 0
    segments: int = 0
    sent_bytes: int = 0
    reads: ReadCounts = field(default_factory=ReadCounts)
    #: of jobs not over
    of_jobs: dict[str, JobCounts] = field(default_factory=dict)

    def segments_of(self, job_id: str) -> int:
        """Returns how many of the job's segments were asked for."""
        counts = self.of_jobs.get(job_id)
        return 0 if counts is None else counts.segments
