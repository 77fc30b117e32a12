"""The two vocabularies of the paper (section Vocabularies), as fairseq dictionaries.

plain    the pieces of the training text under plain BPE; with dropout, some pieces will be unknown
dropout  these, and every piece that the merges can make of the text's characters when some are dropped

A dictionary of plain pieces is, byte for byte, the one that fairseq-preprocess makes of the segmented text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairseq.data import Dictionary

from bpe_dropout import Corpus, InputError, Segmenter
from bpe_dropout.dictionary import SPECIAL

from .unigram import UnigramModel


def count_pieces(segmenter: Segmenter, corpus: Corpus) -> Counter[str]:
    """The pieces of a text under plain BPE, and how often they come."""
    segmented = segmenter.stream().text(corpus.type_lines()).decode().removesuffix("\n")
    counts: Counter[str] = Counter()
    for line, count in zip(segmented.split("\n"), corpus.counts.tolist(), strict=True):
        for piece in line.split(" "):
            counts[piece] += count
    return counts


def possible_pieces(segmenter: Segmenter, words: Iterable[str]) -> dict[str, None]:
    """Every piece that BPE-dropout can make of these words' characters, and perhaps some that no word holds.

    >>> list(possible_pieces(Segmenter(Codes((("a", "b"), ("ab", "c</w>")))), ["abc"]))
    ['a@@', 'b@@', 'c', 'ab@@', 'abc']
    """
    version_1 = segmenter.codes.version == (0, 1)
    symbols: dict[str, None] = {}
    for word in words:
        symbols.update(dict.fromkeys(word if version_1 else word[:-1]))
        symbols[word[-1] + "</w>"] = None
    if version_1:
        symbols["</w>"] = None
    for left, right in segmenter.codes.pairs:
        if left in symbols and right in symbols:
            symbols[left + right] = None
    pieces: dict[str, None] = {}
    for symbol in symbols:
        if symbol.endswith("</w>") and symbol != "</w>":
            pieces[symbol.removesuffix("</w>")] = None
        elif symbol != "</w>":
            pieces[symbol + segmenter.separator] = None
            if version_1:  # the end of the word is a symbol of its own, and may stay one
                pieces[symbol] = None
    return pieces


def make_dictionary(counts: Mapping[str, int], threshold: int = -1, size: int = -1) -> Dictionary:
    """As fairseq-preprocess makes it: the most frequent first, filled up to a multiple of 8."""
    dictionary = Dictionary()
    for piece, count in counts.items():
        if piece in SPECIAL:
            raise InputError(
                f"the text has the piece {piece!r}, which fairseq takes for a symbol of its own: write the word "
                "differently"
            )
        dictionary.add_symbol(piece, n=count)
    dictionary.finalize(threshold=threshold, nwords=size, padding_factor=8)
    return dictionary


def count_bpe(segmenter: Segmenter, path: Path, vocabulary: str) -> Counter[str]:
    """The pieces of a vocabulary with their counts in the plainly segmented text: 0 for those of dropout alone."""
    corpus = read_corpus(path)
    counts = count_pieces(segmenter, corpus)
    if vocabulary == "dropout":
        for piece in possible_pieces(segmenter, corpus.types()):
            counts.setdefault(piece, 0)
    return counts


def count_unigram(model: UnigramModel, path: Path) -> Counter[str]:
    """All pieces of a unigram model, with their counts in the best segmentation of the text."""
    corpus = read_corpus(path)
    counts: Counter[str] = Counter({piece: 0 for piece in model.pieces if piece not in SPECIAL})
    for word, count in zip(corpus.types(), corpus.counts.tolist(), strict=True):
        for piece in model.segment(word):
            if piece in counts:
                counts[piece] += count
    return counts


def read_corpus(path: Path) -> Corpus:
    corpus = Corpus(path)
    if not len(corpus.counts):
        raise InputError(f"{path} holds no words")
    return corpus
