"""The two vocabularies of the paper (section Vocabularies), as fairseq dictionaries.

plain    the pieces of the training text under plain BPE; with dropout, some pieces will be unknown
dropout  these, and every piece that the merges can make of the text's characters when some are dropped

A dictionary of plain pieces is, byte for byte, the one that fairseq-preprocess makes of the segmented text.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..corpus import Corpus
from ..dictionary import SPECIAL, Dictionary
from ..errors import InputError
from ..segmenter import Segmenter


def make_dictionary(segmenter: Segmenter, text: str | Path) -> Dictionary:
    """The dictionary of a text, with every piece that dropout can make: no piece of this text is ever unknown.

    make_dictionary(Segmenter.from_codes("codes"), "train.txt")
    """
    entries = dictionary_entries(count_pieces(segmenter, read_corpus(Path(text)), possible=True))
    return Dictionary.of_pieces(piece for piece, _ in entries)


def count_pieces(segmenter: Segmenter, corpus: Corpus, *, possible: bool = False) -> Counter[str]:
    """The pieces of a text under plain BPE, and how often they occur; those that are only `possible` do so 0 times."""
    segmented = segmenter.stream().text(corpus.type_lines()).decode().removesuffix("\n")
    counts: Counter[str] = Counter()
    for line, count in zip(segmented.split("\n"), corpus.counts.tolist(), strict=True):
        for piece in line.split(" "):
            counts[piece] += count
    if possible:
        for piece in possible_pieces(segmenter, corpus.types()):
            counts.setdefault(piece, 0)
    return counts


def possible_pieces(segmenter: Segmenter, words: Iterable[str]) -> dict[str, None]:
    """Every piece that BPE-dropout can make of these words' characters, and perhaps some that no word holds.

    >>> from bpe_dropout import Codes
    >>> list(possible_pieces(Segmenter(Codes((("a", "b"), ("ab", "c</w>")))), ["abc"]))
    ['a@@', 'b@@', 'c', 'ab@@', 'abc']
    """
    version_1 = segmenter.codes.version == (0, 1)
    symbols: dict[str, None] = {}
    protected, divided = dict[str, None](), False
    for word in words:
        for part, fixed in segmenter.parts(word) or [(word, False)]:
            if fixed:
                protected[part] = None
                continue
            symbols.update(dict.fromkeys(part if version_1 else part[:-1]))
            symbols[part[-1] + "</w>"] = None
            divided = divided or part != word
    if version_1:
        symbols["</w>"] = None
    for left, right in segmenter.codes.pairs:
        if left in symbols and right in symbols:
            symbols[left + right] = None
    pieces: dict[str, None] = {}
    for symbol in symbols:
        if symbol.endswith("</w>") and symbol != "</w>":
            pieces[symbol.removesuffix("</w>")] = None
            if divided:  # a part before a glossary ends as a word does, and goes on
                pieces[symbol.removesuffix("</w>") + segmenter.separator] = None
        elif symbol != "</w>":
            pieces[symbol + segmenter.separator] = None
            if version_1:  # the end of the word is a symbol of its own, and may stay one
                pieces[symbol] = None
    for part in protected:
        pieces.update(dict.fromkeys((part, part + segmenter.separator)))
    return pieces


def dictionary_entries(counts: Mapping[str, int], threshold: int = -1, size: int = -1) -> list[tuple[str, int]]:
    """The entries of dict.LANGUAGE.txt, as fairseq-preprocess makes them: the most frequent first, of equals in the
    order of their text, filled up so that with fairseq's own four symbols they are a multiple of 8.

    >>> dictionary_entries({"un@@": 2, "related": 5})
    [('related', 5), ('un@@', 2), ('madeupword0000', 0), ('madeupword0001', 0)]
    """
    for piece in counts:
        if piece in SPECIAL:
            raise InputError(
                f"the text has the piece {piece!r}, which fairseq takes for a symbol of its own: write the word "
                "differently"
            )
    entries = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    if size > 0:
        entries = entries[: max(0, size - len(SPECIAL))]
    entries = [entry for entry in entries if entry[1] >= threshold]
    unused = (name for number in itertools.count() if (name := f"madeupword{number:04d}") not in dict(entries))
    filling = -(len(entries) + len(SPECIAL)) % 8
    return entries + [(name, 0) for name in itertools.islice(unused, filling)]


def read_corpus(path: Path) -> Corpus:
    corpus = Corpus(path)
    if not len(corpus.counts):
        raise InputError(f"{path} holds no words")
    return corpus
