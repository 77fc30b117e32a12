"""Trains one run with fairseq-train: python -m scripts.train RUN --folder DATA --output FOLDER

RUN is a name such as iwslt15.en-vi.bpe-dropout.base.seed1 (see scripts/runs.py); DATA is its data folder. Checkpoints
and the log (train.log) go to FOLDER, and at the end training.json. Killed at any moment, it resumes with the next call.

The number of source tokens in a batch is the corpus's, on however many GPUs there are: gradients are accumulated.
Training ends at the paper's number of updates, or when what the model stops by, dev BLEU, dev loss or both, has not
improved for a while (`converged`). That is decided here, from the log, and not by fairseq's --patience, which forgets
what it has seen in a restart.

GPUS=N takes N GPUs (1, if there is any; 0: the CPU), which nobody else has (scripts/slots.py). In a job of Slurm,
NODES=N takes so many nodes, a process for each GPU.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from bpe_dropout import InputError
from bpe_dropout.checkpoint_names import choose_checkpoints
from bpe_dropout.checkpoint_names import number_of as number_by
from bpe_dropout.files import clean_up_on_sigterm, whole
from bpe_dropout.methods import METHODS

from .arguments import launch, train_arguments, without_place
from .commands import held, run_logged
from .devices import Devices, environment_of, find_devices, name_devices, ranks_of
from .download import checksum
from .finished import restore_training
from .history import History, best_of, converged, describe, logged, over_windows, progress, read_log
from .machine import machine, versions
from .runs import AT_THE_LIMIT, Plan
from .slots import take_gpus
from .stage import Reporter, Stage, plan_of, read_json, write_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_run()
    stage.add_argument("--folder", type=Path, required=True, metavar="DATA", help="its data folder")
    stage.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where checkpoints go")
    options = stage.parse_args()
    clean_up_on_sigterm()  # what it started ends, too
    plan = plan_of(options)
    devices = find_devices(os.environ)
    locks = take_gpus(ranks_of(plan, devices)[0] if devices.gpus else 0, plan.run.name)
    train(plan, options.folder, options.output, devices, locks)


def train(plan: Plan, folder: Path, output: Path, devices: Devices, locks: Sequence[int] = ()) -> None:
    output.mkdir(parents=True, exist_ok=True)
    log, model = output / "train.log", plan.model
    history, report = History(), Reporter()
    if log.exists():  # of earlier calls
        with held(log):  # the last one has ended
            for line in read_log(log):
                history.read(line)

    def end() -> int | None:
        """After how many updates the training is at its end, if it is, and its last checkpoint is written."""
        bleu, loss = (over_windows(scores, model.window) for scores in (history.bleu, history.loss))
        updates = converged(bleu, loss, model.patience, model.patience_share, model.stops_by)
        if updates is None and plan.updates in history.bleu:
            updates = plan.updates
        return updates if any(number_of(path.name) == updates for path in output.iterdir()) else None

    def watch(line: str) -> bool:
        history.read(line)
        return end() is not None

    def tick() -> None:
        report.show(describe(plan, history, log))

    check_settings(plan, folder, output / "settings.json")
    if restore_training(plan, output, output / "training.json"):
        return
    if end() is None and plan.updates in history.bleu:
        number_the_last(output, plan.updates)
    arguments = train_arguments(plan, folder, output, devices)
    ranks = ranks_of(plan, devices)[0]
    if end() is None:
        print(
            f"{plan.run.name}: trains on {name_devices(devices)}, at most {plan.updates} updates; log: {log}",
            flush=True,
        )
        command, environment = launch(arguments, devices, ranks), environment_of(plan, devices, ranks)
        run_logged(command, log, watch, environment, tick=tick, keep=locks)
    report.clear()
    updates = end()
    if updates is None:
        raise InputError(f"{log}: fairseq-train has ended before its last checkpoint was written; see its end")
    finish(plan, output, history, updates, devices, arguments)


def check_settings(plan: Plan, folder: Path, path: Path) -> None:
    """A training is resumed with the settings and data that it was started with; only its limit may have changed."""
    settings = json.loads(json.dumps({**plan.settings(), "data": sums_of(folder)}))
    if path.exists():
        begun = read_json(path)
        changed = [key for key in settings if key != "updates at most" and begun.get(key) != settings[key]]
        if changed:
            raise InputError(
                f"{path.parent} was started with other settings or data ({', '.join(changed)}). To train again, remove "
                f"that folder; to resume, put back what {path} says"
            )
    write_json(path, settings)


def sums_of(folder: Path) -> dict[str, str]:
    """What a training reads of a data folder."""
    if not folder.is_dir():
        raise InputError(f"there is no data folder {folder}")
    learned = "|".join(re.escape(method.file).replace(r"\{\}", "[^.]+") for method in METHODS.values())
    names = re.compile(rf"(train|valid)\.[^.]+\.[^.]+|dict\.[^.]+\.txt|{learned}")
    return {path.name: checksum(path, "sha256") for path in sorted(folder.iterdir()) if names.fullmatch(path.name)}


def number_the_last(output: Path, updates: int) -> None:
    """Where a training was killed between its last checkpoint and the copy of it that carries its number."""
    last = output / "checkpoint_last.pt"
    if last.exists():
        from bpe_dropout.averaging import load_state  # imports torch, which takes as long as all the rest

        state = load_state(str(last), map_location="cpu")
        if state["optimizer_history"][-1]["num_updates"] == updates:
            epoch = state["extra_state"]["train_iterator"]["epoch"]
            with whole(output / f"checkpoint_{epoch}_{updates}.pt") as part:
                shutil.copyfile(last, part)


def finish(plan: Plan, output: Path, history: History, updates: int, devices: Devices, arguments: list[str]) -> None:
    """training.json: what the later stages and the result need to know."""
    bleu = over_windows({key: bleu for key, bleu in history.bleu.items() if key <= updates}, plan.model.window)
    best = best_of(bleu)
    end = best if plan.model.averages == "best" else updates
    chosen = checkpoints_until(end, [path.name for path in output.iterdir()], plan.model.average)
    if not chosen:
        raise InputError(f"{output} has no checkpoint of update {end}; remove the folder to train again")
    ranks, tokens, times = ranks_of(plan, devices)
    record = {
        "run": plan.run.name,
        "updates": updates,
        "stopped": AT_THE_LIMIT if updates == plan.updates else f"by dev {' and '.join(plan.model.stops_by)}",
        "dev bleu": {str(key): history.bleu[key] for key in sorted(history.bleu) if key <= updates},
        "dev loss": {str(key): history.loss[key] for key in sorted(history.loss) if key <= updates},
        "best dev bleu": {"updates": best, "bleu": round(bleu[best], 3)},
        "checkpoints": chosen,
        "batch": {
            "source tokens at most": tokens * times * ranks,
            "source tokens on average": logged(history, "src_wpb", updates),
        },
        "length ratios": {"src": logged(history, "src_ratio", updates), "tgt": logged(history, "tgt_ratio", updates)},
        "unk shares": {"src": logged(history, "src_unk", updates), "tgt": logged(history, "tgt_unk", updates)},
        "pairs skipped for their length": logged(history, "skipped", updates),
        "seconds": history.seconds,  # of all calls; starting, validations and checkpoints, too
        "epochs": progress(history, "update", updates) or 0.0,
        "devices": {**vars(devices), "ranks": ranks, "update freq": times, "fp16": bool(devices.gpus)},
        "fairseq-train": without_place(arguments),
        "data": read_json(output / "settings.json")["data"],
        "versions": versions(),
        "machine": machine(),
    }
    write_json(output / "training.json", record)
    print(
        f"{plan.run.name}: trained {updates} updates, stopped {record['stopped']}; the best dev BLEU was "
        f"{bleu[best]:.2f}, after {best}",
        flush=True,
    )


def checkpoints_until(end: int, names: list[str], count: int) -> list[str]:
    """The checkpoints that are averaged: so many, the last that of update `end`. None, if it is not there.

    >>> names = ["checkpoint_1_100.pt", "checkpoint_2_200.pt", "checkpoint_3_300.pt", "checkpoint_last.pt"]
    >>> checkpoints_until(200, names, 5), checkpoints_until(250, names, 5)
    (['checkpoint_1_100.pt', 'checkpoint_2_200.pt'], [])
    """
    chosen = choose_checkpoints([name for name in names if number_of(name) <= end], count, "update")
    return chosen if chosen and number_of(chosen[-1]) == end else []


def number_of(name: str) -> float:
    number = number_by(name, "update")
    return math.inf if number is None else number


if __name__ == "__main__":
    main()
