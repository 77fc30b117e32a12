"""A trained model at work: generate, interactive, validate, Python; plain segmentation, raw text in and out, folders
that have moved."""

import argparse
import json
import re
import shutil

import pytest

from bpe_dropout import InputError, Segmenter
from bpe_dropout.rules import Rule
from tests.fairseq_plugins.conftest import MODEL, OURS, PLUGIN, load_symbols, run, run_both

TRANSLATE = ["MOVED", *OURS, "--path", "checkpoints/checkpoint_last.pt", "--beam", "2", "--max-len-b", "20", "--cpu"]
RAW = ["Don't ask: It is here.", 'A "word" in   quotes', "Nothing"]


@pytest.fixture(scope="module")
def raw(corpus, tmp_path_factory):
    """A data folder of text that is prepared: tokenized as Moses does it, and lowercased."""
    folder = tmp_path_factory.mktemp("raw")
    for split in ("train", "valid"):
        for language in ("en", "xx"):
            lines = (corpus.folder / f"{split}.{language}").read_text().splitlines()
            (folder / f"{split}.{language}").write_text("".join(f"{line.capitalize()}\n" for line in lines))
    run(
        "python", "-m", "fairseq_plugins", "data", "-s", "en", "-t", "xx", "--trainpref", folder / "train",
        "--validpref", folder / "valid", "--testpref", folder / "valid", "--destdir", folder / "DATA",
        *corpus.code_arguments, "--normalize", "--tokenize", "--lowercase",
    )  # fmt: skip
    return folder / "DATA"


@pytest.fixture(scope="module")
def model(raw, tmp_path_factory):
    """Trained in a folder that has then been moved."""
    before, after = tmp_path_factory.mktemp("before"), tmp_path_factory.mktemp("after")
    shutil.copytree(raw, before / "DATA")
    run(
        "fairseq-train", "DATA", *OURS, *MODEL, "--max-tokens", "400", "--max-epoch", "2", "--save-dir", "checkpoints",
        cwd=before,
    )  # fmt: skip
    (before / "DATA").rename(after / "MOVED")
    (before / "checkpoints").rename(after / "checkpoints")
    return after


def test_prepared_as_asked(raw, corpus):
    prepared = (raw / "train.en-xx.en").read_text().splitlines()
    assert len(prepared) == len(corpus.train)
    assert not any(character.isupper() for line in prepared for character in line)
    assert any("'" in line.split() for line in prepared)
    assert not any("&apos;" in line for line in prepared)


def hypotheses(out: str, kind: str) -> dict[int, str]:
    return {int(number): text for number, text in re.findall(rf"^{kind}-(\d+)\t(?:[-\d.]+\t)?(.*)$", out, re.MULTILINE)}


def test_generate(model):
    valid, train, removed = run_both(
        ("fairseq-generate", *TRANSLATE, "--gen-subset", "valid", {"cwd": model}),
        ("fairseq-generate", *TRANSLATE, "--gen-subset", "train", {"cwd": model}),
        ("fairseq-generate", *TRANSLATE, "--gen-subset", "test", "--remove-bpe", "--sacrebleu", {"cwd": model}),
    )
    for done, lines in ((valid, 53), (train, 600)):  # no sentence is lost
        assert hypotheses(done.out, "S").keys() == hypotheses(done.out, "D").keys() == set(range(lines))
    # H holds pieces, or words if asked; D holds text.
    assert any("@@" in line for line in hypotheses(valid.out, "H").values())
    assert not any("@@" in line for line in hypotheses(removed.out, "H").values())
    for done in (valid, removed):
        assert not any("@@" in line or "&apos;" in line for line in hypotheses(done.out, "D").values())
    assert "BLEU" in removed.out


def test_interactive(model, raw, corpus):
    done, tokenized = run_both(
        ("fairseq-interactive", *TRANSLATE, {"cwd": model, "stdin": "".join(f"{line}\n" for line in RAW)}),
        ("fairseq-interactive", *TRANSLATE, "--tokenizer", "moses", "--source-lang", "en", "--target-lang", "xx",
         {"cwd": model, "stdin": "IT is here.\n"}),
    )  # fmt: skip
    segmenter = Segmenter.from_codes(corpus.codes["en"])
    symbols = load_symbols(raw / "dict.en.txt")

    def pieces(line):
        return " ".join(piece if piece in symbols else "<unk>" for piece in segmenter.segment(line))

    prepared = ["don 't ask : it is here .", 'a " word " in quotes', "nothing"]
    assert list(hypotheses(done.out, "S").values()) == [pieces(line) for line in prepared]
    assert len(hypotheses(done.out, "D")) == 3
    # With a tokenizer of fairseq's, the text is left to it: it stays in capitals.
    assert hypotheses(tokenized.out, "S")[0] == pieces("IT is here .")


def test_validate(model):
    arguments = [
        "MOVED",
        "--user-dir",
        PLUGIN,
        "--path",
        "checkpoints/checkpoint_last.pt",
        "--max-tokens",
        "400",
        "--cpu",
    ]
    done, forgotten = run_both(
        ("fairseq-validate", *arguments, "--task", "translation", "--no-progress-bar", {"cwd": model}),
        ("fairseq-validate", *arguments, {"cwd": model, "check": False}),
    )
    assert re.search(r"valid on 'valid' subset \| loss \d+\.\d+", done.out)
    assert forgotten.code == 1
    assert forgotten.sentence == "error: this command needs to be told the task: add --task translation"


def test_in_python(model):
    code = f"""
import sys
import fairseq_plugins
from fairseq.models.transformer import TransformerModel
model = TransformerModel.from_pretrained("checkpoints", "checkpoint_last.pt", data_name_or_path="{model}/MOVED")
print("pieces:", model.apply_bpe({RAW[0]!r}))
print("text:", model.translate({RAW[0]!r}, beam=2))
"""
    done = run("python", "-c", code, cwd=model)
    assert re.search(r"^pieces: .*@@.* \.$", done.out, re.MULTILINE)
    text = re.search(r"^text: (.+)$", done.out, re.MULTILINE)
    assert text
    assert "@@" not in text[1]


LINES = [*RAW, "It is here that the statement is used", "a"]
SEVERAL = """
import json, sys, warnings
import torch
from bpe_dropout import Segmenter
from fairseq_plugins.translation import Reading, Translator

lines = json.loads(sys.argv[1])
given = ["MOVED", "--path", "checkpoints/checkpoint_last.pt", "--max-len-b", "20", "--cpu"]
greedy, beam = [*given, "--beam", "1"], [*given, "--beam", "2"]
found = {
    "plain": [one.text for one in Translator(beam)(lines)],
    "score": [(one.text, one.score, one.source) for one in Translator(beam, Reading(4))(lines)],
    "average": [(one.text, one.score) for one in Translator(greedy, Reading(4, "average"))(lines)],
    "drawn": [(Translator(beam, Reading(4, "score", drawn=True)).readings(lines[0], number)) for number in (0, 0, 1)],
    "by a rule": Translator(beam, Reading(4, dropout="rank:0..0.9")).readings(lines[0]),
}
plain = Translator(greedy)
task, model = plain.task, plain.models[0]
segmenter = Segmenter.from_codes("MOVED/codes.en")
most_probable = [segmenter.most_probable(plain.bpe.prepare(line), 0.1, 4) for line in lines]
readings = [[" ".join(pieces) for pieces, _ in found] for found in most_probable]


def encode(reading):
    return task.source_dictionary.encode_line(reading, add_if_not_exist=False).long()[None]


def text(tokens):
    return plain.bpe.decode(task.target_dictionary.string(tokens))


def by_score(given):
    generator, best = Translator(beam)._generator(1), None
    for reading in given:
        tokens = encode(reading)
        net_input = {"src_tokens": tokens, "src_lengths": torch.tensor([tokens.size(1)])}
        one = generator.generate([model], {"net_input": net_input})[0][0]
        if best is None or one["score"] > best[1]:
            best = text(one["tokens"]), one["score"].item(), reading
    return best


def by_average(given):
    eos, pad = task.target_dictionary.eos(), task.target_dictionary.pad()
    tokens, score = torch.tensor([[eos]]), 0.0
    for step in range(21):
        each = []
        for reading in given:
            source = encode(reading)
            out = model(source, torch.tensor([source.size(1)]), tokens)
            each.append(model.get_normalized_probs(out, log_probs=False)[0, -1])
        mean = torch.stack(each).mean(dim=0)
        mean[pad] = 0
        if step == 0:
            mean[eos] = 0
        chosen = eos if step == 20 else mean.argmax().item()
        score += mean[chosen].log().item()
        if chosen == eos:
            break
        tokens = torch.cat([tokens, torch.tensor([[chosen]])], dim=1)
    return text(tokens[0, 1:]), score / tokens.size(1)


with torch.no_grad():
    expected = {"score": [by_score(one) for one in readings], "average": [by_average(one) for one in readings]}
words = plain.bpe.prepare(lines[0])
expected["by a rule"] = [" ".join(pieces) for pieces, _ in segmenter.most_probable(words, "rank:0..0.9", 4)]
expected["by p"] = readings[0]
print("JSON", json.dumps([found, expected, [len(one) for one in readings]]))
"""


@pytest.fixture(scope="module")
def several(model):
    done = run("python", "-W", "ignore", "-c", SEVERAL, json.dumps(LINES), cwd=model)
    return json.loads(re.search(r"^JSON (.*)$", done.out, re.MULTILINE)[1])


def test_one_segmentation_is_plain_bpe(model, several):
    """The default, and the same as fairseq-interactive."""
    text = "".join(f"{line}\n" for line in LINES)
    translate = ["-m", "fairseq_plugins", "translate", "MOVED", *TRANSLATE[len(OURS) + 1 :]]
    interactive, translated, without_model = run_both(
        ("fairseq-interactive", *TRANSLATE, {"cwd": model, "stdin": text}),
        ("python", *translate, "-o", "translations", {"cwd": model, "stdin": text}),
        ("python", "-m", "fairseq_plugins", "translate", "MOVED", "--segmentations", 2, {"cwd": model, "check": False}),
    )
    expected = list(hypotheses(interactive.out, "D").values())
    assert (model / "translations").read_text().splitlines() == several[0]["plain"] == expected
    assert translated.out == ""
    assert without_model.sentence == "error: say which model translates: --path checkpoints/average.pt"


def test_a_line_that_is_too_long(model):
    """It is named, or skipped; a model is not written over."""
    lines = f"{RAW[0]}\n{'the value ' * 600}\n{RAW[1]}\n"
    given = ["-m", "fairseq_plugins", "translate", "MOVED", *TRANSLATE[len(OURS) + 1 :]]
    checkpoint = given[given.index("--path") + 1]
    whole = (model / checkpoint).read_bytes()
    shutil.copy(model / "MOVED" / "codes.en", model / "my.codes")
    codes = (model / "my.codes").read_bytes()
    refused, skipped, alone, over, over_codes = run_both(
        ("python", *given, {"cwd": model, "stdin": lines, "check": False}),
        (
            "python",
            *given,
            "--segmentations",
            2,
            "--skip-invalid-size-inputs-valid-test",
            {"cwd": model, "stdin": lines},
        ),
        ("python", *given, "--segmentations", 2, {"cwd": model, "stdin": f"{RAW[0]}\n{RAW[1]}\n"}),
        ("python", *given, "-o", checkpoint, {"cwd": model, "stdin": lines, "check": False}),
        (
            "python",
            *given,
            "--bpe-dropout-src-codes",
            "my.codes",
            "-o",
            "my.codes",
            {"cwd": model, "stdin": lines, "check": False},
        ),
    )
    assert re.fullmatch(
        r"error: line 2 has \d+ pieces, and the model reads 1023 at most: split it into sentences; or give "
        r"--skip-invalid-size-inputs-valid-test, and its translation is empty",
        refused.sentence,
    )
    first, second = alone.out.splitlines()
    assert skipped.out.splitlines() == [first, "", second]
    assert over.sentence == f"error: {checkpoint} is read by this command, and would be lost: name another output"
    assert (model / checkpoint).read_bytes() == whole
    assert over_codes.sentence == "error: my.codes is read by this command, and would be lost: name another output"
    assert (model / "my.codes").read_bytes() == codes


def test_which_bpe_is_meant(model, tmp_path):
    """By the files that are named, or those of the folder; which must not be of two methods."""
    from fairseq_plugins.translation import bpe_of

    known = argparse.Namespace(data=str(model / "MOVED"))
    assert bpe_of(known, []) == bpe_of(known, ["--bpe-dropout-src-codes", "x"]) == "bpe_dropout"
    assert bpe_of(known, ["--unigram-src-model=x"]) == "unigram_regularization"
    shutil.copytree(model / "MOVED", tmp_path / "both")
    (tmp_path / "both" / "unigram.en.model").touch()
    with pytest.raises(InputError, match=r"has both codes\.en and unigram\.en\.model: a folder is for one of them"):
        bpe_of(argparse.Namespace(data=str(tmp_path / "both"), source_lang="en", target_lang="xx"), [])


def test_the_best_score_over_segmentations(several):
    found, expected, counts = several
    assert counts == [4, 4, 4, 4, 1]
    for one, other in zip(found["score"], expected["score"], strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], rel=1e-4)
    assert any(one[2] == other[2] for one, other in zip(found["score"], expected["score"], strict=True))


def test_the_most_probable_by_a_rule(several):
    found, expected, _ = several
    assert found["by a rule"] == expected["by a rule"] != expected["by p"]


def test_the_average_over_segmentations(several):
    """Against the mean of the probabilities, computed step by step without fairseq's search."""
    found, expected, _ = several
    for one, other in zip(found["average"], expected["average"], strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], rel=1e-4)


def test_the_p_of_a_model():
    from omegaconf import OmegaConf

    from fairseq_plugins.translation import trained_with

    rank = "rank:0..0.2"
    for given, p in ((0.3, 0.3), ("0.3", 0.3), (0.0, 0.1), ("0.0", 0.1), (rank, Rule.parse(rank)), ("rank:0..0", 0.1)):
        assert trained_with(OmegaConf.create({"bpe": {"bpe_dropout_src": given}})) == p
    assert trained_with(OmegaConf.create({})) == 0.1
    for odd in ("0.2@anneal:30", "frequency:0..0.2", "file:rates.en", "2", None, [0.1], {"a": 1}):
        with pytest.raises(InputError, match=f"dropout {re.escape(str(odd))}: say with --dropout which to take"):
            trained_with(OmegaConf.create({"bpe": {"bpe_dropout_src": odd}}))
    assert trained_with(OmegaConf.create({"bpe": "text"})) == 0.1


def test_the_p_of_a_reading():
    from fairseq_plugins.translation import Reading

    for given in (0.2, "0.2", "rank:0..0.2", "file:rates.en"):
        assert Reading(4, dropout=given).dropout == given
    for given in ("0.2@anneal:30", "frequency:0..0.2"):
        with pytest.raises(InputError, match="neither an epoch here nor a text"):
            Reading(4, dropout=given)
    for given in (1.5, "1.5", "much"):
        with pytest.raises(InputError, match="dropout"):
            Reading(4, dropout=given)


def test_a_model_of_another_method_is_refused():
    """Its dictionary may have as many pieces."""
    from omegaconf import OmegaConf

    from fairseq_plugins.translation import check_method

    for name in ("bpe_dropout", "subword_nmt", None):
        check_method(OmegaConf.create({"bpe": {"_name": name}}), "bpe_dropout", "model.pt")
    check_method(OmegaConf.create({}), "bpe_dropout", "model.pt")
    said = "model.pt was trained with --bpe unigram_regularization, and the data folder is one for --bpe bpe_dropout"
    with pytest.raises(InputError, match=said):
        check_method(OmegaConf.create({"bpe": {"_name": "unigram_regularization"}}), "bpe_dropout", "model.pt")


def test_draws_can_be_repeated(several):
    first, again, of_another_sentence = several[0]["drawn"]
    assert first == again != of_another_sentence
    assert len(first) == 4
    assert len(set(first)) > 1


def test_a_forgotten_bpe(model):
    arguments = [
        "MOVED",
        "--user-dir",
        PLUGIN,
        "--path",
        "checkpoints/checkpoint_last.pt",
        "--gen-subset",
        "valid",
        "--cpu",
    ]
    generate, train, no_plugin = run_both(
        ("fairseq-generate", *arguments, {"cwd": model, "check": False}),
        ("fairseq-train", "MOVED", "--user-dir", PLUGIN, *MODEL, "--max-tokens", "400", {"cwd": model, "check": False}),
        ("fairseq-generate", "MOVED", *arguments[3:], {"cwd": model, "check": False}),
    )
    assert no_plugin.code == 1  # without --user-dir we have no say; torch refuses what the checkpoint holds
    for done in (generate, train):
        assert done.code == 1
        assert done.sentence == (
            "error: MOVED holds words that are not segmented: add --bpe bpe_dropout or --bpe unigram_regularization"
        )


def test_the_user_dir_is_printed(tmp_path):
    done = run("python", "-m", "fairseq_plugins", cwd=tmp_path)
    assert done.out.strip() == str(PLUGIN)
