"""Kudo's subword regularization (2018), the paper's second baseline.

A sentencepiece unigram model for each side segments; training draws one of the l best segmentations, each weighted
by its probability to the power alpha; everything else takes the best. The unit whose l best are meant is an option:
the paper says l "for each word", sentencepiece takes whole sentences, and that is not the same noise. A reported
number should name the unit.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..corpus import Ragged, Sampler
from ..data.texts import Segmentations, Text, log_progress
from ..data.vocabulary import read_corpus
from ..dictionary import SPECIAL, Dictionary
from ..errors import InputError
from ..lists import BoundedSampler, Outcomes
from ..progress import Progress
from ..rules import Dropout
from . import ROLE_NAMES, Drawing, Found, Method

SPACE = "▁"
LEARN = "spm_train --model_type=unigram --normalization_rule_name=identity --input=TEXT --model_prefix=NAME ..."
MOST = 512  # segmentations that sentencepiece lists
SENTENCES = 5_000_000  # that sentencepiece learns from, at most: it keeps them in memory


@dataclass
class UnigramOptions:
    unigram_nbest: int = field(default=64, metadata={"help": "draw from the l best segmentations; 1: no sampling"})
    unigram_alpha: float = field(
        default=0.1, metadata={"help": "alpha: probabilities are taken to this power; 0 is uniform, 1 the model's own"}
    )
    unigram_unit: Literal["word", "sentence"] = field(
        default="word", metadata={"help": "what the l best segmentations are of: each word, or each sentence"}
    )
    unigram_sides: Literal["both", "source", "target"] = field(
        default="both", metadata={"help": "which sides are drawn in training"}
    )
    unigram_src_model: str | None = field(
        default=None, metadata={"help": "model of the source side (default: unigram.SRC.model in the data folder)"}
    )
    unigram_tgt_model: str | None = field(
        default=None, metadata={"help": "model of the target side (default: unigram.TGT.model in the data folder)"}
    )


class Unigram(Method):
    name = "unigram"
    bpe = "unigram_regularization"
    symbol = "sentencepiece"
    file = "unigram.{}.model"
    given = "unigram"
    option = "unigram_{}_model"
    learned = "unigram model"
    options = UnigramOptions

    def learn(self, words: Path, vocabulary: int, output: Path, threads: int, progress: Progress) -> dict[str, int]:
        """A unigram model with so many pieces. Its text is taken as it is (no normalization, all characters), so that
        all methods see the same text."""
        sentencepiece = import_sentencepiece()
        lines, longest = 0, 0
        with words.open("rb") as file:
            for line in file:
                lines, longest = lines + 1, max(longest, len(line))
        with tempfile.TemporaryDirectory(dir=output.parent) as folder:
            prefix = Path(folder) / "unigram"
            try:
                sentencepiece.SentencePieceTrainer.train(
                    input=str(words),
                    model_prefix=str(prefix),
                    model_type="unigram",
                    vocab_size=vocabulary + 1,  # the unknown piece is one of them
                    normalization_rule_name="identity",
                    character_coverage=1.0,
                    max_sentence_length=longest + 1,
                    input_sentence_size=SENTENCES if lines > SENTENCES else 0,
                    shuffle_input_sentence=lines > SENTENCES,
                    hard_vocab_limit=False,
                    bos_id=-1,
                    eos_id=-1,
                    num_threads=threads,
                    minloglevel=1,
                )
            except RuntimeError as error:
                raise InputError(f"{words}: sentencepiece cannot learn {vocabulary} pieces of it: {error}") from None
            model = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
            os.replace(f"{prefix}.model", output)
        return {"pieces": model.get_piece_size() - 1}

    def load(self, path: Path, role: str, language: str = "", folder: Path | None = None) -> UnigramModel:
        if not path.is_file():
            raise InputError(f"{self.missing(path, role)}. To learn one: {LEARN}")
        return UnigramModel(path)

    def count(self, model: UnigramModel, text: Path, vocabulary: str) -> Counter[str]:
        """All pieces of the model, with their counts in the best segmentation of the text."""
        corpus = read_corpus(text)
        counts: Counter[str] = Counter({piece: 0 for piece in model.pieces if piece not in SPECIAL})
        for word, count in corpus.type_counts().items():
            for piece in model.segment(word):
                if piece in counts:
                    counts[piece] += count
        return counts

    def text(self, path: Path, model: UnigramModel, dictionary: Dictionary, role: str, drawing: Drawing) -> Text:
        options = drawing.options
        drawn = options.unigram_sides in ("both", "source" if role == "src" else "target")
        return UnigramText(
            path,
            model,
            dictionary,
            options.unigram_nbest if drawn else 1,
            options.unigram_alpha,
            options.unigram_unit,
            drawing.memory,
            drawing.threads,
        )

    def join(self, pieces: str) -> str:
        # With --remove-bpe, fairseq has joined the pieces already.
        return pieces.replace(" ", "").replace(SPACE, " ").strip() if SPACE in pieces else pieces

    def check(self, options: UnigramOptions) -> None:
        if not 1 <= options.unigram_nbest <= MOST:
            raise InputError(f"--unigram-nbest: from 1 to {MOST} best segmentations, not {options.unigram_nbest}")
        if not (options.unigram_alpha >= 0 and math.isfinite(options.unigram_alpha)):
            raise InputError(f"--unigram-alpha: a number from 0 on, not {options.unigram_alpha}")

    def describe(self, options: UnigramOptions) -> str:
        return (
            f"subword regularization of {options.unigram_sides} sides, l = {options.unigram_nbest} for each "
            f"{options.unigram_unit}, alpha = {options.unigram_alpha:g}"
        )

    def most_probable(self, model: UnigramModel, count: int, dropout: Dropout) -> Callable[[str], Found]:
        """Kudo's n-best: the probabilities are shares among those that are found."""
        if count > MOST:
            raise InputError(f"sentencepiece lists {MOST} segmentations at most, not {count}")

        def find(line: str) -> Found:
            listed, probabilities = model.outcomes(" ".join(line.split()), count, 1.0)
            return [([model.pieces[i] for i in ids], p) for ids, p in zip(listed, probabilities, strict=True)]

        return find

    def options_of(self, settings: Mapping[str, Any], sides: list[str], p: Mapping[str, float]) -> dict[str, Any]:
        known = {"nbest", "alpha", "unit"}
        if unknown := settings.keys() - known:
            raise InputError(f"unigram has no option {', '.join(unknown)}; there are {', '.join(sorted(known))}")
        if settings.get("unit", "word") not in ("word", "sentence"):
            raise InputError(f"unit is word or sentence, not {settings['unit']}")
        options = {f"unigram_{name}": value for name, value in settings.items()}
        if not sides:
            return {**options, "unigram_nbest": 1}
        return {**options, "unigram_sides": "both" if len(sides) == 2 else ROLE_NAMES[sides[0]]}


def import_sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise InputError(
            "unigram models need sentencepiece, which is not installed: pip install sentencepiece"
        ) from None
    return sentencepiece


class UnigramModel:
    """A sentencepiece model that segments words as they are, and has a piece for what it does not know."""

    def __init__(self, path: Path) -> None:
        sentencepiece = import_sentencepiece()
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
        return UnigramModel, (self.path,)

    def segment(self, words: str) -> list[str]:
        return [piece for word in words.split() for piece in self._processor.EncodeAsPieces(word)]

    def best(self, word: str) -> list[int]:
        ids: list[int] = self._processor.EncodeAsIds(word)
        return ids

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
        progress = log_progress(f"epoch {epoch}: drawing {self.path.name}", f"{self._unit}s")

        def sampler() -> Sampler:
            return self._bounded.epoch(seed=seed, epoch=epoch, side=side, progress=progress)

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
    def _bounded(self) -> BoundedSampler:
        return self._sampler(self._outcomes, self._unit)

    def _sampler(self, outcomes: Callable[[str], Outcomes], unit: Any) -> BoundedSampler:
        eos, memory, threads = self.dictionary.eos, self._memory, self._threads
        progress = log_progress(f"listing {self.path.name}", f"{unit}s")
        return BoundedSampler(
            self.corpus, outcomes, unit=unit, eos=eos, memory=memory, threads=threads, progress=progress
        )


METHOD = Unigram()
