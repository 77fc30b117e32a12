"""Learns merges from words and their counts. The result is subword-nmt's, merge by merge.

>>> learn({"low": 5, "lower": 2}, merges=2).pairs
(('l', 'o'), ('lo', 'w</w>'))

Left out: speed. The statistics of pairs are subword-nmt's own, in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from .codes import Codes
from .errors import InputError
from .files import open_input
from .lines import blocks_of_lines
from .progress import Progress


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
    frequent pairs, the last in the order of their text is taken. `progress(done, all)` is called for each merge.
    """
    from subword_nmt.learn_bpe import get_pair_statistics, prune_stats, replace_pair, update_pair_statistics

    if merges < 1:
        raise InputError(f"the number of merges is 1 or more, not {merges}")
    words = {(*word[:-1], word[-1] + "</w>"): count for word, count in counts.items()}
    if not any(len(word) > 1 for word in words):
        raise InputError("there is no word of two characters to learn from")
    if total_symbols:
        merges -= len({symbol for word in words for symbol in word[:-1]}) + len({word[-1] for word in words})
    ordered = sorted(words.items(), key=lambda item: item[1], reverse=True)
    frequencies, where = get_pair_statistics(ordered)
    # Rare pairs are set aside, so that the maximum is taken over few. They come back when it is below the threshold.
    rare = frequencies.copy()
    threshold = max(frequencies.values()) / 10
    pairs: list[tuple[str, str]] = []
    for number in range(merges):
        best = most_frequent(frequencies)
        if best is None or (number and frequencies[best] < threshold):
            prune_stats(frequencies, rare, threshold)
            frequencies = rare.copy()
            best = most_frequent(frequencies)
            assert best is not None
            threshold = frequencies[best] * number / (number + 10000.0)
            prune_stats(frequencies, rare, threshold)
        if frequencies[best] < min_frequency:
            break
        pairs.append(best)
        update_pair_statistics(best, replace_pair(best, ordered, where), frequencies, where)
        frequencies[best] = 0
        if number % 100 == 0:
            prune_stats(frequencies, rare, threshold)
        if progress:
            progress(number + 1, merges)
    return Codes(tuple(pairs))


def most_frequent(frequencies: Mapping[tuple[str, str], int]) -> tuple[str, str] | None:
    return max(frequencies, key=lambda pair: (frequencies[pair], pair), default=None)


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
