"""Embeddings: neighbours, precision and projection, each against another way of computing it."""

import numpy as np
import pytest
import scipy.spatial.distance
import torch

from bpe_dropout import InputError
from experiments.analysis import embeddings, neighbours
from experiments.analysis.drawing import svg
from scripts.corpora import CONFIGS
from scripts.paper import read_items


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(1).normal(size=(1300, 16)).astype(np.float32)  # more than one block


def test_neighbours_are_the_nearest_by_cosine(vectors):
    nearest, similarity = embeddings.find_neighbours(vectors)
    cosines = 1 - scipy.spatial.distance.cdist(vectors, vectors, "cosine")
    np.fill_diagonal(cosines, -2)
    expected = np.sort(cosines, axis=1)[:, ::-1][:, :10]
    assert np.allclose(similarity, expected, atol=1e-5)
    assert np.allclose(np.take_along_axis(cosines, nearest, axis=1), expected, atol=1e-5)


def test_few_pieces_have_few_neighbours():
    nearest, _ = embeddings.find_neighbours(np.eye(3, dtype=np.float32))
    assert nearest.shape == (3, 2)
    assert all(number not in row for number, row in enumerate(nearest))


def test_precision_by_hand():
    pieces = ["related", "relation", "house", "cat", "unrelated"]
    # related: rela elat late ated. relation has rela elat lati atio tion, house has hous ouse: 2 of 7 are in it.
    # relation's neighbours, related and cat: rela, elat of 4. house: its neighbour is too short to have any: left out.
    # cat has none of its own: left out. unrelated: unre nrel rela elat late ated; related: all 4.
    nearest = np.array([[1, 2], [0, 3], [3, 3], [0, 1], [0, 0]])
    assert embeddings.precision(pieces, nearest) == pytest.approx(np.mean([2 / 7, 2 / 4, 1.0]))
    assert embeddings.precision(["a", "b"], np.array([[1], [0]])) == 0


def test_rare_is_the_rarest_tenth():
    counts = [50, 3, 40, 3, 30, 2, 20, 10, 9, 8, 7, 6, 5, 100, 200, 300, 400, 500, 600, 700]
    assert embeddings.find_rare(counts).tolist() == [5, 3], "of equals the later"


def test_the_projection_is_on_the_first_singular_vectors(vectors):
    stretched = vectors * np.linspace(3, 1, 16, dtype=np.float32)
    points = embeddings.project(stretched)
    values, axes = np.linalg.eigh(stretched.T.astype(float) @ stretched)
    for number in range(2):
        other = stretched @ axes[:, -1 - number]
        assert np.allclose(np.abs(points[:, number]), np.abs(other), atol=1e-3)
        assert (points[:, number] ** 2).sum() == pytest.approx(values[-1 - number], rel=1e-4)


def test_measure(vectors):
    pieces = [f"piece{chr(97 + n // 26 % 26)}{chr(97 + n % 26)}{n // 676}@@" for n in range(1300)]
    counts = list(range(1300, 0, -1))
    found = embeddings.measure(vectors, pieces, counts, [])
    nearest, _ = embeddings.find_neighbours(vectors)
    rare = set(range(1170, 1300))
    share = np.mean([other in rare for number in rare for other in nearest[number]])
    assert found["rare"] == 130
    assert found["rare neighbours of rare"] == pytest.approx(share)
    assert abs(share - 0.1) < 0.05, "vectors without structure"
    assert len(found["points"]) == 1300
    assert sum(point[2] for point in found["points"]) == 130
    named = embeddings.measure(vectors, pieces, counts, [pieces[7]])["neighbours"]
    assert [other for other, _ in named[pieces[7]]] == [pieces[number] for number in nearest[7]]
    with pytest.raises(InputError, match="TOKENS: nix is not a piece"):
        embeddings.measure(vectors, pieces, counts, ["nix"])


def test_rare_pieces_that_lie_apart():
    vectors = np.concatenate([np.tile([1.0, 0.1], (90, 1)), np.tile([0.1, 1.0], (11, 1))]).astype(np.float32)
    found = embeddings.measure(vectors, [f"p{n}" for n in range(101)], [9] * 90 + [1] * 11, [])
    assert found["rare neighbours of rare"] == pytest.approx(0.9, abs=0.05), "ten of eleven are rare, so one is not"


def test_pieces_that_are_listed_go_from_frequent_to_rare():
    pieces = ["short", "a", *(f"longer{chr(97 + n)}" for n in range(20)), "x1y2z3"]
    counts = list(range(len(pieces), 0, -1))
    chosen = embeddings.choose_listed(pieces, counts)
    assert len(chosen) == embeddings.LISTED
    assert chosen == sorted(chosen)
    assert all(pieces[number].isalpha() and len(pieces[number]) >= 5 for number in chosen)


def test_vectors_of_a_checkpoint(tmp_path):
    weight = torch.arange(12.0).reshape(6, 2)
    torch.save({"model": {"encoder.embed_tokens.weight": weight}}, tmp_path / "a.pt")
    assert embeddings.read_vectors(tmp_path / "a.pt", 2).tolist() == [[8, 9], [10, 11]]
    with pytest.raises(InputError, match="has no source embeddings for the 3 pieces"):
        embeddings.read_vectors(tmp_path / "a.pt", 3)


RUNS = [f"demo.en-fr.{method}.small.seed1" for method in ("bpe", "bpe-dropout")]


def add(results, method, precision):
    results.add(
        f"demo.en-fr.{method}.small.seed1",
        "embeddings",
        precision=precision,
        neighbours={"related": [["relation", 0.9], ["house", 0.8]]},
        points=[[0.5, 1, 0], [1, 2, 1], [3, 4, 0]],
        **{"rare neighbours of rare": 0.2},
    )


def test_the_table_of_neighbours(results):
    add(results, "bpe", 0.1)
    add(results, "bpe-dropout", 0.3)
    (paper,) = neighbours.build(read_items()["table-neighbours"], results, CONFIGS, []).tables
    assert [cell.paper for cell in paper.rows[0].cells[1:]] == ["0.18", "0.29"]
    part = neighbours.build(read_items()["table-neighbours"], results, CONFIGS, RUNS)
    numbers, table = part.tables
    assert [cell.text for cell in numbers.rows[0].cells[1:]] == ["0.10", "0.30"]
    assert table.columns == ["piece", "BPE", "BPE-dropout"]
    assert [cell.text for cell in table.rows[0].cells] == ["related", "relation, house", "relation, house"]


def test_the_figure_of_embeddings(results):
    add(results, "bpe", 0.1)
    add(results, "bpe-dropout", 0.3)
    part = embeddings.build(read_items()["figure-embeddings"], results, CONFIGS, RUNS)
    (drawing,) = part.drawings
    left, right = drawing.figure.axes
    assert (left.get_title(), right.get_title()) == ("BPE", "BPE-dropout")
    others, rare = left.collections
    assert rare.get_gid() == "rare-bpe"
    assert rare.get_offsets().tolist() == [[1, 2]]
    assert others.get_offsets().tolist() == [[0.5, 1], [3, 4]]
    text = svg(drawing.figure)
    assert 'id="rare-bpe-dropout"' in text
    assert "rare pieces" in text
