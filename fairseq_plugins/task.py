"""fairseq's translation task, segmenting as it reads: the rule "drawn in training, plain everywhere else" is here.

Importing this puts the task in the place of fairseq's own `translation`, so that `fairseq-train DATA --bpe
bpe_dropout` is all it takes. With any other --bpe every method below is fairseq's. `--task translation_bpe_dropout`
names it outright, and then wants one of our --bpe.

fairseq hands a task its own options only. But that node of the configuration knows its parent, and there the BPE is.
"""

import importlib.util
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary as FairseqDictionary
from fairseq.data import encoders
from fairseq.logging import metrics
from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import DictConfig, open_dict

from bpe_dropout import Dictionary, InputError

from .dataset import Batching, SegmentedPairs, Side
from .folder import DataFolder
from .method import SegmentationMethod
from .texts import Text

logger = logging.getLogger(__name__)

METHODS = ("bpe_dropout", "unigram_regularization")
OURS = f"--bpe {' or --bpe '.join(METHODS)}"


class ResegmentingTask(TranslationTask):
    """Translation from words: with one of our --bpe, segmented anew in every epoch of training."""

    needs_method = False

    def __init__(self, cfg: Any, src_dict: FairseqDictionary, tgt_dict: FairseqDictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.method: SegmentationMethod | None = None
        self.dictionaries: dict[str, Dictionary] = {}
        self.seed = 1
        self._training: tuple[SegmentedPairs, Any] | None = None

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "ResegmentingTask":
        method = build_method(cfg)
        if method is None:
            if cls.needs_method:
                raise InputError(f"this task segments its text itself: say how with {OURS}")
            return super().setup_task(cfg, **kwargs)
        refuse_options(cfg)
        folder = method.folder
        cfg.source_lang, cfg.target_lang = folder.source, folder.target
        dictionaries = {
            language: Dictionary.load(folder.dictionary(language)) for language in (folder.source, folder.target)
        }
        if cfg.eval_bleu and cfg.eval_bleu_remove_bpe is None:
            cfg.eval_bleu_remove_bpe = method.symbol
        task = super().setup_task(cfg, **kwargs)
        task.method, task.dictionaries = method, dictionaries
        task.seed = method.cfg.resegment_seed if method.cfg.resegment_seed is not None else training_seed(cfg)
        load_on_all_ranks(cfg)
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        if self.method is None:
            try:
                return super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
            except FileNotFoundError as error:
                raise self._unsegmented(split) or error from None
        paths = utils.split_paths(self.cfg.data)
        if split != self.cfg.train_subset:
            paths = paths[:1]
        folder = DataFolder(paths[(epoch - 1) % len(paths)], self.cfg.source_lang, self.cfg.target_lang)
        parts = folder.parts(split) if combine else [split]
        source = Side(self._texts(folder, parts or [split], folder.source), 0, self._longest_source())
        target = None
        if split == self.cfg.train_subset or folder.has_text(split, folder.target):
            target = Side(self._texts(folder, parts or [split], folder.target), 1)
            check_pairs(source, target)
        for side in (source, target):
            if side is not None:
                self._check_unknown(split, side)
        self.datasets[split] = SegmentedPairs(source, target, self.src_dict, self.tgt_dict, self._batching(split))
        logger.info(f"{folder.path} {split} {folder.source}-{folder.target} {len(source)} examples, as words")

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """Only the trainer, and only for its training batches, passes update_epoch_batch_itr: these are drawn."""
        if not (isinstance(dataset, SegmentedPairs) and "update_epoch_batch_itr" in kwargs):
            if isinstance(dataset, SegmentedPairs) and "skip_remainder_batch" not in kwargs:
                # Not the trainer, so translations are wanted. fairseq leaves out the last sentences if their number is
                # not the multiple that GPUs like: here none is lost.
                kwargs["required_batch_size_multiple"] = 1
            return super().get_batch_iterator(dataset, *args, **kwargs)
        drawn = self._drawn(dataset)
        # Without dropout fairseq keeps the batches of the first epoch. So that a restart has the same ones, they are
        # put in that epoch's order whenever they are made.
        kept = not kwargs["update_epoch_batch_itr"] and not kwargs.get("disable_iterator_cache", False)
        drawn.order_seed = kwargs["seed"] + 1 if kept and not drawn.draws else None
        iterator = super().get_batch_iterator(drawn, *args, **kwargs)
        if drawn.draws:
            # It serves one epoch. Workers that outlive it end when Python happens to collect them, which takes 5 s.
            iterator.persistent_workers = False
        return iterator

    def begin_epoch(self, epoch: int, model: Any) -> None:
        super().begin_epoch(epoch, model)
        if self._training is not None:
            drawn = self._training[1]
            metrics.log_scalar("skipped", drawn.skipped, priority=900, round=0)
            logger.info(
                f"epoch {epoch}: {self._method.describe()}, seed {self.seed}; "
                f"{drawn.skipped} of {len(drawn)} pairs are skipped for their length"
            )
            if not self.has_sharded_data(self.cfg.train_subset):  # else the next epoch is of another text
                drawn.draw_ahead()

    def train_step(self, sample: Any, *args: Any, **kwargs: Any) -> Any:
        loss, size, logged = super().train_step(sample, *args, **kwargs)
        ignored = kwargs.get("ignore_grad", args[4] if len(args) > 4 else False)
        logged |= {name: 0 if ignored else count for name, count in sample.get("pieces", {}).items()}
        return loss, size, logged

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        for side in ("src", "tgt"):
            counts = [f"_{side}_{what}" for what in ("pieces", "plain", "unk")]
            if not all(name in logged for logged in logging_outputs for name in counts):
                continue
            for name in counts:
                metrics.log_scalar(name, sum(int(logged[name]) for logged in logging_outputs))
            pieces, plain, unknown = counts
            metrics.log_derived(f"{side}_ratio", ratio_of(pieces, plain, digits=4), priority=910)
            metrics.log_derived(f"{side}_unk", ratio_of(unknown, pieces, digits=6), priority=920)

    @property
    def _method(self) -> SegmentationMethod:
        assert self.method is not None
        return self.method

    def _drawn(self, plain: SegmentedPairs) -> Any:
        if self._training is None or self._training[0] is not plain:
            self._training = (plain, plain.drawn(self.seed))
        return self._training[1]

    def _texts(self, folder: DataFolder, parts: list[str], language: str) -> list[Text]:
        """The texts of a split. As in fairseq, the first is taken several times only if there are others."""
        texts = [self._text(folder.text(part, language), language) for part in parts]
        return texts[:1] * (max(1, self.cfg.upsample_primary) - 1) + texts if len(texts) > 1 else texts

    def _text(self, path: Path, language: str) -> Text:
        return self._method.text(path, language, self.dictionaries[language])

    def _batching(self, split: str) -> Batching:
        return Batching(
            left_pad_source=self.cfg.left_pad_source,
            left_pad_target=self.cfg.left_pad_target,
            shuffle=split != "test",
            pad_to_multiple=self.cfg.required_seq_len_multiple,
            source_tokens=self._method.cfg.resegment_source_tokens,
        )

    def _check_unknown(self, split: str, side: Side) -> None:
        """A dictionary of other codes gives mostly unknown pieces: better said now than seen in the loss."""
        for text in dict.fromkeys(side.texts):
            share, word = text.unknown()
            if share > 0.01:
                language = (self.cfg.source_lang, self.cfg.target_lang)[side.side]
                sentence = (
                    f"{share:.1%} of the pieces of {text.path}, segmented without dropout, are not in "
                    f"dict.{language}.txt; the most frequent such word is {word!r}, which becomes "
                    f"{' '.join(text.segment(word))}"
                )
                if share > self._method.cfg.resegment_max_unk and split == self.cfg.train_subset:
                    raise InputError(
                        f"{sentence}. Codes and dictionary do not fit: make the dictionary anew (python -m "
                        f"fairseq_plugins dictionary --help), or allow it with --resegment-max-unk"
                    )
                logger.warning(sentence)

    def _longest_source(self) -> int | None:
        return self.cfg.max_source_positions if self.cfg.truncate_source else None

    def _unsegmented(self, split: str) -> InputError | None:
        """What to say where fairseq's own task finds nothing because the folder is one of ours."""
        path = Path(utils.split_paths(self.cfg.data)[0])
        words = path / f"{split}.{self.cfg.source_lang}-{self.cfg.target_lang}.{self.cfg.source_lang}"
        if not words.is_file():
            return None
        return InputError(f"{path} holds words that are not segmented: add {OURS}")


@dataclass
class ResegmentingConfig(TranslationConfig):
    """fairseq's options of its translation task; ours are options of the BPE."""


@register_task("translation_bpe_dropout", dataclass=ResegmentingConfig)
class NamedResegmentingTask(ResegmentingTask):
    needs_method = True


class ForgottenTask:
    """fairseq-validate has no default task, and stops at KeyError: None."""

    @staticmethod
    def add_args(parser: Any) -> None:
        raise InputError("this command needs to be told the task: add --task translation")


TASK_REGISTRY["translation"] = ResegmentingTask
TASK_REGISTRY[None] = ForgottenTask


def build_method(cfg: Any) -> SegmentationMethod | None:
    """The --bpe of the run, if it is one of ours."""
    bpe = parent_of(cfg, "bpe")
    name = bpe.get("_name") if isinstance(bpe, DictConfig) else bpe
    return encoders.build_bpe(bpe) if name in METHODS else None


def parent_of(cfg: Any, name: str) -> Any:
    """Another node of the configuration that the task's node is in, if it is in one."""
    parent = cfg._get_parent() if isinstance(cfg, DictConfig) else None
    return parent.get(name) if parent is not None else None


def refuse_options(cfg: Any) -> None:
    """Options of the translation task that cannot work with segmentations that change."""
    common = parent_of(cfg, "common")
    if common is not None and common.bf16 and importlib.util.find_spec("torch_xla") is None:
        raise InputError(
            "--bf16 is for TPUs in this fairseq, and torch_xla is not installed. On a GPU say --fp16 or --amp"
        )
    if cfg.load_alignments:
        raise InputError(
            "--load-alignments: alignments count pieces, and the pieces change in every epoch. Train without them"
        )
    if cfg.num_batch_buckets > 0:
        raise InputError(
            "--num-batch-buckets: buckets are made of lengths once, and lengths change in every epoch. Train without"
        )
    if cfg.dataset_impl not in (None, "raw"):
        raise InputError(
            f"--dataset-impl {cfg.dataset_impl}: the data folder holds words, nothing is binarized. Leave it out"
        )
    if cfg.upsample_primary == 0 or cfg.upsample_primary < -1:
        raise InputError(f"--upsample-primary: a number of times from 1 on, not {cfg.upsample_primary}")


def check_pairs(source: Side, target: Side) -> None:
    for left, right in zip(source.texts, target.texts, strict=True):
        if len(left) != len(right):
            raise InputError(
                f"{left.path} has {len(left)} lines and {right.path} has {len(right)}: line n of the one must be the "
                f"translation of line n of the other"
            )


def training_seed(cfg: Any) -> int:
    common = parent_of(cfg, "common")
    return common.seed if common is not None else 1


def load_on_all_ranks(cfg: Any) -> None:
    """fairseq sends a checkpoint from the first rank to the others in a form that today's torch refuses to load."""
    checkpoint, distributed = parent_of(cfg, "checkpoint"), parent_of(cfg, "distributed_training")
    if checkpoint is not None and distributed is not None and distributed.distributed_world_size > 1:
        with open_dict(checkpoint):
            checkpoint.load_checkpoint_on_all_dp_ranks = True


def ratio_of(above: str, below: str, digits: int) -> Any:
    def ratio(meters: Any) -> float:
        return round(meters[above].sum / max(1, meters[below].sum), digits)

    return ratio
