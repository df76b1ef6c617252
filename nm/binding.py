"""Errors of binding a port, told by the configuration key that is to be changed."""

import contextlib
import errno
import os
from collections.abc import Iterator

from yaqd.config import Configuration
from yaqd.ipc import RpcConnectionError


@contextlib.contextmanager
def listening(what: str, host: str, port: int) -> Iterator[None]:
    """Turns errors of binding into RpcConnectionError, as the RPC server's own are."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror or error
        raise RpcConnectionError(f"{what} cannot listen on {host}:{port}: {reason}") from error


@contextlib.contextmanager
def named(conf: Configuration, key: str) -> Iterator[None]:
    """Turns these errors into ConfigError about the key of the port, or of the host where that is at fault."""
    try:
        yield
    except RpcConnectionError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in (errno.EADDRINUSE, errno.EACCES):
            remedy = "stop what holds the port, or give another one (0: any free one)"
            raise conf.error(key, str(error), remedy) from error
        host = "yarn.nodemanager.bind-host"
        host = host if conf.get(host) else "yarn.nodemanager.address"
        raise conf.error(host, str(error), "give a name or an address of this machine") from error
