"""Takes turns between competitors, each in a process of its own, and says how their times compare.

CPU time counts where work is done on one thread: what else a machine does changes it little. Each turn gives a ratio;
the median of these is what was measured, and the lowest and the highest are its spread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bpe_dropout import InputError

from .work import Job

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Turn:
    """The seconds of a call in one turn, how much it made, and the most memory that its process has had."""

    cpu: float
    wall: float
    made: float
    memory: float = 0


@dataclass(frozen=True)
class Ratios:
    """How many times as fast, turn by turn.

    >>> ratios = Ratios((3.0, 2.0, 4.0))
    >>> ratios.median, ratios.spread
    (3.0, (2.0, 4.0))
    """

    turns: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.turns)

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.turns), max(self.turns)


def compare(ours: Sequence[Turn], theirs: Sequence[Turn], time: str) -> Ratios:
    """
    >>> compare([Turn(1, 2, 0), Turn(1, 2, 0)], [Turn(5, 8, 0), Turn(6, 8, 0)], "cpu")
    Ratios(turns=(5.0, 6.0))
    """
    pairs = zip(ours, theirs, strict=True)
    return Ratios(tuple(getattr(their, time) / getattr(our, time) for our, their in pairs))


def take_turns(jobs: dict[str, Job], turns: int, trees: dict[str, Path] | None = None) -> dict[str, list[Turn]]:
    """The turns of each job. `trees` has the folder of the package, where it is not the one that is here."""
    taken: dict[str, list[Turn]] = {name: [] for name in jobs}
    with ExitStack() as stack:
        competitors = {
            name: stack.enter_context(Competitor(name, job, (trees or {}).get(name))) for name, job in jobs.items()
        }
        for _ in range(turns):
            for name, competitor in competitors.items():
                taken[name].append(competitor.turn())
    return taken


class Competitor:
    """The process of a job; competitor.py is its other side."""

    def __init__(self, name: str, job: Job, tree: Path | None = None) -> None:
        self.name = name
        paths = [*([str(tree)] if tree else []), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "experiments.bench.competitor", json.dumps(asdict(job))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            text=True,
        )
        try:
            self._answer()
        except BaseException:
            self.__exit__()
            raise

    def turn(self) -> Turn:
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Turn(**self._answer())

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended"}
        if "error" in answer:
            raise InputError(f"{self.name}: {answer['error']}")
        return answer

    def __enter__(self) -> Competitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
