"""`pip wheel .` makes a wheel that is complete, holds nothing else, and works where there is nothing of this folder.

The wheel is built from the source distribution, so that is complete, too. One build serves all tests.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("bpe_dropout", "fairseq_plugins")
pytest.importorskip("pybind11", reason="needs what the build needs, which pip installs apart from the rest")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of this folder, as a clone of it would be."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone, which knows the files of the project")
    tree = tmp_path_factory.mktemp("wheel") / "tree"
    for name in run("git", "ls-files", "-z", "-co", "--exclude-standard", cwd=ROOT).split("\0")[:-1]:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    return tree


def modules(folder: Path) -> set[str]:
    """What belongs into the wheel, of a folder with the packages: Python, types and the marker that they are there."""
    found = (path for package in PACKAGES for path in (folder / package).rglob("*"))
    return {str(path.relative_to(folder)) for path in found if path.suffix in {".py", ".pyi", ".typed"}}


@pytest.fixture(scope="module")
def source(tree) -> Path:
    """The source distribution, unpacked."""
    hook = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", hook, "..", cwd=tree)
    (archive,) = tree.parent.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tree.parent, filter="data")
    return tree.parent / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(source) -> Path:
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--wheel-dir", "..")
    run(sys.executable, "-m", "pip", "wheel", *options, ".", cwd=source)
    (wheel,) = source.parent.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel) -> Path:
    """A folder with the wheel installed into it; the package of this environment is out of sight from there."""
    folder = wheel.parent / "installed"
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--target", folder)
    run(sys.executable, "-m", "pip", "install", *options, wheel, cwd=wheel.parent)
    return folder


def test_the_source_distribution(tree, source):
    """All that the package is built from, and nothing of the reproduction."""
    core = {str(path.relative_to(tree)) for path in (tree / "bpe_dropout" / "core").iterdir()}
    built_from = modules(tree) | core | {"setup.py", "pyproject.toml", "README.md", "LICENSE"}
    there = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    assert built_from <= there
    assert {name.split("/")[0] for name in there if "/" in name} == {*PACKAGES, "bpe_dropout.egg-info"}


def test_what_is_in_it(tree, wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {name for name in names if ".dist-info/" in name}
    (core,) = (name for name in names if name.endswith(".so"))
    assert core.startswith("bpe_dropout/_core.")
    assert names - data - {core} == modules(tree)
    assert "bpe_dropout/py.typed" in names


def test_a_clone_builds_the_same(tree):
    """Folders that the source distribution leaves out, such as tests, do not get in."""
    run(sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", "../library", cwd=tree)
    library = tree.parent / "library"
    files = {str(path.relative_to(library)) for path in library.rglob("*") if path.is_file()}
    assert files == modules(tree)


def test_it_works(installed, tmp_path):
    """The module, the command and the test that cibuildwheel runs."""
    environment = {"PYTHONPATH": str(installed), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    code = "import bpe_dropout; print(bpe_dropout.__file__)"
    where = run(sys.executable, "-c", code, cwd=tmp_path, **environment)
    assert Path(where.strip()).is_relative_to(installed)
    (tmp_path / "codes").write_text("#version: 0.2\na b</w>\n")
    command = (sys.executable, "-m", "bpe_dropout", "distribution", "-c", "codes", "-p", "0.25", "ab")
    assert "0.75" in run(*command, cwd=tmp_path, **environment)
    run("sh", "-c", PYPROJECT["tool"]["cibuildwheel"]["test-command"], cwd=tmp_path, **environment)


def test_the_command(wheel):
    entry = zipfile.ZipFile(wheel).read(f"bpe_dropout-{PYPROJECT['project']['version']}.dist-info/entry_points.txt")
    assert entry.decode().split("\n")[:2] == ["[console_scripts]", "bpe-dropout = bpe_dropout.cli:main"]
