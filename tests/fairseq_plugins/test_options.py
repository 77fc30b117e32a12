"""Every field of fairseq's translation task works or is refused, our own options, the task's own name, hydra."""

import itertools
import json
import pickle
import re
import shutil

import numpy as np
import pytest
import torch
from fairseq import options, tasks
from fairseq.data import LanguagePairDataset, data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationConfig

from bpe_dropout import Corpus, Dictionary, InputError, Segmenter
from bpe_dropout.methods import METHODS
from bpe_dropout.rules import Rule
from fairseq_plugins.dataset import DrawnPairs
from tests.fairseq_plugins.conftest import MODEL, OURS, PLUGIN, RECORD, TRAIN, load_symbols, read_record, run, run_both

# What is tested of each field, here or elsewhere. A new field in fairseq makes test_all_fields_are_known fail.
FIELDS = {
    "data": "shards",
    "source_lang": "other direction",
    "target_lang": "other direction",
    "load_alignments": "refused",
    "left_pad_source": "padding",
    "left_pad_target": "padding",
    "max_source_positions": "skipped",
    "max_target_positions": "skipped",
    "upsample_primary": "upsampling",
    "truncate_source": "truncation",
    "num_batch_buckets": "refused",
    "train_subset": "train subset",
    "dataset_impl": "refused",
    "required_seq_len_multiple": "padding",
    "eval_bleu": "eval-bleu",
    "eval_bleu_args": "eval-bleu",
    "eval_bleu_detok": "eval-bleu",
    "eval_bleu_detok_args": "eval-bleu",
    "eval_tokenized_bleu": "eval-bleu",
    "eval_bleu_remove_bpe": "eval-bleu",
    "eval_bleu_print_samples": "eval-bleu",
}


def test_all_fields_are_known():
    assert TranslationConfig.__dataclass_fields__.keys() - {"_name"} == FIELDS.keys()


def make_task(data, *more):
    """The task as fairseq-train makes it from a command line, in this process."""
    arguments = [str(data), *OURS, *MODEL, "--max-tokens", "400", *map(str, more)]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    return tasks.setup_task(cfg.task)


def training_iterator(task, epoch=1, **more):
    """The iterator as the trainer asks for it."""
    return task.get_batch_iterator(
        task.dataset("train"), max_tokens=400, max_positions=task.max_positions(), ignore_invalid_inputs=True, seed=7,
        epoch=epoch, disable_iterator_cache=False, update_epoch_batch_itr=False, **more,
    )  # fmt: skip


def tokens_of(iterator):
    """pair: its source and its target, without padding."""
    found = {}
    for batch in iterator.next_epoch_itr(shuffle=False):
        sides = (batch["net_input"]["src_tokens"], batch["target"])
        for pair, *sentences in zip(batch["id"].tolist(), *sides, strict=True):
            found[pair] = [sentence[sentence != 1].tolist() for sentence in sentences]
    return found


def test_who_asks_decides(data):
    """Not the name of the split: generating on the training text is inference, and so is validating on it."""
    task = make_task(data, "--bpe-dropout-src", "1", "--bpe-dropout-tgt", "1")
    task.load_dataset("train")
    drawn = tokens_of(training_iterator(task))
    valid = {"max_tokens": 400, "epoch": 1, "skip_remainder_batch": False}  # as trainer.get_valid_iterator does
    plain = tokens_of(task.get_batch_iterator(task.dataset("train"), **valid))
    generated = tokens_of(task.get_batch_iterator(task.dataset("train"), max_tokens=400, num_workers=0))
    assert plain == generated
    assert drawn.keys() == plain.keys()
    assert sum(map(len, (pair[0] for pair in drawn.values()))) > 2 * sum(map(len, (pair[0] for pair in plain.values())))
    # Afterwards, too: the one dataset is not turned into the other.
    assert tokens_of(task.get_batch_iterator(task.dataset("train"), max_tokens=400)) == plain
    assert tokens_of(training_iterator(task)) == drawn


def test_rules(data, tmp_path):
    """A rate for each merge, with a schedule: what is drawn in an epoch is drawn with the rates of that epoch."""
    shutil.copytree(data, tmp_path / "DATA")
    data = tmp_path / "DATA"
    merges = len(Segmenter.from_codes(data / "codes.xx").codes.pairs)
    (data / "rates.xx").write_text("".join(f"{rank / merges}\n" for rank in range(merges)))
    rules = {"en": Rule.parse("rank:0..0.8@anneal:3"), "xx": Rule.parse("0.5xfile:rates.xx@warmup:2")}
    task = make_task(data, "--bpe-dropout-src", rules["en"], "--bpe-dropout-tgt", rules["xx"])
    task.load_dataset("train")
    drawn = training_iterator(task).dataset
    plain = task.dataset("train")
    for epoch in (1, 2, 3, 4, 2):
        drawn.set_epoch(epoch)
        drawn.draw_ahead()
        for side, (language, rule) in enumerate(rules.items()):
            segmenter = Segmenter.from_codes(data / f"codes.{language}")
            sampler = Corpus(data / f"train.en-xx.{language}").sampler(
                segmenter, Dictionary.load(data / f"dict.{language}.txt"), rule.at(epoch)
            )
            sizes = (drawn.src_sizes, drawn.tgt_sizes)[side]
            assert sizes.tolist() == sampler.lengths(seed=7, epoch=epoch, side=side).tolist()
            sentence = (drawn[3]["source"], drawn[3]["target"])[side]
            assert sentence.tolist() == sampler.tokens(3, seed=7, epoch=epoch, side=side).tolist()
        assert (drawn.src_sizes.sum() == plain.src_sizes.sum()) == (epoch >= 3)
        assert (drawn.tgt_sizes.sum() == plain.tgt_sizes.sum()) == (epoch == 1)
    assert not drawn.can_reuse_epoch_itr_across_epochs


def test_a_constant_rule_is_a_number(data):
    drawn = []
    for p in ("0.3", "rank:0.3..0.3", "1.5x0.2"):
        task = make_task(data, "--bpe-dropout-src", p, "--bpe-dropout-tgt", p)
        task.load_dataset("train")
        drawn.append(tokens_of(training_iterator(task)))
    assert drawn[0] == drawn[1] == drawn[2]


def test_rates_that_are_missing_are_asked_for_by_the_training_alone(data):
    task = make_task(data, "--bpe-dropout-src", "file:gone")
    task.load_dataset("train")
    tokens_of(task.get_batch_iterator(task.dataset("train"), max_tokens=400))
    with pytest.raises(InputError, match=r"there is no .*/gone: one rate per line, for each merge of the codes"):
        training_iterator(task)


def test_epochs_can_be_set_again(data):
    task = make_task(data)
    task.load_dataset("train")
    drawn = training_iterator(task).dataset
    first = drawn.src_sizes.copy()
    drawn.set_epoch(1)
    assert (drawn.src_sizes == first).all()
    drawn.set_epoch(2)
    assert (drawn.src_sizes != first).any()
    drawn.set_epoch(1)
    assert (drawn.src_sizes == first).all()
    assert not drawn.can_reuse_epoch_itr_across_epochs
    assert make_plain(data).can_reuse_epoch_itr_across_epochs


def make_plain(data):
    task = make_task(data, "--bpe-dropout-src", "0", "--bpe-dropout-tgt", "0")
    task.load_dataset("train")
    return training_iterator(task).dataset


def test_drawing_leaves_numpy_and_torch_alone(data):
    """The global generators are the model's, and one a batch in a worker would be another's."""
    task = make_task(data)
    task.load_dataset("train")
    dataset = training_iterator(task).dataset
    before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    dataset.set_epoch(5)
    dataset.collater(dataset.__getitems__([1, 2, 3]))
    assert (np.random.get_state()[1] == before).all()
    assert (torch.get_rng_state() == torch_before).all()


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--left-pad-source", "--left-pad-target"],
        ["--required-seq-len-multiple", "8"],
        ["--truncate-source", "--max-source-positions", "9"],
    ],
    ids=["plain", "sides", "multiple", "truncated"],
)  # fmt: skip
def test_batches_are_fairseqs_own(data, more):
    """The same sentences in fairseq's dataset give the same sizes, order, batches and tensors."""
    task = make_task(data, *more)
    task.load_dataset("train")
    ours = training_iterator(task).dataset
    stock = LanguagePairDataset(
        [ours.src[i] for i in range(len(ours))], ours.src_sizes, task.src_dict,
        [ours.tgt[i] for i in range(len(ours))], ours.tgt_sizes, task.tgt_dict,
        left_pad_source=task.cfg.left_pad_source, left_pad_target=task.cfg.left_pad_target,
        pad_to_multiple=task.cfg.required_seq_len_multiple,
    )  # fmt: skip
    assert [len(sentence) for sentence in stock.src] == ours.src_sizes.tolist()
    assert [len(sentence) for sentence in stock.tgt] == ours.tgt_sizes.tolist()
    orders = []
    for dataset in (ours, stock):
        with data_utils.numpy_seed(3):
            orders.append(dataset.ordered_indices())
    assert (orders[0] == orders[1]).all()
    batches = [dataset.batch_by_size(orders[0], max_tokens=400) for dataset in (ours, stock)]
    for batch, other in zip(*batches, strict=True):
        assert (batch == other).all()
        expected = stock.collater([stock[i] for i in batch])
        for made in (ours.collater(ours.__getitems__(batch.tolist())), ours.collater([ours[i] for i in batch])):
            assert set(made) == {*expected, "pieces"}
            for key in ("src_tokens", "src_lengths", "prev_output_tokens"):
                assert torch.equal(made["net_input"][key], expected["net_input"][key])
            assert torch.equal(made["target"], expected["target"])
            assert made["id"].tolist() == expected["id"].tolist()
            assert (made["ntokens"], made["nsentences"]) == (expected["ntokens"], expected["nsentences"])
    assert ours.collater(ours.__getitems__([])) == {}  # a rank may have a batch less than the others
    if "--truncate-source" in more:
        assert ours.src_sizes.max() == 9
        assert all(sentence[-1] == 2 for sentence in stock.src)


def test_workers_that_are_not_forked(data):
    """Elsewhere than on Linux, and in newer Pythons, workers get a copy of the dataset, by pickle."""
    task = make_task(data)
    task.load_dataset("train")
    for dataset in (task.dataset("train"), training_iterator(task).dataset):
        other = pickle.loads(pickle.dumps(dataset))
        made, expected = (one.collater(one.__getitems__([5, 3, 8])) for one in (other, dataset))
        assert torch.equal(made["net_input"]["src_tokens"], expected["net_input"]["src_tokens"])
        assert torch.equal(made["target"], expected["target"])


def test_epochs_are_drawn_ahead(data):
    """The next epoch, if it is the next that is wanted, and any other all the same."""
    task, other = make_task(data), make_task(data)
    for one in (task, other):
        one.load_dataset("train")
    ahead, fresh = (training_iterator(one).dataset for one in (task, other))
    for epoch in (2, 5, 6):
        ahead.draw_ahead()
        for dataset in (ahead, fresh):
            dataset.set_epoch(epoch)
        assert (ahead.src_sizes == fresh.src_sizes).all()
        assert (ahead.tgt_sizes == fresh.tgt_sizes).all()
        assert torch.equal(ahead[7]["target"], fresh[7]["target"])


def test_words_end_where_fairseq_ends_them(data, tmp_path):
    """At any white space, in the data folder and in interactive use alike; lines end at the end of the line alone."""
    shutil.copytree(data, tmp_path / "DATA")
    line = "the\u00a0class\u3000of\tan  object\u2028is"
    for language in ("en", "xx"):
        (tmp_path / "DATA" / f"train.en-xx.{language}").write_text(f"{line}\nthe class\n", newline="\n")
    task = make_task(tmp_path / "DATA", "--bpe-dropout-src", "0", "--bpe-dropout-tgt", "0", "--resegment-max-unk", "1")
    task.load_dataset("train")
    assert len(task.dataset("train")) == 2
    encoded = task.src_dict.encode_line(task.bpe.encode(line), add_if_not_exist=False).long()
    assert torch.equal(task.dataset("train")[0]["source"], encoded)
    words = "the class of an object is"
    assert torch.equal(encoded, task.src_dict.encode_line(task.bpe.encode(words), add_if_not_exist=False).long())


def test_source_tokens_fill_batches(data):
    """As the paper counts them; the target may be longer."""
    shapes = []
    for more in ([], ["--resegment-source-tokens"]):
        task = make_task(data, "--bpe-dropout-src", "0", "--bpe-dropout-tgt", "0.9", *more)
        task.load_dataset("train")
        batches = list(training_iterator(task).next_epoch_itr(shuffle=False))
        assert all(batch["net_input"]["src_tokens"].numel() <= 400 for batch in batches)
        shapes.append((len(batches), max(batch["target"].numel() for batch in batches)))
    assert shapes[0][0] > 1.3 * shapes[1][0]
    assert shapes[0][1] <= 400 < shapes[1][1]


def test_skipped_pairs_are_counted(data, tmp_path):
    """Those that are too long in this epoch, by their real lengths."""
    done = run(
        "fairseq-train", data, *OURS, *TRAIN, "--max-source-positions", "12", "--max-target-positions", "14",
        "--bpe-dropout-src", "0.5", "--bpe-dropout-tgt", "0.5", "--skip-invalid-size-inputs-valid-test",
        "--max-epoch", "2", "--save-dir", tmp_path, "--tensorboard-logdir", tmp_path / "board",
    )  # fmt: skip
    said = [int(number) for number in re.findall(r"; (\d+) of 600 pairs are skipped for their length", done.out)]
    assert len(said) == 2
    assert said[0] != said[1]
    task = make_task(data, "--bpe-dropout-src", "0.5", "--bpe-dropout-tgt", "0.5")
    task.load_dataset("train")
    drawn = training_iterator(task).dataset
    for epoch, number in enumerate(said, 1):
        drawn.set_epoch(epoch)
        assert number == ((drawn.src_sizes > 12) | (drawn.tgt_sizes > 14)).sum()
    assert [int(log["train_skipped"]) for log in done.logged("train")] == said
    # What TensorBoard shows.
    events = b"".join(path.read_bytes() for path in (tmp_path / "board").rglob("*tfevents*"))
    for name in (b"src_ratio", b"tgt_ratio", b"src_unk", b"tgt_unk", b"skipped"):
        assert name in events


def test_shards(data, tmp_path):
    """a:b, one after the other; and train1 beside train, with the first taken twice."""
    first, second = tmp_path / "a", tmp_path / "b"
    shutil.copytree(data, first)
    shutil.copytree(data, second)
    for language in ("en", "xx"):
        lines = (data / f"train.en-xx.{language}").read_text().splitlines(keepends=True)
        (first / f"train.en-xx.{language}").write_text("".join(lines[:300]))
        (second / f"train.en-xx.{language}").write_text("".join(lines[300:]))
        (second / f"train1.en-xx.{language}").write_text("".join(lines[:100]))
    record = tmp_path / "record"
    record.mkdir()
    run(
        "fairseq-train", f"{first}:{second}", *RECORD, "--bpe", "bpe_dropout", *TRAIN,
        "--required-batch-size-multiple", "1", "--upsample-primary", "2", "--max-epoch", "3",
        "--save-dir", tmp_path / "save", "--disable-validation",
        RECORD=str(record),
    )  # fmt: skip
    pairs = [pair for batch in read_record(record) for pair in batch["id"]]
    assert sorted(pairs[:300]) == list(range(300))
    assert sorted(pairs[300:1000]) == list(range(700))  # 300, once more, and 100
    assert sorted(pairs[1000:]) == list(range(300))


def test_what_is_wrong_with_a_later_shard(data, tmp_path):
    shutil.copytree(data, tmp_path / "b")
    (tmp_path / "b" / "train.en-xx.xx").write_text("eno\n")
    with pytest.raises(InputError, match=r"b/train\.en-xx\.en has 600 lines and .*b/train\.en-xx\.xx has 1:"):
        make_task(f"{data}:{tmp_path / 'b'}").load_dataset("train", epoch=1)


def test_batch_size(data):
    """Whole batches of so many pairs, of real lengths near each other."""
    task = make_task(data)
    task.load_dataset("train")
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=20, seed=7, update_epoch_batch_itr=False)
    batches = list(iterator.next_epoch_itr(shuffle=False))
    assert [batch["nsentences"] for batch in batches] == [20] * 30
    lengths = [batch["net_input"]["src_lengths"] for batch in batches]
    assert all(int(one.max()) <= int(two.min()) for one, two in itertools.pairwise(lengths))


def test_upsampled_copies_are_drawn_apart(data, tmp_path):
    shutil.copytree(data, tmp_path / "DATA")
    for language in ("en", "xx"):
        shutil.copy(data / f"train.en-xx.{language}", tmp_path / "DATA" / f"train1.en-xx.{language}")
    task = make_task(
        tmp_path / "DATA", "--upsample-primary", "2", "--bpe-dropout-src", "0.5", "--bpe-dropout-tgt", "0.5"
    )
    task.load_dataset("train", combine=True)
    tokens = tokens_of(training_iterator(task))
    assert len(tokens) == 1800
    for side in (0, 1):
        copies = [[tokens[part * 600 + pair][side] for pair in range(600)] for part in range(3)]
        for one, other in ((0, 1), (0, 2), (1, 2)):
            assert sum(a != b for a, b in zip(copies[one], copies[other], strict=True)) > 400
    # The first part draws as it would alone, and a batch may mix the parts.
    task.load_dataset("train", combine=False)
    alone = tokens_of(training_iterator(task))
    assert all(tokens[pair] == alone[pair] for pair in alone)


def test_the_other_direction(data, corpus):
    """The same folder, from xx to en: codes and dictionaries change sides."""
    task = make_task(
        data, "--source-lang", "xx", "--target-lang", "en", "--bpe-dropout-src", "0", "--bpe-dropout-tgt", "0"
    )
    task.load_dataset("train")
    symbols = load_symbols(data / "dict.xx.txt")
    segmenter = Segmenter.from_codes(corpus.codes["xx"])
    line = (corpus.folder / "train.xx").read_text().splitlines()[5]
    assert [symbols[token] for token in task.dataset("train")[5]["source"].tolist()] == [
        *segmenter.segment(line),
        "</s>",
    ]


def test_a_training_subset_of_another_name(data):
    task = make_task(data, "--train-subset", "valid")
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=400, update_epoch_batch_itr=False, seed=1)
    assert isinstance(iterator.dataset, DrawnPairs)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--load-alignments"], "--load-alignments: alignments count pieces"),
        (["--num-batch-buckets", "4"], "--num-batch-buckets: buckets are made of lengths once"),
        (["--dataset-impl", "mmap"], "--dataset-impl mmap: the data folder holds words"),
        (["--dataset-impl", "raw"], "--dataset-impl raw: the data folder holds words"),
        (["--bf16"], "--bf16 is for TPUs in this fairseq"),
        (["--upsample-primary", "0"], "--upsample-primary: a number of times from 1 on, not 0"),
        (["--bpe-dropout-src", "1.5"], "--bpe-dropout-src: dropout is a probability from 0 to 1, not 1.5"),
        (["--bpe-dropout-src", "rank:0.1"], "--bpe-dropout-src: 'rank:0.1' is no rule of dropout, such as 0.1, rank:"),
        (["--bpe-dropout-tgt", "-0.1"], "--bpe-dropout-tgt: dropout is a probability from 0 to 1, not -0.1"),
        (["--resegment-threads", "-1"], "--resegment-threads is a whole number"),
    ],
)
def test_refused(data, more, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        make_task(data, *more)


def test_no_option_collides():
    """fairseq swallows a second argument of the same name: ours have prefixes that nobody else has."""
    from fairseq.registry import REGISTRIES

    filled_in = {"_name", "data", "source_lang", "target_lang"}
    for method in METHODS.values():
        config = REGISTRIES["bpe"]["dataclass_registry"][method.bpe]
        for name in config.__dataclass_fields__.keys() - filled_in:
            assert name.startswith(("bpe_dropout_", "unigram_", "resegment_"))
    assert not any((PLUGIN / name).exists() for name in ("tasks", "models"))  # fairseq would import them whole


def test_eval_bleu(data, tmp_path):
    done = run(
        "fairseq-train", data, *OURS, *TRAIN, "--max-epoch", "1", "--save-dir", tmp_path, "--eval-bleu",
        "--eval-bleu-args", '{"beam": 2, "max_len_b": 10}', "--eval-bleu-detok", "moses",
        "--eval-bleu-detok-args", '{"target_lang": "en"}', "--eval-bleu-print-samples",
        "--best-checkpoint-metric", "bleu",
        "--maximize-best-checkpoint-metric",
    )  # fmt: skip
    assert float(done.logged("valid")[0]["valid_bleu"]) >= 0
    samples = re.findall(r"example (?:hypothesis|reference): (.*)", done.out)
    assert samples
    assert not any("@@" in sample for sample in samples)


def test_the_tasks_own_name(data, tmp_path):
    task = ["--task", "translation_bpe_dropout"]
    named, forgotten = run_both(
        ("fairseq-train", data, *OURS, *task, *TRAIN, "--max-update", "2", "--save-dir", tmp_path),
        ("fairseq-train", data, *OURS[:2], *task, *TRAIN, {"check": False, "cwd": tmp_path}),
    )  # fmt: skip
    assert "BPE-dropout, p = 0.1 (source) and 0.1 (target), seed 7" in named.out
    assert forgotten.code == 1
    assert forgotten.sentence == (
        "error: this task segments its text itself: say how with --bpe bpe_dropout or --bpe unigram_regularization"
    )


def test_other_tasks(data, tmp_path):
    """They would train without dropout, or stop at what they do not find in the folder."""
    multilingual = ["--lang-pairs", "en-xx"]
    tasks = {
        "translation_lev": [],
        "translation_multi_simple_epoch": multilingual,
        "language_modeling": [],
        "multilingual_translation": [*multilingual, "--arch", "multilingual_transformer"],
        "denoising": [],
    }
    arguments = ["fairseq-train", data, *OURS, *TRAIN, "--max-update", "2"]
    done = run_both(
        *(
            (*arguments, "--task", task, *more, "--save-dir", tmp_path / task, {"check": False, "cwd": tmp_path})
            for task, more in tasks.items()
        )
    )
    for task, one in zip(tasks, done, strict=True):
        assert one.code == 1
        assert one.sentence == f"error: --bpe bpe_dropout is for --task translation alone: {task} would not draw"


@pytest.mark.parametrize("task", ["translation", "translation_bpe_dropout"])
def test_hydra(data, tmp_path, task):
    """The form that works: the BPE and the task as nodes of a YAML file, each with its _name."""
    config = {
        "common": {"user_dir": str(PLUGIN), "seed": 7, "cpu": True, "no_progress_bar": True, "log_interval": 1},
        "task": {"_name": task, "data": str(data)},
        "bpe": {"_name": "bpe_dropout", "bpe_dropout_src": 0.2, "bpe_dropout_tgt": 0.3},
        "dataset": {"max_tokens": 400, "num_workers": 0},
        "optimization": {"max_update": 2, "lr": [0.01]},
        "checkpoint": {"save_dir": str(tmp_path / "save")},
        "criterion": {"_name": "label_smoothed_cross_entropy"},
        "optimizer": {"_name": "adam", "adam_betas": "(0.9,0.98)"},
        "lr_scheduler": {"_name": "fixed"},
    }
    config["model"] = {
        "_name": "transformer",
        **{
            side: {"embed_dim": 16, "ffn_embed_dim": 16, "layers": 1, "attention_heads": 2}
            for side in ("encoder", "decoder")
        },
    }
    (tmp_path / "small.yaml").write_text("# @package _global_\n" + json.dumps(config))
    named = ["--config-dir", tmp_path, "--config-name", "small"]
    done = run("fairseq-hydra-train", *named, cwd=tmp_path)
    assert "BPE-dropout, p = 0.2 (source) and 0.3 (target), seed 7" in done.out
    assert (tmp_path / "save" / "checkpoint_last.pt").exists()
    if task == "translation":
        typed = run("fairseq-hydra-train", *named, "bpe=bpe_dropout", cwd=tmp_path, check=False)
        assert typed.code == 1  # before fairseq has imported the plugin: nothing of ours is asked
