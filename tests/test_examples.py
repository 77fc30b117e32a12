"""The examples in docstrings are true. Those that need a file of the reader are to be read, and are named here."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("bpe_dropout", "fairseq_plugins", "scripts", "experiments")
NEED_FILES = {
    "bpe_dropout",
    "bpe_dropout.calibration",
    "bpe_dropout.corpus",
    "bpe_dropout.data.folder",
    "bpe_dropout.lists",
    "bpe_dropout.most_probable",
    "bpe_dropout.segmenter",
    "bpe_dropout.tokenizer_segmenter",
    "bpe_dropout.tokenizers",
    "fairseq_plugins.translation",
}


def modules() -> list[str]:
    """Those with examples."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    return [name for name, path in named.items() if ">>>" in path.read_text("utf-8")]


def test_what_is_left_out_is_there():
    assert set(modules()) >= NEED_FILES


@pytest.mark.parametrize("name", [name for name in modules() if name not in NEED_FILES])
def test_examples(name):
    module = importlib.import_module(name)
    done = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL)
    assert done.attempted > 0
    assert done.failed == 0
