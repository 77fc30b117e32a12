"""A training text, loaded once and segmented anew in every epoch.

    corpus = Corpus("train.en")
    sampler = corpus.sampler(segmenter, dictionary, dropout=0.1)
    sampler.lengths(seed=1, epoch=3, side=0)                 # the exact length of every sentence
    sampler.tokens(17, seed=1, epoch=3, side=0)              # the ids of sentence 17
    sampler.tokens(range(64), seed=1, epoch=3, side=0)       # of many, flat, with offsets

The text becomes numbers of words once. They are kept in a file beside it, train.en.words, which is
mapped into memory, so that all processes that read it share it; it is made anew when the text changes.
Words end at white space, as in fairseq; lines end at \\n and nowhere else.

What is drawn for a sentence depends on (seed, epoch, side, number of the sentence) and on nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from .dictionary import Dictionary
from .draws import cumulate
from .errors import InputError, check_dropout, check_number
from .keys import make_key
from .lines import BLOCK, blocks_of_lines
from .segmenter import Segmenter, invalid_line

Segmentation = Sequence[str]
Distribution = Iterable[tuple[Segmentation, float]] | Mapping[tuple[str, ...], float]
Progress = Callable[[int, int], None]

MEMORY = 256 << 20
_MAGIC = b"BPE-dropout words 1\n"
_HEADER = 4096
_SECTIONS = {
    "words": np.uint32,
    "sentence_ends": np.uint64,
    "type_ends": np.uint64,
    "counts": np.uint64,
    "types": np.uint8,
}


class Epoch(NamedTuple):
    """The ids of many sentences: sentence i is ids[offsets[i]:offsets[i + 1]]."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]


class Corpus:
    """Sentences as numbers of words.

    >>> corpus = Corpus("train.en")
    >>> len(corpus), corpus.sentence(0)
    (29000, ['two', 'young', 'guys'])
    """

    def __init__(self, path: str | Path, *, progress: Progress | None = None) -> None:
        """Loads the text at `path`, or its .words file if that is up to date.

        `progress(done, all)` is called with numbers of bytes while the text is read.
        """
        self.path = Path(path)
        self._map, header = _open_index(self.path, progress)
        sections = {}
        for name, dtype in _SECTIONS.items():
            begin, size = header["sections"][name]
            sections[name] = np.frombuffer(self._map, dtype, size // np.dtype(dtype).itemsize, begin)
        self._words: NDArray[np.uint32] = sections["words"]
        self._sentence_ends: NDArray[np.uint64] = sections["sentence_ends"]
        self._type_ends: NDArray[np.uint64] = sections["type_ends"]
        self._types: NDArray[np.uint8] = sections["types"]
        self.counts: NDArray[np.uint64] = sections["counts"]
        self._core = _core.Corpus(self._words, self._sentence_ends, self._types, self._type_ends)

    def __len__(self) -> int:
        return len(self._sentence_ends) - 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Corpus, (self.path,)

    def __repr__(self) -> str:
        return f"Corpus({str(self.path)!r}, {len(self)} sentences, {len(self._words)} words, {len(self.counts)} types)"

    @property
    def word_counts(self) -> NDArray[np.int64]:
        """How many words each sentence has."""
        ends = self._sentence_ends.astype(np.int64)
        return ends[1:] - ends[:-1]

    def type(self, number: int) -> str:
        """The word of a number."""
        begin, end = int(self._type_ends[number]), int(self._type_ends[number + 1])
        return self._types[begin:end].tobytes().decode()

    def types(self) -> list[str]:
        """All distinct words, by their number, which is the order of their first appearance."""
        return [self.type(number) for number in range(len(self.counts))]

    def sentence(self, number: int) -> list[str]:
        """The words of a sentence."""
        check_number("the sentence", number, len(self))
        begin, end = int(self._sentence_ends[number]), int(self._sentence_ends[number + 1])
        return [self.type(int(word)) for word in self._words[begin:end]]

    def sampler(
        self,
        segmenter: Segmenter,
        dictionary: Dictionary,
        dropout: float = 0.0,
        *,
        eos: int | None = None,
        memory: int = MEMORY,
        threads: int = 1,
    ) -> Sampler:
        """BPE-dropout of this corpus, as ids of the dictionary; `eos` is added to every sentence.

        `memory`, in bytes, bounds the tables of frequent words; it changes the speed and nothing else.
        """
        parts = {}
        if segmenter.glossaries:
            parts = {number: divided for number, word in enumerate(self.types()) if (divided := segmenter.parts(word))}
        core = _core.DropoutSampler(
            self._core,
            self.counts,
            segmenter._merges,
            dictionary.bind(segmenter),
            parts,
            check_dropout(dropout),
            check_number("the memory", memory),
            _threads(threads),
            _id_or_none(eos),
        )
        rebuild = (_rebuild_sampler, (self, segmenter, dictionary, dropout, eos, memory, threads))
        return Sampler(core, len(self), rebuild)

    def distribution_sampler(
        self, distribution: Callable[[str], Distribution], dictionary: Dictionary, *, eos: int | None = None
    ) -> Sampler:
        """Any other method: `distribution(word)` gives the segmentations of a word and their probabilities.

        It is called once for each distinct word, and what it gives is kept in memory.

        >>> corpus.distribution_sampler(lambda word: [((word,), 0.5), (tuple(word), 0.5)], dictionary)
        """
        lists = _Lists(dictionary)
        for word in self.types():
            lists.add(distribution(word), word)
        rebuild = (_rebuild_distribution_sampler, (self, distribution, dictionary, eos, False))
        return Sampler(lists.sampler(self._core, 0, eos), len(self), rebuild)

    def sentence_distribution_sampler(
        self,
        distribution: Callable[[list[str]], Distribution],
        dictionary: Dictionary,
        *,
        eos: int | None = None,
    ) -> Sampler:
        """The same for methods that segment a sentence as a whole: it is called once for each sentence."""
        lists = _Lists(dictionary)
        for number in range(len(self)):
            lists.add(distribution(self.sentence(number)), f"sentence {number}")
        rebuild = (_rebuild_distribution_sampler, (self, distribution, dictionary, eos, True))
        return Sampler(lists.sampler(None, len(self), eos), len(self), rebuild)


def _rebuild_sampler(
    corpus: Corpus,
    segmenter: Segmenter,
    dictionary: Dictionary,
    dropout: float,
    eos: int | None,
    memory: int,
    threads: int,
) -> Sampler:
    return corpus.sampler(segmenter, dictionary, dropout, eos=eos, memory=memory, threads=threads)


def _rebuild_distribution_sampler(
    corpus: Corpus, distribution: Any, dictionary: Dictionary, eos: int | None, of_sentences: bool
) -> Sampler:
    make = corpus.sentence_distribution_sampler if of_sentences else corpus.distribution_sampler
    return make(distribution, dictionary, eos=eos)


class _CoreSampler(Protocol):
    def lengths(
        self, key: _core.Key, first: int, count: int, listed: NDArray[np.int64], threads: int, /
    ) -> NDArray[np.int32]: ...

    def ids(
        self, key: _core.Key, first: int, count: int, listed: NDArray[np.int64], threads: int, /
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...


class Sampler:
    """Draws segmentations of a corpus. Holds no state: every call with the same numbers gives the same.

    `sentences` is the number of a sentence, a range or an array of numbers, or None for all of them.
    """

    def __init__(self, core: _CoreSampler, sentences: int, rebuild: tuple[Any, ...]) -> None:
        self._core = core
        self._sentences = sentences
        self._rebuild = rebuild

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
        return self._core.lengths(key, first, count, _listed(listed), _threads(threads))

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
    ) -> Epoch: ...

    def tokens(
        self,
        sentences: int | range | ArrayLike | None = None,
        *,
        seed: int,
        epoch: int,
        side: int = 0,
        threads: int = 1,
    ) -> NDArray[np.int32] | Epoch:
        """The ids of one sentence, or of many."""
        key = make_key(seed, epoch, side)
        if isinstance(sentences, int | np.integer):
            number = check_number("the sentence", int(sentences), max(1, self._sentences))
            return self._core.ids(key, number, 1, _NONE_LISTED, 1)[0]
        first, count, listed = self._select(sentences)
        if count == 0 and listed is not None:
            return Epoch(np.zeros(0, np.int32), np.zeros(1, np.int64))
        return Epoch(*self._core.ids(key, first, count, _listed(listed), _threads(threads)))

    def _select(self, sentences: range | ArrayLike | None) -> tuple[int, int, NDArray[np.int64] | None]:
        if sentences is None:
            return 0, self._sentences, None
        if isinstance(sentences, range) and sentences.step == 1:
            if len(sentences) and (sentences.start < 0 or sentences.stop > self._sentences):
                raise IndexError(f"no such sentence: the corpus has {self._sentences}, and {sentences} was asked for")
            return (sentences.start, len(sentences), None) if len(sentences) else (0, 0, None)
        listed = np.asarray(sentences)
        if listed.ndim != 1 or (listed.size and listed.dtype.kind not in "iu"):
            raise InputError("sentences are a range or a flat list of whole numbers")
        return 0, len(listed), np.ascontiguousarray(listed, dtype=np.int64)


_NONE_LISTED: NDArray[np.int64] = np.zeros(0, np.int64)


def _listed(listed: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return _NONE_LISTED if listed is None else listed


def _threads(threads: int) -> int:
    return max(1, check_number("the number of threads", threads, 1025))


def _id_or_none(eos: int | None) -> int:
    return -1 if eos is None else check_number("the id of the end of a sentence", eos, 2**31)


class _Lists:
    """Collects distributions for the compiled sampler."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._outcome_ends = [0]
        self._cumulated: list[NDArray[np.uint64]] = []
        self._id_ends = [0]
        self._ids: list[int] = []

    def add(self, distribution: Distribution, what: str) -> None:
        outcomes = list(distribution.items() if isinstance(distribution, Mapping) else distribution)
        try:
            self._cumulated.append(cumulate(probability for _, probability in outcomes))
        except InputError as error:
            raise InputError(f"the distribution of {what!r}: {error}") from None
        for pieces, _ in outcomes:
            self._ids.extend(self._dictionary[piece] for piece in pieces)
            self._id_ends.append(len(self._ids))
        self._outcome_ends.append(self._outcome_ends[-1] + len(outcomes))

    def sampler(self, corpus: _core.Corpus | None, sentences: int, eos: int | None) -> _core.ListSampler:
        return _core.ListSampler(
            corpus,
            sentences,
            np.array(self._outcome_ends, np.uint64),
            np.concatenate([*self._cumulated, np.zeros(0, np.uint64)]),
            np.array(self._id_ends, np.uint64),
            np.array(self._ids, np.int32),
            _id_or_none(eos),
        )


# The .words file: a header, then the sections, each an array. The header names the text that it was made
# from by its size, its time and its digest.


def index_path(text: Path) -> Path:
    """train.en -> train.en.words"""
    return text.with_name(text.name + ".words")


def _open_index(text: Path, progress: Progress | None) -> tuple[mmap.mmap, dict[str, Any]]:
    stat = text.stat()
    path = index_path(text)
    found = _read_index(path)
    if found is not None and _is_of(found[1], text, stat, path):
        return found
    try:
        handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".new", dir=path.parent)
    except OSError as error:
        warnings.warn(
            f"{path} cannot be written ({error.strerror}); the text is read anew each time it is loaded",
            stacklevel=3,
        )
        with tempfile.TemporaryFile() as file:
            return _map_index(file, _write_index(file, text, progress))
    try:
        with os.fdopen(handle, "w+b") as file:
            header = _write_index(file, text, progress)
            mapped = _map_index(file, header)
            os.fchmod(file.fileno(), stat.st_mode & 0o666)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return mapped


def _read_index(path: Path) -> tuple[mmap.mmap, dict[str, Any]] | None:
    """The index at `path`, if there is one and it is whole."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        start = file.read(_HEADER)
        if start and not start.startswith(_MAGIC):
            raise InputError(f"{path} stands where the words of {path.stem} are kept, and is something else: move it")
        try:
            header = json.loads(start[len(_MAGIC) :].rstrip(b"\0 \n"))
            if os.fstat(file.fileno()).st_size != header["size"]:
                return None
            mapped = _map_index(file, header)
            return mapped if _is_sound(*mapped) else None
        except (ValueError, KeyError, TypeError, IndexError):
            return None


def _is_of(header: dict[str, Any], text: Path, stat: os.stat_result, path: Path) -> bool:
    """Whether the text is still the one that the index was made from."""
    if header["text_size"] != stat.st_size:
        return False
    # A text that was changed within the tick of the clock in which it was read would look unchanged.
    if header["text_time"] == stat.st_mtime_ns and header["made"] - stat.st_mtime_ns > 2_000_000_000:
        return True
    digest = hashlib.blake2b(digest_size=16)
    with text.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    if digest.hexdigest() != header["digest"]:
        return False
    _note_time(path, header, stat)
    return True


def _note_time(path: Path, header: dict[str, Any], stat: os.stat_result) -> None:
    """The same text with another time: noted, so that it is not compared again the next time."""
    noted = {**header, "text_time": stat.st_mtime_ns, "made": time.time_ns()}
    with contextlib.suppress(OSError), path.open("r+b") as file:
        if file.read(_HEADER) == _header_bytes(header):  # else somebody has made it anew meanwhile
            file.seek(0)
            file.write(_header_bytes(noted))


def _header_bytes(header: dict[str, Any]) -> bytes:
    return (_MAGIC + json.dumps(header).encode()).ljust(_HEADER)


def _is_sound(mapped: mmap.mmap, header: dict[str, Any]) -> bool:
    """Whether every number in the index points to something: it may come from a stranger."""
    if not all(isinstance(header[name], int) for name in ("text_size", "text_time", "made")) or not header["digest"]:
        return False
    arrays = {}
    for name, dtype in _SECTIONS.items():
        begin, size = header["sections"][name]
        itemsize = np.dtype(dtype).itemsize
        if begin < _HEADER or begin % 8 or size < 0 or size % itemsize or begin + size > len(mapped):
            return False
        arrays[name] = np.frombuffer(mapped, dtype, size // itemsize, begin)
    types = len(arrays["type_ends"]) - 1
    for ends, items in (("type_ends", "types"), ("sentence_ends", "words")):
        bounds = arrays[ends]
        if not len(bounds) or bounds[0] != 0 or bounds[-1] != len(arrays[items]) or np.any(bounds[1:] < bounds[:-1]):
            return False
    if len(arrays["counts"]) != types or (len(arrays["words"]) and int(arrays["words"].max()) >= types):
        return False
    # Every type is at least a character, and the characters are whole.
    starts = arrays["type_ends"][:-1]
    if np.any(starts == arrays["type_ends"][1:]) or np.any((arrays["types"][starts] & 0xC0) == 0x80):
        return False
    arrays["types"].tobytes().decode()
    return True


def _write_index(file: IO[bytes], text: Path, progress: Progress | None) -> dict[str, Any]:
    index = _core.Index(_core.Split.WHITESPACE)
    digest = hashlib.blake2b(digest_size=16)
    sections: dict[str, tuple[int, int]] = {}

    def section(name: str, array: NDArray[Any]) -> None:
        file.write(b"\0" * (-file.tell() % 64))
        sections[name] = (file.tell(), array.nbytes)
        file.write(array.data if len(array) else b"")

    file.write(b"\0" * _HEADER)
    lines, words, done = 0, 0, 0
    ends: list[NDArray[np.uint64]] = [np.zeros(1, np.uint64)]
    with text.open("rb") as source:
        stat = os.fstat(source.fileno())
        for block in blocks_of_lines(source):
            digest.update(block)
            try:
                ids, line_ends = index.add(block)
            except _core.InvalidText as error:
                raise InputError(f"{text}, {invalid_line(error, lines)}") from None
            file.write(ids.data if len(ids) else b"")
            ends.append(line_ends + np.uint64(words))
            words += len(ids)
            lines += len(line_ends)
            done += len(block)
            if progress:
                progress(done, stat.st_size)
    sections["words"] = (_HEADER, 4 * words)
    section("sentence_ends", np.concatenate(ends))
    section("type_ends", index.ends())
    section("counts", index.counts())
    section("types", np.frombuffer(index.bytes(), np.uint8))
    header = {
        "size": file.tell(),
        "sections": sections,
        "text_size": done,
        "text_time": stat.st_mtime_ns,
        "made": time.time_ns(),
        "digest": digest.hexdigest(),
    }
    file.seek(0)
    file.write(_header_bytes(header))
    file.flush()
    return header


def _map_index(file: IO[bytes], header: dict[str, Any]) -> tuple[mmap.mmap, dict[str, Any]]:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), header
