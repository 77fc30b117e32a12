"""What all measurements share: a run and its data folder in, one JSON file out, which says how it was made."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_dropout import Corpus, Dictionary, Sampler, Segmenter
from scripts.machine import versions, weights_of
from scripts.measures import MEASURES, check_measure
from scripts.runs import Plan
from scripts.stage import Stage, plan_of, write_json

AT_ONCE = 200_000  # sentences


def begin(name: str, text: str | None, more: tuple[tuple[str, dict[str, Any]], ...] = ()) -> tuple[Plan, Any]:
    """The command line of a measurement: its plan, and its options."""
    stage = Stage(text, f"python -m experiments.analysis.{name}")
    stage.add_run()
    stage.add_argument("--folder", type=Path, required=True, metavar="DATA", help="its data folder")
    if MEASURES[name].model:
        stage.add_argument("--checkpoint", type=Path, required=True, metavar="FILE", help="its averaged checkpoint")
    else:
        stage.add_argument("--counts", type=Path, metavar="FILE", help="counts.json of its words")
    stage.add_argument("--output", type=Path, required=True, metavar="FILE", help="the measurement")
    for option, settings in more:
        stage.add_argument(option, **settings)
    options = stage.parse_args()
    plan = plan_of(options)
    check_measure(name, plan)
    return plan, options


def record(name: str, plan: Plan, options: argparse.Namespace, found: dict[str, Any]) -> None:
    head = {"measure": name, "run": plan.run.name, "command": f"make {name}.{plan.run.name}"}
    if MEASURES[name].model:
        head["model"] = weights_of(options.checkpoint)
    write_json(options.output, {**head, **found, "configuration": plan.settings(), "versions": versions()})
    print(f"{plan.run.name}: {MEASURES[name].title}: {options.output}", flush=True)


@dataclass(frozen=True)
class FolderSide:
    """One side of a run's data folder."""

    number: int  # 0 for the source, 1 for the target
    language: str
    p: float
    folder: Path
    pair: str

    @cached_property
    def segmenter(self) -> Segmenter:
        return Segmenter.from_codes(self.folder / f"codes.{self.language}")

    @cached_property
    def dictionary(self) -> Dictionary:
        """Without the pieces that only fill it up to a multiple of 8."""
        found = Dictionary.load(self.folder / f"dict.{self.language}.txt")
        ids = {piece: number for piece, number in found.ids.items() if not piece.startswith("madeupword")}
        return Dictionary(ids, found.unk, found.eos)

    def corpus(self, split: str) -> Corpus:
        return Corpus(self.folder / f"{split}.{self.pair}.{self.language}")


def sides_of(plan: Plan, folder: Path) -> dict[str, FolderSide]:
    """Both sides, each with the p that its language has in BPE-dropout, whether this run drops on that side or not."""
    pair = "-".join(plan.corpus.pair)
    found = {}
    for number, (side, language) in enumerate((("src", plan.run.source), ("tgt", plan.run.target))):
        p = plan.run.p_of(side)
        found[side] = FolderSide(
            number, language, plan.corpus.languages[language].dropout if p is None else p, folder, pair
        )
    return found


def draw_epochs(sampler: Sampler, epochs: int, seed: int, side: int) -> Iterator[NDArray[np.int32]]:
    """The ids of a text as so many epochs draw them, some sentences at a time."""
    for epoch in range(1, epochs + 1):
        for first in range(0, len(sampler), AT_ONCE):
            part = range(first, min(first + AT_ONCE, len(sampler)))
            yield sampler.tokens(part, seed=seed, epoch=epoch, side=side).ids
