"""A browser of the ResourceManager's pages and REST resources."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientResponse, ClientSession
from yarl import URL

from tests.rm.rm_harness import LOOPBACK, Harness, cluster

API = "/ws/v1/cluster"


class Browser:
    def __init__(self, rm: Harness, session: ClientSession) -> None:
        assert rm.manager.web is not None
        self.port = rm.manager.web.port
        self._session = session

    async def __call__(self, path: str, method: str = "GET", **headers: str) -> tuple[ClientResponse, str]:
        url = URL(f"http://{LOOPBACK}:{self.port}{path}", encoded=True)
        async with self._session.request(method, url, headers=headers, allow_redirects=False) as answer:
            return answer, await answer.text()

    async def json(self, path: str) -> dict[str, Any]:
        answer, text = await self(API + path)
        assert answer.status == 200 and answer.content_type == "application/json"
        found: dict[str, Any] = json.loads(text)
        return found


@asynccontextmanager
async def web(overrides: dict[str, str] | None = None) -> AsyncIterator[tuple[Harness, Browser]]:
    async with cluster(overrides) as rm, ClientSession() as session:
        yield rm, Browser(rm, session)
