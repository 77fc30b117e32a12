"""Finds the dropout p that makes a text longer by a given ratio (section 5.3 of the paper and its footnote).

The paper takes p = 0.1, which makes English and French about 1.25 times longer, and p = 0.6 for Chinese
and Japanese, found by trial, to lengthen them as much. Here the p of a wanted ratio is computed. The
expected number of pieces is exact for the 20,000 most frequent words, unless they are very long; for the
others it is the mean of 8 draws or more, the same ones for every p, so that the answer is the same each time.

>>> calibrate(segmenter, {"unrelated": 3, "words": 10}, ratio=1.25)
Calibration(p=0.094727, ratio=1.25, plain_length=26, exact_share=1.0, rule=Rule('0.094727'))

Of a rule with a rate for each merge (rules.py) the scale is found:

>>> calibrate(segmenter, {"unrelated": 3, "words": 10}, ratio=1.25, rule="rank:0..1").rule
Rule('rank:0..0.184327')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from . import _core
from .cores import count_cores
from .errors import InputError
from .merge_counts import count_merges
from .rules import Dropout, Rule, read_dropout
from .segmenter import Segmenter

# Lengths are exact for this many of the most frequent words, unless a word has more states than STATES.
EXACT_WORDS = 20_000
STATES = 256
LEAST_DRAWS, MOST_DRAWS = 8, 256
DIGITS = 6  # of p


@dataclass(frozen=True)
class Calibration:
    """The dropout p and what it does to the text."""

    p: float  # or the scale of the rule
    ratio: float  # expected length with dropout p, divided by the length at p = 0
    plain_length: int  # number of pieces at p = 0
    exact_share: float  # the share of the words whose expected length is exact, and not from draws
    rule: Rule  # what to give as dropout


def length_ratio(segmenter: Segmenter, counts: Mapping[str, int], p: Dropout) -> float:
    """How much longer words become with dropout p, in expectation."""
    dropout = read_dropout(p)
    if isinstance(dropout, Rule):
        dropout = _counted(dropout, segmenter, counts)
    return _Text(segmenter, counts).ratio(dropout)


def calibrate(
    segmenter: Segmenter,
    counts: Mapping[str, int],
    ratio: float = 1.25,
    *,
    rule: str | Rule = "1",
    tolerance: float = 1e-5,
    progress: Callable[[float, float], None] | None = None,
) -> Calibration:
    """The p, to six digits, that makes a text, given as words and their counts, `ratio` times longer; of a rule, its
    scale. A schedule is refused: calibrate the rule without it, or with another ratio for each epoch.

    Where the expected lengths are exact, the result's ratio is within `tolerance` of the wanted one. Where words are
    drawn, it is a step function of p, since their draws are the same for every p: then the result is the nearest of all
    p that were tried, and may miss by some 1e-4. Either way the result's ratio is that of the result's p.
    `progress(p, its_ratio)` is called for each p that is tried.
    """
    text = _Text(segmenter, counts)
    shape = _counted(Rule.parse(rule) if isinstance(rule, str) else rule, segmenter, counts)
    high, most = _scales(shape, segmenter)
    while (longest := text.ratio(shape.scaled(high))) < ratio and high < most:
        high = min(2 * high, most)
    if not 1 <= ratio <= longest:
        of = "p = 1, characters" if shape.number == 1 else f"{shape.scaled(high)}"
        raise InputError(
            f"no dropout makes this text {ratio} times longer: the ratio goes from 1 (p = 0) to {longest:.4f} ({of})"
        )
    # The ratio grows with p: false position, with the Illinois rule against an end that stays where it is.
    low, below, above = 0.0, 1.0 - ratio, longest - ratio
    best, nearest, side = (0.0, 0.0, 0) if below == 0 else (high, above, 0)
    while below < 0 < above and high - low > 1e-6:
        p = round((low * above - high * below) / (above - below), DIGITS)
        if p in (low, high):  # false position would stay where it is
            p = round((low + high) / 2, DIGITS)
            if p in (low, high):
                break
        off = text.ratio(shape.scaled(p)) - ratio
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
    return Calibration(best, ratio + nearest, text.plain_length, text.exact_share, shape.scaled(best))


def _counted(rule: Rule, segmenter: Segmenter, counts: Mapping[str, int]) -> Rule:
    """A rule by frequency goes by the text that it is calibrated on."""
    return rule.counted(count_merges(segmenter, counts)) if rule.needs_counts else rule


def _scales(rule: Rule, segmenter: Segmenter) -> tuple[float, float]:
    """The scales that make the highest rate of a rule 1, and the lowest that is not 0."""
    if rule.schedule:
        raise InputError(f"{rule} has another ratio in each epoch; calibrate it without @{rule.schedule}")
    rates = rule.rates(len(segmenter.codes.pairs), segmenter.folder)
    above = [rate for rate in ([rates] if isinstance(rates, float) else rates) if rate > 0]
    if not above:
        raise InputError(f"{rule} drops nothing, however it is scaled")
    return 1 / max(above), 1 / min(above)


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

    def ratio(self, p: Dropout) -> float:
        return self._length(self._segmenter._rates(p)) / self.plain_length

    def _length(self, p: _core.AnyDropout) -> float:
        threads = count_cores()
        lengths, exact = _core.expected_lengths(
            self._segmenter._merges, self._words, EXACT_WORDS, self._draws, p, STATES, threads
        )
        if p not in (0.0, 1.0):
            self.exact_share = float((self._counts * exact).sum() / self._counts.sum())
        return float((self._counts * lengths).sum())
