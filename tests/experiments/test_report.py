"""The report: the command, what it writes, and that the one that is committed is what the command makes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.analysis.__main__ import anchor
from scripts.corpora import ROOT
from scripts.paper import read_items

RESULTS = ROOT / "experiments" / "results"
REPORT = ROOT / "experiments" / "report"


def call(*arguments: str, code: int = 0) -> str:
    made = subprocess.run(
        [sys.executable, "-m", "experiments.analysis", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert made.returncode == code, made.stderr
    return made.stdout if code == 0 else made.stderr


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "tables").mkdir()
    (folder / "tables" / "table-gone.md").write_text("of an earlier report")
    (folder / "tables" / "mine.md").write_text("not of a report")
    call("report", "--output", str(folder))
    return folder


def test_the_committed_report_is_what_the_command_makes(report):
    """Text only: how figures are written depends on the version of matplotlib."""
    assert (report / "README.md").read_text() == (REPORT / "README.md").read_text(), "run `make report`"
    for kind in ("tables", "figures"):
        made, kept = ({path.name for path in (folder / kind).iterdir()} for folder in (report, REPORT))
        assert made - {"mine.md"} == kept
    for path in (REPORT / "tables").iterdir():
        assert (report / "tables" / path.name).read_text() == path.read_text()


def test_everything_is_in_it(report):
    text, page = (report / "README.md").read_text(), (report / "index.html").read_text()
    for item in read_items().values():
        assert f"\n## {item.title}\n" in text
        assert f"](#{anchor(item.title)})" in text
        assert f'id="{item.name}"' in page
    for path in (report / "figures").glob("*.svg"):
        assert f"figures/{path.name}" in text
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert {path.suffix for path in (report / "tables").iterdir()} == {".md", ".tex"}
    assert str(ROOT) not in text + page, "nothing says where it was made"


def test_what_an_earlier_report_had_is_removed_and_nothing_else(report):
    assert not (report / "tables" / "table-gone.md").exists()
    assert (report / "tables" / "mine.md").exists()


def test_one_table(tmp_path):
    out = call("table-main", "--output", str(tmp_path))
    assert "| En-Vi | not run (paper 31.78) |" in out
    assert (
        "`make fill-table-main` runs all that is missing; `make iwslt15.en-vi.bpe.base.seed1` runs one of them." in out
    )
    assert {path.name for path in (tmp_path / "tables").iterdir()} >= {"table-main.md", "table-main.tex"}
    assert not (tmp_path / "index.html").exists()


def test_without_any_results(tmp_path):
    out = call("report", "--results", str(tmp_path / "none"), "--output", str(tmp_path / "made"))
    assert "0 differ, and 179 were not run" in out
    assert 'id="explorer"' not in (tmp_path / "made" / "index.html").read_text(), "there is no merge table"


def test_of_runs_of_ones_own(tmp_path):
    out = call("report", "demo.en-de.bpe.small.seed1", "--output", str(tmp_path))
    assert "Of the runs demo.en-de.bpe.small.seed1, which are not the paper's." in out
    text = (tmp_path / "README.md").read_text()
    bleu = json.loads((RESULTS / "demo.en-de.bpe.small.seed1.json").read_text())["bleu"]
    assert f"{bleu:.2f}" in text
    assert "paper 31.78" not in text


def test_mistakes_are_said():
    assert "there is no table-nix; there are figure-merges" in call("table-nix", code=1)
    assert "nix is not the name of a run" in call("report", "nix", code=1)
    wrong = call("report", "multi30k.en-de.bpe.base.seed7", code=1)
    assert "has nothing of multi30k.en-de.bpe.base.seed7: run them first" in wrong


def test_results_were_made_by_the_command_that_they_name():
    """Every measurement that is committed names its command, and the run and measure that it is of."""
    from scripts.corpora import CONFIGS
    from scripts.measures import MEASURES
    from scripts.reproduce import resolve

    found = [path for measure in MEASURES for path in (RESULTS / measure).glob("*.json")]
    assert {path.parent.name for path in found} == set(MEASURES), "there is one of each"
    for path in found:
        record = json.loads(path.read_text())
        assert record["command"] == f"make {path.parent.name}.{path.stem}"
        assert resolve(record["command"].removeprefix("make "), [], CONFIGS, 1).measures
        assert record["versions"]["commit"]
