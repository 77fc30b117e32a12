"""Segmenting lines of words into pieces, with or without dropout.

At dropout 0 the result is subword-nmt's, byte for byte; with dropout it is drawn from the exact
distribution of Algorithm 1 (section 3 of the paper; reference.py has it in plain Python). Dropout is a
number, or a rule that has a rate for each merge (rules.py). The same
(seed, epoch, side, sentence) draws the same pieces everywhere: here, in a corpus, in the command. Without a
seed every call draws anew.

Left out: tokenization. A line is words with spaces between them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from .codes import Codes, read_vocabulary
from .errors import InputError, LineError, OutOfReach, check_number, check_threads, encode, not_text, shorten
from .keys import FreshKeys, check_no_key, make_key
from .rules import Dropout, Rule, has_schedule, may_drop, read_dropout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .dictionary import Dictionary
    from .tokenizer_segmenter import TokenizerSegmenter

SPLITS = {"spaces": _core.Split.SPACES, "whitespace": _core.Split.WHITESPACE}
Split = Literal["spaces", "whitespace"]

STREAM_MEMORY = 512 << 20
LINES_MEMORY, LINES_KEPT, RATES_KEPT = 32 << 20, 4, 4


class Segmenter:
    """Segments text with a merge table.

    >>> segmenter = Segmenter.from_codes("codes")
    >>> segmenter.segment("unrelated words")
    ['un@@', 'related', 'words']
    >>> segmenter.distribution("unrelated", dropout=0.1)
    {('un@@', 'related'): 0.61, ('un@@', 'relat@@', 'ed'): 0.07, ...}
    >>> segmenter.desegment(["un@@", "related", "words"])
    'unrelated words'

    `folder` is where the codes are, for files of rates beside them.
    `vocabulary` (pieces with their separators), `glossaries` (regular expressions) and `separator` mean
    what they mean in subword-nmt: pieces that are not in the vocabulary are split again, and what a
    glossary matches is not split.

    A call with dropout and a seed is a pure function of its arguments. Without a seed it draws anew each time, as
    training needs it; see seed().
    """

    def __init__(
        self,
        codes: Codes,
        *,
        vocabulary: Collection[str] | None = None,
        glossaries: Sequence[str] | None = None,
        separator: str = "@@",
        folder: Path | None = None,
    ) -> None:
        pieces = frozenset(vocabulary) if vocabulary else None
        if isinstance(glossaries, str):
            raise InputError(f"glossaries are a list of regular expressions, not {glossaries!r}")
        patterns = tuple(glossaries or ())
        encode(separator)
        if any(map(str.isspace, separator)):
            raise InputError(f"a separator has no white space, which ends words: not {separator!r}")
        divide = _Glossaries(patterns) if patterns else None
        try:
            merges = _core.Merges(list(codes.pairs), _end(codes), separator, set(pieces) if pieces else None, None)
        except ValueError as error:
            raise InputError(f"the codes cannot be used: {error}") from None
        self._set_up(codes, merges, pieces, patterns, divide, separator, folder)

    def _set_up(
        self,
        codes: Codes,
        merges: _core.Merges,
        vocabulary: frozenset[str] | None = None,
        glossaries: tuple[str, ...] = (),
        divide: _Glossaries | None = None,
        separator: str = "",
        folder: Path | None = None,
    ) -> None:
        """What every segmenter has; `merges` are the codes as the core has them."""
        self.codes, self.vocabulary, self.glossaries = codes, vocabulary, glossaries
        self.separator, self.folder = separator, folder
        self._merges, self._divide = merges, divide
        self._fresh = FreshKeys()
        self._lines: dict[tuple[_core.AnyDropout, str], _core.Lines] = {}
        self._rates_of: dict[Rule, _core.AnyDropout] = {}

    @classmethod
    def from_codes(
        cls,
        path: str | Path,
        *,
        merges: int = -1,
        vocabulary: str | Path | Collection[str] | None = None,
        vocabulary_threshold: int | None = None,
        glossaries: Sequence[str] | None = None,
        separator: str = "@@",
        end_of_word: bool | None = None,
    ) -> Segmenter:
        """Reads a codes file of subword-nmt, version 0.1 or 0.2, and a vocabulary file if one is named.

        `end_of_word` is for files without any "</w>", see Codes.read. GPT-2's merges.txt is read with
        end_of_word=False and separator=""; it expects words as GPT-2's pre-tokenizer makes them, with bytes as
        letters, which is not done here.
        """
        codes = Codes.read(path, merges, end_of_word=end_of_word)
        if isinstance(vocabulary, str | Path):
            vocabulary = read_vocabulary(vocabulary, vocabulary_threshold)
        elif vocabulary_threshold is not None:
            raise InputError("a vocabulary threshold needs a vocabulary file")
        folder = Path(path).absolute().parent
        return cls(codes, vocabulary=vocabulary, glossaries=glossaries, separator=separator, folder=folder)

    @staticmethod
    def from_tokenizer(tokenizer: Any) -> TokenizerSegmenter:
        """Takes the merges, words and ids of a Hugging Face tokenizer whose model is BPE.

        `tokenizer` is a tokenizers.Tokenizer, a fast tokenizer of transformers or the path of a tokenizer.json. Needs
        the package tokenizers.
        """
        from .tokenizer_segmenter import TokenizerSegmenter

        return TokenizerSegmenter.of(tokenizer)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.codes, self.vocabulary, self.glossaries, self.separator, self.folder)

    def __repr__(self) -> str:
        return f"Segmenter({len(self.codes.pairs)} merges, separator={self.separator!r})"

    def seed(self, seed: int | None = None) -> None:
        """Seeds the draws of calls that name no seed, as random.seed does; None takes a random seed.

        After seed(7) the first such line is drawn as sentence 0 of seed 7, the next as sentence 1, and so on: what
        `bpe-dropout apply --seed 7` draws. Each segmenter begins with a random seed, and so do a pickled copy and a
        forked process, so that workers never draw the same. To repeat what workers draw, call seed() in each of them.
        """
        self._fresh.seed(seed)

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
    ) -> list[str]:
        """The pieces of a line of words.

        With a seed, they depend on (seed, epoch, side, sentence) alone; without one, they are drawn anew each time. No
        epoch is epoch 0; a rule with a schedule needs one, with or without a seed.
        `split` says where words end: at spaces, as in subword-nmt, or at any white space, as in fairseq.
        """
        rates = self._rates(dropout, epoch)
        key = self._key(dropout, rates, seed, epoch, side, sentence)
        return self._draw(line.strip("\r\n ") if split == "spaces" else line, rates, key, split)

    def _rates(self, dropout: Dropout, epoch: int | None = None) -> _core.AnyDropout:
        """What the core takes: a number, or the rates of a rule in an epoch."""
        if type(dropout) is float and 0 <= dropout <= 1:  # as nearly always
            return dropout
        given = read_dropout(dropout)
        if isinstance(given, float):
            return given
        rule = given.at(epoch)
        if rule not in self._rates_of:
            rates = rule.rates(len(self.codes.pairs), self.folder)
            while len(self._rates_of) >= RATES_KEPT:
                del self._rates_of[next(iter(self._rates_of))]
            self._rates_of[rule] = rates if isinstance(rates, float) else _core.Dropout(rates)
        return self._rates_of[rule]

    def _draw(self, line: str, dropout: _core.AnyDropout, key: _core.Key, split: Split) -> list[str]:
        lines = self._lines.get((dropout, split)) or self._add_lines(dropout, split)
        try:
            return lines.segment(line, key)
        except UnicodeEncodeError as error:
            raise not_text(error) from None

    def _add_lines(self, dropout: _core.AnyDropout, split: Split) -> _core.Lines:
        """What remembers the words of lines that are segmented one by one, for the latest few rates of dropout."""
        lines = _core.Lines(self._merges, dropout, read_split(split), self._divide, LINES_MEMORY)
        while len(self._lines) >= LINES_KEPT:
            del self._lines[next(iter(self._lines))]
        self._lines[dropout, split] = lines
        return lines

    def _key(
        self,
        dropout: Dropout,
        rates: _core.AnyDropout,
        seed: int | None,
        epoch: int | None,
        side: int,
        sentence: int,
    ) -> _core.Key:
        if seed is not None:
            return make_key(seed, 0 if epoch is None else epoch, side, sentence)
        check_no_seed(dropout, epoch, side, sentence)
        return self._fresh.next() if rates else make_key(0)

    def process_line(
        self,
        line: str,
        dropout: Dropout = 0.0,
        seed: int | None = None,
        *,
        epoch: int | None = None,
        side: int = 0,
        sentence: int = 0,
    ) -> str:
        """The segmented line as text, with the white space before and after it: subword-nmt's own method.

        As there, dropout without a seed is drawn anew each time.

        >>> segmenter.process_line("  unrelated  words ")
        '  un@@ related words '
        """
        pieces = self.segment(line, dropout, seed, epoch=epoch, side=side, sentence=sentence)
        bare = line.strip("\r\n ")
        if not bare:
            return line
        begin = line.index(bare)
        return line[:begin] + " ".join(pieces) + line[begin + len(bare) :]

    def distribution(
        self, word: str, dropout: Dropout, *, epoch: int | None = None, limit: int = 1 << 20
    ) -> dict[tuple[str, ...], float]:
        """Every segmentation of a word with its exact probability, the most probable first.

        Long words have too many: more than `limit` states of Algorithm 1 are an error. A rule with a schedule needs the
        epoch.
        """
        rates = self._rates(dropout, epoch)
        states = check_number("the limit of states", limit, least=1)
        try:
            outcomes = _core.distribution(self._merges, self.word(word), rates, states)
        except _core.TooManyStates as error:
            raise OutOfReach(f"the segmentations of {shorten(word)} are too many to list: {error}") from None
        named = ((tuple(map(self._piece_name, pieces)), probability) for pieces, probability in outcomes)
        return dict(sorted(named, key=lambda outcome: (-outcome[1], outcome[0])))

    def probability(
        self, pieces: Sequence[str], dropout: Dropout, *, epoch: int | None = None, limit: int = 1 << 16
    ) -> float:
        """The exact probability of one segmentation of a word, for long words, too.

        >>> segmenter.probability(["un@@", "relat@@", "ed"], dropout=0.1)
        0.07

        Only what can become part of these pieces is looked at: milliseconds for a word of 30 characters. It is an
        error if that is more than `limit` states of Algorithm 1 at a time; the error then says between which bounds
        the probability is.
        """
        given, states = list(pieces), check_number("the limit of states", limit, least=1)
        word, rates = self.word(self._join(given)), self._rates(dropout, epoch)
        try:
            least, most = _core.probability(self._merges, word, rates, given, states)
        except _core.TooManyStates as error:
            raise OutOfReach(f"the probability of {shorten(' '.join(given))} cannot be computed: {error}") from None
        if most - least > 1e-12 * most:
            raise OutOfReach(
                f"the probability of {shorten(' '.join(given))} is between {least:g} and {most:g}: to compute it "
                f"exactly needs more than {limit} states at a time"
            )
        return least

    def _join(self, pieces: Sequence[str]) -> str:
        """The word that these are the pieces of."""
        for piece in pieces[:-1]:
            if not piece.endswith(self.separator):
                word = shorten(" ".join(pieces))
                raise InputError(f"{shorten(piece)} is within a word and must end with {self.separator!r}: {word}")
        return "".join([*(piece.removesuffix(self.separator) for piece in pieces[:-1]), *pieces[-1:]])

    def most_probable(
        self, line: str, dropout: Dropout, count: int, *, epoch: int | None = None, split: Split = "spaces"
    ) -> list[tuple[list[str], float]]:
        """The `count` most probable segmentations of a line of words, with their exact probabilities.

        >>> segmenter.most_probable("unrelated words", dropout=0.1, count=2)
        [(['un@@', 'related', 'words'], 0.55), (['un@@', 'relat@@', 'ed', 'words'], 0.06)]

        The most probable is first; of equals, the order is always the same. For many lines, and for what to do with
        words that have too many segmentations, see MostProbable.
        """
        from .most_probable import MostProbable

        return MostProbable(self, dropout, count, epoch=epoch, split=split)(line)

    def _piece_name(self, piece: str) -> str:
        """How a piece of the core is shown."""
        return piece

    def desegment(self, pieces: str | Iterable[str]) -> str:
        """Joins pieces, or the pieces of a segmented line, to text.

        A separator at the very end, which a model may produce, is removed, too. A word that itself ends in the
        separator looks like a piece that continues: a limit of subword-nmt's format.
        """
        if not self.separator:
            raise InputError("without a separator the words cannot be told from the pieces")
        line = pieces if isinstance(pieces, str) else " ".join(pieces)
        return (line + " ").replace(self.separator + " ", "").removesuffix(" ")

    def stream(
        self,
        dropout: Dropout = 0.0,
        *,
        dictionary: Dictionary | None = None,
        split: Split = "spaces",
        threads: int = 1,
        memory: int = STREAM_MEMORY,
    ) -> Stream:
        """Segments large texts, a block of lines at a time; with a dictionary, into ids."""
        return Stream(self, dropout, dictionary, split, threads, memory)

    def parts(self, word: str) -> list[tuple[str, bool]]:
        """How the glossaries divide a word: (text, whether it is protected); empty if they do not."""
        return self._divide(word) if self._divide else []

    def word(self, word: str) -> _core.Word:
        """A word for the compiled core; an error if it is not one."""
        if not word or " " in word or "\n" in word:
            raise InputError(f"{shorten(word)} is not one word")
        encode(word)
        return _core.Word(word, self.parts(word))


class Stream:
    """Segments text block by block, remembering its words. Line n draws as sentence n.

    Without a seed, each block is drawn anew, with a seed that comes from Segmenter.seed().
    """

    def __init__(
        self,
        segmenter: Segmenter,
        dropout: Dropout,
        dictionary: Dictionary | None,
        split: Split,
        threads: int,
        memory: int,
    ) -> None:
        self._segmenter, self._dropout = segmenter, read_dropout(dropout)
        self._ids = dictionary.bind(segmenter) if dictionary is not None else None
        self._to_ids = self._ids is not None
        self._fresh, self._drops = segmenter._fresh, may_drop(self._dropout)
        self._split, self._memory = read_split(split), check_number("the memory", memory)
        self._threads = check_threads(threads)
        self._made = self._make(segmenter._rates(self._dropout, 1))

    def _make(self, rates: _core.AnyDropout) -> tuple[_core.AnyDropout, _core.Streams]:
        segmenter = self._segmenter
        return rates, _core.Streams(
            segmenter._merges, self._ids, rates, self._split, segmenter._divide, self._memory, self._threads
        )

    def _streams(self, epoch: int | None) -> _core.Streams:
        """What remembers words, made anew when a rule has other rates in this epoch."""
        if isinstance(self._dropout, Rule):
            rates = self._segmenter._rates(self._dropout, epoch)
            if rates != self._made[0]:
                self._made = self._make(rates)
        return self._made[1]

    def text(
        self, block: bytes, seed: int | None = None, *, epoch: int | None = None, side: int = 0, first_line: int = 0
    ) -> bytes:
        """Segments lines of UTF-8 text, split at \\n only; what is not UTF-8 is an error with its line."""
        if self._to_ids:
            raise InputError("this stream has a dictionary and gives ids; for text, make one without")
        try:
            return self._streams(epoch).text(block, self._key(seed, epoch, side, first_line))
        except _core.InvalidText as error:
            raise invalid_line(error, first_line) from None

    def ids(
        self, block: bytes, seed: int | None = None, *, epoch: int | None = None, side: int = 0, first_line: int = 0
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all lines, one after the other, and where each line begins and ends."""
        if not self._to_ids:
            raise InputError("ids need a dictionary: segmenter.stream(dictionary=...)")
        try:
            return self._streams(epoch).ids(block, self._key(seed, epoch, side, first_line))
        except _core.InvalidText as error:
            raise invalid_line(error, first_line) from None

    def _key(self, seed: int | None, epoch: int | None, side: int, first_line: int) -> _core.Key:
        if seed is None:
            check_no_seed(self._dropout, epoch, side, 0)
            seed, epoch = _core.first(self._fresh.next(), 0) if self._drops else 0, None
        return make_key(seed, 0 if epoch is None else epoch, side, first_line)


def check_no_seed(dropout: Dropout, epoch: int | None, side: int, sentence: int) -> None:
    """Without a seed there is no key to name; but the rates of a schedule depend on the epoch."""
    if epoch is not None and has_schedule(dropout):
        check_number("the epoch", epoch)
        epoch = None
    check_no_key(0 if epoch is None else epoch, side, sentence)


def invalid_line(error: _core.InvalidText, first_line: int) -> LineError:
    line, byte = error.args
    return LineError(f"line {first_line + line + 1}: not valid UTF-8, at byte {byte + 1} of the line")


def _end(codes: Codes) -> _core.End:
    if not codes.end_of_word:
        return _core.End.NONE
    return _core.End.SUFFIX if codes.version == (0, 2) else _core.End.SYMBOL


def read_split(name: str) -> _core.Split:
    if name not in SPLITS:
        raise InputError(f"words are split at {' or '.join(map(repr, SPLITS))}, not {name!r}")
    return SPLITS[name]


class _Glossaries:
    """Divides words at what regular expressions match, as subword-nmt does.

    >>> _Glossaries(["USA"])("1934USABUSA")
    [('1934', False), ('USA', True), ('B', False), ('USA', True)]
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._each = []
        # Each becomes part of larger expressions, and must be valid by itself, too.
        for pattern in patterns:
            if not pattern or "\n" in pattern:
                raise InputError(f"a glossary is a regular expression of one line, not {pattern!r}")
            try:
                self._each.append((re.compile(f"^{pattern}$"), re.compile(pattern), re.compile(f"({pattern})")))
                self._whole = re.compile("^({})$".format("|".join(patterns[: len(self._each)])))
            except re.error as error:
                raise InputError(f"the glossary {pattern!r} cannot be used: {error}") from None

    def __call__(self, word: str) -> list[tuple[str, bool]]:
        segments = [word]
        for exactly, within, group in self._each:
            segments = [piece for segment in segments for piece in _isolate(segment, exactly, within, group)]
        parts = [(segment, self._whole.match(segment) is not None) for segment in segments]
        return [] if parts == [(word, False)] else parts


def _isolate(word: str, exactly: re.Pattern[str], within: re.Pattern[str], group: re.Pattern[str]) -> list[str]:
    if exactly.match(word) or not within.search(word):
        return [word]
    *segments, ending = group.split(word)
    return [segment for segment in [*segments, (ending or "").strip("\r\n ")] if segment]


def _rebuild(
    codes: Codes, vocabulary: frozenset[str] | None, glossaries: tuple[str, ...], separator: str, folder: Path | None
) -> Segmenter:
    return Segmenter(codes, vocabulary=vocabulary, glossaries=glossaries, separator=separator, folder=folder)
