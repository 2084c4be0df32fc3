# SPDX-License-Identifier: Apache-2.0
"""Labels come late and some are corrected: what the answers cost that were given.

Three ways to answer play the same season of ice hockey: before each game, say 1 if the home
team will win. The result is known 30 games later; one in twenty is reported wrong at first and
corrected 60 games after that. Until the first result is known, all answer by 0.5.
"""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from pathlib import Path

from limen import Ledger, OnlineThreshold, optimal_threshold

DELAY = 30
CORRECTION = 60
WRONG = 0.05


def read_games() -> list[tuple[float, int, str]]:
    """Return probability, result and day of each game, in order of time."""
    path = Path(__file__).with_name("nhl_games.csv")
    with path.open(encoding="ascii") as file:
        return [(float(r["score"]), int(r["label"]), r["time"]) for r in csv.DictReader(file)]


def read_reports(games: list[tuple[float, int, str]]) -> dict[int, list[tuple[int, int]]]:
    """Return what becomes known before each game: pairs of a game and its label."""
    chance = random.Random(0)
    reports = defaultdict(list)
    for game, (_, label, _) in enumerate(games):
        wrong = chance.random() < WRONG
        reports[game + DELAY].append((game, 1 - label if wrong else label))
        if wrong:
            reports[game + DELAY + CORRECTION].append((game, label))
    return reports


class Nightly:
    """Every night, the best threshold for all labels known by then; 0.5 before there are any."""

    def __init__(self, costs: dict[str, int]) -> None:
        self.costs = costs
        self.threshold = 0.5
        self.day = ""

    def answer(self, score: float, day: str, scores: list[float], labels: dict[int, int]) -> int:
        """Refit on the first game of a day, then answer."""
        if day != self.day and labels:
            known = [scores[game] for game in labels]
            found = optimal_threshold(known, list(labels.values()), **self.costs)
            self.threshold = found.threshold
        self.day = day
        return int(score >= self.threshold)


def play(costs: dict[str, int]) -> dict[str, Ledger]:
    """Play the season; return the books of the three ways to answer."""
    games = read_games()
    reports = read_reports(games)
    scores = [score for score, _, _ in games]
    books = {
        name: Ledger(OnlineThreshold(**costs)) for name in ("fixed 0.5", "nightly refit", "limen")
    }
    nightly = Nightly(costs)
    labels: dict[int, int] = {}
    for moment in range(len(games) + DELAY + CORRECTION):
        for game, label in reports[moment]:
            labels[game] = label
            for book in books.values():
                book.label(game, label)
        if moment < len(games):
            score, _, day = games[moment]
            books["fixed 0.5"].score(moment, score, answer=int(score >= 0.5))
            refitted = nightly.answer(score, day, scores, labels)
            books["nightly refit"].score(moment, score, answer=refitted)
            # After the first label by its own threshold of this moment.
            books["limen"].score(moment, score, answer=None if labels else int(score >= 0.5))
    return books


def main() -> None:
    """Play the season with three pairs of costs and print what each way to answer cost."""
    print("1,401 games, results 30 games late, one in twenty corrected 60 games after that.\n")
    print("false    missed   way to          cost of the     best threshold   regret")
    print("alarm    win      answer          answers given   in hindsight")
    for false_positive, false_negative in ((1, 1), (2, 1), (1, 5)):
        books = play({"false_positive": false_positive, "false_negative": false_negative})
        for name, book in books.items():
            print(
                f"{false_positive:5}{false_negative:9}    {name:16}{book.cost:13.0f}"
                f"{book.loss:17.0f}{book.regret:9.0f}"
            )
        print()
    print("The probabilities are honest, so with equal costs 0.5 is hard to beat, and learning a")
    print("threshold costs some games. Once mistakes differ in cost, 0.5 is far off, and both ways")
    print("to learn come close to the best. A night matters little here: seven games a day, and")
    print("results that are thirty games late. What limen saves is the refit.")


if __name__ == "__main__":
    main()
