"""BPE-dropout as a fairseq BPE, `--bpe bpe_dropout`: plain BPE in the hands of fairseq, and drawn by the task.

The p of each side and the codes are options; by default the paper's p = 0.1 on both sides, and the codes of the
data folder. With p = 0 this is plain BPE, segmented on the fly.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Optional

from fairseq.data.encoders import register_bpe

from bpe_dropout import Dictionary, InputError, Ragged, Sampler, Segmenter
from bpe_dropout.dictionary import SPECIAL
from bpe_dropout.errors import check_dropout

from .method import MethodConfig, SegmentationMethod
from .texts import Segmentations, Text

SEPARATOR = "@@"


@dataclass
class BpeDropoutConfig(MethodConfig):
    bpe_dropout_src: float = field(
        default=0.1, metadata={"help": "the probability p that a merge is dropped, on the source side, in training"}
    )
    bpe_dropout_tgt: float = field(default=0.1, metadata={"help": "the same for the target side"})
    bpe_dropout_src_codes: Optional[str] = field(
        default=None, metadata={"help": "merges of the source side (default: codes.SRC in the data folder)"}
    )
    bpe_dropout_tgt_codes: Optional[str] = field(
        default=None, metadata={"help": "merges of the target side (default: codes.TGT in the data folder)"}
    )


@register_bpe("bpe_dropout", dataclass=BpeDropoutConfig)
class BpeDropout(SegmentationMethod):
    name = "bpe_dropout"
    symbol = SEPARATOR + " "
    option = "bpe_dropout_{}_codes"
    file = "codes.{}"

    def __init__(self, cfg: BpeDropoutConfig) -> None:
        super().__init__(cfg)
        for option, p in (("--bpe-dropout-src", cfg.bpe_dropout_src), ("--bpe-dropout-tgt", cfg.bpe_dropout_tgt)):
            try:
                check_dropout(p)
            except InputError as error:
                raise InputError(f"{option}: {error}") from None

    def load(self, path: Path, side: str) -> "Words":
        return Words(read_segmenter(path, side))

    def join(self, pieces: str) -> str:
        return (pieces + " ").replace(self.symbol, "").rstrip()

    def text(self, path: Path, language: str, dictionary: Dictionary) -> Text:
        side = "src" if language == self.folder.source else "tgt"
        p = self.cfg[f"bpe_dropout_{side}"]
        return BpeText(path, self.side(side).segmenter, dictionary, p, self.memory, self.threads)

    def describe(self) -> str:
        return f"BPE-dropout, p = {self.cfg.bpe_dropout_src:g} (source) and {self.cfg.bpe_dropout_tgt:g} (target)"


@dataclass(frozen=True)
class Words:
    """Plain BPE of lines whose words end where fairseq ends them."""

    segmenter: Segmenter

    def segment(self, line: str) -> list[str]:
        return self.segmenter.segment(line, split="whitespace")


class BpeText(Text):
    """A text under BPE-dropout."""

    def __init__(
        self, path: Path, segmenter: Segmenter, dictionary: Dictionary, p: float, memory: int, threads: int
    ) -> None:
        super().__init__(path, dictionary)
        self._segmenter, self._p, self._memory, self._threads = segmenter, p, memory, threads
        self._kept: Sampler | None = None  # of this text's p, from epoch to epoch

    @property
    def draws(self) -> bool:
        return self._p > 0

    @property
    def draws_aside(self) -> bool:
        return True

    def plain(self) -> Segmentations:
        # While a training draws, only lengths are asked of p = 0, so those tables are not kept beside the others.
        make = partial(self._sampler, 0.0) if self.draws else self._keep
        return Segmentations(make, seed=0, epoch=0, side=0, threads=self._threads)

    def draw(self, seed: int, epoch: int, side: int) -> Segmentations:
        return Segmentations(self._keep, seed=seed, epoch=epoch, side=side, threads=self._threads)

    def segment(self, line: str) -> list[str]:
        return Words(self._segmenter).segment(line)

    def types(self) -> Ragged:
        stream = self._segmenter.stream(dictionary=self.dictionary, threads=self._threads)
        return Ragged(*stream.ids(self.corpus.type_lines()))

    def _keep(self) -> Sampler:
        if self._kept is None:
            self._kept = self._sampler(self._p)
        return self._kept

    def _sampler(self, p: float) -> Sampler:
        return self.corpus.sampler(
            self._segmenter, self.dictionary, p, eos=self.dictionary.eos, memory=self._memory, threads=self._threads
        )


def read_segmenter(path: Path, side: str) -> Segmenter:
    """The merges of a side, or a sentence if the file is missing or something else."""
    if not path.is_file():
        raise InputError(
            f"there is no {path}: the merges of the {'source' if side == 'src' else 'target'} side. Put them there, or "
            f"name them with --bpe-dropout-{side}-codes"
        )
    with path.open("rb") as file:
        if b"\n\x05<unk>" in file.read(256):
            raise InputError(
                f"{path} is a model of sentencepiece, not a codes file of subword-nmt. Learn codes with `bpe-dropout "
                f"learn`, or train on the unigram model with --bpe unigram_regularization"
            )
    segmenter = Segmenter.from_codes(path, separator=SEPARATOR)
    version_1 = segmenter.codes.version == (0, 1)
    for number, pair in enumerate(segmenter.codes.pairs, 1 if version_1 else 2):
        made = "".join(pair)
        piece = made.removesuffix("</w>")
        if piece in SPECIAL and (made.endswith("</w>") or version_1):
            raise InputError(
                f"{path}, line {number}: this merge makes the piece {piece!r}, which fairseq takes for a symbol of its "
                f"own. Write the word differently in the text, and learn the codes again"
            )
    return segmenter
