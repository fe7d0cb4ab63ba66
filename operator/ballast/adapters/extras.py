"""The parts that are installed only where they are wanted: which libraries belong to which, and what to install without them."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from ballast.errors import UsageError

Extra = Literal["history", "spark"]

LIBRARIES: Final[dict[Extra, tuple[str, ...]]] = {
    "history": ("pyarrow", "deltalake"),
    "spark": ("pyspark", "delta"),
}
"""What must be importable for an extra of the package."""


def install_line(extra: Extra) -> str:
    """What to type here: another pip than that of this environment would install it elsewhere.

    The package itself is there, so that only what the extra adds is fetched.
    """
    wanted, home = f"'kafka-ballast[{extra}]'", Path(sys.prefix)
    if (home / "pipx_metadata.json").is_file():
        return f"pipx inject kafka-ballast {wanted}"
    if (home.parent / "bootstrap" / "__main__.py").is_file():
        return "make setup"
    if find_spec("pip") is None:
        return f"uv pip install {wanted} --python {sys.executable}"
    return f"{sys.executable} -m pip install {wanted}"


def require(extra: Extra, what: str) -> None:
    """Raise ``UsageError`` where an extra is not installed; ``what`` begins the sentence and names what needs it."""
    lacking = [name for name in LIBRARIES[extra] if find_spec(name) is None]
    if lacking:
        raise UsageError(
            f"{what} needs {' and '.join(lacking)}, not installed here.",
            hint=f"{install_line(extra)} (of the images, ballast-{extra} has it)",
        )
