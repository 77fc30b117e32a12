"""Text and merge tables for the tests: English words of our own making (english.py), real text in many
languages from ../shared/data where it is there."""

import contextlib
import gzip
import io
import os
import re
import sys
import time
from pathlib import Path

import pytest

import bpe_dropout
from bpe_dropout import Codes, Segmenter

# For scripts/, which is not installed. Last, so that another build of bpe_dropout comes before this folder's.
sys.path.append(str(Path(__file__).parents[1]))

# `make sanitize` says which build it means to test; any other would test nothing.
if expected := os.environ.get("BPE_DROPOUT_FROM"):
    assert Path(bpe_dropout.__file__).is_relative_to(expected), bpe_dropout.__file__


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-directions", action="store_true", help="test_base.py: all directions and systems")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, so that it does not come last and alone."""
    items.sort(key=lambda item: item.path.name != "test_system.py")


STARTED = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where TEST_MINUTES is given, a test that has not begun by then is skipped, and says so."""
    minutes = float(os.environ.get("TEST_MINUTES") or "inf")
    if time.monotonic() - STARTED > 60 * minutes:
        pytest.skip(f"not begun within {minutes:g} minutes (TEST_MINUTES): this machine is slow or busy")


SHARED = Path(__file__).parents[2] / "shared" / "data"


def learn(lines: list[str], merges: int) -> Codes:
    """subword-nmt's learner on some lines."""
    from subword_nmt.learn_bpe import learn_bpe

    learned = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        learn_bpe(io.StringIO("\n".join(lines) + "\n"), learned, merges)
    return Codes(tuple(tuple(line.split(" ")) for line in learned.getvalue().splitlines()[1:]))


def as_version_1(codes: Codes) -> Codes:
    """The same merges with "</w>" as a symbol of its own, as in codes of version 0.1."""
    ends = dict.fromkeys(
        (s.removesuffix("</w>"), "</w>") for pair in codes.pairs for s in pair if re.fullmatch(r".</w>", s)
    )
    return Codes((*ends, *codes.pairs), version=(0, 1))


def write_codes(path: Path, codes: Codes) -> Path:
    head = "#version: 0.2\n" if codes.version == (0, 2) else ""
    path.write_bytes((head + "".join(f"{left} {right}\n" for left, right in codes.pairs)).encode())
    return path


@pytest.fixture(scope="session")
def english() -> list[str]:
    """7000 lines of English words, the same with every version of Python."""
    from tests.english import make_lines

    return make_lines()


@pytest.fixture(scope="session")
def codes(english: list[str]) -> Codes:
    return learn(english, 1200)


@pytest.fixture(scope="session")
def segmenter(codes: Codes) -> Segmenter:
    return Segmenter(codes)


@pytest.fixture(scope="session")
def words(english: list[str]) -> list[str]:
    """Distinct words, the most frequent first."""
    counts: dict[str, int] = {}
    for line in english:
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts, key=lambda word: -counts[word])


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("needs the real text of ../shared/data, which is not here")
    return SHARED


def read_gz(path: Path) -> list[str]:
    """The lines of a gzipped file, split at \\n only."""
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    return lines[:-1] if lines[-1] == "" else lines
