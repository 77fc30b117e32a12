"""Learns merges from words and their counts. The result is subword-nmt's, merge by merge.

>>> learn({"low": 5, "lower": 2}, merges=2).pairs
(('l', 'o'), ('lo', 'w</w>'))

The work is done by the core (core/learner.h), in time that depends on the length of the distinct words and not on how
many merges are learned: what subword-nmt takes minutes for is a matter of a second.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .codes import Codes
from .errors import InputError
from .files import open_input
from .lines import blocks_of_lines
from .progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def learn(
    counts: Mapping[str, int],
    merges: int,
    *,
    min_frequency: int = 2,
    total_symbols: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> Codes:
    """The most frequent merges, at most `merges` of them; stops early when no pair occurs `min_frequency` times.

    With `total_symbols`, the characters count as symbols: `merges` is then about the size of the vocabulary. Of equally
    frequent pairs, the last in the order of their text is taken. `progress(done, all)` is called some times a second.
    """
    from . import _core

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
        os.cpu_count() or 1,
    )
    return Codes(tuple(pairs))


def _words(counts: Mapping[str, int]) -> bytes:
    """The words with spaces between them."""
    joined = " ".join(counts)
    if joined.count(" ") != max(0, len(counts) - 1) or "" in counts:
        word = next(word for word in counts if not word or " " in word)
        raise InputError(f"{word!r} is not a word: a word has at least one character, and no space")
    if len(joined) >= 2**32:
        raise InputError("there are over 4 billion characters of distinct words, too many to learn from")
    try:
        return joined.encode()
    except UnicodeEncodeError:
        word = next(word for word in counts if re.search("[\ud800-\udfff]", word))
        raise InputError(f"the word {word!r} has a lone surrogate, which is not a character") from None


def _numbers(counts: Mapping[str, int]) -> NDArray[np.int64]:
    import numpy as np

    # Below this, sums of counts are exact, in Python's division, too, which decides when pairs are looked at again.
    if sum(len(word) * abs(count) for word, count in counts.items()) >= 2**53:
        raise InputError("the counts are too large: there are over 9 quadrillion characters")
    return np.fromiter(counts.values(), np.int64, len(counts))


def count_words(path: str | Path | None) -> dict[str, int]:
    """Distinct words of a text, split at spaces, in the order of their first appearance, and how often they occur."""
    from . import _core
    from .segmenter import SPLITS, invalid_line

    name = path or "standard input"
    index = _core.Index(SPLITS["spaces"])
    lines = done = 0
    progress = Progress()
    show = progress.counting(f"reading {name}", "MB", 1e6)
    with open_input(None if path is None else str(path)) as source:
        for block in blocks_of_lines(source):
            try:
                index.add(b"\n".join(line.strip(b"\r ") for line in block.split(b"\n")) if b"\r" in block else block)
            except _core.InvalidText as error:
                raise InputError(f"{name}, {invalid_line(error, lines)}") from None
            lines += block.count(b"\n")
            done += len(block)
            show(done, None)
    progress.clear()
    types, ends, counts = index.bytes(), index.ends().tolist(), index.counts().tolist()
    if not counts:
        raise InputError(f"{name} holds no words")
    return {types[begin:end].decode(): count for begin, end, count in zip(ends, ends[1:], counts, strict=False)}
