"""One request of Hadoop's shuffle protocol, parsed and verified without any I/O.

`GET /mapOutput?job=J&reduce=R&map=M1,M2,...` with the headers name, version and UrlHash, the HMAC-SHA1 of port, path
and query under the job's key. Everything in it is a stranger's until the hash is verified: no more than the job's id is
taken out of it before. A map id is an opaque folder name even then. `&merged=FILE`, which no client of Hadoop sends,
names the merged file that these maps lie in: who was told of it may ask before this node has seen it.
"""

import base64
import hmac
import re
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from nm.shuffle.jobs import ShuffleJob, ShuffleJobs

#: request line and headers together
MAX_HEAD_BYTES = 512 << 10
#: in one request: Hadoop's reducers ask for 20 at most, ours for 200 of one merged file
MAX_MAP_IDS = 1000
_MAX_HEADERS = 100
_MAX_OTHER_PARAMETERS = 20
_MAX_MAP_ID = 255
#: characters as they stand in the request
_MAX_JOB_ID = 255
_MAX_REDUCE = (1 << 31) - 1
_MAX_REDUCE_DIGITS = 10
#: names of map attempts as Hadoop makes them, told without a Python step for each
_are_attempts = re.compile(r"[A-Za-z0-9_,]*").fullmatch
_REQUIRED = "job, reduce and map are required, job and reduce once"
PROTOCOL_HEADERS = "name: mapreduce\r\nversion: 1.0.0\r\n"


class RequestRefused(Exception):
    """Answered with this status and text, after which the connection is closed."""

    def __init__(self, status: int, text: str, headers: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        #: further header lines, each with its line end
        self.headers = headers


class ShuffleRequest(NamedTuple):
    job: ShuffleJob
    job_id: str
    map_ids: tuple[str, ...]
    reduce: int
    #: the client was told that they lie in this merged file; "" or no name of a file: it was not
    merged: str
    #: the client asked to keep the connection
    wants_keep_alive: bool
    #: proves to the client that the server knows the key
    reply_hash: str


@dataclass(slots=True)
class _Head:
    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)


def parse_request(head: bytes, *, port: int, jobs: ShuffleJobs) -> ShuffleRequest:
    """Parses and verifies the bytes before the empty line. Raises RequestRefused."""
    parsed = _parse_head(head)
    if parsed.method != "GET":
        raise RequestRefused(405, "only GET is served")
    if parsed.headers.get("name") != "mapreduce" or parsed.headers.get("version") != "1.0.0":
        raise RequestRefused(400, "Incompatible shuffle request version")
    path, _, query = parsed.target.partition("?")
    if path != "/mapOutput":
        raise RequestRefused(400, "unknown path, expected /mapOutput")
    job_id = _claimed_job(query)
    url_hash = parsed.headers.get("urlhash", "")
    job = jobs.get(job_id)
    if job is None or not _is_genuine(url_hash, f"{port}{parsed.target}", job.password):
        raise RequestRefused(401, "unknown job or wrong UrlHash")
    values = _parse_query(query)
    map_ids, reduce = _parameters(values)
    if len(set(map_ids)) < len(map_ids):
        raise RequestRefused(400, "the same map id twice in one request")
    return ShuffleRequest(
        job=job,
        job_id=job_id,
        map_ids=map_ids,
        reduce=reduce,
        merged=values.get("merged", [""])[-1],
        wants_keep_alive=values.get("keepAlive", [""])[-1].lower() == "true",
        reply_hash=_hash(job.password, url_hash),
    )


def _parse_head(head: bytes) -> _Head:
    lines = head.decode("latin-1").split("\r\n", _MAX_HEADERS)
    parts = lines[0].split(" ", 3)
    if len(parts) != 3 or not parts[2].startswith("HTTP/1.") or len(lines) > _MAX_HEADERS:
        raise RequestRefused(400, "not an HTTP/1.1 request")
    parsed = _Head(parts[0], parts[1])
    for line in lines[1:]:
        name, separator, value = line.partition(":")
        if not separator:
            raise RequestRefused(400, "malformed header line")
        parsed.headers[name.strip().lower()] = value.strip()
    return parsed


def _claimed_job(query: str) -> str:
    """The job that the request names first. Raises RequestRefused."""
    start = 0 if query.startswith("job=") else query.find("&job=") + 1
    if not start and not query.startswith("job="):
        raise RequestRefused(400, _REQUIRED)
    end = query.find("&", start)
    value = query[start + len("job=") : len(query) if end < 0 else end]
    if len(value) > _MAX_JOB_ID:
        return ""
    return unquote(value) if "%" in value else value


def _parse_query(query: str) -> dict[str, list[str]]:
    """What is counted before it is taken apart is no more than is allowed. Raises RequestRefused."""
    if query.count("&") > MAX_MAP_IDS + _MAX_OTHER_PARAMETERS:
        raise RequestRefused(413, f"more than {MAX_MAP_IDS} map ids in one request")
    values: dict[str, list[str]] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        values.setdefault(name, []).append(unquote(value) if "%" in value else value)
    return values


def _parameters(values: dict[str, list[str]]) -> tuple[tuple[str, ...], int]:
    """Map ids and partition; the job's id is known. Raises RequestRefused."""
    jobs, reduces, maps = values.get("job", []), values.get("reduce", []), values.get("map", [])
    if len(jobs) != 1 or len(reduces) != 1 or not maps:
        raise RequestRefused(400, _REQUIRED)
    reduce = reduces[0]
    # the length comes first: int refuses to convert thousands of digits
    is_number = reduce.isascii() and reduce.isdigit() and len(reduce) <= _MAX_REDUCE_DIGITS
    if not is_number or int(reduce) > _MAX_REDUCE:
        raise RequestRefused(400, "reduce is not a number")
    if sum(part.count(",") + 1 for part in maps) > MAX_MAP_IDS:
        raise RequestRefused(413, f"more than {MAX_MAP_IDS} map ids in one request")
    map_ids = tuple([map_id for part in maps for map_id in part.split(",") if map_id])
    if not map_ids:
        raise RequestRefused(400, "no map ids")
    if not all(map(_are_attempts, maps)) and not all(map(_is_name, map_ids)):
        raise RequestRefused(400, "bad map id")
    if max(map(len, map_ids)) > _MAX_MAP_ID:
        raise RequestRefused(400, "bad map id")
    return map_ids, int(reduce)


def _is_name(map_id: str) -> bool:
    """Of something in the folder of map outputs; what is no map's there ("..") has no output, see MapOutputs.load."""
    return "/" not in map_id and map_id.isprintable()


def _hash(key: bytes, message: str) -> str:
    return base64.b64encode(hmac.digest(key, message.encode("latin-1"), "sha1")).decode("ascii")


def _is_genuine(received: str, message: str, key: bytes) -> bool:
    return hmac.compare_digest(received.encode("latin-1"), _hash(key, message).encode("ascii"))
