"""A text of a data folder, as a method of segmentation sees it: plain, or drawn.

    text.plain()                              the method's best segmentation: validation, test, all inference
    text.draw(seed, epoch, side)              a fresh segmentation of every sentence: training, and nothing else

Both give the exact length of every sentence, and the ids of any, with the end of sentence.
bpe_dropout/methods has the methods.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..corpus import Corpus, Ragged, Sampler
from ..dictionary import Dictionary
from ..errors import InputError, shorten
from ..progress import Progress

logger = logging.getLogger(__name__)


class Segmentations:
    """One segmentation of every sentence of a text. `lengths`, where it is given, knows them without a sampler."""

    def __init__(
        self,
        sampler: Callable[[], Sampler],
        *,
        seed: int,
        epoch: int,
        side: int,
        threads: int,
        lengths: Callable[[], NDArray[np.int32]] | None = None,
    ) -> None:
        self._make: Callable[[], Sampler] | None = sampler
        self._count = lengths
        self._made: Sampler | None = None
        self._lengths: NDArray[np.int32] | None = None
        self._key, self._threads = {"seed": seed, "epoch": epoch, "side": side}, threads

    # Made when first asked for. No cached_property: its lock, held by a thread while workers are forked, stays locked.

    @property
    def sampler(self) -> Sampler:
        if self._made is None:
            assert self._make is not None
            self._made = self._make()
        return self._made

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of tokens of every sentence, its end included."""
        if self._lengths is None:
            counted = self._count and self._count()
            self._lengths = self.sampler.lengths(**self._key, threads=self._threads) if counted is None else counted
        return self._lengths

    def tokens(self, sentences: NDArray[np.int64]) -> Ragged:
        """The ids of some sentences."""
        return self.sampler.tokens(sentences, **self._key)

    def __getstate__(self) -> dict[str, object]:
        # A worker that is not forked gets the sampler, and not the way to make one.
        return {**self.__dict__, "_made": self.sampler, "_make": None, "_count": None}


class Text(ABC):
    """The words of one side of a split, with the dictionary of its pieces."""

    def __init__(self, path: Path, dictionary: Dictionary) -> None:
        self.path, self.dictionary = path, dictionary
        self.corpus = Corpus(path, progress=log_progress(f"reading {path}", "MB", 1e6))
        if not len(self.corpus.counts):
            raise InputError(f"{path} holds no words")

    def __len__(self) -> int:
        return len(self.corpus)

    @abstractmethod
    def plain(self) -> Segmentations:
        """The best segmentation of every sentence."""

    @abstractmethod
    def draw(self, seed: int, epoch: int, side: int) -> Segmentations:
        """A fresh segmentation of every sentence."""

    @property
    @abstractmethod
    def draws(self) -> bool:
        """Whether `draw` differs from `plain` at all."""

    @property
    @abstractmethod
    def draws_aside(self) -> bool:
        """Whether lengths are drawn by the compiled core alone, and so do not hold up a training meanwhile."""

    @abstractmethod
    def segment(self, line: str) -> list[str]:
        """The pieces of a line of words, the best segmentation."""

    @abstractmethod
    def types(self) -> Ragged:
        """The ids of every distinct word, the best segmentation."""

    def unknown(self) -> tuple[float, str]:
        """The share of unknown pieces in the plain segmentation, and the most frequent word that has one."""
        ids, offsets = self.types()
        counts = self.corpus.counts.astype(np.int64)
        lengths = np.diff(offsets)
        before = np.concatenate([[0], np.cumsum(ids == self.dictionary.unk)])
        unknown = before[offsets[1:]] - before[offsets[:-1]]
        worst = int(np.argmax(counts * (unknown > 0)))
        return float((unknown * counts).sum() / max(1, (lengths * counts).sum())), self.corpus.type(worst)

    def describe_unknown(self, dictionary: str) -> tuple[float, str]:
        """The share of unknown pieces, and, if it is more than a few, a sentence about them."""
        share, word = self.unknown()
        if share <= 0.01:
            return share, ""
        return share, (
            f"{share:.1%} of the pieces of {self.path}, segmented without dropout, are not in {dictionary}; the most "
            f"frequent such word is {shorten(word)}, which becomes {shorten(' '.join(self.segment(word)))}"
        )


def log_progress(what: str, unit: str, scale: float = 1) -> Callable[[int, int | None], None]:
    """Progress in the log, every ten seconds."""
    return Progress(every=10, say=logger.info).counting(what, unit, scale)
