"""Keeps a process from outliving the one that started it.

A supervisor names itself in the environment of its children; they ask the kernel to end them with it, however it ends
(Linux), so that nothing is left running after ``kill -9``.
"""

import ctypes
import os
import signal

SUPERVISED = "SLUICE_SUPERVISED_BY"


def environment(**more: str) -> dict[str, str]:
    """Our own environment for a child of ours."""
    return {**os.environ, SUPERVISED: str(os.getpid()), **more}


def die_with_supervisor() -> None:
    """To be called first thing in the child; does nothing in a process that somebody else started."""
    parent = os.environ.get(SUPERVISED)
    if parent is None:
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != int(parent):
        os._exit(1)
