"""Parts of a page that a command writes."""

import pytest

from scripts import marks


def test_a_page_without_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing <!-- x: begin -->here")
    with pytest.raises(ValueError, match=r"no <!-- x: begin --> and <!-- x: end -->"):
        marks.write_between_marks(page, {"x": "text"})
    assert page.read_text() == "nothing <!-- x: begin -->here"


def test_several_parts(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- y: begin --><!-- y: end -->, <!-- x: begin -->\nold\n<!-- x: end -->\n")
    marks.write_between_marks(page, {"x": "1", "y": "2"})
    assert page.read_text() == "<!-- y: begin -->\n2\n<!-- y: end -->, <!-- x: begin -->\n1\n<!-- x: end -->\n"
