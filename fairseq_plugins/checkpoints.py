"""Checkpoints on today's torch: loaded safely, with an error that says what is wrong, and never left half written.

Loading. torch unpickles nothing but tensors and plain Python if it is told so, and here it always is. fairseq's
checkpoints also hold `argparse.Namespace` and numpy arrays; these, and nothing else, are allowed, and of numpy only
stand-ins that make arrays of numbers: `numpy.ndarray` itself would take any bytes for addresses of objects. A
checkpoint that holds anything more could run code when it is loaded, and is refused. Its options are data, too: what
fairseq would evaluate of them is read as literals (guard.py), they refer to nothing outside of themselves, and files
that they name are read from the data folder only.

Saving. fairseq writes a checkpoint under another name and renames it, but then copies it, byte by byte, to
checkpoint_last.pt: a training that is killed at that moment would leave half a file there. Copies are renamed, too.
And where --save-interval-updates falls on the end of an epoch, fairseq leaves that checkpoint out; here it is written.

What of this takes the place of something in fairseq or torch is listed in patches.py.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from bpe_dropout import InputError
from bpe_dropout.files import whole

from .guard import is_guarded
from .literals import NotALiteral
from .methods import OF_CHECKPOINT, file_options

torch_load = torch.load


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


@contextmanager
def only_what_fairseq_writes() -> Iterator[None]:
    """Within it, torch knows these names in a checkpoint and no others: of numpy, nothing that could be abused.

    What other libraries let torch load comes back afterwards: transformers, say, loads arrays of numpy's own.
    """
    stand_ins: list[Any] = [(SafeArray, "numpy.ndarray"), (SafeDtype, "numpy.dtype")]
    for core in ("numpy.core", "numpy._core"):  # numpy 1, and 2
        stand_ins += [(make_array, f"{core}.multiarray._reconstruct"), (make_number, f"{core}.multiarray.scalar")]
    others = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with torch.serialization.safe_globals([Namespace, *stand_ins]):
            yield
    finally:
        torch.serialization.add_safe_globals(others)


def load_safely(file: Any, map_location: Any = None) -> Any:
    """torch.load of tensors and plain data alone, whatever $TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD says."""
    with only_what_fairseq_writes():
        state = torch_load(file, map_location, weights_only=True)
    check_options(str(getattr(file, "name", file)), state)
    return state


def load_safely_for_fairseq(load: Any) -> Any:
    """`torch.load`, which from a module of fairseq loads safely, and from elsewhere is what it was."""

    @wraps(load)
    def load_or_load_safely(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not is_guarded(sys._getframe(1).f_globals):
            return load(f, map_location, *args, **kwargs)
        state = load_safely(f, map_location)
        mark_named_files(state)
        return state

    return load_or_load_safely


def explain_failures(load: Any) -> Any:
    """`load(path, ...)`, with error messages for what may be wrong with the file."""

    @wraps(load)
    def load_or_explain(path: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load(path, *args, **kwargs)
        except InputError:
            raise
        except pickle.UnpicklingError as error:
            if refused := re.search(r"GLOBAL ([\w.]+)|\bclass ([\w.]+)|(an? (?:array|number) [^.\n]*)", str(error)):
                raise dangerous(path, next(filter(None, refused.groups()))) from None
            raise broken(path) from None
        except RuntimeError as error:
            if "zip archive" in str(error) or "PytorchStreamReader" in str(error) or "TorchScript" in str(error):
                raise broken(path) from None
            raise
        except (EOFError, ValueError, IndexError, AttributeError, TypeError, KeyError):
            raise broken(path) from None

    return load_or_explain


def explain_models(load: Any) -> Any:
    """`load_model_ensemble_and_task`, with an error message for options and dictionaries that do not match."""

    @wraps(load)
    def load_models(filenames: Sequence[str], *args: Any, **kwargs: Any) -> Any:
        paths = ", ".join(map(str, filenames))
        try:
            return load(filenames, *args, **kwargs)
        except NotALiteral as error:
            raise InputError(f"{paths} is not loaded: {error}") from None
        except RuntimeError as error:
            raise other_dictionary(paths, error) or error from None

    return load_models


def explain_restoring(load_checkpoint: Any) -> Any:
    """The trainer's `load_checkpoint`, with the same error message."""

    @wraps(load_checkpoint)
    def load(trainer: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_checkpoint(trainer, filename, *args, **kwargs)
        except Exception as error:  # fairseq hides what went wrong behind one of its own
            raise (other_dictionary(filename, error.__context__) if error.__context__ else None) or error from None

    return load


def dangerous(path: str, what: str) -> InputError:
    return InputError(
        f"{path} holds {what}, which no fairseq checkpoint needs and which could run code when it is loaded: it is not "
        "loaded. If you wrote it yourself, save it again without that"
    )


def broken(path: str) -> InputError:
    return InputError(
        f"{path} is not a whole checkpoint of fairseq: it is cut short, or something else. To resume from another "
        "one, use --restore-file"
    )


def other_dictionary(path: str, error: BaseException) -> InputError | None:
    """The error if a model does not fit because a dictionary is not the one that it was trained with."""
    mismatch = r"size mismatch for (en|de)coder\.embed_tokens\.weight: .*?Size\(\[(\d+), .*?Size\(\[(\d+), "
    for side, trained, now in re.findall(mismatch, str(error)):
        if trained != now:
            return InputError(
                f"{path} was trained with {trained} entries in the dictionary of the "
                f"{'source' if side == 'en' else 'target'} side, and now it has {now}: the dictionary has changed. "
                f"Use the one that it was trained with, or train again, with another --save-dir"
            )
    return None


def check_options(path: str, state: Any) -> None:
    """Options of a checkpoint hold no `${...}`: fairseq resolves its own before it writes them."""
    for node in options_of(state):
        for text in [*node.keys(), *node.values()] if isinstance(node, dict) else node:
            if isinstance(text, str) and "${" in text:
                raise dangerous(path, f"an option that refers to something else, {text[:200]!r}")


def mark_named_files(state: Any) -> None:
    """Marks the files that options of a checkpoint name. What the user names comes later, and replaces them."""
    for node in options_of(state):
        if isinstance(node, dict):
            for option in file_options() & node.keys():
                if isinstance(node[option], str):
                    node[option] = OF_CHECKPOINT + node[option].removeprefix(OF_CHECKPOINT)


def options_of(state: Any) -> Iterator[dict[Any, Any] | list[Any] | tuple[Any, ...]]:
    """All mappings and lists in the options of a checkpoint, however deep."""
    waiting: list[Any] = [state.get("cfg"), state.get("args")] if isinstance(state, dict) else []
    seen = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Namespace):
            node = vars(node)
        if isinstance(node, dict | list | tuple) and id(node) not in seen:
            seen.add(id(node))
            waiting += node.values() if isinstance(node, dict) else node
            yield node


def copy_whole(src_path: str, dst_path: str) -> bool:
    with whole(dst_path) as part:
        shutil.copyfile(src_path, part)
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
            if cfg.keep_interval_updates > 0:
                remove_old(cfg, rf"checkpoint_\d+_(\d+){suffix}\.pt")
        return saved

    return save


def remove_old(cfg: Any, pattern: str) -> None:
    """Removes all but the last --keep-interval-updates, which fairseq does within an epoch only."""
    found = checkpoint_utils.checkpoint_paths(cfg.save_dir, pattern=pattern, keep_match=True)  # the newest first
    every = cfg.keep_interval_updates_pattern
    counted = [path for path, updates in found if every == -1 or updates % every != 0]
    for path in counted[cfg.keep_interval_updates :]:
        os.remove(path)


def copy_checkpoints_whole(copy: Any) -> Any:
    """`PathManager.copy`, by which fairseq makes checkpoint_last.pt."""

    def copy_checkpoint(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        remote = PathManager.path_requires_pathmanager(src_path) or PathManager.path_requires_pathmanager(dst_path)
        return copy(src_path, dst_path, overwrite) if remote else copy_whole(src_path, dst_path)

    return staticmethod(copy_checkpoint)
