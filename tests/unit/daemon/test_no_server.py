"""``ballast run`` without a cluster: it never guesses one, and names what its reader can set."""

from __future__ import annotations

import pytest

from ballast.errors import UsageError
from ballast.settings.fields import walk
from ballast.settings.model import Settings
from ballast.wiring.daemon import run_daemon


def test_the_daemon_names_the_setting_that_is_missing() -> None:
    """Its hint names a setting that there is, and no option, since ``ballast run`` has none for this."""
    with pytest.raises(UsageError) as refused:
        run_daemon(None, {})
    assert refused.value.hint is not None
    assert "cluster.bootstrap_server" in {d.name for d in walk(Settings)}
    assert "cluster.bootstrap_server" in refused.value.hint
    assert "--bootstrap-server" not in refused.value.hint
