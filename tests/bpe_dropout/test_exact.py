"""The compiled core against the reference: exact probabilities, tables, and what is drawn."""

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from bpe_dropout import Codes, Segmenter, _core, reference
from tests.conftest import as_version_1

PS = [0.0, 1e-9, 0.01, 0.1, 0.37, 0.6, 0.9, 0.999, 1.0]
REPEATED = ["merger", "banana", "aaaa", "aaaaaaa", "abababab", "mississippi", "nonono"]


def with_separators(outcomes, separator="@@"):
    return {(*(piece + separator for piece in pieces[:-1]), pieces[-1]): p for pieces, p in outcomes.items()}


def assert_equals_reference(codes, word, p, vocabulary=()):
    segmenter = Segmenter(codes, vocabulary=vocabulary)
    expected = with_separators(reference.distribution(word, codes, p, vocabulary))
    found = segmenter.distribution(word, p)
    assert sum(found.values()) == pytest.approx(1, abs=1e-12)
    assert set(found) <= set(expected)
    for pieces, probability in expected.items():
        assert found.get(pieces, 0.0) == pytest.approx(probability, abs=1e-12), (word, p, pieces)


def dense_codes(seed, alphabet, merges, version=(0, 2)):
    """Codes in which everything merges with everything: words are reached by many paths."""
    rng = random.Random(seed)
    symbols = [*alphabet, *(c + "</w>" for c in alphabet)] if version == (0, 2) else [*alphabet, "</w>"]
    pairs = []
    for _ in range(merges):
        left = rng.choice([s for s in symbols if not s.endswith("</w>")])
        right = rng.choice(symbols)
        pairs.append((left, right))
        if len(left + right) < 12:
            symbols.append(left + right)
    return Codes(tuple(dict.fromkeys(pairs)), version)


@pytest.mark.parametrize("version", [(0, 1), (0, 2)])
def test_real_words_of_every_length(codes, words, version):
    codes = codes if version == (0, 2) else as_version_1(codes)
    by_length: dict[int, list[str]] = {}
    for word in words:
        by_length.setdefault(len(word), []).append(word)
    chosen = [word for length in range(1, 15) for word in by_length.get(length, [])[: 12 if length < 12 else 4]]
    assert {len(word) for word in chosen} == set(range(1, 15))
    assert len(chosen) > 120
    for number, word in enumerate(chosen):
        assert_equals_reference(codes, word, PS[number % len(PS)])


@pytest.mark.parametrize("p", PS)
def test_repeated_pairs(codes, p):
    for word in REPEATED:
        assert_equals_reference(codes, word, p)
        assert_equals_reference(Codes((("a", "a"), ("aa", "a"), ("aa", "aa"), ("a", "a</w>"), ("n", "a"))), word, p)


@pytest.mark.parametrize("seed", range(40))
def test_words_reached_by_many_paths(seed):
    version = (0, 1) if seed % 2 else (0, 2)
    codes = dense_codes(seed, "abc"[: 2 + seed % 2], 12 + seed, version)
    rng = random.Random(1000 + seed)
    for length in (2, 3, 5, 7, 8):
        word = "".join(rng.choice("abc") for _ in range(length))
        assert_equals_reference(codes, word, PS[(seed + length) % len(PS)])


def half_of_the_pieces(codes, rng):
    """A vocabulary, which splits the others again."""
    pieces = sorted({left + right for left, right in codes.pairs} | {"a", "b"})
    vocabulary = {piece.removesuffix("</w>") for piece in rng.sample(pieces, len(pieces) // 2)}
    return {piece + rng.choice(["@@", ""]) for piece in vocabulary if piece}


@pytest.mark.parametrize("seed", range(20))
def test_with_a_vocabulary(seed):
    codes = dense_codes(seed, "ab", 20, (0, 1) if seed % 2 else (0, 2))
    rng = random.Random(seed)
    vocabulary = half_of_the_pieces(codes, rng)
    for length in (2, 4, 6, 8):
        word = "".join(rng.choice("ab") for _ in range(length))
        assert_equals_reference(codes, word, PS[(seed + length) % len(PS)], vocabulary)


def without_end(codes):
    """The same merges for words that have no mark at their end."""
    pairs = ((left.replace("</w>", ""), right.replace("</w>", "")) for left, right in codes.pairs)
    return Codes(tuple(pair for pair in dict.fromkeys(pairs) if all(pair)), end_of_word=False)


@pytest.mark.parametrize("seed", range(20))
def test_without_end_of_word(seed):
    codes = without_end(dense_codes(seed, "abc"[: 2 + seed % 2], 12 + seed))
    rng = random.Random(seed)
    pieces = sorted({left + right for left, right in codes.pairs} | {"a", "b"})
    vocabulary = {piece + rng.choice(["@@", ""]) for piece in rng.sample(pieces, len(pieces) // 2)}
    for length in (1, 2, 3, 5, 8):
        word = "".join(rng.choice("abc") for _ in range(length))
        assert_equals_reference(codes, word, PS[(seed + length) % len(PS)])
        assert_equals_reference(codes, word, PS[(seed + length) % len(PS)], vocabulary)


def test_without_end_of_word_the_mark_is_text():
    codes = Codes((("<", "/"), ("</", "w"), ("</w", ">"), ("a", "</w>")), end_of_word=False)
    for word in ("</w>", "a</w>", "a</w>a</w>"):
        for p in (0.0, 0.3):
            assert_equals_reference(codes, word, p)
    assert Segmenter(codes).segment("a</w>a") == ["a</w>@@", "a"]


def gpt2_bpe(word, ranks):
    """BPE as GPT-2's encoder.py has it."""
    word = tuple(word)
    while len(word) > 1:
        first, second = min(pairwise(word), key=lambda pair: ranks.get(pair, float("inf")))
        if (first, second) not in ranks:
            break
        new, i = [], 0
        while i < len(word):
            if word[i : i + 2] == (first, second):
                new.append(first + second)
                i += 2
            else:
                new.append(word[i])
                i += 1
        word = tuple(new)
    return list(word)


def test_without_end_of_word_plain_bpe_is_gpt2s(codes, words):
    codes = without_end(codes)
    segmenter = Segmenter(codes, separator="")
    ranks = codes.ranks
    for word in [*words[:2000], *REPEATED]:
        assert segmenter.segment(word) == gpt2_bpe(word, ranks)


def test_glossaries_divide_the_distribution(codes):
    segmenter = Segmenter(codes, glossaries=["USA"])
    whole = segmenter.distribution("theUSAthe", 0.3)
    part = Segmenter(codes).distribution("the", 0.3)
    expected = {
        (*(f"{piece.removesuffix('@@')}@@" for piece in first), "USA@@", *second): p * q
        for first, p in part.items()
        for second, q in part.items()
    }
    assert whole == pytest.approx(expected, abs=1e-12)


# Tables. What a table answers must be what Algorithm 1 would have answered to the same number, and what it
# leaves open is drawn. So for every segmentation the share of numbers that the table gives it is at most the
# exact probability; the sum of what is above, which would be a total variation distance, is below 1e-12.


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5, 0.6, 0.9])
def test_tables_read_back(codes, words, p):
    segmenter = Segmenter(codes)
    open_share = []
    for word in [*words[:150], *words[2000:2100], *REPEATED]:
        exact = segmenter.distribution(word, p)
        table = dict(_core.table(segmenter._merges, _core.Word(word, []), p, 2.0**-14))
        assert set(table) <= set(exact)
        assert sum(max(0.0, table[pieces] - exact[pieces]) for pieces in table) < 1e-12
        left_open = 1 - sum(table.values())
        assert all(exact[pieces] - table.get(pieces, 0.0) <= left_open + 1e-12 for pieces in exact)
        open_share.append(left_open)
    assert np.mean(open_share) < 0.1  # else they were no use


@pytest.mark.parametrize("p", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("finest", [0.5, 2**-6, 2**-14])
def test_tables_answer_as_algorithm_1_does(codes, words, p, finest):
    segmenter = Segmenter(codes)
    answers = 0
    for word in [*words[:100], *words[1000:1100], *REPEATED]:
        answered, differing = _core.table_against_draw(segmenter._merges, _core.Word(word, []), p, finest, 3, 500)
        assert differing == 0
        answers += answered
    assert answers > (10_000 if finest < 0.5 else 1000)


# Draws, by chi-square at fixed seeds.


def chi_square(counts: Counter, exact: dict, draws: int) -> float:
    """The p-value of the counts under the exact distribution; rare outcomes are pooled."""
    frequent = {pieces: p for pieces, p in exact.items() if p * draws >= 10}
    observed = [counts[pieces] for pieces in frequent]
    expected = [p * draws for p in frequent.values()]
    rest = draws - sum(observed)
    if 1 - sum(frequent.values()) > 1e-12:
        observed.append(rest)
        expected.append(draws - sum(expected))
    else:
        assert rest == 0
    if len(observed) == 1:
        return 1.0
    return float(stats.chisquare(observed, np.array(expected) * (sum(observed) / sum(expected))).pvalue)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_direct_simulation_fits(segmenter, words, p):
    draws = 20_000
    values = []
    for number, word in enumerate([*REPEATED, *words[300:310], *words[3000:3010]]):
        core = _core.Word(word, [])
        # Each word has an epoch of its own: with the same bits for all of them the p-values would not be independent.
        keys = (_core.Key(11, number, 0, n) for n in range(draws))
        counts = Counter(tuple(_core.draw(segmenter._merges, core, p, key, 0)) for key in keys)
        values.append(chi_square(counts, segmenter.distribution(word, p), draws))
    assert min(values) > 1e-4
    assert stats.kstest([v for v in values if v < 1], "uniform").pvalue > 1e-3


def test_long_words_are_drawn_as_short_ones(segmenter):
    """The structure for long words is another one; a word just past the limit must not be drawn differently.

    130 characters that never merge and then "the": with one candidate after the other, the probabilities are
    those of "the" by itself.
    """
    draws, p = 20_000, 0.3
    exact = segmenter.distribution("the", p)
    core = _core.Word("¤" * 130 + "the", [])
    counts = Counter(
        tuple(_core.draw(segmenter._merges, core, p, _core.Key(5, 0, 0, n), 0))[130:] for n in range(draws)
    )
    assert chi_square(counts, exact, draws) > 1e-3


def test_p_0_is_bpe_and_p_1_is_characters(segmenter, words):
    for word in words[:500]:
        plain = segmenter.segment(word)
        assert segmenter.segment(word, dropout=0.0, seed=9) == plain
        assert [piece.removesuffix("@@") for piece in segmenter.segment(word, dropout=1.0)] == list(word)


def test_p_0_after_p_09_is_plain(segmenter, english):
    before = [segmenter.process_line(line) for line in english[:200]]
    for line in english[:200]:
        segmenter.process_line(line, dropout=0.9)
    assert [segmenter.process_line(line) for line in english[:200]] == before


def test_philox_is_numpys():
    rng = random.Random(1)
    for _ in range(50):
        counter = [rng.getrandbits(64) for _ in range(4)]
        key = [rng.getrandbits(64) for _ in range(2)]
        generator = np.random.Philox(key=np.array(key, np.uint64), counter=np.array(counter, np.uint64))
        theirs = generator.random_raw(4).tolist()
        counter[0] = (counter[0] + 1) % 2**64  # numpy counts before it draws
        if counter[0] == 0:
            continue
        assert _core.philox(counter, key) == theirs


class PlainDecoder:
    """The arithmetic decoder of core/random.h, again, in whole numbers of Python and with numpy's Philox."""

    def __init__(self, seed, epoch, side, sentence, position):
        self.key = (seed, epoch, side, sentence)
        self.range, self.offset = 2**63, self.block(0, position // 4)[position % 4] >> 1
        self.bits = (
            block[i // 4] >> 16 * (i % 4) & 0xFFFF
            for n in range(1000)
            if (block := self.block(1 + position, n))
            for i in range(16)
        )

    def block(self, stream, index):
        seed, epoch, side, sentence = self.key
        counter = sum(n << 64 * i for i, n in enumerate([index, sentence, epoch, (side << 40) + stream]))
        generator = np.random.Philox(key=seed | 0x4250452D64726F70 << 64, counter=(counter - 1) % 2**256)
        return generator.random_raw(4).tolist()  # numpy counts before it draws

    def dropped(self, p, candidates):
        q, missed, above = int(p * 2**64), int(p * 2**64), self.range
        k = 0
        while k < candidates and self.offset < (below := self.range * missed >> 64):
            k, above, missed = k + 1, below, missed * q >> 64
        below = below if k < candidates else 0
        self.range, self.offset = above - below, self.offset - below
        while self.range < 2**48:
            self.range, self.offset = self.range << 16, self.offset << 16 | next(self.bits)
        return k


@pytest.mark.parametrize("p", [0.1, 0.6, 0.9])
def test_the_draws_are_the_documented_ones(codes, segmenter, words, p):
    ranks = codes.ranks
    for number, word in enumerate([*words[500:560], "statement" * 5, "compositionality" * 3]):
        decoder = PlainDecoder(7, 3, 1, number, 2)
        tokens = reference.characters(word, codes)
        while found := reference.candidates(tokens, ranks):
            dropped = decoder.dropped(p, len(found))
            if dropped == len(found):
                break
            tokens = reference.merge(tokens, found[dropped])
        expected = [*(token + "@@" for token in tokens[:-1]), tokens[-1].removesuffix("</w>")]
        assert _core.draw(segmenter._merges, _core.Word(word, []), p, _core.Key(7, 3, 1, number), 2) == expected
