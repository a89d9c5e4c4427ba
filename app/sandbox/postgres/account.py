"""As which user the server runs.

Postgres refuses to run as root. An ordinary user's server runs as that user. For root it is the owner of the data
once there is data, else the asked-for user, else an existing system account: nobody is created, and the account owns
only the two directories made for it. ``initdb`` looks its user up by name, so a bare number will not do.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from app.errors import Misconfigured

_PREFERRED = ("nobody", "daemon", "postgres")
_WAY_OUT = "start Sluice as an ordinary user, or point DATABASE_URL at a Postgres of your own"


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int


def choose(data: Path, user: str | None) -> Account | None:
    """The account to change to; None means: stay who we are."""
    me = os.geteuid()
    if me != 0:
        _refuse_foreign(data, me)
        return None
    if data.exists() and data.stat().st_uid != 0:
        owner = data.stat()
        return Account(owner.st_uid, owner.st_gid)
    return _named(user) if user else _system_account()


def _refuse_foreign(data: Path, me: int) -> None:
    if data.exists() and data.stat().st_uid != me:
        owner = data.stat().st_uid
        raise Misconfigured(
            f"{data} belongs to uid {owner} and this process runs as uid {me}: start it as the owner or as root, "
            f"or choose another data directory"
        )
    try:
        pwd.getpwuid(me)
    except KeyError:
        raise Misconfigured(
            f"embedded Postgres needs a named user, and uid {me} has no entry in /etc/passwd: add one, "
            f"or point DATABASE_URL at a Postgres of your own"
        ) from None


def _named(user: str) -> Account:
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise Misconfigured(f"there is no user {user!r} to run embedded Postgres as") from None
    if entry.pw_uid == 0:
        raise Misconfigured(f"embedded Postgres cannot run as {user!r}, which is root: {_WAY_OUT}")
    return Account(entry.pw_uid, entry.pw_gid)


def _system_account() -> Account:
    entries = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in _PREFERRED:
        if name in entries:
            return Account(entries[name].pw_uid, entries[name].pw_gid)
    raise Misconfigured(
        f"Postgres refuses to run as root and none of the users {', '.join(_PREFERRED)} exists: {_WAY_OUT}"
    )
