import gzip
import io
import tarfile
import zipfile

import pytest

from bpe_dropout import InputError
from scripts.archives import open_inside, read_inside


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
