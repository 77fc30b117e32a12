"""A text of a data folder: its lengths without dropout are counted by distinct words, and are those of its ids."""

import pickle

import numpy as np
import pytest

from bpe_dropout import Corpus, Dictionary, Segmenter, corpus
from bpe_dropout.data.texts import Segmentations
from bpe_dropout.methods.bpe import BpeModel, BpeText


@pytest.fixture
def text(tmp_path, codes, english):
    def make(p: float = 0.1, eos: int | None = 2, glossaries: tuple[str, ...] = ()) -> BpeText:
        path = tmp_path / "train.en"
        lines = ["", *english[:300], "", " ", "unheardof", *english[:50]]
        path.write_text("".join(f"{line}\n" for line in lines))
        segmenter = Segmenter(codes, glossaries=glossaries)
        pieces = sorted(set(segmenter.stream().text(path.read_bytes()).decode().split()))[::2]
        dictionary = Dictionary({piece: 4 + number for number, piece in enumerate(pieces)}, unk=3, eos=eos)
        return BpeText(path, BpeModel(segmenter), dictionary, p, 1 << 20, 1)

    return make


def lengths_of_ids(plain: Segmentations) -> list[int]:
    offsets = plain.tokens(np.arange(len(plain.lengths))).offsets
    return np.diff(offsets).tolist()


@pytest.mark.parametrize("p", [0.0, 0.1])
@pytest.mark.parametrize("eos", [2, None])
def test_plain_lengths(text, p, eos, monkeypatch):
    monkeypatch.setattr(corpus, "_SENTENCES", 7)
    plain = text(p, eos).plain()
    assert plain.lengths.tolist() == lengths_of_ids(plain)
    assert plain.lengths.dtype == plain.sampler.lengths(seed=0, epoch=0).dtype


def test_plain_lengths_with_glossaries(text):
    plain = text(glossaries=("man", "[a-c]+")).plain()
    assert plain.lengths.tolist() == lengths_of_ids(plain)


def test_plain_lengths_need_no_sampler(text, monkeypatch):
    """Which takes as long to make as to read the text."""
    made = text()
    made.unknown()
    monkeypatch.setattr(Corpus, "sampler", None)
    monkeypatch.setattr(Segmenter, "stream", None)
    assert len(made.plain().lengths) == len(made)


def test_a_copy_in_another_process(text):
    plain = text().plain()
    copy = pickle.loads(pickle.dumps(plain))
    assert copy.lengths.tolist() == plain.lengths.tolist()
    assert lengths_of_ids(copy) == copy.lengths.tolist()


def test_drawn_lengths_are_drawn(text):
    drawn = text().draw(1, 1, 0)
    assert drawn.lengths.tolist() == lengths_of_ids(drawn)
    assert drawn.lengths.sum() > text().plain().lengths.sum()
