"""Which p lengthens a text how much (section 5.3 of the paper and its footnote).

The paper takes p = 0.1, which makes English and French about 1.25 times longer, and p = 0.6 for Chinese
and Japanese, found by trial, to lengthen them as much. Here the p of a wanted ratio is computed: the
expected number of pieces of most words is exact; of words too long for that, it is the mean of many
draws, the same ones for every p, so that the answer is the same each time.

>>> calibrate(segmenter, {"unrelated": 3, "words": 10}, ratio=1.25)
Calibration(p=0.0947, ratio=1.25, plain_length=..., exact_share=1.0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import _core
from .errors import InputError, check_dropout
from .keys import make_key
from .segmenter import Segmenter

# Words with more states than this are drawn, not enumerated; so often each, and more often if frequent.
STATES = 4096
LEAST_DRAWS = 16


@dataclass(frozen=True)
class Calibration:
    """The dropout p and what it does to the text."""

    p: float
    ratio: float  # expected length with dropout p, divided by the length at p = 0
    plain_length: int  # number of pieces at p = 0
    exact_share: float  # the share of the words whose expected length is exact, and not from draws


def length_ratio(segmenter: Segmenter, counts: Mapping[str, int], p: float) -> float:
    """How much longer the words become with dropout p, in expectation."""
    return _Text(segmenter, counts).ratio(check_dropout(p))


def calibrate(
    segmenter: Segmenter, counts: Mapping[str, int], ratio: float = 1.25, *, tolerance: float = 1e-4
) -> Calibration:
    """The p that makes a text, given as words and their counts, `ratio` times longer."""
    text = _Text(segmenter, counts)
    longest = text.ratio(1.0)
    if not 1 <= ratio <= longest:
        raise InputError(
            f"no dropout makes this text {ratio} times longer: the ratio goes from 1 (p = 0) to "
            f"{longest:.4f} (p = 1, characters)"
        )
    low, high = 0.0, 1.0
    while high - low > tolerance:
        middle = (low + high) / 2
        if text.ratio(middle) < ratio:
            low = middle
        else:
            high = middle
    p = round((low + high) / 2, 6)
    return Calibration(p, text.ratio(p), text.plain_length, text.exact_share)


class _Text:
    def __init__(self, segmenter: Segmenter, counts: Mapping[str, int]) -> None:
        self._segmenter = segmenter
        self._counts = {word: count for word, count in counts.items() if count > 0}
        if not self._counts:
            raise InputError("there are no words to calibrate on")
        self._total = sum(self._counts.values())
        self._drawn: set[str] = set()
        self.plain_length = round(self._length(0.0))

    @property
    def exact_share(self) -> float:
        return 1 - sum(self._counts[word] for word in self._drawn) / self._total

    def ratio(self, p: float) -> float:
        return self._length(p) / self.plain_length

    def _length(self, p: float) -> float:
        total = 0.0
        for number, (word, count) in enumerate(self._counts.items()):
            length = self._segmenter.expected_length(word, p, limit=STATES) if word not in self._drawn else None
            if length is None:
                self._drawn.add(word)
                length = self._mean(word, number, p, max(LEAST_DRAWS, count))
            total += count * length
        return total

    def _mean(self, word: str, number: int, p: float, draws: int) -> float:
        core = _core.Word(word, self._segmenter.parts(word))
        keys = (make_key(0, epoch, 0, number) for epoch in range(draws))
        return sum(len(_core.draw(self._segmenter._merges, core, p, key, 0)) for key in keys) / draws
