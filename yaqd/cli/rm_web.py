"""The ResourceManager's own REST resources as commands read them: one GET, one JSON value."""

import http.client
import json
from typing import Any, Final
from urllib.parse import quote

from yaqd.cli.exits import BAD_INPUT, UNREACHABLE, CommandError
from yaqd.config import Configuration
from yaqd.config.reach import require_cluster

_TIMEOUT_S: Final = 10.0
_BYTES_MAX: Final = 64 << 20
_WILDCARD: Final = "0.0.0.0"
_ADDRESS_KEY: Final = "yarn.resourcemanager.webapp.address"


class NoSuchResource(CommandError):
    """What answers has no such resource: a stock ResourceManager, or something else."""


def get_json(conf: Configuration, path: str, *, timeout_s: float = _TIMEOUT_S) -> Any:
    """Raises CommandError: no answer, or the ResourceManager's own refusal; NoSuchResource."""
    from yaqd.storage.paths import hadoop_user

    require_cluster(conf)
    host, port = conf.get_address(_ADDRESS_KEY)
    address = f"{'localhost' if host == _WILDCARD else host}:{port}"
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    try:
        # where it asks who may see the application
        connection.request("GET", f"{path}?user.name={quote(hadoop_user(), safe='')}")
        response = connection.getresponse()
        body = response.read(_BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        text = (
            f"the ResourceManager's web server {address} does not answer ({error}): start it, or correct {_ADDRESS_KEY}"
        )
        raise CommandError(text, UNREACHABLE) from None
    finally:
        connection.close()
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if response.status == http.client.OK and isinstance(value, dict):
        return value
    raise _refusal(value, response.status, address)


def _refusal(value: Any, status: int, address: str) -> CommandError:
    try:
        return CommandError(str(value["RemoteException"]["message"]).removeprefix("java.lang.Exception: "), BAD_INPUT)
    except (TypeError, KeyError):
        text = f"{address} answers with HTTP status {status}: is it a ResourceManager of this project?"
        return (NoSuchResource if status == http.client.NOT_FOUND else CommandError)(text, BAD_INPUT)
