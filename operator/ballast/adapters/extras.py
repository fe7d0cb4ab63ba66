"""The parts that are installed only where they are wanted: which libraries belong to which, and what to install without them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, Literal

from ballast.errors import UsageError

Extra = Literal["history", "spark"]

LIBRARIES: Final[dict[Extra, tuple[str, ...]]] = {
    "history": ("pyarrow", "deltalake"),
    "spark": ("pyspark", "delta"),
}
"""What must be importable for an extra of the package."""


def require(extra: Extra, what: str) -> None:
    """Raise ``UsageError`` where an extra is not installed; ``what`` begins the sentence and names what needs it."""
    lacking = [name for name in LIBRARIES[extra] if find_spec(name) is None]
    if lacking:
        raise UsageError(
            f"{what} needs {' and '.join(lacking)}, not installed here.", hint=f"pip install 'kafka-ballast[{extra}]'"
        )
