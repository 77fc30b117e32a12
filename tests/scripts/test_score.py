"""Scores and significance, against SacreBLEU's own command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.significance import estimate_ci

from bpe_dropout import InputError
from scripts.compare import best, check_texts, compare
from scripts.corpora import ROOT
from scripts.resampling import p_value, read_scores, resample, write_scores
from scripts.runs import Run, plan_run
from scripts.score import bleu_of, read_both, score, tokenization_of
from scripts.showing import significance

BIN = Path(sys.executable).parent
REFERENCES = [
    f"The {word} sat on the mat , and it was number {number} ." for number, word in enumerate(["cat", "dog"] * 60)
]
GOOD = [line.replace("mat", "rug") if number % 4 == 0 else line for number, line in enumerate(REFERENCES)]
BAD = [line.replace("sat on", "is near").lower() if number % 2 else line for number, line in enumerate(REFERENCES)]


def plan(name):
    return plan_run(Run.parse(name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("iwslt15.en-vi.bpe.base.seed1", "case:lc|eff:no|tok:13a|smooth:exp"),
        ("iwslt15.zh-en.bpe.base.seed1", "case:lc|eff:no|tok:13a|smooth:exp"),
        ("iwslt15.en-zh.bpe.base.seed1", "case:lc|eff:no|tok:zh|smooth:exp"),
        ("aspec.en-ja.bpe.base.seed1", "case:lc|eff:no|tok:char|smooth:exp"),
        ("iwslt17.en-ar.cased.bpe.base.seed1", "case:mixed|eff:no|tok:13a|smooth:exp"),
    ],
)
def test_signatures_are_the_papers(name, expected):
    found = score(plan(name), GOOD, REFERENCES)
    assert expected in found["bleu signature"]
    assert found["bleu signature"].startswith("nrefs:1|")
    assert "chrF" in found["chrf signature"] or "nc:6" in found["chrf signature"]


@pytest.fixture
def files(tmp_path):
    for name, lines in (("ref", REFERENCES), ("good", GOOD), ("bad", BAD)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def test_scores_and_significance_are_sacrebleus(files):
    command = [str(BIN / "sacrebleu"), "ref", "-i", "bad", "good", "-lc", "-m", "bleu", "--paired-bs", "--paired-bs-n"]
    done = subprocess.run([*command, "1000", "-f", "json"], cwd=files, capture_output=True, text=True, check=True)
    theirs = {re.sub(r".*?(\w+)$", r"\1", one["system"]): one["BLEU"] for one in json.loads(done.stdout)}
    run = plan("iwslt15.en-vi.bpe.base.seed1")
    scores = {name: score(run, *read_both(files / name, files / "ref"))["bleu"] for name in ("bad", "good")}
    for name in scores:
        assert scores[name] == pytest.approx(theirs[name]["score"], abs=0.05)
    found = compare({"bad": BAD, "good": GOOD}, REFERENCES, bleu_of(run), scores)
    assert found["pairs"][0]["p"] == pytest.approx(theirs["good"]["p_value"], abs=1e-9)
    assert found["pairs"][0]["significant"]
    assert found["best"] == ["good"]
    assert "bs:1000" in found["signature"]


def test_equal_systems_are_both_best(files):
    run = plan("iwslt15.en-vi.bpe.base.seed1")
    found = compare({"a": GOOD, "b": list(GOOD)}, REFERENCES, bleu_of(run), {"a": 90.0, "b": 90.0})
    assert not found["pairs"][0]["significant"]
    assert found["best"] == ["a", "b"]


def test_other_words_with_the_same_score_are_no_difference():
    """Capitals that the score does not see: every resampled score is equal, and SacreBLEU says p = 1/1001."""
    run = plan("iwslt15.en-vi.bpe.base.seed1")
    texts = {"a": GOOD, "b": [line.upper() for line in GOOD]}
    scores = {name: score(run, lines, REFERENCES)["bleu"] for name, lines in texts.items()}
    assert scores["a"] == scores["b"]
    (pair,) = compare(texts, REFERENCES, bleu_of(run), scores)["pairs"]
    assert (pair["p"], pair["significant"]) == (1.0, False)
    assert significance({"pairs": [pair]}, "a", "b") == "0.00, p = 1.000, not significant"


@pytest.mark.parametrize(
    ("difference", "shown"), [(1.25, "+1.25"), (0.004, "+0.004"), (-0.00007, "-0.0001"), (0.0, "0.00"), (-0.0, "0.00")]
)
def test_a_significant_difference_is_not_shown_as_zero(difference, shown):
    pair = {"systems": ["a", "b"], "difference": difference, "p": 0.001, "significant": difference != 0}
    assert significance({"pairs": [pair]}, "a", "b").split(",")[0] == shown


def test_best_of_three():
    pairs = [
        {"systems": ["a", "b"], "significant": True},
        {"systems": ["a", "c"], "significant": False},
        {"systems": ["b", "c"], "significant": False},
    ]
    assert best({"a": 1.0, "b": 3.0, "c": 2.0}, pairs) == ["b", "c"]


def test_texts_of_different_length(files):
    (files / "short").write_text("x\n")
    with pytest.raises(InputError, match=r"short has 1 lines and .*ref has 120"):
        read_both(files / "short", files / "ref")


def test_translations_and_scores_that_do_not_belong_together_are_not_compared(files):
    """Whoever swaps the texts of two systems would turn their difference around."""
    run = plan("iwslt15.en-vi.bpe.base.seed1")
    runs = [f"iwslt15.en-vi.{method}.base.seed1" for method in ("bpe", "bpe-dropout")]
    for name, text in zip(runs, ("bad", "good"), strict=True):
        (files / name).mkdir()
        (files / name / "test.txt").write_text((files / text).read_text())
        bleu = score(run, *read_both(files / text, files / "ref"))["bleu"]
        (files / name / "result.json").write_text(json.dumps({"bleu": bleu}))

    def call():
        results = [f"{name}/result.json" for name in runs]
        command = [sys.executable, "-m", "scripts.compare", *runs, "--results", *results, "--references", "ref"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [*command, "--output", "out.json"], cwd=files, capture_output=True, text=True, env=environment, check=False
        )

    assert call().returncode == 0
    assert json.loads((files / "out.json").read_text())["pairs"][0]["difference"] > 0
    (files / runs[0] / "test.txt").write_text((files / "good").read_text())
    done = call()
    assert done.returncode != 0
    assert re.search(r"bpe.base.seed1/test.txt has a BLEU of .* not of the same translations", done.stderr)


def test_systems_that_were_trained_on_other_text_are_not_compared():
    data = {"train.en-de.en": "a", "valid.en-de.en": "b", "codes.en": "c"}
    other = {**data, "train.en-de.en": "d"}
    check_texts({"one": {"training": {"data": data}}, "two": {"training": {"data": {**data, "codes.en": "e"}}}})
    check_texts({"one": {"training": {"data": data}}, "two": {}})
    with pytest.raises(InputError, match=r"one and two were not trained on the same text: train\.en-de\.en differs"):
        check_texts({"one": {"training": {"data": data}}, "two": {"training": {"data": other}}})


def test_a_tokenization_whose_signature_is_not_its_name():
    """As of ja-mecab, whose signature has MeCab's version, too."""
    bleu = bleu_of(plan("iwslt15.en-vi.bpe.base.seed1"))
    bleu.tokenizer.signature = lambda: "13a-with-a-version"
    assert len(resample(bleu, "13a", GOOD, REFERENCES)) == 1000


@pytest.mark.parametrize("name", ["iwslt15.en-vi.bpe.base.seed1", "iwslt15.en-zh.bpe.base.seed1"])
def test_resampled_scores_are_sacrebleus(name):
    """The same scores of the same draws, so that the p of two systems is SacreBLEU's."""
    bleu = bleu_of(plan(name))
    fair = [line.replace("cat", "rat") if number % 5 == 0 else line for number, line in enumerate(REFERENCES)]
    other = [line.replace("dog", "hog") if number % 5 == 1 < number else line for number, line in enumerate(REFERENCES)]
    texts = {"good": GOOD, "fair": fair, "nearly as fair": other, "empty": ["", *GOOD[1:]]}
    scores = {one: score(plan(name), lines, REFERENCES)["bleu"] for one, lines in texts.items()}
    resampled = {one: resample(bleu, tokenization_of(plan(name)), lines, REFERENCES) for one, lines in texts.items()}
    for one, lines in texts.items():
        found = bleu.corpus_score(lines, [REFERENCES], n_bootstrap=1000)
        assert estimate_ci(resampled[one]) == pytest.approx((found._mean, found._ci), abs=1e-3)
        assert read_scores(write_scores(resampled[one])) == pytest.approx(resampled[one], abs=6e-4)
    for pair in compare(texts, REFERENCES, bleu, scores)["pairs"]:
        first, second = pair["systems"]
        p = p_value(scores[second] - scores[first], resampled[second] - resampled[first])
        assert p == pytest.approx(pair["p"], abs=2e-3)
