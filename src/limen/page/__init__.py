# SPDX-License-Identifier: Apache-2.0
"""What limen's pages are made of: style and charts. Nothing here is imported by the library."""
