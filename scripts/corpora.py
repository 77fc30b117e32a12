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

A name under `downloads` is a file below data/downloads. A name under `splits` is such a file, or a path inside it as if
an archive were a folder: wit3/2015-01.tgz/2015-01/texts/en/vi/en-vi.tgz/en-vi/train.tags.en-vi.en. Vocabulary size and
p belong to a language, whichever side it is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.errors import check_dropout

from .readers import READERS
from .settings import Node, Positive, Share, at, convert, load, named

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "configs"
NAME = re.compile(r"[a-z0-9]+\.[a-z]+-[a-z]+")
SPLITS = ("train", "valid", "test")
PART_SETTINGS = ("format", "pairs", "paper", "tokenized", "shortest")
TOKENIZATIONS = ("13a", "zh", "char", "intl", "ja-mecab", "ko-mecab", "none")


@dataclass(frozen=True)
class Language:
    vocabulary: Positive  # pieces in the vocabulary, not merges
    dropout: float = 0.1  # p in BPE-dropout
    bleu: str = "13a"  # the tokenization of SacreBLEU where this is the target
    dev_bleu: str = "words"  # dev BLEU in training counts words, or for languages without spaces characters

    def __post_init__(self) -> None:
        check_dropout(self.dropout)
        if self.bleu not in TOKENIZATIONS:
            raise InputError(f"bleu is one of SacreBLEU's {', '.join(TOKENIZATIONS)}, not {self.bleu}")
        if self.dev_bleu not in ("words", "characters"):
            raise InputError(f"dev_bleu is words or characters, not {self.dev_bleu}")


@dataclass(frozen=True)
class Download:
    """Where a file comes from: an address, a release on PyPI, or the user."""

    url: str = ""
    pypi: str = ""  # django==5.2.19; the name of the file is the name of the wheel
    local: str = ""  # how to get a file that cannot be downloaded
    bytes: Positive | None = None
    sha256: str = ""
    md5: str = ""

    def __post_init__(self) -> None:
        if bool(self.url) + bool(self.pypi) + bool(self.local) != 1:
            raise InputError("a download has one of url, pypi and local")
        for name, digits in (("sha256", 64), ("md5", 32)):
            if not re.fullmatch(f"([0-9a-f]{{{digits}}})?", getattr(self, name)):
                raise InputError(f"{name} has {digits} digits, 0 to 9 and a to f; this is {getattr(self, name)!r}")


@dataclass(frozen=True)
class SourceFiles:
    """A part of a split: files of one format, and how many pairs they hold."""

    format: str
    files: dict[str, Any]
    pairs: Positive | None = None
    paper: Positive | None = None  # what the paper counts, where that is another number
    tokenized: bool = False  # the source has tokenized it, as Moses does: it is detokenized when it is read
    shortest: Positive = 1  # in words: pairs with a shorter side are left out


@dataclass(frozen=True)
class Held:
    """Dev and test texts that are taken out of the training text, by a hash of the source sentence."""

    valid: Positive
    test: Positive
    seed: int = 1
    overlap: Share | None = None  # training sentences that share so much with one of these are left out


@dataclass(frozen=True)
class Training:
    """What the paper has for a corpus and a model; what is not said is the model's own default."""

    batch: Positive | None = None  # source tokens
    updates: dict[str, dict[str, Positive]] = field(default_factory=dict)  # direction: method: the most there are
    interval: Positive | None = None  # updates from one checkpoint to the next


@dataclass(frozen=True)
class Subset:
    pairs: Positive
    vocabulary: Positive | None = None  # of both languages; None: their own
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
    testsets: list[str] = field(default_factory=lambda: ["test"])  # what they are compared on, of configs/testsets
    note: str = ""  # what to read from the result: shown below it


@dataclass(frozen=True)
class Prepare:
    """What is done to all text. Punctuation is not normalized: references are not, and a system that never sees „ or –
    could not write them (the references of newstest2014, normalized, score 96.4 BLEU against themselves in German)."""

    normalize: bool = False
    tokenize: bool = True
    lowercase: bool = True


@dataclass(frozen=True)
class CorpusConfig:
    """What a file of configs/corpora says. The text itself, loaded to be segmented, is bpe_dropout.Corpus."""

    title: str
    languages: dict[str, Language]
    downloads: dict[str, Download]
    splits: dict[str, list[Any]]
    experiments: list[Experiment]
    licence: str = ""
    prepare: Prepare = field(default_factory=Prepare)
    held_out: Held | None = None
    kept: dict[str, Positive | str] = field(default_factory=dict)  # pairs without an empty side, as others count them
    training: dict[str, Training] = field(default_factory=dict)
    subsets: dict[str, Subset] = field(default_factory=dict)
    paper: dict[str, Positive | str] = field(default_factory=dict)  # its row in the paper's table of datasets
    choices: list[str] = field(default_factory=list)  # what was chosen where the paper is silent, and why
    name: str = ""
    parts: dict[str, list[SourceFiles]] = field(default_factory=dict)

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


def read_corpus(path: Path) -> CorpusConfig:
    """A file of configs/corpora. The methods and models that it names are those of the folders beside it."""
    name = path.name.removesuffix(".yaml")
    if not NAME.fullmatch(name):
        raise InputError(f"{path}: the name of the file is DATASET.SOURCE-TARGET.yaml, such as mine.en-de.yaml")
    content = load(path)
    corpus: CorpusConfig = convert(content, CorpusConfig, str(path), "")
    with at(content.place_of("downloads")):
        for file in corpus.downloads:
            if file.startswith("/") or ".." in file.split("/"):
                raise InputError(f"the download {file} is not a file below data/downloads")
    with at(content.place_of("languages")):
        if list(corpus.languages) != name.split(".")[1].split("-"):
            raise InputError(f"the name says {name.split('.')[1]}, and languages are {', '.join(corpus.languages)}")
    corpus = replace(corpus, name=name, parts=read_parts(content, corpus))
    check_counts(content, corpus)
    check_experiments(content, corpus, path.parents[1])
    for holder in (content, *content.get("subsets", {}).values()):
        check_training(holder.get("training", Node()), corpus, path.parents[1])
    return corpus


def read_parts(content: Node, corpus: CorpusConfig) -> dict[str, list[SourceFiles]]:
    """What `splits` says. A part's keys are its settings; the others are the files, as its format wants them."""
    wanted = SPLITS if corpus.held_out is None else ("train",)
    with at(content.place_of("splits")):
        if sorted(corpus.splits) != sorted(wanted):
            raise InputError(f"splits are {', '.join(wanted)}, not {', '.join(corpus.splits)}")
    parts: dict[str, list[SourceFiles]] = {}
    for split, nodes in corpus.splits.items():
        place = content["splits"].place_of(split)
        for node in nodes:
            if not isinstance(node, Node) or node.get("format") not in READERS:
                raise InputError(
                    f"{getattr(node, 'place', place)}: a part of {split} has a format, one of {', '.join(READERS)}"
                )
            files = node.only(key for key in node if key not in PART_SETTINGS)
            settings = node.only(key for key in node if key in PART_SETTINGS)
            settings["files"] = files
            part: SourceFiles = convert(settings, SourceFiles, node.place, split)
            READERS[part.format].check(files, corpus.pair, node.place)
            with at(node.place):
                for file in READERS[part.format].names(files):
                    corpus.download_of(file)
            parts.setdefault(split, []).append(part)
    return parts


def check_counts(content: Node, corpus: CorpusConfig) -> None:
    for name, counts in (("kept", corpus.kept), ("paper", corpus.paper)):
        for split, count in counts.items():
            with at(content[name].place_of(split)):
                if split not in SPLITS:
                    raise InputError(f"{name} counts {', '.join(SPLITS)}, not {split}")
                bounds(count)


def check_experiments(content: Node, corpus: CorpusConfig, configs: Path) -> None:
    for name in corpus.subsets:
        with at(content["subsets"].place_of(name)):
            if not re.fullmatch("[0-9][a-z0-9]*", name):
                raise InputError(f"the name of a subset begins with a digit, such as 250k, and {name} does not")
    for experiment, node in zip(corpus.experiments, content["experiments"], strict=True):
        with at(node.place_of("directions")):
            check_directions(experiment.directions, corpus)
            if not experiment.directions:
                raise InputError("an experiment has at least one direction")
        with at(node.place_of("methods")):
            for method in experiment.methods:
                named(configs / "methods", method)
            if not experiment.methods:
                raise InputError("an experiment has at least one method")
        with at(node.place_of("model")):
            named(configs / "models", experiment.model)
        with at(node.place_of("testsets")):
            for testset in node.get("testsets", ()):
                named(configs / "testsets", testset)
            if not experiment.testsets or len(set(experiment.testsets)) < len(experiment.testsets):
                raise InputError("an experiment has at least one test set, and none twice")
        with at(node.place_of("subset")):
            if experiment.subset and experiment.subset not in corpus.subsets:
                raise InputError(f"{experiment.subset} is not under `subsets`")
        with at(node.place_of("name")):
            if not re.fullmatch("[a-z0-9-]*", experiment.name):
                raise InputError(f"the name of an experiment has letters from a to z, digits and -: {experiment.name}")


def check_training(training: Node, corpus: CorpusConfig, configs: Path) -> None:
    """What is under `training` names models, and under `updates` directions and methods."""
    for model, node in training.items():
        with at(training.place_of(model)):
            named(configs / "models", model)
        for direction, methods in node.get("updates", Node()).items():
            with at(node["updates"].place_of(direction)):
                check_directions([direction], corpus)
            for method in methods:
                with at(methods.place_of(method)):
                    named(configs / "methods", method)


def check_directions(directions: list[str], corpus: CorpusConfig) -> None:
    for direction in directions:
        if direction not in corpus.directions:
            raise InputError(f"{direction} is not a direction; there are {' and '.join(corpus.directions)}")


def read_count(text: str) -> float:
    """
    >>> read_count("133k"), read_count("4.5M"), read_count("1553")
    (133000.0, 4500000.0, 1553.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", text)
    if not found:
        raise InputError(f"a count is a number, such as 1553, 133k or 4.5M, not {text!r}")
    return float(found[1]) * {"": 1, "k": 1e3, "m": 1e6}[found[2].lower()]


def bounds(stated: int | str) -> tuple[int, int]:
    """The smallest and the largest number of pairs that agree with a published count. Readers differ in what they take
    for an empty line, so one in a thousand may differ; a round number may have been rounded or, as in the paper's
    table, cut off.

    >>> bounds(3000), bounds("209k"), bounds("4.5M")
    ((2997, 3003), (208500, 209999), (4450000, 4599999))
    """
    if isinstance(stated, int):
        return stated - stated // 1000, stated + stated // 1000
    count = read_count(stated)
    digits = len(stated.rstrip("kKmM").partition(".")[2])
    step = read_count("1" + stated.lstrip("0123456789.")) / 10**digits
    return round(count - step / 2), round(count + step) - 1


class Corpora(Mapping[str, CorpusConfig]):
    """All corpora of a folder by name. An error in a file is reported when its corpus is asked for, so it does not
    affect the others; corpora whose downloads have the same name and are not the same count as wrong."""

    def __init__(self, configs: Path) -> None:
        self.readable: dict[str, CorpusConfig] = {}
        self.errors: dict[str, str] = {}
        for path in sorted(configs.glob("corpora/*.yaml")):
            try:
                self.readable[path.name.removesuffix(".yaml")] = read_corpus(path)
            except InputError as error:
                self.errors[path.name.removesuffix(".yaml")] = str(error)
        self.errors |= find_conflicts(self.readable, configs)
        self.readable = {name: one for name, one in self.readable.items() if name not in self.errors}

    def __getitem__(self, name: str) -> CorpusConfig:
        if name in self.errors:
            raise InputError(self.errors[name])
        return self.readable[name]

    def __contains__(self, name: object) -> bool:
        return name in self.readable or name in self.errors

    def __iter__(self) -> Iterator[str]:
        return iter(sorted([*self.readable, *self.errors]))

    def __len__(self) -> int:
        return len(self.readable) + len(self.errors)


def find_conflicts(corpora: dict[str, CorpusConfig], configs: Path) -> dict[str, str]:
    """Corpora that name the same download must mean the same; those that do not, with what is wrong."""
    found: dict[str, str] = {}
    owners: dict[str, list[CorpusConfig]] = {}
    for corpus in corpora.values():
        for name in corpus.downloads:
            owners.setdefault(name, []).append(corpus)
    for name, sharing in owners.items():
        for other in sharing[1:]:
            if other.downloads[name] != sharing[0].downloads[name]:
                pair = f"{sharing[0].name} and {other.name}"
                sentence = f"{configs}/corpora: {pair} both have the download {name}, and not the same"
                found |= {sharing[0].name: sentence, other.name: sentence}
    return found


@cache
def read_corpora(configs: Path = CONFIGS) -> Corpora:
    return Corpora(configs)


@cache
def read_downloads(configs: Path = CONFIGS) -> dict[str, Download]:
    """All downloads by name, of the corpora that can be read."""
    corpora = read_corpora(configs).readable.values()
    return {name: download for corpus in corpora for name, download in corpus.downloads.items()}
