# SPDX-License-Identifier: Apache-2.0
"""What limen's pages are made of: style and charts. Nothing here is imported by the library."""

# What `limen serve` serves to browsers: the path of each file, and its name in this folder.
SERVED = {
    "/": "serve.html",
    "/page/page.css": "page.css",
    "/page/charts.js": "charts.js",
}
