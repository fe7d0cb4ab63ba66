"""How a sandbox's listeners are guarded, and what its clients must show."""

from __future__ import annotations

from typing import Final

KINDS: Final[dict[str, str]] = {}
"""Every kind of security and what it means."""
