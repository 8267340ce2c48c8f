"""Becomes another program that the system ends when its parent does, by whatever signal, and with whatever guardian.

`python -I -S leash.py PARENT PROGRAM WORD...`; on another system than Linux it only becomes the program. Not a function
between fork and exec of the parent: that may not be called where the parent has threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(words: list[str]) -> None:
    """Set the signal, which outlives exec but not fork, look whether the parent went meanwhile, and exec."""
    parent, program = int(words[0]), words[1]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return
    os.execv(program, words[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
