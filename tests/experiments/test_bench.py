"""The benchmarks, but for their times: rows, texts, the processes that take turns, and the pages that they write."""

import gzip
import json
import subprocess
from pathlib import Path
from statistics import median

import pytest

from bpe_dropout import Corpus, InputError
from experiments.bench import base, tables, texts
from experiments.bench.rows import BY_NAME, NAMES, OURS, ROWS, TRAINING
from experiments.bench.turns import Ratios, take_turns
from experiments.bench.work import READY, Job

ROOT = Path(__file__).parents[2]


@pytest.fixture
def job(text, few_codes, tmp_path) -> Job:
    codes = tmp_path / "codes"
    codes.write_text(few_codes.text())
    return Job(OURS, "resegment", str(text), str(text), str(codes), 300, 0.1)


def test_each_row_can_be_measured():
    """Its texts are known, and so is the work of each of its tools."""
    assert len(set(NAMES)) == len(NAMES)
    for row in ROWS:
        for text in (row.text, row.source):
            assert text in (*texts.TEXTS, *texts.MADE, *texts.TOGETHER)
        assert {(tool, row.work) for tool in (OURS, *row.against)} <= set(READY)
        assert len(row.against) == len(row.least) == len(row.aim)
        assert row.title


def test_each_work_is_measured_on_real_text():
    for row in ROWS:
        if row.is_made:
            assert row.work == "load" or any(one.work == row.work and not one.is_made for one in ROWS)


@pytest.mark.parametrize("work", ["resegment", "ids", "line"])
def test_text_of_another_domain(work):
    """It has the merges of the first text."""
    held_out = [row for row in ROWS if row.work == work and row.learned_on and not row.is_made]
    assert held_out
    assert all(row.learned_on != row.text for row in held_out)
    assert all(texts.TEXTS[row.learned_on].language == texts.TEXTS[row.text].language for row in held_out)


def test_facts(text):
    words = text.read_text().split()
    counts = {word: words.count(word) for word in set(words)}
    facts = texts.Facts.of(Corpus(text).counts.tolist(), len(Corpus(text)))
    once = sum(count == 1 for count in counts.values()) / len(counts)
    assert facts == texts.Facts(500, len(words), len(counts), once)


def test_real_text_comes_from_a_corpus(tmp_path, monkeypatch):
    """As the reproduction downloads it; every line that is not empty."""
    monkeypatch.setattr(texts, "DOWNLOADS", tmp_path)
    corpus, fetched = texts.TEXTS["multi30k.de"], []

    def fetch(name: str) -> None:
        fetched.append(name)
        lines = "Ein Mann.\n\nZwei Hunde.\n" if name.endswith("de.gz") else "A man.\nx\nTwo dogs.\n"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(lines.encode()))

    monkeypatch.setattr(texts, "fetch_once", fetch)
    assert list(texts.raw_lines(corpus)) == ["Ein Mann.", "Zwei Hunde."]
    assert fetched == ["multi30k/train.en.gz", "multi30k/train.de.gz"]


def test_text_that_is_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "DOWNLOADS", tmp_path)
    monkeypatch.setenv("DATA_MIRROR", str(tmp_path))
    with pytest.raises(InputError, match="DATA_MIRROR names a folder"):
        list(texts.raw_lines(texts.TEXTS["news.en"]))


def test_made_text(tmp_path, monkeypatch):
    """As many lines and about as many types as were asked for."""
    monkeypatch.setattr(texts, "ROOT", tmp_path)
    monkeypatch.setattr(texts, "FOLDER", tmp_path)
    (tmp_path / f"text.{texts.BOTH}").write_text("some people walk slowly\nothers watch them\n" * 10)
    made = texts.make_large(1000, 40)
    corpus = Corpus(made)
    assert len(corpus) == 1000
    assert 20 <= len(corpus.counts) <= 60


def test_competitors_take_turns(job):
    """Each of its own process, and what they make is the same in each turn, but for dropout."""
    plain = Job(**{**vars(job), "p": 0.0})
    taken = take_turns({"drops": job, "plain": plain}, turns=2)
    assert [len(each) for each in taken.values()] == [2, 2]
    assert all(turn.cpu > 0 and turn.wall > 0 for each in taken.values() for turn in each)
    assert taken["plain"][0].made == taken["plain"][1].made
    assert taken["drops"][0].made > taken["plain"][0].made


def test_a_competitor_that_fails(job):
    with pytest.raises(InputError, match=r"^ours: .*codes\.none"):
        take_turns({"ours": Job(**{**vars(job), "codes": job.codes + ".none"})}, turns=1)


@pytest.mark.parametrize("work", sorted({work for tool, work in READY if tool == OURS} - {"tokenizer"}))
def test_our_work(job, work):
    call = READY[OURS, work](Job(**{**vars(job), "work": work}))
    assert call() > 0


@pytest.mark.parametrize("work", ["resegment", "plain", "learn"])
def test_the_same_work_of_subword_nmt(job, work):
    """At p = 0 it makes the same pieces, bytes and merges."""
    pytest.importorskip("subword_nmt")
    same = Job(**{**vars(job), "work": work, "p": 0.0})
    theirs = READY["subword-nmt", work](Job(**{**vars(same), "tool": "subword-nmt"}))()
    assert abs(READY[OURS, work](same)() - theirs) <= 1  # the end of the last line


def test_the_same_work_of_tokenizers(job, tmp_path, monkeypatch):
    """At p = 0 it makes the same tokens, and with dropout it does other work than ours."""
    pytest.importorskip("tokenizers")
    monkeypatch.setattr(texts, "ROOT", tmp_path)
    monkeypatch.setattr(texts, "FOLDER", tmp_path)
    monkeypatch.setattr(texts, "text_path", lambda _: Path(job.text))
    job = Job(**{**vars(job), "work": "tokenizer", "codes": str(texts.tokenizer_path("multi30k.en", 300))})

    def made(tool: str, p: float) -> int:
        return READY[tool, "tokenizer"](Job(**{**vars(job), "tool": tool, "p": p}))()

    plain = made(OURS, 0)
    assert plain == made("tokenizers", 0)
    assert plain < made("tokenizers", 0.3) < made(OURS, 0.3)
    with pytest.raises(InputError, match=r"Multi30k \(captions\) has fewer than 100000 merges"):
        texts.tokenizer_path("multi30k.en", 100_000)


def test_the_package_of_another_commit(tmp_path, job):
    """A competitor with another tree uses the package that is there."""
    package = tmp_path / "tree" / "bpe_dropout"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('of another commit')\n")
    with pytest.raises(InputError, match="of another commit"):
        take_turns({"base": job}, 1, {"base": tmp_path / "tree"})


def test_a_commit_that_there_is_not():
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse"], capture_output=True).returncode:
        pytest.skip("not a git repository")
    with pytest.raises(InputError, match="no-such-branch is not a commit"):
        base.find_commit("no-such-branch")


RESULT = {
    "work": "learn 8000 merges, English",
    "against": "subword-nmt",
    "text": "Multi30k (captions)",
    "learned on": "",
    "made": False,
    "facts": {"lines": 29000, "words": 380_000, "types": 10200, "once": 0.42},
    "cpu": [180.0, 232.0, 200.0],
    "wall": [190.0, 200.0, 210.0],
    "counts": "cpu",
    "least": 50,
    "aim": 50,
}


def test_a_row_of_the_table():
    """What was measured, its spread, the other time, and what the text is like."""
    assert tables.row_of(RESULT) == [
        "learn 8000 merges, English",
        "Multi30k (captions); 10.2k types, 42% of them once",
        "subword-nmt",
        "**200** times",
        "180 to 232",
        "200 (wall)",
        "50",
        "50",
    ]
    by_the_clock = {**RESULT, "counts": "wall", "wall": [1.5], "cpu": [], "least": "at most 2", "aim": ""}
    assert tables.row_of(by_the_clock)[3:] == ["**1.50** times", "", "", "at most 2", ""]


def test_spread():
    assert Ratios((2.0, 5.0, 3.0, 4.0)).median == 3.5


def test_the_pages(tmp_path):
    """Real text apart from text that is made; README.md has several texts of one work in one row."""
    measured, content = tmp_path / "measured", {"commit": "c", "machine": "a machine", "versions": "some 1.0"}
    held_out = {**RESULT, "text": "news", "cpu": [100.0]}
    tables.write_measured("resegment-en", {**content, "results": [RESULT]}, measured)
    tables.write_measured("resegment-en-news", {**content, "results": [held_out]}, measured)
    tables.write_measured("ids-million", {**content, "results": [{**RESULT, "made": True, "work": "ids"}]}, measured)
    tables.write_measured("training", {**content, "results": [{**RESULT, "work": "train"}], "note": "Soon."}, measured)
    (tmp_path / "docs").mkdir()
    marks = "<!-- bench {0}: begin -->old<!-- bench {0}: end -->".format
    (tmp_path / "docs" / "speed.md").write_text(f"# Speed\n{marks('segmenter')}\n{marks('training')}\nthe end\n")
    (tmp_path / "README.md").write_text(f"before\n{marks('rows')}\nafter\n")
    tables.write_pages(measured, tmp_path)
    speed, readme = (tmp_path / "docs" / "speed.md").read_text(), (tmp_path / "README.md").read_text()
    real, _, made = speed.partition("Text that is made for scale")
    assert real.count("learn 8000 merges") == 2
    assert "| ids |" in made
    assert "| ids |" not in real
    assert "Soon." in speed
    assert "a machine; some 1.0" in speed
    assert "old" not in speed + readme
    assert "| subword-nmt | **200** (Multi30k), **100** (news) |" in readme
    assert readme.endswith("<!-- bench rows: end -->\nafter\n")


def test_what_the_readme_shows_is_measured():
    for names in tables.SHORT:
        assert set(names) <= {*BY_NAME, *TRAINING}


def test_what_is_kept_names_its_commit():
    for path in tables.MEASURED.glob("*.json"):
        assert path.stem in NAMES
        assert json.loads(path.read_text())["commit"]


def test_what_other_pages_say_is_measured():
    measured = [json.loads((tables.MEASURED / f"{name}.json").read_text()) for name in NAMES if "tokenizer-" in name]
    times = [median(result["cpu"]) for one in measured for result in one.get("results", ())]
    english = json.loads((tables.MEASURED / "tools-en.json").read_text())["tools"]
    ratios = {one["tool"]: one["ratio"] for one in english}
    page = " ".join((ROOT / "docs/huggingface.md").read_text().split())
    assert f"{min(times):.0f} to {max(times):.0f} times as fast" in page
    assert f"{ratios['tokenizers']:.2f} times longer, and Algorithm 1 {ratios[f'**{OURS}**']:.2f} times" in page
