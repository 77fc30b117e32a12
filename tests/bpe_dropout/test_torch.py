"""The front for PyTorch: what is drawn, and that it is the same with any workers, ranks and restarts, to the last
number. tests/fairseq_plugins does the same with fairseq."""

import io
import pickle
import shutil
import subprocess
import sys
import warnings
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the front for PyTorch needs torch")

import torch
from torch.utils.data import DataLoader

from bpe_dropout import Dictionary, InputError, Rule, Segmenter
from bpe_dropout.cli import main
from bpe_dropout.torch import Pairs, Sentences, TokenBatches

PAIRS = 300
MAX_TOKENS = 300


@pytest.fixture(scope="module")
def lines(english) -> dict[str, list[str]]:
    """English, and the same with every word spelled backwards."""
    # One line more than a few batches, an empty one, and one that is longer than any other.
    chosen = [*english[: PAIRS - 2], "", " ".join(english[:3])]
    return {"en": chosen, "xx": [" ".join(word[::-1] for word in line.split()) for line in chosen]}


@pytest.fixture(scope="module")
def folder(lines, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("torch")
    for language, text in lines.items():
        (path / f"train.{language}").write_text("".join(f"{line}\n" for line in text))
    command = "data --source-lang en --target-lang xx --merges 300 --trainpref train --validpref train --destdir DATA"
    assert main([str(path / word) if word in ("train", "DATA") else word for word in command.split()]) == 0
    return path / "DATA"


def make(folder: Path, dropout=0.2, seed=7, **options) -> tuple[Pairs, TokenBatches]:
    pairs = Pairs.from_folder(folder, dropout=dropout, seed=seed)
    return pairs, TokenBatches(pairs, **{"max_tokens": MAX_TOKENS, **options})


def load(pairs, batches, epochs=(1, 2), **options) -> list:
    """All batches of some epochs."""
    loader = DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate, **options)
    found = []
    for epoch in epochs:
        batches.set_epoch(epoch)
        found += loader
    return found


def assert_same(found: list, expected: list) -> None:
    assert len(found) == len(expected) > 0
    for left, right in zip(found, expected, strict=True):
        for name, one, other in zip(left._fields, left, right, strict=True):
            assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other, name


def rows(batches, side: str) -> dict[tuple[int, int], list[int]]:
    """(epoch, pair): the tokens of a side, without padding."""
    found: dict[tuple[int, int], list[int]] = {}
    for batch in batches:
        lengths = getattr(batch, "lengths" if side == "tokens" else f"{side}_lengths")
        for number, row, length in zip(batch.numbers.tolist(), getattr(batch, side), lengths.tolist(), strict=True):
            assert (batch.epoch, number) not in found
            assert (row[length:] == 1).all()
            found[batch.epoch, number] = row[:length].tolist()
    return found


@pytest.fixture(scope="module")
def alone(folder) -> list:
    """Two epochs without workers, on one rank, in one go."""
    return load(*make(folder))


@pytest.mark.parametrize(("side", "language", "number"), [("source", "en", 0), ("target", "xx", 1)])
def test_every_sentence_is_drawn_by_its_key(alone, folder, lines, side, language, number):
    segmenter = Segmenter.from_codes(folder / f"codes.{language}")
    dictionary = Dictionary.load(folder / f"dict.{language}.txt")
    found = rows(alone, side)
    assert found.keys() == {(epoch, pair) for epoch in (1, 2) for pair in range(PAIRS)}
    for (epoch, pair), tokens in found.items():
        key = {"epoch": epoch, "side": number, "sentence": pair}
        pieces = segmenter.segment(lines[language][pair], 0.2, 7, split="whitespace", **key)
        assert tokens == [*(dictionary[piece] for piece in pieces), 2]
    assert sum(found[1, pair] != found[2, pair] for pair in range(PAIRS)) > PAIRS / 2


def test_what_a_decoder_sees(alone):
    for batch in alone:
        for row, previous, length in zip(batch.target, batch.previous, batch.target_lengths.tolist(), strict=True):
            assert previous.tolist() == [2, *row[: length - 1].tolist(), *[1] * (len(row) - length)]


def test_batches_are_full(alone):
    counted = []
    for batch in alone:
        pairs, longest = len(batch.numbers), max(batch.source.shape[1], batch.target.shape[1])
        assert batch.source.shape == (pairs, batch.source_lengths.max())
        assert batch.target.shape == (pairs, batch.target_lengths.max())
        assert pairs * longest <= MAX_TOKENS
        counted.append(pairs * longest)
    assert np.mean(counted) > 0.8 * MAX_TOKENS
    assert [batch.step for batch in alone if batch.epoch == 1] == list(range(sum(b.epoch == 1 for b in alone)))


def test_the_order_is_shuffled(alone, folder):
    first, second = ([batch.numbers.tolist() for batch in alone if batch.epoch == epoch] for epoch in (1, 2))
    assert first != second
    widths = [batch.source.shape[1] for batch in alone]
    assert widths != sorted(widths)
    unshuffled = load(*make(folder, shuffle=False), epochs=[1])
    assert [batch.source.shape[1] for batch in unshuffled] == sorted(batch.source.shape[1] for batch in unshuffled)
    assert rows(unshuffled, "source") == {key: row for key, row in rows(alone, "source").items() if key[0] == 1}


@pytest.mark.parametrize(
    ("epochs", "options"),
    [
        ((1, 2), {"num_workers": 2}),
        ((1, 2, 1), {"num_workers": 2, "persistent_workers": True}),
        ((1,), {"num_workers": 2, "multiprocessing_context": "spawn"}),
        ((1, 2, 1), {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True}),
    ],
    ids=["forked", "forked and kept", "spawned", "spawned and kept"],
)
def test_workers_change_nothing(folder, alone, epochs, options):
    """Workers that are kept follow the epoch, and an epoch that comes again is the same again."""
    expected = [batch for epoch in epochs for batch in alone if batch.epoch == epoch]
    assert_same(load(*make(folder), epochs=epochs, **options), expected)


def test_an_epoch_that_is_left_early(folder, alone):
    """Workers that are kept have batches of the old epoch ready; none of them gets into the new one."""
    pairs, batches = make(folder)
    loader = DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate, num_workers=1, persistent_workers=True)
    batches.set_epoch(1)
    next(iter(loader))
    batches.set_epoch(2)
    assert_same(list(loader), [batch for batch in alone if batch.epoch == 2])


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_ranks(folder, alone, ranks):
    """Each epoch is a partition of the pairs, in as many batches for each rank, segmented as on one rank."""
    found = [load(*make(folder, rank=rank, world_size=ranks)) for rank in range(ranks)]
    assert len({len(batches) for batches in found}) == 1
    together = [batch for batches in found for batch in batches]
    assert len(together) - len(alone) < 2 * ranks
    for side in ("source", "target"):
        assert rows(together, side) == rows(alone, side)


def test_ranks_are_those_of_torch_distributed(folder, monkeypatch):
    expected = load(*make(folder, rank=1, world_size=2))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    assert_same(load(*make(folder)), expected)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [1, 8, None], ids=["begun", "middle", "finished"])
def test_restart_in_mid_epoch(folder, alone, workers, stop):
    """The state is that of the last batch that was trained on, though workers are ahead of it."""
    pairs, batches = make(folder)
    batches.set_epoch(1)
    loader = DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate, num_workers=workers)
    trained = list(islice(loader, stop))
    saved = io.BytesIO()
    torch.save(batches.state_dict(after=trained[-1]), saved)
    saved.seek(0)

    pairs, batches = make(folder)
    batches.load_state_dict(torch.load(saved))
    assert batches.epoch == 1
    rest = load(pairs, batches, epochs=range(batches.epoch, 3), num_workers=workers)
    assert_same([*trained, *rest], alone)


def test_the_state_of_what_was_given_out(folder, alone):
    """Without `after`, as torchdata's loader asks for it."""
    batches = make(folder)[1]
    assert batches.state_dict()["done"] == 0
    batches.set_epoch(2)
    given = iter(batches)
    first = [next(given) for _ in range(5)]
    state = batches.state_dict()
    assert (state["epoch"], state["done"]) == (2, 5)
    other = make(folder)[1]
    other.load_state_dict(state)
    assert [*first, *other] == [*first, *given] == [batch.numbers.tolist() for batch in alone if batch.epoch == 2]
    assert (other.state_dict()["done"], other.state_dict()["epoch"]) == (len(batches), 2)
    other.set_epoch(2)  # from its start once more
    assert other.state_dict()["done"] == 0


def test_another_epoch_after_a_restart_is_whole(folder, alone):
    pairs, batches = make(folder)
    batches.load_state_dict(batches.state_dict(after=alone[3]))
    assert_same(load(pairs, batches, epochs=[2]), [batch for batch in alone if batch.epoch == 2])


def test_a_later_epoch_stays_set_when_a_finished_one_is_loaded(folder, alone):
    """torchdata's loader loads the state when it is iterated, after set_epoch."""
    first = [batch for batch in alone if batch.epoch == 1]
    for last, left in ((first[-1], len(alone) - len(first)), (first[-2], 1)):
        pairs, batches = make(folder)
        batches.set_epoch(2)
        batches.load_state_dict(batches.state_dict(after=last))
        rest = list(DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate))
        assert_same(rest, alone[last.step + 1 :][:left])


@pytest.fixture
def accelerator():
    return pytest.importorskip("accelerate", reason="needs accelerate, of the extra dev").Accelerator(cpu=True)


def prepared(accelerator, pairs, batches):
    return accelerator.prepare(DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate))


def test_a_loader_of_accelerate(folder, alone, accelerator):
    """It counts epochs itself, so the epoch is set there; a restart goes on in mid-epoch."""
    pairs, batches = make(folder)
    loader, found = prepared(accelerator, pairs, batches), []
    for epoch in (1, 2):
        loader.set_epoch(epoch)
        found += loader
    assert_same(found, alone)

    at = next(number for number, batch in enumerate(alone) if batch.epoch == 2) + 4
    pairs, others = make(folder)
    others.load_state_dict(batches.state_dict(after=found[at]))
    loader = prepared(accelerator, pairs, others)
    loader.set_epoch(others.epoch)
    assert_same(list(loader), alone[at + 1 :])


def test_a_loader_of_accelerate_that_sets_another_epoch(folder, alone, accelerator):
    pairs, batches = make(folder)
    loader = prepared(accelerator, pairs, batches)
    batches.set_epoch(2)
    with pytest.raises(InputError, match=r"epoch 2 was set or loaded, .* epoch 0 is set.*call loader\.set_epoch"):
        next(iter(loader))
    pairs, batches = make(folder)
    batches.load_state_dict(batches.state_dict(after=alone[-2]))
    loader = prepared(accelerator, pairs, batches)
    batches.set_epoch(2)
    with pytest.raises(InputError, match=r"After load_state_dict, go on with batches\.epoch"):
        next(iter(loader))


def test_files_one_by_one(folder, alone):
    """Codes and dictionaries may be named, or made already, and be one for both sides."""
    texts = [folder / f"train.en-xx.{language}" for language in ("en", "xx")]
    codes = (folder / "codes.en", Segmenter.from_codes(folder / "codes.xx"))
    dictionaries = (str(folder / "dict.en.txt"), Dictionary.load(folder / "dict.xx.txt"))
    pairs = Pairs(*texts, codes=codes, dictionaries=dictionaries, dropout=0.2, seed=7, memory=0, threads=2)
    assert_same(load(pairs, TokenBatches(pairs, max_tokens=MAX_TOKENS)), alone)
    joint = Pairs(texts[0], texts[0], codes=codes[0], dictionaries=dictionaries[0], dropout=0.2, seed=7)
    source, target = joint[1, 17]
    assert torch.equal(source, pairs[1, 17][0])
    assert source.tolist() != target.tolist()  # the sides draw independently


def test_a_text_alone(folder, alone):
    text = Sentences(
        folder / "train.en-xx.en", codes=folder / "codes.en", dictionary=folder / "dict.en.txt", dropout=0.2, seed=7
    )
    found = load(text, TokenBatches(text, max_tokens=MAX_TOKENS), num_workers=1)
    assert rows(found, "tokens") == rows(alone, "source")
    for batch in found:
        assert (batch.previous[:, 0] == 2).all()
        assert batch.tokens.numel() <= MAX_TOKENS
    assert text[2, 5][0].tolist() == rows(alone, "source")[2, 5]


def test_a_side_without_dropout(folder, lines, alone):
    found = load(*make(folder, dropout=(0.2, 0)))
    assert rows(found, "source") == rows(alone, "source")
    segmenter, dictionary = Segmenter.from_codes(folder / "codes.xx"), Dictionary.load(folder / "dict.xx.txt")
    for (_, pair), tokens in rows(found, "target").items():
        assert tokens == [*(dictionary[piece] for piece in segmenter.segment(lines["xx"][pair])), 2]


def test_a_rule_with_a_schedule(folder, lines):
    rule = Rule.parse("rank:0.9..0.1@anneal:2")
    found = rows(load(*make(folder, dropout=(str(rule), 0.2))), "source")
    segmenter, dictionary = Segmenter.from_codes(folder / "codes.en"), Dictionary.load(folder / "dict.en.txt")
    for (epoch, pair), tokens in found.items():
        key = {"epoch": epoch, "side": 0, "sentence": pair}
        pieces = segmenter.segment(lines["en"][pair], rule.at(epoch), 7, split="whitespace", **key)
        assert tokens == [*(dictionary[piece] for piece in pieces), 2]
        assert epoch == 1 or pieces == segmenter.segment(lines["en"][pair])


def test_plain_pairs_need_no_epoch(folder):
    """For validation: by TokenBatches, or as any other dataset."""
    pairs = Pairs.from_folder(folder, "valid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = TokenBatches(pairs, max_tokens=MAX_TOKENS, shuffle=False)
        loader = DataLoader(pairs, batch_sampler=batches, collate_fn=pairs.collate)
        found = [*loader, *loader]
        others = list(DataLoader(pairs, batch_size=8, collate_fn=pairs.collate, num_workers=1))
    assert len(found) == 2 * len(batches)
    ours = {number: row for (_, number), row in rows(found[: len(batches)], "target").items()}
    theirs = {number: row for (_, number), row in rows(others, "target").items()}
    assert ours == theirs == {number: pairs[number][1].tolist() for number in range(PAIRS)}
    assert len(list(pairs)) == PAIRS


def test_any_method(folder, tmp_path):
    """Texts that a method of bpe_dropout.methods has made."""
    pytest.importorskip("sentencepiece")
    from bpe_dropout.methods import METHODS, Drawing
    from bpe_dropout.progress import Progress

    method = METHODS["unigram"]
    path, model = folder / "train.en-xx.en", tmp_path / "unigram.en.model"
    method.learn(path, 200, model, 1, Progress())
    loaded = method.load(model, "src", "en")
    counts = method.count(loaded, path, "plain")
    dictionary = Dictionary({piece: 4 + number for number, piece in enumerate(counts)}, unk=3, eos=2, pad=1)
    text = method.text(path, loaded, dictionary, "src", Drawing(method.options()))
    sentences = Sentences(text, seed=7)
    found = rows(load(sentences, TokenBatches(sentences, max_tokens=MAX_TOKENS)), "tokens")
    assert len(found) == 2 * PAIRS
    drawn = text.draw(7, 2, 0).tokens(np.array([5]))
    assert found[2, 5] == drawn.ids.tolist()
    with pytest.raises(InputError, match="is made already"):
        Sentences(text, dropout=0.1)


# What goes wrong.


def test_an_epoch_that_was_never_set(folder):
    batches = make(folder)[1]
    with pytest.warns(UserWarning, match=r"epoch 0 is drawn, and set_epoch was not called.*same segmentations"):
        list(batches)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epoch in (1, 2):
            batches.set_epoch(epoch)
            list(batches)
            len(batches)
    with pytest.warns(UserWarning, match="epoch 2 is drawn, and set_epoch was not called"):
        list(batches)


@pytest.mark.parametrize("ask", [lambda pairs: pairs[3], lambda pairs: list(DataLoader(pairs, collate_fn=print))])
def test_no_epoch_at_all(folder, ask):
    with pytest.raises(InputError, match=r"train\.en-xx\.en is segmented anew in every epoch.*call its set_epoch"):
        ask(make(folder)[0])


@pytest.fixture
def own(folder, tmp_path) -> Pairs:
    """Pairs of a text that may be changed."""
    for name in ("train.en-xx.en", "train.en-xx.xx"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return pairs_of(folder, tmp_path)


def pairs_of(folder: Path, texts: Path) -> Pairs:
    codes, dictionaries = (
        [folder / name.format(side) for side in ("en", "xx")] for name in ("codes.{}", "dict.{}.txt")
    )
    paths = [texts / f"train.en-xx.{language}" for language in ("en", "xx")]
    return Pairs(*paths, codes=codes, dictionaries=dictionaries, dropout=0.2)


def test_a_text_that_changes_between_epochs(own, folder, tmp_path):
    batches = TokenBatches(own, max_tokens=MAX_TOKENS)
    batches.set_epoch(1)
    state = batches.state_dict(after=load(own, batches, epochs=[1])[3])
    text, packed = tmp_path / "train.en-xx.en", pickle.dumps(own)
    before = text.read_bytes()
    batches.set_epoch(2)
    text.write_bytes(before)  # written again, but the same
    batches.set_epoch(3)
    words = before.split(b"\n")
    words[0] = b" ".join(reversed(words[0].split(b" ")))
    text.write_bytes(b"\n".join(words))
    for ask in (lambda: batches.set_epoch(4), lambda: pickle.loads(packed)):
        with pytest.raises(InputError, match=r"train\.en-xx\.en has changed since it was loaded; put it back"):
            ask()
    with pytest.raises(
        InputError, match=r"the batches of epoch 1 are not those of the state: a text, .*set_epoch\(2\)"
    ):
        TokenBatches(pairs_of(folder, tmp_path), max_tokens=MAX_TOKENS).load_state_dict(state)
    text.unlink()
    with pytest.raises(InputError, match=r"train\.en-xx\.en is gone"):
        batches.set_epoch(4)


@pytest.mark.parametrize(
    "other", [{"seed": 8}, {"dropout": 0.1}, {"max_tokens": 299}, {"world_size": 2}, {"max_sentences": 5}]
)
def test_a_state_of_other_batches(folder, alone, other):
    state = make(folder)[1].state_dict(after=alone[3])
    batches = make(folder, **other)[1]
    with pytest.raises(InputError, match="the batches of epoch 1 are not those of the state"):
        batches.load_state_dict(state)
    batches.load_state_dict({**state, "done": 0})  # an epoch that has not begun may have other batches
    assert len(list(batches)) == len(batches)


@pytest.mark.parametrize("changed", ["dict.en.txt", "codes.xx"])
def test_a_state_of_other_ids(folder, alone, tmp_path, changed):
    """Lengths and batches are the same, and tokens are not."""
    copy = shutil.copytree(folder, tmp_path / "DATA")
    state = make(folder)[1].state_dict(after=alone[3])
    make(copy)[1].load_state_dict(state)  # the same folder elsewhere
    lines = (copy / changed).read_text().split("\n")
    if changed == "dict.en.txt":
        lines[:2] = lines[1::-1]
    else:
        lines[-2] = "\u2603 \u2603"  # instead of the last merge
    (copy / changed).write_text("\n".join(lines))
    batches = make(copy)[1]
    batches._data.sizes = make(folder)[0].sizes  # as if the merges happened to make as many pieces
    with pytest.raises(InputError, match="the batches of epoch 1 are not those of the state"):
        batches.load_state_dict(state)


def test_a_state_with_more_batches_than_there_are(folder, alone):
    batches = make(folder)[1]
    state = batches.state_dict(after=alone[3])
    batches.load_state_dict({**state, "done": sum(batch.epoch == 1 for batch in alone)})
    with pytest.raises(InputError, match=r"not a state of TokenBatches: 1000 batches are done of epoch 1, of \d\d"):
        batches.load_state_dict({**state, "done": 1000})


@pytest.mark.parametrize("state", [{}, {"epoch": 1}, None, {"epoch": -1, "done": 0, "batches": ""}])
def test_bad_states(folder, state):
    with pytest.raises(InputError, match=r"not a state of TokenBatches|the epoch is a whole number"):
        make(folder)[1].load_state_dict(state)


def test_a_batch_of_another_sampler_has_no_state(folder):
    pairs = Pairs.from_folder(folder)
    batch = pairs.collate(pairs.__getitems__([1, 2]))
    with pytest.raises(InputError, match="a batch that TokenBatches has given out"):
        TokenBatches(pairs, max_tokens=MAX_TOKENS).state_dict(after=batch)


def test_sentences_that_are_too_long(folder, alone):
    longest = max(len(row) for side in ("source", "target") for row in rows(alone, side).values())
    for limit in ({"max_tokens": longest - 1}, {"max_length": longest - 1}):
        pairs, batches = make(folder, **limit)
        with pytest.warns(UserWarning, match=rf"1 of {PAIRS} sentences are longer than {longest - 1} tokens") as said:
            found = load(pairs, batches, epochs=(1, 2))
        assert len(said) == 1
        assert 2 * PAIRS - 2 <= len(rows(found, "source")) < 2 * PAIRS
        assert batches.skipped in (0, 1)


def test_all_sentences_are_too_long(folder, tmp_path):
    (tmp_path / "text").write_text("two words\n")
    text = Sentences(tmp_path / "text", codes=folder / "codes.en", dictionary=folder / "dict.en.txt")
    with pytest.raises(InputError, match="every sentence is longer than 2 tokens: allow longer ones"):
        len(TokenBatches(text, max_tokens=2))


def test_bad_options(folder):
    pairs = make(folder)[0]
    for options, message in (
        ({"max_tokens": 0}, "max_tokens is a whole number from 1 on, not 0"),
        ({"max_tokens": 10.5}, "max_tokens is a whole number"),
        ({"max_tokens": 9, "max_sentences": 0}, "max_sentences is a whole number from 1 on"),
        ({"max_tokens": 9, "world_size": 2, "rank": 2}, "the rank is a whole number from 0 to 1, not 2"),
    ):
        with pytest.raises(InputError, match=message):
            TokenBatches(pairs, **options)
    with pytest.raises(InputError, match="the epoch is a whole number"):
        TokenBatches(pairs, 100).set_epoch(-1)
    for options, message in (
        ({"dropout": 1.5}, "dropout is a probability"),
        ({"dropout": (0.1, 0.1, 0.1)}, "one for both sides, or one for each"),
        ({"seed": -1}, "the seed is a whole number"),
        ({"split": "test"}, r"there is no .*test\.en-xx\.en"),
    ):
        with pytest.raises(InputError, match=message):
            Pairs.from_folder(folder, **options)


def test_bad_texts(folder, tmp_path):
    text, short = folder / "train.en-xx.en", tmp_path / "short"
    short.write_text("one line\n")
    both = {"codes": folder / "codes.en", "dictionaries": folder / "dict.en.txt"}
    with pytest.raises(InputError, match=rf"train\.en-xx\.en has {PAIRS} lines and .*short has 1: line n"):
        Pairs(text, short, **both)
    with pytest.raises(InputError, match="say what segments it"):
        Pairs(text, text, codes=both["codes"])
    ids = Dictionary.load(folder / "dict.en.txt").ids
    for dictionary, missing in ((Dictionary(ids, unk=3, eos=2), "padding"), (Dictionary(ids, unk=3, pad=1), "end of")):
        with pytest.raises(InputError, match=rf"the dictionary of .*train\.en-xx\.en has no id for {missing}"):
            Sentences(text, codes=folder / "codes.en", dictionary=dictionary)
    with pytest.warns(UserWarning, match=r"of the pieces of .*Codes and dictionary do not match"):
        Sentences(text, codes=folder / "codes.en", dictionary=folder / "dict.xx.txt")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_that_does_not_pad(folder, workers):
    pairs, batches = make(folder)
    batches.set_epoch(1)
    with pytest.raises(InputError, match=r"collate_fn=data\.collate"):
        next(iter(DataLoader(pairs, batch_sampler=batches, num_workers=workers)))


def test_bad_arguments(folder, tmp_path):
    text, codes, dictionary = (folder / name for name in ("train.en-xx.en", "codes.en", "dict.en.txt"))
    pairs, batches = make(folder)
    for ask, message in (
        (lambda: Sentences(text, codes=(codes, codes), dictionary=dictionary), r"expected the path of codes, not \("),
        (lambda: Sentences("none", codes=codes, dictionary=dictionary), "no file none, which should be a text"),
        (lambda: Sentences(tmp_path, codes=codes, dictionary=dictionary), "which should be a text"),
        (lambda: Sentences(text, codes="none", dictionary=dictionary), "no file none, which should be codes"),
        (lambda: Sentences(text, codes=codes, dictionary="none"), "no file none, which should be a dictionary"),
        (lambda: batches.state_dict(after=5), "a batch that TokenBatches has given out"),
        (lambda: pairs[1, 2, 3], r"ask for data\[epoch, number\].* not for \(1, 2, 3\)"),
        (lambda: pairs["x"], r"ask for data\[epoch, number\].* not for 'x'"),
        (lambda: Pairs.from_folder(tmp_path), "give source_lang= and target_lang=, or make"),
    ):
        with pytest.raises(InputError, match=message):
            ask()


def test_nothing_else_imports_torch():
    """All modules of the package but this one, the collator for transformers.Trainer, and what reads checkpoints."""
    code = """
import sys, pkgutil, importlib, bpe_dropout
names = [module.name for module in pkgutil.walk_packages(bpe_dropout.__path__, "bpe_dropout.")]
assert "bpe_dropout.torch" in names
with_torch = {f"bpe_dropout.{name}" for name in ("torch", "huggingface", "checkpoints", "averaging")}
for name in names:
    if name not in {*with_torch, "bpe_dropout.__main__"}:
        importlib.import_module(name)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
