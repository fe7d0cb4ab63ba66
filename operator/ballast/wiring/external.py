"""What brings samples the figures that the protocol does not have; apart from the planner, which a sample does not need."""

from __future__ import annotations

from ballast.adapters.samples.prometheus import PrometheusLoad
from ballast.adapters.samples.prometheus_queries import PrometheusPolicy
from ballast.adapters.samples.sampler import External


def external_load(policy: PrometheusPolicy) -> External:
    """What brings a sample the figures that the protocol does not have; nothing, where no Prometheus is named."""
    return PrometheusLoad(policy) if policy.url is not None else lambda _: None
