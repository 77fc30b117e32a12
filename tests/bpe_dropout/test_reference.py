"""The reference itself, against numbers worked out by hand."""

from collections import Counter
from random import Random

import pytest

from bpe_dropout import Codes
from bpe_dropout.reference import (
    candidates,
    characters,
    distribution,
    merge_all,
    occurrences,
    plain,
    sample,
    segment,
    spell,
)

ABC = Codes((("a", "b"), ("ab", "c</w>")))


def test_three_letters_by_hand():
    # a b c: only (a, b) can merge. Dropped (p): the word is done. Else ab c, and (ab, c) likewise.
    p = 0.1
    assert distribution("abc", ABC, p) == pytest.approx({("a", "b", "c"): p, ("ab", "c"): 0.9 * p, ("abc",): 0.81})


def test_two_occurrences_by_hand():
    # abab with the merge (a, b) alone, "</w>" on the last b: two occurrences of two different pairs.
    codes = Codes((("a", "b"), ("a", "b</w>")))
    p = 0.2
    # Both candidates: first applied 0.8, second 0.16, none 0.04. Then one is left: applied 0.8, not 0.2.
    expected = {
        ("a", "b", "a", "b"): 0.04,
        ("ab", "a", "b"): 0.8 * 0.2,
        ("a", "b", "ab"): 0.16 * 0.2,
        ("ab", "ab"): (0.8 + 0.16) * 0.8,
    }
    assert distribution("abab", codes, p) == pytest.approx(expected)


def test_a_dropped_merge_comes_back():
    # With b c ahead of a b in priority, dropping (b, c) once lets (a, b) go first, or (b, c) again later.
    codes = Codes((("b", "c"), ("a", "b"), ("d", "e</w>")))
    outcomes = distribution("bcde", codes, 0.5)
    # (b, c) first: .5; (d, e): .25, then (b, c): .5 of it; so bc is whole with .5 + .125.
    assert sum(p for pieces, p in outcomes.items() if pieces[0] == "bc") == pytest.approx(0.5 + 0.125)


def test_overlapping_occurrences_of_one_pair():
    codes = Codes((("a", "a"),))
    assert candidates(("a", "a", "a", "a</w>"), codes.ranks) == [0, 1]
    assert distribution("aaaa", codes, 0.5) == pytest.approx(
        {("aa", "a", "a"): 0.5, ("a", "aa", "a"): 0.25, ("a", "a", "a", "a"): 0.25}
    )


@pytest.mark.parametrize("p", [0.05, 0.1, 0.5, 0.9, [0.1, 0.9, 0.5, 0.3]])
def test_sampling_as_printed_gives_the_distribution(p):
    codes = Codes((("e", "r"), ("m", "er"), ("g", "er</w>"), ("e", "r</w>")))
    random = Random(5)
    drawn = Counter(spell(sample("merger", codes, p, random), codes) for _ in range(20_000))
    for pieces, probability in distribution("merger", codes, p).items():
        assert abs(drawn[pieces] / 20_000 - probability) < 5 * (probability * (1 - probability) / 20_000) ** 0.5 + 1e-4


def test_a_rate_for_each_merge_by_hand():
    # abab: (a, b) first, dropped with 0.2; (a, b</w>) second, with 0.5. Then the one that is left.
    codes = Codes((("a", "b"), ("a", "b</w>")))
    expected = {
        ("a", "b", "a", "b"): 0.2 * 0.5,
        ("ab", "a", "b"): 0.8 * 0.5,
        ("a", "b", "ab"): 0.2 * 0.5 * 0.2,
        ("ab", "ab"): 0.8 * 0.5 + 0.2 * 0.5 * 0.8,
    }
    assert distribution("abab", codes, [0.2, 0.5]) == pytest.approx(expected)
    # A rate is that of the merge, and not of the place in the order of priority.
    assert distribution("aba", Codes((("b", "a</w>"), ("a", "b"))), [0.2, 0.5]) == pytest.approx(
        {("a", "ba"): 0.8, ("ab", "a"): 0.2 * 0.5, ("a", "b", "a"): 0.2 * 0.5}
    )


def test_rates_of_0_and_1():
    codes = Codes((("a", "b"), ("ab", "c</w>"), ("a", "a")))
    assert distribution("abc", codes, [0.0, 1.0, 0.5]) == {("ab", "c"): 1.0}
    assert distribution("abc", codes, [1.0, 0.0, 0.5]) == {("a", "b", "c"): 1.0}
    assert distribution("abc", codes, [1.0] * 3) == distribution("abc", codes, 1.0)
    # All of them 0: plain BPE, by subword-nmt's rule.
    codes = Codes((("ab", "a"), ("a", "b")))
    assert distribution("ababx", codes, [0.0, 0.0]) == {("ab", "ab", "x"): 1.0}
    assert segment("ababx", codes, [0.0, 0.0]) == ("ab", "ab", "x")


@pytest.mark.parametrize("p", [0.1, 0.7])
def test_equal_rates_are_a_number(p):
    codes = Codes((("e", "r"), ("m", "er"), ("g", "er</w>"), ("e", "r</w>")))
    assert distribution("merger", codes, [p] * 4) == distribution("merger", codes, p)
    assert sample("merger", codes, [p] * 4, Random(3)) == sample("merger", codes, p, Random(3))


def test_plain_is_subword_nmts_rule_on_a_hand_made_table():
    # All occurrences of (a, b) at once: ab ab x. One at a time, (ab, a) would come in between.
    codes = Codes((("ab", "a"), ("a", "b")))
    assert plain("ababx", codes) == ("ab", "ab", "x</w>")
    assert merge_all(("a", "a", "a"), occurrences(("a", "a", "a"), ("a", "a"))) == ("aa", "a")


def test_limits():
    assert distribution("abc", ABC, 1.0) == {("a", "b", "c"): 1.0}
    assert distribution("abc", ABC, 0.0) == {("abc",): 1.0}
    assert segment("a", ABC, 0.5) == ("a",)


def test_versions():
    assert characters("abc", Codes((), version=(0, 1))) == ("a", "b", "c", "</w>")
    codes = Codes((("a", "b"), ("b", "</w>")), version=(0, 1))
    assert distribution("ab", codes, 0.5) == pytest.approx({("ab",): 0.5, ("a", "b"): 0.5})


def test_vocabulary_takes_pieces_apart():
    assert distribution("abc", ABC, 0.1, vocabulary={"ab@@", "c"}) == pytest.approx(
        {("ab", "c"): 0.9, ("a", "b", "c"): 0.1}
    )
