"""Downloads from a real server on this machine, which can be told to break off, to know no ranges, or to lie."""

import gzip
import hashlib
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bpe_dropout import InputError
from scripts import download
from scripts.corpora import ROOT, Download
from scripts.download import fetch
from tests.scripts.test_archives import tar_of

CONTENT = gzip.compress(b"".join(b"line %d\n" % number for number in range(200_000)), mtime=0)
SUM = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    content = CONTENT
    ranges = True
    break_at: int | None = None  # how much of the first answer is sent
    busy = 0  # how often it answers that it is
    asked: list

    def __init__(self):
        super().__init__(("localhost", 0), Handler)
        self.asked = []

    @property
    def url(self):
        return f"http://localhost:{self.server_port}/file.gz"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        if self.path != "/file.gz":
            return self.send_error(404)
        if self.server.busy:
            self.server.busy -= 1
            return self.send_error(503)
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        rest = self.server.content[begin:]
        if wanted and begin >= len(self.server.content):
            return self.send_error(416)
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if self.server.break_at is not None:
            rest, self.server.break_at = rest[: self.server.break_at], None
        self.wfile.write(rest)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda _: None)
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "data" / "downloads" / "file.gz"


def known(server, **more):
    return Download(url=server.url, bytes=len(CONTENT), sha256=SUM, **more)


def test_a_file_is_fetched_and_checked(server, target):
    fetch("file.gz", known(server), target)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file.gz"]


def test_a_connection_that_breaks_is_taken_up_where_it_broke(server, target):
    server.break_at = 100_000
    fetch("file.gz", known(server), target)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-"]


def test_a_later_call_goes_on(server, target):
    target.parent.mkdir(parents=True)
    target.with_name("file.gz.part").write_bytes(CONTENT[:5000])
    fetch("file.gz", known(server), target)
    assert target.read_bytes() == CONTENT
    assert server.asked == ["bytes=5000-"]


def test_a_server_without_ranges_sends_all_of_it_again(server, target):
    server.ranges = False
    target.parent.mkdir(parents=True)
    target.with_name("file.gz.part").write_bytes(b"x" * 5000)
    fetch("file.gz", known(server), target)
    assert target.read_bytes() == CONTENT


def test_a_part_that_is_whole_already(server, target):
    target.parent.mkdir(parents=True)
    target.with_name("file.gz.part").write_bytes(CONTENT)
    fetch("file.gz", Download(url=server.url, sha256=SUM), target)  # its size is not known, so the server is asked
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"sha256": "0" * 64}, f"its sha256 is {SUM}, and {'0' * 64} was expected"),
        ({"sha256": "", "md5": "0" * 32}, "its md5 is"),
        ({"bytes": len(CONTENT) - 1, "sha256": ""}, f"it has {len(CONTENT)} bytes"),
    ],
)
def test_another_file_is_refused_and_removed(server, target, wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        fetch("file.gz", Download(**{**vars(known(server)), **wrong}), target)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"<!DOCTYPE html><html>Sign in</html>", "a web page came in its place"), (CONTENT[:-50_000], "cannot be read")],
)
def test_without_a_checksum_a_file_is_looked_into(server, target, content, sentence):
    server.content = content
    with pytest.raises(InputError, match=sentence):
        fetch("file.gz", Download(url=server.url), target)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("place", [len(CONTENT) // 2, len(CONTENT) - 6])
def test_a_flipped_bit_is_noticed_without_a_checksum(server, target, place):
    server.content = CONTENT[:place] + bytes([CONTENT[place] ^ 1]) + CONTENT[place + 1 :]
    with pytest.raises(InputError, match=r"it cannot be read as file\.gz"):
        fetch("file.gz", Download(url=server.url), target)
    assert list(target.parent.iterdir()) == []


def test_an_archive_without_a_checksum_is_read_to_its_own(server, target):
    """A bit of the text of an archive's last file, which tarfile reads without complaint."""
    whole = gzip.compress(tar_of({"a": b"x" * 5000, "b": b"y" * 5000}, "w"), compresslevel=0)
    tgz = target.with_name("file.tgz")
    server.content = whole
    fetch("file.tgz", Download(url=server.url), tgz)
    tgz.unlink()
    server.content = whole.replace(b"yyy", b"yxy", 1)
    with pytest.raises(InputError, match=r"it cannot be read as file\.tgz \(CRC check failed"):
        fetch("file.tgz", Download(url=server.url), tgz)
    assert list(target.parent.iterdir()) == []


def test_what_is_not_there_is_said_with_what_to_do(server, target):
    with pytest.raises(InputError, match=r"404.*DATA_MIRROR"):
        fetch("file.gz", Download(url=server.url + "x"), target)
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match="the next call resumes from there"):
        fetch("file.gz", known(server), target)


def test_a_busy_server_is_asked_again(server, target):
    server.busy = 2
    fetch("file.gz", known(server), target)
    assert target.read_bytes() == CONTENT
    server.busy = 9
    with pytest.raises(InputError, match=r"503.*the next call resumes from there"):
        fetch("file.gz", known(server), target)


def test_a_mirror_is_a_folder_with_the_same_files(target, tmp_path):
    for place in ("a/file.gz", "b/corpus/file.gz"):
        path = tmp_path / place
        path.parent.mkdir(parents=True)
        path.write_bytes(CONTENT)
        fetch("corpus/file.gz", Download(url="http://nowhere.invalid/", sha256=SUM), target, str(tmp_path / place[0]))
        assert target.read_bytes() == CONTENT
    (tmp_path / "a" / "file.gz").write_bytes(b"other")
    with pytest.raises(InputError, match="not the file that was expected"):
        fetch("corpus/file.gz", Download(url="http://nowhere.invalid/", sha256=SUM), target, str(tmp_path / "a"))
    assert target.read_bytes() == CONTENT, "what was there stays"
    with pytest.raises(InputError, match="is not a folder"):
        fetch("corpus/file.gz", Download(url="http://nowhere.invalid/"), target, str(tmp_path / "nix"))


def test_what_a_mirror_does_not_have_comes_from_its_source(server, target, tmp_path):
    fetch("corpus/file.gz", known(server), target, str(tmp_path))
    assert target.read_bytes() == CONTENT
    with pytest.raises(InputError, match=r"cannot be downloaded, and is not in .*\. Ask for it"):
        fetch("corpus/other.gz", Download(local="Ask for it"), target, str(tmp_path))


def test_aspec_is_asked_for(tmp_path):
    """By the command, as the graph runs it: no trace of Python, but what to do."""
    target = tmp_path / "ASPEC-JE" / "dev" / "dev.txt"
    command = [sys.executable, "-m", "scripts.download", "ASPEC-JE/dev/dev.txt", "--output", str(target)]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ASPEC-JE/dev/dev.txt cannot be downloaded. ASPEC is given on application")
    assert f"Put it here: {target}" in done.stderr
