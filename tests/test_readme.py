"""README.md, docs/ and CONTRIBUTING.md are true: their commands and their Python run as they are, with the output that
they show; what they name is there, and their links lead somewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATHS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in PATHS}
README = PAGES["README.md"]
# Tested elsewhere: tests/test_setup.py installs, CI calls make, tests/scripts/test_system.py has the corpus of its own.
NOT_RUN = ("make ", "pip install", "mkdir -p data/downloads")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """The blocks of a page that are to be run."""
    return [block for block in blocks(page, "sh") if not block.startswith(NOT_RUN)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the text that the pages work on."""
    path = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "docs", path / "docs")
    for file in (ROOT / "LICENSE", *ROOT.glob("*.md")):
        shutil.copyfile(file, path / file.name)
    return path


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_block(block: str, folder: Path) -> str:
    return run(["bash", "-euo", "pipefail", "-c", block], folder)


@pytest.fixture(scope="module")
def codes(folder) -> Path:
    """The codes that the first command of README.md learns."""
    block = blocks("README.md", "console")[0]
    run_block(block.split("\n")[0].removeprefix("$ "), folder)
    return folder / "codes"


@pytest.fixture(scope="module")
def walked(folder) -> str:
    """What the commands from a corpus to a translation print. They are run once: other tests use their files."""
    pytest.importorskip("fairseq")
    (block,) = commands("README.md")
    return run_block(block, folder)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 200


def test_all_blocks_of_commands_are_run():
    found = {page: len(commands(page)) for page in PAGES if commands(page)}
    assert found == {"README.md": 1, "docs/drawing.md": 1, "docs/fairseq.md": 1, "docs/pytorch.md": 1}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")])
def test_the_output_that_is_shown(page, folder, codes):
    for block in blocks(page, "console"):
        assert block.startswith("$ ")
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            # `yes | head` ends with SIGPIPE, as in a terminal.
            assert run(["bash", "-euc", f"exec 2>&1; {command}"], folder) == shown


def test_sides_differ(folder, codes):
    run_block(commands("docs/drawing.md")[0], folder)
    source, target = ((folder / f"LICENSE.3.{side}").read_text() for side in ("source", "target"))
    assert source != target
    assert source.replace("@@ ", "") == target.replace("@@ ", "") == (folder / "LICENSE").read_text()


def test_python(folder, codes):
    (code,) = blocks("README.md", "python")
    found = run([sys.executable, "-c", f"{code}\nprint(segmenter.segment('permission without limitation'))"], folder)
    assert found.startswith("['perm@@', 'ission', ")


def test_python_of_a_corpus(folder, codes):
    (code,) = blocks("docs/drawing.md", "python")
    out = run([sys.executable, "-c", f"{code}\nprint(len(ids), offsets[-1])"], folder)
    count, end = out.split()
    assert int(count) == int(end) > 1000


def test_python_with_tokenizers(folder):
    pytest.importorskip("transformers", reason="needs transformers, of the extra dev")
    code = "\n".join(blocks("docs/huggingface.md", "python"))
    shown = (
        "print(segmenter.ids('every epoch anew') == tokenizer.encode('every epoch anew').ids, int(trainer.state.epoch))"
    )
    assert run([sys.executable, "-c", f"{code}\n{shown}"], folder).splitlines()[-1] == "True 2"


def test_fairseq(folder, walked):
    assert "train: 900 pairs" in walked
    assert "learning 500 merges of en and xx" in walked
    assert walked.count("takes checkpoints/checkpoint") == 3
    assert re.search(r"^D-0\t-?[\d.]+\t\S", walked, re.MULTILINE)


def test_scoring(folder, walked):
    score = json.loads(run_block(commands("docs/fairseq.md")[0], folder))
    assert score["name"] == "BLEU"
    raw = (folder / "corpus" / "valid.xx").read_text().lower().splitlines()
    assert (folder / "references").read_text().splitlines() == raw
    assert len((folder / "hypotheses").read_text().splitlines()) == len(raw) == 100


def test_hydra(folder, walked):
    (config,) = (block for block in blocks("docs/fairseq.md", "yaml") if block.startswith("# train.yaml"))
    (folder / "train.yaml").write_text(config)
    (command,) = re.findall(r"`(fairseq-hydra-train --config-dir [^`]*)`", PAGES["docs/fairseq.md"])
    run(["bash", "-euc", command], folder)
    assert (folder / "hydra" / "checkpoint_last.pt").exists()


def test_python_with_fairseq(folder, walked):
    """In a process whose user dir is the page's own, which imports the plugin."""
    translate, plugin = blocks("docs/fairseq.md", "python")
    name, _, code = plugin.removeprefix("# ").partition("\n")
    (folder / name).parent.mkdir()
    (folder / name).write_text(code)
    code = f"""
from argparse import Namespace
from fairseq import utils
from fairseq.data.encoders import BPE_REGISTRY
utils.import_user_module(Namespace(user_dir="my_plugin"))
assert "bpe_dropout" in BPE_REGISTRY
{translate}
assert model.translate("Each word.")
"""
    run([sys.executable, "-c", code], folder)


def test_targets_exist():
    from scripts.corpora import CONFIGS
    from scripts.paper import read_items
    from scripts.reproduce import resolve

    named = {
        target
        for page, text in PAGES.items()
        for pattern in (r"`make ([\w.-]+)[^`]*`", r"^make ([\w.-]+)")
        for target in re.findall(pattern, text, re.MULTILINE)
        # The examples of pages, which tests/scripts/test_system.py and tests/test_contributing.py add and use.
        if target != "mine-en-de" and not (page == "CONTRIBUTING.md" and ".seed" in target)
    }
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "iwslt15-en-vi", "iwslt15", "iwslt17", "wmt14", "aspec"} <= named
    assert {"table-main", "study-p", "fill-report"} <= named
    for name in named - targets:
        assert name in read_items() or resolve(name, [], CONFIGS, seed=1)


def test_the_test_command():
    """CI calls the command that README.md gives."""
    assert "make test\n" in blocks("README.md", "sh")
    assert re.search(r"^make test$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def test_what_has_not_begun_in_time_is_skipped_and_says_so():
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_release.py"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "TEST_MINUTES": "0"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^=+ \d+ skipped in ", done.stdout, re.MULTILINE)
    assert "not begun within 0 minutes (TEST_MINUTES)" in done.stdout


def test_the_cost_of_the_paper():
    from scripts.corpora import CONFIGS
    from scripts.reproduce import resolve
    from scripts.showing import is_trained, plans_of

    page = " ".join(PAGES["docs/reproduction.md"].split())
    for target, sentence, digits in (
        ("paper", r"twelve directions are (\d+) runs, about (\d+) hours", -2),
        ("fill-report", r"tables and figures need (\d+) runs, about (\d+) hours", -2),
        ("study", r"All of it is (\d+) models, about (\d+) hours", 0),
    ):
        found = resolve(target, [], CONFIGS, seed=1)
        plans = [plan for plan in plans_of(found, CONFIGS) if is_trained(found, plan.run)]
        ((runs, hours),) = re.findall(sentence, page)
        assert len(plans) == int(runs)
        assert round(sum(plan.usual_seconds for plan in plans) / 3600, digits) == int(hours)


MADE = ("experiments/runs/", "experiments/logs/", "experiments/report-own")  # by the reproduction
ADDED = ("bpe_dropout/methods/spelling.py",)  # by CONTRIBUTING.md


@pytest.mark.parametrize("page", PAGES)
def test_files_named_exist(page):
    names = r"`((?:bpe_dropout|fairseq_plugins|configs|scripts|experiments|tests)/[\w/.*-]*)`"
    for path in re.findall(names, PAGES[page]):
        assert list(ROOT.glob(path)) or path in (*MADE, *ADDED), path


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    text = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        path = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path.read_text("utf-8")), link


def anchors(text: str) -> list[str]:
    """The names that GitHub gives to headings.

    >>> anchors("## What fairseq's `--bpe` does")
    ['what-fairseqs---bpe-does']
    """
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_benchmark_writes_these_pages():
    """Given what was measured already, it would change nothing: README.md and docs/speed.md show what was measured."""
    from experiments.bench.tables import read_measured, short_table, tables_of
    from scripts.marks import between_marks

    measured = read_measured()
    assert between_marks(README, "bench rows", short_table(measured)) == README
    for name, table in tables_of(measured).items():
        assert between_marks(PAGES["docs/speed.md"], name, table) == PAGES["docs/speed.md"]


def test_the_report_writes_the_table_of_the_study():
    from experiments.analysis.__main__ import SHOWN
    from experiments.analysis.report import read_table
    from scripts.marks import between_marks

    table = read_table(ROOT / "experiments" / "report", SHOWN)
    assert "BPE-dropout" in table
    assert between_marks(README, "study", table) == README


def test_the_demo_is_what_it_printed():
    """Between the marks is the end of what `make demo` printed, and the committed results say the same."""
    from scripts.kept import products
    from scripts.runs import Run, find_target, plan_run

    (shown,) = re.findall(r"<!-- demo: begin -->\n(.*?)<!-- demo: end -->", README, re.DOTALL)
    demo = find_target("demo")
    assert " ".join(demo.note.split()) in " ".join(shown.split())
    for kept in products(demo).values():
        result = json.loads((ROOT / kept).read_text())
        if "run" in result:
            row = rf"{result['bleu']:.2f} +{result['chrf']:.2f} +{result['updates']} "
            testset = "misspelled" if "misspelled" in kept.parts else "original"
            assert re.search(rf"{testset} +{Run.parse(result['run']).system} +{row}", shown)
            assert result["bleu signature"] in shown
            assert result["configuration"] == json.loads(json.dumps(plan_run(Run.parse(result["run"])).settings()))
        else:
            (pair,) = result["pairs"]
            assert f"{pair['difference']:+.2f}, p = {pair['p']:.3f}, " in shown


def test_the_demo_over_three_seeds():
    """What README says of them is what the committed results say."""
    from statistics import fmean

    for testset, words in ((".", "on the test set as it is"), ("misspelled", "where it is misspelled")):
        gains, significant = [], 0
        for seed in (1, 2, 3):
            bleu = {}
            name = f"comparisons/demo.en-fr.3k.small.seed{seed}.bpe+bpe-dropout.json"
            (pair,) = json.loads((ROOT / "experiments" / "results" / testset / name).read_text())["pairs"]
            significant += pair["significant"]
            for method in ("bpe", "bpe-dropout"):
                path = ROOT / "experiments" / "results" / testset / f"demo.en-fr.3k.{method}.small.seed{seed}.json"
                bleu[method] = json.loads(path.read_text())["bleu"]
            gains.append(bleu["bpe-dropout"] - bleu["bpe"])
        said = f"by {fmean(gains):.2f} (BLEU on average )?{words} \\({min(gains):+.2f} to {max(gains):+.2f}, "
        said += "significant for " + {1: "one seed", 3: "all three"}[significant] + r"\)"
        assert re.search(said.replace("+", r"\+"), " ".join(README.split()))


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md", "data/README.md"])
def test_lines_have_at_most_120_characters(page):
    """But for tables, code, and what is generated."""
    text = re.sub(r"^(<!-- .*): begin -->.*?^\1: end -->", "", (ROOT / page).read_text("utf-8"), flags=re.M | re.S)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S).split("\n")
    assert [line for line in prose if len(line) > 120 and not line.startswith("|")] == []
