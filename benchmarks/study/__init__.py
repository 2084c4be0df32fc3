# SPDX-License-Identifier: Apache-2.0
"""The study: ways to calibrate and to choose thresholds, on the same rows by the same measures."""
