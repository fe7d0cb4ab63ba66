# ruff: noqa: INP001 — a script beside the chart, not a package
"""Makes ``deploy/kustomize/ballast.yaml`` from the chart, so that plain manifests and the chart never part.

``python helm/kustomize.py`` writes it; a test pins it.  Needs Helm's engine from the development environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import helm_python
import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
OUT: Final = ROOT / "deploy" / "kustomize" / "ballast.yaml"
VALUES: Final[dict[str, Any]] = {
    "fullnameOverride": "ballast",
    "settings": {"cluster": {"name": "kafka", "bootstrap_server": "kafka-bootstrap:9092"}},
}
_HEAD = "# Rendered from the chart (python helm/kustomize.py); change it there, or patch it in an overlay.\n"


def render() -> str:
    """The objects of the core, without what names Helm."""
    with helm_python.Chart.load(str(ROOT / "helm" / "ballast")) as chart:
        texts = chart.render(VALUES, name="ballast", namespace="default")
    objects = [
        obj
        for path, text in sorted(texts.items())
        # Helm alone runs its tests.
        if path.endswith(".yaml") and "/tests/" not in path
        for obj in yaml.safe_load_all(text)
        if obj
    ]
    for obj in objects:
        _forget_helm(obj)
    return _HEAD + yaml.safe_dump_all(objects, sort_keys=False)


def _forget_helm(node: Any) -> None:
    if isinstance(node, dict):
        for label in ("helm.sh/chart", "app.kubernetes.io/managed-by"):
            node.pop(label, None)
        for value in node.values():
            _forget_helm(value)
    elif isinstance(node, list):
        for value in node:
            _forget_helm(value)


if __name__ == "__main__":
    OUT.write_text(render())
