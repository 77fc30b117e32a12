"""BLEU of resampled test sets, for differences between differences.

Two systems are compared by SacreBLEU itself (scripts/compare.py). Whether one gain is larger than another takes four of
them, on one test set or on two versions of it. So each result has its BLEU on 1000 test sets, drawn with replacement
from the sentences of its own. The draws depend on the number of sentences alone, as SacreBLEU's do: results of the same
test set are paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

SAMPLES = 1000
SEED = 12345  # SacreBLEU's

Scores = NDArray[np.float64]


def resample(bleu: BLEU, tokenize: str, hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """BLEU on each of the resampled test sets. The name of a tokenization is not always that in its signature."""
    by_sentence = BLEU(lowercase=bleu.lowercase, tokenize=tokenize, effective_order=True)
    each = [by_sentence.sentence_score(one, [other]) for one, other in zip(hypotheses, references, strict=True)]
    counts = np.array([[one.sys_len, one.ref_len, *one.counts, *one.totals] for one in each])
    drawn = np.random.default_rng(SEED).choice(len(each), size=(SAMPLES, len(each)), replace=True)
    return np.array([score_of(bleu, counts[numbers].sum(axis=0).tolist()) for numbers in drawn])


def score_of(bleu: BLEU, counts: list[int]) -> float:
    system, reference, *matches = counts
    found: Any = BLEU.compute_bleu(
        matches[:4], matches[4:], system, reference, smooth_method=bleu.smooth_method, smooth_value=bleu.smooth_value
    )
    return float(found.score)


def write_scores(scores: Scores) -> str:
    """A line of a result file."""
    return " ".join(f"{one:.3f}" for one in scores)


def read_scores(text: str) -> Scores:
    return np.array(text.split(), float)


def p_value(value: float, resampled: Scores) -> float:
    """How probable it is that chance alone makes a number so large in its direction (one tail), by paired bootstrap, in
    SacreBLEU's formula: resampled sizes that are further above their mean than the number is from 0.

    >>> p_value(1.0, np.array([0.9, 1.1, 1.0])), p_value(0.1, np.array([-0.9, 0.1, 1.1])), p_value(0.0, np.zeros(9))
    (0.25, 0.75, 1.0)
    """
    if value == 0:
        return 1.0
    sizes = np.abs(resampled)
    further = int((sizes - sizes.mean() > abs(value)).sum())
    return (further + 1) / (len(resampled) + 1)
