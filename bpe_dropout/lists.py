"""Segmentations with their probabilities, given as lists, and drawn by the compiled core.

For any method but BPE-dropout itself. `Lists` collects them; `BoundedSampler` draws whole epochs in bounded memory.
`Corpus.distribution_sampler` keeps all segmentations of all words, which is too much where most words occur only once
(unsegmented Japanese, whole sentences). Here the lists of frequent words, or of the first sentences, are kept as far as
the memory allows; all others are made and drawn from once per occurrence, and not kept. What is drawn is the same
either way: it depends on (seed, epoch, side, sentence, position) and the distribution alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _core
from .draws import choose, cumulate
from .errors import check_threads

if TYPE_CHECKING:
    from .corpus import Corpus, Sampler

# The outcomes of a unit, a word or a sentence: the ids of each segmentation, and their probabilities.
Outcomes = tuple[Sequence[Sequence[int]], Sequence[float]]
Progress = Callable[[int, int], None]

_CHUNK = 1024
_ALWAYS = np.array([2**64 - 1], np.uint64)


class Lists:
    """The segmentations of units 0, 1, 2, ...: their ids, and their cumulated probabilities (draws.cumulate)."""

    def __init__(self) -> None:
        self._outcome_ends = array("Q", [0])
        self._cumulated = array("Q")
        self._id_ends = array("Q", [0])
        self._ids = array("i")

    def __len__(self) -> int:
        return len(self._outcome_ends) - 1

    @property
    def memory(self) -> int:
        return 8 * (len(self._outcome_ends) + len(self._cumulated) + len(self._id_ends)) + 4 * len(self._ids)

    def add(self, outcomes: Sequence[Sequence[int]], cumulated: NDArray[np.uint64]) -> None:
        self._cumulated.frombytes(cumulated.tobytes())
        for ids in outcomes:
            self._ids.extend(ids)
            self._id_ends.append(len(self._ids))
        self._outcome_ends.append(len(self._cumulated))

    def copy(self) -> Lists:
        other = Lists()
        for name in ("_outcome_ends", "_cumulated", "_id_ends", "_ids"):
            setattr(other, name, getattr(self, name)[:])
        return other

    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
        """What the compiled sampler takes."""
        wide = (np.array(items, np.uint64) for items in (self._outcome_ends, self._cumulated, self._id_ends))
        return *wide, np.array(self._ids, np.int32)  # type: ignore[return-value]


class BoundedSampler:
    """Draws a corpus, epoch by epoch.

    `outcomes(text)` gives the segmentations of a word, or of a sentence as its words with spaces between them.

    >>> sampler = BoundedSampler(corpus, lambda word: ([[4, 5], [6]], [0.9, 0.1]), unit="word", memory=1 << 28)
    >>> sampler.epoch(seed=1, epoch=3, side=0).tokens(17, seed=1, epoch=3, side=0)
    """

    def __init__(
        self,
        corpus: Corpus,
        outcomes: Callable[[str], Outcomes],
        *,
        unit: Literal["word", "sentence"],
        eos: int | None = None,
        memory: int,
        threads: int = 1,
        progress: Progress | None = None,
    ) -> None:
        """`progress(done, all)` counts what is listed."""
        self._corpus, self._outcomes, self._unit, self._eos = corpus, outcomes, unit, eos
        self._threads = check_threads(threads)
        self._kept = Lists()
        self._units: NDArray[np.uint32] | None = None  # in the place of the corpus's words
        self._same: Sampler | None = None  # of all epochs, where all lists are kept
        if unit == "sentence":
            kept = self._keep(range(len(corpus)), self._sentence, memory, progress)
            self._single = np.arange(kept, len(corpus), dtype=np.int64)
            return
        counts = corpus.counts.astype(np.int64)
        order = np.argsort(-counts, kind="stable")
        often = order[counts[order] > 1]  # the most frequent first; of a word that occurs once, nothing is kept
        kept = self._keep(often.tolist(), corpus.type, memory, progress)
        not_kept = np.uint32(2**32 - 1)
        numbers = np.full(len(counts), not_kept)
        numbers[often[:kept]] = np.arange(kept)
        self._units = numbers[corpus.words]
        self._single = np.flatnonzero(self._units == not_kept)
        self._units[self._single] = np.arange(len(self._kept), len(self._kept) + len(self._single), dtype=np.uint32)

    def _keep(self, numbers: Sequence[int], text: Callable[[int], str], memory: int, progress: Progress | None) -> int:
        """Keeps the lists of these units, from the first on, as far as the memory allows; returns of how many."""
        with ThreadPoolExecutor(self._threads) as pool:
            for begin in range(0, len(numbers), _CHUNK):
                for ids, probabilities in pool.map(self._outcomes, map(text, numbers[begin : begin + _CHUNK])):
                    if self._kept.memory > memory:
                        return len(self._kept)
                    self._kept.add(ids, cumulate(probabilities))
                if progress:
                    progress(len(self._kept), len(numbers))
        return len(self._kept)

    def _sentence(self, number: int) -> str:
        return " ".join(self._corpus.sentence(number))

    def epoch(self, *, seed: int, epoch: int, side: int = 0, progress: Progress | None = None) -> Sampler:
        """The sampler of one epoch; call it with the same numbers. `progress(done, all)` counts what is drawn."""
        if self._same is not None:
            return self._same
        lists = self._kept.copy()
        with ThreadPoolExecutor(self._threads) as pool:
            # A few chunks per thread at a time, to keep the memory low.
            step = 4 * self._threads * _CHUNK
            for begin in range(0, len(self._single), step):
                chunks = [
                    self._single[i : i + _CHUNK] for i in range(begin, min(begin + step, len(self._single)), _CHUNK)
                ]
                for drawn in pool.map(lambda chunk: self._draw(chunk, seed, epoch, side), chunks):
                    for ids in drawn:
                        lists.add([ids], _ALWAYS)
                if progress:
                    progress(min(begin + step, len(self._single)), len(self._single))
        ends = None if self._units is None else self._corpus.sentence_ends
        after = [] if self._eos is None else [self._eos]
        made = list_sampler(self._units, ends, len(self._corpus), *lists.arrays(), [], after)
        if not len(self._single):
            self._same, self._kept = made, Lists()
        return made

    def _draw(self, single: NDArray[np.int64], seed: int, epoch: int, side: int) -> list[Sequence[int]]:
        if self._unit == "sentence":
            texts = map(self._sentence, single.tolist())
            sentences, positions = single, np.zeros_like(single)
        else:
            texts = map(self._corpus.type, self._corpus.words[single].tolist())
            ends = self._corpus.sentence_ends
            sentences = np.searchsorted(ends, single.astype(np.uint64), side="right") - 1
            positions = single - ends[sentences].astype(np.int64)
        drawn = []
        for text, sentence, position in zip(texts, sentences.tolist(), positions.tolist(), strict=True):
            ids, probabilities = self._outcomes(text)
            number = choose(probabilities, seed=seed, epoch=epoch, side=side, sentence=sentence, position=position)
            drawn.append(ids[number])
        return drawn


def list_sampler(
    units: NDArray[np.uint32] | None, ends: NDArray[np.uint64] | None, sentences: int, *lists: Any
) -> Sampler:
    """A sampler of listed segmentations; without `units`, a sentence is one unit."""
    from .corpus import Sampler

    no_types = (np.zeros(0, np.uint8), np.zeros(1, np.uint64))
    corpus = None if units is None or ends is None else _core.Corpus(units, ends, *no_types)
    core = _core.ListSampler(corpus, sentences, *lists)
    return Sampler(core, sentences, (list_sampler, (units, ends, sentences, *lists)))
