"""The GPUs of this machine: a process takes free ones, and has them to itself until it ends.

Each GPU has a lock file in the folder for temporary files, so that runs of other folders are seen, too. A kill releases
it. In a job of Slurm there is nothing to take: Slurm has given the job its GPUs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .stage import Reporter

FOLDER = Path(tempfile.gettempdir()) / "bpe-dropout-gpus"


def take_gpus(count: int, what: str = "") -> list[int]:
    """Waits until so many GPUs are free, and hides the others from this process and what it starts.

    The locks are file descriptors, which processes that it starts may keep open.
    """
    if not count or "SLURM_JOB_ID" in os.environ:
        return []
    import torch

    names = visible_gpus(os.environ, torch.cuda.device_count())
    report = Reporter()
    said = f"{what} waits for {count} of the GPUs {', '.join(names)}, which others have".lstrip()
    taken = wait_for(names, count, lambda: report.show(said))
    report.clear()
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)
    return list(taken.values())


def visible_gpus(environment: Mapping[str, str], there: int) -> list[str]:
    """The names of GPUs that CUDA_VISIBLE_DEVICES leaves to this process.

    >>> visible_gpus({}, 3), visible_gpus({"CUDA_VISIBLE_DEVICES": "4,6"}, 2)
    (['0', '1', '2'], ['4', '6'])
    """
    named = environment.get("CUDA_VISIBLE_DEVICES", "")
    return [name.strip() for name in named.split(",")][:there] if named else [str(number) for number in range(there)]


def wait_for(
    names: list[str], count: int, tick: Callable[[], None] = lambda: None, folder: Path = FOLDER
) -> dict[str, int]:
    while not (taken := try_to_take(names, count, folder)):
        tick()
        time.sleep(random.uniform(0.5, 1.5))  # two that wait for several GPUs do not keep step
    return taken


def try_to_take(names: list[str], count: int, folder: Path = FOLDER) -> dict[str, int]:
    """The locks of so many GPUs, or none of them."""
    taken: dict[str, int] = {}
    for name in names:
        if len(taken) < count and (lock := try_to_lock(folder / f"{name.replace('/', '-')}.lock")) is not None:
            taken[name] = lock
    if len(taken) == count:
        return taken
    for lock in taken.values():
        os.close(lock)
    return {}


def try_to_lock(path: Path) -> int | None:
    """A lock that is held until the file descriptor is closed, or None. The file may be another user's."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o1777)  # as /tmp: locks are removed by nobody but their owner
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        try:
            lock = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except PermissionError:  # another user was faster, and Linux may forbid to create what is there
            lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with contextlib.suppress(PermissionError):  # another user was faster
            os.fchmod(lock, 0o644)  # whatever the umask says, other users must be able to read it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock
