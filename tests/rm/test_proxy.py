"""The web proxy against real masters' pages on loopback: what passes, what does not, and where redirects lead."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientResponse, ClientSession, web
from yarl import URL

from rm.web import proxying
from tests.rm.rm_harness import LOOPBACK, FakeMaster, Harness, cluster
from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client


class Page:
    """A master's web page that remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.answer: Callable[[web.Request], web.StreamResponse] = lambda request: web.Response(text="am page")
        self.port = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(request, web.BaseRequest)
        self.requests.append(request)  # type: ignore[arg-type]
        self.bodies.append(await request.read())
        return self.answer(request)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


class Visit:
    """A browser's requests at the ResourceManager's web port; follows nothing."""

    def __init__(self, rm: Harness, browser: ClientSession) -> None:
        assert rm.manager.web is not None
        self.base = f"http://{LOOPBACK}:{rm.manager.web.port}"
        self._browser = browser

    async def __call__(self, path: str, method: str = "GET", **options: object) -> tuple[ClientResponse, str]:
        url = URL(self.base + path, encoded=True)
        async with self._browser.request(method, url, allow_redirects=False, **options) as answer:  # type: ignore[arg-type]
            return answer, await answer.text()


@asynccontextmanager
async def proxied(
    tracking: str = "", overrides: dict[str, str] | None = None, **fields: object
) -> AsyncIterator[tuple[Harness, Visit, Page, ApplicationId, FakeMaster]]:
    """A running application whose master has a web page; `tracking` is put behind the page's address."""
    page = Page()
    runner = web.ServerRunner(web.Server(page))
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0).start()
    page.port = runner.addresses[0][1]
    try:
        async with cluster(overrides) as rm, ClientSession() as browser:
            node = await rm.node()
            app_id = await rm.submit(**fields)
            master = await rm.launched(app_id, node)
            await master.register(page.url + tracking)
            yield rm, Visit(rm, browser), page, app_id, master
    finally:
        await runner.cleanup()


async def test_page_comes_through_with_the_users_name_and_nothing_of_the_browsers() -> None:
    async with proxied() as (_, visit, page, app_id, _):
        page.answer = lambda request: web.Response(
            text="hello", headers={"X-Own": "1", "Set-Cookie": "hadoop.auth=x", "Clear-Site-Data": '"*"'}
        )
        answer, text = await visit(
            f"/proxy/{app_id}/a%2Fb/c?x=%26y&user.name=bob",
            headers={
                "Cookie": "secret=1",
                "Authorization": "Basic x",
                "User-Agent": "ua",
                "X-Forwarded-For": "1.2.3.4",
            },
        )
        assert (answer.status, text, answer.headers["X-Own"]) == (200, "hello", "1")
        assert "Clear-Site-Data" not in answer.headers
        assert all(not cookie.startswith("hadoop.auth=x") for cookie in answer.headers.getall("Set-Cookie", []))
        (asked,) = page.requests
        assert asked.path_qs == "/a%2Fb/c?x=%26y&user.name=bob" or asked.rel_url.raw_path == "/a%2Fb/c"
        assert asked.headers["Cookie"] == "proxy-user=bob"
        assert asked.headers["User-Agent"] == "ua"
        assert asked.headers["Host"] == f"{LOOPBACK}:{page.port}"
        assert "Authorization" not in asked.headers and "X-Forwarded-For" not in asked.headers
        assert "Accept" in asked.headers


async def test_caller_without_a_name_is_the_static_user() -> None:
    async with proxied(overrides={"hadoop.http.staticuser.user": "nobody in particular"}) as (
        _,
        visit,
        page,
        app_id,
        _,
    ):
        await visit(f"/proxy/{app_id}/")
        assert page.requests[0].headers["Cookie"] == "proxy-user=nobody%20in%20particular"


async def test_tracking_address_may_have_a_path_and_a_query() -> None:
    async with proxied("/ui/?from=am") as (_, visit, page, app_id, _):
        for path in ("", "/", "/jobs/1?user=x"):
            assert (await visit(f"/proxy/{app_id}{path}"))[0].status == 200
        assert [r.path_qs for r in page.requests] == ["/ui/?from=am", "/ui/?from=am", "/ui/jobs/1?from=am&user=x"]


async def test_large_answer_is_streamed_whole_and_compressed_ones_stay_so() -> None:
    body = b"0123456789abcdef" * (1 << 18)
    async with proxied() as (_, visit, page, app_id, _):

        def answer(request: web.Request) -> web.Response:
            response = web.Response(body=body)
            response.enable_compression()
            return response

        page.answer = answer
        got, text = await visit(f"/proxy/{app_id}/big", headers={"Accept-Encoding": "gzip"})
        assert got.headers["Content-Encoding"] == "gzip" and text.encode() == body
        plain, text = await visit(f"/proxy/{app_id}/big", headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers and text.encode() == body


async def test_methods_are_those_of_hadoops_proxy() -> None:
    async with proxied() as (_, visit, page, app_id, _):
        answer, _ = await visit(f"/proxy/{app_id}/x", "PUT", data=b"payload", headers={"Content-Type": "text/x"})
        assert answer.status == 200 and page.bodies == [b"payload"]
        assert page.requests[0].headers["Content-Type"] == "text/x"
        assert (await visit(f"/proxy/{app_id}/x", "HEAD"))[0].status == 200
        for method in ("POST", "DELETE", "PATCH", "TRACE"):
            assert (await visit(f"/proxy/{app_id}/x", method, data=b""))[0].status == 405
        assert [r.method for r in page.requests] == ["PUT", "HEAD"]


async def test_oversized_body_is_refused() -> None:
    async with proxied() as (_, visit, page, app_id, _):
        answer, _ = await visit(f"/proxy/{app_id}/x", "PUT", data=b"x" * (2 << 20))
        assert answer.status == 413 and page.requests == []


async def test_redirects_within_the_application_stay_under_the_proxy() -> None:
    async with proxied() as (_, visit, page, app_id, _):
        base = f"/proxy/{app_id}"
        locations = {
            f"{page.url}/mapreduce?x=1": f"{base}/mapreduce?x=1",
            "/mapreduce": f"{base}/mapreduce",
            f"{page.url}{base}/mapreduce": f"{base}/mapreduce",
            "http://elsewhere.example/x": "http://elsewhere.example/x",
            "javascript:alert(1)": f"{base}/",
        }
        for location, expected in locations.items():
            page.answer = lambda request, to=location: web.Response(status=302, headers={"Location": to})  # type: ignore[misc]
            answer, _ = await visit(f"{base}/")
            assert (answer.status, answer.headers["Location"]) == (302, expected)


async def test_master_that_sends_the_proxy_to_the_proxy_is_reported() -> None:
    async with proxied() as (_, visit, page, app_id, _):
        to = f"{visit.base}/proxy/redirect/{app_id}/mapreduce"
        page.answer = lambda request: web.Response(status=302, headers={"Location": to})
        answer, text = await visit(f"/proxy/redirect/{app_id}/mapreduce")
        assert answer.status == 502 and "does not let this proxy in" in text
        assert page.requests[0].path == "/mapreduce"


@pytest.mark.parametrize(
    "path", ["/proxy/", "/proxy/foo", "/proxy/redirect/foo/x", "/proxy/application_1_0001/x", "/proxy//etc/passwd"]
)
async def test_what_is_no_application_is_not_found(path: str) -> None:
    async with proxied() as (_, visit, page, _, _):
        answer, text = await visit(path)
        assert answer.status == 404 and page.requests == []
        assert "formatted incorrectly" in text or "could not be found in RM or history server" in text


async def test_path_reaches_nothing_but_the_registered_address() -> None:
    async with proxied() as (_, visit, page, app_id, _):
        for rest in ("@evil.example/", "http://evil.example/", "//evil.example/x", "..%2f..%2fx", ":80/x"):
            answer, _ = await visit(f"/proxy/{app_id}/{rest}")
            assert answer.status == 200
        assert (await visit(f"/proxy/{app_id}/%0d%0aX:1"))[0].status == 404
        assert {r.headers["Host"] for r in page.requests} == {f"{LOOPBACK}:{page.port}"}
        assert len(page.requests) == 5


async def test_addresses_that_lead_nowhere() -> None:
    async with cluster() as rm, ClientSession() as browser:
        visit, node = Visit(rm, browser), await rm.node(memory_mb=65536, vcores=64)
        with socket.create_server((LOOPBACK, 0)) as closed:
            dead = f"http://{LOOPBACK}:{closed.getsockname()[1]}"
        here = visit.base + "/proxy/"
        expected = {
            dead: 502,
            "": 302,
            "javascript:alert(1)": 302,
            "file:///etc/passwd": 302,
            here: 302,
            "http://:1/": 302,
            "http://2852039166/": 502,  # another way to write 169.254.169.254
        }
        for said, status in expected.items():
            app_id = await rm.submit()
            await (await rm.launched(app_id, node)).register(said)
            answer, _ = await visit(f"/proxy/{app_id}/x")
            assert answer.status == status, said
            if status == 302:
                assert answer.headers["Location"] == f"/cluster/app/{app_id}"


async def test_master_that_does_not_answer_is_given_up() -> None:
    with socket.create_server((LOOPBACK, 0)) as mute:
        async with (
            cluster({"yarn.resourcemanager.proxy.connection.timeout": "200ms"}) as rm,
            ClientSession() as browser,
        ):
            app_id = await rm.submit()
            master = await rm.launched(app_id, await rm.node())
            await master.register(f"http://{LOOPBACK}:{mute.getsockname()[1]}")
            answer, text = await Visit(rm, browser)(f"/proxy/{app_id}/")
            assert answer.status == 504 and "does not answer" in text


HEAD = b"HTTP/1.1 200 OK\r\n"
HOSTILE = {
    "nothing": b"",
    "no HTTP": b"\x00\x01\x02\r\n\r\n",
    "half a head": HEAD + b"X: 1",
    "control characters": HEAD + b"X: a\x00b\rSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n",
    "header of other bytes": HEAD + b"X: \xff\xfe\r\nContent-Length: 2\r\n\r\nok",
    "long header": HEAD + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
    "many headers": HEAD + b"X: a\r\n" * 10_000 + b"\r\n",
    "two lengths": HEAD + b"Content-Length: 1\r\nContent-Length: 9\r\n\r\nx",
    "length and chunks": HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nabc",
    "wrong status": b"HTTP/1.1 99999 X\r\n\r\n",
    "status line with a tail": b"HTTP/1.1 200 a\x0bb<script>\r\nContent-Length: 0\r\n\r\n",
    "location of other bytes": b"HTTP/1.1 302 Found\r\nLocation: http://[::\xff\r\nContent-Length: 0\r\n\r\n",
}
BROKEN_OFF = {
    "shorter than said": HEAD + b"Content-Length: 100\r\n\r\nabc",
    "bad chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzzzz\r\n",
}


@asynccontextmanager
async def raw_master(said: bytes) -> AsyncIterator[str]:
    """A page that answers every request with these bytes and hangs up."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, LOOPBACK, 0)
    async with server:
        yield f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}"


async def test_nothing_that_a_master_says_gets_through_as_something_else() -> None:
    async with cluster() as rm, ClientSession() as browser:
        visit, node = Visit(rm, browser), await rm.node(memory_mb=65536, vcores=64)
        for what, said in {**HOSTILE, **BROKEN_OFF}.items():
            async with raw_master(said) as url:
                app_id = await rm.submit()
                await (await rm.launched(app_id, node)).register(url)
                try:
                    answer, text = await visit(f"/proxy/{app_id}/")
                except ClientError:
                    assert what in BROKEN_OFF, what  # seen as broken off, not as whole
                    continue
                assert what not in BROKEN_OFF or answer.status == 502, what
                assert answer.status in (200, 302, 502), (what, answer.status)
                assert "<script" not in text and "a=b" not in answer.headers.getall("Set-Cookie", [])
        assert (await visit("/cluster"))[0].status == 200


async def test_before_registration_and_after_the_end() -> None:
    async with proxied() as (rm, visit, page, app_id, master):
        waiting = await rm.submit(queue="default")
        answer, _ = await visit(f"/proxy/{waiting}/")
        assert (answer.status, answer.headers["Location"]) == (302, f"/cluster/app/{waiting}")
        await master.finish()
        answer, _ = await visit(f"/proxy/{app_id}/job/1?x=2")
        assert (answer.status, answer.headers["Location"]) == (302, "http://history/job/1?x=2")
        report = await rm.report(app_id)
        assert report.trackingUrl == f"{visit.base}/proxy/{app_id}/"
        assert report.originalTrackingUrl == "http://history/"
        assert page.requests == []


async def test_killed_application_leads_to_its_own_page() -> None:
    async with proxied() as (rm, visit, _, app_id, _):
        request = pb.KillApplicationRequest(application_id=convert.application_id_pb(app_id))
        await rm.client.call(Client.forceKillApplication, request)
        async with asyncio.timeout(10):
            while (report := await rm.report(app_id)).yarn_application_state != common.KILLED:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert report.trackingUrl == report.originalTrackingUrl == f"{visit.base}/cluster/app/{app_id}"
        answer, _ = await visit(f"/proxy/{app_id}/x")
        assert (answer.status, answer.headers["Location"]) == (302, f"/cluster/app/{app_id}")


async def test_only_those_who_may_view_the_application_get_through() -> None:
    lists = {
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "boss",
        "yarn.scheduler.capacity.root.acl_administer_queue": "nobody",
        "yarn.scheduler.capacity.root.default.acl_administer_queue": "keeper",
        "yarn.scheduler.capacity.root.acl_submit_applications": "*",
    }
    async with cluster(lists) as rm, ClientSession() as browser:
        visit, node = Visit(rm, browser), await rm.node()
        context = await rm.submission()
        context.am_container_spec.application_ACLs.add(accessType=common.APPACCESS_VIEW_APP, acl="friend other")
        context.am_container_spec.application_ACLs.add(accessType=common.APPACCESS_MODIFY_APP, acl="mover")
        await rm.client.call(
            Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context)
        )
        app_id = convert.application_id(context.application_id)
        await (await rm.launched(app_id, node)).register("")
        for user, status in {"alice": 302, "boss": 302, "keeper": 302, "friend": 302, "mover": 403, "": 403}.items():
            query = f"?user.name={user}" if user else ""
            browser.cookie_jar.clear()
            assert (await visit(f"/proxy/{app_id}/{query}"))[0].status == status, user
            assert (await visit(f"/cluster/app/{app_id}{query}"))[0].status == (200 if status == 302 else 403)
            shown, text = await visit(f"/ws/v1/cluster/apps/{app_id}/appattempts{query}")
            assert shown.status == (200 if status == 302 else 403), text


def test_redirect_of_a_master_with_a_path_is_cut_by_it() -> None:
    app_id, address = ApplicationId(1, 1), URL("http://am:1/ui/")
    assert proxying.relocate("/ui/jobs", URL("http://am:1/ui/x"), address, app_id) == f"/proxy/{app_id}/jobs"
    assert proxying.relocate("next", URL("http://am:1/ui/x/y"), address, app_id) == f"/proxy/{app_id}/x/next"


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("host:80", "http://host:80"),
        ("host:8080/x", "http://host:8080/x"),
        ("https://h/", "https://h/"),
        ("http://u:p@h/x", "http://h/x"),
        ("N/A", None),
        ("", None),
        ("http://h:99999/", None),
        ("ftp://h/", None),
        ("http://h/\r\nX: 1", None),
        ("http://h /", None),
        ("http:///x", None),
        ("http://169.254.169.254/latest/", None),
        ("http://[fe80::1]/", None),
    ],
)
def test_what_counts_as_an_address(said: str, address: str | None) -> None:
    assert proxying.tracking_address(said) == (None if address is None else URL(address))


async def test_history_is_found_after_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "rm.sqlite"
    async with cluster(store=store) as rm:
        app_id, master = await rm.running(await rm.node())
        await master.finish()
    async with cluster(store=store) as rm, ClientSession() as browser:
        visit = Visit(rm, browser)
        answer, _ = await visit(f"/proxy/{app_id}/job")
        assert (answer.status, answer.headers["Location"]) == (302, "http://history/job")
        report = await rm.report(app_id)
        assert report.trackingUrl == f"{visit.base}/proxy/{app_id}/"
        assert (await visit(f"/cluster/app/{app_id}"))[0].status == 200
