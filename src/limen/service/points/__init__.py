# SPDX-License-Identifier: Apache-2.0
"""The points: what events mean. Nothing here knows HTTP, a file or a clock."""
