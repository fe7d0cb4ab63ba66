"""The documents as a site: built without a network, read from the disk."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_index_names_every_page_and_the_menu_has_its_order() -> None:
    """A page that the index does not name is not found."""
    written = (ROOT / "docs" / "index.md").read_text()
    named = list(dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)\)", written)))
    assert {*named, "index.md"} == {page.name for page in (ROOT / "docs").glob("*.md")}
    menu = re.search(r"^nav:\n((?:  - .*\n)+)", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert menu, "there is no menu"
    assert re.findall(r"[\w-]+\.md", menu[1]) == ["index.md", *named]


def test_every_link_of_the_site_leads_somewhere(tmp_path: Path) -> None:
    """To a page, a heading of it, or a file of the repository; nothing is fetched from elsewhere but what a reader clicks on."""
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {page: page.read_text() for page in tmp_path.glob("*.html") if page.name != "404.html"}
    names = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    assert len(pages) > 20
    dead = []
    for page, text in pages.items():
        for link in re.findall(r'href="([^"]+)"', text):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if "://" not in link and not (target.exists() and (not anchor or anchor in names.get(target, {anchor}))):
                dead.append((page.name, link))
    assert dead == []
