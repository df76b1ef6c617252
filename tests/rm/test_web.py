"""The ResourceManager's REST answers and pages as stock programs, browsers and strangers meet them."""

import json
import re

import pytest

from tests.rm.rm_browser import API, web
from tests.rm.rm_harness import LOOPBACK, ask
from yaqd.cli.compatibility.web import NOT_TOLD
from yaqd.model import ApplicationAttemptId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client


async def test_options_tells_who_is_asking() -> None:
    """Hadoop's PseudoAuthenticator begins with it and goes on with the cookie."""
    async with web() as (_, browse):
        answer, body = await browse(f"{API}/info?user.name=bob%40X", "OPTIONS")
        assert (answer.status, body) == (200, "")
        cookie = answer.headers["Set-Cookie"]
        assert re.match(r'hadoop\.auth="u=bob%40X&p=bob%40X&t=simple-dt&e=\d+&s=[^"]+"; Path=/; HttpOnly\Z', cookie)
        assert "Set-Cookie" not in (await browse(f"{API}/info", "OPTIONS"))[0].headers


async def test_cookie_speaks_for_its_user_and_no_forged_one_does() -> None:
    async with web({"yarn.acl.enable": "true", "yarn.admin.acl": "boss"}) as (_, browse):
        page = f"{API}/decisions"
        answer, _ = await browse(page + "?user.name=boss")
        assert answer.status == 200
        content, rest = answer.headers["Set-Cookie"].split(";")[0].split("&s=")
        for cookie, status in {
            f"{content}&s={rest}": 200,
            f"{content.replace('e=1', 'e=2', 1)}&s={rest}": 403,
            f"{content}&s=AAAA": 403,
            content: 403,
            'hadoop.auth="u=boss&p=boss&t=simple-dt&e=99999999999999&s="': 403,
            "hadoop.auth=": 403,
        }.items():
            assert (await browse(page, Cookie=cookie))[0].status == status, cookie


@pytest.mark.parametrize("name", ["", "a%0d%0ab", "a%20b", "x" * 200, "a;b"])
async def test_name_that_is_none_is_refused(name: str) -> None:
    async with web() as (rm, browse):
        app_id = await rm.submit()
        answer, _ = await browse(f"/cluster/app/{app_id}?user.name={name}")
        assert answer.status == 400 and "Set-Cookie" not in answer.headers


async def test_attempts_and_containers() -> None:
    async with web() as (rm, browse):
        node = await rm.node()
        app_id, master = await rm.running(node)
        await master.allocate(ask(1))
        await node.beat()
        await master.allocate()
        base = f"/apps/{app_id}"
        (attempt,) = (await browse.json(f"{base}/appattempts"))["appAttempts"]["appAttempt"]
        assert attempt["id"] == 1 and attempt["appAttemptState"] == "RUNNING"
        assert attempt["nodeId"] == str(node.id)
        #: the fields of AppAttemptInfo in Hadoop 3.4.2
        hadoops = (
            "id startTime finishedTime containerId nodeHttpAddress nodeId logsLink blacklistedNodes"
            " nodesBlacklistedBySystem appAttemptId exportPorts appAttemptState"
        )
        assert {*attempt, *NOT_TOLD["an attempt"]} - {"diagnostics"} == {*hadoops.split()}, "the page tells the rest"
        container = attempt["containerId"]
        assert attempt["logsLink"] == f"http://{attempt['nodeHttpAddress']}/node/containerlogs/{container}/alice"
        attempt_id = ApplicationAttemptId(app_id, 1)
        place = f"{base}/appattempts/{attempt_id}/containers"
        containers = (await browse.json(place))["container"]
        assert [c["containerId"][-6:] for c in containers] == ["000001", "000002"]
        one = await browse.json(f"{place}/{container}")
        assert one == {**containers[0], "elapsedTime": one["elapsedTime"]}
        assert all(type(value) is str for name, value in one.items() if name != "allocatedResources")
        least = one["allocatedMB"], one["allocatedVCores"]
        assert [tuple(e.values()) for e in one["allocatedResources"]["entry"]] == [
            ("memory-mb", least[0]),
            ("vcores", least[1]),
        ]
        for path, kind, gone in (
            (f"{place}/{str(container)[:-1]}9", "Container", f"{str(container)[:-1]}9"),
            (
                place.replace(str(attempt_id), f"{attempt_id}"[:-1] + "7"),
                "ApplicationAttempt",
                f"{attempt_id}"[:-1] + "7",
            ),
        ):
            answer, text = await browse(API + path)
            expected = f"exceptions.{kind}NotFoundException: {kind} with id '{gone}' doesn't exist in RM."
            message = json.loads(text)["RemoteException"]["message"]
            assert (answer.status, message) == (404, f"org.apache.hadoop.yarn.{expected}")
        (second,) = (c for c in containers if c["containerId"] != container)
        await master.allocate(release=(convert.container_id_pb(ContainerId.parse(second["containerId"])),))
        assert (await browse.json(place))["container"]["containerId"] == container, "one is no list"
        assert (await browse.json(f"{base}/state")) == {"state": "RUNNING"}
        app = (await browse.json(base))["app"]
        assert app["trackingUI"] == "ApplicationMaster"
        assert app["trackingUrl"] == f"http://{LOOPBACK}:{browse.port}/proxy/{app_id}/"


@pytest.mark.parametrize(
    ("path", "status", "exception", "message"),
    [
        ("/apps/application_1_0001", 404, "NotFound", "java.lang.Exception: app with id: application_1_0001 not found"),
        ("/apps/application_1_1/", 404, "NotFound", "java.lang.Exception: app with id: application_1_0001 not found"),
        ("/apps/foo", 400, "BadRequest", "java.lang.IllegalArgumentException: not an application id: 'foo'"),
        ("/apps?limit=0", 400, "BadRequest", "java.lang.Exception: limit value must be greater then 0"),
        ("/apps?limit=-1", 400, "BadRequest", "java.lang.Exception: limit value must be greater then 0"),
        ("/nodes/a:1", 404, "NotFound", "java.lang.Exception: nodeId, a:1, is not found"),
    ],
)
async def test_errors_have_hadoops_shape(path: str, status: int, exception: str, message: str) -> None:
    async with web() as (_, browse):
        answer, text = await browse(API + path)
        assert answer.status == status
        assert json.loads(text)["RemoteException"] == {
            "exception": f"{exception}Exception",
            "message": message,
            "javaClassName": f"org.apache.hadoop.yarn.webapp.{exception}Exception",
        }


async def test_paths_may_end_in_a_slash() -> None:
    async with web() as (rm, browse):
        app_id = await rm.submit()
        node = await rm.node()
        paths = [f"{API}{path}" for path in ("/scheduler", "/info", "/apps", f"/apps/{app_id}", f"/nodes/{node.id}")]
        for path in (*paths, "/ws/v1/yaq/nodes"):
            for end in ("", "/"):
                answer, text = await browse(f"{path}{end}")
                assert answer.status == 200 and json.loads(text), path
        assert (await browse(f"{API}/scheduler/", "POST"))[0].status == 405
        assert (await browse(f"{API}/nothing/"))[0].status == 404


async def test_list_of_applications_is_filtered_and_whole() -> None:
    async with web({"yarn.scheduler.capacity.maximum-applications": "10000"}) as (rm, browse):
        ids = [await rm.submit(application_name=f"n{i % 2}", applicationType=f"T{i % 3}") for i in range(120)]

        async def found(query: str) -> list[str]:
            apps = (await browse.json(f"/apps?{query}"))["apps"]
            return [app["id"] for app in apps.get("app", [])]

        assert await found("") == [str(i) for i in ids]
        assert await found("limit=7") == [str(i) for i in ids[:7]]
        assert await found("name=n1&applicationTypes=t0,T2&states=accepted") == [
            str(i) for k, i in enumerate(ids) if k % 2 == 1 and k % 3 != 1
        ]
        assert await found("user=bob") == await found("states=RUNNING") == await found("queue=other") == []
        assert len(await found("user=bob&user=alice&queue=root.default&finalStatus=UNDEFINED")) == 120
        answer, text = await browse(f"{API}/apps?states=bla")
        assert answer.status == 400 and "Invalid application-state BLA specified. It should be one of [NEW, " in text


async def test_strangers_see_that_an_application_is_there_and_no_more() -> None:
    lists = {"yarn.acl.enable": "true", "yarn.admin.acl": "boss"}
    nobody = {f"yarn.scheduler.capacity.root.acl_{what}": who for what, who in (("administer_queue", "boss"),)}
    async with web({**lists, **nobody, "yarn.scheduler.capacity.root.acl_submit_applications": "*"}) as (rm, browse):
        app_id = await rm.submit()
        shown = (await browse.json(f"/apps/{app_id}?user.name=eve"))["app"]
        assert shown["user"] == "alice" and "startedTime" not in shown and shown["diagnostics"] == ""
        assert (await browse(f"{API}/apps/{app_id}/state?user.name=eve"))[0].status == 403
        assert "startedTime" in (await browse.json(f"/apps/{app_id}?user.name=alice"))["app"]


async def test_lists_may_leave_out_what_one_may_not_see() -> None:
    lists = {"yarn.acl.enable": "true", "yarn.admin.acl": "boss"}
    queues = {"acl_administer_queue": "boss", "acl_submit_applications": "*"}
    settings = lists | {f"yarn.scheduler.capacity.root.{name}": who for name, who in queues.items()}
    for leaves_out in (False, True):
        only = {"yarn.webapp.filter-entity-list-by-user": str(leaves_out).lower()}
        async with web({**settings, **only}) as (rm, browse):
            app_id = await rm.submit()
            for user in ("alice", "boss", "eve"):
                is_listed = user != "eve" or not leaves_out
                apps = (await browse.json(f"/apps?user.name={user}"))["apps"]
                assert len(apps.get("app", [])) == is_listed
                _, text = await browse(f"/cluster/apps?user.name={user}")
                assert (str(app_id) in text) == is_listed == (">1<" in text), "neither it nor that it is one"


async def test_pages_lead_from_one_to_the_next_and_escape_what_others_named() -> None:
    evil = "<script>alert(1)</script>\"'&"
    async with web() as (rm, browse):
        node = await rm.node()
        app_id = await rm.submit(application_name=evil)
        master = await rm.launched(app_id, node)
        await master.register('javascript:alert("x")')
        home, _ = await browse("/")
        assert (home.status, home.headers["Location"]) == (302, "/cluster")
        listing, text = await browse("/cluster")
        assert f'href="/cluster/app/{app_id}"' in text and "&lt;script&gt;" in text and "<script" not in text
        assert "default-src 'none'" in listing.headers["Content-Security-Policy"]
        page, text = await browse(f"/cluster/app/{app_id}")
        assert page.status == 200 and page.content_type == "text/html"
        assert "<script" not in text and "javascript:" not in re.findall('href="([^"]*)"', text)
        container = next(iter(node.started))
        assert re.search(f'href="http://{LOOPBACK}:8042/node/containerlogs/{container}/alice"', text)
        _, text = await browse("/cluster/nodes")
        assert f'href="http://{LOOPBACK}:8042/node"' in text
        for path, status in {"/cluster/app/application_1_0001": 404, "/cluster/app/%3Cscript%3E": 400}.items():
            answer, text = await browse(path)
            assert answer.status == status and "<script" not in text


async def test_unknown_places_and_methods() -> None:
    async with web() as (_, browse):
        assert [(await browse(path))[0].status for path in ("/nosuch", f"{API}/nosuch", "/cluster/x/y")] == [404] * 3
        assert [(await browse(f"{API}/info", method))[0].status for method in ("POST", "PUT", "DELETE")] == [405] * 3


async def test_tracking_addresses_of_attempts() -> None:
    async with web() as (rm, browse):
        node = await rm.node()
        app_id, _ = await rm.running(node)
        (first,) = node.running
        node.end(first, 1, "crashed")
        await node.beat()
        await rm.launched(app_id, node, attempt=2)
        request = pb.GetApplicationAttemptsRequest(application_id=convert.application_id_pb(app_id))
        reports = (await rm.client.call(Client.getApplicationAttempts, request)).application_attempts
        page, proxy = (f"http://{LOOPBACK}:{browse.port}/{what}/{app_id}" for what in ("cluster/app", "proxy"))
        assert [(r.tracking_url, r.original_tracking_url) for r in reports] == [(page, page), (f"{proxy}/", "N/A")]


async def test_queues_as_hadoops_rest_has_them() -> None:
    async with web() as (rm, browse):
        node = await rm.node()
        app_id, master = await rm.running(node)
        await master.allocate(ask(100, memory_mb=1024))  # more than the node has room for
        (root,) = (await browse.json("/scheduler"))["scheduler"].values()
        assert isinstance(root, dict)
        (leaf,) = root["queues"]["queue"]
        assert (root["type"], leaf["type"]) == ("capacityScheduler", "capacitySchedulerLeafQueueInfo")
        assert (leaf["queuePath"], leaf["state"], leaf["absoluteCapacity"]) == ("root.default", "RUNNING", 100.0)
        assert (leaf["numApplications"], leaf["numActiveApplications"], leaf["numPendingApplications"]) == (1, 1, 0)
        view = rm.manager.scheduler.view
        used = view.root.used
        assert (leaf["resourcesUsed"]["memory"], leaf["resourcesUsed"]["vCores"]) == (used.memory_mb, used.vcores)
        share = 100 * view.calculator.share(used, view.nodes.total)
        assert leaf["absoluteUsedCapacity"] == leaf["usedCapacity"] == root["usedCapacity"] == pytest.approx(share) != 0
        (user,) = leaf["users"]["user"]
        assert user["AMResourceUsed"] == leaf["usedAMResource"] and user["AMResourceUsed"]["memory"] > 0
        (row,) = (await browse.json(f"/apps/{app_id}"))["app"]["resourceRequests"]
        assert (row["resourceName"], row["capability"]["memory"]) == ("*", 1024) and row["numContainers"] > 50


async def test_one_value_of_an_application_and_counts_of_all() -> None:
    lists = {"yarn.acl.enable": "true", "yarn.scheduler.capacity.root.acl_administer_queue": " "}
    async with web(lists) as (rm, browse):
        node = await rm.node()
        app_id, _ = await rm.running(node)
        app = rm.manager.cluster.applications[app_id]
        path = f"/apps/{app_id}"
        who = f"?user.name={app.user}"
        for name, value in (("queue", app.queue), ("priority", app.priority), ("state", app.state.name)):
            assert await browse.json(f"{path}/{name}{who}") == {name: value}
        lifetime = {"type": "LIFETIME", "expiryTime": "UNLIMITED", "remainingTimeInSeconds": -1}
        assert await browse.json(f"{path}/timeouts{who}") == {"timeouts": {"timeout": [lifetime]}}
        assert await browse.json(f"{path}/timeouts/LIFETIME{who}") == {"timeout": lifetime}
        assert (await browse(f"{API}{path}/timeouts/NONE{who}"))[0].status == 404
        assert (await browse(f"{API}{path}/queue?user.name=mallory"))[0].status == 403
        full = (await browse.json(f"{path}{who}"))["app"]
        less = (await browse.json(f"{path}{who}&deSelects=timeouts,resourceInfo"))["app"]
        assert full.keys() - less.keys() == {"timeouts", "resourceInfo"}
        assert "Invalid deSelects string x specified" in (await browse(f"{API}{path}?deSelects=x"))[1]
        found = (await browse.json("/appstatistics?states=running,KILLED"))["appStatInfo"]["statItem"]
        assert isinstance(found, list)
        assert {(row["state"], row["type"]): row["count"] for row in found} == {("RUNNING", "*"): 1, ("KILLED", "*"): 0}
        assert (await browse(f"{API}/appstatistics?applicationTypes=a,b"))[0].status == 400
        assert (await browse(f"{API}/nodes?states=AWAY"))[0].status == 400


async def test_whether_somebody_may_submit_to_a_queue() -> None:
    async with web({"yarn.acl.enable": "true", "yarn.admin.acl": "boss"}) as (_, browse):
        for caller, query, status in (
            ("boss", "user=ada&queue-acl-type=SUBMIT_APPLICATIONS", 200),
            ("ada", "user=ada&queue-acl-type=ADMINISTER_QUEUE", 200),
            ("ada", "user=boss&queue-acl-type=SUBMIT_APPLICATIONS", 403),
            ("boss", "user=ada&queue-acl-type=EVERYTHING", 400),
        ):
            answer, text = await browse(f"{API}/queues/default/access?{query}&user.name={caller}")
            assert answer.status == status, text
        assert (await browse(f"{API}/queues/nope/access?user=boss&queue-acl-type=SUBMIT_APPLICATIONS"))[0].status == 400
