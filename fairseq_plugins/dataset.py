"""Sentence pairs that are segmented when they are asked for: fairseq's LanguagePairDataset without stored tokens.

A `SegmentedPairs` is one segmentation of all pairs. The plain one, which the task keeps, is the method's best; its
`drawn` twin, which only the trainer's training batches come from, is drawn anew in every epoch. Sizes are the exact
ones of the epoch, so that batches, filters and the order by length are as they would be of a text that had been
segmented so and binarized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from numpy.typing import NDArray

from .texts import Segmentations, Text


class Side:
    """The source or the target of all pairs: one text, or several one after the other.

    Every part has two numbers of its own to draw with, one a side, so that the copies of an upsampled text, too,
    are drawn independently.
    """

    def __init__(self, texts: Sequence[Text], side: int, longest: int | None = None) -> None:
        self.texts, self.side, self._longest = list(texts), side, longest
        self._begins = np.cumsum([0, *map(len, texts)])
        self._parts: list[Segmentations] = []

    def __len__(self) -> int:
        return int(self._begins[-1])

    @property
    def draws(self) -> bool:
        return any(text.draws for text in self.texts)

    @cached_property
    def plain_sizes(self) -> NDArray[np.int32]:
        """The sizes of the plain segmentation, whatever is drawn."""
        return self.plain().sizes

    def plain(self) -> Side:
        return self._segmented([text.plain() for text in self.texts])

    def draw(self, seed: int, epoch: int) -> Side:
        return self._segmented(
            [
                text.draw(seed, epoch, 2 * part + self.side) if text.draws else text.plain()
                for part, text in enumerate(self.texts)
            ]
        )

    def _segmented(self, parts: list[Segmentations]) -> Side:
        side = Side(self.texts, self.side, self._longest)
        side._parts = parts
        return side

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        sizes = np.concatenate([part.lengths for part in self._parts])
        return sizes if self._longest is None else np.minimum(sizes, self._longest)

    def tokens(self, indices: Sequence[int] | NDArray[np.int64]) -> list[torch.Tensor]:
        """The ids of some sentences."""
        wanted = np.asarray(indices, dtype=np.int64)
        if len(self._parts) == 1:
            return self._cut(*self._parts[0].tokens(wanted))
        tokens: list[Any] = [None] * len(wanted)
        parts = np.searchsorted(self._begins, wanted, side="right") - 1
        for part in np.unique(parts).tolist():
            places = np.flatnonzero(parts == part)
            found = self._cut(*self._parts[part].tokens(wanted[places] - self._begins[part]))
            for place, sentence in zip(places.tolist(), found, strict=True):
                tokens[place] = sentence
        return tokens

    def _cut(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> list[torch.Tensor]:
        sentences = list(torch.split(torch.from_numpy(ids.astype(np.int64)), np.diff(offsets).tolist()))
        if self._longest is None:
            return sentences
        # As fairseq truncates: the end of the sentence stays.
        return [
            sentence if len(sentence) <= self._longest else torch.cat([sentence[: self._longest - 1], sentence[-1:]])
            for sentence in sentences
        ]

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tokens([index])[0]

    def get_original_text(self, index: int) -> str:
        """The pieces as text: what --replace-unk copies from."""
        part = int(np.searchsorted(self._begins, index, side="right")) - 1
        text = self.texts[part]
        return " ".join(text.segment(" ".join(text.corpus.sentence(int(index - self._begins[part])))))


@dataclass(frozen=True)
class Batching:
    """How pairs are ordered, counted and padded: fairseq's own options, and one of ours."""

    left_pad_source: bool = True
    left_pad_target: bool = False
    shuffle: bool = True
    pad_to_multiple: int = 1
    source_tokens: bool = False  # --max-tokens counts the source alone


class SegmentedPairs(LanguagePairDataset):
    """All pairs in the method's best segmentation."""

    def __init__(
        self, source: Side, target: Side | None, src_dict: Dictionary, tgt_dict: Dictionary, batching: Batching
    ) -> None:
        self._texts, self._batching = (source, target), batching
        super().__init__(
            source.plain(),
            source.plain_sizes,
            src_dict,
            target and target.plain(),
            target and target.plain_sizes,
            tgt_dict,
            left_pad_source=batching.left_pad_source,
            left_pad_target=batching.left_pad_target,
            shuffle=batching.shuffle,
            pad_to_multiple=batching.pad_to_multiple,
        )

    def drawn(self, seed: int) -> DrawnPairs:
        """The same pairs for the training to draw from."""
        return DrawnPairs(*self._texts, self.src_dict, self.tgt_dict, self._batching, seed)

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """All samples of a batch at once; torch's loader asks for them so."""
        sources = self.src.tokens(indices)
        targets = self.tgt.tokens(indices) if self.tgt is not None else [None] * len(indices)
        return [
            {"id": index, "source": source, "target": target}
            for index, source, target in zip(indices, sources, targets, strict=True)
        ]

    def num_tokens(self, index: int) -> int:
        return int(self.num_tokens_vec(np.array([index]))[0])

    def num_tokens_vec(self, indices: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.src_sizes[indices] if self._batching.source_tokens else super().num_tokens_vec(indices)

    def ordered_indices(self) -> NDArray[np.int64]:
        """fairseq's order: shuffled, then by target and by source length; sorted faster, since lengths are small."""
        indices = self._shuffled() if self.shuffle else np.arange(len(self), dtype=np.int64)
        for sizes in (self.tgt_sizes, self.src_sizes):
            if sizes is not None:
                small = sizes.astype(np.uint16) if sizes.max(initial=0) < 1 << 16 else sizes
                indices = indices[np.argsort(small[indices], kind="stable")]
        return indices

    def _shuffled(self) -> NDArray[np.int64]:
        return np.random.permutation(len(self)).astype(np.int64)


class DrawnPairs(SegmentedPairs):
    """The pairs of the trainer's training batches: a fresh segmentation in every epoch.

    It is a function of (seed, epoch, side, number of the pair), so workers, ranks and restarts see the same.
    """

    def __init__(
        self,
        source: Side,
        target: Side | None,
        src_dict: Dictionary,
        tgt_dict: Dictionary,
        batching: Batching,
        seed: int,
    ) -> None:
        super().__init__(source, target, src_dict, tgt_dict, batching)
        self._seed, self._epoch = seed, 0
        self.skipped = 0  # pairs that are left out of this epoch for their length
        self.order_seed: int | None = None

    @property
    def draws(self) -> bool:
        return any(side is not None and side.draws for side in self._texts)

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Lengths change with the epoch, so batches do; and workers that are kept would stay at their epoch."""
        return not self.draws

    def set_epoch(self, epoch: int) -> None:
        """Called more than once for an epoch."""
        if epoch == self._epoch or not self.draws:
            return
        source, target = self._texts
        self._epoch = epoch
        self.src = source.draw(self._seed, epoch)
        self.src_sizes = self.sizes = self.src.sizes
        if target is not None:
            self.tgt = target.draw(self._seed, epoch)
            self.tgt_sizes = self.tgt.sizes
            self.sizes = np.vstack((self.src_sizes, self.tgt_sizes)).T

    def filter_indices_by_size(
        self, indices: NDArray[np.int64], max_sizes: Any
    ) -> tuple[NDArray[np.int64], Sequence[int]]:
        kept, ignored = super().filter_indices_by_size(indices, max_sizes)
        self.skipped = len(ignored)
        return kept, ignored

    def collater(self, samples: list[dict[str, Any]], pad_to_length: dict[str, int] | None = None) -> dict[str, Any]:
        """fairseq's batch, and what the metrics count in it: pieces, those of plain BPE, and unknown ones."""
        batch = super().collater(samples, pad_to_length)
        if batch:
            numbers = batch["id"].numpy()
            batch["pieces"] = self._count("src", batch["net_input"]["src_tokens"], self.src_sizes, 0, numbers)
            if self.tgt is not None:
                batch["pieces"] |= self._count("tgt", batch["target"], self.tgt_sizes, 1, numbers)
        return batch

    def _count(
        self, name: str, tokens: torch.Tensor, sizes: NDArray[np.int32], side: int, numbers: NDArray[np.int64]
    ) -> dict[str, int]:
        ends = len(numbers)  # of sentences: these are no pieces
        text = self._texts[side]
        assert text is not None
        return {
            f"_{name}_pieces": int(sizes[numbers].sum()) - ends,
            f"_{name}_plain": int(text.plain_sizes[numbers].sum()) - ends,
            f"_{name}_unk": int((tokens == self.src_dict.unk()).sum()),
        }

    def _shuffled(self) -> NDArray[np.int64]:
        if self.order_seed is None:
            return super()._shuffled()
        return np.random.RandomState(self.order_seed).permutation(len(self)).astype(np.int64)
