"""Code in an option never runs: in every module of fairseq `eval` reads literals, and `exec` refuses.

A name in a module's globals comes before the builtin of that name, so `eval` and `exec` are put there: into the modules
that are imported already, and into later ones, before their first line runs. Modules are known by their folder,
since fairseq's examples can be imported under any name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import fairseq

from bpe_dropout import InputError

from .literals import evaluate

HOME = Path(fairseq.__file__).parent
FOLDERS = [str(path) for path in (HOME, HOME.resolve(), HOME.parent / "fairseq_cli", (HOME / "examples").resolve())]


def execute(*_: Any) -> None:
    raise InputError("fairseq would run text as Python, which is never needed here: it is not run")


def is_fairseq(path: str | None) -> bool:
    """Whether a file or folder is fairseq's."""
    return path is not None and any(path == folder or path.startswith(f"{folder}/") for folder in FOLDERS)


def is_guarded(names: dict[str, Any]) -> bool:
    """Whether these are the globals of a module of fairseq."""
    return names.get("eval") is evaluate


def guard(module: ModuleType) -> None:
    vars(module).update(eval=evaluate, exec=execute)


class GuardedLoader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        guard(module)
        super().exec_module(module)


class GuardedFinder:
    """Finds modules of fairseq before anything else does, and loads them guarded."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not any(map(is_fairseq, sys.path if path is None else path)):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or not is_fairseq(spec.origin) or not isinstance(spec.loader, SourceFileLoader):
            return None
        spec.loader = GuardedLoader(name, spec.loader.path)
        return spec


def guard_fairseq() -> None:
    """Guards the modules that are imported already, and those that will be."""
    for module in list(sys.modules.values()):
        if is_fairseq(getattr(module, "__file__", None)):
            guard(module)
    if GuardedFinder not in sys.meta_path:
        sys.meta_path.insert(0, GuardedFinder)
