"""YAML as settings have it: a file is a mapping, a variable of the environment one value, and no key is given twice."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from ballast.errors import UsageError


def read_yaml(path: Path) -> dict[str, Any]:
    """A mapping from a file; an empty file is an empty mapping."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot read the settings file {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name} is not UTF-8 text at byte {error.start}.") from None
    try:
        tree = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 — a safe loader, made stricter
    except (ValueError, RecursionError) as error:
        # PyYAML hands on what int() and date() say of a figure or a day that cannot be.
        raise UsageError(f"{path.name} holds a value that cannot be read: {str(error)[:200]}.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise UsageError(f"{path.name} is not valid YAML{where}: {problem}.") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise UsageError(f"{path.name} must hold settings as `name: value` lines.")
    return tree


def read_value(text: str, name: str) -> Any:
    """The value of the environment's variable of this name."""
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError):
        raise UsageError(f"The value of {name} is not a YAML value.") from None


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice, which YAML itself forbids and PyYAML lets pass."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """Check before building."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key is a list or a map", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
