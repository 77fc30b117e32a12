"""The command lines of fairseq: what a run's settings mean to fairseq-train and fairseq-generate."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_dropout import InputError

from .corpora import ROOT
from .devices import Devices, ranks_of
from .runs import LENPEN, Plan

NEVER = "1000000"


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
    beam = json.dumps({"beam": model.dev_beam, "lenpen": LENPEN, "max_len_a": 1.2, "max_len_b": 10})
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
        *("--keep-interval-updates", str(plan.checkpoints), "--save-interval", NEVER, "--no-epoch-checkpoints"),
        *("--validate-interval-updates", str(plan.interval), "--validate-interval", NEVER),
        *("--eval-bleu", "--eval-bleu-args", beam, "--eval-bleu-detok", "characters" if characters else "space"),
        *("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"),
        *("--skip-invalid-size-inputs-valid-test", "--required-batch-size-multiple", "1"),  # else 7 pairs are lost
        *("--log-format", "json", "--log-interval", str(min(100, plan.interval)), "--no-progress-bar"),
        *device,
    ]


def without_place(arguments: list[str]) -> list[str]:
    """For a record: the path of this folder on a machine does not matter."""
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
