"""The share of unknown pieces under dropout (section 4.2, footnote).

With BPE's own vocabulary, some pieces that BPE-dropout makes of the training text are not in it. Measured on each side
of a run's training text, over 5 epochs: python -m experiments.analysis.unknown RUN --folder DATA --output FILE
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_dropout import Corpus, Dictionary, Segmenter

from .measurement import begin, draw_epochs, record, sides_of

EPOCHS = 5


def main() -> None:
    plan, options = begin("unknown", __doc__)
    found: dict[str, Any] = {"split": "train", "epochs": EPOCHS, "seed": plan.run.seed}
    for name, side in sides_of(plan, options.folder).items():
        measured = measure(side.corpus("train"), side.segmenter, side.dictionary, side.p, plan.run.seed, side.number)
        size = len(side.dictionary)
        found[name] = {"language": side.language, "p": side.p, "pieces in the vocabulary": size, **measured}
    record("unknown", plan, options, found)


def measure(
    corpus: Corpus, segmenter: Segmenter, dictionary: Dictionary, p: float, seed: int = 1, side: int = 0
) -> dict[str, Any]:
    sampler = corpus.sampler(segmenter, dictionary, p, eos=None)
    unknown = pieces = 0
    for ids in draw_epochs(sampler, EPOCHS, seed, side):
        unknown += int(np.count_nonzero(ids == dictionary.unk))
        pieces += len(ids)
    return {"share": unknown / max(1, pieces), "unknown": unknown, "pieces": pieces}


if __name__ == "__main__":
    main()
