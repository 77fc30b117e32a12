"""Translates text, reading each sentence in several segmentations: python -m fairseq_plugins translate DATA --path FILE

    python -m fairseq_plugins translate DATA --path checkpoints/average.pt --beam 4 < text > translations
    python -m fairseq_plugins translate DATA --path checkpoints/average.pt --beam 4 --segmentations 16 < text

A model that was trained with BPE-dropout, or with Kudo's subword regularization, can read a sentence in any
segmentation. With --segmentations K it reads the K most probable ones, by their exact probability, or K draws; each is
translated, and the translation with the best score is taken, the log probability divided by length^lenpen (Kudo's
n-best decoding, 2018); or, with --combine average, all are read at once, and the next token's probability is the
average over them: an ensemble of one model. With one segmentation, the default, it is plain BPE (of Kudo's method the
best segmentation), and the result is that of fairseq-interactive.

All options of fairseq-interactive can be given, too. Input is one sentence per line, and so is the output.
"""

from __future__ import annotations

import copy
import logging
import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from fairseq import checkpoint_utils, options, tasks, utils
from fairseq.data import data_utils, encoders
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.sequence_generator import EnsembleModel

from bpe_dropout import InputError, MostProbable
from bpe_dropout.data.folder import DataFolder
from bpe_dropout.errors import check_number
from bpe_dropout.methods import METHODS, ROLES, Found, method_of
from bpe_dropout.methods.bpe import Bpe
from bpe_dropout.rules import Dropout, Rule, may_drop, read_dropout

from .methods import file_options
from .task import BPES, ResegmentingTask

Combine = Literal["score", "average"]
MAX_TOKENS, BUFFER = 4096, 1000  # of a batch; lines that are read before they are translated
USUAL_P = 0.1  # where the model was trained without dropout


@dataclass(frozen=True)
class Reading:
    """In which segmentations a source is read, and what is made of them."""

    count: int = 1
    combine: Combine = "score"
    drawn: bool = False
    dropout: Dropout | None = None  # None: as the model was trained
    is_words: bool = False  # the input is words of the data folder, and so is the output

    def __post_init__(self) -> None:
        if check_number("--segmentations", self.count, 1 << 16) < 1:
            raise InputError("--segmentations is 1 or more, not 0")
        if self.dropout is not None and not is_known(read_dropout(self.dropout)):
            raise InputError(
                f"--dropout {self.dropout}: there is neither an epoch here nor a text to count merges in. Take a "
                "number, or a rule such as rank:0.05..0.2 or file:PATH"
            )


@dataclass(frozen=True)
class Translation:
    text: str
    score: float  # as fairseq has it: the log probability divided by length^lenpen
    source: str  # the segmentation that it was made of; of an average, the first


NOTHING = Translation("", -math.inf, "")  # of a line that is too long


class Readings(EnsembleModel):
    """An ensemble of the same models for each of several readings of a source."""

    def __init__(self, models: Sequence[Any], count: int) -> None:
        super().__init__([*models] * count)
        self.each = len(models)

    def forward_encoder(self, net_input: dict[str, Any]) -> list[Any]:
        readings = net_input["readings"]
        return [model.encoder.forward_torchscript(readings[i // self.each]) for i, model in enumerate(self.models)]


class Translator:
    """A model, ready to translate. `arguments` are those of fairseq-interactive.

    >>> translator = Translator(["DATA", "--path", "average.pt", "--beam", "4"], Reading(count=16))
    >>> [translation.text for translation in translator(["a sentence"])]
    """

    def __init__(self, arguments: Sequence[str], reading: Reading | None = None) -> None:
        self.config = configure(arguments)
        self.reading = reading or Reading()
        utils.set_torch_seed(self.config.common.seed)
        self.task: ResegmentingTask = tasks.setup_task(self.config.task)
        if getattr(self.task, "bpe", None) is None:
            raise InputError("this command is for a --bpe of ours; with another, take fairseq-interactive")
        self.bpe = self.task._bpe
        self._check()
        self.tokenizer = encoders.build_tokenizer(self.config.tokenizer)
        self.models, self._saved = load_models(self.config, self.task, self.uses_gpu)
        self._find: Callable[[str], Found] | None = None
        self._generators: dict[int, Any] = {}
        self._longest = utils.resolve_max_positions(
            self.task.max_positions(), *(model.max_positions() for model in self.models)
        )

    def reading_as(self, reading: Reading) -> Translator:
        """The same model, which reads in another way."""
        other = copy.copy(self)
        other.reading, other._find = reading, None
        other._check()
        return other

    def _check(self) -> None:
        """An error if the method does not take an option."""
        for option, given in (("--dropout", self.reading.dropout is not None), ("--draws", self.reading.drawn)):
            if given and not isinstance(self.bpe.method, Bpe):
                raise InputError(f"{option} is for --bpe bpe_dropout, not for {self.bpe.method.bpe}")

    @property
    def dropout(self) -> Dropout:
        """What the segmentations are found or drawn with."""
        return trained_with(self._saved) if self.reading.dropout is None else self.reading.dropout

    @property
    def uses_gpu(self) -> bool:
        return torch.cuda.is_available() and not self.config.common.cpu

    def __call__(self, lines: Sequence[str], first: int = 0) -> list[Translation]:
        """The translations of some lines; `first` is the number of the first one, for draws."""
        fitting = [self._fitting(self.readings(line, number), number) for number, line in enumerate(lines, first)]
        readings = [given for given in fitting if given]
        chosen = iter(self._average(readings) if self.reading.combine == "average" else self._best(readings))
        return [self._translation(*next(chosen)) if given else NOTHING for given in fitting]

    def _fitting(self, readings: list[str], number: int) -> list[str]:
        """Those that are not too long for the model; none of a line that is to be skipped."""
        most = self._longest[0] - 1  # beside the end of the sentence
        found = [reading for reading in readings if len(reading.split()) <= most]
        if not found and not self.config.dataset.skip_invalid_size_inputs_valid_test:
            raise InputError(
                f"line {number + 1} has {len(readings[0].split())} pieces, and the model reads {most} at most: split "
                f"it into sentences; or give --skip-invalid-size-inputs-valid-test, and its translation is empty"
            )
        return found

    def readings(self, line: str, number: int = 0) -> list[str]:
        """The segmentations in which a line is read."""
        words = line if self.reading.is_words else self.bpe.prepare(self._tokenize(line))
        model = self.bpe.model("src")
        if self.reading.count == 1 and not self.reading.drawn:
            return [" ".join(model.segment(words))]
        if self.reading.drawn:
            seed, draw = self.config.common.seed, model.segmenter.segment
            drawn = range(self.reading.count)
            return [
                " ".join(draw(words, self.dropout, seed, epoch=k, sentence=number, split="whitespace")) for k in drawn
            ]
        if self._find is None:
            self._find = self.bpe.method.most_probable(model, self.reading.count, self.dropout)
        return [" ".join(pieces) for pieces, _ in self._find(words)]

    def _tokenize(self, line: str) -> str:
        return line if self.tokenizer is None else self.tokenizer.encode(line)

    def _best(self, readings: list[list[str]]) -> list[tuple[str, Any]]:
        """Of the translations of each reading, that with the best score; of equals, the first."""
        flat = [(number, reading) for number, given in enumerate(readings) for reading in given]
        found: dict[int, tuple[str, Any]] = {}
        scored = self._translate([(reading,) for _, reading in flat])
        for (number, reading), hypothesis in zip(flat, scored, strict=True):
            if number not in found or hypothesis["score"] > found[number][1]["score"]:
                found[number] = reading, hypothesis
        return [found[number] for number in range(len(readings))]

    def _average(self, readings: list[list[str]]) -> list[tuple[str, Any]]:
        """A translation of all readings at once. A short sentence may have fewer than others."""
        by_count: defaultdict[int, list[int]] = defaultdict(list)
        for number, given in enumerate(readings):
            by_count[len(given)].append(number)
        found: dict[int, tuple[str, Any]] = {}
        for numbers in by_count.values():
            for number, one in zip(numbers, self._translate([tuple(readings[n]) for n in numbers]), strict=True):
                found[number] = readings[number][0], one
        return [found[number] for number in range(len(readings))]

    def _translate(self, sources: list[tuple[str, ...]]) -> list[Any]:
        """fairseq's best hypothesis of each source; all have the same number of readings."""
        if not sources:
            return []
        count = len(sources[0])
        generator = self._generator(count)
        tokens = [self.task.get_interactive_tokens_and_lengths(list(one), str)[0] for one in zip(*sources, strict=True)]
        lengths = torch.tensor([max(len(one[i]) for one in tokens) for i in range(len(sources))])
        found: dict[int, Any] = {}
        for batch in self._batches(tokens[0], lengths, count):
            sample = {"net_input": dict(batch["net_input"])}
            numbers = batch["id"].tolist()
            if count > 1:
                sample["net_input"]["readings"] = self._collate([[one[i] for i in numbers] for one in tokens])
            if self.uses_gpu:
                sample = utils.move_to_cuda(sample)
            for number, hypotheses in zip(
                numbers, self.task.inference_step(generator, self.models, sample), strict=True
            ):
                found[number] = hypotheses[0]
        return [found[number] for number in range(len(sources))]

    def _batches(self, tokens: Any, lengths: Any, count: int) -> Iterator[dict[str, Any]]:
        options = self.config.dataset
        by_default = MAX_TOKENS if options.batch_size is None else None
        most = by_default if options.max_tokens is None else options.max_tokens
        # Each sentence is in the batch as often as it has readings.
        room = None if most is None else max(most // count, int(lengths.max()))
        yield from self.task.get_batch_iterator(
            dataset=self.task.build_dataset_for_inference(tokens, lengths.tolist()),
            max_tokens=room,
            max_sentences=options.batch_size,
            max_positions=self._longest,
            ignore_invalid_inputs=options.skip_invalid_size_inputs_valid_test,
        ).next_epoch_itr(shuffle=False)

    def _collate(self, readings: list[list[Any]]) -> list[dict[str, Any]]:
        """All readings are equally long, with padding: fairseq averages the attention to them."""
        pad = self.task.source_dictionary.pad()
        longest = max(len(tokens) for one in readings for tokens in one)
        return [
            {
                "src_tokens": data_utils.collate_tokens(one, pad, left_pad=True, pad_to_length=longest),
                "src_lengths": torch.tensor([len(tokens) for tokens in one]),
            }
            for one in readings
        ]

    def _generator(self, count: int) -> Any:
        if count not in self._generators:
            models = Readings(self.models, count) if count > 1 else self.models
            self._generators[count] = self.task.build_generator(models, self.config.generation)
        return self._generators[count]

    def _translation(self, source: str, hypothesis: Any) -> Translation:
        _, pieces, _ = utils.post_process_prediction(
            hypo_tokens=hypothesis["tokens"].int().cpu(),
            src_str=source,
            alignment=None,
            align_dict=None,
            tgt_dict=self.task.target_dictionary,
            remove_bpe=self.config.common_eval.post_process,
            extra_symbols_to_ignore={self.task.target_dictionary.eos()},
        )
        if self.reading.is_words:
            text = self.bpe.method.join(pieces)
        else:
            text = self.bpe.decode(pieces)
            text = text if self.tokenizer is None else self.tokenizer.decode(text)
        return Translation(text, float(hypothesis["score"]), source)

    @property
    def files(self) -> list[str | Path]:
        """What it reads."""
        named = [self.bpe.cfg[option] for option in file_options() & self.bpe.cfg.keys()]
        models = utils.split_paths(self.config.common_eval.path)
        return [*models, *filter(None, named), *self.bpe.folder.path.iterdir()]

    @property
    def left_plain(self) -> set[str]:
        """Words with too many segmentations, which were read as plain BPE segments them."""
        return self._find.plain if isinstance(self._find, MostProbable) else set()


def load_models(config: Any, task: Any, on_gpu: bool) -> tuple[list[Any], Any]:
    """The models of --path, ready to translate, and the options that the first was trained with."""
    models, trained = [], []
    for path in utils.split_paths(config.common_eval.path):  # of several at once, fairseq gives the options of the last
        (model,), saved = checkpoint_utils.load_model_ensemble([path], task=task)
        check_method(saved, task._bpe.method.bpe, path)
        if config.common.fp16:
            model.half()
        if on_gpu:
            model.cuda()
        model.prepare_for_inference_(config)
        models.append(model)
        trained.append(saved)
    return models, trained[0]


def configure(arguments: Sequence[str]) -> Any:
    """The configuration of fairseq-interactive."""
    parser = options.get_interactive_generation_parser()
    given = list(arguments)
    if not any(one == "--bpe" or one.startswith("--bpe=") for one in given):
        given += ["--bpe", bpe_of(*options.parse_args_and_arch(parser, given, parse_known=True))]
        parser = options.get_interactive_generation_parser()
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, given))
    if not config.common_eval.path:
        raise InputError("say which model translates: --path checkpoints/average.pt")
    for option, value in (
        ("--constraints", config.generation.constraints),
        ("--replace-unk", config.generation.replace_unk),
        ("--print-alignment", config.generation.print_alignment),
        ("--sampling", config.generation.sampling),
    ):
        if value:
            raise InputError(f"{option} is not for this command: take fairseq-interactive")
    return config


def bpe_of(known: Any, others: Sequence[str]) -> str:
    """The --bpe that is not named: the one whose file is, or that of the data folder."""
    for method in METHODS.values():
        if {method.flag_of(role) for role in ROLES} & {one.split("=")[0] for one in others}:
            return method.bpe
    source, target = (getattr(known, f"{side}_lang", None) for side in ("source", "target"))
    folder = DataFolder(utils.split_paths(known.data)[0], source, target)
    return method_of(folder.path, folder.source).bpe


def check_method(saved: Any, bpe: str, path: str) -> None:
    """An error if a model was trained with pieces of another method: dictionaries may have the same size by chance, and
    what it writes would be nonsense."""
    trained = section_of(saved).get("_name")
    if trained in BPES and trained != bpe:
        raise InputError(f"{path} was trained with --bpe {trained}, and the data folder is one for --bpe {bpe}")


def trained_with(saved: Any) -> float | Rule:
    """The p or rule of the source side that a model was trained with; the usual p if it was trained without dropout. No
    file is read because a checkpoint names it."""
    given = section_of(saved).get("bpe_dropout_src", USUAL_P)
    refused = InputError(f"the model was trained with the dropout {given}: say with --dropout which to take")
    try:
        dropout = read_dropout(str(given))
    except InputError:
        raise refused from None
    if not is_known(dropout) or (isinstance(dropout, Rule) and dropout.kind == "file"):
        raise refused
    return dropout if may_drop(dropout) else USUAL_P


def is_known(dropout: float | Rule) -> bool:
    """Whether the rate of each merge is known: that of a rule may depend on the epoch, or on a text."""
    return not isinstance(dropout, Rule) or not (dropout.schedule or dropout.needs_counts)


def section_of(saved: Any) -> Any:
    """What a checkpoint says of its --bpe."""
    found = saved.get("bpe")
    return found if hasattr(found, "get") else {}


def translate_lines(translator: Translator, lines: Iterable[str]) -> Iterator[str]:
    """The translations of lines, as many at a time as --buffer-size says."""
    size = max(translator.config.interactive.buffer_size, 0) or BUFFER
    buffer: list[str] = []
    first = 0
    for line in lines:
        buffer.append(line.strip())
        if len(buffer) == size:
            yield from (one.text for one in translator(buffer, first))
            first, buffer = first + size, []
    if buffer:
        yield from (one.text for one in translator(buffer, first))


def be_quiet() -> None:
    """What fairseq logs of each batch, and hydra's warnings of what fairseq does, are not shown."""
    logging.getLogger().setLevel("WARNING")
    warnings.simplefilter("ignore")


def translate(given: Any, arguments: Sequence[str]) -> None:
    """The command."""
    from bpe_dropout.files import open_input, open_output, write
    from bpe_dropout.lines import decode_lines

    be_quiet()
    translator = Translator(
        arguments, Reading(given.segmentations, given.combine, given.draws, given.dropout, given.words)
    )
    name = translator.config.interactive.input
    with open_input(name) as source, open_output(given.output, name, *translator.files) as out:
        lines = decode_lines(source, "standard input" if name == "-" else name)
        for text in translate_lines(translator, lines):
            write(out, f"{text}\n".encode())
    if left := translator.left_plain:
        print(
            f"{len(left)} words have too many segmentations to find the most probable, and were read as plain BPE "
            f"segments them, such as {sorted(left)[0]}",
            file=sys.stderr,
        )
