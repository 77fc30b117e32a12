"""Misspelled input (section 6.3, table 5).

Each word of the source of the test set is misspelled with a probability of 10%: a character is removed, or a random
one inserted, or put in place of another, each operation as likely as the others; so a misspelled word is at an edit
distance of exactly 1 from the word. Words are what stands between spaces and has a letter; escapes of punctuation
(&quot;) are left as they are. A word of one character is not removed. Random characters are the letters of the text
(but for those that are less than one in ten thousand of its letters). Everything is drawn from a seed, each sentence
by itself.

Then the test set is translated and scored as always: python -m experiments.analysis.misspelled RUN --folder DATA
--checkpoint FILE --references FILE --translations FOLDER --output FILE
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

from bpe_dropout.lines import read_lines

RATE = 0.1
SEED = 1
RAREST = 1e-4
OPERATIONS = ("removal", "insertion", "substitution")


def main() -> None:
    from scripts.commands import exit_on_signals
    from scripts.generate import generate, one_device
    from scripts.score import read_both, score
    from scripts.stage import write_json

    from .measurement import begin, record

    files = {
        "--references": {"type": Path, "required": True, "metavar": "FILE", "help": "the untokenized test text"},
        "--translations": {"type": Path, "required": True, "metavar": "FOLDER", "help": "where translations go"},
    }
    plan, options = begin("misspelled", __doc__, tuple(files.items()))
    exit_on_signals()
    data = options.translations / "data"
    found = misspell_folder(options.folder, data, plan.run.source)
    generate(plan, data, options.checkpoint, options.translations, one_device())
    scores = score(plan, *read_both(options.translations / "test.txt", options.references))
    result = {**scores, "misspelling": {"rate": RATE, "seed": SEED, **found}}
    write_json(options.translations / "result.json", {"run": plan.run.name, **result})
    record("misspelled", plan, options, result)
    print(f"{plan.run.name}: BLEU {scores['bleu']:.2f} on misspelled input", flush=True)


def misspell_folder(folder: Path, output: Path, source: str) -> dict[str, object]:
    """A data folder with the same test set, its source misspelled, and no other text."""
    output.mkdir(parents=True, exist_ok=True)
    found: dict[str, object] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("train.", "valid.")) or path.name.endswith(".words"):
            continue
        if path.name.startswith("test.") and path.name.endswith(f".{source}"):
            lines = read_lines(path, "text")
            made, operations = misspell_text(lines, SEED)
            (output / path.name).write_text("".join(f"{line}\n" for line in made), "utf-8")
            words = sum(is_word(word) for line in lines for word in line.split(" "))
            found = {"words": words, "misspelled": sum(operations.values()), "operations": dict(operations)}
        else:
            shutil.copyfile(path, output / path.name)
    return found


def misspell_text(lines: Iterable[str], seed: int, rate: float = RATE) -> tuple[list[str], Counter[str]]:
    """The lines with some of their words misspelled, and how often each operation was applied."""
    lines = list(lines)
    letters = letters_of(lines)
    operations: Counter[str] = Counter({operation: 0 for operation in OPERATIONS})
    made = []
    for number, line in enumerate(lines):
        random = Random(f"{seed} {number}")  # of this sentence alone
        words = line.split(" ")
        for i, word in enumerate(words):
            if is_word(word) and random.random() < rate:
                words[i], operation = misspell(word, random, letters)
                operations[operation] += 1
        made.append(" ".join(words))
    return made, operations


def is_word(word: str) -> bool:
    """
    >>> is_word("house"), is_word("1990s"), is_word("."), is_word("&quot;")
    (True, True, False, False)
    """
    return "&" not in word and any(character.isalpha() for character in word)


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


if __name__ == "__main__":
    main()
