"""Settings as text: the active ones, and what differs from the defaults."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from ballast.settings.fields import settable
from ballast.settings.model import NEED_RESTART, Settings


def flat(value: Any, path: str = "") -> list[tuple[str, str]]:
    """Every setting as (name, value); settings name files with secrets and never hold one."""
    if is_dataclass(value) and not isinstance(value, type):
        return [
            row for f in settable(value) for row in flat(getattr(value, f.name), f"{path}.{f.name}" if path else f.name)
        ]
    return [(path, text(value))]


def text(value: Any) -> str:
    """One value as a person would write it in the file; a dash where there is none."""
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, Enum):
        shown = str(value.value)
    elif isinstance(value, float):
        shown = f"{value:g}"
    elif isinstance(value, tuple | list | frozenset):
        shown = ", ".join(_member(v) for v in (sorted(value) if isinstance(value, frozenset) else value))
    elif isinstance(value, dict):
        shown = ", ".join(f"{k}: {text(v)}" for k, v in value.items())
    else:
        shown = "" if value is None else str(value)
    return shown or "—"


def differences(settings: Settings, base: Settings | None = None) -> list[tuple[str, str, str]]:
    """(name, value, value in ``base``) of every setting that differs; base is the defaults unless given."""
    old = dict(flat(base or Settings()))
    return [(name, value, old.get(name, "—")) for name, value in flat(settings) if old.get(name) != value]


def need_restart(before: Settings, after: Settings) -> list[str]:
    """Names of changed settings that a running process does not pick up."""
    return [name for name, _, _ in differences(after, before) if name.split(".")[0] in NEED_RESTART]


def _member(value: Any) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return "(" + ", ".join(f"{f.name}: {text(getattr(value, f.name))}" for f in fields(value)) + ")"
    return text(value)
