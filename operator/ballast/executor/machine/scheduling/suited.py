"""What a run may do on this cluster, whatever its policy allows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ballast.executor.machine.policy import ExecutionPolicy


def adapt(policy: ExecutionPolicy, api: Collection[str]) -> ExecutionPolicy:
    """The policy for a cluster that understands these calls (``ClusterState.api``).

    Without KIP-455 reassignments go through one znode, which takes one batch at a time.
    """
    return policy if "reassign" in api else replace(policy, one_batch_at_a_time=True)
