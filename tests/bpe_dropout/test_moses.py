"""Words as Moses' script makes them: lines worked out by hand from its rules, and counts over real text."""

import pytest

from bpe_dropout.data import moses
from tests.conftest import read_gz

# What comes out follows from the rules of tokenizer.perl (in brackets), and was written down from them.
BY_HAND = [
    # [what is no letter, digit, white space or one of . ' ` , - is apart]
    ("ja", "「はい、３人です。」", "「 はい 、 ３人です 。 」"),
    ("ja", "本当！？…ええ・まあ", "本当 ！ ？ … ええ ・ まあ"),
    ("ja", "カーテンは2,000円（税別）。", "カーテンは2,000円 （ 税別 ） 。"),
    ("zh", "他说：“是的。”", "他说 ： “ 是的 。 ”"),
    ("zh", "《红楼梦》，第3.5章。", "《 红楼梦 》 ， 第3.5章 。"),
    ("zh", "3，4和〇", "3 ， 4和〇"),
    ("ar", "هل أنتَ هنا؟ نعم، أنا.", "هل أنتَ هنا ؟ نعم ، أنا ."),  # vowel signs are letters
    ("vi", "Ông ấy nói: “Được!”", "Ông ấy nói : “ Được ! ”"),
    ("de", "10%_ig ½ m² 5€", "10 % _ ig ½ m ² 5 €"),  # ½ and ² are numbers, and no digits
    ("en", "a\u00a0b\u3000c\u2009d", "a b c d"),
    ("en", "a\x07b\x1cc", "abc"),  # [control characters go, and leave no space]
    # [two dots or more stay together]
    ("en", "Well...yes.. no", "Well ... yes .. no"),
    ("fr", "Oh....", "Oh ...."),
    # [a comma is apart, unless it is between numbers]
    ("en", "3,000 and 3, 4,x", "3,000 and 3 , 4 , x"),
    ("de", "A,B,C,1,", "A , B , C , 1 ,"),
    ("en", ",5", ",5"),  # [at the beginning of a line the rule sees no character before it]
    ("en", "a,,5", "a , ,5"),  # [and here the comma before was taken by the same rule]
    # [English: it 's; French: l' eau; others: the apostrophe alone]
    ("en", "It's the 1990's, dogs' 'own' toys", "It 's the 1990 's , dogs ' ' own ' toys"),
    ("en", "rock'n'roll", "rock 'n'roll"),  # [the n was taken by the first apostrophe]
    ("en", "'twas '90 'twas", "'twas ' 90 ' twas"),  # [and at the beginning there is nothing before it]
    ("fr", "L'eau d'aujourd'hui, 'oui'", "L' eau d' aujourd' hui , ' oui'"),
    ("de", "Wie geht's?", "Wie geht ' s ?"),
    ("ja", "It's", "It ' s"),
    # [a full stop after a word is apart, unless the word is an abbreviation or goes on in lower case]
    ("en", "Mr. Smith vs. Ms. Lee etc. and so on. Yes. no", "Mr. Smith vs. Ms. Lee etc. and so on . Yes. no"),
    ("en", "No. 5 and No. Five", "No. 5 and No . Five"),
    ("en", "the U.S. Army, 3.5.", "the U.S. Army , 3.5 ."),
    ("en", "1.2. Next", "1.2 . Next"),
    ("de", "Am 3. Mai bzw. Nr. 7.", "Am 3. Mai bzw. Nr. 7 ."),
    ("zh", "A. B. Mr. Lee", "A. B. Mr . Lee"),  # Chinese has a list of its own, and Mr is not in it
    ("ja", "Mr. Lee", "Mr. Lee"),  # Japanese has none, so it is the English one
    # [at the end of a line it is, whatever is before it]
    ("en", "He came at 9 p.m.", "He came at 9 p.m ."),
    ("de", "So schwer wie ein iPhone 5.", "So schwer wie ein iPhone 5 ."),
    ("en", "He said 'yes.'", "He said ' yes . '"),
    ("en", "...", "..."),
    ("en", " ", ""),
]  # fmt: skip


@pytest.mark.parametrize(("language", "line", "words"), BY_HAND)
def test_words_by_hand(language, line, words):
    assert moses.tokenizer(language)(line) == words


@pytest.mark.parametrize(("language", "folder"), [("ja", "tatoeba-enja"), ("zh", "tatoeba-enzh")])
def test_the_east_asian_full_stop_is_always_a_word(shared, language, folder):
    tokenize = moses.tokenizer(language)
    lines = [line for name in ("dev", "test") for line in read_gz(shared / folder / f"{name}.{language}.gz")]
    having = [tokenize(line).split() for line in lines if "。" in line]
    assert len(having) > 1700
    assert all(word == "。" for words in having for word in words if "。" in word)


@pytest.mark.parametrize(
    ("language", "name", "most"),
    [
        ("en", "wmt-newstest-ende/newstest2014.en", 17),
        ("de", "wmt-newstest-ende/newstest2014.de", 8),
        ("fr", "multi30k/test_2016_flickr.fr", 1),
        ("vi", "iwslt15-envi-stanford/tst2013.vi", 1),
    ],
)
def test_european_text_is_what_sacremoses_makes_but_for_the_last_full_stop(shared, language, name, most):
    from sacremoses import MosesTokenizer

    tokenize, other = moses.tokenizer(language), MosesTokenizer(language)
    different = 0
    for line in read_gz(shared / f"{name}.gz"):
        ours, theirs = tokenize(line), other.tokenize(line, return_str=True, escape=False).rstrip()
        if ours != theirs:
            different += 1
            assert ours == theirs.removesuffix(".") + " ."
    assert 0 < different <= most


@pytest.mark.parametrize(
    ("language", "words", "text"),
    [
        ("ar", "هل أنت هنا ؟ نعم ، أنا ؛ 5 ٪ .", "هل أنت هنا؟ نعم، أنا؛ 5٪."),
        ("zh", "他说 ： “ 是的 。 ” （ 真 的 ）", "他说：“是的。”（真的）"),
        ("zh", "使用 Python 3 编程 ， 好 ！", "使用 Python 3 编程，好！"),
        ("ja", "「 はい 、 ３人です 。 」 と OK さん", "「はい、３人です。」と OK さん"),
        ("en", 'It \'s " done " , at 5 % ( or so ) .', 'It\'s "done", at 5% (or so).'),
        ("fr", "L' eau : oui ?", "L'eau : oui ?"),
        ("de", "a &apos; &amp; b", "a &apos; &amp; b"),  # words are not escaped, so nothing is to be unescaped
    ],
)
def test_text_by_hand(language, words, text):
    assert moses.detokenizer(language)(words) == text


def test_escapes_are_those_of_moses_and_come_back():
    text = "& | < > ' \" [ ] &apos; &amp;quot;"
    escaped = moses.escape(text)
    assert escaped == "&amp; &#124; &lt; &gt; &apos; &quot; &#91; &#93; &amp;apos; &amp;amp;quot;"
    assert moses.unescape(escaped) == text
    assert moses.unescape("&nbsp; &am") == "&nbsp; &am"
