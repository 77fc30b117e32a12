"""The examples in docstrings of the reproduction are true."""

import doctest
import importlib

import pytest

from scripts.corpora import ROOT

MODULES = [path.stem for path in sorted((ROOT / "scripts").glob("*.py")) if ">>>" in path.read_text("utf-8")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    done = doctest.testmod(importlib.import_module(f"scripts.{name}"))
    assert done.attempted > 0
    assert done.failed == 0
