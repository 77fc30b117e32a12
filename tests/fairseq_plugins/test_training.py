"""Training, by the real command: what is drawn, for whom, and that it is the same however it is run."""

from collections import Counter

import pytest

from bpe_dropout import Segmenter
from tests.fairseq_plugins.conftest import (
    RECORD,
    TRAIN,
    load_symbols,
    read_record,
    run_both,
)  # fmt: skip

P = ["--bpe", "bpe_dropout", "--bpe-dropout-src", "0.2", "--bpe-dropout-tgt", "0.3"]


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory):
    """Two epochs, with every batch on record; and the same with more workers, and with other memory and threads."""
    folders = [tmp_path_factory.mktemp(name) for name in ("none", "one", "two")]
    more = (
        ["--num-workers", "0"],
        ["--num-workers", "1"],
        ["--num-workers", "2", "--resegment-memory", "0", "--resegment-threads", "1"],
    )
    done = run_both(
        *(
            (
                "fairseq-train",
                data,
                *RECORD,
                *P,
                *TRAIN,
                *options,
                "--max-epoch",
                "2",
                "--save-dir",
                folder / "save",
                {"RECORD": str(folder)},
            )
            for folder, options in zip(folders, more, strict=True)
        )
    )
    return done, [read_record(folder) for folder in folders]


def test_workers_change_nothing(recorded):
    done, records = recorded
    assert len(done[0].losses) > 20
    assert done[0].losses == done[1].losses == done[2].losses
    assert records[0] == records[1] == records[2]


def pieces_of(record, side, symbols, training):
    return [
        {number: [symbols[token] for token in tokens] for number, tokens in zip(batch["id"], batch[side], strict=True)}
        for batch in record
        if batch["training"] == training
    ]


@pytest.mark.parametrize(("side", "language", "p", "number"), [("source", "en", 0.2, 0), ("target", "xx", 0.3, 1)])
def test_training_sees_fresh_segmentations(recorded, data, corpus, side, language, p, number):
    """Every pair once an epoch, segmented as (seed, epoch, side, pair) says."""
    _, (record, *_) = recorded
    symbols = load_symbols(data / f"dict.{language}.txt")
    batches = pieces_of(record, side, symbols, training=True)
    segmenter = Segmenter.from_codes(corpus.codes[language])
    lines = (corpus.folder / f"train.{language}").read_text().splitlines()
    epochs = [dict(pair for batch in half for pair in batch.items()) for half in halves(batches, len(lines))]
    for epoch, pairs in enumerate(epochs, 1):
        for pair, pieces in pairs.items():
            drawn = segmenter.segment(
                lines[pair], p, seed=7, epoch=epoch, side=number, sentence=pair, split="whitespace"
            )
            assert pieces == [piece if piece in symbols else "<unk>" for piece in drawn] + ["</s>"]
    different = sum(epochs[0][pair] != epochs[1].get(pair) for pair in epochs[0])
    assert different > 0.5 * len(lines)


def halves(batches, pairs):
    """Batches of two epochs, apart. fairseq leaves out up to 7 of the longest pairs, to fill batches of 8."""
    first, count = [], 0
    for number, batch in enumerate(batches):
        if any(pair in earlier for pair in batch for earlier in first):
            assert pairs - 8 < count <= pairs
            rest = batches[number:]
            assert pairs - 8 < sum(map(len, rest)) <= pairs
            return first, rest
        first.append(batch)
        count += len(batch)
    raise AssertionError("there is only one epoch")


def test_validation_is_plain(recorded, data, corpus):
    _, (record, *_) = recorded
    for side, language in (("source", "en"), ("target", "xx")):
        symbols = load_symbols(data / f"dict.{language}.txt")
        segmenter = Segmenter.from_codes(corpus.codes[language])
        lines = (corpus.folder / f"valid.{language}").read_text().splitlines()
        seen = pieces_of(record, side, symbols, training=False)
        assert len(seen) > 2
        for batch in seen:
            for pair, pieces in batch.items():
                plain = segmenter.segment(lines[pair])
                assert pieces == [piece if piece in symbols else "<unk>" for piece in plain] + ["</s>"]


def test_sizes_are_exact(recorded):
    """--max-tokens counts pairs times the longest of them, on either side: full, and never more."""
    _, (record, *_) = recorded
    counted = []
    for batch in record:
        pairs, source, _, target = batch["shape"]
        assert source == max(map(len, batch["source"]))
        assert target == max(map(len, batch["target"]))
        assert pairs * max(source, target) <= 400
        counted.append(pairs * max(source, target))
    assert sum(counted) / len(counted) > 250


def test_what_is_logged(recorded, data, corpus):
    """The realised length ratio and the share of unknown pieces, counted here once more."""
    (done, *_), (record, *_) = recorded
    first = done.logged("train")[0]
    training = [batch for batch in record if batch["training"]]
    epoch, _ = halves([{pair: batch for pair in batch["id"]} for batch in training], 600)
    for name, side, language in (("src", "source", "en"), ("tgt", "target", "xx")):
        segmenter = Segmenter.from_codes(corpus.codes[language])
        lines = (corpus.folder / f"train.{language}").read_text().splitlines()
        tokens = Counter(t for batch in training[: len(epoch)] for line in batch[side] for t in line[:-1])
        plain = sum(len(segmenter.segment(lines[pair])) for batch in epoch for pair in batch)
        assert float(first[f"train_{name}_ratio"]) == pytest.approx(sum(tokens.values()) / plain, abs=1e-4)
        assert float(first[f"train_{name}_ratio"]) > 1.1
        assert float(first[f"train_{name}_unk"]) == pytest.approx(tokens[3] / sum(tokens.values()), abs=1e-6)
        assert tokens[3] > 0
    assert "BPE-dropout, p = 0.2 (source) and 0.3 (target), seed 7; 0 of 600 pairs are skipped" in done.out
