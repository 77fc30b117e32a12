"""The source and the target of all sentence pairs, segmented when they are asked for, and batches of them, padded.

A `PairSide` is made of texts. Its copies `plain()` and `draw(seed, epoch)` are one segmentation of all of it: they have
the exact sizes of all sentences and the tokens of any. `Sides` does so for the source and the target together, or for
a text alone. Tensors are up to the toolkit: everything here is numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..corpus import Ragged
from ..errors import InputError
from .texts import Segmentations, Text


class Tokens(NamedTuple):
    """Sentences, one after the other."""

    ids: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, drawn: Ragged) -> Tokens:
        return cls(drawn.ids.astype(np.int64), np.diff(drawn.offsets))

    def sentences(self) -> list[NDArray[np.int64]]:
        return np.split(self.ids, np.cumsum(self.lengths)[:-1])

    def padded(self, pad: int, left: bool, multiple: int) -> NDArray[np.int64]:
        """One row per sentence, padded on the left or the right to a width that is a multiple of `multiple`."""
        width = -(-int(self.lengths.max()) // multiple) * multiple
        columns = np.arange(width)
        taken = columns >= (width - self.lengths)[:, None] if left else columns < self.lengths[:, None]
        rows = np.full(taken.shape, pad, np.int64)
        rows[taken] = self.ids
        return rows

    def shifted(self, eos: int) -> Tokens:
        """What the decoder sees: the end of the sentence first, and everything one later."""
        ids = np.empty_like(self.ids)
        ids[1:] = self.ids[:-1]
        ids[np.cumsum(self.lengths) - self.lengths] = eos
        return Tokens(ids, self.lengths)


class Samples(NamedTuple):
    """The pairs of a batch, before they are padded."""

    numbers: NDArray[np.int64]
    source: Tokens
    target: Tokens | None


class PairSide:
    """The source or the target of all pairs: one text, or several one after the other.

    Every part draws with side numbers of its own, one for the source and one for the target, so that the copies of an
    upsampled text, too, are drawn independently.
    """

    def __init__(self, texts: Sequence[Text], side: int, longest: int | None = None) -> None:
        self.texts, self.side, self._longest = list(texts), side, longest
        self._begins = np.cumsum([0, *map(len, texts)])
        self._parts: list[Segmentations] = []
        self._sizes: NDArray[np.int32] | None = None
        self._plain_sizes: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return int(self._begins[-1])

    @property
    def draws(self) -> bool:
        return any(text.draws for text in self.texts)

    @property
    def plain_sizes(self) -> NDArray[np.int32]:
        """The sizes of the plain segmentation, whatever is drawn."""
        if self._plain_sizes is None:
            self._plain_sizes = self.plain().sizes
        return self._plain_sizes

    def plain(self) -> Self:
        return self._segmented([text.plain() for text in self.texts])

    def draw(self, seed: int, epoch: int) -> Self:
        return self._segmented(
            [
                text.draw(seed, epoch, 2 * part + self.side) if text.draws else text.plain()
                for part, text in enumerate(self.texts)
            ]
        )

    def _segmented(self, parts: list[Segmentations]) -> Self:
        side = type(self)(self.texts, self.side, self._longest)
        side._parts = parts
        return side

    @property
    def sizes(self) -> NDArray[np.int32]:
        if self._sizes is None:
            sizes = np.concatenate([part.lengths for part in self._parts])
            self._sizes = sizes if self._longest is None else np.minimum(sizes, self._longest)
        return self._sizes

    def tokens(self, indices: Sequence[int] | NDArray[np.int64]) -> Tokens:
        """The ids of some sentences."""
        wanted = np.asarray(indices, dtype=np.int64)
        if len(self._parts) == 1 or not len(wanted):
            return self._cut(Tokens.of(self._parts[0].tokens(wanted)))
        parts = np.searchsorted(self._begins, wanted, side="right") - 1
        sentences: list[Any] = [None] * len(wanted)
        for part in np.unique(parts).tolist():
            places = np.flatnonzero(parts == part)
            found = Tokens.of(self._parts[part].tokens(wanted[places] - self._begins[part]))
            for place, sentence in zip(places.tolist(), found.sentences(), strict=True):
                sentences[place] = sentence
        return self._cut(Tokens(np.concatenate(sentences), np.array([len(sentence) for sentence in sentences])))

    def _cut(self, tokens: Tokens) -> Tokens:
        """Sentences that are too long are cut; their end of sentence stays."""
        if self._longest is None or tokens.lengths.max(initial=0) <= self._longest:
            return tokens
        short = [
            sentence if len(sentence) <= self._longest else np.append(sentence[: self._longest - 1], sentence[-1])
            for sentence in tokens.sentences()
        ]
        return Tokens(np.concatenate(short), np.array([len(sentence) for sentence in short]))


Side = TypeVar("Side", bound=PairSide)


class Sides(NamedTuple, Generic[Side]):
    """The source and the target of all pairs, or a text alone."""

    source: Side
    target: Side | None = None

    @property
    def given(self) -> list[Side]:
        return [side for side in self if side is not None]

    @property
    def draws(self) -> bool:
        return any(side.draws for side in self.given)

    @property
    def sizes(self) -> list[NDArray[np.int32]]:
        return [side.sizes for side in self.given]

    def plain(self) -> Sides[Side]:
        return Sides(*(side.plain() for side in self.given))

    def draw(self, seed: int, epoch: int) -> Sides[Side]:
        return Sides(*(side.draw(seed, epoch) for side in self.given))

    def samples(self, indices: Sequence[int] | NDArray[np.int64]) -> Samples:
        """The pairs of a batch, all at once."""
        numbers = np.asarray(indices, dtype=np.int64)
        target = None if self.target is None else self.target.tokens(numbers)
        return Samples(numbers, self.source.tokens(numbers), target)

    def check(self) -> None:
        """An error if source and target are no translations of each other, line by line."""
        if self.target is None:
            return
        for left, right in zip(self.source.texts, self.target.texts, strict=True):
            if len(left) != len(right):
                raise InputError(
                    f"{left.path} has {len(left)} lines and {right.path} has {len(right)}: line n of the one must be "
                    f"the translation of line n of the other"
                )
