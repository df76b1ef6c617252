"""Errors of the shuffle files: the file (or the peer that sent it) is to blame, never the caller."""

from typing import Final

#: what an operator can do where a disk is full
NO_ROOM: Final = "free space there or name other folders in yarn.nodemanager.local-dirs"


class FormatError(ValueError):
    """Bytes that should be a shuffle file are not one. The message names the place and what was found there."""


class CorruptIndex(FormatError):
    """An index file is truncated, fails its checksum, or describes impossible segments."""


class CorruptSegment(FormatError):
    """A segment fails its checksum, is truncated, or lies about its lengths."""
