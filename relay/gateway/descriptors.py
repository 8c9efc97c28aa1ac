"""How many connections the system lets a process have: each is a file descriptor."""

from __future__ import annotations

import resource

__all__ = ["OWN_DESCRIPTORS", "allow_descriptors"]

OWN_DESCRIPTORS = 256
"""What a gateway needs beside its connections: its sockets and theirs inside of libzmq, memory, bells, files."""


def allow_descriptors(wanted: int) -> int:
    """Raise this process's soft limit of descriptors where it is lower than wanted, as far as the hard one allows.

    Args:
        wanted: descriptors.

    Returns:
        The limit in force, at most ``wanted`` where there is none.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    best = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < best:
        resource.setrlimit(resource.RLIMIT_NOFILE, (best, hard))
    return max(soft, best)
