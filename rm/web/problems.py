"""Errors as Hadoop's REST writes them (GenericExceptionHandler)."""

import json
from typing import Final

from aiohttp import web

#: aiohttp's exceptions by status
_STATUS: Final[dict[int, type[web.HTTPException]]] = {
    400: web.HTTPBadRequest,
    403: web.HTTPForbidden,
    404: web.HTTPNotFound,
}


def problem(status: int, exception: str, message: str) -> web.HTTPException:
    body = {
        "exception": exception,
        "message": message,
        "javaClassName": f"org.apache.hadoop.yarn.webapp.{exception}",
    }
    return _STATUS[status](text=json.dumps({"RemoteException": body}), content_type="application/json")
