"""Who is calling: what a handler may know about its peer."""

import re
from dataclasses import dataclass
from typing import Final, Literal

#: user names end up in paths, logs and command lines
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$+ -]{0,254}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Caller:
    #: the name that the connection context gives (SIMPLE) or that the token names (TOKEN)
    user: str
    #: who acts for `user`, where the connection context says so
    real_user: str | None
    auth: Literal["SIMPLE", "TOKEN"]
    #: the verified identifier, None for SIMPLE
    token_identifier: bytes | None
    token_kind: str | None
    address: tuple[str, int]


def is_user_name(name: str) -> bool:
    """Return whether a name from a stranger can be used as a user.

    It has no separators, no control characters, no `..`.
    """
    return _USER.match(name) is not None and ".." not in name
