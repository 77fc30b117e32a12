"""PyTorch and fairseq get the same segmentations of a data folder, for the same seed and epoch."""

import pytest

pytest.importorskip("fairseq", reason="compares with fairseq, which `make setup` installs")

import torch
from fairseq.data import Dictionary

from bpe_dropout.cli import main
from bpe_dropout.data.pairs import Sides
from bpe_dropout.torch import Pairs, TokenBatches
from fairseq_plugins.dataset import Batching, SegmentedPairs, TensorSide


def test_the_same_segmentations(english, tmp_path):
    for language, lines in {"en": english[:200], "xx": [line[::-1] for line in english[:200]]}.items():
        (tmp_path / f"train.{language}").write_text("".join(f"{line}\n" for line in lines))
    prefix, data = str(tmp_path / "train"), tmp_path / "DATA"
    options = ["--source-lang", "en", "--target-lang", "xx", "--merges", "300", "--trainpref", prefix]
    assert main(["data", *options, "--destdir", str(data)]) == 0

    pairs = Pairs.from_folder(data, dropout=(0.1, 0.3), seed=7)
    dictionaries = [Dictionary.load(str(data / f"dict.{language}.txt")) for language in ("en", "xx")]
    assert [len(dictionary) for dictionary in dictionaries] == [text.dictionary.size for text in pairs.texts]
    sides = Sides(*(TensorSide([text], side) for side, text in enumerate(pairs.texts)))
    fairseq = SegmentedPairs(sides, *dictionaries, Batching(left_pad_source=False)).drawn(seed=7)
    batches = TokenBatches(pairs, max_tokens=400)
    for epoch in (1, 2):
        batches.set_epoch(epoch)
        fairseq.set_epoch(epoch)
        assert [fairseq.src_sizes.tolist(), fairseq.tgt_sizes.tolist()] == [
            sizes.tolist() for sizes in pairs.sizes(epoch)
        ]
        for numbers in batches:
            ours = pairs.collate(pairs.__getitems__(numbers))
            theirs = fairseq.collater(fairseq.__getitems__(numbers))
            order = [theirs["id"].tolist().index(number) for number in numbers]  # fairseq sorts by length
            for one, other in (
                (ours.source, theirs["net_input"]["src_tokens"]),
                (ours.source_lengths, theirs["net_input"]["src_lengths"]),
                (ours.previous, theirs["net_input"]["prev_output_tokens"]),
                (ours.target, theirs["target"]),
            ):
                assert torch.equal(one, other[order])
