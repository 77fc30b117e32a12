"""What the log of a training tells: how far it is, how good, for how long it ran, and whether that is enough."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .runs import Plan
from .stage import describe_time


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


def logged(history: History, name: str) -> float | None:
    """A metric, of the latest whole epoch, or before the first has ended of the latest line of progress."""
    for found in (history.epoch.get(f"train_{name}"), history.last.get(name)):
        if found is not None:
            return float(found)
    return None


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


def read_log(log: Path) -> Iterable[str]:
    with log.open(encoding="utf-8", errors="replace") as file:
        yield from file
