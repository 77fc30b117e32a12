"""Averages checkpoints: the mean of each parameter, in double precision (the paper averages the last 5).

The average can translate, like any checkpoint; it has no state of the optimizer, so no training can be resumed from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from .checkpoint_names import choose_checkpoints
from .checkpoints import explain_failures, load_safely
from .errors import InputError
from .files import check_output, whole

load_state = explain_failures(load_safely)


def average(paths: Sequence[Path], output: Path, last: int | None = None, by: str = "epoch") -> None:
    """Averages checkpoints, or with `last` the last of their folder, by epoch or by update; says which it takes."""
    if last is not None:
        paths = find_last(paths, last, by)
    check_output(output, *paths)
    for path in paths:
        print(f"takes {path}")
    state = average_states(paths)
    with whole(output.resolve()) as part:
        torch.save(state, part)
    print(f"wrote {output}, the average of {len(paths)}")


def find_last(folders: Sequence[Path], last: int, by: str) -> list[Path]:
    if len(folders) != 1 or not folders[0].is_dir():
        raise InputError("--last takes the checkpoints of one folder: name that folder, and nothing else")
    if last < 1:
        raise InputError(f"--last: a number of checkpoints from 1 on, not {last}")
    folder = folders[0]
    found = choose_checkpoints([path.name for path in folder.iterdir()], last, by)
    if len(found) < last:
        example = {"epoch": "checkpoint7.pt", "update": "checkpoint_3_1500.pt"}[by]
        raise InputError(f"{folder} has {len(found)} checkpoints by {by}, such as {example}, and {last} were asked for")
    return [folder / name for name in found]


def average_states(paths: Sequence[Path]) -> dict[str, Any]:
    """The first checkpoint, with the mean of all of them as its model."""
    first: dict[str, Any] | None = None
    sums: dict[str, torch.Tensor] = {}
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder: say how many of its checkpoints with --last")
        if not path.is_file():
            raise InputError(f"there is no checkpoint {path}")
        state = load_state(str(path), map_location="cpu")
        if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
            raise InputError(f"{path} is not a checkpoint of fairseq: it has no model")
        for name, value in state["model"].items():
            if not isinstance(value, torch.Tensor):
                raise InputError(f"{path} is not a checkpoint of fairseq: {name} of its model is no tensor")
        if first is None:
            first = state
            first["last_optimizer_state"] = None
            sums = {
                name: value.to(torch.float64, copy=True) if value.is_floating_point() else value
                for name, value in state["model"].items()
            }
            continue
        check_same(paths[0], first["model"], path, state["model"])
        for name, value in state["model"].items():
            if value.is_floating_point():
                sums[name] += value.double()
            elif not torch.equal(sums[name], value):
                raise InputError(f"{path}: {name} holds whole numbers, and they differ from those in {paths[0]}")
    if first is None:
        raise InputError("there is nothing to average: name checkpoints, or a folder and --last")
    first["model"] = {
        name: (sums[name] / len(paths)).to(value.dtype) if value.is_floating_point() else value
        for name, value in first["model"].items()
    }
    return first


def check_same(first: Path, model: dict[str, torch.Tensor], path: Path, other: dict[str, torch.Tensor]) -> None:
    if model.keys() != other.keys():
        name = sorted(model.keys() ^ other.keys())[0]
        raise InputError(f"{first} and {path} are different models: only one of them has {name}")
    for name, value in model.items():
        if value.shape != other[name].shape:
            raise InputError(
                f"{first} and {path} are different models: {name} is {tuple(value.shape)} in the one and "
                f"{tuple(other[name].shape)} in the other"
            )
        if value.is_floating_point() != other[name].is_floating_point():
            raise InputError(f"{first} and {path} are different models: only one of them has whole numbers as {name}")
