"""Runs and targets: what there is to do, worked out from the YAML files alone.

A run's name says all that sets it apart, and reads like a path:

    iwslt15.en-vi.bpe-dropout.base.seed1               dataset, direction, method, model, seed
    wmt14.en-fr.500k.cased.v32000.bpe.base.seed1       a subset, letters as they are, another vocabulary size
    wmt14.en-fr.500k.bpe-dropout-p30.base.seed1        p = 0.30
    tatoeba.en-ja.10k.bpe-dropout-p10-25.small.seed1   p = 0.10 on the source, 0.25 on the target

What it needs, from the text to the checkpoint, has a name of its own, so that runs share it. This module only decides:
it reads nothing but the YAML files, and writes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from bpe_dropout import InputError
from bpe_dropout.methods import ROLES, Method, find_method

from .corpora import CONFIGS, CorpusConfig, Experiment, Training, read_corpora
from .settings import Count, Positive, PositiveNumber, Share, at, convert, load, named, read_settings
from .testsets import TEST, read_testset


@dataclass(frozen=True)
class MethodSettings:
    """configs/methods: how text is segmented in training."""

    title: str
    kind: str  # a method of bpe_dropout/methods, such as bpe and unigram
    draws: list[str] = field(default_factory=list)  # the sides that training draws: src, tgt
    options: dict[str, Any] = field(default_factory=dict)  # the method's own

    def __post_init__(self) -> None:
        if not set(self.draws) <= set(ROLES):
            raise InputError(f"draws names sides, {' and '.join(ROLES)}, not {', '.join(self.draws)}")
        given = self.method.options_of(self.options, self.draws, dict.fromkeys(ROLES, 0.0))
        defaults = self.method.options()
        for name, value in given.items():
            kind = type(getattr(defaults, name))
            if not isinstance(value, (int, float) if kind is float else kind) or isinstance(value, bool):
                raise InputError(f"{name} is not {value!r}")
        self.method.check(self.method.options(**given))

    @property
    def method(self) -> Method:
        return find_method(self.kind)

    @property
    def drops(self) -> bool:
        """Whether it draws with a p, and so with the p of each language or of the run's name."""
        return self.method.takes_p and bool(self.draws)

    @property
    def has_rule(self) -> bool:
        """Whether it draws with a rule, and not with one p for all merges."""
        return self.method.takes_p and bool(self.options)

    def fairseq_options(self, p: dict[str, float]) -> dict[str, Any]:
        """The options of fairseq-train that make it this method, with the p of each side."""
        return {"bpe": self.method.bpe, **self.method.options_of(self.options, self.draws, p)}


BEAM, LENPEN = 4, 0.6  # the paper's; scripts/generate.py says of which formula
AT_THE_LIMIT = "at the limit"  # of updates: how a training stopped
OnDev = Literal["bleu", "loss"]  # measured on the dev set at each checkpoint


@dataclass(frozen=True)
class Model:
    """configs/models: the arguments of fairseq-train, and how long to train."""

    title: str
    fairseq: dict[str, Any]
    batch: Positive  # source tokens, where the corpus says nothing
    updates: Positive  # at most, where the corpus says nothing
    interval: Positive  # updates from one checkpoint, with dev BLEU, to the next
    tokens_at_once: Positive  # source tokens that one GPU holds; more are reached by accumulating gradients
    parameters: PositiveNumber  # in millions, for the disk that checkpoints take
    tokens_a_second: PositiveNumber  # source tokens, to guess how long a training takes
    usual_updates: Positive | None = None  # of a training that stops by itself, for the same guess
    stops_by: list[OnDev] = field(default_factory=lambda: ["bleu", "loss"])  # when all of these no longer improve
    patience: Count = 10  # checkpoints without a better one, at least
    patience_share: Share = 0.25  # and at least this share of all that there were
    average: Positive = 5  # checkpoints, in a row
    averages: Literal["latest", "best"] = "latest"  # of them, or those with the best mean dev BLEU
    dev_beam: Positive = 4
    threads: Positive = 8  # CPU cores of a training
    gpu: bool = True  # whether it is meant for a GPU
    memory: Positive = 16000  # megabytes

    @property
    def window(self) -> int:
        """Checkpoints in a row whose mean on the dev set counts, in stopping and in choosing the best."""
        return self.average if self.averages == "best" else 1


# What makes a model what it is. The rest says how much time and room it takes, and may change at any time.
MODEL_SETTINGS = ("fairseq", "stops_by", "patience", "patience_share", "average", "averages", "dev_beam")


@cache
def read_method(name: str, configs: Path = CONFIGS) -> MethodSettings:
    return read_settings(named(configs / "methods", name), MethodSettings)


@cache
def read_model(name: str, configs: Path = CONFIGS) -> Model:
    """A model. A file that says `of: NAME` has what it does not say from that one."""
    path = named(configs / "models", name)
    content = load(path)
    if "of" in content:
        with at(content.place_of("of")):
            base = load(named(configs / "models", str(content.pop("of"))))
            if "of" in base:
                raise InputError(f"{base.path} is itself `of` another: name a model that says all")
        convert(base, Model, base.path, "")  # what is wrong with it is said of its own lines
        for key in base:
            content.setdefault(key, base[key])
    model: Model = convert(content, Model, str(path), "")
    return model


@dataclass(frozen=True)
class Run:
    dataset: str
    source: str
    target: str
    method: str
    model: str
    seed: int = 1
    subset: str = ""
    cased: bool = False
    vocabulary: int | None = None  # other than the corpus's
    p: int | None = None  # in hundredths, other than the languages'
    target_p: int | None = None  # of the target, if that is another than the source's

    @property
    def direction(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def text_options(self) -> list[str]:
        vocabulary = [f"v{self.vocabulary}"] if self.vocabulary else []
        return [*([self.subset] if self.subset else []), *(["cased"] if self.cased else []), *vocabulary]

    @property
    def system(self) -> str:
        """The method, and its p if that is another than the languages'."""
        given = [f"{p}" for p in (self.p, self.target_p) if p is not None]
        return "-p".join([self.method, *(["-".join(given)] if given else [])])

    def p_of(self, role: str) -> float | None:
        """The p of a side that the name says, if it does."""
        p = self.p if role == ROLES[0] or self.target_p is None else self.target_p
        return None if p is None else p / 100

    @property
    def name(self) -> str:
        return ".".join([self.dataset, self.direction, *self.text_options, self.system, self.model, f"seed{self.seed}"])

    @property
    def group(self) -> str:
        """What is compared with what: the name without the method."""
        return ".".join([self.dataset, self.direction, *self.text_options, self.model, f"seed{self.seed}"])

    @classmethod
    def parse(cls, name: str) -> Run:
        """
        >>> Run.parse("wmt14.en-fr.500k.cased.bpe-dropout-p30.base.seed2").p
        30
        """
        pattern = (
            r"(?P<dataset>[a-z0-9]+)\.(?P<source>[a-z]+)-(?P<target>[a-z]+)(?:\.(?P<subset>[0-9][a-z0-9]*))?"
            r"(?P<cased>\.cased)?(?:\.v(?P<vocabulary>\d+))?\.(?P<method>[a-z-]+?)(?:-p(?P<p>\d+)(?:-(?P<target_p>\d+))?)?"
            r"\.(?P<model>[a-z0-9]+)\.seed(?P<seed>\d+)"
        )
        found = re.fullmatch(pattern, name)
        if not found:
            raise InputError(f"{name} is not the name of a run, such as iwslt15.en-vi.bpe-dropout.base.seed1")
        fields = found.groupdict()
        return cls(
            **{key: fields[key] for key in ("dataset", "source", "target", "method", "model")},
            seed=int(fields["seed"]),
            subset=fields["subset"] or "",
            cased=bool(fields["cased"]),
            vocabulary=int(fields["vocabulary"]) if fields["vocabulary"] else None,
            p=int(fields["p"]) if fields["p"] is not None else None,
            target_p=int(fields["target_p"]) if fields["target_p"] is not None else None,
        )


@dataclass(frozen=True)
class Plan:
    """A run with all its settings."""

    run: Run
    corpus: CorpusConfig
    method: MethodSettings
    model: Model
    vocabularies: dict[str, int]  # by language
    dropout: dict[str, float]  # by side
    batch: int
    updates: int
    interval: int

    @property
    def raw(self) -> str:
        """The text, in plain form: iwslt15.en-vi, wmt14.en-fr.250k."""
        return ".".join([self.corpus.name, *([self.run.subset] if self.run.subset else [])])

    @property
    def words(self) -> str:
        return self.raw + (".cased" if self.run.cased else "")

    @property
    def folder(self) -> str:
        """The data folder, for both directions: wmt14.en-fr.250k.bpe.en4000-fr4000."""
        sizes = "-".join(f"{language}{size}" for language, size in self.vocabularies.items())
        return f"{self.words}.{self.method.kind}.{sizes}"

    @property
    def preparation(self) -> dict[str, bool]:
        return self.corpus.preparation(self.run.cased)

    @property
    def seconds(self) -> float:
        """How long the most updates would take on one device, at the speed that configs/models states."""
        return self.updates * self.batch / self.model.tokens_a_second

    @property
    def usual_seconds(self) -> float:
        """How long it usually takes: a guess."""
        usual = min(self.updates, self.model.usual_updates or self.updates)
        return self.seconds * usual / self.updates

    @property
    def checkpoints(self) -> int:
        """How many a training keeps: those that it averages, when it stops, must still be there."""
        model = self.model
        wait = max(model.patience, math.ceil(model.patience_share * self.updates / self.interval))
        return model.average + 2 + (wait if model.averages == "best" else 0)

    def settings(self) -> dict[str, Any]:
        """For the record of the run: everything that was chosen."""
        return {
            "corpus": self.corpus.name,
            "subset": self.run.subset,
            "pairs asked for": self.corpus.subsets[self.run.subset].pairs if self.run.subset else None,
            "preparation": self.preparation,
            "source": self.run.source,
            "target": self.run.target,
            "method": vars(self.method),
            "vocabularies asked for": self.vocabularies,
            "dropout": self.dropout,
            "model": {name: getattr(self.model, name) for name in MODEL_SETTINGS},
            "batch of source tokens asked for": self.batch,
            "updates at most": self.updates,
            "interval": self.interval,
            "seed": self.run.seed,
        }

    def scoring(self, testset: str, configs: Path = CONFIGS) -> dict[str, Any]:
        """For the record of a result: how a test set is made, translated and scored."""
        made = read_testset(testset, configs)
        return {
            "test set": testset,
            "change": {"name": made.change, **made.settings} if made.change else None,
            "beam": BEAM,
            "lenpen": LENPEN,
            "tokens of BLEU": self.corpus.languages[self.run.target].bleu,
        }


def plan_run(run: Run, configs: Path = CONFIGS) -> Plan:
    corpus = find_corpus(run, configs)
    method, model = read_method(run.method, configs), read_model(run.model, configs)
    if run.subset and run.subset not in corpus.subsets:
        there = ", ".join(corpus.subsets) or "none"
        raise InputError(f"{corpus.name} has no subset {run.subset}; there are {there}")
    if run.p is not None and (not method.drops or max(run.p, run.target_p or 0) > 100):
        raise InputError(f"{run.name}: p is for a method with dropout, in hundredths from 0 to 100")
    subset = corpus.subsets.get(run.subset)
    vocabularies = {
        name: run.vocabulary or (subset and subset.vocabulary) or language.vocabulary
        for name, language in corpus.languages.items()
    }
    dropout = dict.fromkeys(ROLES, 0.0)
    for role, language in zip(ROLES, (run.source, run.target), strict=True):
        if method.drops and role in method.draws:
            p = run.p_of(role)
            dropout[role] = corpus.languages[language].dropout if p is None else p
    training = (subset or corpus).training.get(run.model, Training())
    updates = most_updates(training, run, model)
    interval = training.interval or model.interval
    if updates % interval:
        raise InputError(f"{run.name}: {updates} updates are not a multiple of the {interval} between checkpoints")
    return Plan(
        run,
        corpus,
        method,
        model,
        vocabularies,
        dropout,
        batch=training.batch or model.batch,
        updates=updates,
        interval=interval,
    )


def most_updates(training: Training, run: Run, model: Model) -> int:
    """The number that stands for a run; for one that the paper does not have, the largest of those nearest to it."""
    directions = training.updates
    listed = directions.get(run.direction) or {
        str(number): count for number, one in enumerate(directions.values()) for count in one.values()
    }
    return listed.get(run.method) or max(listed.values(), default=model.updates)


def find_corpus(run: Run, configs: Path) -> CorpusConfig:
    corpora = read_corpora(configs)
    for pair in (run.direction, f"{run.target}-{run.source}"):
        if f"{run.dataset}.{pair}" in corpora:
            return corpora[f"{run.dataset}.{pair}"]
    raise InputError(f"there is no corpus of {run.dataset} with {run.direction} in {configs}/corpora")


@dataclass(frozen=True)
class Group:
    """Runs that are compared with each other on a test set; they differ in their method alone."""

    runs: tuple[Run, ...]
    testset: str = TEST

    @property
    def name(self) -> str:
        return self.runs[0].group

    @property
    def systems(self) -> str:
        return "+".join(run.system for run in self.runs)


@dataclass(frozen=True)
class Target:
    """What `make NAME` does: groups of runs that are compared with each other, and measurements of runs."""

    name: str
    title: str
    groups: tuple[Group, ...]
    measures: tuple[tuple[str, Run], ...] = ()
    note: str = ""  # shown below the results
    fills: bool = False  # asks for what experiments/results does not have yet: see scripts/kept.py

    @property
    def runs(self) -> list[Run]:
        return list(dict.fromkeys(run for group in self.groups for run in group.runs))

    @property
    def runs_and_measured(self) -> list[Run]:
        return list(dict.fromkeys([*self.runs, *(run for _, run in self.measures)]))


MAIN = ("iwslt15", "iwslt17", "wmt14", "aspec")  # the paper's table of main results


def find_targets(configs: Path = CONFIGS, seed: int = 1) -> dict[str, Target]:
    """All targets: of each experiment (iwslt15-en-vi, iwslt15-en-vi-cased), of each dataset (iwslt15), and `paper`.
    What corpora whose files are wrong would add is left out."""
    targets: dict[str, Target] = {}
    for corpus in read_corpora(configs).readable.values():
        for experiment in corpus.experiments:
            for direction in experiment.directions:
                runs = tuple(runs_of(corpus, experiment, direction, seed))
                groups = tuple(Group(runs, testset) for testset in experiment.testsets)
                suffix = f"-{experiment.name}" if experiment.name else ""
                title = corpus.title + (f" ({experiment.name})" if experiment.name else "")
                name = f"{corpus.dataset}-{direction}{suffix}"
                leaf = Target(name, f"{title}, {direction}", groups, note=experiment.note)
                add(targets, leaf)
                if f"{corpus.dataset}{suffix}" != leaf.name:
                    add(
                        targets,
                        replace(leaf, name=f"{corpus.dataset}{suffix}", title=f"all of {corpus.dataset}{suffix}"),
                    )
    for corpus in read_corpora(configs).readable.values():
        for direction in corpus.directions:
            name = f"{corpus.dataset}-{direction}"
            parts = [target for target in targets.values() if target.name.startswith(name + "-")]
            if name not in targets:
                for part in parts:
                    add(targets, replace(part, name=name, title=f"{corpus.title}, {direction}: all of its parts"))
    for name in MAIN:
        if name in targets:
            add(targets, replace(targets[name], name="paper", title="the paper's twelve directions"))
    return targets


def add(targets: dict[str, Target], target: Target) -> None:
    known = targets.get(target.name)
    targets[target.name] = replace(known, groups=known.groups + target.groups) if known else target


def runs_of(corpus: CorpusConfig, experiment: Experiment, direction: str, seed: int) -> Iterator[Run]:
    source, target = direction.split("-")
    for method in experiment.methods:
        yield Run(
            corpus.dataset,
            source,
            target,
            method,
            experiment.model,
            seed,
            subset=experiment.subset,
            cased=experiment.cased,
        )


def is_part(corpus: str, target: str, corpora: list[str]) -> bool:
    """Whether a target may have runs of a corpus, by their names alone.

    >>> names = ["iwslt15.en-vi", "iwslt15.en-zh"]
    >>> [is_part("iwslt15.en-zh", target, names) for target in ("iwslt15-zh-en-cased", "iwslt15-cased", "paper")]
    [True, True, True]
    >>> [is_part("iwslt15.en-zh", target, names) for target in ("iwslt15-en-vi-cased", "wmt14")]
    [False, False]
    """
    dataset = corpus.partition(".")[0]
    if target == "paper":
        return dataset in MAIN
    if not f"{target}-".startswith(f"{dataset}-"):
        return False
    with_direction = [name for name in corpora if has_direction(name, target)]
    return corpus in with_direction or not with_direction


def has_direction(corpus: str, target: str) -> bool:
    dataset, _, pair = corpus.partition(".")
    first, _, second = pair.partition("-")
    return f"{target}-".startswith((f"{dataset}-{first}-{second}-", f"{dataset}-{second}-{first}-"))


def find_target(name: str, configs: Path = CONFIGS, seed: int = 1) -> Target:
    """A target by its name, or a single run by its own. It needs the files of its own corpora, and no others."""
    if ".seed" in name:
        run = Run.parse(name)
        plan_run(run, configs)
        return Target(name, "one run", (Group((run,)),))
    corpora = read_corpora(configs)
    for corpus, error in corpora.errors.items():
        if is_part(corpus, name, list(corpora)):
            raise InputError(error)
    targets = find_targets(configs, seed)
    if name in targets:
        return targets[name]
    import difflib

    near = difflib.get_close_matches(name, targets, n=3)
    wrong = "".join(f"\nnot read: {error}" for error in corpora.errors.values())
    meant = f"; did you mean {' or '.join(near)}?" if near else "."
    raise InputError(
        f"there is no target {name}{meant} `make list` shows the "
        f"targets of the reproduction, `make help` the others{wrong}"
    )
