"""Segmenters of Hugging Face tokenizers: without dropout theirs, id for id; with dropout the reference's."""

import json
import pickle
import random
import re
import subprocess
import sys
import warnings
from collections import Counter
from functools import cache

import pytest

from bpe_dropout import Codes, Corpus, InputError, Rule, Segmenter, reference
from bpe_dropout.tokenizers import character
from tests.conftest import SHARED, read_gz

pytest.importorskip("tokenizers", reason="needs tokenizers, of the extra huggingface")

from tokenizers import Tokenizer, models, pre_tokenizers

from tests.bpe_dropout.test_exact import chi_square
from tests.kinds_of_tokenizers import KINDS, change, text

PATHS = sorted(SHARED.glob("*/*.gz")) if SHARED.is_dir() else []
SPECIAL = ["<s>", "</s>", "<|endoftext|>", "<mask>", "<unk>", "[UNK]", "the", "MAN", "street", "<0x0A>", "##", "</w>"]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def tokenizer(kind):
    return KINDS[kind]()


@pytest.fixture
def segmenter(kind):
    return make_segmenter(kind)


@cache
def make_segmenter(kind):
    return Segmenter.from_tokenizer(KINDS[kind]())


def assert_same(tokenizer, segmenter, lines):
    for line, theirs in zip(lines, tokenizer.encode_batch(lines), strict=True):
        assert segmenter.ids(line) == theirs.ids, line


def random_lines(seed, count):
    """Words, special tokens, white space, control characters and anything else that Unicode has."""
    rng = random.Random(seed)
    words = [word for line in text()[:200] for word in line.split()]
    spaces = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "▁", "Ġ", ""]

    def anything():
        code = rng.choice([rng.randrange(32), rng.randrange(127, 256), rng.randrange(0x3000), rng.randrange(0x110000)])
        return chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"

    makers = [
        lambda: rng.choice(words),
        lambda: rng.choice(spaces),
        anything,
        lambda: "".join(anything() for _ in range(5)),
        lambda: rng.choice(SPECIAL),
        lambda: rng.choice("#a") * rng.randrange(12),
        lambda: rng.choice(words).upper(),
    ]
    return [
        "".join(rng.choice(makers)() + rng.choice([" ", ""]) for _ in range(rng.randrange(12))) for _ in range(count)
    ]


# Without dropout.


def test_text_that_it_was_trained_on(tokenizer, segmenter):
    assert_same(tokenizer, segmenter, text()[::10] + text()[-6:])


def test_any_unicode(tokenizer, segmenter):
    assert_same(tokenizer, segmenter, random_lines(1, 1500))


def test_control_characters(tokenizer, segmenter):
    controls = [chr(code) for code in [*range(32), *range(127, 160), 0x200B, 0x200D, 0xFEFF, 0xFFFE]]
    assert_same(tokenizer, segmenter, [*controls, *(f"a{c}b {c}" for c in controls), "".join(controls)])


@pytest.mark.skipif(not PATHS, reason="needs the real text of ../shared/data, which is not here")
def test_every_file_of_the_real_text(tokenizer, segmenter):
    """Some lines of each. All of them: compare_tokenizers.py."""
    for path in PATHS:
        lines = read_gz(path)
        assert_same(tokenizer, segmenter, lines[:: len(lines) // 60 or 1])


def test_encodings_are_theirs(tokenizer, segmenter):
    """Offsets, words, tokens and masks, too."""
    for line in [*text()[:50], *text()[-6:], *random_lines(2, 300)]:
        ours, theirs = segmenter.encode(line), tokenizer.encode(line)
        for part in ("ids", "tokens", "offsets", "word_ids", "special_tokens_mask", "type_ids", "attention_mask"):
            assert getattr(ours, part) == getattr(theirs, part), (part, line)
        assert segmenter.segment(line) == [tokenizer.id_to_token(token) for token in theirs.ids]


def test_without_special_tokens(tokenizer, segmenter):
    for line in random_lines(3, 50):
        theirs = tokenizer.encode(line, add_special_tokens=False).ids
        assert segmenter.ids(line, add_special_tokens=False) == theirs
        assert segmenter.encode(line, add_special_tokens=False).ids == theirs


@pytest.mark.parametrize("seed", range(30))
def test_any_merges(seed):
    """Tables that no learner makes, in which the order of steps matters: merges are applied one by one, as theirs are,
    and of a merge that is there twice the last counts."""
    rng = random.Random(seed)
    vocabulary, merges = {c: i for i, c in enumerate("abc")}, []
    for _ in range(20 + seed):
        left, right = rng.choice(list(vocabulary)), rng.choice(list(vocabulary))
        if len(left + right) < 9:
            merges.append((left, right))
            vocabulary.setdefault(left + right, len(vocabulary))
    rng.shuffle(merges)
    merges += merges[:3]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words = [
        "".join(rng.choice("abc") for _ in range(rng.randrange(1, 200 if n % 20 == 0 else 15))) for n in range(300)
    ]
    assert_same(tokenizer, Segmenter.from_tokenizer(tokenizer), words)


def test_one_by_one_is_not_all_at_once():
    vocabulary = {token: number for number, token in enumerate(["a", "b", "x", "ab", "aba"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("ab", "a"), ("a", "b")]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert tokenizer.encode("ababx").tokens == ["aba", "b", "x"]
    assert Segmenter.from_tokenizer(tokenizer).segment("ababx") == ["aba", "b", "x"]
    assert Segmenter(Codes((("ab", "a"), ("a", "b")), end_of_word=False), separator="").segment("ababx") == [
        "ab",
        "ab",
        "x",
    ]


# With dropout.


def atoms(kind, word):
    """What a word starts from, written again from the description of the models; None if it has unknown characters."""
    model = json.loads(KINDS[kind]().to_str())["model"]
    prefix, suffix = model["continuing_subword_prefix"] or "", model["end_of_word_suffix"] or ""
    found = []
    for i, letter in enumerate(word):
        name = (prefix if i else "") + letter + (suffix if i == len(word) - 1 else "")
        if name in model["vocab"]:
            found.append(name)
        elif model["byte_fallback"]:
            found += [f"<0x{byte:02X}>" for byte in name.encode()]
        else:
            return None
    return found


def oracle(kind):
    """Codes of the reference, in which every atom is a character of its own, and how it writes a token.

    Merges of "#" are left out: if words continue with "##", tokens such as "###" are reached in several ways.
    """
    model = json.loads(KINDS[kind]().to_str())["model"]
    prefix = model["continuing_subword_prefix"] or ""
    spelled = {}
    for name, token in model["vocab"].items():
        bare = name.removeprefix(prefix).removesuffix(model["end_of_word_suffix"] or "")
        if len(bare) == 1 or re.fullmatch("<0x..>", name):
            spelled[name] = chr(0xF0000 + token)
    pairs = []
    hashes = {spelled.get("#"), spelled.get("###")}
    for left, right in model["merges"]:
        if left in spelled and right in spelled and not hashes & {*spelled[left], *spelled[right]}:
            pairs.append((spelled[left], spelled[right]))
            result = left + right[len(prefix) :]
            assert spelled.setdefault(result, "".join(pairs[-1])) == "".join(pairs[-1])
    return Codes(tuple(pairs), end_of_word=False), spelled


def some_words(segmenter, count):
    """Texts that are one word each, of at most 9 atoms."""
    found = []
    for line in text():
        for piece in re.findall(r" ?\S+", line):
            splits = segmenter.words.split(piece)
            if len(splits) != 1 or splits[0].added is not None or "#" in piece:
                continue
            units = segmenter.words.units(splits[0].text)
            if len(units) == 1 and 1 < len(units[0].text) < 10 and (piece, splits[0].text) not in found:
                found.append((piece, splits[0].text))
                if len(found) == count:
                    return found
    raise AssertionError("too few words")


def test_the_distribution_is_the_references(kind, segmenter):
    codes, spelled = oracle(kind)
    names = {spelling: name for name, spelling in spelled.items()}
    compared = 0
    for number, (piece, word) in enumerate(some_words(segmenter, 60)):
        start = atoms(kind, word)
        if start is None:
            continue
        p = [0.01, 0.1, 0.5, 0.9, 1.0][number % 5]
        exact = reference.distribution("".join(spelled[atom] for atom in start), codes, p)
        expected = {tuple(names[token] for token in tokens): q for tokens, q in exact.items()}
        assert segmenter.distribution(piece, p) == pytest.approx(expected, abs=1e-12), piece
        compared += 1
    assert compared > 20


def test_draws_fit(kind, segmenter):
    draws = 2000
    values = []
    for number, (piece, _) in enumerate(some_words(segmenter, 5)):
        keys = {"seed": 11, "epoch": number}
        counts = Counter(
            tuple(segmenter.segment(piece, 0.3, **keys, sentence=n, add_special_tokens=False)) for n in range(draws)
        )
        values.append(chi_square(counts, segmenter.distribution(piece, 0.3), draws))
    assert min(values) > 1e-4


def test_p_1_is_atoms(kind, segmenter):
    for piece, word in some_words(segmenter, 30):
        start = atoms(kind, word)
        assert start is None or segmenter.segment(piece, 1.0, add_special_tokens=False) == start


def test_dropped_encodings(tokenizer, segmenter):
    """Offsets are those of the characters that a piece is made of: at p = 1 theirs without merges."""
    bare = change(tokenizer, model__merges=[], model__ignore_merges=False)
    for n, line in enumerate([*text()[:30], *random_lines(4, 100)]):
        whole = bare.encode(line)
        split = segmenter.encode(line, 1.0)
        assert (split.ids, split.offsets, split.word_ids) == (whole.ids, whole.offsets, whole.word_ids)
        drawn = segmenter.encode(line, 0.4, seed=2, sentence=n)
        assert drawn.ids == segmenter.ids(line, 0.4, seed=2, sentence=n)
        ends = {(word, end) for word, (_, end) in zip(whole.word_ids, whole.offsets, strict=True)}
        begins = {(word, begin) for word, (begin, _) in zip(whole.word_ids, whole.offsets, strict=True)}
        for word, (begin, end) in zip(drawn.word_ids, drawn.offsets, strict=True):
            assert (word, begin) in begins
            assert (word, end) in ends


def test_offsets_where_a_token_is_reached_in_two_ways():
    """ "##" goes on within a word, so "###" is one character of "a#", and the three of "###"."""
    vocabulary = {token: number for number, token in enumerate(["a", "#", "##a", "###", "##"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("#", "###"), ("##", "###")], continuing_subword_prefix="##"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    segmenter = Segmenter.from_tokenizer(tokenizer)
    for line in ["###", "a#", "####", "#####", "#a#", "a###", "### #### a##", "a#" * 1000, "#" * 1000]:
        ours, theirs = segmenter.encode(line), tokenizer.encode(line)
        assert (ours.tokens, ours.offsets) == (theirs.tokens, theirs.offsets)


def test_added_and_special_tokens_are_never_split(tokenizer, segmenter):
    special = {token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special}
    for line in random_lines(5, 100):
        whole = [token for token in tokenizer.encode(line).ids if token in special]
        assert [token for token in segmenter.ids(line, 0.9) if token in special] == whole


def test_words_that_are_known_without_merges():
    """ignore_merges: one token at p = 0, whatever the merges; with dropout the merges decide, as in their code."""
    tokenizer = KINDS["llama3"]()
    segmenter = Segmenter.from_tokenizer(tokenizer)
    merged = change(tokenizer, model__ignore_merges=False)
    names = [name for name in tokenizer.get_vocab() if re.fullmatch("[a-z]{3,7}", name)]
    unreached = [name for name in names if len(merged.encode(name, add_special_tokens=False).ids) > 1]
    assert unreached
    for name in unreached[:20]:
        assert segmenter.segment(name, add_special_tokens=False) == [name]
        assert segmenter.distribution(name, 0.0) == {(name,): 1.0}
        assert (name,) not in segmenter.distribution(name, 0.1)


def test_calls_without_a_seed_draw_anew(segmenter):
    line = text()[0]
    assert len({tuple(segmenter.ids(line, 0.5)) for _ in range(10)}) > 1
    segmenter.seed(7)
    first = [segmenter.ids(line, 0.5) for _ in range(3)]
    assert first == [segmenter.ids(line, 0.5, seed=7, sentence=n) for n in range(3)]
    with pytest.raises(InputError, match="together with a seed"):
        segmenter.ids(line, 0.5, epoch=3)


# Ways to give a tokenizer.


def test_a_file_an_object_and_a_copy(tmp_path, tokenizer, segmenter):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    ways = [str(path), path, tmp_path, tokenizer, segmenter]
    made = [Segmenter.from_tokenizer(way) for way in ways] + [pickle.loads(pickle.dumps(segmenter))]
    for line in random_lines(6, 20):
        for one in made:
            assert one.ids(line, 0.3, seed=1) == segmenter.ids(line, 0.3, seed=1)
    assert len({one.name for one in made}) == 1


def test_merges_written_as_lines(tmp_path):
    content = json.loads(KINDS["gpt2"]().to_str())
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    assert_same(KINDS["gpt2"](), Segmenter.from_tokenizer(path), text()[:20])


def test_desegment(kind, segmenter):
    if kind in ("gpt2", "roberta", "llama3"):
        pieces = segmenter.segment("two men, naïve 日本", 0.5, add_special_tokens=False)
        assert segmenter.desegment(pieces).strip() == "two men, naïve 日本"


def test_special_tokens_as_text():
    tokenizer = change(KINDS["gpt2"]())
    tokenizer.encode_special_tokens = True
    segmenter = Segmenter.from_tokenizer(tokenizer)
    line = "one<|endoftext|>two"
    assert segmenter.ids(line) == tokenizer.encode(line).ids != KINDS["gpt2"]().encode(line).ids
    assert pickle.loads(pickle.dumps(segmenter)).ids(line) == segmenter.ids(line)


def test_characters_of_tokens():
    from bpe_dropout.tokenizers import MOST_TOKENS, token_of

    for token in [0, 1, 93, 94, 0xD7FF - 34, 0xD800 - 34, 0xD801 - 34, MOST_TOKENS - 1]:
        assert token_of(character(token)) == token
        character(token).encode()
    assert not {character(token) for token in range(1000)} & set(" !\n")


# A corpus.


@pytest.fixture
def corpus_lines():
    return [*text()[:60], "", " ", *(line.replace("\n", " ") for line in random_lines(7, 150)), text()[0]]


def test_a_corpus(tmp_path, tokenizer, segmenter, corpus_lines):
    path = tmp_path / "train.txt"
    path.write_bytes("".join(line + "\n" for line in corpus_lines).encode())
    corpus = Corpus.from_tokenizer(path, tokenizer)
    assert len(corpus) == len(corpus_lines)
    plain, offsets = corpus.sampler().tokens(seed=1, epoch=1)
    for n, theirs in enumerate(tokenizer.encode_batch(corpus_lines)):
        assert plain[offsets[n] : offsets[n + 1]].tolist() == theirs.ids, corpus_lines[n]
    sampler = corpus.sampler(dropout=0.3)
    lengths = sampler.lengths(seed=5, epoch=2, side=1)
    for n, line in enumerate(corpus_lines):
        drawn = sampler.tokens(n, seed=5, epoch=2, side=1).tolist()
        assert drawn == segmenter.ids(line, 0.3, seed=5, epoch=2, side=1, sentence=n)
        assert len(drawn) == lengths[n]
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy.tokens(seed=5, epoch=2, side=1).ids.tolist() == sampler.tokens(seed=5, epoch=2, side=1).ids.tolist()


@pytest.mark.parametrize("kind", ["roberta", "llama3"])
def test_rules(tmp_path, kind):
    """A rule draws the same in a corpus and line by line, in every epoch, down to plain BPE."""
    segmenter = make_segmenter(kind)
    path = tmp_path / "text"
    path.write_text("\n".join(text()[:40]) + "\n")
    rule = Rule.parse("rank:0.7..0.1@anneal:3")
    sampler = Corpus.from_tokenizer(path, segmenter).sampler(dropout=str(rule))
    for epoch in (1, 2, 3):
        for number in (0, 7, 20):
            line = text()[number]
            key = {"epoch": epoch, "sentence": number}
            drawn = segmenter.ids(line, str(rule), 3, **key)
            assert drawn == segmenter.ids(line, rule.at(epoch), 3, **key)
            assert drawn == segmenter.encode(line, rule, 3, **key).ids
            assert drawn == sampler.tokens(number, seed=3, epoch=epoch).tolist()
            assert epoch < 3 or drawn == segmenter.ids(line)
    with pytest.raises(InputError, match="the merges of a tokenizer are not counted; take a rule by rank, or a file"):
        Corpus.from_tokenizer(path, segmenter).sampler(dropout="frequency:0..0.2")


def test_a_corpus_without_special_tokens_draws_the_same(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("".join(line + "\n" for line in text()[:50]))
    tokenizer = KINDS["roberta"]()
    corpus = Corpus.from_tokenizer(path, tokenizer)
    bare = Corpus.from_tokenizer(path, tokenizer, add_special_tokens=False)
    for n in range(50):
        drawn = corpus.sampler(dropout=0.2).tokens(n, seed=1, epoch=1).tolist()
        assert bare.sampler(dropout=0.2).tokens(n, seed=1, epoch=1).tolist() == drawn[1:-1]
        assert bare.sampler(dropout=0.2, eos=7).tokens(n, seed=1, epoch=1).tolist() == [*drawn[1:-1], 7]


def test_each_tokenizer_has_its_own_words(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("two men\n")
    Corpus(path)
    assert Corpus.from_tokenizer(path, KINDS["gpt2"]()).sentence(0) == ["two", "Ġmen"]
    assert Corpus.from_tokenizer(path, KINDS["clip"]()).sentence(0) == ["two</w>", "men</w>"]
    assert Corpus(path).sentence(0) == ["two", "men"]
    assert len(list(tmp_path.glob("train.txt*.words"))) == 3
    before = {file: file.stat().st_ino for file in tmp_path.glob("*.words")}
    Corpus.from_tokenizer(path, KINDS["gpt2"]())
    assert {file: file.stat().st_ino for file in tmp_path.glob("*.words")} == before  # not made again
    path.write_text("two women\n")
    assert Corpus.from_tokenizer(path, KINDS["gpt2"]()).sentence(0) == ["two", "Ġwomen"]


def test_a_text_that_is_not_utf_8(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(b"fine\nnot \xff fine\n")
    with pytest.raises(InputError, match=r"train\.txt, line 2: not valid UTF-8, at byte 5 of the line"):
        Corpus.from_tokenizer(path, KINDS["gpt2"]())


def test_a_corpus_of_one_tokenizer_is_not_for_another(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("two men\n")
    corpus = Corpus.from_tokenizer(path, KINDS["gpt2"]())
    corpus.sampler(Segmenter.from_tokenizer(KINDS["gpt2"]()))
    for other in (Segmenter.from_tokenizer(KINDS["clip"]()), Segmenter(Codes((("a", "b"),)))):
        with pytest.raises(InputError, match="are those of its tokenizer"):
            corpus.sampler(other)
    with pytest.raises(InputError, match="needs a segmenter and a dictionary"):
        Corpus(path).sampler(dropout=0.1)


# What cannot be supported.


def refused(tokenizer, match):
    with pytest.raises(InputError, match=match):
        Segmenter.from_tokenizer(tokenizer)


def test_models_that_are_not_bpe():
    refused(
        Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")), "a model of type WordPiece; BPE-dropout drops"
    )
    refused(Tokenizer(models.Unigram([("<unk>", 0.0)], unk_id=0)), "a model of type Unigram")
    refused(Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), "a model of type WordLevel")


def test_no_merges():
    refused(Tokenizer(models.BPE({"a": 0}, [])), "the tokenizer has no merges, so there is nothing to drop")


def test_merges_that_are_not_in_the_vocabulary(tmp_path):
    content = json.loads(KINDS["gpt2"]().to_str())
    content["model"]["merges"].insert(2, ["q", "q"])
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    refused(path, r"tokenizer\.json, merge 3: 'q' and 'q' become 'qq', but 'qq' is not in the vocabulary")
    content["model"]["merges"][2] = ["q"]
    path.write_text(json.dumps(content))
    refused(path, r"merge 3: \['q'\] is not a pair of tokens")


def test_text_that_is_not_split_into_words():
    """Merges that go over spaces need the whole text."""
    tokenizer = Tokenizer(models.BPE())
    from tests.kinds_of_tokenizers import train

    train(tokenizer, lines=["two men two men two men two men"])
    refused(tokenizer, "does not split text into words, and its merges need the whole text")


@pytest.mark.parametrize("how", ["added", "split off"])
def test_a_letter_that_is_special(how):
    """Text that is not split at spaces is still cut there, so that dropout lengthens it as much."""
    tokenizer = change(KINDS["mistral"]())  # a copy
    plain = Segmenter.from_tokenizer(tokenizer)
    if how == "added":
        tokenizer.add_tokens(["a"])
    else:
        first = pre_tokenizers.Split("a", "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, tokenizer.pre_tokenizer])
    segmenter = Segmenter.from_tokenizer(tokenizer)
    lines = text()[:100]
    assert_same(tokenizer, segmenter, lines)

    def ratio(one: Segmenter) -> float:
        return sum(len(one.ids(line, 0.3, seed=1)) for line in lines) / sum(len(one.ids(line)) for line in lines)

    assert ratio(segmenter) > 1 + (ratio(plain) - 1) / 2


def test_long_texts_are_not_remembered():
    """Of a tokenizer that does not split text, the parts are remembered, and not texts as a whole."""
    segmenter = Segmenter.from_tokenizer(KINDS["mistral"]())
    words = segmenter.words
    lines = text()[:50]
    for line in lines:
        segmenter.ids(line)
    known = words._known_atoms.cache_info()
    assert known.misses > len(lines)
    assert known.hits
    segmenter.ids("x" * 1000)
    assert words._known_atoms.cache_info() == known


def test_files_that_are_something_else(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{]")
    refused(path, "is not a tokenizer.json of Hugging Face")
    path.write_text("[1]")
    refused(path, "has no model")
    path.write_bytes(b"\xff\xfe")
    refused(path, "is not a tokenizer.json of Hugging Face")
    refused(tmp_path / "missing.json", r"there is no .*missing\.json.*AutoTokenizer\.from_pretrained")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", r'there is no .*folder/tokenizer\.json.*AutoTokenizer\.from_pretrained\(".*folder"\)')
    refused(object(), "expected a tokenizers.Tokenizer")
    content = json.loads(KINDS["gpt2"]().to_str())
    path.write_text(json.dumps({**content, "normalizer": {"type": "OfTomorrow"}}))
    refused(path, r"tokenizer\.json cannot be used by tokenizers \d")
    content["model"]["vocab"]["a"] = True
    path.write_text(json.dumps(content))
    refused(path, "ids of tokens are whole numbers")


def test_what_is_not_a_text():
    segmenter = Segmenter.from_tokenizer(KINDS["gpt2"]())
    for call in (segmenter.ids, segmenter.encode, segmenter.segment):
        for wrong in (None, b"bytes", ["a", "list"]):
            with pytest.raises(InputError, match=f"a text is a str, not {type(wrong).__name__}"):
                call(wrong)


def test_truncation_and_padding_are_refused():
    tokenizer = change(KINDS["gpt2"]())
    tokenizer.enable_truncation(5)
    refused(tokenizer, r"truncation switched on.*tokenizer\.no_truncation\(\)")
    tokenizer.no_truncation()
    tokenizer.enable_padding(length=5)
    refused(tokenizer, r"padding switched on.*tokenizer\.no_padding\(\)")


def test_dropout_of_its_own_is_left_out():
    tokenizer = change(KINDS["gpt2"](), model__dropout=0.5)
    with pytest.warns(UserWarning, match="drops merges itself"):
        segmenter = Segmenter.from_tokenizer(tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(segmenter))
    assert_same(KINDS["gpt2"](), segmenter, text()[:20])


def test_parts_in_python_are_refused():
    class Own:
        def pre_tokenize(self, text):
            pass

    tokenizer = change(KINDS["gpt2"]())
    tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Own())
    refused(tokenizer, "cannot be written as JSON")


def test_calls_that_a_tokenizer_has_no_use_for():
    segmenter = Segmenter.from_tokenizer(KINDS["gpt2"]())
    with pytest.raises(InputError, match="take segment, ids or encode"):
        segmenter.process_line("two men")
    with pytest.raises(InputError, match="probability is for codes of subword-nmt"):
        segmenter.probability(["two"], 0.1)
    with pytest.raises(InputError, match="most_probable is for codes of subword-nmt"):
        segmenter.most_probable("two men", 0.1, 2)
    with pytest.raises(InputError, match=r"take Corpus\.from_tokenizer"):
        segmenter.stream()
    with pytest.raises(InputError, match="leave out split"):
        segmenter.segment("two men", split="whitespace")
    with pytest.raises(InputError, match="not one word of this tokenizer, but 2"):
        segmenter.distribution("two men", 0.1)
    with pytest.raises(InputError, match="cannot be written as UTF-8"):
        segmenter.ids("\ud800")


def test_importing_bpe_dropout_imports_no_toolkit():
    code = (
        "import sys, bpe_dropout; bpe_dropout.Corpus; print({'tokenizers', 'transformers', 'torch'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
