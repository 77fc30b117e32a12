"""Hugging Face tokenizers whose model is BPE: their words, and what merges are made of.

A text goes through the tokenizer's own code up to its words: added tokens, normalizer, pre-tokenizer. What a word
starts from (characters with a prefix or suffix, bytes, the unknown token) is asked of the tokenizer's own model, with
its merges taken out. Then the core takes over. For it, every token is one character, numbered by the token's id, so a
word is a short text and a merge is two characters that become a third:

    " the"  ->  "Ġthe"  ->  ids 220 83 71 68  ->  4 characters  ->  the core  ->  1 character  ->  id 262

Merges are those of ids, as in Hugging Face's code: two ways to the same token are the same token. Deliberately not
here: drawing (the core), segmenters (tokenizer_segmenter.py) and texts (tokenizer_corpus.py).
"""

from __future__ import annotations

import hashlib
import json
import re
import string
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from .errors import InputError, encode, shorten

# The characters of the tokens begin after the space, which separates words, and BESIDE.
FIRST = 34
BESIDE = "!"
SURROGATES, SURROGATE_COUNT = 0xD800, 0x800
MOST_TOKENS = 0x110000 - SURROGATE_COUNT - FIRST

# How tokenizers write the space between words, if they keep it.
SPACES = " ▁Ġ"
KNOWN_WORDS, LONGEST_KNOWN = 1 << 18, 256  # that are remembered, and their characters


def character(token: int) -> str:
    """The character that a token is for the core.

    >>> character(0), character(262)
    ('"', 'Ĩ')
    """
    code = token + FIRST
    return chr(code if code < SURROGATES else code + SURROGATE_COUNT)


def token_of(char: str) -> int:
    """The token of a character."""
    code = ord(char)
    return (code if code < SURROGATES else code - SURROGATE_COUNT) - FIRST


@dataclass(frozen=True)
class Bpe:
    """The model of a tokenizer.json: merges of ids in the order of their priority, and what they become."""

    vocabulary: dict[str, int]
    merges: dict[tuple[int, int], int]
    options: dict[str, Any]
    ignore_merges: bool


def read(tokenizer: Any) -> tuple[str, bool, str]:
    """A tokenizer as JSON, whether special tokens that a text names are text (encode_special_tokens), and what errors
    call it.

    Takes a tokenizers.Tokenizer, a fast tokenizer of transformers, or the path of a tokenizer.json.
    """
    if isinstance(tokenizer, str | Path):
        return _read_file(Path(tokenizer))
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not callable(getattr(backend, "to_str", None)):
        slow = " A slow tokenizer cannot be used: load it with use_fast=True" if hasattr(tokenizer, "encode") else ""
        raise InputError(
            "expected a tokenizers.Tokenizer, a fast tokenizer of transformers or the path of a tokenizer.json, not "
            f"{type(tokenizer).__name__}.{slow}"
        )
    try:
        text = backend.to_str()
    except Exception as error:  # tokenizers raises Exception itself
        raise InputError(
            f"the tokenizer cannot be written as JSON ({error}); parts of it that are written in Python cannot be used"
        ) from None
    if backend is tokenizer:  # in transformers they are arguments of a call, and what is there is that of the last call
        _check_no_settings(json.loads(text), "the tokenizer")
    return text, bool(getattr(backend, "encode_special_tokens", False)), "the tokenizer"


def _read_file(given: Path) -> tuple[str, bool, str]:
    path = given / "tokenizer.json" if given.is_dir() else given
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"there is no {path}. A tokenizer of the Hub, or of a folder with other files, is loaded first: "
            f'Segmenter.from_tokenizer(transformers.AutoTokenizer.from_pretrained("{given}"))'
        ) from None
    try:
        text = data.decode()
        content = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is not a tokenizer.json of Hugging Face: {error}") from None
    read_model(content, str(path))  # before their code sees it, whose errors name no file
    _check_no_settings(content, str(path))
    return text, False, str(path)


def _make(source: str, where: str) -> Any:
    """A tokenizers.Tokenizer of its JSON."""
    import tokenizers

    try:
        return tokenizers.Tokenizer.from_str(source)
    except Exception as error:  # tokenizers raises Exception itself
        raise InputError(
            f"{where} cannot be used by tokenizers {tokenizers.__version__}, which may be older than what it was "
            f"written with: {error}"
        ) from None


def _check_no_settings(content: dict[str, Any], where: str) -> None:
    for setting, off in (("truncation", "no_truncation"), ("padding", "no_padding")):
        if content.get(setting) is not None:
            raise InputError(
                f"{where} has {setting} switched on, which changes the ids of a text after it was segmented; switch it "
                f"off with tokenizer.{off}()"
            )


def read_model(content: Any, where: str) -> Bpe:
    """The BPE model of a tokenizer.json, checked."""
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict):
        raise InputError(f"{where} has no model; is it a tokenizer.json of Hugging Face?")
    kind = model.get("type") or ("BPE" if "merges" in model else "unknown")
    if kind != "BPE":
        raise InputError(
            f"{where} has a model of type {kind}; BPE-dropout drops merges, which only models of type BPE have"
        )
    vocabulary, listed = model.get("vocab"), model.get("merges")
    if not isinstance(vocabulary, dict) or not isinstance(listed, list):
        raise InputError(f"{where}: the BPE model needs a vocabulary and a list of merges")
    if not listed:
        raise InputError(
            f"{where} has no merges, so there is nothing to drop; train it, or load the merges with the vocabulary"
        )
    if not all(type(token) is int and 0 <= token < MOST_TOKENS for token in vocabulary.values()):
        raise InputError(f"{where}: the ids of tokens are whole numbers from 0 to {MOST_TOKENS - 1}")
    prefix = (model.get("continuing_subword_prefix") or "").encode()
    merges: dict[tuple[int, int], int] = {}
    for number, merge in enumerate(listed, 1):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise InputError(f"{where}, merge {number}: {merge!r} is not a pair of tokens")
        left, right = pair
        result = left.encode() + right.encode()[len(prefix) :]
        for token in (left.encode(), right.encode(), result):
            if token.decode(errors="replace") not in vocabulary:
                raise InputError(
                    f"{where}, merge {number}: {left!r} and {right!r} become {result.decode(errors='replace')!r}, but "
                    f"{token.decode(errors='replace')!r} is not in the vocabulary; merges and vocabulary are not of "
                    "the same tokenizer"
                )
        key = vocabulary[left], vocabulary[right]
        merges.pop(key, None)  # of a pair that occurs twice, the last counts: the other way round than in subword-nmt
        merges[key] = vocabulary[result.decode()]
    names = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback")
    options = {name: model[name] for name in names if model.get(name)}
    return Bpe(vocabulary, merges, options, bool(model.get("ignore_merges")))


class Atoms(NamedTuple):
    """What merges of a word start from: characters for the core, and where each ends in the word, in bytes."""

    text: str
    ends: tuple[int, ...]


class Split(NamedTuple):
    """A word of the text or, with its id, an added token."""

    text: str
    added: int | None


class Words:
    """The words of texts, by a tokenizer's own rules, and their atoms.

    >>> words = Words(*read("tokenizer.json"))
    >>> words.split("the  cat</s>")
    [Split("the", None), Split("Ġ", None), Split("Ġcat", None), Split("</s>", 2)]
    """

    def __init__(self, source: str, special_is_text: bool, where: str = "the tokenizer") -> None:
        import tokenizers

        self.bpe = read_model(json.loads(source), where)
        self._tokenizer = _make(source, where)
        if self._tokenizer.model.dropout:
            warnings.warn(
                f"the tokenizer drops merges itself (dropout = {self._tokenizer.model.dropout:g}), by another rule "
                "than Algorithm 1. That is left out here, where dropout is an argument; set tokenizer.model.dropout = "
                "None",
                stacklevel=4,
            )
            self._tokenizer.model.dropout = None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = special_is_text
        self.source, self.special_is_text = self._tokenizer.to_str(), special_is_text
        self.decoder = self._tokenizer.decoder
        self.names: dict[int, str] = {
            token: name for name, token in self._tokenizer.get_vocab(with_added_tokens=True).items()
        }
        self.before, self.after = _frame(self._tokenizer.post_processor)
        identity = f"{tokenizers.__version__} {special_is_text} {self.source}"
        self.digest = hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()

        # Our own step, after all others that make words, sees them, and may say what their tokens are.
        mine = tokenizers.pre_tokenizers.PreTokenizer.custom(self)
        given = self._tokenizer.pre_tokenizer
        self._tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([given, mine]) if given else mine
        self._tokenizer.model = tokenizers.models.BPE()  # which makes nothing of words that have no tokens yet
        self._starting = tokenizers.models.BPE(vocab=self.bpe.vocabulary, merges=[], **self.bpe.options)
        self._token = tokenizers.Token
        self._one_at_a_time = threading.Lock()
        self._seen: list[Split] = []
        self._tokens: Callable[[list[Split]], list[list[tuple[int, int, int]]]] | None = None
        self._cut = self._where_to_cut()
        self._known_atoms = lru_cache(KNOWN_WORDS)(self._atoms)

    def split(self, text: str) -> list[Split]:
        """The words and added tokens of a text."""
        self._check(text)
        with self._one_at_a_time:
            self._tokens = None
            self._tokenizer.encode(text, add_special_tokens=False)
            return self._seen

    def encode(
        self, text: str, tokens: Callable[[list[Split]], list[list[tuple[int, int, int]]]], add_special_tokens: bool
    ) -> Any:
        """A tokenizers.Encoding. `tokens` gives those of the words: (id, begin, end), in bytes of the word."""
        self._check(text)
        with self._one_at_a_time:
            self._tokens = tokens
            return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)

    @staticmethod
    def _check(text: str) -> None:
        if not isinstance(text, str):
            raise InputError(f"a text is a str, not {type(text).__name__}")
        encode(text)

    def pre_tokenize(self, text: Any) -> None:
        """Called by the tokenizer, with a tokenizers.PreTokenizedString."""
        self._seen = [
            Split(word, tokens[0].id if tokens else None) for word, _, tokens in text.get_splits("normalized", "byte")
        ]
        if self._tokens is None:
            return
        found = iter(self._tokens(self._seen))
        names, token = self.names, self._token
        text.tokenize(lambda _: [token(id, names[id], (begin, end)) for id, begin, end in next(found)])

    def whole(self, word: str) -> int | None:
        """The token that a word is without any merge, if the model ignores merges of words that it knows."""
        return self.bpe.vocabulary.get(word) if self.bpe.ignore_merges else None

    def units(self, word: str) -> list[Atoms]:
        """What is segmented by itself: the word or, if the tokenizer does not split at spaces, its parts."""
        parts = self._cut.findall(word) if self._cut else [word]
        units = [(self._known_atoms if len(part) <= LONGEST_KNOWN else self._atoms)(part) for part in parts]
        return [unit for unit in units if unit.text]  # of unknown characters nothing may be left

    def _atoms(self, word: str) -> Atoms:
        try:
            tokens = self._starting.tokenize(word)
        except Exception as error:
            raise InputError(f"the tokenizer cannot segment {shorten(word)}: {error}") from None
        return Atoms("".join(character(token.id) for token in tokens), tuple(token.offsets[1] for token in tokens))

    def _where_to_cut(self) -> re.Pattern[str] | None:
        """Of a tokenizer that does not split at spaces: the parts of a text that no merge joins. Else None.

        A space begins a part, unless it follows another. Without dropout the result is the same, cut or not; with
        dropout it is not, and that of Algorithm 1 is for words.
        """
        # Some letters may be added tokens, or split off by themselves.
        probes = (self.split(f"{letter} {letter}") for letter in string.ascii_letters + string.digits)
        together = next((words[0].text for words in probes if len(words) == 1 and words[0].added is None), None)
        if together is None:
            return None
        space = next((space for space in SPACES if space in together[1:]), None)
        apart = space is not None and space in self.bpe.vocabulary and not self._joining(space)
        plain = not self.bpe.ignore_merges and not {"continuing_subword_prefix", "end_of_word_suffix"} & {
            *self.bpe.options
        }
        if space is None or not apart or not plain:
            raise InputError(
                "the tokenizer does not split text into words, and its merges need the whole text"
                + (f" (such as {self._joining(space)})" if space and self._joining(space) else "")
                + "; BPE-dropout is a method for words. Give the tokenizer a pre-tokenizer that splits at spaces"
            )
        return re.compile(f"{space}*[^{space}]+|{space}+")

    def _joining(self, space: str) -> str | None:
        """A merge that joins a space to what is before it, other than spaces."""
        for left, right in self.bpe.merges:
            before, after = self.names[left], self.names[right]
            if after.startswith(space) and not before.endswith(space):
                return f"{before!r} + {after!r}"
        return None


def _frame(post_processor: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the post-processor puts before and after a text."""
    if post_processor is None:
        return [], []
    import tokenizers

    probe = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")).encode("a")
    done = post_processor.process(probe)
    texts = [i for i, special in enumerate(done.special_tokens_mask) if not special]
    if len(texts) != 1:
        raise InputError(f"the post-processor of the tokenizer uses the text {len(texts)} times, and not once")
    return done.ids[: texts[0]], done.ids[texts[0] + 1 :]
