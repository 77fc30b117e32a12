"""A training text in the words of a Hugging Face tokenizer, loaded once and segmented anew in every epoch.

    corpus = Corpus.from_tokenizer("train.txt", tokenizer)
    sampler = corpus.sampler(dropout=0.1)
    sampler.lengths(seed=1, epoch=3)             # the exact length of every line
    sampler.tokens(range(64), seed=1, epoch=3)   # ids of the tokenizer, with its special tokens

A line is a text that the tokenizer encodes by itself. The words are kept beside the text, as of any corpus, in a file
that is named for the tokenizer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .corpus import MEMORY, Corpus, Eos, Sampler, _after, of_text
from .dictionary import Dictionary
from .errors import InputError
from .rules import Dropout, Rule, read_dropout
from .segmenter import Segmenter
from .tokenizer_segmenter import TokenizerSegmenter
from .tokenizers import BESIDE, token_of
from .word_index import Progress


class TokenizerCorpus(Corpus):
    """Made by Corpus.from_tokenizer."""

    def __init__(
        self, path: str | Path, tokenizer: Any, *, add_special_tokens: bool = True, progress: Progress | None = None
    ) -> None:
        self.segmenter = self._reader = TokenizerSegmenter.of(tokenizer)
        self._add_special_tokens = add_special_tokens
        super().__init__(path, progress=progress)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._absolute, self.segmenter, self._add_special_tokens, self.digest)

    def type(self, number: int) -> str:
        """The word that has this number, in the tokens that its merges start from."""
        merged, _, whole = super().type(number).partition(BESIDE)
        return "".join(self.segmenter.words.names[token_of(char)] for char in merged or whole)

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
        """BPE-dropout of this corpus, as ids of the tokenizer.

        Every line has the special tokens of the tokenizer's post-processor, unless the corpus was made without; an
        `eos` that is given comes after them.
        """
        own = segmenter is None or (isinstance(segmenter, TokenizerSegmenter) and segmenter.name == self.segmenter.name)
        if not own or dictionary is not None:
            raise InputError("the words, merges and ids of this corpus are those of its tokenizer: give no others")
        words = self.segmenter.words
        before, after = (words.before, words.after) if self._add_special_tokens else ([], [])
        frame = before, [*after, *_after(eos, None)]
        given = self._read_dropout(dropout, self.segmenter)
        return Sampler.of_rule(
            lambda rates: self._dropout_sampler(
                self.segmenter, self.segmenter.dictionary, self._parts(rates), rates, frame, memory, threads
            ),
            self.segmenter,
            given,
            len(self),
            (_rebuild_sampler, (self, given, eos, memory, threads)),
        )

    def _read_dropout(self, dropout: Dropout, segmenter: Segmenter) -> float | Rule:
        given = read_dropout(dropout)
        if isinstance(given, Rule) and given.needs_counts:
            raise InputError(f"{given}: the merges of a tokenizer are not counted; take a rule by rank, or a file")
        return given

    def _parts(self, dropout: _core.AnyDropout) -> dict[int, _core.Parts]:
        """Words that are one token without dropout, whatever the merges: that token, or what merges start from."""
        beside = np.flatnonzero(self._types == ord(BESIDE))
        numbers = np.searchsorted(self._type_ends, beside, side="right") - 1
        parts: dict[int, _core.Parts] = {}
        for number in numbers.tolist():
            merged, _, whole = super().type(number).partition(BESIDE)
            parts[number] = [(merged if dropout else whole, False)]
        return parts


def _rebuild(path: Path, segmenter: TokenizerSegmenter, add_special_tokens: bool, digest: str) -> TokenizerCorpus:
    return of_text(TokenizerCorpus(path, segmenter, add_special_tokens=add_special_tokens), digest)


def _rebuild_sampler(corpus: TokenizerCorpus, dropout: Dropout, eos: Eos, memory: int, threads: int) -> Sampler:
    return corpus.sampler(dropout=dropout, eos=eos, memory=memory, threads=threads)
