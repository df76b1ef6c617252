"""The stock `yarn` and `mapred queue` commands where lists say who may do what: changes, moves, administration.

What is compared with is what a stock ResourceManager of the same configuration prints.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.ours import OurCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from tests.interop.interop_master import UnmanagedMaster, await_value
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.proto import convert
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.security import Credentials, Token

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

_QUEUES = "yarn.scheduler.capacity.root"
_SITE = {
    "yarn.acl.enable": "true",
    "yarn.admin.acl": "admin wheel",
    "yarn.cluster.max-application-priority": "10",
    "hadoop.user.group.static.mapping.overrides": "olga=operators,staff;mallory=",
    "hadoop.proxyuser.oozie.users": "alice",
    "hadoop.proxyuser.oozie.hosts": "*",
    f"{_QUEUES}.queues": "default,night",
    f"{_QUEUES}.acl_submit_applications": " ",
    f"{_QUEUES}.acl_administer_queue": " ",
    f"{_QUEUES}.default.capacity": "50",
    f"{_QUEUES}.default.acl_submit_applications": "alice,bob",
    f"{_QUEUES}.night.capacity": "50",
    f"{_QUEUES}.night.acl_submit_applications": "alice",
    f"{_QUEUES}.night.acl_administer_queue": "nobody operators",
}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A cluster where users are told apart."""

    ours: OurCluster
    jars: HadoopJars
    client_address: tuple[str, int]
    scheduler_address: tuple[str, int]

    def as_user(self, user: str, **environment: str) -> StockClients:
        return StockClients(self.jars, self.ours.conf_dir, user=user, environment=environment)

    @contextmanager
    def application(self, user: str = "alice") -> Iterator[str]:
        """The id of one that runs in the default queue."""
        with UnmanagedMaster(self.client_address, self.scheduler_address, user) as master:
            yield str(convert.application_id(master.application_id))


@pytest.fixture(scope="module")
def guarded(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    environment = {"JAVA_HOME": str(hadoop.java_home), "HADOOP_USER_NAME": "alice"}
    directory = tmp_path_factory.mktemp("guarded") / "cluster"
    with OurCluster(directory, nodes=1, site=_SITE, environment=environment) as ours:
        conf = Configuration.load(ours.conf_dir)
        yield Guarded(
            ours,
            hadoop,
            conf.get_address("yarn.resourcemanager.address"),
            conf.get_address("yarn.resourcemanager.scheduler.address"),
        )


def test_owner_changes_and_moves_it(guarded: Guarded) -> None:
    alice = guarded.as_user("alice")
    with guarded.application() as app:
        changed = alice.yarn("application", "-appId", app, "-updatePriority", "44").checked().stdout
        assert f"Updated priority of an application  {app} to cluster max priority" in changed
        changed = alice.yarn("application", "-appId", app, "-updateLifetime", "1000").checked().stdout
        expiry = re.search(rf"Successfully updated LIFETIME of an application {app}. New expiry time is (\S+)", changed)
        assert expiry is not None
        moved = alice.yarn("application", "-appId", app, "-changeQueue", "night").checked().stdout
        assert "Successfully completed move." in moved
        status = alice.yarn("application", "-status", app).checked().stdout
        for line in (
            "Queue : root.night",
            "Application Priority : 10",
            "Unmanaged Application : true",
            "Application Node Label Expression : <Not set>",
            "AM container Node Label Expression : <DEFAULT_PARTITION>",
            f"TimeoutType : LIFETIME\tExpiryTime : {expiry[1]}\tRemainingTime : 9",
        ):
            assert line in status
        refused = alice.yarn("application", "-movetoqueue", app, "-queue", "nope")
        assert refused.exit_code == 1
        assert (
            "AccessControlException: User alice cannot submit applications to target queue or the target queue doesn't"
            f" exist: nope while moving {app}"
        ) in refused.stderr


def test_stranger_sees_that_it_is_there_and_changes_nothing(guarded: Guarded) -> None:
    mallory = guarded.as_user("mallory")
    with guarded.application() as app:
        status = mallory.yarn("application", "-status", app).checked().stdout
        for line in ("User : alice", "State : RUNNING", "Tracking-URL : N/A", "RPC Port : -1", "AM Host : N/A"):
            assert line in status
        killed = mallory.yarn("application", "-kill", app)
        assert killed.exit_code == 1
        assert f"User mallory cannot perform operation MODIFY_APP on {app}" in killed.stderr
        attempts = mallory.yarn("applicationattempt", "-list", app)
        assert attempts.exit_code == 1
        assert f"User mallory does not have privilege to see this application {app}" in attempts.stderr


def _until(what: str, seen: Callable[[], bool]) -> None:
    await_value(what, lambda: True if seen() else None)


def test_signalled_master_is_followed_by_another_and_the_queues_administrator_ends_it(guarded: Guarded) -> None:
    submitted = guarded.ours.yaq("run", "--no-wait", "--json", "--queue", "night", "--", "sleep", "300").stdout
    app = json.loads(submitted)["application_id"]
    container = f"container_{app[12:]}_01_000001"
    alice, olga = guarded.as_user("alice"), guarded.as_user("olga")
    _until("the container", lambda: container in _containers(guarded, app))
    alice.yarn("container", "-signal", container, "OUTPUT_THREAD_DUMP").checked()
    _until("its stacks", lambda: "most recent call first" in guarded.ours.yaq("app", "logs", app).stdout)
    # that it is still there shows in the next command
    signalled = alice.yarn("container", "-signal", container, "FORCEFUL_SHUTDOWN").checked()
    assert f"Signalling container {container}" in signalled.stdout
    second = f"appattempt_{app[12:]}_000002"
    _until("the second attempt", lambda: second in alice.yarn("applicationattempt", "-list", app).checked().stdout)
    assert f"Killing application {app}" in olga.yarn("application", "-kill", app).checked().stdout
    status = olga.yarn("application", "-status", app).checked().stdout
    assert f"Application {app} was killed by user olga at 127.0.0.1" in status


def _containers(guarded: Guarded, app: str) -> str:
    return guarded.as_user("alice").yarn("container", "-list", f"appattempt_{app[12:]}_000001").stdout


def test_application_ends_with_its_lifetime(guarded: Guarded) -> None:
    submitted = guarded.ours.yaq("run", "--no-wait", "--json", "--timeout", "3", "--", "sleep", "300").stdout
    app = json.loads(submitted)["application_id"]
    _until("its end", lambda: json.loads(guarded.ours.yaq("app", "status", app, "--json").stdout)["state"] == "KILLED")
    status = guarded.as_user("alice").yarn("application", "-status", app).checked().stdout
    assert "Application is killed by ResourceManager as it has exceeded the lifetime period." in status


def test_rights_in_queues(guarded: Guarded) -> None:
    shown = guarded.as_user("alice").mapred_queue("-showacls").checked().stdout
    assert [line.split() for line in shown.splitlines() if line.startswith("root")] == [
        ["root"],
        ["root.default", "SUBMIT_APPLICATIONS"],
        ["root.night", "SUBMIT_APPLICATIONS"],
    ]
    shown = guarded.as_user("olga").mapred_queue("-showacls").checked().stdout
    assert [line.split() for line in shown.splitlines() if line.startswith("root")] == [
        ["root"],
        ["root.default"],
        ["root.night", "ADMINISTER_QUEUE"],
    ]


def test_administration(guarded: Guarded) -> None:
    mallory, admin = guarded.as_user("mallory"), guarded.as_user("admin")
    refused = mallory.yarn("rmadmin", "-refreshAdminAcls")
    assert refused.exit_code == 255
    assert "AccessControlException: User mallory doesn't have permission to call 'refreshAdminAcls'" in refused.stderr
    for command in ("-refreshAdminAcls", "-refreshSuperUserGroupsConfiguration", "-refreshUserToGroupsMappings"):
        admin.yarn("rmadmin", command).checked()
    off = admin.yarn("rmadmin", "-refreshServiceAcl")
    assert off.exit_code == 255
    assert "java.io.IOException: Service Authorization (hadoop.security.authorization) not enabled." in off.stderr
    groups = admin.yarn("rmadmin", "-getGroups", "olga", "root").checked().stdout
    assert "olga : operators staff" in groups and "root : root" in groups


def test_proxy_user_acts_for_whom_it_may(guarded: Guarded) -> None:
    with guarded.application() as app:
        ended = guarded.as_user("oozie", HADOOP_PROXY_USER="alice").yarn("application", "-kill", app).checked()
        assert f"Killing application {app}" in ended.stdout
    refused = guarded.as_user("oozie", HADOOP_PROXY_USER="bob").yarn("application", "-list")
    assert refused.exit_code != 0
    assert "User: oozie is not allowed to impersonate bob" in refused.stderr


def test_delegation_token_speaks_for_its_owner(guarded: Guarded, tmp_path: Path) -> None:
    host, port = guarded.client_address
    client = BlockingRpcClient(host, port, user="alice")
    made = client.call(Client.getDelegationToken, pb.GetDelegationTokenRequest(renewer="yarn")).token
    service = f"{host}:{port}"
    file = tmp_path / "tokens"
    file.write_bytes(Credentials({service: Token.from_pb(made).with_service(service)}).write())
    holder = guarded.as_user("mallory", HADOOP_TOKEN_FILE_LOCATION=str(file))
    with guarded.application() as app:
        assert f"Killing application {app}" in holder.yarn("application", "-kill", app).checked().stdout
        status = holder.yarn("application", "-status", app).checked().stdout
        assert f"Application {app} was killed by user alice at 127.0.0.1" in status
    client.call(Client.cancelDelegationToken, pb.CancelDelegationTokenRequest(token=made))
    client.close()
    refused = holder.yarn("application", "-list")
    assert refused.exit_code != 0
    assert "can't be found in cache" in refused.stderr
