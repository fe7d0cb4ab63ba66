"""Builds a kustomization as ``kubectl kustomize`` would, for the fields that deploy/ uses; any other field is an error.

Written here because the tool is not at hand everywhere: resources (files and folders), namespace, images, and patches from
files by strategic merge, whose lists are merged by the keys that Kubernetes gives them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FIELDS = {"apiVersion", "kind", "namespace", "resources", "images", "patches"}
MERGE_KEYS = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}
"""List by field name: the key by which strategic merge tells its items apart."""


def build(folder: Path) -> list[dict[str, Any]]:
    """The objects that would be applied."""
    spec = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert spec["apiVersion"] == "kustomize.config.k8s.io/v1beta1"
    assert spec["kind"] == "Kustomization"
    assert set(spec) <= FIELDS, f"{folder.name}: {sorted(set(spec) - FIELDS)} is not understood here"
    objects: list[dict[str, Any]] = []
    for resource in spec.get("resources", ()):
        path = (folder / resource).resolve()
        assert not folder.resolve().is_relative_to(path), "a base that contains its overlay is a cycle to kustomize"
        objects += build(path) if path.is_dir() else [obj for obj in yaml.safe_load_all(path.read_text()) if obj]
    for patch in spec.get("patches", ()):
        assert set(patch) == {"path"}, f"a patch of {sorted(patch)} is not understood here"
        for change in yaml.safe_load_all((folder / patch["path"]).read_text()):
            _patch(objects, change)
    for image in spec.get("images", ()):
        assert set(image) <= {"name", "newName", "newTag"}
        _rename(objects, image)
    if namespace := spec.get("namespace"):
        for obj in objects:
            obj["metadata"]["namespace"] = namespace
    return objects


def _patch(objects: list[dict[str, Any]], change: dict[str, Any]) -> None:
    same = [o for o in objects if o["kind"] == change["kind"] and o["metadata"]["name"] == change["metadata"]["name"]]
    assert len(same) == 1, f"a patch for {change['kind']} {change['metadata']['name']}, of which there are {len(same)}"
    _merge(same[0], change)


def _merge(into: dict[str, Any], change: dict[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif isinstance(value, list) and isinstance(into.get(key), list) and key in MERGE_KEYS:
            _merge_list(into[key], value, MERGE_KEYS[key])
        else:
            into[key] = value


def _merge_list(into: list[dict[str, Any]], change: list[dict[str, Any]], key: str) -> None:
    by_key = {item[key]: item for item in into}
    for item in change:
        if item[key] in by_key:
            _merge(by_key[item[key]], item)
        else:
            into.append(item)


def _rename(node: Any, image: dict[str, str]) -> None:
    if isinstance(node, dict):
        name, _, tag = str(node.get("image", "")).partition(":")
        if name == image["name"]:
            node["image"] = f"{image.get('newName', name)}:{image.get('newTag', tag)}"
        for value in node.values():
            _rename(value, image)
    elif isinstance(node, list):
        for value in node:
            _rename(value, image)
