"""A trained model at work: generate, interactive, validate, Python; plain segmentation, raw text in and out, folders
that have moved."""

import re
import shutil

import pytest

from bpe_dropout import Segmenter
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
