"""Batches of sentences of similar length, filled to a number of tokens: which sentences, not their tokens.

A batch counts as its sentences times the longest of them, which is what it takes when it is padded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Numbers = NDArray[np.int64]


def plan(
    sizes: Sequence[NDArray[np.int32]],
    max_tokens: int,
    max_sentences: int | None = None,
    max_length: int | None = None,
    *,
    ranks: int = 1,
    random: np.random.RandomState | None = None,
) -> list[Numbers]:
    """The batches of an epoch: rank r takes every batch from r on in steps of `ranks`, and all take as many.

    `sizes` are the lengths of all sentences, of the source and of the target. Sentences that are longer than max_tokens
    or max_length are left out. With `random`, sentences of equal length, and then the batches, are in random order.

    >>> plan([np.array([2, 9, 2, 5]), np.array([3, 2, 3, 4])], max_tokens=6)
    [array([0, 2]), array([3])]
    """
    longest = np.maximum.reduce(sizes)
    numbers = np.arange(len(longest)) if random is None else random.permutation(len(longest)).astype(np.int64)
    fits = longest <= (max_tokens if max_length is None else min(max_tokens, max_length))
    numbers = by_length(numbers[fits[numbers]], sizes)
    batches = split_evenly(cut(numbers, longest, max_tokens, max_sentences), ranks)
    return batches if random is None else [batches[number] for number in random.permutation(len(batches))]


def by_length(numbers: Numbers, sizes: Sequence[NDArray[np.int32]]) -> Numbers:
    """Sentences by the length of the source, then of the target; of equals, in the order given. `sizes` is of all.

    >>> by_length(np.array([2, 0, 1]), [np.array([5, 3, 3])])
    array([2, 1, 0])
    """
    for lengths in reversed(sizes):
        small = lengths.astype(np.uint16) if lengths.max(initial=0) < 1 << 16 else lengths  # sorted faster
        numbers = numbers[np.argsort(small[numbers], kind="stable")]
    return numbers


def cut(numbers: Numbers, size: NDArray[np.int32], max_tokens: int, max_sentences: int | None = None) -> list[Numbers]:
    """The sentences as batches, in their order. `size` is of all sentences; none of these has over max_tokens.

    >>> cut(np.array([0, 1, 2, 3]), np.array([2, 2, 3, 5]), max_tokens=6)
    [array([0, 1]), array([2]), array([3])]
    """
    lengths = size[numbers].astype(np.int64)
    batches, begin = [], 0
    while begin < len(numbers):
        most = max_tokens // max(1, int(lengths[begin]))
        longest = np.maximum.accumulate(lengths[begin : begin + min(most, max_sentences or most)])
        count = int(np.searchsorted(longest * np.arange(1, len(longest) + 1), max_tokens, side="right"))
        batches.append(numbers[begin : begin + count])
        begin += count
    return batches


def split_evenly(batches: list[Numbers], ranks: int) -> list[Numbers]:
    """As many batches for each rank, and no sentence lost: those with the most sentences are halved, a few at most.

    >>> split_evenly([np.array([0, 1, 2]), np.array([3])], ranks=3)
    [array([0]), array([1, 2]), array([3])]
    """
    missing = -len(batches) % ranks
    if not missing:
        return batches
    order = np.argsort([-len(batch) for batch in batches], kind="stable")
    halved = {number for number in order[:missing].tolist() if len(batches[number]) > 1}
    if not halved:
        raise InputError(
            f"{len(batches)} batches of one sentence cannot be dealt evenly to {ranks} ranks: allow larger batches"
        )
    parts = [
        half
        for number, batch in enumerate(batches)
        for half in ((batch[: len(batch) // 2], batch[len(batch) // 2 :]) if number in halved else (batch,))
    ]
    return split_evenly(parts, ranks)
