"""Corpora as data: one file each in configs/corpora, DATASET.LANGUAGE-LANGUAGE.yaml.

    title: my own text
    languages:
      en: {vocabulary: 4000}
      de: {vocabulary: 4000}
    downloads:
      mine/text.en: {local: "your own file"}
      ...
    splits:
      train: [{format: lines, en: mine/text.en, de: mine/text.de}]
      ...

A name under `downloads` is a file below data/downloads. A name under `splits` is such a file, or goes on into it as if
an archive were a folder: wit3/2015-01.tgz/2015-01/texts/en/vi/en-vi.tgz/en-vi/train.tags.en-vi.en. Vocabulary size and
p belong to a language, whichever side it is on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.errors import check_dropout

from .readers import READERS
from .settings import convert, load

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "configs"
SPLITS = ("train", "valid", "test")
TOKENIZATIONS = ("13a", "zh", "char", "intl", "ja-mecab", "ko-mecab", "none")


@dataclass(frozen=True)
class Language:
    vocabulary: int  # pieces in the vocabulary, not merges
    dropout: float = 0.1  # p in BPE-dropout
    bleu: str = "13a"  # the tokenization of SacreBLEU where this is the target
    dev_bleu: str = "words"  # dev BLEU in training counts words, or for languages without spaces characters

    def __post_init__(self) -> None:
        check_dropout(self.dropout)
        if self.vocabulary < 1:
            raise InputError(f"vocabulary is a number of pieces from 1 on, not {self.vocabulary}")
        if self.bleu not in TOKENIZATIONS:
            raise InputError(f"bleu is one of SacreBLEU's {', '.join(TOKENIZATIONS)}, not {self.bleu}")
        if self.dev_bleu not in ("words", "characters"):
            raise InputError(f"dev_bleu is words or characters, not {self.dev_bleu}")


@dataclass(frozen=True)
class Download:
    """Where a file comes from: an address, a release on PyPI, or the user."""

    url: str = ""
    pypi: str = ""  # django==5.2.19; the name of the file is the name of the wheel
    local: str = ""  # how to come by a file that cannot be downloaded
    bytes: int | None = None
    sha256: str = ""
    md5: str = ""

    def __post_init__(self) -> None:
        if bool(self.url) + bool(self.pypi) + bool(self.local) != 1:
            raise InputError("a download has one of url, pypi and local")


@dataclass(frozen=True)
class Part:
    """A part of a split: files of one format, and how many pairs they hold."""

    format: str
    files: dict[str, Any]
    pairs: int | None = None
    paper: int | None = None  # what the paper counts, where that is another number
    tokenized: bool = False  # the source has tokenized it already, as Moses does


@dataclass(frozen=True)
class Held:
    """Dev and test texts that are taken out of the training text, by a hash of the source sentence."""

    valid: int
    test: int
    seed: int = 1


@dataclass(frozen=True)
class Training:
    """What the paper has for a corpus and a model; what is not said is the model's own default."""

    batch: int | None = None  # source tokens
    updates: dict[str, dict[str, int]] = field(default_factory=dict)  # direction: method: the most there are
    interval: int | None = None  # updates from one checkpoint to the next


@dataclass(frozen=True)
class Subset:
    pairs: int
    vocabulary: int
    training: dict[str, Training] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """Systems that are compared: what one target of make runs."""

    directions: list[str]
    methods: list[str]
    model: str = "base"
    name: str = ""
    subset: str = ""
    cased: bool = False


@dataclass(frozen=True)
class Prepare:
    normalize: bool = True
    tokenize: bool = True
    lowercase: bool = True


@dataclass(frozen=True)
class Corpus:
    title: str
    languages: dict[str, Language]
    downloads: dict[str, Download]
    splits: dict[str, list[Any]]
    experiments: list[Experiment]
    licence: str = ""
    prepare: Prepare = field(default_factory=Prepare)
    held_out: Held | None = None
    kept: dict[str, int] = field(default_factory=dict)  # pairs without an empty side, as others count them
    training: dict[str, Training] = field(default_factory=dict)
    subsets: dict[str, Subset] = field(default_factory=dict)
    paper: dict[str, Any] = field(default_factory=dict)  # its row in the paper's table of datasets
    choices: list[str] = field(default_factory=list)  # what was chosen where the paper is silent, and why
    name: str = ""
    parts: dict[str, list[Part]] = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        return self.name.split(".")[0]

    @property
    def pair(self) -> tuple[str, str]:
        first, second = self.languages
        return first, second

    @property
    def directions(self) -> tuple[str, str]:
        first, second = self.pair
        return f"{first}-{second}", f"{second}-{first}"

    def preparation(self, cased: bool) -> dict[str, bool]:
        """The steps that its text goes through; cased text keeps its capitals."""
        return {**vars(self.prepare), "lowercase": self.prepare.lowercase and not cased}

    def files(self, split: str) -> list[str]:
        """The downloads that a split is read from."""
        names = [name for part in self.parts[split] for name in READERS[part.format].names(part.files)]
        return list(dict.fromkeys(self.download_of(name) for name in names))

    def download_of(self, name: str) -> str:
        """mine/archive.tgz/folder/file -> mine/archive.tgz"""
        for known in self.downloads:
            if name == known or name.startswith(known + "/"):
                return known
        raise InputError(f"{name} is not under `downloads`")


def read_corpus(path: Path) -> Corpus:
    name = path.name.removesuffix(".yaml")
    if not re.fullmatch(r"[a-z0-9]+\.[a-z]+-[a-z]+", name):
        raise InputError(f"{path}: the name of the file is DATASET.SOURCE-TARGET.yaml, such as mine.en-de.yaml")
    content = load(path)
    corpus: Corpus = convert(content, Corpus, str(path), "")
    place = f"{path}, line 1"
    if list(corpus.languages) != name.split(".")[1].split("-"):
        raise InputError(
            f"{place}: the name says {name.split('.')[1]}, and languages are {', '.join(corpus.languages)}"
        )
    wanted = SPLITS if corpus.held_out is None else ("train",)
    if sorted(corpus.splits) != sorted(wanted):
        raise InputError(f"{place}: splits are {', '.join(wanted)}, not {', '.join(corpus.splits)}")
    fixed = ("format", "pairs", "paper", "tokenized")
    parts: dict[str, list[Part]] = {}
    for split, nodes in corpus.splits.items():
        for node in nodes:
            if not isinstance(node, dict) or node.get("format") not in READERS:
                raise InputError(
                    f"{getattr(node, 'place', place)}: a part of {split} has a format, one of {', '.join(READERS)}"
                )
            values = {key: value for key, value in node.items() if key in fixed}
            files = {key: value for key, value in node.items() if key not in fixed}
            READERS[node["format"]].check(files, corpus.pair, getattr(node, "place", place))
            parts.setdefault(split, []).append(Part(**values, files=files))
    corpus = replace(corpus, name=name, parts=parts)
    try:
        for split in corpus.parts:
            corpus.files(split)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    check_experiments(corpus, place)
    return corpus


def check_experiments(corpus: Corpus, place: str) -> None:
    for experiment in corpus.experiments:
        for direction in experiment.directions:
            if direction not in corpus.directions:
                raise InputError(f"{place}: {direction} is no direction; there are {' and '.join(corpus.directions)}")
        if experiment.subset and experiment.subset not in corpus.subsets:
            raise InputError(f"{place}: {experiment.subset} is not under `subsets`")
        if not experiment.methods:
            raise InputError(f"{place}: an experiment has at least one method")


@cache
def read_corpora(configs: Path = CONFIGS) -> dict[str, Corpus]:
    """All corpora by name."""
    return {path.name.removesuffix(".yaml"): read_corpus(path) for path in sorted(configs.glob("corpora/*.yaml"))}


@cache
def read_downloads(configs: Path = CONFIGS) -> dict[str, Download]:
    """All downloads by name. Corpora that name the same one must mean the same."""
    downloads: dict[str, Download] = {}
    corpora = read_corpora(configs).values()
    for corpus in corpora:
        for name, download in corpus.downloads.items():
            if downloads.setdefault(name, download) != download:
                first = next(one.name for one in corpora if name in one.downloads)
                raise InputError(
                    f"{configs}/corpora: {first} and {corpus.name} both have the download {name}, and not the same"
                )
    return downloads
