"""The generator of misspellings: its rate, its operations, and an edit distance of exactly 1."""

from collections import Counter
from random import Random

import pytest

from experiments.analysis.misspelled import is_word, letters_of, misspell, misspell_folder, misspell_text


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
    return misspell_text(english, seed=1)


def changed(english, lines):
    for before, after in zip(english, lines, strict=True):
        yield from (pair for pair in zip(before.split(" "), after.split(" "), strict=True) if pair[0] != pair[1])


def test_one_word_in_ten(english, made):
    words = sum(is_word(word) for line in english for word in line.split(" "))
    share = sum(1 for _ in changed(english, made[0])) / words
    assert abs(share - 0.1) < 5 * (0.1 * 0.9 / words) ** 0.5, "within five standard deviations"
    assert made[1].total() == sum(1 for _ in changed(english, made[0]))


def test_every_misspelled_word_is_one_edit_away(english, made):
    pairs = list(changed(english, made[0]))
    assert len(pairs) > 3000
    assert {distance(before, after) for before, after in pairs} == {1}
    assert all(after for _, after in pairs)


def test_the_three_operations_are_equally_likely(english, made):
    lines, operations = made
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
    line = "&quot; 12 , . – 。 a"
    made, operations = misspell_text([line] * 2000, seed=2)
    assert {after.rsplit(" ", 1)[0] for after in made} == {"&quot; 12 , . – 。"}
    assert operations["removal"] == 0, "a word of one character is not removed"
    assert operations.total() > 100


def test_draws_depend_on_the_seed_and_on_nothing_else(english):
    lines = english[:200]
    first, _ = misspell_text(lines, seed=1)
    assert misspell_text(lines, seed=1)[0] == first
    assert misspell_text(lines, seed=2)[0] != first
    same_letters = [*lines[:100], *(["".join(letters_of(lines))] * 100)]
    assert letters_of(same_letters) == letters_of(lines)
    assert misspell_text(same_letters, seed=1)[0][:100] == first[:100], "each sentence by itself"


def test_rates_of_none_and_all(english):
    assert misspell_text(english[:50], seed=1, rate=0)[0] == english[:50]
    words = [word for line in english[:50] for word in line.split(" ") if is_word(word)]
    assert len(list(changed(english[:50], misspell_text(english[:50], seed=1, rate=1)[0]))) == len(words)


def test_letters_are_the_texts_own():
    text = ["ab" * 20_000 + "é", "12 ."]
    assert letters_of(text) == ["a", "b"], "one é in forty thousand letters is none of them"
    assert letters_of(["猫 犬"]) == ["犬", "猫"]


def test_a_text_of_one_letter():
    assert misspell("a", Random(1), ["a"]) == ("aa", "insertion")


def test_the_folder(tmp_path):
    folder, output = tmp_path / "data", tmp_path / "made"
    folder.mkdir()
    for name in ("codes.en", "dict.en.txt", "train.en-de.en", "valid.en-de.en", "test.en-de.en.words"):
        (folder / name).write_text(name)
    (folder / "test.en-de.en").write_text("some words to misspell\n" * 50)
    (folder / "test.en-de.de").write_text("ein paar\n" * 50)
    found = misspell_folder(folder, output, "en")
    assert {path.name for path in output.iterdir()} == {"codes.en", "dict.en.txt", "test.en-de.en", "test.en-de.de"}
    assert (output / "test.en-de.de").read_text() == "ein paar\n" * 50
    lines = (output / "test.en-de.en").read_text().splitlines()
    assert len(lines) == 50
    assert found["words"] == 200
    assert found["misspelled"] == sum(1 for _ in changed(["some words to misspell"] * 50, lines))
