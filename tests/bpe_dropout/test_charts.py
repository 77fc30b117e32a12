"""Charts: what is drawn from the chart of a word is what Algorithm 1 draws from the word."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bpe_dropout import Codes, Corpus, Dictionary, Segmenter, _core

from .test_rates import some_rates

REPEATED = ["a" * 30, "aaaa", "abab" * 5, "mississippi"]


@pytest.fixture(params=[True, False], ids=["avx2", "any processor"])
def processor(request):
    before = _core.uses_avx2()
    _core.use_avx2(request.param)
    yield
    _core.use_avx2(before)


@pytest.fixture(scope="module")
def some_words(words):
    long_enough = [word for word in words if len(word) > 1]
    return [*long_enough[:100], *long_enough[2000:2100], *REPEATED]


def differing(segmenter: Segmenter, word: str, dropout: float | _core.Dropout, draws: int = 300) -> int | None:
    return _core.chart_against_draw(segmenter._merges, _core.Word(word, []), dropout, 5, draws)


def made_codes(alphabet: str, merges: int, seed: int) -> Codes:
    """Merges of whatever the ones before have made, so that words have many, and pieces overlap in many ways."""
    rng = random.Random(seed)
    inner, last = list(alphabet), [letter + "</w>" for letter in alphabet]
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < merges:
        left, right = rng.choice(inner), rng.choice(inner + last)
        if len(left + right) > 12 or (left, right) in pairs:
            continue
        pairs[left, right] = None
        (last if right.endswith("</w>") else inner).append(left + right)
    return Codes(tuple(pairs))


@pytest.mark.parametrize("p", [0.01, 0.1, 0.6, 1.0])
def test_real_words(codes, some_words, processor, p):
    segmenter = Segmenter(codes)
    for word in [*some_words, "déjà-vu", "日本語", "x☃y"]:
        assert differing(segmenter, word, p) == 0


@pytest.mark.parametrize("seed", range(3))
def test_rates(codes, some_words, processor, seed):
    segmenter, dropout = Segmenter(codes), _core.Dropout(some_rates(len(codes.pairs), seed))
    for word in [*some_words, "compositionality" * 4]:
        assert differing(segmenter, word, dropout) == 0


@pytest.mark.parametrize("length", [2, 8, 32, 33, 34, 63, 64])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.6])
def test_words_of_any_length_and_many_merges(processor, length, p):
    """Up to 33 characters and 64 merges, boundaries are bits of 32; beyond, of 64, and in several blocks."""
    rng = random.Random(length)
    for alphabet, merges in (("a", 40), ("ab", 20), ("ab", 150), ("abcdef", 400)):
        segmenter = Segmenter(made_codes(alphabet, merges, length))
        for _ in range(8):
            word = "".join(rng.choice(alphabet) for _ in range(length))
            found = differing(segmenter, word, p, 100)
            assert not found, (alphabet, word)
            assert found is not None or length > 8, "a short word has a chart"


def test_long_words_have_none(codes):
    segmenter = Segmenter(codes)
    assert differing(segmenter, "statement" * 7, 0.1) == 0
    assert differing(segmenter, "statement" * 8, 0.1) is None
    assert differing(segmenter, "a", 0.1) is None


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_a_vocabulary_that_splits_pieces(codes, words, processor, p):
    """What a merge makes may then be several pieces."""
    plain = Segmenter(codes)
    pieces = {piece for word in words[:300] for piece in plain.segment(word)}
    segmenter = Segmenter(codes, vocabulary=set(sorted(pieces)[::2]))
    split = [word for word in words[:300] if segmenter.segment(word) != plain.segment(word)]
    assert len(split) > 20
    for word in [*split, *REPEATED]:
        assert differing(segmenter, word, p) == 0


def test_more_pieces_than_characters():
    """A vocabulary that has nothing takes apart even the end of the word, and leaves an empty piece."""
    segmenter = Segmenter(Codes((("a", "</w>"), ("a", "a</w>"))), vocabulary={"zz"})
    assert len(segmenter.segment("a" * 64, 1.0, 1)) == 65
    for p in (0.1, 1.0):
        assert not differing(segmenter, "a" * 64, p)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("first", [4, 2**30 - 50, 2**31 - 10_000])
def test_ids_of_any_size(tmp_path, codes, words, p, first):
    """Also such as a chart cannot hold. Words recur in the stream until they have all that there is to keep."""
    segmenter = Segmenter(codes)
    text = " ".join(words[:40] * 70 + words[40:400]) + "\n"
    (tmp_path / "text").write_text(text, "utf-8")
    pieces = sorted(set(segmenter.stream().text(text.encode()).decode().split()))
    dictionary = Dictionary({piece: first + number for number, piece in enumerate(pieces)}, unk=3)
    corpus = Corpus(tmp_path / "text")
    drawn = corpus.sampler(segmenter, dictionary, p).tokens(seed=1, epoch=0).ids
    assert drawn.max() >= first
    assert np.array_equal(drawn, corpus.sampler(segmenter, dictionary, p, memory=0).tokens(seed=1, epoch=0).ids)
    assert np.array_equal(drawn, segmenter.stream(p, dictionary=dictionary).ids(text.encode(), 1)[0])


def test_without_dropout_there_are_tables_alone(tmp_path, codes, words):
    (tmp_path / "text").write_text(" ".join(words[:100]) + "\n", "utf-8")
    core = Corpus(tmp_path / "text").sampler(Segmenter(codes), Dictionary({}, unk=3), 0.0)._core
    assert (core.tables, core.charts) == (100, 0)
