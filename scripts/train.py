"""Trains one run with fairseq-train: python -m scripts.train RUN --folder DATA --output FOLDER

RUN is a name such as iwslt15.en-vi.bpe-dropout.base.seed1 (see scripts/runs.py); DATA is its data folder. Checkpoints
and the log (train.log) go to FOLDER, and at the end training.json. Killed at any moment, the next call goes on.

The number of source tokens in a batch is the corpus's, on however many GPUs there are: gradients are accumulated.
Training ends at the paper's number of updates, or when dev BLEU has not become better for a while (`converged`).
That is decided here, from the log, and not by fairseq's --patience, which forgets what it has seen in a restart.

GPUS=N takes N GPUs (default: all there are). In a job of Slurm, NODES=N takes so many nodes, a process for each GPU.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fairseq_plugins.averaging as averaging
from bpe_dropout import InputError
from bpe_dropout.files import whole
from bpe_dropout.methods import METHODS

from .commands import exit_on_signals, run_logged
from .corpora import ROOT
from .download import checksum
from .machine import machine, versions
from .runs import Plan
from .stage import Reporter, Stage, describe_time, plan_of, read_json, write_json

SMALLEST = 1000  # source tokens that a GPU is given at least: a sentence must fit
NEVER = "1000000"


def main() -> None:
    stage = Stage(__doc__)
    stage.add_run()
    stage.add_argument("--folder", type=Path, required=True, metavar="DATA", help="its data folder")
    stage.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where checkpoints go")
    options = stage.parse_args()
    exit_on_signals()
    plan = plan_of(options)
    train(plan, options.folder, options.output, find_devices(os.environ))


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


def find_devices(environment: Mapping[str, str], there: int | None = None) -> Devices:
    """What the environment asks for, of what is there. Slurm's own variables do not all reach its jobs."""
    if there is None:
        import torch

        there = torch.cuda.device_count()
    slurm = "SLURM_JOB_ID" in environment
    wanted = {}
    for name in ("GPUS", "NODES", "TASKS", "TASK_CORES"):
        value = environment.get(name, "")
        if value and not value.isdigit():
            raise InputError(f"{name} is a number, not {value}")
        wanted[name] = int(value) if value else None
    gpus = there if wanted["GPUS"] is None else wanted["GPUS"]
    if gpus > there:
        raise InputError(
            f"{gpus} GPUs were asked for, and torch sees {there}. If there are more, this torch may be a build for "
            "CPUs: remove .venv, and make setup TORCH=torch==2.13.0; or say GPUS=0"
        )
    nodes = (wanted["NODES"] or 1) if slurm else 1
    tasks = max(wanted["TASKS"] or 0, gpus if nodes > 1 else 0) if slurm else 0
    return Devices(gpus, nodes, tasks, wanted["TASK_CORES"] or 1)


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


def method_arguments(plan: Plan) -> list[str]:
    """The --bpe of a run and its options. Decoding takes the same, and does not draw."""
    return flags(plan.method.fairseq_options(plan.dropout))


def common_arguments(plan: Plan, folder: Path) -> list[str]:
    languages = ["--source-lang", plan.run.source, "--target-lang", plan.run.target]
    return [str(folder), "--user-dir", str(ROOT / "fairseq_plugins"), *languages, *method_arguments(plan)]


def train_arguments(plan: Plan, folder: Path, output: Path, devices: Devices) -> list[str]:
    """The whole command line of fairseq-train."""
    model = plan.model
    ranks, tokens, times = ranks_of(plan, devices)
    beam = json.dumps({"beam": model.dev_beam, "lenpen": 0.6, "max_len_a": 1.2, "max_len_b": 10})
    characters = plan.corpus.languages[plan.run.target].dev_bleu == "characters"
    device = ["--fp16"] if devices.gpus else ["--cpu"]
    device += ["--distributed-world-size", str(ranks)]  # fairseq's default is all GPUs that it sees
    if ranks > 1:
        port = str(20000 + int(os.environ.get("SLURM_JOB_ID", "0")) % 20000)
        if not devices.gpus:
            device += ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp", "--distributed-no-spawn"]
            device += ["--distributed-init-method", f"tcp://localhost:{port}"]
        elif devices.tasks:
            device += ["--distributed-port", port]
    return [
        *common_arguments(plan, folder),
        *flags(model.fairseq),
        "--resegment-source-tokens",
        *("--max-tokens", str(tokens), "--update-freq", str(times), "--max-tokens-valid", str(model.tokens_at_once)),
        *("--max-update", str(plan.updates), "--max-epoch", "0", "--seed", str(plan.run.seed)),
        *("--save-dir", str(output), "--save-interval-updates", str(plan.interval)),
        *("--keep-interval-updates", str(model.average + 2), "--save-interval", NEVER, "--no-epoch-checkpoints"),
        *("--validate-interval-updates", str(plan.interval), "--validate-interval", NEVER),
        *("--eval-bleu", "--eval-bleu-args", beam, "--eval-bleu-detok", "characters" if characters else "space"),
        *("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"),
        *("--skip-invalid-size-inputs-valid-test", "--required-batch-size-multiple", "1"),  # else 7 pairs are lost
        *("--log-format", "json", "--log-interval", str(min(100, plan.interval)), "--no-progress-bar"),
        *device,
    ]


def without_place(arguments: list[str]) -> list[str]:
    """For a record: where this folder lies on a machine is of no interest."""
    return [argument.replace(f"{ROOT}/", "") for argument in arguments]


def flags(options: Mapping[str, Any]) -> list[str]:
    """
    >>> flags({"arch": "transformer", "share_all_embeddings": True, "fp16": False})
    ['--arch', 'transformer', '--share-all-embeddings']
    """
    made: list[str] = []
    for name, value in options.items():
        if value is not False:
            made += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
    return made


def launch(arguments: list[str], devices: Devices, ranks: int) -> list[str]:
    command = [str(Path(sys.executable).parent / "fairseq-train"), *arguments]
    if not devices.tasks or ranks == 1:
        return command
    if not devices.gpus:
        if devices.nodes > 1:
            raise InputError("a training on several nodes needs GPUs; on CPUs it can have several tasks of one node")
        # fairseq finds its rank in Slurm's variables, and then a GPU of that number. Without GPUs it has to be told.
        command = ["bash", "-c", 'exec "$@" --distributed-rank "$SLURM_PROCID"', "bash", *command]
    step = ["srun", "--kill-on-bad-exit=1", "--nodes", str(devices.nodes), "--ntasks", str(ranks)]
    step += ["--ntasks-per-node", str(ranks // devices.nodes), "--cpus-per-task", str(devices.cores)]
    return [*step, *command]


@dataclass
class History:
    """What the log of a training tells."""

    bleu: dict[int, float] = field(default_factory=dict)  # after so many updates
    walls: list[float] = field(default_factory=list)  # seconds, of each call
    last: dict[str, Any] = field(default_factory=dict)  # the latest line of progress
    epoch: dict[str, Any] = field(default_factory=dict)  # the latest summary of an epoch

    def read(self, line: str) -> None:
        if line.startswith("$ "):
            self.walls.append(0.0)
        for tag in ("valid", "train_inner", "train"):
            _, bar, after = line.partition(f"| {tag} | ")
            if not bar or not after.startswith("{"):
                continue
            try:
                logged = json.loads(after)
            except ValueError:  # half a line, of a process that was killed
                continue
            if tag == "valid" and "valid_bleu" in logged:
                self.bleu[int(logged["valid_num_updates"])] = float(logged["valid_bleu"])
            elif tag == "train_inner":
                self.last = logged
                if self.walls:
                    self.walls[-1] = float(logged.get("wall", 0))
            elif tag == "train":
                self.epoch = logged


def converged(bleu: Mapping[int, float], patience: int, share: float) -> int | None:
    """The updates after which dev BLEU had not become better for long enough, or None.

    Long enough is `patience` checkpoints, and that share of all checkpoints so far: longer trainings wait longer.

    >>> converged({100: 1.0, 200: 3.0, 300: 2.0, 400: 2.5}, patience=2, share=0.25)
    400
    >>> converged({100: 1.0, 200: 3.0, 300: 2.0}, patience=2, share=0.25) is None
    True
    """
    best, best_at = -1.0, -1
    for number, updates in enumerate(sorted(bleu)):
        if bleu[updates] > best:
            best, best_at = bleu[updates], number
        if number - best_at >= max(patience, math.ceil(share * (number + 1))):
            return updates
    return None


def train(plan: Plan, folder: Path, output: Path, devices: Devices) -> None:
    output.mkdir(parents=True, exist_ok=True)
    log, model = output / "train.log", plan.model
    history, report = History(), Reporter()
    if log.exists():  # of earlier calls
        for line in read_log(log):
            history.read(line)

    def end() -> int | None:
        """After how many updates the training is at its end, if it is, and its last checkpoint is written."""
        updates = converged(history.bleu, model.patience, model.patience_share)
        if updates is None and plan.updates in history.bleu:
            updates = plan.updates
        return updates if any(number_of(path.name) == updates for path in output.iterdir()) else None

    def watch(line: str) -> bool:
        history.read(line)
        return end() is not None

    def tick() -> None:
        report.show(describe(plan, history, log))

    check_settings(plan, folder, output / "settings.json")
    if end() is None and plan.updates in history.bleu:
        number_the_last(output, plan.updates)
    arguments = train_arguments(plan, folder, output, devices)
    ranks = ranks_of(plan, devices)[0]
    if end() is None:
        print(
            f"{plan.run.name}: trains on {name_devices(devices)}, at most {plan.updates} updates; log: {log}",
            flush=True,
        )
        run_logged(launch(arguments, devices, ranks), log, watch, environment_of(plan, devices, ranks), tick=tick)
    report.clear()
    updates = end()
    if updates is None:
        raise InputError(f"{log}: fairseq-train has ended before its last checkpoint was written; see its end")
    finish(plan, output, history, updates, devices, arguments)


def check_settings(plan: Plan, folder: Path, path: Path) -> None:
    """A training goes on with the settings and the data that it was begun with; only its limit may have changed."""
    settings = json.loads(json.dumps({**plan.settings(), "data": sums_of(folder)}))
    if path.exists():
        begun = read_json(path)
        changed = [key for key in settings if key != "updates at most" and begun.get(key) != settings[key]]
        if changed:
            raise InputError(
                f"{path.parent} was begun with other settings or data ({', '.join(changed)}). To train anew, remove "
                f"that folder; to go on, put back what {path} says"
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
        state = averaging.load_state(str(last), map_location="cpu", weights_only=True)
        if state["optimizer_history"][-1]["num_updates"] == updates:
            epoch = state["extra_state"]["train_iterator"]["epoch"]
            with whole(output / f"checkpoint_{epoch}_{updates}.pt") as part:
                shutil.copyfile(last, part)


def environment_of(plan: Plan, devices: Devices, ranks: int = 1) -> dict[str, str]:
    """GPUs that a training does not use are hidden from it; on the CPU, threads are limited."""
    paths = {"PYTHONPATH": str(ROOT)}
    if devices.gpus and devices.tasks:
        return paths
    if devices.gpus:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(devices.gpus)))
        return {**paths, "CUDA_VISIBLE_DEVICES": ",".join(visible.split(",")[:ranks])}
    threads = 1 if devices.tasks > 1 else min(plan.model.threads, os.cpu_count() or 1)
    return {**paths, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(threads)}


def finish(plan: Plan, output: Path, history: History, updates: int, devices: Devices, arguments: list[str]) -> None:
    """training.json: what the later stages and the result need to know."""
    names = [path.name for path in output.iterdir() if number_of(path.name) <= updates]
    chosen = averaging.choose_checkpoints(names, plan.model.average, "update")
    if not chosen:
        raise InputError(f"{output} has no checkpoints up to update {updates}; remove the folder to train again")
    best = max(history.bleu, key=lambda key: (history.bleu[key], -key))
    ranks, tokens, times = ranks_of(plan, devices)
    record = {
        "run": plan.run.name,
        "updates": updates,
        "stopped": "at the limit" if updates == plan.updates else "by dev BLEU",
        "dev bleu": {str(key): history.bleu[key] for key in sorted(history.bleu) if key <= updates},
        "best dev bleu": {"updates": best, "bleu": history.bleu[best]},
        "checkpoints": chosen,
        "batch": {
            "source tokens at most": tokens * times * ranks,
            "source tokens on average": logged(history, "src_wpb"),
        },
        "length ratios": {"src": logged(history, "src_ratio"), "tgt": logged(history, "tgt_ratio")},
        "unk shares": {"src": logged(history, "src_unk"), "tgt": logged(history, "tgt_unk")},
        "pairs skipped for their length": logged(history, "skipped"),
        "seconds": sum(history.walls),  # validations and checkpoints, too
        "epochs": float(history.last.get("update", history.epoch.get("epoch", 0))),
        "devices": {**vars(devices), "ranks": ranks, "update freq": times, "fp16": bool(devices.gpus)},
        "fairseq-train": without_place(arguments),
        "versions": versions(),
        "machine": machine(),
    }
    write_json(output / "training.json", record)
    print(
        f"{plan.run.name}: trained {updates} updates, stopped {record['stopped']}; the best dev BLEU was "
        f"{history.bleu[best]:.2f}, after {best}",
        flush=True,
    )


def logged(history: History, name: str) -> float | None:
    """A metric, of the latest whole epoch, or before the first has ended of the latest line of progress."""
    for found in (history.epoch.get(f"train_{name}"), history.last.get(name)):
        if found is not None:
            return float(found)
    return None


def number_of(name: str) -> float:
    found = re.fullmatch(averaging.NAMES["update"], name)
    return int(found[1]) if found else math.inf


def describe(plan: Plan, history: History, log: Path) -> str:
    last = history.last
    updates = int(last.get("num_updates", 0))
    text = f"{plan.run.name}: update {updates} of at most {plan.updates}"
    if last:
        text += f", loss {last.get('loss')}"
        if rate := float(last.get("ups", 0)):
            text += f", {last.get('wps')} words/s, {describe_time((plan.updates - updates) / rate)} left at most"
    if history.bleu:
        text += f", dev BLEU {history.bleu[max(history.bleu)]:.2f}, {max(history.bleu.values()):.2f} at best"
    return text if last else f"{text}; {log}"


def name_devices(devices: Devices) -> str:
    if not devices.gpus:
        return "the CPU" if devices.ranks == 1 else f"the CPU, {devices.ranks} processes"
    return f"{devices.gpus} GPU{'s' if devices.gpus > 1 else ''}" + (
        f" on each of {devices.nodes} nodes" if devices.nodes > 1 else ""
    )


def read_log(log: Path) -> Iterable[str]:
    with log.open(encoding="utf-8", errors="replace") as file:
        yield from file


if __name__ == "__main__":
    main()
