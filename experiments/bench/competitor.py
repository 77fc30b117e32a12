"""Does one kind of work with one tool, in a process of its own, a turn for each line that it reads.

    python -P -m experiments.bench.competitor JOB

JOB is a work.Job as JSON. Prints a line when it is ready, and after each turn the seconds of a call and what the call
returned. A turn that would be too short to time is of several calls. What tools print themselves is not seen.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from experiments.bench.work import NO_WARMING, READY, Call, Job

SHORTEST = 0.3  # seconds of a turn


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nothing:
        for stream in (1, 2):
            os.dup2(nothing.fileno(), stream)
    job = Job(**json.loads(sys.argv[1]))
    try:
        hold_to(job.threads)
        call = READY[job.tool, job.work](job)
        repeats = 1 if (job.tool, job.work) in NO_WARMING else calls_a_turn(turn(call, 1)["wall"])
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return
    print(json.dumps({"ready": repeats}), file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps(turn(call, repeats)), file=answers, flush=True)


def hold_to(threads: int) -> None:
    """So that one thread is one core, whatever a tool does by itself."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def calls_a_turn(seconds: float) -> int:
    """
    >>> calls_a_turn(0.1), calls_a_turn(5.0), calls_a_turn(0.0)
    (3, 1, 1000)
    """
    return max(1, min(1000, math.ceil(round(SHORTEST / max(seconds, 1e-9), 6))))


def turn(call: Call, repeats: int) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(repeats):
        made = call()
    return {
        "cpu": (time.process_time() - cpu) / repeats,
        "wall": (time.perf_counter() - wall) / repeats,
        "made": made,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }


if __name__ == "__main__":
    main()
