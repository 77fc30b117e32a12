"""BPE-dropout for PyTorch: every sentence segmented anew in every epoch, in padded batches of exact length.

    pairs = Pairs("train.en", "train.de", codes=("codes.en", "codes.de"), dictionaries=("dict.en.txt", "dict.de.txt"),
                  dropout=0.1, seed=1)
    batches = TokenBatches(pairs, max_tokens=4096)
    loader = DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate, num_workers=2)
    for epoch in range(1, 11):
        batches.set_epoch(epoch)
        for batch in loader: ...

The epoch travels with the numbers of the sentences, so what a worker draws depends on what it is asked for, and on
nothing else: workers may be forked or spawned, kept or not, and are never in another epoch than the batches. Drawing
and padding are bpe_dropout.data's, as in fairseq.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset
from torch.utils.data import Sampler as TorchSampler

from .corpus import MEMORY
from .data.batches import Numbers, plan
from .data.folder import DataFolder
from .data.pairs import PairSide, Samples, Sides, Tokens
from .data.texts import Text
from .dictionary import Dictionary
from .errors import InputError, check_number
from .methods import method_of
from .methods.bpe import METHOD as BPE
from .methods.bpe import BpeModel, BpeText, read_segmenter
from .rules import Dropout, read_dropout
from .segmenter import Segmenter

T = TypeVar("T")
Both: TypeAlias = T | tuple[T, T]  # one for both sides, or one for each
CodesLike = str | Path | Segmenter
DictionaryLike = str | Path | Dictionary


class Batch(NamedTuple):
    """Sentence pairs, a row each, padded on the right. Every sentence ends with the end of sentence."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor
    previous: Tensor  # the target one token later, after an end of sentence: what a decoder sees when it predicts it
    numbers: Tensor  # of the pairs: row i is line numbers[i] of the texts, counted from 0
    epoch: int | None = None
    step: int | None = None  # which batch of the epoch it is, from 0


class TextBatch(NamedTuple):
    """Sentences of a text alone, a row each, padded on the right. Every sentence ends with the end of sentence."""

    tokens: Tensor
    lengths: Tensor
    previous: Tensor  # the tokens one later, after an end of sentence: what a language model sees when it predicts them
    numbers: Tensor
    epoch: int | None = None
    step: int | None = None


class Chosen(list[int]):
    """The numbers of a batch's sentences, and the epoch that they are drawn for: what workers are asked for."""

    def __init__(self, numbers: Sequence[int], epoch: int, step: int) -> None:
        super().__init__(numbers)
        self.epoch, self.step = epoch, step


@dataclass(frozen=True)
class Drawn:
    """A batch before it is padded."""

    samples: Samples
    epoch: int | None
    step: int | None

    def __getitem__(self, number: object) -> Any:
        """What torch's own collate_fn asks for first."""
        raise InputError(
            "the loader has no collate_fn that pads these batches: DataLoader(data, ..., collate_fn=data.collate)"
        )


B = TypeVar("B", Batch, TextBatch)


class Resegmented(Dataset[tuple[Tensor, ...]], Generic[B]):
    """What pairs and texts alone have in common.

    `data[epoch, number]` is a sentence as it is drawn in an epoch, for each side; without dropout, `data[number]`.
    """

    def __init__(self, texts: Sequence[Text], seed: int) -> None:
        self.seed = check_number("the seed", seed)
        self.texts = list(texts)
        self._sides = Sides(*(PairSide([text], side) for side, text in enumerate(texts)))
        self._sides.check()
        self._pads = [check_symbols(text) for text in texts]
        self._segmented: tuple[int, Sides[PairSide]] | None = None
        self._ids_digests: list[str] | None = None
        for part in self._at(0).given:
            part.tokens([0])  # the tables of frequent words are made here, and workers that are forked share them

    @property
    def draws(self) -> bool:
        """Whether there is dropout at all."""
        return self._sides.draws

    def __len__(self) -> int:
        return len(self._sides.source)

    def __getitem__(self, key: int | tuple[int, int]) -> tuple[Tensor, ...]:
        epoch, number = key if isinstance(key, tuple) and len(key) == 2 else (None, key)
        if not hasattr(number, "__index__"):
            raise InputError(f"ask for data[epoch, number], or for data[number] without dropout, and not for {key!r}")
        _, *sides = self._at(epoch).samples([number])
        return tuple(torch.from_numpy(tokens.ids) for tokens in sides if tokens is not None)

    def __getitems__(self, numbers: Sequence[int]) -> Drawn:
        """A batch, drawn at once: torch's loader asks for it like this, and passes it to `collate`."""
        epoch, step = (numbers.epoch, numbers.step) if isinstance(numbers, Chosen) else (None, None)
        return Drawn(self._at(epoch).samples(numbers), epoch, step)

    def sizes(self, epoch: int) -> list[NDArray[np.int32]]:
        """The exact lengths of all sentences in an epoch, of each side."""
        return self._at(epoch).sizes

    @property
    def ids_digests(self) -> list[str]:
        """Of each text: its dictionary, and the ids of all its words in plain BPE."""
        if self._ids_digests is None:
            self._ids_digests = [digest_ids(text) for text in self.texts]
        return self._ids_digests

    @abstractmethod
    def collate(self, drawn: Drawn) -> B:
        """The tensors of a batch: the collate_fn of a loader."""

    def _at(self, epoch: int | None) -> Sides[PairSide]:
        if epoch is None:
            if self.draws:
                raise InputError(
                    f"{self.texts[0].path} is segmented anew in every epoch, and nothing says which epoch this is: "
                    "make TokenBatches the batch_sampler of the loader and call its set_epoch, or ask for "
                    "data[epoch, number]"
                )
            epoch = 0
        if self._segmented is None or self._segmented[0] != epoch:
            self._segmented = epoch, self._sides.draw(self.seed, epoch)
        return self._segmented[1]

    def _padded(self, tokens: Tokens, side: int) -> Tensor:
        return torch.from_numpy(tokens.padded(self._pads[side], left=False, multiple=1))

    def _previous(self, tokens: Tokens, side: int) -> Tensor:
        eos = self.texts[side].dictionary.eos
        assert eos is not None
        return self._padded(tokens.shifted(eos), side)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_segmented": None}  # a worker needs no lengths


class Pairs(Resegmented[Batch]):
    """Sentence pairs: line n of the one text is the translation of line n of the other. Words end at white space.

    `codes` and `dictionaries` are files of subword-nmt and fairseq, or a Segmenter and a Dictionary. These and the
    dropout are one for both sides, or one for each. `memory`, in bytes for each side, and `threads` change the speed
    alone.
    """

    def __init__(
        self,
        source: str | Path | Text,
        target: str | Path | Text,
        *,
        codes: Both[CodesLike] | None = None,
        dictionaries: Both[DictionaryLike] | None = None,
        dropout: Both[Dropout] = 0.0,
        seed: int = 1,
        memory: int = MEMORY,
        threads: int = 1,
    ) -> None:
        sides = zip((source, target), both(codes), both(dictionaries), both(dropout), strict=True)
        super().__init__([text_of(*side, memory, threads) for side in sides], seed)

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        split: str = "train",
        *,
        source_lang: str | None = None,
        target_lang: str | None = None,
        dropout: Both[Dropout] = 0.0,
        seed: int = 1,
        memory: int = MEMORY,
        threads: int = 1,
    ) -> Pairs:
        """The pairs of a data folder, which `bpe-dropout data` makes: its text, codes and dictionaries."""
        try:
            found = DataFolder(folder, source_lang, target_lang)
        except InputError as error:  # it speaks to users of the command line
            raise InputError(re.sub(r"--(source|target)-lang", r"\1_lang=", str(error))) from None
        texts = []
        for language, role, p in zip((found.source, found.target), ("src", "tgt"), both(dropout), strict=True):
            if method_of(found.path, language) is not BPE:
                raise InputError(f"{folder} is not for BPE: make the texts with their method, and Pairs of the texts")
            model = BPE.load(BPE.file_of(found.path, language), role, language)
            dictionary = Dictionary.load(found.dictionary(language))
            texts.append(BpeText(found.text(split, language), model, dictionary, read_dropout(p), memory, threads))
        return cls(*texts, seed=seed)

    def collate(self, drawn: Drawn) -> Batch:
        numbers, source, target = drawn.samples
        assert target is not None
        return Batch(
            source=self._padded(source, 0),
            source_lengths=torch.from_numpy(source.lengths),
            target=self._padded(target, 1),
            target_lengths=torch.from_numpy(target.lengths),
            previous=self._previous(target, 1),
            numbers=torch.from_numpy(numbers),
            epoch=drawn.epoch,
            step=drawn.step,
        )


class Sentences(Resegmented[TextBatch]):
    """A text alone, for language models. It is drawn as the source of pairs would be."""

    def __init__(
        self,
        text: str | Path | Text,
        *,
        codes: CodesLike | None = None,
        dictionary: DictionaryLike | None = None,
        dropout: Dropout = 0.0,
        seed: int = 1,
        memory: int = MEMORY,
        threads: int = 1,
    ) -> None:
        super().__init__([text_of(text, codes, dictionary, dropout, memory, threads)], seed)

    def collate(self, drawn: Drawn) -> TextBatch:
        numbers, tokens, _ = drawn.samples
        return TextBatch(
            tokens=self._padded(tokens, 0),
            lengths=torch.from_numpy(tokens.lengths),
            previous=self._previous(tokens, 0),
            numbers=torch.from_numpy(numbers),
            epoch=drawn.epoch,
            step=drawn.step,
        )


class TokenBatches(TorchSampler[list[int]]):
    """Batches of sentences of similar length, filled to `max_tokens`: the batch_sampler of a loader.

    A batch counts as its sentences times the longest of them, on either side, by the exact lengths of the epoch. A
    sentence that is longer than `max_tokens` or `max_length` is left out of the epoch, with a warning (`skipped` counts
    them). Every other sentence is in one batch of one rank, and all ranks have as many batches. `rank` and `world_size`
    are those of torch.distributed, if it is in use, unless they are given. With shuffle=False, batches go from short to
    long.
    """

    def __init__(
        self,
        data: Resegmented[Any],
        max_tokens: int,
        *,
        max_sentences: int | None = None,
        max_length: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        shuffle: bool = True,
    ) -> None:
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        self._data, self._shuffle = data, shuffle
        self._max_tokens = at_least_1("max_tokens", max_tokens)
        self._max_sentences = None if max_sentences is None else at_least_1("max_sentences", max_sentences)
        self._max_length = min(max_tokens, max_tokens if max_length is None else at_least_1("max_length", max_length))
        if world_size is None:
            world_size = torch.distributed.get_world_size() if distributed else 1
        if rank is None:
            rank = torch.distributed.get_rank() if distributed else 0
        self._ranks = at_least_1("world_size", world_size)
        self._rank = check_number("the rank", rank, self._ranks)
        self._planned: tuple[int, list[Numbers]] | None = None
        self._fingerprinted: tuple[int, str] | None = None
        self.epoch = 0
        self._is_new = False  # the epoch was set, and nothing was drawn in it yet
        self._done = 0  # batches of the epoch that were given out
        self._first = 0  # the batch that the next iteration begins with
        self.skipped = 0  # sentences that are left out of the epoch for their length
        self._has_warned = False

    def set_epoch(self, epoch: int) -> None:
        """To be called before each epoch: segmentations, lengths, batches and their order are those of this epoch.

        After load_state_dict, its epoch goes on where it was, and a later one starts from its first batch. A loader of
        accelerate calls this with a count of its own: then set the epoch of that loader.
        """
        epoch = check_number("the epoch", epoch)
        if self._is_new and epoch < self.epoch:
            raise InputError(
                f"epoch {self.epoch} was set or loaded, and before any batch of it was drawn, epoch {epoch} is set. If "
                "accelerate has prepared the loader, it sets the epoch itself: call loader.set_epoch(epoch), not that "
                "of TokenBatches. After load_state_dict, go on with batches.epoch. To count batches ahead or to begin "
                "again, make other TokenBatches"
            )
        for text in self._data.texts:
            text.corpus.check_unchanged()
        if epoch != self.epoch:
            self._first = 0
        self.epoch, self._done, self._is_new = epoch, self._first, True

    def __len__(self) -> int:
        """The number of batches of this rank in this epoch, all of them."""
        return len(self._batches()[self._rank :: self._ranks])

    def __iter__(self) -> Iterator[list[int]]:
        if self._data.draws and not self._is_new:
            warnings.warn(
                f"epoch {self.epoch} is drawn, and set_epoch was not called before it: without it, every epoch has the "
                "same segmentations, and BPE-dropout does not work. Call set_epoch(1), set_epoch(2), ... before each",
                stacklevel=2,
            )
        epoch, first = self.epoch, self._first
        self._is_new, self._done, self._first = False, first, 0
        batches = self._batches()[self._rank :: self._ranks]
        for step in range(first, len(batches)):
            self._done = step + 1
            yield Chosen(batches[step].tolist(), epoch, step)

    def state_dict(self, after: Batch | TextBatch | None = None) -> dict[str, Any]:
        """Where the epoch is, for a checkpoint; the same on all ranks.

        `after` is the last batch that was trained on. Without it, it is the last batch that was given out, which may be
        ahead: a loader with workers asks for batches in advance. (torchdata's StatefulDataLoader knows of that.)
        """
        if after is None:
            epoch, done = self.epoch, self._done
        elif not isinstance(after, Batch | TextBatch) or after.epoch is None or after.step is None:
            raise InputError("`after` is a batch that TokenBatches has given out, and this one is not")
        else:
            epoch, done = after.epoch, after.step + 1
        return {"epoch": epoch, "done": done, "batches": self._fingerprint(epoch)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on in mid-epoch, after the last batch of the state.

        If that was the last of its epoch, and a later epoch is set already, it stays set.
        """
        try:
            epoch, done, batches = state["epoch"], state["done"], state["batches"]
        except (KeyError, TypeError):
            raise InputError(f"this is not a state of TokenBatches: {state!r}") from None
        epoch, done = check_number("the epoch", epoch), check_number("the number of batches", done)
        if done and batches != self._fingerprint(epoch):
            raise InputError(
                f"the batches of epoch {epoch} are not those of the state: a text, codes, a dictionary, dropout, the "
                "seed, max_tokens or another option of TokenBatches has changed. Change it back, or do not load the "
                f"state and begin with a whole epoch: set_epoch({epoch + 1})"
            )
        last = len(self._batches(epoch)) // self._ranks if done else 0
        if done > last:
            raise InputError(
                f"this is not a state of TokenBatches: {done} batches are done of epoch {epoch}, of {last}"
            )
        if done and done == last and self._is_new and self.epoch > epoch:
            return
        self.epoch, self._done, self._first, self._is_new = epoch, done, done, True

    def _batches(self, epoch: int | None = None) -> list[Numbers]:
        """The batches of all ranks."""
        epoch = self.epoch if epoch is None else epoch
        if self._planned is None or self._planned[0] != epoch:
            sizes, seed = self._data.sizes(epoch), self._data.seed
            # RandomState's numbers are the same with every version of numpy.
            words = [part >> shift & 0xFFFFFFFF for part in (seed, epoch) for shift in (0, 32)]
            random = np.random.RandomState(words) if self._shuffle else None
            planned = plan(
                sizes, self._max_tokens, self._max_sentences, self._max_length, ranks=self._ranks, random=random
            )
            if not planned:
                raise InputError(f"every sentence is longer than {self._max_length} tokens: allow longer ones")
            self.skipped = len(self._data) - sum(map(len, planned))
            if self.skipped and not self._has_warned:
                warnings.warn(
                    f"{self.skipped} of {len(self._data)} sentences are longer than {self._max_length} tokens, and are "
                    f"left out of epoch {epoch}. Of later epochs this is not said again",
                    stacklevel=3,
                )
                self._has_warned = True
            self._planned = epoch, planned
        return self._planned[1]

    def _fingerprint(self, epoch: int) -> str:
        """Of the batches of an epoch: their sentences, all lengths, the texts, and which ids their words have."""
        if self._fingerprinted is None or self._fingerprinted[0] != epoch:
            batches, digest = self._batches(epoch), hashlib.blake2b(digest_size=16)
            for array in (np.cumsum([len(batch) for batch in batches]), *batches, *self._data.sizes(epoch)):
                digest.update(array.astype("<i8").tobytes())
            for text in (str(self._ranks), *(text.corpus.digest for text in self._data.texts), *self._data.ids_digests):
                digest.update(text.encode())
            self._fingerprinted = epoch, digest.hexdigest()
        return self._fingerprinted[1]


def text_of(
    text: str | Path | Text,
    codes: CodesLike | None,
    dictionary: DictionaryLike | None,
    dropout: Dropout,
    memory: int,
    threads: int,
) -> Text:
    """A text under BPE-dropout; one that is made already, with any method, is taken as it is."""
    if isinstance(text, Text):
        if codes is not None or dictionary is not None or dropout:
            raise InputError(f"{text.path} is made already: its codes, dictionary and dropout are its own")
        return text
    if codes is None or dictionary is None:
        raise InputError(f"{text}: say what segments it (codes), and which ids pieces have (dictionary)")
    segmenter = codes if isinstance(codes, Segmenter) else read_segmenter(file_at(codes, "codes"))
    found = dictionary if isinstance(dictionary, Dictionary) else Dictionary.load(file_at(dictionary, "a dictionary"))
    return BpeText(file_at(text, "a text"), BpeModel(segmenter), found, read_dropout(dropout), memory, threads)


def file_at(path: Any, what: str) -> Path:
    if not isinstance(path, str | Path):
        raise InputError(f"expected the path of {what}, not {path!r}")
    if not Path(path).exists() or Path(path).is_dir():
        raise InputError(f"there is no file {path}, which should be {what}")
    return Path(path)


def digest_ids(text: Text) -> str:
    dictionary, digest = text.dictionary, hashlib.blake2b(digest_size=16)
    digest.update(repr((sorted(dictionary.ids.items()), dictionary.unk, dictionary.eos, dictionary.pad)).encode())
    for array in text.types():
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


def check_symbols(text: Text) -> int:
    """The padding id. Says what is missing in the dictionary of a text."""
    dictionary = text.dictionary
    for name, number in (("padding", dictionary.pad), ("end of sentence", dictionary.eos)):
        if number is None:
            raise InputError(
                f"the dictionary of {text.path} has no id for {name}, which batches need: "
                "Dictionary(ids, unk=3, eos=2, pad=1), for example"
            )
    share, sentence = text.describe_unknown("its dictionary")
    if sentence:
        advice = ". Codes and dictionary do not match: make the dictionary again" if share > 0.1 else ""
        warnings.warn(sentence + advice, stacklevel=5)
    assert dictionary.pad is not None
    return dictionary.pad


def both(given: Any) -> tuple[Any, Any]:
    if isinstance(given, str | Path) or not isinstance(given, Sequence):
        return given, given
    if len(given) != 2:
        raise InputError(f"expected one for both sides, or one for each, not {given!r}")
    return given[0], given[1]


def at_least_1(name: str, number: int) -> int:
    if check_number(name, number) < 1:
        raise InputError(f"{name} is a whole number from 1 on, not {number}")
    return int(number)
