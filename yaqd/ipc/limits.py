"""Bounds that keep one peer, or all of them together, from hurting us; and one log line per peer and minute."""

import logging
import resource
from dataclasses import dataclass
from typing import Final

from yaqd.ipc.frames import FRAME_BYTES_MAX

_PEERS_REMEMBERED_MAX: Final = 1024
#: of a process: log, state store, children, files that are served
_DESCRIPTORS_RESERVED: Final = 256
#: that share the rest, in the daemon that has most
_SERVERS: Final = 4
_CONNECTIONS_MIN: Final = 64


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Every bound of a server. Reaching one slows a peer down or disconnects it, never anyone else."""

    #: beyond it (or what the process can afford) new connections are closed at once
    connections_max: int = 10_000
    #: unanswered calls of one connection; beyond it nothing more is read from it
    outstanding_calls_max: int = 1_000
    #: ipc.maximum.data.length
    frame_bytes_max: int = FRAME_BYTES_MAX
    #: bytes of incomplete frames over all connections; the connection that crosses it is closed
    buffered_bytes_max: int = 512 << 20
    #: unsent answers of one connection; beyond it nothing more is read from it
    unsent_bytes_max: int = 1 << 20
    #: from connect to the connection context
    handshake_timeout_s: float = 20.0
    #: from the first to the last byte of a frame, and for a peer to take its answers
    progress_timeout_s: float = 60.0
    #: without any byte and without a call under way; clients reconnect by themselves
    idle_timeout_s: float = 600.0


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Every bound of a client."""

    #: one attempt to connect and authenticate (ipc.client.connect.timeout)
    connect_timeout_s: float = 20.0
    #: unanswered calls of one client; further ones wait for room
    outstanding_calls_max: int = 1_000
    #: silence while calls are under way before a ping is sent (ipc.ping.interval)
    ping_interval_s: float = 60.0
    #: an unused connection is closed (ipc.client.connection.maxidletime), well before the server would
    idle_timeout_s: float = 120.0
    #: ipc.maximum.response.length
    response_bytes_max: int = FRAME_BYTES_MAX


def affordable_connections(wanted: int) -> int:
    """Return `wanted`, or what one server may take of this process's descriptors (`ulimit -n`).

    Strangers at one port must not use up those with which the daemon opens files and other peers come in.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(_CONNECTIONS_MIN, (soft - _DESCRIPTORS_RESERVED) // _SERVERS))


class PeerLog:
    """Logs what strangers do wrong, once per address and minute, so that they cannot fill the disk."""

    def __init__(self, log: logging.Logger, interval_s: float = 60.0, level: int = logging.WARNING) -> None:
        self._log = log
        self._level = level
        self._interval_s = interval_s
        #: address -> (when it was last logged, how many lines were held back since)
        self._peers: dict[str, tuple[float, int]] = {}

    def warn(self, peer: str, now: float, message: str, *arguments: object) -> None:
        last, held_back = self._peers.get(peer, (float("-inf"), 0))
        if now - last < self._interval_s:
            self._peers[peer] = (last, held_back + 1)
            return
        if peer not in self._peers and len(self._peers) >= _PEERS_REMEMBERED_MAX:
            self._peers.clear()
        self._peers[peer] = (now, 0)
        suffix = f" ({held_back} more from this peer since)" if held_back else ""
        self._log.log(self._level, message + "%s", *arguments, suffix)
