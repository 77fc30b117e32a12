"""Measurements: what is found out about the text or the model of a run, apart from its scores.

    make unknown.iwslt15.en-vi.bpe-dropout.base.seed1       the text alone: nothing is trained
    make timing.wmt14.en-de.bpe.base.seed1                  the model: trained first, if it is not there

How they are made is in experiments/analysis, a file each; which there are, and what they need, is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpe_dropout import InputError

if TYPE_CHECKING:
    from .runs import Plan


@dataclass(frozen=True)
class Measure:
    title: str
    of: str = "a run"  # of any, of one with BPE, or of one with BPE-dropout
    model: bool = False  # needs the averaged checkpoint, and not only the text

    def takes(self, plan: Plan) -> bool:
        one_p = plan.method.drops and not plan.method.has_rule
        methods = {"a run": True, BPE: plan.method.kind == "bpe", DROPOUT: one_p}
        return methods[self.of]


BPE, DROPOUT = "a run with BPE", "a run with BPE-dropout, one p for all merges"
MEASURES = {
    "datasets": Measure("how many pairs its text has"),
    "merges": Measure("its merge tables", of=BPE),
    "lengths": Measure("how long text is with and without dropout", of=DROPOUT),
    "substrings": Measure("how often pieces are tokens, and parts of larger ones", of=DROPOUT),
    "unknown": Measure("the share of unknown pieces under dropout", of=DROPOUT),
    "calibration": Measure("the length ratio at its p, and the p for a ratio of 1.25", of=DROPOUT),
    "embeddings": Measure("neighbours in the source embeddings, and where rare pieces lie", model=True),
    "several": Measure("its translations from several segmentations of the source", model=True),
    "timing": Measure("how long it takes to translate the test set, again and again", model=True),
}


def is_of_model(record: str) -> bool:
    """Whether a record, of a test set or of a measurement, is a measurement of a model."""
    return record in MEASURES and MEASURES[record].model


def is_of_text(record: str) -> bool:
    """Whether it is a measurement of a text alone: no training is in it."""
    return record in MEASURES and not MEASURES[record].model


def check_measure(name: str, plan: Plan) -> None:
    if not MEASURES[name].takes(plan):
        raise InputError(f"{name} is measured of {MEASURES[name].of}, and {plan.run.name} is none")
