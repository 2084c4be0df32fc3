# SPDX-License-Identifier: Apache-2.0
"""The same examples in every run, and no time limits, which fail by chance on a busy machine."""

import os

from hypothesis import HealthCheck, settings

# Threads that wait for each other on a busy machine take ten times as long as one alone.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")  # pictures need no screen

settings.register_profile(
    "limen",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limen")
