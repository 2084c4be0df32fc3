# SPDX-License-Identifier: Apache-2.0
"""The same examples in every run, and no time limits, which fail by chance on a busy machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "limen",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("limen")
