"""Ties a process to the test run that starts it, as the sandbox ties its brokers: ``Popen(leashed(sys.executable, "-m", "ballast", …))``.

A run that is killed, or ended by its time limit, cleans nothing up.  The kernel does (PR_SET_PDEATHSIG, kept by exec), and
asks nothing of the killed process.  This program replaces itself with the command, so that the process id, signals and the
exit code are the command's own.  It fires when the *thread* that started the process ends: start from the main thread.

Set here and not by ``preexec_fn``: between fork and exec of a process with a client library's threads, Python may hang.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def leashed(*command: str) -> list[str]:
    """The command line that runs this command until it ends or its starter does, whichever comes first."""
    # Without site-packages: it takes milliseconds.
    return [sys.executable, "-IS", __file__, str(os.getpid()), *command]


def main(owner: int, command: list[str]) -> None:
    """Become the command."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:
        sys.exit("the process that started this has ended already")
    os.execvp(command[0], command)  # noqa: S606 — the tests' own commands


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
