"""A training text, loaded once and segmented anew in every epoch.

    corpus = Corpus("train.en")
    sampler = corpus.sampler(segmenter, dictionary, dropout=0.1)
    sampler.lengths(seed=1, epoch=3, side=0)                 # the exact length of every sentence
    sampler.tokens(17, seed=1, epoch=3, side=0)              # the ids of sentence 17
    sampler.tokens(range(64), seed=1, epoch=3, side=0)       # of many sentences, flat, with offsets

The words of the text are numbered once. The numbers are kept in a file beside it, train.en.words, which is
mapped into memory, so that all processes that read it share it; it is rebuilt when the text changes.
Words end at white space, as in fairseq; lines end at \\n and nowhere else.

What is drawn for a sentence depends on (seed, epoch, side, number of the sentence) and on nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from .dictionary import Dictionary
from .draws import cumulate
from .errors import InputError, NoSuchSentence, NoSuchWord, check_number, check_threads
from .keys import make_key
from .lists import Lists
from .rules import Dropout, Rule, read_dropout
from .segmenter import Segmenter
from .word_index import Progress, Reader, digest_of, open_index

if TYPE_CHECKING:
    from .tokenizer_corpus import TokenizerCorpus

Segmentation = Sequence[str]
Distribution = Iterable[tuple[Segmentation, float]] | Mapping[tuple[str, ...], float]

# The id that ends a sentence: the dictionary's, this one, or none.
Eos = int | Literal["dictionary"] | None

MEMORY = 256 << 20
_SENTENCES = 100_000  # that are summed at a time

logger = logging.getLogger(__name__)


class Ragged(NamedTuple):
    """The ids of many sentences: sentence i is ids[offsets[i]:offsets[i + 1]]."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]


class Corpus:
    """Sentences as sequences of word numbers.

    >>> corpus = Corpus("train.en")
    >>> len(corpus), corpus.sentence(0)
    (29000, ['two', 'young', 'guys'])
    """

    _reader: Reader | None = None  # words end at white space

    def __init__(self, path: str | Path, *, progress: Progress | None = None) -> None:
        """Loads the text at `path`, or its .words file if that is up to date.

        `progress(done, all)` is called with numbers of bytes while the text is read.
        """
        self.path = Path(path)
        self._absolute = self.path.absolute()  # for copies in processes that work elsewhere
        self._time = self.path.stat().st_mtime_ns
        sections, self.digest = open_index(self.path, progress, self._reader)
        self.words: NDArray[np.uint32] = sections["words"]
        self.sentence_ends: NDArray[np.uint64] = sections["sentence_ends"]
        self._type_ends: NDArray[np.uint64] = sections["type_ends"]
        self._types: NDArray[np.uint8] = sections["types"]
        self.counts: NDArray[np.uint64] = sections["counts"]
        self._core = _core.Corpus(self.words, self.sentence_ends, self._types, self._type_ends)

    @staticmethod
    def from_tokenizer(
        path: str | Path, tokenizer: Any, *, add_special_tokens: bool = True, progress: Progress | None = None
    ) -> TokenizerCorpus:
        """The text at `path` in the words of a Hugging Face tokenizer; every line is what it would encode.

        `tokenizer` is what Segmenter.from_tokenizer takes, or such a segmenter.

        >>> corpus = Corpus.from_tokenizer("train.txt", "tokenizer.json")
        >>> corpus.sampler(dropout=0.1).tokens(17, seed=1, epoch=3)
        """
        from .tokenizer_corpus import TokenizerCorpus

        return TokenizerCorpus(path, tokenizer, add_special_tokens=add_special_tokens, progress=progress)

    def __len__(self) -> int:
        return len(self.sentence_ends) - 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._absolute, self.digest)

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r}, {len(self)} sentences, {len(self.words)} words, {len(self.counts)} types)"

    def check_unchanged(self) -> None:
        """An error if the text is no longer the one that was loaded: its sentences would have other numbers."""
        try:
            time = self._absolute.stat().st_mtime_ns
            unchanged = time == self._time or digest_of(self._absolute) == self.digest
        except FileNotFoundError:
            raise InputError(f"{self.path} is gone; put it back, or begin again with another text") from None
        if not unchanged:
            raise _changed(self.path)
        self._time = time

    @property
    def word_counts(self) -> NDArray[np.int64]:
        """How many words each sentence has."""
        ends = self.sentence_ends.astype(np.int64)
        return ends[1:] - ends[:-1]

    def sum_by_sentence(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        """For each sentence, the sum of the values of its words, where values[number] is that of a distinct word."""
        sums = np.zeros(len(self), np.int32)
        for first in range(0, len(self), _SENTENCES):
            ends = self.sentence_ends[first : first + _SENTENCES + 1].astype(np.int64)
            before = np.zeros(ends[-1] - ends[0] + 1, np.int64)
            np.cumsum(values[self.words[ends[0] : ends[-1]]], out=before[1:])
            sums[first : first + _SENTENCES] = np.diff(before[ends - ends[0]])
        return sums

    def type(self, number: int) -> str:
        """The word that has this number."""
        if not 0 <= number < len(self.counts):
            raise NoSuchWord(number, len(self.counts))
        return self._type(number)

    def _type(self, number: int) -> str:
        begin, end = int(self._type_ends[number]), int(self._type_ends[number + 1])
        return self._types[begin:end].tobytes().decode()

    def types(self) -> list[str]:
        """All distinct words, by their number, which is the order of their first appearance."""
        return [self._type(number) for number in range(len(self.counts))]

    def type_counts(self) -> dict[str, int]:
        """All distinct words and how often they occur, in the order of their first appearance."""
        return dict(zip(self.types(), self.counts.tolist(), strict=True))

    def type_lines(self) -> bytes:
        """All distinct words as UTF-8 text, a word a line."""
        return np.insert(self._types, self._type_ends[1:].astype(np.int64), ord("\n")).tobytes()

    def sentence(self, number: int) -> list[str]:
        """The words of a sentence."""
        _check_sentence(number, len(self))
        begin, end = int(self.sentence_ends[number]), int(self.sentence_ends[number + 1])
        return [self.type(int(word)) for word in self.words[begin:end]]

    def sampler(
        self,
        segmenter: Segmenter | None = None,
        dictionary: Dictionary | None = None,
        dropout: Dropout = 0.0,
        *,
        eos: Eos = "dictionary",
        memory: int = MEMORY,
        threads: int = 1,
    ) -> Sampler:
        """BPE-dropout of this corpus, as ids of the dictionary. A corpus of a tokenizer has both, and needs neither.

        Every sentence ends with `eos`: the dictionary's, if it has one, or the id that is given; None leaves it out.
        `memory`, in bytes, bounds what is kept of the words to draw them faster; it changes nothing else. A rule with a
        schedule keeps so much for two epochs, and makes it anew when the rates change.
        """
        if segmenter is None or dictionary is None:
            raise InputError("a sampler needs a segmenter and a dictionary, unless the corpus is that of a tokenizer")
        parts = {}
        if segmenter.glossaries:
            parts = {number: divided for number, word in enumerate(self.types()) if (divided := segmenter.parts(word))}
        frame: tuple[list[int], list[int]] = [], _after(eos, dictionary)
        given = self._read_dropout(dropout, segmenter)
        rebuild = (_rebuild_sampler, (self, segmenter, dictionary, given, eos, memory, threads))
        return Sampler.of_rule(
            lambda rates: self._dropout_sampler(segmenter, dictionary, parts, rates, frame, memory, threads),
            segmenter,
            given,
            len(self),
            rebuild,
        )

    def _read_dropout(self, dropout: Dropout, segmenter: Segmenter) -> float | Rule:
        """A dropout as it is given, and, if it is by frequency, with how often this text has each merge."""
        given = read_dropout(dropout)
        if isinstance(given, Rule) and given.needs_counts:
            from .merge_counts import count_merges

            return given.counted(count_merges(segmenter, self.type_counts()))
        return given

    def _dropout_sampler(
        self,
        segmenter: Segmenter,
        dictionary: Dictionary,
        parts: dict[int, _core.Parts],
        rates: _core.AnyDropout,
        frame: tuple[list[int], list[int]],
        memory: int,
        threads: int,
    ) -> _core.DropoutSampler:
        core = _core.DropoutSampler(
            self._core,
            self.counts,
            segmenter._merges,
            dictionary.bind(segmenter),
            parts,
            rates,
            check_number("the memory", memory),
            check_threads(threads),
            *frame,
        )
        logger.info(
            f"{self.path}: tables for {core.tables} of {len(self.counts)} words, charts of {core.charts}, "
            f"{core.memory / 1e6:.1f} MB"
        )
        return core

    def distribution_sampler(
        self, distribution: Callable[[str], Distribution], dictionary: Dictionary, *, eos: Eos = "dictionary"
    ) -> Sampler:
        """Any other method: `distribution(word)` gives the segmentations of a word and their probabilities.

        It is called once for each distinct word, and the result is kept in memory.

        >>> corpus.distribution_sampler(lambda word: [((word,), 0.5), (tuple(word), 0.5)], dictionary)
        """
        lists = Lists()
        for word in self.types():
            _add(lists, distribution(word), dictionary, word)
        core = _core.ListSampler(self._core, 0, *lists.arrays(), [], _after(eos, dictionary))
        rebuild = (_rebuild_distribution_sampler, (self, distribution, dictionary, eos, False))
        return Sampler(core, len(self), rebuild)

    def sentence_distribution_sampler(
        self,
        distribution: Callable[[list[str]], Distribution],
        dictionary: Dictionary,
        *,
        eos: Eos = "dictionary",
    ) -> Sampler:
        """The same for methods that segment a sentence as a whole: it is called once for each sentence."""
        lists = Lists()
        for number in range(len(self)):
            _add(lists, distribution(self.sentence(number)), dictionary, f"sentence {number}")
        core = _core.ListSampler(None, len(self), *lists.arrays(), [], _after(eos, dictionary))
        rebuild = (_rebuild_distribution_sampler, (self, distribution, dictionary, eos, True))
        return Sampler(core, len(self), rebuild)


AnyCorpus = TypeVar("AnyCorpus", bound=Corpus)


def _reopen(path: Path, digest: str) -> Corpus:
    return of_text(Corpus(path), digest)


def of_text(corpus: AnyCorpus, digest: str) -> AnyCorpus:
    """The corpus in another process, which must not go on with another text."""
    if corpus.digest != digest:
        raise _changed(corpus.path)
    return corpus


def _changed(path: Path) -> InputError:
    return InputError(f"{path} has changed since it was loaded; put it back, or begin again with the new text")


def _rebuild_sampler(
    corpus: Corpus,
    segmenter: Segmenter,
    dictionary: Dictionary,
    dropout: Dropout,
    eos: Eos,
    memory: int,
    threads: int,
) -> Sampler:
    return corpus.sampler(segmenter, dictionary, dropout, eos=eos, memory=memory, threads=threads)


def _rebuild_distribution_sampler(
    corpus: Corpus, distribution: Any, dictionary: Dictionary, eos: Eos, of_sentences: bool
) -> Sampler:
    make = corpus.sentence_distribution_sampler if of_sentences else corpus.distribution_sampler
    return make(distribution, dictionary, eos=eos)


def _add(lists: Lists, distribution: Distribution, dictionary: Dictionary, what: str) -> None:
    outcomes = list(distribution.items() if isinstance(distribution, Mapping) else distribution)
    try:
        cumulated = cumulate(probability for _, probability in outcomes)
    except InputError as error:
        raise InputError(f"the distribution of {what!r}: {error}") from None
    lists.add([[dictionary[piece] for piece in pieces] for pieces, _ in outcomes], cumulated)


class _CoreSampler(Protocol):
    def lengths(
        self, key: _core.Key, first: int, count: int, listed: NDArray[np.int64], threads: int, /
    ) -> NDArray[np.int32]: ...

    def ids(
        self, key: _core.Key, first: int, count: int, listed: NDArray[np.int64], threads: int, /
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...


class Sampler:
    """Draws segmentations of a corpus. Has no state: the same arguments always give the same result.

    `sentences` is the number of a sentence, a range or an array of numbers, or None for all of them.
    """

    def __init__(self, core: _CoreSampler, sentences: int, rebuild: tuple[Any, ...]) -> None:
        self._core = core
        self._sentences = sentences
        self._rebuild = rebuild

    @staticmethod
    def of_rule(
        make: Callable[[_core.AnyDropout], _CoreSampler],
        segmenter: Segmenter,
        dropout: float | Rule,
        sentences: int,
        rebuild: tuple[Any, ...],
    ) -> Sampler:
        """With dropout: make(rates) gives what draws with these rates."""
        if isinstance(dropout, Rule) and dropout.schedule:
            return _Scheduled(lambda epoch: segmenter._rates(dropout, epoch), make, sentences, rebuild)
        return Sampler(make(segmenter._rates(dropout)), sentences, rebuild)

    def _core_of(self, epoch: int) -> _CoreSampler:
        """What draws in an epoch."""
        return self._core

    def __reduce__(self) -> tuple[Any, ...]:
        return self._rebuild

    def __len__(self) -> int:
        return self._sentences

    def lengths(
        self,
        sentences: range | ArrayLike | None = None,
        *,
        seed: int,
        epoch: int,
        side: int = 0,
        threads: int = 1,
    ) -> NDArray[np.int32]:
        """The exact number of tokens of each sentence, without making the tokens."""
        first, count, listed = self._select(sentences)
        if count == 0 and listed is not None:
            return np.zeros(0, np.int32)
        key = make_key(seed, epoch, side)
        return self._core_of(epoch).lengths(key, first, count, _listed(listed), check_threads(threads))

    @overload
    def tokens(
        self, sentences: int, *, seed: int, epoch: int, side: int = 0, threads: int = 1
    ) -> NDArray[np.int32]: ...

    @overload
    def tokens(
        self,
        sentences: range | ArrayLike | None = None,
        *,
        seed: int,
        epoch: int,
        side: int = 0,
        threads: int = 1,
    ) -> Ragged: ...

    def tokens(
        self,
        sentences: int | range | ArrayLike | None = None,
        *,
        seed: int,
        epoch: int,
        side: int = 0,
        threads: int = 1,
    ) -> NDArray[np.int32] | Ragged:
        """The ids of one sentence, or of many."""
        key = make_key(seed, epoch, side)
        if isinstance(sentences, int | np.integer):
            number = _check_sentence(sentences, self._sentences)
            return self._core_of(epoch).ids(key, number, 1, _NONE_LISTED, 1)[0]
        first, count, listed = self._select(sentences)
        if count == 0 and listed is not None:
            return Ragged(np.zeros(0, np.int32), np.zeros(1, np.int64))
        return Ragged(*self._core_of(epoch).ids(key, first, count, _listed(listed), check_threads(threads)))

    def _select(self, sentences: range | ArrayLike | None) -> tuple[int, int, NDArray[np.int64] | None]:
        if sentences is None:
            return 0, self._sentences, None
        if isinstance(sentences, range) and sentences.step == 1:
            if len(sentences) and (sentences.start < 0 or sentences.stop > self._sentences):
                raise NoSuchSentence(sentences, self._sentences)
            return (sentences.start, len(sentences), None) if len(sentences) else (0, 0, None)
        listed = np.asarray(sentences)
        if listed.ndim != 1 or (listed.size and listed.dtype.kind not in "iu"):
            raise InputError("sentences are a range or a flat list of whole numbers")
        if listed.size and not (listed.min() >= 0 and listed.max() < self._sentences):
            wrong = next(number for number in listed.tolist() if not 0 <= number < self._sentences)
            raise NoSuchSentence(wrong, self._sentences)
        return 0, len(listed), np.ascontiguousarray(listed, dtype=np.int64)


class _Scheduled(Sampler):
    """A sampler whose rates depend on the epoch. Those of the last two are kept: a training asks for the lengths of the
    next while it reads the tokens of this one."""

    def __init__(
        self,
        rates: Callable[[int], _core.AnyDropout],
        make: Callable[[_core.AnyDropout], _CoreSampler],
        sentences: int,
        rebuild: tuple[Any, ...],
    ) -> None:
        self._rates, self._make = rates, make
        self._kept: tuple[tuple[_core.AnyDropout, _CoreSampler], ...] = ()
        super().__init__(self._core_of(1), sentences, rebuild)

    def _core_of(self, epoch: int) -> _CoreSampler:
        rates = self._rates(epoch)
        for kept, core in self._kept:
            if kept == rates:
                return core
        core = self._make(rates)
        self._kept = (*self._kept[-1:], (rates, core))
        return core


_NONE_LISTED: NDArray[np.int64] = np.zeros(0, np.int64)


def _listed(listed: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return _NONE_LISTED if listed is None else listed


def _check_sentence(number: int | np.integer[Any], sentences: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InputError(f"the number of a sentence is a whole number, not {number!r}")
    if not 0 <= number < sentences:
        raise NoSuchSentence(number, sentences)
    return int(number)


def _after(eos: Eos, dictionary: Dictionary | None) -> list[int]:
    """The ids that every sentence ends with."""
    if eos == "dictionary":
        eos = dictionary.eos if dictionary else None
    return [] if eos is None else [check_number("the id of the end of a sentence", eos, 2**31)]
