# SPDX-License-Identifier: Apache-2.0
"""The interface: routes, tokens, streams and the page over what the log has taken."""
