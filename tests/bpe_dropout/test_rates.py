"""A rate for each merge: the core against the reference, and a constant rule against a number."""

import pickle
import random
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from bpe_dropout import Codes, Corpus, Dictionary, InputError, Rule, Segmenter, _core, count_merges, reference
from tests.bpe_dropout.test_exact import (
    REPEATED,
    PlainDecoder,
    chi_square,
    dense_codes,
    with_separators,
    without_end,
)
from tests.conftest import as_version_1

# Codes in which no word has the last merge: with another rate for it, all other merges have their rates one by one.
UNUSED = ("¤¤", "¤¤")


def some_rates(merges, seed, extremes=True):
    """Rates of all sizes; some of them are 0 and 1."""
    rng = random.Random(seed)
    high = rng.choice([0.1, 0.5, 1.0])
    rates = [rng.random() * high for _ in range(merges)]
    if extremes:
        for rate in (0.0, 1.0):
            for rank in rng.sample(range(merges), merges // 6):
                rates[rank] = rate
    return rates


def write(tmp_path, rates):
    (tmp_path / "rates").write_text("".join(f"{rate!r}\n" for rate in rates))
    return f"file:{tmp_path / 'rates'}"


def assert_equals_reference(codes, word, rates, vocabulary=()):
    segmenter = Segmenter(codes, vocabulary=vocabulary)
    expected = with_separators(reference.distribution(word, codes, rates, vocabulary))
    outcomes = dict(_core.distribution(segmenter._merges, segmenter.word(word), _core.Dropout(rates), 1 << 20))
    assert sum(outcomes.values()) == pytest.approx(1, abs=1e-12)
    for pieces in set(outcomes) | set(expected):
        assert outcomes.get(pieces, 0.0) == pytest.approx(expected.get(pieces, 0.0), abs=1e-12), (word, pieces)


@pytest.mark.parametrize("version", [(0, 1), (0, 2)])
def test_real_words(codes, words, version):
    codes = codes if version == (0, 2) else as_version_1(codes)
    chosen = [word for word in [*words[:40], *words[500:540], *words[3000:3040], *REPEATED] if len(word) < 14]
    for number, word in enumerate(chosen):
        assert_equals_reference(codes, word, some_rates(len(codes.pairs), number))


@pytest.mark.parametrize("seed", range(20))
def test_words_reached_by_many_paths(seed):
    codes = dense_codes(seed, "abc"[: 2 + seed % 2], 12 + seed, (0, 1) if seed % 2 else (0, 2))
    codes = codes if seed % 3 else without_end(codes)
    rng = random.Random(seed)
    pieces = sorted({left + right for left, right in codes.pairs} | {"a", "b"})
    vocabulary = {piece.removesuffix("</w>") + rng.choice(["@@", ""]) for piece in rng.sample(pieces, len(pieces) // 2)}
    for length in (1, 2, 3, 5, 8):
        word = "".join(rng.choice("abc") for _ in range(length))
        rates = some_rates(len(codes.pairs), 100 * seed + length)
        assert_equals_reference(codes, word, rates)
        assert_equals_reference(codes, word, rates, vocabulary - {"", "@@"})


# Tables: as in test_exact.py.


@pytest.mark.parametrize("seed", range(3))
def test_tables_read_back(codes, words, seed):
    segmenter = Segmenter(codes)
    dropout = _core.Dropout(some_rates(len(codes.pairs), seed))
    for word in [*words[:100], *words[2000:2060], *REPEATED]:
        exact = dict(_core.distribution(segmenter._merges, segmenter.word(word), dropout, 1 << 20))
        table = dict(_core.table(segmenter._merges, _core.Word(word, []), dropout, 2.0**-14))
        assert set(table) <= set(exact)
        assert sum(max(0.0, table[pieces] - exact[pieces]) for pieces in table) < 1e-12
        left_open = 1 - sum(table.values())
        assert all(exact[pieces] - table.get(pieces, 0.0) <= left_open + 1e-12 for pieces in exact)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("finest", [0.5, 2**-6, 2**-14])
def test_tables_answer_as_algorithm_1_does(codes, words, seed, finest):
    segmenter = Segmenter(codes)
    dropout = _core.Dropout(some_rates(len(codes.pairs), seed))
    answers = 0
    for word in [*words[:100], *words[1000:1100], *REPEATED]:
        answered, differing = _core.table_against_draw(segmenter._merges, _core.Word(word, []), dropout, finest, 3, 500)
        assert differing == 0
        answers += answered
    assert answers > 1000


# Draws.


@pytest.mark.parametrize("seed", range(3))
def test_draws_fit_the_exact_distribution(segmenter, words, seed):
    draws, values = 20_000, []
    dropout = _core.Dropout(some_rates(len(segmenter.codes.pairs), seed))
    for number, word in enumerate([*REPEATED, *words[300:308], *words[3000:3008]]):
        core = segmenter.word(word)
        keys = (_core.Key(12, number, 0, n) for n in range(draws))
        counts = Counter(tuple(_core.draw(segmenter._merges, core, dropout, key, 0)) for key in keys)
        exact = dict(_core.distribution(segmenter._merges, core, dropout, 1 << 20))
        values.append(chi_square(counts, exact, draws))
    assert min(values) > 1e-4
    assert stats.kstest([v for v in values if v < 1], "uniform").pvalue > 1e-3


def test_long_words_are_drawn_as_short_ones(segmenter):
    draws = 20_000
    dropout = _core.Dropout(some_rates(len(segmenter.codes.pairs), 5, extremes=False))
    exact = dict(_core.distribution(segmenter._merges, segmenter.word("other"), dropout, 1 << 20))
    core = _core.Word("¤" * 130 + "other", [])
    counts = Counter(
        tuple(_core.draw(segmenter._merges, core, dropout, _core.Key(5, 0, 0, n), 0))[130:] for n in range(draws)
    )
    assert len(exact) > 3
    assert chi_square(counts, exact, draws) > 1e-3


class RateDecoder(PlainDecoder):
    def dropped_by_rate(self, rates):
        """What core/random.h does, in whole numbers of Python: cuts in proportion to the product of rates."""
        above, missed, k = self.range, 2**64, 0
        for k, rate in enumerate([*rates, 0.0]):  # noqa: B007 -- where it stops
            missed = missed * int(rate * 2**64) >> 64
            below = self.range * missed >> 64
            if self.offset >= below:
                break
            above = below
        self.range, self.offset = above - below, self.offset - below
        while self.range < 2**48:
            self.range, self.offset = self.range << 16, self.offset << 16 | next(self.bits)
        return k


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("avx2", [True, False])
def test_the_draws_are_the_documented_ones(codes, segmenter, words, seed, avx2):
    before = _core.uses_avx2()
    _core.use_avx2(avx2)
    try:
        rates, ranks = some_rates(len(codes.pairs), seed), codes.ranks
        chosen = [*words[500:540], "statement" * 5, "compositionality" * 3, "statements" * 20]
        for number, word in enumerate(chosen):
            decoder = RateDecoder(7, 3, 1, number, 2)
            tokens = reference.characters(word, codes)
            while found := reference.candidates(tokens, ranks):
                dropped = decoder.dropped_by_rate([reference.rate(tokens, i, ranks, rates) for i in found])
                if dropped == len(found):
                    break
                tokens = reference.merge(tokens, found[dropped])
            expected = [*(token + "@@" for token in tokens[:-1]), tokens[-1].removesuffix("</w>")]
            core = _core.Word(word, [])
            assert _core.draw(segmenter._merges, core, _core.Dropout(rates), _core.Key(7, 3, 1, number), 2) == expected
    finally:
        _core.use_avx2(before)


# A constant rule is a number, bit for bit. So are rates that are drawn one by one, but all the same where they count.


@pytest.fixture(scope="module")
def text(tmp_path_factory, english):
    path = tmp_path_factory.mktemp("text") / "train.en"
    lines = [*english[:1500], "compositionality" * 3, "statements" * 30, "¤¤ ¤"]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def unused(codes):
    """The same codes with one more merge, for which nothing here has a use."""
    return Segmenter(Codes((*codes.pairs, UNUSED)))


@pytest.fixture(scope="module")
def dictionary(text, segmenter):
    pieces = segmenter.stream().text(text.read_bytes()).decode().split()
    return Dictionary.of_pieces(dict.fromkeys([*pieces, *(c + end for c in "abcdefghijklmnop" for end in ("", "@@"))]))


def all_draws(segmenter, text, dictionary, dropout, epoch=3):
    """What is drawn by each of the ways to draw."""
    sampler = Corpus(text).sampler(segmenter, dictionary, dropout)
    drawn = sampler.tokens(seed=5, epoch=epoch, side=1)
    again = sampler.tokens(np.arange(0, 1500, 7), seed=5, epoch=epoch, side=1)
    lines = text.read_text().split("\n")[:200]
    return {
        "tokens": drawn.ids.tolist(),
        "some": again.ids.tolist(),
        "lengths": sampler.lengths(seed=5, epoch=epoch, side=1).tolist(),
        "without tables": Corpus(text).sampler(segmenter, dictionary, dropout, memory=0)
        .tokens(seed=5, epoch=epoch, side=1).ids.tolist(),
        "stream": segmenter.stream(dropout).text(text.read_bytes(), 5, epoch=epoch, side=1),
        "lines": [segmenter.segment(line, dropout, 5, epoch=epoch, side=1, sentence=n) for n, line in enumerate(lines)],
    }  # fmt: skip


@pytest.mark.parametrize("p", [0.1, 0.6, 0.99])
def test_a_constant_rule_draws_what_a_number_draws(segmenter, unused, text, dictionary, tmp_path, p):
    number = all_draws(segmenter, text, dictionary, p)
    assert number["tokens"] == number["without tables"]
    merges = len(segmenter.codes.pairs)
    for rule in (f"{p}", f"rank:{p}..{p}", f"2x{p / 2}", write(tmp_path, [p] * merges)):
        assert all_draws(segmenter, text, dictionary, rule) == number
    one_by_one = write(tmp_path, [*[p] * merges, 0.5])
    assert all_draws(unused, text, dictionary, one_by_one) == number


def test_all_ways_to_draw_agree(segmenter, text, dictionary, tmp_path):
    rule = write(tmp_path, some_rates(len(segmenter.codes.pairs), 3, extremes=False))
    drawn = all_draws(segmenter, text, dictionary, rule)
    assert drawn["tokens"] == drawn["without tables"]
    pieces = drawn["stream"].decode().split("\n")
    ids = [[*(dictionary[piece] for piece in line.split()), dictionary.eos] for line in pieces[:-1]]
    assert [number for line in ids for number in line] == drawn["tokens"]
    assert drawn["lengths"] == [len(line) for line in ids]
    assert [line.split() for line in pieces[:200]] == drawn["lines"]
    assert drawn != all_draws(segmenter, text, dictionary, "0.1")


def test_rates_of_0_are_plain_bpe(segmenter, text, dictionary, tmp_path):
    plain = all_draws(segmenter, text, dictionary, 0.0)
    for rule in ("rank:0..0", "0xrank:0..1", write(tmp_path, [0.0] * len(segmenter.codes.pairs))):
        assert all_draws(segmenter, text, dictionary, rule) == plain


# Rules.


def test_a_schedule_has_the_rates_of_each_epoch(segmenter, text, dictionary):
    rule = Rule.parse("rank:0.1..0.9@anneal:4")
    sampler = pickle.loads(pickle.dumps(Corpus(text).sampler(segmenter, dictionary, str(rule))))
    stream = segmenter.stream(rule)
    for epoch in (1, 2, 4, 3, 1, 9):
        expected = all_draws(segmenter, text, dictionary, rule.at(epoch), epoch)
        assert sampler.tokens(seed=5, epoch=epoch, side=1).ids.tolist() == expected["tokens"]
        assert sampler.lengths(seed=5, epoch=epoch, side=1).tolist() == expected["lengths"]
        assert stream.text(text.read_bytes(), 5, epoch=epoch, side=1) == expected["stream"]
        assert segmenter.segment("unrelated words", rule, 5, epoch=epoch) == segmenter.segment(
            "unrelated words", rule.at(epoch), 5, epoch=epoch
        )
    assert expected == all_draws(segmenter, text, dictionary, 0.0, 9)


@pytest.mark.parametrize("kind", ["version 0.2", "version 0.1", "no end of word", "glossary"])
def test_merges_are_counted(codes, english, kind):
    counts = Counter(word for line in english[:300] for word in line.split())
    counts["abababab"] = 3
    if kind == "version 0.1":
        codes = as_version_1(codes)
    elif kind == "no end of word":
        codes = without_end(codes)
    segmenter = Segmenter(codes, glossaries=["the", "in"] if kind == "glossary" else None)
    expected, ranks = [0] * len(codes.pairs), codes.ranks
    for word, count in counts.items():
        for part, fixed in segmenter.parts(word) or [(word, False)]:
            for step in [] if fixed or len(part) == 1 else reference.trace_plain(part, codes):
                for i in step.applied:
                    expected[ranks[step.tokens[i], step.tokens[i + 1]]] += count
    assert sum(expected) > 1000
    assert count_merges(segmenter, counts) == expected


def test_by_frequency_of_the_text(segmenter, text, dictionary):
    corpus = Corpus(text)
    counts = corpus.type_counts()
    rule = Rule.parse("frequency:0.4..0").counted(count_merges(segmenter, counts))
    expected = corpus.sampler(segmenter, dictionary, rule).tokens(seed=1, epoch=1).ids
    found = pickle.loads(pickle.dumps(corpus.sampler(segmenter, dictionary, "frequency:0.4..0")))
    assert found.tokens(seed=1, epoch=1).ids.tolist() == expected.tolist()
    with pytest.raises(InputError, match=r"frequency:0.4..0: how often merges are applied depends on a text"):
        segmenter.segment("words", "frequency:0.4..0")


def test_a_file_is_looked_for_beside_the_codes(codes, tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "codes").write_text(codes.text())
    rates = some_rates(len(codes.pairs), 1)
    write(folder, rates)
    segmenter = Segmenter.from_codes(folder / "codes")
    expected = with_separators(reference.distribution("unrelated", codes, rates))
    for one in (segmenter, pickle.loads(pickle.dumps(segmenter))):
        assert one.distribution("unrelated", "file:rates") == pytest.approx(
            {pieces: p for pieces, p in expected.items() if p > 0}, abs=1e-12
        )
    monkeypatch.chdir(folder)
    assert Segmenter(codes).distribution("unrelated", "file:rates") == segmenter.distribution("unrelated", "file:rates")
    with pytest.raises(InputError, match=r"there is no .*/data/gone"):
        segmenter.segment("unrelated", "file:gone")
