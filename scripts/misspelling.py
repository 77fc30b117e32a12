"""Misspelled text (section 6.3), a change of a test set: see testsets.py.

Each word is misspelled with a probability of `rate`: a character is removed, or a random one inserted, or put in place
of another, each operation as likely as the others; so a misspelled word is at an edit distance of exactly 1 from the
word. A word is what is between spaces and has a letter: "house", "'s", "AT&T", "90s", but not "90" or ",". A word of
one character is not removed. Random characters are the letters of the text (except those that are less than one in ten
thousand of its letters). Everything is drawn from a seed, each sentence by itself.

Text must not have the escapes of Moses: "&quot;" would be a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

from bpe_dropout import InputError

RAREST = 1e-4
OPERATIONS = ("removal", "insertion", "substitution")


def misspell_text(lines: list[str], *, rate: float, seed: int) -> tuple[list[str], dict[str, Any]]:
    """The lines with some of their words misspelled, how many these are, and how often each operation was applied."""
    if not 0 <= rate <= 1:
        raise InputError(f"the rate of misspelled words is from 0 to 1, not {rate}")
    letters = letters_of(lines)
    operations: Counter[str] = Counter({operation: 0 for operation in OPERATIONS})
    made, count = [], 0
    for number, line in enumerate(lines):
        random = Random(f"{seed} {number}")  # of this sentence alone
        words = line.split(" ")
        count += sum(map(is_word, words))
        for i, word in enumerate(words):
            if is_word(word) and random.random() < rate:
                words[i], operation = misspell(word, random, letters)
                operations[operation] += 1
        made.append(" ".join(words))
    return made, {"words": count, "misspelled": operations.total(), "operations": dict(operations)}


def is_word(word: str) -> bool:
    """
    >>> [is_word(word) for word in ("house", "1990s", "'s", "AT&T", ".", "&", "1990")]
    [True, True, True, True, False, False, False]
    """
    return any(character.isalpha() for character in word)


def letters_of(lines: Iterable[str]) -> list[str]:
    counts = Counter(character for line in lines for character in line if character.isalpha())
    return sorted(letter for letter, count in counts.items() if count >= RAREST * counts.total())


def misspell(word: str, random: Random, letters: list[str]) -> tuple[str, str]:
    """A word at an edit distance of 1, and how it was made."""
    possible = [operation for operation in OPERATIONS if operation != "removal" or len(word) > 1]
    operation = random.choice(possible)
    if operation == "insertion":
        i = random.randrange(len(word) + 1)
        return word[:i] + random.choice(letters) + word[i:], operation
    i = random.randrange(len(word))
    if operation == "removal":
        return word[:i] + word[i + 1 :], operation
    others = [letter for letter in letters if letter != word[i]]
    if not others:  # a text of a single letter
        return word[:i] + letters[0] + word[i:], "insertion"
    return word[:i] + random.choice(others) + word[i + 1 :], operation
