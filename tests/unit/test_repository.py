"""What must hold of the repository itself."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_operator_folder_is_not_a_package() -> None:
    """``operator/__init__.py`` would shadow the standard library's ``operator`` and break every import from the root."""
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert (ROOT / "operator" / "ballast" / "__init__.py").exists()
