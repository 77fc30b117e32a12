"""Trains one run with fairseq-train: python -m scripts.train RUN --folder DATA --output FOLDER

RUN is a name such as iwslt15.en-vi.bpe-dropout.base.seed1 (see scripts/runs.py); DATA is its data folder. Checkpoints
and the log (train.log) go to FOLDER, and at the end training.json. Killed at any moment, the next call goes on.

The number of source tokens in a batch is the corpus's, on however many GPUs there are: gradients are accumulated.
Training ends at the paper's number of updates, or when dev BLEU has not become better for a while (`converged`).
That is decided here, from the log, and not by fairseq's --patience, which forgets what it has seen in a restart.

GPUS=N takes N GPUs (default: all there are); in a Slurm job with several nodes or tasks, fairseq starts on all of them.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fairseq_plugins.averaging as averaging
from bpe_dropout import InputError

from .commands import exit_on_signals, run_logged
from .corpora import ROOT
from .runs import Plan
from .stage import Reporter, Stage, describe_time, plan_of, read_json, write_json

SMALLEST = 1000  # source tokens that a GPU is given at least: a sentence must fit
NEVER = "1000000"


def main() -> None:
    stage = Stage(__doc__)
    stage.add_run()
    stage.add_argument("--folder", type=Path, required=True, metavar="DATA", help="its data folder")
    stage.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where checkpoints go")
    options = stage.parse()
    exit_on_signals()
    plan = plan_of(options)
    train(plan, options.folder, options.output, find_devices(os.environ))


@dataclass(frozen=True)
class Devices:
    """What a training runs on. No GPU: the CPU."""

    gpus: int = 0  # of each node
    nodes: int = 1
    tasks: int = 0  # of each node, that Slurm starts; 0: fairseq starts its processes itself

    @property
    def ranks(self) -> int:
        return max(1, self.gpus, self.tasks) * self.nodes


def find_devices(environment: Mapping[str, str]) -> Devices:
    import torch

    there = torch.cuda.device_count()
    wanted = environment.get("GPUS", "")
    if wanted and not wanted.isdigit():
        raise InputError(f"GPUS is a number of GPUs, not {wanted}")
    gpus = min(int(wanted), there) if wanted else there
    nodes = int(environment.get("SLURM_NNODES", "1"))
    tasks = int(environment.get("TASKS", "0")) if "SLURM_JOB_ID" in environment else 0
    return Devices(gpus, nodes, max(tasks, 1 if nodes > 1 else 0))


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


def method_arguments(plan: Plan) -> list[str]:
    """The --bpe of a run. Decoding takes the same, and does not draw."""
    method = plan.method
    if method.kind == "unigram":
        values = ["--unigram-nbest", method.nbest, "--unigram-alpha", method.alpha, "--unigram-unit", method.unit]
        return ["--bpe", "unigram_regularization", *map(str, values)]
    p = plan.dropout
    return ["--bpe", "bpe_dropout", "--bpe-dropout-src", str(p["src"]), "--bpe-dropout-tgt", str(p["tgt"])]


def common_arguments(plan: Plan, folder: Path) -> list[str]:
    languages = ["--source-lang", plan.run.source, "--target-lang", plan.run.target]
    return [str(folder), "--user-dir", str(ROOT / "fairseq_plugins"), *languages, *method_arguments(plan)]


def train_arguments(plan: Plan, folder: Path, output: Path, devices: Devices) -> list[str]:
    """The whole command line of fairseq-train."""
    model = plan.model
    ranks, tokens, times = shape_batch(plan.batch, devices.ranks, model.tokens_at_once)
    beam = json.dumps({"beam": model.dev_beam, "lenpen": 0.6, "max_len_a": 1.2, "max_len_b": 10})
    characters = plan.corpus.languages[plan.run.target].dev_bleu == "characters"
    device = ["--fp16"] if devices.gpus else ["--cpu"]
    if ranks > 1:
        device += ["--distributed-world-size", str(ranks)]
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
    return ["srun", "--kill-on-bad-exit=1", "--nodes", str(devices.nodes), "--ntasks", str(ranks), *command]


@dataclass
class History:
    """What the log of a training tells."""

    bleu: dict[int, float] = field(default_factory=dict)  # after so many updates
    saved: set[int] = field(default_factory=set)
    last: dict[str, Any] = field(default_factory=dict)  # the latest line of progress
    epoch: dict[str, Any] = field(default_factory=dict)  # the latest summary of an epoch

    def read(self, line: str) -> None:
        if found := re.search(r"Saved checkpoint \S+ \(epoch \d+ @ (\d+) updates", line):
            self.saved.add(int(found[1]))
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
        written = any(number_of(path.name) == updates for path in output.iterdir())
        return updates if updates in history.saved and written else None

    def watch(line: str) -> bool:
        history.read(line)
        report.show(describe(plan, history, log))
        return end() is not None

    check_settings(plan, output / "settings.json")
    arguments = train_arguments(plan, folder, output, devices)
    ranks = shape_batch(plan.batch, devices.ranks, model.tokens_at_once)[0]
    if end() is None:
        print(
            f"{plan.run.name}: trains on {name_devices(devices)}, at most {plan.updates} updates; log: {log}",
            flush=True,
        )
        run_logged(launch(arguments, devices, ranks), log, watch, environment_of(plan, devices))
    report.clear()
    updates = end()
    if updates is None:
        raise InputError(f"{log}: fairseq-train has ended before its last checkpoint was written; see its end")
    finish(plan, output, history, updates, devices, arguments)


def check_settings(plan: Plan, path: Path) -> None:
    """A training goes on with the settings that it was begun with; only the most updates may have changed."""
    settings = json.loads(json.dumps(plan.settings()))
    if path.exists():
        begun = read_json(path)
        changed = [key for key in settings if key != "updates at most" and begun.get(key) != settings[key]]
        if changed:
            raise InputError(
                f"{path.parent} was begun with other settings ({', '.join(changed)}). To train anew, remove the "
                f"folder; to go on, put back what {path} says"
            )
    write_json(path, settings)


def environment_of(plan: Plan, devices: Devices) -> dict[str, str]:
    visible = {"CUDA_VISIBLE_DEVICES": ""} if not devices.gpus else {}
    threads = {} if devices.gpus else {"OMP_NUM_THREADS": str(min(plan.model.threads, os.cpu_count() or 1))}
    if devices.tasks > 1 and not devices.gpus:
        threads = {"OMP_NUM_THREADS": "1"}
    return {**visible, **threads, "PYTHONPATH": str(ROOT)}


def finish(plan: Plan, output: Path, history: History, updates: int, devices: Devices, arguments: list[str]) -> None:
    """training.json: what the later stages and the result need to know."""
    names = [path.name for path in output.iterdir() if number_of(path.name) <= updates]
    chosen = averaging.choose_checkpoints(names, plan.model.average, "update")
    if not chosen:
        raise InputError(f"{output} has no checkpoints up to update {updates}; remove the folder to train again")
    best = max(history.bleu, key=lambda key: (history.bleu[key], -key))
    ranks, tokens, times = shape_batch(plan.batch, devices.ranks, plan.model.tokens_at_once)
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
        "seconds of training": logged(history, "train_wall"),
        "epochs": float(history.last.get("update", history.epoch.get("epoch", 0))),
        "devices": {**vars(devices), "ranks": ranks, "update freq": times, "fp16": bool(devices.gpus)},
        "fairseq-train": arguments,
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
