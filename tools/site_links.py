"""A hook of MkDocs: links of a page to files of the repository beside docs/ lead there from the site on the disk, too."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any


def on_page_markdown(markdown: str, *, config: Any, **_: object) -> str:
    """Every page of the site lies in its top folder."""
    root = os.path.relpath(Path(config.config_file_path).parent, config.site_dir)
    return re.sub(r"\]\(\.\./(?=[^)]+\))", f"]({root}/", markdown)
