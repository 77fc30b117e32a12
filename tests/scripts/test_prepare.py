"""The ceilings of test texts: what references score, prepared and detokenized, against themselves."""

import json
import sys

import pytest

from bpe_dropout.data import moses
from bpe_dropout.data.preparation import Preparation
from scripts import prepare
from scripts.prepare import ceiling
from scripts.readers import READERS
from tests.conftest import read_gz

TED = "iwslt15-envi-wit3/IWSLT15.TED.tst2013.en-vi"


@pytest.mark.parametrize(
    ("name", "language", "tokenization", "least"),
    [  # as measured, rounded down
        ("wmt-newstest-ende/newstest2014.de", "de", "13a", 99.7),
        ("wmt-newstest-ende/newstest2014.en", "en", "13a", 99.9),
        ("multi30k/test_2016_flickr.de", "de", "13a", 99.9),
        ("multi30k/test_2016_flickr.fr", "fr", "13a", 99.9),
        (f"{TED}.vi.xml", "vi", "13a", 99.9),
        (f"{TED}.en.xml", "en", "13a", 99.9),
        ("tatoeba-enja/test.ja", "ja", "char", 99.9),
        ("tatoeba-enzh/test.zh", "zh", "zh", 99.9),
    ],
)
def test_the_ceilings_of_real_text(shared, name, language, tokenization, least):
    path = shared / f"{name}.gz"
    lines = list(READERS["wit3-xml"].side(path)) if ".xml" in name else read_gz(path)
    steps = Preparation(language, tokenize=True, lowercase=True)
    assert ceiling(lines, steps, tokenization) > least
    if name.endswith("newstest2014.de"):  # why punctuation is not normalized
        assert ceiling(lines, Preparation(language, normalize=True, tokenize=True, lowercase=True), tokenization) < 97


def test_arabic_is_put_together():
    lines = ["هل أنت هنا؟ نعم، أنا هنا الآن؛ وأنت؟", "قال: نعم، 5٪ من الناس هنا."] * 5
    assert ceiling(lines, Preparation("ar", tokenize=True, lowercase=True), "13a") == pytest.approx(100)
    assert [moses.detokenizer("ar")(moses.tokenizer("ar")(line)) for line in lines] == lines


def test_counts_have_the_ceilings(tmp_path, monkeypatch):
    raw = tmp_path / "raw"
    raw.mkdir()
    text = {"en": "It's a long – very long – test of words.\n" * 3, "zh": "他说：“是的。”\n" * 3}
    for language, lines in text.items():
        for split in ("train", "valid", "test"):
            (raw / f"{split}.{language}").write_text(lines)
    (raw / "counts.json").write_text(json.dumps({split: {"pairs": 3} for split in ("train", "valid", "test")}))
    command = ["prepare", str(raw), "--languages", "en", "zh", "--bleu", "13a", "zh", "--processes", "1"]
    for steps in (["--tokenize", "--lowercase"], ["--normalize", "--tokenize"]):
        monkeypatch.setattr(sys, "argv", [*command, *steps, "--output", str(tmp_path / "words")])
        prepare.main()
        found = json.loads((tmp_path / "words" / "counts.json").read_text())["test"]["ceiling"]
        assert set(found) == {"en", "zh"}
        assert (found["en"] < 60) == ("--normalize" in steps), "the dashes are lost"
    assert (tmp_path / "words" / "test.zh").read_text().splitlines()[0].split()[:2] == ["他说", "："]
