"""Each format on a small sample that is faithful to the original, and the official XML where it is at hand."""

import gzip
import zipfile
from pathlib import Path

import pytest

from bpe_dropout import InputError
from bpe_dropout.data import moses
from scripts.readers import READERS, catalogues
from tests.conftest import read_gz

TAGS = """<url>http://www.ted.com/talks/x</url>
<keywords>talks, science</keywords>
<talkid>1</talkid>
<title>A title: {}</title>
{} first sentence.
 {} second, with spaces around it.\u0020
<reviewer></reviewer>
{} <b>third</b>.
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<mteval>
<{set} setid="iwslt2015-tst2013" srclang="english"{more}>
<doc docid="1" genre="lectures">
<title>A title</title>
<seg id="1"> {} says &quot;hello&quot; &amp; goes </seg>
<seg id="2"> {} 2 </seg>
</doc>
<doc docid="2" genre="lectures">
<seg id="1"> {} 3 </seg>
</doc>
</{set}>
</mteval>
"""
SGM = """<refset trglang="de" setid="newstest2014" srclang="any">
<doc sysid="ref" docid="a" genre="news" origlang="de">
<hl>
<seg id="1">{} headline</seg>
</hl>
<p>
<seg id="2">{} two
lines</seg>
<seg id="3">{} &lt;3&gt;</seg>
</p>
</doc>
</refset>
"""


def read(form, folder, files, pair=("en", "vi")):
    return list(READERS[form].read(folder, files, pair))


def write_sides(folder, text):
    for language in ("en", "vi"):
        (folder / language).write_text(text.replace("{}", language))
    return {"en": "en", "vi": "vi"}


def test_lines_end_at_newlines_alone(tmp_path):
    (tmp_path / "en").write_bytes("\ufeffone\r\ntwo\u2028still two\x85here\n\n  three  \n".encode())
    (tmp_path / "vi.gz").write_bytes(gzip.compress(b"1\n2\n3\n4"))
    assert read("lines", tmp_path, {"en": "en", "vi": "vi.gz"}) == [
        ("one", "1"),
        ("two still two here", "2"),
        ("", "3"),
        ("three", "4"),
    ]


def test_tags(tmp_path):
    found = read("wit3-tags", tmp_path, write_sides(tmp_path, TAGS))
    assert found == [
        ("en first sentence.", "vi first sentence."),
        ("en second, with spaces around it.", "vi second, with spaces around it."),
        ("en <b>third</b>.", "vi <b>third</b>."),
    ]


def test_xml_and_sgm(tmp_path):
    files = write_sides(tmp_path, XML.replace("{set}", "srcset").replace("{more}", ""))
    assert read("wit3-xml", tmp_path, files) == [
        ('en says "hello" & goes', 'vi says "hello" & goes'),
        ("en 2", "vi 2"),
        ("en 3", "vi 3"),
    ]
    assert read("sgm", tmp_path, write_sides(tmp_path, SGM))[1:] == [
        ("en two lines", "vi two lines"),
        ("en <3>", "vi <3>"),
    ]


def test_xml_that_ends_too_soon(tmp_path):
    files = write_sides(tmp_path, SGM[: SGM.index("two")])
    with pytest.raises(InputError, match="ends inside a segment"):
        read("sgm", tmp_path, files)


def test_aspec(tmp_path):
    (tmp_path / "train").write_text("0.9 ||| A-1 ||| 1 ||| 日本語。 ||| Some English.\n")
    (tmp_path / "dev").write_text("A-1 ||| 1 ||| 日本語。 ||| Some English.\n")
    (tmp_path / "bad").write_text("A-1 ||| 1 ||| 日 ||| x\nA-1 ||| 日本語。\n")
    for name in ("train", "dev"):
        assert read("aspec", tmp_path, {"file": name}, ("en", "ja")) == [("Some English.", "日本語。")]
    with pytest.raises(InputError, match="bad, line 2: expected 4 or 5 fields"):
        read("aspec", tmp_path, {"file": "bad"}, ("en", "ja"))


def test_tabs(tmp_path):
    (tmp_path / "pairs").write_text("\ufeffGo.\tVa !\tCC BY 2.0\nIt\u2028goes on. \tCela\u202fcontinue.\n")
    assert read("tabs", tmp_path, {"file": "pairs", "columns": ["en", "fr"]}, ("en", "fr")) == [
        ("Go.", "Va !"),
        ("It goes on.", "Cela continue."),
    ]
    found = read("tabs", tmp_path, {"file": "pairs", "columns": ["fr", "en"]}, ("en", "fr"))
    assert found[0] == ("Va !", "Go."), "the columns are named, and pairs are in the order of the languages"
    with pytest.raises(
        InputError, match="pairs, line 2: expected 3 fields between tabs, en, fr, from, and there are 2"
    ):
        read("tabs", tmp_path, {"file": "pairs", "columns": ["en", "fr", "from"]}, ("en", "fr"))


@pytest.mark.parametrize(
    "files",
    [
        {"file": "x"},
        {"file": "x", "columns": ["en"]},
        {"file": "x", "columns": ["en", "fr", "en"]},
        {"file": "x", "columns": "en fr"},
        {"file": ["x"], "columns": ["en", "fr"]},
        {"file": "x", "columns": ["en", "fr"], "more": "x"},
    ],
)
def test_what_is_wrong_with_tabs(files):
    with pytest.raises(InputError, match=r"mine, line 3: tabs wants file: NAME and columns: \[en, fr\]"):
        READERS["tabs"].check(files, ("en", "fr"), "mine, line 3")


PO = r"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\n"

#: a.py:1
msgid "Log out"
msgstr "Abmelden"

#, fuzzy
msgid "Doubtful"
msgstr "Zweifelhaft"

#, fuzzy
#| msgid "Old"
msgid "Changed"
msgstr "Alt"

#. Default: "A whole sentence."
msgid "label_sentence"
msgstr "Ein ganzer Satz."

msgid "label_without"
msgstr "Ohne"

msgid "One "
"line\n"
"after another"
msgstr "Eine Zeile nach der anderen"

msgid "%(n)d file"
msgid_plural "%(n)d files"
msgstr[0] "%(n)d Datei"
msgstr[1] "%(n)d Dateien"

msgid "Untranslated"
msgstr ""

msgid "Same"
msgstr "Same"

#~ msgid "Obsolete"
#~ msgstr "Veraltet"
"""


def test_gettext(tmp_path):
    import polib

    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("x/locale/de/LC_MESSAGES/x.po", PO)
        wheel.writestr("x/locale/de/LC_MESSAGES/x.mo", b"of the same messages")
        wheel.writestr("x/locale/fr/LC_MESSAGES/x.po", PO)
    catalogue = polib.POFile()
    catalogue.append(polib.POEntry(msgid="Only here", msgstr="Nur hier"))
    catalogue.append(polib.POEntry(msgid="Log out", msgstr="Abmelden"))
    with zipfile.ZipFile(tmp_path / "y.whl", "w") as wheel:
        wheel.writestr("y/locale/de/LC_MESSAGES/y.mo", catalogue.to_binary())
    files = {"wheels": ["x.whl", "y.whl"], "locales": ["de"]}
    assert read("gettext", tmp_path, files, ("en", "de")) == [
        ("Log out", "Abmelden"),
        ("A whole sentence.", "Ein ganzer Satz."),
        ("One line after another", "Eine Zeile nach der anderen"),
        ("%(n)d file", "%(n)d Datei"),
        ("%(n)d files", "%(n)d Dateien"),
        ("Only here", "Nur hier"),
    ]


def test_catalogues_of_a_language():
    names = ["a/locale/zh_CN/LC_MESSAGES/a.po", "a/i18n/zh_TW/LC_MESSAGES/a.po", "a/locale/zh_CN.po", "de.po", "a/b.po"]
    assert catalogues(names, ["zh_CN"]) == ["a/locale/zh_CN.po", "a/locale/zh_CN/LC_MESSAGES/a.po"]


@pytest.mark.parametrize("longer", ["en", "vi"])
def test_sides_of_different_length_are_an_error_with_both_numbers(tmp_path, longer):
    for language in ("en", "vi"):
        (tmp_path / language).write_text("x\n" * (7 if language == longer else 4))
    counts = (7, 4) if longer == "en" else (4, 7)
    with pytest.raises(InputError, match=f"en has {counts[0]} sentences and .*vi has {counts[1]}"):
        read("lines", tmp_path, {"en": "en", "vi": "vi"})


def test_invalid_utf_8_is_an_error_with_its_line(tmp_path):
    (tmp_path / "en").write_bytes(b"fine\nnot \xff fine\n")
    (tmp_path / "vi").write_bytes(b"1\n2\n")
    with pytest.raises(InputError, match="en, line 2: not valid UTF-8, at byte 5"):
        read("lines", tmp_path, {"en": "en", "vi": "vi"})


@pytest.fixture(scope="module")
def wit3(shared, tmp_path_factory) -> Path:
    return shared / "iwslt15-envi-wit3"


@pytest.mark.parametrize(
    ("name", "pairs"), [("dev2010", 768), ("tst2010", 1342), ("tst2011", 1435), ("tst2012", 1553), ("tst2013", 1268)]
)
def test_the_official_xml(wit3, name, pairs):
    files = {language: f"IWSLT15.TED.{name}.en-vi.{language}.xml.gz" for language in ("en", "vi")}
    found = read("wit3-xml", wit3, files)
    assert len(found) == pairs
    assert all(all(pair) for pair in found)


def test_the_official_xml_tokenized_is_stanfords_text(wit3, shared):
    """configs/corpora/iwslt15.en-vi.yaml says so: it trains on the one, and tests on the other."""
    different = total = 0
    for name in ("tst2012", "tst2013"):
        files = {language: f"IWSLT15.TED.{name}.en-vi.{language}.xml.gz" for language in ("en", "vi")}
        for language, lines in zip(("en", "vi"), zip(*read("wit3-xml", wit3, files), strict=True), strict=True):
            stanford = read_gz(shared / "iwslt15-envi-stanford" / f"{name}.{language}.gz")
            tokenize = moses.tokenizer(language)
            for line, theirs in zip(lines, stanford, strict=True):
                ours = moses.escape(tokenize(line))
                different += ours not in (theirs, theirs.removesuffix(".") + " .")  # Moses does so since 2018
            total += len(stanford)
    assert total == 5642
    assert different <= 10
