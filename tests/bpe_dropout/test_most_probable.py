"""The probability of one segmentation, and the most probable ones, against the listing of all."""

import itertools
import math
import random
import tracemalloc

import pytest

from bpe_dropout import Codes, InputError, Segmenter, _core, reference
from bpe_dropout.errors import OutOfReach
from bpe_dropout.most_probable import MostProbable, combinations
from tests.bpe_dropout.test_exact import PS, REPEATED, dense_codes, half_of_the_pieces, with_separators, without_end
from tests.conftest import as_version_1

LONG = ["statementsunrelated", "mississippimississippi"]


def assert_each_has_its_probability(codes, word, p, vocabulary=()):
    segmenter = Segmenter(codes, vocabulary=vocabulary)
    expected = with_separators(reference.distribution(word, codes, p, vocabulary))
    for pieces, probability in expected.items():
        assert segmenter.probability(pieces, p) == pytest.approx(probability, rel=1e-12, abs=1e-12), (pieces, p)
    return segmenter, expected


def assert_most_probable(found, expected, count):
    """The right probabilities in the right order; of equals, any."""
    best = sorted(expected.values(), reverse=True)[:count]
    assert [p for _, p in found] == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert len({tuple(pieces) for pieces, _ in found}) == len(found)
    for pieces, p in found:
        assert expected[tuple(pieces)] == pytest.approx(p, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("version", [(0, 1), (0, 2)])
def test_real_words(codes, words, version):
    codes = codes if version == (0, 2) else as_version_1(codes)
    by_length = {}
    for word in words:
        by_length.setdefault(len(word), []).append(word)
    chosen = [word for length in range(1, 13) for word in by_length.get(length, [])[:4]]
    assert {len(word) for word in chosen} == set(range(1, 13))
    for number, word in enumerate(chosen):
        p = PS[number % len(PS)]
        segmenter, expected = assert_each_has_its_probability(codes, word, p)
        for count in (1, 4, 16):
            assert_most_probable(segmenter.most_probable(word, p, count), expected, count)


@pytest.mark.parametrize("rule", ["rank:0.05..0.6", "rank:1..0", "rank:0..1"])
def test_a_rate_for_each_merge(segmenter, words, rule):
    for word in ["unrelated", *REPEATED, *sorted(set(words))[::40]]:
        expected = segmenter.distribution(word, rule)
        for pieces, probability in expected.items():
            assert segmenter.probability(pieces, rule) == pytest.approx(probability, rel=1e-12, abs=1e-12)
        possible = {pieces: probability for pieces, probability in expected.items() if probability > 1e-300}
        assert_most_probable(segmenter.most_probable(word, rule, 4), possible, 4)


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_repeated_pairs(codes, p):
    for word in REPEATED:
        assert_each_has_its_probability(codes, word, p)
        assert_each_has_its_probability(
            Codes((("a", "a"), ("aa", "a"), ("aa", "aa"), ("a", "a</w>"), ("n", "a"))), word, p
        )


@pytest.mark.parametrize("seed", range(20))
def test_words_reached_by_many_paths(seed):
    """Also with a vocabulary: then several segmentations into tokens are spelled alike."""
    codes = dense_codes(seed, "abc"[: 2 + seed % 2], 12 + seed, (0, 1) if seed % 2 else (0, 2))
    rng = random.Random(seed)
    vocabulary = half_of_the_pieces(codes, rng)
    for length in (2, 4, 7, 8):
        word = "".join(rng.choice("abc") for _ in range(length))
        for given in ((), vocabulary):
            segmenter, expected = assert_each_has_its_probability(codes, word, 0.3, given)
            assert_most_probable(segmenter.most_probable(word, 0.3, 5), expected, 5)
    no_mark = without_end(codes)
    for word in ("abcab", "aabbaabb"):
        assert_each_has_its_probability(no_mark, word, 0.3)


def test_pieces_are_not_independent():
    """Why the probability is not a product over the pieces, even where no merge joins them."""
    both = Segmenter(Codes((("a", "b"), ("c", "d</w>"))))
    assert Segmenter(Codes((("a", "b</w>"),))).probability(["ab"], 0.5) == 0.5
    assert Segmenter(Codes((("c", "d</w>"),))).probability(["cd"], 0.5) == 0.5
    assert both.probability(["ab@@", "cd"], 0.5) == 0.375  # not 0.25: what is dropped first has a second chance


@pytest.mark.parametrize("word", LONG)
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_long_words(segmenter, word, p):
    everything = segmenter.distribution(word, p, limit=1 << 20)
    outcomes = list(everything.items())
    assert len(outcomes) > 1000
    for pieces, probability in [*outcomes[:10], *random.Random(1).sample(outcomes, 10)]:
        assert segmenter.probability(pieces, p) == pytest.approx(probability, rel=1e-11)
    for count in (1, 16):
        assert_most_probable(segmenter.most_probable(word, p, count), everything, count)


def test_with_few_states_there_are_bounds(segmenter):
    """What was let go is known: the exact probability is between the bounds, and they narrow."""
    word, p = "unrelatedinternationalwords", 0.4
    pieces = segmenter.segment(word)
    exact = segmenter.probability(pieces, p)
    widths = []
    for most in (1, 2, 8, 32, 128):
        least, at_most = _core.probability(segmenter._merges, segmenter.word(word), p, pieces, most)
        assert least <= exact * (1 + 1e-12)
        assert at_most >= exact * (1 - 1e-12)
        widths.append(at_most - least)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.01
    with pytest.raises(OutOfReach, match=r"is between .* and .*: to compute it exactly needs more than 8 states"):
        segmenter.probability(pieces, p, limit=8)
    with pytest.raises(OutOfReach, match="cannot be found: more than 8 states"):
        MostProbable(segmenter, p, 4, limit=8)(word)
    find = MostProbable(segmenter, p, 3, limit=8, beyond="plain")
    of_the = segmenter.most_probable("the", p, 3)
    assert find(f"{word} the") == [([*pieces, *rest], probability) for rest, probability in of_the]
    assert find.plain == {word}


def test_a_word_of_a_hundred_characters(segmenter):
    """No listing of all could check it, but the two agree, which look at different states."""
    word, p = "statementunrelated" * 5 + "statements", 0.01
    found = segmenter.most_probable(word, p, 8)
    assert found[0][0] == segmenter.segment(word)
    for pieces, probability in found:
        assert segmenter.probability(pieces, p) == pytest.approx(probability, rel=1e-11)
    assert 0.4 < sum(probability for _, probability in found) < 1


def test_glossaries(codes):
    segmenter = Segmenter(codes, glossaries=["USA"])
    for word in ("theUSAthe", "USA", "interestUSA", "USAUSAthat"):
        everything = segmenter.distribution(word, 0.3)
        for pieces, probability in everything.items():
            assert segmenter.probability(pieces, 0.3) == pytest.approx(probability, rel=1e-12)
        assert_most_probable(segmenter.most_probable(word, 0.3, 7), everything, 7)


def test_lines_against_all_combinations(segmenter):
    line, p = "the interest of statements", 0.2
    each = [segmenter.distribution(word, p) for word in line.split()]
    everything = {}
    for chosen in itertools.product(*(one.items() for one in each)):
        pieces = tuple(itertools.chain.from_iterable(pieces for pieces, _ in chosen))
        everything[pieces] = math.prod(probability for _, probability in chosen)
    assert len(everything) > 500
    for count in (1, 4, 16, 300):
        found = segmenter.most_probable(line, p, count)
        assert_most_probable(found, everything, count)
    assert segmenter.most_probable(line, 0.0, 5) == [(segmenter.segment(line), 1.0)]
    assert segmenter.most_probable("", p, 5) == [([], 1.0)]
    the_of = segmenter.most_probable("the of", p, 3)
    assert segmenter.most_probable("\tthe\u3000of ", p, 3, split="whitespace") == the_of


@pytest.mark.parametrize("seed", range(10))
def test_combinations(seed):
    rng = random.Random(seed)
    lists = []
    for _ in range(rng.randrange(6)):
        weights = sorted((rng.choice([1, 2, 3, 5]) for _ in range(rng.randrange(1, 5))), reverse=True)
        lists.append([weight / sum(weights) for weight in weights])
    expected = sorted((math.prod(chosen) for chosen in itertools.product(*lists)), reverse=True)
    found = list(combinations(lists))
    assert [p for _, p in found] == pytest.approx(expected, rel=1e-12)
    assert len({numbers for numbers, _ in found}) == len(expected)
    equal = [numbers for numbers, _ in combinations([[0.5, 0.5]] * 3)]
    assert equal == sorted(equal), "of equals, in the order of their numbers"


def test_a_line_of_many_words_takes_little_room():
    """What waits is kept as what it changes, and not as all its words."""
    tracemalloc.start()
    found = list(itertools.islice(combinations([[0.9, 0.1]] * 4000), 16))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(found[0][0]) == 0
    assert all(sum(numbers) == 1 for numbers, _ in found[1:])
    assert most < 100e6


def test_what_leads_nowhere_is_given_up():
    """Pieces that a vocabulary splits can be made in many ways, none of which ends as it should."""
    segmenter = Segmenter(Codes((("a", "a"), ("b", "c</w>"))), vocabulary={"a@@", "x"})
    with pytest.raises(OutOfReach, match="steps to see how it is spelled"):
        segmenter.probability([*["a@@"] * 60, "xy"], 0.1)


@pytest.mark.parametrize("epoch", [-3, 1.5, True, math.nan, "2"])
def test_an_epoch_that_is_none(segmenter, epoch):
    for ask in (segmenter.distribution, segmenter.segment):
        with pytest.raises(InputError, match="the epoch is a whole number from 0 to"):
            ask("word", "0.2@anneal:5", epoch=epoch)
    with pytest.raises(InputError, match="the epoch is a whole number from 0 to"):
        segmenter.most_probable("word", "0.2@anneal:5", 2, epoch=epoch)


def test_what_cannot_be_a_segmentation(segmenter):
    assert segmenter.probability([*(f"{c}@@" for c in "statemen"), "t"], 0.1) > 0
    assert segmenter.probability(["qq@@", "q"], 0.1) == 0
    assert segmenter.probability(["s"], 0.1) == 1
    for p in (0.0, 1.0):
        assert segmenter.probability(segmenter.segment("statement", p), p) == 1
        assert segmenter.probability(["sta@@", "tement"], p) == 0
    with pytest.raises(InputError, match="'un' is within a word and must end with '@@': 'un related'"):
        segmenter.probability(["un", "related"], 0.1)
    with pytest.raises(InputError, match="'' is not one word"):
        segmenter.probability([], 0.1)
    with pytest.raises(InputError, match="segmentations is a whole number from 1 to"):
        segmenter.most_probable("word", 0.1, 0)
    with pytest.raises(InputError, match="probability from 0 to 1"):
        segmenter.most_probable("word", 1.1, 1)
    with pytest.raises(InputError, match="words are split at 'spaces' or 'whitespace', not 'bogus'"):
        MostProbable(segmenter, 0.1, 1, split="bogus")
    with pytest.raises(InputError, match="probability from 0 to 1"):
        segmenter.probability(["word"], 1.1)
