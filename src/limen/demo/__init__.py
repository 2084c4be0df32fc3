# SPDX-License-Identifier: Apache-2.0
"""A small real stream for trying limen out, and a demonstration: ``python -m limen.demo``.

`phishing.csv` holds the scores that an online logistic regression (scaled features, one
example at a time, scored before it was learned from) gave to the 1,250 web sites of the
Website Phishing data set, in their order, with the true labels. Source: UCI Machine Learning
Repository, Website Phishing (N. Abdelhamid), licence CC BY 4.0, as packaged by river 0.26.1
(BSD-3-Clause).
"""

from __future__ import annotations

import csv
from importlib.resources import files

__all__ = ["load_phishing", "phishing_csv"]


def phishing_csv() -> str:
    """Return the demonstration stream as a CSV with a header.

    >>> phishing_csv().splitlines()[:2]
    ['score,label', '0.5,1']
    """
    return files(__name__).joinpath("phishing.csv").read_text(encoding="ascii")


def load_phishing() -> tuple[list[float], list[int]]:
    """Return scores and labels of the demonstration stream, in order of arrival.

    >>> scores, labels = load_phishing()
    >>> len(scores), sum(labels)
    (1250, 548)
    """
    rows = list(csv.DictReader(phishing_csv().splitlines()))
    return [float(row["score"]) for row in rows], [int(row["label"]) for row in rows]
