"""The methods of bpe_dropout/methods as fairseq BPEs: `--bpe bpe_dropout`, `--bpe unigram_regularization`.

As a fairseq BPE, a method segments plainly, for validation and translation; it is the task that draws with it.

fairseq builds a BPE without telling it of the task or the data. So the options have fields named as the task's,
`data`, `source_lang` and `target_lang`: fairseq fills these in from the command line, from a checkpoint and from
`from_pretrained`, and codes are found beside the data, wherever that is.
"""

import dataclasses
import types
import typing
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Optional

from fairseq import utils
from fairseq.data.encoders import register_bpe
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II, DictConfig

from bpe_dropout import Dictionary, InputError
from bpe_dropout.cores import count_cores
from bpe_dropout.data.folder import DataFolder
from bpe_dropout.data.preparation import Preparation, read_preparation
from bpe_dropout.data.texts import Text
from bpe_dropout.errors import check_number
from bpe_dropout.methods import METHODS, ROLES, Drawing, Method

OF_CHECKPOINT = "named by a checkpoint: "  # is put before a file that a checkpoint names, and not the user


def of_task(option: str) -> Any:
    """The task's option of that name, if it has one: language_modeling has no source_lang."""
    return II(f"oc.select:task.{option},null")


def file_options() -> set[str]:
    """The options that name files, of all methods."""
    return {method.option.format(role) for method in METHODS.values() for role in ROLES}


@dataclasses.dataclass
class MethodConfig(FairseqDataclass):
    """The options that do not depend on the method. A field without help is one of the task's, and is filled in."""

    resegment_seed: Optional[int] = dataclasses.field(
        default=None, metadata={"help": "seed of the segmentations that are drawn (default: the training's --seed)"}
    )
    resegment_memory: int = dataclasses.field(
        default=256,
        metadata={"help": "megabytes for the tables of frequent words, for each side; changes the speed alone"},
    )
    resegment_threads: int = dataclasses.field(
        default=0, metadata={"help": "threads that segment (default: all cores, 8 at most); changes the speed alone"}
    )
    resegment_source_tokens: bool = dataclasses.field(
        default=False,
        metadata={"help": "--max-tokens counts source tokens, as the paper's batches do, and not the longer side's"},
    )
    resegment_max_unk: float = dataclasses.field(
        default=0.1,
        metadata={
            "help": "refuse to train if more than this share of the pieces of the training text, segmented without "
            "dropout, is not in the dictionary"
        },
    )
    data: Optional[str] = of_task("data")
    source_lang: Optional[str] = of_task("source_lang")
    target_lang: Optional[str] = of_task("target_lang")


class SegmentingBpe:
    """A fairseq BPE that can also segment a training text anew in every epoch."""

    method: ClassVar[Method]

    def __init__(self, cfg: Any) -> None:
        self.cfg = cfg
        check_number("--resegment-memory", cfg.resegment_memory, 1 << 30)
        check_number("--resegment-threads", cfg.resegment_threads, 1025)
        self.method.check(cfg)
        # A --tokenizer of fairseq's own prepares the text already.
        parent = cfg._get_parent() if isinstance(cfg, DictConfig) else None
        self._prepares = parent is None or parent.get("tokenizer") is None
        self._preparations: dict[str, Preparation] = {}
        self._models: dict[str, Any] = {}

    @cached_property
    def folder(self) -> DataFolder:
        if not self.cfg.data:
            raise InputError(f"--bpe {self.method.bpe} looks for its codes in the data folder, but none was named")
        first = utils.split_paths(self.cfg.data)[0]
        return DataFolder(first, self.cfg.source_lang, self.cfg.target_lang)

    @property
    def drawing(self) -> Drawing:
        threads = self.cfg.resegment_threads or min(8, count_cores())
        return Drawing(self.cfg, self.cfg.resegment_memory << 20, threads)

    def model(self, role: str) -> Any:
        """What segments the source (src) or the target (tgt), found by the options or in the data folder."""
        if role not in self._models:
            folder = self.folder
            language = folder.source if role == "src" else folder.target
            option = self.method.option.format(role)
            named = self.cfg[option]
            path = self._follow(option, named) if named else self.method.file_of(folder.path, language)
            self._models[role] = self.method.load(path, role, language, folder.path)
        return self._models[role]

    def _follow(self, option: str, named: str) -> Path:
        """The file that an option names: any file if the user names it, one of the data folder if a checkpoint does."""
        path = Path(named.removeprefix(OF_CHECKPOINT))
        if named.startswith(OF_CHECKPOINT) and not path.resolve().is_relative_to(self.folder.path.resolve()):
            raise InputError(
                f"the checkpoint names the file {path}, which is not in the data folder {self.folder.path}: it is not "
                f"read. If it is the right one, name it yourself: {option}={str(path)!r}, among the arguments of "
                f"from_pretrained, or --{option.replace('_', '-')} {path}"
            )
        return path

    def text(self, path: Path, language: str, dictionary: Dictionary) -> Text:
        """A text of the data folder, to be drawn from."""
        role = "src" if language == self.folder.source else "tgt"
        return self.method.text(path, self.model(role), dictionary, role, self.drawing)

    def describe(self) -> str:
        """The method and its numbers, for the log."""
        return self.method.describe(self.cfg)

    def encode(self, line: str) -> str:
        """Raw source text to pieces: fairseq's interface."""
        return " ".join(self.model("src").segment(self.prepare(line)))

    def prepare(self, line: str) -> str:
        """Raw source text to words."""
        return self._preparation(self.folder.source).prepare(line)

    def decode(self, pieces: str) -> str:
        """Pieces of the target to text: fairseq's interface."""
        return self._preparation(self.folder.target).restore(self.method.join(pieces))

    def prepares(self, language: str) -> bool:
        """Whether the words of a language are detokenized."""
        return self._preparation(language).tokenize

    def _preparation(self, language: str) -> Preparation:
        if language not in self._preparations:
            found = read_preparation(self.folder.path, language) if self._prepares else Preparation(language)
            self._preparations[language] = found
        return self._preparations[language]


def fairseq_type(kind: Any) -> Any:
    """A type as fairseq's command line reads it: choices are an enumeration, and what may be None is Optional."""
    if typing.get_origin(kind) is typing.Literal:
        return ChoiceEnum(list(typing.get_args(kind)))
    if isinstance(kind, types.UnionType):
        return Optional[typing.get_args(kind)[0]]
    return kind


def register(method: Method) -> None:
    """A method as a fairseq BPE, whose options are the command line's."""
    hints = typing.get_type_hints(method.options)
    fields = [
        (one.name, fairseq_type(hints[one.name]), dataclasses.field(default=one.default, metadata=one.metadata))
        for one in dataclasses.fields(method.options)
    ]
    name = "".join(part.title() for part in method.bpe.split("_"))
    config = dataclasses.make_dataclass(f"{name}Config", fields, bases=(MethodConfig,))
    bpe = type(name, (SegmentingBpe,), {"method": method})
    for made in (config, bpe):  # named here, where processes that fairseq starts look for them
        made.__module__ = __name__
        globals()[made.__name__] = made
    register_bpe(method.bpe, dataclass=config)(bpe)


for one in METHODS.values():
    register(one)
