"""Checkpoints on today's torch: loaded safely, with an error that says what is wrong, and never left half written.

Loading. torch unpickles nothing but tensors and plain Python unless it is told to. fairseq's checkpoints also hold
`argparse.Namespace` and numpy arrays; these, and nothing else, are allowed, and of numpy only stand-ins that make
arrays of numbers: `numpy.ndarray` itself would take any bytes for addresses of objects. A checkpoint that holds
anything more could run code when it is loaded, and is refused.

Saving. fairseq writes a checkpoint under another name and renames it, but then copies it, byte by byte, to
checkpoint_last.pt: a training that is killed at that moment would leave half a file there. Copies are renamed, too.
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
        if not isinstance(kind, SafeDtype) or not isinstance(data, bytes):
            raise pickle.UnpicklingError("an array of an unusual type")
        super().__setstate__((version, shape, kind.dtype, fortran, data))

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


def make_array(*_: object) -> SafeArray:
    return SafeArray()


def make_number(kind: SafeDtype, data: bytes) -> Any:
    return np.frombuffer(data, kind.dtype)[0]


def allow_what_fairseq_writes() -> None:
    """Names in a checkpoint, and what is taken for them: of numpy, nothing that could be turned to other ends."""
    stand_ins: list[Any] = [(SafeArray, "numpy.ndarray"), (SafeDtype, "numpy.dtype")]
    for core in ("numpy.core", "numpy._core"):  # numpy 1, and 2
        stand_ins += [(make_array, f"{core}.multiarray._reconstruct"), (make_number, f"{core}.multiarray.scalar")]
    torch.serialization.add_safe_globals([Namespace, *stand_ins])


def explain_failures(load: Any) -> Any:
    @wraps(load)
    def load_or_explain(path: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load(path, *args, **kwargs)
        except pickle.UnpicklingError as error:
            raise refused(path, error) from None
        except (EOFError, RuntimeError) as error:
            if isinstance(error, EOFError) or "zip archive" in str(error) or "PytorchStreamReader" in str(error):
                raise InputError(
                    f"{path} is not a whole checkpoint: it is cut short, or something else. "
                    "To go on from another one, name it with --restore-file"
                ) from None
            raise

    return load_or_explain


def refused(path: str, error: Exception) -> InputError:
    found = re.search(r"GLOBAL ([\w.]+)|class ([\w.]+)", str(error))
    name = next(filter(None, found.groups()), None) if found else None
    what = f"holds {name}, which" if name else "holds something that"
    return InputError(
        f"{path} {what} no fairseq checkpoint needs and which could run code when it is loaded: it is not "
        "loaded. If you wrote it yourself, save it again without that"
    )


def copy_whole(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    part = f"{dst_path}.part"
    shutil.copyfile(src_path, part)
    os.replace(part, dst_path)
    return True


def install() -> None:
    """Once, when the plugin is imported."""
    allow_what_fairseq_writes()
    checkpoint_utils.load_checkpoint_to_cpu = explain_failures(checkpoint_utils.load_checkpoint_to_cpu)
    copy = PathManager.copy

    def copy_checkpoint(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        remote = PathManager.path_requires_pathmanager(src_path) or PathManager.path_requires_pathmanager(dst_path)
        return copy(src_path, dst_path, overwrite) if remote else copy_whole(src_path, dst_path)

    PathManager.copy = staticmethod(copy_checkpoint)
