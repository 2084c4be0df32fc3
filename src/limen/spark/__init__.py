# SPDX-License-Identifier: Apache-2.0
"""Exact answers about Spark frames, bit for bit those of limen on the same rows.

Everything runs as Spark SQL expressions: executors start no Python and need no limen.
"""

try:
    import pyspark.sql  # noqa: F401
except ImportError as error:
    raise ImportError(
        'limen.spark needs pyspark. Install it with: pip install "limen[spark]"'
    ) from error

from limen.spark.answers import hold, isotonic, optimal_cut, optimal_threshold, recommend
from limen.spark.grouped import by_group

__all__ = ["by_group", "hold", "isotonic", "optimal_cut", "optimal_threshold", "recommend"]


def __dir__() -> list[str]:
    return __all__
