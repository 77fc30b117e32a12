"""Without dropout, training on words is training on text that subword-nmt segmented and fairseq binarized."""

import filecmp

import pytest

from tests.fairseq_plugins.conftest import OURS, TRAIN, run, run_both

PLAIN = [*OURS, "--bpe-dropout-src", "0", "--bpe-dropout-tgt", "0"]


@pytest.fixture(scope="module")
def stock(binarized, tmp_path_factory):
    return run(
        "fairseq-train", binarized / "BIN", *TRAIN, "--max-epoch", "3", "--save-dir", tmp_path_factory.mktemp("s")
    )


def test_dictionaries_are_those_of_preprocess(data, binarized):
    for name in ("dict.en.txt", "dict.xx.txt"):
        assert filecmp.cmp(data / name, binarized / "BIN" / name, shallow=False)


def test_losses_are_those_of_stock_fairseq(data, stock, tmp_path):
    ours = run("fairseq-train", data, *PLAIN, *TRAIN, "--max-epoch", "3", "--save-dir", tmp_path)
    assert len(stock.losses) > 60
    assert ours.losses == pytest.approx(stock.losses, rel=1e-5)
    for log, other in zip(ours.logged("valid"), stock.logged("valid"), strict=True):
        assert float(log["valid_loss"]) == pytest.approx(float(other["valid_loss"]), rel=1e-5)


def test_any_other_bpe_is_fairseqs_own(binarized, stock, tmp_path):
    """The plugin is there, and asked for nothing."""
    plugin = OURS[:2]
    first, second = run_both(
        ("fairseq-train", binarized / "BIN", *plugin, *TRAIN, "--max-epoch", "3", "--save-dir", tmp_path / "a"),
        ("fairseq-train", binarized / "BIN", *plugin, "--bpe", "subword_nmt", *TRAIN, "--max-epoch", "3", "--save-dir",
         tmp_path / "b"),
    )  # fmt: skip
    assert first.losses == second.losses == stock.losses
