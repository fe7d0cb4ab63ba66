"""A store in a bucket: what Spark needs for it, told by the same environment variables by which delta-rs finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ballast.pipeline.session import DELTA_LOCK, SparkPolicy, is_connect, spark_jars

S3_LOCK: Final = "hadoop-aws-3.5.0"
"""The lock of Hadoop's S3 connector, of the version of Hadoop that PySpark has; 690 MB, most of it Amazon's client."""
_CONNECTOR: Final = "hadoop-aws"


def is_bucket(store: str) -> bool:
    """Does the store lie in a bucket?"""
    return store.startswith("s3a://")


def jar_locks(policy: SparkPolicy, store: str) -> tuple[str, ...]:
    """The locks of the jars that a session for this store needs beside Spark's own.

    Where Spark has a connector already, or a property names one, none is brought.
    """
    named = any(_CONNECTOR in value for value in policy.conf.values())
    if not is_bucket(store) or named or any(spark_jars().glob(f"{_CONNECTOR}-*.jar")):
        return (DELTA_LOCK,)
    return (DELTA_LOCK, S3_LOCK)


def with_bucket(policy: SparkPolicy, store: str, environment: Mapping[str, str]) -> SparkPolicy:
    """The policy with the address of the bucket's server; a Connect server has its own, and the user's properties win.

    Credentials are not among them: the driver's connector reads the same variables itself, and executors have their own.
    """
    if not is_bucket(store) or is_connect(policy.master):
        return policy
    found = {
        "endpoint": environment.get("AWS_ENDPOINT_URL"),
        "endpoint.region": environment.get("AWS_REGION"),
        "path.style.access": "true" if environment.get("AWS_S3_ADDRESSING_STYLE") == "path" else None,
    }
    told = {f"spark.hadoop.fs.s3a.{name}": value for name, value in found.items() if value}
    return replace(policy, conf=told | dict(policy.conf))
