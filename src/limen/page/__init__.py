# SPDX-License-Identifier: Apache-2.0
"""What limen's pages are made of: style and charts. Nothing here is imported by the library."""

# What the service hands out, and nothing else: paths of addresses, and the files beside this one.
SERVED = {"/": "serve.html"} | {
    f"/page/{name}": name
    for name in (
        "api.js",
        "app.js",
        "charts.js",
        "dom.js",
        "figures.js",
        "history.js",
        "icon.svg",
        "page.css",
        "point.js",
        "proposal.js",
        "serve.css",
        "words.js",
    )
}
