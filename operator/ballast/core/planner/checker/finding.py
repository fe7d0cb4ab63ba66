"""What the checker says of a plan: something wrong, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the plan does wrong."""

    code: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail} [{self.code}]"
