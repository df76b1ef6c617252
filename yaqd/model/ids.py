"""Identifiers and their string forms as Hadoop prints them.

Every identifier is a frozen value that sorts in creation order, so that it can end any sort key. They are named tuples
because they key every table of a daemon: tuples are hashed and compared without running any Python.
"""

import re
from typing import NamedTuple, Self

_SEQUENCE_BITS = 40
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1

# as Hadoop reads them: numbers may have fewer digits than it prints
_APPLICATION = re.compile(r"application_(\d{1,19})_(\d{1,10})\Z", re.ASCII)
_ATTEMPT = re.compile(r"appattempt_(\d{1,19})_(\d{1,10})_(\d{1,10})\Z", re.ASCII)
_CONTAINER = re.compile(r"container_(?:e(\d{1,8})_)?(\d{1,19})_(\d{1,10})_(\d{1,10})_(\d{1,13})\Z", re.ASCII)
_NODE = re.compile(r"([^\s:/]{1,255}):(\d{1,5})\Z", re.ASCII)


class BadIdentifier(ValueError):
    """A text that is not the identifier it should be."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"not {'an' if kind[0] in 'aeiou' else 'a'} {kind} id: {text[:120]!r}")
        self.kind = kind
        self.text = text


class ApplicationId(NamedTuple):
    #: start time of the ResourceManager that made the id, epoch ms
    cluster_timestamp: int
    #: 1, 2, 3, ... within that ResourceManager
    id: int

    def __str__(self) -> str:
        return f"application_{self.cluster_timestamp}_{self.id:04d}"

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _APPLICATION.match(text)
        if match is None:
            raise BadIdentifier("application", text)
        return cls(int(match[1]), int(match[2]))


class ApplicationAttemptId(NamedTuple):
    application_id: ApplicationId
    #: 1, 2, ... within the application
    attempt: int

    def __str__(self) -> str:
        app = self.application_id
        return f"appattempt_{app.cluster_timestamp}_{app.id:04d}_{self.attempt:06d}"

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _ATTEMPT.match(text)
        if match is None:
            raise BadIdentifier("application attempt", text)
        return cls(ApplicationId(int(match[1]), int(match[2])), int(match[3]))


class ContainerId(NamedTuple):
    attempt_id: ApplicationAttemptId
    #: signed 64-bit: the ResourceManager's epoch above bit 40, the sequence number below it
    id: int

    @classmethod
    def make(cls, attempt_id: ApplicationAttemptId, sequence: int, *, epoch: int = 0) -> Self:
        # what the class itself would do, without the named tuple's own `__new__` in between: there is one a container
        return tuple.__new__(cls, (attempt_id, (epoch << _SEQUENCE_BITS) | sequence))

    @staticmethod
    def start(epoch: int) -> int:
        """Return where an epoch's ids begin: a scheduler counts up from there, proxies at the nodes down."""
        return epoch << _SEQUENCE_BITS

    @property
    def application_id(self) -> ApplicationId:
        return self.attempt_id.application_id

    @property
    def counted_down(self) -> "ContainerId":
        """The id that prints the same where it was counted down from 0, as proxies at the nodes of epoch 0 do.

        Its text does not tell it from one far up; whoever parses a text and knows no such container looks for this.
        """
        return ContainerId(self.attempt_id, self.sequence - (1 << _SEQUENCE_BITS))

    @property
    def epoch(self) -> int:
        return self.id >> _SEQUENCE_BITS

    @property
    def sequence(self) -> int:
        return self.id & _SEQUENCE_MASK

    def __str__(self) -> str:
        app = self.attempt_id.application_id
        prefix = f"container_e{self.epoch:02d}" if self.epoch > 0 else "container"
        return f"{prefix}_{app.cluster_timestamp}_{app.id:04d}_{self.attempt_id.attempt:02d}_{self.sequence:06d}"

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _CONTAINER.match(text)
        if match is None:
            raise BadIdentifier("container", text)
        app = ApplicationId(int(match[2]), int(match[3]))
        epoch = int(match[1]) if match[1] else 0
        return cls.make(ApplicationAttemptId(app, int(match[4])), int(match[5]), epoch=epoch)


class NodeId(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        match = _NODE.match(text)
        if match is None or int(match[2]) > 65535:
            raise BadIdentifier("node", text)
        return cls(match[1], int(match[2]))
