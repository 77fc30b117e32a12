"""BPE and BPE-dropout: merges of subword-nmt, and Algorithm 1 with a p for each side. With p = 0 it is plain BPE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codes import Codes
from ..corpus import Ragged, Sampler
from ..data.folder import DataFolder
from ..data.texts import Segmentations, Text
from ..data.vocabulary import count_pieces, read_corpus
from ..dictionary import SPECIAL, Dictionary
from ..errors import InputError
from ..files import whole
from ..learning import learn
from ..lines import read_lines
from ..most_probable import MostProbable
from ..progress import Progress
from ..rules import Dropout, Rule, may_drop, read_dropout
from ..segmenter import Segmenter
from . import Drawing, Method

SEPARATOR = "@@"
PIECES = "pieces.{}"  # in a data folder: the pieces of a language that may be used, if not all may
GLOSSARIES = "glossaries.txt"  # in a data folder: what is not split


@dataclass
class BpeOptions:
    bpe_dropout_src: str = field(
        default="0.1",
        metadata={
            "help": "the probability p that a merge is dropped, on the source side, in training; or a rule that gives "
            "each merge its own, in each epoch: rank:0.05..0.2, frequency:0.2..0.05, file:PATH, 0.2@anneal:30"
        },
    )
    bpe_dropout_tgt: str = field(default="0.1", metadata={"help": "the same for the target side"})
    bpe_dropout_src_codes: str | None = field(
        default=None, metadata={"help": "merges of the source side (default: codes.SRC in the data folder)"}
    )
    bpe_dropout_tgt_codes: str | None = field(
        default=None, metadata={"help": "merges of the target side (default: codes.TGT in the data folder)"}
    )


class Bpe(Method):
    name = "bpe"
    bpe = "bpe_dropout"
    symbol = SEPARATOR + " "
    file = "codes.{}"
    given = "codes"
    option = "bpe_dropout_{}_codes"
    learned = "merges"
    options = BpeOptions
    takes_p = True

    def learn(self, words: Path, vocabulary: int, output: Path, threads: int, progress: Progress) -> dict[str, int]:
        """As many merges as give at most so many distinct pieces. (The number of merges is not the vocabulary's size:
        characters are added, and pieces that are always merged away disappear.)"""
        corpus = read_corpus(words)
        most = vocabulary * 5 // 4  # pieces that are merged away make room for more merges than pieces
        learned = learn(corpus.type_counts(), most, threads=threads, progress=progress.counting(output.name, "merges"))

        def first(number: int) -> Codes:
            return Codes(learned.pairs[:number])

        def pieces(number: int) -> int:
            return len(count_pieces(Segmenter(first(number)), corpus))

        number = choose_merges(pieces, len(learned.pairs), vocabulary)
        size = pieces(number)
        if size > vocabulary:
            raise InputError(
                f"{words}: its characters alone make a vocabulary of {size} pieces, more than the {vocabulary} asked "
                "for"
            )
        with whole(output) as part:
            part.write_bytes(first(number).text().encode())
        return {"pieces": size, "merges": number}

    def load(self, path: Path, role: str, language: str = "", folder: Path | None = None) -> BpeModel:
        if not path.is_file():
            raise self.missing(path, role)
        folder = folder or path.parent
        pieces, glossaries = folder / PIECES.format(language), read_glossaries(folder) if language else []
        return BpeModel(read_segmenter(path, pieces if language and pieces.is_file() else None, glossaries))

    def count(self, model: BpeModel, text: Path, vocabulary: str) -> Counter[str]:
        """With the vocabulary `dropout`, pieces that only dropout makes have the count 0."""
        return count_pieces(model.segmenter, read_corpus(text), possible=vocabulary == "dropout")

    def text(self, path: Path, model: BpeModel, dictionary: Dictionary, role: str, drawing: Drawing) -> Text:
        p = read_dropout(getattr(drawing.options, f"bpe_dropout_{role}"))
        return BpeText(path, model, dictionary, p, drawing.memory, drawing.threads)

    def join(self, pieces: str) -> str:
        return (pieces + " ").replace(self.symbol, "").rstrip()

    def check(self, options: BpeOptions) -> None:
        for option, p in (
            ("--bpe-dropout-src", options.bpe_dropout_src),
            ("--bpe-dropout-tgt", options.bpe_dropout_tgt),
        ):
            try:
                read_dropout(p)
            except InputError as error:
                raise InputError(f"{option}: {error}") from None

    def describe(self, options: BpeOptions) -> str:
        return f"BPE-dropout, p = {options.bpe_dropout_src} (source) and {options.bpe_dropout_tgt} (target)"

    def most_probable(self, model: BpeModel, count: int, dropout: Dropout) -> MostProbable:
        """By exact probability. A word that has too many segmentations to search stays as plain BPE segments it."""
        return MostProbable(model.segmenter, dropout, count, split="whitespace", beyond="plain")

    def options_of(self, settings: Mapping[str, Any], sides: list[str], p: Mapping[str, float]) -> dict[str, Any]:
        """p is that of every merge, or the scale of the rule that the settings have."""
        if set(settings) - {"dropout"}:
            raise InputError(f"BPE has no option {', '.join(set(settings) - {'dropout'})}")
        rule = Rule.parse(str(settings.get("dropout", 1)))
        return {f"bpe_dropout_{role}": str(rule.scaled(p[role])) if role in sides else "0.0" for role in p}


@dataclass(frozen=True)
class BpeModel:
    """Plain BPE of lines whose words end at white space."""

    segmenter: Segmenter

    def segment(self, line: str) -> list[str]:
        return self.segmenter.segment(line, split="whitespace")


class BpeText(Text):
    """A text under BPE-dropout."""

    def __init__(
        self, path: Path, model: BpeModel, dictionary: Dictionary, p: float | Rule, memory: int, threads: int
    ) -> None:
        super().__init__(path, dictionary)
        self._model, self._p, self._memory, self._threads = model, p, memory, threads
        self._kept: Sampler | None = None  # of this text's p, from epoch to epoch
        self._pieces: NDArray[np.int32] | None = None  # how many each distinct word has without dropout

    @property
    def draws(self) -> bool:
        return may_drop(self._p)

    @property
    def draws_aside(self) -> bool:
        return True

    def plain(self) -> Segmentations:
        # While a training draws, only lengths are asked of p = 0, so those tables are not kept beside the others.
        make = partial(self._sampler, 0.0) if self.draws else self._keep
        return Segmentations(make, seed=0, epoch=0, side=0, threads=self._threads, lengths=self._plain_lengths)

    def draw(self, seed: int, epoch: int, side: int) -> Segmentations:
        return Segmentations(self._keep, seed=seed, epoch=epoch, side=side, threads=self._threads)

    def segment(self, line: str) -> list[str]:
        return self._model.segment(line)

    def types(self) -> Ragged:
        stream = self._model.segmenter.stream(dictionary=self.dictionary, threads=self._threads)
        ids, offsets = stream.ids(self.corpus.type_lines())
        self._pieces = np.diff(offsets).astype(np.int32)
        return Ragged(ids, offsets)

    def _plain_lengths(self) -> NDArray[np.int32]:
        """From the pieces of each distinct word, which are counted already where the text was checked."""
        if self._pieces is None:
            self.types()
        assert self._pieces is not None
        return self.corpus.sum_by_sentence(self._pieces) + np.int32(self.dictionary.eos is not None)

    def _keep(self) -> Sampler:
        if self._kept is None:
            self._kept = self._sampler(self._p)
        return self._kept

    def _sampler(self, p: float | Rule) -> Sampler:
        return self.corpus.sampler(
            self._model.segmenter,
            self.dictionary,
            p,
            eos=self.dictionary.eos,
            memory=self._memory,
            threads=self._threads,
        )


def choose_merges(pieces: Callable[[int], int], most: int, vocabulary: int) -> int:
    """How many of the first merges give at most so many pieces; pieces(n) grows with n, apart from single steps.

    >>> choose_merges(lambda merges: 30 + merges, most=100, vocabulary=100)
    70
    """
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if pieces(middle) <= vocabulary:
            low = middle
        else:
            high = middle - 1
    return low


def count_for_learning(folder: DataFolder, language: str) -> Counter[str]:
    """The words of the training text, as training reads them; of a word that a glossary divides, the rest."""
    divider = Segmenter(Codes(()), glossaries=read_glossaries(folder.path))
    counts: Counter[str] = Counter()
    for word, count in read_corpus(folder.text("train", language)).type_counts().items():
        for text, fixed in divider.parts(word) or [(word, False)]:
            if not fixed:
                counts[text] += count
    return counts


def check_glossaries(glossaries: Sequence[str]) -> None:
    Segmenter(Codes(()), glossaries=glossaries)


def write_glossaries(folder: Path, glossaries: Sequence[str]) -> None:
    """Regular expressions of what is not split, one per line."""
    check_glossaries(glossaries)
    with whole(folder / GLOSSARIES) as part:
        part.write_text("".join(f"{glossary}\n" for glossary in glossaries), "utf-8")


def read_glossaries(folder: Path) -> list[str]:
    path = folder / GLOSSARIES
    return read_lines(path, "a list of regular expressions") if path.is_file() else []


def write_pieces(folder: Path, language: str, counts: Mapping[str, int], threshold: int | None) -> None:
    """The pieces that may be used, as subword-nmt get-vocab writes them; others are split."""
    kept = {piece: count for piece, count in counts.items() if count >= (threshold or 0)}
    if not kept:
        raise InputError(f"--vocabulary-threshold {threshold}: no piece of {language} occurs so often")
    with whole(folder / PIECES.format(language)) as part:
        lines = (f"{piece} {count}\n" for piece, count in sorted(kept.items(), key=lambda item: (-item[1], item[0])))
        part.write_text("".join(lines), "utf-8")


def read_segmenter(path: Path, pieces: Path | None = None, glossaries: Sequence[str] = ()) -> Segmenter:
    """The merges of a file; an error if it is something else."""
    with path.open("rb") as file:
        if b"\n\x05<unk>" in file.read(256):
            raise InputError(
                f"{path} is a model of sentencepiece, not a codes file of subword-nmt. Learn codes with `bpe-dropout "
                f"learn`, or train on the unigram model with --bpe unigram_regularization"
            )
    segmenter = Segmenter.from_codes(path, vocabulary=pieces, glossaries=glossaries, separator=SEPARATOR)
    version_1 = segmenter.codes.version == (0, 1)
    for number, pair in enumerate(segmenter.codes.pairs, 1 if version_1 else 2):
        made = "".join(pair)
        piece = made.removesuffix("</w>")
        if piece in SPECIAL and (made.endswith("</w>") or version_1):
            raise InputError(
                f"{path}, line {number}: this merge makes the piece {piece!r}, which fairseq takes for a symbol of its "
                f"own. Write the word differently in the text, and learn the codes again"
            )
    return segmenter


METHOD = Bpe()
