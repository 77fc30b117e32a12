"""Kudo's subword regularization (2018) as a fairseq BPE, `--bpe unigram_regularization`: the paper's second baseline.

A sentencepiece unigram model for each side segments; training draws one of the l best segmentations, each weighted
by its probability to the power alpha; everything else takes the best. The unit whose l best are meant is an option:
the paper says l "for each word", sentencepiece takes whole sentences, and that is not the same noise: whoever
reports a number names the unit.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Optional

import numpy as np
from fairseq.data.encoders import register_bpe
from fairseq.dataclass import ChoiceEnum

from bpe_dropout import BoundedSampler, Dictionary, InputError, Ragged, Sampler
from bpe_dropout.lists import Outcomes

from .method import MethodConfig, SegmentationMethod
from .texts import LogProgress, Segmentations, Text

SPACE = "▁"
LEARN = "spm_train --model_type=unigram --normalization_rule_name=identity --input=TEXT --model_prefix=NAME ..."

Unit: Any = ChoiceEnum(["word", "sentence"])
Sides: Any = ChoiceEnum(["both", "source", "target"])


@dataclass
class UnigramConfig(MethodConfig):
    unigram_nbest: int = field(default=64, metadata={"help": "l: draw from so many best segmentations; 1: no sampling"})
    unigram_alpha: float = field(
        default=0.1, metadata={"help": "alpha: probabilities are taken to this power; 0 is uniform, 1 the model's own"}
    )
    unigram_unit: Unit = field(
        default="word", metadata={"help": "what the l best segmentations are of: each word, or each sentence"}
    )
    unigram_sides: Sides = field(default="both", metadata={"help": "which sides are drawn in training"})
    unigram_src_model: Optional[str] = field(
        default=None, metadata={"help": "model of the source side (default: unigram.SRC.model in the data folder)"}
    )
    unigram_tgt_model: Optional[str] = field(
        default=None, metadata={"help": "model of the target side (default: unigram.TGT.model in the data folder)"}
    )


@register_bpe("unigram_regularization", dataclass=UnigramConfig)
class UnigramRegularization(SegmentationMethod):
    name = "unigram_regularization"
    symbol = "sentencepiece"
    option = "unigram_{}_model"
    file = "unigram.{}.model"

    def __init__(self, cfg: UnigramConfig) -> None:
        super().__init__(cfg)
        if not 1 <= cfg.unigram_nbest <= 512:
            raise InputError(f"--unigram-nbest: from 1 to 512 best segmentations, not {cfg.unigram_nbest}")
        if not (cfg.unigram_alpha >= 0 and math.isfinite(cfg.unigram_alpha)):
            raise InputError(f"--unigram-alpha: a number from 0 on, not {cfg.unigram_alpha}")

    def load(self, path: Path, side: str) -> "UnigramModel":
        return UnigramModel(path, side)

    def join(self, pieces: str) -> str:
        # With --remove-bpe, fairseq has put the words together already.
        return pieces.replace(" ", "").replace(SPACE, " ").strip() if SPACE in pieces else pieces

    def text(self, path: Path, language: str, dictionary: Dictionary) -> Text:
        source = language == self.folder.source
        sampled = self.cfg.unigram_sides in ("both", "source" if source else "target")
        nbest = self.cfg.unigram_nbest if sampled else 1
        model = self.side("src" if source else "tgt")
        return UnigramText(
            path, model, dictionary, nbest, self.cfg.unigram_alpha, self.cfg.unigram_unit, self.memory, self.threads
        )

    def describe(self) -> str:
        cfg = self.cfg
        return (
            f"subword regularization of {cfg.unigram_sides} sides, l = {cfg.unigram_nbest} for each "
            f"{cfg.unigram_unit}, alpha = {cfg.unigram_alpha:g}"
        )


class UnigramModel:
    """A sentencepiece model that segments words as they are, and has a piece for what it does not know."""

    def __init__(self, path: Path, side: str) -> None:
        try:
            import sentencepiece
        except ImportError:
            raise InputError(
                "unigram models need sentencepiece, which is not installed: pip install sentencepiece"
            ) from None
        if not path.is_file():
            raise InputError(
                f"there is no {path}: the unigram model of the {'source' if side == 'src' else 'target'} side. Put it "
                f"there, or name it with --unigram-{side}-model. To learn one: {LEARN}"
            )
        self.path = path
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
            self._processor.NBestEncodeAsIds("a", 2)
        except (RuntimeError, OSError) as error:
            raise InputError(
                f"{path} is not a unigram model of sentencepiece ({error}). To learn one: {LEARN}"
            ) from None
        if self._processor.unk_id() < 0:
            raise InputError(f"{path} has no unknown piece: learn it again without --unk_id=-1")
        if "".join(self._processor.EncodeAsPieces("½ﬁ ａ")) != "▁½ﬁ▁ａ":
            raise InputError(f"{path} rewrites text before it segments it. To learn one that does not: {LEARN}")
        size = self._processor.get_piece_size()
        self.pieces = [self._processor.id_to_piece(number) for number in range(size)]
        # The score of the unknown piece is the same in all segmentations of a text, and cancels out.
        unknown = self._processor.unk_id()
        self.scores = np.array([0 if i == unknown else self._processor.get_score(i) for i in range(size)])

    def __reduce__(self) -> tuple[Any, ...]:
        return UnigramModel, (self.path, "src")

    def segment(self, words: str) -> list[str]:
        return [piece for word in words.split() for piece in self._processor.EncodeAsPieces(word)]

    def best(self, word: str) -> list[int]:
        return self._processor.EncodeAsIds(word)

    def outcomes(self, text: str, nbest: int, alpha: float) -> tuple[list[list[int]], list[float]]:
        """The best segmentations, as ids of the model, and the probability with which each is drawn."""
        listed = self._processor.NBestEncodeAsIds(text, nbest) if text else [[]]
        if len(listed) < 2:
            return listed, [1.0]
        ends = np.cumsum([0, *map(len, listed)])
        scores = np.add.reduceat(self.scores[list(itertools.chain.from_iterable(listed))], ends[:-1])
        weights = np.exp(alpha * (scores - scores.max()))
        return listed, (weights / weights.sum()).tolist()


class UnigramText(Text):
    """A text under Kudo's subword regularization."""

    def __init__(
        self,
        path: Path,
        model: UnigramModel,
        dictionary: Dictionary,
        nbest: int,
        alpha: float,
        unit: str,
        memory: int,
        threads: int,
    ) -> None:
        super().__init__(path, dictionary)
        self._model, self._nbest, self._alpha, self._unit = model, nbest, alpha, unit
        self._memory, self._threads = memory, threads
        self._ids = np.array([dictionary[piece] for piece in model.pieces])

    @property
    def draws(self) -> bool:
        return self._nbest > 1

    @property
    def draws_aside(self) -> bool:
        return False

    def plain(self) -> Segmentations:
        return Segmentations(lambda: self._plain, seed=0, epoch=0, side=0, threads=self._threads)

    def draw(self, seed: int, epoch: int, side: int) -> Segmentations:
        progress = LogProgress(f"epoch {epoch}: drawing {self.path.name}", f"{self._unit}s")

        def sampler() -> Sampler:
            return self._light.epoch(seed=seed, epoch=epoch, side=side, progress=progress)

        return Segmentations(sampler, seed=seed, epoch=epoch, side=side, threads=self._threads)

    def segment(self, line: str) -> list[str]:
        return self._model.segment(line)

    def types(self) -> Ragged:
        ids = [self._best(word) for word in self.corpus.types()]
        return Ragged(np.concatenate([*ids, np.zeros(0, np.int32)]), np.cumsum([0, *map(len, ids)]))

    def _best(self, word: str) -> np.ndarray:
        return self._ids[self._model.best(word)].astype(np.int32)

    def _outcomes(self, text: str) -> Outcomes:
        listed, probabilities = self._model.outcomes(text, self._nbest, self._alpha)
        return [self._ids[ids].tolist() for ids in listed], probabilities

    @cached_property
    def _plain(self) -> Sampler:
        return self._sampler(lambda word: ([self._best(word).tolist()], [1.0]), "word").epoch(seed=0, epoch=0)

    @cached_property
    def _light(self) -> BoundedSampler:
        return self._sampler(self._outcomes, self._unit)

    def _sampler(self, outcomes: Callable[[str], Outcomes], unit: Any) -> BoundedSampler:
        eos, memory, threads = self.dictionary.eos, self._memory, self._threads
        return BoundedSampler(self.corpus, outcomes, unit=unit, eos=eos, memory=memory, threads=threads)
