"""All that the plugin replaces in fairseq, torch and Python: what, by what, why, and for which version.

Written for fairseq-fixed 0.12.3.1, which is fairseq 0.12.2 for today's Python, and torch from 2.6 on. Every
replacement is a function of what was there before, and is in the module of its subject; here is the list.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import checkpoint_utils, file_utils, tasks
from fairseq.data import iterators
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer
from packaging.version import Version

from bpe_dropout.checkpoints import explain_failures

from . import checkpoints, consumers, errors, guard, task


@dataclass(frozen=True)
class Patch:
    owner: Any  # a module, a class or a registry
    name: str | None
    replace: Callable[[Any], Any]  # makes what takes its place from what was there
    why: str
    version: str  # that needs it


FAIRSEQ = "fairseq-fixed 0.12.3.1"

PATCHES = [
    Patch(
        torch,
        "load",
        checkpoints.load_safely_for_fairseq,
        "fairseq leaves it to torch whether a pickle may run code, and torch to the environment",
        f"{FAIRSEQ}; torch before 2.6 runs code, later ones with TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD",
    ),
    Patch(
        checkpoint_utils,
        "load_checkpoint_to_cpu",
        explain_failures,
        "a file that is cut short or dangerous gets a sentence",
        FAIRSEQ,
    ),
    Patch(
        checkpoint_utils,
        "load_model_ensemble_and_task",
        checkpoints.explain_models,
        "a model of another dictionary, or with options that are code, gets a sentence",
        FAIRSEQ,
    ),
    Patch(
        file_utils,
        "load_archive_file",
        checkpoints.unpack_safely,
        "an archive that from_pretrained unpacks could write anywhere",
        f"{FAIRSEQ}, before Python 3.14",
    ),
    Patch(
        Trainer,
        "load_checkpoint",
        checkpoints.explain_restoring,
        "so does a training that is resumed with another dictionary",
        FAIRSEQ,
    ),
    Patch(
        checkpoint_utils,
        "save_checkpoint",
        checkpoints.save_at_the_end_of_epochs_too,
        "--save-interval-updates leaves out updates that end an epoch",
        FAIRSEQ,
    ),
    Patch(
        PathManager,
        "copy",
        checkpoints.copy_checkpoints_whole,
        "a training that is killed while it copies leaves half a checkpoint_last.pt",
        FAIRSEQ,
    ),
    Patch(
        iterators,
        "BackgroundConsumer",
        consumers.end_with_python,
        "a training that stops in the middle of an epoch may be aborted at its very end",
        f"{FAIRSEQ}, before Python 3.14",
    ),
    Patch(
        tasks.TASK_REGISTRY,
        "translation",
        lambda _: task.ResegmentingTask,
        "--bpe bpe_dropout is all that a training needs",
        "any fairseq",
    ),
    Patch(
        tasks.TASK_REGISTRY,
        None,
        lambda _: task.ForgottenTask,
        "fairseq-validate without --task ends in KeyError: None",
        FAIRSEQ,
    ),
    Patch(
        tasks,
        "setup_task",
        task.refuse_other_tasks,
        "another task would train with our --bpe and never draw",
        "any fairseq",
    ),
    Patch(
        sys,
        "excepthook",
        errors.say_sentences,
        "fairseq's commands show bad input as a traceback",
        "any fairseq",
    ),
]


def install() -> None:
    """Once, when the plugin is imported."""
    if Version(torch.__version__) < Version("2.6"):
        raise ImportError(
            f"torch {torch.__version__} runs whatever code a checkpoint holds: fairseq_plugins needs torch 2.6 or newer"
        )
    guard.guard_fairseq()  # `eval` in fairseq's modules reads literals: fairseq evaluates options of a checkpoint
    for patch in PATCHES:
        if isinstance(patch.owner, dict):
            patch.owner[patch.name] = patch.replace(patch.owner.get(patch.name))
        elif patch.name is not None:
            setattr(patch.owner, patch.name, patch.replace(getattr(patch.owner, patch.name)))
