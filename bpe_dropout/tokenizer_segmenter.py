"""The segmenter of a Hugging Face tokenizer: its words and ids, our merges.

>>> segmenter = Segmenter.from_tokenizer("tokenizer.json")
>>> segmenter.ids("unrelated words")                    # what tokenizer.encode("unrelated words").ids is
[403, 5363, 2456]
>>> segmenter.ids("unrelated words", dropout=0.1)       # drawn anew by each call
[403, 2411, 515, 2456]
>>> segmenter.encode("unrelated words", dropout=0.1, seed=7).offsets
[(0, 2), (2, 9), (9, 15)]

tokenizers.py says how words get to the core.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, NoReturn

from . import _core
from .codes import Codes
from .dictionary import Dictionary
from .errors import InputError, shorten
from .keys import make_key
from .rules import Dropout
from .segmenter import Segmenter, Split, Stream
from .tokenizers import BESIDE, Atoms, Words, character, read, token_of
from .tokenizers import Split as Word

Token = tuple[int, int, int]  # id, begin, end


class TokenizerSegmenter(Segmenter):
    """Segments text as a tokenizer does, with or without dropout; made by Segmenter.from_tokenizer.

    Without dropout, tokens and ids are those of tokenizer.encode(text). With dropout, every word is drawn by
    Algorithm 1. Special tokens of the post-processor are added, unless add_special_tokens=False; they are never split,
    and neither are added tokens. Nothing is truncated or padded.
    """

    def __init__(self, source: str, special_is_text: bool, where: str = "the tokenizer") -> None:
        self.words = Words(source, special_is_text, where)
        bpe, names = self.words.bpe, self.words.names
        codes = Codes(tuple((names[left], names[right]) for left, right in bpe.merges), end_of_word=False)
        merges = _core.Merges(
            [(character(left), character(right)) for left, right in bpe.merges],
            _core.End.NONE,
            "",
            None,
            [character(result) for result in bpe.merges.values()],
        )
        self._set_up(codes, merges)

    @classmethod
    def of(cls, tokenizer: Any) -> TokenizerSegmenter:
        """The segmenter of a tokenizer; a segmenter is its own."""
        return tokenizer if isinstance(tokenizer, cls) else cls(*read(tokenizer))

    def __reduce__(self) -> tuple[Any, ...]:
        return TokenizerSegmenter, (self.words.source, self.words.special_is_text)

    def __repr__(self) -> str:
        return f"Segmenter.from_tokenizer({len(self.codes.pairs)} merges, {len(self.words.names)} tokens)"

    @cached_property
    def dictionary(self) -> Dictionary:
        """The ids of the pieces that the core makes."""
        return Dictionary({character(token): token for token in self.words.names}, unk=0)

    @property
    def name(self) -> str:
        """Another one for every tokenizer: what it makes of a text is kept in a file of this name."""
        return self.words.digest

    def segment(
        self,
        line: str,
        dropout: Dropout = 0.0,
        seed: int | None = None,
        *,
        epoch: int | None = None,
        side: int = 0,
        sentence: int = 0,
        split: Split = "spaces",
        add_special_tokens: bool = True,
    ) -> list[str]:
        """The tokens of a text, as the tokenizer writes them; where words end is up to the tokenizer.

        With a seed, they depend on (seed, epoch, side, sentence) alone; without one, they are drawn anew each time.
        """
        if split != "spaces":
            raise InputError("the tokenizer itself says where words end: leave out split")
        ids = self.ids(
            line, dropout, seed, epoch=epoch, side=side, sentence=sentence, add_special_tokens=add_special_tokens
        )
        return [self.words.names[token] for token in ids]

    def ids(
        self,
        text: str,
        dropout: Dropout = 0.0,
        seed: int | None = None,
        *,
        epoch: int | None = None,
        side: int = 0,
        sentence: int = 0,
        add_special_tokens: bool = True,
    ) -> list[int]:
        """The ids of a text: at p = 0 those of tokenizer.encode(text)."""
        rates = self._rates(dropout, epoch)
        key = self._key(dropout, rates, seed, epoch, side, sentence)
        line = " ".join(self._line(self.words.split(text), rates))
        ids = [token_of(piece) for piece in self._draw(line, rates, key, "spaces")]
        return [*self.words.before, *ids, *self.words.after] if add_special_tokens else ids

    def encode(
        self,
        text: str,
        dropout: Dropout = 0.0,
        seed: int | None = None,
        *,
        epoch: int | None = None,
        side: int = 0,
        sentence: int = 0,
        add_special_tokens: bool = True,
    ) -> Any:
        """A tokenizers.Encoding: ids, tokens, offsets in the text, words and masks. ids() alone is faster."""
        rates = self._rates(dropout, epoch)
        key = self._key(dropout, rates, seed, epoch, side, sentence)

        def tokens(splits: list[Word]) -> list[list[Token]]:
            found, position = [], 0
            for split in splits:
                if split.added is not None:
                    position += 1
                    continue
                whole = self.words.whole(split.text) if rates == 0 else None
                if whole is not None:
                    found.append([(whole, 0, len(split.text.encode()))])
                    position += 1
                    continue
                found.append([])
                begin = 0
                for unit in self.words.units(split.text):
                    pieces = _core.draw(self._merges, _core.Word(unit.text, []), rates, key, position)
                    found[-1] += self._spans([token_of(piece) for piece in pieces], unit, begin)
                    begin = found[-1][-1][2]
                    position += 1
            return found

        return self.words.encode(text, tokens, add_special_tokens)

    def distribution(
        self, word: str, dropout: Dropout, *, epoch: int | None = None, limit: int = 1 << 20
    ) -> dict[tuple[str, ...], float]:
        """Every segmentation of a text that is one word with its exact probability, the most probable first."""
        if self._rates(dropout, epoch) == 0:
            split, _ = self._one(word)
            whole = self.words.whole(split.text) if split.added is None else None
            if whole is not None:
                return {(self.words.names[whole],): 1.0}
        return super().distribution(word, dropout, epoch=epoch, limit=limit)

    def _piece_name(self, piece: str) -> str:
        return self.words.names[token_of(piece)]

    def desegment(self, pieces: str | Iterable[str]) -> str:
        """The text of tokens, by the tokenizer's own decoder."""
        if isinstance(pieces, str):
            raise InputError("a tokenizer's tokens are joined from a list, not from a line: they may hold spaces")
        decoder = self.words.decoder
        return str(decoder.decode(list(pieces))) if decoder else " ".join(pieces)

    def word(self, word: str) -> _core.Word:
        return _core.Word(self._one(word)[1], [])

    def process_line(self, *args: Any, **options: Any) -> NoReturn:
        raise InputError("process_line is for codes of subword-nmt; of a tokenizer, take segment, ids or encode")

    def probability(self, *args: Any, **options: Any) -> NoReturn:
        raise InputError("probability is for codes of subword-nmt; of a tokenizer, take distribution")

    def most_probable(self, *args: Any, **options: Any) -> NoReturn:
        raise InputError("most_probable is for codes of subword-nmt; of a tokenizer, take distribution")

    def stream(self, *args: Any, **options: Any) -> Stream:
        raise InputError("a stream is for codes of subword-nmt; of a tokenizer, take Corpus.from_tokenizer")

    def lines(self, block: bytes) -> bytes:
        """The lines of a text as words for the core."""
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            begin = block.rfind(b"\n", 0, error.start) + 1
            raise _core.InvalidText(block.count(b"\n", 0, error.start), error.start - begin) from None
        ended = text.endswith("\n")
        lines = text.removesuffix("\n").split("\n")
        made = "\n".join(" ".join(self._line(self.words.split(line), None)) for line in lines)
        return (made + "\n" if ended else made).encode()

    def _line(self, splits: list[Word], dropout: _core.AnyDropout | None) -> Iterator[str]:
        """The words of a text for the core; with dropout None, such that a corpus can draw them with any dropout.

        A word that the model knows without its merges (ignore_merges) is one token at p = 0. With dropout, its merges
        count. If the two differ at p = 0, a corpus has both.
        """
        for split in splits:
            if split.added is not None:
                yield character(split.added)
                continue
            units = self.words.units(split.text)
            whole = self.words.whole(split.text) if not dropout else None
            if whole is None:
                yield from (unit.text for unit in units)
            elif dropout == 0:
                yield character(whole)
            else:
                (merged,) = (unit.text for unit in units) if units else ("",)
                yield merged if self._plain(merged) == [character(whole)] else merged + BESIDE + character(whole)

    def _plain(self, word: str) -> list[str]:
        return self._draw(word, 0.0, make_key(0), "spaces")

    def _one(self, text: str) -> tuple[Word, str]:
        """A text that is one word."""
        splits = self.words.split(text)
        words = list(self._line(splits, 1.0))
        if len(words) != 1:
            raise InputError(f"{shorten(text)} is not one word of this tokenizer, but {len(words)}")
        return splits[0], words[0]

    def _spans(self, tokens: list[int], unit: Atoms, begin: int) -> list[Token]:
        """Where the tokens of a unit are in its word."""
        counts = self._counts(tokens, unit.text)
        spans, atom, at = [], 0, begin
        for token, count in zip(tokens, counts, strict=True):
            atom += count
            end = begin + unit.ends[atom - 1]
            spans.append((token, at, end))
            at = end
        return spans

    def _counts(self, tokens: list[int], atoms: str) -> list[int]:
        """How many atoms each token is made of.

        Mostly that is a property of the token. But a token that is itself an atom may also be the result of merges: if
        words continue with "##", the token "###" is a "#" within a word, and also a word of three. Then it is searched.
        """
        sizes = [self._sizes.get(token, 1) for token in tokens]
        if None not in sizes:
            return [size for size in sizes if size is not None]

        @cache
        def makes(token: int, begin: int, end: int) -> bool:
            if end - begin == 1:
                return atoms[begin] == character(token)
            return any(
                makes(left, begin, middle) and makes(right, middle, end)
                for left, right in self._made_of.get(token, ())
                for middle in range(begin + 1, end)
            )

        # Forwards, where each token may end, by where it begins; then backwards, which of these reach the end.
        ends: list[dict[int, list[int]]] = []
        begins = {0}
        for token, size in zip(tokens, sizes, strict=True):
            ends.append({})
            for begin in begins:
                longest = len(self.words.names[token].encode())
                possible = range(begin + 1, begin + longest + 1) if size is None else [begin + size]
                ends[-1][begin] = [end for end in possible if end <= len(atoms) and makes(token, begin, end)]
            begins = {end for found in ends[-1].values() for end in found}
        reached, chosen = {len(atoms)}, []
        for found in reversed(ends):
            chosen.append({begin: end for begin, to in found.items() for end in reversed(to) if end in reached})
            reached = set(chosen[-1])
        counts, begin = [], 0
        for choice in reversed(chosen):
            counts.append(choice[begin] - begin)
            begin = choice[begin]
        return counts

    @cached_property
    def _sizes(self) -> dict[int, int | None]:
        """How many atoms a token is made of; None: that depends."""
        bpe = self.words.bpe
        sizes: dict[int, int | None] = {
            token: 1 for name, token in bpe.vocabulary.items() if _may_be_atom(name, bpe.options)
        }
        changed = True
        while changed:
            changed = False
            for (left, right), result in bpe.merges.items():
                if left not in sizes or right not in sizes:
                    continue
                parts = sizes[left], sizes[right]
                size = None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
                if result not in sizes:
                    sizes[result], changed = size, True
                elif sizes[result] is not None and sizes[result] != size:
                    sizes[result], changed = None, True
        return sizes

    @cached_property
    def _made_of(self) -> dict[int, list[tuple[int, int]]]:
        made_of: dict[int, list[tuple[int, int]]] = {}
        for pair, result in self.words.bpe.merges.items():
            made_of.setdefault(result, []).append(pair)
        return made_of


def _may_be_atom(name: str, options: Mapping[str, Any]) -> bool:
    """Whether a word may start from this token, before any merge."""
    bare = name.removeprefix(options.get("continuing_subword_prefix", ""))
    suffix = options.get("end_of_word_suffix", "")
    if 1 in (len(text) for text in (name, bare, name.removesuffix(suffix), bare.removesuffix(suffix))):
        return True
    is_byte = re.fullmatch("<0x[0-9A-F]{2}>", name) is not None
    return name == options.get("unk_token") or (is_byte and "byte_fallback" in options)
