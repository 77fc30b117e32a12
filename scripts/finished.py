"""Runs that are finished: their checkpoints, 6.5 GB of a Transformer base, are removed, and never missed.

RUN/finished has the record of the training and the average of its checkpoints. Snakemake does not know of it. So
when it makes training.json or average.pt again, for whatever reason, they are taken from there, and nothing is trained
twice.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.files import whole

from .runs import AT_THE_LIMIT, Plan
from .stage import read_json, write_json

FOLDER, RECORD, AVERAGE = "finished", "training.json", "average.pt"


def finish(folder: Path, training: Path, average: Path) -> None:
    """Keeps the average and the record, and then removes all checkpoints. It may be killed anywhere."""
    kept = folder / FOLDER
    with whole(kept / AVERAGE) as part:
        link(average, part)
    write_json(kept / RECORD, read_json(training))  # last: with it, the folder is complete
    remove_checkpoints(folder)


def remove_checkpoints(folder: Path) -> None:
    for path in folder.glob("checkpoint*.pt*"):
        path.unlink(missing_ok=True)


def read_finished(folder: Path) -> dict[str, Any] | None:
    """The record of a training that is finished, if it is."""
    path = folder / FOLDER / RECORD
    return read_json(path) if path.is_file() else None


def restore_training(plan: Plan, folder: Path, output: Path) -> bool:
    """Whether a training was finished, so that its record could be written again."""
    record = read_finished(folder)
    if record is None:
        return False
    if record["stopped"] == AT_THE_LIMIT and record["updates"] < plan.updates:
        raise InputError(
            f"{folder} was trained for {record['updates']} updates and finished, and its checkpoints were removed. To "
            f"train it for {plan.updates}, remove that folder; KEEP_CHECKPOINTS=1 keeps checkpoints to resume from"
        )
    write_json(output, record)
    remove_checkpoints(folder)
    return True


def restore_average(folder: Path, training: Path, output: Path) -> bool:
    """Whether the average was made already, of this very training, and its checkpoints are gone."""
    if read_finished(folder) != read_json(training):
        return False
    with whole(output) as part:
        link(folder / FOLDER / AVERAGE, part)
    os.utime(output)
    remove_checkpoints(folder)
    return True


def link(source: Path, target: Path) -> None:
    """The same file under a second name, which takes no room; a copy, where there are no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
