"""fairseq's translation task, segmenting as it reads: the rule "drawn in training, plain everywhere else" is here.

It takes the place of fairseq's own `translation` (patches.py), so that `fairseq-train DATA --bpe
bpe_dropout` is all it takes. With any other --bpe every method below is fairseq's. `--task translation_bpe_dropout`
names it explicitly, and then needs one of our --bpe.

fairseq gives a task its own options only. But that node of the configuration knows its parent, which has the BPE.
"""

import importlib.util
import logging
from argparse import Namespace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from fairseq import utils
from fairseq.data import Dictionary as FairseqDictionary
from fairseq.data import encoders
from fairseq.logging import metrics
from fairseq.tasks import TASK_REGISTRY, register_task
from fairseq.tasks.translation import EVAL_BLEU_ORDER, TranslationConfig, TranslationTask
from omegaconf import DictConfig, open_dict
from sacrebleu.metrics import BLEU

from bpe_dropout import Dictionary, InputError
from bpe_dropout.data.folder import DataFolder
from bpe_dropout.data.pairs import Sides
from bpe_dropout.data.texts import Text
from bpe_dropout.methods import METHODS, ROLES

from .dataset import Batching, SegmentedPairs, TensorSide
from .methods import SegmentingBpe

logger = logging.getLogger(__name__)

BPES = [method.bpe for method in METHODS.values()]
OURS = f"--bpe {' or --bpe '.join(BPES)}"


class ResegmentingTask(TranslationTask):
    """Translation from words: with one of our --bpe, segmented anew in every epoch of training."""

    needs_bpe = False

    def __init__(self, cfg: Any, src_dict: FairseqDictionary, tgt_dict: FairseqDictionary) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.bpe: SegmentingBpe | None = None
        self.dictionaries: dict[str, Dictionary] = {}
        self.seed = 1
        self._training: tuple[SegmentedPairs, Any] | None = None

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> "ResegmentingTask":
        bpe = build_bpe(cfg)
        if bpe is None:
            if cls.needs_bpe:
                raise InputError(f"this task segments its text itself: say how with {OURS}")
            return super().setup_task(cfg, **kwargs)
        refuse_options(cfg, training=not kwargs.get("from_checkpoint", False))
        folder = bpe.folder
        cfg.source_lang, cfg.target_lang = folder.source, folder.target
        dictionaries = {
            language: Dictionary.load(folder.dictionary(language)) for language in (folder.source, folder.target)
        }
        if cfg.eval_bleu and cfg.eval_bleu_remove_bpe is None:
            cfg.eval_bleu_remove_bpe = bpe.method.symbol
        task = super().setup_task(cfg, **kwargs)
        task.bpe, task.dictionaries = bpe, dictionaries
        task.seed = bpe.cfg.resegment_seed if bpe.cfg.resegment_seed is not None else training_seed(cfg)
        load_on_all_ranks(cfg)
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        if self.bpe is None:
            try:
                return super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
            except FileNotFoundError as error:
                raise self._unsegmented(split) or error from None
        paths = utils.split_paths(self.cfg.data)
        if split != self.cfg.train_subset:
            paths = paths[:1]
        folder = DataFolder(paths[(epoch - 1) % len(paths)], self.cfg.source_lang, self.cfg.target_lang)
        parts = folder.parts(split) if combine else [split]
        source = TensorSide(self._texts(folder, parts or [split], folder.source), 0, self._longest_source())
        target = None
        # Only to translate, a source is enough: fairseq-generate passes task_cfg, the trainer does not.
        if "task_cfg" not in kwargs or folder.has_text(split, folder.target):
            target = TensorSide(self._texts(folder, parts or [split], folder.target), 1)
        sides = Sides(source, target)
        sides.check()
        if len(paths) > 1 and split not in self.datasets:
            self._check_shards(paths, split)
        for side in sides.given:
            self._check_unknown(split, side)
        self.datasets[split] = SegmentedPairs(sides, self.src_dict, self.tgt_dict, self._batching(split))
        logger.info(f"{folder.path} {split} {folder.source}-{folder.target} {len(source)} examples, as words")
        if "task_cfg" in kwargs and self._bpe.prepares(folder.target):
            logger.info(
                "D- and T-lines are detokenized text, H-lines are the model's words: to score, compare D with T"
            )

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
        drawn.order_seed = None
        if kept and not drawn.draws:
            options = parent_of(self.cfg, "dataset")
            if options is not None and options.update_ordered_indices_seed:
                kwargs["seed"] -= kwargs.get("epoch", 1) - 1  # the trainer has added the epoch of the restart
            drawn.order_seed = kwargs["seed"] + 1
        iterator = super().get_batch_iterator(drawn, *args, **kwargs)
        if drawn.draws:
            # It serves one epoch. Workers that outlive it end when Python happens to collect them, which takes 5 s.
            iterator.persistent_workers = False
        return iterator

    def begin_epoch(self, epoch: int, model: Any) -> None:
        super().begin_epoch(epoch, model)
        if self.bpe is not None and self._training is None:
            raise InputError(
                "this release of fairseq asks for batches in a way that is not known here: nothing was drawn"
            )
        if self._training is not None:
            drawn = self._training[1]
            metrics.log_scalar("skipped", drawn.skipped, priority=900, round=0)
            logger.info(
                f"epoch {epoch}: {self._bpe.describe()}, seed {self.seed}; "
                f"{drawn.skipped} of {len(drawn)} pairs are skipped for their length"
            )
            if not self.has_sharded_data(self.cfg.train_subset):  # else the next epoch is of another text
                drawn.draw_ahead()

    def train_step(self, sample: Any, *args: Any, **kwargs: Any) -> Any:
        loss, size, logged = super().train_step(sample, *args, **kwargs)
        if self._training is not None:
            # Ranks add up what they log, so all must log the same. One that has run out of batches trains on any batch
            # that it has seen, with no weight, which may be one of validation.
            ignored = kwargs.get("ignore_grad", args[4] if len(args) > 4 else False)
            pieces = {} if ignored else sample.get("pieces", {})
            logged |= {name: pieces.get(name, 0) for role in ROLES for name in counts_of(role)}
        return loss, size, logged

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        if self.cfg.eval_bleu and any("_bleu_ref_len" in logged for logged in logging_outputs):
            log_empty_bleu(logging_outputs)
        for role in ROLES:
            pieces, plain, unknown = counts_of(role)
            if not all(pieces in logged for logged in logging_outputs):
                continue
            for name in (pieces, plain, unknown):
                metrics.log_scalar(name, sum(logged[name] for logged in logging_outputs))
            metrics.log_derived(f"{role}_ratio", ratio_of(pieces, plain, digits=4), priority=910)
            metrics.log_derived(f"{role}_unk", ratio_of(unknown, pieces, digits=6), priority=920)
            if role == "src":  # fairseq's own wpb counts the target
                metrics.log_derived("src_wpb", lambda meters: round(float(meters["_src_pieces"].avg), 1), priority=930)

    @property
    def _bpe(self) -> SegmentingBpe:
        assert self.bpe is not None
        return self.bpe

    def _drawn(self, plain: SegmentedPairs) -> Any:
        if self._training is None or self._training[0] is not plain:
            self._training = (plain, plain.drawn(self.seed))
        return self._training[1]

    def _texts(self, folder: DataFolder, parts: list[str], language: str) -> list[Text]:
        """The texts of a split. As in fairseq, the first is taken several times only if there are others."""
        texts = [self._text(folder.text(part, language), language) for part in parts]
        return texts[:1] * (max(1, self.cfg.upsample_primary) - 1) + texts if len(texts) > 1 else texts

    def _text(self, path: Path, language: str) -> Text:
        return self._bpe.text(path, language, self.dictionaries[language])

    def _check_shards(self, paths: list[str], split: str) -> None:
        """Errors in later shards are reported before the first is trained on."""
        for path in paths:
            folder = DataFolder(path, self.cfg.source_lang, self.cfg.target_lang)
            sides = (
                TensorSide([self._text(folder.text(split, language), language)], side)
                for side, language in enumerate((folder.source, folder.target))
            )
            Sides(*sides).check()

    def _batching(self, split: str) -> Batching:
        return Batching(
            left_pad_source=self.cfg.left_pad_source,
            left_pad_target=self.cfg.left_pad_target,
            shuffle=split != "test",
            pad_to_multiple=self.cfg.required_seq_len_multiple,
            source_tokens=self._bpe.cfg.resegment_source_tokens,
        )

    def _check_unknown(self, split: str, side: TensorSide) -> None:
        """A dictionary of other codes gives mostly unknown pieces: better said now than seen in the loss."""
        for text in dict.fromkeys(side.texts):
            language = (self.cfg.source_lang, self.cfg.target_lang)[side.side]
            share, sentence = text.describe_unknown(f"dict.{language}.txt")
            if sentence:
                if share > self._bpe.cfg.resegment_max_unk and split == self.cfg.train_subset:
                    raise InputError(
                        f"{sentence}. Codes and dictionary do not match: make the dictionary again "
                        f"(bpe-dropout dictionary --help), or allow it with --resegment-max-unk"
                    )
                logger.warning(sentence)

    def _longest_source(self) -> int | None:
        return self.cfg.max_source_positions if self.cfg.truncate_source else None

    def _unsegmented(self, split: str) -> InputError | None:
        """The error where fairseq's own task finds nothing because the folder is one of ours."""
        folder = DataFolder(utils.split_paths(self.cfg.data)[0], self.cfg.source_lang, self.cfg.target_lang)
        if not folder.has_text(split, folder.source):
            return None
        return InputError(f"{folder.path} holds words that are not segmented: add {OURS}")


@register_task("translation_bpe_dropout", dataclass=TranslationConfig)
class NamedResegmentingTask(ResegmentingTask):
    needs_bpe = True


class ForgottenTask:
    """fairseq-validate has no default task, and stops at KeyError: None."""

    @staticmethod
    def add_args(parser: Any) -> None:
        raise InputError("this command needs to be told the task: add --task translation")


def refuse_other_tasks(setup_task: Any) -> Any:
    """Another task would train with our --bpe, and never draw."""

    @wraps(setup_task)
    def setup(cfg: Any, **kwargs: Any) -> Any:
        name = task_name(cfg)
        ours = issubclass(TASK_REGISTRY.get(name, object), ResegmentingTask)
        if not ours and not kwargs.get("from_checkpoint") and is_training(cfg) and bpe_name(cfg) in BPES:
            raise InputError(f"--bpe {bpe_name(cfg)} is for --task translation alone: {name} would not draw")
        return setup_task(cfg, **kwargs)

    return setup


def task_name(cfg: Any) -> str | None:
    """The name by which fairseq finds the task."""
    name = getattr(cfg, "task", None)
    return name if isinstance(name, str) else getattr(cfg, "_name", None)


def is_training(cfg: Any) -> bool:
    """Nothing is translated or scored, which takes the --path of a model."""
    if isinstance(cfg, Namespace):
        return getattr(cfg, "path", None) is None
    evaluation = parent_of(cfg, "common_eval")
    return evaluation is not None and evaluation.path is None


def build_bpe(cfg: Any) -> SegmentingBpe | None:
    """The --bpe of the run, if it is one of ours."""
    return encoders.build_bpe(parent_of(cfg, "bpe")) if bpe_name(cfg) in BPES else None


def bpe_name(cfg: Any) -> str | None:
    bpe = getattr(cfg, "bpe", None) if isinstance(cfg, Namespace) else parent_of(cfg, "bpe")
    return bpe.get("_name") if isinstance(bpe, DictConfig) else bpe


def parent_of(cfg: Any, name: str) -> Any:
    """Another node of the configuration that the task's node is in, if it is in one."""
    parent = cfg._get_parent() if isinstance(cfg, DictConfig) else None
    return parent.get(name) if parent is not None else None


def refuse_options(cfg: Any, training: bool) -> None:
    """Options of the translation task that cannot work with segmentations that change."""
    common = parent_of(cfg, "common")
    if training and common is not None and common.tpu and importlib.util.find_spec("torch_xla") is None:
        raise InputError(
            "--bf16 is for TPUs in this fairseq, and torch_xla is not installed. On a GPU, use --fp16 or --amp"
        )
    if cfg.load_alignments:
        raise InputError(
            "--load-alignments: alignments count pieces, and the pieces change in every epoch. Train without them"
        )
    if cfg.num_batch_buckets > 0:
        raise InputError(
            "--num-batch-buckets: buckets are made of lengths once, and lengths change in every epoch. Train without it"
        )
    if cfg.dataset_impl is not None:
        raise InputError(
            f"--dataset-impl {cfg.dataset_impl}: the data folder holds words, nothing is binarized. Leave it out"
        )
    if cfg.upsample_primary == 0 or cfg.upsample_primary < -1:
        raise InputError(f"--upsample-primary: a number of times from 1 on, not {cfg.upsample_primary}")


def training_seed(cfg: Any) -> int:
    common = parent_of(cfg, "common")
    return common.seed if common is not None else 1


def load_on_all_ranks(cfg: Any) -> None:
    """fairseq sends a checkpoint from the first rank to the others in a form that today's torch refuses to load."""
    checkpoint, distributed = parent_of(cfg, "checkpoint"), parent_of(cfg, "distributed_training")
    if checkpoint is not None and distributed is not None and distributed.distributed_world_size > 1:
        with open_dict(checkpoint):
            checkpoint.load_checkpoint_on_all_dp_ranks = True


def log_empty_bleu(logging_outputs: list[dict[str, Any]]) -> None:
    """BLEU of a batch whose translations are all empty. fairseq logs none, and --best-checkpoint-metric bleu fails."""
    if any(logged.get("_bleu_totals_0", 0) for logged in logging_outputs):
        return
    for name in ("_bleu_counts", "_bleu_totals"):
        metrics.log_scalar(name, np.zeros(EVAL_BLEU_ORDER))
    metrics.log_scalar("_bleu_sys_len", 0)
    metrics.log_scalar("_bleu_ref_len", sum(logged.get("_bleu_ref_len", 0) for logged in logging_outputs))
    metrics.log_derived("bleu", bleu_so_far)


def bleu_so_far(meters: Any) -> float:
    sums = {name: meters[f"_bleu_{name}"].sum for name in ("counts", "totals", "sys_len", "ref_len")}
    if not sums["sys_len"]:
        return 0.0
    lengths = {name: int(sums[name]) for name in ("sys_len", "ref_len")}
    bleu = BLEU.compute_bleu(correct=sums["counts"], total=sums["totals"], **lengths, smooth_method="exp")
    return round(bleu.score, 2)


def counts_of(role: str) -> tuple[str, str, str]:
    """The names under which a batch counts its pieces, those that plain BPE would have, and unknown ones."""
    return f"_{role}_pieces", f"_{role}_plain", f"_{role}_unk"


def ratio_of(above: str, below: str, digits: int) -> Any:
    def ratio(meters: Any) -> float:
        return round(float(meters[above].sum) / max(1.0, float(meters[below].sum)), digits)

    return ratio
