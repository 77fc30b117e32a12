"""Throws random codes files, vocabularies and text at the package, for as long as asked: run by `make sanitize`.

What is malformed must be refused with an InputError; whatever is accepted must segment, and come together
again. The seed is printed, so that a failure can be had again: python tests/fuzz.py --seed N --rounds 1
"""

import argparse
import os
import random
import tempfile
import time
import warnings
from pathlib import Path

import bpe_dropout
from bpe_dropout import Corpus, Dictionary, InputError, Segmenter

ALPHABETS = ["ab", "abc</w>@", "ab\u00e9\u65e5\U0001f642", "a \n\r\t\u00a0\u3000", "".join(map(chr, range(32, 127)))]


def random_text(rng: random.Random, most: int) -> str:
    alphabet = rng.choice(ALPHABETS)
    return "".join(rng.choice(alphabet) for _ in range(rng.randrange(most)))


def random_codes(rng: random.Random) -> bytes:
    lines = [rng.choice(["#version: 0.2", "#version: 0.1", "#version: 0.2.0"])] if rng.random() < 0.8 else []
    symbols = [c for c in rng.choice(ALPHABETS) if not c.isspace()] or ["a"]
    if rng.random() < 0.8:
        symbols += [symbol + "</w>" for symbol in symbols] + ["</w>"]
    for _ in range(rng.choice([0, 3, 30, 300])):
        left, right = rng.choice(symbols), rng.choice(symbols)
        lines.append(f"{left} {right}")
        if len(left + right) < 40:
            symbols.append(left + right)
    data = ("\n".join(lines) + "\n").encode()
    return damage(rng, data) if rng.random() < 0.3 else data


def damage(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            changed[at:at] = bytes([rng.randrange(256)])
        elif kind == 1:
            del changed[at : at + rng.randrange(5)]
        else:
            changed[at : at + 1] = rng.choice([b"\n", b" ", b"\xff", b"\x00", b"</w>"])
    return bytes(changed)


def one_round(seed: int, folder: Path) -> str:
    rng = random.Random(seed)
    codes, text = folder / "codes", folder / "text"
    codes.write_bytes(random_codes(rng))
    content = "\n".join(random_text(rng, rng.choice([5, 50, 500])) for _ in range(rng.randrange(20))).encode()
    text.write_bytes(damage(rng, content) if rng.random() < 0.3 else content)
    p = rng.choice([0.0, 1e-300, 0.1, 0.5, 0.9, 1 - 1e-16, 1.0, rng.random()])
    vocabulary = {random_text(rng, 6).replace(" ", "") for _ in range(5)} if rng.random() < 0.3 else None
    glossaries = rng.choice([None, None, None, ["a"], ["b+", "<.*?>"]])
    separator = rng.choice(["@@", "@@", "@", "\uffed"])
    try:
        segmenter = Segmenter.from_codes(
            codes,
            vocabulary=vocabulary,
            glossaries=glossaries,
            separator=separator,
            merges=rng.choice([-1, 5]),
            end_of_word=None if b"</w>\n" in codes.read_bytes() else rng.choice([None, True, False]),
        )
        segmented = segmenter.stream(p, threads=rng.randrange(1, 4), memory=rng.choice([1, 1 << 20])).text(
            text.read_bytes(), seed
        )
    except InputError:
        return "refused"
    lines = text.read_bytes().decode().split("\n")
    for number, (line, out) in enumerate(zip(lines, segmented.decode().split("\n"), strict=False)):
        assert out == segmenter.process_line(line, p, seed, sentence=number)
        words = line.strip("\r\n ").split(" ")
        if not glossaries and not any(word.endswith(separator) or word.endswith("@") for word in words):
            assert segmenter.desegment(out).strip("\r ") == " ".join(filter(None, words)).strip("\r "), (line, out)
    pieces = sorted(set(segmented.decode().split()))
    dictionary = Dictionary({piece: 4 + n for n, piece in enumerate(pieces[::2])}, unk=3)
    corpus = Corpus(text)
    one = corpus.sampler(segmenter, dictionary, p, memory=0).tokens(seed=seed, epoch=1)
    two = corpus.sampler(segmenter, dictionary, p, threads=2, eos=2).tokens(seed=seed, epoch=1, threads=2)
    assert two.ids[two.ids != 2].tolist() == one.ids.tolist()
    for word in rng.sample(corpus.types(), min(3, len(corpus.counts))):
        if len(word) < 12:
            assert abs(sum(segmenter.distribution(word, p).values()) - 1) < 1e-9
    return "segmented"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    expected = os.environ.get("BPE_DROPOUT_FROM")
    if expected and not Path(bpe_dropout.__file__).is_relative_to(expected):
        raise SystemExit(f"fuzz: {bpe_dropout.__file__} is not the build in {expected}")
    warnings.simplefilter("ignore")
    end = time.monotonic() + options.seconds
    outcomes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        seed = options.seed
        while time.monotonic() < end and seed < options.seed + options.rounds:
            try:
                outcome = one_round(seed, Path(folder))
            except BaseException:
                print(f"fuzz: failed at --seed {seed}")
                raise
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            seed += 1
    print("fuzz:", ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))


if __name__ == "__main__":
    main()
