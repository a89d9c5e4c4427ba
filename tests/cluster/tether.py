"""How does a server not outlive the test that started it, even one that is killed outright?

Run as a script, this asks the kernel to kill the process as soon as its parent is gone, and then becomes the program
named on its command line. It is a program of its own because the request has to be made between fork and exec, and
running Python there in a process with several threads is not safe.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tether this process to the parent with the given id and turn into the command that follows it."""
    parent_id, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # The parent may have died before the request above; then nobody will ever send the signal.
    if os.getppid() != parent_id:
        sys.exit("the parent is gone already")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
