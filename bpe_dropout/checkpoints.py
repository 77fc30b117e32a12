"""Checkpoints of fairseq, loaded safely, with an error that says what is wrong. Needs torch, and not fairseq.

torch unpickles nothing but tensors and plain Python if it is told so, and here it always is. fairseq's checkpoints also
hold `argparse.Namespace` and numpy arrays; these, and nothing else, are allowed, and of numpy only stand-ins that make
arrays of numbers: `numpy.ndarray` itself would take any bytes for addresses of objects. A checkpoint that holds
anything more could run code when it is loaded, and is refused. Its options are data, too: they refer to nothing outside
of themselves. What fairseq does with them is guarded by fairseq_plugins.
"""

from __future__ import annotations

import pickle
import re
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np
import torch

from .errors import InputError

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


def check_options(path: str, state: Any) -> None:
    """Options of a checkpoint hold no `${...}`: fairseq resolves its own before it writes them."""
    for node in options_of(state):
        for text in [*node.keys(), *node.values()] if isinstance(node, dict) else node:
            if isinstance(text, str) and "${" in text:
                raise dangerous(path, f"an option that refers to something else, {text[:200]!r}")


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
