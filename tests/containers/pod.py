"""Runs a rendered pod as a container: exactly its env, mounts, user, read-only root, limits; refuses what it does not know.

A field that this translator does not understand fails the test that uses it: a pod that ran here ran with everything that its
spec says, and nothing of it was passed over in silence.  Said openly: the container shares the host's network, since the
cluster under test listens on its loopback, and scheduling fields (affinity, tolerations, …) are checked to be there and mean
nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

SCHEDULING: Final = {
    "affinity", "topologySpreadConstraints", "tolerations", "nodeSelector", "priorityClassName", "imagePullSecrets",
    "serviceAccountName", "automountServiceAccountToken", "enableServiceLinks",
}  # fmt: skip
POD: Final = {"containers", "volumes", "securityContext", "terminationGracePeriodSeconds", "restartPolicy", *SCHEDULING}
CONTAINER: Final = {
    "name", "image", "imagePullPolicy", "args", "ports", "env", "resources", "securityContext", "volumeMounts",
    "startupProbe", "livenessProbe", "readinessProbe",
}  # fmt: skip
POD_SECURITY: Final = {"runAsNonRoot", "runAsUser", "runAsGroup", "fsGroup", "seccompProfile"}
CONTAINER_SECURITY: Final = {"allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities"}
_UNITS: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


class NotUnderstood(Exception):
    """The pod says something that this translator cannot execute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """What the pod refers to: name to key to content."""

    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claims: Mapping[str, Path] = field(default_factory=dict)
    """The folder that stands for a PersistentVolumeClaim."""


def as_container(spec: Mapping[str, Any], *, pod_name: str, objects: Objects, folder: Path) -> dict[str, Any]:
    """Arguments for ``docker.containers.create`` that say what the pod spec says."""
    _only(spec, POD, "pod")
    (container,) = spec["containers"]
    _only(container, CONTAINER, "container")
    pod, own = spec["securityContext"], container["securityContext"]
    _only(pod, POD_SECURITY, "pod securityContext")
    _only(own, CONTAINER_SECURITY, "container securityContext")
    if not pod["runAsNonRoot"] or not pod["runAsUser"]:
        raise NotUnderstood("a container that may be root")
    if pod["seccompProfile"] != {"type": "RuntimeDefault"} or own["capabilities"] != {"drop": ["ALL"]}:
        raise NotUnderstood("seccomp or capabilities other than the default profile and none")
    volumes = {v["name"]: v for v in spec["volumes"]}
    tmpfs, binds = {}, {}
    for mount in container["volumeMounts"]:
        _only(mount, {"name", "mountPath", "readOnly"}, "volumeMount")
        volume = volumes[mount["name"]]
        _only(volume, {"name", "configMap", "secret", "emptyDir", "persistentVolumeClaim"}, "volume")
        if "emptyDir" in volume:
            _only(volume["emptyDir"], {"sizeLimit"}, "emptyDir")
            size = _bytes(volume["emptyDir"].get("sizeLimit", "1Gi"))
            tmpfs[mount["mountPath"]] = f"size={size},mode=1777,exec"
        elif "persistentVolumeClaim" in volume:
            _only(volume["persistentVolumeClaim"], {"claimName"}, "persistentVolumeClaim")
            folder_of = objects.claims[volume["persistentVolumeClaim"]["claimName"]]
            binds[str(folder_of)] = {"bind": mount["mountPath"], "mode": "ro" if mount.get("readOnly") else "rw"}
        else:
            source = _files(volume, objects, folder / mount["name"], group=pod["fsGroup"])
            binds[str(source)] = {"bind": mount["mountPath"], "mode": "ro"}
    limits = container["resources"].get("limits", {})
    _only(container["resources"], {"requests", "limits"}, "resources")
    _only(limits, {"memory"}, "limits")
    return {
        "image": container["image"],
        "command": container["args"],
        "environment": _environment(container["env"], pod_name, objects),
        "user": f"{pod['runAsUser']}:{pod['runAsGroup']}",
        "group_add": [str(pod["fsGroup"])],
        "read_only": bool(own["readOnlyRootFilesystem"]),
        "cap_drop": own["capabilities"]["drop"],
        "security_opt": [] if own["allowPrivilegeEscalation"] else ["no-new-privileges:true"],
        "mem_limit": _bytes(limits["memory"]),
        "tmpfs": tmpfs,
        "volumes": binds,
        "network_mode": "host",
        "hostname": None,
    }


def probe_url(container: Mapping[str, Any], kind: str) -> str:
    """Where a probe asks, on the host's loopback."""
    probe = container[kind]
    _only(probe, {"httpGet", "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold"}, kind)
    _only(probe["httpGet"], {"path", "port"}, "httpGet")
    port = next(p["containerPort"] for p in container["ports"] if p["name"] == probe["httpGet"]["port"])
    return f"http://127.0.0.1:{port}{probe['httpGet']['path']}"


def _environment(entries: list[dict[str, Any]], pod_name: str, objects: Objects) -> dict[str, str]:
    out = {}
    for entry in entries:
        _only(entry, {"name", "value", "valueFrom"}, "env")
        source = entry.get("valueFrom")
        if source is None:
            out[entry["name"]] = entry.get("value", "")
        elif source == {"fieldRef": {"fieldPath": "metadata.name"}}:
            out[entry["name"]] = pod_name
        elif set(source) == {"secretKeyRef"}:
            ref = source["secretKeyRef"]
            _only(ref, {"name", "key"}, "secretKeyRef")
            out[entry["name"]] = objects.secrets[ref["name"]][ref["key"]]
        else:
            raise NotUnderstood(f"env {entry['name']} from {source}")
    return out


def _files(volume: Mapping[str, Any], objects: Objects, folder: Path, *, group: int) -> Path:
    """Lay a ConfigMap or Secret down as the kubelet does: keys are links into a folder that is swapped as a whole."""
    import os

    if "configMap" in volume:
        _only(volume["configMap"], {"name"}, "configMap")
        content, mode = objects.configs[volume["configMap"]["name"]], 0o644
    else:
        _only(volume["secret"], {"secretName", "defaultMode"}, "secret")
        content, mode = objects.secrets[volume["secret"]["secretName"]], volume["secret"]["defaultMode"]
    data = folder / "..2026_11_21"
    data.mkdir(parents=True)
    for key, text in content.items():
        (data / key).write_text(text)
        (data / key).chmod(mode)
        os.chown(data / key, 0, group)
        (folder / key).symlink_to(f"..data/{key}")
    (folder / "..data").symlink_to(data.name)
    return folder


def _only(value: Mapping[str, Any], known: set[str], what: str) -> None:
    strange = set(value) - known
    if strange:
        raise NotUnderstood(f"{what}: {', '.join(sorted(strange))}")


def _bytes(quantity: str) -> int:
    found = re.fullmatch(r"(\d+)(Ki|Mi|Gi)?", quantity)
    if found is None:
        raise NotUnderstood(f"quantity {quantity}")
    return int(found[1]) * _UNITS.get(found[2] or "", 1)
