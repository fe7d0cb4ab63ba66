"""Hands pip's settings (index, certificates, proxy is in the environment already) on to uv, which does not read them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

TRANSLATED = {
    "index-url": ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
    "extra-index-url": ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
    "find-links": ("PIP_FIND_LINKS", "UV_FIND_LINKS"),
    "cert": ("PIP_CERT", "SSL_CERT_FILE"),
    "trusted-host": ("PIP_TRUSTED_HOST", "UV_INSECURE_HOST"),
}
"""pip's option, the variable that overrides it, and uv's variable."""


def as_uv_environment(python: Path) -> dict[str, str]:
    """The uv variables for what pip would use; what the person set for uv already wins."""
    configured = {}
    listing = subprocess.run([str(python), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        key, _, value = line.partition("=")
        configured[key.removeprefix("global.")] = value.strip("'\"")
    found = {"UV_SYSTEM_CERTS": "1", "UV_HTTP_TIMEOUT": "180", "UV_PYTHON_DOWNLOADS": "never"}
    for option, (variable, name) in TRANSLATED.items():
        value = os.environ.get(variable) or configured.get(option)
        if value:
            found[name] = value.replace("\\n", " ")
    return {name: value for name, value in found.items() if name not in os.environ}
