"""What a training or a translation runs on, and how a batch is shared among it.

GPUS=N takes N GPUs for each run (1, if there is any; 0: the CPU). On one machine, as many runs go at once as there are
GPUs for, each on GPUs of its own (scripts/slots.py). In a job of Slurm, NODES=N takes so many nodes, a process for each
GPU.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bpe_dropout import InputError
from bpe_dropout.cores import count_cores

from .corpora import ROOT
from .runs import Plan
from .slots import take_gpus

SMALLEST = 1000  # source tokens that a GPU is given at least: a sentence must fit
# glibc takes the memory of each large tensor from the system and gives it back, a quarter of the time of a small model;
# so it keeps up to 1 GB for the next one. What is computed stays the same, bit for bit.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(64 << 20)}


@dataclass(frozen=True)
class Devices:
    """What a training runs on. No GPU: the CPU."""

    gpus: int = 0  # of each node
    nodes: int = 1
    tasks: int = 0  # of each node, that Slurm starts; 0: fairseq starts its processes itself
    cores: int = 1  # of each task

    @property
    def ranks(self) -> int:
        return max(1, self.gpus, self.tasks) * self.nodes


NUMBERS = ("GPUS", "NODES", "TASKS", "TASK_CORES", "CORES", "MAX_MINUTES")


def read_numbers(environment: Mapping[str, str]) -> dict[str, int | None]:
    """What the user asks for by variables; None where nothing is said.

    >>> read_numbers({"GPUS": "2", "NODES": ""})["GPUS"]
    2
    """
    for name in NUMBERS:
        if (value := environment.get(name, "")) and not value.isdecimal():
            raise InputError(f"{name} is a number, not {value}")
    return {name: int(environment[name]) if environment.get(name) else None for name in NUMBERS}


def count_gpus(environment: Mapping[str, str], devices: Path = Path("/dev")) -> int:
    """How many GPUs of this machine may be used, found out without torch, which takes seconds to import."""
    if (named := environment.get("CUDA_VISIBLE_DEVICES")) is not None:
        return sum(not one.startswith("-") for one in named.split(",")) if named else 0
    nvidia = [path for path in devices.glob("nvidia*") if path.name.removeprefix("nvidia").isdecimal()]
    amd = [*devices.glob("dri/renderD*")] if (devices / "kfd").exists() else []
    return len(nvidia) or len(amd) or int((devices / "dxg").exists())  # the last: that of Windows, seen from its Linux


def runs_at_once(there: int, gpus: int | None) -> int:
    """How many runs have GPUs of their own at the same time, where each takes so many (None: one).

    >>> runs_at_once(8, None), runs_at_once(8, 2), runs_at_once(8, 3), runs_at_once(1, 2), runs_at_once(0, None)
    (8, 4, 2, 1, 1)
    """
    return max(1, there // (gpus or 1))


def find_devices(environment: Mapping[str, str], there: int | None = None) -> Devices:
    """What the environment asks for, of what is there. Slurm's own variables do not all reach its jobs."""
    if there is None and (there := count_gpus(environment)):
        import torch  # which takes seconds, and knows whether it can use them

        there = torch.cuda.device_count()
    slurm = "SLURM_JOB_ID" in environment
    wanted = read_numbers(environment)
    gpus = min(1, there) if wanted["GPUS"] is None else wanted["GPUS"]
    if gpus > there:
        raise InputError(
            f"{gpus} GPUs were asked for, and torch sees {there}. If there are more, this torch may be a build for "
            "CPUs: remove .venv, and make setup TORCH=torch==2.13.0; or set GPUS=0"
        )
    nodes = (wanted["NODES"] or 1) if slurm else 1
    tasks = max(wanted["TASKS"] or 0, gpus if nodes > 1 else 0) if slurm else 0
    return Devices(gpus, nodes, tasks, wanted["TASK_CORES"] or 1)


def one_device() -> Devices:
    """A GPU, if there is one and GPUS is not 0; this process has it to itself until it ends."""
    asked = read_numbers(os.environ)["GPUS"]
    devices = Devices(gpus=find_devices({} if asked is None else {"GPUS": str(min(1, asked))}).gpus)
    take_gpus(devices.gpus)
    return devices


def shape_batch(batch: int, ranks: int, at_once: int) -> tuple[int, int, int]:
    """How a batch is reached: ranks to use, source tokens of each at once, and how often before an update.

    >>> shape_batch(32000, ranks=1, at_once=4000), shape_batch(32000, ranks=8, at_once=8000)
    ((1, 4000, 8), (8, 4000, 1))
    >>> shape_batch(4000, ranks=8, at_once=4000)
    (4, 1000, 1)
    """
    ranks = max(1, min(ranks, batch // SMALLEST))
    times = max(1, math.ceil(batch / (ranks * at_once)))
    return ranks, math.ceil(batch / (ranks * times)), times


def ranks_of(plan: Plan, devices: Devices) -> tuple[int, int, int]:
    shape = shape_batch(plan.batch, devices.ranks, plan.model.tokens_at_once)
    if devices.tasks and shape[0] != devices.ranks:
        raise InputError(
            f"{devices.ranks} GPUs are too many for batches of {plan.batch} source tokens: {shape[0]} are enough, with "
            f"{SMALLEST} each"
        )
    return shape


def environment_of(plan: Plan, devices: Devices, ranks: int = 1) -> dict[str, str]:
    """GPUs that a training does not use are hidden from it; on the CPU, threads are limited, and memory is kept."""
    paths = {"PYTHONPATH": str(ROOT)}
    if devices.gpus and devices.tasks:
        return paths
    if devices.gpus:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(devices.gpus)))
        return {**paths, "CUDA_VISIBLE_DEVICES": ",".join(visible.split(",")[:ranks])}
    threads = 1 if devices.tasks > 1 else min(plan.model.threads, count_cores())
    memory = {name: os.environ.get(name, value) for name, value in KEEP_MEMORY.items()}
    return {**paths, **memory, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(threads)}


def name_devices(devices: Devices) -> str:
    if not devices.gpus:
        return "the CPU" if devices.ranks == 1 else f"the CPU, {devices.ranks} processes"
    return f"{devices.gpus} GPU{'s' if devices.gpus > 1 else ''}" + (
        f" on each of {devices.nodes} nodes" if devices.nodes > 1 else ""
    )
