import gzip
import io
import tarfile
import zipfile

import pytest

from bpe_dropout import InputError
from scripts.archives import BROKEN, check_whole, open_inside, read_inside
from scripts.readers import read_lines


def tar_of(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def test_a_file_in_an_archive_in_an_archive(tmp_path):
    """As WIT3's bundles are: 2015-01.tgz holds en-vi.tgz holds the texts."""
    inner = tar_of({"en-vi/README": b"no", "en-vi/train.en": b"a\nb\n"})
    (tmp_path / "all.tgz").write_bytes(tar_of({"2015/other": b"no", "2015/texts/en-vi.tgz": inner}))
    path = tmp_path / "all.tgz" / "2015" / "texts" / "en-vi.tgz" / "en-vi" / "train.en"
    assert read_inside(path) == b"a\nb\n"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.tgz"], "nothing is unpacked"


def test_a_zip_in_a_tar(tmp_path):
    """A zip file is read from its end, and a tar only forward."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_about.txt", "no")
        archive.writestr("fra.txt", "Go.\tVa !\n")
    (tmp_path / "a.tar.gz").write_bytes(tar_of({"a/other": b"no", "a/fra-eng.zip": inner.getvalue(), "a/z": b"no"}))
    assert read_inside(tmp_path / "a.tar.gz" / "a" / "fra-eng.zip" / "fra.txt") == b"Go.\tVa !\n"
    with pytest.raises(InputError, match=r"a\.tar\.gz holds no deu\.txt"):
        read_inside(tmp_path / "a.tar.gz" / "a" / "fra-eng.zip" / "deu.txt")


def test_a_gzipped_file_in_a_tar(tmp_path):
    """As giga-fren is."""
    (tmp_path / "giga.tar").write_bytes(tar_of({"giga.en.gz": gzip.compress(b"text")}, "w"))
    assert read_inside(tmp_path / "giga.tar" / "giga.en.gz") == b"text"


def test_wheels_and_plain_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("x/a.po", "text")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"packed"))
    assert read_inside(tmp_path / "x.whl" / "x" / "a.po") == b"text"
    assert read_inside(tmp_path / "a.gz") == b"packed"


def test_names_that_lead_out_lead_nowhere(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "bad.tgz").write_bytes(tar_of({"../../out": b"x", "/etc/out": b"y", "fine": b"z"}))
    assert read_inside(folder / "bad.tgz" / "fine") == b"z"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bad.tgz", "in"]


def test_what_is_not_there(tmp_path):
    (tmp_path / "a.tgz").write_bytes(tar_of({"x": b""}))
    (tmp_path / "plain").write_bytes(b"")
    for path, sentence in (
        (tmp_path / "a.tgz" / "y" / "z", "a.tgz holds no y/z"),
        (tmp_path / "b.tgz" / "x", "there is no file"),
        (tmp_path / "plain" / "x", "plain is not an archive"),
    ):
        with pytest.raises(InputError, match=sentence), open_inside(path):
            pass


@pytest.mark.parametrize("keep", [0.5, 0.98])
def test_a_truncated_archive_is_said_to_be(tmp_path, keep):
    content = b"".join(b"%d\n" % number for number in range(20000))
    whole = tar_of({"text": content})
    (tmp_path / "a.tgz").write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(InputError, match=r"a\.tgz is damaged"):
        read_inside(tmp_path / "a.tgz" / "text")


LINES = b"".join(b"line %d\n" % number for number in range(20000))


def stored(content: bytes) -> bytes:
    """Gzipped without compression, so that a bit that flips is another text and nothing else."""
    return gzip.compress(content, compresslevel=0)


def flip(content: bytes, at: float) -> bytes:
    place = int(len(content) * at)
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


ARCHIVES = {
    "a.gz": (stored(LINES), ""),
    "a.tgz": (stored(tar_of({"text": LINES, "more": LINES}, "w")), "text"),
    "b.tgz": (tar_of({"en.tgz": stored(tar_of({"text": LINES, "more": LINES}, "w"))}), "en.tgz/text"),
    "a.tar": (tar_of({"text.gz": stored(LINES), "more.gz": stored(LINES)}, "w"), "text.gz"),
    "a.tar.xz": (tar_of({"text": LINES}, "w:xz"), "text"),
    "a.tar.bz2": (tar_of({"text": LINES}, "w:bz2"), "text"),
}


@pytest.mark.parametrize("at", [0.2, 0.49, 0.6, 0.95])
@pytest.mark.parametrize("name", ["a.gz", "a.tgz", "b.tgz", "a.tar.xz", "a.tar.bz2"])
def test_a_flipped_bit_is_noticed_wherever_it_is(tmp_path, name, at):
    """Also after the file that is read: its text came out of the same compressed stream."""
    content, inside = ARCHIVES[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert read_inside(path / inside) == LINES
    check_whole(path, name)
    path.write_bytes(flip(content, at))
    with pytest.raises(InputError, match=f"{name} is damaged, or not what its name says"):
        read_inside(path / inside)
    with pytest.raises((*BROKEN, OSError)):
        check_whole(path, name)


@pytest.mark.parametrize("at", [0.2, 0.7])
def test_gzipped_files_in_a_plain_tar_are_checked(tmp_path, at):
    """A tar has no checksum: of giga-fren.tar, it is what is inside that has."""
    content, inside = ARCHIVES["a.tar"]
    path = tmp_path / "a.tar"
    path.write_bytes(content)
    assert read_inside(path / inside) == LINES
    check_whole(path, path.name)
    path.write_bytes(flip(content, at))
    with pytest.raises(BROKEN):
        check_whole(path, path.name)
    if at < 0.5:
        with pytest.raises(InputError, match=r"a\.tar is damaged"):
            read_inside(path / inside)


def test_who_stops_reading_early_does_not_wait_for_the_rest(tmp_path):
    content, inside = ARCHIVES["a.tgz"]
    (tmp_path / "a.tgz").write_bytes(flip(content, 0.9))
    file = read_lines(tmp_path / "a.tgz" / inside)
    assert next(file) == "line 0"
    file.close()


def test_a_page_in_place_of_a_gzipped_file(tmp_path):
    (tmp_path / "a.gz").write_bytes(b"<html>")
    with pytest.raises(InputError, match=r"a\.gz is damaged, or not what its name says"):
        read_inside(tmp_path / "a.gz")


def test_an_encrypted_zip_and_an_unknown_compression(tmp_path):
    """Written by hand: zipfile encrypts nothing. The flag and the method are in the header and in the directory."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "text")
    plain = path.read_bytes()
    for offset, value, sentence in (
        (6, 1, "x is encrypted, and only archives without a password are read"),
        (8, 99, r"a\.zip is damaged, or not what its name says \(That compression method is not supported\)"),
    ):
        content = bytearray(plain)
        content[offset] = content[plain.index(b"PK\1\2") + offset + 2] = value
        path.write_bytes(content)
        with pytest.raises(InputError, match=sentence):
            read_inside(path / "x")
        with pytest.raises((InputError, NotImplementedError)):
            check_whole(path, path.name)
