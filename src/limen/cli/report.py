# SPDX-License-Identifier: Apache-2.0
"""``limen report``: one page about the threshold of files."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from limen.cli.aims import aim_of, columns_of
from limen.cli.inputs import expanded, read
from limen.cli.output import print_messages, require_writable, written
from limen.cli.refusals import failing, require_one_aim_for_a_band
from limen.cli.sentences import skipped_lines
from limen.reporting import Report
from limen.reporting.origin import Origin
from limen.reporting.samples import aim_on
from limen.reporting.study import Question, Study
from limen.reporting.wording import Words

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["report"]


def report(options: Namespace) -> int:
    """Write the page about the samples in files."""
    aim = aim_of(options)
    require_one_aim_for_a_band(options, aim)
    require_writable(options.output, options.force)
    samples = read(options.files, options.format, columns_of(options))
    with failing():
        aim = aim_on(samples, aim, options.unit)
    question = Question(
        aim,
        options.thresholds,
        options.asking,
        options.max_questions,
        options.group_column or "",
        options.at_least,
        Words(options.positive),
        typed=True,
    )
    title = ", ".join(os.path.basename(path) for path in options.files)
    with failing():
        page = Report(
            Study(samples, question),
            title,
            Origin.of_files(_typed(options), expanded(options.files), samples.skipped),
        )
        html = page.html()
    with written(options.output) as file:
        file.write(html)
    first, *more = page.messages()
    lines = [f"{options.output}: {first}", *(f"limen: {line}" for line in more)]
    print_messages(*lines, *skipped_lines(samples), quiet=options.quiet)
    return 0


def _typed(options: Namespace) -> str:
    """Write the command as it was typed, after the variables that stand for options."""
    names = {f"LIMEN_{name.upper()}" for name in vars(options)} | {"LIMEN_THRESHOLD"}
    read = [
        f"{name}={shlex.quote(text)}" for name in sorted(names) if (text := os.environ.get(name))
    ]
    return " ".join([*read, shlex.join(["limen", *options.arguments])])
