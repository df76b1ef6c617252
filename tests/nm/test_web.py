"""The node's web port against strangers: its page, who may read logs, and what it bears."""

import asyncio
import http.client
import re
from collections.abc import Callable
from typing import Any

from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, application, container_id, launch_context
from yaqd.model import ContainerSubState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common

ONE = container_id(1)
LISTS = {"yarn.acl.enable": "true", "yarn.admin.acl": "boss"}


async def get(node: NodeManager, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    """Raw, so that no client changes the path; status, text and headers."""

    def ask() -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection(*node.web_address, timeout=10)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.read().decode(), dict(response.headers)
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def running(rm: FakeResourceManager, node: NodeManager, view: str = "") -> Master:
    """A container of alice's that has written to its log and runs."""
    master = Master(rm, node)
    context = launch_context("echo private 1><LOG_DIR>/stdout; sleep 1000")
    if view:
        context.application_ACLs.add(accessType=common.APPACCESS_VIEW_APP, acl=view)
        context.application_ACLs.add(accessType=common.APPACCESS_MODIFY_APP, acl="mover")
    await master.run(ONE, context)
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    log = node.settings.log_dirs[0] / str(ONE.application_id) / str(ONE) / "stdout"
    await rm.until(lambda: log.exists() and log.stat().st_size)
    return master


async def test_page_lists_containers_and_leads_to_their_logs(rm: FakeResourceManager, node: NodeManager) -> None:
    master = await running(rm, node)
    for path in ("/", "/node"):
        status, page, headers = await get(node, path, Host="evil.example")
        assert (
            status == 200 and "evil.example" not in page and "default-src 'none'" in headers["Content-Security-Policy"]
        )
        assert str(ONE) in page and "RUNNING" in page
    (link,) = re.findall('href="(/node/containerlogs/[^"]*)"', page)
    status, page, _ = await get(node, link)
    assert status == 200
    (file,) = re.findall('href="([^"]*/stdout)"', page)
    assert (await get(node, file))[:2] == (200, "private\n")
    await master.client.close()


async def test_names_of_logs_are_escaped(rm: FakeResourceManager, node: NodeManager) -> None:
    master = await running(rm, node)
    (node.settings.log_dirs[0] / str(ONE.application_id) / str(ONE) / "<script>").write_text("")
    status, page, _ = await get(node, f"/node/containerlogs/{ONE}/%22%3E%3Cscript%3E")
    assert status == 200 and "&lt;script&gt;" in page and "<script" not in page
    assert "%3Cscript%3E" in page and 'href="">' not in page
    await master.client.close()


async def test_logs_are_for_those_who_may_see_the_application(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node = await start_node(LISTS)
    master = await running(rm, node, view="friend nogroup")
    places = (
        f"/ws/v1/node/apps/{ONE.application_id}/logs",
        f"/ws/v1/node/containers/{ONE}/logs/stdout",
        f"/ws/v1/node/containers/{ONE}/logs",
        f"/ws/v1/node/containerlogs/{ONE}/stdout",
        f"/node/containerlogs/{ONE}/alice",
        f"/node/containerlogs/{ONE}/alice/stdout",
        f"/node/containerlogs/{ONE}%2Falice%2Fstdout",
    )
    for user, is_let_in in {"alice": True, "boss": True, "friend": True, "mover": False, "eve": False}.items():
        for place in places[:-1]:
            status, text, _ = await get(node, f"{place}?user.name={user}")
            assert status == (200 if is_let_in else 403), (user, place)
            assert is_let_in or "private" not in text
    for place in places:  # without a name; and with another's in the path
        status, text, _ = await get(node, place)
        assert status in (403, 404) and "private" not in text
    assert (await get(node, f"{places[1]}?user.name=alice%00"))[0] == 400
    await master.client.close()


async def test_containers_are_for_those_who_may_see_the_application(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node = await start_node(LISTS)
    master = await running(rm, node, view="friend nogroup")
    one = (f"/ws/v1/node/containers/{ONE}", f"/ws/v1/node/apps/{ONE.application_id}")
    lists = ("/ws/v1/node/containers", "/ws/v1/node/apps", "/node", "/", "/node/allContainers")
    for user, is_let_in in {"alice": True, "boss": True, "friend": True, "mover": False, "eve": False}.items():
        for place in one:
            status, text, _ = await get(node, f"{place}?user.name={user}")
            assert status == (200 if is_let_in else 403), (user, place)
            assert is_let_in or ("alice" not in text and "stdout" not in text)
        for place in lists:
            status, text, _ = await get(node, f"{place}?user.name={user}")
            assert status == 200 and (str(ONE) in text) == ("alice" in text) == is_let_in, (user, place)
    for place in one:
        assert (await get(node, place))[0] == 403, "nobody in particular"
        assert (await get(node, place.replace("_0001", "_0002")))[0] == 404
        assert (await get(node, f"{place}x?user.name=eve"))[0] == 400
    assert (await get(node, "/ws/v1/node/info?user.name=eve"))[0] == 200
    await master.client.close()


async def test_cookie_says_the_name_again(rm: FakeResourceManager, start_node: Callable[..., Any]) -> None:
    node = await start_node(LISTS)
    master = await running(rm, node)
    place = f"/node/containerlogs/{ONE}/alice"
    _, _, headers = await get(node, "/ws/v1/node/info?user.name=alice", "OPTIONS")
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert (await get(node, place, Cookie=cookie))[0] == 200
    assert (await get(node, place, Cookie=cookie.replace("alice", "boss")))[0] == 403
    await master.client.close()


async def test_logs_of_an_ended_application_are_left_to_the_log_server(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    servers = {
        "yarn.log-aggregation-enable": "true",
        "yarn.log.server.url": "http://logs.example/jobhistory/logs",
        "yarn.nodemanager.delete.debug-delay-sec": "600",
    }
    node = await start_node({**LISTS, **servers})
    master = await running(rm, node)
    rm.orders.append(lambda answer: answer.applications_to_cleanup.append(convert.application_id_pb(application())))
    await rm.until(lambda: application() not in node.runtime.applications)
    status, text, headers = await get(node, f"/node/containerlogs/{ONE}/alice/stdout?user.name=alice")
    assert status == 307 and "private" not in text
    assert headers["Location"].startswith(
        f"http://logs.example/jobhistory/logs/{node.node_id}/{ONE}/{ONE}/alice/stdout"
    )
    assert (await get(node, f"/ws/v1/node/containers/{ONE}/logs?user.name=alice"))[0] == 404
    for user, expected in {"alice": 403, "boss": 200}.items():
        status, text, _ = await get(node, f"/ws/v1/node/apps/{ONE.application_id}/logs?user.name={user}")
        assert status == expected and (str(ONE) in text) == (expected == 200)
    await master.client.close()


async def test_connections_are_bounded_in_number_and_time(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node = await start_node({"yaq.web.connections-max": "2", "hadoop.http.idle_timeout.ms": "300"})
    held = [await asyncio.open_connection(*node.web_address) for _ in range(2)]
    try:
        reader, writer = await asyncio.open_connection(*node.web_address)
        writer.write(b"GET /node HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), 10) == b""
    except ConnectionError:
        pass
    for reader, _ in held:  # they never ask for anything
        try:
            assert b"200" not in await asyncio.wait_for(reader.read(), 10)
        except ConnectionError:
            pass
    assert (await get(node, "/node"))[0] == 200
