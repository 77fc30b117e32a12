"""The report: the command, what it writes, and that the one that is committed is what the command makes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.markdown import anchor
from experiments.analysis.report import noise_of_seeds
from scripts.corpora import CONFIGS, ROOT
from scripts.paper import read_items
from scripts.resampling import write_scores
from tests.experiments.conftest import Made

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
    left_out = []
    for item in read_items().values():
        if f'id="{item.name}"' not in page:
            left_out.append(item.name)
            continue
        assert f"\n### {item.title}\n" in text
        assert f"](#{anchor(item.title)})" in text
    assert set(left_out) <= NO_NUMBERS | {name for name in read_items() if name.startswith("study-")}
    for path in (report / "figures").glob("*.svg"):
        assert f"figures/{path.name}" in text
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert {path.suffix for path in (report / "tables").iterdir()} == {".md", ".tex"}
    assert str(ROOT) not in text + page, "nothing says where it was made"


# Figures and tables for which the paper prints no numbers, so that there is nothing to show before they are run.
NO_NUMBERS = {
    "figure-merges",
    "figure-p",
    "figure-size",
    "figure-lengths",
    "figure-substrings",
    "figure-embeddings",
    "table-p",
}


def test_it_begins_with_what_was_found(report):
    """A row for each claim of the study, and a verdict in each; the study before the paper's own tables."""
    text = (report / "README.md").read_text()
    every = [claim for item in read_items().values() if item.is_study for claim in item.claims]
    table = text[text.index("## What was found") : text.index("- The study")]
    lines = [line for line in table.split("\n") if line.startswith("| ")]
    ours = next(number for number, line in enumerate(lines) if line.startswith("| what else was asked"))
    for is_ours, rows in ((False, lines[2:ours]), (True, lines[ours + 2 :])):
        found = [row.split(" | ")[-1].split(" (")[0].removesuffix(" |") for row in rows]
        assert found == sorted(found, key=lambda one: one == "not run"), "what was run comes first"
        assert set(found) <= set(VERDICTS[is_ours])
        claims = [claim for claim in every if claim.is_ours == is_ours]
        assert len(claims) == len(rows)
        for claim in claims:
            assert sum(row.startswith(f"| {claim.text} |") for row in rows) == 1
    assert f"Of {ours - 2} claims: " in table
    assert text.index("\n## The study") < text.index("\n## The paper's tables")


VERDICTS = (("reproduced", "not reproduced", "undecided", "not run"), ("yes", "no", "undecided", "not run"))


def test_the_noise_of_training(tmp_path):
    """Two trainings of one system, compared as two systems are."""
    results, rng = Made(tmp_path), np.random.default_rng(1)
    items, run = list(read_items().values()), "multi30k.en-de.5k.bpe.small.seed{}"
    assert noise_of_seeds(items, results, CONFIGS) == ""
    together = rng.normal(size=1000)
    for seed, bleu in ((1, 20.0), (2, 20.1), (3, 23.0)):
        scores = bleu + together + 0.2 * rng.normal(size=1000)
        results.add(run.format(seed), bleu=bleu, **{"resampled bleu": write_scores(scores)})
    said = noise_of_seeds(items, Made(tmp_path), CONFIGS)
    expected = "in 2 of 3 cases, where chance alone would in 0; they are 2.00 BLEU apart on average, and 3.00 at most"
    assert expected in " ".join(said.split())


def test_what_an_earlier_report_had_is_removed_and_nothing_else(report):
    assert not (report / "tables" / "table-gone.md").exists()
    assert (report / "tables" / "mine.md").exists()


def test_one_table(tmp_path):
    out = call("table-main", "--output", str(tmp_path))
    assert "| En-Vi | 31.78 | 32.43 | **33.27** |" in out
    assert (
        "`make fill-table-main` runs all that is missing; `make iwslt15.en-vi.bpe.base.seed1` runs one of them." in out
    )
    assert {path.name for path in (tmp_path / "tables").iterdir()} >= {"table-main.md", "table-main.tex"}
    assert not (tmp_path / "index.html").exists()


def test_without_any_results(tmp_path):
    out = call("report", "--results", str(tmp_path / "none"), "--output", str(tmp_path / "made"))
    assert "index.html" in out
    page, text = ((tmp_path / "made" / name).read_text() for name in ("index.html", "README.md"))
    assert 'id="explorer"' not in page, "there is no merge table"
    assert " not run. How that is decided is said below the table." in text
    assert text.count("A difference of BLEU, or between two such differences, counts as found") == 1
    assert "31.78" in text, "the paper's numbers are there all the same"


def test_of_runs_of_ones_own(tmp_path):
    out = call("report", "demo.en-fr.3k.bpe.small.seed1", "--output", str(tmp_path))
    assert "index.html" in out
    text = (tmp_path / "README.md").read_text()
    assert "Of the runs demo.en-fr.3k.bpe.small.seed1, which are neither the paper's nor the study's." in text
    bleu = json.loads((RESULTS / "demo.en-fr.3k.bpe.small.seed1.json").read_text())["bleu"]
    assert f"{bleu:.2f}" in text
    assert "paper 31.78" not in text


def test_mistakes_are_said():
    assert "there is no table-nix; there are study-main" in call("table-nix", code=1)
    assert "nix is not the name of a run" in call("report", "nix", code=1)
    wrong = call("report", "multi30k.en-de.bpe.base.seed7", code=1)
    assert "has nothing of multi30k.en-de.bpe.base.seed7: run them first" in wrong


def test_results_were_made_by_the_command_that_they_name():
    """Every measurement that is committed names its command, and the run and measure that it is of."""
    from scripts.corpora import CONFIGS
    from scripts.measures import MEASURES
    from scripts.reproduce import resolve

    found = [path for measure in MEASURES for path in (RESULTS / measure).glob("*.json")]
    assert {path.parent.name for path in found} >= {name for name, one in MEASURES.items() if not one.model}
    for path in found:
        record = json.loads(path.read_text())
        assert record["command"] == f"make {path.parent.name}.{path.stem}"
        assert resolve(record["command"].removeprefix("make "), [], CONFIGS, 1).measures


@pytest.mark.parametrize("direction", ["en-de", "de-en", "en-fr", "fr-en"])
def test_the_papers_order_is_that_of_kudo_by_sentence(direction):
    """What configs/study/kudo.yaml and docs/reproduction.md say of the results."""
    bpe, by_sentence, by_word, dropout = (
        json.loads((RESULTS / f"multi30k.{direction}.5k.{method}.small.seed1.json").read_text())["bleu"]
        for method in ("bpe", "unigram", "unigram-words", "bpe-dropout")
    )
    assert by_word < bpe < by_sentence < dropout


def test_results_were_made_by_code_that_is_committed():
    """A record names its commit; one that was made with changes of one's own says so."""
    for path in RESULTS.glob("**/*.json"):
        record = json.loads(path.read_text())
        if "comparisons" not in path.parts:
            assert re.fullmatch("[0-9a-f]{7,40}", record["versions"]["commit"]), path
