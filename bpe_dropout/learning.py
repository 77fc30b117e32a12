"""Learns merges from words and their counts. The result is subword-nmt's, merge by merge.

>>> learn({"low": 5, "lower": 2}, merges=2).pairs
(('l', 'o'), ('lo', 'w</w>'))

The work is done by the core (core/learner.h), in time that depends on the length of the distinct words and not on how
many merges are learned: what subword-nmt takes minutes for is a matter of a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from .codes import Codes
from .cores import count_cores
from .errors import InputError, check_threads, shorten
from .files import open_input
from .lines import blocks_of_lines, decode_lines
from .progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from . import _core


def learn(
    counts: Mapping[str, int],
    merges: int,
    *,
    min_frequency: int = 2,
    total_symbols: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Codes:
    """The most frequent merges, at most `merges` of them; stops early when no pair occurs `min_frequency` times.

    With `total_symbols`, the characters count as symbols: `merges` is then about the size of the vocabulary. Of equally
    frequent pairs, the last in the order of their text is taken. The number of `threads` (default: all cores) changes
    nothing but the time. `progress(done, all)` is called some times a second.
    """
    from . import _core

    if not isinstance(counts, Mapping):
        raise InputError(
            f'merges are learned from words and their counts, such as {{"low": 5}}, not from {counts!r:.40}'
        )
    if merges < 1:
        raise InputError(f"the number of merges is 1 or more, not {merges}")
    words, numbers = _words(counts), _numbers(counts)
    if not any(len(word) > 1 for word in counts):
        raise InputError("there is no word of two characters to learn from")
    least, most = -(2**53), 2**53
    pairs = _core.learn(
        words,
        numbers,
        min(merges, most),
        max(least, min(min_frequency, most)),
        total_symbols,
        progress,
        count_cores() if threads is None else check_threads(threads),
    )
    return Codes(tuple(pairs))


def merges_asked_for(counts: Mapping[str, int], symbols: int, total_symbols: bool) -> int:
    """How many merges so many symbols are, if the characters count as symbols, within words and at their ends."""
    if not total_symbols:
        return symbols
    return symbols - len({one for word in counts for one in word[:-1]}) - len({word[-1] for word in counts})


def describe_fewer(merges: int, asked: int, min_frequency: int) -> str:
    """
    >>> describe_fewer(57, 100, 2)
    '57 merges were learned, and not 100: no other pair occurs 2 times'
    """
    return f"{merges} merges were learned, and not {asked}: no other pair occurs {min_frequency} times"


def find_return(path: str | Path) -> int | None:
    """The first line with a carriage return within it."""
    with open(path, "rb") as file:
        return next((number for number, line in enumerate(file, 1) if b"\r" in line.strip(b"\r\n ")), None)


def _words(counts: Mapping[str, int]) -> bytes:
    """The words with spaces between them."""
    joined = " ".join(counts)
    if joined.count(" ") != max(0, len(counts) - 1) or "" in counts:
        word = next(word for word in counts if not word or " " in word)
        raise InputError(f"{shorten(word)} is not a word: a word has at least one character, and no space")
    if len(joined) >= 2**32 - 2:
        raise InputError("there are over 4 billion characters of distinct words, too many to learn from")
    try:
        return joined.encode()
    except UnicodeEncodeError:
        word = next(word for word in counts if re.search("[\ud800-\udfff]", word))
        raise InputError(f"the word {shorten(word)} has a lone surrogate, which is not a character") from None


def _numbers(counts: Mapping[str, int]) -> NDArray[np.int64]:
    import numpy as np

    for word, count in counts.items():
        if type(count) is not int and not hasattr(count, "__index__"):
            raise InputError(f"the count of {shorten(word)} is a whole number, not {count!r}")
    # Below this, sums of counts are exact, in Python's division, too, which decides when pairs are looked at again.
    if sum(len(word) * abs(count) for word, count in counts.items()) >= 2**53:
        raise InputError("the counts are too large: there are over 9 quadrillion characters")
    return np.fromiter(counts.values(), np.int64, len(counts))


def count_words(path: str | Path | None) -> dict[str, int]:
    """Distinct words of a text, split at spaces, in the order of their first appearance, and how often they occur."""
    from concurrent.futures import ThreadPoolExecutor

    from . import _core
    from .segmenter import SPLITS, invalid_line

    name = path or "standard input"
    indices = [_core.Index(SPLITS["spaces"]) for _ in range(count_cores())]
    ends: list[int] = []  # for each block, how many words its index had after it
    lines = done = 0
    progress = Progress()
    show = progress.counting(f"reading {name}", "MB", 1e6)

    def add(index: _core.Index, block: bytes) -> int:
        index.add(b"\n".join(line.strip(b"\r ") for line in block.split(b"\n")) if b"\r" in block else block)
        return len(index)

    with open_input(None if path is None else str(path)) as source, ThreadPoolExecutor(len(indices)) as pool:
        blocks = blocks_of_lines(source)
        while some := list(islice(blocks, len(indices))):
            adding = [pool.submit(add, index, block) for index, block in zip(indices, some, strict=False)]
            for block, added in zip(some, adding, strict=True):
                try:
                    ends.append(added.result())
                except _core.InvalidText as error:
                    raise InputError(f"{name}, {invalid_line(error, lines)}") from None
                lines += block.count(b"\n")
                done += len(block)
                show(done, None)
    progress.clear()
    counts = _together(indices, ends)
    if not counts:
        raise InputError(f"{name} holds no words")
    return counts


def _together(indices: list[_core.Index], ends: list[int]) -> dict[str, int]:
    """The words of several indices that were given blocks in turn."""
    counts: dict[str, int] = {}
    words = [_words_of(index) for index in indices]
    before = [0] * len(indices)
    for number, end in enumerate(ends):
        which = number % len(indices)
        for word, count in islice(words[which], end - before[which]):
            counts[word] = counts.get(word, 0) + count
        before[which] = end
    return counts


def _words_of(index: _core.Index) -> Iterator[tuple[str, int]]:
    types, ends = index.bytes(), index.ends().tolist()
    for begin, end, count in zip(ends, ends[1:], index.counts().tolist(), strict=False):
        yield types[begin:end].decode(), count


def read_counts(path: str | Path | None) -> dict[str, int]:
    """A dictionary of words: in each line a word, a space and its count. Counts of the same word add up."""
    name = path or "standard input"
    counts: dict[str, int] = {}
    with open_input(None if path is None else str(path)) as source:
        for number, line in enumerate(decode_lines(source, name), 1):
            word, _, count = line.strip("\r ").partition(" ")
            if not re.fullmatch("[0-9]+", count):
                raise InputError(f"{name}, line {number}: expected a word, a space and its count, not {shorten(line)}")
            counts[word] = counts.get(word, 0) + int(count)
    if not counts:
        raise InputError(f"{name} holds no words")
    return counts
