import pytest
import sentencepiece

from bpe_dropout import Codes, InputError, Segmenter
from bpe_dropout.methods import METHODS
from bpe_dropout.progress import Progress
from scripts.prepare import leave_out_empty
from tests.conftest import learn as learn_with_subword_nmt


@pytest.fixture(scope="module")
def words(tmp_path_factory, english):
    path = tmp_path_factory.mktemp("words") / "train.en"
    path.write_text("".join(f"{line}\n" for line in english[:3000]))
    return path


def learn(method, words, size, output):
    return METHODS[method].learn(words, size, output, 1, Progress())


@pytest.mark.parametrize("size", [300, 1000])
def test_a_vocabulary_has_the_size_that_was_asked_for(words, tmp_path, size):
    """Counted on the segmented text itself."""
    made = learn("bpe", words, size, tmp_path / "codes")
    segmenter = Segmenter.from_codes(tmp_path / "codes")
    pieces = {piece for line in words.read_text().splitlines() for piece in segmenter.segment(line)}
    assert len(pieces) == made["pieces"] == size
    assert 0 < made["merges"] <= size * 5 // 4  # pieces that are merged away make room for more merges
    assert len((tmp_path / "codes").read_text().splitlines()) == made["merges"] + 1


def test_a_unigram_model_has_the_same_size(words, tmp_path):
    assert learn("unigram", words, 500, tmp_path / "model") == {"pieces": 500}
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "model"))
    assert sum(not model.is_unknown(number) for number in range(model.get_piece_size())) == 500
    assert "".join(model.encode("½ ﬁ", out_type=str)) == "▁½▁ﬁ", "text is taken as it is"


def test_a_vocabulary_that_is_too_small_for_the_characters(words, tmp_path):
    with pytest.raises(InputError, match=r"its characters alone make a vocabulary of .* more than the 40"):
        learn("bpe", words, 40, tmp_path / "codes")
    assert not (tmp_path / "codes").exists()


def test_a_vocabulary_that_is_too_large_for_the_text_is_smaller(tmp_path):
    (tmp_path / "text").write_text("a small text of a few words , a small text\n" * 3)
    made = learn("bpe", tmp_path / "text", 5000, tmp_path / "codes")
    assert made["pieces"] < 50
    assert learn("unigram", tmp_path / "text", 5000, tmp_path / "model")["pieces"] < 100


def test_pairs_with_an_empty_side_are_left_out(tmp_path):
    paths = [tmp_path / "en", tmp_path / "xx"]
    paths[0].write_text("a\n\nb\n \nc\n")
    paths[1].write_text("1\n2\n\n4\n5\n")
    assert leave_out_empty(paths) == 3
    assert [path.read_text() for path in paths] == ["a\nc\n", "1\n5\n"]


def test_merges_are_learned_of_the_words_that_are_segmented(tmp_path, words):
    """A corpus ends words at any white space; where there are only spaces, the merges are those of subword-nmt."""
    spaced = words.read_text()
    (tmp_path / "text").write_text(spaced.replace(" the ", "\u00a0the\u3000").replace(" of ", "\tof\r"))
    assert learn("bpe", words, 500, tmp_path / "expected") == learn("bpe", tmp_path / "text", 500, tmp_path / "codes")
    assert (tmp_path / "codes").read_bytes() == (tmp_path / "expected").read_bytes()
    pairs = Codes.read(tmp_path / "expected").pairs
    assert pairs == learn_with_subword_nmt(spaced.splitlines(), len(pairs)).pairs
