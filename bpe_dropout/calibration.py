"""Finds the dropout p that makes a text longer by a given ratio (section 5.3 of the paper and its footnote).

The paper takes p = 0.1, which makes English and French about 1.25 times longer, and p = 0.6 for Chinese
and Japanese, found by trial, to lengthen them as much. Here the p of a wanted ratio is computed. The
expected number of pieces is exact for the 20,000 most frequent words, unless they are very long; for the
others it is the mean of 8 draws or more, the same ones for every p, so that the answer is the same each time.

>>> calibrate(segmenter, {"unrelated": 3, "words": 10}, ratio=1.25)
Calibration(p=0.094727, ratio=1.25, plain_length=26, exact_share=1.0)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from . import _core
from .errors import InputError, check_dropout
from .segmenter import Segmenter

# Lengths are exact for this many of the most frequent words, unless a word has more states than STATES.
EXACT_WORDS = 20_000
STATES = 256
LEAST_DRAWS, MOST_DRAWS = 8, 256
DIGITS = 6  # of p


@dataclass(frozen=True)
class Calibration:
    """The dropout p and what it does to the text."""

    p: float
    ratio: float  # expected length with dropout p, divided by the length at p = 0
    plain_length: int  # number of pieces at p = 0
    exact_share: float  # the share of the words whose expected length is exact, and not from draws


def length_ratio(segmenter: Segmenter, counts: Mapping[str, int], p: float) -> float:
    """How much longer words become with dropout p, in expectation."""
    return _Text(segmenter, counts).ratio(check_dropout(p))


def calibrate(
    segmenter: Segmenter,
    counts: Mapping[str, int],
    ratio: float = 1.25,
    *,
    tolerance: float = 1e-5,
    progress: Callable[[float, float], None] | None = None,
) -> Calibration:
    """The p, to six digits, that makes a text, given as words and their counts, `ratio` times longer.

    Where the expected lengths are exact, the result's ratio is within `tolerance` of the wanted one. Where words are
    drawn, it is a step function of p, since their draws are the same for every p: then the result is the nearest of all
    p that were tried, and may miss by some 1e-4. Either way the result's ratio is that of the result's p.
    `progress(p, its_ratio)` is called for each p that is tried.
    """
    text = _Text(segmenter, counts)
    longest = text.ratio(1.0)
    if not 1 <= ratio <= longest:
        raise InputError(
            f"no dropout makes this text {ratio} times longer: the ratio goes from 1 (p = 0) to "
            f"{longest:.4f} (p = 1, characters)"
        )
    # The ratio grows with p: false position, with the Illinois rule against an end that stays where it is.
    low, high = 0.0, 1.0
    below, above = 1.0 - ratio, longest - ratio
    best, nearest, side = (0.0, 0.0, 0) if below == 0 else (1.0, above, 0)
    while below < 0 < above and high - low > 1e-6:
        p = round((low * above - high * below) / (above - below), DIGITS)
        if p in (low, high):  # false position would stay where it is
            p = round((low + high) / 2, DIGITS)
            if p in (low, high):
                break
        off = text.ratio(p) - ratio
        if progress:
            progress(p, off + ratio)
        if abs(off) < abs(nearest):
            best, nearest = p, off
        if abs(off) <= tolerance:
            break
        if off < 0:
            low, below, above = p, off, above / 2 if side < 0 else above
            side = -1
        else:
            high, above, below = p, off, below / 2 if side > 0 else below
            side = 1
    return Calibration(best, ratio + nearest, text.plain_length, text.exact_share)


class _Text:
    def __init__(self, segmenter: Segmenter, counts: Mapping[str, int]) -> None:
        ordered = sorted(((count, word) for word, count in counts.items() if count > 0), reverse=True)
        if not ordered:
            raise InputError("there are no words to calibrate on")
        self._segmenter = segmenter
        self._words = [segmenter.word(word) for _, word in ordered]
        self._counts = np.array([count for count, _ in ordered], np.uint64)
        self._draws = np.clip(self._counts, LEAST_DRAWS, MOST_DRAWS)
        self.plain_length = round(self._length(0.0))
        self.exact_share = 1.0

    def ratio(self, p: float) -> float:
        return self._length(p) / self.plain_length

    def _length(self, p: float) -> float:
        threads = os.cpu_count() or 1
        lengths, exact = _core.expected_lengths(
            self._segmenter._merges, self._words, EXACT_WORDS, self._draws, p, STATES, threads
        )
        if 0 < p < 1:
            self.exact_share = float((self._counts * exact).sum() / self._counts.sum())
        return float((self._counts * lengths).sum())
