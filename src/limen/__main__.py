# SPDX-License-Identifier: Apache-2.0
"""``python -m limen`` is the command ``limen``."""

from limen.cli import run

if __name__ == "__main__":
    run()
