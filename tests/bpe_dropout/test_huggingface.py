"""The collator for transformers.Trainer, in real trainings of a tiny model."""

import pickle
import warnings

import pytest

from bpe_dropout import InputError, Rule, Segmenter

pytest.importorskip("transformers", reason="needs transformers, of the extra dev")
pytest.importorskip("datasets", reason="needs datasets, of the extra dev")

import datasets
import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer, TrainingArguments

from bpe_dropout.huggingface import DropoutCollator
from tests.kinds_of_tokenizers import KINDS, text

LINES = text()[:20]
VALID = text()[20:24]
P, SEED = 0.3, 5


@pytest.fixture
def tokenizer():
    return PreTrainedTokenizerFast(tokenizer_object=KINDS["roberta"](), pad_token="<pad>")


class Recording(GPT2LMHeadModel):
    """A model that remembers what it was given."""

    def forward(self, input_ids=None, attention_mask=None, labels=None, **others):
        rows = [row[kept == 1].tolist() for row, kept in zip(input_ids, attention_mask, strict=True)]
        self.__dict__.setdefault("seen", []).append((self.training, rows))
        assert (labels[attention_mask == 1] == input_ids[attention_mask == 1]).all()
        assert (labels[attention_mask == 0] == -100).all()
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


def make_trainer(folder, tokenizer, train, valid=None, callbacks=True, **options):
    collator = DropoutCollator(tokenizer, dropout=P, seed=SEED)
    torch.manual_seed(1)
    model = Recording(GPT2Config(vocab_size=1600, n_positions=256, n_embd=8, n_layer=1, n_head=1))
    settings = {"save_strategy": "no", "remove_unused_columns": False, "num_train_epochs": 2, **options}
    args = TrainingArguments(
        str(folder), per_device_train_batch_size=4, use_cpu=True, report_to=[], disable_tqdm=True, seed=3, **settings
    )
    return Trainer(
        model,
        args,
        train_dataset=collator.training(train) if callbacks else train,
        eval_dataset=valid,
        data_collator=collator,
        callbacks=[collator],
    )


def seen(trainer, training=True):
    return [row for was_training, rows in trainer.model.seen if was_training == training for row in rows]


def expected(segmenter, epoch):
    return [segmenter.ids(line, P, SEED, epoch=epoch, sentence=n) for n, line in enumerate(LINES)]


@pytest.mark.parametrize("kind", ["list", "datasets"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_of_two_epochs(tmp_path, tokenizer, kind, workers):
    """The model sees every example in the segmentation of its epoch, and validates on plain BPE."""
    make = datasets.Dataset.from_list if kind == "datasets" else list
    train, valid = (make([{"text": line} for line in lines]) for lines in (LINES, VALID))
    more = {"dataloader_num_workers": workers, "dataloader_persistent_workers": workers > 0}
    trainer = make_trainer(tmp_path, tokenizer, train, valid, eval_strategy="epoch", **more)
    trainer.train()
    segmenter = Segmenter.from_tokenizer(tokenizer)
    drawn = seen(trainer)
    assert sorted(drawn[:20]) == sorted(expected(segmenter, 0))
    assert sorted(drawn[20:]) == sorted(expected(segmenter, 1))
    assert sorted(expected(segmenter, 0)) != sorted(expected(segmenter, 1))
    assert seen(trainer, training=False) == [tokenizer(line)["input_ids"] for line in VALID] * 2


def test_a_restart_within_an_epoch(tmp_path, tokenizer):
    train = [{"text": line} for line in LINES]
    whole = make_trainer(tmp_path / "whole", tokenizer, train)
    whole.train()
    saving = {"save_strategy": "steps", "save_steps": 7}  # five batches make an epoch
    make_trainer(tmp_path / "parts", tokenizer, train, **saving, max_steps=7).train()
    resumed = make_trainer(tmp_path / "parts", tokenizer, train, **saving)
    resumed.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-7"))
    assert seen(resumed) == seen(whole)[28:]


@pytest.mark.parametrize("stream", [False, True])
def test_a_column_of_numbers(tmp_path, tokenizer, stream):
    train = datasets.Dataset.from_list([{"text": line} for line in LINES])
    train = train.map(lambda example, number: {"bpe_dropout_number": number}, with_indices=True)
    train = train.to_iterable_dataset() if stream else train
    more = {"max_steps": 5} if stream else {"num_train_epochs": 1}
    trainer = make_trainer(tmp_path, tokenizer, train, callbacks=False, **more)
    trainer.train()
    assert sorted(seen(trainer)) == sorted(expected(Segmenter.from_tokenizer(tokenizer), 0))


@pytest.mark.parametrize("stream", [False, True])
def test_examples_without_numbers_are_refused_in_training(tmp_path, tokenizer, stream):
    train = datasets.Dataset.from_list([{"text": line} for line in LINES])
    train = train.to_iterable_dataset() if stream else train
    trainer = make_trainer(tmp_path, tokenizer, train, callbacks=False, max_steps=5)
    with pytest.raises(InputError, match=r"nothing would be dropped. Give Trainer\(train_dataset=collator.training"):
        trainer.train()


def test_columns_that_the_trainer_removes(tmp_path, tokenizer):
    trainer = make_trainer(tmp_path, tokenizer, [{"text": line} for line in LINES], remove_unused_columns=True)
    with pytest.raises(InputError, match="remove_unused_columns=False"):
        trainer.train()


def test_an_epoch_that_was_never_set(tokenizer):
    collator = DropoutCollator(tokenizer, dropout=P, seed=SEED)
    train = collator.training([{"text": line} for line in LINES])
    with pytest.warns(UserWarning, match="the epoch was never set"):
        collator([train[0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        collator([train[0]])  # once is enough
        DropoutCollator(tokenizer, dropout=0.0, seed=SEED)([train[0]])


def test_a_training_in_which_nothing_is_dropped(tmp_path, tokenizer):
    """Neither callback nor numbers: a warning, once."""
    collator = DropoutCollator(tokenizer, dropout=P, seed=SEED)
    args = TrainingArguments(
        str(tmp_path), use_cpu=True, report_to=[], disable_tqdm=True, remove_unused_columns=False, save_strategy="no"
    )
    model = Recording(GPT2Config(vocab_size=1600, n_positions=256, n_embd=8, n_layer=1, n_head=1))
    train = [{"text": line} for line in LINES]
    with pytest.warns(UserWarning, match="if this is a training, nothing is dropped") as said:
        Trainer(model, args, train_dataset=train, data_collator=collator).train()
    assert sum("nothing is dropped" in str(warning.message) for warning in said) == 1
    with pytest.warns(UserWarning, match="the epoch was never set"):  # this one is said all the same
        collator([collator.training(train)[0]])


@pytest.mark.filterwarnings("error::UserWarning:bpe_dropout")
def test_an_evaluation_before_the_training(tmp_path, tokenizer):
    examples = [{"text": line} for line in VALID]
    trainer = make_trainer(tmp_path, tokenizer, [{"text": line} for line in LINES], examples)
    trainer.evaluate()
    assert seen(trainer, training=False) == [tokenizer(line)["input_ids"] for line in VALID]


def test_an_evaluation_of_the_training_set(tmp_path, tokenizer):
    """Plain BPE before and after the training, and a warning: in it, the collator cannot know."""
    trainer = make_trainer(tmp_path, tokenizer, [{"text": line} for line in LINES], num_train_epochs=1)
    plain = [tokenizer(line)["input_ids"] for line in LINES]
    with pytest.warns(UserWarning, match="plain BPE here, since the Trainer is not training"):
        trainer.evaluate(trainer.train_dataset)
    assert seen(trainer, training=False) == plain
    trainer.train()
    assert sorted(seen(trainer)) == sorted(expected(Segmenter.from_tokenizer(tokenizer), 0))
    trainer.evaluate(trainer.train_dataset)
    assert seen(trainer, training=False) == plain * 2

    numbered = trainer.data_collator.training([{"text": line} for line in VALID])
    trainer = make_trainer(tmp_path, tokenizer, [{"text": line} for line in LINES], numbered, eval_strategy="epoch")
    with pytest.warns(UserWarning, match="the examples of the evaluation have numbers"):
        trainer.train()


def test_the_column_of_numbers_is_its_own(tokenizer):
    """SST-2 has its texts in `sentence`."""
    collator = DropoutCollator(tokenizer, P, SEED, text="sentence")
    collator.set_epoch(0)
    numbered = collator.training([{"sentence": line} for line in LINES])
    assert collator([numbered[2]])["input_ids"][0].tolist() == expected(Segmenter.from_tokenizer(tokenizer), 0)[2]
    with pytest.raises(InputError, match="'text' is the column of the texts"):
        DropoutCollator(tokenizer, P, SEED, number="text")
    with pytest.raises(InputError, match="example 0 of the training set has a column 'id' already"):
        DropoutCollator(tokenizer, P, SEED, number="id").training([{"text": "two", "id": 7}])


def test_no_padding_id(tmp_path):
    bare = PreTrainedTokenizerFast(tokenizer_object=KINDS["gpt2"]())
    with pytest.raises(InputError, match="the tokenizer has no padding token"):
        DropoutCollator(bare, dropout=P, seed=SEED)
    with pytest.raises(InputError, match="the tokenizer has no padding token"):
        DropoutCollator(KINDS["gpt2"](), dropout=P, seed=SEED)
    batch = DropoutCollator(KINDS["gpt2"](), 0.0, SEED, pad_id=7)([{"text": "two men"}, {"text": "two men are here"}])
    assert batch["input_ids"][0, -1] == 7
    assert batch["labels"][0, -1] == -100


def test_max_length_keeps_the_special_tokens(tokenizer):
    collator = DropoutCollator(tokenizer, 0.0, SEED, max_length=6)
    whole = tokenizer(LINES[0], truncation=True, max_length=6)["input_ids"]
    assert collator([{"text": LINES[0]}])["input_ids"].tolist() == [whole]
    with pytest.raises(InputError, match="leaves no room for text beside 2 special tokens"):
        DropoutCollator(tokenizer, 0.0, SEED, max_length=2)


def two(tokenizer, *examples):
    """A batch of two texts, with these columns."""
    return DropoutCollator(tokenizer, 0.0, SEED)([{"text": "two", **example} for example in examples])


@pytest.mark.parametrize("name", ["labels", "label", "label_ids"])
def test_labels_are_taken(tokenizer, name):
    batch = two(tokenizer, {name: 1}, {name: 0})
    assert batch["labels"].tolist() == [1, 0]
    assert list(batch) == ["input_ids", "attention_mask", "labels"]


def test_other_columns_are_passed_on_if_they_are_numbers(tokenizer):
    for one, other in ((1, 2), (1.5, 2.5), ([1, 2], [3, 4]), (np.array([1, 2]), np.array([3, 4])), (np.int64(1), 2)):
        assert two(tokenizer, {"x": one}, {"x": other})["x"].tolist() == [
            np.array(one).tolist(),
            np.array(other).tolist(),
        ]
    assert two(tokenizer, {"x": torch.tensor([1, 2])}, {"x": torch.tensor([3, 4])})["x"].tolist() == [[1, 2], [3, 4]]
    for one, other in (("a", "b"), (None, None), (["a", "b"], ["c"]), ({"id": 1}, {"id": 2})):
        assert "x" not in two(tokenizer, {"x": one}, {"x": other})


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ({"x": [1, 2]}, {"x": [1]}, r"\[\[1, 2\], \[1\]\]"),
        ({"x": 1}, {}, "None"),
        ({}, {"x": 1}, "None"),
        ({"x": 1}, {"x": "a"}, "'a'"),
        ({"x": []}, {"x": [1]}, r"\[\[\], \[1\]\]"),
        ({"label": "good"}, {"label": "bad"}, "'good'"),
        ({"label": None}, {"label": None}, "None"),
    ],
)
def test_columns_that_are_no_tensor(tokenizer, one, other, shown):
    with pytest.raises(InputError, match=rf"the column '(x|label)' is no tensor: .* and has {shown}\. Mend the column"):
        two(tokenizer, one, other)


def test_a_set_that_is_tokenized_already(tokenizer):
    with pytest.raises(InputError, match="the examples have 'input_ids' already"):
        two(tokenizer, {"input_ids": [1, 2]}, {"input_ids": [1, 2]})


def test_a_batch_without_examples(tokenizer):
    with pytest.raises(InputError, match="a batch needs at least one example"):
        two(tokenizer)


def test_padding_on_the_left(tokenizer):
    tokenizer.padding_side = "left"
    texts = ["two", "two men are here"]
    batch = DropoutCollator(tokenizer, 0.0, SEED)([{"text": line} for line in texts])
    theirs = tokenizer(texts, padding=True, return_tensors="pt")
    assert torch.equal(batch["input_ids"], theirs["input_ids"])
    assert torch.equal(batch["attention_mask"], theirs["attention_mask"])
    assert (batch["labels"][batch["attention_mask"] == 0] == -100).all()


def test_tokenizers_of_transformers(tokenizer):
    """Truncation and padding are arguments of their calls, and what an earlier call has left is not ours."""
    tokenizer(LINES, truncation=True, max_length=3, padding="max_length")
    segmenter = Segmenter.from_tokenizer(tokenizer)
    assert [segmenter.ids(line) for line in LINES] == [tokenizer(line)["input_ids"] for line in LINES]


def test_a_set_without_numbers_or_a_length(tokenizer):
    collator = DropoutCollator(tokenizer, P, SEED)
    with pytest.raises(InputError, match="streams of text have neither"):
        collator.training(iter([]))
    numbered = collator.training([{"text": line} for line in LINES])
    assert [numbered[n]["bpe_dropout_number"] for n in (0, 3, -1)] == [0, 3, len(LINES) - 1]
    with pytest.raises(IndexError):
        numbered[len(LINES)]


def test_the_collator_can_be_pickled(tokenizer):
    collator = DropoutCollator(tokenizer, P, SEED)
    collator.set_epoch(3)
    train = collator.training([{"text": line} for line in LINES])
    copy = pickle.loads(pickle.dumps(collator))
    assert copy([train[1]])["input_ids"].tolist() == collator([train[1]])["input_ids"].tolist()


def test_a_rule_with_a_schedule(tokenizer):
    """Epochs are numbered from 0 here: the first one has the first rates."""
    rule = Rule.parse("rank:0.8..0.2@anneal:3")
    collator = DropoutCollator(tokenizer, dropout=str(rule), seed=SEED)
    for epoch in range(4):
        collator.set_epoch(epoch)
        batch = collator([{"text": LINES[0], collator.number: 0}])
        expected = collator.segmenter.ids(LINES[0], rule.at(epoch + 1), SEED, epoch=epoch, sentence=0)
        assert batch["input_ids"][0].tolist() == expected
        assert (expected == collator.segmenter.ids(LINES[0])) == (epoch >= 2)
