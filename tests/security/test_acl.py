"""Access lists, groups and machines as Hadoop writes them."""

import os
import pwd

import pytest

from yaqd.config import ConfigError, Configuration
from yaqd.security.acl import AccessControlList
from yaqd.security.groups import Groups, unix_groups
from yaqd.security.impersonation import Machines


def no_groups(user: str) -> list[str]:
    raise AssertionError("groups are looked up only when it depends on them")


@pytest.mark.parametrize(
    ("text", "allowed", "refused"),
    [
        ("*", ["alice", "bob"], []),
        (" * ", ["alice"], []),
        (" ", [], ["alice", ""]),
        ("", [], ["alice", ""]),
        ("alice,bob", ["alice", "bob"], ["carol", "alice,bob", ""]),
        ("alice ", ["alice"], ["bob"]),
        ("*x", [], ["x", "alice"]),
    ],
)
def test_users(text: str, allowed: list[str], refused: list[str]) -> None:
    acl = AccessControlList.parse(text)
    assert all(acl.allows(user, no_groups) for user in allowed)
    assert not any(acl.allows(user, no_groups) for user in refused)


def test_groups_come_after_the_blank() -> None:
    acl = AccessControlList.parse("alice staff, wheel")
    assert acl.allows("alice", no_groups)
    assert acl.allows("bob", lambda user: ("users", "wheel"))
    assert not acl.allows("bob", lambda user: ("alice",))
    assert AccessControlList.parse(" staff").allows("bob", lambda user: ("staff",))


def test_groups_of_this_machine_are_kept_and_forgotten() -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    now = [0.0]
    groups = Groups(kept_s=10, unknown_kept_s=2, overrides={"dr.who": ()}, now=lambda: now[0])
    assert groups(me) == unix_groups(me) != ()
    assert groups("no such user \x00") == () == groups("dr.who")
    groups._known[me] = (("kept",), 5.0)
    assert groups(me) == ("kept",)
    now[0] = 6.0
    assert groups(me) == unix_groups(me)
    groups._known[me] = (("kept",), 100.0)
    conf = Configuration.load(overrides={"hadoop.user.group.static.mapping.overrides": "a=b"}, environ={})
    groups.refresh(conf)
    assert groups("a") == ("b",) and groups(me) == unix_groups(me)


def test_fixed_groups_that_cannot_be_read() -> None:
    conf = Configuration.load(overrides={"hadoop.user.group.static.mapping.overrides": "a=b=c"}, environ={})
    with pytest.raises(ConfigError, match="overrides"):
        Groups.read(conf)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("*", ["1.2.3.4", "::1"], []),
        ("10.0.0.0/8, 192.168.1.7", ["10.255.0.1", "192.168.1.7"], ["11.0.0.1", "192.168.1.8", "rubbish"]),
        ("localhost", ["127.0.0.1"], ["10.0.0.1"]),
        ("no-such-host.invalid", [], ["10.0.0.1"]),
        ("", [], ["127.0.0.1"]),
        ("fe80::/10", ["fe80::1"], ["127.0.0.1"]),
    ],
)
def test_machines(text: str, inside: list[str], outside: list[str]) -> None:
    machines = Machines.parse(text)
    assert all(machines.include(address) for address in inside)
    assert not any(machines.include(address) for address in outside)
