# SPDX-License-Identifier: Apache-2.0
"""How fast is limen, against what? Every answer is verified before it is timed."""
