"""The texts of the benchmarks: real text, tokenized and lowercased, and text that is made for scale, named so. What
tokenizers of Hugging Face get is real text as it is.

Real text is the training text of a corpus in configs/corpora, downloaded as the reproduction does it, or a file that
only a mirror has (DATA_MIRROR, or ../shared/data): rows on a text that is not there are left out. Text that was
prepared, merges and models are kept in data/bench.
"""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from bpe_dropout import Corpus, InputError
from bpe_dropout.data.making import prepare_text
from bpe_dropout.data.preparation import Preparation
from bpe_dropout.files import whole

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "data" / "bench"
DOWNLOADS = ROOT / "data" / "downloads"
SHARED = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Text:
    title: str
    language: str
    corpus: str = ""  # of configs/corpora
    files: tuple[str, ...] = ()  # or files of a mirror, gzipped, a sentence per line
    prepared: bool = True  # tokenized and lowercased


TEXTS = {
    "multi30k.en": Text("Multi30k (captions)", "en", "multi30k.en-de"),
    "multi30k.de": Text("Multi30k (captions)", "de", "multi30k.en-de"),
    "tatoeba.en": Text("Tatoeba (short sentences)", "en", "demo.en-fr"),
    "tatoeba.de": Text("Tatoeba (short sentences)", "de", files=("tatoeba-ende/train.de.gz",)),
    "tatoeba.ja": Text("Tatoeba (short sentences)", "ja", "tatoeba.en-ja"),
    "tatoeba.zh": Text("Tatoeba (short sentences)", "zh", files=("tatoeba-enzh/train.zh.gz",)),
    "software.en": Text("messages of software", "en", "software.en-de"),
    "software.de": Text("messages of software", "de", "software.en-de"),
    "software.ja": Text("messages of software", "ja", "software.en-ja"),
    "software.zh": Text("messages of software", "zh", "software.en-zh"),
    **{
        f"news.{language}": Text(
            "newstest 2013 and 2014 (news)",
            language,
            files=tuple(f"wmt-newstest-ende/newstest{year}.{language}.gz" for year in (2013, 2014)),
        )
        for language in ("en", "de")
    },
}
AS_IT_IS = "as-it-is."
TEXTS |= {
    AS_IT_IS + name: replace(TEXTS[name], title=f"{TEXTS[name].title}, as it is", prepared=False)
    for name in ("multi30k.en", "tatoeba.en", "software.en", "news.en")
}
BOTH = "both.ende"
CHINESE = "both.zh"
ENGLISH = AS_IT_IS + "all.en"
# Several texts, one after the other.
TOGETHER = {
    BOTH: ("Multi30k (captions)", ("multi30k.en", "multi30k.de")),
    CHINESE: ("Tatoeba and software", ("tatoeba.zh", "software.zh")),
    ENGLISH: ("all English texts of this page", tuple(name for name in TEXTS if name.startswith(AS_IT_IS))),
}


@dataclass(frozen=True)
class Made:
    """Text for scale."""

    lines: int
    types: int  # about how many
    language: str = "ende"
    of: str = BOTH


MADE = {
    "made.1000000": Made(1_000_000, 1_000_000),
    "made.4500000": Made(4_500_000, 1_000_000),
    "made.zh.200000": Made(200_000, 200_000, "zh", CHINESE),  # as much as IWSLT15 has
}


@dataclass(frozen=True)
class Facts:
    """What a text is like."""

    lines: int
    words: int
    types: int
    once: float  # the share of types that occur once

    @classmethod
    def of(cls, counts: list[int], lines: int) -> Facts:
        """
        >>> Facts.of([5, 1, 2, 1], lines=3)
        Facts(lines=3, words=9, types=4, once=0.5)
        """
        return cls(lines, sum(counts), len(counts), counts.count(1) / max(1, len(counts)))


def say(text: str) -> None:
    print(f"bench: {text}", flush=True)


def title_of(name: str) -> str:
    if name in MADE:
        return f"made for scale, {MADE[name].lines / 1e6:g} million lines"
    return TOGETHER[name][0] if name in TOGETHER else TEXTS[name].title


def facts_of(name: str, quick: bool = False) -> Facts:
    corpus = Corpus(text_path(name, quick))
    return Facts.of(corpus.counts.tolist(), len(corpus))


def text_path(name: str, quick: bool = False) -> Path:
    """The text, ready to be segmented; made when it is asked for first. With `quick`, what is made has a tenth."""
    if name in MADE:
        made, part = MADE[name], 10 if quick else 1
        return make_large(made.lines // part, made.types // part, of=made.of)
    if name in TOGETHER:
        parts = TOGETHER[name][1]
        return make(
            FOLDER / f"text.{name}",
            lambda path: path.write_bytes(b"".join(text_path(part).read_bytes() for part in parts)),
        )

    def write(path: Path) -> None:
        raw = path.with_name(f"raw.{name}")
        with raw.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(line + "\n" for line in raw_lines(TEXTS[name]))
        if not TEXTS[name].prepared:
            raw.rename(path)
            return
        prepare_text(raw, path, Preparation(TEXTS[name].language, tokenize=True, lowercase=True))
        raw.unlink()

    return make(FOLDER / f"text.{name}", write)


def raw_lines(text: Text) -> Iterator[str]:
    if not text.corpus:
        for path in [in_mirror(name) for name in text.files]:
            yield from gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")
        return
    from scripts.corpora import read_corpora
    from scripts.readers import READERS

    corpus = read_corpora()[text.corpus]
    for name in corpus.files("train"):
        fetch_once(name)
    side = corpus.pair.index(text.language)
    for part in corpus.parts["train"]:
        for pair in READERS[part.format].read(DOWNLOADS, part.files, corpus.pair):
            if pair[side]:
                yield pair[side]


def fetch_once(name: str) -> None:
    from scripts.corpora import read_downloads
    from scripts.download import fetch

    if not (DOWNLOADS / name).is_file():
        fetch(name, read_downloads()[name], DOWNLOADS / name, mirror())


def mirror() -> str | None:
    return os.environ.get("DATA_MIRROR") or (str(SHARED) if SHARED.is_dir() else None)


def in_mirror(name: str) -> Path:
    for path in (DOWNLOADS / name, *([Path(found) / name] if (found := mirror()) else ())):
        if path.is_file():
            return path
    raise InputError(f"{name} is nowhere to download: DATA_MIRROR names a folder that has it")


def make(path: Path, write: Callable[[Path], object]) -> Path:
    if not path.exists():
        say(f"making {path.relative_to(ROOT)}")
        with whole(path) as part:
            write(part)
    return path


def make_large(lines: int, types: int, seed: int = 1, of: str = BOTH) -> Path:
    """So many lines with about so many types: the real lines over and over, and now and then a word of theirs is put
    together from two. What is new in each line are long rare words."""

    def write(path: Path) -> None:
        rng = random.Random(seed)
        real = [line.split() for line in lines_of(text_path(of))]
        known = {word for line in real for word in line}
        parts = sorted(word for word in known if word.isalpha() and 3 <= len(word) <= 9)
        long_words = sum(len(word) > 4 for line in real for word in line) / len(real)
        rate = (types - len(known)) / (lines * long_words)
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for _, line in zip(range(lines), cycle(real), strict=False):
                words = [
                    rng.choice(parts) + rng.choice(parts) if len(word) > 4 and rng.random() < rate else word
                    for word in line
                ]
                file.write(" ".join(words) + "\n")

    kinds = ["made", *([of] if of != BOTH else []), str(lines), *([str(seed)] if seed != 1 else [])]
    return make(FOLDER / ".".join(kinds), write)


def lines_of(path: Path) -> list[str]:
    return path.read_bytes().decode().removesuffix("\n").split("\n")


def codes_path(name: str, merges: int) -> Path:
    """Merges of a text."""

    def write(path: Path) -> None:
        command = [sys.executable, "-m", "bpe_dropout", "learn", "-s", str(merges), "-i", text_path(name), "-o", path]
        subprocess.run(command, check=True)

    return make(FOLDER / f"codes.{name}.{merges}", write)


def tokenizer_path(name: str, merges: int) -> Path:
    """A byte-level tokenizer, as GPT-2's is, that Hugging Face's library has learned on a text."""

    def write(path: Path) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tokenizer, alphabet = Tokenizer(models.BPE()), pre_tokenizers.ByteLevel.alphabet()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        size = merges + len(alphabet)
        trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=alphabet)
        tokenizer.train([str(text_path(name))], trainer)
        if tokenizer.get_vocab_size() < size:
            raise InputError(f"{title_of(name)} has fewer than {merges} merges")
        tokenizer.save(str(path))

    return make(FOLDER / f"tokenizer.{name}.{merges}.json", write)
