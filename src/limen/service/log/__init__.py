# SPDX-License-Identifier: Apache-2.0
"""The log: an event is on disk before anybody is answered, and nothing else happens."""
