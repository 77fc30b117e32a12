"""Which sentences make a batch: against a loop that is written to be read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_dropout import InputError
from bpe_dropout.data.batches import by_length, cut, plan, split_evenly

LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=40)


@given(LENGTHS, st.integers(12, 40), st.none() | st.integers(1, 5))
def test_cut(lengths, max_tokens, max_sentences):
    expected: list[list[int]] = [[]]
    for number in range(len(lengths)):
        batch = [*expected[-1], number]
        if max(lengths[i] for i in batch) * len(batch) > max_tokens or len(batch) > (max_sentences or len(batch)):
            expected.append([number])
        else:
            expected[-1] = batch
    found = cut(np.arange(len(lengths)), np.array(lengths, np.int32), max_tokens, max_sentences)
    assert [batch.tolist() for batch in found] == expected


@given(LENGTHS, st.randoms())
def test_by_length(lengths, random):
    other = random.sample(lengths, len(lengths))
    order = random.sample(range(len(lengths)), len(lengths))
    found = by_length(np.array(order), [np.array(lengths, np.int32), np.array(other, np.int32)])
    assert found.tolist() == sorted(order, key=lambda number: (lengths[number], other[number]))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 9))
def test_split_evenly(counts, ranks):
    ends = np.cumsum(counts)
    batches = np.split(np.arange(ends[-1]), ends[:-1])
    # It is possible if a multiple of the ranks lies between the number of batches and that of the sentences.
    if -(-len(batches) // ranks) * ranks > ends[-1]:
        with pytest.raises(InputError, match="cannot be dealt evenly"):
            split_evenly(batches, ranks)
        return
    found = split_evenly(batches, ranks)
    assert np.concatenate(found).tolist() == list(range(ends[-1]))
    assert len(found) == -(-len(batches) // ranks) * ranks
    assert set(np.cumsum([len(batch) for batch in found])) >= set(ends)
    assert all(len(batch) for batch in found)


def test_lengths_that_are_long():
    sizes = [np.array([70000, 3, 65536], np.int32)]
    assert by_length(np.arange(3), sizes).tolist() == [1, 2, 0]


def test_plan_is_a_partition():
    random = np.random.RandomState(3)
    sizes = [random.randint(1, 30, 500).astype(np.int32) for _ in range(2)]
    planned = plan(sizes, 200, max_length=25, ranks=4, random=np.random.RandomState(1))
    assert len(planned) % 4 == 0
    assert sorted(np.concatenate(planned)) == np.flatnonzero(np.maximum(*sizes) <= 25).tolist()
    assert all(len(batch) * max(size[batch].max() for size in sizes) <= 200 for batch in planned)
