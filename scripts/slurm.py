"""What is asked of Slurm: time within its limits, memory, and which jobs a call that was killed has left behind."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from bpe_dropout import InputError

from .stage import Reporter

POLL = 5.0


def partition_minutes(partition: str | None) -> int | None:
    """The longest that a job may take in a partition, or in the default one; None: no limit, or none is known."""
    try:
        return limit_of(ask("sinfo", "--noheader", "--format=%P %l", attempts=1), partition)
    except InputError:
        return None


def limit_of(listed: str, partition: str | None) -> int | None:
    """
    >>> limit_of("debug 30:00\\ngpu* 2-00:00:00\\n", None), limit_of("debug 30:00\\ngpu* 2-00:00:00\\n", "debug")
    (2880, 30)
    """
    rows = [line.split() for line in listed.splitlines()]
    wanted = set(partition.split(",")) if partition else set()
    found = [parse_minutes(row[1]) for row in rows if (row[0].strip("*") in wanted if wanted else row[0].endswith("*"))]
    return min((minutes for minutes in found if minutes), default=None)


def parse_minutes(text: str) -> int | None:
    """Slurm's way to write a time: [days-]hours:minutes:seconds, or minutes:seconds.

    >>> parse_minutes("1-12:30:00"), parse_minutes("30:00"), parse_minutes("infinite")
    (2190, 30, None)
    """
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text)
    if not found:
        return None
    days, hours, minutes, _ = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes


def wait_for_jobs(folder: Path) -> None:
    """Waits for jobs that an earlier call, which was killed, has left in this folder: they do the work of this call. An
    error, where Slurm does not say which there are: a second call would train beside the first."""
    report = Reporter()
    told = False
    while jobs := jobs_of(ask("squeue", "--noheader", "--me", "--format=%i|%k|%Z"), folder):
        if not told:
            print(
                f"Jobs of an earlier call still run in {folder}: {', '.join(jobs.values())}. This one waits for them, "
                f"and then continues. To end them instead: scancel {' '.join(jobs)}",
                flush=True,
            )
            told = True
        report.show(f"waits for {len(jobs)} jobs of Slurm: {' '.join(jobs)}")
        time.sleep(POLL)
    report.clear()


def jobs_of(listed: str, folder: Path) -> dict[str, str]:
    """Jobs of Snakemake in a folder, by number: what they do.

    >>> jobs_of("7|rule_train_wildcards_x|/a b\\n8|rule_train_wildcards_y|/c\\n9|mine|/a b\\n", Path("/a b"))
    {'7': 'train x'}
    """
    rows = [line.split("|", maxsplit=2) for line in listed.splitlines()]
    return {
        row[0]: row[1].removeprefix("rule_").replace("_wildcards_", " ")
        for row in rows
        if len(row) == 3 and Path(row[2]) == folder and row[1].startswith("rule_")
    }


def minutes_of_training(seconds: float, limit: int | None) -> int:
    """Twice what is guessed, within the limit: a training that is cut off resumes in the next job.

    >>> minutes_of_training(36000, None), minutes_of_training(36000, 600), minutes_of_training(60, None)
    (1200, 600, 60)
    """
    return int(min(max(60, seconds / 60 * 2), limit or 7 * 24 * 60))


def learning_resources(pairs: int, attempt: int, limit: int | None) -> dict[str, int]:
    """Megabytes and minutes to learn a vocabulary: by our guess, and more of both if that was not enough.

    >>> learning_resources(130_000, 1, None), learning_resources(4_500_000, 1, None)
    ({'mem_mb': 4390, 'runtime': 66}, {'mem_mb': 17500, 'runtime': 285})
    """
    minutes = (60 + pairs // 20_000) * attempt
    return {"mem_mb": (4000 + 3 * pairs // 1000) * attempt, "runtime": min(minutes, limit or minutes)}


def ask(*command: str, attempts: int = 3) -> str:
    """What a command of Slurm says. A controller that is busy is asked again."""
    environment = {**os.environ, "SLURM_TIME_FORMAT": "standard"}
    for attempt in range(attempts):
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
        except OSError as error:
            raise InputError(f"{command[0]} cannot be started: {error.strerror}. Is this a machine of Slurm?") from None
        if done.returncode == 0:
            return done.stdout
        if attempt + 1 < attempts:
            time.sleep(POLL)
    said = done.stderr.strip() or f"it ended with {done.returncode}"
    raise InputError(f"{command[0]} does not answer: {said}. Call this again when Slurm does")
