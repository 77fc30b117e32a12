"""Hugging Face tokenizers of every kind that is supported, trained on the spot: nothing is downloaded."""

import json
import random
from functools import cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel, Metaspace, Sequence, Split, WhitespaceSplit

from tests.english import make_lines

# Llama 3's, and CLIP's.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLIP_WORDS = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


@cache
def text() -> list[str]:
    others = [
        "Die Bürgermeister von Köln-Mülheim fahren über die Straße.",
        "Où est passée l'école ? Ça, c'est un cœur naïf !",
        "hai người đàn ông đang đứng trên đường phố",
        "二人の男が通りに立っている。 一个男人站在街上。",
        "rock'n'roll, 1234567 and 3.14159!!! ### #### ## # heading ##a",
        "def f(x):\n    return   x  +  1\n\n\nprint(f(2))",
    ]
    return [*make_lines()[:3000], *others * 20]


def train(tokenizer: Tokenizer, size: int = 1500, lines: list[str] | None = None, **options: object) -> Tokenizer:
    tokenizer.train_from_iterator(
        lines or text(), trainers.BpeTrainer(vocab_size=size, show_progress=False, min_frequency=1, **options)
    )
    return tokenizer


def change(tokenizer: Tokenizer, **parts: object) -> Tokenizer:
    """With other parts of its JSON; model__unk_token is a part of the model."""
    content = json.loads(tokenizer.to_str())
    for name, value in parts.items():
        *within, last = name.split("__")
        (content[within[0]] if within else content)[last] = value
    return Tokenizer.from_str(json.dumps(content))


def frame(tokenizer: Tokenizer, template: str) -> None:
    special = [(name, tokenizer.token_to_id(name)) for name in template.split() if name != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=special)


def gpt2() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(tokenizer, special_tokens=["<|endoftext|>"], initial_alphabet=ByteLevel.alphabet())


def roberta() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=True), decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    train(tokenizer, special_tokens=special, initial_alphabet=ByteLevel.alphabet())
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
    return tokenizer


def llama3() -> Tokenizer:
    """Some words are in the vocabulary that merges do not reach: only ignore_merges does."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = Sequence([Split(Regex(WORDS), "isolated"), ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, initial_alphabet=ByteLevel.alphabet())
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    gone = set(map(tuple, random.Random(1).sample(merges, 150)))
    tokenizer = change(tokenizer, model__merges=[pair for pair in merges if tuple(pair) not in gone])
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    frame(tokenizer, "<|begin_of_text|> $A")
    return tokenizer


def metaspace(split: bool = True) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = Metaspace(prepend_scheme="first")
    train(tokenizer, special_tokens=["<unk>", "<s>", "</s>", *BYTES], limit_alphabet=60)
    tokenizer = change(tokenizer, added_tokens=json.loads(tokenizer.to_str())["added_tokens"][:3])  # not the bytes
    tokenizer.pre_tokenizer = Metaspace(prepend_scheme="first", split=split)
    tokenizer.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()])
    frame(tokenizer, "<s> $A")
    return tokenizer


def mistral() -> Tokenizer:
    return metaspace(split=False)


def llama2() -> Tokenizer:
    """Without a pre-tokenizer, as Llama 2's is."""
    tokenizer = change(metaspace(), pre_tokenizer=None)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def clip() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = Sequence([Split(Regex(CLIP_WORDS), "removed", invert=True), ByteLevel(False)])
    alphabet = ByteLevel.alphabet()
    train(
        tokenizer,
        special_tokens=["<|startoftext|>", "<|endoftext|>", *alphabet, *(letter + "</w>" for letter in alphabet)],
        end_of_word_suffix="</w>",
    )
    tokenizer = change(tokenizer, added_tokens=json.loads(tokenizer.to_str())["added_tokens"][:2])
    frame(tokenizer, "<|startoftext|> $A <|endoftext|>")
    return tokenizer


def prefixed(fuse_unk: bool = False, unk_token: str | None = "[UNK]") -> Tokenizer:
    """Pieces of words as WordPiece writes them. With "##" in the text, some tokens are reached in several ways."""
    unknown = {"unk_token": unk_token} if unk_token else {}
    tokenizer = Tokenizer(models.BPE(continuing_subword_prefix="##", fuse_unk=fuse_unk, **unknown))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    train(tokenizer, special_tokens=["[UNK]", "[PAD]"], continuing_subword_prefix="##", limit_alphabet=50)
    return tokenizer


def fused() -> Tokenizer:
    return prefixed(fuse_unk=True)


def silent() -> Tokenizer:
    """Characters that are unknown vanish."""
    return prefixed(unk_token=None)


def added() -> Tokenizer:
    """Added tokens of every kind, a normalizer that changes lengths, and a suffix."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    train(tokenizer, special_tokens=["<unk>", "<s>"], end_of_word_suffix="</w>", limit_alphabet=40)
    tokenizer.add_tokens(
        [
            AddedToken("the", single_word=True),
            AddedToken("MAN", normalized=False),
            AddedToken("street", lstrip=True, rstrip=True),
        ]
    )
    frame(tokenizer, "<s> $A <s> <unk>")
    return tokenizer


KINDS = {
    make.__name__: cache(make)
    for make in (gpt2, roberta, llama3, metaspace, mistral, llama2, clip, prefixed, fused, silent, added)
}
