"""Measurements: what is found out about the text or the model of a run, apart from its scores.

    make unknown.iwslt15.en-vi.bpe-dropout.base.seed1       the text alone: nothing is trained
    make misspelled.wmt14.en-de.bpe.base.seed1              the model: trained first, if it is not there

How they are made stands in experiments/analysis, a file each; which there are, and what they need, stands here.
"""

from __future__ import annotations

from dataclasses import dataclass

from bpe_dropout import InputError

from .runs import Plan


@dataclass(frozen=True)
class Measure:
    title: str
    model: bool = False  # needs the averaged checkpoint, and not only the text
    dropout: bool = False  # says something of runs with BPE-dropout alone

    def takes(self, plan: Plan) -> bool:
        if self.dropout:
            return bool(plan.method.dropout)
        return self.model or plan.method.kind == "bpe"


MEASURES = {
    "merges": Measure("its merge tables"),
    "lengths": Measure("how long text is with and without dropout", dropout=True),
    "substrings": Measure("how often pieces are tokens, and parts of larger ones", dropout=True),
    "unknown": Measure("the share of unknown pieces under dropout", dropout=True),
    "calibration": Measure("the length ratio at its p, and the p for a ratio of 1.25", dropout=True),
    "embeddings": Measure("neighbours in the source embeddings, and where rare pieces lie", model=True),
    "timing": Measure("how long it takes to translate the test set, again and again", model=True),
    "misspelled": Measure("BLEU on misspelled input", model=True),
}


def check_measure(name: str, plan: Plan) -> None:
    if not MEASURES[name].takes(plan):
        wanted = "a run with BPE-dropout" if MEASURES[name].dropout else "a run with BPE"
        raise InputError(f"{name} is measured of {wanted}, and {plan.run.name} is none")
