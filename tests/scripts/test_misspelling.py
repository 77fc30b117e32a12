"""The generator of misspellings: its rate, its operations, and an edit distance of exactly 1."""

from collections import Counter
from random import Random

import pytest

from bpe_dropout import InputError
from scripts.misspelling import is_word, letters_of, misspell, misspell_text


def distance(a: str, b: str) -> int:
    """Levenshtein's, by the textbook."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def test_distance():
    assert [distance("kitten", other) for other in ("kitten", "kittn", "sitten", "sitting")] == [0, 1, 1, 3]


@pytest.fixture(scope="module")
def made(english):
    return misspell_text(english, rate=0.1, seed=1)


def changed(english, lines):
    for before, after in zip(english, lines, strict=True):
        yield from (pair for pair in zip(before.split(" "), after.split(" "), strict=True) if pair[0] != pair[1])


def test_one_word_in_ten(english, made):
    words = sum(is_word(word) for line in english for word in line.split(" "))
    share = sum(1 for _ in changed(english, made[0])) / words
    assert abs(share - 0.1) < 5 * (0.1 * 0.9 / words) ** 0.5, "within five standard deviations"
    assert made[1]["misspelled"] == sum(1 for _ in changed(english, made[0]))
    assert made[1]["words"] == words


def test_every_misspelled_word_is_one_edit_away(english, made):
    pairs = list(changed(english, made[0]))
    assert len(pairs) > 3000
    assert {distance(before, after) for before, after in pairs} == {1}
    assert all(after for _, after in pairs)


def test_the_three_operations_are_equally_likely(english, made):
    lines, operations = made[0], made[1]["operations"]
    lengths = Counter(len(after) - len(before) for before, after in changed(english, lines))
    assert lengths == {-1: operations["removal"], 0: operations["substitution"], 1: operations["insertion"]}
    long = Counter(len(after) - len(before) for before, after in changed(english, lines) if len(before) > 1)
    for count in long.values():
        assert abs(count / long.total() - 1 / 3) < 5 * (2 / 9 / long.total()) ** 0.5


def test_all_places_and_letters_are_used():
    random = Random(1)
    letters = list("abcdefgh")
    drawn = Counter(misspell("xyz", random, letters)[0] for _ in range(20_000))
    removed = {"yz", "xz", "xy"}
    substituted = {"xyz"[:i] + letter + "xyz"[i + 1 :] for i in range(3) for letter in letters}
    inserted = {"xyz"[:i] + letter + "xyz"[i:] for i in range(4) for letter in letters}
    assert set(drawn) == removed | substituted | inserted
    for kind in (removed, substituted, inserted):
        shares = [drawn[word] / 20_000 for word in kind]
        assert max(abs(share - 1 / 3 / len(kind)) for share in shares) < 0.015


def test_what_is_no_word_stays():
    line = "& 12 , . – 。 a"
    made, found = misspell_text([line] * 2000, rate=0.1, seed=2)
    assert {after.rsplit(" ", 1)[0] for after in made} == {"& 12 , . – 。"}
    assert found["operations"]["removal"] == 0, "a word of one character is not removed"
    assert found["misspelled"] > 100


def test_every_word_may_be_misspelled():
    """Also those with a sign that is special elsewhere: text is not escaped."""
    given = ["it", "'s", "AT&T", "&c.", "don't"]
    made, found = misspell_text([" ".join(given)] * 2000, rate=0.1, seed=1)
    columns = list(zip(*(line.split(" ") for line in made), strict=True))
    words = list(map(set, columns))
    assert found["words"] == len(given) * 2000
    assert {"'s", "'", "s"} < words[1]
    assert {"AT&T", "ATT", "T&T", "AT&"} < words[2]
    assert {"&c.", "c.", "&."} < words[3]
    assert {"don't", "dont"} < words[4]
    for word, column in zip(given, columns, strict=True):
        share = sum(made != word for made in column) / 2000
        assert abs(share - 0.1) < 5 * (0.1 * 0.9 / 2000) ** 0.5, "within five standard deviations"


def test_draws_depend_on_the_seed_and_on_nothing_else(english):
    lines = english[:200]
    first, _ = misspell_text(lines, rate=0.1, seed=1)
    assert misspell_text(lines, rate=0.1, seed=1)[0] == first
    assert misspell_text(lines, rate=0.1, seed=2)[0] != first
    same_letters = [*lines[:100], *(["".join(letters_of(lines))] * 100)]
    assert letters_of(same_letters) == letters_of(lines)
    assert misspell_text(same_letters, rate=0.1, seed=1)[0][:100] == first[:100], "each sentence by itself"


def test_draws_are_those_of_the_published_results():
    """What a seed gives must not change: the results on misspelled input in experiments/results were made with it."""
    lines = [
        "each word of the source is misspelled with a probability of ten percent",
        "ein haus , zwei häuser und 3 katzen",
        "the cat sat on the mat and a dog looked at it for a while .",
    ]
    assert misspell_text(lines, rate=0.1, seed=1)[0] == [
        "each bword of the source is misspelled with a probability o ten percent",
        "ein haus , zwei häuser ubnd 3 katzen",
        "the cat st on the mat and a dog looked at it for a while .",
    ]
    assert misspell_text(lines, rate=0.5, seed=1) == (
        [
            "each bword on the source s misspelled with w probability rof te upercent",
            "ein gaus , zwi häser und 3 katzen",
            "the at at ong the matu and n dog looed atz it for l wäile .",
        ],
        {"words": 34, "misspelled": 19, "operations": {"removal": 7, "insertion": 6, "substitution": 6}},
    )


def test_rates_of_none_and_all(english):
    assert misspell_text(english[:50], rate=0, seed=1)[0] == english[:50]
    words = [word for line in english[:50] for word in line.split(" ") if is_word(word)]
    assert len(list(changed(english[:50], misspell_text(english[:50], rate=1, seed=1)[0]))) == len(words)


def test_letters_are_the_texts_own():
    text = ["ab" * 20_000 + "é", "12 ."]
    assert letters_of(text) == ["a", "b"], "one é in forty thousand letters is none of them"
    assert letters_of(["猫 犬"]) == ["犬", "猫"]


def test_a_text_of_one_letter():
    assert misspell("a", Random(1), ["a"]) == ("aa", "insertion")


def test_a_rate_is_a_probability():
    with pytest.raises(InputError, match="from 0 to 1, not 10"):
        misspell_text(["a word"], rate=10, seed=1)
