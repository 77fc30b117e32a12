"""Dev BLEU in training: of characters, and of a model that says nothing yet."""

import numpy as np
import pytest
import sacrebleu
from fairseq.logging import metrics

from fairseq_plugins.characters import Characters
from fairseq_plugins.task import log_empty_bleu


def test_characters():
    decode = Characters().decode
    assert decode("我 喜欢 它 。") == "我 喜 欢 它 。"
    assert decode("") == ""
    # What fairseq writes for unknown pieces is one sign, and another in a reference than in a translation.
    reference, translation = decode("我 UNKNOWNTOKENINREF"), decode("我 UNKNOWNTOKENINHYP")
    assert [len(text.split()) for text in (reference, translation)] == [2, 2]
    assert reference != translation


def logged(translations: list[str], references: list[str]) -> dict:
    """What fairseq logs of a batch."""
    bleu = sacrebleu.corpus_bleu(translations, [references])
    orders = {f"_bleu_{name}_{n}": getattr(bleu, name)[n] for name in ("counts", "totals") for n in range(4)}
    return {**orders, "_bleu_sys_len": bleu.sys_len, "_bleu_ref_len": bleu.ref_len}


def test_a_model_that_says_nothing_has_a_bleu_of_0():
    with metrics.aggregate(new_root=True) as found:
        log_empty_bleu([logged(["", ""], ["some words here", "and here"])])
    assert found.get_smoothed_values()["bleu"] == 0.0


def test_a_batch_of_empty_translations_counts_for_the_whole():
    first, second = (["", ""], ["some words", "and more"]), (["a b c d e f"], ["a b c d e f"])
    with metrics.aggregate(new_root=True) as found:
        log_empty_bleu([logged(*first)])
        batch = logged(*second)
        log_empty_bleu([batch])  # says nothing: fairseq itself logs this one
        for name in ("counts", "totals"):
            metrics.log_scalar(f"_bleu_{name}", np.array([batch[f"_bleu_{name}_{n}"] for n in range(4)]))
        for name in ("sys_len", "ref_len"):
            metrics.log_scalar(f"_bleu_{name}", batch[f"_bleu_{name}"])
    whole = sacrebleu.corpus_bleu(first[0] + second[0], [first[1] + second[1]])
    assert found.get_smoothed_values()["bleu"] == pytest.approx(whole.score, abs=0.01)
