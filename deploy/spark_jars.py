"""Lays Delta's jars, checked against their lock, into the folder of Spark's own, where driver and executors find them."""

from __future__ import annotations

import shutil

from ballast.pipeline.session import DELTA_LOCK, spark_jars
from ballast.sandbox.jars import ensure_jars

for jar in ensure_jars(DELTA_LOCK, on_line=print):
    shutil.copy(jar, spark_jars())
