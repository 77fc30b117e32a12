"""What is written down about a version agrees: pyproject.toml, the citation, the changelog, the workflow."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PYPROJECT["project"]["version"]
yaml = pytest.importorskip("yaml")


def test_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["version"]) == (PYPROJECT["project"]["name"], VERSION)
    assert citation["license"] == PYPROJECT["project"]["license"]
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Provilkov", "Emelianenko", "Voita"]
    assert (paper["start"], paper["end"], paper["year"]) == (1882, 1892, 2020)
    assert paper["doi"] == "10.18653/v1/2020.acl-main.170"


def test_changelog():
    """Unreleased first, then versions with their dates, the newest first, which is this one."""
    headings = re.findall(r"^## \[(.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased]"
    versions = [re.fullmatch(r"(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d", heading)[1] for heading in headings[1:]]
    assert versions[0] == VERSION
    assert versions == sorted(versions, key=lambda version: [int(part) for part in version.split(".")], reverse=True)


def test_workflow():
    """The workflow does what .ci/run does, and tests every Python of which there are wheels, from the oldest on."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert "bash .ci/run" in [step.get("run") for step in jobs["all"]["steps"]]
    pythons = jobs["segmenter"]["strategy"]["matrix"]["python"]
    assert PYPROJECT["project"]["requires-python"] == f">={pythons[0]}"
    wheels = PYPROJECT["tool"]["cibuildwheel"]["build"].split()
    assert wheels == [f"cp{python.replace('.', '')}-*" for python in pythons]
