# SPDX-License-Identifier: Apache-2.0
"""``limen fit``: the exact optimum of files, the threshold for new rows, and a check on others."""

from __future__ import annotations

import csv
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from limen.cli.aims import aim_of, columns_of
from limen.cli.checking import Candidate, checked, thresholds_of_groups
from limen.cli.exits import BAD_INPUT, FAILED, INFEASIBLE, USAGE, Failure
from limen.cli.inputs import read, read_narrowed, require_other_files
from limen.cli.output import as_json, print_messages, require_writable
from limen.cli.refusals import failing, require_confidence, require_one_aim_for_a_band
from limen.cli.sentences import (
    band_lines,
    check_lines,
    near_lines,
    remarks,
    skipped_lines,
    summary,
)
from limen.reporting.advice import advice_on, thresholds_by_group
from limen.reporting.findings import band_of, best_of, findings_by_group, groups_of, near_of
from limen.reporting.samples import aim_on
from limen.reporting.wording import as_typed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from limen.aim import Aim
    from limen.groups import GroupThreshold
    from limen.reporting.advice import Advice
    from limen.reporting.findings import Finding, GroupFinding
    from limen.reporting.samples import FileRows

__all__ = ["fit"]

_OF_GROUPS = 0.95  # the confidence of the intervals that thresholds of groups are moved into


def fit(options: Namespace) -> int:
    """Find the best threshold of the samples in files, exactly and for new rows."""
    aim = aim_of(options)
    _require_options(options, aim)
    columns, narrowed = columns_of(options), None
    few_will_do = aim.by_cost and options.save is None and options.within is None
    if few_will_do and options.asking is None and options.max_questions is None:
        narrowed = read_narrowed(options.files, options.format, columns, aim.mistakes)
    samples = read(options.files, options.format, columns) if narrowed is None else narrowed[0]
    with failing():
        aim = aim_on(samples, aim, options.unit)
        finding = best_of(samples, aim)
        each = groups_of(samples, aim)
        if narrowed is not None:
            each = ((name, members, aim) for name, members in narrowed[1])
        groups = findings_by_group(each, finding, options.at_least)
        band = band_of(samples, aim, options.asking, options.max_questions)
    shrunk = thresholds_by_group(samples, aim, options.at_least)
    near = near_of(samples, aim, options.within)
    lines: list[str] = []
    if options.json or options.recommended or options.check or not options.quiet:
        given = options.confidence, options.current
        advice = advice_on(samples, aim, *given, narrowed=narrowed is not None)
        lines += summary(finding, aim, advice, samples.shares)
        lines += band_lines(band)
        lines += near_lines(near, aim, options.within, samples.direction)
        if options.recommended and advice.finding is None:
            code = FAILED if narrowed else INFEASIBLE if aim.demands else BAD_INPUT
            raise Failure(advice.reason, code)
        if options.check is not None:
            rows = read([options.check], options.format, columns, one_class=True)
            candidates = list(_candidates(rows, finding, advice, groups, shrunk))
            on_rows = aim_on(rows, aim, aim.unit)
            checks = list(checked(rows, candidates, on_rows, options.confidence))
            lines += check_lines(options.check, rows, checks, aim, options.confidence)
            lines += skipped_lines(rows)
    lines += remarks(samples, groups, options, aim)
    lines += skipped_lines(samples)
    if options.save is not None:
        _model_of(samples, options, aim).save(options.save)
    print_messages(*lines, quiet=options.quiet)
    if options.json:
        facts = {**aim.facts(), **finding.facts()}
        if options.within is not None:
            facts["near"] = [list(run) for run in near]
        if band is not None:
            facts["band"] = {**asdict(band), "confusion": band.confusion._asdict()}
        facts |= advice.facts()
        if options.check is not None:
            counts = {"samples": len(rows), "positives": rows.positives}
            checks_by_key = {check.candidate.key: check.facts() for check in checks}
            facts["check"] = {"file": options.check, **counts, **checks_by_key}
        if options.skip_malformed:
            facts["skipped"] = samples.skipped
        if options.group_column is not None:
            facts["groups"] = _facts_of_groups(groups, shrunk)
        print(as_json(facts))
    elif options.group_column is not None:
        _print_groups(options.group_column, groups, shrunk)
    elif options.recommended and advice.finding is not None:
        print(repr(advice.finding.threshold))
    else:
        print(repr(finding.threshold))
    return 0


def _require_options(options: Namespace, aim: Aim) -> None:
    """Refuse what cannot work, before any work is done."""
    require_writable(options.save, options.force)
    require_confidence(options.confidence)
    require_one_aim_for_a_band(options, aim)
    if options.within is not None and aim.priced:
        raise Failure(
            "--within works only with metrics and with --false-positive and --false-negative: a "
            "share of a gain says little. Leave it out.",
            USAGE,
        )
    if options.recommended and not aim.by_cost and not aim.demands:
        raise Failure(
            f"--recommended works only with costs and demands, not with --metric {aim.name}. Leave "
            "it out.",
            USAGE,
        )
    if options.group_column is not None and options.confidence != _OF_GROUPS:
        raise Failure(
            f"--group-column uses intervals of {_OF_GROUPS * 100:g} %. Leave --confidence out.",
            USAGE,
        )
    if options.check is not None:
        require_other_files(options.files, options.check)


def _candidates(
    rows: FileRows,
    finding: Finding,
    advice: Advice,
    groups: dict[str, GroupFinding],
    shrunk: dict[str, GroupThreshold],
) -> Iterator[Candidate]:
    """Yield the thresholds to check; the others are compared with the first one."""
    if advice.current is not None:
        text = as_typed(advice.current)
        yield Candidate("current", f"current {text}", text, advice.current)
    label = f"exact optimum {finding.threshold_text}"
    yield Candidate("exact", label, "the exact optimum", finding.threshold)
    if groups:
        exact = {name: part.threshold for name, (part, _) in groups.items()}
        each = thresholds_of_groups(rows, exact, finding.threshold)
        yield Candidate("exact_by_group", "exact optimum of each group", "", each)
    if advice.finding is not None:
        label = f"recommended {advice.finding.threshold_text}"
        yield Candidate("recommended", label, "", advice.finding.threshold)
    if shrunk and advice.finding is not None:
        own = {name: part.threshold for name, part in shrunk.items()}
        each = thresholds_of_groups(rows, own, advice.finding.threshold)
        yield Candidate("recommended_by_group", "recommended for each group", "", each)


def _print_groups(
    column: str, groups: dict[str, GroupFinding], shrunk: dict[str, GroupThreshold]
) -> None:
    """Print the groups as CSV; what is not known is empty."""
    exact = ("threshold", "samples", "positives", "own")
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow([column, *exact, "recommended", "low", "high", "basis", "few"])
    for name, (part, own) in groups.items():
        found = (repr(part.threshold), part.samples, part.positives, int(own))
        facts = _group_facts(shrunk.get(name))
        numbers = (facts["recommended"], *(facts["interval"] or (None, None)))
        cells = ("" if number is None else repr(number) for number in numbers)
        table.writerow([name, *found, *cells, facts["basis"] or "", int(part.few)])


def _facts_of_groups(
    groups: dict[str, GroupFinding], shrunk: dict[str, GroupThreshold]
) -> list[dict[str, Any]]:
    """Return all that is known about each group, ready for JSON."""
    return [
        {"group": name, "own": own, **part.facts(), **_group_facts(shrunk.get(name))}
        | {"few": part.few}
        for name, (part, own) in groups.items()
    ]


def _model_of(rows: FileRows, options: Namespace, aim: Aim) -> Any:
    """Hold all samples, for these costs where costs are the aim, else for all; also by group."""
    model, columns = aim.model(direction=rows.direction), (rows.given, *aim.columns_of(rows)[1:])
    if rows.codes is not None:
        from limen.groups import Grouped  # loads much that others do not need

        model = Grouped(model, at_least=options.at_least)
        columns = ([rows.names[code] for code in rows.codes.tolist()], *columns)
    model.update_many(*columns)
    return model


def _group_facts(found: GroupThreshold | None) -> dict[str, Any]:
    """Return the threshold for new rows of a group, its interval and its basis, ready for JSON.

    The basis is "own" where the group's own samples moved the threshold of all samples, else "all".
    """
    if found is None:
        return {"recommended": None, "interval": None, "basis": None}
    return {
        "recommended": found.threshold,
        "interval": None if found.interval is None else list(found.interval),
        "basis": "own" if found.source else "all",
    }
