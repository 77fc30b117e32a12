"""The command, in real processes."""

import errno
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

import bpe_dropout
from bpe_dropout import InputError, Segmenter
from bpe_dropout.files import check_output, describe, whole
from tests.conftest import write_codes
from tests.patience import PATIENCE, wait_until

# As users have it: not unbuffered, and not necessarily UTF-8.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
ENVIRONMENT |= {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
COMMAND = [sys.executable, "-m", "bpe_dropout"]


def run(*arguments, text: bytes = b"", code: int = 0) -> tuple[bytes, str]:
    done = subprocess.run([*COMMAND, *map(str, arguments)], input=text, capture_output=True, env=ENVIRONMENT)
    assert done.returncode == code, done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    return done.stdout, done.stderr.decode()


@pytest.fixture(scope="module")
def files(codes, english, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    write_codes(folder / "codes", codes)
    (folder / "text").write_text("".join(line + "\n" for line in english))
    return folder


def test_apply_is_subword_nmts(files):
    with (files / "codes").open() as codes:
        bpe = BPE(codes)
    text = (files / "text").read_text()
    expected = "".join(bpe.process_line(line) + "\n" for line in text.split("\n")[:-1]).encode()
    out, err = run("apply", "-c", files / "codes", text=text.encode())
    assert (out, err) == (expected, "")
    run("apply", "--codes", files / "codes", "-i", files / "text", "-o", files / "out", "--threads", 2)
    assert (files / "out").read_bytes() == expected
    assert (files / "out").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_apply_with_dropout(files):
    text = (files / "text").read_bytes()
    one = run("apply", "-c", files / "codes", "-p", "0.1", "--seed", "5", text=text)[0]
    assert one == run("apply", "-c", files / "codes", "-p", "0.1", "--seed", "5", "--threads", "3", text=text)[0]
    assert one != run("apply", "-c", files / "codes", "-p", "0.1", "--seed", "6", text=text)[0]
    assert one.replace(b"@@ ", b"") == text
    segmenter = Segmenter.from_codes(files / "codes")
    line = text.decode().split("\n")[70]
    assert one.decode().split("\n")[70] == segmenter.process_line(line, 0.1, 5, sentence=70)


def test_apply_to_each_side_and_epoch(files):
    """Each draws on its own, and what a corpus draws for the same side and epoch."""
    text = (files / "text").read_bytes()
    options = ["apply", "-c", files / "codes", "-p", "0.1", "--seed", "5"]
    drawn = {}
    for epoch in (0, 3):
        for side, number in (("source", 0), ("target", 1)):
            drawn[epoch, number] = run(*options, "--epoch", epoch, "--side", side, text=text)[0]
    stream = Segmenter.from_codes(files / "codes").stream(0.1)
    assert drawn == {key: stream.text(text, 5, epoch=key[0], side=key[1]) for key in drawn}
    assert len(set(drawn.values())) == 4
    assert drawn[0, 0] == run(*options, text=text)[0]
    help_text = run("apply", "--help")[0].decode()
    assert "--side source <" in help_text
    assert "--side target <" in help_text


def test_what_the_help_says_of_lines(files):
    line = "the\u2028the\rthe"
    assert "subword-nmt apply-bpe` also ends them at \\r and at U+2028" in run("apply", "--help")[0].decode()
    with (files / "codes").open() as codes:
        expected = BPE(codes).process_line(line)
    assert run("apply", "-c", files / "codes", text=f"{line}\n".encode())[0].decode() == expected + "\n"


def test_version():
    out, _ = run("--version")
    assert out.decode() == f"bpe-dropout {bpe_dropout.__version__}\n"
    assert bpe_dropout.__version__ == version("bpe-dropout")


def test_apply_without_end_of_word(tmp_path):
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\nab c\n")
    _, err = run("apply", "-c", tmp_path / "merges.txt", text=b"abc\n", code=1)
    assert "merges.txt has no merge that ends a word" in err
    out, _ = run("apply", "-c", tmp_path / "merges.txt", "--no-end-of-word", text=b"abc abd\n")
    assert out == b"abc ab@@ d\n"


def test_apply_with_everything(files, tmp_path):
    (tmp_path / "vocabulary").write_text("the 9\nt@@ 5\nhe 1\n")
    options = ["--vocabulary", tmp_path / "vocabulary", "--vocabulary-threshold", 2, "--glossaries", "<[a-z]>", "ab"]
    out, _ = run("apply", "-c", files / "codes", *options, "--separator", "+", "-m", 300, text=b"the he<x>ab\n")
    with (files / "codes").open() as codes:
        bpe = BPE(codes, merges=300, separator="+", vocab={"the", "t@@"}, glossaries=["<[a-z]>", "ab"])
    assert out.decode() == bpe.process_line("the he<x>ab") + "\n"


def test_learn_is_subword_nmts(files):
    text = (files / "text").read_text()
    expected = io.StringIO()
    learn_bpe(io.StringIO(text), expected, 150)
    out, err = run("learn", "-s", 150, text=text.encode())
    assert out.decode() == expected.getvalue()
    assert err == ""
    run("learn", "-s", 150, "-i", files / "text", "-o", files / "learned")
    assert (files / "learned").read_text() == expected.getvalue()


def test_learn_from_a_dictionary(files, tmp_path):
    """Which may have a word twice, and \\r at the end of its lines."""
    dictionary = "low 5\nlower 2\r\nnewest 6\nlow 1\n"
    expected = io.StringIO()
    learn_bpe(io.StringIO(dictionary, newline="\n"), expected, 5, is_dict=True, min_frequency=3)
    (tmp_path / "counts").write_bytes(dictionary.encode())
    options = ["learn", "--dict-input", "-s", 5, "--min-frequency", 3]
    assert run(*options, "-i", tmp_path / "counts")[0].decode() == expected.getvalue()
    assert run(*options, text=dictionary.encode())[0].decode() == expected.getvalue()


def test_distribution(files):
    out, _ = run("distribution", "-c", files / "codes", "-p", "0.2", "-n", 3, "statement", "if")
    lines = out.decode().split("\n")
    assert lines[0].startswith("statement  (p = 0.2: ")
    assert "others; -n 0 shows all" in lines[4]
    out, _ = run("distribution", "-c", files / "codes", "-p", "0.2", "--json", "statement")
    parsed = json.loads(out)
    expected = Segmenter.from_codes(files / "codes").distribution("statement", 0.2)
    assert {tuple(s["pieces"]): s["probability"] for s in parsed["segmentations"]} == expected
    assert (parsed["word"], parsed["dropout"]) == ("statement", 0.2)


def test_distribution_shows_as_many_as_asked_for(files):
    options = ("distribution", "-c", files / "codes", "-p", "0.2", "--json", "statement")
    all_of_them, some = (json.loads(run(*options, *more)[0]) for more in ((), ("-n", 3)))
    assert len(all_of_them["segmentations"]) > 20
    assert "others" not in all_of_them
    assert some["segmentations"] == all_of_them["segmentations"][:3]
    assert some["others"] == pytest.approx(sum(one["probability"] for one in all_of_them["segmentations"][3:]))


def test_distribution_in_an_epoch_of_a_schedule(files):
    options = ("distribution", "-c", files / "codes", "-n", 2, "statement")
    scheduled, plain = (
        run(*options, *more)[0].decode() for more in (("-p", "0.4@anneal:5", "--epoch", 3), ("-p", 0.2))
    )
    assert scheduled.startswith("statement  (p = 0.4@anneal:5 in epoch 3: ")
    assert scheduled.split("\n")[1:] == plain.split("\n")[1:]


def test_rules_by_frequency_are_for_training(files):
    """Where there is a text to count merges in."""
    for command in ("apply", "distribution"):
        assert b"frequency" not in run(command, "--help")[0]
    text = (files / "text").read_bytes()
    out, _ = run("calibrate", "-c", files / "codes", "--rule", "frequency:1..0", text=text)
    assert out.decode().startswith("frequency:")
    assert "a rule by frequency is for training (fairseq, PyTorch, Corpus)" in out.decode()


def test_distribution_of_a_long_word(files):
    """Too many segmentations to list: the most probable are found without the others."""
    word = "statement" * 8
    options = ("distribution", "-c", files / "codes", "-p", "0.01", "-n", 2)
    out, _ = run(*options, word)
    lines = out.decode().split("\n")
    assert lines[0] == f"{word}  (p = 0.01: too many segmentations to list, the 2 most probable)"
    assert lines[3].endswith("  all others")
    parsed = json.loads(run(*options, "--json", word)[0])
    segmenter = Segmenter.from_codes(files / "codes")
    assert parsed["segmentations"][0]["pieces"] == segmenter.segment(word)
    assert parsed["others"] == pytest.approx(1 - sum(one["probability"] for one in parsed["segmentations"]))
    for one in parsed["segmentations"]:
        assert one["probability"] == pytest.approx(segmenter.probability(one["pieces"], 0.01), rel=1e-11)
    assert "too many to list" in run("distribution", "-c", files / "codes", "-n", 0, word, code=1)[1]


def test_calibrate(files):
    text = (files / "text").read_bytes()
    parsed = json.loads(run("calibrate", "-c", files / "codes", "--ratio", "1.3", "--json", text=text)[0])
    assert parsed["ratio"] == pytest.approx(1.3, abs=1e-3)
    out, _ = run("calibrate", "-c", files / "codes", "--ratio", "1.3", "-i", files / "text")
    assert out.decode().startswith(f"p = {parsed['p']:.6f} makes this text {parsed['ratio']:.4f} times longer")


def test_rules(files):
    text = (files / "text").read_bytes()
    command = ["calibrate", "-c", files / "codes", "--ratio", "1.3", "--rule", "rank:0..1"]
    parsed = json.loads(run(*command, "--json", text=text)[0])
    assert parsed["rule"] == f"rank:0..{parsed['p']}"
    assert run(*command, text=text)[0].decode().startswith(f"-p {parsed['rule']} makes this text 1.3")
    segmenter = Segmenter.from_codes(files / "codes")
    for rule in (parsed["rule"], "0.3@anneal:3"):
        out, _ = run("apply", "-c", files / "codes", "-p", rule, "--seed", "3", "--epoch", "2", text=text)
        assert out == segmenter.stream(rule).text(text, 3, epoch=2)
    out, _ = run("distribution", "-c", files / "codes", "-p", parsed["rule"], "--json", "statement")
    found = json.loads(out)
    assert found["dropout"] == parsed["rule"]
    expected = segmenter.distribution("statement", parsed["rule"])
    assert {tuple(s["pieces"]): s["probability"] for s in found["segmentations"]} == expected
    out, _ = run("distribution", "-c", files / "codes", "-p", parsed["rule"], "statement")
    assert out.decode().startswith(f"statement  (p = {parsed['rule']}: ")
    (files / "rates").write_text("0.1\n")
    _, err = run("apply", "-c", files / "codes", "-p", "file:rates", text=text, code=1)
    assert f"{files / 'rates'} has 1 rates, and the codes have" in err


def test_learn_with_stray_carriage_returns():
    text = "ab ab ab \r x\ncd \rcd cd\r\n"
    expected = io.StringIO()
    learn_bpe(io.StringIO(text, newline="\n"), expected, 2)
    assert run("learn", "-s", 2, text=text.encode())[0].decode() == expected.getvalue()


def test_merges_with_a_carriage_return_cannot_be_written(tmp_path):
    """subword-nmt writes them, and then cannot read them."""
    (tmp_path / "text").write_bytes(b"one\r\na\rb a\rb\n")
    _, err = run("learn", "-i", tmp_path / "text", "-o", tmp_path / "codes", code=1)
    assert f"error: {tmp_path}/text, line 2: the merge 'a \\r' has a carriage return (\\r), which no codes file" in err
    assert "standard input: the merge" in run("learn", text=(tmp_path / "text").read_bytes(), code=1)[1]
    assert not (tmp_path / "codes").exists()


def test_fewer_merges_than_asked_for(files, tmp_path):
    out, err = run("learn", "-s", 100, text=b"abc abc x\n")
    assert out.decode().count("\n") == 3
    assert err == "bpe-dropout: 2 merges were learned, and not 100: no other pair occurs 2 times\n"
    assert run("learn", "-s", 7, "--total-symbols", text=b"abc abc x\n") == (
        out,
        "bpe-dropout: 2 merges were learned, and not 3: no other pair occurs 2 times\n",
    )
    assert run("learn", "-s", 6, "--total-symbols", text=b"abc abc x\n") == (out, "")


def test_other_scripts_in_any_locale(files):
    out, _ = run("distribution", "-c", files / "codes", "-p", "0.5", "日本")
    assert "日@@ 本" in out.decode()


def test_closed_files(files):
    for closed in ("<&-", ">&-"):
        command = f"{sys.executable} -m bpe_dropout apply -c {files}/codes {closed}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr == "bpe-dropout: error: standard input, output and error must be open\n"


def test_help():
    for arguments in ([], ["apply"], ["learn"], ["distribution"], ["calibrate"]):
        out, _ = run(*arguments, "--help")
        assert b"usage: bpe-dropout" in out
    assert b"drawn anew in every" in run("apply", "--help")[0]
    run(code=2)


@pytest.mark.parametrize("p", ["1.1", "-0.1", "rank:0..2", "nan", "x"])
def test_dropout_is_a_probability_or_a_rule(files, p):
    _, err = run("apply", "-c", files / "codes", f"-p={p}", code=1)
    assert len(err.splitlines()) == 1
    expected = (
        "is no rule of dropout, such as 0.1, rank:0.05..0.2" if p in ("nan", "x") else "a probability from 0 to 1"
    )
    assert "error: -p: " in err
    assert expected in err


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["apply", "-c", "{}/nothing"], b"", "nothing: No such file or directory"),
        (["apply", "-c", "{}/codes", "-i", "{}/nothing"], b"", "nothing: No such file or directory"),
        (["apply", "-c", "{}/codes", "-o", "{}/nowhere/out"], b"", "out cannot be written: there is no folder"),
        (["apply", "-c", "{}/codes", "-o", "/dev/full"], b"the\n", "No space left on device; free some space"),
        (["apply", "-c", "{}/codes", "--seed", "-1"], b"the\n", "error: the seed is a whole number from 0"),
        (
            ["apply", "-c", "{}/codes", "--threads", "0"],
            b"the\n",
            "the number of threads is a whole number from 1 to 1024",
        ),
        (
            ["apply", "-c", "{}/codes", "--threads", "99999"],
            b"the\n",
            "the number of threads is a whole number from 1 to",
        ),
        (
            ["distribution", "-c", "{}/codes", "a" * 100_000],
            b"",
            "'... (100000 characters) cannot be found: more than 128",
        ),
        (["apply", "-c", "{}/codes"], b"fine\nnot \xff\n", "standard input, line 2: not valid UTF-8, at byte 5"),
        (["apply", "-c", "{}/codes", "-i", "{}"], b"", "Is a directory"),
        (["learn"], b"", "standard input holds no words"),
        (["learn"], b"a b c\n", "no word of two characters"),
        (["learn"], b"abc\n", "no pair of characters occurs 2 times, so there is nothing to learn; take more text, or"),
        (["learn", "-s", "3", "-t"], b"abc abc\n", "characters alone are 3 symbols, so there is nothing left to learn"),
        (["learn"], b"a\n\xff\n", "standard input, line 2: not valid UTF-8"),
        (["learn", "-s", "0"], b"the\n", "the number of merges is 1 or more"),
        (["learn", "--dict-input"], b"the 5\nof\n", "line 2: expected a word, a space and its count, not 'of'"),
        (["learn", "--dict-input"], b"the -5\n", "line 1: expected a word, a space and its count, not 'the -5'"),
        (["learn", "--dict-input"], b" 5\n", "line 1: expected a word, a space and its count, not ' 5'"),
        (["learn", "--dict-input"], b"", "standard input holds no words"),
        (
            ["apply", "-c", "{}/codes", "-p", "0.9@warmup:5"],
            b"",
            "has other rates in each epoch: say which it is, from 1",
        ),
        (["apply", "-c", "{}/codes", "-p", "0x1"], b"the\n", "error: -p: '0x1': 0 times 1 is no dropout"),
        (["apply", "-c", "{}/codes", "-s", "\n"], b"the\n", "a separator has no white space, which ends words: not"),
        (["apply", "-c", "{}/codes", "-s", ""], b"the\n", "with an empty --separator, words could not be told from"),
        (["apply", "-c", "{}/codes", "--glossaries", ""], b"the\n", "a glossary is a regular expression of one line"),
        (["distribution", "-c", "{}/codes", "-n", "-30", "the"], b"", "-n; 0: all of them) is a whole number from 0"),
        (["distribution", "-c", "{}/codes", "-p", "0.2@anneal:3", "the"], b"", "has other rates in each epoch"),
        (["distribution", "-c", "{}/codes", "two words"], b"", "'two words' is not one word"),
        (["calibrate", "-c", "{}/codes", "--ratio", "99"], b"the\n", "no dropout makes this text 99.0 times longer"),
        (["calibrate", "-c", "{}/codes"], b"", "standard input holds no words"),
    ],
)
def test_what_goes_wrong_is_said(files, arguments, text, message):
    out, err = run(*(argument.replace("{}", str(files)) for argument in arguments), text=text, code=1)
    assert out == b"" or "byte" in message
    assert err.startswith("bpe-dropout: error: ")
    assert message in err
    assert len(err.splitlines()) == 1


def test_an_empty_text_is_fine(files):
    assert run("apply", "-c", files / "codes") == (b"", "")


@pytest.mark.parametrize("command", [["apply", "-i", "text"], ["distribution", "the"], ["calibrate", "-i", "text"]])
def test_a_full_disk_on_standard_output(files, command):
    with open("/dev/full", "wb") as full:
        arguments = [*COMMAND, command[0], "-c", "codes", *command[1:]]
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, cwd=files, env=ENVIRONMENT)
    assert done.returncode == 1
    assert done.stderr == b"bpe-dropout: error: No space left on device; free some space and run it again\n"


def test_an_output_file_appears_whole_or_not_at_all(files, tmp_path):
    (tmp_path / "bad").write_bytes(b"the\n" * 1000 + b"\xff\n")
    (tmp_path / "out").write_text("what was there before")
    run("apply", "-c", files / "codes", "-i", tmp_path / "bad", "-o", tmp_path / "out", code=1)
    assert (tmp_path / "out").read_text() == "what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "out"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn", "-i", "text", "-o", "text"],
        ["learn", "-i", "link", "-o", "text"],
        ["apply", "-c", "codes", "-i", "text", "-o", "codes"],
        ["apply", "-c", "codes", "-i", "text", "-o", "text"],
        ["apply", "-c", "codes", "-i", "text", "-o", "link"],
        ["apply", "-c", "codes", "--vocabulary", "vocabulary", "-i", "text", "-o", "vocabulary"],
        ["apply", "-c", "codes", "-p", "file:rates", "-i", "text", "-o", "rates"],
    ],
)
def test_no_command_writes_over_what_it_reads(tmp_path, arguments):
    contents = {"text": "abab ab\n", "codes": "#version: 0.2\na b</w>\n", "vocabulary": "ab 1\n", "rates": "0.1\n"}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "link").symlink_to("text")
    at = arguments.index("-i")
    for given in (arguments, [*arguments[:at], *arguments[at + 2 :]]):  # the second reads standard input
        with (tmp_path / "text").open("rb") as text:
            done = subprocess.run([*COMMAND, *given], cwd=tmp_path, stdin=text, capture_output=True, text=True)
        assert done.returncode == 1
        assert f"{arguments[-1]} is read by this command, and would be lost: name another output" in done.stderr
    assert {name: (tmp_path / name).read_text() for name in contents} == contents


def test_an_output_that_is_there_keeps_its_links_and_its_mode(files, tmp_path):
    (tmp_path / "out").write_text("")
    (tmp_path / "out").chmod(0o640)
    (tmp_path / "link").symlink_to("out")
    (tmp_path / "new").symlink_to("made")
    for name, target in (("link", "out"), ("new", "made")):
        run("apply", "-c", files / "codes", "-o", tmp_path / name, text=b"the\n")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / target).read_text() == "the\n"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640
    assert len(list(tmp_path.iterdir())) == 4


def test_an_output_that_cannot_be_written_is_named(codes, tmp_path, monkeypatch):
    """By its own name, and not by that of the file that would become it."""
    out = tmp_path / "out"
    with pytest.raises(PermissionError) as error, whole(out) as part:
        raise PermissionError(errno.EACCES, "Permission denied", str(part))
    assert describe(error.value) == f"{out}: Permission denied"
    long = "a" * 250  # with what is added to it, too long
    assert run("apply", "-c", write_codes(tmp_path / "codes", codes), "-o", tmp_path / long, code=1)[1].endswith(
        f"{long}: File name too long\n"
    )
    out.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(InputError, match="out cannot be written: the file is there, and may only be read"):
        check_output(out)


@pytest.mark.parametrize(("number", "code", "says"), [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"")])
def test_an_interrupted_output_leaves_nothing(files, tmp_path, number, code, says):
    command = [*COMMAND, "apply", "-c", files / "codes", "-o", tmp_path / "out"]
    # Where the tests run in the background of a shell, interrupts are ignored, and a child would inherit that.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    process.stdin.write(b"the words\n" * 1000)
    process.stdin.flush()
    wait_until(lambda: list(tmp_path.iterdir()))
    time.sleep(0.2)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == code
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe(files):
    pipeline = f"{sys.executable} -m bpe_dropout apply -c {files}/codes -p 0.1 < {files}/big | head -2 | wc -l"
    (files / "big").write_bytes((files / "text").read_bytes() * 20)
    done = subprocess.run(["bash", "-c", pipeline], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("2", "")


def test_lines_come_out_as_they_go_in(files):
    """A program that waits for the answer to each line gets it."""
    process = subprocess.Popen(
        [*COMMAND, "apply", "-c", files / "codes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(3):
        process.stdin.write(b"the\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"the\n"
    process.stdin.close()
    process.stdout.close()
    assert process.wait() == 0


def test_progress_on_a_terminal_only(files):
    master, slave = pty.openpty()
    command = [*COMMAND, "apply", "-c", str(files / "codes"), "-p", "0.5"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    assert process.stdin is not None
    deadline = time.monotonic() + PATIENCE
    while not select.select([master], [], [], 0.3)[0] and time.monotonic() < deadline:
        process.stdin.write(b"the words\n" * 1000)
        process.stdin.flush()
    process.stdin.close()
    shown = b""
    while True:
        try:
            shown += os.read(master, 1000)
        except OSError:
            break
    assert process.wait() == 0
    assert b"segmenting: 0 MB" in shown


def test_a_warning_is_a_line(files, tmp_path):
    (tmp_path / "codes").write_text("#version: 0.2\na b\na b\n")
    out, err = run("apply", "-c", tmp_path / "codes", "--end-of-word", text=b"ab\n")
    assert out == b"a@@ b\n"
    assert err.startswith("bpe-dropout: warning: ")
    assert "line 3" in err
    assert len(err.splitlines()) == 1


def test_the_installed_command():
    command = Path(sys.executable).with_name("bpe-dropout")
    if not command.exists():
        pytest.skip("the package is not installed, only on the path")
    assert b"usage: bpe-dropout" in subprocess.run([command, "--help"], capture_output=True, check=True).stdout
