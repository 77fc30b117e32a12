"""Kudo's subword regularization: the l best segmentations, their weights, training, unsegmented Japanese."""

import itertools
import json
import math
import pickle
import re
from collections import Counter

import numpy as np
import pytest
import sentencepiece
from scipy.stats import chisquare

from bpe_dropout import Dictionary, InputError
from bpe_dropout.methods import METHODS
from bpe_dropout.methods.unigram import UnigramModel, UnigramOptions, UnigramText
from tests.conftest import read_gz
from tests.fairseq_plugins.conftest import (
    PLUGIN,
    RECORD,
    TRAIN,
    load_symbols,
    read_record,
    run,
    run_both,
)

UNIGRAM = ["--user-dir", str(PLUGIN), "--bpe", "unigram_regularization"]


def learn_model(text, prefix, size, **more):
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(prefix), vocab_size=size, minloglevel=2,
        **{"model_type": "unigram", "normalization_rule_name": "identity", "character_coverage": 1.0, **more},
    )  # fmt: skip
    return prefix.with_name(prefix.name + ".model")


@pytest.fixture(scope="module")
def models(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: learn_model(corpus.folder / f"train.{name}", folder / name, 200) for name in ("en", "xx")}


@pytest.fixture(scope="module")
def data(corpus, models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unigram") / "DATA"
    arguments = ["--src-unigram", models["en"], "--tgt-unigram", models["xx"]]
    run("python", "-m", "fairseq_plugins", "data", *corpus.arguments(folder), *arguments)
    return folder


@pytest.fixture
def processor(models):
    return sentencepiece.SentencePieceProcessor(model_file=str(models["en"]))


def text_of(data, models, language="en", *, nbest=64, alpha=0.1, unit="word", memory=1 << 28, name="train"):
    dictionary = Dictionary.load(data / f"dict.{language}.txt")
    path = data / f"{name}.en-xx.{language}"
    return UnigramText(path, UnigramModel(models[language]), dictionary, nbest, alpha, unit, memory, 2)


def test_the_distribution(models, processor):
    """p(x)^alpha over the l best, with sentencepiece's own scores; unknown characters, too."""
    model = UnigramModel(models["en"])
    for word in ("statement", "expressions", "x", "日expression本"):
        listed, probabilities = model.outcomes(word, 64, 0.1)
        scored = processor.nbest_encode(word, nbest_size=64, return_type="proto").nbests
        assert [[piece.id for piece in one.pieces] for one in scored] == listed
        weights = [math.exp(0.1 * one.score) for one in scored]
        assert probabilities == pytest.approx([weight / sum(weights) for weight in weights], rel=1e-4)
    sentence = "the statement of several expressions is an expression of another class of statements"
    assert len(model.outcomes(sentence, 64, 0.1)[0]) == 64
    assert model.outcomes(sentence, 64, 0.0)[1] == pytest.approx([1 / 64] * 64)
    assert model.outcomes(sentence, 1, 0.1)[1] == [1.0]


def test_the_most_probable(models, processor):
    """Against all segmentations, listed by hand and scored with sentencepiece's own scores; the first is the best."""
    model = UnigramModel(models["en"])
    score = {piece: model.scores[number] for number, piece in enumerate(model.pieces)}

    def all_of(rest):
        if not rest:
            yield [], 0.0
        for end in range(1, len(rest) + 1):
            if rest[:end] in score:
                yield from (([rest[:end], *more], score[rest[:end]] + one) for more, one in all_of(rest[end:]))

    find = METHODS["unigram"].most_probable(model, 8, 0.1)
    for line in ("the statement of another expression", " a  class is ", "several statements"):
        found = find(line)
        every = sorted(all_of("".join(f"▁{word}" for word in line.split())), key=lambda one: -one[1])
        assert len(found) == min(8, len(every)) > 1
        scores = [sum(map(score.__getitem__, pieces)) for pieces, _ in found]
        assert scores == pytest.approx([one for _, one in every[:8]])
        assert len({tuple(pieces) for pieces, _ in found}) == len(found)
        assert found[0][0] == model.segment(line)
        weights = [math.exp(one) for one in scores]
        assert [p for _, p in found] == pytest.approx([weight / sum(weights) for weight in weights])
    assert find("日x")[0][0] == ["▁", "<unk>", "x"]
    assert find("") == [([], 1.0)]
    with pytest.raises(InputError, match="sentencepiece lists 512 segmentations at most, not 513"):
        METHODS["unigram"].most_probable(model, 513, 0.1)


@pytest.mark.parametrize("unit", ["word", "sentence"])
def test_draws_fit_the_distribution(data, models, unit, tmp_path):
    """One sentence of two words, drawn as 20,000 sentences."""
    path = tmp_path / "train.en-xx.en"
    path.write_text("statement expressions\n" * 20_000)
    dictionary = Dictionary.load(data / "dict.en.txt")
    model = UnigramModel(models["en"])
    text = UnigramText(path, model, dictionary, 8, 0.1, unit, 1 << 28, 2)
    ids, offsets = text.draw(1, 1, 0).tokens(np.arange(20_000))
    drawn = Counter(tuple(ids[a : b - 1].tolist()) for a, b in itertools.pairwise(offsets))

    def listed(words):
        segmentations, probabilities = model.outcomes(words, 8, 0.1)
        return [
            (tuple(dictionary[model.pieces[i]] for i in one), p)
            for one, p in zip(segmentations, probabilities, strict=True)
        ]

    if unit == "sentence":
        expected = Counter(dict(listed("statement expressions")))
    else:
        expected = Counter()
        for first, p in listed("statement"):
            for second, q in listed("expressions"):
                expected[first + second] += p * q
    assert set(drawn) <= set(expected)
    likely = [one for one, p in expected.items() if p * 20_000 > 5]
    rest = 20_000 - sum(drawn[one] for one in likely)
    counts = [drawn[one] for one in likely] + [rest]
    wanted = [expected[one] * 20_000 for one in likely]
    wanted.append(20_000 - sum(wanted))
    if wanted[-1] < 5:
        counts, wanted = counts[:-1], [w * sum(counts[:-1]) / sum(wanted[:-1]) for w in wanted[:-1]]
    assert chisquare(counts, wanted).pvalue > 1e-4


@pytest.mark.parametrize("unit", ["word", "sentence"])
def test_memory_changes_nothing(data, models, unit):
    numbers = np.arange(600)
    reference = text_of(data, models, unit=unit).draw(3, 2, 0)
    other = text_of(data, models, unit=unit, memory=2000).draw(3, 2, 0)
    assert (reference.lengths == other.lengths).all()
    for one, two in zip(reference.tokens(numbers), other.tokens(numbers), strict=True):
        assert (one == two).all()
    later = text_of(data, models, unit=unit).draw(3, 3, 0)
    assert (later.lengths != reference.lengths).mean() > 0.3


def test_pickled(data, models):
    numbers = np.arange(50)
    for unit in ("word", "sentence"):
        drawn = text_of(data, models, unit=unit).draw(3, 2, 0)
        again = pickle.loads(pickle.dumps(drawn))
        assert (again.tokens(numbers).ids == drawn.tokens(numbers).ids).all()


def test_plain_is_the_best(data, models, processor):
    plain = text_of(data, models).plain()
    symbols = load_symbols(data / "dict.en.txt")
    lines = (data / "train.en-xx.en").read_text().splitlines()
    for number in range(0, 600, 7):
        ids, _ = plain.tokens(np.array([number]))
        pieces = [piece for word in lines[number].split() for piece in processor.encode(word, out_type=str)]
        assert [symbols[i] for i in ids] == [*pieces, "</s>"]
        assert plain.lengths[number] == len(ids)


READINGS = """
import json, sys
from fairseq_plugins.translation import Reading, Translator
translator = Translator([sys.argv[1], "--path", sys.argv[2], "--cpu"], Reading(4, is_words=True))
both = translator, translator.reading_as(Reading(1, is_words=True))
print("JSON", json.dumps([one.readings("the statement") for one in both]))
"""


def test_training_and_translating(data, tmp_path):
    """By word and by sentence; the same however it is run; the best segmentation everywhere else."""
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    more = (["--num-workers", "0"], ["--num-workers", "2", "--resegment-memory", "0"], ["--unigram-unit", "sentence"])
    done = run_both(
        *(
            ("fairseq-train", data, *RECORD, "--bpe", "unigram_regularization", *TRAIN, *options, "--max-epoch", "2",
             "--save-dir", folder / "save", {"RECORD": str(folder)})
            for folder, options in zip(folders, more, strict=True)
        )
    )  # fmt: skip
    assert done[0].losses == done[1].losses != done[2].losses
    assert read_record(folders[0]) == read_record(folders[1])
    assert "l = 64 for each word, alpha = 0.1, seed 7" in done[0].out
    assert "l = 64 for each sentence" in done[2].out
    by_word, by_sentence = (float(one.logged("train")[0]["train_src_ratio"]) for one in (done[0], done[2]))
    assert by_word > by_sentence > 1
    symbols = load_symbols(data / "dict.en.txt")
    validated = [batch for batch in read_record(folders[0]) if not batch["training"]]
    model = UnigramModel(data / "unigram.en.model")
    lines = (data / "valid.en-xx.en").read_text().splitlines()
    for batch in validated:
        for pair, tokens in zip(batch["id"], batch["source"], strict=True):
            best = [piece if piece in symbols else "<unk>" for piece in model.segment(lines[pair])]
            assert [symbols[token] for token in tokens] == [*best, "</s>"]
    path = ["--path", folders[0] / "save/checkpoint_last.pt", "--cpu", "--max-len-b", "10"]
    translate = ["-m", "fairseq_plugins", "translate", data, *path]  # the folder says which --bpe
    text = {"stdin": "the statement\n\nit is a class\n"}
    generated, removed, typed, one, several, averaged, drawn, dropped = run_both(
        ("fairseq-generate", data, *UNIGRAM, *path, "--gen-subset", "valid"),
        ("fairseq-generate", data, *UNIGRAM, *path, "--gen-subset", "valid", "--remove-bpe", "sentencepiece"),
        ("fairseq-interactive", data, *UNIGRAM, *path, text),
        ("python", *translate, text),
        ("python", *translate, "--bpe=unigram_regularization", "--segmentations", 4, text),
        ("python", *translate, "--segmentations", 4, "--combine", "average", text),
        ("python", *translate, "--draws", {**text, "check": False}),
        ("python", *translate, "--dropout", "0.1", {**text, "check": False}),
    )
    assert one.out.splitlines() == re.findall(r"^D-\d+\t\S+\t(.*)", typed.out, re.MULTILINE)
    assert [len(made.out.splitlines()) for made in (one, several, averaged)] == [3, 3, 3]
    read = run("python", "-W", "ignore", "-c", READINGS, data, path[1])
    assert json.loads(re.search(r"^JSON (.*)$", read.out, re.MULTILINE)[1]) == [
        [" ".join(pieces) for pieces, _ in METHODS["unigram"].most_probable(model, count, 0.1)("the statement")]
        for count in (4, 1)
    ]
    assert drawn.sentence == "error: --draws is for --bpe bpe_dropout, not for unigram_regularization"
    assert dropped.sentence == "error: --dropout is for --bpe bpe_dropout, not for unigram_regularization"
    assert "Translated 53 sentences" in generated.out
    texts = [re.findall(r"^[TD]-\d+\t(.*)$", one.out, re.MULTILINE) for one in (generated, removed)]
    assert texts[0] == texts[1]
    assert sum(" " in text for text in texts[0]) > 50
    for out in (generated.out, typed.out):
        assert re.search(r"^H-0\t\S+\t.*▁", out, re.MULTILINE)
        assert not any("▁" in line for line in re.findall(r"^D-\d+\t\S+\t(.*)", out, re.MULTILINE))
    assert re.search(r"^S-0\t▁the ", typed.out, re.MULTILINE)


MEASURE = """
import resource, sys
from pathlib import Path
import numpy as np
from bpe_dropout import Dictionary
from bpe_dropout.methods.unigram import UnigramModel, UnigramText
path, unit = Path(sys.argv[1]), sys.argv[2]
model = UnigramModel(path.with_name("ja.model"))
dictionary = Dictionary({piece: 4 + i for i, piece in enumerate(model.pieces)}, unk=3, eos=2)
text = UnigramText(path, model, dictionary, 64, 0.1, unit, 1 << 24, 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
drawn = text.draw(1, 1, 0)
total = int(drawn.lengths.sum())
candidates = sum(64 * 4 * (length + 2) for length in text.plain().lengths.tolist())
print(total, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, candidates)
"""


def test_unsegmented_japanese(shared, tmp_path):
    """Nearly every sentence is one word, and occurs once: 64 candidates of each would be several times this memory."""
    lines = [line for line in read_gz(shared / "tatoeba-enja" / "train.ja.gz") if line][:20_000]
    path = tmp_path / "ja"
    path.write_text("".join(f"{line}\n" for line in lines))
    learn_model(path, tmp_path / "ja", 4000)
    for done in run_both(("python", "-c", MEASURE, path, "word"), ("python", "-c", MEASURE, path, "sentence")):
        total, used, candidates = map(int, done.out.split()[-3:])
        assert total > len(lines)
        assert used < candidates / 2


def test_models_that_do_not_do(corpus, tmp_path):
    rewriting = learn_model(corpus.folder / "train.en", tmp_path / "nfkc", 200, normalization_rule_name="nmt_nfkc")
    merging = learn_model(corpus.folder / "train.en", tmp_path / "bpe", 200, model_type="bpe")
    for path, sentence in (
        (tmp_path / "none.model", "there is no .*none.model: the unigram model of the source side"),
        (rewriting, "nfkc.model rewrites text before it segments it"),
        (merging, "bpe.model is not a unigram model of sentencepiece"),
        (corpus.codes["en"], "codes.en is not a unigram model of sentencepiece"),
    ):
        with pytest.raises(InputError, match=sentence):
            METHODS["unigram"].load(path, "src")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"unigram_nbest": 0}, "--unigram-nbest: from 1 to 512 best segmentations, not 0"),
        ({"unigram_alpha": -1.0}, "--unigram-alpha: a number from 0 on, not -1.0"),
    ],
)
def test_options(data, more, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        METHODS["unigram"].check(UnigramOptions(**more))
