"""A collator for transformers.Trainer: batches of text, with a new segmentation of every example in every epoch.

    collator = DropoutCollator(tokenizer, dropout=0.1, seed=1)
    trainer = Trainer(
        model,
        TrainingArguments(..., remove_unused_columns=False),
        train_dataset=collator.training(train),     # numbers its examples: these are drawn in training
        eval_dataset=valid,                         # these are not, so they are plain BPE
        data_collator=collator,
        callbacks=[collator],                       # tells it the epoch
    )

What is drawn for an example depends on the seed, the epoch, its number and its text, and on nothing else: not on
workers, processes, the order of the examples or a restart. Needs torch and transformers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset
from transformers import TrainerCallback

from .errors import InputError, check_number
from .rules import Dropout, Rule, may_drop, read_dropout
from .segmenter import Segmenter

IGNORED = -100  # a label that the loss leaves out
LABELS = ("labels", "label", "label_ids")  # in data sets; models call them labels
NEVER_SET, NO_TRAINING = -1, -2  # in place of an epoch; the Trainer tells when no training is under way


class DropoutCollator(TrainerCallback):
    """Makes batches of examples that have a text: input_ids, attention_mask and, for language models, labels.

    Examples with a number are drawn with dropout; others are plain BPE, as validation and test need them. `training`
    numbers the examples of a set; or they have a column of the name `number`. Other columns of numbers are passed
    on as tensors, and those of strings or None are not, as transformers' own collators do; so `label` becomes labels,
    which are then taken in place of the tokens.

    Batches are padded with `pad_id`, by default the tokenizer's, on the tokenizer's padding_side, or else on the right.
    `max_length` cuts longer texts; the special tokens at their end stay. `tokenizer` is what Segmenter.from_tokenizer
    takes.
    """

    def __init__(
        self,
        tokenizer: Any,
        dropout: Dropout,
        seed: int,
        *,
        side: int = 0,
        pad_id: int | None = None,
        max_length: int | None = None,
        text: str = "text",
        number: str = "bpe_dropout_number",
    ) -> None:
        if text == number:
            raise InputError(f"{text!r} is the column of the texts, so that of their numbers needs another name")
        self.segmenter = Segmenter.from_tokenizer(tokenizer)
        self.dropout, self.seed = read_dropout(dropout), check_number("the seed", seed)
        self.side, self.text, self.number = side, text, number
        if pad_id is None:
            pad_id = getattr(tokenizer, "pad_token_id", None)
        if pad_id is None:
            raise InputError(
                "the tokenizer has no padding token, which batches of texts of different lengths need. Give pad_id=, "
                "or set tokenizer.pad_token, for GPT-2 for example to tokenizer.eos_token"
            )
        self.pad_id = check_number("the padding id", pad_id, 2**31)
        self.pads_left = getattr(tokenizer, "padding_side", "right") == "left"
        special = len(self.segmenter.words.before) + len(self.segmenter.words.after)
        if max_length is not None and check_number("the greatest length", max_length) <= special:
            raise InputError(f"a length of {max_length} leaves no room for text beside {special} special tokens")
        self.max_length = max_length
        # Shared with workers, which may live longer than an epoch.
        self._epoch, self._warned_in = (torch.full((), value, dtype=torch.int64) for value in (NEVER_SET, 0))
        for shared in (self._epoch, self._warned_in):
            shared.share_memory_()  # type: ignore[no-untyped-call]

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch begins; as a callback of a Trainer the collator is told so."""
        self._epoch.fill_(check_number("the epoch", epoch, 2**63))

    def training(self, dataset: Any) -> Numbered:
        """A training set: its examples have numbers, so they are drawn with dropout in training."""
        return Numbered(dataset, self.number)

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        if not len(features):
            raise InputError("a batch needs at least one example, and this one has none")
        rows = [self._ids(feature) for feature in features]
        longest = max([1, *map(len, rows)])
        input_ids = torch.full((len(rows), longest), self.pad_id, dtype=torch.int64)
        mask = torch.zeros_like(input_ids)
        for i, row in enumerate(rows):
            begin = longest - len(row) if self.pads_left else 0
            input_ids[i, begin : begin + len(row)] = torch.tensor(row, dtype=torch.int64)
            mask[i, begin : begin + len(row)] = 1
        batch = {"input_ids": input_ids, "attention_mask": mask}
        batch["labels"] = input_ids.masked_fill(mask == 0, IGNORED)
        for name in dict.fromkeys(name for feature in features for name in feature):
            if name not in (self.text, self.number):
                column = make_column(name, [feature.get(name) for feature in features])
                if column is not None:
                    batch["labels" if name in LABELS else name] = column
        return batch

    def _ids(self, feature: Mapping[str, Any]) -> list[int]:
        text, number = feature.get(self.text), feature.get(self.number)
        if not isinstance(text, str):
            raise InputError(
                f"an example has no text in {self.text!r}, but only {sorted(feature)}. Give TrainingArguments("
                "remove_unused_columns=False), since otherwise the Trainer removes what the model does not take; if "
                "the text has another name, DropoutCollator(..., text=name)"
            )
        words = self.segmenter.words
        epoch = self._current_epoch(number is not None)
        if epoch is None:
            ids = self.segmenter.ids(text, add_special_tokens=False)
        else:
            dropout = self.dropout.at(epoch + 1) if isinstance(self.dropout, Rule) else self.dropout
            key: dict[str, Any] = {"seed": self.seed, "epoch": epoch, "side": self.side, "sentence": number}
            ids = self.segmenter.ids(text, dropout, **key, add_special_tokens=False)
        if self.max_length is not None:
            ids = ids[: self.max_length - len(words.before) - len(words.after)]
        return [*words.before, *ids, *words.after]

    def _current_epoch(self, has_number: bool) -> int | None:
        """None if an example is not drawn. Warns if that, or what is drawn, may not be meant."""
        epoch = int(self._epoch)
        if not may_drop(self.dropout):
            return None
        if epoch == NEVER_SET and has_number:
            self.set_epoch(0)
            warnings.warn(
                "the epoch was never set, so every epoch would be segmented as this one, and the model would see each "
                "text in one segmentation only. Give Trainer(..., callbacks=[collator]), or call "
                "collator.set_epoch(epoch) at the beginning of each epoch",
                stacklevel=2,
            )
        elif epoch == NEVER_SET:
            self._warn_once(
                "these examples have no number, and no epoch was set: they are plain BPE, and if this is a training, "
                "nothing is dropped. Give Trainer(train_dataset=collator.training(dataset), callbacks=[collator]), or "
                "call collator.set_epoch(epoch) in a loop of your own. For evaluation alone, make the collator with "
                "dropout=0"
            )
        elif epoch == NO_TRAINING and has_number:
            self._warn_once(
                "examples of a training set are plain BPE here, since the Trainer is not training. In a loop of your "
                "own, call collator.set_epoch(epoch) at the beginning of each epoch"
            )
        return max(0, epoch) if has_number and epoch != NO_TRAINING else None

    def _warn_once(self, sentence: str) -> None:
        """Once for as long as no epoch is set, in all workers together."""
        if self._warned_in != self._epoch:
            self._warned_in.copy_(self._epoch)
            warnings.warn(sentence, stacklevel=2)

    def _numbers(self, dataset: Any) -> bool:
        """Whether the examples of a set have numbers; those of an empty set have."""
        example = first_example(dataset)
        return example is None or self.number in example

    def on_init_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._epoch.fill_(NO_TRAINING)

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        dataset: Any = getattr(others.get("train_dataloader"), "dataset", None)
        if may_drop(self.dropout) and dataset is not None and not self._numbers(dataset):
            raise InputError(
                f"the training examples have no number in {self.number!r}, so nothing would be dropped. Give Trainer("
                "train_dataset=collator.training(dataset)); a stream of examples needs a column of that name, for "
                "example by its map(..., with_indices=True)"
            )

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self._epoch.fill_(NO_TRAINING)

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        dataset: Any = getattr(others.get("eval_dataloader"), "dataset", None)
        if may_drop(self.dropout) and self._epoch >= 0 and dataset is not None and self._numbers(dataset):
            warnings.warn(
                f"the examples of the evaluation have numbers in {self.number!r}, so they were drawn with dropout, as "
                "in training. Give Trainer(eval_dataset=dataset), without collator.training",
                stacklevel=2,
            )

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.set_epoch(math.floor((state.epoch or 0) + 1e-6))  # within an epoch, after a restart


class Numbered:
    """A map-style data set whose examples have their number in one more column."""

    def __init__(self, dataset: Any, column: str) -> None:
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise InputError("a training set needs examples by number and a length; streams of text have neither")
        self.dataset, self.column = dataset, column
        if len(self):
            self[0]  # refused now, and not in the training

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> dict[str, Any]:
        number = range(len(self))[number]
        example = self.dataset[number]
        if self.column in example:
            raise InputError(
                f"example {number} of the training set has a column {self.column!r} already, so its number needs "
                "another name: DropoutCollator(..., number=name). Or is it numbered? Then give the set as it is"
            )
        return {**example, self.column: number}


def make_column(name: str, values: list[Any]) -> torch.Tensor | None:
    """The values of a column as a tensor; None if there is no number in it."""
    if name in ("input_ids", "attention_mask"):
        raise InputError(
            f"the examples have {name!r} already, which the collator makes of their texts, anew in every epoch: remove "
            "the column, or do not tokenize the set"
        )
    if name not in LABELS and not any(map(holds_numbers, values)):
        return None
    try:
        if isinstance(values[0], torch.Tensor):
            return torch.stack(values)
        stacked = np.stack(values)  # an error if lengths differ; torch goes by the first
        return torch.tensor(stacked if isinstance(values[0], np.ndarray) else values)
    except (RuntimeError, TypeError, ValueError):
        shown = next((value for value in values if not holds_numbers(value)), values[:2])
        raise InputError(
            f"the column {name!r} is no tensor: it needs a number in every example, or lists of numbers of one length, "
            f"and has {shown!r:.80}. Mend the column, or remove it: dataset.remove_columns({name!r})"
        ) from None


def holds_numbers(value: Any) -> bool:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, Number | list | tuple | torch.Tensor | np.ndarray)


def first_example(dataset: Any) -> Any:
    """None if there is none."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        return next(iter(dataset), None)
    return dataset[0] if len(dataset) else None
