"""How many cores this process may use: under taskset, in a job of Slurm or in a container that has some of them, fewer
than there are."""

from __future__ import annotations

import os


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
