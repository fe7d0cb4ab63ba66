"""The documents say what the code does: every figure and picture in them is made anew and compared."""

from __future__ import annotations

import re

import pytest
from bench import docs_figures


@pytest.mark.parametrize("name", docs_figures.DOCUMENTS)
def test_figures_in_documents_are_what_the_code_gives(name: str) -> None:
    """If this fails, run ``python bench/docs_figures.py --write`` and read the difference before committing it."""
    document = (docs_figures.DOCS / name).read_text()
    assert docs_figures.filled(document) == document


@pytest.mark.parametrize("name", docs_figures.PICTURES)
def test_pictures_are_what_the_code_draws(name: str) -> None:
    """Drawn again, a picture is the same file."""
    assert docs_figures.PICTURES[name]() == (docs_figures.DOCS / "pictures" / name).read_text()


def test_every_figure_and_picture_is_used() -> None:
    """Each one that is computed stands in a document, and each one in a document is computed."""
    documents = "".join((docs_figures.DOCS / name).read_text() for name in docs_figures.DOCUMENTS)
    assert set(re.findall(r"<!-- figure: ([a-z-]+) -->", documents)) == set(docs_figures.FIGURES)
    assert set(re.findall(r"\(pictures/([a-z.-]+)\)", documents)) == set(docs_figures.PICTURES)
