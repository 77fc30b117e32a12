"""What every method of segmentation shares as a fairseq BPE: its options, the data folder, raw text in and out.

fairseq builds a BPE without telling it of the task or the data. So the options have fields named as the task's,
`data`, `source_lang` and `target_lang`: fairseq fills these in from the command line, from a checkpoint and from
`from_pretrained`, and codes are found beside the data wherever it lies today.
"""

import logging
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.dataclass import FairseqDataclass
from omegaconf import II, DictConfig

from bpe_dropout import Dictionary, InputError
from bpe_dropout.errors import check_number

from .folder import DataFolder
from .preparation import Preparation, read_preparation
from .texts import Text

logger = logging.getLogger(__name__)


@dataclass
class MethodConfig(FairseqDataclass):
    """The options that do not hang on the method. A field without help is one of the task's, and is filled in."""

    resegment_seed: Optional[int] = field(
        default=None, metadata={"help": "seed of the segmentations that are drawn (default: the training's --seed)"}
    )
    resegment_memory: int = field(
        default=256,
        metadata={"help": "megabytes for the tables of frequent words, for each side; changes the speed alone"},
    )
    resegment_threads: int = field(
        default=0, metadata={"help": "threads that segment (default: all cores, 8 at most); changes the speed alone"}
    )
    resegment_source_tokens: bool = field(
        default=False,
        metadata={"help": "--max-tokens counts source tokens, as the paper's batches do, and not the longer side's"},
    )
    resegment_max_unk: float = field(
        default=0.1,
        metadata={
            "help": "refuse to train if more than this share of the pieces of the training text, segmented without "
            "dropout, is not in the dictionary"
        },
    )
    data: Optional[str] = II("task.data")
    source_lang: Optional[str] = II("task.source_lang")
    target_lang: Optional[str] = II("task.target_lang")


class SegmentationMethod(ABC):
    """A fairseq BPE that can also segment a training text anew in every epoch."""

    name: str
    symbol: str  # fairseq's name for how its pieces are put together again, as in --remove-bpe
    option: str  # what names the file of a side
    file: str  # its name in the data folder

    def __init__(self, cfg: Any) -> None:
        self.cfg = cfg
        check_number("--resegment-memory", cfg.resegment_memory, 1 << 30)
        check_number("--resegment-threads", cfg.resegment_threads, 1025)
        # A --tokenizer of fairseq's own prepares the text already.
        parent = cfg._get_parent() if isinstance(cfg, DictConfig) else None
        self._prepares = parent is None or parent.get("tokenizer") is None
        self._preparations: dict[str, Preparation] = {}
        self._sides: dict[str, Any] = {}

    @cached_property
    def folder(self) -> DataFolder:
        if not self.cfg.data:
            raise InputError(f"--bpe {self.name} looks for its codes in the data folder, and none was named")
        first = utils.split_paths(self.cfg.data)[0]
        return DataFolder(first, self.cfg.source_lang, self.cfg.target_lang)

    @property
    def threads(self) -> int:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return self.cfg.resegment_threads or min(8, cores)

    @property
    def memory(self) -> int:
        return self.cfg.resegment_memory << 20

    @abstractmethod
    def load(self, path: Path, side: str) -> Any:
        """What segments a side (src or tgt), from its file; it has `segment(words)`."""

    def side(self, side: str) -> Any:
        """The same, found by the options or in the data folder."""
        if side not in self._sides:
            language = self.folder.source if side == "src" else self.folder.target
            given = self.cfg[self.option.format(side)]
            self._sides[side] = self.load(Path(given) if given else self.folder.path / self.file.format(language), side)
        return self._sides[side]

    def segment(self, words: str) -> list[str]:
        """The pieces of a source sentence, the best segmentation."""
        return self.side("src").segment(words)

    @abstractmethod
    def join(self, pieces: str) -> str:
        """Words from pieces, as --remove-bpe does it."""

    @abstractmethod
    def text(self, path: Path, language: str, dictionary: Dictionary) -> Text:
        """A text of the data folder, to be drawn from."""

    @abstractmethod
    def describe(self) -> str:
        """The method and its numbers, for the log."""

    def encode(self, line: str) -> str:
        """Raw source text to pieces: fairseq's interface."""
        return " ".join(self.segment(self._preparation(self.folder.source).prepare(line)))

    def decode(self, pieces: str) -> str:
        """Pieces of the target to text: fairseq's interface."""
        return self._preparation(self.folder.target).restore(self.join(pieces))

    def _preparation(self, language: str) -> Preparation:
        if language not in self._preparations:
            found = read_preparation(self.folder.path, language) if self._prepares else Preparation(language)
            self._preparations[language] = found
        return self._preparations[language]
