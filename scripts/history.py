"""What the log of a training tells: how far it is, how good, for how long it ran, and whether that is enough."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from .runs import OnDev, Plan
from .stage import describe_time


@dataclass
class History:
    """What the log of a training tells."""

    bleu: dict[int, float] = field(default_factory=dict)  # after so many updates
    loss: dict[int, float] = field(default_factory=dict)  # on the dev set
    calls: list[list[datetime]] = field(default_factory=list)  # the first and the latest time of each call
    last: dict[str, Any] = field(default_factory=dict)  # the latest line of progress
    progress: dict[int, dict[str, Any]] = field(default_factory=dict)  # all of them
    epochs: dict[int, dict[str, Any]] = field(default_factory=dict)  # what is said of an epoch at its end

    @property
    def seconds(self) -> float:
        """How long all calls ran. fairseq's own `wall` is 0 after a restart within an epoch."""
        return sum((call[-1] - call[0]).total_seconds() for call in self.calls if call)

    def read(self, line: str) -> None:
        if line.startswith("$ "):
            self.calls.append([])
        elif self.calls and (time := time_of(line)):
            self.calls[-1][1:] = [time]
        for tag in ("valid", "train_inner", "train"):
            _, bar, after = line.partition(f"| {tag} | ")
            if not bar or not after.startswith("{"):
                continue
            try:
                logged = json.loads(after)
            except ValueError:  # half a line, of a process that was killed
                continue
            if tag == "valid" and "valid_bleu" in logged:
                updates = int(logged["valid_num_updates"])
                self.bleu[updates] = float(logged["valid_bleu"])
                self.loss[updates] = float(logged["valid_loss"])
            elif tag == "train_inner":
                self.last = self.progress[int(logged["num_updates"])] = logged
            elif tag == "train":
                self.epochs[int(logged["train_num_updates"])] = logged


def time_of(line: str) -> datetime | None:
    """When a line was logged.

    >>> time_of("2026-11-16 22:05:31 | INFO | fairseq_cli.train | done training in 6.5 seconds")
    datetime.datetime(2026, 11, 16, 22, 5, 31)
    """
    try:
        return datetime.strptime(line[:19], "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None


def converged(
    bleu: Mapping[int, float],
    loss: Mapping[int, float],
    patience: int,
    share: float,
    by: Sequence[OnDev],
) -> int | None:
    """The updates after which neither dev BLEU nor dev loss, or one of them alone, had improved for long enough, or
    None.

    Long enough is `patience` checkpoints, and that share of all checkpoints so far: longer trainings wait longer. BLEU
    alone would stop a model that has learned little yet: its BLEU is near 0, and any of its peaks may be chance. The
    loss alone, or beside it, gives more time to a model whose loss goes on falling where its BLEU does not rise.

    >>> bleu = {100: 1.0, 200: 3.0, 300: 2.0, 400: 2.5}
    >>> converged(bleu, {100: 9.0, 200: 8.0, 300: 8.1, 400: 8.2}, patience=2, share=0.25, by=["bleu", "loss"])
    400
    >>> converged(bleu, {100: 9.0, 200: 8.0, 300: 8.1, 400: 7.9}, patience=2, share=0.25, by=["bleu", "loss"]) is None
    True
    >>> converged(bleu, {100: 9.0, 200: 8.0, 300: 8.1, 400: 7.9}, patience=2, share=0.25, by=["bleu"])
    400
    """
    best, lowest, better_at = -1.0, math.inf, -1
    for number, updates in enumerate(sorted(bleu)):
        if (bleu[updates] > best and "bleu" in by) or (loss[updates] < lowest and "loss" in by):
            better_at = number
        best, lowest = max(best, bleu[updates]), min(lowest, loss[updates])
        if number - better_at >= max(patience, math.ceil(share * (number + 1))):
            return updates
    return None


def over_windows(scores: Mapping[int, float], width: int) -> dict[int, float]:
    """The mean over each `width` checkpoints in a row, by the last of them; while there are fewer, over all.

    >>> over_windows({100: 1.0, 200: 3.0, 300: 2.0}, 2), over_windows({100: 1.0}, 2)
    ({200: 2.0, 300: 2.5}, {100: 1.0})
    """
    updates = sorted(scores)
    width = min(width, len(updates))
    last = range(width - 1, len(updates)) if updates else ()
    return {updates[i]: fmean(scores[one] for one in updates[i - width + 1 : i + 1]) for i in last}


def best_of(bleu: Mapping[int, float]) -> int:
    """The updates after which dev BLEU was highest; the first of several."""
    return max(bleu, key=lambda updates: (bleu[updates], -updates))


def logged(history: History, name: str, updates: int) -> float | None:
    """A metric of a training that ended after so many updates: of the latest epoch that was whole before, or without
    one of the latest line of progress.

    What comes later in a log depends on when its training was ended: fairseq also sums up the part of an epoch that it
    has trained at its very last update, and may be killed before that.
    """
    whole = [at for at in history.epochs if at < updates]
    found = history.epochs[max(whole)].get(f"train_{name}") if whole else None
    return progress(history, name, updates) if found is None else float(found)


def progress(history: History, name: str, updates: int) -> float | None:
    """A metric in the latest line of progress, until so many updates."""
    until = [at for at in history.progress if at <= updates]
    found = history.progress[max(until)].get(name) if until else None
    return None if found is None else float(found)


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
