"""Sentence pairs that are segmented when they are asked for: fairseq's LanguagePairDataset without stored tokens.

A `SegmentedPairs` is one segmentation of all pairs. The plain one, which the task keeps, is the method's best; its
`drawn` twin, which only the trainer's training batches come from, is drawn anew in every epoch. Sizes are the exact
ones of the epoch, so that batches, filters and the order by length are as they would be of a text that had been
segmented so and binarized.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from numpy.typing import NDArray

from bpe_dropout.data.batches import by_length
from bpe_dropout.data.pairs import PairSide, Samples, Sides


class TensorSide(PairSide):
    """The source or the target of all pairs, as fairseq reads it: a tensor a sentence."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.tokens([index]).ids)


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
        self, texts: Sides[TensorSide], src_dict: Dictionary, tgt_dict: Dictionary, batching: Batching
    ) -> None:
        self._texts, self._batching = texts, batching
        plain = texts.plain()
        super().__init__(
            plain.source,
            texts.source.plain_sizes,
            src_dict,
            plain.target,
            texts.target and texts.target.plain_sizes,
            tgt_dict,
            left_pad_source=batching.left_pad_source,
            left_pad_target=batching.left_pad_target,
            shuffle=batching.shuffle,
            pad_to_multiple=batching.pad_to_multiple,
        )

    def drawn(self, seed: int) -> DrawnPairs:
        """The same pairs for the training to draw from."""
        return DrawnPairs(self._texts, self.src_dict, self.tgt_dict, self._batching, seed)

    def __getitems__(self, indices: Sequence[int]) -> Samples:
        """All pairs of a batch at once: torch's loader asks for them like this, and passes them to the collater."""
        return Sides(self.src, self.tgt).samples(indices)

    def collater(self, samples: Any, pad_to_length: dict[str, int] | None = None) -> dict[str, Any]:
        """fairseq's batch, to the last number, but made at once and not sentence by sentence."""
        if not isinstance(samples, Samples) or not len(samples.numbers) or pad_to_length is not None:
            listed = [self[int(number)] for number in samples.numbers] if isinstance(samples, Samples) else samples
            return super().collater(listed, pad_to_length)
        source, target, pad, multiple = samples.source, samples.target, self.src_dict.pad(), self.pad_to_multiple
        lengths, order = torch.from_numpy(source.lengths).sort(descending=True)
        net_input = {
            "src_tokens": torch.from_numpy(source.padded(pad, self.left_pad_source, multiple)).index_select(0, order),
            "src_lengths": lengths,
        }
        batch = {
            "id": torch.from_numpy(samples.numbers).index_select(0, order),
            "nsentences": len(samples.numbers),
            "ntokens": int(source.lengths.sum()),
            "net_input": net_input,
            "target": None,
        }
        if target is not None:
            batch["ntokens"] = int(target.lengths.sum())
            padded = target.padded(pad, self.left_pad_target, multiple)
            batch["target"] = torch.from_numpy(padded).index_select(0, order)
            before = target.shifted(self.eos).padded(pad, self.left_pad_target, multiple)
            net_input["prev_output_tokens"] = torch.from_numpy(before).index_select(0, order)
        return batch

    def num_tokens(self, index: int) -> int:
        return int(self.num_tokens_vec(np.array([index]))[0])

    def num_tokens_vec(self, indices: NDArray[np.int64]) -> NDArray[np.int32]:
        return self.src_sizes[indices] if self._batching.source_tokens else super().num_tokens_vec(indices)

    def ordered_indices(self) -> NDArray[np.int64]:
        """fairseq's order: shuffled, then by length."""
        indices = self._shuffled() if self.shuffle else np.arange(len(self), dtype=np.int64)
        return by_length(indices, [sizes for sizes in (self.src_sizes, self.tgt_sizes) if sizes is not None])

    def _shuffled(self) -> NDArray[np.int64]:
        return np.random.permutation(len(self)).astype(np.int64)


class Ahead:
    """The segmentations of a coming epoch, drawn in a thread."""

    def __init__(self, draw: Callable[[int], Sides[TensorSide]], epoch: int) -> None:
        self._draw, self._epoch = draw, epoch
        self._drawn: Sides[TensorSide] | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self._drawn = self._draw(self._epoch)

    def take(self, epoch: int) -> Sides[TensorSide]:
        """What was drawn, if it is this epoch that is wanted."""
        self._thread.join()
        return self._drawn if epoch == self._epoch and self._drawn is not None else self._draw(epoch)


class DrawnPairs(SegmentedPairs):
    """The pairs of the trainer's training batches: a fresh segmentation in every epoch.

    It is a function of (seed, epoch, side, number of the pair), so workers, ranks and restarts see the same.
    """

    def __init__(
        self, texts: Sides[TensorSide], src_dict: Dictionary, tgt_dict: Dictionary, batching: Batching, seed: int
    ) -> None:
        super().__init__(texts, src_dict, tgt_dict, batching)
        self._seed, self._epoch = seed, 0
        self._ahead: Ahead | None = None
        self.skipped = 0  # pairs that are left out of this epoch for their length
        self.order_seed: int | None = None

    @property
    def draws(self) -> bool:
        return self._texts.draws

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Lengths change with the epoch, so batches do; and workers that are kept would stay at their epoch."""
        return not self.draws

    def set_epoch(self, epoch: int) -> None:
        """Called more than once for an epoch."""
        if epoch == self._epoch or not self.draws:
            return
        self.src, self.tgt = self._ahead.take(epoch) if self._ahead else self._draw(epoch)
        self._epoch, self._ahead = epoch, None
        self.src_sizes = self.sizes = self.src.sizes
        if self.tgt is not None:
            self.tgt_sizes = self.tgt.sizes
            self.sizes = np.vstack((self.src_sizes, self.tgt_sizes)).T

    def draw_ahead(self) -> None:
        """Draws the lengths of the next epoch during the training, so that the next epoch starts at once."""
        texts = [text for side in self._texts.given for text in side.texts]
        if self._ahead is None and self.draws and all(text.draws_aside for text in texts):
            self._ahead = Ahead(self._draw, self._epoch + 1)

    def _draw(self, epoch: int) -> Sides[TensorSide]:
        drawn = self._texts.draw(self._seed, epoch)
        drawn.sizes  # noqa: B018 -- drawn here and now
        return drawn

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ahead": None}

    def filter_indices_by_size(
        self, indices: NDArray[np.int64], max_sizes: Any
    ) -> tuple[NDArray[np.int64], Sequence[int]]:
        kept, ignored = super().filter_indices_by_size(indices, max_sizes)
        self.skipped = len(ignored)
        return kept, ignored

    def collater(self, samples: Any, pad_to_length: dict[str, int] | None = None) -> dict[str, Any]:
        """With what the metrics count: pieces, those that plain BPE would have, and unknown ones."""
        batch = super().collater(samples, pad_to_length)
        if batch:
            numbers = batch["id"].numpy()
            sides = (
                ("src", batch["net_input"]["src_tokens"], self.src_sizes),
                ("tgt", batch["target"], self.tgt_sizes),
            )
            batch["pieces"] = {}
            for (role, tokens, sizes), text in zip(sides, self._texts, strict=True):
                if text is not None:
                    # The ends of sentences are no pieces.
                    batch["pieces"][f"_{role}_pieces"] = int(sizes[numbers].sum()) - len(numbers)
                    batch["pieces"][f"_{role}_plain"] = int(text.plain_sizes[numbers].sum()) - len(numbers)
                    batch["pieces"][f"_{role}_unk"] = int((tokens == self.src_dict.unk()).sum())
        return batch

    def _shuffled(self) -> NDArray[np.int64]:
        if self.order_seed is None:
            return super()._shuffled()
        return np.random.RandomState(self.order_seed).permutation(len(self)).astype(np.int64)
