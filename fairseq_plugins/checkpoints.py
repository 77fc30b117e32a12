"""Checkpoints on today's torch: loaded safely, with an error that says what is wrong, and never left half written.

Loading. torch unpickles nothing but tensors and plain Python unless it is told to. fairseq's checkpoints also hold
`argparse.Namespace` and numpy arrays; these, and nothing else, are allowed, and of numpy only stand-ins that make
arrays of numbers: `numpy.ndarray` itself would take any bytes for addresses of objects. A checkpoint that holds
anything more could run code when it is loaded, and is refused; and so is one whose options would be evaluated as code.

Saving. fairseq writes a checkpoint under another name and renames it, but then copies it, byte by byte, to
checkpoint_last.pt: a training that is killed at that moment would leave half a file there. Copies are renamed, too.
And where --save-interval-updates falls on the end of an epoch, fairseq leaves that checkpoint out; here it is written.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
from argparse import Namespace
from functools import wraps
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from omegaconf import DictConfig
from packaging.version import Version

from bpe_dropout import InputError


class SafeDtype:
    """Stands for numpy.dtype in a checkpoint: plain numbers and text. A type of objects could hold any address."""

    def __init__(self, code: str, *_: object) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"[biufU]\d{1,4}", code):
            raise pickle.UnpicklingError(f"an array of the type {code}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class SafeArray(np.ndarray[Any, Any]):
    """Stands for numpy.ndarray in a checkpoint, which would take any memory for its content; pickled as one again."""

    def __new__(cls, *arguments: object) -> SafeArray:
        if arguments:
            raise pickle.UnpicklingError("an array that is made in an unusual way")
        return super().__new__(cls, (0,))

    def __setstate__(self, state: Any, /) -> None:
        version, shape, kind, fortran, data = state
        if self.size or not isinstance(kind, SafeDtype) or not isinstance(data, bytes):
            raise pickle.UnpicklingError("an array that is filled in an unusual way")
        super().__setstate__((version, shape, kind.dtype, fortran, data))

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


def make_array(*_: object) -> SafeArray:
    return SafeArray()


def make_number(kind: SafeDtype, data: bytes) -> Any:
    if not isinstance(kind, SafeDtype) or not isinstance(data, bytes):
        raise pickle.UnpicklingError("a number that is made in an unusual way")
    return np.frombuffer(data, kind.dtype)[0]


def allow_what_fairseq_writes() -> None:
    """Names in a checkpoint, and what is taken for them: of numpy, nothing that could be turned to other ends."""
    stand_ins: list[Any] = [(SafeArray, "numpy.ndarray"), (SafeDtype, "numpy.dtype")]
    for core in ("numpy.core", "numpy._core"):  # numpy 1, and 2
        stand_ins += [(make_array, f"{core}.multiarray._reconstruct"), (make_number, f"{core}.multiarray.scalar")]
    torch.serialization.add_safe_globals([Namespace, *stand_ins])


def explain_failures(load: Any) -> Any:
    """`load(path, ...)`, with sentences for what may be wrong with the file."""

    @wraps(load)
    def load_or_explain(path: str, *args: Any, **kwargs: Any) -> Any:
        try:
            state = load(path, *args, **kwargs)
        except InputError:
            raise
        except pickle.UnpicklingError as error:
            if refused := re.search(r"GLOBAL ([\w.]+)|\bclass ([\w.]+)|(an? (?:array|number) [^.\n]*)", str(error)):
                raise dangerous(path, next(filter(None, refused.groups()))) from None
            raise broken(path) from None
        except RuntimeError as error:
            if "zip archive" in str(error) or "PytorchStreamReader" in str(error):
                raise broken(path) from None
            raise
        except (EOFError, ValueError, IndexError, AttributeError, TypeError, KeyError):
            raise broken(path) from None
        check_expressions(path, state)
        return state

    return load_or_explain


def dangerous(path: str, what: str) -> InputError:
    return InputError(
        f"{path} holds {what}, which no fairseq checkpoint needs and which could run code when it is loaded: it is not "
        "loaded. If you wrote it yourself, save it again without that"
    )


def broken(path: str) -> InputError:
    return InputError(
        f"{path} is not a whole checkpoint of fairseq: it is cut short, or something else. A training goes on from "
        "another one with --restore-file"
    )


# Options that fairseq evaluates as Python when it builds a model of a checkpoint: of convolutional models, say.
EVALUATED = {
    "adafactor_eps", "adam_betas", "adamax_betas", "character_filters", "conv_aggregator_layers", "conv_feature_layers",
    "decoder_attention", "decoder_layers", "downsample", "encoder_attention", "encoder_layers", "gated_attention",
    "lamb_betas", "pretrained", "project_input", "self_attention", "wer_args",
}  # fmt: skip


def check_expressions(path: str, state: Any) -> None:
    """A checkpoint of allowed types could still have fairseq run what stands in its options."""
    waiting = [state.get("cfg"), state.get("args")] if isinstance(state, dict) else []
    while waiting:
        node = waiting.pop()
        options = vars(node) if isinstance(node, Namespace) else node
        if not isinstance(options, dict | DictConfig):
            continue
        for name, value in options.items():
            if (
                name in EVALUATED
                and isinstance(value, str)
                and not re.fullmatch(r"[\d\s\[\](),.*+e-]*|True|False", value)
            ):
                raise dangerous(path, f"the option {name} = {value!r}")
            waiting.append(value)


def copy_whole(src_path: str, dst_path: str) -> bool:
    part = f"{dst_path}.part"
    shutil.copyfile(src_path, part)
    os.replace(part, dst_path)
    return True


def save_at_the_end_of_epochs_too(save_checkpoint: Any) -> Any:
    """checkpoint_EPOCH_UPDATES.pt for every multiple of --save-interval-updates."""

    @wraps(save_checkpoint)
    def save(cfg: Any, trainer: Any, epoch_itr: Any, val_loss: Any) -> Any:
        saved = save_checkpoint(cfg, trainer, epoch_itr, val_loss)
        updates, suffix = trainer.get_num_updates(), trainer.checkpoint_suffix
        last = os.path.join(cfg.save_dir, f"checkpoint_last{suffix}.pt")
        due = cfg.save_interval_updates > 0 and updates % cfg.save_interval_updates == 0 and epoch_itr.end_of_epoch()
        writes = trainer.should_save_checkpoint_on_current_rank and not (cfg.no_save or cfg.no_last_checkpoints)
        if due and writes and not PathManager.path_requires_pathmanager(last):
            copy_whole(last, os.path.join(cfg.save_dir, f"checkpoint_{epoch_itr.epoch}_{updates}{suffix}.pt"))
        return saved

    return save


def install() -> None:
    """Once, when the plugin is imported."""
    if Version(torch.__version__) < Version("2.6"):
        raise ImportError(
            f"torch {torch.__version__} runs whatever code a checkpoint holds: fairseq_plugins needs torch 2.6 or newer"
        )
    allow_what_fairseq_writes()
    checkpoint_utils.load_checkpoint_to_cpu = explain_failures(checkpoint_utils.load_checkpoint_to_cpu)
    checkpoint_utils.save_checkpoint = save_at_the_end_of_epochs_too(checkpoint_utils.save_checkpoint)
    copy = PathManager.copy

    def copy_checkpoint(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        remote = PathManager.path_requires_pathmanager(src_path) or PathManager.path_requires_pathmanager(dst_path)
        return copy(src_path, dst_path, overwrite) if remote else copy_whole(src_path, dst_path)

    PathManager.copy = staticmethod(copy_checkpoint)
