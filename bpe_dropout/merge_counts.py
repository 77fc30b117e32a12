"""How often plain BPE applies each merge to a text: for rules of dropout that go by frequency.

>>> from bpe_dropout import Codes, Segmenter
>>> count_merges(Segmenter(Codes((("a", "b"), ("ab", "c</w>")))), {"abc": 3, "abab": 1})
[4, 3]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .reference import Ranks, Tokens, candidates, characters, merge_all, occurrences
from .segmenter import Segmenter


def count_merges(segmenter: Segmenter, counts: Mapping[str, int]) -> list[int]:
    """How often each merge of the codes is applied to a text, given as words and their counts."""
    codes = segmenter.codes
    ranks, applied = codes.ranks, [0] * len(codes.pairs)
    for (piece, ends), count in _pieces(segmenter, counts).items():
        # No merge crosses the ends of a piece, so within it plain BPE goes as if it were alone.
        for rank, times in _merges_of(characters(piece, codes) if ends else tuple(piece), ranks).items():
            applied[rank] += count * times
    return applied


def _pieces(segmenter: Segmenter, counts: Mapping[str, int]) -> Counter[tuple[str, bool]]:
    """The pieces that plain BPE makes, with their counts: (piece, whether it ends the word)."""
    words: Counter[str] = Counter()
    for word, count in counts.items():
        for part, fixed in segmenter.parts(word) or [(word, False)]:
            if not fixed and len(part) > 1:  # a single character is left as it is
                words[part] += count
    mark = "@@"
    plain = Segmenter(segmenter.codes, separator=mark).stream()
    pieces: Counter[tuple[str, bool]] = Counter()
    lines = plain.text("".join(f"{word}\n" for word in words).encode()).decode().split("\n")
    for line, count in zip(lines, words.values(), strict=False):
        *inner, last = line.split(" ")
        pieces[last, True] += count
        for piece in inner:
            pieces[piece.removesuffix(mark), False] += count
    return pieces


def _merges_of(tokens: Tokens, ranks: Ranks) -> Counter[int]:
    """The merges of plain BPE, with how often each is applied."""
    applied: Counter[int] = Counter()
    while found := candidates(tokens, ranks):
        pair = tokens[found[0]], tokens[found[0] + 1]
        at = occurrences(tokens, pair)
        applied[ranks[pair]] += len(at)
        tokens = merge_all(tokens, at)
    return applied
