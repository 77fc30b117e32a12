"""`--eval-bleu-detok characters`: dev BLEU of characters, for languages without spaces between words.

fairseq computes BLEU in training (--eval-bleu) of words that end at spaces. Chinese and Japanese have none, so a whole
clause would be a word, and BLEU nearly 0 until the end.
"""

from typing import Any

from fairseq.data.encoders import register_tokenizer

# What fairseq writes for an unknown piece. Its letters must not count as characters that agree.
UNKNOWN = {"UNKNOWNTOKENINREF": "\ue000", "UNKNOWNTOKENINHYP": "\ue001"}


@register_tokenizer("characters")
class Characters:
    """
    >>> Characters().decode("我 喜欢")
    '我 喜 欢'
    """

    def __init__(self, cfg: Any = None) -> None:
        pass

    def encode(self, text: str) -> str:
        return text

    def decode(self, text: str) -> str:
        for name, sign in UNKNOWN.items():
            text = text.replace(name, sign)
        return " ".join("".join(text.split()))
