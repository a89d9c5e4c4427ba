"""The first instants of a server process: give up root, tie its life to ours, become the program.

Run as a script by file name (``python -I -S launch.py``), so only the standard library is at hand. A process of its
own rather than subprocess's ``preexec_fn``, because Python code between fork and exec can deadlock in a program that
has threads. The order matters: the kernel forgets the parent-death signal when the user id changes, so it is set
afterwards; and a parent that died before it was set would go unnoticed, so the parent is looked at once more.

The signal follows the *thread* that forked, not the process: `process` therefore forks from a thread that lives
exactly as long as the server.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def _become(uid: int, gid: int) -> None:
    try:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        sys.exit(
            f"Postgres refuses to run as root, and this root may not become uid {uid} ({error.strerror}): "
            f"start Sluice as an ordinary user, or point DATABASE_URL at a Postgres of your own"
        )


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the process that wanted this server is gone")


def main(arguments: list[str]) -> None:
    """`arguments`: the parent's pid, ``uid:gid`` or ``-``, then the program and its own arguments."""
    parent, account, *command = arguments
    if account != "-":
        uid, _, gid = account.partition(":")
        _become(int(uid), int(gid))
    os.umask(0o077)
    _die_with(int(parent))
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"{sys.argv[3]}: {error}")
